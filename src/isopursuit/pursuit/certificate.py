"""The certificate of an answer, computed once, from its coefficients and dual point on the caller's columns.

Any coefficients B and any ν with ‖νᵀx_p‖ ≤ 1 for every column bound the optimum from above and below. The solvers
return weights; here these become B and ν in the caller's coordinates, with bounds on every rounding error:

- ν is divided by ρ, an upper bound on the largest ‖νᵀx_p‖ (`_program.largest_slope`).
- Y − X B = R is computed with the bound (|S|/2 + 2) eps Σ ‖x_p‖ ‖B_p‖, because the relative error of a sum of |S|
  products is |S| eps/2 of the sum of their sizes, and that of a coefficient is eps.
- The objective of coefficients that remove R is added to the primal value. If Y = I these are B (R + R² + …), which
  cost Σ‖B_p‖ ‖R‖/(1 − ‖R‖).

rectangular.py says what X B misses and what ν proves if fewer columns than rows are picked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from isopursuit._core.linalg import EPS
from isopursuit._core.types import Array, Indices, Labels
from isopursuit.data._units import AS_GIVEN, UnitLength
from isopursuit.pursuit import _program
from isopursuit.pursuit.design import Design, Evaluation
from isopursuit.pursuit.rectangular import RectangularDesign, misfit_of_projection, sum_of_smallest
from isopursuit.results import Certificate

REFINED_RESIDUAL = 1e-11  # relative residuals above this are removed by least squares (derived: a tenth of a usual tol)
NEAR_TIGHT = 1e-6  # 1 − q relative to the largest q, below which a column may help to meet the constraint
CORRECTIONS = 3  # most least-squares corrections: on the support, then twice with the columns near √q = 1


@dataclass(frozen=True)
class Caller:
    """How the caller's problem differs from the design.

    Attributes
    ----------
    labels, notes
        Of the caller's matrix.
    many : bool
        Whether the caller passed several points. Answers then have one array for each.
    columns, target : float
        The caller's columns and target, divided by the design's.
    order : ndarray, optional
        Column p of the design is column order[p] of the caller.
    copies : ndarray, optional
        If some columns are identical: a number for each column, equal for identical ones.
    unit_length
        The divisor of the caller's lengths.
    """

    labels: Labels | None = None
    notes: tuple[str, ...] = ()
    many: bool = False
    columns: float = 1.0
    target: float = 1.0
    order: Indices | None = None
    copies: Indices | None = None
    unit_length: UnitLength = AS_GIVEN

    @property
    def coefficients(self) -> float:
        """The caller's coefficients, divided by the design's."""
        return self.target / self.columns

    def numbers(self, P: int) -> Indices:
        """The caller's numbers of the design's P columns."""
        return np.arange(P) if self.order is None else self.order


@dataclass(frozen=True)
class Proof:
    """Coefficients on the support (n, |S|, r) and their norms, a dual point (n, D, r), and what they prove."""

    support: Indices
    B: Array
    norms: Array
    nu: Array
    certificate: Certificate

    @property
    def error(self) -> float:
        """The relative difference of both bounds, even if the dual value is above the primal one by rounding."""
        primal, dual = self.certificate.primal, self.certificate.dual
        return max(self.certificate.gap, (dual - primal) / primal if primal > 0 else 0.0)

    def in_units_of(self, caller: Caller, penalty: float) -> Proof:
        """The same proof in the caller's units; its columns are still those of the design."""
        known, unit = self.certificate, caller.coefficients
        objective = unit if penalty == 0 else caller.target**2
        certificate = Certificate(objective * known.primal, objective * min(known.dual, known.primal), known.residual)
        return Proof(self.support, unit * self.B, unit * self.norms, self.nu / caller.columns, certificate)


def certify(design: Design, evaluation: Evaluation, support: Indices) -> Proof:
    """The proof that the weights on the support give, with bounds on its rounding errors."""
    nu = np.ascontiguousarray(design.dual_point(evaluation))
    rho = _program.largest_slope(design.columns, nu)
    scale = 1 / rho if rho > 0 else 0.0
    if isinstance(design, RectangularDesign):
        return _certify_projection(design, evaluation, support, scale, nu)
    support, B, (R, norms, missed, rounding) = _feasible(design, evaluation, support)
    total = float(norms.sum())
    terms = (nu.diagonal(axis1=1, axis2=2) if design.given is None else design.given * nu).ravel().tolist()
    inner = math.fsum(terms) - EPS * math.fsum(map(abs, terms))  # ⟨Y, ν⟩
    if design.penalty == 0:
        residual = (missed + rounding) / _asked(design)
        primal, dual = total + _cost(design, evaluation, support, R, missed, total), scale * inner
    else:
        # λ⟨Y, tν⟩ − λ²‖tν‖²/2 is largest at t = ⟨Y, ν⟩ / λ‖ν‖²
        square = float(np.vdot(nu, nu))
        scale = max(min(scale, inner / (design.penalty * square)), 0.0) if square > 0 else 0.0
        residual, primal = 0.0, 0.5 * (missed + rounding) ** 2 + design.penalty * total
        dual = design.penalty * scale * (inner - 0.5 * design.penalty * scale * square)
    return Proof(support, B, norms, scale * nu, Certificate(primal, dual, residual))


def _certify_projection(
    design: RectangularDesign, evaluation: Evaluation, support: Indices, scale: float, nu: Array
) -> Proof:
    """The proof for k columns of more than k rows."""
    B = design.coefficients(evaluation, support)
    norms = norms_of(B)
    total, residual = float(norms.sum()), misfit_of_projection(design.x[:, support], B, design.k)
    if design.bases is not None:  # X = Q R up to rounding, which adds to the error of X B
        P = design.shape[1]
        residual += math.sqrt(P) * P * EPS * float(norms_of(design.columns).max()) * total
        B = B @ np.swapaxes(design.bases, 1, 2)
    primal = total / (1 - residual) if residual < 1 else np.inf
    dual = scale * sum_of_smallest(evaluation.inverse, design.k)
    return Proof(support, B, norms, scale * nu, Certificate(primal, dual, residual))


def norms_of(B: Array) -> Array:
    """The lengths of columns (n, P, D) or coefficients over all points, (P,)."""
    return np.sqrt(np.einsum("ipr,ipr->p", B, B))


def _size(values: Array) -> float:
    return math.sqrt(float(np.vdot(values, values)))


def _feasible(
    design: Design, evaluation: Evaluation, support: Indices
) -> tuple[Indices, Array, tuple[Array, Array, float, float]]:
    """Coefficients on the support, corrected if they miss the constraint by more than rounding, and their `misfit`.

    If the columns with weight are not enough for the correction, those with ‖νᵀx_p‖ near 1 are added.
    """
    B = design.coefficients(evaluation, support)
    now = _program.misfit(design.columns, design.given, B, support)
    for turn in range(0 if design.penalty > 0 or len(support) == 0 else CORRECTIONS):
        R, _, missed, rounding = now
        # a residual that is only the bound on rounding needs no correction: least squares cannot lower it
        if missed <= (10 * EPS if design.thin else REFINED_RESIDUAL) * _asked(design):
            break
        columns, full = support, B
        if turn > 0:
            near = np.flatnonzero(evaluation.q >= (1 - NEAR_TIGHT) * evaluation.q.max())
            columns = np.union1d(support, near)
            full = np.zeros((len(B), len(columns), B.shape[2]))
            full[:, np.searchsorted(columns, support)] = B
        x, right = np.swapaxes(design.x[:, columns], 1, 2), design.whitened(R)
        full = full + np.stack([np.linalg.lstsq(x[i], one)[0] for i, one in enumerate(right)])
        again = _program.misfit(design.columns, design.given, full, columns)
        if again[2] + again[3] < (0.5 if turn == 0 else 0.1) * (missed + rounding):
            support, B, now = columns, full, again
    return support, B, now


def _asked(design: Design) -> float:
    """‖Y‖."""
    n, _, D = design.shape
    return math.sqrt(n * D) if design.given is None else _size(design.given)


def _cost(design: Design, evaluation: Evaluation, support: Indices, R: Array, missed: float, total: float) -> float:
    """An upper bound on the objective of coefficients that remove R."""
    if design.aim is None:  # without whitening; in other coordinates R can be large where B is small
        return total * missed / (1 - missed) if missed < 1 else np.inf
    right = design.whitened(R)
    if design.prox == 0:  # W Xᵀ M⁻¹ R
        part: Array = design.x[:, support] @ (evaluation.inverse @ right) * evaluation.weights[support, None]
    else:
        part = np.stack([np.linalg.lstsq(x.T, one)[0] for x, one in zip(design.x, right, strict=True)])
    return float(norms_of(part).sum())
