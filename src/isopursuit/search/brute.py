"""The paper's brute-force search: evaluate every subset. The oracle for everything else, on small problems."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, islice
from math import comb
from typing import Any

import numpy as np

from isopursuit._types import AggregateOption, Array, Label, Unit
from isopursuit.aggregate import as_aggregate
from isopursuit.clock import Clock
from isopursuit.errors import BudgetError, ParameterError
from isopursuit.loss.penalty import STATED
from isopursuit.parameters import as_exponent
from isopursuit.progress import shown
from isopursuit.results import Search
from isopursuit.search.incumbent import Callback, SearchOutcome, SearchProgress
from isopursuit.search.inputs import Given, as_array_pool
from isopursuit.search.objective import Objective, as_objective, lowest
from isopursuit.search.pool import ArrayPool
from isopursuit.search.settings import TIE
from isopursuit.sources.columns import is_source
from isopursuit.threads import on_one_blas_thread

BATCH = 8192  # subsets evaluated at once, fewer where they are large (guess)
ENTRIES = 2**20  # of all matrices evaluated at once: 8 MB


@on_one_blas_thread
def brute_search(
    X: Any,
    c: float = 1.0,
    *,
    k: int | None = None,
    unit: Unit = None,
    aggregate: AggregateOption = "sum",
    objective: str | Callable[[Array], float] = "isometry",
    budget: int = 2_000_000,
    include: Iterable[Any] | None = None,
    exclude: Iterable[Any] | None = None,
    labels: Sequence[Label] | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
) -> Search:
    """Brute-force search (the paper's BruteSearch): the best subset by trying them all.

    Parameters
    ----------
    X, c, k, unit, aggregate, objective, include, exclude, labels
        As in `greedy_search`.
    budget : int
        The most subsets to try; more are refused with the count.
    time_limit : float, optional
        Seconds after which the best subset so far is returned, with status "time" and the trivial bound.
    callback, progress
        As in `exact_search`; `nodes` are the subsets that were tried, `open_nodes` those that are left.

    Returns
    -------
    Search
        Proved optimal, unless time was over. Of equal subsets the first in lexicographic order.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0, 0.7, 3.0], [0.0, 1.0, 0.7, 0.0]])
    >>> brute_search(X).optimal
    True
    """
    clock = Clock.of(time_limit)
    if is_source(X) and not isinstance(X, np.memmap):
        raise ParameterError(
            "Brute force needs a matrix in memory: a source has too many subsets to try. Use exact_search, which "
            "proves the same answer where it can."
        )
    given = Given(X, exclude, labels).in_unit(unit, k, in_memory=True)
    together = as_aggregate(aggregate)
    pool = as_array_pool(given.X, as_exponent(c), include, given.exclude, given.labels, k).with_aggregate(together)
    goal = as_objective(objective, c, together)
    count = comb(pool.count - len(pool.include), pool.missing)
    if count > budget:
        raise BudgetError(
            f"Brute force would try {count:,} subsets of {pool.missing} out of {pool.count - len(pool.include)} "
            f"columns, more than the budget of {budget:,}. Use exact_search, which proves the same answer far sooner, "
            "or raise budget=."
        )
    with shown(progress, callback, lambda now: now.line(time_limit, "brute")) as report:
        return brute(pool, goal, clock, report)


def brute(pool: ArrayPool, objective: Objective, clock: Clock, report: Callback | None = None) -> Search:
    """`brute_search` on a pool."""
    pool = pool.reduced()
    free = np.setdiff1d(np.arange(pool.count), pool.include).tolist()
    count, subsets = comb(len(free), pool.missing), combinations(free, pool.missing)
    n = pool.points
    size = max(1, min(BATCH // n, ENTRIES // (n * pool.rows * pool.k)))
    best: tuple[float, list[int]] = (np.inf, [])
    subset, least, tried = np.zeros(0, np.intp), np.inf, 0
    while batch := list(islice(subsets, size)):
        picked = np.array([(*pool.include, *rest) for rest in batch], dtype=np.intp)
        stack = np.moveaxis(pool.X[:, :, picked], 2, 0)
        scores = objective.total(stack)
        if objective.least is not None:
            least = min(least, float(objective.add(objective.least(stack)).min()))
        i = lowest(scores)
        if best[0] == np.inf or scores[i] < best[0] - TIE * max(abs(best[0]), 1.0):
            best = (float(scores[i]), picked[i].tolist())
        tried += len(batch)
        subset = np.array(best[1], dtype=np.intp)
        left, loss = count - tried, objective.loss(best[0])
        bound = pool.ideal if objective.name == "isometry" else -np.inf
        now = SearchProgress(
            clock.seconds, loss, bound, (loss - bound) / abs(loss), tried, left, pool.to_caller(subset)
        )
        stopped = report is not None and report(now)
        if left and (stopped or clock.expired):
            return pool.answer(SearchOutcome(subset, "interrupted" if stopped else "time", tried), objective, "brute")
    # a subset of larger loss may be the best one, if rounding explains the difference
    decided = objective.least is None or not best[0] - least > STATED
    bound = None if decided else objective.loss(least)
    return pool.answer(SearchOutcome(subset, "optimal" if decided else "precision", count, bound), objective, "brute")
