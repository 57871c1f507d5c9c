"""The best subset for many points at once, with a proof: best-first search on bounds at the points.

The loss of k columns at a point is at least that of any j of them plus k − j (interlacing), and at least the least
loss of any k columns at that point, its *floor* (stages/points.py). The aggregate of the larger of the two bounds every
subset in a branch, since it rises with every point's loss, and it is cut short as soon as it passes the incumbent: for
k = 2 or 3 most branches end after a few points. Beyond that the proof may not come in time, but the bound always does.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from isopursuit._types import Indices
from isopursuit.clock import Clock
from isopursuit.loss.penalty import LARGEST_LOG, to_loss
from isopursuit.search._joint import JointKernel
from isopursuit.search.incumbent import Incumbent, StopReason
from isopursuit.search.pool import ArrayPool, Pool
from isopursuit.search.swaps import swap_kernel

CLOSED = 1e-10  # branches whose bound is this close to the incumbent, relative to it, are closed (below 1e-9: derived)


@dataclass(frozen=True)
class JointTree:
    """The stage that finds the k columns of the least loss at all points together, and proves it."""

    nodes: int | None = None
    share: float = 1.0

    def applies(self, pool: Pool, incumbent: Incumbent) -> bool:
        """At many points, where the loss is not too large for bounds."""
        return isinstance(pool, ArrayPool) and pool.points > 1 and incumbent.log_loss < LARGEST_LOG

    def run(self, pool: Pool, incumbent: Incumbent, clock: Clock) -> StopReason | None:
        """Look into branches, least bound first, until none can hold a better subset."""
        assert isinstance(pool, ArrayPool)
        tree = _Tree(pool, incumbent)
        try:
            while tree.open:
                tree.expand()
                incumbent.raise_bound(tree.bound)
                if not tree.open:
                    break
                if incumbent.gap > 0 and incumbent.closed:
                    return None
                if clock.expired:
                    return StopReason.TIME
                if self.nodes is not None and tree.nodes >= self.nodes:
                    return StopReason.NODES
                if incumbent.report(tree.nodes, len(tree.heap)):
                    return StopReason.INTERRUPTED
            incumbent.raise_bound(incumbent.loss)
        finally:
            incumbent.nodes += tree.nodes
            incumbent.evaluations += tree.evaluations
        return None if incumbent.decides(incumbent.loss) else StopReason.PRECISION


class _Tree:
    """Open branches, least bound first: (bound, a number that breaks ties, columns chosen, candidates for the rest)."""

    def __init__(self, pool: ArrayPool, incumbent: Incumbent) -> None:
        self.pool, self.incumbent, self.k = pool, incumbent, pool.k
        kernel = swap_kernel(np.ascontiguousarray(np.swapaxes(pool.X, 1, 2)), pool.c, pool.aggregate)
        assert isinstance(kernel, JointKernel)
        self.kernel = kernel
        known = incumbent.point_bounds
        floors = np.full(pool.points, float(pool.k)) if known is None else known
        kernel.set_floors(floors)
        kernel.linearize(incumbent.subset.astype(np.int32), incumbent.log_loss)
        self.lowest = to_loss(float(pool.aggregate.log_total(np.log(floors)))) * (1 - CLOSED)
        root = np.setdiff1d(np.arange(pool.count, dtype=np.int32), pool.include).astype(np.int32)
        chosen = pool.include.astype(np.int32)
        self.heap = [(self.lowest, 0, chosen, root)] if len(chosen) < self.k else []
        self.in_process = np.inf  # the bound of the branch that is being looked into
        self.nodes = self.evaluations = self.ties = 0

    @property
    def open(self) -> bool:
        """Whether a branch may hold a better subset."""
        return bool(self.heap) and self.heap[0][0] < self.cutoff

    @property
    def cutoff(self) -> float:
        """What a better subset's loss is below."""
        return self.incumbent.loss * (1 - CLOSED)

    @property
    def bound(self) -> float:
        """No subset has a loss below this."""
        least = self.heap[0][0] if self.heap else np.inf
        return max(min(least, self.in_process, self.incumbent.least), self.lowest)

    def expand(self) -> None:
        """Look into the branch of least bound: the best of its leaves, or a branch for each candidate."""
        self.in_process = self.heap[0][0]
        _, _, chosen, candidates = heapq.heappop(self.heap)
        limit = float(np.log(self.cutoff)) + CLOSED / 10  # bounds are logarithms, which round
        bounds = np.exp(self.kernel.bounds(chosen, candidates, self.k, limit))
        self.nodes += 1
        if len(chosen) == self.k - 1:
            self.evaluations += len(candidates)
            for j in np.argsort(bounds, kind="stable").tolist():
                if not bounds[j] < self.cutoff:
                    break
                self._try(np.append(chosen, candidates[j]).astype(np.intp), float(bounds[j]))
        else:
            # a branch's candidates are those after it: the worst comes first, so that the best have few
            order = np.argsort(-bounds, kind="stable")
            order = order[bounds[order] < np.inf]
            candidates, bounds = candidates[order], np.maximum(bounds[order], self.in_process)
            for j in range(len(candidates) - (self.k - 1 - len(chosen))):
                self.ties -= 1
                branch = np.append(chosen, candidates[j]).astype(np.int32)
                heapq.heappush(self.heap, (float(bounds[j]), self.ties, branch, candidates[j + 1 :]))
        self.in_process = np.inf

    def _try(self, subset: Indices, least: float) -> None:
        """Evaluate a subset whose loss is at least `least`."""
        self.incumbent.least = min(self.incumbent.least, least)
        self.incumbent.offer(subset, self.pool.log_loss(subset), "joint tree")
