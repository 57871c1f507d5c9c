"""Which torsions tell the shape of ethanol? The paper's experiment, on the trajectory that comes with the package.

python examples/ethanol.py [FILE]     another trajectory: MD17's or rMD17's .npz, or your own in the same order of atoms

At each of 100 frames two of 756 torsions are picked. The axes of most are no bonds; which bond turns a torsion is told
by its rates. Then the same with the twelve torsions along bonds.
"""

import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import isopursuit as ip
from isopursuit.manifold.ethanol import ETHANOL_BONDS, load_ethanol
from isopursuit.manifold.internal import bond_torsions
from isopursuit.manifold.molecules import TorsionMatrices, rotatable_bonds, torsion_matrices, turning_rates
from isopursuit.plots import plot_molecule

FRAMES = 100
METHODS = ("greedy", "two-stage", "exact")
ethanol = load_ethanol(sys.argv[1] if len(sys.argv) > 1 else None)


def compare(found: TorsionMatrices) -> np.ndarray:
    """Pick by every method, print a row for each, and return the exact picks (frames, 2)."""
    # the bond that turns a torsion fastest: 0 for C–C, the methyl group's, 1 for C–O, the hydroxyl group's
    rates = turning_rates(ethanol.positions[found.frames], found.torsions, ETHANOL_BONDS)
    turned_by = np.abs(rates).argmax(axis=1)
    print(f"{'method':<12}{'loss':>16}{'one of each':>14}{'both C–C':>10}{'both C–O':>10}{'seconds':>10}")
    picks = np.empty((len(found.frames), 2), dtype=int)
    for method in METHODS:
        began = time.perf_counter()
        picked = [ip.select(X, method=method) for X in found.matrices]
        seconds = time.perf_counter() - began
        losses = np.array([one.loss for one in picked])
        picks = np.array([one.indices for one in picked])
        hydroxyl = np.take_along_axis(turned_by, picks, axis=1).sum(axis=1)
        shares = "".join(f"{(hydroxyl == n).mean():>{width}.0%}" for n, width in ((1, 14), (0, 10), (2, 10)))
        print(f"{method:<12}{losses.mean():>9.3f} ± {losses.std(ddof=1):.3f}{shares}{seconds:>10.1f}")
    return picks


def shares(pairs: np.ndarray) -> dict[tuple[int, int], float]:
    """How often each pair of atoms comes, of all."""
    unique, counts = np.unique(np.sort(pairs, axis=1), axis=0, return_counts=True)
    return {(i, j): float(count) / len(pairs) for (i, j), count in zip(unique.tolist(), counts, strict=True)}


def main() -> None:
    """Both dictionaries, and a picture."""
    frames = np.random.default_rng(0).choice(len(ethanol.positions), FRAMES, replace=False)
    print(f"{ethanol}, {FRAMES} frames at random")
    began = time.perf_counter()
    every = torsion_matrices(ethanol, frames)
    print(f"\nall {len(every.labels)} torsions (matrices in {time.perf_counter() - began:.1f} s)")
    picks = compare(every)
    along = torsion_matrices(ethanol, frames, torsions=bond_torsions(ETHANOL_BONDS))
    print(f"\nthe {len(along.labels)} torsions along bonds")
    compare(along)

    number, times = np.unique(picks, return_counts=True)
    print("\nmost often picked of all, exactly:")
    for i in np.argsort(-times, kind="stable")[:5]:
        print(f"  {every.labels[number[i]]:<24}{times[i]:>3} of {FRAMES} frames")

    rates = turning_rates(ethanol.positions[frames], every.torsions, ETHANOL_BONDS)
    bonds = np.array(rotatable_bonds(ETHANOL_BONDS))
    turned = bonds[np.take_along_axis(np.abs(rates).argmax(axis=1), picks, axis=1).ravel()]
    axes = every.torsions[picks.ravel(), 1:3]
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 5), layout="constrained")
    plot_molecule(ethanol.symbols, ETHANOL_BONDS, shares(axes), left).set_title("axes of the picked torsions")
    plot_molecule(ethanol.symbols, ETHANOL_BONDS, shares(turned), right).set_title("bonds that turn them fastest")
    output = Path("output")
    output.mkdir(exist_ok=True)
    figure.savefig(output / "ethanol.png", dpi=120)
    print(f"\nA picture is in {output / 'ethanol.png'}.")


if __name__ == "__main__":
    main()
