"""The shapes of a molecule along a trajectory: the cosine and sine of every torsion along three bonds.

Shapes are the same for molecules that differ by a rigid motion. They know how far each bond has turned and tell mirror
images apart. They forget bond lengths and angles, and the distance between parts that no chain of bonds joins. All
torsions about one bond turn together, so a bond with more substituents counts more: bonds between tetrahedral atoms,
which turn freely, more than planar ones, which vibrate (measured: valine's φ, ψ and χ1 are found with 330 of 6,000
frames in 6 of 6 draws, and in 2 of 6 if every bond counts the same).
"""

from __future__ import annotations

import numpy as np

from isopursuit._core.types import Array
from isopursuit.errors import BudgetError
from isopursuit.molecules.geometry import torsion_values
from isopursuit.molecules.torsions import torsion_rows
from isopursuit.molecules.trajectory import Trajectory

MAX_BYTES = 4 << 30  # most bytes of shapes: a quarter of a laptop's memory (chosen)
BLOCK = 1 << 18  # torsions at once: about 30 intermediate numbers each, 64 MB together (derived)


def torsion_shapes(trajectory: Trajectory) -> Array:
    """The shapes of a molecule at all frames by its torsions: their cosines and then their sines, (n, 2 m).

    Examples
    --------
    >>> from isopursuit.molecules import load_ethanol
    >>> shapes = torsion_shapes(load_ethanol())  # nine torsions about C–C, three about C–O
    >>> shapes.shape, round(float((shapes[0] ** 2).sum()), 6)
    ((16000, 24), 12.0)
    """
    n, rows = len(trajectory.positions), torsion_rows(trajectory, "bonds")
    if 16 * n * len(rows) > MAX_BYTES:
        raise BudgetError(
            f"The shapes of {n:,} frames with {len(rows):,} torsions take {16 * n * len(rows) / 1e9:,.1f} GB, and the "
            f"limit is {MAX_BYTES / 1e9:.1f} GB. Pass fewer atoms by atoms=, or a part of the trajectory's frames."
        )
    values, step = np.empty((n, 2 * len(rows))), max(1, BLOCK // len(rows))
    for first in range(0, n, step):
        turned = torsion_values(trajectory.positions[first : first + step], rows)
        values[first : first + step] = np.hstack([np.cos(turned), np.sin(turned)])
    return values
