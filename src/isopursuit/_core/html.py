"""How results are shown: one `Summary` of each, as text and as HTML for notebooks, and the way to a whole page.

The HTML is legible on light and dark backgrounds.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from isopursuit._core.outputs import write_whole
from isopursuit._core.text import fixed, number, signed
from isopursuit._core.types import Array
from isopursuit.errors import printable

ROWS = 20  # most rows of a table in a notebook (chosen: a screen)
NUMBERED = 13  # most columns of a Gram matrix whose cells have numbers (as many as fit in a notebook)
DRAWN = 40  # most columns of a Gram matrix in a notebook (derived: 1,600 cells of 130 bytes are 200 kB)
CELL = "padding:2px 8px;text-align:left"


@dataclass(frozen=True)
class Summary:
    """What is shown of a result: title and verdict, lines, a table, more lines, notes, and a matrix in notebooks.

    A head of the table that begins with ">" is that of a column of numbers.
    """

    title: str
    verdict: str
    lines: Sequence[str] = ()
    head: Sequence[str] = ()
    rows: Sequence[Sequence[object]] = ()
    more: Sequence[str] = ()
    notes: Sequence[str] = ()
    gram: Array | None = None
    labels: Sequence[object] = ()

    def text(self) -> str:
        """As text for a terminal."""
        lines = [f"{self.title}, {self.verdict}", *(f"  {printable(line)}" for line in self.lines)]
        heads = [name.lstrip(">") for name in self.head]
        rows = [heads, *([printable(cell) for cell in row] for row in self.rows)] if self.head else []
        widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
        for row in rows:
            cells = zip(self.head, row, widths, strict=True)
            padded = (f"{cell:>{width}}" if name.startswith(">") else f"{cell:<{width}}" for name, cell, width in cells)
            lines.append(f"  {'  '.join(padded)}".rstrip())
        lines += [f"  {printable(line)}" for line in self.more]
        return "\n".join(lines + [f"  note: {printable(note)}" for note in self.notes])

    def html(self) -> str:
        """As HTML for a notebook."""
        parts = ["".join(f"<p>{escape(line)}</p>" for line in lines) for lines in (self.lines, self.more)]
        if self.head:
            rows = [
                [signed(str(cell)) if name[0] == ">" else cell for name, cell in zip(self.head, row, strict=True)]
                for row in self.rows
            ]
            parts.insert(1, table([name.lstrip(">") for name in self.head], rows))
        if self.gram is not None:
            parts.append(gram_table(self.gram, self.labels))
        return result(self.title, self.verdict, *parts, notes=self.notes)


class Shown:
    """A result that is shown by its summary, and that can be written as a page.

    Pages are drawn by a later layer, which results do not know: the package sets `draw` when it is imported.
    """

    draw: ClassVar[Callable[..., str]]

    def overview(self) -> Summary:
        """What is shown of the result."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.overview().text()

    def _repr_html_(self) -> str:
        return self.overview().html()

    def to_html(self, path: str | PathLike[str] | None = None, *, X: Any = None, title: str | None = None) -> str:
        """The result as a self-contained HTML page, which is also written to a file if a path is given.

        Parameters
        ----------
        path : path, optional
            The file to write, completely or not at all.
        X : array_like, data frame or Matrix, optional
            The matrix that the answer is about. With it, the page of a selection or an audit also compares the picked
            columns with all others.
        title : str, optional
            The heading of the page.

        Raises
        ------
        PackageError
            Jinja2 is not installed; the extra `report` installs it.
        """
        text = Shown.draw(self, X=X, title=title)
        if path is not None:
            write_whole(Path(path), text)
        return text


def escape(value: object) -> str:
    """Text that is safe everywhere in HTML, including quoted attributes.

    Examples
    --------
    >>> escape('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    return html.escape(str(value).encode("utf-8", "replace").decode(), quote=True)


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


def result(title: str, verdict: str, *parts: str, notes: Sequence[str] = ()) -> str:
    """One result: title, verdict, tables and notes."""
    remarks = "".join(f"<p><em>note:</em> {escape(note)}</p>" for note in notes)
    return f"<div><p><strong>{escape(title)}</strong>: {escape(verdict)}</p>{''.join(parts)}{remarks}</div>"
