"""The convex program as an A-optimal design, and the certificate for every answer to it.

Multitask basis pursuit, min Σ‖B_p‖ subject to X B = Y, is

    ½ min_{w ≥ 0}  f(w) = Σ w_p + tr(Yᵀ M(w)⁻¹ Y),        M(w) = Σ w_p x_p x_pᵀ,

because ‖b‖ = min_{w > 0} (‖b‖²/w + w)/2: P unknowns instead of P·D. For *any* w with M ≻ 0, writing
q_p = ‖Yᵀ M⁻¹ x_p‖²,

    B = W Xᵀ M⁻¹ Y         is feasible,          primal = Σ w_p √q_p,
    ν = M⁻¹ Y / √max q     is dual feasible,     dual   = tr(Yᵀ ν),

so every w has a valid certificate, dual ≤ optimum ≤ primal. Two more programs have this form. The multitask lasso
½‖Y − XB‖² + λ Σ‖B_p‖ is (λ/2) f with M replaced by M + λI. Many points that share one selection add their traces,
f(w) = Σ w_p + Σ_i tr(Y_iᵀ M_i(w)⁻¹ Y_i).

If Y does not span all rows, the optimal M may be singular. A proximal step on the dual,
max ⟨Y, ν⟩ − (μ/2)‖ν − ν₀‖² over ‖νᵀx_p‖ ≤ 1, is the lasso with λ = μ and the target Y + μν₀, so the same kernel solves
it. Repeated proximal steps converge to an optimal ν of the original program for any μ > 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from isopursuit._core.linalg import EPS, spectrum
from isopursuit._core.types import Array, Indices
from isopursuit.pursuit import _program, _sweep
from isopursuit.pursuit.central_path import follow
from isopursuit.pursuit.evaluation import Certified, Evaluation
from isopursuit.pursuit.products import ColumnProducts, HostProducts, by_parts
from isopursuit.pursuit.progress import Watch
from isopursuit.pursuit.settings import (
    FEWEST_JOINING,
    KERNEL_COLUMNS,
    MANY_ROWS,
    MANY_ROWS_COLUMNS,
    NEAR_TIGHT,
    REFINED_RESIDUAL,
    THREADED_ENTRIES,
    USUAL_CONJUGATE_STEPS,
)
from isopursuit.pursuit.truncated import Point, Program, bounds, descend
from isopursuit.results import Certificate


@dataclass(frozen=True)
class Design:
    """One program: columns `x` (n, P, D), target `y` (n, D, r) or None for the identity, and a penalty λ ≥ 0.

    If rows were whitened, X = T x, then `values` and `targets` are the caller's arrays for the check of feasibility,
    `triangles` has T for each point that was whitened, and `start_weights` are the weights to start from. With
    `prox` μ > 0 the program is a proximal step on this one, and `pull` is its target Y + μν₀. `products` multiplies the
    columns on another device or on threads.
    """

    x: Array
    y: Array | None
    penalty: float
    values: tuple[Array, ...] | None = None
    targets: tuple[Array, ...] | None = None
    triangles: tuple[Array | None, ...] = ()
    start_weights: Array | None = None
    prox: float = 0.0
    pull: Array | None = None
    products: ColumnProducts | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """(n, P, D): points, columns, rows."""
        n, P, D = self.x.shape
        return n, P, D

    def evaluate(self, weights: Array) -> Evaluation | None:
        """f, its bounds, q and leverage at these weights, over all columns; None if M is singular."""
        if self.shape[0] == 1 and self.x.size > THREADED_ENTRIES:
            return self._evaluate_by_parts(weights)
        found = _program.evaluate(self.x, self.aim, self.penalty + self.prox, weights)
        return None if found is None else Evaluation(weights, *found)

    def _evaluate_by_parts(self, weights: Array) -> Evaluation | None:
        """As `evaluate`, on several threads; one point only."""
        ridge = self.penalty + self.prox
        _, m, D = self.shape
        point = Point.at(HostProducts(self.x[0]).moments(weights), weights, np.eye(D), ridge, rescaled=False)
        if point is None:
            return None
        inverse = np.ascontiguousarray(point.K[None])
        q, leverage = np.empty(m), np.empty(m)
        by_parts(lambda some: _program.measure(self.x[:, some], self.aim, inverse, q[some], leverage[some]), m, D)
        slope = inverse if self.aim is None else inverse @ self.aim
        trace = float(np.einsum("iaa->", slope) if self.aim is None else np.vdot(self.aim, slope))
        norms = float(weights @ np.sqrt(q))
        primal, dual = bounds(norms, trace, float(np.vdot(slope, slope)), float(np.sqrt(q.max())), ridge)
        return Evaluation(weights, inverse, q, leverage, primal, dual, float(weights.sum()) + trace)

    def start(self) -> Array:
        """Positive weights on every column, with which M is regular."""
        return _program.start(self.x) if self.start_weights is None else self.start_weights.copy()

    @property
    def aim(self) -> Array | None:
        """The target that the kernel solves for: Y, or Y + μν₀ in a proximal step."""
        return self.y if self.prox == 0 else self.pull

    @property
    def target(self) -> Array:
        """Y as an array (n, D, r)."""
        return _identities(self.shape) if self.y is None else self.y

    @cached_property
    def given(self) -> Array:
        """Y as an array (n, D, r), in the caller's coordinates."""
        if self.values is None:
            return self.target
        return _identities(self.shape) if self.targets is None else np.stack(self.targets)

    def step(self, center: Array | float, prox: float) -> Design:
        """The proximal step from ν₀ = `center` with μ = `prox`."""
        return replace(self, prox=prox, pull=np.ascontiguousarray(self.target + prox * center))

    def deficient(self, least: float) -> bool:
        """Whether Y does not span all rows; singular values below `least` times the largest count as zero."""
        if self.y is None or (self.values is not None and self.targets is None):
            return False
        s = spectrum(self.given)
        return s.shape[1] < self.shape[2] or bool((s[:, -1] < least * s[:, 0]).any())

    @property
    def unit_target(self) -> bool:
        """Whether the target is the identity, in the caller's coordinates, and this is no proximal step."""
        return self.prox == 0 and (self.y is None or (self.values is not None and self.targets is None))

    @property
    def lengths(self) -> Array:
        """The lengths (P,) of the only point's columns, in the caller's coordinates."""
        if self.values is None:
            return np.sqrt(np.einsum("pd,pd->p", self.x[0], self.x[0]))
        return np.linalg.norm(self.values[0], axis=0)

    @property
    def largest_pull(self) -> float:
        """The least λ at which no column is picked: max ‖Yᵀx_p‖."""
        pulls = self.x if self.y is None else self.x @ self.y
        return float(np.sqrt(np.einsum("ipr,ipr->p", pulls, pulls).max()))

    def solve(self, weights: Array, tol: float, rounds: int, watch: Callable[[float], bool] | None = None) -> bool:
        """Improve weights in place; True if the columns with weight determine them."""
        return _sweep.solve(self.x, self.aim, self.penalty + self.prox, weights, tol, rounds, watch)[1]

    @property
    def many_rows(self) -> bool:
        """Whether products of all columns are cheaper than steps on one at a time."""
        n, m, D = self.shape
        return n == 1 and m > MANY_ROWS_COLUMNS and D >= MANY_ROWS

    @property
    def kernel_columns(self) -> int:
        """The most columns that are solved at once."""
        return KERNEL_COLUMNS

    @property
    def joining(self) -> int:
        """How many columns join a cold working set: at least as many as x xᵀ has distinct entries."""
        D = self.shape[2]
        return max(FEWEST_JOINING, D * (D + 1) // 2)

    def descend(self, weights: Array, tol: float, watch: Watch | None, *, warm: bool) -> float:
        """Improve weights in place by the solver for many rows (truncated.py); returns the gap."""
        deadline = np.inf if watch is None else watch.clock.deadline
        return descend(self.program, weights, tol, watch, warm=warm, deadline=deadline)

    def follow(self, weights: Array, tol: float, watch: Watch | None) -> float:
        """Improve weights in place by the solver for many columns near √q = 1 (central_path.py); returns the gap."""
        return follow(self.program, weights, tol, watch, np.inf if watch is None else watch.clock.deadline)

    @property
    def program(self) -> Program:
        """The only point's program, for the solvers that multiply all columns."""
        products = HostProducts(self.x[0]) if self.products is None else self.products
        return Program(products, self.x[0], None if self.aim is None else self.aim[0], self.penalty + self.prox)

    def crowded(self, weights: Array) -> bool:
        """Whether so many columns have weight that `follow` takes fewer multiplications than the kernel."""
        n, m, D = self.shape
        held = int(np.count_nonzero(weights))
        # compare nine steps of the kernel's interior point (_sweep.pyx) with products of about twice the columns in use
        kernel = 9 * held**2 * (held / 3 + 4 * D)
        return n == 1 and 2.5 * USUAL_CONJUGATE_STEPS * min(m, 2 * held) * D**2 < kernel

    def take(self, columns: Indices) -> Design:
        """The program on some of its columns."""
        x = np.ascontiguousarray(self.x[:, columns, :])
        start_weights = None if self.start_weights is None else self.start_weights[columns]
        return Design(x, self.y, self.penalty, start_weights=start_weights, prox=self.prox, pull=self.pull)

    def slope(self, evaluation: Evaluation) -> Array:
        """M⁻¹Y (n, D, r), which is dual feasible if q ≤ 1."""
        return evaluation.inverse if self.aim is None else evaluation.inverse @ self.aim

    def moments(self, evaluation: Evaluation, columns: Indices) -> Array:
        """The matrix that maps weights of some columns to X B, (entries, m): x_p u_pᵀ, u_p = νᵀx_p, for every point.

        If the target is the identity, M is unique and u_p = M⁻¹x_p, so the distinct entries of x_p x_pᵀ are equivalent
        and are used instead.
        """
        x = self.x[:, columns, :]
        if self.aim is None:
            i, j = np.triu_indices(self.shape[2])
            products = x[:, :, i] * x[:, :, j] * np.where(i == j, 1.0, np.sqrt(2.0))
        else:
            u = x @ self.slope(evaluation)
            products = (x[:, :, :, None] * u[:, :, None, :]).reshape(*x.shape[:2], -1)
        return products.transpose(0, 2, 1).reshape(-1, len(columns))

    def coefficients(self, evaluation: Evaluation, support: Indices) -> Array:
        """B on the support, (n, |S|, r): w_p Yᵀ M⁻¹ x_p."""
        B = self.x[:, support, :] @ self.slope(evaluation)
        B *= evaluation.weights[support, None]
        return B

    def dual_point(self, evaluation: Evaluation, rho: float | None = None) -> Array:
        """ν (n, D, r) with ‖νᵀx_p‖ ≤ 1 for the caller's columns: M⁻¹Y / ρ, multiplied by T⁻ᵀ if rows were whitened."""
        rho = float(np.sqrt(evaluation.q.max())) if rho is None else rho
        nu = self.slope(evaluation) / (max(rho, 1.0) if self.penalty > 0 else rho)
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
        """A lower bound on min f from ν = M⁻¹Y/ρ, given that ‖YᵀM⁻¹x_p‖ ≤ ρ for every column."""
        nu = self.slope(evaluation)
        trace = float(np.einsum("iaa->", nu) if self.y is None else np.vdot(self.y, nu))
        return bounds(0.0, trace, float(np.vdot(nu, nu)), rho, self.penalty)[1]

    @property
    def idle(self) -> bool:
        """Whether B = 0 is optimal: the target is zero, or the penalty λ ≥ ‖Yᵀx_p‖ for every column."""
        if self.penalty == 0:
            return self.y is not None and not self.y.any()
        return self.largest_pull <= self.penalty

    def certified(self, evaluation: Evaluation, support: Indices) -> Certified:
        """Coefficients on the support and a dual point for the caller's columns, and the certificate they give.

        The certificate is computed from the returned numbers, with bounds on rounding: the residual of the constraint,
        the largest ‖νᵀx_p‖, by which ν is divided, and both objectives.
        """
        found = self._identity_certified(evaluation, support)
        if found is not None:
            return found
        support, B, misfit, residual = self._feasible(evaluation, support)
        nu = self.dual_point(evaluation, 1.0)
        columns = self.x if self.values is None else np.stack([v.T for v in self.values])
        rho = _largest_slope(np.ascontiguousarray(columns), np.ascontiguousarray(nu))
        terms = (self.given * nu).ravel()
        inner = math.fsum(terms.tolist()) - EPS * float(np.abs(terms).sum())
        norms = np.sqrt(np.einsum("ipr,ipr->p", B, B))
        total = float(norms.sum())
        t = 1 / rho if rho > 0 else 0.0
        if self.penalty == 0:
            primal, dual = total + self._cost(evaluation, support, misfit, total), t * inner
        else:
            # λ⟨Y, tν⟩ − λ²‖tν‖²/2 is largest at t = ⟨Y, ν⟩ / λ‖ν‖²
            square = float(np.vdot(nu, nu))
            t = max(min(t, inner / (self.penalty * square)), 0.0) if square > 0 else 0.0
            missed = math.sqrt(float(np.vdot(misfit, misfit))) + self._rounding(B, support)
            primal = 0.5 * missed**2 + self.penalty * total
            dual = self.penalty * t * (inner - 0.5 * self.penalty * t * square)
        return Certified.of(support, B, norms, t * nu, Certificate(primal, dual, residual))

    def _identity_certified(self, evaluation: Evaluation, support: Indices) -> Certified | None:
        """As `certified` for the identity as target, in fewer steps; None otherwise, or if B needs correction."""
        if self.aim is not None or self.values is not None or self.penalty > 0:
            return None
        n, _, D = self.shape
        B, norms, missed, rounding = _certify(self.x, evaluation, support)
        residual = (missed + rounding) / math.sqrt(n * D)
        if missed > REFINED_RESIDUAL * math.sqrt(n * D):  # least squares cannot lower the bound on rounding
            return None
        rho = _largest_slope(self.x, evaluation.inverse)
        diagonal = evaluation.inverse.diagonal(axis1=1, axis2=2).ravel().tolist()  # positive
        trace = (1 - EPS) * math.fsum(diagonal)
        total = float(norms.sum())
        # B R removes the residual R, and ‖B_p R‖ ≤ ‖B_p‖ ‖R‖
        certificate = Certificate(total + total * missed, trace / rho, residual)
        return Certified.of(support, B, norms, evaluation.inverse / rho, certificate)

    def _feasible(self, evaluation: Evaluation, support: Indices) -> tuple[Indices, Array, Array, float]:
        """Coefficients, corrected if they miss the constraint by more than rounding; Y − X B; and its relative size.

        If the columns with weight are not enough for the correction, those with ‖νᵀx_p‖ near 1 are added.
        """
        B = self.coefficients(evaluation, support)
        misfit, residual = self._missed(B, support)
        for turn in range(0 if self.penalty > 0 or len(support) == 0 else 3):
            # a residual that is only the bound on rounding needs no correction: least squares cannot lower it
            own = math.sqrt(float(np.vdot(misfit, misfit)) / float(np.vdot(self.given, self.given)))
            if own <= (REFINED_RESIDUAL if self.prox == 0 else 10 * EPS):
                break
            columns, full = support, B
            if turn > 0:
                near = np.flatnonzero(evaluation.q >= (1 - NEAR_TIGHT) * evaluation.q.max())
                columns = np.union1d(support, near)
                full = np.zeros((len(B), len(columns), B.shape[2]))
                full[:, np.searchsorted(columns, support)] = B
            x = np.swapaxes(self.x[:, columns], 1, 2)
            full = full + np.stack([np.linalg.lstsq(x[i], self._white(i, r))[0] for i, r in enumerate(misfit)])
            left, again = self._missed(full, columns)
            if again < (0.5 if turn == 0 else 0.1) * residual:
                support, B, misfit, residual = columns, full, left, again
        return support, B, misfit, residual

    def _cost(self, evaluation: Evaluation, support: Indices, misfit: Array, total: float) -> float:
        """An upper bound on the objective of coefficients that remove the residual R."""
        if self.aim is None:  # B R removes it, and ‖B_p R‖ ≤ ‖B_p‖ ‖R‖
            return total * math.sqrt(float(np.vdot(misfit, misfit)))
        misfit = np.stack([self._white(i, r) for i, r in enumerate(misfit)])
        if self.prox == 0:  # W Xᵀ M⁻¹ R
            part = self.x[:, support] @ (evaluation.inverse @ misfit) * evaluation.weights[support, None]
        else:
            part: Array = np.stack([np.linalg.lstsq(self.x[i].T, r)[0] for i, r in enumerate(misfit)])
        return float(np.sqrt(np.einsum("ipr,ipr->p", part, part)).sum())

    def _white(self, i: int, right: Array) -> Array:
        triangle = self.triangles[i] if self.triangles else None
        return right if triangle is None else lower_solve(triangle, right)

    def _missed(self, B: Array, support: Indices) -> tuple[Array, float]:
        """Y − X B in the caller's coordinates, and ‖Y − X B‖ / ‖Y‖ with a bound on the rounding of X B."""
        misfit = np.empty_like(self.given)
        for i, b in enumerate(B):
            np.subtract(self.given[i], self._columns(i, support).T @ b, out=misfit[i])
        size = math.sqrt(float(np.vdot(self.given, self.given)))
        if self.penalty > 0 or size == 0:
            return misfit, 0.0
        return misfit, (math.sqrt(float(np.vdot(misfit, misfit))) + self._rounding(B, support)) / size

    def _columns(self, i: int, support: Indices) -> Array:
        """Some of the caller's columns at one point, one in each row."""
        return self.x[i][support] if self.values is None else self.values[i][:, support].T

    def _rounding(self, B: Array, support: Indices) -> float:
        """A bound on the rounding error of X B.

        The relative error of a sum of |S| products is |S| eps / 2 of the sum of their sizes, and that of a coefficient
        is eps.
        """
        sizes = 0.0
        for i, b in enumerate(B):
            X = self._columns(i, support)
            sizes += float(np.sqrt(np.einsum("pd,pd->p", X, X)) @ np.sqrt(np.einsum("pr,pr->p", b, b)))
        return (0.5 * len(support) + 2) * EPS * sizes


def _largest_slope(x: Array, nu: Array) -> float:
    """The largest ‖νᵀx_p‖ over all columns, with a bound on its rounding."""
    n, m, D = x.shape
    if n > 1 or x.size <= THREADED_ENTRIES:
        return _program.largest_slope(x, nu)
    return max(by_parts(lambda some: _program.largest_slope(x[:, some], nu), m, D))


def _certify(x: Array, evaluation: Evaluation, support: Indices) -> tuple[Array, Array, float, float]:
    """B, ‖B_p‖, ‖I − X B‖ and a bound on the rounding of X B, for the identity as target (`_program.certify`)."""
    inverse, weights, count, D = evaluation.inverse, evaluation.weights, len(support), x.shape[2]
    if len(x) > 1 or count * D <= THREADED_ENTRIES:
        return _program.certify(x, inverse, weights, support)[:4]
    B = np.empty((1, count, D))
    parts = by_parts(lambda some: _program.certify(x, inverse, weights, support[some], B[:, some]), count, D)
    left = sum(part[4] for part in parts) - (len(parts) - 1) * np.eye(D)
    # the bound for a part, scaled to the number of terms of the whole sum
    rounding = sum(part[3] * (0.5 * count + 2) / (0.5 * len(part[1]) + 2) for part in parts)
    return B, np.concatenate([part[1] for part in parts]), float(np.linalg.norm(left)), rounding


def _identities(shape: tuple[int, int, int]) -> Array:
    """The identity for each point."""
    return np.repeat(np.eye(shape[2])[None], shape[0], axis=0)


def lower_solve(triangle: Array, right: Array) -> Array:
    """T⁻¹ right for a lower triangular T."""
    return solve_triangular(triangle, right, lower=True, check_finite=False)
