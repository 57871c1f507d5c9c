"""Correlations of the breast-cancer features, and of the five that are picked."""

import numpy as np
from sklearn.datasets import load_breast_cancer
from style import FOLDER, picture

from isopursuit.estimators import IsometryFeatureSelector

PICKED = 5
DARK = 0.5  # |correlation| from which the number in a cell is white


def draw_map(ax, correlations):
    """A square for each pair of features."""
    drawn = ax.imshow(correlations, vmin=0, vmax=1, cmap="Blues")
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    return drawn


def draw():
    """Write features.svg."""
    data = load_breast_cancer()
    picked = IsometryFeatureSelector(PICKED, method="exact").fit(data.data).get_support(indices=True)
    correlations = np.abs(np.corrcoef(data.data.T))
    with picture(FOLDER / "features.svg", 7, 3.6, columns=2) as (before, after):
        draw_map(before, correlations)
        before.set(xticks=[], yticks=picked, yticklabels=["▶"] * PICKED, title=f"all {len(correlations)} features")
        inside = correlations[np.ix_(picked, picked)]
        drawn = draw_map(after, inside)
        names = [str(data.feature_names[i]).replace(" ", "\n", 1) for i in picked]
        after.set(xticks=[], yticks=range(PICKED), yticklabels=names, title=f"the {PICKED} picked")
        for (row, column), value in np.ndenumerate(inside):
            colour = "white" if value > DARK else "black"
            after.text(column, row, f"{value:.2f}", ha="center", va="center", color=colour)
        before.figure.colorbar(drawn, ax=(before, after), shrink=0.8, label="|correlation|")
