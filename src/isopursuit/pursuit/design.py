"""The convex program as an A-optimal design, and one evaluation of it.

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

If rows are nearly dependent, M⁻¹ loses digits. X B = Y and (T⁻¹X) B = T⁻¹Y have the same solutions. With T from a QR
of (X √W)ᵀ, M(w) is the identity at those weights, so near them the gap can reach rounding for any X of full numerical
rank.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf

from isopursuit._core.linalg import EPS, numerical_rank, row_triangle, side_by_side, spectrum
from isopursuit._core.types import Array, Indices
from isopursuit.errors import RankError
from isopursuit.pursuit import _program, _sweep
from isopursuit.pursuit.central_path import follow
from isopursuit.pursuit.inputs import Watch
from isopursuit.pursuit.products import ColumnProducts, HostProducts
from isopursuit.pursuit.truncated import Program, bounds, descend
from isopursuit.results import relative_gap

WELL_CONDITIONED = 1e-6  # least eigenvalue of X Xᵀ, as a share of its norm, above which rows are not whitened
BELOW_BOUND = 1e-9  # f may be below its lower bound by this share, from rounding (derived: a tenth of IDENTIFIED_GAP)
TIED_ROUNDING = 1e-12  # by how much √q + √(slack · leverage) may miss 1 in a tied column (derived: 5e3 eps)
FULL_RANK = 1e-7  # least singular value of Y, relative to the largest, that leaves M, which has its square, regular
SMALL_PENALTY = 1e-3  # λ relative to the largest useful one, below which it does not keep M regular
KERNEL_COLUMNS = 4096  # columns up to which the kernel solves the whole problem
MANY_ROWS, MANY_ROWS_COLUMNS = 128, 1500  # least rows and columns for which the solver for many rows is tried first
USUAL_PRODUCTS = 1000  # products of all columns with weight in a solve by `follow` (measured: benchmarks/scale.py)
# (Σw)² / Σw², the number of columns with weight, relative to D(D+1)/2: above, a basic solution is far away (guess)
NEARLY_DETERMINED = 0.85
FEWEST_JOINING = 512  # least number of columns that join a cold working set
SWEEP_ROUNDS = 300  # most rounds of sweeps on one working set
THIN_ROUNDS = 15  # most of them if M may be singular at the optimum (measured: benchmarks/before_after.py)


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
        return relative_gap(self.primal, self.dual)

    @property
    def minimized(self) -> bool:
        """Whether f itself is near its minimum, so that the weights, not only the coefficients, are near optimal."""
        return self.value - self.dual <= 1e-6 * self.value or self.gap > 1e-6

    def take(self, columns: Indices) -> Evaluation:
        """The evaluation on some of the columns, which include those with weight; bounds are still over all columns."""
        return replace(self, weights=self.weights[columns], q=self.q[columns], leverage=self.leverage[columns])

    @cached_property
    def tied(self) -> Indices:
        """The columns that no proof excludes from the support of an optimal solution.

        With ν = M⁻¹Y here and ν* at an optimum, tr (ν* − ν)ᵀM(ν* − ν) ≤ f(w) − dual (expand, and use
        ‖ν*ᵀx_p‖ ≤ 1). By Cauchy–Schwarz √q*_p ≤ √q_p + √((f − dual) · x_pᵀM⁻¹x_p). A column with weight has q*_p = 1.
        Where f is below its lower bound, M⁻¹ is wrong and nothing is excluded.
        """
        if not self.value >= self.dual * (1 - BELOW_BOUND) >= 0:
            return np.arange(len(self.q))
        slack = max(self.value - self.dual, 4 * EPS * self.value)
        reach = np.sqrt(self.q) + np.sqrt(slack * np.maximum(self.leverage, 0.0))
        return (reach >= 1.0 - TIED_ROUNDING).nonzero()[0]


@dataclass(frozen=True)
class Design:
    """One program: columns `x` (n, P, D), target `y` (n, D, r) or None for the identity, and a penalty λ ≥ 0.

    If rows were whitened, X = T x, then `values` has the caller's columns (n, P, D), `targets` the caller's Y, or None,
    and `triangles` has T for each point. With `prox` μ > 0 the program is a proximal step on this one, and `pull` is
    its target Y + μν₀. `products` multiplies the columns on another device.
    """

    x: Array
    y: Array | None
    penalty: float
    values: Array | None = None
    targets: Array | None = None
    triangles: tuple[Array, ...] = ()
    prox: float = 0.0
    pull: Array | None = None
    products: ColumnProducts | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """(n, P, D): points, columns, rows."""
        n, P, D = self.x.shape
        return n, P, D

    @property
    def columns(self) -> Array:
        """The caller's columns (n, P, D)."""
        return self.x if self.values is None else self.values

    @property
    def given(self) -> Array | None:
        """The caller's Y (n, D, r); None for the identity."""
        return self.y if self.values is None else self.targets

    @property
    def aim(self) -> Array | None:
        """The target that the kernel solves for: Y, or Y + μν₀ in a proximal step."""
        return self.y if self.prox == 0 else self.pull

    @cached_property
    def target(self) -> Array:
        """Y as an array (n, D, r)."""
        return np.repeat(np.eye(self.shape[2])[None], self.shape[0], axis=0) if self.y is None else self.y

    @property
    def largest_pull(self) -> float:
        """The least λ at which no column is picked: max ‖Yᵀx_p‖."""
        pulls = self.x if self.y is None else self.x @ self.y
        return float(np.sqrt(np.einsum("ipr,ipr->p", pulls, pulls).max()))

    @cached_property
    def thin(self) -> bool:
        """Whether M is singular at the optimum, or nearly so: Y does not span all rows, and λ is small."""
        if self.given is None or self.penalty >= SMALL_PENALTY * self.largest_pull:
            return False
        s = spectrum(self.given)
        return s.shape[1] < self.shape[2] or bool((s[:, -1] < FULL_RANK * s[:, 0]).any())

    @property
    def idle(self) -> bool:
        """Whether B = 0 is optimal: the target is zero, or the penalty λ ≥ ‖Yᵀx_p‖ for every column."""
        if self.penalty == 0:
            return self.y is not None and not self.y.any()
        return self.largest_pull <= self.penalty

    def evaluate(self, weights: Array) -> Evaluation | None:
        """f, its bounds, q and leverage at these weights, over all columns; None if M is singular."""
        found = _program.evaluate(self.x, self.aim, self.penalty + self.prox, weights)
        return None if found is None else Evaluation(weights, *found)

    def start(self) -> Array:
        """Weights on every column: inversely proportional to length, and smaller for short columns.

        After whitening a column's leverage is w‖x‖². Weights proportional to it keep short columns that no direction
        depends on from dominating the others.
        """
        lengths = np.sqrt(np.einsum("ipd,ipd->p", self.columns, self.columns))
        if self.values is not None:
            return (np.sqrt(np.einsum("ipd,ipd->p", self.x, self.x)) / np.where(lengths > 0, lengths, np.inf)) ** 2
        n, P, D = self.shape
        longest = float(lengths.max())
        w = np.minimum(longest / np.maximum(lengths, longest * EPS), lengths * (100 / longest))
        w *= D * math.sqrt(n) / (P * longest)
        return w

    def take(self, columns: Indices) -> Design:
        """The program on some of its columns."""
        values = None if self.values is None else self.values.take(columns, axis=1)
        return replace(self, x=self.x.take(columns, axis=1), values=values, products=None)

    def step(self, center: Array | float, prox: float) -> Design:
        """The proximal step from ν₀ = `center` with μ = `prox`."""
        return replace(self, prox=prox, pull=np.ascontiguousarray(self.target + prox * center))

    # ------------------------------------------------------------------------------------------------- solvers

    def solve(
        self, weights: Array, tol: float, watch: Callable[[float], bool] | None = None, rounds: int | None = None
    ) -> float:
        """Improve weights in place in the kernel; returns the gap."""
        if rounds is None:  # where M becomes singular, proximal steps soon take less time
            rounds = THIN_ROUNDS if self.thin and self.prox == 0 else SWEEP_ROUNDS
        return _sweep.solve(self.x, self.aim, self.penalty + self.prox, weights, tol, rounds, watch)

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

    def descend(self, weights: Array, tol: float, watch: Watch, *, warm: bool) -> float:
        """Improve weights in place by the solver for many rows (truncated.py); returns the gap."""
        return descend(self.program, weights, tol, watch, warm=warm, deadline=watch.clock.deadline)

    def follow(self, weights: Array, tol: float, watch: Watch) -> float:
        """Improve weights in place by the solver for many columns near √q = 1 (central_path.py); returns the gap.

        If rows are few and few columns have weight, the kernel is faster and finds a basic solution: nothing is done.
        """
        D = self.shape[2]
        spread_out = float(weights.sum()) ** 2 > NEARLY_DETERMINED * D * (D + 1) / 2 * float(weights @ weights)
        if not (spread_out or self.many_rows):
            return np.inf
        return follow(self.program, weights, tol, watch, watch.clock.deadline)

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
        return n == 1 and 2.5 * USUAL_PRODUCTS * min(m, 2 * held) * D**2 < kernel

    # -------------------------------------------------------------------------------- the answer at some weights

    def slope(self, evaluation: Evaluation) -> Array:
        """M⁻¹Y (n, D, r), which is dual feasible if q ≤ 1."""
        return evaluation.inverse if self.aim is None else evaluation.inverse @ self.aim

    def coefficients(self, evaluation: Evaluation, support: Indices) -> Array:
        """B on the support, (n, |S|, r): w_p Yᵀ M⁻¹ x_p."""
        B = self.x.take(support, axis=1) @ self.slope(evaluation)
        B *= evaluation.weights[support, None]
        return B

    def dual_point(self, evaluation: Evaluation, rho: float = 1.0) -> Array:
        """M⁻¹Y / ρ in the caller's coordinates: T⁻ᵀ M⁻¹Y / ρ if rows were whitened."""
        nu = self.slope(evaluation) / (max(rho, 1.0) if self.penalty > 0 else rho)
        for i, triangle in enumerate(self.triangles):
            nu[i] = solve_triangular(triangle, nu[i], lower=True, trans="T", check_finite=False)
        return nu

    def dual_value(self, evaluation: Evaluation, rho: float) -> float:
        """A lower bound on min f from ν = M⁻¹Y/ρ, given that ‖YᵀM⁻¹x_p‖ ≤ ρ for every column."""
        nu = self.slope(evaluation)
        trace = float(np.einsum("iaa->", nu) if self.y is None else np.vdot(self.y, nu))
        return bounds(0.0, trace, float(np.vdot(nu, nu)), rho, self.penalty)[1]

    def screening(self, evaluation: Evaluation) -> tuple[Array, Array | None]:
        """K = M⁻¹ and F = YᵀM⁻¹ in the caller's coordinates: √q = ‖F x‖, leverage = xᵀK x. One point only."""
        K = evaluation.inverse[0]
        for triangle in self.triangles:
            for _ in range(2):  # T⁻ᵀ (T⁻ᵀ M⁻¹)ᵀ
                K = np.asarray(solve_triangular(triangle, K, lower=True, trans="T", check_finite=False)).T
        K = np.asarray((K + K.T) / 2, dtype=np.float64)
        return K, None if self.given is None else self.given[0].T @ K

    def whitened(self, right: Array) -> Array:
        """T⁻¹R for the caller's R (n, D, r)."""
        if not self.triangles:
            return right
        return np.stack([lower_solve(triangle, one) for triangle, one in zip(self.triangles, right, strict=True)])

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


def build_design(
    values: Sequence[Array], targets: Sequence[Array] | None, penalty: float, weights: Array | None = None
) -> Design:
    """The program for one matrix (D, P) or several; rows are whitened if they are badly scaled, or at given weights.

    Raises RankError if X lacks rank.
    """
    x = values[0].T[None] if len(values) == 1 else np.stack([v.T for v in values])
    if not x.flags.c_contiguous:
        x = np.stack([side_by_side(v) for v in values])
    y = None if targets is None else np.ascontiguousarray(np.stack(list(targets)))
    if penalty > 0 or (weights is None and all(_well_conditioned(one) for one in x)):
        return Design(x, y, penalty)
    if weights is None:
        lengths = np.sqrt(np.einsum("ipd,ipd->p", x, x))
        given: Array = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    else:
        given = weights
    triangles = tuple(_triangle(v, given) for v in values)
    plain = Design(x, y, penalty)
    white = np.stack([lower_solve(triangle, v).T for triangle, v in zip(triangles, values, strict=True)])
    found = replace(plain, x=np.ascontiguousarray(white), values=x, targets=y, triangles=triangles)
    return replace(found, y=np.ascontiguousarray(found.whitened(plain.target)))


def whitened_at(design: Design, weights: Array) -> Design:
    """The same program in the coordinates in which M(weights) is the identity."""
    return build_design([one.T for one in design.columns], design.given, design.penalty, weights)  # pyright: ignore[reportArgumentType]


def _well_conditioned(x: Array) -> bool:
    """Whether the least eigenvalue of X Xᵀ is above a share of the largest; each row of x is a column of X."""
    moments = x.T @ x
    moments.ravel()[:: len(moments) + 1] -= WELL_CONDITIONED * math.sqrt(np.vdot(moments, moments))
    return dpotrf(moments)[1] == 0


def _triangle(values: Array, weights: Array) -> Array:
    """T (lower triangular) with X √W = T·(orthonormal rows)."""
    triangle = row_triangle(values, np.sqrt(weights))
    D, rank = len(values), numerical_rank(spectrum(triangle), values.shape[1])
    if rank < D:
        raise RankError(
            f"X has {D} rows but rank {rank}, so its columns cannot span the target. "
            f"Pass k={rank} to `select` for its {rank}-dimensional row space, drop dependent rows, or use penalty > 0."
        )
    return triangle.T


def lower_solve(triangle: Array, right: Array) -> Array:
    """T⁻¹ right for a lower triangular T."""
    return solve_triangular(triangle, right, lower=True, check_finite=False)
