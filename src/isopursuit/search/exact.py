"""The best subset, with a proof: best-first branch and bound on a pool of threads.

A node is a set of chosen columns and the candidates for the rest. The kernel bounds it, removes candidates that no better
subset can contain, closes it when few columns are missing, or names the column to branch on. The smallest bound among the
open nodes and those in the threads' hands is a lower bound on the loss of every subset, at any moment.
"""

import heapq
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Condition, Event, Thread
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isopursuit.search._node import NodeKernel, Outcome
from isopursuit.search._swap import log_loss_of, swap_descent
from isopursuit.search.relaxation import eigenvalue_loss, relax

__all__ = ["Progress", "Proof", "Status", "branch_and_bound"]

Status = Literal["optimal", "gap", "time", "interrupted"]

_TOLERANCE = 5e-10  # the kernel's: bounds this close to the incumbent close a node
_LARGEST = 1e300  # losses above this are treated as this: the search works with the loss, not its logarithm
_CALLBACK_SECONDS = 0.1


@dataclass(frozen=True)
class Progress:
    """The state of a running search, as a callback sees it."""

    seconds: float
    incumbent: float
    lower_bound: float
    gap: float
    nodes: int
    open_nodes: int


@dataclass(frozen=True)
class Proof:
    """The best subset found and what is proved about it.

    Attributes
    ----------
    indices : (D,) array
        Columns of the subset, sorted.
    loss, lower_bound : float
        Its loss, and a bound that no subset's loss is below.
    status : str
        "optimal" (proved within a relative 1e-9), "gap" (proved within the gap asked for), "time" or "interrupted".
    nodes, evaluations : int
        Nodes bounded and losses evaluated.
    """

    indices: NDArray[np.intp]
    loss: float
    lower_bound: float
    status: Status
    nodes: int
    evaluations: int


class _Node(NamedTuple):
    bound: float
    tie: int  # the youngest first among equal bounds
    chosen: NDArray[np.int32]
    candidates: NDArray[np.int32]
    weights: NDArray[np.float64]
    row: int


def branch_and_bound(
    X: NDArray[np.float64],
    c: float,
    start: Sequence[int] | NDArray[np.integer],
    *,
    include: Sequence[int] | NDArray[np.integer] = (),
    gap: float = 0.0,
    time_limit: float | None = None,
    workers: int | None = None,
    callback: Callable[[Progress], bool | None] | None = None,
) -> Proof:
    """Find the D columns of least isometry loss and prove it.

    Parameters
    ----------
    X : (D, P) array
        Candidate columns, none zero, of rank D.
    c : float
        Exponent of the loss.
    start : D column indices
        A subset to improve on; it contains `include`.
    include : column indices, optional
        Columns every subset must contain.
    gap : float, optional
        Stop once (loss − lower bound)/loss is at most this.
    time_limit : float, optional
        Stop after so many seconds.
    workers : int, optional
        Number of threads, by default one for each processor.
    callback : callable, optional
        Called about ten times a second with a `Progress`; the search stops when it returns True.

    Returns
    -------
    Proof
    """
    search = _Search(X, c, start, include, gap)
    if search.heap:
        search.run(workers or _processors(), time_limit, callback)
    return search.proof()


class _Search:
    """The state the threads share; every method that touches it holds `changed`."""

    def __init__(
        self,
        X: NDArray[np.float64],
        c: float,
        start: Sequence[int] | NDArray[np.integer],
        include: Sequence[int] | NDArray[np.integer],
        gap: float,
    ) -> None:
        dimension, count = X.shape
        self.columns = np.ascontiguousarray(X.T)
        self.c = c
        self.gap = max(gap, 2 * _TOLERANCE)
        self.chosen = np.asarray(include, np.int32)
        self.best = self._with_include_first(np.asarray(start, np.int32))
        self.loss = self._loss(self.best)
        self.kernel = self._kernel()
        self.changed = Condition()
        self.in_hand: dict[int, float] = {}
        self.status: Status = "optimal"
        self.over = Event()
        self.failure: BaseException | None = None
        self.nodes = 0
        self.evaluations = 1
        self.ties = 0
        self.started = time.monotonic()
        self.heap: list[_Node] = []
        if len(self.chosen) < dimension:
            candidates = np.setdiff1d(np.arange(count, dtype=np.int32), self.chosen)
            weights = np.isin(candidates, self.best).astype(np.float64)
            self.heap.append(_Node(float(dimension), 0, self.chosen, candidates, weights, 1))

    def run(
        self, workers: int, time_limit: float | None, callback: Callable[[Progress], bool | None] | None
    ) -> None:
        """Let the threads work; watch the clock, the callback and the keyboard meanwhile."""
        threads = [Thread(target=self._work, args=(name,), daemon=True) for name in range(workers)]
        try:
            for thread in threads:
                thread.start()
            self._watch(time_limit, callback)
        except KeyboardInterrupt:
            self._stop("interrupted")
        except BaseException:
            self._stop("interrupted")
            raise
        finally:
            for thread in threads:
                thread.join()
        if self.failure is not None:
            raise self.failure

    def proof(self) -> Proof:
        """What is known once the threads have returned."""
        return Proof(
            indices=np.sort(self.best).astype(np.intp),
            loss=self.loss,
            lower_bound=self._lower_bound(),
            status=self.status,
            nodes=self.nodes,
            evaluations=self.evaluations,
        )

    def _watch(self, time_limit: float | None, callback: Callable[[Progress], bool | None] | None) -> None:
        deadline = math.inf if time_limit is None else self.started + time_limit
        while not self.over.wait(max(0.0, min(deadline - time.monotonic(), _CALLBACK_SECONDS))):
            if time.monotonic() >= deadline:
                self._stop("time")
            elif callback is not None and callback(self._progress()):
                self._stop("interrupted")

    def _work(self, name: int) -> None:
        try:
            while (node := self._take(name)) is not None:
                steps, tolerance = (200, 1e-3) if node.tie == 0 else (8, 0.05)
                outcome = self.kernel.process(
                    node.chosen, node.candidates, node.weights, node.row, steps, tolerance
                )
                self._settle(name, node, outcome)
        except BaseException as failure:  # a thread's error belongs to the caller
            self.failure = failure
            self._stop("interrupted")

    def _take(self, name: int) -> _Node | None:
        """The node with the least bound, or None when the search is over."""
        with self.changed:
            while not self.over.is_set():
                if not self.heap and not self.in_hand:
                    self._stop("optimal")
                elif not self.heap:
                    self.changed.wait()
                elif self._gap() <= self.gap:
                    self._stop("gap" if self.gap > 2 * _TOLERANCE else "optimal")
                else:
                    node = heapq.heappop(self.heap)
                    self.in_hand[name] = node.bound
                    self.nodes += 1
                    return node
            return None

    def _settle(self, name: int, node: _Node, outcome: Outcome) -> None:
        """Record what a node gave: a better subset, its children, or itself when it was cut short."""
        improved = self._polish(outcome) if outcome.leaf is not None else None
        with self.changed:
            self.evaluations += outcome.evaluations
            if improved is not None and improved[1] < self.loss:
                self.best, self.loss = improved
                self.kernel.incumbent = min(self.loss, _LARGEST)
            bound = max(node.bound, outcome.bound)
            if outcome.stopped:
                heapq.heappush(self.heap, node._replace(bound=bound))
            elif not outcome.closed:
                self._branch(node, outcome, bound)
            del self.in_hand[name]
            self.changed.notify(2)

    def _branch(self, node: _Node, outcome: Outcome, bound: float) -> None:
        column = outcome.candidates[outcome.branch]
        others = np.arange(len(outcome.candidates)) != outcome.branch
        candidates, weights = outcome.candidates[others], outcome.weights[others]
        row = max(outcome.row, 1 if len(node.chosen) else 2)
        self._push(bound, np.append(node.chosen, column), candidates, weights, row)
        if not outcome.forced:
            self._push(bound, node.chosen, candidates, weights, outcome.row)

    def _push(
        self,
        bound: float,
        chosen: NDArray[np.int32],
        candidates: NDArray[np.int32],
        weights: NDArray[np.float64],
        row: int,
    ) -> None:
        if len(chosen) + len(candidates) >= self.columns.shape[1] and bound < self.kernel.incumbent * (1 - _TOLERANCE):
            self.ties -= 1
            heapq.heappush(self.heap, _Node(bound, self.ties, chosen, candidates, weights, row))

    def _polish(self, outcome: Outcome) -> tuple[NDArray[np.int32], float]:
        """Improve a leaf by swaps, keeping the columns asked for."""
        free = np.arange(len(self.chosen), len(outcome.leaf), dtype=np.int32)
        subset, _ = swap_descent(self.columns, self._with_include_first(outcome.leaf), free, self.c)
        return subset, self._loss(subset)

    def _with_include_first(self, subset: NDArray[np.int32]) -> NDArray[np.int32]:
        return np.concatenate([self.chosen, np.setdiff1d(subset, self.chosen)]).astype(np.int32)

    def _loss(self, subset: NDArray[np.int32]) -> float:
        logarithm = log_loss_of(self.columns, subset, self.c)
        return math.exp(logarithm) if logarithm < 709 else math.inf

    def _kernel(self) -> NodeKernel:
        dimension = self.columns.shape[1]
        incumbent = min(self.loss, _LARGEST)
        squares = np.sort(np.einsum("pd,pd->p", self.columns, self.columns))
        relaxation = relax(self.c, dimension, incumbent, float(squares[-dimension:].sum()))
        # Where the smallest eigenvalue carries the loss, branch on what moves it; elsewhere on the weight alone.
        smallest = np.linalg.svd(self.columns[self.best], compute_uv=False)[-1] ** 2
        sensitive = smallest < relaxation.low or (
            smallest < 1 and eigenvalue_loss(float(smallest), self.c) - 1 > 0.25 * incumbent
        )
        return NodeKernel(
            self.columns, self.c, relaxation.low, relaxation.high, relaxation.rows, incumbent, bool(sensitive)
        )

    def _lower_bound(self) -> float:
        bounds = [*self.in_hand.values(), *(node.bound for node in self.heap[:1])]
        return max(min([*bounds, min(self.loss, _LARGEST)]), float(self.columns.shape[1]))

    def _gap(self) -> float:
        return (self.loss - self._lower_bound()) / self.loss if self.loss < math.inf else math.inf

    def _progress(self) -> Progress:
        with self.changed:
            return Progress(
                seconds=time.monotonic() - self.started,
                incumbent=self.loss,
                lower_bound=self._lower_bound(),
                gap=self._gap(),
                nodes=self.nodes,
                open_nodes=len(self.heap) + len(self.in_hand),
            )

    def _stop(self, status: Status) -> None:
        with self.changed:
            if not self.over.is_set():
                self.status = status
                self.kernel.stop()
                self.over.set()
                self.changed.notify_all()


def _processors() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
