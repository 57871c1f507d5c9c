"""Compatible pairs: columns that can be together in a subset better than the incumbent.

For every subset S of k columns whose loss is at most k + excess, with μ = `penalty.stiffness`,

    l(S) ≥ k + μ ‖G_S − I‖² = k + μ Σ_{p∈S} [(‖x_p‖² − 1)² + Σ_{q∈S, q≠p} (x_pᵀx_q)²]        (Frobenius norm)

since tr (G − I)² is the sum of (λ − 1)² over the eigenvalues. So the sum of squares of a better subset is less than
ρ = (incumbent − k)/μ. Two columns are *compatible* if their squares plus the least possible squares of the others sum
to less than ρ. If the incumbent is near an orthonormal basis, few pairs are. The cost is one inner product and one
comparison per pair.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.clock import Clock
from isopursuit._core.types import Array

ROWS, WIDTH = 64, 2**11  # columns compared at once (derived: a block of 0.5 MB fits into the cache of a core)
MAX_PAIRS = 4_000_000  # most compatible pairs that are kept (derived: 32 MB)
PARTNERS = 128  # mean number of compatible columns at a typical cost (chosen: pairs then take 1 kB for a column)
SAMPLE = 2**21  # inner products computed for that mean (derived: 16 MB; 0.02 s)


def typical_cost(X: Array, own: Array, missing: int) -> float:
    """The sum of squares below which a column of X (D, N) has PARTNERS compatible ones on average; see `compatible`."""
    count = len(own)
    few = np.linspace(0, count - 1, min(2 * PARTNERS, 1 + SAMPLE // count, count)).astype(np.intp)
    pairs = 2 * (X[:, few].T @ X) ** 2 + own + own[few][:, None]
    pairs[np.arange(len(few)), few] = np.inf
    partners = min(PARTNERS, MAX_PAIRS // count, count // 4) * len(few)
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
    edges, N, columns = 0, len(own), np.ascontiguousarray(X.T)
    for first, start in ((a, b) for a in range(0, N, ROWS) for b in range(a, N, WIDTH)):
        some, beside = slice(first, min(first + ROWS, N)), slice(start, start + WIDTH)
        with np.errstate(over="ignore"):
            square = 2 * (columns[some] @ X[:, beside]) ** 2
        i, j = np.nonzero(np.triu(square + own[beside] < left[some, None], first - start + 1))
        edges += len(i)
        if clock.expired or edges > MAX_PAIRS:
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
