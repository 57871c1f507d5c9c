"""Exchange search: swaps, kicks, exchanges of pairs, then exact search among the columns of the best subsets.

`search_stages` is the schedule; at many points and for a source, exact search starts with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from isopursuit._types import AggregateOption, Indices, Label, Unit
from isopursuit.aggregate import as_aggregate
from isopursuit.clock import Clock
from isopursuit.parameters import as_count, as_exponent
from isopursuit.progress import shown
from isopursuit.pursuit.settings import MEMORY
from isopursuit.results import Search
from isopursuit.search.driver import Stage, run
from isopursuit.search.incumbent import Callback, Incumbent
from isopursuit.search.inputs import Given, as_pool
from isopursuit.search.objective import as_objective
from isopursuit.search.pool import ArrayPool, Pool
from isopursuit.search.proof.joint import JointTree
from isopursuit.search.proof.prover import Prove
from isopursuit.search.settings import (
    EXACT_KICKS,
    EXACT_STARTS,
    FIRST_PROOF_SHARE,
    JOINT_KICKS,
    JOINT_PROOF_NODES,
    JOINT_STARTS,
    MANY_COLUMNS,
    MANY_SHARE,
    QUICK_KICKS,
    QUICK_STARTS,
    SHORT_PROOF_NODES,
    SHORT_PROOF_WORK,
    SWAP_SHARE,
    short_proof_nodes,
)
from isopursuit.search.source_pool import SourcePool
from isopursuit.search.stages.first import FirstAnswers
from isopursuit.search.stages.improve import ParallelSearch
from isopursuit.search.stages.local import LocalSearch
from isopursuit.search.stages.pairs import PairPasses
from isopursuit.search.stages.pruned import PursuitPruned
from isopursuit.search.stages.source import GreedyPasses, SwapPasses
from isopursuit.search.stages.volumes import VolumePasses
from isopursuit.threads import on_one_blas_thread, worker_count


@dataclass(frozen=True)
class Effort:
    """How much to try: starts and kicks of local searches, and nodes of short proofs (0 for no proofs).

    The search ends when its gap is at most `gap`, where `lower_bound` is a bound that is known before. `first` says
    whether to begin with a few descents, `prune` whether to use isometry pursuit, and `bound` whether to bound the loss
    over all columns at the end if short proofs have not. `start` is a subset, in the caller's numbers; the answer is at
    least as good. `parallel` says whether kicks run on two threads.
    """

    starts: int
    kicks: int
    rng: np.random.Generator
    proof_nodes: int
    workers: int = 1
    memory: int = MEMORY
    gap: float = 0.0
    lower_bound: float = 0.0
    first: bool = True
    prune: bool = True
    bound: bool = False
    parallel: bool = False
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
    starts: int = 6,
    kicks: int = 300,
    time_limit: float | None = None,
    rng: np.random.Generator | int | None = None,
    callback: Callback | None = None,
    progress: bool = False,
    include: Iterable[Any] | None = None,
    exclude: Iterable[Any] | None = None,
    labels: Sequence[Label] | None = None,
    memory: int = MEMORY,
) -> Search:
    """Find a subset by swaps, kicks and, if there are few columns, exchanges of pairs; it is often the best of all.

    From several starts, single columns are swapped while the loss falls. The best subset is then kicked (a few columns
    are replaced) and improved again. If there are few columns, a short exact search follows; if it proves the subset,
    the search ends with status "optimal". Otherwise the columns that isometry pursuit keeps are searched, as in the
    paper, and many more kicks follow on two threads (at many points only kicks, on one). Then, if there are few
    columns, every pair is exchanged for the best other pair. A short exact search runs last, among the columns of the
    best subsets, or among all columns if there are few.

    Parameters
    ----------
    X, c, k, unit, aggregate, include, exclude, labels
        As in `greedy_search`.
    starts : int
        The number of starting subsets: the greedy one, one of locally largest volume (the best of a few pivoted QRs,
        then maxvol), then random ones.
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
        The lower bound is the one that short proofs reached, and at least the trivial one: no k columns have a loss
        below k. For a source, a note says whether passes have shown that no single swap with any of its columns
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
    effort = replace(default_effort(pool, kicks=kicks), starts=starts, rng=rng, memory=memory)
    with shown(progress, callback, lambda now: now.line(time_limit, "exchange")) as report:
        return exchange(pool, replace(effort, callback=report), clock)


def default_effort(
    pool: ArrayPool | SourcePool,
    start: Indices | None = None,
    callback: Callback | None = None,
    kicks: int = EXACT_KICKS,
) -> Effort:
    """The default effort of `exchange_search`, from the subset `start`."""
    kicks = kicks if isinstance(pool, ArrayPool) else kicks // 3  # a source has several rounds of them
    nodes = short_proof_nodes(SHORT_PROOF_NODES, pool.k)
    rng = np.random.default_rng(0)
    workers = worker_count(None)
    return Effort(EXACT_STARTS, kicks, rng, nodes, workers, bound=True, parallel=True, start=start, callback=callback)


def exchange(pool: ArrayPool | SourcePool, effort: Effort, clock: Clock) -> Search:
    """`exchange_search` on a pool."""
    if isinstance(pool, ArrayPool):
        pool = pool.distinct(clock)
    report = in_callers_columns(pool, effort.callback)
    incumbent = Incumbent(pool.ideal, effort.gap, clock, report, lower_bound=effort.lower_bound)
    offer_start(pool, incumbent, effort.start)
    run(search_stages(pool, effort), pool, incumbent, incumbent.reporting(clock))
    found = incumbent.found()
    if found.status in ("time", "nodes", "memory"):
        found = replace(found, status="heuristic")
    if isinstance(pool, SourcePool):
        note = "no single swap with any column improves it: proved."
        if not (incumbent.swap_optimal or incumbent.proved):
            note = "whether a swap with some column improves it was not settled: more time or memory would settle it."
        found = replace(found, notes=(*found.notes, note))
    return pool.answer(found, as_objective("isometry", pool.c, pool.aggregate), "exchange")


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


def search_stages(pool: Pool, effort: Effort) -> list[Stage]:
    """Descents and a short proof; if that fails, isometry pursuit, many kicks, and recombination with short proofs.

    Without kicks there is no proof either. A stage that does not apply to the pool is skipped.
    """
    starts, kicks, rng = effort.starts, effort.kicks, effort.rng
    root = [Prove(memory=effort.memory, root=True, short=True)] if kicks and effort.bound else []
    share = SWAP_SHARE if pool.k <= MANY_COLUMNS else MANY_SHARE
    if pool.X is None:
        # if one column is missing, the greedy pass tries all subsets and may take the time of all stages
        greedy = GreedyPasses() if pool.missing > 1 else GreedyPasses(share=1.0)
        volumes = VolumePasses(max(starts - 2, 0), rng, effort.memory)
        more = [replace(volumes, starts=2 * starts, again=True)] if kicks else []
        swaps = SwapPasses(starts, kicks, rng, effort.memory)
        return [PairPasses(effort.memory), volumes, greedy, swaps, *more, *root]
    if pool.points > 1:
        first = min(starts, JOINT_STARTS), min(kicks, JOINT_KICKS)
        begin: list[Stage] = [LocalSearch(*first, rng)]
        if (starts, kicks) == first:
            return begin
        proof = [JointTree(JOINT_PROOF_NODES, share=FIRST_PROOF_SHARE)]
        more = LocalSearch(starts - first[0], kicks - first[1], rng, resume=True)
        return [*begin, *(proof if kicks and effort.bound else []), more]
    if kicks == 0:
        return [LocalSearch(starts, kicks, rng)]
    quick, few = (min(starts, QUICK_STARTS), min(kicks, QUICK_KICKS)), _few(pool)
    proof = [Prove(effort.proof_nodes, effort.workers, short=True)] if few and effort.proof_nodes else []
    return [
        *([FirstAnswers(), LocalSearch(*quick, rng, share=share)] if effort.first else []),
        *(replace(one, share=FIRST_PROOF_SHARE) for one in proof),
        *better_stages(pool, effort, proof),
        *root,
    ]


def better_stages(pool: Pool, effort: Effort, proof: Sequence[Stage] = ()) -> list[Stage]:
    """The stages after the first descents at one point in memory: isometry pursuit, many kicks, and recombination."""
    share = SWAP_SHARE if pool.k <= MANY_COLUMNS else MANY_SHARE
    starts, kicks = max(effort.starts - QUICK_STARTS, 0), max(effort.kicks - QUICK_KICKS, 0)
    more: Stage = LocalSearch(starts, kicks, effort.rng, share=share, resume=True)
    if effort.parallel:
        more = ParallelSearch(starts, kicks, effort.rng, share=share)
    return [
        *([PursuitPruned(effort.kicks // 3)] if effort.prune else []),
        more,
    ]


def _few(pool: Pool) -> bool:
    """Whether there are so few columns that short proofs and exchanges of pairs are worthwhile."""
    return pool.count * pool.rows**2 <= SHORT_PROOF_WORK
