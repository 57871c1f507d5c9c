"""Exchange pairs of columns, and search the columns of the best subsets exactly; repeat while the loss falls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from isopursuit._types import Array, Indices
from isopursuit.clock import Clock
from isopursuit.search._swap import SwapKernel
from isopursuit.search.driver import Stage, run_inner
from isopursuit.search.incumbent import Incumbent, StopReason
from isopursuit.search.pool import ArrayPool, Pool
from isopursuit.search.proof.budgets import NO_LIMIT
from isopursuit.search.proof.prover import can_bound
from isopursuit.search.proof.tree import NODE_EFFORT, node_kernel
from isopursuit.search.settings import MIN_DECREASE, RECOMBINED
from isopursuit.search.swaps import UNLIMITED, Subset, include_first, swap_descent

WORTHWHILE = 1e-9  # least decrease of the log-loss for another round (chosen: the precision of "optimal")


@dataclass(frozen=True)
class Recombine:
    """Exchange pairs (if `pairs`), run the stages `inner` on the columns of the best subsets, then the stages `outer`
    on all columns if they have not seen the subset. Repeat while the loss falls.
    """

    pairs: bool
    inner: Sequence[Stage]
    outer: Sequence[Stage]
    share: float = 1.0

    def applies(self, pool: Pool, incumbent: Incumbent) -> bool:
        """If the columns are in memory at one point, and the loss can be bounded."""
        return isinstance(pool, ArrayPool) and pool.points == 1 and can_bound(pool, incumbent)

    def run(self, pool: Pool, incumbent: Incumbent, clock: Clock) -> StopReason | None:
        """Offer better subsets to the incumbent."""
        assert isinstance(pool, ArrayPool)
        columns = np.ascontiguousarray(pool.X[0].T)
        kernel = SwapKernel(columns, pool.c, clock.deadline, pool.k)
        free = range(len(pool.include), pool.k)
        before, tried = np.inf, incumbent.log_loss if self.outer else -np.inf
        while incumbent.log_loss < before - WORTHWHILE and not clock.expired:
            before = incumbent.log_loss
            if self.pairs:
                start = include_first(pool.include, incumbent.subset)
                incumbent.offer(*pair_descent(columns, pool.c, start, len(pool.include), clock), "pairs")
            if self._recombine(pool, incumbent, clock) is StopReason.INTERRUPTED:
                return StopReason.INTERRUPTED
            start = include_first(pool.include, incumbent.subset)
            incumbent.offer(*swap_descent(kernel, start, free, clock), "swaps")
            if incumbent.log_loss < tried - WORTHWHILE:
                tried = incumbent.log_loss
                run_inner(self.outer, pool, incumbent, clock)
            if incumbent.closed or incumbent.stop is not None:
                break
        return incumbent.stop

    def _recombine(self, pool: ArrayPool, incumbent: Incumbent, clock: Clock) -> StopReason | None:
        """Search the columns of the best subsets; returns why that search ended."""
        some: Indices = np.union1d(incumbent.seen[:RECOMBINED], incumbent.subset).astype(np.intp)
        among = incumbent.inside(incumbent.ideal)
        among.offer(np.searchsorted(some, incumbent.subset), incumbent.log_loss, incumbent.found_by)
        try:
            run_inner(self.inner, pool.among(some), among, clock)
        finally:
            incumbent.offer(some[among.subset], among.log_loss, "recombination")
            incumbent.least = min(incumbent.least, among.least)
        return among.stop


def pair_descent(
    columns: Array, c: float, subset: Subset, fixed: int, clock: Clock = UNLIMITED
) -> tuple[Subset, float]:
    """Replace two columns of the subset at once by the best pair of `columns` (P, D), until no pair improves it.

    The first `fixed` ones stay. The search for a pair is a node of the exact search at which two columns are missing,
    and the same kernel closes it.
    """
    swaps = SwapKernel(columns, c, clock.deadline, len(subset))
    loss = swaps.loss(subset)
    kernel = node_kernel(columns, len(subset), c, math.exp(loss))
    pairs = list(combinations(range(fixed, len(subset)), 2))
    unchanged = turn = 0
    while unchanged < len(pairs) and not clock.expired:
        others = np.delete(subset, pairs[turn % len(pairs)])
        candidates = np.setdiff1d(np.arange(len(columns), dtype=np.int32), others)
        weights = np.isin(candidates, subset).astype(np.float32)
        leaf = kernel.process(others, candidates, weights, 1, *NODE_EFFORT, NO_LIMIT).leaf
        turn += 1
        unchanged += 1
        if leaf is None:
            continue
        trial = include_first(subset[:fixed].astype(np.intp), leaf)
        trial, value = swap_descent(swaps, trial, range(fixed, len(subset)), clock)
        if value < loss - MIN_DECREASE:
            subset, loss, unchanged = trial, value, 0
            kernel.incumbent = math.exp(loss)
    return subset, loss
