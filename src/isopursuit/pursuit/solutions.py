"""The other optimal solutions, on request: whether there are any, and the one whose weights have the least norm.

Given an optimal ν, every optimal solution is B_p = w_p u_p, u_p = νᵀx_p, on the columns with ‖u_p‖ = 1. So the optimal
weights are the polytope {w ≥ 0, Σ w_p x_p u_pᵀ = X B}. Here it is A w = b, where column p of A has the entries of
x_p u_pᵀ for every point, or equivalent numbers (`Design.moments`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from isopursuit._core.types import Array, Indices
from isopursuit.errors import BudgetError, RangeError
from isopursuit.pursuit.certificate import Caller, certify
from isopursuit.pursuit.design import Design, Evaluation
from isopursuit.results import Certificate, Pursuit

MOST_POLYTOPE = 60_000_000  # most entries of the polytope's matrix; beyond, no solution is chosen (derived: 480 MB)
RETAINED = 2**17  # entries of a design that is kept as it is for other solutions: 1 MB
TIGHT = 1e-9  # 1 − q below which a column counts as tight when weight is distributed
PURIFIED_GAP = 1e-15  # gap to which the tied columns are solved again before weight is distributed (derived: 5 eps)
HEAVY = 1e-7  # share of the largest weight above which a column keeps its place while others are tried without
DETERMINED = 1e-4  # least singular value of unit-size x_p u_pᵀ for which M, known to 1e-7, determines weights
RANK_ROUNDING = 1e-11  # singular values below this, relative to the largest, count as zero (derived: 5e4 eps)
NEWTON_STEPS = 100  # most steps for the least norm; they converge quadratically


@dataclass(frozen=True)
class Optimum:
    """An optimal solution and the program on all its columns, or on the tied ones if the program is large."""

    whole: Design
    solved: Evaluation
    caller: Caller
    tied: Indices
    tol: float

    @classmethod
    def of(cls, design: Design, evaluation: Evaluation, caller: Caller, tied: Indices, tol: float) -> Optimum:
        """Make one; a large design is not kept, only its tied columns."""
        if design.x.size > RETAINED:
            copies = None if caller.copies is None else caller.copies[tied]
            caller = replace(caller, order=caller.numbers(design.shape[1])[tied], copies=copies)
            design, evaluation, tied = design.take(tied), evaluation.take(tied), np.arange(len(tied))
        return cls(design, evaluation, caller, tied, tol)

    @cached_property
    def design(self) -> Design:
        """The program on the tied columns."""
        return self.whole.take(self.tied)

    @cached_property
    def place(self) -> Indices:
        """Column j of the design is the pursuit's tied column place[j]."""
        return np.argsort(np.argsort(self.caller.numbers(self.whole.shape[1])[self.tied]))

    @cached_property
    def _least(self) -> tuple[Evaluation, Array]:
        """An evaluation at optimal weights, and the optimal weights of least norm, of all tied columns."""
        evaluation = _purified(self.design, self.solved.take(self.tied))
        # columns with q = 1 up to slightly more than rounding
        tight = np.flatnonzero((evaluation.q >= 1 - max(TIGHT, 10 * evaluation.gap)) | (evaluation.weights > 0))
        _, s, vt = np.linalg.svd(self.design.moments(evaluation, tight), full_matrices=False)
        A = vt[: int((s > RANK_ROUNDING * s[0]).sum())]  # orthonormal rows
        weights = np.zeros(len(self.tied))
        weights[tight] = least_norm(A, A @ evaluation.weights[tight], evaluation.weights[tight])
        return evaluation, weights

    @property
    def _entries(self) -> int:
        """How many entries the polytope's matrix has."""
        n, m, D = self.design.shape
        return n * (D * (D + 1) // 2 if self.design.aim is None else D * self.design.aim.shape[2]) * m

    def is_unique(self) -> bool:
        """Whether there is no other solution; False if that would take too much memory to find out."""
        m, weights = len(self.tied), self.solved.weights
        if self._entries > MOST_POLYTOPE or m * np.count_nonzero(weights > HEAVY * weights.max()) > self._entries:
            return False
        evaluation, least = self._least
        # no proof excludes the other tied columns from another solution
        return is_unique(self.design.moments(evaluation, np.arange(m)), least)

    def minimum_norm(self, found: Pursuit) -> Pursuit:
        """The pursuit with the weights of least norm."""
        if self._entries > MOST_POLYTOPE:
            raise BudgetError(
                f"{len(self.tied)} columns are tied, too many to choose the solution of least norm in memory. "
                "Use the solution as it is: its certificate holds."
            )
        evaluation, weights = self._least
        if self.caller.copies is not None:
            weights = shared(weights, self.caller.copies[self.tied])
        # ν is the same at every solution
        proof = certify(self.design, replace(evaluation, weights=weights), np.flatnonzero(weights))
        if proof.error > max(self.tol, found.certificate.gap):
            raise RangeError("Rounding prevents that the solution of least norm is optimal. Use the solution as it is.")
        proof = proof.in_units_of(self.caller, self.design.penalty)
        used = proof.norms > 0
        place = found.tied[self.place[proof.support[used]]]
        weights = np.zeros(len(found.weights))
        weights[place] = proof.norms[used]
        if np.linalg.norm(weights) > np.linalg.norm(found.weights):  # columns that are nearly equal
            return found
        B = proof.B[:, used][:, np.argsort(place)]
        # the dual point of `found` is feasible on all columns
        primal, dual = max(proof.certificate.primal, found.certificate.dual), found.certificate.dual
        return replace(
            found,
            weights=weights,
            support_coefficients=B if self.caller.many else B[0],
            certificate=Certificate(primal, dual, proof.certificate.residual),
        )


def shared(weights: Array, copies: Indices) -> Array:
    """Equal weights on identical columns, which have equal numbers in `copies`."""
    return (np.bincount(copies, weights) / np.maximum(np.bincount(copies), 1))[copies]


def _purified(design: Design, evaluation: Evaluation) -> Evaluation:
    """The same weights up to rounding, with exact zeros on columns that have none in a solution."""
    heavy = evaluation.weights > HEAVY * evaluation.weights.max()
    for columns in (np.flatnonzero((evaluation.q >= 1 - TIGHT) | heavy), np.arange(len(heavy))):
        part, w = design.take(columns), evaluation.weights[columns]
        if part.evaluate(w) is None:
            continue
        part.solve(w, PURIFIED_GAP)
        full = np.zeros(len(heavy))
        full[columns] = w
        again = design.evaluate(full)
        if again is not None and again.gap <= max(evaluation.gap, 10 * PURIFIED_GAP):
            return again
    return evaluation


def least_norm(A: Array, b: Array, start: Array) -> Array:
    """The w ≥ 0 of least ‖w‖ with A w = b: w = max(0, Aᵀy), by semismooth Newton on the dual ½‖w‖² − bᵀy."""
    y = A @ start
    z = np.maximum(A.T @ y, 0.0)
    value = 0.5 * z @ z - b @ y
    for _ in range(NEWTON_STEPS):
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


def is_unique(products: Array, w: Array) -> bool:
    """Whether w is the only w ≥ 0 with its `products` @ w: no z ≠ 0 has products @ z = 0 and z ≥ 0 where w = 0.

    Directions for which that is below the error of a converged M count as well. The columns with weight are
    independent, so z is determined by its entries on the others. Those must be in the null space of the part of A
    orthogonal to the columns with weight. This is a linear program with one unknown for each column without weight.
    """
    held = w > 0
    A = products / np.maximum(np.linalg.norm(products, axis=0), 1e-300)
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
