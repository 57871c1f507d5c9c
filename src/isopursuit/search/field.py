"""The columns of a source as a search sees them: passes, a few columns at home, and the greedy search over all."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isopursuit.errors import ParameterError, RankError, ShapeError
from isopursuit.loss import as_objective
from isopursuit.matrix import (
    Matrix,
    as_numbers,
    as_time_limit,
    length_notes,
    name_columns,
    numerical_rank,
    spectrum,
    unit_columns,
)
from isopursuit.results import Search
from isopursuit.search._swap import best_column
from isopursuit.search.candidates import Candidates, Status
from isopursuit.search.passes import Addition, Best, FirstEqual, OutOfTimeError, alive, tied
from isopursuit.search.volume import large_volume
from isopursuit.sources.columns import Columns, Source, as_source, refuse_labels
from isopursuit.sources.tasks import Pile, Screen, Task

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

WORK = 2**28  # multiplications between two looks at the clock
HOME = 1024  # columns drawn by lot that a search begins with


@dataclass(frozen=True)
class _Until:
    """A task that looks at the clock between parts of a block, and raises OutOfTimeError."""

    task: Task
    deadline: float

    def __call__(self, block: Any, first: int) -> Any:
        """The task's answer for one block."""
        width = int(np.clip(WORK // block.shape[0] ** 3, 128, 2**14))
        answer: Any = None
        for start in range(0, block.shape[1], width):
            if time.perf_counter() > self.deadline:
                raise OutOfTimeError
            found = (self.task if answer is None else self.task.after(answer))(
                block[:, start : start + width], first + start
            )
            answer = found if answer is None else self.task.merge(answer, found)
        return answer

    def merge(self, one: Any, other: Any) -> Any:
        """As the task."""
        return self.task.merge(one, other)

    def after(self, answer: Any) -> _Until:
        """As the task."""
        return _Until(self.task.after(answer), self.deadline)


def fold_until(source: Source, task: Task, deadline: float) -> Any:
    """One pass, unless the deadline has passed. Where this process makes it, it ends then, with an OutOfTimeError."""
    if time.perf_counter() > deadline:
        raise OutOfTimeError
    if deadline == np.inf or not hasattr(source, "read"):
        return source.fold(task)
    if isinstance(task, Addition):
        task = replace(task, deadline=deadline)
    return source.fold(_Until(task, deadline))


class Field:
    """A source's columns, those that must be picked and those that must not, and what has come home.

    `home` is (D, m), the columns of numbers `numbers`: first those that must be picked. The first pass refuses entries
    that are not finite, counts zero columns, and draws the others by lot.
    """

    def __init__(
        self, columns: Columns, include: Indices, barred: Indices, time_limit: float | None = None, began: float = 0.0
    ) -> None:
        self.began = began or time.perf_counter()
        self.deadline = np.inf if time_limit is None else self.began + time_limit
        self.columns = columns
        self.k, self.count = columns.shape
        self.include = include
        self.barred = np.union1d(barred, include)  # those that must be picked are in already
        self.seconds: list[float] = []
        self.notes = columns.notes
        self.numbers, self.home = include, self.taken(include)
        self._open(np.setdiff1d(barred, include))

    @classmethod
    def over(
        cls,
        X: Any,
        include: Iterable[Any] | None,
        exclude: Iterable[Any] | None,
        labels: object = None,
        time_limit: float | None = None,
    ) -> Field:
        """The columns of a source, as a caller names those to include and to exclude."""
        refuse_labels(labels)
        began, time_limit = time.perf_counter(), as_time_limit(time_limit)
        columns = as_source(X)
        k, count = columns.shape
        must, barred = (
            as_column_numbers(some, count, what) for some, what in ((include, "include"), (exclude, "exclude"))
        )
        both = np.intersect1d(must, barred)
        if len(both):
            raise ParameterError(f"Columns both included and excluded: {name_columns(both.tolist(), None)}.")
        if len(must) > k:
            raise ParameterError(f"include names {len(must)} columns, but only {k} are picked.")
        return cls(columns, must, barred, time_limit, began)

    def _open(self, excluded: Indices) -> None:
        D = self.k
        everything = Screen(np.eye(D), None, self.columns.transform, HOME, band=1.0)
        began = time.perf_counter()
        found = self.columns.screen(everything)
        self.seconds.append(time.perf_counter() - began)
        self.notes += length_notes(found.zero, found.short)
        usable = self.count - found.zero - found.short
        if usable - len(excluded) < D and usable - self._usable(excluded) < D:
            raise ShapeError(
                f"Fewer than {D} of {self.count} columns can be picked (the others are zero or excluded), but {D} are "
                "needed. Exclude fewer columns, or pass a smaller k to `select`."
            )
        unit = unit_columns(self.home)
        if np.linalg.matrix_rank(unit) < len(self.include):
            raise RankError(f"The included columns are zero or dependent: {name_columns(self.include.tolist(), None)}.")
        self.join(found.drawn)

    def _usable(self, numbers: Indices, some: int = 4096) -> int:
        """How many of these columns are neither zero nor too short."""
        parts = (self.taken(numbers[first : first + some]) for first in range(0, len(numbers), some))
        nothing = np.zeros(0, dtype=np.intp)
        return sum(int(alive(np.einsum("dp,dp->p", part, part), 0, nothing).sum()) for part in parts)

    def taken(self, numbers: Indices) -> Array:
        """These columns after the transform, (D, m)."""
        if len(numbers) == 0:
            return np.zeros((self.k, 0))
        return self.columns.transform.apply(self.columns.take(numbers))

    def arrived(self, pile: Pile) -> tuple[Indices, Array]:
        """What came home: numbers and columns (D, m), ascending, without those barred."""
        numbers = np.concatenate([part[0] for part in pile.parts])
        values = np.concatenate([part[2] for part in pile.parts]).T.astype(np.float64)
        order = np.argsort(numbers)
        order = order[~np.isin(numbers[order], self.barred)]
        return numbers[order], self.columns.transform.apply(values[:, order])

    def join(self, pile: Pile) -> None:
        """Keep at home what came."""
        self.keep(*self.arrived(pile))

    def keep(self, numbers: Indices, values: Array) -> None:
        """Keep these columns at home."""
        new = ~np.isin(numbers, self.numbers)
        self.numbers = np.concatenate([self.numbers, numbers[new]])
        self.home = np.concatenate([self.home, values[:, new]], axis=1)

    def ask(self, task: Task, deadline: float = np.inf) -> Any:
        """One pass, unless it would end after the search's deadline, or an earlier one."""
        deadline = min(deadline, self.deadline)
        if time.perf_counter() + self.seconds[-1] > deadline:
            raise OutOfTimeError
        began = time.perf_counter()
        answer = fold_until(self.columns.source, task, deadline)
        self.seconds.append(time.perf_counter() - began)
        return answer

    @property
    def left(self) -> float | None:
        """Seconds before the deadline, None where there is none."""
        return None if self.deadline == np.inf else max(self.deadline - time.perf_counter(), 0.0)

    @property
    def elapsed(self) -> float:
        """Seconds since the search began."""
        return time.perf_counter() - self.began

    def place(self, numbers: Indices) -> NDArray[np.int32]:
        """Where these columns stand at home."""
        order = np.argsort(self.numbers)
        return order[np.searchsorted(self.numbers, numbers, sorter=order)].astype(np.int32)

    def answer(
        self,
        subset: Indices,
        c: float,
        method: str,
        status: Status,
        evaluations: int,
        *,
        notes: tuple[str, ...] = (),
        **known: Any,
    ) -> Search:
        """The result for columns at home, given by their numbers; of columns that are equal the first is named."""
        values = self.home[:, self.place(subset)]
        subset = self._first_equal(subset, values)
        passes = f"{len(self.seconds)} passes over {self.count:,} columns."
        matrix = Matrix(values, None, (*self.notes, *notes, passes))
        candidates = Candidates(matrix, values[None], subset, (), self.began)
        goal = as_objective("isometry", c)
        return candidates.answer(range(self.k), goal, method, status, evaluations, **known)

    def _first_equal(self, subset: Indices, values: Array) -> Indices:
        """The first columns that are equal to these up to sign, where there is time for a pass to find them."""
        free = ~np.isin(subset, self.include)
        try:
            asked = FirstEqual(values[:, free].T.copy(), self.columns.transform, self.barred)
            first: Indices = self.ask(asked) if free.any() else subset[free]
        except OutOfTimeError:
            return subset
        subset = subset.copy()
        subset[free] = np.where(first >= 0, first, subset[free])
        return subset


def greedy_field(field: Field, c: float, deadline: float = np.inf) -> tuple[Indices, int, bool]:
    """The paper's greedy search over all columns, one pass for each column it adds: numbers, columns seen, and whether
    there was time for all passes.

    The best of the columns in memory sets the limit for the pass; what is picked joins them. When time is over the
    columns that are still missing are those of large volume in memory.
    """
    subset, seen, finished = field.include, 0, True
    while len(subset) < field.k:
        others = field.home[:, field.place(subset)].T.copy()
        chosen = np.arange(len(others), dtype=np.int32)
        rest = ~np.isin(field.numbers, subset)
        _, value = best_column(np.ascontiguousarray(np.concatenate([others, field.home[:, rest].T])), chosen, c)
        limit = tied(value) if np.isfinite(value) else np.inf
        asked = Addition(others, c, field.columns.transform, np.union1d(field.barred, subset), limit)
        try:
            best: Best = field.ask(asked, deadline) if finished else field.columns.source.fold(asked)
        except OutOfTimeError:
            finished = False
            quick = large_volume(field.home[None], field.place(subset).tolist(), field.deadline)
            if numerical_rank(spectrum(unit_columns(field.home[:, quick])), field.k) == field.k:
                subset = field.numbers[quick]
            continue  # else with passes past the limit: without them there is no answer at all
        seen += best.columns
        if best.index < 0 or best.values is None:
            # every column leads to a loss beyond float64: of those at hand take the one farthest from the others' span
            number = _farthest(field, subset)
            if number < 0:
                break
        else:
            number = best.index
            field.keep(np.array([number]), best.values[:, None])
        subset = np.append(subset, number)
    rank = numerical_rank(spectrum(unit_columns(field.home[:, field.place(subset)])), field.k)
    if rank < field.k:
        raise RankError(
            f"The columns have {field.k} rows but those that can be picked have rank {rank}, so every subset has "
            f"infinite loss. Pass k={rank} to `select` for their {rank}-dimensional row space, or drop dependent rows."
        )
    return subset, seen, finished


def _farthest(field: Field, subset: Indices) -> int:
    """The resident column whose direction is farthest from the span of the subset; −1 where all lie in it."""
    unit = unit_columns(field.home)
    span, _ = np.linalg.qr(unit[:, field.place(subset)]) if len(subset) else (np.zeros((field.k, 0)), None)
    for _ in range(2):
        unit = unit - span @ (span.T @ unit)
    off = np.linalg.norm(unit, axis=0)
    off[np.isin(field.numbers, np.union1d(subset, field.include))] = 0.0
    best = int(off.argmax())
    return int(field.numbers[best]) if off[best] > field.k * np.finfo(np.float64).eps else -1


def greedy_source(
    X: Any,
    c: float,
    include: Iterable[Any] | None,
    exclude: Iterable[Any] | None,
    labels: object,
    time_limit: float | None,
) -> Search:
    """`greedy_search` on a source: the same columns as for the same array in memory, if time allows."""
    field = Field.over(X, include, exclude, labels, time_limit)
    subset, seen, finished = greedy_field(field, c)
    return field.answer(subset, c, "greedy", "heuristic" if finished else "time", seen)


def as_column_numbers(columns: Iterable[Any] | None, P: int, what: str) -> Indices:
    """The numbers of a source's columns, sorted and without repeats."""
    if columns is None:
        return np.zeros(0, dtype=np.intp)
    given = np.atleast_1d(np.asarray(columns if isinstance(columns, str | int) else list(columns)))
    return np.unique(as_numbers(given if given.size else np.zeros(0, dtype=np.intp), P, what))
