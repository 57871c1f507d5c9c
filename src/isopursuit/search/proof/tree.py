"""The best subset, with a proof: best-first branch and bound on a pool of threads.

A node is a set of chosen columns and the candidates for the missing ones. The kernel bounds it, removes candidates that
no better subset can contain, and closes it if few columns are missing or names the column to branch on. At any moment
the smallest bound among the open nodes and those being processed is a lower bound on the loss of every subset.

There are two rules for the column to branch on. The largest weight in the relaxation took up to 4 times fewer nodes on
well-conditioned data. The largest product of weight and effect on the loss took over 50 times fewer on the
breast-cancer data. The smallest eigenvalue's share of the loss does not predict which rule is better, but 100 nodes did
on 17 of 18 problems (the other was close). So two trees start from the root, and the one with the higher bound
continues.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from isopursuit._types import Array, Indices
from isopursuit.clock import REPORT_SECONDS, Clock
from isopursuit.loss.envelope import relax
from isopursuit.loss.penalty import NODE_TOLERANCE, STATED, quadratic_minorant
from isopursuit.search._swap import SwapKernel, log_loss_of
from isopursuit.search.incumbent import StopReason
from isopursuit.search.proof._node import NodeKernel, Outcome
from isopursuit.search.proof.budgets import Budgets, Contest
from isopursuit.search.swaps import UNLIMITED, include_first, swap_descent
from isopursuit.threads import on_one_blas_thread

Root: TypeAlias = tuple[int, NDArray[np.int32]]  # a column, and the candidates that may be combined with it

LARGEST = 1e280  # larger losses are replaced by this, because the tree computes losses, not logarithms (derived)
RACE_NODES = 100  # nodes of each of two trees with different rules before the better one continues (18 problems, above)
ROUND_NODES = 32  # nodes of one round (chosen: enough for the threads of a common machine, few for a proof)
SLICES = 8  # parts of a round that are given to the threads (guess)
ROOT_EFFORT = (200, 1e-3)  # at the root: most Newton steps, and tolerance relative to the incumbent's distance (kept)
NODE_EFFORT = (8, 0.05)  # at other nodes: most Newton steps, and tolerance (kept)


@dataclass(frozen=True)
class Limits:
    """When a proof ends before it is complete.

    `gap` is relative, `nodes` and the clock are limits, `workers` threads bound nodes. `report` is called about ten
    times a second with a `Snapshot`, and ends the proof by returning True. `improve` searches for better subsets in
    parallel with the proof. A loss below `restart` ends the proof like a node limit.
    """

    gap: float = 0.0
    nodes: int | None = None
    workers: int = 1
    clock: Clock = UNLIMITED
    report: Callable[[Snapshot], bool] | None = None
    improve: Improvement | None = None
    restart: float = -math.inf


class Improvement(Protocol):
    """A search for better subsets in steps."""

    def step(self, subset: Indices, loss: float) -> Indices | None:
        """A better subset than this one, if one is found; called in another thread, one call at a time."""
        ...


class Snapshot(NamedTuple):
    """The state of a tree: the best subset (sorted), its loss, the bound, and counts of nodes."""

    subset: Indices
    loss: float
    lower_bound: float
    nodes: int
    open_nodes: int


@dataclass(frozen=True)
class Proof:
    """The best subset found and what is proved about it.

    Attributes
    ----------
    subset : (k,) array
        Columns of the subset, sorted.
    loss, lower_bound : float
        Its loss, and a lower bound on the loss of every subset. Losses above 1e280 count as infinite.
    stop : StopReason or None
        None if the subset is proved within a relative 1e-9 or within the requested gap; otherwise why it is not.
    least : float
        The least possible loss of an evaluated subset, given rounding.
    nodes, evaluations : int
        Nodes bounded and losses evaluated.
    """

    subset: Indices
    loss: float
    lower_bound: float
    stop: StopReason | None
    least: float
    nodes: int
    evaluations: int


def branch_and_bound(
    X: Array,
    c: float,
    start: NDArray[np.integer],
    limits: Limits,
    *,
    include: Sequence[int] | NDArray[np.integer] = (),
    roots: Sequence[Root] | None = None,
    below: float = math.inf,
) -> Proof:
    """Find the columns of least isometry loss, as many as `start` has, and prove it.

    Parameters
    ----------
    X : (D, P) array
        Candidate columns, none zero.
    c : float
        Exponent of the loss.
    start : column indices
        A subset to improve on; it contains `include`.
    limits : Limits
        Without a deadline the answer is reproducible, except for rounding.
    include : column indices, optional
        Columns that every subset must contain.
    roots : pairs of a column and candidates, optional
        Search only among subsets of `include`, one of these columns and its candidates.
    below : float, optional
        Search only for losses below this; it replaces the loss of `start`. If there is none, the proof has this loss
        and the subset `start`.
    """
    search = _Search(X, c, start, limits, np.asarray(include, np.int32), below)
    search.plant(roots)
    try:
        search.run()
    except KeyboardInterrupt:
        search.end(StopReason.INTERRUPTED)
    finally:
        search.close()
    return search.proof()


def node_kernel(columns: Array, k: int, c: float, incumbent: float) -> NodeKernel:
    """The kernel that searches for k of `columns` (P, D) with a loss below the incumbent's."""
    squares = np.sort(np.einsum("pd,pd->p", columns, columns))
    relaxation = relax(c, k, incumbent, float(squares[-k:].sum()))
    minorant = quadratic_minorant(c, k, incumbent, float(np.median(squares)))
    return NodeKernel(columns, k, c, relaxation.low, relaxation.high, relaxation.rows, incumbent, minorant)


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
        self.in_process: list[float] = []  # bounds of the nodes of the current round
        self.nodes = 0

    def bound(self) -> float:
        """A lower bound on the loss of the remaining subsets of this tree; infinite if there are none."""
        return min([*self.in_process, *(node.bound for node in self.heap[:1])], default=math.inf)


class _Search:
    """The state of a search. Threads only bound nodes; everything else happens in the caller's thread."""

    def __init__(
        self,
        X: Array,
        c: float,
        start: NDArray[np.integer],
        limits: Limits,
        include: NDArray[np.int32],
        below: float,
    ) -> None:
        self.columns, self.k = np.ascontiguousarray(X.T), len(start)
        self.c, self.limits, self.include = c, limits, include
        self.gap = max(limits.gap, NODE_TOLERANCE)
        self.node_limit = math.inf if limits.nodes is None else limits.nodes
        self.swaps = SwapKernel(self.columns, c, limits.clock.deadline, self.k)
        self.best = include_first(include, start)
        self.loss = min(self._loss(self.best), below)
        self.kernel = node_kernel(self.columns, self.k, c, min(self.loss, LARGEST))
        self.over = False
        self.stop: StopReason | None = None
        self.nodes = self.ties = 0
        self.evaluations = 1
        self.least = math.inf  # the least possible loss of an evaluated subset, given rounding
        self.reported = -math.inf
        self.trees: list[_Tree] = []
        self.budgets, self.contest = Budgets(self.k), Contest()
        self.threads: ThreadPoolExecutor | None = None

    def plant(self, roots: Sequence[Root] | None) -> None:
        """Open one root for all subsets, or one for each of many columns and its candidates."""
        if len(self.include) == self.k:
            return
        self.trees = [self._root()] if roots is None else self._forest(roots)

    def run(self) -> None:
        """Bound nodes in rounds until the search is over.

        All nodes of a round have the same incumbent, and their outcomes are recorded in the order in which they were
        taken. So, except for rounding in BLAS, the search does not depend on the number of threads.
        """
        self.threads = ThreadPoolExecutor(self.limits.workers)
        while taken := self._take():
            budgets = self.budgets.for_nodes([self.k - len(node.chosen) for _, node in taken])
            work = [(tree, node, budget) for (tree, node), budget in zip(taken, budgets, strict=True)]
            parts = [work[first::SLICES] for first in range(min(SLICES, len(work)))]
            running = [self.threads.submit(self._process, part) for part in parts]
            beside = self._step()
            both: list[Future[Any]] = [*running, *beside]
            while wait(both, max(0.01, min(self.limits.clock.remaining, REPORT_SECONDS))).not_done:
                self._watch()
                if self.stop is StopReason.INTERRUPTED:
                    return  # the bounds of open nodes are valid; do not wait for a step
            before = self._lower_bound()
            for part, future in zip(parts, running, strict=True):
                for (tree, node, _), outcome in zip(part, future.result(), strict=True):
                    self._record(tree, node, outcome)
            for tree in self.trees:
                tree.in_process.clear()
            self.contest.record_round(before, self._lower_bound(), self.loss)
            for future in beside:
                self._accept(future.result())
            self._watch()

    def _step(self) -> list[Future[Indices | None]]:
        """Start a step towards a better subset in parallel with a round, if one is due."""
        improve = self.limits.improve
        if improve is None or self.threads is None or not self.contest.due():
            return []
        return [self.threads.submit(on_one_blas_thread(improve.step), self._sorted(), self.loss)]

    def _accept(self, subset: Indices | None) -> None:
        """Use the subset that a step has found, if it is better."""
        before = self.loss
        if subset is not None:
            ordered = include_first(self.include, subset)
            self._offer(ordered, self._loss(ordered))
        self.contest.record_step(self._lower_bound(), before, self.loss)

    def _offer(self, subset: NDArray[np.int32], loss: float) -> None:
        if loss < self.loss:
            self.best, self.loss = subset, loss
            self.kernel.incumbent = min(self.loss, LARGEST)

    def close(self) -> None:
        """Stop the threads; subset and bound stay valid."""
        self.kernel.stop()
        if self.threads is not None:
            self.threads.shutdown(wait=self.stop is not StopReason.INTERRUPTED, cancel_futures=True)

    def proof(self) -> Proof:
        """The result, after the threads have returned."""
        stop, bound = self.stop, self._lower_bound()
        if stop is None and self.limits.gap <= NODE_TOLERANCE:
            bound = self.loss  # to within NODE_TOLERANCE, as promised
        if stop is None and self.least < self.loss * (1 - max(STATED, self.limits.gap)):
            stop = StopReason.PRECISION
        bound = min(bound, self.least)
        return Proof(self._sorted(), self.loss, bound, stop, self.least, self.nodes, self.evaluations)

    def _watch(self) -> None:
        """Check the clock and report."""
        clock = self.limits.clock
        if clock.expired:
            self.end(StopReason.TIME)
        elif self.limits.report is not None and not self.over and clock.seconds >= self.reported + REPORT_SECONDS:
            self.reported = clock.seconds
            open_nodes = sum(len(tree.heap) + len(tree.in_process) for tree in self.trees)
            snapshot = Snapshot(self._sorted(), self.loss, self._lower_bound(), self.nodes, open_nodes)
            if self.limits.report(snapshot):
                self.end(StopReason.INTERRUPTED)

    @on_one_blas_thread
    def _process(self, work: list[tuple[_Tree, _Node, int]]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for _, node, budget in work:
            effort = ROOT_EFFORT if node.tie == 0 else NODE_EFFORT
            outcomes.append(self.kernel.process(node.chosen, node.candidates, node.weights, node.row, *effort, budget))
        return outcomes

    def _take(self) -> list[tuple[_Tree, _Node]]:
        """The nodes of the next round, those with the least bounds, or none if the search is over."""
        self._judge_race()
        if self.over:
            return []
        if self._gap() <= self.gap or any(tree.bound() == math.inf for tree in self.trees):
            self.end(None)
            return []
        if self.nodes >= self.node_limit or self.loss < self.limits.restart:
            self.end(StopReason.NODES)
            return []
        taken: list[tuple[_Tree, _Node]] = []
        while len(taken) < min(ROUND_NODES, self.node_limit - self.nodes):
            waiting = [tree for tree in self.trees if tree.heap]
            if not waiting:
                break
            tree = min(waiting, key=lambda tree: tree.nodes + len(tree.in_process))
            # in this order, so that the bound stays valid if Ctrl-C comes between the two lines
            tree.in_process.append(tree.heap[0].bound)
            taken.append((tree, heapq.heappop(tree.heap)))
        for tree in self.trees:
            tree.nodes += len(tree.in_process)
        self.nodes += len(taken)
        return taken

    def _judge_race(self) -> None:
        if len(self.trees) > 1 and min(tree.nodes for tree in self.trees) >= RACE_NODES:
            self.trees = [max(self.trees, key=_Tree.bound)]

    def _record(self, tree: _Tree, node: _Node, outcome: Outcome) -> None:
        """Record the outcome of a node: a better subset, its children, or the node itself if it was not finished."""
        if outcome.leaf is not None:
            self._offer(*self._polish(outcome.leaf))
        self.evaluations += outcome.evaluations
        self.budgets.record(self.k - len(node.chosen), outcome)
        self.least = min(self.least, outcome.least)
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
        """Open two children: with the column of the tree's rule, and without it unless every better subset has it."""
        branch = outcome.branches[tree.rule]
        others = np.arange(len(outcome.candidates)) != branch
        candidates, weights = outcome.candidates[others], outcome.weights[others]
        chosen = np.append(node.chosen, outcome.candidates[branch])
        children = [(chosen, max(outcome.row, 1 if len(node.chosen) else 2))]
        if not outcome.forced[tree.rule] and len(node.chosen) + len(candidates) >= self.k:
            children.append((node.chosen, outcome.row))
        for subset, row in children:
            self.ties -= 1
            heapq.heappush(tree.heap, _Node(bound, self.ties, subset, candidates, weights, row))

    def _polish(self, leaf: NDArray[np.int32]) -> tuple[NDArray[np.int32], float]:
        """Improve a leaf by swaps that keep the included columns."""
        free = range(len(self.include), len(leaf))
        subset, _ = swap_descent(self.swaps, include_first(self.include, leaf), free, self.limits.clock)
        return subset, self._loss(subset)

    def _sorted(self) -> Indices:
        return np.sort(self.best).astype(np.intp)

    def _loss(self, subset: NDArray[np.int32]) -> float:
        logarithm = log_loss_of(self.columns, subset, self.c)
        return math.exp(logarithm) if logarithm < math.log(LARGEST) else math.inf

    def _root(self) -> _Tree:
        """The root has only the included columns; the relaxation starts from the incumbent."""
        candidates = np.setdiff1d(np.arange(len(self.columns), dtype=np.int32), self.include)
        weights = np.isin(candidates, self.best).astype(np.float32)
        tree = _Tree(0)
        tree.heap.append(_Node(float(self.k), 0, self.include, candidates, weights, 1))
        return tree

    def _forest(self, roots: Sequence[Root]) -> list[_Tree]:
        """One root for each of many columns and its candidates, in one tree for each branching rule."""
        missing = self.k - len(self.include) - 1
        nodes: list[_Node] = []
        for column, candidates in roots:
            self.ties -= 1
            chosen = np.append(self.include, np.int32(column)).astype(np.int32)
            weights = np.full(len(candidates), missing / max(len(candidates), 1), np.float32)
            nodes.append(_Node(float(self.k), self.ties, chosen, candidates, weights, 1))
        trees = [_Tree(0), _Tree(1)]
        for tree in trees:
            tree.heap.extend(nodes)
            heapq.heapify(tree.heap)
        return trees

    def _lower_bound(self) -> float:
        bound = max((tree.bound() for tree in self.trees), default=math.inf)
        return max(min(bound, self.loss, LARGEST), float(self.k))

    def _gap(self) -> float:
        return (self.loss - self._lower_bound()) / self.loss if self.loss < math.inf else math.inf

    def end(self, stop: StopReason | None) -> None:
        """End the search for this reason, unless it has ended already."""
        if not self.over:
            self.stop, self.over = stop, True
            self.kernel.stop()
