"""Local search: swaps while the loss falls, from several starts; then kicks (changes of a few columns) and swaps again.

There are two kinds of kick. The first removes a few columns and adds the best ones, one after the other. Swaps at those
positions follow, and if they lead back to the same subset the kick does not count. The second kind, every fourth kick,
inserts random columns and makes swaps that increase the volume; if there are many columns of similar lengths, such
subsets are near the best. At many points every second kick is of the second kind. There is no volume there, so swaps
first lower the geometric mean of the losses: their sum is dominated by the worst point of a random subset.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from isopursuit._types import Array, Indices
from isopursuit.aggregate import GEOMETRIC, SUM, Aggregate
from isopursuit.clock import Clock
from isopursuit.loss.penalty import LARGEST_LOG
from isopursuit.search._joint import JointKernel
from isopursuit.search._swap import SwapKernel
from isopursuit.search.incumbent import Incumbent, StopReason
from isopursuit.search.pool import Pool
from isopursuit.search.settings import (
    COPY_SPEED,
    DETOUR,
    GREEDY_SHARE,
    MAX_KICK_COLUMNS,
    MIN_DECREASE,
    PATIENCE,
    PIVOTED,
    VOLUME_SHARE,
)
from isopursuit.search.stages.pairs import pair_subset
from isopursuit.search.swaps import Subset, greedy_subset, include_first, swap_descent, swap_kernel
from isopursuit.search.volume import grow_volume, large_volume

Visit = tuple[float, Subset]  # log-loss and subset at the end of a descent


@dataclass(frozen=True)
class LocalSearch:
    """Descents from `starts` subsets, then `kicks` of the best one, among the resident columns.

    With `resume` the incumbent, which no swap improves, replaces the first starts.
    """

    starts: int
    kicks: int
    rng: np.random.Generator
    share: float = 1.0
    resume: bool = False

    def applies(self, pool: Pool, incumbent: Incumbent) -> bool:
        """Always."""
        return True

    def run(self, pool: Pool, incumbent: Incumbent, clock: Clock) -> StopReason | None:
        """Offer the subset of every descent to the incumbent."""
        stopped = any(incumbent.report() for _ in self.steps(pool, incumbent, clock))
        return StopReason.INTERRUPTED if stopped else None

    def steps(self, pool: Pool, incumbent: Incumbent, clock: Clock) -> Iterator[None]:
        """As `run`, but yields after each descent."""
        X, positions = _at_hand(pool, incumbent)
        include = np.searchsorted(positions, pool.include).astype(np.intp)
        begin = None
        if self.resume and len(incumbent.subset) == pool.k:
            begin = np.searchsorted(positions, incumbent.subset).astype(np.intp)

        walk = LocalSearchRun(X, pool.c, include, pool.k, self.rng, clock, pool.aggregate)
        try:
            for log_loss, subset in walk.run(self.starts, self.kicks, begin):
                incumbent.offer(positions[subset], log_loss, "local search")
                yield
        finally:
            incumbent.evaluations += walk.descents
            incumbent.seen = tuple(dict.fromkeys((*positions[list(walk.seen)].tolist(), *incumbent.seen)))


def _at_hand(pool: Pool, incumbent: Incumbent) -> tuple[Array, Indices]:
    """The columns (n, D, P) to search, and their positions: all columns in memory, or those loaded last."""
    if pool.X is not None:
        return pool.X, np.arange(pool.count)
    fixed, count = len(pool.include), len(pool.resident_positions)
    recent: Indices = np.arange(max(fixed, count - MAX_KICK_COLUMNS), count)
    subset = pool.place(incumbent.subset) if len(incumbent.subset) == pool.k else np.zeros(0, np.intp)
    some = np.union1d(np.concatenate([np.arange(fixed), recent]), subset).astype(np.intp)
    order = np.argsort(pool.resident_positions[some])
    return np.ascontiguousarray(pool.resident_columns[:, some[order]])[None], pool.resident_positions[some[order]]


class LocalSearchRun:
    """The state of one local search on X (n, D, P), and the subsets it has found."""

    def __init__(
        self,
        X: Array,
        c: float,
        include: Indices,
        k: int,
        rng: np.random.Generator,
        clock: Clock,
        aggregate: Aggregate = SUM,
    ) -> None:
        self.X, self.c, self.include, self.k, self.rng, self.clock = X, c, include, k, rng, clock
        self.aggregate = aggregate
        self.points, self.rows, self.count = X.shape
        self.free = range(len(include), k)
        self.visits: list[Visit] = []
        self.descents = 0
        self.smooth: SwapKernel | JointKernel | None = None  # of the geometric mean, for subsets far from the best

    @property
    def seen(self) -> tuple[int, ...]:
        """The columns of all subsets found, those of the best ones first."""
        visits = sorted(self.visits, key=_loss)
        return tuple(dict.fromkeys(column for _, subset in visits for column in subset.tolist()))

    def run(self, starts: int, kicks: int, begin: Indices | None) -> Iterator[Visit]:
        """Search, and yield the subset at the end of every descent."""
        if self.X.nbytes / COPY_SPEED > self.clock.remaining:  # there is only time for one start
            only = large_volume(self.X, self.include, self.k, self.clock) if begin is None else begin.astype(np.int32)
            chosen = np.ascontiguousarray(np.swapaxes(self.X[:, :, only], 1, 2))
            kernel = swap_kernel(chosen, self.c, self.aggregate)
            yield kernel.loss(np.arange(len(only), dtype=np.int32)), only
            return
        columns = np.ascontiguousarray(np.swapaxes(self.X, 1, 2))
        self.kernel = swap_kernel(columns, self.c, self.aggregate, self.clock.deadline, self.k)
        if self.points > 1 and self.aggregate != GEOMETRIC:
            self.smooth = swap_kernel(columns, self.c, GEOMETRIC, self.clock.deadline, self.k)
        greedy_clock = self.clock.part(GREEDY_SHARE)
        first = self._large_volumes() if begin is None else [include_first(self.include, begin)]
        self.visits = [(self.kernel.loss(subset), subset) for subset in first]
        yield min(self.visits, key=_loss)
        waiting: list[Subset] = []
        if begin is None:
            greedy = greedy_subset(columns, self.c, self.include, self.k, greedy_clock, self.aggregate)
            complete = [greedy] if len(greedy) == self.k else []
            if self.k < self.rows:
                pairs = pair_subset(self.X, self.include, self.k, greedy_clock)
                complete += [pairs] if len(pairs) == self.k else []
            waiting = sorted([first[-1], *complete], key=self.kernel.loss)
        yield from self._descend_and_kick(waiting, starts, kicks, greedy_clock)

    def _descend_and_kick(
        self,
        waiting: list[Subset],
        starts: int,
        kicks: int,
        start_clock: Clock,
    ) -> Iterator[Visit]:
        """Descend from the given subsets, from random ones while there is time for starts, and from kicks."""
        current, fruitless = min(self.visits, key=_loss), 0
        lowest = current[0]
        turn, left = -1, starts + (kicks if self.count > self.k else 0) if len(self.free) else 0
        while left > 0 and not self.clock.expired:
            turn += 1
            new = turn < len(waiting) or (turn < starts and not start_clock.expired)
            places, far = list(self.free), True
            if new or fruitless >= PATIENCE:
                ready = turn < len(waiting)
                trial = waiting[turn] if ready else large_volume(self.X, self.include, self.k, self.clock, self.rng)
                current, fruitless = (min(self.visits, key=_loss) if new else (np.inf, trial)), 0
                lowest = current[0]
            elif turn % (4 if self.points == 1 else 2) == 1:
                trial = self._random_kick(current[1])
            else:
                far = False
                trial, changed = self._rebuilt(current[1])
                trial, _ = swap_descent(self.kernel, trial, changed, self.clock)
                if np.isin(trial, current[1]).all():
                    fruitless += 1
                    continue
                places.sort(key=lambda place: place not in changed)
            if far and self.smooth is not None:
                trial, _ = swap_descent(self.smooth, trial, places, self.clock)
            trial, loss = swap_descent(self.kernel, trial, places, self.clock)
            self.visits.append((loss, trial))
            self.descents, left = self.descents + 1, left - 1
            fruitless = 0 if loss < lowest - MIN_DECREASE else fruitless + 1
            lowest = min(loss, lowest)
            current = self.visits[-1] if self._acceptable(loss, current[0]) else current
            yield self.visits[-1]

    def _acceptable(self, log_loss: float, log_other: float) -> bool:
        """Whether kicks may continue from this subset: its excess loss is at most slightly above the other's."""
        if max(log_loss, log_other) > LARGEST_LOG:
            return log_loss < log_other
        ideal = self.aggregate.ideal(self.k, self.points)
        return math.exp(log_loss) - ideal < (1 + DETOUR) * (math.exp(log_other) - ideal)

    def _large_volumes(self) -> list[Subset]:
        """The best of a few pivoted QRs, and the same subset after swaps that increase the volume."""
        clock, fixed = self.clock.part(VOLUME_SHARE), len(self.include)
        pivoted = [large_volume(self.X, self.include, self.k, self.clock)]
        while self.points == 1 and not fixed and len(pivoted) < PIVOTED and not clock.expired:
            # if all columns have one length, any of them can be the first pivot
            pivoted.append(large_volume(self.X, [int(self.rng.integers(self.count))], self.k, self.clock))
        best = min(pivoted, key=self.kernel.loss)
        return [best, grow_volume(self.X[0], best, fixed, self.clock)] if self.points == 1 else [best]

    def _random_kick(self, subset: Subset) -> Subset:
        """Replace two to four columns by random ones. At one point, swaps then increase the volume."""
        kicked = subset.copy()
        size = min(int(self.rng.integers(2, 5)), len(self.free), self.count - len(subset))
        outside = np.setdiff1d(np.arange(self.count), subset)
        places = self.rng.choice(np.array(self.free), size, replace=False)
        kicked[places] = self.rng.choice(outside, size, replace=False)
        return grow_volume(self.X[0], kicked, len(self.include), self.clock) if self.points == 1 else kicked

    def _rebuilt(self, subset: Subset) -> tuple[Subset, list[int]]:
        """Remove two to six columns, but not all, and add the best ones, one after the other; also their positions."""
        size = min(int(self.rng.integers(2, 7)), max(len(self.free) - 1, 1))
        places = self.rng.choice(np.array(self.free), size, replace=False)
        rebuilt, kept = subset.copy(), np.delete(subset, places)
        for place in places:
            found, _ = self.kernel.add(kept, np.inf, -1)
            if found < 0:
                return subset, []
            rebuilt[place] = found
            kept = np.append(kept, np.int32(found))
        return rebuilt, places.tolist()


def _loss(visit: Visit) -> float:
    return visit[0]
