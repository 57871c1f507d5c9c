"""
The coordinates of a rolled-up sheet
====================================

Which two of six functions are the coordinates? The arc length along the roll and the height are isometric coordinates,
and the other functions are distractors. The example estimates tangent spaces from noisy points and the slopes of the
functions on them, and picks one pair for all points.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import isopursuit as ip
from isopursuit.manifold import as_dictionary, differentials, tangent_spaces
from isopursuit.show import plot_coordinates, plot_manifold, plot_spectra

# %%
# 3,000 points of the roll with noise, and the values of six functions. Where the spiral has radius t, its arc length is
# nearly t²/2.

rng = np.random.default_rng(0)
t, height = 1.5 * np.pi * np.sqrt(rng.uniform(1, 9, 3000)), rng.uniform(0, 21, 3000)
points = np.column_stack([t * np.cos(t), height, t * np.sin(t)]) + 0.3 * rng.normal(size=(3000, 3))
values = {"arc length": t**2 / 2, "height": height, "x": points[:, 0], "z": points[:, 2], "radius": t}
values["wave"] = np.sin(t + height)

# %%
# Each of 100 places has a small matrix. Its columns are the slopes of the functions along the sheet.

places = rng.choice(3000, 100, replace=False)
spaces = tangent_spaces(points, places, D=2, neighbours=60)
print(spaces)
slopes = differentials(as_dictionary(values=values), spaces, points=points)

# %%
# One pair for all places, with every method, and a pair at each place.

for method in ("greedy", "two-stage", "exact"):
    picked = ip.select(slopes, method=method, aggregate="trimmed")
    print(f"{method:<12}{picked.loss_per_point:>10.4f}  {', '.join(map(str, picked.labels)):<24}{picked.verdict}")
print(ip.select_pointwise(slopes))

# %%
# ``find_coordinates`` does all of this in one call, and says how sure the answer is.

found = ip.find_coordinates(points, dictionary=values)
print(found)

# %%
# The roll coloured by both coordinates, their plane, where it is a rectangle, and the evidence for two dimensions.

figure, axes = plt.subplots(2, 2, figsize=(10, 9), layout="constrained")
plot_manifold(found, axes[0, 0])
plot_manifold(found, axes[0, 1], function=1)
plot_coordinates(found, axes[1, 0])
plot_spectra(found.tangents, axes[1, 1])
output = Path("output")
output.mkdir(exist_ok=True)
figure.savefig(output / "swiss_roll.png", dpi=100)
print(f"A picture is in {output / 'swiss_roll.png'}.")
