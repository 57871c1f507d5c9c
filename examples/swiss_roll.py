"""
The coordinates of a rolled-up sheet
====================================

Which two of 52 functions are the coordinates? The arc length along the roll and the height are isometric coordinates,
and the fifty other functions are distractors. The example estimates tangent spaces from noisy points, projects the
gradients of the functions on them, and picks one pair for all points, or a pair at each point. How often it finds the
true pair in more noise is in :doc:`/howto/coordinates`.
"""

import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import isopursuit as ip
from isopursuit.manifold import Differentials, Synthetic, TangentSpaces, differentials, swiss_roll, tangent_spaces
from isopursuit.show import plot_coordinates, plot_frequencies, plot_manifold, plot_spectra

POINTS, PLACES, NEIGHBOURS = 3000, 100, 60

# %%
# Each of 100 places has a small matrix. Its columns are the gradients of the functions along the sheet.


def prepare(manifold: Synthetic, seed: int, D: int = 2) -> tuple[TangentSpaces, Differentials]:
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

example()
