"""First answers: subsets that are found in milliseconds, and the descent from the best of them.

Pivoted QR picks the column farthest from the span of those before it. Applied to the columns as they are, it favours
long ones. Applied to columns scaled to one length, it is the greedy search of a determinantal point process. Applied to
columns after the paper's normalization, which makes columns of length 1 longest, it favours lengths near 1. Which of
the three is best depends on the data, so all of them are tried.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isopursuit.clock import Clock
from isopursuit.normalize import normalize
from isopursuit.rank import unit_columns
from isopursuit.search.incumbent import Incumbent, StopReason
from isopursuit.search.pool import Pool
from isopursuit.search.settings import FIRST_ANSWER_SHARE, QR_SPEED
from isopursuit.search.swaps import Subset, include_first, swap_descent, swap_kernel
from isopursuit.search.volume import greedy_volume, grow_volume, pivoted_qr

STARTS = 3  # number of pivoted QRs (derived: the three scalings above)


@dataclass(frozen=True)
class FirstAnswers:
    """Pivoted QRs of one matrix in memory; the best of them is improved for the volume, then for the loss."""

    share: float = FIRST_ANSWER_SHARE

    def applies(self, pool: Pool, incumbent: Incumbent) -> bool:
        """If the columns are in memory, at one point."""
        return pool.X is not None and pool.points == 1

    def run(self, pool: Pool, incumbent: Incumbent, clock: Clock) -> StopReason | None:
        """Offer each subset as soon as it is known."""
        assert pool.X is not None
        X, fixed = pool.X[0], len(pool.include)
        # a pivoted QR takes 4 D² P multiplications and additions; the Cholesky factor of k columns takes fewer
        if STARTS * 4 * X.size * pool.k / QR_SPEED > clock.remaining:
            return None
        whole = fixed == 0 and pool.k == pool.rows
        best, lowest = np.zeros(0, np.int32), np.inf
        for columns in (X, normalize(X, pool.c, "symmetric")[0], unit_columns(X)):
            far_apart = pivoted_qr(columns, pool.k) if whole else greedy_volume(columns, pool.include, pool.k)
            subset = include_first(pool.include, far_apart)
            loss = pool.log_loss(subset.astype(np.intp))
            if loss < lowest:
                best, lowest = subset, loss
                if _offer(incumbent, subset, loss, "pivoted QR"):
                    return StopReason.INTERRUPTED
        if lowest == np.inf or fixed == pool.k:
            return None
        larger = grow_volume(X, best, fixed, clock)
        loss = pool.log_loss(larger.astype(np.intp))
        if loss < lowest:
            best = larger
            if _offer(incumbent, larger, loss, "maxvol"):
                return StopReason.INTERRUPTED
        kernel = swap_kernel(np.ascontiguousarray(X.T)[None], pool.c, deadline=clock.deadline, most=pool.k)
        best, loss = swap_descent(kernel, best, range(fixed, pool.k), clock)
        incumbent.evaluations += 1
        return StopReason.INTERRUPTED if _offer(incumbent, best, loss, "swaps") else None


def _offer(incumbent: Incumbent, subset: Subset, log_loss: float, found_by: str) -> bool:
    """Offer a subset to the incumbent; returns whether the caller wants to stop."""
    incumbent.offer(subset, log_loss, found_by)
    return incumbent.report()
