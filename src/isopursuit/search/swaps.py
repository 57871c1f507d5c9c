"""The kernel for single swaps, and descent by them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.clock import UNLIMITED, Clock
from isopursuit._core.types import Array
from isopursuit.loss.aggregate import SUM, Aggregate
from isopursuit.search._joint import JointKernel
from isopursuit.search._swap import SwapKernel
from isopursuit.search.settings import MIN_DECREASE

Subset: TypeAlias = NDArray[np.int32]  # positions as the kernels read them; the included ones first


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
    return JointKernel(columns, c, left_out, aggregate.name != "sum", deadline)


def swap_descent(
    kernel: SwapKernel | JointKernel, subset: Subset, places: Iterable[int], clock: Clock = UNLIMITED
) -> tuple[Subset, float]:
    """Replace the columns at these positions in turn, each by the best one, until none improves; with the log-loss."""
    current = subset.copy()
    loss = kernel.loss(current)
    free = list(places)
    unchanged = turn = 0
    while unchanged < len(free) and not clock.expired:
        if unchanged == 0:
            kernel.prepare(current)
        place = free[turn % len(free)]
        found, value = kernel.replace(current, place, lower_than(loss))
        turn += 1
        unchanged += 1
        if found >= 0:
            current[place], loss, unchanged = found, value, 0
    return current, loss


def lower_than(log_loss: float) -> float:
    """A cutoff below this log-loss by more than rounding, so that equal subsets do not alternate."""
    return log_loss - MIN_DECREASE - 1e-13 * abs(log_loss) if log_loss < np.inf else log_loss


def include_first(include: NDArray[np.integer], subset: NDArray[np.integer]) -> Subset:
    """The subset with the included columns first; `swap_descent` then changes only the later positions."""
    return np.concatenate([include, np.setdiff1d(subset, include)]).astype(np.int32)
