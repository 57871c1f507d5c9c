"""The tutorial's words: their lengths, and the seven that are picked under two units."""

import numpy as np
from scale import draw_lengths
from style import FOLDER, picture

import isopursuit as ip
from isopursuit.data import load_words


def draw():
    """Write tutorial.svg."""
    words = load_words()
    X, strips = words.values.T, []
    median = float(np.median(np.linalg.norm(X, axis=0)))
    for unit, one in {"median": median, "none": 1.0}.items():
        picked = ip.select(X, unit=one, labels=words.classes, method="exact")
        strips.append((f"--unit {unit}: {', '.join(picked.labels)}", picked.indices, one))
    with picture(FOLDER / "tutorial.svg", 7, 2.8) as ax:
        draw_lengths(ax, X, strips)
        ax.set_xlabel("length of a word's row; the orange line counts as 1")
