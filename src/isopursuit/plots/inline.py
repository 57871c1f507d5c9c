"""Pictures as SVG that is part of an HTML page: text as text, in the page's colour, with ids of its own."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from isopursuit.plots.axes import rendered
from isopursuit.views import escape

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#010203"  # replaced by the page's text colour, light or dark; no picture uses it otherwise
SIZE = (4.6, 3.6)  # inches of a picture that takes half of a page's width
MANY = 1000  # marks of one kind; more are an image inside of the picture (guess: 100 bytes each as SVG)
DOTS = 160  # per inch of such an image: two for each pixel of a page's usual width


def inline_svg(
    draw: Callable[[Axes], object],
    caption: str,
    prefix: str,
    *,
    size: tuple[float, float] = SIZE,
    projection: str | None = None,
) -> str:
    """What `draw` draws, as an `<svg>` element; `prefix` keeps its ids apart from those of other pictures.

    `size` is in inches; projection="3d" gives `draw` an Axes with a third dimension.
    """
    from matplotlib import rc_context  # pyright: ignore[reportUnknownVariableType]
    from matplotlib.figure import Figure

    inks = ("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color")
    settings: Any = dict.fromkeys(inks, INK)
    settings |= {"svg.fonttype": "none", "svg.hashsalt": "isopursuit", "axes.titlesize": "medium", "font.size": 9}
    settings |= {"axes.facecolor": "none", "legend.framealpha": 0.0, "legend.fontsize": "small"}
    settings |= {f"axes3d.{axis}axis.panecolor": (0.5, 0.5, 0.5, 0.08) for axis in "xyz"}
    with rc_context(settings), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a glyph that matplotlib's font lacks: the page's has it
        figure = Figure(figsize=size, layout="constrained", facecolor="none")
        draw(figure.add_subplot(projection=projection))
        for marks in (marks for ax in figure.axes for marks in ax.collections):
            if len(np.asarray(marks.get_offsets())) > MANY:
                marks.set_rasterized(True)
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        svg = rendered(figure, "svg", metadata=nothing, dpi=DOTS, bbox_inches="tight", pad_inches=0.05).decode()
    svg = re.sub(r"<!--.*?-->", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    # text cannot hold < or >, so that what these change is never a label
    return re.sub(r"<[^>]+>", lambda tag: _fit(tag[0], caption, prefix), svg)


def _fit(tag: str, caption: str, prefix: str) -> str:
    """A tag of matplotlib's SVG as the page needs it."""
    if tag.startswith("<svg"):
        size = re.search(r'viewBox="[^"]*"', tag)
        return f'<svg role="img" aria-label="{escape(caption)}" {size[0] if size else ""}>'
    tag = re.sub(r'\b(id="|href="#|url\(#)', rf"\1{prefix}-", tag)
    return re.sub(r" *font-family:[^;]*;", "", tag).replace(INK, "currentColor")
