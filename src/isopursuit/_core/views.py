"""HTML for notebooks and reports: escaped, and legible on light and dark backgrounds."""

from __future__ import annotations

import html
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Number
from os import PathLike
from typing import Any

import numpy as np

from isopursuit._core.types import Array

ROWS = 20  # most rows of a table in a notebook (guess)
NUMBERED = 13  # most columns of a Gram matrix whose cells have numbers (as many as fit in a notebook)
DRAWN = 40  # most columns of a Gram matrix in a notebook; `plots.plot_gram` draws larger ones (guess)
CELL = "padding:2px 8px;text-align:left"


def escape(value: object) -> str:
    """Text that is safe everywhere in HTML, including quoted attributes.

    Examples
    --------
    >>> escape('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    return html.escape(str(value).encode("utf-8", "replace").decode(), quote=True)


def call_text(function: Callable[..., Any], given: Mapping[str, Any]) -> str:
    """The call of a function of this package as Python code, without options that have their default.

    Data, labels and objects are given by the name of their parameter; paths and options by their values.

    Examples
    --------
    >>> from isopursuit import select
    >>> call_text(select, {"X": np.eye(3), "k": 2, "c": 1.0, "exclude": ["a", np.int64(2)], "labels": ["a", "b", "c"]})
    "isopursuit.select(X, k=2, exclude=['a', 2], labels=labels)"
    """
    parts: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        value = given.get(name, parameter.default)
        if value is parameter.default or name in ("callback", "progress"):
            continue
        required = parameter.default is parameter.empty
        named = name in ("X", "data", "labels") and not isinstance(value, str | PathLike)
        try:
            text = name if named else _literal(value)
        except TypeError:
            text = name
        if required or text != repr(parameter.default):
            parts.append(text if required else f"{name}={text}")
    return f"isopursuit.{function.__name__}({', '.join(parts)})"


def _literal(value: Any) -> str:
    """Python code for a path, number, text, or list of such values; raises `TypeError` for other objects."""
    if isinstance(value, PathLike):
        return repr(str(value))  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, np.generic):
        return _literal(value.item())
    if value is None or isinstance(value, str | Number):
        return repr(value)
    if isinstance(value, np.ndarray) and value.dtype == bool:
        return f"numpy.array({value.tolist()})"
    return f"[{', '.join(map(_literal, value))}]"  # not iterable: TypeError


def number(value: float, digits: int = 4) -> str:
    """A number as text, with a true minus sign, ∞, and no −0.

    Examples
    --------
    >>> number(-1.5), number(float("inf")), number(12345.678, 6), number(-0.0)
    ('−1.5', '∞', '12345.7', '0')
    """
    return signed(f"{value + 0.0:.{digits}g}")


def signed(text: str) -> str:
    """Improve the text of a number: true minus sign, ∞, and a dash for NaN.

    Examples
    --------
    >>> signed("-inf"), signed("e^27.10"), signed("nan")
    ('−∞', 'e^27.10', '–')
    """
    return "–" if text.endswith("nan") else text.replace("-", "−").replace("inf", "∞")


def percent(gap: float) -> str:
    """A relative gap in percent.

    Examples
    --------
    >>> percent(0.03141), percent(0.0)
    ('3.1 %', '0 %')
    """
    return f"{100 * gap:.2g} %"


def table(head: Sequence[str], rows: Iterable[Sequence[object]], shown: int = ROWS) -> str:
    """A small table with inline styles, which notebooks keep; further rows than `shown` are counted, not listed."""
    rows = list(rows)
    parts = [f'<th style="{CELL}">{escape(cell)}</th>' for cell in head]
    lines = [f"<thead><tr>{''.join(parts)}</tr></thead>"] if head else []
    for row in rows[:shown]:
        lines.append("<tr>" + "".join(f'<td style="{CELL}">{escape(cell)}</td>' for cell in row) + "</tr>")
    if len(rows) > shown:
        lines.append(f'<tr><td style="{CELL}" colspan="{len(rows[0])}">… and {len(rows) - shown} more</td></tr>')
    return f'<table style="border-collapse:collapse">{"".join(lines)}</table>'


def shade(value: float, extent: float) -> str:
    """A background for a signed number: orange above 0, blue below, translucent to keep text legible in both themes.

    Examples
    --------
    >>> shade(0.5, 1.0), shade(-1.0, 1.0)
    ('rgba(213,94,0,0.35)', 'rgba(0,114,178,0.70)')
    """
    colour = "213,94,0" if value > 0 else "0,114,178"
    return f"rgba({colour},{0.7 * min(abs(value) / extent, 1.0):.2f})"


def gram_table(gram: Array, labels: Sequence[object]) -> str:
    """A Gram matrix as a small coloured table; the title of each cell gives the pair and its value."""
    if len(gram) > DRAWN:
        return f"<p>The {len(gram)} × {len(gram)} Gram matrix is too large to show here.</p>"
    names = [escape(label) for label in labels]
    extent = max(1.0, float(np.abs(gram).max()))
    small = len(gram) <= NUMBERED
    side = "padding:1px 4px;text-align:right;font-size:smaller" if small else "padding:0;min-width:8px;height:8px"
    lines: list[str] = []
    for name, row in zip(names, gram.tolist(), strict=True):
        cells = [
            f'<td style="{side};background:{shade(value, extent)}" title="{name} · {other}: {number(value)}">'
            f"{fixed(value) if small else ''}</td>"
            for other, value in zip(names, row, strict=True)
        ]
        head = f'<th style="padding:0 8px 0 0;text-align:left;font-weight:normal;white-space:nowrap">{name}</th>'
        lines.append(f"<tr>{head if small else ''}{''.join(cells)}</tr>")
    caption = '<div style="margin-top:1em">inner products (ideal: 1 on the diagonal, 0 off it)</div>'
    return f'{caption}<table style="border-collapse:collapse">{"".join(lines)}</table>'


def fixed(value: float) -> str:
    """A number with two decimals if they fit, a true minus sign, and no −0.00.

    Examples
    --------
    >>> fixed(-0.001), fixed(-0.5), fixed(123.456)
    ('0.00', '−0.50', '123')
    """
    text = f"{value:.2f}" if abs(value) < 10 else f"{value:.3g}"
    return "0.00" if text == "-0.00" else text.replace("-", "−")


def result(title: str, verdict: str, *parts: str, notes: Sequence[str] = ()) -> str:
    """One result: title, verdict, tables and notes."""
    remarks = "".join(f"<p><em>note:</em> {escape(note)}</p>" for note in notes)
    return f"<div><p><strong>{escape(title)}</strong>: {escape(verdict)}</p>{''.join(parts)}{remarks}</div>"
