"""The best subset, with a proof: branch and bound on a queue of open nodes, on all cores.

A node is a set of chosen columns and the candidates for the missing ones. A task of the kernel (_tree.pyx) takes a few
nodes and explores their subtrees for a given amount of work, without the GIL. The nodes that it leaves open come back
to the queue. The smallest bound among the open nodes and those being explored is a lower bound on the loss of every
subset.

The number of tasks that are running or finished and not yet recorded is the same for any number of threads. Results are
recorded in the order in which tasks were started, some at a time, followed by new tasks, and the work of a task is
counted, not timed. So, except for rounding in BLAS, the answer does not depend on the number of threads, and no thread
waits for a round to end.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.clock import REPORT_SECONDS, Clock
from isopursuit._core.threads import on_one_blas_thread
from isopursuit._core.types import Array, Indices
from isopursuit.loss.envelope import relax
from isopursuit.loss.penalty import LARGEST, PROVED, STATED, stiffness
from isopursuit.search._swap import log_loss_of
from isopursuit.search.incumbent import StopReason
from isopursuit.search.local import include_first
from isopursuit.search.proof._tree import MOST_MISSING, TESTS_OF_BOUND, WORK_OF_TEST, OpenNode, TreeKernel
from isopursuit.search.rules import Rules
from isopursuit.search.settings import LEAST_TRIAL, WORK

Root: TypeAlias = tuple[int, NDArray[np.int32]]  # a column, and the candidates that may be combined with it

CLOSED_SHARE = 0.05  # a tree with a smaller share of closed nodes only grows (derived: from 0.5 on it shrinks)
TASKS = 64  # tasks started and not recorded (derived: four for each of 16 threads, so that they seldom wait for one)
# most nodes of a task at its start (measured on 16 cores: 1 takes 1.8 times as long, 16 as long as 8). An eighth of the
# tasks is recorded before others start (derived: 16 threads still have 56), and they have
# an eighth of all work before
PART = 8
TRIAL_SHARE = 0.1  # share of all work for doubted enumerations (measured: 0.05 and 0.2 are 9 and 4 % slower)
MOST_TESTS = WORK // (PART * WORK_OF_TEST)  # most tests of one enumeration (derived: about 3 ms)
NO_LIMIT = 2**62


@dataclass(frozen=True)
class Limits:
    """When a proof ends before it is complete.

    `gap` is relative. After `trial` nodes the gap `enough` ends the search, and so does a tree that only grows. `nodes`
    and the clock are limits, `workers` threads explore nodes. `report` is called about ten times a second with a
    `Snapshot`, and ends the proof by returning True.
    """

    gap: float = 0.0
    nodes: int | None = None
    workers: int = 1
    clock: Clock = field(default_factory=lambda: Clock.of(None))
    report: Callable[[Snapshot], bool] | None = None
    trial: int | None = None
    enough: float = 0.0


class Snapshot(NamedTuple):
    """The state of a tree.

    `subset` (sorted) is the best one, and `loss` is infinite above LARGEST. `least` is the least possible loss of an
    evaluated subset, given rounding. `stop` says why a tree has ended, None if its subset is proved within a relative
    1e-9 or within the requested gap.
    """

    subset: Indices
    loss: float
    lower_bound: float
    nodes: int
    open_nodes: int
    evaluations: int
    least: float
    stop: StopReason | None


class Explored(NamedTuple):
    """The result of a task: its open nodes, its best subset (None if no better one was found), the least possible loss
    of an evaluated subset, given rounding, and numbers of nodes, of losses evaluated, of multiplications, and of tests
    in doubted enumerations.

    `counts` (size + 1, 6) has for each number of missing columns: nodes, those left open by their bound, work of the
    bounds, enumerations, those that closed their node, and their tests.
    """

    open: list[OpenNode]
    leaf: NDArray[np.int32] | None
    least: float
    nodes: int
    evaluations: int
    work: int
    spent: int
    counts: NDArray[np.int64]


class Task(NamedTuple):
    """A task: the least bound and the number of its nodes, the most nodes and doubted tests it may use, its result."""

    bound: float
    begun: int
    nodes: int
    spare: int
    result: Future[Any]


def branch_and_bound(
    X: Array,
    c: float,
    start: NDArray[np.integer],
    limits: Limits,
    *,
    include: Sequence[int] | NDArray[np.integer] = (),
    roots: Sequence[Root] | None = None,
    below: float = math.inf,
    rules: Rules | None = None,
) -> Snapshot:
    """Find the columns of X (D, P) of least isometry loss, as many as `start` has, and prove it.

    Every subset contains the columns `include`, which are in `start`. With `roots`, only subsets of `include`, one of
    these columns and its candidates are searched. Only losses below `below` are searched; if there is none, the answer
    has this loss and the subset `start`. Without a deadline it is reproducible, except for rounding.
    """
    search = _Search(X, c, start, limits, np.asarray(include, np.int32), below, rules)
    search.plant(roots)
    try:
        search.run()
    except KeyboardInterrupt:
        limits.clock.pressed()
        search.end(StopReason.INTERRUPTED)
    except MemoryError:
        search.end(StopReason.MEMORY)
    return search.answer()


def tree_kernel(columns: Array, k: int, c: float, incumbent: float, rules: Rules | None = None) -> TreeKernel:
    """The kernel that searches for k of `columns` (P, D) with a loss below the incumbent's."""
    trace = float(np.sort(np.einsum("pd,pd->p", columns, columns))[-k:].sum())
    envelopes = relax(c, k, incumbent, trace)
    pairs = stiffness(c, max(incumbent - k, 0.0))
    tables = None if rules is None else rules.tables
    return TreeKernel(columns, k, c, envelopes.low, envelopes.high, envelopes.rows, incumbent, pairs, tables)


class Budgets:
    """The most tests of an enumeration, for each number m of missing columns.

    The alternative is to branch. If a share p of the nodes with m missing columns stays open, one of them leads to
    1/(1 − p) nodes with m missing columns, each with the cost of a bound, and to p/(1 − p) nodes with m − 1. An
    enumeration is given up once it has cost as much as branching would, so the work is at most twice that of the
    cheaper way. If enumerations have mostly failed, or have cost more than branching, they are doubted and get only a
    share of all work.
    """

    def __init__(self, k: int) -> None:
        self.counts = np.zeros((k + 1, 6), np.int64)  # as in _tree.pyx: nodes, open, work, tried, finished, tests
        self.spent = 0  # tests of doubted enumerations

    def limits(self) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
        """For each number of missing columns: the most tests, and whether enumerations are doubted."""
        budgets, doubted, below = [NO_LIMIT], [False], 0.0
        for m, (nodes, left_open, work, tried, finished, tests) in enumerate(self.counts[1:].tolist(), start=1):
            share = min((left_open + 0.5) / (nodes + 1), 0.99)
            bound = work / WORK_OF_TEST / nodes if nodes else TESTS_OF_BOUND
            branched, enumerated = (bound + share * below) / (1 - share), tests / (finished + 1)
            doubted.append(m > 2 and (finished + 1 < (tried + 1) / 2 or enumerated > branched))
            below = branched if doubted[m] else min(branched, bound + share * enumerated)
            budgets.append(NO_LIMIT if m <= 2 else int(min(branched, MOST_TESTS)) if m <= MOST_MISSING else 0)
        return np.array(budgets, np.int64), np.array(doubted, np.int8)

    def spare(self, work: int) -> int:
        """Tests of doubted enumerations that may still be made after this much work."""
        return max(int(TRIAL_SHARE * work / WORK_OF_TEST) - self.spent, 0)


class _Search:
    """The state of a search. Threads explore nodes; everything else happens in the caller's thread."""

    def __init__(
        self,
        X: Array,
        c: float,
        start: NDArray[np.integer],
        limits: Limits,
        include: NDArray[np.int32],
        below: float,
        rules: Rules | None,
    ) -> None:
        self.columns, self.k = np.ascontiguousarray(X.T), len(start)
        self.c, self.limits, self.include = c, limits, include
        self.node_limit = NO_LIMIT if limits.nodes is None else limits.nodes
        self.best = include_first(include, start)
        self.loss = min(self._loss(self.best), below)
        self.kernel = tree_kernel(self.columns, self.k, c, min(self.loss, LARGEST), rules)
        self.heap: list[tuple[float, int, OpenNode]] = []
        self.taken: list[tuple[float, int, OpenNode]] = []  # nodes for the next task
        self.running: deque[Task] = deque()  # in the order of their start
        self.over = False
        self.stop: StopReason | None = None
        self.nodes = self.ties = self.work = 0
        self.evaluations = 1
        self.least = math.inf  # the least possible loss of an evaluated subset, given rounding
        self.reported = -math.inf
        self.budgets = Budgets(self.k)

    def plant(self, roots: Sequence[Root] | None) -> None:
        """Open one root for all subsets, or one for each of many columns and its candidates."""
        if len(self.include) == self.k:
            return
        if roots is None:
            candidates = np.setdiff1d(np.arange(len(self.columns), dtype=np.int32), self.include)
            weights = np.isin(candidates, self.best).astype(np.float32)  # the relaxation starts from the incumbent
            self._push(OpenNode(float(self.k), self.include, candidates, weights))
            return
        missing = self.k - len(self.include) - 1
        for column, candidates in roots:
            weights = np.full(len(candidates), missing / max(len(candidates), 1), np.float32)
            chosen = np.append(self.include, np.int32(column)).astype(np.int32)
            self._push(OpenNode(float(self.k), chosen, candidates, weights, True))

    def run(self) -> None:
        """Explore nodes until the search is over."""
        with ThreadPoolExecutor(self.limits.workers) as threads:
            try:
                while self._start(threads):
                    for _ in range(max(len(self.running) // PART, 1)):
                        while wait([self.running[0].result], self._pause()).not_done:
                            self._watch()
                        self._record(self.running[0])
                        self._watch()
            except BaseException:  # Ctrl-C, or an error of the callback
                self.kernel.stop()  # the tasks return soon; the bounds of their nodes stay in `running`
                raise
        while self.stop is not None and self.running:  # what tasks found before the limit
            self._record(self.running[0])

    def _pause(self) -> float:
        """Seconds until the clock is checked again."""
        return max(0.01, min(self.limits.clock.remaining, REPORT_SECONDS))

    def _start(self, threads: ThreadPoolExecutor) -> bool:
        """Start tasks for the nodes with the least bounds; returns whether the search goes on."""
        if self.over:
            return False
        if not (self.heap or self.running) or self._gap() <= max(self.limits.gap, PROVED):
            self.end(None)
            return False
        if not self.heap or len(self.running) >= TASKS:
            return True
        # what follows is computed once: it takes as long as a short task, and a start moves nodes without changing it
        explore = on_one_blas_thread(self.kernel.explore)
        budgets, doubted = self.budgets.limits()
        left = self.node_limit - self.nodes - sum(task.nodes for task in self.running)
        if self.limits.trial is not None and self.nodes >= self.limits.trial and self._fails():
            left = 0  # the tasks that run are finished, so that the bound is reproducible
        spare = self.budgets.spare(self.work) - sum(task.spare for task in self.running)
        work = min(int(self.work / (PART * TASKS)), WORK)
        while self.heap and len(self.running) < TASKS and left > 0:
            nodes, tests = max(left // TASKS, 1), max(min(spare, 2 * MOST_TESTS), 0)  # enough tests for one enumeration
            # at each step every open node is in the heap, taken or of a task, so the bound is valid if Ctrl-C comes
            for _ in range(min(max(len(self.heap) // TASKS, 1), PART, nodes)):
                self.taken.append(self.heap[0])
                heapq.heappop(self.heap)
            batch = [node for _, _, node in self.taken]
            result = threads.submit(explore, batch, min(self.loss, LARGEST), budgets, doubted, tests, work, nodes)
            self.running.append(Task(self.taken[0][0], len(batch), nodes, tests, result))
            self.taken = []
            left, spare = left - nodes, spare - tests
        if not self.running:
            self.end(StopReason.NODES)
        return bool(self.running)

    def _fails(self) -> bool:
        """Whether a trial ends the search: its gap is enough, or nearly all nodes are open."""
        # a node that is not closed has two children: a share 1 − 2 × (share closed) of the bounded nodes is open
        open_nodes = len(self.heap) + sum(task.begun for task in self.running)
        grows = self.nodes >= LEAST_TRIAL and open_nodes > (1 - 2 * CLOSED_SHARE) * self.nodes
        return self._gap() <= self.limits.enough or grows

    def snapshot(self) -> Snapshot:
        """The state at this moment."""
        return Snapshot(
            np.sort(self.best).astype(np.intp), self.loss, self._lower_bound(), self.nodes,
            len(self.heap) + len(self.running), self.evaluations, self.least, self.stop,
        )  # fmt: skip

    def answer(self) -> Snapshot:
        """The result, after the threads have returned."""
        stop, bound = self.stop, self._lower_bound()
        if stop is None and self.limits.gap <= PROVED:
            bound = self.loss  # to within PROVED, as promised
        if stop is None and self.least < self.loss * (1 - max(STATED, self.limits.gap)):
            stop = StopReason.PRECISION
        return self.snapshot()._replace(lower_bound=min(bound, self.least), stop=stop)

    def _watch(self) -> None:
        """Check the clock and report."""
        clock = self.limits.clock
        if clock.expired:
            self.end(StopReason.TIME)
        elif self.limits.report is not None and not self.over and clock.seconds >= self.reported + REPORT_SECONDS:
            self.reported = clock.seconds
            if self.limits.report(self.snapshot()):
                self.end(StopReason.INTERRUPTED)

    def _record(self, task: Task) -> None:
        """Record the result of the first task: a better subset, and its open nodes."""
        found = Explored(*task.result.result())
        if found.leaf is not None:
            loss = self._loss(found.leaf)
            if loss < self.loss:
                self.best, self.loss = include_first(self.include, found.leaf), loss
        self.nodes += found.nodes
        self.evaluations += found.evaluations
        self.work += found.work
        self.budgets.counts += found.counts
        self.budgets.spent += found.spent
        self.least = min(self.least, found.least)
        for node in found.open:
            self._push(node)
        self.running.popleft()  # last, as above

    def _push(self, node: OpenNode) -> None:
        self.ties -= 1  # the youngest first among equal bounds
        heapq.heappush(self.heap, (node.bound, self.ties, node))

    def _loss(self, subset: NDArray[np.int32]) -> float:
        logarithm = log_loss_of(self.columns, subset, self.c)
        return math.exp(logarithm) if logarithm < math.log(LARGEST) else math.inf

    def _lower_bound(self) -> float:
        waiting = (node[0] for node in self.heap[:1] + self.taken[:1])
        bound = min([*(task.bound for task in self.running), *waiting], default=math.inf)
        return max(min(bound, self.loss, LARGEST), float(self.k))

    def _gap(self) -> float:
        return (self.loss - self._lower_bound()) / self.loss if self.loss < math.inf else math.inf

    def end(self, stop: StopReason | None) -> None:
        """End the search for this reason, unless it has ended already."""
        if not self.over:
            self.stop, self.over = stop, True
            self.kernel.stop()
