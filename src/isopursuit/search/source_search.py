"""Exchange search over a source: from a greedy start, swaps with all columns and local search among resident columns.

A pass with `SwapCandidates` returns the columns whose bounds allow that they improve the subset if they replace one of
its columns. They are loaded and tried. If a pass returns all such columns and none improves the subset, then no single
swap with any column does.
"""

from __future__ import annotations

import numpy as np

from isopursuit._core.clock import Clock
from isopursuit._core.types import Indices
from isopursuit.loss.penalty import to_loss
from isopursuit.search.bounds import SwapBounds, steepest_descent
from isopursuit.search.greedy import greedy_subset
from isopursuit.search.incumbent import Incumbent, StopReason
from isopursuit.search.local import local_search
from isopursuit.search.objective import as_objective
from isopursuit.search.pass_tasks import SwapCandidates
from isopursuit.search.pool import Pool
from isopursuit.search.settings import BYTES_PER_ENTRY, MAX_KICK_COLUMNS, RESIDENT, SOURCE_ROUNDS
from isopursuit.search.swaps import lower_than
from isopursuit.sources.topk import TopK


def source_search(
    pool: Pool, incumbent: Incumbent, clock: Clock, rng: np.random.Generator, *, starts: int, kicks: int, memory: int
) -> StopReason | None:
    """Improve the incumbent until no single swap with any column improves it, or rounds or time are over.

    `memory` is the most bytes of columns that a pass may load. If only one column is missing, one pass tries all.
    """
    if pool.missing <= 1:
        _add_last(pool, incumbent, clock)
        return None
    for _ in range(SOURCE_ROUNDS):
        stop = _swaps_over_all(pool, incumbent, clock, memory)
        if stop is not None or not incumbent.swap_optimal:
            return stop
        _load_promising(pool, incumbent, clock)
        stop = local_search(pool, incumbent, clock, rng, starts=starts, kicks=kicks)
        if stop is not None or incumbent.swap_optimal:  # the local search found no better subset
            return stop
    return _swaps_over_all(pool, incumbent, clock, memory)


def _add_last(pool: Pool, incumbent: Incumbent, clock: Clock) -> None:
    """Offer the best subset of all: it has the included columns, and one pass tries the last one."""
    subset, finished = greedy_subset(pool, pool.include, clock)
    incumbent.offer(subset, pool.log_loss(subset), "greedy")
    incumbent.evaluations += pool.count * pool.missing
    # if float64 cannot resolve the loss, the comparison with other subsets proves nothing
    if finished and as_objective("isometry", pool.c).resolves(pool.at_points(incumbent.subset)):
        incumbent.raise_bound(incumbent.loss)


def _candidates(pool: Pool, subset: Indices, clock: Clock, room: int, bar: float) -> TopK | None:
    """The columns with the least bounds of swaps into the subset; None if there is no time for a pass."""
    bounds = SwapBounds.of(pool.at_hand(subset), pool.c)
    free, excluded = range(len(pool.include), pool.k), np.union1d(pool.excluded, subset)
    found: TopK | None = pool.ask(SwapCandidates(bounds, free, pool.columns.transform, excluded, room, bar), clock)
    return None if found is None else found.trimmed()


def _load_promising(pool: Pool, incumbent: Incumbent, clock: Clock) -> None:
    """Load columns for kicks: no single one of them improves the subset, but several may."""
    found = _candidates(pool, incumbent.subset, clock, MAX_KICK_COLUMNS, -np.inf)
    if found is not None:
        pool.load(*pool.columns_of(found))


def _swaps_over_all(pool: Pool, incumbent: Incumbent, clock: Clock, memory: int) -> StopReason | None:
    """Make swaps with all columns, pass by pass; `incumbent.swap_optimal` says whether in the end none improves it."""
    room = max(RESIDENT, memory // (BYTES_PER_ENTRY * pool.rows))
    free = range(len(pool.include), pool.k)
    start = np.arange(pool.k, dtype=np.int32)
    while not clock.expired:
        subset = np.concatenate([pool.include, np.setdiff1d(incumbent.subset, pool.include)])
        here, bar = pool.at_hand(subset), -to_loss(lower_than(incumbent.log_loss))
        found = _candidates(pool, subset, clock, room, bar)
        if found is None:
            return None
        positions, values = pool.columns_of(found)
        numbers, keys, _ = found.parts[0]
        best = np.isin(positions, numbers[np.argsort(-keys, kind="stable")[:MAX_KICK_COLUMNS]])
        for some in (np.flatnonzero(best), np.arange(len(positions))):  # the most promising ones, then all
            swapped, log_loss = steepest_descent(
                np.concatenate([here, values[:, some]], axis=1), start, free, pool.c, clock
            )
            incumbent.evaluations += 1
            loaded = np.union1d(some[swapped[swapped >= pool.k] - pool.k], np.flatnonzero(best))
            pool.load(positions[loaded], values[:, loaded])
            improved = incumbent.offer(
                np.concatenate([subset, positions[some]])[swapped], log_loss, "swaps over all columns"
            )
            if improved or len(some) == len(positions):
                break
        if incumbent.report():
            return StopReason.INTERRUPTED
        if not improved:
            incumbent.swap_optimal = found.left <= bar and not clock.expired
            return None
    return None
