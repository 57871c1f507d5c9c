"""
What the loss sees
==================

The pictures behind :doc:`the geometry </explanation/geometry>`: two of forty vectors in the plane, what a length
costs, and what happens when the scale is wrong.
"""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import isopursuit as ip
from isopursuit.plots import plot_length_curves, plot_lengths, plot_vectors

# %%
# Forty vectors of many lengths and directions. The two picked are nearly at right angles and nearly of length 1.

rng = np.random.default_rng(3)
angle, length = rng.uniform(0, 2 * np.pi, 40), np.exp(rng.normal(0, 0.6, 40))
X = length * np.array([np.cos(angle), np.sin(angle)])
picked = ip.select(X, method="exact")
print(picked)
plot_vectors(X, picked, plt.subplots(figsize=(6, 5), layout="constrained")[1])

# %%
# What one vector of length t costs, and how long the pursuit makes it: longest at 1, and the same for t and 1/t. The
# larger c, the less a length may differ from 1.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
plot_length_curves("loss", ax=left)
plot_length_curves("length", ax=right)

# %%
# The same vectors in a unit three times as small. All numbers are three times as large, the shortest vectors are now
# nearest to 1, and the pair is another. What "length 1" means is for you to say: see :doc:`/explanation/scale`.

other = ip.select(3 * X, method="exact")
print(picked.indices, other.indices)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
plot_lengths(X, picked, ax=left)
plot_lengths(3 * X, other, ax=right)
