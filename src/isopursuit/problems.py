"""The problem of `select`: validated data, and the numbers of columns to include and to exclude.

`MatrixProblem` has validated matrices in memory, and `SourceProblem` has streamed columns. Both offer the same steps:
pursue, keep the tied columns, find replacements of picked columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from isopursuit._types import Array, Indices, Label, Labels, Space, Unit
from isopursuit.clock import UNLIMITED, Clock
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
    too_few_columns,
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

MOST_TIED = 5000  # if more columns of a source are tied, the second stage loads only those with weight (guess)


@dataclass(frozen=True)
class MatrixProblem:
    """Validated matrices of one shape that share one selection of k columns.

    `many` says whether the caller passed a list or a stack. With space="leading" the points have coordinates in the
    leading k dimensions, and `vectors` has the caller's columns.
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
        clock: Clock = UNLIMITED,
    ) -> MatrixProblem:
        """Validate the caller's data, and convert labels to numbers."""
        points, many = as_points(X, labels, wide=k is None)
        check_count(k, points[0].values.shape)
        points = points if many else [points[0].with_time_for_rank(clock)]
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
        """Numbers of points, of columns to pick, and of columns."""
        return len(self.points), self.k, self.points[0].values.shape[1]

    @property
    def rows(self) -> int:
        """The number of rows of the compared columns."""
        return len(self.points[0].values)

    @property
    def labels(self) -> Labels | None:
        """The names of the columns."""
        return self.points[0].labels

    @property
    def searched(self) -> list[Matrix]:
        """The argument of a search over all columns."""
        return self.points

    def checked(self) -> MatrixProblem:
        """The problem itself; raises an error if no subset can be picked or all subsets are dependent."""
        first = as_array_pool(self.points, 1.0, self.include, self.exclude, k=self.k).matrix
        return replace(self, points=[first, *self.points[1:]])

    def pursue(self, c: float, normalization: Normalization, clock: Clock) -> Pursuit:
        """Isometry pursuit of the columns that can be picked; the others are replaced by zero columns.

        A column that is zero at a point cannot be picked, because every subset with it is dependent at that point.
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
        """The sorted numbers of columns given by number or label, without repetitions."""
        return np.array(as_indices(columns, self.points[0], what), dtype=np.intp)

    def taken(self, indices: Indices) -> tuple[Array, list[Array | None]]:
        """These columns (n, rows, m), and the rounding of each at each point, as in `Matrix`."""
        rounding = [None if one.rounding is None else one.rounding[indices] for one in self.points]
        return np.stack([one.values[:, indices] for one in self.points]), rounding

    def replacements(self, search: Search, c: float, clock: Clock) -> tuple[Array, ReplacementLists]:
        """The picked columns (n, rows, k), and replacements for each."""
        values, _ = self.taken(search.indices)
        points = [with_fewer_rows(one) for one in self.points]
        return values, replacements_in_memory(points, search, c, self.exclude, clock)

    def loss_of_vectors(self, search: Search, c: float) -> float | None:
        """The log-loss of the caller's columns; None unless they were compared in the leading space."""
        if self.vectors is None:
            return None
        losses = log_spectral_loss(spectrum(np.stack([one.values[:, search.indices] for one in self.vectors])), c)
        return float(search.aggregate.log_total(losses))


@dataclass(frozen=True)
class SourceProblem:
    """The columns of a source to pick k from; `projected` says whether onto the leading k dimensions."""

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
        clock: Clock = UNLIMITED,
    ) -> SourceProblem:
        """Validate the caller's data. A source has no labels, and the first pass checks its entries."""
        refuse_labels(labels)
        median = as_unit(unit) == "median"
        first = None if median else unit
        columns = (
            as_source(X, unit=first, leading=k) if space == "leading" else as_candidates(X, k, clock).in_unit(first)
        )
        rows, count = (X if isinstance(X, Columns) else columns.source).shape
        k = as_size(columns.shape[0] if k is None else k, rows, count)
        included, excluded = as_column_numbers(include, count, "include"), as_column_numbers(exclude, count, "exclude")
        columns = columns.in_unit("median", excluded) if median else columns
        projected = space == "leading" and k < rows
        return cls(columns, k, included, excluded, (leading_note(k, rows),) if projected else (), projected=projected)

    @property
    def size(self) -> tuple[int, int, int]:
        """Numbers of points, of columns to pick, and of columns."""
        return 1, self.k, self.columns.shape[1]

    @property
    def rows(self) -> int:
        """The number of rows of the compared columns."""
        return self.columns.shape[0]

    @property
    def searched(self) -> Columns:
        """The argument of a search over all columns."""
        return self.columns

    def checked(self) -> SourceProblem:
        """The problem itself; raises an error if a column is both included and excluded, or too many are excluded."""
        both = np.intersect1d(self.include, self.exclude)
        if len(both):
            raise ParameterError(f"Columns both included and excluded: {name_columns(both.tolist(), None)}.")
        P, left = self.columns.shape[1], self.columns.shape[1] - len(self.exclude)
        if left < self.k:
            raise too_few_columns(left, P, self.k)
        return self

    def pursue(self, c: float, normalization: Normalization, clock: Clock) -> Pursuit:
        """Isometry pursuit of the columns that can be picked, in passes over the source."""
        columns, limit = replace(self.columns, excluded=self.exclude), clock.remaining_limit
        return isometry_pursuit(columns, c, k=self.k, normalization=normalization, time_limit=limit)

    def kept(self, pursuit: Pursuit) -> tuple[Indices, list[Matrix]]:
        """The numbers of the tied columns and of those to include, and the matrix of these columns alone."""
        tied, notes = pursuit.tied, pursuit.notes
        if len(tied) > MOST_TIED:
            notes += (f"{len(tied)} columns are tied, too many to search; only those with weight were searched.",)
            tied = pursuit.support
        numbers = np.setdiff1d(np.union1d(tied, self.include), self.exclude)
        values, rounding = load(self.columns, numbers)
        return numbers, [Matrix(values, None, notes, rounding, validated=True, unit_length=self.columns.unit_length)]

    def numbers_of(self, columns: Iterable[Any], what: str) -> Indices:
        """Sorted column numbers, without repetitions."""
        return as_column_numbers(columns, self.size[2], what)

    def taken(self, indices: Indices) -> tuple[Array, list[Array | None]]:
        """These columns (1, rows, m), and the rounding of each, as in `Matrix`."""
        values, rounding = load(self.columns, indices)
        return values[None], [rounding]

    def replacements(self, search: Search, c: float, clock: Clock) -> tuple[Array, ReplacementLists]:
        """The picked columns (1, rows, k), and replacements for each."""
        return replacements_in_source(self.columns, search, c, self.exclude, clock)

    def loss_of_vectors(self, search: Search, c: float) -> float | None:
        """The log-loss of the columns as they are; None unless they were compared in the leading space."""
        if not self.projected:
            return None
        unprojected = replace(self.columns.transform, A=None).apply(self.columns.take(search.indices))
        return float(log_spectral_loss(spectrum(unprojected), c))


def leading_note(k: int, D: int) -> str:
    """A note that columns were compared in the leading space."""
    return f"lengths and losses are those in the leading {k} of {D} dimensions (space='leading')."
