"""The shapes of a molecule along a trajectory, and the gradients of torsions by the shape, in bounded memory.

There are two kinds of shapes. Both are the same for molecules that differ by a rigid motion.

*Torsions*: the cosine and sine of every torsion along three bonds. They know how far each bond has turned and tell
mirror images apart. They forget bond lengths and angles, and the distance between parts that no chain of bonds joins.
All torsions about one bond turn together, so a bond with more substituents counts more: bonds between tetrahedral
atoms, which turn freely, more than planar ones, which vibrate (measured: valine's φ, ψ and χ1 are found with 330 of
6,000 frames in 6 of 6 draws, and in 2 of 6 if every bond counts the same).

*Angles*, as in the paper: every planar angle of three atoms. They know the shape up to its scale and forget mirror
images. They hardly change where a chain is stretched, so equal turns of a bond have unequal lengths. Torsions depend
on the angles up to their sign. With the gradients J of the angles and B of the torsions, both by position, the gradient
of the torsions by the angles is the shortest G with J G = B,

    G = J⁺ B.

With J = U S Vᵀ it is G = V K, K = S⁻¹ Uᵀ B. Columns of G are as long as those of K, which has at most 3·atoms rows
where G has hundreds, and their components along tangent vectors T are (Vᵀ T)ᵀ K, so G is never formed. A flat molecule
raises an error: bending it out of its plane changes torsions to first order, but angles only to second order.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import ArrayLike

from isopursuit._core.threads import on_one_blas_thread
from isopursuit._core.types import Array, Indices
from isopursuit.errors import BudgetError, GeometryError, ParameterError, ShapeError
from isopursuit.molecules._geometry import (
    angle_gradients,
    angle_values,
    refuse_lines,
    torsion_gradients,
    torsion_values,
)
from isopursuit.molecules.torsions import torsion_rows
from isopursuit.molecules.trajectory import Trajectory

Callback = Callable[[int, int], object]  # the amount done, and the total amount

BLOCK_BYTES = 64 << 20  # bytes of intermediate arrays at once; 16 MB to 256 MB take the same time (measured, 22 atoms)
MAX_BYTES = 4 << 30  # most bytes of shapes and matrices together: a quarter of a laptop's memory (chosen)
ANGLE_ARRAYS = 14  # intermediate arrays of one number per angle and frame in `angle_values` (counted)
TORSION_ARRAYS = 30  # the same for each torsion in `torsion_values` (counted)
GRADIENT_ARRAYS = 3  # copies of the gradients in memory during a decomposition (counted)
RCOND = 1e-10  # smaller singular values of J, relative to the largest, belong to rigid motions and scale (√EPS to EPS)
UNEXPLAINED = 1e-10  # largest share of a torsion's squared gradient that the angles may not explain, by rounding
TORSIONS = 4096  # torsions whose gradients are in memory at once: large enough for fast matrix products


def shape_angles(atoms: int) -> Indices:
    """The planar angles of a shape: every angle of every three atoms, (3·C(atoms, 3), 3).

    Examples
    --------
    >>> shape_angles(3).tolist()
    [[1, 0, 2], [0, 1, 2], [0, 2, 1]]
    """
    triples = np.array(list(combinations(range(atoms), 3)), dtype=np.intp).reshape(-1, 3)
    return triples[:, [[1, 0, 2], [0, 1, 2], [0, 2, 1]]].reshape(-1, 3)


def torsion_shapes(trajectory: Trajectory, callback: Callback | None = None) -> Array:
    """The shapes of a molecule at all frames by its torsions: their cosines and then their sines, (n, 2 m).

    Examples
    --------
    >>> from isopursuit.molecules import load_ethanol
    >>> shapes = torsion_shapes(load_ethanol())  # nine torsions about C–C, three about C–O
    >>> shapes.shape, round(float((shapes[0] ** 2).sum()), 6)
    ((16000, 24), 12.0)
    """
    n = len(trajectory.positions)
    try:
        rows = torsion_rows(trajectory, "bonds")
    except ParameterError as error:
        raise ParameterError(f"{error} Shapes without torsions along bonds are shapes='angles'.") from None
    if 16 * n * len(rows) > MAX_BYTES:
        raise BudgetError(
            f"The shapes of {n:,} frames with {len(rows):,} torsions take {16 * n * len(rows) / 1e9:,.1f} GB, and the "
            f"limit is {MAX_BYTES / 1e9:.1f} GB. Pass fewer atoms by atoms=, or a part of the trajectory's frames."
        )
    values = np.empty((n, 2 * len(rows)))
    for some in _blocks(n, TORSION_ARRAYS * len(rows)):
        turned = torsion_values(trajectory.positions[some], rows)
        values[some] = np.hstack([np.cos(turned), np.sin(turned)])
        if callback is not None:
            callback(some.stop, n)
    return values


def shape_values(positions: Array, callback: Callback | None = None) -> Array:
    """The shapes of a molecule at all frames by its planar angles, (n, m), of positions (n, atoms, 3)."""
    n, atoms, _ = positions.shape
    rows = shape_angles(atoms)
    values = np.empty((n, len(rows)))
    for some in _blocks(n, ANGLE_ARRAYS * len(rows)):
        values[some] = angle_values(positions[some], rows)
        if callback is not None:
            callback(some.stop, n)
    return values


@on_one_blas_thread
def shape_gradients(
    positions: ArrayLike,
    bases: ArrayLike,
    torsions: ArrayLike,
    *,
    frames: ArrayLike | None = None,
    callback: Callback | None = None,
) -> tuple[Array, Array]:
    """Gradients of torsions by the shape: their components (n, D, P) in tangent spaces, and whole lengths (n, P).

    Parameters
    ----------
    positions : array_like (n, atoms, 3)
        The molecule at n frames.
    bases : array_like (n, m, D)
        Orthonormal bases of the tangent spaces at these frames, among the m angles of `shape_values`.
    torsions : array_like (P, 4)
        The dictionary.
    frames : array_like (n,), optional
        The numbers of the frames, for messages.
    callback : callable, optional
        Called with the number of finished frames and the number of all frames.

    Raises
    ------
    GeometryError
        Atoms are collinear at a frame, or the molecule is flat there.
    """
    r, rows, tangents = np.asarray(positions, dtype=np.float64), np.asarray(torsions), np.asarray(bases)
    corners = shape_angles(r.shape[1])
    numbers = np.arange(len(r)) if frames is None else np.asarray(frames, dtype=np.intp)
    if tangents.ndim != 3 or tangents.shape[:2] != (len(r), len(corners)):
        raise ShapeError(f"bases must be ({len(r)}, {len(corners)}, D), one a frame; they are {tangents.shape}.")
    projected = np.empty((len(r), tangents.shape[2], len(rows)))
    lengths = np.empty((len(r), len(rows)))
    width = min(len(rows), TORSIONS)
    for some in _blocks(len(r), 3 * r.shape[1] * GRADIENT_ARRAYS * (len(corners) + width)):
        for functions in (corners, rows):
            refuse_lines(r[some], functions, numbers[some])
        U, S, Vt = np.linalg.svd(angle_gradients(r[some], corners), full_matrices=False)
        kept = RCOND * S[:, :1] < S
        along = (Vt @ tangents[some]).transpose(0, 2, 1)
        for first in range(0, len(rows), TORSIONS):
            part = slice(first, first + TORSIONS)
            gradients = torsion_gradients(r[some], rows[part])
            B = np.where(kept[:, :, None], U.transpose(0, 2, 1) @ gradients, 0.0)
            left: Array = 1 - (B**2).sum(axis=1) / (gradients**2).sum(axis=1)
            if left.max() > UNEXPLAINED:
                frame, worst = np.unravel_index(left.argmax(), left.shape)
                torsion = "–".join(map(str, rows[part][worst].tolist()))
                raise GeometryError(
                    f"In frame {numbers[some][frame]} the angles do not determine the torsion {torsion}: the molecule "
                    "is flat there. Leave out the frame."
                )
            K = B / np.where(kept, S, 1.0)[:, :, None]
            lengths[some, part] = np.sqrt(np.einsum("nrp,nrp->np", K, K))
            projected[some, :, part] = along @ K
        if callback is not None:
            callback(some.stop, len(r))
    return projected, lengths


def refuse_large(frames: int, atoms: int, points: int = 0, D: int = 0, torsions: int = 0) -> None:
    """Raise an error, before any work, if shapes and matrices need more than `MAX_BYTES`."""
    angles = 3 * comb(atoms, 3)
    sizes = {
        "dictionary='bonds' (the torsions along bonds), or fewer points by frames=": 3 * 8 * points * D * torsions,
        "fewer atoms by atoms=, or a part of the trajectory's frames": 8 * frames * angles,
        "fewer atoms by atoms=, such as the backbone": GRADIENT_ARRAYS * 8 * 3 * atoms * angles,
    }
    needed = sum(sizes.values())
    if needed > MAX_BYTES:
        raise BudgetError(
            f"{frames:,} frames of {atoms} atoms have {angles:,} planar angles each, and there are {torsions:,} "
            f"torsions: together this takes {needed / 1e9:,.1f} GB, and the limit is {MAX_BYTES / 1e9:.1f} GB. "
            f"Pass {max(sizes, key=lambda remedy: sizes[remedy])}."
        )


def _blocks(n: int, numbers_per_frame: int) -> list[slice]:
    """Slices that cover n frames. The intermediate arrays of a slice of several frames take at most `BLOCK_BYTES`."""
    size = max(1, BLOCK_BYTES // max(8 * numbers_per_frame, 1))
    return [slice(first, min(first + size, n)) for first in range(0, n, size)]
