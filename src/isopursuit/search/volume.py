"""Columns of large volume: where searches start, and what completes a subset when time is over."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Subset = NDArray[np.int32]

VOLUME_SHARE = 0.05  # of the time left, for columns of large volume
SPEED = 3e8  # multiplications a second, by which that is judged
FEW_COLUMNS = 8  # for each row, that are looked at however little time there is
NEGLIGIBLE = 1e-20  # squared length of a residual, relative to the longest column, that is rounding


def large_volume(
    X: Array, include: Sequence[int], deadline: float = np.inf, rng: np.random.Generator | None = None
) -> Subset:
    """D columns of X (n, D, P) of large volume: the largest residual each time (pivoted QR), or one drawn in proportion
    to its square.

    Where all columns would take more than a small share of the time left, they are picked from a few, spread evenly;
    should those not span all dimensions, the columns that are farthest from their span join.
    """
    n, D, P = X.shape
    left = deadline - time.perf_counter()
    most = P if left == np.inf else max(FEW_COLUMNS * D, int(VOLUME_SHARE * max(left, 0.0) * SPEED / (n * D**2)))
    numbers: NDArray[np.intp] = np.arange(P, dtype=np.intp)
    if most < P:
        numbers = np.union1d(numbers[:: -(-P // most)], np.array(include, dtype=np.intp))
    residuals = X.copy() if most >= P else X[:, :, numbers]
    lengths = np.einsum("idp,idp->p", residuals, residuals)
    directions = np.zeros((n, D, 0))
    subset: list[int] = []
    for step in range(D):
        squares = np.einsum("idp,idp->p", residuals, residuals)
        squares[np.isin(numbers, subset)] = 0
        if len(numbers) < P and squares.max() <= NEGLIGIBLE * lengths.max():
            residuals = X - directions @ (np.swapaxes(directions, 1, 2) @ X)
            squares = np.einsum("idp,idp->p", residuals, residuals)
            farthest = np.argpartition(-squares, most - 1)[:most]
            numbers = np.union1d(farthest, np.array(include, dtype=np.intp))
            residuals, squares = residuals[:, :, numbers], squares[numbers]
            squares[np.isin(numbers, subset)] = 0
        if step < len(include):
            place = int(np.searchsorted(numbers, include[step]))
        elif rng is None:
            place = int(squares.argmax())
        else:
            place = int(rng.choice(len(numbers), p=squares / squares.sum()))
        subset.append(int(numbers[place]))
        direction = residuals[:, :, place, None]
        size = np.linalg.norm(direction, axis=1, keepdims=True)
        direction = direction / np.maximum(size, np.finfo(np.float64).tiny)
        directions = np.concatenate([directions, direction], axis=2)
        residuals -= direction @ (np.swapaxes(direction, 1, 2) @ residuals)
    return np.array(subset, np.int32)
