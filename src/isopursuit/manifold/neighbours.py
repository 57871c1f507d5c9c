"""Nearest neighbours and neighbours within a radius, by whatever is fastest for the data at hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isopursuit.errors import ParameterError, optional

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Neighbours = tuple[Indices, Array, NDArray[np.bool_]]  # (m, k) numbers, distances, and which are there at all

TREE_DIMENSIONS = 15  # a k-d tree finds neighbours up to here, a matrix product beyond


def neighbour_search(
    values: Array, neighbours: int | None, radius: float | None, method: str
) -> Callable[[Array], Neighbours]:
    """What finds the neighbours of a block of places."""
    if method == "approximate":
        if neighbours is None:
            raise ParameterError("method='approximate' finds a number of neighbours. Pass neighbours=, not radius=.")
        return _approximate(values, neighbours)
    if method != "exact":
        raise ParameterError(f"method={method!r} is not known. Use 'exact' or 'approximate'.")
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
        return numbers, np.linalg.norm(values[numbers] - where[:, None], axis=2), there

    return nearest if radius is None else within


def _by_products(values: Array, neighbours: int | None, radius: float | None) -> Callable[[Array], Neighbours]:
    middle = values.mean(axis=0)
    centred = values - middle
    squares = np.einsum("nb,nb->n", centred, centred)

    def find(where: Array) -> Neighbours:
        # ‖x − y‖² = ‖x‖² + ‖y‖² − 2⟨x, y⟩
        places = where - middle
        distances = squares + np.einsum("mb,mb->m", places, places)[:, None] - 2 * places @ centred.T
        distances = np.sqrt(np.maximum(distances, 0.0))
        if radius is None:
            k = neighbours or 0
            numbers = np.argpartition(distances, min(k, len(values) - 1), axis=1)[:, :k]
            return numbers, np.take_along_axis(distances, numbers, axis=1), np.ones(numbers.shape, dtype=np.bool_)
        inside = distances <= radius
        numbers = np.argsort(~inside, axis=1, kind="stable")[:, : max(int(inside.sum(axis=1).max()), 1)]
        return numbers, np.take_along_axis(distances, numbers, axis=1), np.take_along_axis(inside, numbers, axis=1)

    return find


def _approximate(values: Array, neighbours: int) -> Callable[[Array], Neighbours]:
    pynndescent = optional("pynndescent", "manifold", "method='approximate'")
    index = pynndescent.NNDescent(values, n_neighbors=min(max(neighbours, 15), 60), random_state=0)
    index.prepare()

    def find(where: Array) -> Neighbours:
        found: tuple[NDArray[np.int32], NDArray[np.float32]] = index.query(where.astype(np.float32), k=neighbours)
        return found[0].astype(np.intp), found[1].astype(np.float64), np.ones(found[0].shape, dtype=np.bool_)

    return find
