"""Local search: swaps while the loss falls, from several starts; then kicks of the best subset, and swaps again.

A start after the first has a random column and the best ones, added one after the other (greedy search). A kick removes
a few columns and adds the best ones in the same way. Swaps at those positions follow. If they do not lead back to the
same subset, swaps at all positions follow. The next kick is that of the new subset if its excess loss is at most
slightly higher. After many kicks without success there is another start.

The same code searches one matrix, many points, and the columns of a source that are resident in memory.
"""

from __future__ import annotations

import numpy as np

from isopursuit._core.clock import Clock
from isopursuit._core.types import Array, Indices
from isopursuit.loss.penalty import to_loss
from isopursuit.search._joint import JointKernel
from isopursuit.search._swap import SwapKernel
from isopursuit.search.incumbent import Incumbent, StopReason
from isopursuit.search.pool import Pool
from isopursuit.search.settings import MAX_KICK_COLUMNS
from isopursuit.search.swaps import Subset, include_first, swap_descent, swap_kernel
from isopursuit.search.volume import large_volume

PATIENCE = 100  # kicks without success before another start (measured: without it unit-length 10 × 200 is 0.8 % worse)
DETOUR = 0.05  # relative rise of the excess loss from kick to kick (measured: without it 20 × 5000 is 0.2 % worse)
MOST_KICKED = 6  # a kick removes between two and this many columns, if so many can change (guess)


def local_search(
    pool: Pool, incumbent: Incumbent, clock: Clock, rng: np.random.Generator, *, starts: int, kicks: int
) -> StopReason | None:
    """Descend from `starts` subsets and then after each of `kicks` kicks; better subsets are offered to the incumbent.

    If the incumbent has a subset, that is the first start. Returns a reason if a callback ends the search.
    """
    if offer_large_volume(pool, incumbent, clock):
        return StopReason.INTERRUPTED
    X, positions = _in_memory(pool, incumbent)
    include = np.searchsorted(positions, pool.include).astype(np.intp)
    best = include_first(include, np.searchsorted(positions, incumbent.subset))
    free = list(range(len(include), pool.k))
    if clock.expired or not free:
        return None
    kernel = swap_kernel(np.ascontiguousarray(np.swapaxes(X, 1, 2)), pool.c, pool.aggregate, clock.deadline, pool.k)
    current, lowest, fruitless = incumbent.log_loss, incumbent.log_loss, 0
    for turn in range(starts + (kicks if X.shape[2] > pool.k else 0)):
        if clock.expired or incumbent.closed:
            break
        places, trial, again = free, best, fruitless == PATIENCE
        if turn >= starts and not again:
            places = rng.permutation(free).tolist()
            trial = _kicked(kernel, best, places[: int(rng.integers(2, MOST_KICKED + 1))], clock)
            fruitless += 1
            if np.isin(trial, best).all():
                continue
        elif turn > 0:
            first = rng.choice(np.setdiff1d(np.arange(X.shape[2]), include))
            trial = _completed(kernel, np.append(include, first).astype(np.int32), pool.k)
            trial = best if trial is None else trial
        trial, log_loss = swap_descent(kernel, trial, places, clock)
        incumbent.evaluations += 1
        incumbent.offer(positions[trial], log_loss, "local search")
        if log_loss < lowest or again:
            lowest, fruitless = log_loss, 0
        if log_loss <= lowest or _excess(log_loss, pool) < (1 + DETOUR) * _excess(current, pool):
            best, current = trial, log_loss
        if incumbent.report():
            return StopReason.INTERRUPTED
    return None


def offer_large_volume(pool: Pool, incumbent: Incumbent, clock: Clock) -> bool:
    """Offer columns of large volume if there is no incumbent: that takes milliseconds. True if the search must stop."""
    if len(incumbent.subset) < pool.k:
        X, positions = _in_memory(pool, incumbent)
        subset = positions[large_volume(X, np.searchsorted(positions, pool.include), pool.k, clock)]
        incumbent.offer(subset, pool.log_loss(subset), "large volume")
    return incumbent.report()


def _excess(log_loss: float, pool: Pool) -> float:
    """The loss above that of orthonormal columns."""
    return to_loss(log_loss) - pool.ideal


def _in_memory(pool: Pool, incumbent: Incumbent) -> tuple[Array, Indices]:
    """The columns (n, D, P) to search, and their positions: all columns in memory, or those loaded last."""
    if pool.X is not None:
        return pool.X, np.arange(pool.count)
    fixed, count = len(pool.include), len(pool.resident_positions)
    recent: Indices = np.arange(max(fixed, count - MAX_KICK_COLUMNS), count)
    subset = pool.place(incumbent.subset) if len(incumbent.subset) == pool.k else np.zeros(0, np.intp)
    some = np.union1d(np.concatenate([np.arange(fixed), recent]), subset).astype(np.intp)
    order = np.argsort(pool.resident_positions[some])
    return np.ascontiguousarray(pool.resident_columns[:, some[order]])[None], pool.resident_positions[some[order]]


def _kicked(kernel: SwapKernel | JointKernel, subset: Subset, places: list[int], clock: Clock) -> Subset:
    """Remove the columns at these positions, add the best ones, and swap at the positions."""
    completed = _completed(kernel, np.delete(subset, places), len(subset))
    if completed is None:
        return subset
    kicked = subset.copy()
    kicked[places] = completed[len(subset) - len(places) :]
    return swap_descent(kernel, kicked, places, clock)[0]


def _completed(kernel: SwapKernel | JointKernel, subset: Subset, k: int) -> Subset | None:
    """Add the best columns, one after the other, until there are k; None if none leads to a finite loss."""
    while len(subset) < k:
        found, _ = kernel.add(subset, np.inf)
        if found < 0:
            return None
        subset = np.append(subset, np.int32(found))
    return subset
