"""The machinery of exchange search: starts, swaps of one column or two while the loss falls, kicks."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from isopursuit.search._node import NodeKernel
from isopursuit.search._swap import Columns, log_loss_of
from isopursuit.search.candidates import COPYING
from isopursuit.search.greedy import greedy_subset
from isopursuit.search.relaxation import LARGEST_LOG, relax
from isopursuit.search.volume import large_volume

Array = NDArray[np.float64]
Subset = NDArray[np.int32]
Watch = Callable[[float, Subset], bool | None]

MARGIN = 1e-10  # by which a logarithm must fall to count as lower
GROWTH = 1.01  # of the volume, that makes a swap for it worth while
SOLVING = 2e9  # multiplications a second, by which it is judged whether time is left for S⁻¹X
PIVOTED = 8  # pivoted QRs, of which the best is a start
PATIENCE = 100  # kicks without success before another start is tried
DETOUR = 0.05  # by which the loss may rise from kick to kick, relative to what it is above the ideal
PAIR_STEPS, PAIR_TOLERANCE = 8, 0.05  # Newton steps for the bound of a pair, as for a node of the exact search


@dataclass(frozen=True)
class Found:
    """A subset that no single swap improves, unless the search was interrupted, and the columns of all that were met,
    those of the best subsets first.
    """

    indices: NDArray[np.intp]
    log_loss: float
    descents: int
    interrupted: bool
    seen: tuple[int, ...]


def local_search(
    X: Array,
    c: float,
    *,
    include: Sequence[int] = (),
    starts: int,
    kicks: int,
    rng: np.random.Generator,
    time_limit: float | None = None,
    watch: Watch | None = None,
    begin: NDArray[np.intp] | None = None,
) -> Found:
    """Descend from several starts, then kick the best while that helps, then start again, on X (D, P), or (n, D, P);
    Ctrl-C returns the best so far.

    The deadline is looked at before every swap. The start of large volume takes little time, so that there always is
    an answer; of it and the greedy one, which may take a third of the time, the better is improved first. A subset to
    `begin` with, which no swap improves, takes the place of both. `watch` is told the best log-loss and subset after
    every descent, and ends the search by returning True.

    There are two kicks. One leaves out a few columns and adds what is then best, one after the other; swaps in those
    places alone follow, and where they lead back that was no kick. The other, every fourth time, puts random
    columns in, and swaps for the largest volume: where columns are many and of like lengths, that is near the best. At
    many points it is every second time, and there is no volume.
    """
    X = X.reshape(-1, *X.shape[-2:])
    deadline = np.inf if time_limit is None else time.perf_counter() + time_limit
    if X.nbytes / COPYING > deadline - time.perf_counter():  # no time but for a start
        only = large_volume(X, include, deadline) if begin is None else begin.astype(np.int32)
        chosen = np.ascontiguousarray(np.swapaxes(X[:, :, only], 1, 2))
        loss = log_loss_of(chosen, np.arange(len(only), dtype=np.int32), c)
        return Found(np.sort(only).astype(np.intp), loss, 0, False, tuple(only.tolist()))
    columns = np.ascontiguousarray(np.swapaxes(X, 1, 2))
    _, count, dimension = columns.shape
    free = range(len(include), dimension)
    swaps = Columns(columns, c, deadline)
    soon = np.inf if time_limit is None else time.perf_counter() + 0.3 * time_limit
    if begin is None:
        volume = _large_volumes(X, swaps, include, rng, time_limit, deadline)
    else:
        fixed = np.array(include, np.int32)
        volume = [np.concatenate([fixed, np.setdiff1d(begin, fixed)]).astype(np.int32)]
    met = [(swaps.loss(subset), subset) for subset in volume]
    waiting: list[Subset] = []
    descents = 0
    interrupted = False
    try:
        if begin is None:
            greedy = greedy_subset(columns, c, include, soon)
            waiting = sorted([volume[-1], *([greedy] if len(greedy) == dimension else [])], key=swaps.loss)
        current, fruitless = min(met, key=_loss), 0
        lowest = current[0]
        turn, left = -1, starts + (kicks if count > dimension and len(free) else 0)
        while left > 0 and time.perf_counter() <= deadline:
            turn += 1
            order, new = list(free), turn < len(waiting) or (turn < starts and time.perf_counter() < soon)
            if new or fruitless >= PATIENCE:
                trial = waiting[turn] if turn < len(waiting) else large_volume(X, include, deadline, rng)
                current, fruitless = (min(met, key=_loss) if new else (np.inf, trial)), 0
                lowest = current[0]
            elif turn % (4 if len(X) == 1 else 2) == 1:
                trial = _kick(current[1], free, count, rng)
                if len(X) == 1:
                    trial = _larger_volume(X[0], trial, len(include), deadline)
            else:
                trial, changed = _rebuilt(swaps, current[1], free, rng)
                trial, _ = swap_descent(swaps, trial, changed, c, deadline)
                if np.isin(trial, current[1]).all():
                    fruitless += 1
                    continue
                order.sort(key=lambda place: place not in changed)
            trial, loss = swap_descent(swaps, trial, order, c, deadline)
            met.append((loss, trial))
            descents, left = descents + 1, left - 1
            fruitless = 0 if loss < lowest - MARGIN else fruitless + 1
            lowest = min(loss, lowest)
            current = met[-1] if _acceptable(loss, current[0], dimension * len(X)) else current
            if watch is not None and watch(*min(met, key=_loss)):
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        interrupted = True
    met.sort(key=_loss)
    seen = tuple(dict.fromkeys(column for _, subset in met for column in subset.tolist()))
    return Found(np.sort(met[0][1]).astype(np.intp), met[0][0], descents, interrupted, seen)


def _loss(one: tuple[float, Subset]) -> float:
    return one[0]


def _acceptable(log_loss: float, log_other: float, ideal: int) -> bool:
    """Whether kicks may go on from this subset instead of the other: its loss above the ideal is hardly higher."""
    if max(log_loss, log_other) > LARGEST_LOG:
        return log_loss < log_other
    return math.exp(log_loss) - ideal < (1 + DETOUR) * (math.exp(log_other) - ideal)


def swap_descent(
    columns: Array | Columns, subset: Subset, free: Iterable[int], c: float, deadline: float = np.inf
) -> tuple[Subset, float]:
    """Replace the columns at free positions, each by the best for its place in turn, until none improves."""
    swaps = columns if isinstance(columns, Columns) else Columns(columns, c, deadline)
    current = subset.copy()
    loss = swaps.loss(current)
    swaps.price(current, loss)
    positions = list(free)
    unchanged = turn = 0
    while unchanged < len(positions) and time.perf_counter() <= deadline:
        position = positions[turn % len(positions)]
        # a margin above rounding, so that equal subsets do not alternate
        limit = loss - MARGIN - 1e-13 * abs(loss) if loss < np.inf else loss
        found, value = swaps.replace(current, position, loss, limit)
        turn += 1
        unchanged += 1
        if found >= 0:
            current[position], loss, unchanged = found, value, 0
            swaps.price(current, loss)
    return current, loss


def pair_descent(
    columns: Array, subset: Subset, fixed: int, c: float, loss: float, deadline: float
) -> tuple[Subset, float]:
    """Replace two columns at once, by the best pair of all, until no pair improves; the first `fixed` ones stay.

    A pair to be found is a node of the exact search that misses two columns, and is closed as one.
    """
    count, dimension = columns.shape
    kernel = node_kernel(columns, c, math.exp(loss))
    pairs = list(combinations(range(fixed, dimension), 2))
    unchanged = turn = 0
    while unchanged < len(pairs) and time.perf_counter() <= deadline:
        others = np.delete(subset, pairs[turn % len(pairs)])
        candidates = np.setdiff1d(np.arange(count, dtype=np.int32), others)
        weights = np.isin(candidates, subset).astype(np.float32)
        leaf = kernel.process(others, candidates, weights, 1, PAIR_STEPS, PAIR_TOLERANCE).leaf
        turn += 1
        unchanged += 1
        if leaf is None:
            continue
        kept = np.concatenate([subset[:fixed], np.setdiff1d(leaf, subset[:fixed])]).astype(np.int32)
        trial, value = swap_descent(columns, kept, range(fixed, dimension), c, deadline)
        if value < loss - MARGIN:
            subset, loss, unchanged = trial, value, 0
            kernel.incumbent = math.exp(loss)
    return subset, loss


def node_kernel(columns: Array, c: float, incumbent: float) -> NodeKernel:
    """The kernel that looks for subsets better than the incumbent."""
    dimension = columns.shape[1]
    squares = np.sort(np.einsum("pd,pd->p", columns, columns))
    relaxation = relax(c, dimension, incumbent, float(squares[-dimension:].sum()))
    return NodeKernel(columns, c, relaxation.low, relaxation.high, relaxation.rows, incumbent)


def _large_volumes(
    X: Array,
    swaps: Columns,
    include: Sequence[int],
    rng: np.random.Generator,
    time_limit: float | None,
    deadline: float,
) -> list[Subset]:
    """The best of a few pivoted QRs, and what swaps for the volume make of it."""
    until = np.inf if time_limit is None else time.perf_counter() + 0.05 * time_limit
    pivoted = [large_volume(X, include, deadline)]
    while len(X) == 1 and not include and len(pivoted) < PIVOTED and time.perf_counter() < until:
        # which column is first is a matter of chance where all are of one length
        pivoted.append(large_volume(X, (int(rng.integers(X.shape[2])),), deadline))
    best = min(pivoted, key=swaps.loss)
    return [best, _larger_volume(X[0], best, len(include), deadline)] if len(X) == 1 else [best]


def _larger_volume(X: Array, subset: Subset, fixed: int, deadline: float) -> Subset:
    """Swap single columns while that multiplies the volume by more than GROWTH (maxvol); the first `fixed` ones stay.

    With S the picked columns, exchanging the i-th for x_p multiplies det S by entry (i, p) of S⁻¹X.
    """
    subset = subset.copy()
    if X.size * len(X) / SOLVING > deadline - time.perf_counter():
        return subset
    try:
        ratios: Array = np.asarray(np.linalg.solve(X[:, subset], X), np.float64)
    except np.linalg.LinAlgError:
        return subset
    for _ in range(2 * len(X) if fixed < len(X) else 0):
        row, column = np.unravel_index(np.abs(ratios[fixed:]).argmax(), ratios[fixed:].shape)
        position = fixed + int(row)
        pivot = float(ratios[position, column])
        if abs(pivot) < GROWTH or time.perf_counter() > deadline:
            break
        subset[position] = column
        change = ratios[:, column].copy()
        change[position] -= 1
        ratios -= change[:, None] * (ratios[position] / pivot)
    return subset


def _kick(subset: Subset, free: Sequence[int], count: int, rng: np.random.Generator) -> Subset:
    """Replace two to four columns by random ones."""
    kicked = subset.copy()
    size = min(int(rng.integers(2, 5)), len(free), count - len(subset))
    outside = np.setdiff1d(np.arange(count), subset)
    kicked[rng.choice(np.array(free), size, replace=False)] = rng.choice(outside, size, replace=False)
    return kicked


def _rebuilt(swaps: Columns, subset: Subset, free: Sequence[int], rng: np.random.Generator) -> tuple[Subset, list[int]]:
    """Leave out two to six columns, but not all, and add the best one after the other; the places they take."""
    places = rng.choice(np.array(free), min(int(rng.integers(2, 7)), max(len(free) - 1, 1)), replace=False)
    rebuilt, kept = subset.copy(), np.delete(subset, places)
    for place in places:
        found, _ = swaps.add(kept, np.inf, -1)
        if found < 0:
            return subset, []
        rebuilt[place] = found
        kept = np.append(kept, np.int32(found))
    return rebuilt, places.tolist()
