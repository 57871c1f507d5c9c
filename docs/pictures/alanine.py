"""Alanine dipeptide: the plane of the two torsions that are picked, and the molecule with both marked on it."""

from style import FOLDER, picture

import isopursuit as ip
from isopursuit.molecules import load_alanine_dipeptide
from isopursuit.show import plot_coordinates, plot_molecule


def draw():
    """Write alanine.svg."""
    found = ip.find_coordinates(load_alanine_dipeptide(), 2)
    with picture(FOLDER / "alanine.svg", 5.5, 7.6, rows=2, height_ratios=(1.5, 1)) as (plane, molecule):
        plot_coordinates(found, plane)
        plane.collections[0].set_rasterized(True)
        plot_molecule(found, molecule)
