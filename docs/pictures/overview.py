"""The README's picture: two vectors of a plane that are nearly orthonormal, and correlations before and after."""

import numpy as np
from style import BLUE, FOLDER, GREY, picture

import isopursuit as ip
from isopursuit.data import load_wine

PICKED_FEATURES = 5


def draw_plane(ax):
    """Twelve vectors of the plane, and the two that are best."""
    X = 0.8 * np.random.default_rng(1).standard_normal((2, 12))
    picked = ip.select(X, method="exact").indices
    for i, (x, y) in enumerate(X.T):
        colour, width, order = (BLUE, 2.2, 3) if i in picked else (GREY, 0.9, 2)
        arrow = {"arrowstyle": "-|>", "color": colour, "linewidth": width, "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", (x, y), (0, 0), arrowprops=arrow, zorder=order)
    turn = np.linspace(0, 2 * np.pi, 200)
    ax.plot(np.cos(turn), np.sin(turn), ":", color=GREY, linewidth=1)
    ax.text(0.74, -0.74, "length 1", ha="left", va="top", fontsize=9)
    reach = 1.05 * max(1.0, np.abs(X).max())
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xticks=[], yticks=[])
    ax.set_title(f"the best 2 of\n{X.shape[1]} vectors")
    ax.spines[:].set_visible(False)


def draw_correlations(ax, X, title):
    """Absolute correlations of columns that are centred and of length 1."""
    drawn = ax.imshow(np.abs(X.T @ X), vmin=0, vmax=1, cmap="Blues")
    ax.set(xticks=[], yticks=[], title=title)
    ax.spines[:].set_visible(False)
    return drawn


def draw():
    """Write overview.svg."""
    wine = load_wine().standardized()
    wine /= np.linalg.norm(wine, axis=0)
    picked = ip.select(wine, PICKED_FEATURES, unit="each", method="exact")
    with picture(FOLDER / "overview.svg", 7, 2.8, columns=3) as (plane, before, after):
        draw_plane(plane)
        draw_correlations(before, wine, f"|correlation| of\n{wine.shape[1]} columns")
        drawn = draw_correlations(after, wine[:, picked.indices], f"of the best {PICKED_FEATURES},\n{picked.verdict}")
        plane.figure.colorbar(drawn, ax=after, shrink=0.8)
