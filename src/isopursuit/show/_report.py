"""Pages about results: `page` for every result, `selection_page` with what a command knows besides the answer."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isopursuit._core.types import Array
from isopursuit.data import Table
from isopursuit.data._matrix import as_matrix
from isopursuit.search.incumbent import SearchProgress
from isopursuit.selection.audit import Audit
from isopursuit.selection.result import Selection
from isopursuit.selection.stability import Stability
from isopursuit.show._html import draw_pictures, render, require_templates
from isopursuit.show.plots import (
    compared_columns,
    plot_gram,
    plot_lengths,
    plot_progress,
    plot_singular_values,
    plot_stability,
    plot_vectors,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NUMBERED = 16  # most columns of a Gram matrix whose cells have numbers (as many as fit on the page)
DRAWN = 64  # most columns of a Gram matrix that is a table; a larger one is a picture (4,096 cells: 0.4 MB)
MOST_COLUMNS = 12  # most columns of the table of picked rows (chosen: more do not fit on the page)


def page(result: Any, X: Any = None, title: str | None = None) -> str:
    """The page of any result: a report about a selection, an audit or coordinates; else what a notebook shows."""
    if isinstance(result, Selection):
        return selection_page(result, X, title=title)
    from isopursuit.manifold.result import Coordinates  # late: it takes as long as the rest of the package

    if isinstance(result, Coordinates):
        from isopursuit.show._coordinates import coordinates_page

        return coordinates_page(result, title=title)
    name = type(result).__name__ if title is None else title
    return render("result.html.jinja", title=name, body=result._repr_html_())


def selection_page(
    answer: Selection | Audit,
    X: Any = None,
    *,
    title: str | None = None,
    source: str | PathLike[str] | None = None,
    command: str | None = None,
    history: Sequence[SearchProgress] = (),
    options: Mapping[str, object] | None = None,
    rows: bool = False,
    table: Table | None = None,
    stability: Stability | None = None,
) -> str:
    """A report about a selection: the question, the answer, the proof, pictures, how to reproduce it.

    For an audit, it is about the given columns and the best subset found. `X` is the matrix that they were selected
    from; without it the page shows the picked columns only. The page has the SHA-256 of the file if `source` is a path,
    and otherwise that of X; `history`, the reports of a callback, as a picture; and `options` by name. `command`
    reproduces the answer; by default it is the call of `select` or `audit`. `rows` says that the candidates are rows of
    `table`, the table before standardization, and that the values of the picked ones are shown. `stability` adds its
    picture.
    """
    require_templates()
    audit = answer if isinstance(answer, Audit) else None
    selection = answer
    values = None if X is None else as_matrix(X, wide=False).values
    shown = values if table is None else table.values
    noun = "row" if rows else "column"
    gram = selection.gram if selection.k <= DRAWN else None
    pictures, no_pictures = _pictures(selection, X, history, noun, stability)
    of_all = "" if values is None else f" of {values.shape[1]}"
    return render(
        "report.html.jinja",
        selection=selection,
        audit=audit,
        P=None if values is None else values.shape[1],
        title=f"{selection.k}{of_all} {noun}s" if title is None else title,
        noun=noun,
        table_shape=None if shown is None else shown.shape,
        picked_values=_picked_values(selection, table, noun) if rows and table is not None else None,
        numbers=(table.numbers if rows and table is not None else ()) or range(sys.maxsize),
        source=source,
        command=command,
        options=options or {},
        gram=None if gram is None else gram.tolist(),
        extent=None if gram is None else max(1.0, float(np.abs(gram).max())),
        numbered=NUMBERED,
        pictures=pictures,
        no_pictures=no_pictures,
        data_digest=_digest(source, values),
    )


def _digest(source: str | PathLike[str] | None, values: Array | None) -> tuple[str, str] | None:
    """What was hashed, and its SHA-256: the file if the source is a path, otherwise the matrix."""
    if isinstance(source, PathLike):
        with Path(source).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return "data (SHA-256 of the bytes of the file)", digest
    if values is None:
        return None
    of = "data (SHA-256 of numpy.asarray(X, dtype=float).tobytes(), float64 row by row)"
    return of, hashlib.sha256(values.tobytes()).hexdigest()


def _picked_values(selection: Selection, table: Table, noun: str) -> dict[str, Any]:
    """The values of the picked rows in the first columns of the table: a caption, the heads, and the rows."""
    caption = f"The values of the picked {noun}s"
    if len(table.columns) > MOST_COLUMNS:
        caption += f": the first {MOST_COLUMNS} of {len(table.columns)} columns"
    heads = [(noun, False), *((name, True) for name in table.columns[:MOST_COLUMNS])]
    return {"caption": caption, "heads": heads, "rows": table.values[selection.indices, :MOST_COLUMNS].tolist()}


def _pictures(
    selection: Selection, X: Any, history: Sequence[SearchProgress], noun: str, stability: Stability | None
) -> tuple[dict[str, str], str]:
    """SVGs by caption, or the reason why there are none."""
    drawings: dict[str, Callable[[Axes], object]] = {
        "Singular values. In an orthonormal set all are 1.": partial(plot_singular_values, selection, noun=noun)
    }
    if X is not None:
        columns = compared_columns(X, selection)  # raises an error for another matrix
        drawings |= {
            f"Lengths of all {noun}s. Marks below the bars show the picked ones.": partial(
                plot_lengths, X, selection, noun=noun
            ),
            f"Before: inner products of all {noun}s; the picked ones are marked.": partial(
                plot_gram, columns, picked=selection, noun=noun
            ),
        }
        if selection.k == 2:
            drawings[f"The {noun}s as vectors."] = partial(plot_vectors, X, selection, noun=noun)
    if selection.k > DRAWN:
        drawings[f"After: inner products of the picked {noun}s."] = partial(plot_gram, selection, noun=noun)
    if stability is not None:
        drawings["Stability: how often each column is picked from resampled rows."] = partial(plot_stability, stability)
    if history:
        whole = [*history, _last(selection, history[-1])]
        drawings["The search: loss and lower bound meet when it is proved."] = partial(plot_progress, whole)
    return draw_pictures(drawings)


def _last(selection: Selection, before: SearchProgress) -> SearchProgress:
    """The state at the end of the search, which is between two calls of a callback."""
    search = selection.search
    bound = search.loss if search.optimal else search.lower_bound
    seconds = max(search.seconds, before.seconds)
    return SearchProgress(seconds, search.loss, bound, search.gap, search.nodes, 0)
