"""The loss of k columns in more than k dimensions, as a convex function of M = Σ w x xᵀ.

M_S of k columns has k nonzero eigenvalues. A matrix M(w) with 0 ≤ w ≤ 1, Σ w = k is an average of such
matrices, and the sorted eigenvalues of an average are majorized by the average of the sorted eigenvalues. So some
vector μ of k entries majorizes λ(M), and for convex h the average of Σ h(λ(M_S)) is at least Σ h(μ). The least such
vector is

    μ = (λ_1, …, λ_ι, a, …, a),   a = Σ_{i>ι} λ_i / (k − ι),   λ_ι > a ≥ λ_{ι+1},

and F_k(M) = Σ h(μ_i) is convex in M: a partial minimum of a convex function over a convex set. Its gradient is
V diag(h'(λ_1), …, h'(λ_ι), h'(a), …, h'(a)) Vᵀ. With as many dimensions as columns F_k(M) = tr h(M).

**Every such matrix gives a bound.** Take any orthonormal V and any numbers μ_1 ≥ … ≥ μ_k, and K = V diag(κ) Vᵀ with
κ_i = h'(μ_i) for i ≤ k and κ_i = h'(μ_k) beyond. Then for every M of rank k, tr(K M) ≤ Σ κ_i λ_i(M) (von Neumann, κ
descends), so Σ h(λ_i) ≥ Σ [h(μ_i) − κ_i μ_i] + tr(K M). Rounding of the eigenpairs moves the point of tangency, and the
bound stays valid.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isopursuit._core.types import Array


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
