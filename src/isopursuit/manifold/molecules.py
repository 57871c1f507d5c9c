"""Matrices of torsions of a moving molecule to select from, and how fast torsions turn about each bond."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from isopursuit._core.options import as_numbers
from isopursuit._core.types import Array, Indices, Unit
from isopursuit.data._units import AS_GIVEN, UnitLength
from isopursuit.manifold.dictionary import in_manifold_unit, of_unit_size
from isopursuit.manifold.internal import adjacency, all_torsions, beyond_bond, rotatable_bonds, torsion_gradients
from isopursuit.manifold.shapes import (
    Callback,
    Progress,
    count_angles,
    count_torsions,
    refuse_large,
    shape_gradients,
    shapes,
)
from isopursuit.manifold.tangent import TangentSpaces, check_options, tangent_spaces
from isopursuit.manifold.torsions import TorsionKind, torsion_labels, torsion_rows
from isopursuit.manifold.trajectory import Trajectory
from isopursuit.pursuit.normalize import Normalization


@dataclass(frozen=True)
class TorsionMatrices:
    """Matrices to select torsions from, (n, D, P), one for each frame, with the atoms (P, 4) and labels of P torsions.

    `tangents` are the tangent spaces at the frames, in the planar angles. `unit_length` is the divisor of the lengths.
    `overall` says whether the columns of each torsion have mean square length 1.
    """

    matrices: Array
    torsions: Indices
    labels: tuple[str, ...]
    frames: Indices
    tangents: TangentSpaces
    unit_length: UnitLength = AS_GIVEN
    overall: bool = False

    def take(self, points: ArrayLike) -> TorsionMatrices:
        """The same torsions at some of the frames, given by their numbers among `frames` or by a mask.

        If each torsion has mean square length 1, it is rescaled to mean square length 1 at these frames.
        """
        some = as_numbers(points, len(self.matrices), "points")
        matrices = of_unit_size(self.matrices[some]) if self.overall else self.matrices[some]
        return replace(self, matrices=matrices, frames=self.frames[some], tangents=self.tangents.take(some))


def torsion_matrices(
    trajectory: Trajectory,
    frames: ArrayLike,
    *,
    D: int = 2,
    neighbours: int = 1000,
    torsions: TorsionKind | ArrayLike = "bonds",
    normalization: Normalization | None = "overall",
    c: float = 1.0,
    unit: Unit | Literal["auto"] = None,
    workers: int = 1,
    callback: Callback | None = None,
) -> TorsionMatrices:
    """Gradients of a molecule's torsions along the tangent spaces of the manifold of its shapes.

    A shape consists of all planar angles. The tangent space at a frame is estimated from the `neighbours` nearest
    shapes of the trajectory, and the gradients of the torsions by the angles are projected onto it. The paper's
    experiment with ethanol uses ``torsions="all", normalization="symmetric", unit=None``.

    Parameters
    ----------
    trajectory : Trajectory
        The trajectory; all frames belong to the manifold.
    frames : array_like of int
        The frames at which to compute matrices.
    D : int
        The dimension of the manifold; see `isopursuit.manifold.dimension`.
    neighbours : int
        The number of shapes for one tangent space, including that of the frame itself.
    torsions : {"bonds", "rotatable", "all"} or array_like (P, 4)
        The dictionary: torsions along three bonds, one torsion for each rotatable bond, all sets of four atoms in the
        paper's six orders (`all_torsions`), or rows of atoms.
    normalization : {"overall", "symmetric", "logarithmic"}, callable or None
        "overall" (the default) rescales each torsion separately, so that its columns have mean square length 1 over the
        frames. A loss near D then means that torsions change at right angles and at a steady rate, for any number of
        atoms. "symmetric" (the paper's choice) and the others are applied to whole gradients before projection, with
        exponent c; they compare a radian of the torsion with a radian of distance in the space of all angles. None
        keeps gradients as they are.
    unit : number, "median", "each", None or "auto"
        The length of the normalized columns that counts as 1, as in `select`. "median" is one number for all frames
        and torsions, so different frames remain comparable; it is meant for gradients that are not normalized, which
        are shorter for more atoms. "each" scales every column to length 1 at every frame. "auto" is as in
        `isopursuit.manifold.dictionary.differentials`.
    workers : int
        Number of threads for the tangent spaces.
    callback : callable, optional
        Called several times a second with the progress in thousandths, and with 1000.

    Raises
    ------
    BudgetError
        Shapes and matrices need more than 4 GB of memory. Raised before any work.

    Examples
    --------
    >>> from isopursuit.manifold.ethanol import load_ethanol
    >>> found = torsion_matrices(load_ethanol(), [0, 5000])
    >>> found.matrices.shape, found.labels[0]
    ((2, 2, 12), 'O2–C0–C1–H5 torsion')
    """
    positions = trajectory.positions
    N, atoms, _ = positions.shape
    at = as_numbers(frames, N, "frames")
    every = isinstance(torsions, str) and torsions == "all"
    rows = None if every else torsion_rows(trajectory, torsions)
    P = count_torsions(atoms) if rows is None else len(rows)
    check_options((N, count_angles(atoms)), D, neighbours, workers=workers)
    refuse_large(N, atoms, len(at), D, P)
    rows = all_torsions(atoms) if rows is None else rows
    steps = Progress(callback, _works(N, atoms, len(at), min(neighbours, N), P))
    values, corners = shapes(positions, steps.step(0))
    tangents = tangent_spaces(values, at, D=D, neighbours=neighbours, workers=workers, callback=steps.step(1))
    del values
    found = shape_gradients(positions[at], tangents.bases, rows, angles=corners, frames=at, callback=steps.step(2))
    matrices = of_unit_size(found.projected) if normalization == "overall" else found.projected
    if normalization not in (None, "overall"):
        matrices = found.normalized(c, normalization)
    matrices, unit_length = in_manifold_unit(matrices, unit)
    overall = normalization == "overall" and unit_length == AS_GIVEN
    return TorsionMatrices(matrices, rows, torsion_labels(trajectory, rows), at, tangents, unit_length, overall)


def _works(N: int, atoms: int, n: int, k: int, P: int) -> tuple[float, float, float]:
    """Floating-point operations of the three steps: shapes, tangent spaces, gradients. An angle counts as 200."""
    m, r = count_angles(atoms), 3 * atoms
    size = min(k, m)
    tangents = 2.0 * N * m + 2.0 * size * k * m + 10.0 * size**3
    return 200.0 * N * m, n * tangents, n * r * r * (20.0 * m + 4.0 * P)


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
