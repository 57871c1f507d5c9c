"""Lower bounds on the loss of every single swap into a subset of k columns, for all its positions at once.

S is rows × k with Gram matrix G = SᵀS, g = G⁻¹ and S = U diag(s) Wᵀ. If a column x replaces the i-th one, the Gram
matrix becomes G', which differs from G in row and column i. For c ≥ FULL_EXPONENT and d = c²/4 the function h(λ) − d/λ
is convex, since λ³ h''(λ)/2 is least at λ = 1. For smaller c ≥ CONVEX_EXPONENT h itself is convex, and d = 0 is used.
The tangent at G and the exact trace of G'⁻¹ give

    l(S − i + x) ≥ l(S) + tr K (G' − G) + d (tr G'⁻¹ − tr g),        K = h'(G) + d g²,

with equality at G' = G. Near λ = 1 the function h(λ) − d/λ is almost linear (its second derivative is 0 there), so near
the ideal the bound is close to the loss. With b = S⁺x, v = Sᵀx, ρ² = ‖x‖² − ‖Uᵀx‖² and O the columns that stay,

    tr K (G' − G) = 2 Σ_(j≠i) K_ij v_j + K_ii ‖x‖² − 2 (KG)_ii + K_ii G_ii,
    tr G'⁻¹ = tr g − (g²)_ii/g_ii + 1/β_i,        β_i = y_i² / (1 + ‖O⁺x‖²),
    y_i² = b_i²/g_ii + ρ²,        ‖O⁺x‖² = ‖b‖² − 2 (b_i/g_ii) (g b)_i + (b_i/g_ii)² (g²)_ii.

y_i is the distance of x from span O, and β_i is at least the smallest eigenvalue of G' (pass_tasks.py). The loss is the
same for −x, so both signs of the first sum give a bound, and its absolute value gives the higher one. For one column
and all positions, the cost is that of Uᵀx and of k × k products with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isopursuit._types import Array
from isopursuit.backend import namespace
from isopursuit.clock import UNLIMITED, Clock
from isopursuit.loss.penalty import CONVEX_EXPONENT, LARGEST_LOG, eigenvalue_slope, log_spectral_loss, to_loss
from isopursuit.rank import spectrum
from isopursuit.search.passes import on_same_device
from isopursuit.search.swaps import Subset, lower_than

FULL_EXPONENT = 0.75  # for c at least this, λ³ h'' is least at λ = 1 (computed on a grid of λ; 0.7 is too small)
MOST_EVALUATED = 256  # most swaps evaluated in one step, if one of them lowers the loss (guess)
BATCH = 16  # swaps evaluated at once, those of the least bounds first (guess)
SLACK = 1e-9  # slack for rounding, relative to the sum of all positive terms (chosen)
ROUNDING = 1e-13  # rounding of a product, relative to its norms (derived: k eps, for k up to some hundreds)


@dataclass(frozen=True)
class SwapBounds:
    """Lower bounds for the swaps into one subset.

    `basis` is Uᵀ (k, rows), and `products` (3k, k) maps coordinates in it to b, g b and the sum with K. `diagonals`
    (4, k) has g_ii, (g²)_ii, K_ii and the constant part of the bound; `norm` is ‖K‖. The bounds are lowered by the
    possible rounding error: that of a product with K is about ROUNDING ‖K‖ ‖S‖ ‖x‖.
    """

    basis: Array
    products: Array
    diagonals: Array
    inverse: float
    norm: float

    @classmethod
    def of(cls, subset: Array, c: float, log_loss: float) -> SwapBounds | None:
        """Bounds for the columns `subset` (rows, k) with this log-loss; None if there is no finite tangent bound."""
        if c < CONVEX_EXPONENT or not log_loss < LARGEST_LOG:
            return None
        U, s, Wt = np.linalg.svd(subset, full_matrices=False)
        W = Wt.T
        d = c * c / 4 if c >= FULL_EXPONENT else 0.0
        with np.errstate(over="ignore", divide="ignore"):
            slopes = np.array([eigenvalue_slope(one, c) for one in (s * s).tolist()]) + d / s**4
            g = (W / s**2) @ Wt
        K, G = (W * slopes) @ Wt, (W * s**2) @ Wt
        if not (np.isfinite(K).all() and np.isfinite(g).all()):
            return None
        square = np.einsum("ij,ij->i", g, g)
        fixed = to_loss(log_loss) - 2 * np.einsum("ij,ij->i", K, G) + np.diag(K) * np.diag(G) - d * square / np.diag(g)
        size = float(np.abs(slopes).max())
        fixed -= SLACK * np.abs(fixed) + ROUNDING * size * s[0] ** 2
        beside = K - np.diag(np.diag(K))
        products = np.concatenate([W / s, W / s**3, beside @ (W * s)])
        diagonals = np.stack([np.diag(g), square, np.diag(K), fixed])
        return cls(np.ascontiguousarray(U.T), products, diagonals, d, size)

    def __call__(self, z: Any) -> Any:
        """A lower bound on the loss with each of the columns z (rows, m) at each position, (k, m)."""
        xp = namespace(z)
        k = len(self.basis)
        q = on_same_device(self.basis, z) @ z
        squares = xp.einsum("dp,dp->p", z, z)
        b, gb, slope = (part.reshape(k, -1) for part in (on_same_device(self.products, z) @ q).reshape(3, k, -1))
        diagonal, square, own, fixed = (on_same_device(row, z)[:, None] for row in self.diagonals)
        bound = fixed + 2 * (1 - SLACK) * xp.abs(slope) + own * squares
        if self.inverse > 0:
            off = xp.clip(squares - xp.einsum("dp,dp->p", q, q), 0.0, None) + ROUNDING * squares
            share = b / diagonal
            leak = 1 + xp.clip(xp.einsum("dp,dp->p", b, b) * (1 - SLACK) + share * (share * square - 2 * gb), 0.0, None)
            with np.errstate(divide="ignore"):  # the bound is infinite for a zero column
                bound += self.inverse * (1 - SLACK) * leak / (share * b + off)
        return bound - ROUNDING * self.norm * squares


def steepest_descent(
    columns: Array, subset: Subset, free: range, c: float, clock: Clock = UNLIMITED
) -> tuple[Subset, float] | None:
    """Make the best of all single swaps among `columns` (rows, P) while one lowers the loss; returns the log-loss too.

    Only the positions `free` change. Returns None if there are no bounds for the subset. Swaps are evaluated in
    ascending order of their bounds, until no other bound is below the best loss. If a swap lowers the loss, at most
    MOST_EVALUATED are evaluated.
    """
    current, log_loss = subset.copy(), float(log_spectral_loss(spectrum(columns[:, subset]), c))
    improved = False
    while not clock.expired:
        bounds = SwapBounds.of(columns[:, current], c, log_loss)
        if bounds is None:
            return (current, log_loss) if improved else None
        found = _best_swap(bounds, columns, current, free, (c, lower_than(log_loss)), clock)
        if found is None:
            break
        place, column, log_loss = found
        current[place], improved = column, True
    return current, log_loss


def _best_swap(
    bounds: SwapBounds, columns: Array, subset: Subset, free: range, limit: tuple[float, float], clock: Clock
) -> tuple[int, int, float] | None:
    """Position, column and log-loss of the best swap below a limit (exponent, log-loss); None if there is none."""
    c, best = limit
    low = bounds(columns)[free.start : free.stop]
    low[:, subset] = np.inf
    most = to_loss(best)
    places, numbers = np.nonzero(low < most)
    order = np.argsort(low[places, numbers], kind="stable")
    found: tuple[int, int, float] | None = None
    here = columns[:, subset]
    # the loss depends only on the coordinates of x in span S and on the length of its residual
    U, s, Wt = np.linalg.svd(here, full_matrices=False)
    inside = np.vstack([s[:, None] * Wt, np.zeros(len(subset))])
    for first in range(0, len(order), BATCH):
        some = order[first : first + BATCH]
        enough = found is not None and first >= MOST_EVALUATED
        if enough or clock.expired or low[places[some[0]], numbers[some[0]]] >= to_loss(best):
            break
        x = columns[:, numbers[some]]
        y = U.T @ x
        rest = np.sqrt(np.clip(np.einsum("dp,dp->p", x, x) - np.einsum("dp,dp->p", y, y), 0.0, None))
        stack = np.repeat(inside[None], len(some), axis=0)
        stack[np.arange(len(some)), :, free.start + places[some]] = np.vstack([y, rest]).T
        values = log_spectral_loss(spectrum(stack), c)
        i = int(values.argmin())
        if values[i] < best:
            best = float(values[i])
            found = int(free.start + places[some[i]]), int(numbers[some[i]]), best
    if found is not None:
        place, column, _ = found
        swapped = subset.copy()
        swapped[place] = column
        found = place, column, float(log_spectral_loss(spectrum(columns[:, swapped]), c))
    return found
