"""
Where to put sensors
====================

A field is a sum of a few modes. Sensors at k places determine the k coefficients with little amplification of noise if
the places' vectors, one entry for each mode, are long and nearly orthogonal: that is what `select` looks for.
`PySensors <https://github.com/dynamicslab/pysensors>`_ takes the class below as an optimizer:
``SSPOR(basis=SVD(n_basis_modes=8), optimizer=IsometrySensors(), n_sensors=8)``.
"""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import qr

import isopursuit as ip


class IsometrySensors:
    """An optimizer for PySensors: all places, those of the best set first."""

    def __init__(self, k=None):
        self.k = k

    def fit(self, basis):
        """Place as many sensors as there are modes; `basis` has one row for each place."""
        vectors = np.transpose(basis)
        longest = float(np.linalg.norm(vectors, axis=0).max())  # long vectors are better than average ones
        self.selection_ = ip.select(vectors, self.k, unit=longest, method="exchange")
        first = self.selection_.indices[qr(self.selection_.matrix, mode="r", pivoting=True)[1]]
        self.sensors_ = np.concatenate([first, np.setdiff1d(np.arange(vectors.shape[1]), first)])
        return self

    def get_sensors(self):
        """All places, best first."""
        return self.sensors_.copy()


# %%
# A plate that is held at its edges vibrates in modes that are products of sines. The eight strongest modes come from
# 100 snapshots.

SIDE = 20
rng, number = np.random.default_rng(0), np.arange(1, 6)
shapes = np.sin(np.pi * np.outer(np.linspace(0, 1, SIDE), number))
amplitudes = rng.standard_normal((100, 5, 5)) / np.add.outer(number**2, number**2)
snapshots = np.einsum("xm,kmn,yn->kxy", shapes, amplitudes, shapes).reshape(100, -1)
modes = np.linalg.svd(snapshots, full_matrices=False)[2][:8].T

# %%
# The variance of the coefficients for noise of variance 1 is tr (ΘᵀΘ)⁻¹. Pivoted QR is the usual choice.


def variance(sensors):
    """The noise in the coefficients."""
    return (np.linalg.svd(modes[sensors], compute_uv=False) ** -2).sum()


ours, usual = IsometrySensors().fit(modes).get_sensors()[:8], qr(modes.T, pivoting=True)[2][:8]
print(f"isometry: {variance(ours):.0f}, pivoted QR: {variance(usual):.0f}")

figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for ax, sensors, title in ((axes[0], ours, "isometry"), (axes[1], usual, "pivoted QR")):
    ax.imshow(snapshots[0].reshape(SIDE, SIDE), cmap="RdBu_r")
    ax.plot(sensors % SIDE, sensors // SIDE, "ko", markerfacecolor="none", markersize=10)
    ax.set(title=f"{title}: variance {variance(sensors):.0f}", xticks=[], yticks=[])
