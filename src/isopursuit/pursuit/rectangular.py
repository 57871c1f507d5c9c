"""Isometry pursuit for k columns in more than k dimensions: the program, its certificate, and the columns it excludes.

With as many rows as columns to pick, X B is the identity. With fewer columns, k < D, X B is the cheapest projection of
rank k. Relaxed to the convex hull of such projections, the program is

    min Σ ‖B_p‖   subject to   X B = P,   P symmetric, 0 ⪯ P ⪯ I, tr P = k.

As in design.py its optimum is ½ min f(w) over w ≥ 0, with

    f(w) = Σ w_p + Γ_k(M(w)),   Γ_k(M) = min tr(P M⁻¹ P) = Σ_{i≤ι} 1/λ_i + (k − ι)²/Σ_{i>ι} λ_i,

where the best P has the eigenvectors V of M and p_i = min(1, λ_i/a), and ι and a are those of loss/envelope.py for
h = 1/λ. Write ν = V diag(1/λ_1, …, 1/λ_ι, 1/a, …, 1/a) Vᵀ. Then P = Mν, the gradient of Γ_k is −ν², and with
q_p = ‖ν x_p‖² Euler's identity is Σ w_p q_p = Γ_k = the sum of the k smallest eigenvalues of ν.

**Certificate.** For *any* w with Γ_k finite

    B = W Xᵀ ν         is feasible,          primal = Σ w_p √q_p ≤ √(Σ w · Γ_k),
    ν / √max q         is dual feasible,     dual   = S_k(ν)/√max q,

where S_k is the sum of the k smallest eigenvalues. For every feasible B and every symmetric ν ⪰ 0 with ‖ν x_p‖ ≤ 1,
Σ ‖B_p‖ ≥ tr(ν X B) = tr(ν P) ≥ S_k(ν). At k = D, ν = M⁻¹ and both are the values of design.py. Many points that share
one selection add their Γ_k and their S_k.

**Rounding.** The certificate is computed from the returned B and ν. ν is divided by an upper bound on the largest
‖ν x_p‖ (`largest_slope`), and its eigenvalues have an error of at most D eps ‖ν‖. X B differs from a feasible P by some
R. ‖R‖_* is bounded by the part of the eigenvalues of X B outside [0, 1], the difference of their sum from k, the part
that is not symmetric, and rounding. The eigenvalues of an optimal ν* may be taken to be at most its k-th smallest, and
so at most S_k(ν*) = optimum. Then tr(ν* X B) ≥ S_k(ν*) − ‖ν*‖ ‖R‖_*, and hence optimum ≤ Σ ‖B_p‖ / (1 − ‖R‖_*).

**Which columns may have weight.** As for k = D, tr (ν* − ν) M (ν* − ν) ≤ f(w) − dual =: δ: expand, and use
tr(P ν*) ≥ S_k(ν*). M may be singular here. Split x = x₊ + s by the eigenvalues of M above and below ℓ = a/2D; at least
k are above. The k-th smallest eigenvalue of ν* is at most that of its compression to the space of x₊, which is at most
1/a + √(δ/ℓ), and it bounds ν* on s. So

    √q*_p ≤ √q_p + 3√(δ x₊ᵀM⁻¹x₊) + √(δ/ℓ) ‖s‖ ≤ √q_p + √(δ · leverage),   leverage = 10 xᵀ V diag(1/max(λ, ℓ)) Vᵀ x,

and if s = 0 the leverage is xᵀM⁻¹x as for k = D. A column with less than 1 on the right is in no optimal solution.

**Which solutions are optimal.** ν is the same at every optimal w (the gradient of a differentiable convex function is
constant on its minimizers). M is not: only its action on the first ι eigenvectors and its trace are. On the other
eigenvectors M may be any matrix of that trace with eigenvalues up to a. If the tied columns span only k dimensions, the
program is that of design.py in these dimensions, and M is unique.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from isopursuit._core.linalg import EPS
from isopursuit._core.types import Array, Indices
from isopursuit.loss.envelope import least_majorant, spread
from isopursuit.pursuit.design import Design, Evaluation
from isopursuit.pursuit.interior import PATH_STEPS, follow_path, spectrum_of

FEWEST_AT_ONCE, MOST_AT_ONCE, AT_ONCE_PER_ROW = 256, 1024, 8  # columns solved at once: limits, and how many per row
RESOLVES = 3  # most solves of one working set; columns that were wrongly dropped join again
PRUNED_GAP = 1.5  # factor by which the gap may grow when small weights are set to 0
LENGTH_TIES = 1e-12  # squared lengths closer than this, relative to the largest, count as equal (derived: 5e3 eps)
TOP_MARGIN = 1e-6  # λ/a − 1 below which an eigenvalue may equal a: the error of M at a gap of 1e-12 (derived)
IN_K_DIMENSIONS = 1e-11  # share of the columns outside k dimensions that is rounding (derived: 5e4 eps)
SUMMED_TERMS = 256  # columns whose products are summed at once in a certificate (derived: about √ of 100,000)


@dataclass(frozen=True)
class RectangularDesign(Design):
    """The program for k columns of more than k rows. `Evaluation.inverse` holds ν, (n, D, D).

    If there are more rows than columns, the caller's X, `values` (n, P, rows), is Q times `x`, and `bases` has Q.
    """

    k: int = 0
    bases: Array | None = None

    def evaluate(self, weights: Array) -> Evaluation | None:
        """f, its bounds, q and leverage at these weights, over all columns.

        None if some M has rank below k, or if its inverse overflows float64.
        """
        n, P, D = self.shape
        q, leverage, nu = np.zeros(P), np.zeros(P), np.empty((n, D, D))
        traces = 0.0
        for i, x in enumerate(self.x):
            found = self._spectrum(x, weights)
            if found is None:
                return None
            eigenvalues, V, roots = found
            y = x @ V
            with np.errstate(over="ignore"):
                q += (y * roots) ** 2 @ np.ones(D)
            if not np.isfinite(q).all():  # lengths near underflow
                return None
            leverage = np.maximum(leverage, y**2 @ self._inverse(eigenvalues, roots))
            half = V * np.sqrt(roots)
            nu[i] = half @ half.T
            traces += float(roots[: self.k].sum())
        primal, rho = 2 * float(weights @ np.sqrt(q)), float(np.sqrt(q.max()))
        return Evaluation(weights, nu, q, leverage, primal, 2 * traces / rho, float(weights.sum()) + traces)

    def _spectrum(self, x: Array, weights: Array) -> tuple[Array, Array, Array] | None:
        """Eigenvalues and eigenvectors of M, and the eigenvalues of ν."""
        eigenvalues, V = spectrum_of(x, weights, self.k)
        if not least_majorant(eigenvalues, self.k).average > (len(V) * EPS) ** 2 * eigenvalues[0]:
            return None
        return eigenvalues, V, 1 / spread(eigenvalues, self.k)

    @staticmethod
    def _inverse(eigenvalues: Array, roots: Array) -> Array:
        """The eigenvalues of the matrix whose form is the leverage."""
        least = 1 / (2 * len(roots) * roots[-1])
        regular = bool(eigenvalues[-1] >= least)
        return (1.0 if regular else 10.0) / np.maximum(eigenvalues, least)

    def start(self) -> Array:
        """Equal weights on the longest columns if those are optimal, otherwise on all columns.

        If M of the longest columns has no eigenvalue above tr M/k, ι = 0: q depends on lengths alone.
        """
        squares = np.einsum("ipd,ipd->p", self.x, self.x)
        longest = np.where(squares >= (1 - LENGTH_TIES) * squares.max(), 1.0, 0.0)
        found = self._scaled(longest)
        if found is None or found.gap > 1e-12:
            found = self._scaled(np.where(squares > 0, 1.0, 0.0)) or found
        return np.where(squares > 0, 1.0, 0.0) if found is None else found.weights

    def _scaled(self, weights: Array) -> Evaluation | None:
        """The evaluation at the best multiple of the weights: f(tw) = tΣw + Γ/t is least if both terms are equal."""
        found = self.evaluate(weights)
        if found is None:
            return None
        total = float(weights.sum())
        t = np.sqrt((found.value - total) / total)
        return replace(
            found, weights=t * weights, inverse=found.inverse / t, q=found.q / t**2, leverage=found.leverage / t,
            value=2 * t * total,
        )  # fmt: skip

    def solve(
        self, weights: Array, tol: float, watch: Callable[[float], bool] | None = None, rounds: int | None = None
    ) -> float:
        """Improve weights in place by the interior-point method; returns the gap."""
        best = self._scaled(weights)
        tol *= 0.5  # the certificate adds its bound on rounding
        cold = False
        for turn in range(RESOLVES):
            if best is None or best.gap <= tol:
                break
            found = self._pruned(follow_path(self.x, self.k, best.weights, tol, rounds or PATH_STEPS, watch, cold=cold))
            if found is not None and found.gap < best.gap:
                best, cold = found, False
            elif turn > 0 or rounds is not None:
                break
            else:  # from weights too near to the boundary all steps are short
                cold = True
        if best is None:
            return np.inf
        weights[:] = best.weights
        return best.gap

    def _pruned(self, weights: Array) -> Evaluation | None:
        """The evaluation without weights that are positive only because of the barrier: relative weight below 1 − q."""
        found = self._scaled(weights)
        if found is None:
            return None
        mean = float(found.weights.sum()) / np.count_nonzero(weights)
        less = self._scaled(np.where(found.weights < mean * (1 - found.q), 0.0, found.weights))
        return found if less is None or less.gap > PRUNED_GAP * found.gap else less

    @property
    def many_rows(self) -> bool:
        """False: the solver for many rows solves only the square program."""
        return False

    def crowded(self, weights: Array) -> bool:
        """False: the central path solves only the square program."""
        return False

    @property
    def kernel_columns(self) -> int:
        """Steps cost the square of the number of columns, so fewer are solved at once than for k = D."""
        return int(np.clip(AT_ONCE_PER_ROW * self.shape[2], FEWEST_AT_ONCE, MOST_AT_ONCE))

    @property
    def joining(self) -> int:
        """Half of the columns that are solved at once; the others have weight."""
        return self.kernel_columns // 2

    def screening(self, evaluation: Evaluation) -> tuple[Array, Array | None]:
        """The matrices of leverage and of √q. One point only."""
        found = self._spectrum(self.x[0], evaluation.weights)
        assert found is not None
        eigenvalues, V, roots = found
        return V * self._inverse(eigenvalues, roots) @ V.T, evaluation.inverse[0]

    def dual_value(self, evaluation: Evaluation, rho: float) -> float:
        """A lower bound on min f from the point ν/ρ, given that ‖ν x_p‖ ≤ ρ for every column."""
        return 2 * sum_of_smallest(evaluation.inverse, self.k) / rho

    def dual_point(self, evaluation: Evaluation, rho: float = 1.0) -> Array:
        """ν / ρ in the caller's coordinates, Q ν / ρ."""
        nu = evaluation.inverse / rho
        return nu if self.bases is None else self.bases @ nu

    def coefficients(self, evaluation: Evaluation, support: Indices) -> Array:
        """B on the support: w_p ν x_p, with the ν of the weights on the support alone; zero if M has rank below k."""
        part, w = self.take(support), evaluation.weights[support]
        found = part.evaluate(w)
        return np.zeros_like(part.x) if found is None else part.x @ found.inverse * w[:, None]

    def moments(self, evaluation: Evaluation, columns: Indices) -> Array:
        """The quantities that all optimal M share, V_ιᵀM and tr M, for each column's x xᵀ alone: (entries, m)."""
        parts: list[Array] = []
        for x in self.x:
            found = self._spectrum(x, evaluation.weights)
            assert found is not None
            eigenvalues, V, roots = found
            # an eigenvalue that may equal a is not among the first ι: that gives fewer conditions on M
            top = int((eigenvalues * roots[-1] > 1 + TOP_MARGIN).sum())
            y = x[columns] @ V
            outside = float(np.abs(y[:, self.k :]).max(initial=0.0))
            if outside <= IN_K_DIMENSIONS * float(np.abs(y).max()):  # the columns span k dimensions: there M is unique
                top = self.k
            i, j = np.triu_indices(len(V))
            i, j = i[i < top], j[i < top]
            parts.append((y[:, i] * y[:, j] * np.where(i == j, 1.0, np.sqrt(2.0))).T)
            parts.append((y[:, top:] ** 2).sum(axis=1)[None])
        return np.concatenate(parts)


def sum_of_smallest(nu: Array, k: int) -> float:
    """A lower bound on the sum, over all points, of the k smallest eigenvalues of symmetric ν (n, D, D)."""
    values = np.linalg.eigvalsh(nu)
    return float(values[:, :k].sum()) - k * nu.shape[1] * EPS * float(values[:, -1].sum())


def misfit_of_projection(x: Array, B: Array, k: int) -> float:
    """An upper bound on the largest ‖X B − P‖_* over all points, for feasible P; x (n, m, D) has columns as rows."""
    return max(_misfit(one, own, k) for one, own in zip(x, B, strict=True))


def _misfit(x: Array, B: Array, k: int) -> float:
    D, terms = x.shape[1], SUMMED_TERMS
    # sum in parts: rounding grows with the number of terms in a part, not with that of all terms
    parts = [x[i : i + terms].T @ B[i : i + terms] for i in range(0, len(x), terms)]
    product = np.sum(parts, axis=0)
    values = np.linalg.eigvalsh((product + product.T) / 2)
    inside = np.clip(values, 0.0, 1.0)
    outside = float(np.abs(values - inside).sum()) + abs(k - float(inside.sum()))
    sizes = float(np.linalg.norm(x, axis=1) @ np.linalg.norm(B, axis=1))
    depth = 0.5 * min(len(x), terms) + len(parts) + 2
    rounding = depth * EPS * sizes + D * EPS * float(np.linalg.norm(product))
    return outside + math.sqrt(D) * (float(np.linalg.norm(product - product.T)) / 2 + rounding)
