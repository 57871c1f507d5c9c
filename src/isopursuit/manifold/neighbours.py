"""Nearest neighbours and neighbours within a radius, by a k-d tree, matrix products or pynndescent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from isopursuit._core.linalg import EPS
from isopursuit._core.types import Array, Indices, Mask
from isopursuit.errors import ParameterError, optional, unknown_option

Neighbours = tuple[Indices, Array, Mask]  # (m, k) numbers, distances, and which are there at all

TREE_DIMENSIONS = 15  # neighbours are found by a k-d tree up to here, by matrix products beyond
CHUNK_ENTRIES = 1 << 22  # numbers in the differences computed at once, 32 MB (guess)
# rounding of squared distances, as a share of the points' variance, at which about this share of the points must be
# compared by differences (guess: too few to matter)
UNDECIDED = 1e-6


def neighbour_search(
    values: Array, neighbours: int | None, radius: float | None, method: str
) -> Callable[[Array], Neighbours]:
    """A function that finds the neighbours of a block of places."""
    if method == "approximate":
        if neighbours is None:
            raise ParameterError(
                "method='approximate' finds a fixed number of neighbours. Pass neighbours=, not radius=."
            )
        return _approximate(values, neighbours)
    if method != "exact":
        raise unknown_option("method", method, ("exact", "approximate"))
    if values.shape[1] <= TREE_DIMENSIONS:
        return _by_tree(values, neighbours, radius)
    return _by_products(values, neighbours, radius)


def _by_tree(values: Array, neighbours: int | None, radius: float | None) -> Callable[[Array], Neighbours]:
    from scipy.spatial import cKDTree

    tree: Any = cKDTree(values)

    def nearest(where: Array) -> Neighbours:
        found: tuple[Array, Indices] = tree.query(where, k=np.arange(1, (neighbours or 0) + 1))
        return found[1], found[0], np.ones(found[1].shape, dtype=np.bool_)

    def within(where: Array) -> Neighbours:
        lists: list[list[int]] = list(tree.query_ball_point(where, radius))
        counts = np.array([len(one) for one in lists])
        there = np.arange(max(int(counts.max()), 1)) < counts[:, None]
        numbers = np.zeros(there.shape, dtype=np.intp)
        numbers[there] = [number for one in lists for number in one]
        return numbers, _distances(values[numbers], where[:, None]), there

    return nearest if radius is None else within


def _by_products(values: Array, neighbours: int | None, radius: float | None) -> Callable[[Array], Neighbours]:
    """By ‖x − y‖² = ‖x‖² + ‖y‖² − 2⟨x, y⟩ with a rounding bound; differences decide the remaining cases.

    With x and y centred, rounded once, and sums of B products, the error is at most (B + 8) ε (‖x‖ + ‖y‖)². Centring
    copies all points, so it is left out if the error is small compared to the distances without it.
    """
    rounding = (values.shape[1] + 8) * EPS
    middle, centred = values.mean(axis=0), values
    squares = np.einsum("nb,nb->n", values, values)
    variance = float(squares.mean() - middle @ middle)
    if rounding * 4 * float(squares.max()) <= UNDECIDED * variance:
        middle = np.zeros_like(middle)
    else:
        centred = values - middle
        squares = np.einsum("nb,nb->n", centred, centred)
    chunk = max(1, CHUNK_ENTRIES // values.shape[1])

    def find(where: Array) -> Neighbours:
        places = where - middle
        own = np.einsum("mb,mb->m", places, places)[:, None]
        squared = squares + own - 2 * places @ centred.T
        slack = rounding * (np.sqrt(squares) + np.sqrt(own)) ** 2
        if radius is None:
            k = neighbours or 0
            farthest = np.partition(squared + slack, k - 1, axis=1)[:, k - 1 : k]
        else:
            k, farthest = None, np.full((len(where), 1), radius * radius * (1 + rounding))
        rows, columns = np.nonzero(squared - slack <= farthest)
        parts = [slice(i, i + chunk) for i in range(0, len(rows), chunk)]
        distances = np.concatenate(
            [np.zeros(0), *(_distances(values[columns[part]], where[rows[part]]) for part in parts)]
        )
        if radius is not None:
            near = distances <= radius
            rows, columns, distances = rows[near], columns[near], distances[near]
        return _packed(rows, columns, distances, len(where), k)

    return find


def _distances(points: Array, others: Array) -> Array:
    return np.asarray(np.linalg.norm(points - others, axis=-1))


def _packed(rows: Indices, columns: Indices, distances: Array, m: int, k: int | None) -> Neighbours:
    """Lists of neighbours as one array (m, ·), nearest first, ties by number; at most k for each place."""
    order = np.lexsort((columns, distances, rows))
    counts = np.bincount(rows, minlength=m)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    there = np.arange(max(int(counts.max()), 1) if k is None else k) < counts[:, None]
    numbers, reach = np.zeros(there.shape, dtype=np.intp), np.zeros(there.shape)
    kept = place < there.shape[1]
    numbers[there], reach[there] = columns[order][kept], distances[order][kept]
    return numbers, reach, there


def _approximate(values: Array, neighbours: int) -> Callable[[Array], Neighbours]:
    pynndescent = optional("pynndescent", "manifold", "method='approximate'")
    middle = values.mean(axis=0)
    single = (values - middle).astype(np.float32)
    index = pynndescent.NNDescent(single, n_neighbors=min(max(neighbours, 15), 60), random_state=0)
    index.prepare()
    rounding = 4 * float(np.finfo(np.float32).eps) * float(np.linalg.norm(single.astype(np.float64), axis=1).max())

    def find(where: Array) -> Neighbours:
        numbers: Indices = index.query((where - middle).astype(np.float32), k=neighbours)[0].astype(np.intp)
        distances = _distances(values[numbers], where[:, None])
        if (distances.max(axis=1) < rounding).any():
            raise ParameterError(
                f"Neighbours are closer to each other than {rounding:.2g}, the rounding error of float32, which the "
                "approximate search uses. Use method='exact'."
            )
        return numbers, distances, np.ones(numbers.shape, dtype=np.bool_)

    return find
