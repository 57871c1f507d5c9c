"""An interior-point method for the pursuit of k columns in more than k dimensions (rectangular.py has the program).

The function to minimize, f(w) = Σ w_p + Σ_i Γ_k(M_i(w)), has a kink in its gradient wherever an eigenvalue of M equals
the average a. Since Γ_k(M) = min tr(P M⁻¹ P) over symmetric P with 0 ⪯ P ⪯ I and tr P = k, a barrier for P ⪯ I makes it
smooth:

    Γ_τ(M) = min Σ [p_i²/λ_i − τ log(1 − p_i)]   over Σ p_i = k,

where P has the eigenvectors of M. At the minimum 2p_i/λ_i + τ/(1 − p_i) = η, a quadratic equation for each p_i once η
is known, and Γ_τ is smooth in M. With ν_i = p_i/λ_i its gradient is −V diag(ν²) Vᵀ, and its second derivative has

    θ_ij = (ν_i + ν_j) ν_j / (2 u_i u_j / τ + λ_i),   u_i = 1 − p_i,

for the pair v_i v_jᵀ, and one term of rank one for the sum of all p: g gᵀ / Σ λ_i f_i with g_i = 2ν_i f_i and
f_i = u_i²/(2u_i² + τλ_i). With the same τ in the barrier −τ Σ log w_p, Newton's method follows the path τ → 0. On the
path w_p z_p = τ for the multipliers z of w ≥ 0, and steps are taken in w and z together. P = Mν is feasible for every
τ, so each point of the path has both bounds of the certificate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from isopursuit._core.linalg import EPS
from isopursuit._core.types import Array, Indices
from isopursuit.loss.envelope import least_majorant, spread
from isopursuit.pursuit.central_path import TO_THE_BOUNDARY
from isopursuit.results import relative_gap

ROOT_STEPS = 60  # most steps for the multiplier η; Newton's method needs about 6, bisection 50 (derived)
WELL_CONDITIONED = 1e-6  # eigenvalue relative to the largest, above which sums of squares keep ten of its digits
FIRST_COMPLEMENT = 0.1  # 1 − q that corresponds to the barrier of a cold start
PATH_FACTOR = 0.1  # factor of the barrier from one point of the path to the next
CENTRED = 10.0  # decrease of the barrier function, in units of τ, below which a step reached the path
HALVINGS = 25  # most halvings of a step; after that, rounding prevents progress (derived: 2^-25 is about √eps)
STALE_STEPS = 40  # Newton steps that do not lower the gap before giving up; warm starts took up to 25 (measured)
PATH_STEPS = 120  # most Newton steps on one working set; 25 to 45 are usual (measured)
# second derivatives below this share of the barrier's are left out (measured on digits: no more steps than with 1e-9)
NEGLIGIBLE_CURVATURE = 1e-2
FEATURE_ENTRIES = 2**22  # most entries of the matrix A of `PathPoint.features`: 32 MB
REDUCED = 0.5  # share of the columns that a proof must exclude before the others are copied


def spectrum_of(x: Array, weights: Array, k: int) -> tuple[Array, Array]:
    """Descending eigenvalues of Σ w x xᵀ, with rounding set to 0, and eigenvectors; each row of x is a column of X.

    If the k-th eigenvalue is far below the first, it is computed from the singular values of √w x, which keep digits
    that a sum of squares loses.
    """
    held = weights > 0
    rows = np.sqrt(weights[held])[:, None] * x[held]
    values, V = np.linalg.eigh(rows.T @ rows)
    values, V = values[::-1], V[:, ::-1]
    if values[k - 1] > WELL_CONDITIONED * values[0] or not held.any():
        return np.where(values > len(V) * EPS * values[0], values, 0.0), V
    _, s, vt = np.linalg.svd(np.linalg.qr(rows, mode="r"))
    full = np.zeros(len(vt))
    full[: len(s)] = np.where(s > len(vt) * EPS * s[0], s, 0.0)
    return full**2, vt.T


def relaxed_projection(eigenvalues: Array, k: int, tau: float) -> tuple[Array, Array]:
    """ν_i = p_i/λ_i and 1 − p_i at the minimum of Σ p²/λ − τ log(1 − p) over Σ p = k.

    If exactly k eigenvalues are nonzero, p = 1 for these.
    """
    if k == len(eigenvalues) or eigenvalues[k] == 0:
        return 1 / np.maximum(eigenvalues, eigenvalues[k - 1]), np.where(np.arange(len(eigenvalues)) < k, 0.0, 1.0)
    low, high, eta = tau, np.inf, 2 / least_majorant(eigenvalues, k).average + tau
    nu = slack = eigenvalues
    for _ in range(ROOT_STEPS):
        # 2u² + (ηλ − 2) u − τλ = 0 for u = 1 − p, and a similar equation for p; both roots without cancellation
        past = eta * eigenvalues - 2
        root = np.hypot(past, np.sqrt(8 * tau * eigenvalues))  # lengths near underflow make η large
        nu = 2 * (eta - tau) / (past + 4 + root)
        slack = np.where(past > 0, 2 * tau * eigenvalues / np.where(past > 0, past + root, 1.0), (root - past) / 4)
        missing = k - float(nu @ eigenvalues)
        if abs(missing) <= 4 * EPS * k:
            break
        low, high = (eta, high) if missing > 0 else (low, eta)
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            slope = float((eigenvalues / (2 + tau / slack**2 * eigenvalues)).sum())
        new = eta + missing / slope if slope > 0 else np.nan
        if not low < new < high:
            new = 2 * eta if high == np.inf else (low + high) / 2
        if new == eta:
            break
        eta = new
    return nu, slack


@dataclass(frozen=True)
class PathPoint:
    """Σ w + Γ_τ at some weights. `spectra` has, for each M, its eigenvalues, x in its eigenvectors, ν and 1 − p."""

    weights: Array
    tau: float
    spectra: tuple[tuple[Array, Array, Array, Array], ...]
    q: Array
    value: float  # Σ w + Σ p²/λ, at least f
    dual: float
    gap: float  # gap of the weights for τ = 0, over the columns of this program

    def possible(self) -> Indices:
        """The columns that the test of `Evaluation.tied` does not exclude, by bounds over this program."""
        leverage = np.zeros(len(self.q))
        for eigenvalues, y, nu, _ in self.spectra:
            least = 1 / (2 * len(nu) * nu.max())
            leverage = np.maximum(leverage, 10 * (y**2 / np.maximum(eigenvalues, least)).sum(axis=1))
        slack = max(self.value - self.dual, 4 * EPS * self.value)
        return np.flatnonzero(np.sqrt(self.q) + np.sqrt(slack * leverage) >= 1)

    def features(self) -> Array:
        """A (m, r) such that A Aᵀ is the second derivative of Σ Γ_τ in the weights, except for negligible terms."""
        parts: list[Array] = []
        for eigenvalues, y, nu, slack in self.spectra:
            i, j = np.triu_indices(len(nu))
            theta = (nu[i] + nu[j]) * nu[j] / (2 * slack[i] * slack[j] / self.tau + eigenvalues[i])
            theta *= np.where(i == j, 1.0, 2.0)
            # for relative changes of weights, for which the second derivative of the barrier is about τ
            squares = (self.weights[:, None] * y) ** 2
            size = theta * (squares.T @ y**2)[i, j]
            kept = np.flatnonzero(size > NEGLIGIBLE_CURVATURE * self.tau)
            room = max(FEATURE_ENTRIES // len(y), len(nu))
            if len(kept) > room:
                kept = kept[np.argpartition(-size[kept], room)[:room]]
            parts.append(y[:, i[kept]] * y[:, j[kept]] * np.sqrt(theta[kept]))
            free = slack**2 / (2 * slack**2 + self.tau * eigenvalues)
            total = float(free @ eigenvalues)
            if total > 0:
                parts.append((y**2 @ (2 * nu * free))[:, None] / np.sqrt(total))
        return np.concatenate(parts, axis=1)


def path_point(x: Array, k: int, weights: Array, tau: float) -> PathPoint | None:
    """The smoothed program at positive weights; None if some M has rank below k."""
    q, plain = np.zeros(len(weights)), np.zeros(len(weights))
    spectra: list[tuple[Array, Array, Array, Array]] = []
    traces = smallest = gamma = 0.0
    for one in x:
        eigenvalues, V = spectrum_of(one, weights, k)
        if not least_majorant(eigenvalues, k).average > EPS**2 * eigenvalues[0]:
            return None
        nu, slack = relaxed_projection(eigenvalues, k, tau)
        y = one @ V
        roots = 1 / spread(eigenvalues, k)
        q += y**2 @ nu**2
        plain += y**2 @ roots**2
        gamma += float(roots[:k].sum())
        traces += float(nu**2 @ eigenvalues)
        smallest += float(np.sort(nu)[:k].sum())
        spectra.append((eigenvalues, y, nu, slack))
    value = float(weights.sum()) + traces
    dual = 2 * smallest / float(np.sqrt(q.max()))
    gap = relative_gap(float(weights @ np.sqrt(plain)), gamma / float(np.sqrt(plain.max())))
    return PathPoint(weights, tau, tuple(spectra), q, value, dual, gap)


def follow_path(
    x: Array, k: int, weights: Array, tol: float, rounds: int, watch: Callable[[float], bool] | None, *, cold: bool
) -> Array:
    """Weights with a gap of at most tol over these columns (n, m, D), or the best weights found.

    The barrier begins as large as the gap, or if `cold` as large as that of a cold start.
    """
    total = float(weights.sum())
    columns = np.arange(len(weights))
    tau = tol * total / len(weights)
    now = path_point(x, k, np.maximum(weights, EPS * total), tau)
    if now is None or now.gap <= tol:
        return weights
    tau = (FIRST_COMPLEMENT if cold else min(now.gap, FIRST_COMPLEMENT)) * total / len(weights)
    w = np.maximum(weights, tau / FIRST_COMPLEMENT)
    z = tau / w
    now = path_point(x, k, w, tau)
    best, best_gap, stale = weights, np.inf, 0
    for _ in range(rounds):
        if now is None or (watch is not None and watch(now.gap)):
            break
        stale = 0 if now.gap < best_gap else stale + 1
        if now.gap < best_gap:
            best, best_gap = np.zeros(len(weights)), now.gap
            best[columns] = now.weights
        if best_gap <= tol or stale > STALE_STEPS:
            break
        kept = now.possible()
        if k <= len(kept) < REDUCED * len(columns):
            columns, x, z = columns[kept], x[:, kept], z[kept]
            now = path_point(x, k, now.weights[kept], now.tau)
            continue
        step = _newton_step(x, k, now, z)
        if step is None:
            break
        now, z = step
    return best


def _newton_step(x: Array, k: int, now: PathPoint, z: Array) -> tuple[PathPoint | None, Array] | None:
    """One Newton step in w and z, and a smaller τ if it was nearly exact; None if rounding stops it."""
    w, tau = now.weights, now.tau
    downhill = now.q - 1 + tau / w
    try:
        dw = _solve(now.features(), z / w, downhill)
    except LinAlgError:
        return None
    dz = tau / w - z - z / w * dw
    decrease = float(dw @ downhill)
    step = min(1.0, TO_THE_BOUNDARY * _room(w, dw), TO_THE_BOUNDARY * _room(z, dz))
    for _ in range(HALVINGS):
        trial = path_point(x, k, w + step * dw, tau)
        # judge by slopes, which have less rounding error than values: they rise from −decrease to about 0
        if trial is not None and float(dw @ (1 - trial.q - tau / trial.weights)) <= 0.1 * decrease:
            break
        step /= 2
    else:
        return None
    if decrease < CENTRED * tau and step >= 0.5:
        trial = path_point(x, k, trial.weights, PATH_FACTOR * tau)
    return trial, z + step * dz


def _room(values: Array, direction: Array) -> float:
    """The longest step along the direction that leaves all values at least 0."""
    falling = direction < 0
    with np.errstate(over="ignore"):  # if the direction is nearly 0
        return float((values[falling] / -direction[falling]).min()) if falling.any() else np.inf


def _solve(A: Array, diagonal: Array, right: Array) -> Array:
    """(A Aᵀ + diag)⁻¹ right, computed with the smaller of A Aᵀ and AᵀA."""
    m, r = A.shape
    if m <= r:
        H = A @ A.T
        H[np.diag_indices(m)] += diagonal
        return cho_solve(cho_factor(H, lower=True, check_finite=False), right, check_finite=False)
    scaled = A / diagonal[:, None]
    H = A.T @ scaled
    H[np.diag_indices(r)] += 1.0
    part = cho_solve(cho_factor(H, lower=True, check_finite=False), scaled.T @ right, check_finite=False)
    return right / diagonal - scaled @ part
