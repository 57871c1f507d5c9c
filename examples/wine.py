"""
A balanced set of wines
=======================

Pick a few of 178 wines whose chemistry is as nearly orthonormal as possible. This script picks six wines with every
method, and then ten. ``make demo`` runs it.

Measurements are standardized, and the median length of the wines counts as 1: the method then prefers wines of average
length in different directions. :doc:`/explanation/scale` explains what else you can choose.
"""

import time
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import isopursuit as ip
from isopursuit.data import load_wine
from isopursuit.show import plot_gram, plot_singular_values

wine = load_wine()
names = [f"wine {i} ({kind})" for i, kind in enumerate(wine.classes)]


def compare(D: int) -> ip.Selection:
    """All methods on the first D measurements; the table, and the answer of the exact search."""
    X = wine.matrix(D)
    print(f"{D} of {X.shape[1]} wines, by {D} measurements. A perfectly balanced set has loss {D}.")
    began = time.perf_counter()
    pursuit = ip.isometry_pursuit(X / np.median(np.linalg.norm(X, axis=0)))
    seconds = time.perf_counter() - began
    print(f"isometry pursuit keeps {len(pursuit.support)} wines in {1e3 * seconds:.1f} ms: {pursuit.certificate}")
    print(f"{'method':<12}{'loss':>12}{'seconds':>10}  proof")
    for method in ("greedy", "two-stage", "exchange", "exact"):
        began = time.perf_counter()
        best = ip.select(X, method=method, unit="median", labels=names)
        print(f"{method:<12}{best.loss:>12.6f}{time.perf_counter() - began:>10.2f}  {best.verdict}")
    return best


# %%
# Six wines. The pursuit prunes a wine that the best six need, so the two-stage answer is worse, and so is that of
# greedy search. Exchange search finds the best six, and proves it here.

compare(6)

# %%
# Ten wines. Now the loss of greedy search is 36 % above the optimum. Brute force would have to try 10¹⁵ subsets.

picked = compare(10)

# %%
# The price of a wine is how much the loss rises if you replace it by its best substitute.

print(picked)

# %%
# The inner products of the ten wines, and the singular values of the matrix that they form. An orthonormal set has
# the identity on the left, and all singular values are 1.

figure, (left, right) = plt.subplots(1, 2, figsize=(13, 5.5), layout="constrained")
plot_gram(picked, ax=left)
plot_singular_values(picked, ax=right)

output = Path("output")
output.mkdir(exist_ok=True)
figure.savefig(output / "wine.png", dpi=120)
picked.to_html(output / "wine.html", X=wine.matrix(10), title="Ten wines")
print(f"The ten wines: a picture in {output / 'wine.png'}, a report in {output / 'wine.html'}.")
