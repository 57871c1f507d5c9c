"""Exchange search: local search, over a source in rounds with swaps by passes, and bounds on the loss.

A few descents come first. If there are few columns, a short proof follows, which often ends the search; otherwise many
more kicks follow, and one bound of the relaxation over all columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from isopursuit._types import AggregateOption, Indices, Label, Unit
from isopursuit.aggregate import as_aggregate
from isopursuit.clock import Clock
from isopursuit.parameters import as_count, as_exponent
from isopursuit.progress import shown
from isopursuit.pursuit.settings import MEMORY
from isopursuit.results import Search
from isopursuit.search.greedy import greedy_subset
from isopursuit.search.incumbent import Callback, Incumbent, StopReason
from isopursuit.search.inputs import Given, as_pool
from isopursuit.search.local import local_search, offer_large_volume
from isopursuit.search.objective import as_objective
from isopursuit.search.pool import ArrayPool, Pool
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
from isopursuit.search.source_pool import SourcePool
from isopursuit.search.source_search import source_search
from isopursuit.threads import on_one_blas_thread, worker_count


@dataclass(frozen=True)
class Effort:
    """How much to try: starts and kicks of the local search, and whether to try `proofs` (with 0 kicks there are none).

    The search ends when its gap is at most `gap`, where `lower_bound` is a bound that is known before. `start` is a
    subset, in the caller's numbers; the answer is at least as good. `memory` is the most bytes of columns that a source
    may load.
    """

    starts: int = STARTS
    kicks: int = KICKS
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    memory: int = MEMORY
    gap: float = 0.0
    lower_bound: float = 0.0
    proofs: bool = True
    start: Indices | None = None
    callback: Callback | None = None


@on_one_blas_thread
def exchange_search(
    X: Any,
    c: float = 1.0,
    *,
    k: int | None = None,
    unit: Unit = None,
    aggregate: AggregateOption = "sum",
    starts: int = STARTS,
    kicks: int = KICKS,
    time_limit: float | None = None,
    rng: np.random.Generator | int | None = None,
    callback: Callback | None = None,
    progress: bool = False,
    include: Iterable[Any] | None = None,
    exclude: Iterable[Any] | None = None,
    labels: Sequence[Label] | None = None,
    memory: int = MEMORY,
) -> Search:
    """Find a subset by swaps and kicks; it is often the best of all.

    From several starts, single columns are swapped while the loss falls. The best subset is then kicked (a few columns
    are replaced) and improved again. If there are few columns, a short exact search follows the first kicks; if it
    proves the subset, the search ends with status "optimal". For a source, swaps with all columns follow the search
    among those that are loaded.

    Parameters
    ----------
    X, c, k, unit, aggregate, include, exclude, labels
        As in `greedy_search`.
    starts : int
        The number of starting subsets: one of large volume (pivoted QR), then random ones.
    kicks : int
        How often the best subset is kicked and improved again. With 0 there is no proof either.
    time_limit : float, optional
        Seconds after which the best subset so far is returned. Default: None. Without a limit the search ends after all
        starts and kicks.
    rng : numpy.random.Generator or int, optional
        The source of randomness for starts and kicks. By default the answer is always the same, for any order of the
        columns.
    callback, progress
        As in `exact_search`.
    memory : int
        For a source: the most bytes of loaded columns.

    Returns
    -------
    Search
        The lower bound is that of a short proof or of the relaxation, and at least the trivial one: no k columns have a
        loss below k. For a source, a note says whether passes have shown that no single swap with any of its columns
        improves the answer.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0, 0.7, 3.0], [0.0, 1.0, 0.7, 0.0]])
    >>> exchange_search(X).indices.tolist()
    [0, 1]
    """
    starts, kicks = as_count(starts, 1, "starts"), as_count(kicks, 0, "kicks")
    clock, c = Clock.of(time_limit), as_exponent(c)
    given = Given(X, exclude, labels).in_unit(unit, k)
    pool = as_pool(given.X, c, include, given.exclude, given.labels, clock, k)
    pool = pool.with_aggregate(as_aggregate(aggregate))
    rng = np.random.default_rng(0 if rng is None else rng)
    with shown(progress, callback, lambda now: now.line(time_limit, "exchange")) as report:
        return exchange(pool, Effort(starts, kicks, rng, memory, callback=report), clock)


def exchange(pool: ArrayPool | SourcePool, effort: Effort, clock: Clock) -> Search:
    """`exchange_search` on a pool."""
    if isinstance(pool, ArrayPool):
        pool = pool.distinct(clock)
    report = in_callers_columns(pool, effort.callback)
    incumbent = Incumbent(pool.ideal, effort.gap, clock, report, lower_bound=effort.lower_bound)
    offer_start(pool, incumbent, effort.start)
    with incumbent.ended_by_caller():
        incumbent.stop = _search(pool, incumbent, effort, incumbent.reporting(clock))
    found = incumbent.found()
    if found.status in ("time", "nodes", "memory"):
        found = replace(found, status="heuristic")
    if isinstance(pool, SourcePool):
        note = "no single swap with any column improves it: proved."
        if not (incumbent.swap_optimal or incumbent.proved):
            note = "whether a swap with some column improves it was not settled"
            note += "." if found.status == "interrupted" else ": more time or memory would settle it."
        found = replace(found, notes=(*found.notes, note))
    return pool.answer(found, as_objective("isometry", pool.c, pool.aggregate), "exchange")


def _search(pool: Pool, incumbent: Incumbent, effort: Effort, clock: Clock) -> StopReason | None:
    """Few kicks, a short proof, many kicks, and one bound; a proof or a callback can end the search after each."""
    proofs = effort.proofs and effort.kicks > 0
    if pool.X is None:
        # a source has several rounds of kicks
        stop = improve(pool, incumbent, clock, replace(effort, kicks=effort.kicks // SOURCE_ROUNDS))
    else:
        few = min(effort.starts, QUICK_STARTS), min(effort.kicks, QUICK_KICKS)
        stop = improve(pool, incumbent, clock, replace(effort, starts=few[0], kicks=few[1]))
        if stop is None and proofs and not incumbent.closed:
            stop = _short_proof(pool, incumbent, clock)
        if stop is None and not incumbent.closed:
            more = replace(effort, starts=effort.starts - few[0], kicks=effort.kicks - few[1])
            stop = improve(pool, incumbent, clock, more)
    bound = Prove(memory=effort.memory, root=True, short=True)
    if stop is None and proofs and not incumbent.closed and not clock.expired and bound.applies(pool, incumbent):
        stop = bound.run(pool, incumbent, clock)
    return stop


def improve(pool: Pool, incumbent: Incumbent, clock: Clock, effort: Effort) -> StopReason | None:
    """Improve the incumbent by swaps and kicks, without a proof. Returns a reason if a callback ends the search.

    The first start is the better one of a subset of large volume (in memory) and the greedy one (at one point).
    """
    if len(incumbent.subset) < pool.k:
        if pool.X is not None and offer_large_volume(pool, incumbent, clock):
            return StopReason.INTERRUPTED
        if pool.points == 1 and pool.missing > 1 and not (clock.expired and len(incumbent.subset)):
            subset, _ = greedy_subset(pool, pool.include, clock)
            incumbent.offer(subset, pool.log_loss(subset), "greedy")
    search = local_search if pool.X is not None else partial(source_search, memory=effort.memory)
    return search(pool, incumbent, clock, effort.rng, starts=effort.starts, kicks=effort.kicks)


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


def in_callers_columns(pool: ArrayPool | SourcePool, callback: Callback | None) -> Callback | None:
    """The callback with the caller's column numbers."""
    if callback is None:
        return None
    return lambda progress: callback(replace(progress, indices=pool.to_caller(progress.indices)))


def offer_start(pool: ArrayPool | SourcePool, incumbent: Incumbent, start: Indices | None) -> None:
    """Start from a subset in the caller's numbers, unless the pool has dropped one of its columns as a duplicate."""
    positions = None if start is None else pool.positions_of(start)
    if positions is None:
        return
    log_loss = pool.log_loss(positions)
    if log_loss < np.inf:
        incumbent.offer(positions, log_loss, "start")
