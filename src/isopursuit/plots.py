"""Pictures (extra `plot`). Each takes `ax` and returns it; matplotlib is imported only here, when called."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isopursuit.results import Selection

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours: distinct for colour-blind eyes and in grey
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#999999"


def plot_gram(selection: Selection, ax: Axes | None = None) -> Axes:
    """The inner products of the picked columns: the identity if they are orthonormal."""
    ax = _axes(ax)
    gram = selection.matrix.T @ selection.matrix
    extent = max(1.0, float(np.abs(gram).max()))
    image = ax.imshow(gram, cmap="RdBu_r", vmin=-extent, vmax=extent)
    names = [str(label) for label in selection.labels]
    ax.set_xticks(range(selection.k), names, rotation=90)
    ax.set_yticks(range(selection.k), names)
    ax.set_title("Inner products of the picked columns")
    ax.figure.colorbar(image, ax=ax, shrink=0.8)
    return ax


def plot_singular_values(selection: Selection, ax: Axes | None = None) -> Axes:
    """The singular values of the picked columns against the ideal, 1."""
    ax = _axes(ax)
    sigma = np.linalg.svd(selection.matrix, compute_uv=False)
    place = np.arange(1, len(sigma) + 1)
    ax.axhline(1.0, color=GREY, linestyle="--", label="orthonormal")
    ax.vlines(place, 1.0, sigma, color=BLUE)
    ax.plot(place, sigma, "o", color=BLUE, label=f"{selection.method}, loss {selection.loss:.4g} (ideal {selection.k})")
    ax.set_yscale("log")
    ax.set_xlabel("singular value, by rank")
    ax.set_ylabel("size")
    ax.set_title("Singular values of the picked columns")
    ax.legend()
    return ax


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots()[1]
