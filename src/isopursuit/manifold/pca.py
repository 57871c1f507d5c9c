"""The principal components of neighbourhoods, a few neighbourhoods at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import numpy as np
from scipy.linalg import eigh

from isopursuit._core.linalg import fix_signs
from isopursuit._core.types import Array, Indices, Mask
from isopursuit.errors import ParameterError, unknown_option
from isopursuit.manifold.neighbours import Neighbours

Weights = Literal["gaussian"] | Callable[[Array], Array]
SMALL = 48  # up to this size, all eigenvectors of matrices are computed in batches
QUERIES = 256  # most points whose neighbours are searched at once (guess)
BLOCK_WORK = 4e9  # floating-point operations between two calls of the callback: about half a second (guess)
WITHIN = 1000  # expected number of neighbours within a radius (guess)
ENTRIES = 1 << 20  # numbers gathered at once; they fit in the cache


class LocalPCA:
    """The principal components of neighbourhoods, a few at a time."""

    def __init__(
        self, values: Array, weights: Weights | None, neighbours: int | None, radius: float | None, leading: int
    ) -> None:
        self.values, self.weights, self.radius, self.leading = values, weights, radius, leading
        self.expected = neighbours or min(len(values), WITHIN)

    def run(
        self,
        search: Callable[[Array], Neighbours],
        where: Array,
        D: int,
        workers: int,
        callback: Callable[[int, int], object] | None,
    ) -> tuple[Array, Array, Array, Indices]:
        """Bases, spectra, total variances and numbers of neighbours at all these places."""
        n, B = where.shape
        bases, spectra, totals = np.empty((n, B, D)), np.zeros((n, self.leading)), np.empty(n)
        counts = np.empty(n, dtype=np.intp)

        def at(block: slice) -> int:
            numbers, distances, there = search(where[block])
            counts[block] = there.sum(axis=1)
            for part in slices(len(numbers), max(1, ENTRIES // max(numbers.shape[1] * B, 1))):
                target = slice(block.start + part.start, block.start + part.stop)
                spread, size = self._moments(numbers[part], distances[part], there[part])
                totals[target] = np.trace(size, axis1=1, axis2=2)
                found, spectrum = _leading(spread, size, max(D, self.leading), D)
                spectra[target, : spectrum.shape[1]] = spectrum[:, : self.leading]
                bases[target] = found
            return len(numbers)

        done = 0
        with ThreadPoolExecutor(workers) as pool:
            for count in pool.map(at, slices(n, self._block(workers))):
                done += count
                if callback is not None:
                    callback(done, n)
        return bases, spectra, totals, counts

    def _block(self, workers: int) -> int:
        """How many points to process at once; each needs distances to all points, products, and eigenvectors."""
        (N, B), count = self.values.shape, self.expected
        size = min(count, B)
        work = 2.0 * N * B + 2.0 * size * count * B + 10.0 * size**3
        return int(np.clip(BLOCK_WORK / work / workers, 1, QUERIES))

    def _moments(self, numbers: Indices, distances: Array, there: Mask) -> tuple[Array, Array]:
        """Neighbours minus their mean, times √weight, Y (m, k, B), and the smaller of YᵀY and YYᵀ."""
        Y = self.values[numbers]
        Y -= Y[:, :1].copy()  # differences of close points are exact, even far from the origin
        if self.weights is None and there.all():
            Y -= Y.mean(axis=1, keepdims=True)
            Y /= np.sqrt(Y.shape[1])
        else:
            w = np.where(there, self._weights(distances, there), 0.0)
            w /= np.maximum(w.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
            Y -= np.einsum("mk,mkb->mb", w, Y)[:, None]
            Y *= np.sqrt(w)[..., None]
        turned = np.swapaxes(Y, 1, 2)
        return Y, turned @ Y if Y.shape[1] >= Y.shape[2] else Y @ turned

    def _weights(self, distances: Array, there: Mask) -> Array:
        if self.weights is None:
            return np.ones_like(distances)
        if self.weights == "gaussian":
            edge = self.radius or np.where(there, distances, 0.0).max(axis=1, keepdims=True)
            return np.exp(-2 * (distances / np.maximum(edge, np.finfo(np.float64).tiny)) ** 2)
        if not callable(self.weights):
            raise unknown_option("weights", self.weights, ("gaussian",), "a function of distance, or None")
        w = np.asarray(self.weights(distances), dtype=np.float64)
        if w.shape != distances.shape or not np.isfinite(w).all() or (w < 0).any():
            raise ParameterError(
                f"weights must map distances of shape {distances.shape} to as many finite numbers ≥ 0; got {w.shape}."
            )
        return w


def _leading(Y: Array, squares: Array, count: int, D: int) -> tuple[Array, Array]:
    """The D leading directions (m, B, D) and `count` leading variances, from YᵀY or YYᵀ."""
    size = squares.shape[1]
    count = min(count, size)
    if size <= SMALL:
        values, vectors = (np.asarray(part, dtype=np.float64) for part in np.linalg.eigh(squares))
        values, vectors = values[:, -count:], vectors[:, :, size - min(D, size) :]
    else:
        some: list[tuple[Array, Array]] = [
            eigh(one, subset_by_index=[size - count, size - 1], check_finite=False) for one in squares
        ]
        values = np.stack([e for e, _ in some])
        vectors = np.stack([v for _, v in some])[:, :, count - min(D, count) :]
    vectors = vectors[:, :, ::-1]
    if size != Y.shape[2]:  # v = Yᵀu / σ
        vectors = np.linalg.qr(np.swapaxes(Y, 1, 2) @ vectors)[0]
    if vectors.shape[2] < D:  # too few neighbours, which is refused when all are known
        vectors = np.pad(vectors, [(0, 0), (0, 0), (0, D - vectors.shape[2])])
    return fix_signs(vectors), np.maximum(values[:, ::-1], 0.0)


def slices(total: int, size: int) -> Iterator[slice]:
    """Slices of at most `size` that cover 0 … total − 1."""
    return (slice(first, min(first + size, total)) for first in range(0, total, size))
