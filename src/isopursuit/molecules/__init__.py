"""Molecules in motion: trajectories, their torsions and shapes, and input files for PLUMED."""

from isopursuit.molecules.geometry import angle_values, distance_values, internal_values, sines, torsion_values
from isopursuit.molecules.plumed import plumed_labels, plumed_text
from isopursuit.molecules.samples import ETHANOL_BONDS, load_alanine_dipeptide, load_ethanol
from isopursuit.molecules.shapes import torsion_shapes
from isopursuit.molecules.torsions import bond_torsions, internal_labels, rotatable_bonds, torsion_rows
from isopursuit.molecules.trajectory import Trajectory, as_trajectory, find_bonds

__all__ = [
    "ETHANOL_BONDS",
    "Trajectory",
    "angle_values",
    "as_trajectory",
    "bond_torsions",
    "distance_values",
    "find_bonds",
    "internal_labels",
    "internal_values",
    "load_alanine_dipeptide",
    "load_ethanol",
    "plumed_labels",
    "plumed_text",
    "rotatable_bonds",
    "sines",
    "torsion_rows",
    "torsion_shapes",
    "torsion_values",
]
