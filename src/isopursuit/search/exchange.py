"""Exchange search: local search and bounds on the loss; over a source in rounds, with swaps by passes.

A few descents come first. If there are few columns, a short proof follows, which often ends the search; otherwise many
more kicks follow, and one bound of the relaxation over all columns.

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
from isopursuit.search.local import local_search, lower_than, offer_large_volume, swap_descent, swap_kernel
from isopursuit.search.pool import Pool
from isopursuit.search.proof.joint import JointTree
from isopursuit.search.proof.prover import Prove
from isopursuit.search.scan import SwapBounds, SwapCandidates
from isopursuit.search.settings import (
    BYTES_PER_ENTRY,
    FIRST_KICKS,
    HALF,
    JOINT_NODES,
    MAX_KICK_COLUMNS,
    RESIDENT,
    SHORT_NODES,
    SHORT_WORK,
    SOURCE_ROUNDS,
    STARTS,
)
from isopursuit.sources.topk import TopK


def exchange(pool: Pool, limits: Limits) -> Search:
    """`exchange_search` on a pool."""
    pool = pool.distinct()
    incumbent = started(pool, limits)
    with incumbent.ended_by_caller():
        incumbent.stop = _search(pool, incumbent, limits, incumbent.reporting(limits.clock))
    return incumbent.answered(lambda: _answer(pool, incumbent))


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
        pool.ideal, limits.gap or 0.0, limits.patience, limits.clock, pool.translated(limits.callback),
        lower_bound=limits.lower_bound, hopeless=limits.hopeless, fruitless=limits.fruitless,
    )  # fmt: skip
    positions = None if limits.start is None else pool.positions_of(limits.start)
    if positions is not None and pool.log_loss(positions) < np.inf:
        incumbent.offer(positions, pool.log_loss(positions), "start")
    return incumbent


def short_proof_nodes(pool: Pool) -> int:
    """The node limit of a short proof: the work of a node grows as P D²."""
    return max(1, int(SHORT_WORK / (pool.count * pool.rows**2)))


def _search(pool: Pool, incumbent: Incumbent, limits: Limits, clock: Clock) -> StopReason | None:
    """Few kicks, a short proof, many kicks, and one bound; a proof or a callback can end the search after each.

    If a start is given, a proof from it was tried before. A source has several rounds of kicks.
    """
    starts, kicks = STARTS if limits.starts is None else limits.starts, limits.kicks
    proofs, rng, memory = limits.start is None and kicks > 0, limits.generator, limits.memory
    if pool.X is None:
        stop = improve(pool, incumbent, clock, rng, starts, kicks // SOURCE_ROUNDS, memory)
    else:
        few = min(kicks, FIRST_KICKS)
        stop = improve(pool, incumbent, clock, rng, starts, few, memory)
        if stop is None and proofs and not incumbent.closed:
            stop = _short_proof(pool, incumbent, clock)
        if stop is None and not incumbent.closed:
            stop = improve(pool, incumbent, clock, rng, 0, kicks - few, memory)
    bound = Prove(memory=memory, root=True, short=True)
    if stop is None and proofs and not incumbent.closed and not clock.expired and bound.applies(pool, incumbent):
        stop = bound.run(pool, incumbent, clock)
    return stop


def improve(
    pool: Pool,
    incumbent: Incumbent,
    clock: Clock,
    rng: np.random.Generator,
    starts: int,
    kicks: int,
    memory: int,
) -> StopReason | None:
    """Improve the incumbent by swaps and kicks, without a proof. Returns a reason if a callback ends the search.

    The first start is the better one of a subset of large volume and the greedy one (at one point).
    `memory` is the most bytes of columns that a source may load.
    """
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
        return local_search(pool, incumbent, clock, rng, starts=starts, kicks=kicks)
    if last:
        return None
    for _ in range(SOURCE_ROUNDS):
        stop = _swaps_over_all(pool, incumbent, clock, memory)
        if stop is not None or not incumbent.swap_optimal:
            return stop
        # no single one of the columns of the least bounds improves the subset, but several may
        found = _candidates(pool, incumbent.subset, clock, MAX_KICK_COLUMNS, -np.inf)
        if found is None:
            return None
        among = _with_subset(pool, incumbent.subset, *pool.columns_of(found))
        stop = local_search(pool, incumbent, clock, rng, starts=starts, kicks=kicks, among=among)
        pool.load(among[1], among[0])
        if stop is not None or incumbent.swap_optimal:  # the local search found no better subset
            return stop
    return _swaps_over_all(pool, incumbent, clock, memory)


def _short_proof(pool: Pool, incumbent: Incumbent, clock: Clock) -> StopReason | None:
    """One proof with few nodes, where they take less time than the kicks that follow."""
    nodes = short_proof_nodes(pool)
    proof = Prove(nodes, worker_count(None), short=True) if pool.points == 1 else JointTree(JOINT_NODES)
    if (pool.points == 1 and nodes < SHORT_NODES) or not proof.applies(pool, incumbent):
        return None
    stop = proof.run(pool, incumbent, clock.part(HALF))
    return stop if stop is StopReason.INTERRUPTED else None


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
