"""The rows or columns of a table that a command picks from."""

from __future__ import annotations

import csv
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isopursuit._core.options import beyond_dimensions
from isopursuit.cli.arguments import Limits, Rules, Table, as_unit_option
from isopursuit.cli.words import of_rows, on_command_line
from isopursuit.data import from_gram, read_table
from isopursuit.data._files import check_file, is_there, one_line
from isopursuit.data._matrix import Matrix, is_like_correlation, with_fewer_rows
from isopursuit.data._units import DEFAULT_UNITS
from isopursuit.errors import (
    FileError,
    LabelError,
    ParameterError,
    RangeError,
    RankError,
    ShapeError,
    did_you_mean,
)

if TYPE_CHECKING:
    from isopursuit import data
    from isopursuit._core.types import Label, Labels, Unit

READING = [one.name for one in fields(Table) if one.name != "file"]  # as in the header of a proof


@dataclass(frozen=True)
class Input:
    """A table, whether its rows (`samples`) or its columns are candidates, and how many of them to pick.

    `ruled`: rules decide how many if `k` is None.
    """

    options: Table
    samples: bool = True
    k: int | None = None
    ruled: bool = False
    rotated: bool = True  # whether long rows may be replaced by coordinates in their span

    @classmethod
    def of(cls, file: Path, reading: dict[str, Any]) -> Input:
        """The table that the header of a proof describes."""
        options = {name: reading[name] for name in READING}
        return cls(Table(file, **options), bool(reading["samples"]), k=1, rotated=False)

    @property
    def reading(self) -> dict[str, Any]:
        """How the table is read, for the header of a proof."""
        options = {name: getattr(self.options, name) for name in READING}
        return {"samples": self.samples, **options}

    @property
    def file(self) -> Path:
        """The file."""
        return self.options.file

    @property
    def kind(self) -> str:
        """The word for a candidate in messages."""
        return "row" if self.samples else "column"

    @property
    def unit(self) -> Unit:
        """The length that counts as 1."""
        given = self.options.unit
        return DEFAULT_UNITS["rows" if self.samples else "features"] if given is None else as_unit_option(given)

    def read(self) -> Candidates:
        """The rows or columns.

        With unit "each", columns are also centred, as with --standardize, so they are compared by correlation.
        """
        options = self.options
        if any(sign in str(self.file) for sign in "*?[") and not is_there(self.file):
            raise FileError(
                f"{self.file} names several files. In Python as_source({str(self.file)!r}) reads them in blocks."
            )
        raw = read_table(
            options.file,
            columns=options.use,
            label=options.label,
            drop_missing=options.drop_missing,
            header=options.header,
            drop_columns=options.drop_columns or (),
            decimal=options.decimal,
            thousands=options.thousands,
            missing=options.missing or (),
        )
        if options.correlation:
            return self._correlations(raw)
        if options.spearman and self.samples:
            raise ParameterError("--spearman compares columns. Pass --features.")
        if is_like_correlation(raw.values):
            note = "the table looks like a correlation matrix. If it is one, pass --correlation."
            raw = replace(raw, notes=(*raw.notes, note))
        centred = options.standardize or (self.unit == "each" and not self.samples)
        table = raw.ranked() if options.spearman else raw
        table = table.standardized() if centred else table
        self._check_size(*table.values.shape)
        matrix = table.samples() if self.samples else table.features()
        if self.samples and len(table.rows) < len(table.columns):
            note = (
                f"{len(table.rows)} candidate rows with {len(table.columns)} columns each; to pick columns pass "
                "--features."
            )
            matrix = replace(matrix, notes=(*matrix.notes, note))
            matrix = with_fewer_rows(matrix) if self.rotated else matrix
        places: Sequence[int] = table.numbers or range(len(table.rows))
        if not self.samples:  # constant columns may have been left out
            number = {name: j for j, name in enumerate(raw.columns)}
            places = [number[name] for name in table.columns]
        return Candidates(self, replace(matrix, notes=()), matrix.notes, places, raw)

    def _correlations(self, table: data.Table) -> Candidates:
        """The columns of a table of their inner products, in the order of its rows if these have the same names."""
        if self.options.standardize or self.options.spearman:
            raise ParameterError(
                "--correlation takes a file of correlations as it is. Leave --standardize and --spearman out."
            )
        if table.values.shape[0] != table.values.shape[1]:
            n, P = table.values.shape
            raise ShapeError(
                f"--correlation needs as many rows as columns; {self.file.name} has {n} rows of {P} numbers."
            )
        values = table.values
        if set(table.rows) == set(table.columns):
            values = values[[table.rows.index(name) for name in table.columns]]
        self._check_size(*values.shape)
        matrix = from_gram(values, table.columns)
        return Candidates(self, replace(matrix, notes=()), table.notes + matrix.notes, range(len(values)), table)

    def _check_size(self, n: int, P: int) -> None:
        """Raise an error, before any work, if more are to be picked than there are or than can be independent."""
        if self.k is None and self.ruled:
            return
        if self.k is None and not self.samples:
            raise ParameterError(f"Pass -k: how many of the {P} columns to pick.")
        turned = f" Did you mean {'--features' if self.samples else '--samples'}?"
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
        why = f" {beyond_dimensions(P)}" if self.samples and P < self.k <= n else ""
        raise ParameterError(f"-k {self.k} is out of range: from {shape} pick 1 to {min(n, P)}.{hint}{why}")


@dataclass(frozen=True)
class Candidates:
    """What the library gets (`X`), and how its answer is told in the words of the command line.

    `places` are the candidates' numbers in the file, from 0, and `table` is the table before standardization.
    """

    input: Input
    X: Matrix
    notes: tuple[str, ...]
    places: Sequence[int]
    table: data.Table

    @cached_property
    def names(self) -> dict[str, int]:
        """The number of each label."""
        return {str(label): i for i, label in enumerate(self.labels)}

    @property
    def labels(self) -> Labels:
        """The names of the candidates."""
        assert self.X.labels is not None
        return self.X.labels

    def label(self, i: int) -> Label:
        """The name of a candidate."""
        return self.labels[i]

    def chosen(self, limits: Limits) -> tuple[list[Label], list[Label]]:
        """The candidates that must and must not be picked."""
        included = self._numbers(limits.must_include or (), "--must-include")
        excluded = self._numbers(limits.must_exclude or (), "--must-exclude")
        return [self.label(i) for i in included], [self.label(i) for i in excluded]

    def rules(self, rules: Rules) -> dict[str, Any]:
        """The options of the library that say which candidates may be picked together."""
        if not rules.given:
            return {}
        groups: dict[Label, str] | None = None
        if rules.groups is not None and rules.group_by is not None:
            raise ParameterError("--groups and --group-by both name groups. Pass one of them.")
        if rules.groups is not None:
            groups = self._groups_of(rules.groups)
        elif rules.group_by is not None:
            cut = {self.label(i): name.partition(rules.group_by) for name, i in self.names.items()}
            groups = {label: before for label, (before, found, _) in cut.items() if found}
            if not groups:
                raise ParameterError(f"--group-by {rules.group_by!r}: no {self.input.kind} has this in its name.")
        pairs = [next(csv.reader([pair], skipinitialspace=True), []) for pair in rules.apart or ()]
        apart = [[self.label(i) for i in self._numbers(pair, "--apart")] for pair in pairs]
        return {
            "max_correlation": rules.max_correlation,
            "apart": apart or None,
            "groups": groups,
            "per_group": _per_group(rules.per_group),
        }

    def _groups_of(self, file: Path) -> dict[Label, str]:
        """The group of each candidate that a file names; its first line may be a header."""
        check_file(file)
        try:
            with file.open(newline="", encoding="utf-8-sig") as text:
                lines = [line for line in csv.reader(text) if any(line)]
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise FileError(f"{file} cannot be read: {one_line(error)}.") from None
        wrong = next((line for line in lines if len(line) != 2), None)
        if wrong is not None:
            raise FileError(
                f"{file} has a line with {len(wrong)} cells: {wrong}. Write a name and a group on each line."
            )
        if lines and lines[0][0] not in self.names:
            lines = lines[1:]
        return {self.label(self._numbers([name], f"{file}:")[0]): group for name, group in lines}

    def judged(self, names: Sequence[str]) -> list[Label]:
        """The candidates that --columns names."""
        found = self._numbers(names, "--columns")
        if len(found) < len(names):
            kind = self.input.kind
            raise ParameterError(f"--columns names {len(names)} {kind}s, but some of them twice. Name each once.")
        return [self.label(i) for i in found]

    def _numbers(self, given: Sequence[str], option: str) -> list[int]:
        """The numbers of candidates, given by label or by number; a number where labels are numbers is a label."""
        labelled = any(name.isdecimal() for name in self.names)
        place = {} if labelled else {str(place): i for i, place in enumerate(self.places)}
        found: set[int] = set()
        first = next(iter(self.names))
        for one in given:
            number = self.names.get(one, place.get(str(int(one))) if one.isdecimal() else None)
            if number is None:
                hint = did_you_mean(one, self.names)
                column = did_you_mean(one, self.table.columns) if self.input.samples and not hint else ""
                hint = hint or (f"{column} Pass --features for columns." if column else f"The first is {first!r}.")
                raise LabelError(f"{option} {one!r}: there is no such {self.input.kind} to pick from. {hint}")
            found.add(number)
        return sorted(found)

    def answer(self, result: dict[str, Any]) -> dict[str, Any]:
        """A result with the file, its notes before those of the library, and numbers as in the file."""
        notes = [on_command_line(note) for note in result["notes"]]
        result = self._numbered(result)
        if self.input.samples:
            notes = [of_rows(note) for note in notes]
            result |= {"unit": of_rows(result["unit"])} if "unit" in result else {}
        if "rules" in result:
            result["rules"] = list(map(on_command_line, result["rules"]))
        picks = "samples" if self.input.samples else "features"
        return {"file": str(self.input.file), "picks": picks, **result, "notes": [*self.notes, *notes]}

    def _numbered(self, result: dict[str, Any]) -> dict[str, Any]:
        moved = dict(result)
        for key in moved.keys() & {"indices", "tied"}:
            moved[key] = [self.places[i] for i in moved[key]]
        for key in moved.keys() & {"choices", "alternatives", "columns"}:
            moved[key] = [{**one, "index": self.places[one["index"]]} for one in moved[key]]
        for key in moved.keys() & {"pursuit", "best", "swap"}:
            moved[key] = moved[key] and self._numbered(moved[key])
        return moved

    @contextmanager
    def rows_in_errors(self) -> Generator[None]:
        """If candidates are rows, say so in the library's errors, which refer to the columns of X."""
        try:
            yield
        except (ParameterError, RangeError, RankError, ShapeError) as error:
            message = on_command_line(str(error))
            if not self.input.samples:
                raise type(error)(message) from None
            raise type(error)(f"{message} (Here the columns of X are the table's rows.)") from None


def _per_group(given: Sequence[str] | None) -> Any:
    """The limits of groups that --per-group describes: "2", "1:2", or "name=1:2" several times."""
    if not given:
        return None
    limits: dict[str, Any] = {}
    for one in given:
        name, _, numbers = one.rpartition("=")
        parts = numbers.split(":")
        if not all(part.isdecimal() for part in parts) or len(parts) > 2 or (not name and len(given) > 1):
            raise ParameterError(
                f"--per-group {one!r} must be one limit, such as 2 or 1:2, or name=1:2 for each group."
            )
        limits[name] = int(parts[0]) if len(parts) == 1 else (int(parts[0]), int(parts[1]))
    return limits.get("", limits)
