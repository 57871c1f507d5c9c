"""Local search: swaps while the loss falls, from several starts; then kicks of the best subset, and swaps again.

The first start is the incumbent, or columns of large volume. Another one has a random column and the best ones, added
one after the other (greedy search). A kick removes a few columns and adds the best ones in the same way. Swaps at those
positions follow. If they do not lead back to the same subset, swaps at all positions follow. The next kick is that of
the new subset if its excess loss is at most slightly higher. After many kicks without success there is another start.
A brief search, as of `select`, ends earlier: if the first descents all end at the same subset, or after many kicks
without a better subset.

The same code searches one matrix, many points, and columns of a source.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.clock import UNLIMITED, Clock
from isopursuit._core.linalg import numerical_rank, pivoted_qr, spectrum, unit_columns
from isopursuit._core.types import Array, Indices
from isopursuit.loss.aggregate import SUM, Aggregate
from isopursuit.loss.penalty import PROVED, ROUNDING, to_loss
from isopursuit.search._joint import JointKernel
from isopursuit.search._swap import SwapKernel
from isopursuit.search.incumbent import Incumbent, StopReason
from isopursuit.search.pool import Pool
from isopursuit.search.rules import Rules
from isopursuit.search.settings import RESIDENT, SOURCE_ENTRIES

# fruitless kicks for each free column before another start (measured on "x gauss16" and unit-length 14 × 300: 10 and 20
# are equal within the noise)
PATIENCE = 10
# a brief search ends if so many descents end at the same subset (measured on the 100 results of benchmarks.quick: more
# descents and kicks find nothing better and take six times as long)
AGREEING = 3
# a brief search ends after so many kicks, and half of all, without a better subset (measured by `select` on
# "x cancer20": with 150, 5 % worse)
FRUITLESS = 300
DETOUR = 0.05  # relative rise of the excess loss from kick to kick (measured on "x gauss16": with 0, 0.3 % worse)
MOST_KICKED = 8  # a kick removes between two and this many columns (measured on "x gauss16": with 6, 0.7 % worse)

Subset: TypeAlias = NDArray[np.int32]  # positions as the kernels read them; the included ones first

# ------------------------------------------------------------------------------------------------------- single swaps


class RuledKernel:
    """A kernel for swaps that lead to allowed sets of k columns only."""

    def __init__(self, kernel: SwapKernel | JointKernel, rules: Rules, k: int) -> None:
        self.kernel, self.rules, self.k = kernel, rules, k
        self.loss, self.prepare = kernel.loss, kernel.prepare

    @property
    def late(self) -> bool:
        """As of the kernel."""
        return self.kernel.late

    def replace(self, subset: Subset, position: int, log_limit: float) -> tuple[int, float]:
        """As of the kernel."""
        self.kernel.skip(self.rules.blocked(np.delete(subset, position), self.k))
        return self.kernel.replace(subset, position, log_limit)

    def add(self, subset: Subset, log_limit: float) -> tuple[int, float]:
        """As of the kernel."""
        self.kernel.skip(self.rules.blocked(subset, self.k))
        return self.kernel.add(subset, log_limit)


Kernel: TypeAlias = SwapKernel | JointKernel | RuledKernel


def swap_kernel(
    columns: Array, c: float, aggregate: Aggregate = SUM, deadline: float = np.inf, most: int = 0
) -> SwapKernel | JointKernel:
    """The kernel for single swaps in subsets of at most `most` of `columns` (n, P, D)."""
    if len(columns) == 1:
        return SwapKernel(columns[0], c, deadline, most)
    return joint_kernel(np.swapaxes(columns, 0, 1), c, aggregate, deadline)


def ruled(kernel: SwapKernel | JointKernel, pool: Pool) -> Kernel:
    """The kernel, with the rules of the pool if it has any."""
    return kernel if pool.rules is None else RuledKernel(kernel, pool.rules, pool.k)


def joint_kernel(columns: Array, c: float, aggregate: Aggregate, deadline: float = np.inf) -> JointKernel:
    """The kernel for `columns` (P, n, D) at many points, in any order in memory but that of their entries."""
    n = columns.shape[1]
    left_out = n - aggregate.kept(n)
    return JointKernel(columns, c, left_out, aggregate.name != "sum", deadline)


def swap_descent(
    kernel: Kernel, subset: Subset, places: Iterable[int], clock: Clock = UNLIMITED
) -> tuple[Subset, float]:
    """Replace the columns at these positions in turn, each by the best one, until none improves; with the log-loss."""
    current = subset.copy()
    loss = kernel.loss(current)
    free = list(places)
    unchanged = turn = 0
    while unchanged < len(free) and not clock.expired:
        if unchanged == 0:
            kernel.prepare(current)
        place = free[turn % len(free)]
        found, value = kernel.replace(current, place, lower_than(loss))
        turn += 1
        unchanged += 1
        if found >= 0:
            current[place], loss, unchanged = found, value, 0
    return current, loss


def completed(kernel: Kernel, subset: Subset, k: int) -> Subset | None:
    """Add the best columns, one after the other, until there are k; None if none leads to a finite loss."""
    while len(subset) < k:
        found, _ = kernel.add(subset, np.inf)
        if found < 0:
            return None
        subset = np.append(subset, np.int32(found))
    return subset


def lower_than(log_loss: float) -> float:
    """A cutoff below this log-loss by more than rounding, so that equal subsets do not alternate."""
    return log_loss - PROVED - ROUNDING * abs(log_loss) if log_loss < np.inf else log_loss


def include_first(include: NDArray[np.integer], subset: NDArray[np.integer]) -> Subset:
    """The subset with the included columns first; `swap_descent` then changes only the later positions."""
    return np.concatenate([include, np.setdiff1d(subset, include)]).astype(np.int32)


# ------------------------------------------------------------------------------------------------------- large volume


def large_volume(X: Array, include: NDArray[np.integer], k: int, clock: Clock = UNLIMITED) -> Subset:
    """Find k columns of X (n, D, P) of large volume: add the column of largest residual (pivoted QR).

    At one point the columns come from some thousand evenly spaced ones. If those span fewer than k dimensions, the ones
    farthest from the span of the picked columns follow. At many points the squares of the residuals are added up.
    """
    if len(X) == 1:
        included = np.asarray(include, dtype=np.intp)
        if X.size < SOURCE_ENTRIES:
            return _pivoted(X[0], included, k).astype(np.int32)
        return clock.waiting(lambda: _pivoted(X[0], included, k)).astype(np.int32)
    rest, subset = X.copy(), np.array(include, np.int32)
    for step in range(k):
        squares = np.einsum("idp,idp->p", rest, rest)
        squares[subset] = -1.0
        if step >= len(subset):
            subset = np.append(subset, np.int32(squares.argmax()))
        direction = rest[:, :, subset[step], None]
        size = np.linalg.norm(direction, axis=1, keepdims=True)
        direction = direction / np.maximum(size, np.finfo(np.float64).tiny)
        rest -= direction @ (np.swapaxes(direction, 1, 2) @ rest)
    return subset


def _pivoted(X: Array, subset: Indices, k: int) -> Indices:
    """`large_volume` at one point, (D, P)."""
    P, longest = X.shape[1], float(np.einsum("dp,dp->p", X, X).max()) ** 0.5
    few = max(2 * k, 4 * RESIDENT)  # takes 0.1 s with 384 rows
    numbers: Indices = np.arange(0, P, -(-P // few), dtype=np.intp)
    while len(subset) < k:
        numbers = np.setdiff1d(numbers, subset)
        R, order = pivoted_qr(residuals(X[:, numbers], X[:, subset]))
        fresh = int((np.abs(np.diag(R)) > ROUNDING * longest).sum())
        whole = len(numbers) + len(subset) == P
        # if all columns are nearly dependent, any will do
        subset = np.append(subset, numbers[order[: k - len(subset) if whole else min(fresh, k - len(subset))]])
        if len(subset) < k:
            far = residuals(X, X[:, subset])
            far = np.einsum("dp,dp->p", far, far)
            far[subset] = -1.0
            numbers = np.argsort(-far, kind="stable")[: few if fresh else P]
    return subset


def residuals(columns: Array, picked: Array) -> Array:
    """The columns without their parts in the span of the picked ones."""
    if picked.shape[1] == 0:
        return columns
    basis = np.linalg.qr(picked)[0]
    for _ in range(2):  # twice, so that the residual is orthogonal to the basis up to rounding
        columns = columns - basis @ (basis.T @ columns)
    return columns


# ------------------------------------------------------------------------------------------------------- local search


@dataclass(frozen=True)
class Effort:
    """How much a local search tries: starts, then kicks; a `brief` one ends where more hardly helps."""

    rng: np.random.Generator
    starts: int = 1
    kicks: int = 0
    brief: bool = False


def local_search(
    pool: Pool, incumbent: Incumbent, clock: Clock, effort: Effort, among: tuple[Array, Indices] | None = None
) -> StopReason | None:
    """Descend from several subsets and then after each kick; better subsets are offered to the incumbent.

    `among` are the columns (D, P) of a source that are searched, and their positions; the incumbent is among them. If
    the incumbent has a subset, that is the first start. Returns a reason if a callback ends the search.
    """
    if offer_large_volume(pool, incumbent, clock):
        return StopReason.INTERRUPTED
    if among is None:
        assert pool.X is not None
        X, positions = pool.X, np.arange(pool.count)
    else:
        X, positions = among[0][None], among[1]
    order = np.argsort(positions)
    include, best = (
        order[np.searchsorted(positions, some, sorter=order)].astype(np.int32)
        for some in (pool.include, incumbent.subset)
    )
    best, free = include_first(include, best), list(range(len(include), pool.k))
    if clock.expired or not free:
        return None
    kernel = swap_kernel(np.ascontiguousarray(np.swapaxes(X, 1, 2)), pool.c, pool.aggregate, clock.deadline, pool.k)
    kernel, rng, most = ruled(kernel, pool), effort.rng, min(MOST_KICKED, len(free) - 1)
    current = lowest = least = incumbent.log_loss
    fruitless = improved = 0
    ends: set[bytes] = set()  # where the first descents ended
    for turn in range(effort.starts + (effort.kicks if X.shape[2] > pool.k else 0)):
        improved, least = (turn, incumbent.log_loss) if incumbent.log_loss < least else (improved, least)
        useless = turn > effort.starts + max(FRUITLESS, 2 * improved) or (turn == AGREEING and len(ends) == 1)
        if clock.expired or incumbent.closed or (effort.brief and useless):
            break
        again = fruitless >= PATIENCE * len(free) or most < 2  # a kick does not remove all columns
        places, trial = free, best
        if turn >= effort.starts and not again:
            places = rng.permutation(free).tolist()
            fruitless += 1
            trial = _kicked(kernel, best, places[: int(rng.integers(2, most + 1))], clock)
            if np.isin(trial, best).all():
                continue
        elif turn > 0:
            first = rng.choice(np.setdiff1d(np.arange(X.shape[2]), include))
            trial = completed(kernel, np.append(include, first).astype(np.int32), pool.k)
            trial = best if trial is None else trial
        trial, log_loss = swap_descent(kernel, trial, places, clock)
        incumbent.evaluations += 1
        incumbent.offer(positions[trial], log_loss, "local search")
        if turn < AGREEING:
            ends.add(np.sort(trial).tobytes())
        if log_loss < lowest or again:
            lowest, fruitless = log_loss, 0
        if log_loss <= lowest or _excess(log_loss, pool) < (1 + DETOUR) * _excess(current, pool):
            best, current = trial, log_loss
        if incumbent.report():
            return StopReason.INTERRUPTED
    return None


def offer_large_volume(pool: Pool, incumbent: Incumbent, clock: Clock) -> bool:
    """Offer columns in memory of large volume if there is no incumbent, so that soon there is an answer. True if the
    search must stop.
    """
    if len(incumbent.subset) < pool.k:
        subset = with_large_volume(pool, pool.include, clock)
        if subset is not None:
            incumbent.offer(subset, pool.log_loss(subset), "large volume")
    return len(incumbent.subset) > 0 and incumbent.report()


def with_large_volume(pool: Pool, subset: Indices, clock: Clock = UNLIMITED) -> Indices | None:
    """The subset with more columns in memory of large volume; None if those do not span enough dimensions."""
    if pool.rules is not None:
        return pool.first_allowed()
    if pool.X is not None:
        return large_volume(pool.X, subset, pool.k, clock).astype(np.intp)
    if len(pool.resident_positions) < pool.k:
        return None
    some = large_volume(pool.resident_columns[None], pool.place(subset), pool.k, clock)
    rank = numerical_rank(spectrum(unit_columns(pool.resident_columns[:, some])), pool.k)
    return pool.resident_positions[some] if rank == pool.k else None


def _excess(log_loss: float, pool: Pool) -> float:
    """The loss above that of orthonormal columns."""
    return to_loss(log_loss) - pool.ideal


def _kicked(kernel: Kernel, subset: Subset, places: list[int], clock: Clock) -> Subset:
    """Remove the columns at these positions, add the best ones, and swap at the positions."""
    whole = completed(kernel, np.delete(subset, places), len(subset))
    if whole is None or np.isin(whole, subset).all():
        return subset
    kicked = subset.copy()
    kicked[places] = whole[len(subset) - len(places) :]
    return swap_descent(kernel, kicked, places, clock)[0]
