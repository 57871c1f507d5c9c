"""
The shape of ethanol
====================

Which torsions describe the shape of ethanol? This is the paper's experiment, on the trajectory that comes with the
package. It picks two of 756 torsions at each of 100 frames, then one pair for all frames, and repeats both with the
twelve torsions along bonds. Each torsion is assigned to the bond that turns it fastest.

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
from isopursuit.manifold import torsion_matrices
from isopursuit.molecules import (
    ETHANOL_BONDS,
    angle_values,
    bond_torsions,
    load_ethanol,
    rotatable_bonds,
    shape_angles,
    torsion_values,
    turning_rates,
)
from isopursuit.show import plot_coordinates, plot_frequencies, plot_manifold, plot_molecule

FRAMES = 100
METHODS = ("greedy", "two-stage", "exact")
PAPER = {"normalization": "symmetric", "unit": None}  # the gradients of the paper
ethanol = load_ethanol(sys.argv[1] if len(sys.argv) > 1 else None)
bonds = rotatable_bonds(ETHANOL_BONDS)  # C–C turns the methyl group, C–O the hydroxyl group


def turned_by(found: TorsionMatrices) -> np.ndarray:
    """The bond that turns each torsion fastest at each frame, (frames, P), as a number in `bonds`."""
    return np.abs(turning_rates(ethanol.positions[found.frames], found.torsions, ETHANOL_BONDS)).argmax(axis=1)


def compare(found: TorsionMatrices) -> tuple[ip.PointwiseSelection, ip.Selection]:
    """Print a row for each method; return the pointwise and the joint selection of the exact search."""
    turns = turned_by(found)
    print(f"{'method':<11}{'loss per frame':>15}{'one of each bond':>18}{'s':>6}   one pair for all frames")
    for method in METHODS:
        began = time.perf_counter()
        each = ip.select_pointwise(found, method=method)
        seconds = time.perf_counter() - began
        both = ip.select(found, method=method)
        share = np.mean(np.take_along_axis(turns, each.indices, axis=1).sum(axis=1) == 1)
        loss = f"{each.losses.mean():.3f} ± {each.losses.std(ddof=1):.3f}"
        pair = f"{', '.join(map(str, both.labels))} ({both.loss / FRAMES:.3f}, {both.verdict})"
        print(f"{method:<11}{loss:>15}{share:>18.0%}{seconds:>6.1f}   {pair}")
    return each, both


def shares(pairs: np.ndarray) -> dict[tuple[int, int], float]:
    """The share of each pair of atoms."""
    unique, counts = np.unique(np.sort(pairs, axis=1), axis=0, return_counts=True)
    return {(i, j): float(count) / len(pairs) for (i, j), count in zip(unique.tolist(), counts, strict=True)}


# %%
# All 756 torsions.

frames = np.random.default_rng(0).choice(len(ethanol.positions), FRAMES, replace=False)
print(f"{ethanol}, {FRAMES} frames at random")
began = time.perf_counter()
every = torsion_matrices(ethanol, frames, torsions="all", **PAPER)
print(f"\nall {len(every.labels)} torsions (gradients and tangent spaces in {time.perf_counter() - began:.1f} s)")
each, both = compare(every)

# %%
# The twelve torsions along bonds. The pair for all frames is what a chemist would choose: a torsion about C–C, which
# turns the methyl group, and one about C–O, which turns the hydroxyl group.

along = torsion_matrices(ethanol, frames, torsions=bond_torsions(ETHANOL_BONDS), **PAPER)
print(f"\nthe {len(along.labels)} torsions along bonds")
compare(along)

# %%
# The manifold coloured by each of the two picked torsions, their plane, and the picked torsions on the molecule.

some = np.random.default_rng(1).choice(len(ethanol.positions), 3000, replace=False)
shapes = angle_values(ethanol.positions[some], shape_angles(9))
values = torsion_values(ethanol.positions[some], every.torsions[both.indices])
figure, axes = plt.subplots(3, 2, figsize=(10.5, 12), height_ratios=(4, 4, 2.5), layout="constrained")
for ax, label, one in zip(axes[0], both.labels, values.T, strict=True):
    plot_manifold(shapes, one, ax=ax, label=label, cyclic=True)
plot_coordinates(*values.T, ax=axes[1, 0], labels=both.labels, cyclic=True)
plot_frequencies(each, ax=axes[1, 1])
turned = np.array(bonds)[np.take_along_axis(turned_by(every), each.indices, axis=1).ravel()]
picked = shares(every.torsions[each.indices.ravel(), 1:3])
plot_molecule(ethanol.symbols, ETHANOL_BONDS, picked, axes[2, 0]).set_title("axes of the torsions picked at frames")
plot_molecule(ethanol.symbols, ETHANOL_BONDS, shares(turned), axes[2, 1]).set_title("bonds that turn them fastest")
output = Path("output")
output.mkdir(exist_ok=True)
figure.savefig(output / "ethanol.png", dpi=120)
print(f"\nA picture is in {output / 'ethanol.png'}.")
