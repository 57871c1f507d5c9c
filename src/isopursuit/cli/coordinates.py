"""`isopursuit coordinates`: find functions that are coordinates of a trajectory or of points, and write files."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isopursuit._core.clock import Clock
from isopursuit.cli.arguments import Outputs, ReportFile
from isopursuit.cli.output import check_outputs, give, json_text, say, show_notes
from isopursuit.cli.words import on_command_line
from isopursuit.errors import InputError, IsoPursuitError, ParameterError, RangeError

if TYPE_CHECKING:
    from isopursuit import Coordinates

REPORT_SECONDS, REPORT_SHARE = 10.0, 0.4  # reserved for a report, at most this share of the time (measured: 3 to 6 s)
DICTIONARIES = ("rotatable", "bonds", "distances of ")
TABLES = (".csv", ".tsv", ".txt", ".gz", ".xlsx", ".parquet", ".arrow", ".feather", ".npy")


@dataclass(frozen=True)
class Options:
    """The data and the functions, and options of `find_coordinates`."""

    data: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A trajectory (.npz, .xyz, .pdb, .dcd, .xtc), or a table of points (.csv, .parquet, .npy).",
            show_default=False,
        ),
    ]
    D: Annotated[
        str | None,
        typer.Option(
            "-D",
            "--dimension",
            metavar="D",
            help="How many functions to pick: a number, or several such as 1:7 to compare. Default: compare 1 to 7.",
        ),
    ] = None
    dictionary: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Functions of a molecule to pick from: rotatable (one torsion for each rotatable bond), bonds (all "
            "torsions along three bonds, at most one about each bond), or 'distances of SELECTION'.",
            autocompletion=lambda: list(DICTIONARIES),
        ),
    ] = "rotatable"
    values: Annotated[
        Path | None,
        typer.Option(
            help="In place of --dictionary: a table with a column for each function and a row for each point or frame, "
            "or a COLVAR file of PLUMED. Needed for a table of points."
        ),
    ] = None
    periodic: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Columns of --values that jump back after a period: names of angles in radians, or name=period, "
            "separated by commas.",
        ),
    ] = ""
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
    include: Annotated[
        list[str] | None,
        typer.Option("--must-include", help="Label of a function that must be picked, such as φ (repeatable)."),
    ] = None
    exclude: Annotated[
        list[str] | None,
        typer.Option("--must-exclude", help="Label of a function that must not be picked (repeatable)."),
    ] = None
    frames: Annotated[
        str, typer.Option(metavar="FRAMES", help="How many points to draw, or which ones, such as 0:5000:50.")
    ] = "100"
    neighbours: Annotated[
        int | None, typer.Option(help="How many points make a tangent space. Default: depends on their number.")
    ] = None
    time_limit: Annotated[float, typer.Option("--time-limit", help="Seconds for the whole command.")] = 60.0
    seed: Annotated[int, typer.Option(help="Seed of the random draw of points.", min=0)] = 0

    def for_library(self) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The arguments of `find_coordinates`, and notes about the tables that were read."""
        same = ("topology", "include", "exclude", "neighbours", "seed", "data", "atoms", "dictionary", "time_limit")
        given: dict[str, Any] = {name: getattr(self, name) for name in same}
        notes: tuple[str, ...] = ()
        if not any(character not in "0123456789,: " for character in self.atoms):
            given["atoms"] = numbers(self.atoms, "--select", "heavy, all, or numbers from 0 such as 0,4:9")
        if self.D is not None:
            several = numbers(self.D, "--dimension", "a number such as 2, or several such as 1:7", inclusive=True)
            given["D"] = several[0] if len(several) == 1 else several
        many = "a number such as 100, or numbers from 0 such as 0:5000:50"
        frames = self.frames.strip()
        given["frames"] = int(frames) if frames.isdecimal() else numbers(frames, "--frames", many)
        if self.values is not None:
            given["dictionary"], notes = self._functions(self.values)
        if self.data.suffix.lower() in TABLES:
            if self.values is None:
                raise ParameterError(
                    f"{self.data.name} is a table of points. Pass the functions to pick from as another table with a "
                    "row for each point, by --values FILE."
                )
            given["data"], _, more = _table(self.data)
            notes = more + notes
        return given, notes

    def _functions(self, path: Path) -> tuple[Any, tuple[str, ...]]:
        """The dictionary of a COLVAR file or a table, and notes."""
        from isopursuit.data._files import check_file
        from isopursuit.manifold.dictionary import as_dictionary, read_colvar

        check_file(path)
        with path.open("rb") as file:
            if file.read(2) == b"#!":
                return read_colvar(path), ()
        values, labels, notes = _table(path)
        return as_dictionary(values=values, labels=labels, periodic=self._periods()), notes

    def _periods(self) -> Any:
        """The periods of --periodic by label."""
        from isopursuit.manifold.dictionary import TURN

        periods: dict[str, float] = {}
        for part in filter(None, self.periodic.split(",")):
            name, _, period = part.partition("=")
            try:
                periods[name.strip()] = float(period) if period else TURN
            except ValueError:
                raise ParameterError(f"--periodic {part} is not understood. Pass a name, or name=period.") from None
        return periods


@dataclass(frozen=True)
class Files:
    """Files that only this command writes."""

    plumed: Annotated[Path | None, typer.Option(help="Write a PLUMED input file with the picked functions.")] = None
    table: Annotated[
        Path | None, typer.Option(help="Write the picked functions at all points (.csv); angles in radians.")
    ] = None
    report: ReportFile = None


def _table(path: Path) -> tuple[Any, Any, tuple[str, ...]]:
    """The numbers of a table, the names of its columns, and notes."""
    from isopursuit.data import read_table

    found = read_table(path)
    return found.values, found.columns, tuple(re.sub(r" \(--label .*?\)", "", note) for note in found.notes)


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
    """Read the data, find coordinates, print them and write the files."""
    from isopursuit.cli.watch import StageWatch
    from isopursuit.manifold.coordinates import find_coordinates
    from isopursuit.manifold.result import as_table_path

    clock = Clock.of(options.time_limit)
    if files.table is not None:
        as_table_path(files.table, "--table")
    if files.plumed is not None and options.values is not None:
        raise ParameterError("PLUMED needs atoms, which are not known for functions of --values. Leave --plumed out.")
    check_outputs(options.data, output=outputs.output, report=files.report, plumed=files.plumed, table=files.table)
    with _options_in_errors(), StageWatch() as watch:
        given, read = options.for_library()
        if files.report is not None:
            before = clock.reserve(min(REPORT_SHARE * clock.remaining, REPORT_SECONDS))
            given["time_limit"] = round(max(before.remaining, 1e-3), 3)
        found = find_coordinates(**given, callback=watch)
    notes = [on_command_line(note) for note in (*read, *found.notes)]
    answer = {"file": str(options.data), **found.as_dict(), "notes": notes}
    contents: dict[Path, Callable[[], str | bytes]] = {}
    if outputs.output is not None:
        contents[outputs.output] = partial(json_text, answer)
    if files.plumed is not None:
        contents[files.plumed] = found.plumed_content
    if files.table is not None:
        contents[files.table] = found.table_content
    if files.report is not None:
        contents[files.report] = partial(_page, found)
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


def _page(found: Coordinates) -> str:
    from isopursuit.show._coordinates import coordinates_page

    return coordinates_page(found, command=shlex.join(["isopursuit", *sys.argv[1:]]))


def _show(found: Coordinates, notes: list[str]) -> None:
    """Print the answer, and notes on stderr."""
    for line in str(replace(found, notes=())).splitlines():
        say(line)
    show_notes(notes)
