"""Shared parts of all pages: templates and filters, versions, and pictures as SVG.

A page loads nothing from elsewhere: its Content-Security-Policy allows inline styles, embedded images, and one script,
given by its hash. In an SVG text remains text, in the colour of the page, and ids are unique.
"""

from __future__ import annotations

import base64
import hashlib
import math
import platform
import re
import warnings
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from isopursuit._core.summary import escape
from isopursuit._core.text import USEFUL, fixed, loss_text, number, percent, signed
from isopursuit.errors import PackageError, optional
from isopursuit.show._style import rendered

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#010203"  # replaced by the text colour of the page; no picture uses it otherwise
SIZE = (4.6, 3.6)  # inches of a picture that takes half of the page's width
MANY = 1000  # if there are more marks of one kind, they become an embedded image (derived: 100 bytes each)
DOTS = 160  # per inch of such an image: two for each pixel at the usual width of a page
PACKAGES = ("isopursuit", "numpy", "scipy", "matplotlib")  # packages whose versions a page lists


def require_templates() -> Any:
    """Jinja2, or an error that says what to install; called before any work on a page."""
    return optional("jinja2", "report", "The report")


def render(template: str, **content: Any) -> str:
    """A page from a template of the package's data, with styles, script and versions."""
    script = _asset("report.js")
    page = (
        _environment()
        .get_template(template)
        .render(
            versions=_versions(),
            made=f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
            style=_asset("report.css"),
            script=script,
            digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            **content,
        )
    )
    return page.encode("utf-8", "replace").decode()  # a label may contain a lone surrogate


def draw_pictures(
    drawings: Mapping[str, Callable[[Axes], object]], prefix: str = "p", **options: Any
) -> tuple[dict[str, str], str]:
    """SVGs by caption, or the reason why there are none; `prefix` makes the ids of a group of pictures unique."""
    try:
        optional("matplotlib", "plot", "Drawing")
    except PackageError as error:
        return {}, str(error)
    numbered = enumerate(drawings.items())
    return {caption: inline_svg(draw, caption, f"{prefix}{i}", **options) for i, (caption, draw) in numbered}, ""


def _environment() -> Any:
    jinja2 = require_templates()
    environment: Any = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"number": number, "percent": percent, "fixed": fixed, "shade": _shade}
    environment.filters |= {"loss_text": loss_text, "sort_key": _sort_key, "signed": signed}
    environment.tests["finite"] = math.isfinite
    environment.globals["useful"] = USEFUL
    return environment


def _shade(value: float, extent: float) -> str:
    """A background for a signed number: orange above 0, blue below, translucent to keep text legible in both themes.

    Examples
    --------
    >>> _shade(0.5, 1.0), _shade(-1.0, 1.0)
    ('rgba(213,94,0,0.35)', 'rgba(0,114,178,0.70)')
    """
    colour = "213,94,0" if value > 0 else "0,114,178"
    return f"rgba({colour},{0.7 * min(abs(value) / extent, 1.0):.2f})"


def _asset(name: str) -> str:
    return (files("isopursuit") / "show" / "templates" / name).read_text(encoding="utf-8")


def _sort_key(value: float) -> str:
    """A number in JavaScript's notation."""
    return repr(float(value)).replace("inf", "Infinity")


def _versions() -> dict[str, str]:
    """The versions of the software that made the answer."""
    found = {name: _version(name) for name in PACKAGES}
    found["python"] = f"{platform.python_implementation()} {platform.python_version()}"
    return found | {"platform": platform.platform()}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


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
