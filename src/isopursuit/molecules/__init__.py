"""Molecules in motion: trajectories, their torsions and shapes, and input files for PLUMED."""

from isopursuit.molecules._geometry import angle_gradients, angle_values, sines, torsion_gradients, torsion_values
from isopursuit.molecules._samples import ETHANOL_BONDS, load_alanine_dipeptide, load_ethanol
from isopursuit.molecules.plumed import plumed_labels, plumed_text
from isopursuit.molecules.shapes import shape_angles, shape_gradients, shape_values, torsion_shapes
from isopursuit.molecules.torsions import bond_torsions, rotatable_bonds, torsion_labels, torsion_rows
from isopursuit.molecules.trajectory import Trajectory, as_trajectory, find_bonds

__all__ = [
    "ETHANOL_BONDS",
    "Trajectory",
    "angle_gradients",
    "angle_values",
    "as_trajectory",
    "bond_torsions",
    "find_bonds",
    "load_alanine_dipeptide",
    "load_ethanol",
    "plumed_labels",
    "plumed_text",
    "rotatable_bonds",
    "shape_angles",
    "shape_gradients",
    "shape_values",
    "sines",
    "torsion_gradients",
    "torsion_labels",
    "torsion_rows",
    "torsion_shapes",
    "torsion_values",
]
