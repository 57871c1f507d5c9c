"""
Alanine dipeptide: φ and ψ
==========================

Which torsions describe how this peptide moves? Textbooks use φ and ψ, the torsions about the two bonds of the alpha
carbon. This example is given the trajectory and its bonds, finds the two torsions and writes them to a file for PLUMED.

``python examples/alanine_dipeptide.py FILE TOPOLOGY`` reads your own trajectory.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import isopursuit as ip
from isopursuit.molecules import load_alanine_dipeptide
from isopursuit.show import plot_coordinates, plot_dimension, plot_manifold, plot_molecule, plot_point_losses

output = Path("output")
output.mkdir(exist_ok=True)
data = sys.argv[1] if len(sys.argv) > 1 else load_alanine_dipeptide()
topology = sys.argv[2] if len(sys.argv) > 2 else None

# %%
# ``find_coordinates`` estimates tangent spaces of the shapes at 100 frames and the slopes of the four torsions about
# rotatable bonds along them, and picks one pair for all frames, with a proof that it is the best. Without a number of
# coordinates it compares several, and recommends two: the torsions of the peptide bonds, ω, hardly move.

found = ip.find_coordinates(data, topology=topology)
print(found)

# %%
# The loss at a frame is 2 where the pair is isometric. A few frames have badly estimated tangent spaces. The trimmed
# mean ignores them, and the result lists them.

losses = found.point_losses
print("loss at a frame:", *(f"{share:.0%} below {np.quantile(losses, share):.2f}" for share in (0.5, 0.9)), sep="  ")
print("worst frames:", *(f"{found.points[i]} ({losses[i]:.4g})" for i in found.worst(3)), sep="  ")

# %%
# Four coordinates add the two peptide bonds, which turn by about 13°, so that each bond of the backbone has a torsion.

four = ip.find_coordinates(data, 4, topology=topology)
print(four)

# %%
# Write the torsions for PLUMED, and as a table.

found.to_plumed(output / "plumed.dat")
found.to_table(output / "alanine_dipeptide.csv")
print((output / "plumed.dat").read_text(encoding="utf-8"))

# %%
# The manifold coloured by each of the two torsions, their plane (a Ramachandran plot), the loss at each frame, the
# comparison of dimensions, and the molecule with the four torsions.

figure, axes = plt.subplots(3, 2, figsize=(11, 13.5), layout="constrained")
plot_manifold(found, axes[0, 0])
plot_manifold(found, axes[0, 1], function=1)
plot_coordinates(found, axes[1, 0])
plot_point_losses(found, axes[1, 1])
plot_dimension(found.scan, axes[2, 0])
plot_molecule(four, axes[2, 1])
figure.savefig(output / "alanine_dipeptide.png", dpi=120)
print(f"A picture is in {output / 'alanine_dipeptide.png'}.")
