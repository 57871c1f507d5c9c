"""The paper's brute-force search: evaluate every subset. Tests of small problems compare other searches with it."""

from __future__ import annotations

from itertools import combinations, islice
from math import comb

import numpy as np

from isopursuit._core.types import Status
from isopursuit.errors import BudgetError
from isopursuit.loss.penalty import STATED
from isopursuit.results import Search
from isopursuit.search.incumbent import SearchOutcome, SearchProgress
from isopursuit.search.limits import Limits
from isopursuit.search.objective import lowest
from isopursuit.search.pool import Pool
from isopursuit.search.settings import TIE

BATCH = 8192  # most subsets evaluated at once; fewer if they are large (derived: as ENTRIES, for 8 × 16 matrices)
ENTRIES = 2**20  # most entries of all matrices evaluated at once (derived: 8 MB)


def brute(pool: Pool, limits: Limits) -> Search:
    """`brute_search` on a pool."""
    pool, objective, clock, report = pool.reduced(), pool.objective, limits.clock, pool.translated(limits.callback)
    X = pool.X
    assert X is not None
    free = np.setdiff1d(np.arange(pool.count), pool.include).tolist()
    count, subsets = comb(len(free), pool.missing), combinations(free, pool.missing)
    if count > limits.budget:
        raise BudgetError(
            f"Brute force would try {count:,} subsets of {pool.missing} out of {len(free)} columns, more than the "
            f"budget of {limits.budget:,}. Use exact_search, which proves the same answer much faster, or raise "
            "budget=."
        )
    n = pool.points
    size = max(1, min(BATCH // n, ENTRIES // (n * pool.rows * pool.k)))
    best: tuple[float, list[int]] = (np.inf, [])
    subset, least, tried = np.zeros(0, np.intp), np.inf, 0

    def stopped(status: Status) -> Search:
        return pool.answer(SearchOutcome(subset, status, tried), "brute")

    try:
        while batch := list(islice(subsets, size)):
            picked = np.array([(*pool.include, *rest) for rest in batch], dtype=np.intp)
            stack = np.moveaxis(X[:, :, picked], 2, 0)
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
                now = SearchProgress(clock.seconds, loss, bound, gap, tried, left, subset)
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
    return pool.answer(SearchOutcome(subset, "optimal" if decided else "precision", count, bound), "brute")
