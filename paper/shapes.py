"""The paper's shapes of a molecule, all planar angles of three atoms, and the gradients of torsions by the shape.

Planar angles know the shape up to its scale and forget mirror images. Torsions depend on the angles up to their sign.
With the gradients J of the angles and B of the torsions, both by position, the gradient of the torsions by the angles
is the shortest G with J G = B,

    G = J⁺ B.

With J = U S Vᵀ it is G = V K, K = S⁻¹ Uᵀ B. Columns of G are as long as those of K, which has at most 3·atoms rows
where G has hundreds, and their components along tangent vectors T are (Vᵀ T)ᵀ K, so G is never formed. A flat molecule
raises an error: bending it out of its plane changes torsions to first order, but angles only to second order.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from isopursuit.errors import GeometryError
from isopursuit.manifold import tangent_spaces
from isopursuit.manifold.differentials import Differentials, in_gradient_unit
from isopursuit.molecules import Trajectory, angle_values, internal_labels
from isopursuit.molecules.geometry import arguments, cross, dot, length, path, refuse_lines, sides

ORDERINGS = ((0, 1, 2, 3), (1, 2, 3, 0), (2, 3, 0, 1), (3, 0, 1, 2), (0, 1, 3, 2), (1, 0, 2, 3))  # the paper's
BLOCK_BYTES = 64 << 20  # bytes of intermediate arrays at once; 16 MB to 256 MB take the same time (measured, 22 atoms)
RCOND = 1e-10  # smaller singular values of J, relative to the largest, belong to rigid motions and scale (√EPS to EPS)
UNEXPLAINED = 1e-10  # largest share of a torsion's squared gradient that the angles may not explain, by rounding


def all_torsions(atoms: int) -> np.ndarray:
    """The torsions of any four atoms in the paper's six orders, (P, 4)."""
    quadruples = np.array(list(combinations(range(atoms), 4)), dtype=np.intp).reshape(-1, 4)
    return quadruples[:, ORDERINGS].reshape(-1, 4)


def shape_angles(atoms: int) -> np.ndarray:
    """The planar angles of a shape: every angle of every three atoms, (3·C(atoms, 3), 3)."""
    triples = np.array(list(combinations(range(atoms), 3)), dtype=np.intp).reshape(-1, 3)
    return triples[:, [[1, 0, 2], [0, 1, 2], [0, 2, 1]]].reshape(-1, 3)


def shape_values(positions: np.ndarray) -> np.ndarray:
    """The shapes at all frames by planar angles, (n, m), of positions (n, atoms, 3)."""
    rows = shape_angles(positions.shape[1])
    return np.concatenate([angle_values(positions[some], rows) for some in _blocks(len(positions), 14 * len(rows))])


def angle_gradients(positions: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """The gradients of planar angles by position, (n, 3·atoms, m); collinear atoms raise `GeometryError`."""
    refuse_lines(positions, angles)
    r, rows = arguments(positions, angles, 3)
    u, v = sides(r, rows)
    normal = cross(u, v)
    area = length(normal)
    # θ = atan2(|n|, u·v), n = u × v: dθ/du = u × n / (|u|² |n|), dθ/dv = n × v / (|v|² |n|)
    first = cross(u, normal) / (dot(u, u) * area)[:, None]
    last = cross(normal, v) / (dot(v, v) * area)[:, None]
    return _scatter(r, rows, first, -first - last, last)


def torsion_gradients(positions: np.ndarray, torsions: np.ndarray) -> np.ndarray:
    """The gradients of torsions by position, (n, 3·atoms, m); collinear atoms raise `GeometryError`."""
    refuse_lines(positions, torsions)
    r, rows = arguments(positions, torsions, 4)
    f, g, h = path(r, rows)
    a, b = cross(f, g), cross(h, g)
    # dφ/di = −|g| a / |a|², dφ/dl = |g| b / |b|²; the axis atoms get the rest, so that no rigid motion changes φ
    axis = length(g)[:, None]
    a, b = a / dot(a, a)[:, None], b / dot(b, b)[:, None]
    first, last = -axis * a, axis * b
    lever = (dot(f, g)[:, None] * a - dot(h, g)[:, None] * b) / axis
    return _scatter(r, rows, first, lever - first, -lever - last, last)


def shape_gradients(
    positions: np.ndarray, bases: np.ndarray, torsions: np.ndarray, frames: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Gradients of torsions by the shape: components (n, D, P) in tangent spaces `bases` (n, m, D), and lengths (n, P).

    `frames` are the numbers of the n frames, for messages.
    """
    rows, corners = np.asarray(torsions), shape_angles(positions.shape[1])
    numbers = np.arange(len(positions)) if frames is None else np.asarray(frames)
    projected, lengths = np.empty((len(positions), bases.shape[2], len(rows))), np.empty((len(positions), len(rows)))
    for some in _blocks(len(positions), 9 * positions.shape[1] * (len(corners) + len(rows))):
        for functions in (corners, rows):
            refuse_lines(positions[some], functions, numbers[some])
        U, S, Vt = np.linalg.svd(angle_gradients(positions[some], corners), full_matrices=False)
        kept = RCOND * S[:, :1] < S
        gradients = torsion_gradients(positions[some], rows)
        B = np.where(kept[:, :, None], U.transpose(0, 2, 1) @ gradients, 0.0)
        left = 1 - (B**2).sum(axis=1) / (gradients**2).sum(axis=1)
        if left.max() > UNEXPLAINED:
            frame, worst = np.unravel_index(left.argmax(), left.shape)
            torsion = "–".join(map(str, rows[worst].tolist()))
            raise GeometryError(
                f"In frame {numbers[some][frame]} the angles do not determine the torsion {torsion}: the molecule is "
                "flat there. Leave out the frame."
            )
        K = B / np.where(kept, S, 1.0)[:, :, None]
        lengths[some] = np.sqrt(np.einsum("nrp,nrp->np", K, K))
        projected[some] = (Vt @ bases[some]).transpose(0, 2, 1) @ K
    return projected, lengths


def torsion_differentials(trajectory: Trajectory, tangents, torsions: np.ndarray, unit="overall") -> Differentials:
    """Differentials of torsions on tangent spaces among `shape_values`."""
    projected, _ = shape_gradients(trajectory.positions[tangents.at], tangents.bases, torsions, tangents.at)
    return in_gradient_unit(Differentials(projected, internal_labels(trajectory, torsions), tangents), unit)


def torsion_matrices(trajectory: Trajectory, frames, torsions: np.ndarray, D=2, neighbours=1000, unit="overall"):
    """Differentials of torsions at some frames, from the positions."""
    spaces = tangent_spaces(shape_values(trajectory.positions), frames, D=D, neighbours=neighbours)
    return torsion_differentials(trajectory, spaces, torsions, unit)


def _scatter(r: np.ndarray, rows: np.ndarray, *parts: np.ndarray) -> np.ndarray:
    """Gradients (n, 3·atoms, m), from the gradients by each atom of a function, (n, 3, m) each."""
    n, _, atoms = r.shape
    full = np.zeros((n, atoms, 3, len(rows)))
    for column, part in zip(rows.T, parts, strict=True):
        full[:, column, :, np.arange(len(rows))] = part.transpose(2, 0, 1)
    return full.reshape(n, 3 * atoms, len(rows))


def _blocks(n: int, numbers_per_frame: int) -> list[slice]:
    """Slices that cover n frames. The intermediate arrays of a slice of several frames take at most `BLOCK_BYTES`."""
    size = max(1, BLOCK_BYTES // max(8 * numbers_per_frame, 1))
    return [slice(first, min(first + size, n)) for first in range(0, n, size)]
