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
from isopursuit.search._swap import Columns
from isopursuit.search.greedy import greedy_subset
from isopursuit.search.relaxation import relax

Array = NDArray[np.float64]
Subset = NDArray[np.int32]

MARGIN = 1e-10  # by which a logarithm must fall to count as lower
GROWTH = 1.01  # of the volume, that makes a swap for it worth while
MANY = 16  # columns beyond which a kick is repaired where it was made, lest it undo the rest
PATIENCE = 100  # kicks without success before another start is tried
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
    watch: Callable[[float, Subset], bool | None] | None = None,
) -> Found:
    """Descend from several starts, then kick the best while that helps, then start again, on X (D, P), or (n, D, P);
    Ctrl-C returns the best so far.

    The deadline is looked at before every swap. The start of large volume takes little time, so that there always is
    an answer; of it and the greedy one, which may take a third of the time, the better is improved first. `watch` is
    told the best log-loss and subset after every descent, and ends the search by returning True.
    """
    X = X.reshape(-1, *X.shape[-2:])
    columns = np.ascontiguousarray(np.swapaxes(X, 1, 2))
    _, count, dimension = columns.shape
    deadline = np.inf if time_limit is None else time.perf_counter() + time_limit
    free = range(len(include), dimension)
    swaps = Columns(columns, c)
    volume = _volume_start(X, include, None)
    met = [(swaps.loss(volume), volume)]
    if len(X) == 1:
        volume = _larger_volume(X[0], volume, len(include), deadline)
        met.append((swaps.loss(volume), volume))
    descents = 0
    interrupted = False
    try:
        soon = np.inf if time_limit is None else time.perf_counter() + 0.3 * time_limit
        greedy = greedy_subset(columns, c, include, soon)
        waiting = [volume] if greedy is None else sorted([greedy, volume], key=swaps.loss)
        current, fruitless = min(met, key=_loss), 0
        more = kicks if count > dimension and len(free) else 0
        for turn in range(starts + more):
            if time.perf_counter() > deadline:
                break
            order, begin = list(free), turn < len(waiting) or (turn < starts and time.perf_counter() < soon)
            if begin or fruitless >= PATIENCE:
                trial = waiting[turn] if turn < len(waiting) else _volume_start(X, include, rng)
                current, fruitless = (min(met, key=_loss) if begin else (np.inf, trial)), 0
            else:
                trial = _kick(current[1], free, count, rng)
                if dimension > MANY:
                    order.sort(key=lambda position: trial[position] == current[1][position])
            # where columns are many and of like lengths, a large volume is near the best
            if len(X) == 1 and turn >= len(waiting) and turn % 2:
                trial = _larger_volume(X[0], trial, len(include), deadline)
            trial, loss = swap_descent(swaps, trial, order, c, deadline)
            met.append((loss, trial))
            descents += 1
            fruitless = 0 if loss < current[0] - MARGIN else fruitless + 1
            current = min(current, met[-1], key=_loss)
            if watch is not None and watch(*min(met, key=_loss)):
                break
    except KeyboardInterrupt:
        interrupted = True
    met.sort(key=_loss)
    seen = tuple(dict.fromkeys(column for _, subset in met for column in subset.tolist()))
    return Found(np.sort(met[0][1]).astype(np.intp), met[0][0], descents, interrupted, seen)


def _loss(one: tuple[float, Subset]) -> float:
    return one[0]


def swap_descent(
    columns: Array | Columns, subset: Subset, free: Iterable[int], c: float, deadline: float = np.inf
) -> tuple[Subset, float]:
    """Replace the columns at free positions, each by the best for its place in turn, until none improves."""
    swaps = columns if isinstance(columns, Columns) else Columns(columns, c)
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


def _volume_start(X: Array, include: Sequence[int], rng: np.random.Generator | None) -> Subset:
    """Columns of large volume: the largest residual each time (pivoted QR), or drawn in proportion to its square."""
    residuals = X.copy()
    subset: list[int] = []
    for step in range(X.shape[1]):
        squares = np.einsum("idp,idp->p", residuals, residuals)
        squares[subset] = 0
        if step < len(include):
            column = int(include[step])
        elif rng is None:
            column = int(squares.argmax())
        else:
            column = int(rng.choice(X.shape[2], p=squares / squares.sum()))
        subset.append(column)
        direction = residuals[:, None, :, column]
        lengths = np.linalg.norm(direction, axis=2, keepdims=True)
        direction = direction / np.maximum(lengths, np.finfo(np.float64).tiny)
        residuals -= np.swapaxes(direction, 1, 2) @ (direction @ residuals)
    return np.array(subset, np.int32)


def _larger_volume(X: Array, subset: Subset, fixed: int, deadline: float) -> Subset:
    """Swap single columns while that multiplies the volume by more than GROWTH (maxvol); the first `fixed` ones stay.

    With S the picked columns, exchanging the i-th for x_p multiplies det S by entry (i, p) of S⁻¹X.
    """
    subset = subset.copy()
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
