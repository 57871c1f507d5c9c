"""Pictures as SVG inside an HTML page: text remains text, in the colour of the page, and ids are unique."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from isopursuit._core.views import escape
from isopursuit.show._style import rendered

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#010203"  # replaced by the text colour of the page; no picture uses it otherwise
SIZE = (4.6, 3.6)  # inches of a picture that takes half of the page's width
MANY = 1000  # if there are more marks of one kind, they become an embedded image (guess: 100 bytes each as SVG)
DOTS = 160  # per inch of such an image: two for each pixel at the usual width of a page


def inline_svg(
    draw: Callable[[Axes], object],
    caption: str,
    prefix: str,
    *,
    size: tuple[float, float] = SIZE,
    projection: str | None = None,
) -> str:
    """The picture of `draw` as an `<svg>` element; `prefix` makes its ids unique.

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
        warnings.simplefilter("ignore", UserWarning)  # a glyph that matplotlib's font lacks, but the page's font has
        figure = Figure(figsize=size, layout="constrained", facecolor="none")
        draw(figure.add_subplot(projection=projection))
        for marks in (marks for ax in figure.axes for marks in ax.collections):
            if len(np.asarray(marks.get_offsets())) > MANY:
                marks.set_rasterized(True)
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        svg = rendered(figure, "svg", metadata=nothing, dpi=DOTS, bbox_inches="tight", pad_inches=0.05).decode()
    svg = re.sub(r"<!--.*?-->", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    # text cannot contain < or >, so these never change a label
    return re.sub(r"<[^>]+>", lambda tag: _fit(tag[0], caption, prefix), svg)


def _fit(tag: str, caption: str, prefix: str) -> str:
    """A tag of matplotlib's SVG, adapted to the page."""
    if tag.startswith("<svg"):
        size = re.search(r'viewBox="[^"]*"', tag)
        return f'<svg role="img" aria-label="{escape(caption)}" {size[0] if size else ""}>'
    tag = re.sub(r'\b(id="|href="#|url\(#)', rf"\1{prefix}-", tag)
    return re.sub(r" *font-family:[^;]*;", "", tag).replace(INK, "currentColor")
