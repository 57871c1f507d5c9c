"""Distances, planar angles and torsions of a molecule.

Functions are an integer array of atoms, a row for each: (m, 2) for distances, (m, 3) for angles, the vertex in the
middle, and (m, 4) for torsions i–j–k–l, which turn about the axis j–k. Positions are (n, atoms, 3), values (n, m).
Angles are in radians and computed by atan2, which is more precise than an arc cosine.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from isopursuit._core.types import Array, Indices
from isopursuit.errors import GeometryError, NonFiniteError, ParameterError, ShapeError

STRAIGHT = 1e-6  # smaller sines count as collinear: a torsion has half of its digits there (derived: √EPS is 1e-8)


def internal_values(positions: ArrayLike, functions: Sequence[Sequence[int]]) -> Array:
    """Values of functions with two atoms (distances), three (angles) and four (torsions), (n, m).

    Examples
    --------
    >>> water = [[[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]
    >>> internal_values(water, [[0, 1], [1, 0, 2]]).round(6)
    array([[1.      , 1.570796]])
    """
    values = np.empty((len(np.asarray(positions)), len(functions)))
    for size, compute in ((2, distance_values), (3, angle_values), (4, torsion_values)):
        some = [i for i, atoms in enumerate(functions) if len(atoms) == size]
        if some:
            values[:, some] = compute(positions, np.array([functions[i] for i in some], dtype=np.intp))
    return values


def distance_values(positions: ArrayLike, pairs: ArrayLike) -> Array:
    """Distances in the unit of the positions, (n, m)."""
    r, rows = arguments(positions, pairs, 2)
    return length(r[:, :, rows[:, 0]] - r[:, :, rows[:, 1]])


def angle_values(positions: ArrayLike, angles: ArrayLike) -> Array:
    """Planar angles in radians, (n, m)."""
    u, v = sides(*arguments(positions, angles, 3))
    return np.arctan2(length(cross(u, v)), dot(u, v))


def torsion_values(positions: ArrayLike, torsions: ArrayLike) -> Array:
    """Torsions i–j–k–l in radians, from −π to π with the sign chemists use, (n, m).

    Examples
    --------
    >>> staggered = [[[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 1.0]]]
    >>> torsion_values(staggered, [[0, 1, 2, 3]])
    array([[1.57079633]])
    """
    refuse_lines(positions, torsions)
    f, g, h = path(*arguments(positions, torsions, 4))
    a, b = cross(f, g), cross(h, g)
    return np.arctan2(-length(g) * dot(f, b), dot(a, b))


def sines(positions: ArrayLike, rows: ArrayLike) -> Array:
    """How far the atoms of each function are from collinear, (n, m): the sine of an angle, or the smaller of two sines.

    `rows[(sines(positions, rows) > 0.01).all(axis=0)]` are torsions that are defined at all frames, for example of a
    molecule with a triple bond.

    Examples
    --------
    >>> acetylene = [[[0.0, 0.0, 0.0], [1.2, 0.0, 0.0], [2.26, 0.0, 0.0]]]
    >>> sines(acetylene, [[0, 1, 2]])
    array([[0.]])
    """
    r, given = arguments(positions, rows, 3, 4)
    return np.min([_sines(r, given[:, first : first + 3]) for first in range(given.shape[1] - 2)], axis=0)


def refuse_lines(positions: ArrayLike, rows: ArrayLike, frames: Indices | None = None) -> None:
    """Raise an error for a frame, with these numbers, at which atoms of a function are collinear."""
    r, given = arguments(positions, rows, 3, 4)
    corners = np.concatenate([given[:, first : first + 3] for first in range(given.shape[1] - 2)])
    ends = np.sort(corners[:, [0, 2]], axis=1)
    corners = np.unique(np.column_stack([ends[:, 0], corners[:, 1], ends[:, 1]]), axis=0)
    sine = _sines(r, corners)
    if sine.size and sine.min() < STRAIGHT:
        frame, corner = np.unravel_index(sine.argmin(), sine.shape)
        atoms = "–".join(map(str, corners[corner].tolist()))
        raise GeometryError(
            f"In frame {frame if frames is None else frames[frame]} atoms {atoms} are in a line (sine "
            f"{sine.min():.0e}): torsions along them are not defined. Leave out the frame or the function; `sines` "
            "shows which are safe."
        )


def arguments(positions: ArrayLike, rows: ArrayLike, *sizes: int) -> tuple[Array, Indices]:
    """Positions as (n, 3, atoms), and valid functions of so many atoms."""
    r = np.asarray(positions, dtype=np.float64)
    if r.ndim != 3 or r.shape[2] != 3:
        raise ShapeError(f"positions must be (frames, atoms, 3); they are {r.shape}.")
    broken = ~np.isfinite(r).all(axis=(1, 2))
    if broken.any():
        raise NonFiniteError(f"Frame {int(broken.argmax())} has positions that are not finite.")
    given = np.asarray(rows)
    if given.ndim != 2 or given.shape[1] not in sizes or given.dtype.kind not in "iu":
        expected = f"(m, {' or '.join(map(str, sizes))})"
        raise ShapeError(f"Atoms of functions must be whole numbers {expected}; they are {given.dtype} {given.shape}.")
    if given.size and not (given.min() >= 0 and given.max() < r.shape[1]):
        raise ParameterError(f"Functions name atoms {given.min()} to {given.max()}; there are {r.shape[1]}.")
    ordered = np.sort(given, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if twice.any():
        raise ParameterError(f"A function names an atom twice: {given[twice.argmax()].tolist()}.")
    return np.ascontiguousarray(r.transpose(0, 2, 1)), given.astype(np.intp)


def _sines(r: Array, angles: Indices) -> Array:
    u, v = sides(r, angles)
    return length(cross(u, v)) / np.maximum(length(u) * length(v), np.finfo(float).tiny)


def sides(r: Array, rows: Indices) -> tuple[Array, Array]:
    """From the vertex to the other two, each (n, 3, m)."""
    vertex = r[:, :, rows[:, 1]]
    return r[:, :, rows[:, 0]] - vertex, r[:, :, rows[:, 2]] - vertex


def path(r: Array, rows: Indices) -> tuple[Array, Array, Array]:
    """The path's sides f = i − j, g = j − k, h = l − k, each (n, 3, m)."""
    first, second, third, last = (r[:, :, column] for column in rows.T)
    return first - second, second - third, last - third


def dot(x: Array, y: Array) -> Array:
    """Inner products (n, m) of vectors (n, 3, m)."""
    return np.einsum("ncm,ncm->nm", x, y)


def length(x: Array) -> Array:
    """Lengths (n, m) of vectors (n, 3, m)."""
    return np.sqrt(dot(x, x))


def cross(x: Array, y: Array) -> Array:
    """Vector products of vectors (n, 3, m)."""
    return np.stack([x[:, a] * y[:, b] - x[:, b] * y[:, a] for a, b in ((1, 2), (2, 0), (0, 1))], axis=1)
