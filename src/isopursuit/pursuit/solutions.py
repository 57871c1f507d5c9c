"""Which optimal solution: where many are, the minimum-norm one or a vertex, and whether there is only one.

At the optimum M is unique. The optimal weights are {w ≥ 0 on the columns with q_p = 1, Σ w_p x_p x_pᵀ = M}: a polytope,
described here by A w = b whose column p holds the distinct entries of x_p x_pᵀ (for every point)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isopursuit.pursuit.design import Design, Evaluation

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

TIED = 1e-9  # |q − 1| below which a column counts as tied when weight is shared out
LARGEST = 60_000_000  # entries of A beyond which the solver's own weights are returned as they are


@dataclass(frozen=True)
class Polytope:
    """The optimal weights: w ≥ 0 on `columns` with A w = b, A's rows orthonormal."""

    columns: Indices
    A: Array
    b: Array


def polytope(design: Design, evaluation: Evaluation) -> Polytope | None:
    """The optimal weights around converged ones, or None where the description would be too large."""
    weights = evaluation.weights
    columns = np.flatnonzero((evaluation.q >= 1 - max(TIED, 10 * evaluation.gap)) | (weights > 0))
    n, _, D = design.shape
    if n * (D * (D + 1) // 2) * len(columns) > LARGEST:
        return None
    i, j = np.triu_indices(D)
    x = design.x[:, columns, :]
    products = x[:, :, i] * x[:, :, j] * np.where(i == j, 1.0, np.sqrt(2.0))
    raw = products.transpose(0, 2, 1).reshape(-1, len(columns))
    u, s, vt = np.linalg.svd(raw, full_matrices=False)
    rank = int((s > 1e-11 * s[0]).sum())
    A = vt[:rank]
    return Polytope(columns, A, A @ weights[columns])


def minimum_norm(P: Polytope, start: Array, turns: int = 100) -> Array:
    """The w of least ‖w‖ in the polytope: w = max(0, Aᵀy), by semismooth Newton on the dual ½‖w‖² − bᵀy."""
    A, b = P.A, P.b
    y = A @ start
    z = np.maximum(A.T @ y, 0.0)
    value = 0.5 * z @ z - b @ y
    for _ in range(turns):
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
    # exact on the support found: least squares restores A w = b to rounding
    held = np.flatnonzero(z > 1e-12 * z.max())
    exact = np.linalg.lstsq(A[:, held], b, rcond=1e-12)[0]
    if len(held) and (exact > 0).all() and np.abs(exact - z[held]).max() < 1e-6 * z.max():
        z = np.zeros_like(z)
        z[held] = exact
    return z


def vertex(P: Polytope, start: Array) -> Array:
    """A vertex: heavier columns (of the given weights, ties to the lowest index) are kept before lighter ones.

    Columns are taken in that order; one that depends on those before it gives up its weight along the dependency
    until its own weight or another's is zero (Carathéodory)."""
    w = start.copy()
    kept: list[int] = []
    for p in np.lexsort((np.arange(len(w)), -w)):
        if w[p] <= 0:
            continue
        while True:
            basis = P.A[:, kept]
            mix = np.linalg.lstsq(basis, P.A[:, p], rcond=None)[0] if kept else np.zeros(0)
            if np.linalg.norm(P.A[:, p] - basis @ mix) > 1e-9 * np.linalg.norm(P.A[:, p]):
                kept.append(int(p))
                break
            # moving t of weight from p to the others: w_p − t, w_kept + t·mix
            falling = mix < 0
            limits = np.append(-w[kept][falling] / mix[falling], w[p])
            t = float(limits.min())
            w[kept] = np.maximum(w[kept] + t * mix, 0.0)
            if t >= w[p]:
                w[p] = 0.0
                break
            w[p] -= t
            lost = int(np.array(kept)[falling][np.argmin(limits[:-1])])
            w[lost] = 0.0
            kept.remove(lost)
    return w


def is_unique(P: Polytope, w: Array) -> bool:
    """Whether w is the only point of the polytope: no direction z ≠ 0 with A z = 0 and z ≥ 0 where w = 0."""
    held = w > 0
    if np.linalg.matrix_rank(P.A[:, held], tol=1e-9) < held.sum():
        return False
    if held.all() or len(P.columns) == len(P.b):
        return True
    from scipy.optimize import linprog

    free = [(None, None) if h else (0.0, 1.0) for h in held]
    found = linprog(-(~held).astype(float), A_eq=P.A, b_eq=np.zeros(len(P.b)), bounds=free)
    return bool(found.status == 0 and -found.fun < 1e-7)
