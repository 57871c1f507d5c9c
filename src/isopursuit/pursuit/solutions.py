"""Choice among optimal solutions: the one of minimum norm, and a test whether there is only one.

Given an optimal ν, every optimal solution is B_p = w_p u_p, u_p = νᵀx_p, on the columns with ‖u_p‖ = 1. So the optimal
weights are the polytope {w ≥ 0, Σ w_p x_p u_pᵀ = X B}. Here it is A w = b, where column p of A has the entries of
x_p u_pᵀ for every point, or equivalent numbers (`Design.moments`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isopursuit._core.types import Array, Indices
from isopursuit.pursuit.design import Design, Evaluation

MOST_POLYTOPE = 60_000_000  # most entries of the polytope's matrix; beyond, no solution is chosen (derived: 480 MB)
DETERMINED = 1e-4  # least singular value of unit-size x_p u_pᵀ for which M, known to 1e-7, determines weights
RANK_ROUNDING = 1e-11  # singular values below this, relative to the largest, count as zero (derived: 5e4 eps)


@dataclass(frozen=True)
class Polytope:
    """The optimal weights: w ≥ 0 on `columns` with A w = b. A has orthonormal rows; `products` has the moments."""

    columns: Indices
    A: Array
    b: Array
    products: Array


def polytope_entries(design: Design, columns: int) -> int:
    """How many entries the polytope's matrix has on so many columns."""
    n, _, D = design.shape
    return n * (D * (D + 1) // 2 if design.aim is None else D * design.aim.shape[2]) * columns


def polytope(design: Design, evaluation: Evaluation, columns: Indices) -> Polytope:
    """The polytope of optimal weights on these columns, from converged weights."""
    raw = design.moments(evaluation, columns)
    _, s, vt = np.linalg.svd(raw, full_matrices=False)
    rank = int((s > RANK_ROUNDING * s[0]).sum())
    A = vt[:rank]
    return Polytope(columns, A, A @ evaluation.weights[columns], raw)


def minimum_norm(P: Polytope, start: Array) -> Array:
    """The w of least ‖w‖ in the polytope: w = max(0, Aᵀy), by semismooth Newton on the dual ½‖w‖² − bᵀy."""
    A, b = P.A, P.b
    y = A @ start
    z = np.maximum(A.T @ y, 0.0)
    value = 0.5 * z @ z - b @ y
    for _ in range(100):
        residual = A @ z - b
        size = float(np.abs(residual).max())
        if size < 1e-15 * max(1.0, float(np.abs(b).max())):
            break
        active = A[:, z > 0]
        H = active @ active.T
        H[np.diag_indices_from(H)] += 1e-13 + min(1e-3, size)
        step = -np.linalg.solve(H, residual)
        t = 1.0
        while True:
            trial = y + t * step
            z_trial = np.maximum(A.T @ trial, 0.0)
            new = 0.5 * z_trial @ z_trial - b @ trial
            if new <= value + 1e-4 * t * (residual @ step) + 1e-16 * abs(value) or t < 1e-10:
                break
            t /= 2
        y, z, value = trial, z_trial, new
    # on the support that was found, least squares restores A w = b up to rounding
    held = np.flatnonzero(z > 1e-12 * z.max())
    exact = np.linalg.lstsq(A[:, held], b, rcond=1e-12)[0]
    if len(held) and (exact > 0).all() and np.abs(exact - z[held]).max() < 1e-6 * z.max():
        z = np.zeros_like(z)
        z[held] = exact
    return z


def is_unique(P: Polytope, w: Array) -> bool:
    """Whether w is the only point of the polytope: no direction z ≠ 0 with A z = 0 and z ≥ 0 where w = 0.

    Directions for which A z is below the error of a converged M count as well. The columns with weight are independent,
    so z is determined by its entries on the others. Those must be in the null space of the part of A orthogonal to the
    columns with weight. This is a linear program with one unknown for each column without weight.
    """
    held = w > 0
    A = P.products / np.maximum(np.linalg.norm(P.products, axis=0), 1e-300)
    if not 0 < held.sum() <= len(A) or np.linalg.svd(A[:, held], compute_uv=False)[-1] < DETERMINED:
        return False
    if held.all():
        return True
    _, s, vt = np.linalg.svd(A, full_matrices=False)
    A = vt[s >= DETERMINED]
    if len(A) == A.shape[1]:
        return True
    from scipy.linalg import qr
    from scipy.optimize import linprog

    Q, R, _ = qr(A[:, held], pivoting=True, check_finite=False)
    sizes = np.abs(np.diag(R))
    rank = int((sizes > RANK_ROUNDING * sizes[0]).sum())
    others = Q[:, rank:].T @ A[:, ~held]
    if len(others) == 0:
        return False
    found = linprog(-np.ones(others.shape[1]), A_eq=others, b_eq=np.zeros(len(others)), bounds=(0.0, 1.0))
    return bool(found.status == 0 and found.fun is not None and -found.fun < 1e-7)
