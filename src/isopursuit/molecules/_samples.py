"""Molecules that come with the package, both at 500 K.

Ethanol was simulated by tools/make_ethanol.py: 16 trajectories of 1,000 frames, GFN2-xTB. The paper used MD17
(S. Chmiela and others, 2017 and 2018), which is larger and computed with a better theory, but may not be redistributed
here. Alanine dipeptide was simulated by tools/simulate_alanine_dipeptide.py: one trajectory of 10 ns, Amber's ff14SB in
implicit solvent. The files' entry `provenance` says how.
"""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

from isopursuit.errors import FileError
from isopursuit.molecules.trajectory import Trajectory, as_trajectory

ETHANOL_NUMBERS = (6, 6, 8, 1, 1, 1, 1, 1, 1)  # C of CH2, C of CH3, O, then the hydrogens of CH2, CH3 and OH
ETHANOL_BONDS = ((0, 1), (0, 2), (0, 3), (0, 4), (1, 5), (1, 6), (1, 7), (2, 8))
LONGEST_BOND = 1.9  # Å: longer than any bond of ethanol at any temperature at which it is stable
STORED_UNIT = 0.001  # Å: the positions of the peptide are stored as integers of this unit


def load_ethanol(path: str | Path | None = None) -> Trajectory:
    """Ethanol, with atoms in the order of MD17 and bonds `ETHANOL_BONDS`.

    Parameters
    ----------
    path : str or Path, optional
        A file of MD17, rMD17 or your own. Default: the 16,000 frames that come with the package.

    Examples
    --------
    >>> load_ethanol()
    Trajectory(16000 frames of 9 atoms CCOHHHHHH, ethanol.npz)
    """
    if path is None:
        with as_file(files("isopursuit") / "data" / "ethanol.npz") as embedded:
            return as_trajectory(embedded)
    trajectory = as_trajectory(path)
    if trajectory.numbers.tolist() != list(ETHANOL_NUMBERS):
        raise FileError(
            f"{trajectory.source} contains {''.join(trajectory.symbols)}, not ethanol in the order of MD17, CCOHHHHHH."
        )
    i, j = np.array(ETHANOL_BONDS).T
    if np.linalg.norm(trajectory.positions[0, i] - trajectory.positions[0, j], axis=1).max() > LONGEST_BOND:
        raise FileError(f"{trajectory.source}: the atoms must be ordered as in MD17, with the bonds {ETHANOL_BONDS}.")
    return trajectory


def load_alanine_dipeptide() -> Trajectory:
    """Alanine dipeptide (ACE-ALA-NME): 10,000 frames, 1 ps apart, with names, residues and bonds.

    The atoms have Amber's names. The bonds to hydrogen have a fixed length.

    Examples
    --------
    >>> load_alanine_dipeptide().positions.shape
    (10000, 22, 3)
    """
    name = "alanine_dipeptide.npz"
    with as_file(files("isopursuit") / "data" / name) as path, np.load(path, allow_pickle=False) as archive:
        return Trajectory(
            archive["positions"] * STORED_UNIT,
            archive["numbers"],
            name,
            names=tuple(archive["names"].tolist()),
            residues=tuple(archive["residues"].tolist()),
            bonds=tuple((i, j) for i, j in archive["bonds"].tolist()),
        )
