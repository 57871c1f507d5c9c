"""At many points: a bound on the loss at each point from a search there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isopursuit.clock import Clock
from isopursuit.loss.penalty import LARGEST_LOG, log_spectral_loss, to_loss
from isopursuit.rank import spectrum
from isopursuit.search.incumbent import Incumbent, StopReason
from isopursuit.search.local import local_search
from isopursuit.search.pool import ArrayPool, Pool
from isopursuit.search.proof.joint import CLOSED
from isopursuit.search.proof.prover import TreeSearch

TRIED, WORTH = 4, 0.1  # stop after TRIED points if bounds cover less than this share of the log-losses (guess)
POINT_GAP = 1e-3  # relative gap at which the search at each point stops (guess)


@dataclass(frozen=True)
class PointBounds:
    """Search at each point alone. The lower bounds there give one on the aggregate of all points."""

    nodes: int | None = None  # most nodes of the search at each point

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
            best.stop = self._search(pool.at_point(i), best, clock)
            bounds[i] = max(min(best.lower_bound, best.least) * (1 - CLOSED), pool.k)
            if best.stop is StopReason.INTERRUPTED or incumbent.report():
                return StopReason.INTERRUPTED
        incumbent.raise_bound(to_loss(float(pool.aggregate.log_total(np.log(bounds)))) * (1 - CLOSED))
        return None

    def _search(self, pool: ArrayPool, best: Incumbent, clock: Clock) -> StopReason | None:
        """Bound the loss at one point."""
        stop = local_search(pool, best, clock, np.random.default_rng(0), starts=2, kicks=0)
        tree = TreeSearch(self.nodes)
        return stop if stop is not None or best.closed or not tree.applies(pool, best) else tree.run(pool, best, clock)
