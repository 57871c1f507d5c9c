"""
The shape of ethanol
====================

Which torsions describe the shape of ethanol? Shapes are the cosines and sines of its torsions, candidates are all
torsions along three bonds and some distances. The paper's own experiment, with all planar angles as shapes and 756
torsions, is in :doc:`/reproduction`.

``python examples/ethanol.py FILE`` reads another trajectory: an .npz file of MD17 or rMD17, or your own with the same
order of atoms.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import isopursuit as ip
from isopursuit.manifold import internal_coordinates
from isopursuit.molecules import as_trajectory, load_ethanol
from isopursuit.show import plot_coordinates, plot_manifold, plot_molecule

ethanol = as_trajectory(sys.argv[1]) if len(sys.argv) > 1 else load_ethanol()
print(ethanol)

# %%
# The pair for all frames is what a chemist would choose: a torsion about C–C, which turns the methyl group, and one
# about C–O, which turns the hydroxyl group.

found = ip.find_coordinates(ethanol, dictionary="bonds", atoms="all")
print(found)

# %%
# Distances can be candidates as well. That from the hydroxyl's hydrogen to the methyl carbon follows the second
# torsion, but not evenly, so it is not picked.

distances = internal_coordinates(ethanol, {"HO–CH3": (8, 1), "O–CH3": (2, 1)})
both = internal_coordinates(ethanol, "bonds", atoms="all") + distances
print(ip.find_coordinates(ethanol, 2, dictionary=both, atoms="all"))

# %%
# The manifold coloured by each of the two torsions, their plane, and the torsions on the molecule.

figure, axes = plt.subplots(2, 2, figsize=(10.5, 9), layout="constrained")
plot_manifold(found, axes[0, 0])
plot_manifold(found, axes[0, 1], function=1)
plot_coordinates(found, axes[1, 0])
plot_molecule(found, axes[1, 1])
output = Path("output")
output.mkdir(exist_ok=True)
figure.savefig(output / "ethanol.png", dpi=120)
print(f"A picture is in {output / 'ethanol.png'}.")
