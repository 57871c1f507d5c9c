"""The machinery of exchange search: starts, swaps of single columns while the loss falls, kicks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isopursuit.search._swap import best_column, log_loss_of
from isopursuit.search.greedy import greedy_subset

Array = NDArray[np.float64]
Subset = NDArray[np.int32]


@dataclass(frozen=True)
class Found:
    """A subset that no single swap improves, unless the search was interrupted."""

    indices: NDArray[np.intp]
    log_loss: float
    descents: int
    interrupted: bool


def local_search(
    X: Array,
    c: float,
    *,
    include: Sequence[int] = (),
    starts: int,
    kicks: int,
    rng: np.random.Generator,
    time_limit: float | None = None,
) -> Found:
    """The search behind `exchange_search` on X (D, P), or (n, D, P); Ctrl-C returns the best so far.

    The deadline is looked at before every swap. The greedy start comes after the one of largest volume, which takes
    no time, so that there always is an answer.
    """
    X = X.reshape(-1, *X.shape[-2:])
    columns = np.ascontiguousarray(np.swapaxes(X, 1, 2))
    _, count, dimension = columns.shape
    deadline = np.inf if time_limit is None else time.perf_counter() + time_limit
    free = range(len(include), dimension)
    best = _volume_start(X, include, None)
    best_loss = log_loss_of(columns, best, c)
    descents = 0
    interrupted = False
    try:
        for number in range(starts):
            if number == 0:
                subset = greedy_subset(columns, c, include, deadline)
            else:
                subset = _volume_start(X, include, None if number == 1 else rng)
            loss = np.inf
            for kick in range(1 + (kicks if count > dimension and len(free) else 0)):
                if time.perf_counter() > deadline:
                    break
                trial = subset if kick == 0 else _kick(subset, free, count, rng)
                if trial is None:
                    break
                trial, trial_loss = swap_descent(columns, trial, free, c, deadline)
                descents += 1
                if trial_loss < loss + 1e-9:
                    subset, loss = trial, trial_loss
                if loss < best_loss:
                    best, best_loss = trial, loss
    except KeyboardInterrupt:
        interrupted = True
    return Found(np.sort(best).astype(np.intp), best_loss, descents, interrupted)


def swap_descent(
    columns: Array, subset: Subset, free: Iterable[int], c: float, deadline: float = np.inf
) -> tuple[Subset, float]:
    """Replace the columns at free positions, each by the best for its place in turn, until none improves."""
    current = subset.copy()
    loss = log_loss_of(columns, current, c)
    positions = list(free)
    unchanged = turn = 0
    while unchanged < len(positions) and time.perf_counter() <= deadline:
        position = positions[turn % len(positions)]
        # a margin above rounding, so that equal subsets do not alternate
        limit = loss - 1e-10 - 1e-13 * abs(loss) if loss < np.inf else loss
        present = int(current[position])
        found, value = best_column(columns, np.delete(current, position), c, limit, present)
        turn += 1
        unchanged += 1
        if found >= 0:
            current[position], loss, unchanged = found, value, 0
    return current, loss


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


def _kick(subset: Subset | None, free: Sequence[int], count: int, rng: np.random.Generator) -> Subset | None:
    """Replace two to four columns by random ones."""
    if subset is None:
        return None
    kicked = subset.copy()
    size = min(int(rng.integers(2, 5)), len(free), count - len(subset))
    outside = np.setdiff1d(np.arange(count), subset)
    kicked[rng.choice(np.array(free), size, replace=False)] = rng.choice(outside, size, replace=False)
    return kicked
