"""The paper's brute-force search: evaluate every subset. Tests of small problems compare other searches with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, islice
from math import comb
from typing import Any

import numpy as np

from isopursuit._types import AggregateOption, Array, Label, Status, Unit
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

BATCH = 8192  # most subsets evaluated at once; fewer if they are large (guess)
ENTRIES = 2**20  # most entries of all matrices evaluated at once (derived: 8 MB)


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
    """Brute-force search (the paper's BruteSearch): try all subsets.

    Parameters
    ----------
    X, c, k, unit, aggregate, objective, include, exclude, labels
        As in `greedy_search`.
    budget : int
        The largest number of subsets to try; if there are more, `BudgetError` is raised.
    time_limit : float, optional
        Seconds after which the best subset so far is returned, with status "time" and the trivial bound. Default: None,
        no limit.
    callback, progress
        As in `exact_search`; `nodes` counts the subsets tried so far, and `open_nodes` the remaining ones.

    Returns
    -------
    Search
        Proved optimal, unless the time limit, a callback or Ctrl-C ended the search. Ties go to the first subset in
        lexicographic order.

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
            "can prove the same answer."
        )
    given = Given(X, exclude, labels).in_unit(unit, k, in_memory=True)
    together = as_aggregate(aggregate)
    pool = as_array_pool(given.X, as_exponent(c), include, given.exclude, given.labels, k).with_aggregate(together)
    goal = as_objective(objective, c, together)
    count = comb(pool.count - len(pool.include), pool.missing)
    if count > budget:
        raise BudgetError(
            f"Brute force would try {count:,} subsets of {pool.missing} out of {pool.count - len(pool.include)} "
            f"columns, more than the budget of {budget:,}. Use exact_search, which proves the same answer much faster, "
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

    def stopped(status: Status) -> Search:
        return pool.answer(SearchOutcome(subset, status, tried), objective, "brute")

    try:
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
            left = count - tried
            if report is not None:
                loss, bound = objective.loss(best[0]), pool.ideal if objective.name == "isometry" else -np.inf
                gap = (loss - bound) / abs(loss) if loss and np.isfinite(loss) else np.inf
                now = SearchProgress(clock.seconds, loss, bound, gap, tried, left, pool.to_caller(subset))
                if report(now) and left:
                    return stopped("interrupted")
            if left and clock.expired:
                return stopped("time")
    except KeyboardInterrupt:  # also from the callback
        if len(subset) == 0:
            raise
        if tried < count:
            return stopped("interrupted")
    # a subset of larger loss may be the best one if the difference is within rounding
    decided = objective.least is None or not best[0] - least > STATED
    bound = None if decided else objective.loss(least)
    return pool.answer(SearchOutcome(subset, "optimal" if decided else "precision", count, bound), objective, "brute")
