"""A start for fewer columns than rows: columns of lengths near 1 that are nearly orthogonal in pairs.

The pair cost of a subset S with Gram matrix G is

    ‖G − I‖² = Σ_i (‖x_i‖² − 1)² + 2 Σ_(i<j) (x_iᵀx_j)²,

and the loss is close to k + (c²/4) ‖G − I‖² if G is close to I. Adding a column p to S adds
a_p = (‖x_p‖² − 1)² + 2 Σ_(j in S) (x_jᵀx_p)² to the cost. Greedy search by this cost takes one product of all columns
with a vector for each pick. While columns are added, a_p never falls. A pass over a source therefore loads the columns
of least a_p. Picks are made among them as long as their least a_p is below that of all other columns at the time of the
pass, and for a few picks more if that would take many passes. If column p replaces column i of cost a_i, the pair cost
changes by a_p − 2 (x_iᵀx_p)² − a_i. A pass loads the columns that lower it most, until no column lowers it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from isopursuit._types import Array, Indices
from isopursuit.backend import namespace, on_host
from isopursuit.clock import Clock
from isopursuit.loss.penalty import log_spectral_loss
from isopursuit.rank import spectrum
from isopursuit.search.incumbent import Incumbent, StopReason
from isopursuit.search.passes import on_same_device, pieces, usable
from isopursuit.search.pool import Pool
from isopursuit.search.settings import BYTES_PER_ENTRY, MAX_KICK_COLUMNS, PAIR_ROOM, PAIR_SHARE
from isopursuit.search.swaps import Subset
from isopursuit.sources.tasks import Transform
from isopursuit.sources.topk import TopK

MOST_PASSES = 10  # passes of a greedy search by the pair cost (guess: more hardly lower the cost)
LEAST_GAIN = 1e-9  # least decrease of the pair cost by a swap, relative to 1 + that cost (chosen: above rounding)


@dataclass(frozen=True)
class PairCandidates:
    """The columns that add least to the pair cost of `others` (m, rows).

    With `costs` (m,), the columns that lower the pair cost most if they replace one of the others. `costs` are the
    costs of those, minus infinity for a column that must stay. Keys are the decreases of the cost, so larger is better.
    They are computed in the precision of the columns, because no proof depends on them.
    """

    others: Array
    costs: Array | None
    transform: Transform
    excluded: Indices
    room: int
    bar: float = -np.inf

    @property
    def work(self) -> int:
        """Multiplications for one column."""
        return self.others.size + self.others.shape[1]

    def __call__(self, block: Any, first: int) -> TopK:
        """Those of one block."""
        parts = [self.keys(z, first + start) for start, z in pieces(block, self.transform, exact=False)]
        return TopK.pick(block, first, None, np.concatenate(parts), self.room, self.bar)

    def keys(self, z: Any, first: int) -> Array:
        """How much adding or swapping each column lowers the cost; minus infinity if it cannot be picked."""
        xp = namespace(z)
        with np.errstate(over="ignore", invalid="ignore"):
            squares = xp.einsum("dp,dp->p", z, z)
            alone = (on_host(squares).astype(np.float64) - 1) ** 2
            v = on_same_device(self.others.astype(on_host(squares).dtype), z) @ z
            v = v * v
            keys = -alone - 2 * on_host(v.sum(0))
            if self.costs is not None:
                keys = keys + on_host(xp.amax(2 * v + on_same_device(self.costs, z)[:, None], 0))
        return np.where(usable(on_host(squares), first, self.excluded) & np.isfinite(keys), keys, -np.inf)

    def merge(self, one: TopK, other: TopK) -> TopK:
        """The best of both."""
        return one.joined(other)

    def after(self, answer: TopK) -> PairCandidates:
        """The task without columns whose keys are below those that already fill the room."""
        return replace(self, bar=max(self.bar, answer.bar))


@dataclass(frozen=True)
class PairPasses:
    """Greedy search and swaps by the pair cost over all columns of a source, with several picks per pass."""

    memory: int
    share: float = PAIR_SHARE

    def applies(self, pool: Pool, incumbent: Incumbent) -> bool:
        """For columns that are read in passes, if fewer than rows and more than one are to be picked."""
        return pool.X is None and pool.k < pool.rows and pool.missing > 1

    def run(self, pool: Pool, incumbent: Incumbent, clock: Clock) -> StopReason | None:
        """Offer the subset at the end of the swaps."""
        room = max(min(PAIR_ROOM, self.memory // (BYTES_PER_ENTRY * pool.rows)), 2 * pool.k)
        subset = self._greedy(pool, room, clock)
        if subset is None:
            return None
        self._offer(pool, incumbent, subset)
        while not clock.expired:
            here = pool.at_hand(subset)
            task = self._task(pool, here, subset, room, _own_costs(here, len(pool.include)))
            found: TopK | None = pool.ask(task, clock)
            if found is None:
                break
            positions, values, _ = best_first(pool, found)
            columns = np.concatenate([here, values], axis=1)
            swapped = pair_swaps(columns[None], np.arange(pool.k, dtype=np.int32), len(pool.include), clock)
            few = slice(0, MAX_KICK_COLUMNS)
            new = np.union1d(np.arange(len(positions))[few], swapped[swapped >= pool.k] - pool.k)
            pool.load(positions[new], values[:, new])
            if (swapped < pool.k).all():
                break
            subset = np.concatenate([subset, positions])[swapped]
            self._offer(pool, incumbent, subset)
            if incumbent.report():
                return StopReason.INTERRUPTED
        return None

    def _greedy(self, pool: Pool, room: int, clock: Clock) -> Indices | None:
        """The included columns and those that greedy search by the pair cost adds; None if there is no time."""
        subset, least = pool.include, -(-pool.missing // MOST_PASSES)
        positions, values, left = np.zeros(0, np.intp), np.zeros((pool.rows, 0)), -np.inf
        while len(subset) < pool.k:
            here = pool.at_hand(subset)
            found: TopK | None = pool.ask(self._task(pool, here, subset, room), clock)
            if found is not None:
                positions, values, left = best_first(pool, found)
            else:  # no time for a pass: the columns of the last one complete the subset
                least = pool.k
            fresh = ~np.isin(positions, subset)
            positions, values = positions[fresh], values[:, fresh]
            count = min(pool.k - len(subset), len(positions))
            if count == 0:
                return None
            picks = _picks(values, here, count, least, -left, clock)
            pool.load(positions[picks], values[:, picks])
            subset = np.concatenate([subset, positions[picks]])
        return subset

    def _task(self, pool: Pool, here: Array, subset: Indices, room: int, costs: Array | None = None) -> PairCandidates:
        excluded = np.union1d(pool.excluded, subset)
        bar = -np.inf if costs is None else 0.0
        return PairCandidates(np.ascontiguousarray(here.T), costs, pool.columns.transform, excluded, room, bar)

    def _offer(self, pool: Pool, incumbent: Incumbent, subset: Indices) -> None:
        log_loss = float(log_spectral_loss(spectrum(pool.at_hand(subset)), pool.c))
        if log_loss < np.inf:
            incumbent.offer(subset, log_loss, "pairs near orthogonal")


def _picks(columns: Array, others: Array, count: int, least: int, limit: float, clock: Clock) -> list[int]:
    """The columns (rows, m) that greedy search by the pair cost adds to the others: at most `count`, and after `least`
    of them only columns that add no more than the limit. If time runs out, the columns of least cost complete them.
    """
    costs = _joining_costs(columns[None], others[None])
    picks: list[int] = []
    while len(picks) < count:
        if clock.expired:
            return [*picks, *np.argsort(costs, kind="stable")[: count - len(picks)].tolist()]
        best = int(costs.argmin())
        if len(picks) >= least and not costs[best] <= limit:
            break
        picks.append(best)
        costs += 2 * (columns.T @ columns[:, best]) ** 2
        costs[best] = np.inf
    return picks


def pair_subset(X: Array, include: Indices, k: int, clock: Clock) -> Subset:
    """Greedy search by the pair cost, then swaps by it, among the columns X (n, rows, P).

    At many points costs are summed. Fewer than k columns are returned if time runs out.
    """
    subset = include.tolist()
    costs = _joining_costs(X, X[:, :, subset])
    costs[subset] = np.inf
    while len(subset) < k and not clock.expired:
        best = int(costs.argmin())
        subset.append(best)
        costs += 2 * ((X[:, None, :, best] @ X)[:, 0] ** 2).sum(axis=0)
        costs[best] = np.inf
    found = np.array(subset, dtype=np.int32)
    return pair_swaps(X, found, len(include), clock) if len(found) == k else found


def pair_swaps(X: Array, subset: Subset, fixed: int, clock: Clock) -> Subset:
    """Make the best single swap by the pair cost among the columns X (n, rows, P), until none lowers it."""
    subset = subset.copy()
    free = range(fixed, len(subset))
    products = np.swapaxes(X[:, :, subset], 1, 2) @ X
    alone = ((np.einsum("idp,idp->ip", X, X) - 1) ** 2).sum(axis=0)
    most = 10 * len(subset)  # limit on the number of swaps (guess)
    for _ in range(most if len(free) else 0):
        if clock.expired:
            break
        squares = (products**2).sum(axis=0)
        total = alone + 2 * squares.sum(axis=0)
        own = alone[subset] + 2 * (squares[:, subset].sum(axis=0) - squares[np.arange(len(subset)), subset])
        gains = (own[free, None] + 2 * squares[free]) - total
        gains[:, subset] = -np.inf
        place, column = np.unravel_index(int(gains.argmax()), gains.shape)
        if not gains[place, column] > LEAST_GAIN * (1 + own.sum()):
            break
        subset[fixed + place] = column
        products[:, fixed + place] = (X[:, None, :, column] @ X)[:, 0]
    return subset


def _joining_costs(columns: Array, others: Array) -> Array:
    """The pair cost that each of the columns (n, rows, m) adds to the others (n, rows, j)."""
    alone = ((np.einsum("idp,idp->ip", columns, columns) - 1) ** 2).sum(axis=0)
    return alone + 2 * ((np.swapaxes(others, 1, 2) @ columns) ** 2).sum(axis=(0, 1))


def _own_costs(subset: Array, fixed: int) -> Array:
    """The share of each column of the subset (rows, k) in the pair cost; minus infinity for those that stay."""
    gram = subset.T @ subset
    lengths = np.diag(gram)
    costs = (lengths - 1) ** 2 + 2 * ((gram**2).sum(axis=0) - lengths**2)
    costs[:fixed] = -np.inf
    return costs


def best_first(pool: Pool, found: TopK) -> tuple[Indices, Array, float]:
    """Positions and columns (rows, m) from a pass, largest keys first, and the largest key that was not returned."""
    found = found.trimmed()
    numbers, keys, _ = found.parts[0]
    positions, values = pool.columns_of(found)
    order = np.argsort(-keys[np.searchsorted(numbers, positions)], kind="stable")
    return positions[order], values[:, order], found.left
