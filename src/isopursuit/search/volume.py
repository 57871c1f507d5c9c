"""Columns of large volume: starts of searches, and columns that complete a subset at the time limit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import qr
from scipy.linalg.lapack import dpstrf

from isopursuit._types import Array, Indices
from isopursuit.clock import Clock
from isopursuit.search.settings import PRODUCT_SPEED, SOLVE_SPEED, VOLUME_SHARE
from isopursuit.search.swaps import UNLIMITED, Subset

FEW_COLUMNS = 8  # columns per row that are considered even if time is short (guess)
NEGLIGIBLE = 1e-20  # a squared residual below this, relative to the longest column, is rounding (chosen: above eps²)
MANY_PRODUCTS = 2**27  # multiplications from which on a Cholesky factor of XᵀX is faster than a loop (guess)
GRAM_COLUMNS = 4096  # most columns of XᵀX, which then takes 134 MB, unless twice as many as are picked (guess)
GRAM_SPEED = 1e10  # multiplications per second of XᵀX, a low estimate (guess)
ROUNDED = 1e-12  # a pivot of XᵀX below this, relative to the longest squared column, is rounding (chosen: above k eps)
MIN_VOLUME_GAIN = 1.01  # swap only if the volume grows by at least 1 % (guess)


def pivoted_qr(X: Array, k: int) -> Indices:
    """The first k pivots of QR with column pivoting: each is the column farthest from the span of those before it."""
    pivots = qr(X, mode="r", pivoting=True, check_finite=False)[1]
    return np.sort(pivots[:k]).astype(np.intp)


def greedy_volume(X: Array, include: Sequence[int] | Indices, k: int, squares: Array | None = None) -> Indices:
    """As `pivoted_qr`, but starts with the columns to include and computes a Cholesky factor of XᵀX row by row.

    It takes k products of X with a vector, which is faster than QR for small k. It cannot distinguish residuals below
    1e-8 of the columns' lengths. `squares` are the squared lengths. Ties go to the first column.
    """
    left = np.einsum("dp,dp->p", X, X) if squares is None else squares.copy()
    rows = np.zeros((k, X.shape[1]))  # of the Cholesky factor, whose rows follow the order of the picks
    picked: list[int] = []
    for step in range(k):
        best = int(include[step]) if step < len(include) else int(left.argmax())
        row = X[:, best] @ X - rows[:step, best] @ rows[:step]
        # if the column is in the span of those before it, its residual is only rounding
        row *= 1 / np.sqrt(left[best]) if left[best] > np.finfo(float).tiny else 0.0
        rows[step] = row
        left -= row**2
        picked.append(best)
        left[best] = -np.inf
    return np.sort(np.array(picked, dtype=np.intp))


def large_volume(
    X: Array,
    include: Sequence[int] | Indices,
    k: int,
    clock: Clock = UNLIMITED,
    rng: np.random.Generator | None = None,
) -> Subset:
    """Find k columns of X (n, D, P) of large volume: add the column of largest residual (pivoted QR), or one drawn with
    probability proportional to the squared residual (without enough time for that, the one of largest residual).

    If all columns would take more than a small share of the remaining time, columns are picked from a few that are
    evenly spaced. If those span fewer than k dimensions, the columns farthest from their span are added.
    """
    n, D, P = X.shape
    seconds = VOLUME_SHARE * clock.remaining
    products = D * k * min(P, FEW_COLUMNS * k)  # of the loop below, at least
    in_time = products / PRODUCT_SPEED <= clock.remaining
    most = max(2 * k, int(min((seconds * GRAM_SPEED / D) ** 0.5, GRAM_COLUMNS)))
    enough = most >= P or seconds < np.inf
    if n == 1 and products > MANY_PRODUCTS and enough and (rng is None or not in_time):
        # the squared residuals are pivots of a Cholesky factor of XᵀX, which LAPACK computes faster
        found = clock.waiting(lambda: _pivoted_cholesky(X[0], np.array(include, dtype=np.intp), k, most))
        if found is not None:
            return found
    most = P if seconds == np.inf else max(FEW_COLUMNS * k, int(seconds * PRODUCT_SPEED / (n * D * k)))
    numbers: Indices = np.arange(P, dtype=np.intp)
    included = np.array(include, dtype=np.intp)
    if most < P:
        numbers = np.union1d(numbers[:: -(-P // most)], included)
    residuals = X.copy() if most >= P else X[:, :, numbers]
    longest = float(np.einsum("idp,idp->p", residuals, residuals).max())
    directions = np.zeros((n, D, 0))
    subset: list[int] = []
    for step in range(k):
        squares = np.einsum("idp,idp->p", residuals, residuals)
        squares[np.isin(numbers, subset)] = 0
        if len(numbers) < P and squares.max() <= NEGLIGIBLE * longest:
            residuals = X - directions @ (np.swapaxes(directions, 1, 2) @ X)
            squares = np.einsum("idp,idp->p", residuals, residuals)
            numbers = np.union1d(np.argpartition(-squares, most - 1)[:most], included)
            residuals, squares = residuals[:, :, numbers], squares[numbers]
            squares[np.isin(numbers, subset)] = 0
        if step < len(included):
            place = int(np.searchsorted(numbers, included[step]))
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


def _pivoted_cholesky(X: Array, include: Indices, k: int, most: int) -> Subset | None:
    """The included columns and those of largest residual among at most about `most` evenly spaced columns of X (D, P).

    Returns None if those span fewer than k dimensions, up to the rounding of XᵀX.
    """
    P = X.shape[1]
    numbers = np.setdiff1d(np.arange(0, P, max(1, -(-P // most))), include)
    Z, missing = X[:, numbers], k - len(include)
    if len(include):
        Q = np.linalg.qr(X[:, include])[0]
        Z = Z - Q @ (Q.T @ Z)
    G = Z.T @ Z
    longest = float(np.einsum("dp,dp->p", X, X).max())
    _, pivots, rank, _ = dpstrf(G, tol=ROUNDED * longest, overwrite_a=1)
    return None if rank < missing else np.append(include, numbers[pivots[:missing] - 1]).astype(np.int32)


def grow_volume(X: Array, subset: Subset, fixed: int, clock: Clock) -> Subset:
    """Swap single columns of X (D, P) while the volume grows at least by the factor MIN_VOLUME_GAIN (maxvol).

    The first `fixed` columns of the subset stay. If S has the picked columns, replacing the i-th by x_p multiplies
    det S by entry (i, p) of S⁻¹X. A subset of fewer columns than rows is returned as it is.
    """
    subset = subset.copy()
    if len(subset) < len(X) or X.size * len(X) / SOLVE_SPEED > clock.remaining:
        return subset
    try:
        ratios: Array = np.asarray(np.linalg.solve(X[:, subset], X), np.float64)
    except np.linalg.LinAlgError:
        return subset
    for _ in range(2 * len(X) if fixed < len(X) else 0):
        row, column = np.unravel_index(np.abs(ratios[fixed:]).argmax(), ratios[fixed:].shape)
        place = fixed + int(row)
        pivot = float(ratios[place, column])
        if abs(pivot) < MIN_VOLUME_GAIN or clock.expired:
            break
        subset[place] = column
        change = ratios[:, column].copy()
        change[place] -= 1
        ratios -= change[:, None] * (ratios[place] / pivot)
    return subset
