"""Alanine dipeptide at 500 K: frames that come with the package.

The frames were simulated for this package by tools/simulate_alanine_dipeptide.py: one trajectory of 10 ns, Amber's
ff14SB in implicit solvent. The file's entry `provenance` says how.
"""

from __future__ import annotations

from importlib.resources import as_file, files

import numpy as np

from isopursuit.manifold.trajectory import Trajectory

STORED_UNIT = 0.001  # Å: positions are stored as integers of this unit


def load_alanine_dipeptide() -> Trajectory:
    """Alanine dipeptide (ACE-ALA-NME) at 500 K: 10,000 frames, 1 ps apart, with names, residues and bonds.

    The atoms have Amber's names. The bonds to hydrogen have a fixed length.

    Examples
    --------
    >>> peptide = load_alanine_dipeptide()
    >>> peptide.positions.shape
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
