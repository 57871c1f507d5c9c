"""The problem of a selection, checked once: the columns, how many to pick, the loss, and what to include and exclude.

`select`, `select_pointwise`, the searches and `audit` make a `Problem` and hand it to `solve`. The columns are
matrices in memory at one or many points, or a source that is read in passes. Which of the two is a detail: a large
array is read in passes too if k < D, so that it is not copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from isopursuit._core.clock import UNLIMITED, Clock
from isopursuit._core.linalg import direction_rank, unit_columns
from isopursuit._core.options import as_exponent, as_size, is_whole
from isopursuit._core.text import name_columns
from isopursuit._core.types import AggregateOption, Array, Indices, Label, Labels, PerGroup, Unit
from isopursuit.data._matrix import (
    Matrix,
    as_indices,
    as_labels,
    as_points,
    check_count,
    frame_names,
    in_unit,
    too_few_columns,
    uncentred_notes,
)
from isopursuit.data._units import as_unit
from isopursuit.errors import ParameterError, RankError
from isopursuit.loss.aggregate import SUM, Aggregate, as_aggregate
from isopursuit.pursuit.programs import isometry_pursuit
from isopursuit.results import Pursuit, Search
from isopursuit.search.largest import largest
from isopursuit.search.pool import Pool
from isopursuit.search.replacements import ReplacementLists, Replacements, rounding_after
from isopursuit.search.rules import Rules, as_rules
from isopursuit.search.settings import RESIDENT, SOURCE_ENTRIES
from isopursuit.sources.arrays import ArraySource
from isopursuit.sources.columns import Columns, as_candidates, is_source
from isopursuit.sources.tasks import OutOfTimeError, fold_until

# what needs the columns in memory, as the first words of a message
RULES, BRUTE_FORCE = "A search with max_correlation=, apart= or groups=", "Brute-force search"


def _none() -> Indices:
    return np.zeros(0, dtype=np.intp)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Pick k columns of least loss; `Problem.of` makes one from the caller's data.

    Attributes
    ----------
    points : list of Matrix or None
        The columns in memory: matrices of one shape that share one selection.
    columns : Columns or None
        The columns that are read in passes.
    many : bool
        Whether the caller passed a list or a stack of matrices.
    include, exclude : arrays
        Numbers of the columns that must, or must not, be picked.
    possible : array or None
        In memory: the numbers of the columns that can be picked.
    caller : array or None
        The caller's numbers of the columns, if these are a part of the caller's.
    in_memory : bool
        Whether rules, or a search of all subsets, need the columns in memory.
    given : array or None
        The caller's matrix before it was divided by the `unit`, if it is in memory and there is one point.
    rules : Rules or None
        Which columns may be picked together.
    most : int or None
        If the caller gave no k and rules: an upper bound of the size of any allowed set.
    """

    k: int
    c: float
    aggregate: Aggregate = SUM
    points: list[Matrix] | None = None
    columns: Columns | None = None
    many: bool = False
    include: Indices = field(default_factory=_none)
    exclude: Indices = field(default_factory=_none)
    possible: Indices | None = None
    caller: Indices | None = None
    labels: Labels | None = None
    notes: tuple[str, ...] = ()
    in_memory: bool = False
    given: Array | None = None
    unit: Unit = None
    rules: Rules | None = None
    most: int | None = None

    @classmethod
    def of(
        cls,
        X: Any,
        k: int | None = None,
        c: float = 1.0,
        *,
        unit: Unit = None,
        aggregate: AggregateOption = "sum",
        include: Iterable[Any] | None = None,
        exclude: Iterable[Any] | None = None,
        labels: Sequence[Label] | None = None,
        max_correlation: float | None = None,
        apart: Iterable[Any] | None = None,
        groups: Any = None,
        per_group: PerGroup = None,
        clock: Clock = UNLIMITED,
        in_memory: str = "",
    ) -> Problem:
        """Check the caller's data and options.

        The options are those of `select`. `in_memory` says what needs the columns in memory, if anything does: then a
        memory map is loaded, and any other source is refused.
        """
        c, together = as_exponent(c), as_aggregate(aggregate)
        ruled = not (max_correlation is apart is groups is per_group is None)
        in_memory = in_memory or (RULES if ruled else "")
        if in_memory and is_source(X) and not isinstance(X, np.memmap):
            raise ParameterError(
                f"{in_memory} needs the columns in memory, and X is a source. Load the columns that matter, for "
                "example 20,000 of suitable length, and pass them as an array."
            )
        if not in_memory and (is_source(X) or _is_large(X, k)):
            columns = as_candidates(X, k, clock)
            rows, count = columns.shape
            k = as_size(k, (X if isinstance(X, Columns) else columns.source).shape[0], count)
            names = as_labels(labels, count)
            numbers = Matrix(np.empty((0, count)), names)
            included, excluded = (
                np.array(as_indices(some, numbers, what), dtype=np.intp)
                for some, what in ((include, "include"), (exclude, "exclude"))
            )
            columns = columns.in_unit(unit, excluded)
            problem = cls(
                k=k, c=c, columns=columns, include=included, exclude=excluded, labels=names, unit=as_unit(unit)
            )
            return replace(problem, notes=columns.notes).checked()
        points, many = as_points(X, labels, wide=k is None and not ruled)
        check_count(k, points[0].values.shape)
        if not any(one.nonzero.any() for one in points):
            raise RankError(f"Nothing can be picked: {' '.join(points[0].notes)} Check how X was read, or rescale it.")
        points = points if many else [points[0].with_time_for_rank(clock)]
        rows, rank = len(points[0].values), points[0].values.shape[1] if many else points[0].rank
        size = as_size(min(rows, rank) if ruled and k is None else k, rows, rank)
        included, excluded = as_indices(include, points[0], "include"), as_indices(exclude, points[0], "exclude")
        given = points[0].values if len(points) == 1 else None
        correlated = _is_frame(X) and (unit == "each" or rows > points[0].values.shape[1])  # rows are observations
        uncentred = uncentred_notes(points[0]) if correlated and not many else ()
        points = in_unit(points, unit, excluded)
        rules = as_rules(points, max_correlation, apart, groups, per_group) if ruled else None
        problem = cls(
            k=size,
            c=c,
            aggregate=SUM if len(points) == 1 else together,
            points=points,
            many=many,
            include=np.array(included, dtype=np.intp),
            exclude=np.array(excluded, dtype=np.intp),
            labels=points[0].labels,
            notes=points[0].notes + uncentred,
            in_memory=bool(in_memory),
            given=given,
            unit=as_unit(unit),
            rules=rules,
        )
        return problem.checked() if rules is None or k is not None else problem.of_largest(rules)

    @property
    def size(self) -> tuple[int, int, int]:
        """Numbers of points, of columns to pick, and of columns."""
        return (1, self.k, self._stream.shape[1]) if self.points is None else (
            len(self.points), self.k, self.points[0].values.shape[1],
        )  # fmt: skip

    @property
    def rows(self) -> int:
        """The number of rows of the compared columns."""
        return self._stream.shape[0] if self.points is None else len(self.points[0].values)

    @property
    def _stream(self) -> Columns:
        assert self.columns is not None
        return self.columns

    def checked(self) -> Problem:
        """The problem with its possible columns; raises an error if no subset can be picked or all are dependent.

        The columns of a source are checked by the pool's first pass.
        """
        k, P = self.k, self.size[2]
        both = np.intersect1d(self.include, self.exclude)
        if len(both):
            raise ParameterError(f"Columns both included and excluded: {self.names(both)}.")
        if len(self.include) > k:
            each = " (one for each row of X)" if k == self.rows else ""
            raise ParameterError(f"include names {len(self.include)} columns, but only {k} are picked{each}.")
        if self.points is None:
            if P - len(self.exclude) < k:
                raise too_few_columns(P - len(self.exclude), P, k)
            return self
        allowed = np.all([one.nonzero for one in self.points], axis=0)
        vanishing = int((np.any([one.nonzero for one in self.points], axis=0) & ~allowed).sum())
        note = f"columns that are zero at some of the {len(self.points)} points cannot be picked: {vanishing} of them."
        allowed[self.exclude] = False
        unusable = self.include[~allowed[self.include]]
        if len(unusable):
            raise ParameterError(f"include names zero columns: {self.names(unusable)}.")
        why = "zero or excluded"
        if self.rules is not None:
            self.rules.check(self.include, np.flatnonzero(allowed), k, self.labels)
            blocked = self.rules.blocked(self.include, k)
            blocked[self.include] = False
            allowed &= ~blocked
            why = f"zero, excluded or ruled out by {self.rules.words} and include"
        possible = np.flatnonzero(allowed)
        if len(possible) < k:
            raise too_few_columns(len(possible), P, k, why)
        for i, one in enumerate(self.points):
            self._check_rank(one, possible, f" at point {i}" if len(self.points) > 1 else "")
        notes = self.notes + ((note,) if vanishing and note not in self.notes else ())
        return replace(self, possible=possible, notes=notes)

    def _check_rank(self, matrix: Matrix, possible: Indices, where: str) -> None:
        """Raise an error if the possible columns at a point have deficient rank, or if included ones are dependent."""

        def rank_of(some: Indices) -> int:
            return direction_rank(matrix.values[:, some], None if matrix.rounding is None else matrix.rounding[some])

        known = matrix.full_rank_assumed or len(possible) == matrix.values.shape[1]
        rank = matrix.rank if known else rank_of(possible)
        if rank < self.k:
            raise RankError(
                f"The columns that can be picked have rank {rank}{where}, so any {self.k} of them are dependent and "
                f"have infinite loss. Pass k={rank} or less."
            )
        if len(self.include) and rank_of(self.include) < len(self.include):
            raise RankError(f"The included columns are linearly dependent{where}: {self.names(self.include)}.")

    def of_largest(self, rules: Rules) -> Problem:
        """The problem of a largest allowed set: k becomes its size, which is at most `self.k`, the rank of the columns.

        Rounding or dependent columns can make all allowed sets of that size dependent; then k is lower.
        """
        assert self.points is not None
        allowed = np.all([one.nonzero for one in self.points], axis=0)
        allowed[self.exclude] = False
        rules.check(self.include, np.flatnonzero(allowed), None, self.labels)
        have = np.bincount(rules.group[self.include], minlength=len(rules.most))
        allowed &= ~rules.near_of(self.include) & (have < rules.most)[rules.group]
        allowed[self.include] = False
        free = np.flatnonzero(allowed)
        free = free[np.lexsort(np.abs(self.points[0].values[:3, free]))]
        first, most = largest(rules, self.include, free, self.k)
        for k in range(len(first), 0, -1):
            try:
                found = replace(self, k=k, most=most).checked()
                found.pool(UNLIMITED).first_allowed()
            except RankError:  # all allowed sets of k columns are dependent
                most = min(most, k - 1) if k == most else most
            except ParameterError:  # none was found
                continue
            else:
                return found
        raise ParameterError(f"No columns can be picked: {rules.words} and include allow no set. Relax these options.")

    def names(self, numbers: Indices) -> str:
        """The first few of these columns by name, for messages."""
        return name_columns((numbers if self.caller is None else self.caller[numbers]).tolist(), self.labels)

    def numbers_of(self, columns: Iterable[Any] | None, what: str) -> Indices:
        """The sorted numbers of columns given by number or label, without repetitions."""
        return np.array(as_indices(columns, Matrix(np.empty((0, self.size[2])), self.labels), what), dtype=np.intp)

    def pool(self, clock: Clock) -> Pool:
        """The columns that a search may pick."""
        pool = Pool(
            k=self.k, c=self.c, aggregate=self.aggregate, include=self.include,
            excluded=self.exclude, clock=clock, labels=self.labels, notes=self.notes,
        )  # fmt: skip
        if self.points is None:
            return replace(pool, source=self._stream, unit_length=self._stream.unit_length).first_pass()
        first, possible = self.points[0], self.possible
        assert possible is not None
        pool = replace(pool, unit_length=first.unit_length)
        values, whole = first.values, len(possible) == first.values.shape[1]
        if self._in_passes:
            excluded = np.setdiff1d(np.arange(values.shape[1]), possible)
            columns = Columns(ArraySource(values, np.dtype(np.float64)))
            return replace(replace(pool, source=columns, excluded=excluded).first_pass(), notes=pool.notes)
        X = values[None] if len(self.points) == 1 else np.stack([one.values for one in self.points])
        X = X if whole else np.ascontiguousarray(X[:, :, possible])
        include = np.searchsorted(possible, self.include).astype(np.intp)
        caller = possible if self.caller is None else self.caller[possible]
        pool = replace(pool, X=X, caller=caller, include=include, excluded=include, most=self.most)
        return pool if self.rules is None else replace(pool, rules=self.rules.take(possible))

    @property
    def _in_passes(self) -> bool:
        """Whether a search reads one large matrix in passes, like a source, so that few of its columns are copied."""
        if self.points is None or len(self.points) > 1 or self.caller is not None or self.in_memory:
            return self.points is None
        return self.k < self.rows and self.points[0].values.size >= SOURCE_ENTRIES

    def pursue(self, clock: Clock) -> Pursuit:
        """Isometry pursuit of the columns that can be picked; the others are replaced by zero columns.

        A column that is zero at a point cannot be picked, because every subset with it is dependent at that point.
        """
        if self.points is None:
            X: Any = replace(self._stream, excluded=self.exclude)
        else:
            points = self.points
            if self.many or len(self.exclude):
                assert self.possible is not None
                possible = np.isin(np.arange(self.size[2]), self.possible)
                points = [replace(one, values=one.values * possible) for one in points]
            X = points if self.many else points[0]
        return isometry_pursuit(X, self.c, k=self.k, time_limit=clock.remaining_limit)

    def kept(self, pursuit: Pursuit) -> Problem:
        """The problem of the columns that the pursuit keeps (the tied set) and of those to include, in memory."""
        tied, notes = pursuit.tied, self.notes
        if self.points is None:
            notes = pursuit.notes
            if len(tied) > 5 * RESIDENT:
                notes += (f"{len(tied)} columns are tied, too many to search; only those with weight were searched.",)
                tied = pursuit.support
        numbers = np.setdiff1d(np.union1d(tied, self.include), self.exclude).astype(np.intp)
        if self.points is None:
            values, rounding = load(self._stream, numbers)
            points = [Matrix(values, rounding=rounding, validated=True, unit_length=self._stream.unit_length)]
        else:
            points = [replace(one, labels=None).take(numbers) for one in self.points]
        include = np.searchsorted(numbers, self.include).astype(np.intp)
        rules = None if self.rules is None else self.rules.take(numbers)
        return replace(
            self, points=points, columns=None, caller=numbers, include=include, exclude=_none(), notes=notes,
            rules=rules,
        ).checked()  # fmt: skip

    def squared_singular_values(self) -> Array:
        """Of the columns that are compared, each divided by its length, or of a sample of many; at one point."""
        if self.points is None:
            some = self._stream.sample(RESIDENT)
            values = self._stream.transform.apply(self._stream.take(some))
        else:
            values = self.points[0].values[:, :: max(self.size[2] // RESIDENT, 1)]
        values = unit_columns(values)
        squares = np.linalg.eigvalsh(values @ values.T if len(values) < values.shape[1] else values.T @ values)
        return np.asarray(squares, dtype=np.float64)

    def taken(self, numbers: Indices) -> tuple[Array, list[Array | None]]:
        """These columns (n, rows, m), and the rounding of each at each point, as in `Matrix`."""
        if self.points is None:
            values, rounding = load(self._stream, numbers)
            return values[None], [rounding]
        errors = [None if one.rounding is None else one.rounding[numbers] for one in self.points]
        return np.stack([one.values[:, numbers] for one in self.points]), errors

    def replacements(self, search: Search, clock: Clock) -> tuple[Array, ReplacementLists]:
        """The picked columns (n, rows, k), and for each one the columns that replace it best."""
        picked, errors = self.taken(search.indices)
        rounding = _together(errors)
        outside = np.union1d(search.indices, self.exclude)
        task = Replacements(
            picked, search.log_loss, self.c, outside, rounding, aggregate=search.aggregate, deadline=clock.deadline
        )
        if len(picked) == 1 and self.rules is None:  # an array is a source with one block
            columns = self.columns
            if self.points is not None:
                columns = Columns(ArraySource(self.points[0].values, np.dtype(np.float64)))
                task = replace(task, roundings=self.points[0].rounding)
            assert columns is not None
            try:
                return picked, fold_until(columns.source, replace(task, transform=columns.transform), clock)
            except OutOfTimeError:
                return picked, (None,) * self.k
        if clock.expired:
            return picked, (None,) * self.k
        assert self.possible is not None
        others = np.setdiff1d(self.possible, search.indices)
        values, errors = self.taken(others)
        if self.rules is not None:
            rest = [np.delete(search.indices, i) for i in range(self.k)]
            task = replace(task, blocked=np.stack([self.rules.blocked(some, self.k)[others] for some in rest]))
        return picked, task.among(values, others, _together(errors))


def _together(rounding: list[Array | None]) -> Array | None:
    """The rounding of columns at all points, (n, m), if it is known at each."""
    known = [one for one in rounding if one is not None]
    return np.stack(known) if len(known) == len(rounding) else None


def _is_frame(X: Any) -> bool:
    return not isinstance(X, Matrix) and frame_names(X) is not None


def _is_large(X: Any, k: int | None) -> bool:
    """Whether an array is searched in passes without a copy to float64."""
    plain = type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "biuf"
    return plain and X.size >= SOURCE_ENTRIES and is_whole(k) and 1 <= k < len(X)


def load(columns: Columns, numbers: Indices) -> tuple[Array, Array | None]:
    """These columns of a source as they are compared, (k, m), and the rounding of each, as in `Matrix`."""
    taken = columns.take(numbers)
    rounding = rounding_after(columns.transform, replace(columns.transform, A=None).apply(taken))
    return columns.transform.apply(taken), rounding
