"""The candidates of a search: columns in memory at one or many points, or columns of a source that is read in passes.

The pool has the only index map of a search. Inside, columns are known by their *positions* in the pool, integers from 0
to count − 1; `to_caller` turns them into the caller's column numbers, once, for callbacks and the answer. A part of a
pool is another pool with its own positions.

Some columns are *resident*: they are in memory as one array, the included ones first. The proof solves its relaxation
over the resident columns and loads more when passes find that they matter. A pool in memory supports passes too.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from isopursuit._core.clock import Clock
from isopursuit._core.linalg import direction_rank, rotated, spectrum, unit_columns
from isopursuit._core.text import name_columns
from isopursuit._core.types import Array, Indices, Labels, Mask
from isopursuit.data._matrix import length_notes, too_few_columns
from isopursuit.data._units import AS_GIVEN, UnitLength
from isopursuit.errors import ParameterError, RangeError, RankError
from isopursuit.loss.aggregate import SUM, Aggregate
from isopursuit.loss.notes import scale_notes
from isopursuit.loss.penalty import STATED, least_log_spectral_loss, log_spectral_loss, to_loss
from isopursuit.results import Search
from isopursuit.search.incumbent import Callback, SearchOutcome
from isopursuit.search.largest import first_allowed, largest
from isopursuit.search.rules import Rules
from isopursuit.search.scan import Lengths
from isopursuit.search.settings import RESIDENT
from isopursuit.sources.arrays import ArraySource
from isopursuit.sources.columns import Columns
from isopursuit.sources.tasks import OutOfTimeError, Task, TopK, Transform, fold_until


@dataclass(eq=False, kw_only=True)
class Pool:
    """The columns that a search may pick, at n points, and those that it must pick.

    Attributes
    ----------
    k : int
        The number of columns to pick.
    c : float
        Exponent of the loss.
    include : (m,) array
        Positions of the columns that must be picked, sorted.
    excluded : array
        Positions that a pass skips, sorted: columns that must not be picked, and the included ones.
    X : (n, rows, count) array or None
        All columns, if they are in memory.
    source : Columns or None
        What a pass reads, if the columns are not in memory.
    caller : (count,) array or None
        The caller's numbers of the columns; None if positions are the caller's numbers.
    pass_seconds : tuple of float
        The duration of each pass.
    rules : Rules or None
        Which columns may be picked together; then the columns are in memory.
    most : int or None
        If k is the size of a largest set that the rules allow: an upper bound of it.
    """

    k: int
    c: float
    include: Indices
    excluded: Indices
    clock: Clock
    X: Array | None = None
    source: Columns | None = None
    caller: Indices | None = None
    aggregate: Aggregate = SUM
    labels: Labels | None = None
    notes: tuple[str, ...] = ()
    unit_length: UnitLength = AS_GIVEN
    pass_seconds: tuple[float, ...] = ()
    rules: Rules | None = None
    most: int | None = None
    _residents: tuple[Indices, Array] | None = None

    @property
    def points(self) -> int:
        """The number of points."""
        return 1 if self.X is None else len(self.X)

    @property
    def rows(self) -> int:
        """The number of rows, at least k."""
        return self.columns.shape[0] if self.X is None else self.X.shape[1]

    @property
    def count(self) -> int:
        """The number of candidates."""
        return self.columns.shape[1] if self.X is None else self.X.shape[2]

    @property
    def missing(self) -> int:
        """How many columns must be picked in addition to the included ones."""
        return self.k - len(self.include)

    @property
    def ideal(self) -> float:
        """The loss of orthonormal columns."""
        return self.aggregate.ideal(self.k, self.points)

    @property
    def columns(self) -> Columns:
        """What a pass reads: the source, or the array of the first point."""
        if self.source is None:
            assert self.X is not None
            self.source = Columns(ArraySource(self.X[0], self.X.dtype, None), Transform())
        return self.source

    def log_losses(self, subsets: Array) -> Array:
        """The logarithms of the losses of subsets (..., n, D, k)."""
        return self.aggregate.log_total(log_spectral_loss(spectrum(subsets), self.c))

    def least_log_losses(self, subsets: Array) -> Array:
        """The least possible log-losses of subsets (..., n, D, k), given rounding."""
        return self.aggregate.log_total(least_log_spectral_loss(spectrum(subsets), self.c))

    def log_loss(self, positions: Indices) -> float:
        """The logarithm of the loss of these columns, which are resident or in memory."""
        return float(self.log_losses(self.at_points(positions)))

    def resolves(self, positions: Indices) -> bool:
        """Whether the log-loss of these columns is precise enough in float64 for a proof. If not, bounds near that loss
        are meaningless too.
        """
        log_loss = self.log_loss(positions)
        return log_loss < np.inf and log_loss - float(self.least_log_losses(self.at_points(positions))) <= STATED

    def blocked(self, subset: Indices) -> Mask:
        """Which columns cannot be added to a subset: its own, and those that the rules exclude."""
        blocked = np.zeros(self.count, dtype=bool) if self.rules is None else self.rules.blocked(subset, self.k)
        blocked[subset] = True
        return blocked

    def is_stuck(self, subset: Indices) -> bool:
        """Whether the rules leave too few columns to complete a subset."""
        return self.rules is not None and int((~self.blocked(subset)).sum()) < self.k - len(subset)

    def first_allowed(self) -> Indices:
        """A set that the rules allow, of finite loss if possible; raises an error if there is none."""
        rules, X, k = self.rules, self.X, self.k
        assert rules is not None
        assert X is not None

        def finite(subset: Indices) -> bool:
            return self.log_loss(subset) < np.inf

        found, tried = first_allowed(X, rules, self.include, k, finite)
        if found is not None:
            return found
        free = np.setdiff1d(np.flatnonzero(~rules.blocked(self.include, k)), self.include)
        found, most = largest(rules, self.include, free, k)
        if most < k:
            raise ParameterError(
                f"At most {most} columns can be picked with {rules.words}, but k={k}. Pass k={most} or less, or relax "
                "these options."
            )
        if tried:
            raise RankError(
                f"Every {k} columns that {rules.words} allows are dependent and have infinite loss. Pass a smaller k, "
                "or relax these options."
            )
        if len(found) < k or not finite(found):
            raise ParameterError(
                f"No {k} columns were found that {rules.words} allows, nor was it proved that there are none. Pass a "
                "smaller k, or relax these options."
            )
        return found

    # ------------------------------------------------------------------------------------------ resident columns
    def _resident(self) -> tuple[Indices, Array]:
        """Positions and values of the resident columns: initially the included ones and a sample of the others."""
        if self._residents is None:
            assert self.X is not None
            free = np.setdiff1d(np.arange(self.count), self.include)
            if len(free) > RESIDENT:
                free = np.sort(np.random.default_rng(0).choice(free, RESIDENT, replace=False))
            positions = np.concatenate([self.include, free])
            self._residents = positions, np.ascontiguousarray(self.X[0][:, positions])
        return self._residents

    @property
    def resident_positions(self) -> Indices:
        """Positions of the resident columns."""
        return self._resident()[0]

    @property
    def resident_columns(self) -> Array:
        """The resident columns."""
        return self._resident()[1]

    def load(self, positions: Indices, values: Array) -> None:
        """Make these columns (rows, m) resident as well."""
        new = ~np.isin(positions, self.resident_positions)
        self._residents = (
            np.concatenate([self.resident_positions, positions[new]]),
            np.concatenate([self.resident_columns, values[:, new]], axis=1),
        )

    def place(self, positions: Indices) -> Any:
        """Indices of these columns among the resident ones, as int32 for the kernels."""
        order = np.argsort(self.resident_positions)
        return order[np.searchsorted(self.resident_positions, positions, sorter=order)].astype(np.int32)

    def at_hand(self, positions: Indices) -> Array:
        """These columns, (rows, m), which are resident or in memory."""
        return self.resident_columns[:, self.place(positions)] if self.X is None else self.X[0][:, positions]

    def at_points(self, positions: Indices) -> Array:
        """These columns at all points, (points, rows, m)."""
        return self.at_hand(positions)[None] if self.X is None else self.X[:, :, positions]

    # ------------------------------------------------------------------------------------------ passes
    def ask(self, task: Task, clock: Clock) -> Any:
        """The task's answer for all columns, from one pass; None if time runs out before its end."""
        if self.pass_seconds and clock.remaining < self.pass_seconds[-1]:
            return None
        began = time.perf_counter()
        try:
            answer = fold_until(self.columns.source, task, clock)
        except OutOfTimeError:
            return None
        self.pass_seconds += (time.perf_counter() - began,)
        return answer

    def columns_of(self, found: TopK) -> tuple[Indices, Array]:
        """The columns that a pass returned: positions, ascending, and columns (rows, m), without the excluded ones."""
        positions = np.concatenate([part[0] for part in found.parts])
        values = np.concatenate([part[2] for part in found.parts]).T.astype(np.float64)
        order = np.argsort(positions)
        order = order[~np.isin(positions[order], self.excluded)]
        return positions[order], self.columns.transform.apply(values[:, order])

    def read(self, positions: Indices) -> Array:
        """These columns of a source after the transform, (rows, m)."""
        if len(positions) == 0:
            return np.zeros((self.rows, 0))
        return self.columns.transform.apply(self.columns.take(positions))

    def first_pass(self) -> Pool:
        """The pool of a source after its first pass.

        That raises an error for entries that are not finite, counts zero columns, and draws the resident columns at
        random.
        """
        k, self.excluded = self.k, np.union1d(self.excluded, self.include)
        self._residents = self.include, self.read(self.include)
        # enough columns to complete a subset when the time is over
        everything = Lengths(np.eye(1), None, self.columns.transform, max(RESIDENT, 2 * k))
        began = time.perf_counter()
        found = self.columns.screen(everything)
        self.pass_seconds = (time.perf_counter() - began,)
        self.notes += length_notes(found.zero, found.short)
        if self.count - found.zero - found.short < k:
            raise too_few_columns(self.count - found.zero - found.short, self.count, k)
        zero = self.include[~self.resident_columns.any(axis=0)].tolist()
        if zero:
            raise ParameterError(f"include names zero columns: {name_columns(zero, self.labels)}.")
        if np.linalg.matrix_rank(unit_columns(self.resident_columns)) < len(self.include):
            names = name_columns(self.include.tolist(), self.labels)
            raise RankError(f"The included columns are linearly dependent: {names}.")
        self.load(*self.columns_of(found.largest))
        return self

    # ------------------------------------------------------------------------------------------ parts of a pool
    def distinct(self) -> Pool:
        """The pool without columns that are equal up to sign, in an order that depends only on their entries.

        A search with random numbers then gives the same answer for any order and signs of the caller's columns. Two
        equal columns are dependent, so no subset of finite loss has both: the included one is kept, or the first. The
        pool of a source stays as it is.
        """
        if self.X is None:
            return self
        given, (n, D, P) = self.X, self.X.shape
        signs = _signs(given)

        def entries(some: Indices) -> Array:
            return (given[:, :, some] * signs[:, None, some]).reshape(n * D, len(some))

        first = given[0, 0] * signs[0]
        order = np.argsort(first, kind="stable")
        alike = np.append(first[order[1:]] == first[order[:-1]], False)
        tied = np.flatnonzero(alike | np.append(False, alike[:-1]))
        order[tied] = order[tied][np.lexsort(entries(order[tied])[::-1])]
        # equal columns are now adjacent
        same = np.zeros(P, dtype=bool)
        pairs = np.flatnonzero(alike & (self.rules is None))  # with rules, equal columns can be in different groups
        same[pairs + 1] = (entries(order[pairs]) == entries(order[pairs + 1])).all(axis=0)
        optional = np.ones(P, dtype=bool)
        optional[self.include] = False
        order = order[np.lexsort((order, optional[order], np.cumsum(~same)))][~same]
        place = np.full(P, -1, dtype=np.intp)
        place[order] = np.arange(len(order))
        X = np.take(given, order, axis=2)
        X *= signs[:, None, order]
        return self._with(X, order, np.sort(place[self.include])).reduced()

    def reduced(self) -> Pool:
        """The same columns in a basis of their span if there are more rows than columns; inner products are kept."""
        if self.X is None or self.rows <= self.count:
            return self
        return self._with(rotated(self.X), np.arange(self.count), self.include)

    def _with(self, X: Array, positions: Indices, include: Indices) -> Pool:
        caller = positions if self.caller is None else self.caller[positions]
        include = include.astype(np.intp)
        pool = replace(self, X=X, caller=caller, include=include, excluded=include, source=None, _residents=None)
        return pool if self.rules is None else replace(pool, rules=self.rules.take(positions))

    # ------------------------------------------------------------------------------------------ the caller's numbers
    def to_caller(self, positions: Indices) -> Indices:
        """The caller's numbers of these columns, sorted."""
        return np.sort(positions if self.caller is None else self.caller[positions])

    def translated(self, callback: Callback | None) -> Callback | None:
        """A callback that receives positions, and passes the caller's numbers on."""
        if callback is None:
            return None
        return lambda now: callback(replace(now, indices=self.to_caller(now.indices)))

    def positions_of(self, numbers: Indices) -> Indices | None:
        """The positions of columns with these caller's numbers, which become resident; None if one is missing."""
        if self.caller is None:
            if self.X is None:
                self.load(numbers, self.read(numbers))
            return numbers
        order = np.argsort(self.caller)
        found = order[np.searchsorted(self.caller, numbers, sorter=order).clip(max=self.count - 1)]
        return found if np.array_equal(self.caller[found], numbers) else None

    def answer(self, found: SearchOutcome, method: str) -> Search:
        """The result, in the caller's numbers; the loss comes from singular values.

        If float64 cannot decide whether the subset is best, the status becomes "precision".
        """
        subset, numbers = self.at_points(found.subset), found.subset
        notes = self.notes + found.notes
        if self.X is None:
            notes += (f"{len(self.pass_seconds)} passes over {self.count:,} columns.",)
        numbers = numbers if self.caller is None else self.caller[numbers]
        order = np.argsort(numbers)
        subset = subset[:, :, order]
        log_loss = float(self.log_losses(subset))
        if log_loss == np.inf:
            self._refuse_dependent(subset)
            raise RangeError(
                "Every subset tried has a loss whose logarithm overflows float64. Use a smaller c, or unit='median': "
                f"the median length of the picked columns is {float(np.median(np.linalg.norm(subset, axis=1))):.4g}."
            )
        loss, status = to_loss(log_loss), found.status
        bound = self.ideal if found.lower_bound is None else found.lower_bound
        if status in ("optimal", "gap", "precision"):
            least = float(self.least_log_losses(subset))
            # the rounding of the loss must be far smaller than the claimed gap
            known = STATED if status == "optimal" else max(STATED, 1e-3 * (1 - bound / loss))
            if status == "precision" or not log_loss - least <= known:
                status, bound = "precision", min(bound, to_loss(least))
                notes += (_precision_note(subset),)
        notes += scale_notes(np.linalg.norm(subset, axis=1), log_loss, self.c, self.unit_length, self.aggregate)
        return Search(
            indices=numbers[order],
            loss=loss,
            log_loss=log_loss,
            lower_bound=loss if status == "optimal" else min(bound, loss),
            evaluations=found.evaluations,
            status=status,
            method=method,
            nodes=found.nodes,
            seconds=self.clock.seconds,
            labels=self.labels,
            notes=notes,
            unit_length=self.unit_length,
            aggregate=self.aggregate,
            point_log_losses=None if self.points == 1 else log_spectral_loss(spectrum(subset), self.c),
            rules=() if self.rules is None else self.rules.held(found.subset[order], subset),
            most=self.most,
        )

    def _refuse_dependent(self, subset: Array) -> None:
        """Raise an error if the subset is dependent at some point: then so is every subset that was tried."""
        for i, point in enumerate(subset):
            if direction_rank(point) < self.k:
                where = f" at some of the {len(subset)} points (one of them is point {i})" if len(subset) > 1 else ""
                raise RankError(
                    f"Every subset of {self.k} columns that was tried is linearly dependent{where}, so its loss is "
                    "infinite. Give the search more time, include or exclude fewer columns, pass a smaller k to "
                    "`select`, or leave out points."
                )


def _precision_note(subset: Array) -> str:
    s = spectrum(subset)
    with np.errstate(divide="ignore"):
        condition = float((s[:, 0] / s[:, -1]).max())
    return (
        f"not proved: the picked columns have condition number {condition:.2g}, and float64 cannot compare the losses "
        "of such subsets. Drop columns that nearly repeat others, or dimensions in which all columns nearly vanish."
    )


def _signs(X: Array) -> Array:
    """The sign of the first nonzero entry of each column at each point, (n, P)."""
    signs = np.sign(X[:, 0])
    point, column = np.nonzero(signs == 0)
    rest = X[point, :, column]
    signs[point, column] = np.sign(np.take_along_axis(rest, (rest != 0).argmax(axis=1)[:, None], axis=1)[:, 0])
    return signs
