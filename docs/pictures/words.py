"""The tutorial's seven words by the seven axes: nearly a diagonal matrix, with signs."""

import numpy as np
from style import FOLDER, picture

import isopursuit as ip
from isopursuit.data import load_words

LIGHT, DARK = "#ffffff", "#222222"  # text on dark and on light cells


def draw():
    """Write words.svg."""
    words = load_words()
    picked = ip.select(words.values.T, unit="median", labels=words.classes, method="exact")
    rows = picked.matrix.T  # in units of the median length
    rows = rows[order := np.argsort(np.abs(rows).argmax(axis=1))]
    with picture(FOLDER / "words.svg", 7, 3.6) as ax:
        drawn = ax.imshow(rows, cmap="RdBu", vmin=-1.3, vmax=1.3, aspect="auto")
        for (i, j), value in np.ndenumerate(rows):
            text = f"{value:.1f}".replace("-", "−").replace("−0.0", "0.0")
            ax.text(j, i, text, ha="center", va="center", color=LIGHT if abs(value) > 0.75 else DARK)
        ax.set_xticks(range(7), [name.replace("–", "–\n") for name in words.features])
        ax.set_yticks(range(7), [picked.labels[i] for i in order])
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.figure.colorbar(drawn, ax=ax, shrink=0.8)
