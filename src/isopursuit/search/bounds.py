"""Lower bounds on the loss when a column x is added to others, for all columns and all swaps at once.

Let O be the columns that stay, G_O their Gram matrix with eigenvalues e_1 ≤ … ≤ e_m, and y the distance of x from their
span. The Gram matrix with x is G', and

    tr G'⁻¹ = tr G_O⁻¹ + 1/β,        β = y² / (1 + ‖O⁺x‖²).

**Diagonal blocks.** For c ≥ FULL_EXPONENT and d = c²/4 the function f(λ) = h(λ) − d/λ is convex, since λ³ h''(λ)/2 is
least at λ = 1. For smaller c ≥ CONVEX_EXPONENT h itself is convex, and d = 0 is used. The trace of a convex function
does not rise if G' is replaced by its diagonal blocks G_O and ‖x‖², so

    l(O + x) ≥ l(O) + h(‖x‖²) + d (1/β − 1/‖x‖²).

Near the ideal the bound is equal to the loss up to terms of third order.

**Ends of the spectrum**, for every c. The eigenvalues μ of G' interlace, e_(a−1) ≤ μ_a ≤ e_a. The first is at most β,
and the last at least ‖x‖² (Rayleigh quotients of G'⁻¹ and of G'). With h − 1 = h₋ + h₊, the parts below and above 1,

    l(O + x) ≥ m + 1 + Σ_(a<m) h₊(e_a) + Σ_(a>1) h₋(e_a) + h₋(β) + h₊(max(‖x‖², e_m)).

**Swaps.** If x replaces the i-th column of S, O is S without it. Let B = S⁺, b = Bx, g = B Bᵀ, and let ρ be the
distance of x from span S. Then products with k × k matrices are enough for all positions i:

    y_i² = b_i²/g_ii + ρ²,        ‖O_i⁺x‖² = ‖b‖² − 2 (b_i/g_ii) (g b)_i + (b_i/g_ii)² (g²)_ii.

Everything is written for NumPy arrays and tensors alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isopursuit._core.backend import namespace
from isopursuit._core.clock import UNLIMITED, Clock
from isopursuit._core.linalg import spectrum
from isopursuit._core.types import Array
from isopursuit.loss.penalty import CONVEX_EXPONENT, LARGEST_LOG, log_spectral_loss, loss_above, loss_below, to_loss
from isopursuit.search.swaps import Subset, lower_than
from isopursuit.sources.tasks import on_same_device

FULL_EXPONENT = 0.75  # for c at least this, λ³ h'' is least at λ = 1 (computed on a grid of λ; 0.7 is too small)
BATCH = 16  # swaps evaluated at once, those of the least bounds first (derived: a stack of small SVDs takes about 1 ms)
MANY_POSITIONS = 64  # with more columns one bound on the eigenvalues serves all positions (derived: each takes k³ work)
SLACK = 1e-9  # relative slack of bounds for rounding (chosen: far above the rounding of float64)
LARGEST = float(np.exp(LARGEST_LOG))  # larger bounds are replaced by this (derived: a limit above it excludes nothing)
ROUNDING = 1e-13  # rounding of a squared length, relative to it (derived: k eps, for k up to some hundreds)


@dataclass(frozen=True)
class AdditionBounds:
    """The bounds above for columns that are added to one or several sets of others: arrays (sets, 1), or numbers.

    `loss` is l(O), `inner` the constant part of the second bound, `top` is h₊(e_m). If the losses are too large for
    bounds (`usable` is False), a column gets −β, which excludes nothing: the columns of the largest β come first.
    """

    c: float
    loss: Any
    inner: Any
    top: Any
    usable: bool = True

    @classmethod
    def of(cls, low: Array, high: Array, c: float) -> AdditionBounds:
        """The bounds for others whose ascending eigenvalues are between these (sets, m), known up to rounding."""
        sets, m = low.shape
        nothing = np.zeros((sets, 1))
        if m == 0:
            return cls(c, nothing, nothing + 1, nothing)
        error = 4 * m * np.finfo(np.float64).eps * high[:, -1:]  # of the Gram matrix and of LAPACK
        with np.errstate(over="ignore"):
            below = loss_below(high + error, c)
            above = loss_above(low - error, c)
        inner = m + 1 + above[:, :-1].sum(axis=1, keepdims=True) + below[:, 1:].sum(axis=1, keepdims=True)
        loss = m + (above + below).sum(axis=1, keepdims=True)
        return cls(c, loss, inner, above[:, -1:], bool(np.log(loss).max() < LARGEST_LOG))

    def __call__(self, squares: Any, inverse: Any) -> Any:
        """The bound for columns with these ‖x‖² (p,) and 1/β (sets, p)."""
        xp = namespace(inverse)
        if not self.usable:
            return -1 / inverse
        loss, inner, top = (on_same_device(one, inverse) for one in (self.loss, self.inner, self.top))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            above = loss_above(squares, self.c)
            bound = inner + loss_below(1 / inverse, self.c) + xp.maximum(above, top)
            if self.c >= CONVEX_EXPONENT:
                blocks = loss + 1 + above + loss_below(squares, self.c)
                if self.c >= FULL_EXPONENT:
                    blocks = blocks + self.c**2 / 4 * xp.clip(inverse - 1 / squares, 0.0, None)
                bound = xp.maximum(bound, blocks)
            # where a bound overflows, so may all losses: the cap lets their logarithms decide
            bound = xp.where(xp.isnan(bound), -np.inf, xp.clip(bound, None, LARGEST))
        return bound * (1 - SLACK)


@dataclass(frozen=True)
class SwapBounds:
    """Lower bounds for the swaps into one subset S = U diag(s) Wᵀ.

    `basis` is Uᵀ (k, rows), and `products` (2k, k) maps coordinates in it to b and g b. `diagonals` (2, k) has g_ii and
    (g²)_ii.
    """

    basis: Array
    products: Array
    diagonals: Array
    additions: AdditionBounds

    @classmethod
    def of(cls, subset: Array, c: float) -> SwapBounds:
        """Bounds for the columns `subset` (rows, k)."""
        k = subset.shape[1]
        U, s, Wt = np.linalg.svd(subset, full_matrices=False)
        s = np.maximum(s, 1e-150)
        W, G = Wt.T, (Wt.T * s**2) @ Wt
        g = (W / s**2) @ Wt
        low, high = s[None, :0:-1] ** 2, s[None, -2::-1] ** 2  # without a column, eigenvalues interlace those with it
        if 1 < k <= MANY_POSITIONS:
            stays = np.nonzero(~np.eye(k, dtype=bool))[1].reshape(k, k - 1)
            low = high = np.linalg.eigvalsh(G[stays[:, :, None], stays[:, None, :]])  # without each column in turn
        additions = AdditionBounds.of(low, high, c)
        diagonals = np.stack([np.diag(g), np.einsum("ij,ij->i", g, g)])
        return cls(np.ascontiguousarray(U.T), np.concatenate([W / s, W / s**3]), diagonals, additions)

    def __call__(self, z: Any) -> Any:
        """A lower bound on the loss with each of the columns z (rows, m) at each position, (k, m)."""
        xp = namespace(z)
        k = len(self.basis)
        q = on_same_device(self.basis, z) @ z
        squares = xp.einsum("dp,dp->p", z, z)
        both = on_same_device(self.products, z) @ q
        b, gb = both[:k], both[k:]
        diagonal, square = (on_same_device(row, z)[:, None] for row in self.diagonals)
        off = xp.clip(squares - xp.einsum("dp,dp->p", q, q), 0.0, None) + ROUNDING * squares
        share = b / diagonal
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            leak = xp.clip(xp.einsum("dp,dp->p", b, b) * (1 - SLACK) + share * (share * square - 2 * gb), 0.0, None)
            return self.additions(squares, (1 + leak) * (1 - SLACK) / (share * b + off))


def steepest_descent(
    columns: Array, subset: Subset, free: range, c: float, clock: Clock = UNLIMITED
) -> tuple[Subset, float]:
    """Swap columns (rows, P) while a swap lowers the loss; returns the subset and its log-loss.

    Only the positions `free` change. Each step evaluates swaps in ascending order of their bounds, a few at a time, and
    makes the best of the first few that lower the loss.
    """
    current, log_loss = subset.copy(), float(log_spectral_loss(spectrum(columns[:, subset]), c))
    while not clock.expired:
        found = _better_swap(columns, current, free, c, lower_than(log_loss), clock)
        if found is None:
            break
        current, log_loss = found
    return current, log_loss


def _better_swap(
    columns: Array, subset: Subset, free: range, c: float, limit: float, clock: Clock
) -> tuple[Subset, float] | None:
    """The subset after a swap with a log-loss below the limit, and that; None if there is none, or no time."""
    low = SwapBounds.of(columns[:, subset], c)(columns)[free.start : free.stop]
    low[:, subset] = np.inf
    places, numbers = np.nonzero(low < to_loss(limit))
    order = np.argsort(low[places, numbers], kind="stable")
    # the loss depends only on the coordinates of x in span S and on the length of its residual
    U, s, Wt = np.linalg.svd(columns[:, subset], full_matrices=False)
    inside = np.vstack([s[:, None] * Wt, np.zeros(len(subset))])
    for first in range(0, len(order), BATCH):
        if clock.expired:
            break
        some = order[first : first + BATCH]
        x = columns[:, numbers[some]]
        y = U.T @ x
        rest = np.linalg.norm(x - U @ y, axis=0)
        stack = np.repeat(inside[None], len(some), axis=0)
        stack[np.arange(len(some)), :, free.start + places[some]] = np.vstack([y, rest]).T
        values = log_spectral_loss(spectrum(stack), c)
        best = int(values.argmin())
        swapped = subset.copy()
        swapped[free.start + places[some[best]]] = numbers[some[best]]
        # computed again from the columns: otherwise subsets that are equal up to rounding could alternate for ever
        log_loss = float(log_spectral_loss(spectrum(columns[:, swapped]), c)) if values[best] < limit else np.inf
        if log_loss < limit:
            return swapped, log_loss
    return None
