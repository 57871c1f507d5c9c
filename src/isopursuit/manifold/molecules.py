"""From a moving molecule to matrices of torsions to select from.

Molecules that differ by a motion or a scale have the same planar angles: those are the molecule's *shape*. Torsions
depend on the shape alone. With the gradients J of the angles and B of the torsions, both by position, the gradient of
the torsions by the angles is the shortest with J G = B,

    G = J⁺ B.

With J = U S Vᵀ it is G = V K, K = S⁻¹ Uᵀ B. Columns of G are as long as those of K, which has at most 3·atoms rows
where G has hundreds, and their components along tangent vectors T are (Vᵀ T)ᵀ K: G itself is never formed. A flat
molecule is refused: bending it out of its plane changes torsions at once, but angles only to second order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from isopursuit._types import Array, Indices, Unit
from isopursuit.errors import GeometryError, ShapeError
from isopursuit.manifold.internal import (
    adjacency,
    all_angles,
    all_torsions,
    angle_gradients,
    angle_values,
    beyond_bond,
    labels,
    refuse_lines,
    rotatable_bonds,
    torsion_gradients,
)
from isopursuit.manifold.tangent import tangent_spaces
from isopursuit.manifold.trajectory import Trajectory
from isopursuit.matrix import in_unit_stack
from isopursuit.normalize import Normalization, log_lengths
from isopursuit.parameters import as_exponent, as_numbers
from isopursuit.scale import AS_GIVEN, UnitLength

RCOND = 1e-10  # singular values of J below this share of the largest belong to motions and scale, not to the shape
UNEXPLAINED = 1e-10  # share of a torsion's squared gradient that rounding may leave unexplained by the angles
CHUNK = 64  # frames in memory at once (a guess)


@dataclass(frozen=True)
class ShapeGradients:
    """Gradients by the shape, seen from tangent spaces.

    `projected` (n, D, P) are their components in the tangent bases; `lengths` (n, P) those of the whole gradients.
    """

    projected: Array
    lengths: Array

    def normalized(self, c: float = 1.0, normalization: Normalization = "symmetric") -> Array:
        """The components of the gradients once their whole lengths are normalized, as the paper does for Ethanol.

        A column is then as long as the part of a normalized gradient that lies along the manifold. Normalized after
        projection only, a torsion that mostly describes vibrations across the manifold could pass for a coordinate.
        """
        # a gradient of length t becomes one of length 1/g(t)
        scale = np.exp(log_lengths(self.lengths, as_exponent(c), normalization)) / self.lengths
        return self.projected * scale[:, None]


def shape_gradients(
    positions: ArrayLike,
    tangents: ArrayLike,
    torsions: ArrayLike,
    *,
    angles: ArrayLike | None = None,
    frames: ArrayLike | None = None,
) -> ShapeGradients:
    """Gradients of torsions by the planar angles, projected on tangent spaces of the manifold of angles.

    Parameters
    ----------
    positions : array_like (n, atoms, 3)
        The molecule at n frames.
    tangents : array_like (n, m, D)
        Orthonormal bases of the tangent spaces there, in the m angles.
    torsions : array_like (P, 4)
        The dictionary.
    angles : array_like (m, 3), optional
        The shape's features: `all_angles` if not given.
    frames : array_like (n,), optional
        The numbers by which messages call the frames.

    Raises
    ------
    GeometryError
        At frames where atoms are in a line, or where the angles do not determine the torsions.
    """
    r = np.asarray(positions, dtype=np.float64)
    corners = all_angles(r.shape[1]) if angles is None else np.asarray(angles)
    rows = np.asarray(torsions)
    numbers = np.arange(len(r)) if frames is None else np.asarray(frames, dtype=np.intp)
    bases = np.asarray(tangents, dtype=np.float64)
    if bases.ndim != 3 or bases.shape[:2] != (len(r), len(corners)):
        raise ShapeError(f"tangents must be ({len(r)}, {len(corners)}, D), one basis a frame; they are {bases.shape}.")
    projected = np.empty((len(r), bases.shape[2], len(rows)))
    lengths = np.empty((len(r), len(rows)))
    for first in range(0, len(r), CHUNK):
        some = slice(first, first + CHUNK)
        for functions in (corners, rows):
            refuse_lines(r[some], functions, numbers[some])
        U, S, Vt = np.linalg.svd(angle_gradients(r[some], corners), full_matrices=False)
        kept = RCOND * S[:, :1] < S
        gradients = torsion_gradients(r[some], rows)
        B = np.where(kept[:, :, None], U.transpose(0, 2, 1) @ gradients, 0.0)
        _refuse_unexplained(B, gradients, rows, numbers[some])
        K = B / np.where(kept, S, 1.0)[:, :, None]
        lengths[some] = np.sqrt(np.einsum("nrp,nrp->np", K, K))
        projected[some] = (Vt @ bases[some]).transpose(0, 2, 1) @ K
    return ShapeGradients(projected, lengths)


@dataclass(frozen=True)
class TorsionMatrices:
    """What to select torsions from: `matrices` (n, D, P), one a frame, with the P torsions' atoms (P, 4) and labels."""

    matrices: Array
    torsions: Indices
    labels: tuple[str, ...]
    frames: Indices
    unit_length: UnitLength = AS_GIVEN


def torsion_matrices(
    trajectory: Trajectory,
    frames: ArrayLike,
    *,
    D: int = 2,
    neighbours: int = 1000,
    torsions: ArrayLike | None = None,
    normalization: Normalization | None = "symmetric",
    c: float = 1.0,
    unit: Unit = None,
) -> TorsionMatrices:
    """The paper's Ethanol experiment, for any molecule: its torsions' gradients along the manifold of its shapes.

    The shape is all planar angles. At each frame the tangent space is that of the `neighbours` nearest shapes of the
    trajectory, and the gradients of the torsions by the angles are projected on it.

    Parameters
    ----------
    trajectory : Trajectory
        All frames make the manifold.
    frames : array_like of int
        At which of them to make matrices.
    D : int
        The dimension of the manifold.
    neighbours : int
        How many shapes make a tangent space, the frame's own included.
    torsions : array_like (P, 4), optional
        The dictionary: `all_torsions` if not given.
    normalization : {"symmetric", "logarithmic"}, callable or None
        Of the gradients before projection, with exponent c; None leaves them.
    unit : number, "median", "each" or None
        The length that counts as 1, as in `select`, of the matrices' columns. "median" is one number over all frames
        and torsions, so that the geometry of one frame stays comparable with that of another. "each" gives every column
        length 1 at every frame.

    Examples
    --------
    >>> from isopursuit.manifold.ethanol import load_ethanol
    >>> found = torsion_matrices(load_ethanol(), [0, 5000])
    >>> found.matrices.shape, found.labels[0]
    ((2, 2, 756), 'C0–C1–O2–H3 torsion')
    """
    positions = trajectory.positions
    atoms = positions.shape[1]
    at = as_numbers(frames, len(positions), "frames")
    rows = all_torsions(atoms) if torsions is None else np.asarray(torsions)
    tangents = tangent_spaces(angle_values(positions, all_angles(atoms)), at, D=D, neighbours=neighbours)
    found = shape_gradients(positions[at], tangents.bases, rows, frames=at)
    matrices = found.projected if normalization is None else found.normalized(c, normalization)
    matrices, unit_length = in_unit_stack(matrices, unit)
    return TorsionMatrices(matrices, rows, labels(trajectory.symbols, rows), at, unit_length)


def turning_rates(positions: ArrayLike, torsions: ArrayLike, bonds: Iterable[tuple[int, int]]) -> Array:
    """How fast each torsion changes as the molecule turns about each of its `rotatable_bonds`, (n, bonds, m).

    A torsion along three bonds has rate ±1 for the middle one and 0 for the others. Where a torsion's axis is no bond,
    as for most of `all_torsions`, the rates say about which bonds it turns.

    Examples
    --------
    >>> butane = [[[-0.5, 1.4, 0.0], [0.0, 0.0, 0.0], [1.5, 0.0, 0.0], [2.0, -1.4, 0.3]]]
    >>> turning_rates(butane, [[0, 1, 2, 3]], [(0, 1), (1, 2), (2, 3)]).round(12)
    array([[[1.]]])
    """
    r = np.asarray(positions, dtype=np.float64)
    gradients = torsion_gradients(r, torsions)
    near = adjacency(bonds)
    axes = rotatable_bonds((i, j) for i in near for j in near[i])
    motions = np.zeros((len(r), len(axes), *r.shape[1:]))
    for turn, (i, j) in enumerate(axes):
        far = beyond_bond(near, i, j)
        axis = r[:, [j]] - r[:, [i]]
        # turning by dt moves an atom by (unit axis) × (arm) dt
        motions[:, turn, far] = np.cross(axis / np.linalg.norm(axis, axis=2, keepdims=True), r[:, far] - r[:, [i]])
    return motions.reshape(len(r), len(axes), -1) @ gradients


def _refuse_unexplained(explained: Array, gradients: Array, rows: Indices, numbers: Indices) -> None:
    """Refuse torsions whose gradients have a part that no angle's gradient has."""
    left: Array = 1 - (explained**2).sum(axis=1) / (gradients**2).sum(axis=1)
    if left.size and left.max() > UNEXPLAINED:
        frame, worst = np.unravel_index(left.argmax(), left.shape)
        torsion = "–".join(map(str, rows[worst].tolist()))
        raise GeometryError(
            f"In frame {numbers[frame]} the angles do not determine the torsion {torsion}: the molecule is flat there, "
            "or there are too few angles. Leave the frame out, or give more angles."
        )
