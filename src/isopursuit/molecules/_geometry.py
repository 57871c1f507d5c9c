"""Planar angles and torsions of a molecule, and their gradients.

A dictionary is an integer array of atoms, a row for each function: (m, 3) for angles, the vertex in the middle, and
(m, 4) for torsions i–j–k–l, which turn about the axis j–k. Positions are (n, atoms, 3), values (n, m), gradients
(n, 3·atoms, m). Angles are in radians and computed by atan2, which is more precise than an arc cosine.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from isopursuit._core.types import Array, Indices
from isopursuit.errors import GeometryError, NonFiniteError, ParameterError, ShapeError

STRAIGHT = 1e-6  # smaller sines count as collinear: gradients, which grow like 1 / sine, then lose half of their digits


def angle_values(positions: ArrayLike, angles: ArrayLike) -> Array:
    """Planar angles in radians, (n, m).

    Examples
    --------
    >>> water = [[[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]
    >>> angle_values(water, [[1, 0, 2]])
    array([[1.57079633]])
    """
    u, v = _sides(*_arguments(positions, angles, 3))
    return np.arctan2(_length(_cross(u, v)), _dot(u, v))


def torsion_values(positions: ArrayLike, torsions: ArrayLike) -> Array:
    """Torsions i–j–k–l in radians, from −π to π with the sign chemists use, (n, m).

    Examples
    --------
    >>> staggered = [[[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 1.0]]]
    >>> torsion_values(staggered, [[0, 1, 2, 3]])
    array([[1.57079633]])
    """
    refuse_lines(positions, torsions)
    f, g, h = _path(*_arguments(positions, torsions, 4))
    a, b = _cross(f, g), _cross(h, g)
    return np.arctan2(-_length(g) * _dot(f, b), _dot(a, b))


def angle_gradients(positions: ArrayLike, angles: ArrayLike) -> Array:
    """The gradients of planar angles by position, (n, 3·atoms, m); collinear atoms raise `GeometryError`."""
    refuse_lines(positions, angles)
    r, rows = _arguments(positions, angles, 3)
    u, v = _sides(r, rows)
    normal = _cross(u, v)
    area = _length(normal)
    # θ = atan2(|n|, u·v), n = u × v: dθ/du = u × n / (|u|² |n|), dθ/dv = n × v / (|v|² |n|)
    first = _cross(u, normal) / (_dot(u, u) * area)[:, None]
    last = _cross(normal, v) / (_dot(v, v) * area)[:, None]
    return _scatter(r, rows, first, -first - last, last)


def torsion_gradients(positions: ArrayLike, torsions: ArrayLike) -> Array:
    """The gradients of torsions by position, (n, 3·atoms, m); collinear atoms raise `GeometryError`."""
    refuse_lines(positions, torsions)
    r, rows = _arguments(positions, torsions, 4)
    f, g, h = _path(r, rows)
    a, b = _cross(f, g), _cross(h, g)
    # dφ/di = −|g| a / |a|², dφ/dl = |g| b / |b|²; the axis atoms get the rest, so that no rigid motion changes φ
    axis = _length(g)[:, None]
    a, b = a / _dot(a, a)[:, None], b / _dot(b, b)[:, None]
    first, last = -axis * a, axis * b
    lever = (_dot(f, g)[:, None] * a - _dot(h, g)[:, None] * b) / axis
    return _scatter(r, rows, first, lever - first, -lever - last, last)


def sines(positions: ArrayLike, rows: ArrayLike) -> Array:
    """How far the atoms of each function are from collinear, (n, m): the sine of an angle, or the smaller of two sines.

    `rows[(sines(positions, rows) > 0.01).all(axis=0)]` is a dictionary that is safe at all frames, for example for a
    molecule with a triple bond.

    Examples
    --------
    >>> acetylene = [[[0.0, 0.0, 0.0], [1.2, 0.0, 0.0], [2.26, 0.0, 0.0]]]
    >>> sines(acetylene, [[0, 1, 2]])
    array([[0.]])
    """
    r, given = _arguments(positions, rows)
    return np.min([_sines(r, given[:, first : first + 3]) for first in range(given.shape[1] - 2)], axis=0)


def refuse_lines(positions: ArrayLike, rows: ArrayLike, frames: Indices | None = None) -> None:
    """Raise an error for a frame, with these numbers, at which a function of the dictionary has no gradient."""
    r, given = _arguments(positions, rows)
    corners = np.concatenate([given[:, first : first + 3] for first in range(given.shape[1] - 2)])
    ends = np.sort(corners[:, [0, 2]], axis=1)
    corners = np.unique(np.column_stack([ends[:, 0], corners[:, 1], ends[:, 1]]), axis=0)
    sine = _sines(r, corners)
    if sine.size and sine.min() < STRAIGHT:
        frame, corner = np.unravel_index(sine.argmin(), sine.shape)
        atoms = "–".join(map(str, corners[corner].tolist()))
        raise GeometryError(
            f"In frame {frame if frames is None else frames[frame]} atoms {atoms} are in a line (sine "
            f"{sine.min():.0e}): angles and torsions along them have no gradient. Leave out the frame or the function; "
            "`sines` shows which are safe."
        )


def _arguments(positions: ArrayLike, rows: ArrayLike, size: int | None = None) -> tuple[Array, Indices]:
    """Positions as (n, 3, atoms), and a valid dictionary for them."""
    r = np.asarray(positions, dtype=np.float64)
    if r.ndim != 3 or r.shape[2] != 3:
        raise ShapeError(f"positions must be (frames, atoms, 3); they are {r.shape}.")
    broken = ~np.isfinite(r).all(axis=(1, 2))
    if broken.any():
        raise NonFiniteError(f"Frame {int(broken.argmax())} has positions that are not finite.")
    given = np.asarray(rows)
    sizes = (3, 4) if size is None else (size,)
    if given.ndim != 2 or given.shape[1] not in sizes or given.dtype.kind not in "iu":
        expected = f"(m, {' or '.join(map(str, sizes))})"
        raise ShapeError(f"A dictionary must be whole numbers {expected}; it is {given.dtype} {given.shape}.")
    if given.size and not (given.min() >= 0 and given.max() < r.shape[1]):
        raise ParameterError(f"The dictionary names atoms {given.min()} to {given.max()}; there are {r.shape[1]}.")
    ordered = np.sort(given, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if twice.any():
        raise ParameterError(f"The dictionary names an atom twice: {given[twice.argmax()].tolist()}.")
    return np.ascontiguousarray(r.transpose(0, 2, 1)), given.astype(np.intp)


def _sines(r: Array, angles: Indices) -> Array:
    u, v = _sides(r, angles)
    return _length(_cross(u, v)) / np.maximum(_length(u) * _length(v), np.finfo(float).tiny)


def _sides(r: Array, rows: Indices) -> tuple[Array, Array]:
    """From the vertex to the other two, each (n, 3, m)."""
    vertex = r[:, :, rows[:, 1]]
    return r[:, :, rows[:, 0]] - vertex, r[:, :, rows[:, 2]] - vertex


def _path(r: Array, rows: Indices) -> tuple[Array, Array, Array]:
    """The path's sides f = i − j, g = j − k, h = l − k, each (n, 3, m)."""
    first, second, third, last = (r[:, :, column] for column in rows.T)
    return first - second, second - third, last - third


def _dot(x: Array, y: Array) -> Array:
    return np.einsum("ncm,ncm->nm", x, y)


def _length(x: Array) -> Array:
    return np.sqrt(_dot(x, x))


def _cross(x: Array, y: Array) -> Array:
    return np.stack([x[:, a] * y[:, b] - x[:, b] * y[:, a] for a, b in ((1, 2), (2, 0), (0, 1))], axis=1)


def _scatter(r: Array, rows: Indices, *parts: Array) -> Array:
    """Gradients (n, 3·atoms, m), from the gradients by each atom of a function, (n, 3, m) each."""
    n, _, atoms = r.shape
    full = np.zeros((n, atoms, 3, len(rows)))
    for column, part in zip(rows.T, parts, strict=True):
        full[:, column, :, np.arange(len(rows))] = part.transpose(2, 0, 1)
    return full.reshape(n, 3 * atoms, len(rows))
