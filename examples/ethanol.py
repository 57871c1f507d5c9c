"""
The shape of ethanol
====================

Which torsions describe the shape of ethanol? This is the paper's experiment, on the trajectory that comes with the
package. It picks two of 756 torsions at each of 100 frames, then one pair for all frames.

``python examples/ethanol.py FILE`` reads another trajectory: an .npz file of MD17 or rMD17, or your own with the same
order of atoms.
"""

import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import isopursuit as ip
from isopursuit.manifold import tangent_spaces
from isopursuit.molecules import (
    ETHANOL_BONDS,
    load_ethanol,
    shape_gradients,
    shape_values,
    torsion_labels,
    torsion_rows,
    torsion_values,
)
from isopursuit.show import plot_coordinates, plot_frequencies, plot_manifold, plot_torsions

FRAMES, NEIGHBOURS = 100, 1000
ethanol = load_ethanol(sys.argv[1] if len(sys.argv) > 1 else None)
frames = np.random.default_rng(0).choice(len(ethanol.positions), FRAMES, replace=False)
print(f"{ethanol}, {FRAMES} frames at random")

# %%
# A shape consists of all 252 planar angles, so it does not depend on where the molecule is. Tangent planes of the
# manifold of shapes are estimated from the nearest shapes. The gradients of the 756 torsions by the shape are
# normalized as in the paper, where a gradient of length t gets length 1/g(t), and projected onto these planes.

began = time.perf_counter()
shapes = shape_values(ethanol.positions)
spaces = tangent_spaces(shapes, frames, D=2, neighbours=NEIGHBOURS)
rows = torsion_rows(ethanol, "all")
labels = torsion_labels(ethanol, rows)
projected, lengths = shape_gradients(ethanol.positions[frames], spaces.bases, rows)
normalized = ip.symmetric_normalize(lengths.reshape(1, -1)).reshape(lengths.shape)
matrices = projected * (normalized / lengths)[:, None]
print(f"{len(rows)} torsions, gradients and tangent spaces in {time.perf_counter() - began:.1f} s")

# %%
# The pair for all frames is what a chemist would choose: a torsion about C–C, which turns the methyl group, and one
# about C–O, which turns the hydroxyl group. Losses depend on the frames, because a single frame can have an
# ill-determined plane.

print(f"{'method':<11}{'loss per frame':>15}{'s':>6}   one pair for all frames")
for method in ("greedy", "two-stage", "exact"):
    began = time.perf_counter()
    each = ip.select_pointwise(matrices, method=method, labels=labels)
    seconds = time.perf_counter() - began
    both = ip.select(matrices, method=method, labels=labels)
    loss = f"{each.losses.mean():.3f} ± {each.losses.std(ddof=1):.3f}"
    pair = f"{', '.join(map(str, both.labels))} ({both.loss_per_point:.3f}, {both.verdict})"
    print(f"{method:<11}{loss:>15}{seconds:>6.1f}   {pair}")

# %%
# ``find_coordinates`` does all of this in one call, with the torsions along bonds, in units in which each torsion has
# mean square length 1. Its default shapes are cosines and sines of torsions instead of angles.

options = {"atoms": "all", "dictionary": "bonds", "frames": frames, "neighbours": NEIGHBOURS}
print(ip.find_coordinates(ethanol, 2, shapes="angles", **options))
found = ip.find_coordinates(ethanol, 2, **options)
print(found)

# %%
# The manifold coloured by each of the two torsions, their plane, how often torsions are picked at single frames, and
# the two pairs on the molecule.

some = np.random.default_rng(1).choice(len(shapes), 3000, replace=False)
values = torsion_values(ethanol.positions[some], rows[both.indices])
figure, axes = plt.subplots(3, 2, figsize=(10.5, 12), layout="constrained")
for ax, label, one in zip(axes[0], both.labels, values.T, strict=True):
    plot_manifold(shapes[some], one, ax=ax, label=label, cyclic=True)
plot_coordinates(*values.T, ax=axes[1, 0], labels=both.labels, cyclic=True)
plot_frequencies(each, ax=axes[1, 1])
atoms = [f"{symbol}{i}" for i, symbol in enumerate(ethanol.symbols)]
pairs = {"of all torsions": (rows[both.indices], both.labels), "along bonds": (found.torsions, found.labels)}
for ax, (title, (picked, names)) in zip(axes[2], pairs.items(), strict=True):
    plot_torsions(atoms, picked, ax, bonds=ETHANOL_BONDS, positions=ethanol.positions[0], labels=names)
    ax.set_title(title)
output = Path("output")
output.mkdir(exist_ok=True)
figure.savefig(output / "ethanol.png", dpi=120)
print(f"A picture is in {output / 'ethanol.png'}.")
