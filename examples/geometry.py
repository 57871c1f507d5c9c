"""
What the loss sees
==================

Pick two of forty vectors in the plane, see what a length costs, and change the scale. :doc:`/explanation/geometry`
explains the loss.
"""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import isopursuit as ip
from isopursuit.show import plot_lengths, plot_vectors

# %%
# Forty vectors have many lengths and directions. The two picked ones are nearly at right angles, and their lengths are
# nearly 1. The sign of a vector does not matter: the loss of x and of −x is the same.

rng = np.random.default_rng(3)
angle, length = rng.uniform(0, 2 * np.pi, 40), np.exp(rng.normal(0, 0.6, 40))
X = length * np.array([np.cos(angle), np.sin(angle)])
picked = ip.select(X, method="exact")
print(picked)
plot_vectors(X, picked, plt.subplots(figsize=(6, 5), layout="constrained")[1])

# %%
# The left panel shows what one vector of length t costs. The right panel shows the length that the pursuit gives it,
# which is largest at t = 1. Both are the same for t and 1/t. A larger c is stricter.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
t = np.exp(np.linspace(-np.log(5), np.log(5), 201))
for c in (0.5, 1, 2, 5):
    left.plot(t, [ip.isometry_loss([[x]], c) for x in t], label=f"c = {c}")
    right.plot(t, ip.symmetric_normalize(t[None], c)[0], label=f"c = {c}")
for ax, label in ((left, "loss"), (right, "length in the pursuit")):
    ax.set(xscale="log", xlabel="length t", ylabel=label)
left.set_ylim(0.5, 5)
left.legend()

# %%
# Measure the same vectors in a unit that is three times smaller. All lengths are then three times larger, other vectors
# are nearest to length 1, and the search picks another pair. You decide what "length 1" means: see
# :doc:`/explanation/scale`.

other = ip.select(3 * X, method="exact")
print(picked.indices, other.indices)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
plot_lengths(X, picked, ax=left)
plot_lengths(3 * X, other, ax=right)
