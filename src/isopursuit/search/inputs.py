"""Validate the input of a search once: arrays, data frames, many points, or a source become a pool."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from isopursuit._types import Indices, Label, Unit
from isopursuit.clock import Clock
from isopursuit.errors import ParameterError, RankError
from isopursuit.matrix import Matrix, as_indices, as_points, in_unit, name_columns, too_few_columns
from isopursuit.parameters import as_size, is_whole
from isopursuit.rank import direction_rank
from isopursuit.scale import as_unit
from isopursuit.search.pool import ArrayPool
from isopursuit.search.settings import SOURCE_ENTRIES
from isopursuit.search.source_pool import SourcePool
from isopursuit.sources.arrays import ArraySource
from isopursuit.sources.columns import Columns, as_candidates, is_source, refuse_labels


@dataclass(frozen=True)
class Given:
    """The input of a search, with lengths in the requested unit.

    After the conversion to a unit, X is a source or validated points with labels, and `exclude` has numbers.
    """

    X: Any
    exclude: Iterable[Any] | None
    labels: Sequence[Label] | None

    def in_unit(self, unit: Unit, k: int | None, *, in_memory: bool = False) -> Given:
        """The same in a unit: see `select`. With `in_memory` a memory map is loaded as an array."""
        if as_unit(unit) is None:
            return self
        if is_source(self.X) and not in_memory:
            refuse_labels(self.labels)
            columns = as_candidates(self.X, k)
            excluded = as_column_numbers(self.exclude, columns.shape[1], "exclude")
            return Given(columns.in_unit(unit, excluded), excluded, None)
        points = as_points(self.X, self.labels, wide=k is None)[0]
        numbers = as_indices(self.exclude, points[0], "exclude")
        return Given(in_unit(points, unit, numbers), numbers, None)


def as_pool(
    X: Any,
    c: float,
    include: Iterable[Any] | None,
    exclude: Iterable[Any] | None,
    labels: Sequence[Label] | None,
    clock: Clock,
    k: int | None = None,
) -> ArrayPool | SourcePool:
    """The pool of a matrix, of many points, or of a source.

    If k < D, a large matrix is searched in passes, like a source, so that only a few of its columns are copied.
    """
    if is_source(X) or searched_as_source(X, k, labels):
        return as_source_pool(X, c, include, exclude, labels, clock, k)
    pool = as_array_pool(X, c, include, exclude, labels, k)
    if pool.points > 1 or pool.k == pool.rows or pool.X.size < SOURCE_ENTRIES:
        return pool
    columns = Columns(ArraySource(pool.matrix.values, np.dtype(np.float64)))
    included, excluded = pool.caller[pool.include], np.setdiff1d(np.arange(columns.shape[1]), pool.caller)
    found = SourcePool(columns, included, excluded, k=pool.k, c=c, clock=clock)
    found.matrix = pool.matrix
    return found


def searched_as_source(X: Any, k: int | None, labels: object = None) -> bool:
    """Whether an array is searched in passes without a copy to float64: a large array without labels."""
    plain = type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "biuf" and labels is None
    return plain and X.size >= SOURCE_ENTRIES and is_whole(k) and 1 <= k < len(X)


def as_array_pool(
    X: Any,
    c: float = 1.0,
    include: Iterable[Any] | None = None,
    exclude: Iterable[Any] | None = None,
    labels: Sequence[Label] | None = None,
    k: int | None = None,
) -> ArrayPool:
    """Validate the input of a search in memory: enough columns of sufficient rank, and independent included columns.

    X is one matrix or many points, raw or already validated.
    """
    started = time.perf_counter()
    matrices = as_points(X, labels, wide=k is None)[0]
    matrix = matrices[0]
    included, excluded = as_indices(include, matrix, "include"), as_indices(exclude, matrix, "exclude")
    rows, P = matrix.values.shape
    k = as_size(k, rows, P)
    both = sorted(set(included) & set(excluded))
    if both:
        raise ParameterError(f"Columns both included and excluded: {name_columns(both, matrix.labels)}.")
    if len(included) > k:
        each = " (one for each row of X)" if k == rows else ""
        raise ParameterError(f"include names {len(included)} columns, but only {k} are picked{each}.")
    allowed = np.all([one.nonzero for one in matrices], axis=0)
    vanishing = int((np.any([one.nonzero for one in matrices], axis=0) & ~allowed).sum())
    if vanishing:
        note = f"columns that are zero at some of the {len(matrices)} points cannot be picked: {vanishing} of them."
        matrix = replace(matrix, notes=(*matrix.notes, note))
    allowed[excluded] = False
    unusable = [i for i in included if not allowed[i]]
    if unusable:
        raise ParameterError(f"include names zero columns: {name_columns(unusable, matrix.labels)}.")
    columns = np.flatnonzero(allowed)
    if len(columns) < k:
        raise too_few_columns(len(columns), P, k, "zero or excluded")
    values = matrix.values[None] if len(matrices) == 1 else np.stack([one.values for one in matrices])
    values = values if len(columns) == P else np.ascontiguousarray(values[:, :, columns])
    place = np.searchsorted(columns, included).astype(np.intp)
    pool = ArrayPool(matrix, values, columns, place, k=k, c=c, started=started)
    for i, one in enumerate(matrices):
        _check_rank(pool, i, one, columns)
    return pool


def as_source_pool(
    X: Any,
    c: float,
    include: Iterable[Any] | None,
    exclude: Iterable[Any] | None,
    labels: object,
    clock: Clock,
    k: int | None = None,
) -> SourcePool:
    """Validate the input of a search in passes."""
    refuse_labels(labels)
    columns = as_candidates(X, k, clock)
    rows, count = columns.shape
    k = as_size(k, rows, count)
    included, excluded = as_column_numbers(include, count, "include"), as_column_numbers(exclude, count, "exclude")
    both = np.intersect1d(included, excluded)
    if len(both):
        raise ParameterError(f"Columns both included and excluded: {name_columns(both.tolist(), None)}.")
    if len(included) > k:
        raise ParameterError(f"include names {len(included)} columns, but only {k} are picked.")
    return SourcePool(columns, included, excluded, k=k, c=c, clock=clock)


def as_column_numbers(columns: Iterable[Any] | None, P: int, what: str) -> Indices:
    """Sorted numbers of columns of a source, without repetitions."""
    return np.array(as_indices(columns, Matrix(np.empty((0, P))), what), dtype=np.intp)


def _check_rank(pool: ArrayPool, i: int, matrix: Matrix, columns: Indices) -> None:
    """Raise an error if the given columns of the i-th point have deficient rank, or if included ones are dependent."""
    values, where = pool.X[i], f" at point {i}" if pool.points > 1 else ""
    rounding = None if matrix.rounding is None else matrix.rounding[columns]
    known = matrix.full_rank_assumed or len(columns) == matrix.values.shape[1]
    rank = matrix.rank if known else direction_rank(values, rounding)
    if rank < pool.k:
        raise RankError(
            f"The columns that can be picked have rank {rank}{where}, so any {pool.k} of them are dependent and have "
            f"infinite loss. Pass k={rank} or less."
        )
    some = pool.include
    if len(some) and direction_rank(values[:, some], None if rounding is None else rounding[some]) < len(some):
        names = name_columns(pool.to_caller(some).tolist(), pool.matrix.labels)
        raise RankError(f"The included columns are linearly dependent{where}: {names}.")
