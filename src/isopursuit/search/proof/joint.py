"""The best subset for many points at once, with a proof: best-first search on bounds at the points.

The loss of k columns at a point is at least that of any j of them plus k − j (interlacing), and at least the least
loss of any k columns at that point, its *floor* (stages/points.py). The aggregate of the larger of the two bounds every
subset in a branch, since it rises with every point's loss, and it is cut short as soon as it passes the incumbent: for
k = 2 most branches end after a few points.

Where more columns are missing all pairs are bounded first, which takes about a second for a thousand columns at 100
points. Few pairs can be in a better subset, and only columns of which every two are such a pair are looked into.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isopursuit._types import Array, Indices
from isopursuit.clock import Clock
from isopursuit.loss.penalty import LARGEST_LOG, to_loss
from isopursuit.search._joint import JointKernel
from isopursuit.search.incumbent import Incumbent, StopReason
from isopursuit.search.pool import ArrayPool, Pool
from isopursuit.search.swaps import swap_kernel

BLOCK = 64  # candidates bounded in one call: a few milliseconds, so that an interrupt is noticed (guess)
PAIRED = 4000  # columns: the bounds of all pairs of more would take too much memory (128 MB: derived)
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
            if tree.compare_pairs(clock):
                return StopReason.INTERRUPTED
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
        self.pairs: Array | None = None  # log-bounds of all subsets with two columns; minus infinity where not computed

    def compare_pairs(self, clock: Clock) -> bool:
        """Bound all pairs of columns, and begin with the columns that are in the fewest; True to stop."""
        pool, P = self.pool, self.pool.count
        if pool.missing < 3 or P > PAIRED or not self.open:
            return False
        chosen, columns = self.heap[0][2], self.heap[0][3]
        self.pairs = np.full((P, P), -np.inf)
        limit = self._limit
        for j in range(len(columns)):
            if clock.expired or self.incumbent.report(self.nodes):
                return not clock.expired
            with_this = np.append(chosen, columns[j]).astype(np.int32)
            self.pairs[columns[j], columns[j + 1 :]] = self.kernel.bounds(with_this, columns[j + 1 :], self.k, limit)
        self.pairs = np.maximum(self.pairs, self.pairs.T)
        self.heap = []
        possible = self.pairs[np.ix_(columns, columns)] < limit
        order = np.argsort(possible.sum(axis=1), kind="stable")
        ranked = columns[order]
        self._push(chosen, ranked, np.full(len(ranked), self.lowest))
        return False

    @property
    def _limit(self) -> float:
        """The logarithm of the cutoff; a little higher, because logarithms round."""
        return float(np.log(self.cutoff)) + CLOSED / 10

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
        bounds = np.exp(self._bounds(chosen, candidates))
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
            self._push(chosen, candidates[order], np.maximum(bounds[order], self.in_process))
        self.in_process = np.inf

    def _bounds(self, chosen: NDArray[np.int32], candidates: NDArray[np.int32]) -> Array:
        """Log-bounds of all subsets with the chosen columns and each candidate."""
        if self.pairs is not None and len(chosen) == len(self.pool.include) + 1:
            known = self.pairs[chosen[-1], candidates]
            if known.min(initial=np.inf) > -np.inf:
                return known
        limit, blocks = self._limit, range(0, len(candidates), BLOCK)
        return np.concatenate(
            [np.zeros(0), *(self.kernel.bounds(chosen, candidates[i : i + BLOCK], self.k, limit) for i in blocks)]
        )

    def _push(self, chosen: NDArray[np.int32], candidates: NDArray[np.int32], bounds: Array) -> None:
        """Open a branch for each candidate, with those after it that may go with it."""
        missing = self.k - 1 - len(chosen)
        limit = self._limit
        for j in range(len(candidates) - missing):
            bound, others = float(bounds[j]), candidates[j + 1 :]
            if self.pairs is not None:
                paired = self.pairs[candidates[j], others]
                others = others[paired < limit]
                if len(others) < missing:
                    continue
                # the subset has `missing` of them: its worst pair is at least the so-many-th best
                bound = max(bound, to_loss(float(np.partition(paired, missing - 1)[missing - 1])))
            self.ties -= 1
            branch = np.append(chosen, candidates[j]).astype(np.int32)
            heapq.heappush(self.heap, (bound, self.ties, branch, others))

    def _try(self, subset: Indices, least: float) -> None:
        """Evaluate a subset whose loss is at least `least`."""
        self.incumbent.least = min(self.incumbent.least, least)
        self.incumbent.offer(subset, self.pool.log_loss(subset), "joint tree")
