"""Exchange search: local search, and a bound on the loss; over a source in rounds, with swaps by passes.

**A source.** It starts from the greedy subset or one of large volume. A pass with `SwapCandidates` returns the columns
whose bounds allow that they improve the subset if they replace one of its columns. They are loaded and tried. If a pass
returns all such columns and none improves the subset, then no single swap with any column does. Local search among the
columns of the least bounds follows, and passes again if it has found a better subset.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from isopursuit._core.clock import Clock
from isopursuit._core.threads import worker_count
from isopursuit._core.types import Array, Indices
from isopursuit.loss.penalty import to_loss
from isopursuit.results import Search
from isopursuit.search.greedy import greedy_subset
from isopursuit.search.incumbent import Incumbent, Limits, StopReason
from isopursuit.search.local import Effort, local_search, lower_than, offer_large_volume, swap_descent, swap_kernel
from isopursuit.search.pool import Pool
from isopursuit.search.proof.joint import JointTree
from isopursuit.search.proof.prover import Prove
from isopursuit.search.scan import SwapBounds, SwapCandidates
from isopursuit.search.settings import (
    COPIES,
    FIRST_KICKS,
    HALF,
    JOINT_TRIAL,
    LEAST_TRIAL,
    RESIDENT,
    SOURCE_ROUNDS,
    STARTS,
    TRIAL_WORK,
)
from isopursuit.sources.tasks import TopK


def exchange(pool: Pool, limits: Limits) -> Search:
    """`exchange_search` on a pool. If there are few columns, a proof with few nodes follows the first kicks."""
    pool = pool.distinct()
    incumbent = started(pool, limits)
    with incumbent.ended_by_caller():
        incumbent.stop = _search(pool, incumbent, limits, incumbent.reporting(limits.clock))
    return incumbent.answered(lambda: _answer(pool, incumbent))


def _search(pool: Pool, incumbent: Incumbent, limits: Limits, clock: Clock) -> StopReason | None:
    """Few kicks, a short proof, many kicks, and one bound. If a start is given, a proof from it was tried before."""
    starts, kicks, stop = STARTS if limits.starts is None else limits.starts, limits.kicks, None
    proves = limits.start is None and kicks > 0
    if proves and pool.X is not None:
        stop = improve(pool, incumbent, clock, limits, starts, min(kicks, FIRST_KICKS))
        nodes, starts, kicks = trial_nodes(pool.points, pool.count, pool.rows), 0, max(kicks - FIRST_KICKS, 0)
        if stop is None and nodes >= LEAST_TRIAL:
            proof = Prove(nodes, worker_count(None)) if pool.points == 1 else JointTree(JOINT_TRIAL)
            stop = _tried(proof, pool, incumbent, clock.part(HALF))
    if stop is None and not incumbent.closed:
        rounds = SOURCE_ROUNDS if pool.X is None else 1
        stop = improve(pool, incumbent, clock, limits, starts, kicks // rounds)
    return _tried(Prove(memory=limits.memory, root=True), pool, incumbent, clock) if stop is None and proves else stop


def _tried(proof: Prove | JointTree, pool: Pool, incumbent: Incumbent, clock: Clock) -> StopReason | None:
    """Run a proof if it is of use; returns a reason only if a callback ends the search."""
    if incumbent.closed or clock.expired or not proof.applies(pool, incumbent):
        return None
    stop = proof.run(pool, incumbent, clock)
    return stop if stop is StopReason.INTERRUPTED else None


def trial_nodes(points: int, columns: int, rows: int) -> int:
    """The nodes of a short proof: the work of a node grows as P D² at each point."""
    return int(TRIAL_WORK / (points * columns * min(rows, columns) ** 2))


def _answer(pool: Pool, incumbent: Incumbent) -> Search:
    found = incumbent.found()
    if found.status in ("time", "nodes", "memory"):
        found = replace(found, status="heuristic")
    if pool.X is None:
        note = "no single swap with any column improves it: proved."
        if not (incumbent.swap_optimal or incumbent.proved):
            note = "whether a swap with some column improves it was not settled"
            note += "." if found.status == "interrupted" else ": more time or memory would settle it."
        found = replace(found, notes=(*found.notes, note))
    return pool.answer(found, "exchange")


def started(pool: Pool, limits: Limits) -> Incumbent:
    """The incumbent at the start: the subset that is known, unless the pool has dropped a column as a duplicate."""
    incumbent = Incumbent(
        pool.ideal, limits.gap or 0.0, limits.clock, pool.translated(limits.callback), lower_bound=limits.lower_bound
    )
    positions = None if limits.start is None else pool.positions_of(limits.start)
    if positions is not None and pool.log_loss(positions) < np.inf:
        incumbent.offer(positions, pool.log_loss(positions), "start")
    return incumbent


def improve(
    pool: Pool, incumbent: Incumbent, clock: Clock, limits: Limits, starts: int, kicks: int, brief: bool = False
) -> StopReason | None:
    """Improve the incumbent by swaps and kicks, without a proof. Returns a reason if a callback ends the search.

    The first start is the better one of a subset of large volume and the greedy one (at one point).
    A source has several rounds of so many kicks.
    """
    effort = Effort(limits.generator, starts, kicks, brief or limits.brief)
    last = pool.X is None and pool.missing <= 1  # one pass tries all columns
    if not last and offer_large_volume(pool, incumbent, clock):
        return StopReason.INTERRUPTED
    begins = incumbent.found_by in ("", "large volume") and not (clock.expired and len(incumbent.subset))
    if last or (begins and pool.points == 1 and pool.missing > 1):
        subset, finished = greedy_subset(pool, pool.include, clock)
        incumbent.offer(subset, pool.log_loss(subset), "greedy")
        if last and finished and pool.resolves(incumbent.subset):
            incumbent.evaluations += pool.count * pool.missing
            incumbent.raise_bound(incumbent.loss)
    if pool.X is not None:
        return local_search(pool, incumbent, clock, effort)
    if last:
        return None
    for _ in range(SOURCE_ROUNDS):
        stop = _swaps_over_all(pool, incumbent, clock, limits.memory)
        if stop is not None or not incumbent.swap_optimal:
            return stop
        # no single one of the columns of the least bounds improves the subset, but several may
        found = _candidates(pool, incumbent.subset, clock, 2 * RESIDENT, -np.inf)
        if found is None:
            return None
        among = _with_subset(pool, incumbent.subset, *pool.columns_of(found))
        stop = local_search(pool, incumbent, clock, effort, among)
        pool.load(among[1], among[0])
        if stop is not None or incumbent.swap_optimal:  # the local search found no better subset
            return stop
    return _swaps_over_all(pool, incumbent, clock, limits.memory)


def _with_subset(pool: Pool, subset: Indices, positions: Indices, values: Array) -> tuple[Array, Indices]:
    """These columns and those of the subset, in an order that does not depend on the caller's, and their positions."""
    columns = np.concatenate([values, pool.at_hand(subset)], axis=1)
    order = np.lexsort(np.abs(columns[:3]))
    return columns[:, order], np.concatenate([positions, subset])[order]


def _candidates(pool: Pool, subset: Indices, clock: Clock, room: int, bar: float) -> TopK | None:
    """The columns with the least bounds of swaps into the subset; None if there is no time for a pass."""
    subset = np.concatenate([pool.include, np.setdiff1d(subset, pool.include)])
    bounds = SwapBounds.of(pool.at_hand(subset), pool.c)
    free, excluded = range(len(pool.include), pool.k), np.union1d(pool.excluded, subset)
    found: TopK | None = pool.ask(SwapCandidates(bounds, free, pool.columns.transform, excluded, room, bar), clock)
    return None if found is None else found.trimmed()


def _swaps_over_all(pool: Pool, incumbent: Incumbent, clock: Clock, memory: int) -> StopReason | None:
    """Make swaps with all columns, pass by pass; `incumbent.swap_optimal` says whether in the end none improves it."""
    room = max(RESIDENT, memory // (8 * COPIES * pool.rows))
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
        best = np.isin(positions, numbers[np.argsort(-keys, kind="stable")[: 2 * RESIDENT]])
        improved = False
        for some in (np.flatnonzero(best), np.arange(len(positions))):  # the most promising ones, then all
            columns = np.concatenate([here, values[:, some]], axis=1)
            kernel = swap_kernel(np.ascontiguousarray(columns.T)[None], pool.c, deadline=clock.deadline, most=pool.k)
            swapped, log_loss = swap_descent(kernel, start, free, clock)
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
