"""The best subset for many points at once, with a proof: search the sets all of whose pairs can be in a better subset.

There are three lower bounds on the loss of k columns at a point: the loss of any j of them plus k − j (interlacing);
the loss of some of them plus that of the residuals of the others off their span (_cliques.pyx); and the least loss of
any k columns at that point, its *floor* (stages/points.py). The aggregate is monotone in the loss at every point, so
the largest bound at each point gives a bound on the aggregate.

All pairs of columns are bounded first. A pair whose bound is above the incumbent's loss is in no better subset. The
others are sorted by their bounds, and each subset is searched with its pair of the highest bound, in ascending order of
the pairs. When all pairs below some bound are done, no remaining subset has a loss below it. Threads search several
pairs at once. All pairs of a round have the same limit, and their results are combined in order, so the answer does not
depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from isopursuit._types import Array
from isopursuit.clock import Clock
from isopursuit.loss.penalty import LARGEST_LOG, log_spectral_loss, to_loss
from isopursuit.rank import spectrum
from isopursuit.search._joint import JointKernel
from isopursuit.search.incumbent import Incumbent, StopReason
from isopursuit.search.pool import ArrayPool, Pool
from isopursuit.search.proof._cliques import CliqueSearch, JointProblem
from isopursuit.search.proof.point_shares import Shares, off_included, penalty_table
from isopursuit.search.settings import REPORT_SECONDS
from isopursuit.search.swaps import swap_descent, swap_kernel

CLOSED = 1e-10  # subsets this close to the incumbent, relative to it, are not searched (below 1e-9: derived)
MOST_MISSING = 60  # no proof is attempted if more columns must be picked (derived: the levels of _cliques.pyx)
PAIR_MEMORY = 2**29  # bytes that the shares of all pairs may take (guess)
PAIR_POINTS = 16  # least number of points whose shares are stored; if they do not fit, the proof ends (guess)
MOST_RANKED = 8192  # most columns in pairs (derived: the ranks of more would take more than 256 MB)
PAIR_ROWS = 64  # columns whose pairs are bounded between two checks of the clock (guess)
RESTART = 0.5  # share of the initial loss: below it the proof restarts, with fewer pairs (guess)
CHUNK, CHUNKS = 32, 16  # pairs in one task of a thread, and tasks in one round (guess)

T = TypeVar("T")


@dataclass(frozen=True)
class JointTree:
    """The stage that finds the k columns of the least loss at all points together, and proves it."""

    nodes: int | None = None
    workers: int = 1

    def applies(self, pool: Pool, incumbent: Incumbent) -> bool:
        """If there are many points, and the loss is not too large for bounds."""
        joint = isinstance(pool, ArrayPool) and pool.points > 1 and pool.missing <= MOST_MISSING
        return joint and incumbent.log_loss < LARGEST_LOG

    def run(self, pool: Pool, incumbent: Incumbent, clock: Clock) -> StopReason | None:
        """Search the subsets of every pair until none can be better."""
        assert isinstance(pool, ArrayPool)
        search = _Search(pool, incumbent, clock, self.workers)
        try:
            reason = search.single_columns() if pool.missing < 2 else search.pairs(self.nodes)
        finally:
            search.close()
        if reason is not None or incumbent.closed:
            return reason
        incumbent.raise_bound(incumbent.loss)
        return None if incumbent.decides(incumbent.loss) else StopReason.PRECISION


class _Search:
    """The state of one proof."""

    def __init__(self, pool: ArrayPool, incumbent: Incumbent, clock: Clock, workers: int) -> None:
        self.pool, self.incumbent, self.clock, self.workers = pool, incumbent, clock, workers
        self.include = pool.include.astype(np.int32)
        self.free = np.setdiff1d(np.arange(pool.count), pool.include).astype(np.int32)
        known = incumbent.point_bounds
        self.floors = np.full(pool.points, float(pool.k)) if known is None else known
        self.columns = np.ascontiguousarray(np.swapaxes(pool.X, 1, 2))
        self.threads = ThreadPoolExecutor(workers)
        self.searches: list[CliqueSearch] = []

    def close(self) -> None:
        """End the threads."""
        for search in self.searches:
            search.stop = True
        self.threads.shutdown(cancel_futures=True)
        self._count_evaluations()

    def _count_evaluations(self) -> None:
        self.incumbent.evaluations += sum(search.evaluations for search in self.searches)
        self.searches = []

    def kernel(self) -> JointKernel:
        """A kernel for losses, for one thread."""
        kernel = swap_kernel(self.columns, self.pool.c, self.pool.aggregate)
        assert isinstance(kernel, JointKernel)
        kernel.set_floors(self.floors)
        kernel.prepare(self.incumbent.subset.astype(np.int32))
        return kernel

    @property
    def log_limit(self) -> float:
        """The cutoff in log-loss for better subsets, raised slightly because logarithms round."""
        return math.log(self.incumbent.loss * (1 - CLOSED)) + CLOSED / 10

    def take(self, subset: NDArray[np.int32], least: float) -> None:
        """Evaluate a subset whose log-loss is at least `least`."""
        self.incumbent.least = min(self.incumbent.least, to_loss(least))
        if self.incumbent.offer(subset, self.pool.log_loss(subset.astype(np.intp)), "joint tree"):
            better, _ = swap_descent(self.kernel(), subset, range(len(self.include), len(subset)), self.clock)
            self.incumbent.offer(better, self.pool.log_loss(better.astype(np.intp)), "joint tree")

    def single_columns(self) -> StopReason | None:
        """Evaluate all subsets; at most one column is missing."""
        if not self.pool.missing:
            return None
        kernel, parts = self.kernel(), [np.zeros(0)]
        for first in range(0, len(self.free), PAIR_ROWS):
            if self.incumbent.report():
                return StopReason.INTERRUPTED
            if self.clock.expired:
                return StopReason.TIME
            some = self.free[first : first + PAIR_ROWS]
            parts.append(kernel.bounds(self.include, some, self.pool.k, self.log_limit))
        bounds = np.concatenate(parts)
        for j in np.argsort(bounds, kind="stable").tolist():
            if bounds[j] < self.log_limit:
                self.take(np.append(self.include, self.free[j]), float(bounds[j]))
        return None

    def all_of(self, tasks: Iterable[Callable[[], T]]) -> list[T] | None:
        """Run these tasks on all threads; returns results in their order, or None if a callback stops the search."""
        futures = [self.threads.submit(task) for task in tasks]
        while wait(futures, REPORT_SECONDS).not_done:
            if self.incumbent.report():
                return None
        return None if self.incumbent.report() else [future.result() for future in futures]

    def pairs(self, nodes: int | None) -> StopReason | None:
        """Bound all pairs, then search the subsets of each until a limit is reached."""
        log_losses = log_spectral_loss(spectrum(self.pool.at_points(self.incumbent.subset)), self.pool.c)
        self.loss = self.incumbent.loss
        self.shares = Shares.of(self.pool.aggregate, log_losses)
        order = np.argsort(-log_losses, kind="stable")
        problem = self._problem(order)
        found = self._bounded_pairs(problem)
        if isinstance(found, StopReason):
            return found
        pairs, totals, ceiling = found
        some, places = np.unique(pairs, return_inverse=True)
        if len(some) > MOST_RANKED:
            return StopReason.MEMORY
        problem = problem.among(some)
        if not self._store(problem, places.reshape(-1, 2).astype(np.int32), len(some)):
            return StopReason.INTERRUPTED
        most = int(np.bincount(places.reshape(-1), minlength=1).max())
        self._count_evaluations()
        for _ in range(self.workers):
            columns = self.include, self.free[some], order.astype(np.int32)
            self.searches.append(CliqueSearch(problem, self.kernel(), *columns, most, self.clock.deadline))
        return self._search_all(totals, ceiling, nodes)

    def _problem(self, order: NDArray[np.intp]) -> JointProblem:
        """The problem for the clique kernel, with the points in this order."""
        pool, shares, X = self.pool, self.shares, self.pool.X[order]
        residuals, losses, trust = off_included(
            X[:, :, self.free], X[:, :, pool.include], pool.c, pool.missing, shares.largest
        )
        return JointProblem(
            np.ascontiguousarray(residuals.transpose(2, 0, 1)),
            pool.missing,
            (losses, trust, shares.share(self.floors[order])),
            penalty_table(pool.c, shares.largest),
            (shares.geometric, shares.cap, shares.unit, shares.kept, shares.left_out, shares.margin),
        )

    def _bounded_pairs(self, problem: JointProblem) -> tuple[NDArray[np.intp], Array, float] | StopReason:
        """The pairs that can be in a better subset, their ascending totals, and a lower bound on all other totals."""
        most = PAIR_MEMORY // (4 * min(self.pool.points, PAIR_POINTS))
        ceiling = self.shares.limit(self.log_limit)
        pairs, totals = np.zeros((0, 2), np.intp), np.zeros(0)
        for first in range(1, len(self.free), PAIR_ROWS):
            columns = range(first, min(first + PAIR_ROWS, len(self.free)))
            rows = self.all_of(partial(problem.pair_totals, a, ceiling) for a in columns)
            if rows is None or self.clock.expired:
                return StopReason.INTERRUPTED if rows is None else StopReason.TIME
            kept = [np.flatnonzero(row < ceiling) for row in rows]
            new = [np.stack([np.full(len(b), a), b], axis=1) for a, b in zip(columns, kept, strict=True)]
            pairs = np.concatenate([pairs, *new])
            totals = np.concatenate([totals, *(row[b] for row, b in zip(rows, kept, strict=True))])
            if len(totals) > most:
                ceiling = float(np.partition(totals, most)[most])
                pairs, totals = pairs[totals < ceiling], totals[totals < ceiling]
        order = np.argsort(totals, kind="stable")
        return pairs[order], totals[order], ceiling

    def _store(self, problem: JointProblem, pairs: NDArray[np.int32], count: int) -> bool:
        """Store the shares of all pairs; False if a callback stops the search."""
        q = len(pairs)
        ranks = np.full((count, count), np.iinfo(np.int32).max, np.int32)
        ranks[pairs[:, 0], pairs[:, 1]] = ranks[pairs[:, 1], pairs[:, 0]] = np.arange(q, dtype=np.int32)
        stored = min(self.pool.points, PAIR_MEMORY // (4 * max(q, 1))) if self.pool.missing > 2 else 0
        problem.set_pairs(pairs, ranks, np.zeros((q, stored), np.float32))
        size = CHUNK * CHUNKS
        fills = (partial(problem.fill, first, min(first + size, q)) for first in range(0, q if stored else 0, size))
        return self.all_of(fills) is not None

    def _search_all(self, totals: Array, ceiling: float, nodes: int | None) -> StopReason | None:
        """Search the subsets of every pair, in rounds, and raise the bound."""
        incumbent, shares, done = self.incumbent, self.shares, 0
        while True:
            limit = shares.limit(self.log_limit)
            end = int(np.searchsorted(totals, limit))
            complete = done >= end
            least = min(limit, ceiling) if complete else float(totals[done])
            incumbent.raise_bound(min(shares.bound(least), incumbent.least))
            if incumbent.loss < RESTART * self.loss:
                return self.pairs(nodes if nodes is None else nodes - done)
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
        idle: SimpleQueue[CliqueSearch] = SimpleQueue()
        for search in self.searches:
            idle.put(search)
        limit, starts = self.log_limit, range(first, end, CHUNK)

        def chunk(start: int) -> tuple[int, NDArray[np.int32] | None, float]:
            search = idle.get()
            try:
                return search.run(start, min(start + CHUNK, end), limit)
            finally:
                idle.put(search)

        results = self.all_of(partial(chunk, start) for start in starts)
        if results is None:
            return None
        for _, subset, least in results:
            if subset is not None:
                self.take(subset, least)
        short = next((i for i, result in enumerate(results) if result[0] < CHUNK), len(results) - 1)
        return starts[short] + results[short][0] - first
