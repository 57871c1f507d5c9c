"""Passes: what a source must have, a task that is computed on every block of columns, and the merge of its answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.clock import Clock
from isopursuit._core.linalg import namespace, on_host
from isopursuit._core.types import Array, Indices
from isopursuit.data._matrix import LARGEST
from isopursuit.errors import NonFiniteError, RangeError
from isopursuit.loss.normalize import log_lengths

SHOWN = 5  # entries that are not finite in a message (chosen)
# entries of columns that are transformed at once (measured by benchmarks.constants: a quarter takes as long, four times
# as many 1.2 times as long)
PIECE = 2**18
DEVICE_PIECE = 2**26  # the same on a device (derived: half a GB of float64)
LEAST_PIECE = 256  # columns at once, for any number of rows (derived: the width of _screen.pyx)
WORK = 2**28  # multiplications between two checks of the clock (derived: a few hundredths of a second)


class Task(Protocol):
    """A computation on every block of columns, and a way to merge two answers."""

    def __call__(self, block: Any, first: int) -> Any:
        """The answer for the columns `block` (D₀, m), the first of which is number `first`."""
        ...

    def merge(self, one: Any, other: Any) -> Any:
        """The answer for both."""
        ...

    def after(self, answer: Any) -> Task:
        """The task for the next block, given the answer so far."""
        ...


class Source(Protocol):
    """Columns in any storage. `dtype` is the precision of the screening, float32 or float64."""

    @property
    def shape(self) -> tuple[int, int]:
        """(D₀, P): rows and columns."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision of the blocks."""
        ...

    def fold(self, task: Task) -> Any:
        """The task's answer for all columns, in one pass."""
        ...

    def take(self, indices: Indices) -> Array:
        """These columns, (D₀, m), float64."""
        ...


class SameTask:
    """A task that earlier answers do not change."""

    def after(self, answer: Any) -> Self:
        """The same task."""
        return self


class OutOfTimeError(Exception):
    """A pass would end after the time limit. Threads that read blocks raise it; `Pool.ask` turns it into a value."""


@dataclass(frozen=True)
class Transform:
    """z = A u for a column x, and s = the normalized length over the length of z times e^(−log_scale).

    u = scale · (a∘x − b), or u = scale · (a∘x − b) / ‖a∘x − b‖ if `each` column has length 1. `angle` is the sine of
    the angle by which rounding may turn the space that A projects onto.
    """

    a: Array | None = None
    b: Array | None = None
    A: Array | None = None
    c: float | None = None  # None: lengths are not normalized
    log_scale: float = 0.0
    angle: float = 0.0
    each: bool = False
    scale: float = 1.0

    @property
    def plain(self) -> bool:
        """Whether z = x."""
        return self.a is None and self.A is None and not self.each and self.scale == 1

    def apply(self, values: Any) -> Any:
        """A u, (D, m), for columns (D₀, m) of an array or a tensor."""
        xp = namespace(values)
        if self.a is not None and self.b is not None:
            values = values * on_same_device(self.a[:, None], values) - on_same_device(self.b[:, None], values)
        if self.each:
            # summed row by row, so that equal columns remain equal to the last digit in any memory layout
            values = np.ascontiguousarray(values) if xp is np else values
            squares = (values * values).sum(0)
            # columns too short to be squared keep their length
            values = values * (self.scale / xp.sqrt(xp.where(squares > LARGEST**-2, squares, xp.ones_like(squares))))
        elif self.scale != 1:
            values = values * self.scale
        return values if self.A is None else on_same_device(self.A, values) @ values

    def factors(self, lengths: Any) -> tuple[Any, float]:
        """S for every length (0 for zero columns), and the largest logarithm of a normalized length."""
        xp = namespace(lengths)
        alive = lengths > 1 / LARGEST
        if self.c is None:
            longest = float(lengths.max()) if len(lengths) else 0.0
            return alive * xp.ones_like(lengths), float(np.log(longest)) if longest > 0 else -np.inf
        logs = log_lengths(lengths, self.c)
        with np.errstate(divide="ignore", invalid="ignore"):
            s = xp.exp(logs - self.log_scale) / lengths
        return xp.where(alive, s, 0.0), float(logs.max()) if len(logs) else -np.inf

    def columns(self, values: Array) -> Array:
        """The columns of the convex program, (D, m), for columns (D₀, m)."""
        z = self.apply(values)
        return z * self.factors(np.sqrt(np.einsum("dp,dp->p", z, z)))[0]


def on_same_device(values: NDArray[Any], z: Any) -> Any:
    """The values on the device of the columns z, or in memory if they are there."""
    if isinstance(z, np.ndarray):
        return values
    return namespace(z).from_numpy(np.ascontiguousarray(values)).to(z.device)


def doubled(values: Any) -> Any:
    """An array or a tensor in float64, on its device."""
    return np.asarray(values, dtype=np.float64) if isinstance(values, np.ndarray) else values.double()


def pieces(block: Any, transform: Transform, *, exact: bool = True) -> Iterator[tuple[int, Any]]:
    """The block's columns after the transform, a few at a time and on their device: (first, (D, m)).

    They are float64 if `exact`; otherwise they keep the precision of the block and the transform.
    """
    host = isinstance(block, np.ndarray)
    width = max((PIECE if host else DEVICE_PIECE) // block.shape[0], LEAST_PIECE)
    for start in range(0, block.shape[1], width):
        some = block[:, start : start + width]
        yield start, transform.apply(doubled(some) if exact or not host else some)


def usable(squares: Array, first: int, excluded: Indices) -> NDArray[np.bool_]:
    """Which columns are not zero and not in `excluded` (sorted numbers)."""
    some = np.asarray(squares > LARGEST**-2)
    a, b = np.searchsorted(excluded, [first, first + len(squares)])
    some[excluded[a:b] - first] = False
    return some


@dataclass(frozen=True)
class TopK:
    """The columns with the largest keys, at most `room` of them after `trimmed`.

    `parts` are (numbers, keys, values) of shapes (m,), (m,) and (m, D₀). `left` is the largest key of a dropped column.
    """

    room: int
    parts: tuple[tuple[Indices, Array, NDArray[Any]], ...]
    left: float = -np.inf

    @classmethod
    def pick(cls, block: Any, first: int, which: Any, keys: Any, room: int, bar: float) -> TopK:
        """Copy to the host those columns `which` of a block (None: all) that have the largest keys above the bar."""
        above = true(keys > bar)
        left = bar if len(above) < len(keys) else -np.inf
        if len(above) > room:
            kept, left = largest(keys[above], room)
            above = above[kept]
        some = above if which is None else which[above]
        return cls(room, ((first + on_host(some), on_host(keys[above]), copied_rows(block, some)),), left)

    @property
    def count(self) -> int:
        """The number of columns."""
        return sum(len(keys) for _, keys, _ in self.parts)

    @property
    def bar(self) -> float:
        """A lower bound on the keys that can still be among the largest, if it is cheap to compute."""
        full = len(self.parts) == 1 and self.count >= self.room
        return float(self.parts[0][1].min(initial=np.inf)) if full else -np.inf

    def joined(self, other: TopK) -> TopK:
        """Both together; columns are dropped once there are more than twice `room`."""
        both = TopK(self.room, self.parts + other.parts, max(self.left, other.left))
        return both.trimmed() if both.count > 2 * self.room else both

    def trimmed(self) -> TopK:
        """One part with at most `room` columns."""
        if len(self.parts) == 1 and self.count <= self.room:
            return self
        indices = np.concatenate([part[0] for part in self.parts])
        keys = np.concatenate([part[1] for part in self.parts])
        kept, left = (np.arange(len(keys)), -np.inf) if len(keys) <= self.room else largest(keys, self.room)
        values = np.empty((len(kept), self.parts[0][2].shape[1]), dtype=self.parts[0][2].dtype)
        starts = np.cumsum([0, *(len(part[1]) for part in self.parts)])
        places = np.searchsorted(kept, starts)
        for (_, _, part), start, a, b in zip(self.parts, starts, places, places[1:], strict=False):
            values[a:b] = part[kept[a:b] - start]
        return TopK(self.room, ((indices[kept], keys[kept], values),), max(self.left, left))


def copied_rows(block: Any, columns: Any) -> NDArray[Any]:
    """Some columns of an array or a tensor, (m, D₀), on the host."""
    return np.ascontiguousarray(on_host(block[:, columns].T))


def true(mask: Any) -> Any:
    """The indices at which a mask (array or tensor) is True."""
    return np.flatnonzero(mask) if isinstance(mask, np.ndarray) else mask.nonzero()[:, 0]


def largest(keys: Any, room: int) -> tuple[Any, float]:
    """The ascending indices of the `room` largest keys, and the largest of the other keys."""
    if isinstance(keys, np.ndarray):
        order = np.argpartition(-keys, room)
        return np.sort(order[:room]), float(keys[order[room]])
    values, order = keys.topk(room + 1)
    return order[:room].sort().values, float(values[room])


@dataclass(frozen=True)
class BadEntries:
    """The first entries that are not finite or too large, as (row, column, value), and how many columns have such."""

    entries: tuple[tuple[int, int, float], ...] = ()
    columns: int = 0

    @classmethod
    def of(cls, values: NDArray[Any], numbers: Indices) -> BadEntries:
        """Those of the first of the columns with these numbers, all of which have one."""
        where = np.argwhere(~np.isfinite(values))[:SHOWN]
        if len(where) == 0:
            where = np.argwhere(np.abs(values) == np.abs(values).max())[:1]
        entries = tuple((int(i), int(numbers[j]), float(values[i, j])) for i, j in where)
        return cls(entries, len(numbers))

    @classmethod
    def among(cls, block: Any, first: int, columns: Indices | None = None) -> BadEntries:
        """Those of a block, in the given columns or in those with entries that are not finite."""
        if columns is None:
            sizes = np.abs(on_host(block)).max(axis=0)
            columns = np.flatnonzero(~np.isfinite(sizes) | (sizes == sizes.max()))
        return cls.of(copied_rows(block, on_same_device(columns[:SHOWN], block)).T, first + columns)

    def __add__(self, other: BadEntries) -> BadEntries:
        return BadEntries((self.entries + other.entries)[:SHOWN], self.columns + other.columns)

    def refuse(self) -> None:
        """Raise an error if there are any."""
        if self.columns == 0:
            return
        some = ", ".join(f"({i}, {j}): {value}" for i, j, value in self.entries)
        if all(np.isfinite(value) for _, _, value in self.entries):
            raise RangeError(
                f"Columns such as {some.partition(',')[0]}… have lengths above {LARGEST:g}, whose squares overflow "
                "float64. Rescale the data."
            )
        raise NonFiniteError(
            f"There are NaN or infinite entries in {self.columns} columns; the first, as (row, column): {some}. "
            "Drop those columns, or fill in the entries."
        )


@dataclass(frozen=True)
class _WithClock:
    """A task that checks the clock between parts of a block and raises `OutOfTimeError`."""

    task: Task
    clock: Clock

    def __call__(self, block: Any, first: int) -> Any:
        """The task's answer for one block."""
        work = getattr(self.task, "work", block.shape[0] ** 3)  # multiplications for a column
        width = max(WORK // work, 128)
        answer: Any = None
        for start in range(0, block.shape[1], width):
            if self.clock.expired:
                raise OutOfTimeError
            found = (self.task if answer is None else self.task.after(answer))(
                block[:, start : start + width], first + start
            )
            answer = found if answer is None else self.task.merge(answer, found)
        return answer

    def merge(self, one: Any, other: Any) -> Any:
        """As the task."""
        return self.task.merge(one, other)

    def after(self, answer: Any) -> _WithClock:
        """As the task."""
        return _WithClock(self.task.after(answer), self.clock)


def fold_until(source: Source, task: Task, clock: Clock) -> Any:
    """One pass with a clock. If this process makes the pass, it raises `OutOfTimeError` when the clock expires."""
    if clock.expired:
        raise OutOfTimeError
    if hasattr(source, "read") and (clock.limit is not None or clock.reporter is not None):
        timed: Any = task
        task = _WithClock(replace(timed, deadline=clock.deadline) if hasattr(task, "deadline") else task, clock)
    return clock.waiting(lambda: source.fold(task))
