"""What all pictures of the documentation share: a transparent background, and colours legible on white and on black."""

from contextlib import contextmanager
from pathlib import Path

from matplotlib import pyplot, rc_context

FOLDER = Path(__file__).parent
GREY = "#7a7a7a"  # text, axes and what was not picked: contrast 4.3 on white, 4.9 on black
BLUE, ORANGE, GREEN = "#2f8fd0", "#d55e00", "#2a9d6f"
SETTINGS = {
    "axes.edgecolor": GREY,
    "axes.labelcolor": GREY,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": GREY,
    "font.size": 10,
    "legend.frameon": False,
    "legend.labelcolor": GREY,
    "svg.fonttype": "none",
    "svg.hashsalt": "isopursuit",
    "text.color": GREY,
    "xtick.color": GREY,
    "ytick.color": GREY,
}


@contextmanager
def picture(path, width=7.0, height=3.5, rows=1, columns=1, **options):
    """Axes to draw on, `width` by `height` inches in all; afterwards they are saved at `path`.

    A page is 400 pixels wide on a telephone: at 7 inches, text of 10 points is then still 6 pixels high.
    Put panels under each other rather than four in a row.
    """
    with rc_context(SETTINGS):
        figure, axes = pyplot.subplots(rows, columns, figsize=(width, height), layout="constrained", **options)
        yield axes
        figure.savefig(path, transparent=True, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=150)
        pyplot.close(figure)
