"""`isopursuit coordinates`: find torsions that are coordinates of a trajectory, and write files for further work."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from isopursuit._core.clock import Clock
from isopursuit._core.types import AggregateName, AggregateOption, Method, Unit
from isopursuit.cli.arguments import as_unit_option
from isopursuit.cli.output import check_outputs, give, json_text, say, show_notes, show_table
from isopursuit.cli.watch import StageWatch
from isopursuit.cli.words import of_coordinates
from isopursuit.errors import InputError, IsoPursuitError, ParameterError, RangeError, unknown_option
from isopursuit.manifold.coordinates import find_coordinates
from isopursuit.manifold.coordinates_options import AGGREGATE
from isopursuit.manifold.coordinates_result import Coordinates
from isopursuit.manifold.tables import as_table_path

REPORT_SECONDS, REPORT_SHARE = 10.0, 0.4  # reserved for a report, at most this share of the time (measured: 3 to 6 s)


@dataclass(frozen=True)
class Wanted:
    """The trajectory and the options of the same names."""

    file: Path
    topology: Path | None
    dimension: int | None
    select: str
    dictionary: Literal["bonds", "rotatable", "all"]
    frames: str
    neighbours: int | None
    aggregate_text: str | None
    leave_out: bool
    unit_text: str | None

    @property
    def unit(self) -> Unit | Literal["auto"]:
        """The length that counts as 1."""
        return "auto" if self.unit_text is None else as_unit_option(self.unit_text)

    @property
    def aggregate(self) -> AggregateOption:
        """How losses are combined: a name, or a share of the frames."""
        text = self.aggregate_text
        if text is None:
            return AGGREGATE
        if text in ("sum", "trimmed"):
            return text
        try:
            share = float(text)
        except ValueError:
            share = 0.0
        if not 0 < share <= 1:
            kept = "the share of the frames that a trimmed mean keeps, such as 0.8"
            raise unknown_option("--aggregate", text, get_args(AggregateName), kept)
        return share

    @property
    def atoms(self) -> Any:
        """Which atoms: numbers, or words such as heavy, all or an MDAnalysis selection."""
        if any(character not in "0123456789,: " for character in self.select):
            return self.select
        return numbers(self.select, "--select", "heavy, all, or numbers from 0 such as 0,4:9")

    @property
    def chosen_frames(self) -> Any:
        """How many frames, or which ones."""
        text = self.frames.strip()
        if text.isdecimal():
            return int(text)
        return numbers(text, "--frames", "a number such as 100, or numbers from 0 such as 0:5000:50")


@dataclass(frozen=True)
class SearchOptions:
    """How to search; the fields are the options of the same names."""

    c: float
    method: Method
    time_limit: float
    seed: int


@dataclass(frozen=True)
class Outputs:
    """Where the answer goes: to the terminal (as text or as JSON) and to files."""

    as_json: bool = False
    output: Path | None = None
    report: Path | None = None
    plumed: Path | None = None
    table: Path | None = None


def numbers(text: str, option: str, expected: str) -> list[int]:
    """Numbers separated by commas; first:end and first:end:step are ranges as in Python.

    Examples
    --------
    >>> numbers("7,0:10:5", "--frames", "numbers")
    [7, 0, 5]
    """
    found: list[int] = []
    try:
        for part in text.split(","):
            ends = [int(end) for end in part.split(":")]
            found += [ends[0]] if len(ends) == 1 else range(*ends)
    except (ValueError, TypeError):
        found = []
    if not found or min(found) < 0:
        raise ParameterError(f"{option} {text} is not understood. Pass {expected}.")
    return found


def coordinates(wanted: Wanted, search: SearchOptions, outputs: Outputs) -> None:
    """Read the trajectory, find coordinates, print them and write the files."""
    clock = Clock.of(search.time_limit)
    unit, aggregate, atoms, frames = wanted.unit, wanted.aggregate, wanted.atoms, wanted.chosen_frames
    if outputs.table is not None:
        as_table_path(outputs.table, "--table")
    check_outputs(wanted.file, output=outputs.output, report=outputs.report, plumed=outputs.plumed, table=outputs.table)
    with _options_in_errors(), StageWatch() as watch:
        found = find_coordinates(
            wanted.file,
            wanted.dimension,
            topology=wanted.topology,
            atoms=atoms,
            dictionary=wanted.dictionary,
            frames=frames,
            neighbours=wanted.neighbours,
            aggregate=aggregate,
            leave_out=wanted.leave_out,
            unit=unit,
            c=search.c,
            method=search.method,
            time_limit=_before_report(clock, outputs.report).remaining_limit,
            seed=search.seed,
            callback=watch,
        )
    notes = [of_coordinates(note) for note in found.notes]
    answer = {"file": str(wanted.file), **found.as_dict(), "notes": notes}
    give(answer, partial(_show, found, notes), _files(found, answer, outputs, clock), as_json=outputs.as_json)


def _before_report(clock: Clock, report: Path | None) -> Clock:
    """The clock for everything before the report."""
    return clock if report is None else clock.reserve(min(REPORT_SHARE * clock.remaining, REPORT_SECONDS))


@contextmanager
def _options_in_errors() -> Generator[None]:
    """Replace keywords of the library by options of this command in error messages."""
    try:
        yield
    except RangeError as error:  # another type, since this command has no --standardize
        raise InputError(of_coordinates(str(error))) from None
    except IsoPursuitError as error:
        raise type(error)(of_coordinates(str(error))) from None


def _files(
    found: Coordinates, answer: dict[str, Any], outputs: Outputs, clock: Clock
) -> dict[Path, Callable[[], str | bytes]]:
    """A function for the content of each requested file."""
    files: dict[Path, Callable[[], str | bytes]] = {}
    if outputs.output is not None:
        files[outputs.output] = partial(json_text, answer)
    if outputs.plumed is not None:
        files[outputs.plumed] = found.plumed_content
    if outputs.table is not None:
        files[outputs.table] = partial(found.table_content, outputs.table.suffix.lower())
    if outputs.report is not None:
        command = shlex.join(["isopursuit", *sys.argv[1:]])
        files[outputs.report] = lambda: found.report_content(command=command, time_limit=clock.remaining_limit)
    return files


def _show(found: Coordinates, notes: list[str]) -> None:
    """Print the picked torsions, then one line each about the loss, the worst frames, the dimension and the unit."""
    show_table(["picked", "best replacement (loss with it)"], found.rows, found.title)
    for line in found.summary:
        say(of_coordinates(line))
    show_notes(notes)
