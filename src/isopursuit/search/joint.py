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
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from isopursuit.search._joint import extend
from isopursuit.search._swap import log_loss_of
from isopursuit.search.local import local_search
from isopursuit.search.relaxation import LARGEST_EXPONENT, LARGEST_LOG, SMALLEST_EXPONENT
from isopursuit.search.tree import Proof, SearchProgress, branch_and_bound

Array = NDArray[np.float64]

CLOSED = 1e-10  # branches whose bound is this close to the incumbent, relatively, are closed
FLOOR_GAP = 1e-3  # how exactly each point's floor is found
CALLBACK_SECONDS = 0.1


def joint_branch_and_bound(
    X: Array,
    c: float,
    start: NDArray[np.intp],
    *,
    include: Sequence[int] = (),
    gap: float = 0.0,
    time_limit: float | None = None,
    callback: Callable[[SearchProgress], bool | None] | None = None,
) -> Proof:
    """Find the D columns of X (n, D, P) whose losses have the least sum, and prove it.

    Parameters are those of `branch_and_bound`; a third of the time limit may go to the floors.
    """
    began = time.perf_counter()
    deadline = np.inf if time_limit is None else began + time_limit
    columns = np.ascontiguousarray(np.swapaxes(X, 1, 2))
    n, P, D = columns.shape
    best, loss = start, float(np.exp(log_loss_of(columns, start.astype(np.int32), c)))
    try:
        least_at = floors(X, c, include, np.inf if time_limit is None else began + time_limit / 3)
    except KeyboardInterrupt:
        return Proof(np.sort(best), loss, float(n * D), "interrupted", 0, 0)
    lowest = float(least_at.sum())
    root = np.setdiff1d(np.arange(P, dtype=np.int32), include).astype(np.int32)
    heap = [(lowest, 0, np.array(include, np.int32), root)] if len(include) < D else []
    hand = np.inf  # the bound of the branch that is being looked into
    nodes = evaluations = ties = 0
    told = began
    status: Literal["optimal", "gap", "time", "interrupted"] = "optimal"

    def bound() -> float:
        return max(min(heap[0][0] if heap else np.inf, hand, loss), lowest)

    try:
        while heap and heap[0][0] < loss * (1 - CLOSED):
            now = time.perf_counter()
            if gap > 0 and loss - bound() <= gap * loss:
                status = "gap"
                break
            if now > deadline:
                status = "time"
                break
            if callback is not None and now - told > CALLBACK_SECONDS:
                told = now
                if callback(_progress(now - began, loss, bound(), nodes, len(heap), best)):
                    status = "interrupted"
                    break
            hand = heap[0][0]
            _, _, subset, candidates = heapq.heappop(heap)
            bounds = extend(columns, subset, candidates, c, least_at, loss * (1 - CLOSED))
            nodes += 1
            if len(subset) == D - 1:
                evaluations += len(candidates)
                found = int(bounds.argmin())
                if bounds[found] < loss:
                    best, loss = np.append(subset, candidates[found]).astype(np.intp), float(bounds[found])
                hand = np.inf
                continue
            # a child's candidates are those after it: the worst first, so that the best have few
            order = np.argsort(-bounds, kind="stable")
            order = order[bounds[order] < np.inf]
            candidates, bounds = candidates[order], np.maximum(bounds[order], hand)
            for j in range(len(candidates) - (D - 1 - len(subset))):
                ties -= 1
                child = np.append(subset, candidates[j]).astype(np.int32)
                heapq.heappush(heap, (float(bounds[j]), ties, child, candidates[j + 1 :]))
            hand = np.inf
    except KeyboardInterrupt:
        status = "interrupted"
    if callback is not None:
        callback(_progress(time.perf_counter() - began, loss, bound(), nodes, len(heap), best))
    return Proof(np.sort(best), loss, bound(), status, nodes, evaluations)


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
        start = local_search(X[i], c, include=include, starts=2, kicks=0, rng=np.random.default_rng(0))
        if start.interrupted:
            raise KeyboardInterrupt
        if start.log_loss > LARGEST_LOG:
            continue
        limit = None if left == np.inf else left
        own = branch_and_bound(X[i], c, start.indices, include=include, gap=FLOOR_GAP, time_limit=limit, workers=1)
        if own.status == "interrupted":
            raise KeyboardInterrupt
        found[i] = own.lower_bound * (1 - CLOSED)
    return found


def _progress(
    seconds: float, loss: float, bound: float, nodes: int, open_nodes: int, best: NDArray[np.intp]
) -> SearchProgress:
    return SearchProgress(seconds, loss, bound, (loss - bound) / loss, nodes, open_nodes, np.sort(best))
