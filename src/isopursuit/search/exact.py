"""Exact search: the best subset of all with a proof, or a subset with a gap.

It starts with swaps and a few kicks, as exchange search does (`improve`). Then the proof follows (`Prove`); at many
points `JointTree` gives it. Brute force solves small arrays. For a source, the proof loads at most
`memory` bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import comb
from typing import Any

import numpy as np

from isopursuit._types import AggregateOption, Indices, Label, Unit
from isopursuit.aggregate import as_aggregate
from isopursuit.clock import Clock
from isopursuit.errors import ParameterError, RangeError
from isopursuit.loss.penalty import LARGEST_EXPONENT, LARGEST_LOG, SMALLEST_EXPONENT, to_loss
from isopursuit.parameters import as_count, as_exponent, as_gap
from isopursuit.progress import shown
from isopursuit.pursuit.settings import MEMORY
from isopursuit.results import Search
from isopursuit.search.brute import brute
from isopursuit.search.exchange import Effort, improve, in_callers_columns, offer_start
from isopursuit.search.incumbent import Callback, Incumbent, StopReason
from isopursuit.search.inputs import Given, as_pool
from isopursuit.search.objective import as_objective
from isopursuit.search.pool import ArrayPool
from isopursuit.search.proof.joint import JointTree
from isopursuit.search.proof.prover import Prove
from isopursuit.search.settings import EXACT_KICKS, FEW_SUBSETS, SLOW_KICKS, SLOW_STARTS, START_SHARE, STARTS
from isopursuit.search.source_pool import SourcePool
from isopursuit.threads import on_one_blas_thread, worker_count


@dataclass(frozen=True)
class ExactSettings:
    """Options of an exact search.

    `start` is a subset, in the caller's numbers; the answer is at least as good.
    """

    gap: float = 0.0
    node_limit: int | None = None
    workers: int = 1
    callback: Callback | None = None
    memory: int = MEMORY
    start: Indices | None = None


@on_one_blas_thread
def exact_search(
    X: Any,
    c: float = 1.0,
    *,
    k: int | None = None,
    unit: Unit = None,
    aggregate: AggregateOption = "sum",
    time_limit: float | None = None,
    gap: float = 0.0,
    node_limit: int | None = None,
    workers: int | None = None,
    callback: Callback | None = None,
    progress: bool = False,
    include: Iterable[Any] | None = None,
    exclude: Iterable[Any] | None = None,
    labels: Sequence[Label] | None = None,
    memory: int = MEMORY,
) -> Search:
    """Find the k columns of least isometry loss, with a proof.

    The search starts with descents, as in `exchange_search`. Then cuts exclude columns that no better subset contains,
    and targets that rise from k are proved to be out of reach. When this makes no more progress, best-first branch and
    bound on a convex relaxation of the loss continues.

    At many points that share one selection, pairs of columns are bounded first, and then the sets all of whose pairs
    can be in a better subset. Expect a proof for D up to 6 and about a hundred columns. For a source (`as_source`),
    passes exclude columns, and the remaining ones are searched in memory; if they do not fit, the status is "memory".

    Parameters
    ----------
    X, c, k, unit, aggregate, include, exclude, labels
        As in `greedy_search`.
    time_limit : float, optional
        Seconds after which the best subset so far is returned, with its bound and status "time". Default: None. Without
        a limit the search continues until it has a proof, which can take days; Ctrl-C returns the best subset so far.
    gap : float
        Stop once the subset is proved to be within this relative distance of the best, with status "gap".
    node_limit : int, optional
        Stop after this many nodes of the tree, with status "nodes". Without a time limit this is reproducible for any
        number of workers, except for rounding.
    workers : int, optional
        Number of threads. Default: one per processor.
    callback : callable, optional
        Called with a `SearchProgress` about ten times a second and whenever the loss falls. Return True to stop with
        status "interrupted".
    progress : bool
        Whether to show the state of the search on the error stream, as in `select`.
    memory : int
        For a source: the most bytes of loaded columns.

    Returns
    -------
    Search
        Status "optimal" means proved within a relative 1e-9. "precision" means that float64 cannot decide, because the
        remaining subsets are badly conditioned. Ctrl-C does not raise: it returns the best subset so far with its bound
        and status "interrupted". If columns are equal up to sign, the first is picked.

    Raises
    ------
    RangeError
        The best loss known is too large for bounds in float64 (large c).

    Examples
    --------
    >>> from isopursuit.datasets import load_iris
    >>> found = exact_search(load_iris().matrix())
    >>> found.status, round(found.loss, 4)
    ('optimal', 5.7485)
    """
    c, gap, clock = as_exponent(c), as_gap(gap), Clock.of(time_limit)
    node_limit = None if node_limit is None else as_count(node_limit, 1, "node_limit")
    settings = ExactSettings(gap, node_limit, worker_count(workers), memory=memory)
    if not SMALLEST_EXPONENT <= c <= LARGEST_EXPONENT:
        raise ParameterError(
            f"c={c:g}: bounds of the exact search are verified for c from {SMALLEST_EXPONENT} to {LARGEST_EXPONENT}. "
            "Use exchange_search for other c."
        )
    given = Given(X, exclude, labels).in_unit(unit, k)
    pool = as_pool(given.X, c, include, given.exclude, given.labels, clock, k)
    with shown(progress, callback, lambda now: now.line(time_limit, "exact")) as report:
        return exact(pool.with_aggregate(as_aggregate(aggregate)), replace(settings, callback=report), clock)


def exact(pool: ArrayPool | SourcePool, settings: ExactSettings, clock: Clock) -> Search:
    """`exact_search` on a pool."""
    objective = as_objective("isometry", pool.c, pool.aggregate)
    if isinstance(pool, ArrayPool):
        if pool.points * comb(pool.count - len(pool.include), pool.missing) <= FEW_SUBSETS:
            return replace(brute(pool, objective, clock, _without_nodes(settings.callback)), method="exact")
        pool = pool.distinct(clock)
    incumbent = Incumbent(pool.ideal, settings.gap, clock, in_callers_columns(pool, settings.callback))
    offer_start(pool, incumbent, settings.start)
    start = clock.part(START_SHARE)
    with incumbent.ended_by_caller():
        incumbent.stop = _start(pool, incumbent, settings.memory, incumbent.reporting(start))
    if incumbent.stop in (None, StopReason.TIME):
        # a subset whose loss is too large for a proof is an answer, where more time may give a better one
        late = clock.expired if incumbent.log_loss < LARGEST_LOG else start.expired
        incumbent.stop = StopReason.TIME if late else None
    if not incumbent.closed and incumbent.stop is None:
        _check_range(pool, incumbent)
        if not objective.resolves(pool.at_points(incumbent.subset)):
            incumbent.stop = StopReason.PRECISION
    with incumbent.ended_by_caller():
        _prove(pool, incumbent, settings, incumbent.reporting(clock))
    subset = pool.at_points(incumbent.subset)
    if incumbent.closed and not objective.resolves(subset):  # it may have been found beside the proof
        incumbent.least = min(incumbent.least, to_loss(objective.least_score(subset)))
    with suppress(KeyboardInterrupt):  # in the last call of the callback it has nothing left to end
        incumbent.report(at_once=True)
    return pool.answer(incumbent.found(), objective, "exact")


def _without_nodes(callback: Callback | None) -> Callback | None:
    """The callback of an exact search for brute force, which has no nodes."""
    return None if callback is None else lambda now: callback(replace(now, nodes=0, open_nodes=0))


def _start(pool: ArrayPool | SourcePool, incumbent: Incumbent, memory: int, clock: Clock) -> StopReason | None:
    """Search for a good subset before the proof, and longer if no subset was found whose loss can be bounded."""
    slow = pool.X is None or pool.points > 1
    effort = Effort(SLOW_STARTS if slow else STARTS, SLOW_KICKS if slow else EXACT_KICKS, memory=memory)
    stop = improve(pool, incumbent, clock, effort)
    if stop is None and not incumbent.log_loss < LARGEST_LOG:
        stop = improve(pool, incumbent, clock, replace(effort, starts=STARTS, kicks=EXACT_KICKS))
    return stop


def _prove(pool: ArrayPool | SourcePool, incumbent: Incumbent, settings: ExactSettings, clock: Clock) -> None:
    """The proof: of one matrix, or of many points."""
    for proof in (
        Prove(settings.node_limit, settings.workers, settings.memory),
        JointTree(settings.node_limit, settings.workers),
    ):
        if incumbent.closed or incumbent.stop is not None:
            return
        if clock.expired:
            incumbent.stop = StopReason.TIME
        elif proof.applies(pool, incumbent):
            incumbent.stop = proof.run(pool, incumbent, clock)


def _check_range(pool: ArrayPool | SourcePool, incumbent: Incumbent) -> None:
    if incumbent.log_loss < LARGEST_LOG:
        return
    scale = "unit='median', which makes the median length 1"
    if pool.X is not None:
        scale += f" (it is {float(np.median(np.linalg.norm(pool.X, axis=1))):.4g})"
    raise RangeError(
        f"The best loss known is e^{incumbent.log_loss:.4g}, outside the range in which bounds can be computed. Use "
        f"exchange_search, which compares logarithms, a smaller c, or {scale}."
    )
