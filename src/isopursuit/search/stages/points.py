"""At many points: a first search among few columns, and a bound on the loss at each point from a search there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isopursuit.clock import Clock
from isopursuit.loss.penalty import LARGEST_LOG, log_penalty, log_spectral_loss, to_loss
from isopursuit.rank import spectrum
from isopursuit.search.driver import Stage, run_inner
from isopursuit.search.incumbent import Incumbent, StopReason
from isopursuit.search.pool import ArrayPool, Pool
from isopursuit.search.proof.joint import CLOSED
from isopursuit.search.settings import POINT_SHARE

SAMPLED = 500  # number of columns, those of the lowest single losses, that are searched first (guess)
SAMPLED_FROM = 4 * SAMPLED  # columns from which on that is done: the search of all takes much longer (guess)
TRIED, WORTH = 4, 0.1  # stop after TRIED points if bounds cover less than this share of the log-losses (guess)
POINT_GAP = 1e-3  # relative gap at which the search at each point stops (guess)


@dataclass(frozen=True)
class SampledSearch:
    """Run the stages `inner` on the columns of the lowest single losses, if there are many more columns."""

    inner: Sequence[Stage]
    share: float = POINT_SHARE

    def applies(self, pool: Pool, incumbent: Incumbent) -> bool:
        """If there are many points and many columns."""
        return isinstance(pool, ArrayPool) and pool.points > 1 and pool.count > SAMPLED_FROM

    def run(self, pool: Pool, incumbent: Incumbent, clock: Clock) -> StopReason | None:
        """Offer the best subset of them."""
        assert isinstance(pool, ArrayPool)
        lengths = np.linalg.norm(pool.X, axis=1)
        alone = pool.aggregate.log_total(log_penalty(lengths, pool.c).T)
        some = np.union1d(np.argsort(alone, kind="stable")[:SAMPLED], pool.include).astype(np.intp)
        best = incumbent.inside(incumbent.ideal)
        run_inner(self.inner, pool.among(some), best, clock)
        if len(best.subset):
            incumbent.offer(some[best.subset], best.log_loss, "sample")
        return StopReason.INTERRUPTED if best.stop is StopReason.INTERRUPTED else None


@dataclass(frozen=True)
class PointBounds:
    """Run the stages `inner` at each point alone. Their lower bounds give one on the aggregate of all points."""

    inner: Sequence[Stage]
    share: float = POINT_SHARE

    def applies(self, pool: Pool, incumbent: Incumbent) -> bool:
        """If there are many points, and this has not been done."""
        return isinstance(pool, ArrayPool) and pool.points > 1 and incumbent.point_bounds is None

    def run(self, pool: Pool, incumbent: Incumbent, clock: Clock) -> StopReason | None:
        """Keep the bounds for the joint tree, and raise the incumbent's bound.

        Points with the highest losses that count are bounded first. If the bounds of the last few are hardly above the
        ideal, the other points are skipped: their bounds would not be better.
        """
        assert isinstance(pool, ArrayPool)
        bounds = np.full(pool.points, float(pool.k))
        incumbent.point_bounds = bounds
        log_losses = log_spectral_loss(spectrum(pool.at_points(incumbent.subset)), pool.c)
        left_out = pool.points - pool.aggregate.kept(pool.points)
        above = np.minimum(log_losses, LARGEST_LOG) - np.log(pool.k)
        order = np.roll(np.argsort(-log_losses, kind="stable"), -left_out)
        for done, i in enumerate(order.tolist()):
            last = order[max(done - TRIED, 0) : done]
            if clock.expired or (done >= TRIED and np.log(bounds[last] / pool.k).sum() < WORTH * above[last].sum()):
                break
            best = incumbent.inside(float(pool.k), POINT_GAP)
            run_inner(self.inner, pool.at_point(i), best, clock)
            bounds[i] = max(min(best.lower_bound, best.least) * (1 - CLOSED), pool.k)
            if best.stop is StopReason.INTERRUPTED or incumbent.report():
                return StopReason.INTERRUPTED
        incumbent.raise_bound(to_loss(float(pool.aggregate.log_total(np.log(bounds)))) * (1 - CLOSED))
        return None
