"""What `select` was given, with the columns to include and to exclude as numbers.

`MatrixProblem` holds validated matrices in memory, `SourceProblem` columns that are streamed. Both offer the same
steps: pursue, keep the tied columns, replace each picked column.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from isopursuit._types import Array, Indices, Label, Labels, Space, Unit
from isopursuit.clock import Clock
from isopursuit.errors import ParameterError
from isopursuit.explain import load, replacements_in_memory, replacements_in_source
from isopursuit.loss.penalty import log_spectral_loss
from isopursuit.matrix import (
    ColumnNumbers,
    Matrix,
    as_indices,
    as_points,
    check_count,
    in_row_space,
    in_unit,
    name_columns,
    with_fewer_rows,
)
from isopursuit.normalize import Normalization
from isopursuit.parameters import as_size
from isopursuit.pursuit.programs import isometry_pursuit
from isopursuit.rank import spectrum
from isopursuit.results import Pursuit, Search
from isopursuit.scale import as_unit
from isopursuit.search.inputs import as_array_pool, as_column_numbers
from isopursuit.search.replacements import ReplacementLists
from isopursuit.sources.columns import Columns, as_candidates, as_source, refuse_labels

MOST_TIED = 5000  # columns of a source that the second stage loads; beyond, those with weight alone (guess)


@dataclass(frozen=True)
class MatrixProblem:
    """Validated matrices of one shape that share one selection of k columns.

    `many` says whether the caller passed a list or a stack of them. With space="leading" the points are coordinates in
    the leading k dimensions, and `vectors` the columns that the caller passed.
    """

    points: list[Matrix]
    k: int
    many: bool = False
    include: ColumnNumbers = field(default_factory=ColumnNumbers)
    exclude: ColumnNumbers = field(default_factory=ColumnNumbers)
    notes: tuple[str, ...] = ()
    vectors: list[Matrix] | None = None

    @classmethod
    def of(
        cls,
        X: Any,
        k: int | None,
        space: Space,
        include: Iterable[Any] | None,
        exclude: Iterable[Any] | None,
        labels: Sequence[Label] | None,
        unit: Unit = None,
    ) -> MatrixProblem:
        """Validate what the caller passed; labels become numbers here."""
        points, many = as_points(X, labels, wide=k is None)
        check_count(k, points[0].values.shape)
        D = len(points[0].values)
        k = as_size(k, D, min(one.rank for one in points))
        included, excluded = as_indices(include, points[0], "include"), as_indices(exclude, points[0], "exclude")
        if k == D or space == "vectors":
            return cls(in_unit(points, unit, excluded), k, many, included, excluded)
        before = None if unit == "median" else unit
        points = in_unit(points, before, excluded)
        projected = in_unit(
            [in_row_space(one, k, excluded) for one in points], unit if before is None else None, excluded
        )
        vectors = [one.in_unit(projected[0].unit_length) if before is None else one for one in points]
        return cls(projected, k, many, included, excluded, (leading_note(k, D),), vectors)

    @property
    def size(self) -> tuple[int, int, int]:
        """Points, how many columns to pick, and columns."""
        return len(self.points), self.k, self.points[0].values.shape[1]

    @property
    def rows(self) -> int:
        """Rows of the columns as they are compared."""
        return len(self.points[0].values)

    @property
    def labels(self) -> Labels | None:
        """The columns' names."""
        return self.points[0].labels

    @property
    def searched(self) -> list[Matrix]:
        """What a search over all columns takes."""
        return self.points

    def checked(self) -> MatrixProblem:
        """The problem itself. Raises an error where no subset can be picked, or all are dependent."""
        first = as_array_pool(self.points, 1.0, self.include, self.exclude, k=self.k).matrix
        return replace(self, points=[first, *self.points[1:]])

    def pursue(self, c: float, normalization: Normalization, clock: Clock) -> Pursuit:
        """Isometry pursuit of the columns that may be picked; the others take part as zero columns.

        A column that is zero at one point may not be picked, because every subset with it is dependent at that point.
        """
        points = self.points
        if self.many or self.exclude:
            possible = np.all([one.nonzero for one in points], axis=0)
            possible[self.exclude] = False
            points = [replace(one, values=one.values * possible) for one in points]
        X = points if self.many else points[0]
        return isometry_pursuit(X, c, k=self.k, normalization=normalization, time_limit=clock.remaining_limit)

    def kept(self, pursuit: Pursuit) -> tuple[Indices, list[Matrix]]:
        """The numbers of the tied columns and of those to include, and the matrices of these columns alone."""
        numbers = np.setdiff1d(np.union1d(pursuit.tied, self.include), self.exclude).astype(np.intp)
        return numbers, [one.take(numbers) for one in self.points]

    def numbers_of(self, columns: Iterable[Any], what: str) -> Indices:
        """The numbers of columns that are numbers or labels, sorted and without repeats."""
        return np.array(as_indices(columns, self.points[0], what), dtype=np.intp)

    def taken(self, indices: Indices) -> tuple[Array, list[Array | None]]:
        """These columns (n, rows, m), and the rounding of each at each point, as in `Matrix`."""
        rounding = [None if one.rounding is None else one.rounding[indices] for one in self.points]
        return np.stack([one.values[:, indices] for one in self.points]), rounding

    def replacements(self, search: Search, c: float, clock: Clock) -> tuple[Array, ReplacementLists]:
        """The picked columns (n, rows, k), and what could replace each."""
        values, _ = self.taken(search.indices)
        points = [with_fewer_rows(one) for one in self.points]
        return values, replacements_in_memory(points, search, c, self.exclude, clock)

    def loss_of_vectors(self, search: Search, c: float) -> float | None:
        """The log-loss of the caller's own columns, where they were compared in the leading space."""
        if self.vectors is None:
            return None
        losses = log_spectral_loss(spectrum(np.stack([one.values[:, search.indices] for one in self.vectors])), c)
        return float(search.aggregate.log_total(losses))


@dataclass(frozen=True)
class SourceProblem:
    """The columns of a source, of which k are to be picked; `projected` on the leading k dimensions or not."""

    columns: Columns
    k: int
    include: Indices
    exclude: Indices
    notes: tuple[str, ...] = ()
    many: bool = False
    labels: Labels | None = None
    projected: bool = False

    @classmethod
    def of(
        cls,
        X: Any,
        k: int | None,
        space: Space,
        include: Iterable[Any] | None,
        exclude: Iterable[Any] | None,
        labels: Sequence[Label] | None,
        unit: Unit = None,
    ) -> SourceProblem:
        """Validate what the caller passed; a source has no labels, and its entries are checked by the first pass."""
        refuse_labels(labels)
        median = as_unit(unit) == "median"
        first = None if median else unit
        columns = as_source(X, unit=first, leading=k) if space == "leading" else as_candidates(X, k).in_unit(first)
        rows, count = (X if isinstance(X, Columns) else columns.source).shape
        k = as_size(columns.shape[0] if k is None else k, rows, count)
        included, excluded = as_column_numbers(include, count, "include"), as_column_numbers(exclude, count, "exclude")
        columns = columns.in_unit("median", excluded) if median else columns
        projected = space == "leading" and k < rows
        return cls(columns, k, included, excluded, (leading_note(k, rows),) if projected else (), projected=projected)

    @property
    def size(self) -> tuple[int, int, int]:
        """Points, how many columns to pick, and columns."""
        return 1, self.k, self.columns.shape[1]

    @property
    def rows(self) -> int:
        """Rows of the columns as they are compared."""
        return self.columns.shape[0]

    @property
    def searched(self) -> Columns:
        """What a search over all columns takes."""
        return self.columns

    def checked(self) -> SourceProblem:
        """The problem itself. Raises an error where columns are both included and excluded."""
        both = np.intersect1d(self.include, self.exclude)
        if len(both):
            raise ParameterError(f"Columns both included and excluded: {name_columns(both.tolist(), None)}.")
        return self

    def pursue(self, c: float, normalization: Normalization, clock: Clock) -> Pursuit:
        """Isometry pursuit of all columns, in passes over the source."""
        limit = clock.remaining_limit
        return isometry_pursuit(self.columns, c, k=self.k, normalization=normalization, time_limit=limit)

    def kept(self, pursuit: Pursuit) -> tuple[Indices, list[Matrix]]:
        """The numbers of the tied columns and of those to include, and the matrix of these columns alone."""
        tied, notes = pursuit.tied, pursuit.notes
        if len(tied) > MOST_TIED:
            notes += (f"{len(tied)} columns are tied, too many to search: those with weight were.",)
            tied = pursuit.support
        both = np.intersect1d(self.exclude, tied)
        if len(both):
            raise ParameterError(
                f"exclude names columns that the pursuit keeps: {name_columns(both.tolist(), None)}. Over a source it "
                "cannot leave them out; the methods 'exact', 'exchange' and 'greedy' can."
            )
        numbers = np.union1d(tied, self.include)
        values, rounding = load(self.columns, numbers)
        return numbers, [Matrix(values, None, notes, rounding, validated=True, unit_length=self.columns.unit_length)]

    def numbers_of(self, columns: Iterable[Any], what: str) -> Indices:
        """Column numbers, sorted and without repeats."""
        return as_column_numbers(columns, self.size[2], what)

    def taken(self, indices: Indices) -> tuple[Array, list[Array | None]]:
        """These columns (1, rows, m), and the rounding of each, as in `Matrix`."""
        values, rounding = load(self.columns, indices)
        return values[None], [rounding]

    def replacements(self, search: Search, c: float, clock: Clock) -> tuple[Array, ReplacementLists]:
        """The picked columns (1, rows, k), and what could replace each."""
        return replacements_in_source(self.columns, search, c, self.exclude, clock)

    def loss_of_vectors(self, search: Search, c: float) -> float | None:
        """The log-loss of the columns themselves, where they were compared in the leading space."""
        if not self.projected:
            return None
        unprojected = replace(self.columns.transform, A=None).apply(self.columns.take(search.indices))
        return float(log_spectral_loss(spectrum(unprojected), c))


def leading_note(k: int, D: int) -> str:
    """What lengths and losses are of where columns were compared in the leading space."""
    return f"lengths and losses are those in the leading {k} of {D} dimensions (space='leading')."
