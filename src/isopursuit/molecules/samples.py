"""Molecules that come with the package, both at 500 K.

Ethanol was simulated by tools/make_ethanol.py: 16 trajectories of 1,000 frames, GFN2-xTB. The paper used MD17
(S. Chmiela and others, 2017 and 2018), which is larger and computed with a better theory, but may not be redistributed
here. Alanine dipeptide was simulated by tools/simulate_alanine_dipeptide.py: one trajectory of 10 ns, Amber's ff14SB in
implicit solvent. The files' entry `provenance` says how.
"""

from __future__ import annotations

from importlib.resources import as_file, files

import numpy as np

from isopursuit.molecules.trajectory import Trajectory, as_trajectory

# atoms: C of CH2, C of CH3, O, then the hydrogens of CH2, CH3 and OH
ETHANOL_BONDS = ((0, 1), (0, 2), (0, 3), (0, 4), (1, 5), (1, 6), (1, 7), (2, 8))
STORED_UNIT = 0.001  # Å: the positions of the peptide are stored as integers of this unit


def load_ethanol() -> Trajectory:
    """Ethanol: 16,000 frames, with atoms in the order of MD17 and bonds `ETHANOL_BONDS`.

    Examples
    --------
    >>> load_ethanol()
    Trajectory(16000 frames of 9 atoms CCOHHHHHH, ethanol.npz)
    """
    with as_file(files("isopursuit") / "data" / "ethanol.npz") as embedded:
        return as_trajectory(embedded)


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
