"""Local search: swap single columns while the loss falls, then kick a few columns out and swap again."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from isopursuit.search._swap import swap_descent

__all__ = ["local_search"]


def local_search(
    X: NDArray[np.float64],
    c: float,
    *,
    include: Sequence[int] | NDArray[np.integer] = (),
    starts: int = 2,
    kicks: int = 15,
    rng: np.random.Generator,
) -> tuple[NDArray[np.intp], float]:
    """Find a subset that no single swap improves.

    Parameters
    ----------
    X : (D, P) array
        Candidate columns, of rank D.
    c : float
        Exponent of the loss.
    include : column indices, optional
        Columns the subset must contain.
    starts, kicks : int
        Number of starting subsets, and of kicks for each.
    rng : numpy.random.Generator
        Draws the starts after the first, and the kicks.

    Returns
    -------
    indices : (D,) array
        Columns of the subset, sorted.
    log_loss : float
    """
    columns = np.ascontiguousarray(X.T)
    count, dimension = columns.shape
    fixed = np.asarray(include, np.int32)
    free = np.arange(len(fixed), dimension, dtype=np.int32)
    best, best_loss = np.arange(dimension, dtype=np.int32), np.inf
    for start in range(starts):
        subset, loss = swap_descent(columns, _volume_start(X, fixed, rng if start else None), free, c)
        if best_loss == np.inf or loss < best_loss:
            best, best_loss = subset, loss
        for _ in range(kicks if count > dimension and len(free) else 0):
            kicked, kicked_loss = swap_descent(columns, _kick(subset, free, count, rng), free, c)
            if kicked_loss < loss + 1e-9:
                subset, loss = kicked, kicked_loss
            if loss < best_loss:
                best, best_loss = subset, loss
    return np.sort(best).astype(np.intp), best_loss


def _volume_start(
    X: NDArray[np.float64], fixed: NDArray[np.int32], rng: np.random.Generator | None
) -> NDArray[np.int32]:
    """Columns of large volume: the largest residual each time (pivoted QR), or drawn in proportion to its square."""
    residuals = X.copy()
    subset: list[int] = []
    for step in range(X.shape[0]):
        squares: NDArray[np.float64] = np.sum(np.square(residuals), axis=0)
        squares[subset] = 0
        if step < len(fixed):
            column = int(fixed[step])
        elif rng is None:
            column = int(squares.argmax())
        else:
            column = int(rng.choice(X.shape[1], 1, p=squares / squares.sum())[0])
        subset.append(column)
        direction = residuals[:, column] / np.sqrt(max(squares[column], np.finfo(float).tiny))
        residuals -= np.outer(direction, direction @ residuals)
    return np.array(subset, np.int32)


def _kick(
    subset: NDArray[np.int32], free: NDArray[np.int32], count: int, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Replace two to four columns by random ones."""
    kicked = subset.copy()
    size = min(int(rng.integers(2, 5)), len(free), count - len(subset))
    outside = np.setdiff1d(np.arange(count), subset)
    kicked[rng.choice(free, size, replace=False)] = rng.choice(outside, size, replace=False)
    return kicked
