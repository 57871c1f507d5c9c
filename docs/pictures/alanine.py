"""Alanine dipeptide: the plane of the two torsions that are picked, and the molecule with both marked on it."""

from style import FOLDER, picture

import isopursuit as ip
from isopursuit.molecules import find_bonds, load_alanine_dipeptide
from isopursuit.show import plot_coordinates, plot_torsions


def draw():
    """Write alanine.svg."""
    found = ip.find_coordinates(load_alanine_dipeptide(), 2)
    trajectory = found.trajectory
    place = {int(serial): i for i, serial in enumerate(trajectory.serials)}
    torsions = [[place[atom] for atom in row] for row in found.atoms]
    with picture(FOLDER / "alanine.svg", 5.5, 7.6, rows=2, height_ratios=(1.5, 1)) as (plane, molecule):
        plot_coordinates(*found.values().T, plane, labels=found.labels, cyclic=True)
        plane.collections[0].set_rasterized(True)
        plot_torsions(
            trajectory.names,
            torsions,
            molecule,
            bonds=find_bonds(trajectory),
            positions=trajectory.positions[0],
            labels=found.labels,
        )
