"""The candidates of a search, wherever they are: in one array, at many points, or in a source that is read in passes.

The pool has the only index map of a search. Inside, columns are known by their *positions* in the pool, integers from 0
to count − 1; `to_caller` turns them into the caller's column numbers, once, for callbacks and the answer. A part of a
pool (`among`) is another pool with its own positions.

Some columns are *resident*: they are in memory as one array, the included ones first. The proof solves its relaxation
over the resident columns and loads more when passes find that they matter. A pool in memory supports passes too.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Any, NewType, Self

import numpy as np

from isopursuit._types import Array, Indices
from isopursuit.aggregate import SUM, Aggregate
from isopursuit.clock import Clock
from isopursuit.errors import RangeError, RankError
from isopursuit.loss.lengths import scale_notes
from isopursuit.loss.penalty import STATED, log_spectral_loss
from isopursuit.matrix import Matrix
from isopursuit.rank import direction_rank, rotated, side_by_side, spectrum
from isopursuit.results import Search
from isopursuit.search.incumbent import SearchOutcome
from isopursuit.search.objective import Objective
from isopursuit.search.passes import OutOfTimeError, fold_until
from isopursuit.search.settings import COPY_SPEED, RESIDENT
from isopursuit.sources.arrays import ArraySource
from isopursuit.sources.columns import Columns
from isopursuit.sources.tasks import Task, Transform
from isopursuit.sources.topk import TopK

CallerNumbers = NewType("CallerNumbers", Indices)  # column numbers of the caller's matrix; made by `Pool.to_caller`

LARGE = 2**22  # arrays of more entries are copied in blocks that stay in cache (kept)


class Pool(ABC):
    """The columns that a search may pick, at n points, and those that it must pick.

    Attributes
    ----------
    c : float
        Exponent of the loss.
    k, rows, count, points : int
        Numbers of columns to pick, of rows (at least k), of candidates, and of points.
    aggregate : Aggregate
        How the losses at the points become one number.
    include : (m,) array
        Positions of the columns that must be picked, sorted.
    excluded : array
        Positions that a pass skips, sorted: columns that must not be picked, and the included ones.
    """

    c: float
    k: int
    rows: int
    count: int
    points: int
    aggregate: Aggregate = SUM
    include: Indices
    excluded: Indices
    matrix: Matrix
    started: float
    _residents: tuple[Indices, Array] | None
    pass_seconds: tuple[float, ...] = ()

    @property
    def X(self) -> Array | None:
        """All columns, (points, rows, count), if they are in memory, else None."""
        return None

    @property
    @abstractmethod
    def columns(self) -> Columns:
        """What a pass reads."""

    @property
    def missing(self) -> int:
        """How many columns must be picked in addition to the included ones."""
        return self.k - len(self.include)

    @property
    def ideal(self) -> float:
        """The loss of orthonormal columns."""
        return self.aggregate.ideal(self.k, self.points)

    def with_aggregate(self, aggregate: Aggregate) -> Self:
        """The same pool with another aggregate."""
        self.aggregate = SUM if self.points == 1 else aggregate
        return self

    def log_loss(self, positions: Indices) -> float:
        """The logarithm of the loss of these columns, which are resident or in memory."""
        return float(self.aggregate.log_total(log_spectral_loss(spectrum(self.at_points(positions)), self.c)))

    @property
    def resident_positions(self) -> Indices:
        """Positions of the resident columns."""
        return self._resident()[0]

    @property
    def resident_columns(self) -> Array:
        """The resident columns."""
        return self._resident()[1]

    @abstractmethod
    def _resident(self) -> tuple[Indices, Array]:
        """Positions and values of the resident columns: initially the included ones and a sample of the others."""

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

    @abstractmethod
    def to_caller(self, positions: Indices) -> CallerNumbers:
        """The caller's numbers of these columns."""

    @abstractmethod
    def positions_of(self, numbers: Indices) -> Indices | None:
        """The positions of columns with these caller's numbers, which become resident; None if one is missing."""

    @abstractmethod
    def answer(self, found: SearchOutcome, objective: Objective, method: str) -> Search:
        """The result, in the caller's numbers."""

    def answer_for(
        self, subset: Array, numbers: CallerNumbers, found: SearchOutcome, objective: Objective, method: str
    ) -> Search:
        """The result for the columns `subset` (n, rows, k) with these numbers; the loss comes from singular values.

        If float64 cannot decide whether the subset is best, the status becomes "precision".
        """
        order = np.argsort(numbers)
        subset = subset[:, :, order]
        score = float(objective.total(subset[None])[0])
        if score == np.inf and objective.name == "isometry":
            self._refuse_dependent(subset)
            raise RangeError(
                "Every subset tried has a loss whose logarithm overflows float64. Use a smaller c, or unit='median': "
                f"the median length of the picked columns is {float(np.median(np.linalg.norm(subset, axis=1))):.4g}."
            )
        loss = objective.loss(score)
        status, notes = found.status, self.matrix.notes + found.notes
        bound = found.lower_bound
        if bound is None:
            bound = self.ideal if objective.name == "isometry" else self.points * objective.bound(self.k)
        if objective.least is not None and status in ("optimal", "gap", "precision"):
            least = float(objective.add(objective.least(subset)))
            # the rounding of the loss must be far smaller than the claimed gap
            known = STATED if status == "optimal" else max(STATED, 1e-3 * (1 - bound / loss))
            if status == "precision" or not score - least <= known:
                status, bound = "precision", min(bound, objective.loss(least))
                notes += (_precision_note(subset),)
        if objective.name == "isometry":
            notes += scale_notes(np.linalg.norm(subset, axis=1), score, self.c, self.matrix.unit_length, self.aggregate)
        log_loss = score if objective.name == "isometry" else float(np.log(loss)) if loss > 0 else float("nan")
        return Search(
            indices=numbers[order],
            loss=loss,
            log_loss=log_loss,
            lower_bound=loss if status == "optimal" else min(bound, loss),
            evaluations=found.evaluations,
            status=status,
            method=method,
            objective=objective.name,
            nodes=found.nodes,
            seconds=time.perf_counter() - self.started,
            labels=self.matrix.labels,
            notes=notes,
            unit_length=self.matrix.unit_length,
            aggregate=self.aggregate,
            point_log_losses=None if self.points == 1 else objective.score(subset),
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


class ArrayPool(Pool):
    """Columns in memory, (n, rows, count); one matrix is one point."""

    def __init__(
        self,
        matrix: Matrix,
        X: Array,
        caller: Indices,
        include: Indices,
        *,
        k: int,
        c: float,
        started: float,
        aggregate: Aggregate = SUM,
    ) -> None:
        self.matrix, self._X, self.caller, self.include, self.k, self.c = matrix, X, caller, include, k, c
        self.points, self.rows, self.count = X.shape
        self.aggregate = SUM if self.points == 1 else aggregate
        self.excluded = include
        self.started = started
        self._columns: Columns | None = None
        self._residents = None

    @property
    def X(self) -> Array:
        """All columns, (points, rows, count)."""
        return self._X

    @property
    def columns(self) -> Columns:
        """The array of the first point, as a source."""
        if self._columns is None:
            self._columns = Columns(ArraySource(self.X[0], self.X.dtype, None), Transform())
        return self._columns

    def _resident(self) -> tuple[Indices, Array]:
        if self._residents is not None:
            return self._residents
        free = np.setdiff1d(np.arange(self.count), self.include)
        if len(free) > RESIDENT:
            free = np.sort(np.random.default_rng(0).choice(free, RESIDENT, replace=False))
        positions = np.concatenate([self.include, free])
        self._residents = positions, np.ascontiguousarray(self.X[0][:, positions])
        return self._residents

    def distinct(self, clock: Clock) -> ArrayPool:
        """The pool without columns that are equal up to sign, in an order that depends only on their entries.

        A search with random numbers then gives the same answer for any order and signs of the caller's columns. Two
        equal columns are dependent, so no subset of finite loss has both: the included one is kept, or the first. If
        there is no time for a copy, the pool stays as it is.
        """
        if 3 * self.X.nbytes / COPY_SPEED > clock.remaining:
            return self
        n, D, P = self.X.shape
        signs = _signs(self.X)

        def entries(some: Indices) -> Array:
            return (self.X[:, :, some] * signs[:, None, some]).reshape(n * D, len(some))

        first = self.X[0, 0] * signs[0]
        order = np.argsort(first, kind="stable")
        alike = np.append(first[order[1:]] == first[order[:-1]], False)
        tied = np.flatnonzero(alike | np.append(False, alike[:-1]))
        order[tied] = order[tied][np.lexsort(entries(order[tied])[::-1])]
        # equal columns are now adjacent
        same = np.zeros(P, dtype=bool)
        pairs = np.flatnonzero(alike)
        same[pairs + 1] = (entries(order[pairs]) == entries(order[pairs + 1])).all(axis=0)
        optional = np.ones(P, dtype=bool)
        optional[self.include] = False
        order = order[np.lexsort((order, optional[order], np.cumsum(~same)))][~same]
        place = np.full(P, -1, dtype=np.intp)
        place[order] = np.arange(len(order))
        if self.X.size < LARGE:
            X = np.take(self.X, order, axis=2)
        else:
            # store each column contiguously, as the kernels read it: that saves them a copy of a large array
            rows = [side_by_side(one)[order] for one in self.X]
            X = np.swapaxes(rows[0][None] if len(rows) == 1 else np.stack(rows), 1, 2)
        X *= signs[:, None, order]
        return self._with(X, self.caller[order], np.sort(place[self.include])).reduced()

    def reduced(self) -> ArrayPool:
        """The same columns in a basis of their span if there are more rows than columns; inner products are kept."""
        return self._with(rotated(self.X), self.caller, self.include) if self.rows > self.count else self

    def among(self, positions: Indices) -> ArrayPool:
        """The pool of these columns (sorted, with the included ones); its i-th column is `positions[i]` of this one."""
        X = np.ascontiguousarray(self.X[:, :, positions])
        return self._with(X, self.caller[positions], np.searchsorted(positions, self.include)).reduced()

    def _with(self, X: Array, caller: Indices, include: Indices) -> ArrayPool:
        return ArrayPool(
            self.matrix,
            X,
            caller,
            include.astype(np.intp),
            k=self.k,
            c=self.c,
            started=self.started,
            aggregate=self.aggregate,
        )

    def to_caller(self, positions: Indices) -> CallerNumbers:
        """The caller's numbers of these columns, sorted."""
        return CallerNumbers(np.sort(self.caller[positions]))

    def positions_of(self, numbers: Indices) -> Indices | None:
        """The positions of columns with these caller's numbers; None if one is missing."""
        order = np.argsort(self.caller)
        found = order[np.searchsorted(self.caller, numbers, sorter=order).clip(max=self.count - 1)]
        return found if np.array_equal(self.caller[found], numbers) else None

    def answer(self, found: SearchOutcome, objective: Objective, method: str) -> Search:
        """The result, in the caller's numbers."""
        subset = found.subset
        return self.answer_for(self.at_points(subset), CallerNumbers(self.caller[subset]), found, objective, method)


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
