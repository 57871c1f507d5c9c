"""The best subset for many points at once, with a proof: best-first search on losses summed over the points.

The loss of D columns at a point is at least that of any k of them plus D − k (interlacing), and at least the least
loss of any D columns at that point, its *floor*. Summed over the points the larger of the two bounds every subset in
a branch, and the sum is cut short as soon as it passes the incumbent: for D = 2 or 3 most branches end after a few
points. Beyond that the proof may not come in time, but the bound always does.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from isopursuit.loss import to_loss
from isopursuit.search._joint import extend
from isopursuit.search._swap import log_loss_of
from isopursuit.search.local import local_search
from isopursuit.search.relaxation import LARGEST_EXPONENT, LARGEST_LOG, SMALLEST_EXPONENT
from isopursuit.search.tree import Proof, SearchProgress, Status, branch_and_bound, judged

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

CLOSED = 1e-10  # branches whose bound is this close to the incumbent, relatively, are closed
FLOOR_GAP = 1e-3  # how exactly each point's floor is found
CALLBACK_SECONDS = 0.1


def joint_branch_and_bound(
    X: Array,
    c: float,
    start: Indices,
    *,
    include: Sequence[int] = (),
    gap: float = 0.0,
    time_limit: float | None = None,
    node_limit: int | None = None,
    callback: Callable[[SearchProgress], bool | None] | None = None,
) -> Proof:
    """Find the D columns of X (n, D, P) whose losses have the least sum, and prove it.

    Parameters are those of `branch_and_bound`; a third of the time limit may go to the floors.
    """
    began = time.perf_counter()
    deadline = np.inf if time_limit is None else began + time_limit
    try:
        least = floors(X, c, include, np.inf if time_limit is None else began + time_limit / 3)
    except KeyboardInterrupt:
        least, deadline = np.full(len(X), float(X.shape[1])), -np.inf
    tree = _Tree(X, c, start, include, least)
    status: Status = "interrupted" if deadline < 0 else "optimal"
    told = began
    try:
        while status == "optimal" and tree.open:
            tree.expand()
            now = time.perf_counter()
            if tree.open and gap > 0 and tree.loss - tree.bound <= gap * tree.loss:
                status = "gap"
            elif tree.open and now > deadline:
                status = "time"
            elif tree.open and node_limit is not None and tree.nodes >= node_limit:
                status = "nodes"
            elif callback is not None and now - told > CALLBACK_SECONDS:
                told = now
                status = "interrupted" if callback(tree.progress(now - began)) else status
    except KeyboardInterrupt:
        status = "interrupted"
    if callback is not None:
        callback(tree.progress(time.perf_counter() - began))
    status = judged(status, tree.loss, tree.doubt, gap)
    return Proof(np.sort(tree.best), tree.loss, tree.bound, status, tree.nodes, tree.evaluations)


class _Tree:
    """Open branches, least bound first: (bound, a number that breaks ties, columns chosen, candidates for the rest)."""

    def __init__(self, X: Array, c: float, start: Indices, include: Sequence[int], least: Array) -> None:
        self.columns = np.ascontiguousarray(np.swapaxes(X, 1, 2))
        self.c, self.floors, self.lowest = c, least, float(least.sum())
        self.best, self.loss = start, float(np.exp(log_loss_of(self.columns, start.astype(np.int32), c)))
        _, P, self.D = self.columns.shape
        root = np.setdiff1d(np.arange(P, dtype=np.int32), include).astype(np.int32)
        chosen = np.array(include, np.int32)
        self.heap = [(self.lowest, 0, chosen, root)] if len(chosen) < self.D else []
        self.in_hand = np.inf  # the bound of the branch that is being looked into
        self.nodes = self.evaluations = self.ties = 0
        self.doubt = np.inf  # the least that an evaluated loss can be, its rounding considered

    @property
    def open(self) -> bool:
        """Whether a branch may hold a better subset."""
        return bool(self.heap) and self.heap[0][0] < self.loss * (1 - CLOSED)

    @property
    def bound(self) -> float:
        """No subset has a summed loss below this."""
        return max(min(self.heap[0][0] if self.heap else np.inf, self.in_hand, self.loss, self.doubt), self.lowest)

    def expand(self) -> None:
        """Look into the branch of least bound: the best of its leaves, or a branch for each candidate."""
        self.in_hand = self.heap[0][0]
        _, _, chosen, candidates = heapq.heappop(self.heap)
        bounds = extend(self.columns, chosen, candidates, self.c, self.floors, self.loss * (1 - CLOSED))
        self.nodes += 1
        if len(chosen) == self.D - 1:
            self.evaluations += len(candidates)
            for j in np.argsort(bounds, kind="stable").tolist():
                if not bounds[j] < self.loss * (1 - CLOSED):
                    break
                self._try(np.append(chosen, candidates[j]), float(bounds[j]))
        else:
            # a branch's candidates are those after it: the worst comes first, so that the best have few
            order = np.argsort(-bounds, kind="stable")
            order = order[bounds[order] < np.inf]
            candidates, bounds = candidates[order], np.maximum(bounds[order], self.in_hand)
            for j in range(len(candidates) - (self.D - 1 - len(chosen))):
                self.ties -= 1
                branch = np.append(chosen, candidates[j]).astype(np.int32)
                heapq.heappush(self.heap, (float(bounds[j]), self.ties, branch, candidates[j + 1 :]))
        self.in_hand = np.inf

    def _try(self, subset: NDArray[np.int32], least: float) -> None:
        """Evaluate a subset whose loss is at least `least`."""
        self.doubt = min(self.doubt, least)
        loss = to_loss(log_loss_of(self.columns, subset, self.c))
        if loss < self.loss:
            self.best, self.loss = subset.astype(np.intp), loss

    def progress(self, seconds: float) -> SearchProgress:
        """As a callback sees it."""
        gap = (self.loss - self.bound) / self.loss
        return SearchProgress(seconds, self.loss, self.bound, gap, self.nodes, len(self.heap), np.sort(self.best))


def floors(X: Array, c: float, include: Sequence[int], deadline: float) -> Array:
    """A lower bound of each point's own least loss; D where there is no time left to look for a better one, or where
    the relaxation is not made for such a c or so large a loss.
    """
    n, D, _ = X.shape
    found = np.full(n, float(D))
    for i in range(n if SMALLEST_EXPONENT <= c <= LARGEST_EXPONENT else 0):
        left = deadline - time.perf_counter()
        if left <= 0:
            break
        limit = None if left == np.inf else left
        draws = np.random.default_rng(0)
        start = local_search(X[i], c, include=include, starts=2, kicks=0, rng=draws, time_limit=limit)
        if start.interrupted:
            raise KeyboardInterrupt
        if start.log_loss > LARGEST_LOG:
            continue
        limit = None if left == np.inf else max(deadline - time.perf_counter(), 0.0)
        own = branch_and_bound(X[i], c, start.indices, include=include, gap=FLOOR_GAP, time_limit=limit, workers=1)
        if own.status == "interrupted":
            raise KeyboardInterrupt
        found[i] = own.lower_bound * (1 - CLOSED)
    return found
