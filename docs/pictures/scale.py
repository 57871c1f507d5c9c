"""Lengths of the Wine data's rows, and the rows that are picked when another length counts as 1."""

import numpy as np
from style import BLUE, FOLDER, GREY, ORANGE, picture

import isopursuit as ip
from isopursuit.data import load_wine

PICKED_ROWS = 6
UNITS = {"unit=None: lengths as given": None, 'unit="median"': "median", 'unit="each": angles alone': "each"}


def draw_lengths(ax, X, strips):
    """One strip for each (title, picked columns, length that counts as 1 or None); a dot is a column of X."""
    lengths = np.linalg.norm(X, axis=0)
    spread = np.random.default_rng(0).uniform(-0.17, 0.17, len(lengths))
    for i, (title, picked, one) in enumerate(strips):
        ax.plot(lengths, spread - i, "o", color=GREY, markersize=2.5, alpha=0.7, markeredgewidth=0)
        ax.plot(lengths[picked], spread[picked] - i, "o", color=BLUE, markersize=7)
        ax.text(0.01, 0.27 - i, title, transform=ax.get_yaxis_transform(), color=GREY)
        if one is not None:
            ax.plot([one, one], [-0.23 - i, 0.23 - i], color=ORANGE, linewidth=1.8)
    ax.set(yticks=[], ylim=(-len(strips) + 0.7, 0.5))
    ax.spines["left"].set_visible(False)


def draw():
    """Write scale.svg."""
    X = load_wine().matrix()
    strips = []
    for title, unit in UNITS.items():
        picked = ip.select(X, PICKED_ROWS, unit=unit, method="exact").indices
        one = {None: 1.0, "median": np.median(np.linalg.norm(X, axis=0)), "each": None}[unit]
        strips.append((title, picked, one))
    with picture(FOLDER / "scale.svg", 7, 3.6) as ax:
        draw_lengths(ax, X, strips)
        ax.set_xlabel("length of a row of 13 standardized measurements; the orange line counts as 1")
