"""The paper's penalty g and all that follows from its formula. Kernels use `_penalty.pxd`; no other file repeats it.

With u = t^c the penalty of a singular value t is g(t) = (e^u + e^{1/u}) / 2e: its minimum is 1, at t = 1 only, and
g(t) = g(1/t). As a function of an eigenvalue λ = t² of the Gram matrix it is h(λ) = g(√λ), with u = λ^{c/2}, and the
loss of a set of columns is l_c(X) = Σ g(σ_d) = tr h(XᵀX). With v = 1/u,

    λ h'(λ) = (c/4e) [ u eᵘ − v eᵛ ],        λ² h''(λ) = (c/4e) [ u eᵘ ((c/2)(1 + u) − 1) + v eᵛ ((c/2)(1 + v) + 1) ].

h is convex for c ≥ CONVEX_EXPONENT. It splits into h − 1 = h₋ + h₊, the parts below and above λ = 1.

Methods compare logarithms of losses, which are finite even where the loss overflows float64.

To change g, edit the functions above "the loss of a spectrum" here and their counterparts in `_penalty.pxd`. Bounds
assume that g ≥ 1 = g(1), g(t) = g(1/t), h₋ is convex and decreasing, λ² h'' falls and then rises (envelope.py), and
h''(1)/2 = c²/4 (`stiffness`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isopursuit._core.linalg import namespace, spectrum
from isopursuit._core.options import as_exponent
from isopursuit._core.text import LARGEST_EXPONENT as LARGEST_EXP
from isopursuit._core.threads import on_one_blas_thread
from isopursuit._core.types import Array
from isopursuit.data._matrix import as_matrix
from isopursuit.errors import ShapeError

# Tolerances, relative to the loss; _penalty.pxd repeats ROUNDING and LARGEST_LOG for the kernels.
STATED = 1e-9  # of "proved optimal" (chosen: a promise)
# a subset is better if it is below the incumbent by more than this, and a bound this close to it closes a node (derived
# so that both errors add up to less than STATED, with a tenth to spare)
PROVED = 0.45 * STATED
# of sums of products and of logarithms of losses; what differs by less is equal, and the lowest column number wins
# (derived: 4,500 eps for sums of some thousand terms)
ROUNDING = 1e-12
LARGEST_LOG = 600.0  # largest log-loss for which bounds are computed (derived: their products stay below e^709)
LARGEST = math.exp(LARGEST_LOG)  # larger losses and bounds are replaced by this
SMALLEST_EXPONENT, LARGEST_EXPONENT = 0.05, 10  # exponents c for which the shape of the envelopes was checked (tests)
CONVEX_EXPONENT = 0.6204  # from this c on h is convex (derived: min λ² h'' is 0 at c = 0.62025)
FULL_EXPONENT = 0.75  # from this c on λ³ h'' is least at λ = 1 (derived: on a grid of λ; 0.7 is too small)


def log_penalty(t: Any, c: float) -> Any:
    """Log g(t) for t ≥ 0, in any array namespace. It is infinite at 0 and where t^c overflows float64."""
    xp = namespace(t)
    positive = t > 0
    power = c * xp.abs(xp.log(xp.where(positive, t, 1.0)))
    u = xp.exp(power.clip(max=LARGEST_EXP))
    return xp.where(positive & (power < LARGEST_EXP), xp.logaddexp(u, 1 / u) - math.log(2.0) - 1.0, math.inf)


def eigenvalue_loss(eigenvalue: float, c: float) -> float:
    """``h(λ)``."""
    u = eigenvalue ** (c / 2)
    return (math.exp(u) + math.exp(1 / u)) / (2 * math.e)


def eigenvalue_slope(eigenvalue: float, c: float) -> float:
    """``h'(λ)``."""
    u = eigenvalue ** (c / 2)
    return c / 2 * (u * math.exp(u) - math.exp(1 / u) / u) / (2 * math.e) / eigenvalue


def curvature(eigenvalue: float, c: float) -> float:
    """``λ² h''(λ)``; ``h + κ log`` is convex where this is at least κ."""
    u = eigenvalue ** (c / 2)
    half = c / 2
    falling = math.exp(1 / u) / u * (half * (1 + 1 / u) + 1)
    rising = math.exp(u) * u * (half * (1 + u) - 1)
    return half / (2 * math.e) * (falling + rising)


def loss_below(eigenvalues: Any, c: float) -> Any:
    """``h₋``: ``h − 1`` below one and 0 above, convex and decreasing; in any array namespace."""
    xp = namespace(eigenvalues)
    with np.errstate(divide="ignore", over="ignore"):
        u = xp.clip(eigenvalues, 0.0, 1.0) ** (c / 2)
        return (xp.exp(u) + xp.exp(1 / u)) / (2 * math.e) - 1


def loss_above(eigenvalues: Any, c: float) -> Any:
    """``h₊``: ``h − 1`` above one and 0 below, increasing; in any array namespace."""
    xp = namespace(eigenvalues)
    return loss_below(1 / xp.clip(eigenvalues, 1.0, None), c)


def eigenvalue_of_loss(loss: float, c: float) -> float:
    """Return λ ≥ 1 with ``h(λ) = loss``; 1/λ has the same loss. It is infinite where λ overflows float64."""
    # log of e^u + e^{1/u} = 2e·loss; u ≤ log(2e·loss) since e^u ≤ 2e·loss
    target = math.log(2 * loss) + 1

    def excess(u: float) -> float:
        return u + math.log1p(math.exp(1 / u - u)) - target

    if excess(1.0) >= 0:
        return 1.0
    u = find_root(excess, 1.0, target) if excess(target) > 0 else target
    exponent = 2 / c * math.log(u)
    return math.exp(exponent) if exponent < LARGEST_EXP else math.inf


def stiffness(c: float, excess: float) -> float:
    """Return a μ with ``h(λ) ≥ 1 + μ (λ − 1)²`` wherever ``h(λ) ≤ 1 + excess``.

    Hence ``l(S) ≥ k + μ ‖G_S − I‖²`` in the Frobenius norm, for every S of k columns and loss at most k + excess. This
    bound consists of pairs and is valid for every c. Near 1 the ratio is c²/4. Farther away h is monotone on either
    side of 1, so the ends of an interval bound it inside.
    """
    last = eigenvalue_of_loss(1 + excess, c) * (1 + 1e-9)
    near, ratio = 1e-4, 1.001

    def least(farthest: float, loss: Callable[[Array, float], Array], sign: int) -> float:
        steps = math.ceil(math.log(farthest / near) / math.log(ratio)) if farthest > near else 0
        ends: Array = near * ratio ** np.arange(steps, dtype=np.float64)
        return float(np.min(loss(1 + sign * ends, c) / (ends * ratio) ** 2, initial=np.inf))

    return min(0.99 * c * c / 4, least(last - 1, loss_above, 1), least(1 - 1 / last, loss_below, -1))


def find_root(function: Callable[[float], float], lower: float, upper: float, tolerance: float = 1e-15) -> float:
    """Find a root between lower and upper, where the function changes sign: false position (Illinois) and bisection.

    It is faster here than `scipy.optimize.brentq`, whose import alone takes longer than a small search.
    """
    at_lower, at_upper = function(lower), function(upper)
    if at_lower == 0 or at_upper == 0:
        return lower if at_lower == 0 else upper
    for _ in range(200):
        width = upper - lower
        middle = lower + width * at_lower / (at_lower - at_upper)
        if not min(lower, upper) < middle < max(lower, upper):
            middle = (lower + upper) / 2
        value = function(middle)
        if value == 0:
            return middle
        if (value > 0) == (at_upper > 0):
            upper, at_upper, at_lower = middle, value, at_lower / 2
        else:
            lower, at_lower, at_upper = middle, value, at_upper / 2
        if abs(upper - lower) > 0.5 * abs(width):
            middle = (lower + upper) / 2
            value = function(middle)
            if (value > 0) == (at_upper > 0):
                upper, at_upper = middle, value
            else:
                lower, at_lower = middle, value
        if abs(upper - lower) <= tolerance * (abs(lower) + abs(upper)):
            break
    return (lower + upper) / 2


# --------------------------------------------------------------------------------------------- the loss of a spectrum


def to_loss(log_loss: float) -> float:
    """Return e^log_loss, or infinity without a warning where it overflows float64."""
    return float(np.exp(log_loss)) if log_loss < LARGEST_EXP else float("inf")


def log_sum(log_losses: Array) -> Array:
    """Return log Σ l_i from the log l_i, along the last axis."""
    return np.logaddexp.reduce(log_losses, axis=-1)


def singular_value_error(sigma: Array) -> Array:
    """Return the error of singular values that LAPACK computes (descending, last axis): k eps σ_1."""
    return np.finfo(np.float64).eps * sigma.shape[-1] * sigma[..., :1]


def is_dependent(sigma: Array) -> NDArray[np.bool_]:
    """Whether columns with these singular values (descending, last axis) are dependent to working precision."""
    return sigma[..., -1] <= singular_value_error(sigma)[..., 0]


def log_spectral_loss(sigma: Array, c: float) -> Array:
    """Return log Σ_d g(σ_d) for singular values (descending, last axis). It is infinite for dependent columns."""
    return np.where(is_dependent(sigma), np.inf, _log_total_penalty(sigma, c))


def least_log_spectral_loss(sigma: Array, c: float) -> Array:
    """Return a lower bound on `log_spectral_loss` in exact arithmetic: each singular value moves towards 1 by its
    error.
    """
    error = singular_value_error(sigma)
    moved = np.where(sigma < 1, np.minimum(sigma + error, 1.0), np.maximum(sigma - error, 1.0))
    total = _log_total_penalty(moved, c)
    return np.where(total < np.inf, total * (1 - 8 * np.finfo(np.float64).eps), np.inf)


def _log_total_penalty(t: Array, c: float) -> Array:
    """Return log Σ g(t) over the last axis."""
    terms = log_penalty(t, c)
    top = terms.max(axis=-1)
    finite = np.where(top < np.inf, top, 0.0)
    with np.errstate(over="ignore"):
        return np.where(top < np.inf, finite + np.log(np.exp(terms - finite[..., None]).sum(axis=-1)), np.inf)


# ----------------------------------------------------------------------------------------- the loss of a set of columns


def isometry_loss(X: ArrayLike, c: float = 1.0) -> float:
    """Return the paper's loss l_c(X) = Σ g(σ_d), g(t) = (e^{t^c} + e^{t^-c}) / 2e, over the singular values of X.

    Parameters
    ----------
    X : array_like, shape (D, k) with k ≤ D
        The selected columns.
    c : float
        The paper's exponent. A larger c penalizes deviations from 1 more.

    Returns
    -------
    float
        At least k, and k if and only if the columns are orthonormal. Infinite if they are linearly dependent, or if
        the value overflows float64. `log_isometry_loss` does not overflow.

    Examples
    --------
    >>> import numpy as np
    >>> round(isometry_loss(np.eye(3)), 12)
    3.0
    >>> round(isometry_loss([[2.0, 0.0], [0.0, 0.5]]), 6)
    3.324812
    """
    return to_loss(log_isometry_loss(X, c))


@on_one_blas_thread
def log_isometry_loss(X: ArrayLike, c: float = 1.0) -> float:
    """Return the logarithm of `isometry_loss`, which is finite for all independent columns.

    Examples
    --------
    >>> import numpy as np
    >>> log_isometry_loss(0.1 * np.eye(2), c=10) > 1e9
    True
    """
    values = as_matrix(X, wide=False).values
    D, k = values.shape
    if k > D:
        raise ShapeError(f"{k} columns in {D} dimensions are dependent, so their loss is infinite. Pass at most {D}.")
    return float(log_spectral_loss(spectrum(values), as_exponent(c)))


def multitask_norm(B: ArrayLike) -> float:
    """Return ‖B‖_{1,2} = Σ_p ‖B_p‖, the sum of the lengths of the rows of B.

    Examples
    --------
    >>> multitask_norm([[3.0, 4.0], [0.0, 0.0], [0.0, 1.0]])
    6.0
    """
    return float(np.linalg.norm(as_matrix(B, wide=False).values, axis=1).sum())
