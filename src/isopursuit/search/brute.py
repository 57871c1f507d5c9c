"""The paper's brute-force search: evaluate every subset. Tests of small problems compare other searches with it."""

from __future__ import annotations

from itertools import combinations, islice
from math import comb

import numpy as np

from isopursuit._core.types import Array, SearchMethod, Status
from isopursuit.errors import BudgetError
from isopursuit.loss.penalty import ROUNDING, STATED, to_loss
from isopursuit.results import Search
from isopursuit.search.incumbent import Limits, SearchOutcome, SearchProgress
from isopursuit.search.pool import Pool
from isopursuit.search.settings import ENTRIES


def brute(pool: Pool, limits: Limits, method: SearchMethod = "brute") -> Search:
    """`brute_search` on a pool. As a part of another `method` it has no nodes."""
    pool, clock, report = pool.reduced(), limits.clock, pool.translated(limits.callback)
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
    if pool.rules is not None:
        pool.first_allowed()  # raises an error if there is no subset to try
    size = max(1, ENTRIES // (pool.points * pool.rows * pool.k))
    best, least, tried = np.inf, np.inf, 0
    subset = np.zeros(0, np.intp)
    status: Status = "optimal"
    try:
        while batch := list(islice(subsets, size)):
            picked = np.array([(*pool.include, *rest) for rest in batch], dtype=np.intp)
            tried += len(batch)
            if pool.rules is not None:
                picked = picked[pool.rules.allow(picked)]
                if len(picked) == 0:
                    continue
            stack = np.moveaxis(X[:, :, picked], 2, 0)
            log_losses = pool.log_losses(stack)
            least = min(least, float(pool.least_log_losses(stack).min()))
            i = _lowest(log_losses)
            if best == np.inf or log_losses[i] < best - ROUNDING * max(abs(best), 1.0):
                best, subset = float(log_losses[i]), picked[i]
            if report is not None:
                loss = to_loss(best)
                gap = (loss - pool.ideal) / loss if np.isfinite(loss) else np.inf
                nodes = (tried, count - tried) if method == "brute" else (0, 0)
                if report(SearchProgress(clock.seconds, loss, pool.ideal, gap, *nodes, subset)) and tried < count:
                    status = "interrupted"
                    break
            if tried < count and clock.expired:
                status = "time"
                break
    except KeyboardInterrupt:  # also from the callback
        if len(subset) == 0:
            raise
        clock.pressed()
        status = "interrupted" if tried < count else "optimal"
    bound = None
    # a subset of larger loss may be the best one if the difference is within rounding
    if status == "optimal" and best - least > STATED:
        status, bound = "precision", to_loss(least)
    return pool.answer(SearchOutcome(subset, status, tried, bound), method)


def _lowest(log_losses: Array) -> int:
    """The first of the lowest log-losses, up to rounding."""
    least = float(log_losses.min())
    if not np.isfinite(least):
        return int(np.argmin(log_losses))
    return int(np.argmax(log_losses <= least + ROUNDING * max(abs(least), 1.0)))
