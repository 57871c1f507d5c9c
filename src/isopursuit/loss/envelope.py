"""Convex lower bounds on the loss: envelopes of one eigenvalue, and least majorants of many.

The loss of a subset is ``tr h(M)`` with ``M`` the sum of its columns' outer products (penalty.py). The exact search
bounds it from below by ``tr q_κ(M) − κ log det M``, where ``q_κ`` is the convex envelope of ``h + κ log`` on the
eigenvalues that a subset better than the incumbent can have. ``λ² h''(λ)`` falls and then rises (checked for c from
0.05 to 10), so ``h + κ log`` is concave on at most one interval, and each envelope is linear on at most one interval,
that of the common tangent. Below CONVEX_EXPONENT it exists for h itself (κ = 0), and ends at the largest eigenvalue:
the smaller that is, the better the bound. So there are envelopes for several ranges, and a node takes the least one.

**Fewer columns than rows.** M_S of k columns has k nonzero eigenvalues. A matrix M(w) with 0 ≤ w ≤ 1, Σ w = k is an
average of such matrices, and the sorted eigenvalues of an average are majorized by the average of the sorted
eigenvalues. So some vector μ of k entries majorizes λ(M), and for convex h the average of Σ h(λ(M_S)) is at least
Σ h(μ). The least such vector is

    μ = (λ_1, …, λ_ι, a, …, a),   a = Σ_{i>ι} λ_i / (k − ι),   λ_ι > a ≥ λ_{ι+1},

and F_k(M) = Σ h(μ_i) is convex in M: a partial minimum of a convex function over a convex set. Its gradient is
V diag(h'(λ_1), …, h'(λ_ι), h'(a), …, h'(a)) Vᵀ. With as many dimensions as columns F_k(M) = tr h(M).

Every such matrix gives a bound: take any orthonormal V and any numbers μ_1 ≥ … ≥ μ_k, and K = V diag(κ) Vᵀ with
κ_i = h'(μ_i) for i ≤ k and κ_i = h'(μ_k) beyond. Then for every M of rank k, tr(K M) ≤ Σ κ_i λ_i(M) (von Neumann, κ
descends), so Σ h(λ_i) ≥ Σ [h(μ_i) − κ_i μ_i] + tr(K M). Rounding of the eigenpairs moves the point of tangency, and the
bound stays valid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from isopursuit._core.types import Array
from isopursuit.loss.penalty import (
    CONVEX_EXPONENT,
    curvature,
    eigenvalue_loss,
    eigenvalue_of_loss,
    eigenvalue_slope,
    find_root,
)

# κ of the log-det split, relative to the largest κ for which h + κ log is convex (measured on the ladder: 3 is
# 7 to 13 times slower on unit-length columns, 8 × 300 and 9 × 120, and 6 % faster on breast cancer 12 × 569).
SPLIT = 1.28
# The same relative to c² where h is not convex (measured by the ladder's "wine8 c=0.4": between 0.06 and 0.22 it makes
# no difference, 0.45 takes six times as long)
FLAT_SPLIT = 0.11
# Where h is not convex: largest eigenvalues for which there are envelopes, each a share of the one before (measured by
# the ladder's "wine8 c=0.4": without them it takes twice as long)
RANGES, RANGE_STEP = 8, 0.9


@dataclass(frozen=True)
class Relaxation:
    """Envelopes ``q_κ`` of ``h + κ log λ`` in the layout that the node kernel reads.

    Attributes
    ----------
    c : float
        Exponent of the loss.
    low, high : float
        The envelopes are valid between these eigenvalues. Outside they continue as tangents.
    rows : (2 R, 6) array
        Two rows for each of R largest eigenvalues, descending from `high`: κ = 0 and the κ of the log-det split. A row
        has κ, left and right end of the linear interval, the value at its left end, its slope, and the largest
        eigenvalue. If the envelope is linear up to that, it continues so, and the right end is infinite.
    """

    c: float
    low: float
    high: float
    rows: Array

    def envelope(self, eigenvalue: float, row: int) -> tuple[float, float]:
        """Return value and slope of ``q_κ`` at one eigenvalue, a reference for the kernel."""
        kappa, left, right, value, slope, _ = self.rows[row].tolist()
        inside = min(max(eigenvalue, self.low), self.high)
        if left <= inside <= right:
            return value + slope * (eigenvalue - left), slope
        slope = _slope(inside, self.c, kappa)
        return _value(inside, self.c, kappa) + slope * (eigenvalue - inside), slope


def relax(c: float, dimension: int, incumbent: float, trace: float) -> Relaxation:
    """Tabulate the envelopes for the search for a subset better than the incumbent.

    Parameters
    ----------
    c : float
        Exponent of the loss.
    dimension : int
        Number of columns D of a subset.
    incumbent : float
        Loss of the best subset known.
    trace : float
        Largest possible trace of M: the sum of the D largest squared column lengths.
    """
    # λ_min of a better subset has h(λ) < incumbent; the factor 4 keeps the tangent below it steep.
    low = eigenvalue_of_loss(4 * max(incumbent, 5.0), c) ** -1.0
    # λ_max of a better subset has h(λ) + (D − 1) < incumbent, and no eigenvalue exceeds the trace.
    high = min(eigenvalue_of_loss(max(incumbent - dimension + 1, 1.0) * (1 + 1e-9), c), trace) * (1 + 1e-9)
    high = max(high, 2 * low)
    flattest = _flattest(c)
    convex = c >= CONVEX_EXPONENT
    # the largest κ is 0.351 at c = 1 and falls to 0; a proportion of c² is used instead of less
    split = SPLIT * max(curvature(math.exp(flattest), c), 0.35 * c * c) if convex else FLAT_SPLIT * c * c
    ends = [high] if convex else np.maximum(high * RANGE_STEP ** np.arange(RANGES), 2 * low).tolist()
    rows = [_row(kappa, c, low, end, flattest) for end in ends for kappa in (0.0, split)]
    return Relaxation(c, low, high, np.array(rows))


def _value(eigenvalue: float, c: float, kappa: float) -> float:
    return eigenvalue_loss(eigenvalue, c) + kappa * math.log(eigenvalue)


def _slope(eigenvalue: float, c: float, kappa: float) -> float:
    return eigenvalue_slope(eigenvalue, c) + kappa / eigenvalue


def _flattest(c: float) -> float:
    """Log λ where ``λ² h''`` is smallest, by golden section (it falls, then rises)."""
    # The minimum has 0 < log u, and u < 2/c + 1 since the rising term then increases.
    lower, upper = 0.0, 2 / c * math.log(2 / c + 1)
    golden = (math.sqrt(5) - 1) / 2
    while upper - lower > 1e-9 * (1 + upper):
        left, right = upper - golden * (upper - lower), lower + golden * (upper - lower)
        if curvature(math.exp(left), c) < curvature(math.exp(right), c):
            upper = right
        else:
            lower = left
    return (lower + upper) / 2


def _row(kappa: float, c: float, low: float, high: float, flattest: float) -> tuple[float, ...]:
    """The envelope of ``h + κ log`` on [low, high], which is linear on at most one interval and beyond high."""
    start, end = math.log(low), math.log(high)
    middle = min(max(flattest, start), end)

    def concavity(point: float) -> float:
        return curvature(math.exp(point), c) - kappa

    if concavity(middle) >= 0:
        return kappa, high, math.inf, _value(high, c, kappa), _slope(high, c, kappa), high
    # h + κ log is concave exactly between the two inflections.
    first = start if concavity(start) <= 0 else find_root(concavity, start, middle, 1e-9)
    last = end if concavity(end) <= 0 else find_root(concavity, middle, end, 1e-9)

    def touch(slope: float, lower: float, upper: float) -> float:
        """Where a line of this slope supports the convex branch between lower and upper (logarithms)."""

        def excess(point: float) -> float:
            return _slope(math.exp(point), c, kappa) - slope

        if excess(lower) >= 0:
            return math.exp(lower)
        if excess(upper) <= 0:
            return math.exp(upper)
        # The height of the line is stationary here, so half of the digits suffice.
        return math.exp(find_root(excess, lower, upper, 1e-9))

    # The common tangent by Newton's method: the next slope is that of the chord between the touching points.
    left, right, slope = math.exp(first), math.exp(last), math.inf
    for _ in range(100):
        chord = (_value(right, c, kappa) - _value(left, c, kappa)) / (right - left)
        if abs(chord - slope) <= 1e-15 * abs(chord):
            break
        slope = chord
        left, right = touch(slope, start, first), touch(slope, last, end)
    # An interval that reaches the end of the range up to rounding ends there exactly.
    left, right = (low if left <= low * (1 + 1e-12) else left), (high if right >= high * (1 - 1e-12) else right)
    value = min(_value(left, c, kappa), _value(right, c, kappa) - slope * (right - left))
    return kappa, left, right if right < high else math.inf, value, slope, high


class Majorant(NamedTuple):
    """ι, the number of eigenvalues that stay unchanged, and the average a that replaces the others."""

    top: int
    average: float


def least_majorant(eigenvalues: Array, k: int) -> Majorant:
    """Return ι and a for eigenvalues in descending order."""
    rest = np.append(np.cumsum(eigenvalues[::-1])[::-1], 0.0)  # sums of the last ones
    for top in range(k - 1):
        average = float(rest[top] / (k - top))
        if average >= eigenvalues[top]:
            return Majorant(top, average)
    return Majorant(k - 1, float(rest[k - 1]))


def spread(eigenvalues: Array, k: int) -> Array:
    """Return one number for each eigenvalue (descending): the first ι eigenvalues, and a for all others.

    The first k numbers are μ. The derivative h' at these numbers gives the gradient's eigenvalues.
    """
    top, average = least_majorant(eigenvalues, k)
    return np.concatenate([eigenvalues[:top], np.full(len(eigenvalues) - top, average)])
