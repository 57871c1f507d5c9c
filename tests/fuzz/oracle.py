"""The isometry loss of subsets in extended precision, and the best subset by brute force: nothing of the library.

Singular values come from one-sided Jacobi rotations in np.longdouble (64-bit mantissa on x86), which are accurate
relative to each column's own length.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Long = np.longdouble


def jacobi_singular_values(stack: NDArray[np.longdouble]) -> NDArray[np.longdouble]:
    """Singular values (m, k) of matrices (m, D, k), unordered."""
    A = np.array(stack, dtype=Long)
    k = A.shape[2]
    tiny = np.finfo(Long).tiny
    for _ in range(60):
        worst = 0.0
        for i, j in combinations(range(k), 2):
            x, y = A[:, :, i].copy(), A[:, :, j].copy()
            a, b, g = (x * x).sum(1), (y * y).sum(1), (x * y).sum(1)
            size = np.sqrt(a * b)
            worst = max(worst, float((np.abs(g) / np.maximum(size, tiny)).max(initial=0)))
            turn = np.abs(g) > np.finfo(Long).eps * size
            zeta = (b - a) / np.where(turn, 2 * g, 1)
            t = np.where(turn, np.where(zeta >= 0, 1, -1) / (np.abs(zeta) + np.hypot(1, zeta)), 0)
            cosine = 1 / np.hypot(1, t)
            sine = cosine * t
            A[:, :, i] = cosine[:, None] * x - sine[:, None] * y
            A[:, :, j] = sine[:, None] * x + cosine[:, None] * y
        if worst < 4 * np.finfo(Long).eps:
            break
    return np.sqrt((A * A).sum(1))


def log_loss(sigma: NDArray[np.floating], c: float) -> NDArray[np.longdouble]:
    """Log Σ (e^{σ^c} + e^{σ^-c})/2e over the last axis; infinite where a singular value is zero."""
    sigma = np.asarray(sigma, dtype=Long)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        power = sigma ** Long(c)
        terms = np.logaddexp(power, 1 / power)
        top = terms.max(axis=-1)
        total = top + np.log(np.exp(terms - top[..., None]).sum(axis=-1)) - np.log(Long(2)) - 1
    return np.where(np.isfinite(top), total, Long(np.inf))


def joint_log_loss(
    X: Array, subsets: NDArray[np.integer], c: float, aggregate: str | float = "sum"
) -> NDArray[np.longdouble]:
    """The log of the aggregate over the points X (n, D, P), for subsets (m, k), in extended precision."""
    each = [log_loss(jacobi_singular_values(np.moveaxis(point[:, subsets], 1, 0)), c) for point in X.astype(Long)]
    return aggregated(np.stack(each), aggregate)


def aggregated(each: NDArray[np.longdouble], aggregate: str | float) -> NDArray[np.longdouble]:
    """The log of the aggregate of the log-losses (n, m): "sum", or the share of a trimmed mean."""
    n = len(each)
    if n == 1 or aggregate == "sum":
        return np.logaddexp.reduce(each, axis=0)
    kept = math.ceil(float(aggregate) * n)
    return np.logaddexp.reduce(np.sort(each, axis=0)[:kept], axis=0) - np.log(Long(kept))


def all_subsets(P: int, k: int, include: list[int], exclude: list[int]) -> NDArray[np.intp]:
    """Every subset of k columns, sorted, with those to include and without those to exclude."""
    free = [p for p in range(P) if p not in include and p not in exclude]
    found = [sorted((*include, *rest)) for rest in combinations(free, k - len(include))]
    return np.array(found, dtype=np.intp).reshape(-1, k)


def brute_force(
    X: Array, subsets: NDArray[np.intp], c: float, aggregate: str | float = "sum"
) -> tuple[float, NDArray[np.intp]]:
    """The least log-loss of the subsets at the points X (n, D, P), and the subset.

    Float64 first: a subset whose singular values, each moved towards 1 by more than the rounding of the SVD, have a
    larger loss than the best found cannot be better. The others are evaluated in extended precision.
    """
    n, D, _ = X.shape
    optimistic = np.full((n, len(subsets)), -np.inf, dtype=Long)
    for i, point in enumerate(X):
        sigma = np.linalg.svd(np.moveaxis(point[:, subsets], 1, 0), compute_uv=False)
        slack = 16 * D * np.finfo(float).eps * sigma[:, :1]
        moved = np.where(sigma < 1, np.minimum(sigma + slack, 1), np.maximum(sigma - slack, 1))
        optimistic[i] = log_loss(moved, c)
    optimistic = aggregated(optimistic, aggregate)
    order = np.argsort(optimistic, kind="stable")
    best, where = Long(np.inf), subsets[order[0]]
    for first in range(0, len(order), 256):
        some = order[first : first + 256]
        if optimistic[some[0]] > best:
            break
        values = joint_log_loss(X, subsets[some], c, aggregate)
        least = int(values.argmin())
        if values[least] < best:
            best, where = values[least], subsets[some[least]]
    with np.errstate(over="ignore"):
        return float(best), where
