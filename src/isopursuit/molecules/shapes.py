"""The shapes of a molecule along a trajectory, and the gradients of torsions by the shape, in bounded memory.

Molecules that differ by a rigid motion or a scale have the same planar angles, which are the *shape* of the molecule.
Torsions depend only on the shape. With the gradients J of the angles and B of the torsions, both by position, the
gradient of the torsions by the angles is the shortest with J G = B,

    G = J⁺ B.

With J = U S Vᵀ it is G = V K, K = S⁻¹ Uᵀ B. Columns of G are as long as those of K, which has at most 3·atoms rows
where G has hundreds, and their components along tangent vectors T are (Vᵀ T)ᵀ K, so G is never formed. A flat molecule
raises an error: bending it out of its plane changes torsions to first order, but angles only to second order.

The memory that a trajectory needs is computed before any work. Angles are computed in blocks of frames, so only the
intermediate arrays of one block are in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import ArrayLike

from isopursuit._core.options import as_exponent
from isopursuit._core.threads import on_one_blas_thread
from isopursuit._core.types import Array, Indices
from isopursuit.errors import BudgetError, GeometryError, ShapeError
from isopursuit.manifold.internal import (
    all_angles,
    angle_gradients,
    angle_values,
    refuse_lines,
    torsion_gradients,
)
from isopursuit.pursuit.normalize import Normalization, log_lengths

Callback = Callable[[int, int], object]  # the amount done, and the total amount

BLOCK_BYTES = 64 << 20  # bytes of intermediate arrays at once; 16 MB to 256 MB take the same time (measured, 22 atoms)
# most bytes of shapes and matrices together: half of a laptop's memory (guess)
MAX_BYTES = 4 << 30
ANGLE_ARRAYS = 14  # intermediate arrays of one number per angle and frame in `angle_values` (counted)
GRADIENT_ARRAYS = 3  # copies of the gradients in memory during a decomposition (measured)
ITEM = 8  # bytes of a float64
RCOND = 1e-10  # smaller singular values of J, relative to the largest, belong to rigid motions and scale
UNEXPLAINED = 1e-10  # largest share of a torsion's squared gradient that the angles may not explain, by rounding
TORSIONS = 4096  # torsions whose gradients are in memory at once (guess: large enough for fast matrix products)


class Progress:
    """One callback for several steps of known work."""

    def __init__(self, callback: Callback | None, works: Sequence[float]) -> None:
        self.callback, self.works = callback, works

    def step(self, number: int) -> Callback | None:
        """The callback for one step. It reports thousandths of the whole."""
        callback = self.callback
        if callback is None:
            return None
        whole, before, own = sum(self.works), sum(self.works[:number]), self.works[number]
        return lambda done, total: callback(round(1000 * (before + own * done / total) / whole), 1000)


def count_angles(atoms: int) -> int:
    """The number of rows of `all_angles`."""
    return 3 * comb(atoms, 3)


def count_torsions(atoms: int) -> int:
    """The number of rows of `all_torsions`."""
    return 6 * comb(atoms, 4)


def shapes(positions: Array, callback: Callback | None = None) -> tuple[Array, Indices]:
    """All planar angles (n, m) of positions (n, atoms, 3), computed in blocks of frames, and their atoms (m, 3)."""
    n, atoms, _ = positions.shape
    rows = all_angles(atoms)
    values = np.empty((n, len(rows)))
    for some in frame_blocks(n, ANGLE_ARRAYS * len(rows)):
        values[some] = angle_values(positions[some], rows)
        if callback is not None:
            callback(some.stop, n)
    return values, rows


def frame_blocks(n: int, numbers_per_frame: int) -> list[slice]:
    """Slices that cover n frames. The intermediate arrays of a slice of several frames take at most `BLOCK_BYTES`."""
    size = max(1, BLOCK_BYTES // max(ITEM * numbers_per_frame, 1))
    return [slice(first, min(first + size, n)) for first in range(0, n, size)]


@dataclass(frozen=True)
class ShapeGradients:
    """Gradients by the shape, projected onto tangent spaces.

    `projected` (n, D, P) are their components in the tangent bases; `lengths` (n, P) those of the whole gradients.
    """

    projected: Array
    lengths: Array

    def normalized(self, c: float = 1.0, normalization: Normalization = "symmetric") -> Array:
        """The components of the gradients after normalizing their whole lengths, as in the paper for Ethanol.

        The length of a column is then that of the part of a normalized gradient along the manifold. If gradients were
        normalized after projection, a torsion that mostly describes vibrations across the manifold could look like a
        coordinate.
        """
        # a gradient of length t becomes one of length 1/g(t)
        scale = np.exp(log_lengths(self.lengths, as_exponent(c), normalization)) / self.lengths
        return self.projected * scale[:, None]


@on_one_blas_thread
def shape_gradients(
    positions: ArrayLike,
    tangents: ArrayLike,
    torsions: ArrayLike,
    *,
    angles: ArrayLike | None = None,
    frames: ArrayLike | None = None,
    callback: Callback | None = None,
) -> ShapeGradients:
    """Gradients of torsions by the planar angles, projected onto tangent spaces of the manifold of angles.

    Parameters
    ----------
    positions : array_like (n, atoms, 3)
        The molecule at n frames.
    tangents : array_like (n, m, D)
        Orthonormal bases of the tangent spaces at these frames, in the m angles.
    torsions : array_like (P, 4)
        The dictionary.
    angles : array_like (m, 3), optional
        The angles that describe the shape. Default: `all_angles`.
    frames : array_like (n,), optional
        The numbers of the frames, for messages.
    callback : callable, optional
        Called with the number of finished frames and the number of all frames.

    Raises
    ------
    GeometryError
        Atoms are collinear at a frame, or the angles do not determine the torsions.
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
    width = min(len(rows), TORSIONS)
    for some in frame_blocks(len(r), 3 * r.shape[1] * GRADIENT_ARRAYS * (len(corners) + width)):
        for functions in (corners, rows):
            refuse_lines(r[some], functions, numbers[some])
        U, S, Vt = np.linalg.svd(angle_gradients(r[some], corners), full_matrices=False)
        kept = RCOND * S[:, :1] < S
        along = (Vt @ bases[some]).transpose(0, 2, 1)
        for first in range(0, len(rows), TORSIONS):
            part = slice(first, first + TORSIONS)
            gradients = torsion_gradients(r[some], rows[part])
            B = np.where(kept[:, :, None], U.transpose(0, 2, 1) @ gradients, 0.0)
            _refuse_unexplained(B, gradients, rows[part], numbers[some])
            K = B / np.where(kept, S, 1.0)[:, :, None]
            lengths[some, part] = np.sqrt(np.einsum("nrp,nrp->np", K, K))
            projected[some, :, part] = along @ K
        if callback is not None:
            callback(some.stop, len(r))
    return ShapeGradients(projected, lengths)


def refuse_large(frames: int, atoms: int, points: int, D: int, torsions: int) -> None:
    """Raise an error, before any work, if the arrays need more than `MAX_BYTES`."""
    angles = count_angles(atoms)
    features = ITEM * frames * angles
    # the normalized copy of the matrices, and the copy of a selection
    matrices = 3 * ITEM * points * D * torsions
    gradients = GRADIENT_ARRAYS * ITEM * 3 * atoms * angles
    needed = features + matrices + gradients
    if needed <= MAX_BYTES:
        return
    what = (
        f"{frames:,} frames of {atoms} atoms have {angles:,} planar angles each ({_size(features)}), and {torsions:,} "
        f"torsions at {points:,} frames make matrices of {_size(matrices)}"
    )
    remedies = {
        matrices: "Pass torsions='bonds' (the torsions along bonds), or fewer frames to make matrices at.",
        features: "Take fewer atoms, such as trajectory.select('heavy'), or thin the trajectory: "
        f"keep one frame in {max(2, -(-needed // MAX_BYTES))}.",
        gradients: "Take fewer atoms, such as trajectory.select('heavy') or the backbone.",
    }
    first = max(remedies)
    raise BudgetError(
        f"{what}; together with one frame's gradients that is {_size(needed)}, and the limit is {_size(MAX_BYTES)}. "
        f"{remedies[first]}"
    )


def _size(count: float) -> str:
    """A number of bytes as text."""
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count / 1e3:.3g} kB"


def _refuse_unexplained(explained: Array, gradients: Array, rows: Indices, numbers: Indices) -> None:
    """Raise an error for torsions whose gradients are not determined by those of the angles."""
    left: Array = 1 - (explained**2).sum(axis=1) / (gradients**2).sum(axis=1)
    if left.size and left.max() > UNEXPLAINED:
        frame, worst = np.unravel_index(left.argmax(), left.shape)
        torsion = "–".join(map(str, rows[worst].tolist()))
        raise GeometryError(
            f"In frame {numbers[frame]} the angles do not determine the torsion {torsion}: the molecule is flat there, "
            "or there are too few angles. Leave out the frame, or pass more angles."
        )
