"""A small peptide."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation


@dataclass(frozen=True)
class Peptide:
    """Alanine dipeptide turned about N–CA and CA–C by known angles."""

    pdb: Path
    positions: np.ndarray  # (60, 22, 3)
    names: list
    residues: list
    symbols: list
    phi: np.ndarray  # radians, beyond that of the first frame
    psi: np.ndarray


def turned(positions, i, j, far, angle):
    """Positions whose atoms `far` are turned about the axis i–j."""
    axis = positions[j] - positions[i]
    turn = Rotation.from_rotvec(angle * axis / np.linalg.norm(axis))
    moved = positions.copy()
    moved[far] = turn.apply(positions[far] - positions[i]) + positions[i]
    return moved


@pytest.fixture(scope="session")
def peptide():
    pdb = Path(__file__).parent / "alanine_dipeptide.pdb"
    atoms = [line for line in pdb.read_text().splitlines() if line.startswith("ATOM")]
    start = np.array([[float(line[i : i + 8]) for i in (30, 38, 46)] for line in atoms])
    phi, psi = np.random.default_rng(0).uniform(-np.pi, np.pi, size=(2, 60))
    phi[0] = psi[0] = 0
    positions = [
        turned(turned(start, 6, 8, np.arange(9, 22), a), 8, 14, np.arange(15, 22), b)
        for a, b in zip(phi, psi, strict=True)
    ]
    return Peptide(
        pdb,
        np.array(positions),
        [line[12:16].strip() for line in atoms],
        [line[17:20] for line in atoms],
        [line[76:78].strip() for line in atoms],
        phi,
        psi,
    )
