"""Stages for pools that are read in passes: greedy search over all columns, and swaps with all of them.

A pass with `SwapCandidates` returns the columns whose bounds allow that they improve the subset if they replace one of
its columns. They are loaded and tried. If a pass returns all such columns and none improves the subset, then no single
swap with any column does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from isopursuit._types import Array, Indices
from isopursuit.clock import Clock
from isopursuit.errors import RankError
from isopursuit.rank import numerical_rank, spectrum, unit_columns
from isopursuit.search._swap import SwapKernel, best_column, log_loss_of
from isopursuit.search.incumbent import Incumbent, StopReason
from isopursuit.search.objective import as_objective
from isopursuit.search.pass_tasks import BestAddition, BestColumn, SwapCandidates, limit_with_ties
from isopursuit.search.pool import Pool
from isopursuit.search.settings import (
    BYTES_PER_ENTRY,
    GREEDY_SHARE,
    MANY_COLUMNS,
    MAX_KICK_COLUMNS,
    RESIDENT,
    SOURCE_ROUNDS,
)
from isopursuit.search.stages.local import LocalSearch
from isopursuit.search.swap_bounds import steepest_descent
from isopursuit.search.swaps import Subset, lower_than, swap_descent
from isopursuit.search.volume import large_volume
from isopursuit.sources.tasks import Transform
from isopursuit.sources.topk import TopK


@dataclass(frozen=True)
class GreedyPasses:
    """The paper's greedy search over all columns, one pass for each column it adds."""

    share: float = GREEDY_SHARE

    def applies(self, pool: Pool, incumbent: Incumbent) -> bool:
        """For columns that are read in passes; not if many are to be picked and a subset is known."""
        known = incumbent.log_loss < np.inf and pool.k > MANY_COLUMNS
        return pool.X is None and not (known and pool.missing > 1)

    def run(self, pool: Pool, incumbent: Incumbent, clock: Clock) -> StopReason | None:
        """Offer the greedy subset. If at most one column was missing, it is the best of all."""
        subset, seen, finished = greedy_passes(pool, clock)
        columns = np.ascontiguousarray(pool.at_hand(subset).T)
        incumbent.offer(subset, log_loss_of(columns, np.arange(pool.k, dtype=np.int32), pool.c), "greedy")
        incumbent.evaluations += seen if pool.missing <= 1 else 0
        # if float64 cannot resolve the loss, the comparison with other subsets proves nothing
        if finished and pool.missing <= 1:
            known = as_objective("isometry", pool.c).resolves(pool.at_points(incumbent.subset))
            incumbent.raise_bound(incumbent.loss if known else -np.inf)
        return None


@dataclass(frozen=True)
class SwapPasses:
    """Rounds of local search among resident columns and swaps with all columns, while they improve the incumbent.

    `memory` is the most bytes of columns that a pass may load.
    """

    starts: int
    kicks: int
    rng: np.random.Generator
    memory: int
    share: float = 1.0

    def applies(self, pool: Pool, incumbent: Incumbent) -> bool:
        """For columns that are read in passes, if there is a choice."""
        return pool.X is None and pool.missing > 0

    def run(self, pool: Pool, incumbent: Incumbent, clock: Clock) -> StopReason | None:
        """Improve the incumbent until no single swap with any column improves it.

        With fewer columns than rows, swaps with all columns come first, because random columns are far from the best.
        """
        fewer = pool.k < pool.rows and len(incumbent.subset) == pool.k and incumbent.log_loss < np.inf
        local = LocalSearch(0 if fewer else self.starts, self.kicks, self.rng, resume=fewer)
        for number in range(SOURCE_ROUNDS):
            if number > 0 or not fewer:
                stop = local.run(pool, incumbent, clock)
                if stop is not None:
                    return stop
            if number > 0 and incumbent.swap_optimal:  # the same subset, not one that is lower only by rounding
                break
            if not self.descend(pool, incumbent, clock):
                break
        return None

    def descend(self, pool: Pool, incumbent: Incumbent, clock: Clock) -> bool:
        """Make swaps with all columns, pass by pass; True if in the end none improves the subset."""
        room = max(RESIDENT, self.memory // (BYTES_PER_ENTRY * pool.rows))
        free = range(len(pool.include), pool.k)
        while not clock.expired:
            subset = np.concatenate([pool.include, np.setdiff1d(incumbent.subset, pool.include)])
            here = pool.at_hand(subset)
            excluded = np.union1d(pool.excluded, subset)
            task = SwapCandidates.into(here, free, pool.c, incumbent.log_loss, pool.columns.transform, excluded, room)
            found: TopK | None = pool.ask(task, clock)
            if found is None:
                return False
            found = found.trimmed()
            positions, values = pool.columns_of(found)
            numbers, keys, _ = found.parts[0]
            few = np.flatnonzero(np.isin(positions, numbers[np.argsort(-keys, kind="stable")[:MAX_KICK_COLUMNS]]))
            pool.load(positions[few], values[:, few])
            swapped, loss = _descent(np.concatenate([here, values[:, few]], axis=1), free, pool, clock)
            incumbent.evaluations += 1
            if incumbent.report():
                return False
            if incumbent.offer(np.concatenate([subset, positions[few]])[swapped], loss, "swaps over all columns"):
                continue
            if not _swap_once(pool, incumbent, subset, (positions, values), clock):
                incumbent.swap_optimal = found.left <= 1 and not clock.expired
                return incumbent.swap_optimal
        return False


def _descent(columns: Array, free: range, pool: Pool, clock: Clock) -> tuple[Subset, float]:
    """Swaps among these columns (rows, m), the first k of which are the subset.

    With fewer columns than rows each step makes the best of all swaps, otherwise the best one at each position in turn.
    """
    subset = np.arange(pool.k, dtype=np.int32)
    found = steepest_descent(columns, subset, free, pool.c, clock) if pool.k < pool.rows else None
    if found is not None:
        return found
    kernel = SwapKernel(np.ascontiguousarray(columns.T), pool.c, clock.deadline, pool.k)
    return swap_descent(kernel, subset, free, clock)


def _swap_once(pool: Pool, incumbent: Incumbent, subset: Indices, others: tuple[Indices, Array], clock: Clock) -> bool:
    """Make the best swap with any of these columns (positions, values), if one improves the incumbent `subset`."""
    here, (positions, values) = pool.at_hand(subset), others
    if pool.k < pool.rows:
        all_columns = np.concatenate([here, values], axis=1)
        free, start = range(len(pool.include), pool.k), np.arange(pool.k, dtype=np.int32)
        found = steepest_descent(all_columns, start, free, pool.c, clock)
        if found is not None:
            swapped, loss = found
            new = swapped[swapped >= pool.k] - pool.k
            pool.load(positions[new], values[:, new])
            return incumbent.offer(np.concatenate([subset, positions])[swapped], loss, "swaps over all columns")
    place, best = -1, BestColumn(lower_than(incumbent.log_loss))
    for i in range(len(pool.include), pool.k):
        if clock.expired:
            return False
        task = BestAddition(np.delete(here, i, axis=1).T, pool.c, Transform(), np.zeros(0, np.intp), best.log_loss)
        found = task(values, 0)
        place, best = (i, found) if found.index >= 0 else (place, best)
    if place < 0:
        return False
    position = positions[best.index : best.index + 1]
    pool.load(position, values[:, best.index : best.index + 1])
    return incumbent.offer(np.append(np.delete(subset, place), position), best.log_loss, "swaps over all columns")


def greedy_passes(pool: Pool, clock: Clock, report: Callable[[int], object] | None = None) -> tuple[Indices, int, bool]:
    """Greedy search, one pass for each column: the subset, how many columns were seen, and whether there was time.

    The best resident column gives the cutoff for the pass, and the picked column becomes resident. If time runs out,
    resident columns of large volume complete the subset.
    """
    subset, seen, finished = pool.include, 0, True
    while len(subset) < pool.k:
        task = _next_column(pool, subset)
        # if resident columns cannot complete the subset, passes continue after the time limit to get an answer
        best: BestColumn | None = pool.ask(task, clock) if finished else pool.columns.source.fold(task)
        if best is None:
            finished = False
            if len(pool.resident_positions) < pool.k:
                continue
            quick = large_volume(pool.resident_columns[None], pool.place(subset), pool.k, clock)
            if numerical_rank(spectrum(unit_columns(pool.resident_columns[:, quick])), pool.k) == pool.k:
                return pool.resident_positions[quick], seen, False
            continue
        seen += best.columns
        number = best.index
        if number >= 0 and best.values is not None:
            pool.load(np.array([number]), best.values[:, None])
        else:
            # the loss overflows float64 with every column: take the one farthest from the span of the others
            number = _farthest(pool, subset)
            if number < 0:
                break
        subset = np.append(subset, number)
        if report is not None:
            report(len(subset))
    rank = numerical_rank(spectrum(unit_columns(pool.at_hand(subset))), pool.k)
    if rank < pool.k:
        raise RankError(
            f"The columns that can be picked have rank {rank}, so any {pool.k} of them are dependent and have infinite "
            f"loss. Pass k={rank} or less."
        )
    return subset, seen, finished


def _next_column(pool: Pool, subset: Indices) -> BestAddition:
    """The task that finds the best column to add to the subset: no worse than the best resident one."""
    others = pool.at_hand(subset).T.copy()
    rest = ~np.isin(pool.resident_positions, subset)
    columns = np.ascontiguousarray(np.concatenate([others, pool.resident_columns[:, rest].T]))
    value = np.inf  # there may be no resident column: all that were drawn may be excluded
    if len(columns):
        _, value = best_column(columns, np.arange(len(others), dtype=np.int32), pool.c)
    limit = limit_with_ties(value) if np.isfinite(value) else np.inf
    return BestAddition(others, pool.c, pool.columns.transform, np.union1d(pool.excluded, subset), limit)


def _farthest(pool: Pool, subset: Indices) -> int:
    """The resident column whose direction is farthest from the span of the subset; −1 if all are in it."""
    unit = unit_columns(pool.resident_columns)
    span, _ = np.linalg.qr(unit[:, pool.place(subset)]) if len(subset) else (np.zeros((pool.rows, 0)), None)
    for _ in range(2):
        unit = unit - span @ (span.T @ unit)
    off = np.linalg.norm(unit, axis=0)
    off[np.isin(pool.resident_positions, np.union1d(subset, pool.include))] = 0.0
    best = int(off.argmax())
    return int(pool.resident_positions[best]) if off[best] > pool.rows * np.finfo(np.float64).eps else -1
