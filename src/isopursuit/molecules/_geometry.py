"""Internal coordinates of a molecule: planar angles and torsions, their gradients, and dictionaries of them.

A dictionary is an integer array of atoms, a row for each function: (m, 3) for angles, the vertex in the middle, and
(m, 4) for torsions i–j–k–l, which turn about the axis j–k. Positions are (n, atoms, 3), values (n, m), gradients
(n, 3·atoms, m). Angles are in radians and computed by atan2, which is more precise than an arc cosine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from isopursuit._core.types import Array, Indices
from isopursuit.errors import GeometryError, NonFiniteError, ParameterError, ShapeError

ORDERINGS = ((0, 1, 2, 3), (1, 2, 3, 0), (2, 3, 0, 1), (3, 0, 1, 2), (0, 1, 3, 2), (1, 0, 2, 3))
STRAIGHT = 1e-6  # smaller sines count as collinear: gradients grow without bound and lose precision


def all_angles(atoms: int) -> Indices:
    """Every planar angle of every three atoms, (3·C(atoms, 3), 3).

    Examples
    --------
    >>> all_angles(3).tolist()
    [[1, 0, 2], [0, 1, 2], [0, 2, 1]]
    >>> len(all_angles(9))
    252
    """
    triples = np.array(list(combinations(range(atoms), 3)), dtype=np.intp).reshape(-1, 3)
    return triples[:, [[1, 0, 2], [0, 1, 2], [0, 2, 1]]].reshape(-1, 3)


def all_torsions(atoms: int) -> Indices:
    """Every four atoms in the paper's six orders, (6·C(atoms, 4), 4).

    Examples
    --------
    >>> all_torsions(4).tolist()
    [[0, 1, 2, 3], [1, 2, 3, 0], [2, 3, 0, 1], [3, 0, 1, 2], [0, 1, 3, 2], [1, 0, 2, 3]]
    >>> len(all_torsions(9))
    756
    """
    quadruples = np.array(list(combinations(range(atoms), 4)), dtype=np.intp).reshape(-1, 4)
    return quadruples[:, ORDERINGS].reshape(-1, 4)


def bond_torsions(bonds: Iterable[tuple[int, int]]) -> Indices:
    """The torsions along three bonds in a row, each once, with the lower axis atom first.

    Examples
    --------
    >>> bond_torsions([(0, 1), (1, 2), (2, 3), (2, 4)]).tolist()
    [[0, 1, 2, 3], [0, 1, 2, 4]]
    """
    near = adjacency(bonds)
    axes = ((j, k) for j in near for k in near[j] if j < k)
    rows = [(i, j, k, m) for j, k in axes for i in near[j] for m in near[k] if len({i, j, k, m}) == 4]
    return np.array(rows, dtype=np.intp).reshape(-1, 4)


def adjacency(bonds: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    """The sorted neighbours of each atom."""
    near: dict[int, set[int]] = {}
    for i, j in bonds:
        near.setdefault(i, set()).add(j)
        near.setdefault(j, set()).add(i)
    return {i: sorted(near[i]) for i in sorted(near)}


def rotatable_bonds(bonds: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The bonds about which one part of the molecule can turn: not in a ring, and not to a terminal atom.

    Examples
    --------
    >>> rotatable_bonds([(0, 1), (0, 2), (0, 3), (0, 4), (1, 5), (1, 6), (1, 7), (2, 8)])
    ((0, 1), (0, 2))
    """
    near = adjacency(bonds)
    pairs = ((i, j) for i in near for j in near[i] if i < j)
    return tuple((i, j) for i, j in pairs if min(len(beyond_bond(near, i, j)), len(beyond_bond(near, j, i))) > 1)


def beyond_bond(near: dict[int, list[int]], i: int, j: int) -> list[int]:
    """The atoms on j's side of the bond i–j, including j; none if a ring leads back to i."""
    found, last = {j}, [j]
    while last:
        last = [b for a in last for b in near[a] if b not in found and (a, b) != (j, i)]
        found.update(last)
    return [] if i in found else sorted(found)


def labels(symbols: Sequence[str], rows: Indices, numbers: ArrayLike | None = None) -> tuple[str, ...]:
    """Labels for the functions of a dictionary, as chemists write them; atoms are numbered from 0, or by `numbers`.

    Examples
    --------
    >>> labels("CCOHHHHHH", np.array([[8, 2, 0, 1]]))
    ('H8–O2–C0–C1 torsion',)
    >>> labels("OHH", all_angles(3))
    ('H1–O0–H2 angle', 'O0–H1–H2 angle', 'O0–H2–H1 angle')
    """
    kind = "angle" if rows.shape[1] == 3 else "torsion"
    called = range(len(symbols)) if numbers is None else np.asarray(numbers).tolist()
    return tuple("–".join(f"{symbols[a]}{called[a]}" for a in row) + f" {kind}" for row in rows.tolist())


def angle_values(positions: ArrayLike, angles: ArrayLike) -> Array:
    """Planar angles in radians, (n, m).

    Examples
    --------
    >>> water = [[[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]
    >>> angle_values(water, [[1, 0, 2]])
    array([[1.57079633]])
    """
    r, rows = _arguments(positions, angles, 3)
    u, v = _sides(r, rows)
    return np.arctan2(_length(_cross(u, v)), _dot(u, v))


def torsion_values(positions: ArrayLike, torsions: ArrayLike) -> Array:
    """Torsions i–j–k–l in radians, from −π to π with the sign chemists use, (n, m).

    Examples
    --------
    >>> staggered = [[[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 1.0]]]
    >>> torsion_values(staggered, [[0, 1, 2, 3]])
    array([[1.57079633]])
    """
    r, rows = _arguments(positions, torsions, 4)
    _refuse_lines(r, rows)
    f, g, h = _path(r, rows)
    a, b = _cross(f, g), _cross(h, g)
    return np.arctan2(-_length(g) * _dot(f, b), _dot(a, b))


def angle_gradients(positions: ArrayLike, angles: ArrayLike) -> Array:
    """The gradients of planar angles by position, (n, 3·atoms, m).

    Raises
    ------
    GeometryError
        The three atoms are collinear, so there is no gradient; see `sines`.
    """
    r, rows = _arguments(positions, angles, 3)
    _refuse_lines(r, rows)
    u, v = _sides(r, rows)
    normal = _cross(u, v)
    area = _length(normal)
    # θ = atan2(|n|, u·v), n = u × v: dθ/du = u × n / (|u|² |n|), dθ/dv = n × v / (|v|² |n|)
    first = _cross(u, normal) / (_dot(u, u) * area)[:, None]
    last = _cross(normal, v) / (_dot(v, v) * area)[:, None]
    return _scatter(r, rows, first, -first - last, last)


def torsion_gradients(positions: ArrayLike, torsions: ArrayLike) -> Array:
    """The gradients of torsions by position, (n, 3·atoms, m).

    Raises
    ------
    GeometryError
        i–j–k or j–k–l are collinear, so there is no gradient; see `sines`.
    """
    r, rows = _arguments(positions, torsions, 4)
    _refuse_lines(r, rows)
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

    Gradients grow like the reciprocal. `rows[(sines(positions, rows) > 0.01).all(axis=0)]` is a dictionary that is safe
    at all frames, for example for a molecule with a triple bond.

    Examples
    --------
    >>> acetylene = [[[0.0, 0.0, 0.0], [1.2, 0.0, 0.0], [2.26, 0.0, 0.0]]]
    >>> sines(acetylene, [[0, 1, 2]])
    array([[0.]])
    """
    return _sines(*_arguments(positions, rows))


def refuse_lines(positions: ArrayLike, rows: ArrayLike, frames: Indices) -> None:
    """Raise an error for frames, with these numbers, at which a function of the dictionary has no gradient."""
    _refuse_lines(*_arguments(positions, rows), frames)


def _refuse_lines(r: Array, rows: Indices, frames: Indices | None = None) -> None:
    corners = rows if rows.shape[1] == 3 else np.concatenate([rows[:, :3], rows[:, 1:]])
    ends = np.sort(corners[:, [0, 2]], axis=1)
    corners = np.unique(np.column_stack([ends[:, 0], corners[:, 1], ends[:, 1]]), axis=0)
    sine = _sines(r, corners)
    if sine.size and sine.min() < STRAIGHT:
        frame, corner = np.unravel_index(sine.argmin(), sine.shape)
        atoms = "–".join(map(str, corners[corner].tolist()))
        number = frame if frames is None else frames[frame]
        raise GeometryError(
            f"In frame {number} atoms {atoms} are in a line (sine {sine.min():.0e}): angles and torsions "
            "along them have no gradient. Leave out the frame or the function; `sines` shows which are safe."
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


def _sines(r: Array, rows: Indices) -> Array:
    if rows.shape[1] == 4:
        return np.minimum(_sines(r, rows[:, :3]), _sines(r, rows[:, 1:]))
    u, v = _sides(r, rows)
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
