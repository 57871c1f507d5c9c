"""Shared parts of all pictures: colours for colour-blind readers (by Okabe and Ito), names and ticks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.types import Array
from isopursuit.errors import ParameterError, optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure


BLUE, ORANGE, GREEN, PURPLE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9"
AMBER, GREY = "#E69F00", "#999999"
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY)
# markers and line styles differ too, for print in greyscale
MARKERS = ("o", "s", "^", "D", "v")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
LONGEST = 22  # most characters of a name


def new_axes(ax: Axes | None) -> Axes:
    """The axes to draw on: the caller's, or those of a new figure."""
    if ax is not None:
        return ax
    return optional("matplotlib.pyplot", "plot", "Drawing").subplots(layout="constrained")[1]


def rendered(figure: Figure, kind: str, **options: Any) -> bytes:
    """The figure as the content of a file of this kind, such as "png" or "svg"."""
    stream = BytesIO()
    figure.savefig(stream, format=kind, **options)
    return stream.getvalue()


def refuse_empty(values: Sequence[Any] | NDArray[Any], what: str) -> None:
    """Raise an error if there is nothing to draw."""
    if len(values) == 0:
        raise ParameterError(f"There are no {what} to draw. Pass at least one.")


def colour_map(*, cyclic: bool = False) -> Colormap:
    """A colour map whose ends are visible on light and dark backgrounds; a cyclic one for angles."""
    from matplotlib import colormaps
    from matplotlib.colors import LinearSegmentedColormap, ListedColormap

    if cyclic:
        return LinearSegmentedColormap.from_list("turn", [PURPLE, BLUE, GREEN, AMBER, PURPLE])
    return ListedColormap(colormaps["viridis"](np.linspace(0.15, 0.93, 256)))


def short_names(labels: Sequence[object], longest: int = LONGEST) -> list[str]:
    """Labels that fit on an axis, without unprintable characters; matplotlib would hide labels that begin with _."""
    clean = ("".join(ch if ch.isprintable() else " " for ch in str(label)) for label in labels)
    clean = (f" {name}" if name.startswith("_") else name for name in clean)
    half = longest // 2  # keep both ends, because numbered names differ at the end
    return [name if len(name) <= longest else f"{name[:half]}…{name[1 - half :]}" for name in clean]


def short_heads(labels: Sequence[object]) -> list[str]:
    """Short labels: the first of three forms that is unique.

    The forms are the text before the first bracket, such as "φ" of "φ (C–N–CA–C)"; the label without residues; and the
    whole label. The word "torsion" at the end of a label is left out.

    Examples
    --------
    >>> short_heads(["φ (ACE:C–ALA:N–ALA:CA–ALA:C)", "ALA:N–ALA:CA–ALA:C–ALA:O torsion"])
    ['φ', 'N–CA–C–O']
    >>> short_heads(["ω (ACE:CH3–ACE:C–ALA:N–ALA:CA)", "ω (ALA:CA–ALA:C–NME:N–NME:CH3)"])
    ['ω (CH3–C–N–CA)', 'ω (CA–C–N–CH3)']
    """
    whole = [str(label) for label in labels]
    forms = {
        text: (
            _without_residues(text.split(" (")[0]).removesuffix(" torsion").strip(),
            _without_residues(text).removesuffix(" torsion"),
            text,
        )
        for text in whole
    }
    counts = [Counter(form) for form in zip(*forms.values(), strict=True)]
    # the last form is the label itself, so there always is one
    chosen = {
        text: next((form for form, count in zip(some, counts, strict=True) if form and count[form] == 1), text)
        for text, some in forms.items()
    }
    return short_names([chosen[text] for text in whole])


def _without_residues(label: str) -> str:
    """Atoms without the names of their residues: "N–CA" of "ALA:N–ALA:CA"."""
    return re.sub(r"\b\w+:(?=\w)", "", label)


def name_ticks(axis: Axis, places: list[int], names: list[str], near: int, turn: int = 0) -> None:
    """Name the ticks that are not too close to the last named one; names are never parsed as mathematics."""
    kept: list[int] = []
    for i, place in enumerate(places):
        if not kept or place - places[kept[-1]] >= near:
            kept.append(i)
    axis.set_ticks(places, minor=True)
    text = [names[i] for i in kept]
    axis.set_ticks([places[i] for i in kept], text, rotation=turn, parse_math=False, fontsize=7 if len(kept) > 6 else 9)


def plain_ticks(axis: Axis, subs: tuple[float, ...] = (1.0, 2.0, 5.0)) -> None:
    """0.5, 1, 2 on a logarithmic axis, not powers of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def whole_ticks(axis: Axis) -> None:
    """Ticks at integers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator("auto", integer=True))


def plain_legend(ax: Axes, **options: Any) -> None:
    """A legend whose names are never parsed as mathematics."""
    for text in ax.legend(**options).get_texts():
        text.set_parse_math(False)


def maybe_log(ax: Axes, values: Array, axis: Literal["x", "y"] = "y") -> None:
    """Make an axis logarithmic if the values span more than one order of magnitude."""
    values = values[np.isfinite(values)]
    if values.size and values.min() > 0 and values.max() > 10 * values.min():
        (ax.set_xscale if axis == "x" else ax.set_yscale)("log")
        wide = values.max() > 1000 * values.min()
        plain_ticks(ax.xaxis if axis == "x" else ax.yaxis, (1.0,) if wide else (1.0, 2.0, 5.0))
