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

from isopursuit._core.atomic import write_whole
from isopursuit._core.text import signed
from isopursuit.errors import printable

ROWS = 20  # most rows of a table in a notebook (chosen: a screen)
CELL = "padding:2px 8px;text-align:left"


@dataclass(frozen=True)
class Summary:
    """What is shown of a result: title and verdict, lines, a table, more lines, and notes.

    A head of the table that begins with ">" is that of a column of numbers.
    """

    title: str
    verdict: str
    lines: Sequence[str] = ()
    head: Sequence[str] = ()
    rows: Sequence[Sequence[object]] = ()
    more: Sequence[str] = ()
    notes: Sequence[str] = ()

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


def result(title: str, verdict: str, *parts: str, notes: Sequence[str] = ()) -> str:
    """One result: title, verdict, tables and notes."""
    remarks = "".join(f"<p><em>note:</em> {escape(note)}</p>" for note in notes)
    return f"<div><p><strong>{escape(title)}</strong>: {escape(verdict)}</p>{''.join(parts)}{remarks}</div>"
