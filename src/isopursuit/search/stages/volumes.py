"""Starts of large volume over a source: pivoted QR of all columns with several pivots per pass, then swaps.

The next pivot is the column farthest from the span of those before it. Distances never grow while columns are added, so
a pass loads the farthest columns. Pivots are chosen among them as long as the farthest is beyond all other columns at
the time of the pass, and a few more if that would take many passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isopursuit._types import Array, Indices
from isopursuit.backend import namespace, on_host
from isopursuit.clock import Clock
from isopursuit.loss.penalty import log_spectral_loss
from isopursuit.rank import spectrum
from isopursuit.search.incumbent import Incumbent, StopReason
from isopursuit.search.passes import on_same_device, usable
from isopursuit.search.pool import Pool
from isopursuit.search.settings import BYTES_PER_ENTRY, PAIR_ROOM, VOLUMES_SHARE
from isopursuit.search.source_pool import SourcePool
from isopursuit.search.stages.pairs import MOST_PASSES, PairCandidates, best_first
from isopursuit.search.stages.source import SwapPasses
from isopursuit.sources.topk import TopK


@dataclass(frozen=True)
class VolumeCandidates(PairCandidates):
    """The columns farthest from the span of the orthonormal `others` (m, rows). Keys are squared distances, which never
    grow while columns are added.
    """

    def keys(self, z: Any, first: int) -> Array:
        """The squared distance of each column; minus infinity if it cannot be picked."""
        xp = namespace(z)
        with np.errstate(over="ignore", invalid="ignore"):
            squares = xp.einsum("dp,dp->p", z, z)
            v = on_same_device(self.others.astype(on_host(squares).dtype), z) @ z
            keys = on_host(squares - (v * v).sum(0)).astype(np.float64)
        return np.where(usable(on_host(squares), first, self.excluded) & np.isfinite(keys), keys, -np.inf)


def volume_passes(pool: Pool, first: Indices, room: int, clock: Clock) -> Indices | None:
    """Pivoted QR over all columns of a source, with several pivots per pass.

    The subset starts with the included columns and `first`. None if there is no time.
    """
    subset = np.concatenate([pool.include, first])
    least = -(-pool.missing // MOST_PASSES)
    while len(subset) < pool.k:
        Q = np.linalg.qr(pool.at_hand(subset))[0]
        excluded = np.union1d(pool.excluded, subset)
        task = VolumeCandidates(np.ascontiguousarray(Q.T), None, pool.columns.transform, excluded, room)
        found: TopK | None = pool.ask(task, clock)
        if found is None:
            return None
        positions, values, left = best_first(pool, found)
        rest = values - Q @ (Q.T @ values)
        picks: list[int] = []
        while len(subset) + len(picks) < pool.k:
            if clock.expired:
                return None
            distances = np.einsum("dp,dp->p", rest, rest)
            distances[picks] = -np.inf
            best = int(distances.argmax()) if len(distances) else -1
            if best < 0 or not distances[best] > 0 or (len(picks) >= least and distances[best] < left):
                break
            picks.append(best)
            direction = rest[:, best] / np.sqrt(distances[best])
            rest -= np.outer(direction, direction @ rest)
        if not picks:
            return None
        pool.load(positions[picks], values[:, picks])
        subset = np.concatenate([subset, positions[picks]])
    return subset


@dataclass(frozen=True)
class VolumePasses:
    """Pivoted QRs over all columns, each followed by swaps with all columns; good starts if lengths are similar.

    They start from the longest column and the first one, unless `again`, and from `starts` random ones.
    """

    starts: int
    rng: np.random.Generator
    memory: int
    again: bool = False
    share: float = VOLUMES_SHARE

    def applies(self, pool: Pool, incumbent: Incumbent) -> bool:
        """For columns that are read in passes, if fewer than rows and more than one are to be picked."""
        return pool.X is None and pool.k < pool.rows and pool.missing > 1

    def run(self, pool: Pool, incumbent: Incumbent, clock: Clock) -> StopReason | None:
        """Offer the subsets at the end of the swaps."""
        room = max(min(PAIR_ROOM, self.memory // (BYTES_PER_ENTRY * pool.rows)), 2 * pool.k)
        swaps = SwapPasses(0, 0, self.rng, self.memory)
        for first in self._firsts(pool):
            subset = volume_passes(pool, first, room, clock)
            if subset is None:
                return None
            trial = incumbent.inside(incumbent.ideal)
            log_loss = float(log_spectral_loss(spectrum(pool.at_hand(subset)), pool.c))
            trial.offer(subset, log_loss, "pivoted QR")
            if log_loss < np.inf:
                swaps.descend(pool, trial, clock)
            incumbent.evaluations += trial.evaluations
            if incumbent.offer(trial.subset, trial.log_loss, trial.found_by):
                incumbent.swap_optimal = trial.swap_optimal
            if incumbent.report():
                return StopReason.INTERRUPTED
        return None

    def _firsts(self, pool: Pool) -> list[Indices]:
        """First pivots of the QRs: none given (the longest column), the first column, and random resident ones."""
        assert isinstance(pool, SourcePool)
        lowest = np.setdiff1d(np.arange(len(pool.excluded) + 1), pool.excluded)[:1]
        pool.load(lowest, pool.taken(lowest))
        free = np.setdiff1d(pool.resident_positions, pool.include)
        drawn = self.rng.choice(free, min(self.starts, len(free)), replace=False)[:, None]
        usable = [one for one in drawn if pool.at_hand(one).any()]
        fixed = [] if self.again else [lowest[:0], *([lowest] if pool.at_hand(lowest).any() else [])]
        return [*fixed, *usable]
