"""The matrices of the paper's experiment with ethanol, and the bonds that turn its torsions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import isopursuit as ip
from isopursuit.errors import FileError
from isopursuit.manifold import tangent_spaces
from isopursuit.molecules import ETHANOL_BONDS, Trajectory, as_trajectory, load_ethanol, rotatable_bonds
from paper.shapes import all_torsions, shape_gradients, shape_values, torsion_gradients

NEIGHBOURS = 1_000  # frames per tangent space
NUMBERS = (6, 6, 8, 1, 1, 1, 1, 1, 1)  # C of CH2, C of CH3, O, then the hydrogens of CH2, CH3 and OH
LONGEST_BOND = 1.9  # Å: longer than any bond of ethanol at any temperature at which it is stable


def ethanol_of(path: Path | None) -> Trajectory:
    """Return the package's ethanol, or that of a file of MD17, rMD17 or the user's own in the same order of atoms."""
    if path is None:
        return load_ethanol()
    trajectory = as_trajectory(path)
    i, j = np.array(ETHANOL_BONDS).T
    if (
        trajectory.numbers.tolist() != list(NUMBERS)
        or np.linalg.norm(trajectory.positions[0, i] - trajectory.positions[0, j], axis=1).max() > LONGEST_BOND
    ):
        raise FileError(
            f"{trajectory.source} contains {''.join(trajectory.symbols)}. Atoms must be ordered as ethanol's in MD17, "
            f"CCOHHHHHH with the bonds {ETHANOL_BONDS}."
        )
    return trajectory


def torsion_matrices(ethanol: Trajectory, frames: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all torsions and their gradients along the shapes' tangent planes, (frames, 2, P).

    As in the paper, a gradient of length t gets length 1/g(t) before it is projected: then a torsion that mostly
    describes vibrations across the manifold does not look like a coordinate.
    """
    rows = all_torsions(len(ethanol.numbers))
    spaces = tangent_spaces(shape_values(ethanol.positions), frames, D=2, neighbours=NEIGHBOURS)
    projected, lengths = shape_gradients(ethanol.positions[frames], spaces.bases, rows, frames)
    normalized = ip.symmetric_normalize(lengths.reshape(1, -1)).reshape(lengths.shape)
    return rows, projected * (normalized / lengths)[:, None]


def turning_rates(positions: np.ndarray, torsions: np.ndarray, bonds: Sequence[tuple[int, int]]) -> np.ndarray:
    """Return how fast each torsion changes as the molecule turns about each rotatable bond, (n, bonds, m)."""
    axes, (n, atoms, _) = rotatable_bonds(bonds), positions.shape
    motions = np.zeros((n, len(axes), atoms, 3))
    for turn, (i, j) in enumerate(axes):
        others = np.array([bond for bond in bonds if set(bond) != {i, j}]).T
        parts = connected_components(coo_array((np.ones(len(others[0])), others), shape=(atoms, atoms)))[1]
        far = parts == parts[j]
        axis = positions[:, [j]] - positions[:, [i]]
        # turning by dt moves an atom by (unit axis) × (arm) dt
        arms = positions[:, far] - positions[:, [i]]
        motions[:, turn, far] = np.cross(axis / np.linalg.norm(axis, axis=2, keepdims=True), arms)
    return motions.reshape(n, len(axes), -1) @ torsion_gradients(positions, torsions)
