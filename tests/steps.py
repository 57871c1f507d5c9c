"""The steps of `find_coordinates` for a molecule, in one call."""

from isopursuit.manifold import tangent_spaces, torsion_differentials
from isopursuit.molecules import shape_values


def torsion_matrices(trajectory, frames, *, D=2, neighbours=1000, torsions="bonds", unit="overall"):
    spaces = tangent_spaces(shape_values(trajectory.positions), frames, D=D, neighbours=neighbours)
    return torsion_differentials(trajectory, spaces, torsions, unit=unit)
