"""The best subset, with a proof: best-first branch and bound on a pool of threads.

A node is a set of chosen columns and the candidates for the rest. The kernel bounds it, removes candidates that no
better subset can contain, closes it when few columns are missing, or names the column to branch on. The smallest bound
among the open nodes and those being bounded is a lower bound on the loss of every subset, at any moment.

Two rules name the column. The largest weight in the relaxation took up to 4 times fewer nodes on well-conditioned
data; the largest weight times effect on the loss took over 50 times fewer on the breast-cancer data. The smallest
eigenvalue's share of the loss does not tell which is better, but 100 nodes did on 17 of 18 problems tried (the other
was close): two trees start from the root, and the one with the higher bound goes on.
"""

import heapq
import math
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isopursuit.errors import ParameterError
from isopursuit.loss import STATED
from isopursuit.search._node import NodeKernel, Outcome
from isopursuit.search._swap import log_loss_of
from isopursuit.search.local import node_kernel, swap_descent
from isopursuit.threads import on_one_blas_thread

Status = Literal["optimal", "gap", "time", "nodes", "precision", "interrupted"]
Roots = Sequence[tuple[int, NDArray[np.int32]]]

_TOLERANCE = 5e-10  # the kernel's: bounds this close to the incumbent close a node
_LARGEST = 1e280  # losses above this are treated as this: the search works with the loss, not its logarithm
_CALLBACK_SECONDS = 0.1
_RACE_NODES = 100
_ROUND = 16  # nodes bounded at once: enough for the threads of a common machine, few beside the nodes of a proof
_ROOT_EFFORT = (200, 1e-3)  # Newton steps at most, and the share of the distance to the incumbent worth closing
_NODE_EFFORT = (8, 0.05)


@dataclass(frozen=True)
class SearchProgress:
    """The state of a running search, as a callback sees it: `incumbent` is the loss of the columns `indices`."""

    seconds: float
    incumbent: float
    lower_bound: float
    gap: float
    nodes: int
    open_nodes: int
    indices: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))


@dataclass(frozen=True)
class Proof:
    """The best subset found and what is proved about it.

    Attributes
    ----------
    indices : (D,) array
        Columns of the subset, sorted.
    loss, lower_bound : float
        Its loss, and a bound that no subset's loss is below. Losses above 1e280 count as infinite; `exact_search`
        refuses them before it comes to that.
    status : str
        "optimal" (proved within a relative 1e-9), "gap" (proved within the gap asked for), or why it ended before:
        "time", "nodes" or "interrupted"; "precision" where the loss of a subset is not known well enough to tell.
    nodes, evaluations : int
        Nodes bounded and losses evaluated.
    """

    indices: NDArray[np.intp]
    loss: float
    lower_bound: float
    status: Status
    nodes: int
    evaluations: int


def branch_and_bound(
    X: NDArray[np.float64],
    c: float,
    start: Sequence[int] | NDArray[np.integer],
    *,
    include: Sequence[int] | NDArray[np.integer] = (),
    gap: float = 0.0,
    time_limit: float | None = None,
    node_limit: int | None = None,
    workers: int | None = None,
    callback: Callable[[SearchProgress], bool | None] | None = None,
    roots: Roots | None = None,
    below: float = math.inf,
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
    node_limit : int, optional
        Stop after so many nodes. On one thread that ends at the same place every time.
    workers : int, optional
        Number of threads, by default one for each processor.
    callback : callable, optional
        Called about ten times a second with a `SearchProgress`; the search stops when it returns True.
    roots : pairs of a column and candidates, optional
        Search only among subsets of `include`, one of these columns and its candidates.
    below : float, optional
        Search only for losses below this, which takes the place of the start's loss. Where there is none the proof's
        loss is this, and its indices are the start's.

    Returns
    -------
    Proof
    """
    search = _Search(X, c, start, include, gap, node_limit, roots, below)
    if search.trees:
        search.run(thread_count(workers), time_limit, callback)
    return search.proof()


class _Node(NamedTuple):
    bound: float
    tie: int  # the youngest first among equal bounds; 0 is the root
    chosen: NDArray[np.int32]
    candidates: NDArray[np.int32]
    weights: NDArray[np.float32]
    row: int  # of the envelope to start with


class _Tree:
    """The open nodes of a search that branches by one rule: 0 the weight of a column, 1 its weight times effect."""

    def __init__(self, rule: int) -> None:
        self.rule = rule
        self.heap: list[_Node] = []
        self.in_hand: list[float] = []  # bounds of the nodes of the current round
        self.nodes = 0

    def bound(self) -> float:
        """No subset left to this tree is below it; infinite when none is left."""
        return min([*self.in_hand, *(node.bound for node in self.heap[:1])], default=math.inf)


class _Search:
    """The state of a search. Threads only bound nodes; everything else happens in the caller's thread."""

    def __init__(
        self,
        X: NDArray[np.float64],
        c: float,
        start: Sequence[int] | NDArray[np.integer],
        include: Sequence[int] | NDArray[np.integer],
        gap: float,
        node_limit: int | None,
        roots: Roots | None,
        below: float,
    ) -> None:
        self.columns = np.ascontiguousarray(X.T)
        self.c = c
        self.gap = max(gap, _TOLERANCE)
        self.node_limit = math.inf if node_limit is None else node_limit
        self.include = np.asarray(include, np.int32)
        self.best = self._include_first(np.asarray(start, np.int32))
        self.loss = min(self._loss(self.best), below)
        self.kernel = self._kernel()
        self.over = False
        self.status: Status = "optimal"
        self.nodes = self.ties = 0
        self.evaluations = 1
        self.doubt = math.inf  # the least that an evaluated loss can be, its rounding considered
        self.started = self.reported = time.monotonic()
        self.trees: list[_Tree] = []
        if len(self.include) < X.shape[0]:
            self.trees = [self._root()] if roots is None else self._forest(roots)

    def run(
        self, workers: int, time_limit: float | None, callback: Callable[[SearchProgress], bool | None] | None
    ) -> None:
        """Bound nodes in rounds until the search is over; watch the clock, the callback and the keyboard meanwhile.

        All nodes of a round see the same incumbent and their outcomes are recorded in the order in which they were
        taken, so the search takes the same way whatever the number of threads, but for rounding in BLAS.
        """
        deadline = math.inf if time_limit is None else self.started + time_limit
        pool = ThreadPoolExecutor(workers)
        try:
            while taken := self._take():
                running = [pool.submit(self._process, node) for _, node in taken]
                while wait(running, max(0.01, min(deadline - time.monotonic(), _CALLBACK_SECONDS))).not_done:
                    self._watch(deadline, callback)
                for (tree, node), future in zip(taken, running, strict=True):
                    self._settle(tree, node, future.result())
                for tree in self.trees:
                    tree.in_hand.clear()
                self._watch(deadline, callback)
        except KeyboardInterrupt:
            self._stop("interrupted")
        finally:
            self.kernel.stop()
            pool.shutdown(cancel_futures=True)

    def proof(self) -> Proof:
        """What is known once the threads have returned."""
        return Proof(
            indices=np.sort(self.best).astype(np.intp),
            loss=self.loss,
            lower_bound=min(self._lower_bound(), self.doubt),
            status=judged(self.status, self.loss, self.doubt, self.gap),
            nodes=self.nodes,
            evaluations=self.evaluations,
        )

    def _watch(self, deadline: float, callback: Callable[[SearchProgress], bool | None] | None) -> None:
        now = time.monotonic()
        if now >= deadline:
            self._stop("time")
        elif callback is not None and not self.over and now >= self.reported + _CALLBACK_SECONDS:
            self.reported = now
            if callback(self._progress()):
                self._stop("interrupted")

    @on_one_blas_thread
    def _process(self, node: _Node) -> Outcome:
        steps, tolerance = _ROOT_EFFORT if node.tie == 0 else _NODE_EFFORT
        return self.kernel.process(node.chosen, node.candidates, node.weights, node.row, steps, tolerance)

    def _take(self) -> list[tuple[_Tree, _Node]]:
        """The nodes of the next round, those with the least bounds, or none when the search is over."""
        self._judge_race()
        if self.over:
            return []
        if self._gap() <= self.gap:
            closed = self._lower_bound() >= self.loss or self.gap <= _TOLERANCE
            self._stop("optimal" if closed else "gap")
            return []
        if any(tree.bound() == math.inf for tree in self.trees):
            self._stop("optimal")
            return []
        if self.nodes >= self.node_limit:
            self._stop("nodes")
            return []
        taken: list[tuple[_Tree, _Node]] = []
        while len(taken) < min(_ROUND, self.node_limit - self.nodes):
            waiting = [tree for tree in self.trees if tree.heap]
            if not waiting:
                break
            tree = min(waiting, key=lambda tree: tree.nodes + len(tree.in_hand))
            node = heapq.heappop(tree.heap)
            tree.in_hand.append(node.bound)
            taken.append((tree, node))
        for tree in self.trees:
            tree.nodes += len(tree.in_hand)
        self.nodes += len(taken)
        return taken

    def _judge_race(self) -> None:
        if len(self.trees) > 1 and min(tree.nodes for tree in self.trees) >= _RACE_NODES:
            self.trees = [max(self.trees, key=_Tree.bound)]

    def _settle(self, tree: _Tree, node: _Node, outcome: Outcome) -> None:
        """Record what a node gave: a better subset, its children, or itself when it was cut short."""
        if outcome.leaf is not None:
            subset, loss = self._polish(outcome.leaf)
            if loss < self.loss:
                self.best, self.loss = subset, loss
                self.kernel.incumbent = min(self.loss, _LARGEST)
        self.evaluations += outcome.evaluations
        self.doubt = min(self.doubt, outcome.doubt)
        bound = max(node.bound, outcome.bound)
        if outcome.stopped:
            heapq.heappush(tree.heap, node._replace(bound=bound))
        elif not outcome.closed and node.tie == 0:
            both = [_Tree(0), _Tree(1)]
            for starting in both:
                self._branch(starting, node, outcome, bound)
            self.trees = both
        elif not outcome.closed:
            self._branch(tree, node, outcome, bound)

    def _branch(self, tree: _Tree, node: _Node, outcome: Outcome, bound: float) -> None:
        """Two children: with the column the tree's rule names, and without it unless every better subset needs it."""
        branch = outcome.branches[tree.rule]
        others = np.arange(len(outcome.candidates)) != branch
        candidates, weights = outcome.candidates[others], outcome.weights[others]
        chosen = np.append(node.chosen, outcome.candidates[branch])
        children = [(chosen, max(outcome.row, 1 if len(node.chosen) else 2))]
        if not outcome.forced[tree.rule] and len(node.chosen) + len(candidates) >= self.columns.shape[1]:
            children.append((node.chosen, outcome.row))
        for subset, row in children:
            self.ties -= 1
            heapq.heappush(tree.heap, _Node(bound, self.ties, subset, candidates, weights, row))

    def _polish(self, leaf: NDArray[np.int32]) -> tuple[NDArray[np.int32], float]:
        """Improve a leaf by swaps, keeping the columns asked for."""
        free = range(len(self.include), len(leaf))
        subset, _ = swap_descent(self.columns, self._include_first(leaf), free, self.c)
        return subset, self._loss(subset)

    def _include_first(self, subset: NDArray[np.int32]) -> NDArray[np.int32]:
        return np.concatenate([self.include, np.setdiff1d(subset, self.include)]).astype(np.int32)

    def _loss(self, subset: NDArray[np.int32]) -> float:
        logarithm = log_loss_of(self.columns, subset, self.c)
        return math.exp(logarithm) if logarithm < math.log(_LARGEST) else math.inf

    def _kernel(self) -> NodeKernel:
        return node_kernel(self.columns, self.c, min(self.loss, _LARGEST))

    def _root(self) -> _Tree:
        """Nothing chosen but what must be, and the relaxation starting from the incumbent."""
        count, dimension = self.columns.shape
        candidates = np.setdiff1d(np.arange(count, dtype=np.int32), self.include)
        weights = np.isin(candidates, self.best).astype(np.float32)
        tree = _Tree(0)
        tree.heap.append(_Node(float(dimension), 0, self.include, candidates, weights, 1))
        return tree

    def _forest(self, roots: Roots) -> list[_Tree]:
        """The same for each of many columns and what may go with it; both rules race from here."""
        dimension = self.columns.shape[1]
        missing = dimension - len(self.include) - 1
        nodes: list[_Node] = []
        for column, candidates in roots:
            self.ties -= 1
            chosen = np.append(self.include, np.int32(column)).astype(np.int32)
            weights = np.full(len(candidates), missing / max(len(candidates), 1), np.float32)
            nodes.append(_Node(float(dimension), self.ties, chosen, candidates, weights, 1))
        trees = [_Tree(0), _Tree(1)]
        for tree in trees:
            tree.heap.extend(nodes)
            heapq.heapify(tree.heap)
        return trees

    def _lower_bound(self) -> float:
        bound = max((tree.bound() for tree in self.trees), default=math.inf)
        return max(min(bound, self.loss, _LARGEST), float(self.columns.shape[1]))

    def _gap(self) -> float:
        return (self.loss - self._lower_bound()) / self.loss if self.loss < math.inf else math.inf

    def _progress(self) -> SearchProgress:
        return SearchProgress(
            seconds=time.monotonic() - self.started,
            incumbent=self.loss,
            lower_bound=self._lower_bound(),
            gap=self._gap(),
            nodes=self.nodes,
            open_nodes=sum(len(tree.heap) + len(tree.in_hand) for tree in self.trees),
            indices=np.sort(self.best).astype(np.intp),
        )

    def _stop(self, status: Status) -> None:
        """End the search with this status, unless it has ended already."""
        if not self.over:
            self.status, self.over = status, True
            self.kernel.stop()


def judged(status: Status, loss: float, doubt: float, gap: float) -> Status:
    """The status, or "precision" where a subset was evaluated whose loss may be `doubt`, too low for what it claims."""
    claimed = {"optimal": STATED, "gap": gap}.get(status, 1.0)
    return "precision" if doubt < loss * (1 - claimed) else status


def thread_count(workers: int | None) -> int:
    """How many threads: what the caller asked for, or one for each processor this process may use."""
    if workers is None:
        affinity = getattr(os, "sched_getaffinity", None)
        return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    if not isinstance(workers, int) or workers < 1:
        raise ParameterError(f"workers={workers!r} must be a whole number of threads, at least 1.")
    return workers
