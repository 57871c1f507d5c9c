"""Local search among the columns that isometry pursuit selects, as in the paper."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isopursuit.clock import Clock
from isopursuit.errors import RangeError
from isopursuit.pursuit.programs import isometry_pursuit
from isopursuit.search._swap import SwapKernel
from isopursuit.search.driver import run_inner
from isopursuit.search.incumbent import Incumbent, StopReason
from isopursuit.search.pool import ArrayPool, Pool
from isopursuit.search.proof.prover import can_bound
from isopursuit.search.settings import PRUNED_SHARE, PURSUIT_ROWS, PURSUIT_WORK, QUICK_STARTS
from isopursuit.search.stages.local import LocalSearch
from isopursuit.search.swaps import include_first, swap_descent


@dataclass(frozen=True)
class PursuitPruned:
    """Local search among the columns that isometry pursuit keeps, then swaps with all columns."""

    kicks: int
    share: float = 1.0

    def applies(self, pool: Pool, incumbent: Incumbent) -> bool:
        """If the columns are in memory at one point, and the pursuit does not take long."""
        small = pool.count * pool.rows**2 <= PURSUIT_WORK and pool.rows <= PURSUIT_ROWS
        return isinstance(pool, ArrayPool) and pool.points == 1 and small and can_bound(pool, incumbent)

    def run(self, pool: Pool, incumbent: Incumbent, clock: Clock) -> StopReason | None:
        """Offer the subset at the end of the swaps."""
        assert isinstance(pool, ArrayPool)
        X = pool.X[0]
        try:
            pursuit = isometry_pursuit(X, pool.c, k=pool.k, time_limit=clock.part(PRUNED_SHARE).remaining_limit)
        except RangeError:
            return None  # normalized lengths overflow float64
        if pool.k < pool.rows and not pursuit.prunes:
            return None
        most = pool.k * (pool.k + 1) // 2
        support = pursuit.tied if len(pursuit.tied) <= most else pursuit.support
        some = np.union1d(support, pool.include).astype(np.intp)
        pruned = pool.among(some)
        if np.linalg.matrix_rank(pruned.X[0]) < pool.k:
            return None
        best = incumbent.inside(incumbent.ideal)
        local = LocalSearch(QUICK_STARTS, self.kicks, np.random.default_rng(0))
        run_inner([local], pruned, best, clock.part(PRUNED_SHARE))
        kernel = SwapKernel(np.ascontiguousarray(X.T), pool.c, clock.deadline, pool.k)
        free = range(len(pool.include), pool.k)
        subset, loss = swap_descent(kernel, include_first(pool.include, some[best.subset]), free, clock)
        incumbent.offer(subset, loss, "isometry pursuit")
        incumbent.evaluations += best.evaluations
        incumbent.seen = tuple(dict.fromkeys((*incumbent.seen, *some[list(best.seen)].tolist())))
        return StopReason.INTERRUPTED if best.stop is StopReason.INTERRUPTED else None
