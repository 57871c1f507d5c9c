"""The input of a command: a table in memory or streamed files, and the labels of candidates."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isopursuit.cli.words import of_rows, on_command_line
from isopursuit.data import read_table
from isopursuit.data._files import is_there, one_line
from isopursuit.data._matrix import with_fewer_rows
from isopursuit.data._units import as_unit
from isopursuit.errors import (
    LabelError,
    ParameterError,
    RangeError,
    RankError,
    ShapeError,
    did_you_mean,
    optional,
    unknown_option,
)
from isopursuit.sources.columns import as_source, open_source

if TYPE_CHECKING:
    from isopursuit._core.types import Label, Unit
    from isopursuit.data import Table
    from isopursuit.data._matrix import Matrix
    from isopursuit.sources.columns import Columns

LARGE_FILE = 2**26  # bytes; larger .npy files are streamed (guess: reading them takes longer than a search)


def as_unit_option(text: str) -> Unit:
    """The unit that --unit describes."""
    if text in ("median", "each"):
        return text
    if text == "none":
        return None
    try:
        return as_unit(float(text))
    except ValueError:
        raise unknown_option("--unit", text, ("median", "each", "none"), "a positive length") from None


@dataclass(frozen=True)
class Input:
    """The file and how to read it; the fields are the options of the same names."""

    file: Path
    samples: bool = True
    k: int | None = None
    columns: str | None = None
    label: str | None = None
    standardize: bool = False
    unit_text: str | None = None
    drop_missing: bool = False
    header: bool | None = None
    scheduler: str | None = None
    drop_columns: str = ""

    @property
    def origin(self) -> dict[str, Any]:
        """The first entries of every answer: the file, and whether rows or columns are picked."""
        return {"file": str(self.file), "picks": "samples" if self.samples else "features"}

    @property
    def unit(self) -> Unit:
        """The length that counts as 1. Default: the median length of rows; for columns, the length of each column."""
        return as_unit_option(self.unit_text or ("median" if self.samples else "each"))

    def is_streamed(self) -> bool:
        """Whether files are streamed: the name is a pattern and not a file, or a cluster reads the files."""
        pattern = any(sign in str(self.file) for sign in "*?[")
        return self.scheduler is not None or (pattern and not is_there(self.file))

    def is_large(self) -> bool:
        """Whether to stream a file of rows: a large .npy file, and no option that needs the table in memory."""
        plain = self.samples and not (self.columns or self.label or self.drop_missing or self.drop_columns)
        large = self.file.suffix.lower() == ".npy" and self.header is None
        return plain and large and self.file.is_file() and self.file.stat().st_size >= LARGE_FILE

    def read(self) -> Candidates:
        """The file's rows or columns as candidates.

        With unit "each", columns are also centred, as with --standardize, so they are compared by correlation.
        """
        raw = read_table(
            self.file,
            columns=self.columns,
            label=self.label,
            drop_missing=self.drop_missing,
            header=self.header,
            drop_columns=self.drop_columns or (),
        )
        centred = self.standardize or (self.unit == "each" and not self.samples)
        table = raw.standardized() if centred else raw
        self._check_size(*table.values.shape)
        matrix = table.samples() if self.samples else table.features()
        if self.samples and len(table.rows) < len(table.columns):
            note = (
                f"{len(table.rows)} candidate rows with {len(table.columns)} columns each; to pick columns pass "
                "--features."
            )
            matrix = with_fewer_rows(replace(matrix, notes=(*matrix.notes, note)))
        places = table.numbers or range(len(table.rows)) if self.samples else range(len(table.columns))
        return Candidates(self, matrix, places, raw)

    def _check_size(self, n: int, P: int) -> None:
        """Raise an error, before any work, if more are to be picked than there are or than can be independent."""
        if self.k is None and not self.samples:
            raise ParameterError(f"Pass -k: how many of the {P} columns to pick.")
        turned = "" if self.is_streamed() else f" Did you mean {'--features' if self.samples else '--samples'}?"
        if self.k is None and n < P:
            raise ShapeError(
                f"The table has {n} rows and {P} numeric columns; without -k as many rows as columns are picked."
                f"{turned} Otherwise pass -k: how many rows to pick."
            )
        if self.k is None or 1 <= self.k <= min(n, P):
            return
        rows, columns = f"{n} rows", f"{P} numeric columns"
        shape = f"{rows} of {columns}" if self.samples else f"{columns} of {rows}"
        hint = turned if self.k <= max(n, P) and self.k > (n if self.samples else P) else ""
        raise ParameterError(f"-k {self.k} is out of range: from {shape} pick 1 to {min(n, P)}.{hint}")

    @contextmanager
    def stream(self, **also: object) -> Generator[Columns]:
        """The files' rows as a source of columns, read here or by the workers of a Dask cluster.

        Options that need the whole table in memory raise an error, as do the options in `also`.
        """
        self._refuse_whole_table_options(also)
        columns = open_source(self.file, "rows")
        self._check_size(*columns.shape[::-1])
        if self.scheduler is None:
            yield as_source(columns, standardize=self.standardize)
            return
        distributed = optional("distributed", "dask", "--scheduler")
        from isopursuit.sources.cluster import on_cluster

        try:
            client = distributed.Client(self.scheduler, timeout=10)
        except (OSError, ValueError) as error:
            raise ParameterError(f"No Dask scheduler answers at {self.scheduler}: {one_line(error)}.") from None
        with client:
            yield as_source(on_cluster(columns), standardize=self.standardize)

    def _refuse_whole_table_options(self, also: Mapping[str, object]) -> None:
        given = {
            "--features": not self.samples,
            "--columns": self.columns,
            "--drop-columns": self.drop_columns,
            "--label": self.label,
            "--drop-missing": self.drop_missing,
            "--header": self.header is not None,
            **{f"--{name}": value for name, value in also.items()},
        }
        for option, value in given.items():
            if value:
                raise ParameterError(
                    f"{option} is not available for streamed files. Pass a single file without --scheduler."
                )


def row_numbers(given: Sequence[str], option: str) -> list[int]:
    """The numbers of rows of streamed files, which have no labels."""
    wrong = next((one for one in given if not one.isdecimal()), None)
    if wrong is not None:
        raise ParameterError(f"{option} {wrong}: rows of streamed files have no labels. Pass their numbers, from 0.")
    return [int(one) for one in given]


@dataclass(frozen=True)
class Candidates:
    """The rows or columns of a table in memory. `places` are their numbers in the file, from 0, and `table` is the
    table before standardization.
    """

    input: Input
    matrix: Matrix
    places: Sequence[int]
    table: Table

    @property
    def kind(self) -> str:
        """The word for a candidate in messages."""
        return "row" if self.input.samples else "column"

    @property
    def names(self) -> set[str]:
        """The labels as text."""
        return set(map(str, self.matrix.labels or ()))

    def labels(self, include: Sequence[str], exclude: Sequence[str]) -> tuple[list[Label], list[Label]]:
        """The labels of candidates that must and must not be picked; unnamed candidates are given by number."""
        labels, kind = self.matrix.labels or (), self.kind
        included, excluded = self._numbers(include, "--must-include"), self._numbers(exclude, "--must-exclude")
        k = len(self.matrix.values) if self.input.k is None else self.input.k
        both = [str(labels[i]) for i in included if i in excluded]
        if both:
            raise ParameterError(
                f"--must-include and --must-exclude both name {', '.join(both)}. Remove one of the two."
            )
        if len(included) > k:
            raise ParameterError(f"--must-include names {len(included)} {kind}s, but only {k} are picked.")
        if len(labels) - len(excluded) < k:
            left = f"{len(labels) - len(excluded)} of {len(labels)} {kind}s"
            raise ParameterError(f"--must-exclude leaves {left}, but -k is {k}. Pass a smaller -k.")
        zero = next((str(labels[i]) for i in included if not self.matrix.nonzero[i]), None)
        if zero is not None:
            raise ParameterError(f"--must-include names a {kind} that is zero and cannot be picked: {zero}.")
        return [labels[i] for i in included], [labels[i] for i in excluded]

    def judged(self, names: Sequence[str]) -> list[Label]:
        """The labels of the candidates that --columns names, by label or by number in the file."""
        labels = self.matrix.labels or ()
        known, places = self.names, {str(place): i for i, place in enumerate(self.places)}
        names = [name if name in known or name not in places else str(labels[places[name]]) for name in names]
        numbers = self._numbers(names, "--columns")
        if len(numbers) < len(names):
            raise ParameterError(f"--columns names {len(names)} {self.kind}s, but some of them twice. Name each once.")
        return [labels[i] for i in numbers]

    def _numbers(self, given: Sequence[str], option: str) -> list[int]:
        numbers = {str(label): i for i, label in enumerate(self.matrix.labels or ())}
        found: set[int] = set()
        for one in given:
            name = f"{self.kind} {int(one)}" if one not in numbers and one.isdecimal() else one
            if name not in numbers:
                hint = did_you_mean(one, numbers) or f"The first is {next(iter(numbers))!r}."
                raise LabelError(f"{option} {one!r}: there is no such {self.kind} to pick from. {hint}")
            found.add(numbers[name])
        return sorted(found)

    @contextmanager
    def rows_in_errors(self) -> Generator[None]:
        """If candidates are rows, say so in the library's errors, which refer to the columns of X."""
        try:
            yield
        except (ParameterError, RangeError, RankError, ShapeError) as error:
            if not self.input.samples:
                raise
            raise type(error)(f"{error} (Here the columns of X are the table's rows.)") from None

    def answer(self, result: dict[str, Any]) -> dict[str, Any]:
        """A result with its origin, the file's notes before its own, and numbers as in the file."""
        notes = [on_command_line(note) for note in result["notes"]]
        if self.input.samples:
            notes = [of_rows(note) for note in notes]
            result = {**result, "unit": of_rows(result["unit"])}
        return {**self.input.origin, **self._numbered(result), "notes": [*self.matrix.notes, *notes]}

    def _numbered(self, result: dict[str, Any]) -> dict[str, Any]:
        """The same result with every candidate's number replaced by its number in the file."""
        moved = dict(result)
        for key in moved.keys() & {"indices", "tied"}:
            moved[key] = [self.places[i] for i in moved[key]]
        for key in moved.keys() & {"choices", "alternatives", "columns"}:
            moved[key] = [{**one, "index": self.places[one["index"]]} for one in moved[key]]
        for key in moved.keys() & {"pursuit", "best", "swap"}:
            moved[key] = moved[key] and self._numbered(moved[key])
        return moved
