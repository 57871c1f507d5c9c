"""Columns of large volume: starts of searches, and columns that complete a subset at the time limit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg.lapack import dpstrf

from isopursuit._core.clock import UNLIMITED, Clock
from isopursuit._core.types import Array, Indices
from isopursuit.search.swaps import Subset

FEW_COLUMNS = 8  # times k: columns that are still considered after the time limit (chosen: a few milliseconds of work)
NEGLIGIBLE = 1e-20  # a squared residual below this, relative to the longest column, is rounding (chosen: above eps²)
MANY_PRODUCTS = 2**27  # multiplications from which on a Cholesky factor of XᵀX is faster than a loop (derived: 0.5 s)
GRAM_COLUMNS = 4096  # most columns of XᵀX, which then takes 134 MB, unless twice as many as are picked (derived)
ROUNDED = 1e-12  # a pivot of XᵀX below this, relative to the longest squared column, is rounding (chosen: above k eps)


def large_volume(
    X: Array,
    include: Sequence[int] | Indices,
    k: int,
    clock: Clock = UNLIMITED,
) -> Subset:
    """Find k columns of X (n, D, P) of large volume: add the column of largest residual (pivoted QR).

    Where that takes many products, a Cholesky factor of some thousand columns replaces it. Once time is over, columns
    are picked from a few that are evenly spaced. If those span fewer than k dimensions, the columns farthest from the
    span of the picked ones replace them.
    """
    n, D, P = X.shape
    few = FEW_COLUMNS * k
    included = np.array(include, dtype=np.intp)
    if n == 1 and D * k * P > MANY_PRODUCTS:
        # the squared residuals are pivots of a Cholesky factor of XᵀX, which LAPACK computes faster
        found = clock.waiting(lambda: _pivoted_cholesky(X[0], included, k))
        if found is not None:
            return found
    numbers: Indices = np.arange(P, dtype=np.intp)
    residuals = X.copy()
    longest = float(np.einsum("idp,idp->p", X, X).max())
    directions = np.zeros((n, D, 0))
    subset: list[int] = []
    for step in range(k):
        if clock.expired and len(numbers) > 2 * few:
            some = np.union1d(np.arange(0, P, P // few), included)
            numbers, residuals = numbers[some], residuals[:, :, some]
        squares = np.einsum("idp,idp->p", residuals, residuals)
        squares[np.isin(numbers, subset)] = 0
        if len(numbers) < P and squares.max() <= NEGLIGIBLE * longest:
            residuals = X - directions @ (np.swapaxes(directions, 1, 2) @ X)
            squares = np.einsum("idp,idp->p", residuals, residuals)
            numbers = np.union1d(np.argpartition(-squares, few - 1)[:few], included)
            residuals, squares = residuals[:, :, numbers], squares[numbers]
            squares[np.isin(numbers, subset)] = 0
        place = int(np.searchsorted(numbers, included[step])) if step < len(included) else int(squares.argmax())
        subset.append(int(numbers[place]))
        direction = residuals[:, :, place, None]
        size = np.linalg.norm(direction, axis=1, keepdims=True)
        direction = direction / np.maximum(size, np.finfo(np.float64).tiny)
        directions = np.concatenate([directions, direction], axis=2)
        residuals -= direction @ (np.swapaxes(direction, 1, 2) @ residuals)
    return np.array(subset, np.int32)


def _pivoted_cholesky(X: Array, include: Indices, k: int) -> Subset | None:
    """The included columns and those of largest residual among at most some thousand evenly spaced columns of X (D, P).

    Returns None if those span fewer than k dimensions, up to the rounding of XᵀX.
    """
    P, missing = X.shape[1], k - len(include)
    numbers = np.setdiff1d(np.arange(0, P, max(1, -(-P // max(2 * k, GRAM_COLUMNS)))), include)
    Z = X[:, numbers]
    if len(include):
        Q = np.linalg.qr(X[:, include])[0]
        Z = Z - Q @ (Q.T @ Z)
    longest = float(np.einsum("dp,dp->p", X, X).max())
    _, pivots, rank, _ = dpstrf(Z.T @ Z, tol=ROUNDED * longest, overwrite_a=1)
    return None if rank < missing else np.append(include, numbers[pivots[:missing] - 1]).astype(np.int32)
