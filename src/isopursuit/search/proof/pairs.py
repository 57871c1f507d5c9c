"""The graph of compatible pairs: columns that can be together in a subset better than the incumbent.

For every subset S of k columns whose loss is at most k + excess, with μ = `penalty.stiffness`,

    l(S) ≥ k + μ ‖G_S − I‖² = k + μ Σ_{p∈S} [(‖x_p‖² − 1)² + Σ_{q∈S, q≠p} (x_pᵀx_q)²]        (Frobenius norm)

since tr (G − I)² is the sum of (λ − 1)² over the eigenvalues. So the sum of squares of a better subset is less than
ρ = (incumbent − k)/μ. Two columns are *compatible* if their squares plus the least possible squares of the others sum
to less than ρ. A column stays if the same is true with its cheapest k − 1 compatible partners. If the incumbent is near
an orthonormal basis, few columns stay. The cost is one inner product and one comparison per pair.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.clock import Clock
from isopursuit._core.types import Array

ROWS, WIDTH = 64, 2**11  # columns compared at once (derived: a block of 0.5 MB fits into the cache of a core)
MAX_PAIRS = 8_000_000  # most compatible pairs that are kept (derived: 96 MB)
SORTED_PAIRS = 3e6  # pairs sorted and pruned per second, a low estimate (measured: 5.4e6 per second of processor time)
PARTNERS = 128  # mean number of compatible columns at a typical cost (chosen: a graph then takes 1.5 kB for a column)
SAMPLE = 2**21  # inner products computed for that mean (derived: 16 MB; 0.02 s)


@dataclass(frozen=True)
class PairCosts:
    """The parts of ‖G − I‖²: `own` (N,) of each column and `base` of the included ones; and μ from `stiffness`."""

    own: Array
    base: float
    stiffness: float


@dataclass(frozen=True)
class Graph:
    """Compatible pairs, sorted by the first column and then by the cost of the second: arrays (E,)."""

    one: NDArray[np.int32]
    other: NDArray[np.int32]
    cost: NDArray[np.float32]

    def roots(self, count: int) -> list[tuple[int, NDArray[np.int32]]]:
        """Every column with its compatible columns among those after it. Columns with few partners come first."""
        degree = np.bincount(self.one, minlength=count)
        order = np.argsort(degree, kind="stable")
        rank = np.empty(count, dtype=np.int64)
        rank[order] = np.arange(count)
        later = rank[self.other] > rank[self.one]
        one, other = self.one[later], self.other[later]
        starts = np.searchsorted(one, np.arange(count + 1))
        return [(int(p), other[starts[p] : starts[p + 1]]) for p in order[degree[order] > 0]]


def typical_cost(X: Array, costs: PairCosts, missing: int) -> float:
    """The sum of squares below which a column of X (D, N) has PARTNERS compatible ones on average."""
    own, count = costs.own, len(costs.own)
    few = np.linspace(0, count - 1, min(2 * PARTNERS, 1 + SAMPLE // count, count)).astype(np.intp)
    pairs = 2 * (X[:, few].T @ X) ** 2 + own + own[few][:, None]
    pairs[np.arange(len(few)), few] = np.inf
    partners = min(PARTNERS, MAX_PAIRS // (2 * count), count // 4) * len(few)
    rest = costs.base + np.sort(own)[: max(missing - 2, 0)].sum()
    return float(np.partition(pairs, partners, axis=None)[partners] + rest)


def compatible(X: Array, costs: PairCosts, budget: float, missing: int, clock: Clock) -> Graph | None:
    """The pruned graph of the columns X (D, N), or None if it has too many edges or takes too long.

    A subset's sum of squares is the sum of its columns' costs and, for each pair, twice the squared inner product.
    `missing` columns must be picked, and their sum of squares must be below `budget`.
    """
    own, base = costs.own, costs.base
    rest = base + float(np.sort(own)[: max(missing - 2, 0)].sum())
    longest = float(np.einsum("dp,dp->p", X, X).max())
    if budget - rest > 2 * longest * longest + 2 * float(own.max()):
        return None  # all pairs
    found: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]] = []
    edges, N, left, columns = 0, len(own), budget - rest - own, np.ascontiguousarray(X.T)
    for first, start in ((a, b) for a in range(0, N, ROWS) for b in range(a, N, WIDTH)):
        some, beside = slice(first, min(first + ROWS, N)), slice(start, start + WIDTH)
        with np.errstate(over="ignore"):
            square = 2 * (columns[some] @ X[:, beside]) ** 2
        i, j = np.nonzero(np.triu(square + own[beside] < left[some, None], first - start + 1))
        edges += 2 * len(i)
        if clock.expired or edges > MAX_PAIRS:
            return None
        cost = (square[i, j] * (1 - 1e-6)).astype(np.float32)
        found.append(((i + first).astype(np.int32), (j + start).astype(np.int32), cost))
    if edges / SORTED_PAIRS > clock.remaining:
        return None
    one, other, square = (np.concatenate(part) for part in zip(*found, strict=True))
    return _pruned((one, other, square), costs, budget, missing)


def _pruned(
    pairs: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]],
    costs: PairCosts,
    budget: float,
    missing: int,
) -> Graph:
    """Drop columns whose cheapest partners cost too much, until no more can be dropped."""
    (one, other, square), own, base, count = pairs, costs.own, costs.base, len(costs.own)
    one, other = np.concatenate([one, other]), np.concatenate([other, one])
    cost = np.concatenate([square, square]) + (own[other] * (1 - 1e-6)).astype(np.float32)
    order = np.lexsort((cost, one))
    one, other, cost = one[order], other[order], cost[order]
    while True:
        starts = np.searchsorted(one, np.arange(count))
        cheapest = np.arange(len(one)) - starts[one] < missing - 1
        star = np.bincount(one[cheapest], cost[cheapest], count)
        enough = np.bincount(one, minlength=count) >= missing - 1
        stays = enough & (base + own + star < budget)
        edges = stays[one] & stays[other]
        if edges.all():
            return Graph(one, other, cost)
        one, other, cost = one[edges], other[edges], cost[edges]
