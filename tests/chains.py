"""Molecules with known torsions: n-pentane, sampled exactly."""

import numpy as np

from isopursuit.molecules import Trajectory

KELVIN = 600.0
BOND, STRETCH = 1.54, 0.03  # Å: length and standard deviation
ANGLE, BENDING = np.radians(114), 62_500.0  # radians, K
TORSION = (355.03, -68.19, 791.32)  # K: of 1 + cos φ, 1 − cos 2φ, 1 + cos 3φ
WELL, DIAMETER = 98.0, 3.75  # K and Å: the Lennard-Jones potential of the two ends


def pentane(frames=4000, seed=0):
    """Independent frames of n-pentane's carbons in the united-atom force field TraPPE (Martin and Siepmann, 1998).

    Bonds and angles are normal, and torsions are accepted with their Boltzmann weight, so the sample is exact.
    """
    rng = np.random.default_rng(seed)
    parts, found = [], 0
    while found < frames:
        n = 4 * frames
        torsions = rng.uniform(-np.pi, np.pi, (n, 2))
        angles = ANGLE + np.sqrt(KELVIN / BENDING) * rng.normal(size=(n, 3))
        bonds = BOND + STRETCH * rng.normal(size=(n, 4))
        atoms = [np.tile([0.0, 1.0, 0.0], (n, 1)), np.zeros((n, 3)), bonds[:, :1] * [1.0, 0.0, 0.0]]
        for i, torsion in enumerate([np.zeros(n), *torsions.T]):
            atoms.append(_next(*atoms[-3:], bonds[:, i + 1], angles[:, i], torsion))
        ends = (DIAMETER / np.linalg.norm(atoms[5] - atoms[1], axis=1)) ** 6
        energy = sum(
            size * (1 - (-1) ** m * np.cos(m * torsions)).sum(axis=1) for m, size in enumerate(TORSION, start=1)
        )
        energy += 4 * WELL * (ends**2 - ends)
        kept = rng.uniform(size=n) < np.exp(-np.maximum(energy + WELL, 0) / KELVIN)
        parts.append(np.stack(atoms[1:], axis=1)[kept])
        found += int(kept.sum())
    return Trajectory(np.concatenate(parts)[:frames], [6] * 5, "pentane", bonds=[(0, 1), (1, 2), (2, 3), (3, 4)])


def _next(a, b, c, distance, angle, torsion):
    """The atom after a, b and c."""
    axis = (c - b) / np.linalg.norm(c - b, axis=1, keepdims=True)
    normal = np.cross(b - a, axis)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    aside = np.cos(torsion)[:, None] * np.cross(normal, axis) + np.sin(torsion)[:, None] * normal
    return c + distance[:, None] * (np.sin(angle)[:, None] * aside - np.cos(angle)[:, None] * axis)
