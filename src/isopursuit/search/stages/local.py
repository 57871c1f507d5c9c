"""Local search: swaps while the loss falls, from several starts; then kicks (changes of a few columns) and swaps again.

There are two kicks. One leaves out a few columns and adds what is then best, one after the other; swaps in those places
alone follow, and where they lead back the kick does not count. The other, every fourth time, puts random columns in and
swaps for the largest volume: where columns are many and of similar lengths, that is near the best. At many points it is
every second time, and there is no volume: swaps for the geometric mean of the losses come first, because in their sum
the worst point of a random subset is all that counts.
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

Visit = tuple[float, Subset]  # log-loss and subset that a descent ended in


@dataclass(frozen=True)
class LocalSearch:
    """Descents from `starts` subsets, then `kicks` of the best, among the columns at hand.

    With `resume` the incumbent, which no swap improves, takes the place of the first starts.
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
        """The same, one descent at a time."""
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
    """Columns (n, D, P) that are searched, and their positions: all in memory, or those loaded last."""
    if pool.X is not None:
        return pool.X, np.arange(pool.count)
    fixed, count = len(pool.include), len(pool.resident_positions)
    recent: Indices = np.arange(max(fixed, count - MAX_KICK_COLUMNS), count)
    subset = pool.place(incumbent.subset) if len(incumbent.subset) == pool.k else np.zeros(0, np.intp)
    some = np.union1d(np.concatenate([np.arange(fixed), recent]), subset).astype(np.intp)
    order = np.argsort(pool.resident_positions[some])
    return np.ascontiguousarray(pool.resident_columns[:, some[order]])[None], pool.resident_positions[some[order]]


class LocalSearchRun:
    """One local search on X (n, D, P), and what it has met."""

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
        self.smooth: SwapKernel | JointKernel | None = None  # another loss, by which subsets far from the best descend

    @property
    def seen(self) -> tuple[int, ...]:
        """The columns of all subsets met, those of the best ones first."""
        visits = sorted(self.visits, key=_loss)
        return tuple(dict.fromkeys(column for _, subset in visits for column in subset.tolist()))

    def run(self, starts: int, kicks: int, begin: Indices | None) -> Iterator[Visit]:
        """Search; every subset that a descent ends in."""
        if self.X.nbytes / COPY_SPEED > self.clock.remaining:  # no time but for a start
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
        """Descend from the subsets that wait, from random ones while there is time for starts, and from kicks."""
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
        """Whether kicks may go on from this subset instead of the other: its loss above the ideal is hardly higher."""
        if max(log_loss, log_other) > LARGEST_LOG:
            return log_loss < log_other
        ideal = self.aggregate.ideal(self.k, self.points)
        return math.exp(log_loss) - ideal < (1 + DETOUR) * (math.exp(log_other) - ideal)

    def _large_volumes(self) -> list[Subset]:
        """The best of a few pivoted QRs, and what swaps for the volume make of it."""
        clock, fixed = self.clock.part(VOLUME_SHARE), len(self.include)
        pivoted = [large_volume(self.X, self.include, self.k, self.clock)]
        while self.points == 1 and not fixed and len(pivoted) < PIVOTED and not clock.expired:
            # which column is first is a matter of chance where all are of one length
            pivoted.append(large_volume(self.X, [int(self.rng.integers(self.count))], self.k, self.clock))
        best = min(pivoted, key=self.kernel.loss)
        return [best, grow_volume(self.X[0], best, fixed, self.clock)] if self.points == 1 else [best]

    def _random_kick(self, subset: Subset) -> Subset:
        """Replace two to four columns by random ones; at one point, then swap for the volume."""
        kicked = subset.copy()
        size = min(int(self.rng.integers(2, 5)), len(self.free), self.count - len(subset))
        outside = np.setdiff1d(np.arange(self.count), subset)
        places = self.rng.choice(np.array(self.free), size, replace=False)
        kicked[places] = self.rng.choice(outside, size, replace=False)
        return grow_volume(self.X[0], kicked, len(self.include), self.clock) if self.points == 1 else kicked

    def _rebuilt(self, subset: Subset) -> tuple[Subset, list[int]]:
        """Leave out two to six columns, but not all, and add the best one after the other; the places they take."""
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
