"""Exchange search: local search, over a source in rounds with swaps by passes, and bounds on the loss.

A few descents come first. If there are few columns, a short proof follows, which often ends the search; otherwise many
more kicks follow, and one bound of the relaxation over all columns.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from isopursuit._core.clock import Clock
from isopursuit._core.threads import worker_count
from isopursuit._core.types import Indices
from isopursuit.results import Search
from isopursuit.search.greedy import greedy_subset
from isopursuit.search.incumbent import Incumbent, StopReason
from isopursuit.search.limits import MEMORY, Limits
from isopursuit.search.local import local_search, offer_large_volume
from isopursuit.search.pool import Pool
from isopursuit.search.proof.joint import JointTree
from isopursuit.search.proof.prover import Prove
from isopursuit.search.settings import (
    JOINT_PROOF_NODES,
    KICKS,
    PROOF_SHARE,
    QUICK_KICKS,
    QUICK_STARTS,
    SHORT_PROOF_NODES,
    SHORT_PROOF_WORK,
    SOURCE_ROUNDS,
    STARTS,
    short_proof_nodes,
)
from isopursuit.search.source_search import source_search


def exchange(pool: Pool, limits: Limits) -> Search:
    """`exchange_search` on a pool."""
    pool, clock = pool.distinct(), limits.clock
    incumbent = Incumbent(
        pool.ideal, limits.gap, clock, pool.translated(limits.callback), lower_bound=limits.lower_bound
    )
    offer_start(pool, incumbent, limits.start)
    with incumbent.ended_by_caller():
        incumbent.stop = _search(pool, incumbent, limits, incumbent.reporting(clock))
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


def _search(pool: Pool, incumbent: Incumbent, limits: Limits, clock: Clock) -> StopReason | None:
    """Few kicks, a short proof, many kicks, and one bound; a proof or a callback can end the search after each.

    If a start is given, a proof from it was tried before. A source has several rounds of kicks.
    """
    starts, kicks = STARTS if limits.starts is None else limits.starts, limits.kicks
    proofs, rng, memory = limits.start is None and kicks > 0, limits.generator, limits.memory
    if pool.X is None:
        stop = improve(pool, incumbent, clock, rng, starts, kicks // SOURCE_ROUNDS, memory)
    else:
        few_starts, few_kicks = min(starts, QUICK_STARTS), min(kicks, QUICK_KICKS)
        stop = improve(pool, incumbent, clock, rng, few_starts, few_kicks, memory)
        if stop is None and proofs and not incumbent.closed:
            stop = _short_proof(pool, incumbent, clock)
        if stop is None and not incumbent.closed:
            stop = improve(pool, incumbent, clock, rng, starts - few_starts, kicks - few_kicks, memory)
    bound = Prove(memory=memory, root=True, short=True)
    if stop is None and proofs and not incumbent.closed and not clock.expired and bound.applies(pool, incumbent):
        stop = bound.run(pool, incumbent, clock)
    return stop


def improve(
    pool: Pool,
    incumbent: Incumbent,
    clock: Clock,
    rng: np.random.Generator,
    starts: int = STARTS,
    kicks: int = KICKS,
    memory: int = MEMORY,
) -> StopReason | None:
    """Improve the incumbent by swaps and kicks, without a proof. Returns a reason if a callback ends the search.

    The first start is the better one of a subset of large volume (in memory) and the greedy one (at one point).
    `memory` is the most bytes of columns that a source may load.
    """
    if len(incumbent.subset) < pool.k:
        if pool.X is not None and offer_large_volume(pool, incumbent, clock):
            return StopReason.INTERRUPTED
        if pool.points == 1 and pool.missing > 1 and not (clock.expired and len(incumbent.subset)):
            subset, _ = greedy_subset(pool, pool.include, clock)
            incumbent.offer(subset, pool.log_loss(subset), "greedy")
    search = local_search if pool.X is not None else partial(source_search, memory=memory)
    return search(pool, incumbent, clock, rng, starts=starts, kicks=kicks)


def _short_proof(pool: Pool, incumbent: Incumbent, clock: Clock) -> StopReason | None:
    """One proof with few nodes, where they take less time than the kicks that follow."""
    proof: Prove | JointTree = JointTree(JOINT_PROOF_NODES)
    if pool.points == 1:
        proof = Prove(short_proof_nodes(SHORT_PROOF_NODES, pool.k), worker_count(None), short=True)
        if pool.count * pool.rows**2 > SHORT_PROOF_WORK:
            return None
    if not proof.applies(pool, incumbent):
        return None
    stop = proof.run(pool, incumbent, clock.part(PROOF_SHARE))
    return stop if stop is StopReason.INTERRUPTED else None


def offer_start(pool: Pool, incumbent: Incumbent, start: Indices | None) -> None:
    """Start from a subset in the caller's numbers, unless the pool has dropped one of its columns as a duplicate."""
    positions = None if start is None else pool.positions_of(start)
    if positions is None:
        return
    log_loss = pool.log_loss(positions)
    if log_loss < np.inf:
        incumbent.offer(positions, log_loss, "start")
