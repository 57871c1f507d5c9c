"""`isopursuit coordinates`: find torsions that are coordinates of a trajectory, and write files for further work."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from isopursuit._core.clock import Clock
from isopursuit._core.types import AggregateName
from isopursuit.cli.arguments import Exponent, MethodName, Outputs, ReportFile, as_unit_option, one_of
from isopursuit.cli.output import check_outputs, give, json_text, say, show_notes, show_table
from isopursuit.cli.words import on_command_line
from isopursuit.errors import InputError, IsoPursuitError, ParameterError, RangeError, unknown_option

if TYPE_CHECKING:
    from isopursuit import Coordinates

REPORT_SECONDS, REPORT_SHARE = 10.0, 0.4  # reserved for a report, at most this share of the time (measured: 3 to 6 s)
Shapes = Literal["torsions", "angles"]
DICTIONARIES = ("rotatable", "bonds", "all")


@dataclass(frozen=True)
class Options:
    """The trajectory, and the options of `find_coordinates` by its own names."""

    data: Annotated[
        Path, typer.Argument(metavar="FILE", help="A trajectory: .npz, .xyz, .pdb, .dcd, .xtc.", show_default=False)
    ]
    D: Annotated[
        str | None,
        typer.Option(
            "-D",
            "--dimension",
            metavar="D",
            help="How many torsions to pick: a number, or several such as 1:7 to compare. Default: compare 1 to 7.",
        ),
    ] = None
    topology: Annotated[
        Path | None, typer.Option(help="File that lists the atoms, if the trajectory has positions only.")
    ] = None
    atoms: Annotated[
        str,
        typer.Option(
            "--select",
            metavar="ATOMS",
            help="heavy, all, numbers from 0 such as 0,4:9, or an MDAnalysis selection such as 'protein'.",
        ),
    ] = "heavy"
    shapes: Annotated[
        Shapes,
        typer.Option(
            metavar="NAME",
            help="What makes the shape of the molecule: torsions, or angles as in the paper.",
            **one_of(Shapes),
        ),
    ] = "torsions"
    dictionary: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Candidate torsions: rotatable (one for each rotatable bond), bonds (along three bonds) or all (of "
            "every four atoms); or a COLVAR file of PLUMED with a line for each frame.",
            autocompletion=lambda: list(DICTIONARIES),
        ),
    ] = "rotatable"
    include: Annotated[
        list[str] | None,
        typer.Option("--must-include", help="Label of a torsion that must be picked, such as φ (repeatable)."),
    ] = None
    exclude: Annotated[
        list[str] | None,
        typer.Option("--must-exclude", help="Label of a torsion that must not be picked (repeatable)."),
    ] = None
    one_per_bond: Annotated[
        bool, typer.Option("--one-per-bond", help="Pick at most one torsion about each bond (with --dictionary bonds).")
    ] = False
    frames: Annotated[
        str, typer.Option(metavar="FRAMES", help="How many frames to draw, or which ones, such as 0:5000:50.")
    ] = "100"
    neighbours: Annotated[
        int | None, typer.Option(help="How many frames make a tangent space. Default: depends on their number.")
    ] = None
    aggregate: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="How losses at many frames become one number: trimmed, sum, or the share of the frames that a trimmed "
            "mean keeps.",
        ),
    ] = "trimmed"
    leave_out: Annotated[
        bool, typer.Option("--leave-out", help="Ignore frames whose tangent space is not determined by the data.")
    ] = False
    unit: Annotated[
        str,
        typer.Option(
            metavar="LENGTH",
            help="The length of a gradient that counts as 1: overall (a separate unit for each torsion), a number, "
            "median, each or none.",
        ),
    ] = "overall"
    c: Exponent = 1.0
    method: MethodName = "auto"
    time_limit: Annotated[float, typer.Option("--time-limit", help="Seconds for the whole command.")] = 60.0
    seed: Annotated[int, typer.Option(help="Seed of the random draw of frames.", min=0)] = 0

    def for_library(self) -> dict[str, Any]:
        """The arguments of `find_coordinates`."""
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        given["groups"] = "bonds" if given.pop("one_per_bond") else None
        if not any(character not in "0123456789,: " for character in self.atoms):
            given["atoms"] = numbers(self.atoms, "--select", "heavy, all, or numbers from 0 such as 0,4:9")
        if self.D is not None:
            several = numbers(self.D, "--dimension", "a number such as 2, or several such as 1:7", inclusive=True)
            given["D"] = several[0] if len(several) == 1 else several
        many = "a number such as 100, or numbers from 0 such as 0:5000:50"
        frames = self.frames.strip()
        given["frames"] = int(frames) if frames.isdecimal() else numbers(frames, "--frames", many)
        if self.aggregate not in get_args(AggregateName):
            try:
                share = float(self.aggregate)
            except ValueError:
                share = 0.0
            if not 0 < share <= 1:
                kept = "the share of the frames that a trimmed mean keeps, such as 0.8"
                raise unknown_option("--aggregate", self.aggregate, get_args(AggregateName), kept)
            given["aggregate"] = share
        if self.unit != "overall":
            given["unit"] = as_unit_option(self.unit)
        return given


@dataclass(frozen=True)
class Files:
    """Files that only this command writes."""

    plumed: Annotated[Path | None, typer.Option(help="Write a PLUMED input file with the torsions.")] = None
    table: Annotated[
        Path | None, typer.Option(help="Write the torsions at all frames (.csv, .parquet), in radians.")
    ] = None
    report: ReportFile = None


def numbers(text: str, option: str, expected: str, *, inclusive: bool = False) -> list[int]:
    """Numbers separated by commas; first:end and first:end:step are ranges as in Python, or with their end.

    Examples
    --------
    >>> numbers("7,0:10:5", "--frames", "numbers")
    [7, 0, 5]
    """
    found: list[int] = []
    try:
        for part in text.split(","):
            ends = [int(end) for end in part.split(":")]
            ends[1:2] = [end + inclusive for end in ends[1:2]]
            found += [ends[0]] if len(ends) == 1 else range(*ends)
    except (ValueError, TypeError):
        found = []
    if not found or min(found) < 0:
        raise ParameterError(f"{option} {text} is not understood. Pass {expected}.")
    return found


def coordinates(options: Options, files: Files, outputs: Outputs) -> None:
    """Read the trajectory, find coordinates, print them and write the files."""
    from isopursuit.cli.watch import StageWatch
    from isopursuit.manifold.coordinates import find_coordinates
    from isopursuit.manifold.result import as_table_path

    clock, given = Clock.of(options.time_limit), options.for_library()
    if files.table is not None:
        as_table_path(files.table, "--table")
    check_outputs(options.data, output=outputs.output, report=files.report, plumed=files.plumed, table=files.table)
    if files.report is not None:
        clock_before = clock.reserve(min(REPORT_SHARE * clock.remaining, REPORT_SECONDS))
        given["time_limit"] = clock_before.remaining_limit
    with _options_in_errors(), StageWatch() as watch:
        found = find_coordinates(**given, callback=watch)
    notes = [on_command_line(note) for note in found.notes]
    answer = {"file": str(options.data), **found.as_dict(), "notes": notes}
    contents: dict[Path, Callable[[], str | bytes]] = {}
    if outputs.output is not None:
        contents[outputs.output] = partial(json_text, answer)
    if files.plumed is not None:
        contents[files.plumed] = found.plumed_content
    if files.table is not None:
        contents[files.table] = partial(found.table_content, files.table.suffix.lower())
    if files.report is not None:
        contents[files.report] = partial(_page, found, clock)
    give(answer, partial(_show, found, notes), contents, as_json=outputs.as_json)


@contextmanager
def _options_in_errors() -> Generator[None]:
    """Replace keywords of the library by options of this command in error messages."""
    try:
        yield
    except RangeError as error:  # another type, since this command has no --standardize
        raise InputError(on_command_line(str(error))) from None
    except IsoPursuitError as error:
        raise type(error)(on_command_line(str(error))) from None


def _page(found: Coordinates, clock: Clock) -> str:
    from isopursuit.show._coordinates import coordinates_page

    command = shlex.join(["isopursuit", *sys.argv[1:]])
    return coordinates_page(found, command=command, time_limit=clock.remaining_limit)


def _show(found: Coordinates, notes: list[str]) -> None:
    """Print the picked torsions, then one line each about the quality, the loss, the dimension and the unit."""
    show_table(list(found.heads), found.rows, found.title)
    for line in found.summary:
        say(on_command_line(line))
    if found.scan is not None:
        for line in str(found.scan).splitlines()[:-1]:  # the reason is in the summary
            say(line)
    show_notes(notes)
