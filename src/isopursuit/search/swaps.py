"""Greedy addition of columns, and descent by single swaps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from isopursuit._types import Array, Indices
from isopursuit.aggregate import SUM, Aggregate
from isopursuit.clock import Clock
from isopursuit.search._joint import JointKernel
from isopursuit.search._swap import SwapKernel
from isopursuit.search.settings import MIN_DECREASE

Subset: TypeAlias = NDArray[np.int32]  # positions as the kernels read them; the included ones first

UNLIMITED = Clock.of(None)


def swap_kernel(
    columns: Array, c: float, aggregate: Aggregate = SUM, deadline: float = np.inf, most: int = 0
) -> SwapKernel | JointKernel:
    """The kernel for single swaps in subsets of at most `most` of `columns` (n, P, D)."""
    if len(columns) == 1:
        return SwapKernel(columns[0], c, deadline, most)
    return joint_kernel(np.swapaxes(columns, 0, 1), c, aggregate, deadline)


def joint_kernel(columns: Array, c: float, aggregate: Aggregate, deadline: float = np.inf) -> JointKernel:
    """The kernel for `columns` (P, n, D) at many points, in any order in memory but that of their entries."""
    n = columns.shape[1]
    left_out = n - aggregate.kept(n)
    return JointKernel(columns, c, aggregate.name == "geometric", left_out, aggregate.name != "sum", deadline)


def swap_descent(
    kernel: SwapKernel | JointKernel, subset: Subset, places: Iterable[int], clock: Clock = UNLIMITED
) -> tuple[Subset, float]:
    """Replace the columns at these positions in turn, each by the best one, until none improves; with the log-loss."""
    current = subset.copy()
    loss = kernel.loss(current)
    kernel.linearize(current, loss)
    free = list(places)
    unchanged = turn = 0
    while unchanged < len(free) and not clock.expired:
        place = free[turn % len(free)]
        found, value = kernel.replace(current, place, loss, lower_than(loss))
        turn += 1
        unchanged += 1
        if found >= 0:
            current[place], loss, unchanged = found, value, 0
            kernel.linearize(current, loss)
    return current, loss


def lower_than(log_loss: float) -> float:
    """A cutoff below this log-loss by more than rounding, so that equal subsets do not alternate."""
    return log_loss - MIN_DECREASE - 1e-13 * abs(log_loss) if log_loss < np.inf else log_loss


def include_first(include: NDArray[np.integer], subset: NDArray[np.integer]) -> Subset:
    """The subset with the included columns first; `swap_descent` then changes only the later positions."""
    return np.concatenate([include, np.setdiff1d(subset, include)]).astype(np.int32)


def greedy_subset(
    columns: Array, c: float, include: Indices, k: int, clock: Clock = UNLIMITED, aggregate: Aggregate = SUM
) -> Subset:
    """The paper's greedy search for k of `columns` (n, P, D); fewer if time runs out."""
    subset = include.astype(np.int32)
    kernel = swap_kernel(columns, c, aggregate, clock.deadline, k)
    while len(subset) < k and not clock.expired:
        found, _ = kernel.add(subset, np.inf, -1)
        if kernel.late:  # not all columns were tried
            break
        if found < 0:  # every other column is dependent on these: take any
            found = int(np.setdiff1d(np.arange(columns.shape[1]), subset)[0])
        subset = np.append(subset, np.int32(found))
    return subset
