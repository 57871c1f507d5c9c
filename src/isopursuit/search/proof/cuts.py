"""Cuts that exclude columns, or pairs of columns, from every subset better than the incumbent.

One pass evaluates all columns. Each bound is a sum over a subset S ⊇ S', with S' included and m columns missing:

    l(S) ≥ base + Σ_{p ∈ S∖S'} score_p        for every S better than the incumbent.

Hence base + (the m smallest scores) is a lower bound over all columns, and p is in no better subset if base + (the
m − 1 smallest scores) + score_p is not below the incumbent. There are two cuts:

- *frame* (below): the score is μ [(‖x‖² − 1)² + 2‖X_S'ᵀx‖²]. It excludes columns of unsuitable length, and those far
  from orthogonal to S'.
- *tangent*: for any symmetric K with eigenvalues κ_1 ≥ κ_2 ≥ … and q ≤ h on the eigenvalues of a better subset,

      l(S) ≥ Σ_{p ∈ S} x_pᵀK x_p − Σ_{i ≤ k} max_t (κ_i t − q(t)),

  because q(λ_i) ≥ κ_i λ_i − max_t (κ_i t − q(t)) and Σ κ_i λ_i ≥ tr(K M_S) (von Neumann). K = q'(M(w)) makes it the
  tangent of the convex relaxation at w, where q is the convex envelope of h (loss/envelope.py), and the maximum is
  attained at the eigenvalues of M(w); with fewer columns than rows, at their least majorant (loss/envelope.py).

**Compatible pairs** are columns that can be together in a subset better than the incumbent. For every subset S
of k columns whose loss is at most k + excess, with μ = `penalty.stiffness`,

    l(S) ≥ k + μ ‖G_S − I‖² = k + μ Σ_{p∈S} [(‖x_p‖² − 1)² + Σ_{q∈S, q≠p} (x_pᵀx_q)²]        (Frobenius norm)

since tr (G − I)² is the sum of (λ − 1)² over the eigenvalues. So the sum of squares of a better subset is less than
ρ = (incumbent − k)/μ. Two columns are *compatible* if their squares plus the least possible squares of the others sum
to less than ρ. If the incumbent is near an orthonormal basis, few pairs are. The cost is one inner product and one
comparison per pair.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.clock import Clock
from isopursuit._core.linalg import namespace, on_host
from isopursuit._core.types import Array, Indices
from isopursuit.data._matrix import LARGEST
from isopursuit.loss.envelope import Relaxation, spread
from isopursuit.loss.penalty import ROUNDING
from isopursuit.search.settings import ENTRIES, TABLE_BYTES
from isopursuit.sources.tasks import TopK, Transform, on_same_device, pieces, usable

PARTNERS = 128  # mean number of compatible columns at a typical cost (derived: pairs then take 1 kB for a column)


@dataclass(frozen=True)
class Cuts:
    """The frame cut and, once it is known, the tangent.

    `bases` (J,) are the bases. `least` (J,) are the sums of the m − 1 smallest scores, −∞ if not yet known.
    """

    relaxation: Relaxation
    stiffness: float
    included: Array  # (j, D)
    missing: int
    bases: Array
    least: Array
    tangent: Array | None = None  # K, (D, D)

    @classmethod
    def initial(cls, included: Array, relaxation: Relaxation, stiffness: float, missing: int) -> Cuts:
        """The frame cut. Its scores are not negative, so `least` is at least 0."""
        j = len(included)
        gram = included @ included.T - np.eye(j)
        base = (j + missing + stiffness * float((gram**2).sum())) * (1 - ROUNDING)
        return cls(relaxation, stiffness, included, missing, np.array([base]), np.zeros(1))

    def with_tangent(self, w: Array, columns: Array) -> Cuts:
        """The frame cut and the tangent at the weights w of `columns`.

        The inequality holds for any K, so errors of the eigenpairs only move the point of tangency. The scores xᵀKx
        have a rounding error below a few times D eps ‖K‖ ‖x‖², and K is lowered by as much.
        """
        k, rounding = self.missing + len(self.included), 16 * len(columns) * float(np.finfo(np.float64).eps)
        e, V = np.linalg.eigh((columns * w) @ columns.T + self.included.T @ self.included)
        e = spread(np.maximum(e[::-1], 0.0), k) if k < len(e) else e[::-1]
        values, slopes = np.array([self.relaxation.envelope(float(one), 0) for one in e]).T
        K = (V[:, ::-1] * slopes) @ V[:, ::-1].T
        K = (K + K.T) / 2 - rounding * float(np.abs(slopes).max()) * np.eye(len(K))
        base = float((values - slopes * e)[:k].sum() + np.einsum("pi,ij,pj->", self.included, K, self.included))
        base -= ROUNDING * float(np.abs(values[:k]).sum() + 2 * np.abs(slopes * e)[:k].sum())
        bases, least = np.array([self.bases[0], base]), np.array([self.least[0], -np.inf])
        return replace(self, bases=bases, least=least, tangent=K)

    def bounds(self, values: Array) -> Array:
        """The best known bound on the loss of a subset with each of these columns."""
        known = np.isfinite(self.least)
        return (self.bases[known, None] + self.least[known, None] + self.scores(values)[known]).max(axis=0)

    def scores(self, z: Any) -> Array:
        """The scores of columns (D, m), with one row for each cut."""
        xp = namespace(z)
        squares = xp.einsum("dp,dp->p", z, z)
        along = on_same_device(self.included, z) @ z
        off = (xp.clip(squares, 0.0, LARGEST) - 1) ** 2 + 2 * xp.einsum("dp,dp->p", along, along)
        rows = [self.stiffness * (1 - ROUNDING) * off]
        if self.tangent is not None:
            rows.append(xp.einsum("dp,dp->p", z, on_same_device(self.tangent, z) @ z))
        return on_host(xp.stack(rows))


@dataclass(frozen=True)
class FilterResult:
    """The result of one pass: the m smallest scores of every cut (J, m), and the columns that no cut excludes and their
    number.
    """

    least: Array
    kept: TopK
    survivors: int


@dataclass(frozen=True)
class ColumnFilter:
    """One pass with cuts. A column stays if no cut with known `least` raises its bound to the limit."""

    cuts: Cuts
    missing: int
    limit: float
    transform: Transform
    excluded: Indices
    room: int
    bar: float = -np.inf

    def __call__(self, block: Any, first: int) -> FilterResult:
        """The result of one block."""
        known = np.isfinite(self.cuts.least)
        start_from = (self.cuts.bases + self.cuts.least)[known, None]
        least = np.full((len(known), self.missing), np.inf)
        bounds: list[Array] = []
        for start, z in pieces(block, self.transform):
            scores = self.cuts.scores(z)
            squares = on_host(namespace(z).einsum("dp,dp->p", z, z))
            scores[:, ~usable(squares, first + start, self.excluded)] = np.inf
            least = smallest(least, scores, self.missing)
            bounds.append((start_from + scores[known]).max(axis=0))
        bound = np.concatenate(bounds)
        stay = np.flatnonzero(bound < self.limit)
        return FilterResult(least, TopK.pick(block, first, stay, -bound[stay], self.room, self.bar), len(stay))

    def merge(self, one: FilterResult, other: FilterResult) -> FilterResult:
        """Both blocks in one."""
        least = smallest(one.least, other.least, self.missing)
        return FilterResult(least, one.kept.joined(other.kept), one.survivors + other.survivors)

    def after(self, answer: FilterResult) -> ColumnFilter:
        """The task that returns only columns that can still fit into the room; the others are counted, not returned."""
        return replace(self, bar=max(self.bar, answer.kept.bar))


def smallest(one: Array, other: Array, count: int) -> Array:
    """The `count` smallest of both, row by row."""
    both = np.concatenate([one, other], axis=1)
    return np.partition(both, count - 1, axis=1)[:, :count]


def typical_cost(X: Array, own: Array, missing: int) -> float:
    """The sum of squares below which a column of X (D, N) has PARTNERS compatible ones on average; see `compatible`."""
    count = len(own)
    few = np.linspace(0, count - 1, min(2 * PARTNERS, 1 + 8 * ENTRIES // count, count)).astype(np.intp)
    pairs = 2 * (X[:, few].T @ X) ** 2 + own + own[few][:, None]
    pairs[np.arange(len(few)), few] = np.inf
    partners = min(PARTNERS, TABLE_BYTES // 64 // count, count // 4) * len(few)
    return float(np.partition(pairs, partners, axis=None)[partners] + np.sort(own)[: max(missing - 2, 0)].sum())


def compatible(X: Array, own: Array, budget: float, missing: int, clock: Clock) -> NDArray[np.int32] | None:
    """The compatible pairs (2, E) of the columns X (D, N), or None if they are too many or take too long.

    `missing` columns must be picked. Their sum of squares, which must be below `budget`, has `own` (N,) of each column
    and, for each pair, twice the squared inner product.
    """
    left = budget - float(np.sort(own)[: max(missing - 2, 0)].sum()) - own
    longest = float(np.einsum("dp,dp->p", X, X).max())
    if left.min() > 2 * longest * longest + float(own.max()):
        return None  # all pairs
    found: list[NDArray[np.int32]] = []
    edges, N, columns, side = 0, len(own), np.ascontiguousarray(X.T), math.isqrt(ENTRIES)
    for first, start in ((a, b) for a in range(0, N, side) for b in range(a, N, side)):
        some, beside = slice(first, min(first + side, N)), slice(start, start + side)
        with np.errstate(over="ignore"):
            square = 2 * (columns[some] @ X[:, beside]) ** 2
        i, j = np.nonzero(np.triu(square + own[beside] < left[some, None], first - start + 1))
        edges += len(i)
        if clock.expired or edges > TABLE_BYTES // 64:
            return None
        found.append(np.array([i + first, j + start], np.int32))
    return np.concatenate(found, axis=1)


def roots(pairs: NDArray[np.int32], count: int, least: int) -> list[tuple[int, NDArray[np.int32]]]:
    """Each of `count` columns with its compatible columns among those after it, if these are at least so many.

    Columns with few partners come first.
    """
    order = np.argsort(np.bincount(pairs.ravel(), minlength=count), kind="stable")
    rank = np.empty(count, np.int32)
    rank[order] = np.arange(count)
    pairs = np.where(rank[pairs[0]] < rank[pairs[1]], pairs, pairs[::-1])
    by_first = np.argsort(pairs[0], kind="stable")
    one, other = pairs[0][by_first], pairs[1][by_first]
    starts = np.searchsorted(one, np.arange(count + 1))
    partners = ((int(p), other[starts[p] : starts[p + 1]]) for p in order)
    return [(p, some) for p, some in partners if len(some) >= max(least, 1)]
