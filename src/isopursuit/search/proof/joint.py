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

from isopursuit._types import Array
from isopursuit.clock import Clock
from isopursuit.loss.penalty import LARGEST_LOG, to_loss
from isopursuit.search._joint import JointKernel
from isopursuit.search.incumbent import Incumbent, StopReason
from isopursuit.search.pool import ArrayPool, Pool
from isopursuit.search.proof._cliques import CliqueSearch
from isopursuit.search.settings import REPORT_SECONDS
from isopursuit.search.swaps import joint_kernel, swap_descent

CLOSED = 1e-10  # subsets this close to the incumbent, relative to it, are not searched (below 1e-9: derived)
MOST_MISSING = 60  # no proof is attempted if more columns must be picked (derived: the levels of _cliques.pyx)
PAIR_MEMORY = 2**28  # bytes of the list of pairs, and of the table of their ranks (chosen: laptops have 8 GB)
CHUNK, CHUNKS = 32, 16  # pairs in one task of a thread, and tasks in one round (guess)

T = TypeVar("T")


@dataclass(frozen=True)
class JointTree:
    """The stage that finds the k columns of the least loss at all points together, and proves it."""

    nodes: int | None = None
    workers: int = 1
    share: float = 1.0

    def applies(self, pool: Pool, incumbent: Incumbent) -> bool:
        """If there are many points, and the loss is not too large for bounds."""
        joint = isinstance(pool, ArrayPool) and pool.points > 1 and pool.missing <= MOST_MISSING
        return joint and incumbent.log_loss < LARGEST_LOG

    def run(self, pool: Pool, incumbent: Incumbent, clock: Clock) -> StopReason | None:
        """Search the subsets of every pair until none can be better."""
        assert isinstance(pool, ArrayPool)
        if pool.missing:
            search = _Search(pool, incumbent, clock, self.workers)
            try:
                reason = search.run(self.nodes)
            finally:
                search.close()
            if reason is not None or incumbent.closed:
                return reason
        incumbent.raise_bound(incumbent.loss)
        return None if incumbent.decides(incumbent.loss) else StopReason.PRECISION


class _Search:
    """The state of one proof."""

    def __init__(self, pool: ArrayPool, incumbent: Incumbent, clock: Clock, workers: int) -> None:
        self.pool, self.incumbent, self.clock = pool, incumbent, clock
        self.columns = np.ascontiguousarray(pool.X.transpose(2, 0, 1))
        self.reference = self.kernel()
        self.searches = [CliqueSearch(self.kernel(), pool.include.astype(np.int32), pool.missing) for _ in range(workers)]
        self.threads = ThreadPoolExecutor(workers)

    def close(self) -> None:
        """End the threads."""
        for search in self.searches:
            search.stop = True
        self.threads.shutdown(cancel_futures=True)
        self.incumbent.evaluations += sum(search.evaluations for search in self.searches)

    def kernel(self) -> JointKernel:
        """A kernel for one thread, with the order of the points and the cap of their losses from the incumbent."""
        kernel = joint_kernel(self.columns, self.pool.c, self.pool.aggregate, self.clock.deadline)
        kernel.linearize(self.incumbent.subset.astype(np.int32), self.incumbent.log_loss)
        return kernel

    @property
    def log_limit(self) -> float:
        """The cutoff in log-loss for better subsets, raised slightly because logarithms round."""
        return math.log(self.incumbent.loss * (1 - CLOSED)) + CLOSED / 10

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

    def run(self, nodes: int | None) -> StopReason | None:
        """Bound all columns and pairs, then search the subsets of each pair until a limit is reached."""
        found = self._bounded_pairs()
        if isinstance(found, StopReason):
            return found
        pairs, totals, ceiling = found
        some, places = np.unique(pairs, return_inverse=True)
        s, q = len(some), len(pairs)
        if 4 * s**2 > PAIR_MEMORY:
            return StopReason.MEMORY
        pairs = places.reshape(-1, 2).astype(np.int32)
        ranks = np.full((s, s), np.iinfo(np.int32).max, np.int32)
        ranks[pairs[:, 0], pairs[:, 1]] = ranks[pairs[:, 1], pairs[:, 0]] = np.arange(q, dtype=np.int32)
        most = int(np.bincount(places.reshape(-1), minlength=1).max())
        for search in self.searches:
            search.set_pairs(some, pairs, ranks, most, self.rest(self.pool.missing - 3))
        return self._search_all(totals, ceiling, nodes)

    def rest(self, count: int) -> float:
        """What this many columns add to the total at least."""
        return float(self.raised[: max(count, 0)].sum())

    def _bounded_pairs(self) -> tuple[NDArray[np.int32], Array, float] | StopReason:
        """The pairs that can be in a better subset, their ascending totals, and a lower bound on all other totals.

        If only one column is missing, each column stands for a pair.
        """
        search, ceiling = self.searches[0], self.reference.total_limit(self.log_limit)
        free = np.setdiff1d(np.arange(self.pool.count), self.pool.include).astype(np.int32)
        alone = search.totals(np.zeros(0, np.int32), free, ceiling)
        order = np.argsort(alone, kind="stable")[: np.count_nonzero(alone < ceiling)]
        free, alone = free[order], alone[order]
        self.raised = alone - search.first_total if search.additive else np.zeros(len(alone))
        if self.clock.expired or self.pool.missing == 1:
            return StopReason.TIME if self.clock.expired else (np.stack([free, free], axis=1), alone, ceiling)
        rest = self.rest(self.pool.missing - 2)

        def row(j: int) -> Callable[[CliqueSearch], Array]:
            some = free[: min(j, int(np.searchsorted(self.raised, ceiling - rest - alone[j])))]
            return lambda search: search.totals(free[j : j + 1], some, ceiling - rest) + rest

        pairs, totals = np.zeros((0, 2), np.int32), np.zeros(0)
        for first in range(1, len(free), CHUNK):
            columns = range(first, min(first + CHUNK, len(free)))
            rows = self.all_of(row(j) for j in columns)
            if rows is None or self.clock.expired:
                return StopReason.INTERRUPTED if rows is None else StopReason.TIME
            kept = [np.flatnonzero(row < ceiling) for row in rows]
            new = [np.stack([np.full(len(b), free[j]), free[b]], axis=1) for j, b in zip(columns, kept, strict=True)]
            pairs = np.concatenate([pairs, *new])
            totals = np.concatenate([totals, *(row[b] for row, b in zip(rows, kept, strict=True))])
            most = PAIR_MEMORY // 16
            if len(totals) > most:
                ceiling = float(np.partition(totals, most)[most])
                pairs, totals = pairs[totals < ceiling], totals[totals < ceiling]
        order = np.argsort(totals, kind="stable")
        return pairs[order], totals[order], ceiling

    def _search_all(self, totals: Array, ceiling: float, nodes: int | None) -> StopReason | None:
        """Search the subsets of every pair, in rounds, and raise the bound."""
        incumbent, done = self.incumbent, 0
        while True:
            limit = self.reference.total_limit(self.log_limit)
            end = int(np.searchsorted(totals, limit))
            complete = done >= end
            least = min(limit, ceiling) if complete else float(totals[done])
            incumbent.raise_bound(min(self.reference.least_loss(least), incumbent.least))
            if complete:
                return None if limit <= ceiling else StopReason.MEMORY
            if incumbent.gap > 0 and incumbent.closed:
                return None
            if self.clock.expired:
                return StopReason.TIME
            if nodes is not None and done >= nodes:
                return StopReason.NODES
            end = min(end, done + CHUNK * CHUNKS, end if nodes is None else nodes)
            searched = self._round(done, end)
            if searched is None:
                return StopReason.INTERRUPTED
            done += searched
            incumbent.nodes += searched

    def _round(self, first: int, end: int) -> int | None:
        """Search these pairs; returns how many of the first are done, or None if a callback stops the search."""
        limit, starts = self.log_limit, range(first, end, CHUNK)

        def chunk(start: int) -> Callable[[CliqueSearch], tuple[int, NDArray[np.int32] | None, float]]:
            return lambda search: search.run(start, min(start + CHUNK, end), limit)

        results = self.all_of(chunk(start) for start in starts)
        if results is None:
            return None
        for _, subset, least in results:
            if subset is not None:
                self._take(subset, least)
        short = next((i for i, result in enumerate(results) if result[0] < CHUNK), len(results) - 1)
        return starts[short] + results[short][0] - first

    def _take(self, subset: NDArray[np.int32], least: float) -> None:
        """Evaluate a subset whose log-loss is at least `least`."""
        self.incumbent.least = min(self.incumbent.least, to_loss(least))
        if self.incumbent.offer(subset, self.pool.log_loss(subset.astype(np.intp)), "joint tree"):
            places = range(len(self.pool.include), len(subset))
            better, _ = swap_descent(self.kernel(), subset, places, self.clock)
            self.incumbent.offer(better, self.pool.log_loss(better.astype(np.intp)), "joint tree")
