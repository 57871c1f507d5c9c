"""HTML of results: small pieces for notebooks, legible on light and dark backgrounds, and the way to a whole page."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

from isopursuit._core.outputs import write_whole

ROWS = 20  # most rows of a table in a notebook (chosen: a screen)
CELL = "padding:2px 8px;text-align:left"


class Shown:
    """A result that can be written as a page.

    Pages are drawn by a later layer, which results do not know: the package sets `draw` when it is imported.
    """

    draw: ClassVar[Callable[..., str]]

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
