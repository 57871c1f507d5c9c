"""Other methods to pick k columns of a matrix, written with NumPy and SciPy.

Each takes values (D, P) with columns of positive length and k ≤ rank, and returns k column numbers.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lu_factor, lu_solve, qr

from isopursuit._core.clock import UNLIMITED, Clock
from isopursuit._core.linalg import unit_columns
from isopursuit._core.types import Array, Indices

MIN_VOLUME_GAIN = 1.01  # maxvol swaps while the volume grows at least by this factor (as in the literature)
MAX_SWAPS = 100  # per column; maxvol ends much earlier (guess)


def greedy_dpp(values: Array, k: int) -> Indices:
    """Greedy MAP inference of a determinantal point process whose kernel is the matrix of cosines (equal quality).

    Each step adds the column that raises log det of the picked columns' kernel most, or the first of equal ones. The
    Cholesky factor grows row by row.
    """
    unit = unit_columns(values)
    left = np.ones(unit.shape[1])  # squared distances from the span of the picked columns
    rows = np.zeros((k, unit.shape[1]))  # of the Cholesky factor
    picked: list[int] = []
    for step in range(k):
        best = int(left.argmax())
        # if the column is in the span of those before it, its residual is only rounding
        scale = 1 / np.sqrt(left[best]) if left[best] > np.finfo(float).tiny else 0.0
        rows[step] = scale * (unit[:, best] @ unit - rows[:step, best] @ rows[:step])
        left -= rows[step] ** 2
        picked.append(best)
        left[best] = -np.inf
    return np.sort(np.array(picked, dtype=np.intp))


def pivoted_qr(X: Array, k: int) -> Indices:
    """The first k pivots of QR with column pivoting: each is the column farthest from the span of those before it."""
    pivots = qr(X, mode="r", pivoting=True, check_finite=False)[1]
    return np.sort(pivots[:k]).astype(np.intp)


def maxvol(values: Array, k: int, clock: Clock = UNLIMITED) -> Indices:
    """Start from the pivoted QR, and swap columns while the volume √det(SᵀS) of the picked columns S grows by 1 %.

    The volume is that of all columns but i times the distance of column i from their span.
    """
    picked = pivoted_qr(values, k)
    squares = np.einsum("dp,dp->p", values, values)
    for _ in range(MAX_SWAPS * k):
        if clock.expired:
            break
        S = values[:, picked]
        factor = lu_factor(S.T @ S, check_finite=False)
        A = lu_solve(factor, S.T @ values, check_finite=False)  # the columns' coordinates in S
        inverse = lu_solve(factor, np.eye(k), check_finite=False)
        distance = np.maximum(squares - np.einsum("ip,ip->p", S.T @ values, A), 0.0)  # squared, from the span of S
        # volume² after a swap of column i for p, over that before: A_ip² + distance_p (SᵀS)⁻¹_ii
        gains = A**2 + distance * np.diag(inverse)[:, None]
        gains[:, picked] = 0.0
        place, column = np.unravel_index(int(gains.argmax()), gains.shape)
        if not gains[place, column] >= MIN_VOLUME_GAIN**2:
            break
        picked[place] = column
    return np.sort(picked)
