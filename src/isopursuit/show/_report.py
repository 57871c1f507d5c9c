"""The report about one selection; its template is report.html.jinja."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from isopursuit import show as plots
from isopursuit._core.outputs import write_whole
from isopursuit._core.types import Array
from isopursuit.data import Table
from isopursuit.data._matrix import as_matrix
from isopursuit.errors import ShapeError
from isopursuit.search.incumbent import SearchProgress
from isopursuit.selection.audit import Audit
from isopursuit.selection.result import Selection
from isopursuit.show._page import draw_pictures, render, require_templates

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Candidates = Literal["columns", "rows"]
NUMBERED = 16  # most columns of a Gram matrix whose cells have numbers (as many as fit on the page)
DRAWN = 64  # most columns of a Gram matrix that is a table; a larger one is a picture (guess)
MOST_COLUMNS = 12  # most columns of the table of picked rows (guess: more do not fit on the page)


def write_report(
    selection: Selection | Audit,
    X: Any,
    path: str | PathLike[str],
    *,
    title: str | None = None,
    source: str | PathLike[str] | None = None,
    command: str | None = None,
    history: Sequence[SearchProgress] = (),
    options: Mapping[str, object] | None = None,
    candidates: Candidates = "columns",
    noun: str | None = None,
    table: Any = None,
) -> Path:
    """Write `report_html` to a file, completely or not at all, and return its path.

    Examples
    --------
    >>> import isopursuit as ip, tempfile
    >>> from isopursuit.data import load_iris
    >>> X = load_iris().matrix()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = write_report(ip.select(X), X, folder + "/iris.html", title="Four irises")
    ...     "Four irises" in written.read_text(encoding="utf-8")
    True
    """
    text = report_html(
        selection,
        X,
        title=title,
        source=source,
        command=command,
        history=history,
        options=options,
        candidates=candidates,
        noun=noun,
        table=table,
    )
    path = Path(path)
    write_whole(path, text)
    return path


def report_html(
    selection: Selection | Audit,
    X: Any,
    *,
    title: str | None = None,
    source: str | PathLike[str] | None = None,
    command: str | None = None,
    history: Sequence[SearchProgress] = (),
    options: Mapping[str, object] | None = None,
    candidates: Candidates = "columns",
    noun: str | None = None,
    table: Any = None,
) -> str:
    """A report about a selection as one HTML page: the question, the answer, the proof, pictures, how to reproduce it.

    Parameters
    ----------
    selection : Selection or Audit
        The answer of `select` or `audit`. For an audit, the page is about the given columns and the best subset found.
    X : array_like (D, P) or data frame
        The matrix that the columns were selected from.
    title : str, optional
        The heading of the page.
    source : str or path, optional
        Where the data came from. If it is a path (`pathlib.Path`), the report has the SHA-256 of that file, and
        otherwise that of X.
    command : str, optional
        The command that reproduces the answer. Default: the call of `select` or `audit`.
    history : sequence of SearchProgress, optional
        The reports that a callback collected during the search; the page shows them as a picture.
    options : mapping, optional
        Further options to list, by name: time limit, columns to include, ...
    candidates : {"columns", "rows"}
        Whether the candidates, which are the columns of X, are columns or rows of your table. For rows, the report
        shows the values of the picked ones.
    noun : str, optional
        The word for one candidate, such as "patient". Default: "row" or "column".
    table : array_like, data frame or `isopursuit.data.Table`, optional
        Your table before standardization, with rows in the order of the candidates. Default: X as a table.

    Returns
    -------
    str

    Raises
    ------
    PackageError
        Jinja2 is not installed; the extra `report` installs it.
    """
    require_templates()
    audit = selection if isinstance(selection, Audit) else None
    selection = selection.given if isinstance(selection, Audit) else selection
    values = as_matrix(X, wide=False).values
    noun = candidates.removesuffix("s") if noun is None else noun
    names, entries, numbers = _shown_table(values if table is None else table, candidates, turned=table is None)
    gram = selection.gram if selection.k <= DRAWN else None
    pictures, no_pictures = _pictures(selection, X, history, noun)
    return render(
        "report.html.jinja",
        selection=selection,
        audit=audit,
        values=values,
        title=f"{selection.k} of {values.shape[1]} {noun}s" if title is None else title,
        noun=noun,
        candidates=candidates,
        table_shape=entries.shape,
        picked_values=_picked_values(selection, noun, names, entries) if candidates == "rows" else None,
        numbers=numbers,
        source=source,
        command=command,
        options=options or {},
        gram=None if gram is None else gram.tolist(),
        extent=None if gram is None else max(1.0, float(np.abs(gram).max())),
        numbered=NUMBERED,
        pictures=pictures,
        no_pictures=no_pictures,
        **_digest(source, values),
    )


def _digest(source: str | PathLike[str] | None, values: Array) -> dict[str, str]:
    """The SHA-256 of the file if the source is a path, otherwise of the matrix, and of what it is."""
    if isinstance(source, PathLike):
        with Path(source).open("rb") as file:
            return {
                "digest_of": "data (SHA-256 of the bytes of the file)",
                "data_digest": hashlib.file_digest(file, "sha256").hexdigest(),
            }
    return {
        "digest_of": "data (SHA-256 of numpy.asarray(X, dtype=float).tobytes(), float64 row by row)",
        "data_digest": hashlib.sha256(values.tobytes()).hexdigest(),
    }


def _shown_table(table: Any, candidates: Candidates, *, turned: bool) -> tuple[Sequence[Any], Any, Sequence[int]]:
    """The names of a table's columns, its entries (rows, columns), and the number of each row in its file.

    `turned` says that the table is X, whose columns are the candidates.
    """
    if turned:
        entries = table.T if candidates == "rows" else table
        return range(entries.shape[1]), entries, range(table.shape[1])
    names: Sequence[Any]
    if isinstance(table, Table):
        names, entries = table.columns, table.values
    elif hasattr(table, "columns") and hasattr(table, "to_numpy"):
        names, entries = list(table.columns), table.to_numpy()
    else:
        entries = np.asarray(table)
        names = range(entries.shape[1])
    numbers: Sequence[int] = (isinstance(table, Table) and candidates == "rows" and table.numbers) or ()
    return names, entries, numbers or range(max(entries.shape))


def _picked_values(selection: Selection, noun: str, names: Sequence[Any], entries: Any) -> dict[str, Any]:
    """The values of the picked rows in the first columns of the table: a caption, the heads, and the rows."""
    if len(entries) <= int(selection.indices.max()):
        raise ShapeError(f"The table has {len(entries)} rows, but X has more candidates. Pass one row for each.")
    caption = f"The values of the picked {noun}s"
    if len(names) > MOST_COLUMNS:
        caption += f": the first {MOST_COLUMNS} of {len(names)} columns"
    heads = [(noun, False), *((str(name), True) for name in names[:MOST_COLUMNS])]
    return {"caption": caption, "heads": heads, "rows": entries[selection.indices, :MOST_COLUMNS].tolist()}


def _pictures(selection: Selection, X: Any, history: Sequence[SearchProgress], noun: str) -> tuple[dict[str, str], str]:
    """SVGs by caption, or the reason why there are none."""
    columns = plots.compared_columns(X, selection)  # raises an error for another matrix
    drawings: dict[str, Callable[[Axes], object]] = {
        "Singular values. In an orthonormal set all are 1.": partial(plots.plot_singular_values, selection, noun=noun),
        f"Lengths of all {noun}s. Marks below the bars show the picked ones.": partial(
            plots.plot_lengths, X, selection, noun=noun
        ),
        "Lengths after the normalization for the pursuit: length 1 stays 1; longer and shorter ones become shorter.": (
            partial(plots.plot_lengths, X, selection, normalized=True, noun=noun)
        ),
        f"Before: inner products of all {noun}s; the picked ones are marked.": partial(
            plots.plot_gram, columns, picked=selection, noun=noun
        ),
    }
    if selection.k > DRAWN:
        drawings[f"After: inner products of the picked {noun}s."] = partial(plots.plot_gram, selection, noun=noun)
    if selection.k == 2:
        drawings[f"The {noun}s as vectors."] = partial(plots.plot_vectors, X, selection, noun=noun)
    if history:
        whole = [*history, _last(selection, history[-1])]
        drawings["The search: loss and lower bound meet when it is proved."] = partial(plots.plot_progress, whole)
    return draw_pictures(drawings)


def _last(selection: Selection, before: SearchProgress) -> SearchProgress:
    """The state at the end of the search, which is between two calls of a callback."""
    search = selection.search
    bound = search.loss if search.optimal else search.lower_bound
    seconds = max(search.seconds, before.seconds)
    return SearchProgress(seconds, search.loss, bound, search.gap, search.nodes, 0)
