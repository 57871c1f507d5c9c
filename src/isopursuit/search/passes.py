"""One pass over all columns that ends at the deadline, and helpers for the tasks of a pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.clock import Clock
from isopursuit._core.types import Array, Indices
from isopursuit.search.settings import ENTRIES, WORK
from isopursuit.sources.tasks import LARGEST, Source, Task, Transform, doubled


class OutOfTimeError(Exception):
    """A pass would end after the time limit. Threads that read blocks raise it; `Pool.ask` turns it into a value."""


def pieces(block: Any, transform: Transform, *, exact: bool = True) -> Iterator[tuple[int, Any]]:
    """The block's columns after the transform, a few at a time and on their device: (first, (D, m)).

    They are float64 if `exact`; otherwise they keep the precision of the block and the transform.
    """
    host = isinstance(block, np.ndarray)
    width = max(ENTRIES // block.shape[0], 1) * (1 if host else 64)  # more of a tensor: each call waits for its device
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
class _WithClock:
    """A task that checks the clock between parts of a block and raises `OutOfTimeError`."""

    task: Task
    clock: Clock

    def __call__(self, block: Any, first: int) -> Any:
        """The task's answer for one block."""
        work = getattr(self.task, "work", block.shape[0] ** 3)  # multiplications for a column
        width = max(8 * WORK // work, 128)  # products of matrices are that much faster
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
