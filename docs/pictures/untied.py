"""Four columns in the plane whose best basis needs a column that no optimal solution uses."""

import numpy as np
from style import BLUE, FOLDER, GREY, ORANGE, picture

DEGREES, LENGTHS = np.array([0, 60, 120, 90]), np.array([0.9, 0.9, 0.9, 0.8])


def draw_columns(ax, strong, colour, title):
    """All columns, those with the numbers `strong` in colour."""
    angles = np.radians(DEGREES)
    for i, (x, y) in enumerate(zip(LENGTHS * np.cos(angles), LENGTHS * np.sin(angles), strict=True)):
        look = {"color": colour, "linewidth": 2.4} if i in strong else {"color": GREY, "linewidth": 1.0}
        ax.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0, **look})
        place = {"ha": "center", "va": "bottom"} if y > 0.1 else {"ha": "left", "va": "center"}
        ax.text(1.04 * x, 1.04 * y, f"{DEGREES[i]}°: {LENGTHS[i]}", fontsize=9, **place)
    ax.set(xlim=(-0.75, 1.4), ylim=(-0.1, 1.0), aspect="equal", xticks=[], yticks=[], title=title)
    ax.spines[:].set_visible(False)


def draw():
    """Write untied.svg."""
    with picture(FOLDER / "untied.svg", 7, 2.6, columns=2) as (tied, best):
        draw_columns(tied, (0, 1, 2), BLUE, "the pursuit keeps three columns")
        draw_columns(best, (0, 3), ORANGE, "the best basis is another pair")
