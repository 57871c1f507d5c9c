"""The best subset for many points at once, with a proof: search the sets all of whose pairs can be in a better subset.

The loss at each point is bounded from that of fewer columns (_joint.pxd). The aggregate is monotone in the loss at
every point, so these bounds give one on the aggregate.

All columns are bounded first, then their pairs. A pair whose bound is above the incumbent's loss is in no better
subset. The others are sorted by their bounds, and each subset is searched with its pair of the highest bound, in
ascending order of the pairs. When all pairs below some bound are done, no remaining subset has a loss below it. Threads
search several pairs at once. All pairs of a round have the same limit, and their results are combined in order, so the
answer does not depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.clock import REPORT_SECONDS, Clock
from isopursuit._core.types import Array
from isopursuit.loss.penalty import LARGEST_LOG, ROUNDING, to_loss
from isopursuit.search._joint import CliqueSearch
from isopursuit.search.incumbent import Incumbent, StopReason
from isopursuit.search.local import include_first, joint_kernel, ruled, swap_descent
from isopursuit.search.pool import Pool
from isopursuit.search.proof.tree import PART, TASKS
from isopursuit.search.settings import TABLE_BYTES

MOST_MISSING = 60  # no proof is attempted if more columns must be picked (derived: the levels of _joint.pyx)

T = TypeVar("T")


@dataclass(frozen=True)
class JointTree:
    """The stage that finds the k columns of the least loss at all points together, and proves it."""

    nodes: int | None = None
    workers: int = 1
    trial: int | None = None  # pairs after which the gap `enough` ends the search
    enough: float = 0.0

    def applies(self, pool: Pool, incumbent: Incumbent) -> bool:
        """If there are many points, and the loss is not too large for bounds."""
        joint = pool.X is not None and pool.points > 1 and pool.missing <= MOST_MISSING
        return joint and incumbent.log_loss < LARGEST_LOG

    def run(self, pool: Pool, incumbent: Incumbent, clock: Clock) -> StopReason | None:
        """Search the subsets of every pair until none can be better."""
        if pool.missing:
            search = _Search(pool, incumbent, clock, self)
            try:
                reason = search.run()
            finally:
                search.close()
            if reason is not None or incumbent.closed:
                return reason
        incumbent.raise_bound(incumbent.loss)
        return None if incumbent.decides(incumbent.loss) else StopReason.PRECISION


class _Search:
    """The state of one proof."""

    def __init__(self, pool: Pool, incumbent: Incumbent, clock: Clock, limits: JointTree) -> None:
        self.pool, self.incumbent, self.clock, self.limits = pool, incumbent, clock, limits
        workers = limits.workers
        assert pool.X is not None
        columns = np.ascontiguousarray(pool.X.transpose(2, 0, 1))
        include, free = pool.include.astype(np.int32), range(len(pool.include), pool.k)
        self.kernels = [joint_kernel(columns, pool.c, pool.aggregate, clock.deadline) for _ in range(workers)]
        # the cap of a trimmed mean comes from the incumbent, so it is improved first
        start, _ = swap_descent(ruled(self.kernels[0], pool), include_first(include, incumbent.subset), free, clock)
        self.take(start)
        for kernel in self.kernels:
            kernel.prepare(incumbent.subset.astype(np.int32))
        tables = None if pool.rules is None else pool.rules.tables
        self.searches = [CliqueSearch(kernel, include, pool.missing, tables) for kernel in self.kernels]
        self.threads = ThreadPoolExecutor(workers)

    def close(self) -> None:
        """End the threads."""
        for search in self.searches:
            search.stop = True
        self.threads.shutdown(cancel_futures=True)
        self.incumbent.evaluations += sum(search.evaluations for search in self.searches)

    def take(self, subset: NDArray[np.int32]) -> None:
        """Offer a subset to the incumbent."""
        self.incumbent.offer(subset, self.pool.log_loss(subset.astype(np.intp)), "joint tree")

    @property
    def log_limit(self) -> float:
        """The cutoff in log-loss for better subsets, raised slightly because logarithms round."""
        return math.log(self.incumbent.limit) + ROUNDING

    @property
    def late(self) -> bool:
        """Whether time is over. The kernels have their own clock: what they did not compute looks like excluded."""
        return self.clock.expired or any(kernel.late for kernel in self.kernels)

    def all_of(self, tasks: Iterable[Callable[[CliqueSearch], T]]) -> list[T] | None:
        """Run these tasks on all threads; returns results in their order, or None if a callback stops the search."""
        idle: SimpleQueue[CliqueSearch] = SimpleQueue()
        for search in self.searches:
            idle.put(search)

        def run(task: Callable[[CliqueSearch], T]) -> T:
            search = idle.get()
            try:
                return task(search)
            finally:
                idle.put(search)

        futures = [self.threads.submit(run, task) for task in tasks]
        while wait(futures, REPORT_SECONDS).not_done:
            if self.incumbent.report():
                return None
        return None if self.incumbent.report() else [future.result() for future in futures]

    def run(self) -> StopReason | None:
        """Bound all columns and pairs, then search the subsets of each pair in rounds, and raise the bound."""
        found = self._bounded_pairs()
        if isinstance(found, StopReason):
            return found
        incumbent, totals, done, nodes = self.incumbent, found, 0, self.limits.nodes
        while True:
            limit = self.kernels[0].total_limit(self.log_limit)
            end = int(np.searchsorted(totals, limit))
            least = limit if done >= end else float(totals[done])
            incumbent.raise_bound(min(self.kernels[0].least_loss(least), incumbent.least))
            if done >= end or (incumbent.gap > 0 and incumbent.closed):
                return None
            if self.late:
                return StopReason.TIME
            tried = self.limits.trial is not None and done >= self.limits.trial
            near = incumbent.loss - incumbent.lower_bound <= self.limits.enough * incumbent.loss
            if (nodes is not None and done >= nodes) or (tried and near):
                return StopReason.NODES
            size = max(done // 4, 2 * TASKS)  # later rounds are longer, because the limit hardly falls any more
            searched = self._round(done, min(end, done + size, end if nodes is None else nodes))
            if searched is None:
                return StopReason.INTERRUPTED
            done += searched
            incumbent.nodes += searched

    def _bounded_pairs(self) -> Array | StopReason:
        """Give the searches all pairs that can be in a better subset; returns their totals, in ascending order.

        If only one column is missing, each column stands for a pair.
        """
        limit = self.kernels[0].total_limit(self.log_limit)
        free = np.setdiff1d(np.arange(self.pool.count), self.pool.include).astype(np.int32)
        parts = self.all_of(_totals(free[:0], some, limit) for some in np.array_split(free, 1 + len(free) // 1024))
        if parts is None or self.late:
            return StopReason.INTERRUPTED if parts is None else StopReason.TIME
        alone = np.concatenate(parts)
        order = np.argsort(alone, kind="stable")[: np.count_nonzero(alone < limit)]
        free, alone = free[order], alone[order]
        # what a column adds to any total at least
        added = alone - self.searches[0].first_total if self.searches[0].additive else np.zeros(len(alone))
        rest = [float(added[: max(self.pool.missing - d, 0)].sum()) for d in range(4)]
        found = (np.stack([free, free], axis=1), alone) if self.pool.missing == 1 else None
        found = found or self._pairs(free, alone, added, limit - rest[2])
        if isinstance(found, StopReason):
            return found
        pairs, totals = found
        order = np.argsort(totals, kind="stable")
        columns, places = np.unique(pairs[order], return_inverse=True)
        if 4 * len(columns) ** 2 > TABLE_BYTES:
            return StopReason.MEMORY
        pairs = places.reshape(-1, 2).astype(np.int32)
        ranks = np.full((len(columns), len(columns)), np.iinfo(np.int32).max, np.int32)
        ranks[pairs[:, 0], pairs[:, 1]] = ranks[pairs[:, 1], pairs[:, 0]] = np.arange(len(pairs), dtype=np.int32)
        for search in self.searches:
            search.set_pairs(columns, pairs, ranks, int(np.bincount(places.reshape(-1), minlength=1).max()), rest[3])
        return totals[order] + rest[2]

    def _pairs(
        self, free: NDArray[np.int32], alone: Array, added: Array, limit: float
    ) -> tuple[NDArray[np.int32], Array] | StopReason:
        """The pairs of the free columns whose totals are below the limit, and their totals."""
        pairs, totals = [np.zeros((0, 2), np.int32)], [np.zeros(0)]
        for first in range(0, len(free), TASKS):
            some = range(first, min(first + TASKS, len(free)))
            ends = [min(j, int(np.searchsorted(added, limit - alone[j]))) for j in some]
            rows = self.all_of(_totals(free[j : j + 1], free[:end], limit) for j, end in zip(some, ends, strict=True))
            if rows is None or self.late:
                return StopReason.INTERRUPTED if rows is None else StopReason.TIME
            for j, row in zip(some, rows, strict=True):
                rules = self.pool.rules
                excluded = False if rules is None else rules.near_of(free[j : j + 1].astype(np.intp))[free[: len(row)]]
                (kept,) = np.nonzero((row < limit) & ~np.asarray(excluded))
                pairs.append(np.stack([np.full(len(kept), free[j]), free[kept]], axis=1))
                totals.append(row[kept])
            if 16 * sum(map(len, totals)) > TABLE_BYTES:
                return StopReason.MEMORY
        return np.concatenate(pairs), np.concatenate(totals)

    def _round(self, first: int, end: int) -> int | None:
        """Search these pairs; returns how many of the first are done, or None if a callback stops the search."""
        limit, size = self.log_limit, max((end - first) // TASKS, PART)
        starts = range(first, end, size)

        def chunk(start: int) -> Callable[[CliqueSearch], tuple[int, NDArray[np.int32] | None, float]]:
            return lambda search: search.run(start, min(start + size, end), limit)

        results = self.all_of(chunk(start) for start in starts)
        if results is None:
            return None
        for _, subset, least in results:
            if subset is not None:
                self.incumbent.least = min(self.incumbent.least, to_loss(least))
                self.take(subset)
        short = next((i for i, result in enumerate(results) if result[0] < size), len(results) - 1)
        return starts[short] + results[short][0] - first


def _totals(first: NDArray[np.int32], columns: NDArray[np.int32], limit: float) -> Callable[[CliqueSearch], Array]:
    return lambda search: search.totals(first, columns, limit)
