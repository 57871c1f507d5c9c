"""
The coordinates of a rolled-up sheet
====================================

Which two of 52 functions are the coordinates? The arc length along the roll and the height are isometric coordinates,
and the fifty other functions are distractors. The example estimates tangent spaces from noisy points, projects the
gradients of the functions on them, and picks one pair for all points, or a pair at each point. ``--table`` repeats this
for several levels of noise, on the swiss roll and on a flat torus, and prints how often it finds the true pair. That
takes a minute and is not run here.
"""

import argparse
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import isopursuit as ip
from isopursuit.manifold.dictionary import Differentials, differentials
from isopursuit.manifold.synthetic import Synthetic, clifford_torus, swiss_roll
from isopursuit.manifold.tangent import TangentSpaces, tangent_spaces
from isopursuit.show import plot_coordinates, plot_frequencies, plot_manifold, plot_spectra

POINTS, PLACES, NEIGHBOURS = 3000, 100, 60
LEVELS = {
    "swiss roll": (swiss_roll, (0.0, 0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 1.0)),
    "Clifford torus": (clifford_torus, (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)),
}

# %%
# Each of 100 places has a small matrix. Its columns are the gradients of the functions along the sheet.


def prepare(manifold: Synthetic, seed: int, D: int | None = None) -> tuple[TangentSpaces, Differentials]:
    """Tangent spaces at 100 of the points, and all functions' differentials there."""
    places = np.random.default_rng(seed).choice(POINTS, PLACES, replace=False)
    spaces = tangent_spaces(manifold.points, places, D=D, neighbours=NEIGHBOURS)
    return spaces, differentials(manifold.dictionary.take(places), spaces)


# %%
# Pick coordinates of one roll with every method, then a pair at each point, and draw the pictures.


def example() -> None:
    """Pick the coordinates of one roll, print them and draw them."""
    roll = swiss_roll(POINTS, noise=0.3)
    began = time.perf_counter()
    spaces, found = prepare(roll, 0)
    print(spaces)
    print(f"\n{'method':<12}{'loss':>10}  {'picked':<24}proof")
    for method in ("greedy", "two-stage", "exact"):
        picked = ip.select(found, method=method)
        print(f"{method:<12}{picked.loss:>10.4f}  {', '.join(map(str, picked.labels)):<24}{picked.verdict}")
    print(f"\n{picked}\n")
    pointwise = ip.select_pointwise(found)
    print(f"{pointwise}\n\n{time.perf_counter() - began:.1f} s in all")
    figure, axes = plt.subplots(3, 2, figsize=(10, 13), layout="constrained")
    for ax, label in zip(axes.flat, [*picked.labels, "wave 1"], strict=False):
        plot_manifold(roll.points, roll.dictionary.value(label), ax=ax, label=label)
    first, second = picked.labels
    plot_coordinates(roll.dictionary.value(first), roll.dictionary.value(second), ax=axes[1, 1], labels=(first, second))
    plot_spectra(spaces, ax=axes[2, 0])
    plot_frequencies(pointwise, ax=axes[2, 1])
    output = Path("output")
    output.mkdir(exist_ok=True)
    figure.savefig(output / "swiss_roll.png", dpi=100)
    print(f"A picture is in {output / 'swiss_roll.png'}.")


# %%
# The table of ``--table``.


def table(replicates: int) -> None:
    """Print how often the true coordinates are found; each replicate has its own points, noise and distractors."""
    print(f"{POINTS} points, {PLACES} tangent spaces from {NEIGHBOURS} neighbours, {replicates} replicates")
    for name, (make, levels) in LEVELS.items():
        titles = ("D = 2", "two-stage", "exact", "pointwise", "most often", "loss", "worst loss")
        print(f"\n{name:<16}{''.join(f'{title:>12}' for title in titles)}")
        for noise in levels:
            rows = [replicate(make(POINTS, noise=noise, rng=seed), seed) for seed in range(replicates)]
            *shares, _, _ = np.mean(rows, axis=0)
            middle, worst = np.median([row[-2:] for row in rows], axis=0)
            print(
                f"  noise {noise:<8g}{''.join(f'{share:>12.0%}' for share in shares)}{middle:>12.3f}{worst:>12.3g}",
                flush=True,
            )
    print("""
D = 2       how often the estimated dimension is 2
two-stage   how often the pair picked for all points is the true one
exact       the same for the exact search
pointwise   the share of points at which the true pair is picked
most often  how often the true pair is the most frequent pair of those picked pointwise
loss        loss of the true pair at a point (ideal 2), median over points and replicates
worst loss  its largest value over points, median over replicates; it can dominate the sum over points""")


def replicate(manifold: Synthetic, seed: int) -> tuple[float, ...]:
    """Whether the estimated dimension is 2, which methods find the true pair, and its median and worst loss."""
    right = prepare(manifold, seed)[0].dimension == 2
    _, found = prepare(manifold, seed, D=2)
    truth = sorted(manifold.dictionary.labels.index(label) for label in manifold.truth)
    joint = [ip.select(found, method=method).indices.tolist() == truth for method in ("two-stage", "exact")]
    pointwise = ip.select_pointwise(found)
    most = list(pointwise.subsets[0].indices) == truth
    losses = [ip.isometry_loss(matrix[:, truth]) for matrix in found.matrices]
    share = float((pointwise.indices == truth).all(axis=1).mean())
    return right, *joint, share, most, float(np.median(losses)), max(losses)


# %%

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Pick the coordinates of a swiss roll from 52 functions.")
    parser.add_argument("--table", action="store_true", help="print how often the true pair is found, by noise")
    parser.add_argument("--replicates", type=int, default=10)
    options = parser.parse_args()
    if options.table:
        table(options.replicates)
    else:
        example()
