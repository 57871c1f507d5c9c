"""The convex program, as an A-optimal design, and the certificate that judges every answer to it.

Multitask basis pursuit, min Σ‖B_p‖ subject to X B = Y, is

    ½ min_{w ≥ 0}  f(w) = Σ w_p + tr(Yᵀ M(w)⁻¹ Y),        M(w) = Σ w_p x_p x_pᵀ,

because ‖b‖ = min_{w > 0} (‖b‖²/w + w)/2: P unknowns instead of P·D. For *any* w with M ≻ 0, writing
q_p = ‖Yᵀ M⁻¹ x_p‖²,

    B = W Xᵀ M⁻¹ Y         is feasible,          primal = Σ w_p √q_p,
    ν = M⁻¹ Y / √max q     is dual feasible,     dual   = tr(Yᵀ ν),

so that every w has an honest certificate, dual ≤ optimum ≤ primal. Two more programs are the same one: the multitask
lasso ½‖Y − XB‖² + λ Σ‖B_p‖ is (λ/2) f with M + λI in the place of M, and many points that share one selection add
their traces, f(w) = Σ w_p + Σ_i tr(Y_iᵀ M_i(w)⁻¹ Y_i).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dsyevd

from isopursuit.errors import RankError
from isopursuit.matrix import numerical_rank, row_triangle, spectrum
from isopursuit.pursuit import _program, _sweep
from isopursuit.pursuit.truncated import Hand, HostHand
from isopursuit.results import Certificate

Array = NDArray[np.float64]

WELL_CONDITIONED = 1e-6  # least eigenvalue of X Xᵀ relative to the largest, above which rows are used as they are
BLOCK, TRANSPOSED = 8192, 256  # columns whitened at once, and transposed at once, so that they stay in cache
FLOOR = 1e-8  # relative size of the floor under M for targets that do not span all rows
TIGHT = 1e-9  # 1 − q below which a column counts as tied when weight is shared out


@dataclass(frozen=True)
class Design:
    """One program: columns `x` (n, P, D), target `y` (n, D, r) or None for the identity, and a ridge λ ≥ 0.

    Where rows were whitened, by X = T x, `values` and `targets` keep what the caller gave, to check feasibility
    against, `triangles` T for each point that needed it, and `home` weights to start from. Where the target does not
    span all rows the optimal M may be singular; `floor`, a trifle of the identity, keeps it regular. `hand` multiplies
    the columns somewhere else than here.
    """

    x: Array
    y: Array | None
    ridge: float
    values: tuple[Array, ...] | None = None
    targets: tuple[Array, ...] | None = None
    triangles: tuple[Array | None, ...] = ()
    home: Array | None = None
    floor: float = 0.0
    hand: Hand | None = None

    @property
    def at_hand(self) -> Hand:
        """The columns of the only point, wherever they are multiplied fastest."""
        return HostHand(self.x[0]) if self.hand is None else self.hand

    @property
    def shape(self) -> tuple[int, int, int]:
        """(n, P, D): points, columns, rows."""
        n, P, D = self.x.shape
        return n, P, D

    def evaluate(self, weights: Array) -> Evaluation | None:
        """Everything that weights say about the program, over all columns; None where M is singular."""
        found = _program.evaluate(self.x, self.y, self.ridge + self.floor, weights)
        return None if found is None else Evaluation(weights, *found)

    def start(self) -> Array:
        """Weights that use every column and leave M regular."""
        return _program.start(self.x) if self.home is None else self.home.copy()

    def floored(self) -> Design:
        """The same program with a floor under M, relative to the size M has at the optimum."""
        lengths = np.sqrt(np.einsum("ipd,ipd->p", self.x, self.x))
        size = float(np.median(lengths[lengths > 0])) * float(np.linalg.norm(1.0 if self.y is None else self.y))
        return replace(self, floor=FLOOR * size)

    def solve(self, weights: Array, tol: float, rounds: int, watch: Callable[[float], bool] | None = None) -> bool:
        """Improve weights in place; True when the columns with weight determine them."""
        return _sweep.solve(self.x, self.y, self.ridge + self.floor, weights, tol, rounds, watch)[1]

    def take(self, columns: NDArray[np.intp]) -> Design:
        """The program on some of its columns."""
        x = np.ascontiguousarray(self.x[:, columns, :])
        home = None if self.home is None else self.home[columns]
        return Design(x, self.y, self.ridge, home=home, floor=self.floor)

    def coefficients(self, evaluation: Evaluation, support: NDArray[np.intp]) -> Array:
        """B on the support, (n, |S|, r): w_p Yᵀ M⁻¹ x_p."""
        B = self.x[:, support, :] @ evaluation.inverse
        if self.y is not None:
            B = B @ self.y
        B *= evaluation.weights[support, None]
        return B

    def dual_point(self, evaluation: Evaluation, rho: float | None = None) -> Array:
        """ν (n, D, r) with ‖νᵀx_p‖ ≤ 1 for every column of the caller's: M⁻¹Y / ρ, and T⁻ᵀ of that where whitened."""
        nu = evaluation.inverse if self.y is None else evaluation.inverse @ self.y
        rho = float(np.sqrt(evaluation.q.max())) if rho is None else rho
        nu = nu / (max(rho, 1.0) if self.ridge > 0 else rho)
        for i, triangle in enumerate(self.triangles):
            if triangle is not None:
                nu[i] = solve_triangular(triangle, nu[i], lower=True, trans="T", check_finite=False)
        return nu

    def screening(self, evaluation: Evaluation) -> tuple[Array, Array | None]:
        """K = M⁻¹ and F = YᵀM⁻¹ in the caller's coordinates: √q = ‖F x‖, leverage = xᵀK x. One point only."""
        K = evaluation.inverse[0]
        triangle = self.triangles[0] if self.triangles else None
        if triangle is not None:
            for _ in range(2):  # T⁻ᵀ (T⁻ᵀ M⁻¹)ᵀ
                K = np.asarray(solve_triangular(triangle, K, lower=True, trans="T", check_finite=False)).T
        K = np.asarray((K + K.T) / 2, dtype=np.float64)
        target = self.y if self.values is None else self.targets
        return K, None if target is None else target[0].T @ K

    def dual_value(self, evaluation: Evaluation, rho: float) -> float:
        """A lower bound on min f from the point ν = M⁻¹Y/ρ, where no column has ‖YᵀM⁻¹x_p‖ above ρ."""
        nu = evaluation.inverse if self.y is None else evaluation.inverse @ self.y
        trace = float(np.einsum("iaa->", nu) if self.y is None else np.vdot(self.y, nu))
        if self.ridge > 0:
            rho = max(rho, 1.0)
        return 2 * trace / rho - (self.ridge + self.floor) * float(np.vdot(nu, nu)) / rho**2 if rho > 0 else 0.0

    @property
    def idle(self) -> bool:
        """Whether B = 0 is optimal: the target is zero, or the ridge λ ≥ ‖Yᵀx_p‖ for every column."""
        if self.ridge == 0:
            return self.y is not None and not self.y.any()
        pulls = self.x if self.y is None else self.x @ self.y
        return bool(np.einsum("ipr,ipr->p", pulls, pulls).max() <= self.ridge**2)

    def refined(
        self, evaluation: Evaluation, support: NDArray[np.intp], B: Array, scale: float
    ) -> tuple[Array, Certificate]:
        """Coefficients that meet the constraint in spite of a floor or of rounding, and a certificate from scratch."""
        y = np.broadcast_to(np.eye(self.shape[2]), (self.shape[0], *self.shape[2:] * 2)) if self.y is None else self.y
        X = np.swapaxes(self.x[:, support], 1, 2)
        B = B + np.stack([np.linalg.lstsq(X[i], y[i] - X[i] @ B[i])[0] for i in range(len(X))])
        nu = evaluation.inverse @ y
        slopes = self.x @ nu
        rho = float(np.sqrt(np.einsum("ipr,ipr->p", slopes, slopes).max()))
        primal = float(np.sqrt(np.einsum("ipr,ipr->p", B, B)).sum())
        return B, Certificate(primal, float(np.vdot(y, nu)) / rho, self.residual(B, support))

    def residual(self, B: Array, support: NDArray[np.intp]) -> float:
        """‖X B − Y‖ / ‖Y‖ against the caller's own matrix."""
        if self.ridge > 0:
            return 0.0
        targets = self.y if self.values is None else self.targets
        error = size = 0.0
        for i, columns in enumerate(B):
            X = self.x[i, support].T if self.values is None else self.values[i][:, support]
            target = np.eye(len(X)) if targets is None else targets[i]
            difference = X @ columns - target
            error += float(np.vdot(difference, difference))
            size += float(np.vdot(target, target))
        return float(np.sqrt(error / size)) if size > 0 else 0.0


@dataclass(frozen=True)
class Evaluation:
    """f at some weights: M⁻¹, q and leverage xᵀM⁻¹x of every column, and bounds dual ≤ min f ≤ primal."""

    weights: Array
    inverse: Array
    q: Array
    leverage: Array
    primal: float
    dual: float
    value: float

    @property
    def gap(self) -> float:
        """Relative to the primal value."""
        return max(self.primal - self.dual, 0.0) / self.primal if self.primal > 0 else 0.0

    @property
    def minimized(self) -> bool:
        """Whether f itself is near its least value, so that weights mean something, not only the coefficients."""
        return self.value - self.dual <= 1e-6 * self.value or self.gap > 1e-6

    @cached_property
    def tied(self) -> NDArray[np.intp]:
        """The columns that no proof excludes from the support of an optimal solution.

        With ν = M⁻¹Y here and ν* at an optimum, tr (ν* − ν)ᵀM(ν* − ν) ≤ f(w) − dual (expand, and use
        ‖ν*ᵀx_p‖ ≤ 1), so that by Cauchy and Schwarz √q*_p ≤ √q_p + √((f − dual) · x_pᵀM⁻¹x_p). A weight needs
        q*_p = 1.
        """
        slack = max(self.value - self.dual, 4 * np.finfo(np.float64).eps * self.value)
        return np.flatnonzero(np.sqrt(self.q) + np.sqrt(slack * np.maximum(self.leverage, 0.0)) >= 1.0 - 1e-12)

    @property
    def tight(self) -> NDArray[np.intp]:
        """Of the tied columns, those with weight or with q_p = 1 to within a little more than rounding."""
        tied = self.tied
        return tied[(self.q[tied] >= 1 - max(TIGHT, 10 * self.gap)) | (self.weights[tied] > 0)]

    def certificate(self, ridge: float, residual: float, scale: float = 1.0) -> Certificate:
        """In the units of the caller's objective: f/2, or (λ/2) f with a ridge."""
        unit = (0.5 if ridge == 0 else 0.5 * ridge) * scale
        return Certificate(self.primal * unit, self.dual * unit, residual)


def build_design(
    values: Sequence[Array], targets: Sequence[Array] | None, ridge: float, weights: Array | None = None
) -> Design:
    """The program for one matrix or several; rows are whitened where they are ill-conditioned.

    X B = Y and (T⁻¹X) B = T⁻¹Y have the same solutions. With T from a QR of (X √W)ᵀ, M(w) is the identity at those
    weights, so that near them the gap reaches rounding for any condition number that leaves X of full rank. Without
    weights they are 1/length, where whitening is needed at all. Raises RankError where X lacks rank.
    """
    y = None if targets is None else np.ascontiguousarray(np.stack(list(targets)))
    triangles = [None if ridge > 0 else _whitening(v, weights) for v in values]
    x = np.empty((len(values), values[0].shape[1], values[0].shape[0]))
    for i, (v, triangle) in enumerate(zip(values, triangles, strict=True)):
        width = TRANSPOSED if triangle is None else BLOCK
        for first in range(0, v.shape[1], width):
            block = v[:, first : first + width]
            x[i, first : first + width] = (block if triangle is None else _lower_solve(triangle, block)).T
    if all(triangle is None for triangle in triangles):
        return Design(x, y, ridge)
    sides = [np.eye(len(values[0]))] * len(values) if targets is None else targets
    y = np.stack([s if t is None else _lower_solve(t, s) for s, t in zip(sides, triangles, strict=True)])
    given = None if targets is None else tuple(targets)
    # in the new coordinates a column's leverage is w‖x‖²; weighted by it once more, short columns that no direction
    # depends on do not outweigh the others
    lengths = np.sqrt(sum(np.einsum("dp,dp->p", v, v) for v in values))
    plain = np.divide(1.0, lengths, out=np.zeros(len(lengths)), where=lengths > 0) if weights is None else weights
    home = (plain * np.sqrt(np.einsum("ipd,ipd->p", x, x))) ** 2
    return Design(x, np.ascontiguousarray(y), ridge, tuple(values), given, tuple(triangles), home)


def whitened_at(design: Design, weights: Array) -> Design:
    """The same program in the coordinates in which M(weights) is the identity."""
    if design.values is None:
        targets = None if design.y is None else list(design.y)
        return build_design([x.T for x in design.x], targets, design.ridge, weights)
    return build_design(design.values, design.targets, design.ridge, weights)


def _whitening(values: Array, weights: Array | None) -> Array | None:
    """T (lower triangular) with X √W = T·(orthonormal rows), or None where X needs none."""
    D, P = values.shape
    if weights is None:
        eigenvalues = dsyevd(values @ values.T, compute_v=0)[0]
        if eigenvalues[0] > WELL_CONDITIONED * eigenvalues[-1]:
            return None
        lengths = np.linalg.norm(values, axis=0)
        weights = np.divide(1.0, lengths, out=np.zeros(P), where=lengths > 0)
    triangle = row_triangle(values, np.sqrt(weights))
    rank = numerical_rank(spectrum(triangle), P)
    if rank < D:
        raise RankError(
            f"X has {D} rows but rank {rank}, so its columns cannot span the target. "
            f"Pass k={rank} to `select` for its {rank}-dimensional row space, drop dependent rows, or use a ridge."
        )
    return triangle.T


def _lower_solve(triangle: Array, right: Array) -> Array:
    return solve_triangular(triangle, right, lower=True, check_finite=False)
