"""The report: one self-contained HTML file about one selection, made for reading.

It loads nothing from anywhere: its Content-Security-Policy allows inline styles, images inside the file, and the one
script whose hash it names. Pictures are drawn if matplotlib is installed (extra `plot`).
"""

from __future__ import annotations

import base64
import hashlib
import io
import platform
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isopursuit import plots
from isopursuit.errors import PackageError, optional
from isopursuit.matrix import as_matrix
from isopursuit.outputs import write_whole
from isopursuit.results import Pursuit, loss_text
from isopursuit.search.incumbent import SearchProgress
from isopursuit.selection import Selection
from isopursuit.views import escape, fixed, number, percent, shade

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

NUMBERED = 16  # a Gram matrix up to this size has its numbers in the cells
DRAWN = 64  # a larger one is left to the picture
INK = "#010203"  # what stands for the text colour in a picture, until the page decides on light or dark


def write_report(
    selection: Selection,
    X: Any,
    path: str | PathLike[str],
    *,
    title: str | None = None,
    source: str | None = None,
    command: str | None = None,
    history: Sequence[SearchProgress] = (),
    options: Mapping[str, object] | None = None,
) -> Path:
    """Write `report_html` to a file, whole or not at all, and return its path.

    Examples
    --------
    >>> import isopursuit as ip, tempfile
    >>> from isopursuit.datasets import load_iris
    >>> X = load_iris().matrix()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = write_report(ip.select(X), X, folder + "/iris.html", title="Four irises")
    ...     "Four irises" in written.read_text(encoding="utf-8")
    True
    """
    text = report_html(selection, X, title=title, source=source, command=command, history=history, options=options)
    path = Path(path)
    write_whole(path, text)
    return path


def report_html(
    selection: Selection,
    X: Any,
    *,
    title: str | None = None,
    source: str | None = None,
    command: str | None = None,
    history: Sequence[SearchProgress] = (),
    options: Mapping[str, object] | None = None,
) -> str:
    """What was asked, what was picked and why, the proof, the pictures, and how to repeat it, as one HTML page.

    Parameters
    ----------
    selection : Selection
        The answer of `select`.
    X : array_like (D, P) or data frame
        What it was selected from.
    title : str, optional
        The page's heading.
    source : str, optional
        Where the data came from, such as a file name.
    command : str, optional
        What to type to repeat it; a line of Python if not given.
    history : sequence of SearchProgress, optional
        What a callback collected during the search, for a picture of it.
    options : mapping, optional
        What else was asked, by name: time limit, columns to include, ...

    Returns
    -------
    str
    """
    values = as_matrix(X, wide=False).values
    columns = plots.compared_columns(X, selection)
    heading = f"{selection.k} of {values.shape[1]} columns" if title is None else title
    sections = {
        "asked": ("What was asked", _asked(selection, values, source, options or {})),
        "picked": ("What was picked, and why", _picked(selection)),
        "proof": ("The proof", _proof(selection, values.shape[1])),
        "gram": ("Inner products of the picked columns", _gram(selection)),
        "pictures": ("Pictures", _pictures(selection, X, columns, history)),
        "alternatives": ("Close losers", _alternatives(selection)),
        "repeat": ("To repeat it", _repeat(selection, values, command)),
    }
    body = "".join(f'<section id="{key}"><h2>{name}</h2>{text}</section>' for key, (name, text) in sections.items())
    links = "".join(f'<li><a href="#{key}">{name}</a></li>' for key, (name, _) in sections.items())
    style, script = _asset("report.css"), _asset("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{escape(heading)}</title>
<style>{style}</style>
</head>
<body>
<div class="page">
<header>
<a class="skip" href="#picked">Skip to what was picked</a>
<h1>{escape(heading)}</h1>
{_summary(selection, values.shape[1])}
<nav aria-label="Sections"><ul>{links}</ul></nav>
</header>
<main>{body}</main>
<footer><p class="soft">Made by isopursuit {escape(_version("isopursuit"))} on {datetime.now(UTC):%Y-%m-%d %H:%M} UTC.
</p></footer>
</div>
<script>{script}</script>
</body>
</html>
"""


def _summary(selection: Selection, P: int) -> str:
    proved = ' class="verdict proved"' if selection.search.optimal else ' class="verdict"'
    facts = {
        "loss": loss_text(selection),
        "ideal (orthonormal)": selection.k,
        "picked": f"{selection.k} of {P}",
        "search time": f"{number(selection.search.seconds, 2)} s",
    }
    cards = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items())
    verdict = selection.verdict[0].upper() + selection.verdict[1:]
    return f'<p{proved}>{escape(verdict)}.</p><dl class="facts">{cards}</dl>'


def _asked(selection: Selection, values: Array, source: str | None, options: Mapping[str, object]) -> str:
    D, P = values.shape
    space = "" if selection.k == D else f", compared in the leading {selection.k}-dimensional row space"
    rows: dict[str, object] = {
        "data": f"{D} rows × {P} columns; columns are the candidates",
        "columns to pick (k)": f"{selection.k}{space}",
        "exponent (c)": f"{selection.c:g}; larger is less forgiving of lengths other than 1",
        "method": f"{selection.method}: {_METHODS.get(selection.method, 'as named')}",
        **options,
    }
    if source is not None:
        rows = {"source": source, **rows}
    text = (
        "<p>Pick columns that are as orthonormal as possible: each of length 1, and at right angles to the others. "
        "The loss measures how far they are from it; it is at least the number of columns, and equal to it only "
        "for an orthonormal set.</p>"
    )
    return text + _pairs(rows)


_METHODS = {
    "two-stage": "isometry pursuit prunes the columns, an exact search picks the best of those left",
    "exact": "an exact search over all columns",
    "exchange": "swaps from many starts, without a proof",
    "greedy": "one column after the other, without a proof",
    "brute": "every subset is evaluated",
}


def _picked(selection: Selection) -> str:
    rows = [
        (
            _Cell(one.label, head=True),
            _Cell(one.index, one.index),
            _Cell(number(one.length), one.length),
            _Cell(number(one.price, 3), one.price),
            _Cell("none can" if one.replacement is None else one.replacement),
        )
        for one in selection.choices
    ]
    text = (
        "<p><em>Price</em> is how much the loss rises if the column is taken out and its best replacement put in: "
        "a high price means that the column is hard to do without. <em>Length</em> is best at 1.</p>"
    )
    if selection.pursuit is None and any(one.price < 0 for one in selection.choices):  # else a note says it
        text += "<p>A negative price means that the exchange would lower the loss: this is not the best set of all.</p>"
    notes = "".join(f"<p>Note: {escape(note)}</p>" for note in selection.notes)
    head = ("column", "number", "length", "price", "best replacement")
    return text + _rows(head, rows, "The picked columns") + notes


def _alternatives(selection: Selection) -> str:
    if not selection.alternatives:
        return "<p>No other column can take the place of a picked one.</p>"
    rows = [
        (
            _Cell(one.label, head=True),
            _Cell(one.index, one.index),
            _Cell(number(one.length), one.length),
            _Cell(number(one.loss, 6), one.loss),
            _Cell(number(one.loss - selection.loss, 3), one.loss - selection.loss),
            _Cell(one.displaces),
        )
        for one in selection.alternatives
    ]
    head = ("column", "number", "length", "loss with it", "rise", "displaces")
    text = "<p>Columns that would cost the least to put in, each by one exchange with a picked column.</p>"
    return text + _rows(head, rows, "Columns that lose narrowly")


def _proof(selection: Selection, P: int) -> str:
    search = selection.search
    among = f"the {P} columns"
    parts: list[str] = []
    if selection.pursuit is not None:
        among = f"the {len(selection.pursuit.tied)} columns that the pursuit left"
        parts.append("<h3>First stage: isometry pursuit</h3>" + _pursuit_proof(selection.pursuit))
        parts.append("<h3>Second stage: search</h3>")
    said = {
        "optimal": f"No {selection.k} of {among} have a lower loss (to a relative 10⁻⁹). This is proved.",
        "gap": f"No {selection.k} of {among} have a loss more than {percent(search.gap)} lower, "
        "which is as close as was asked for.",
        "time": f"The time was over. {_bound_words(selection, among)}",
        "nodes": f"As many nodes were searched as allowed. {_bound_words(selection, among)}",
        "memory": f"Too many columns could not be excluded. {_bound_words(selection, among)}",
        "precision": "The picked columns are so badly conditioned that float64 cannot tell the losses of such subsets "
        f"apart. {_bound_words(selection, among)}",
        "interrupted": f"The search was stopped. {_bound_words(selection, among)}",
        "heuristic": f"This method proves nothing: there may be {selection.k} columns with a lower loss. "
        "The methods “two-stage” and “exact” give a proof.",
    }
    parts.append(f"<p>{escape(said[search.status])}</p>")
    rows: dict[str, object] = {
        "loss of the picked columns": loss_text(selection, 10),
        "no subset is below": number(search.lower_bound, 10) if np.isfinite(search.lower_bound) else "unknown",
        "gap": percent(search.gap) if np.isfinite(search.gap) else "unknown",
        "status": search.status,
        "subsets evaluated": f"{search.evaluations:,}",
    }
    if search.nodes:
        rows["nodes of the search tree"] = f"{search.nodes:,}"
    parts.append(_pairs(rows))
    if selection.pursuit is not None:
        parts.append(
            "<p>What the pursuit pruned was not searched. A column among it that would do better shows as a negative "
            "price above; the method “exact” searches all columns.</p>"
        )
    parts.append('<p class="soft">Bounds are computed in float64 with margins for rounding.</p>')
    return "".join(parts)


def _bound_words(selection: Selection, among: str) -> str:
    gap = selection.search.gap
    if not np.isfinite(gap):
        return "Nothing is proved yet about how far from the best this is."
    return f"It is proved that no {selection.k} of {among} have a loss more than {percent(gap)} lower."


def _pursuit_proof(pursuit: Pursuit) -> str:
    certificate, P = pursuit.certificate, len(pursuit.weights)
    kind = "It is the only solution." if pursuit.unique else f"It is one of many ({pursuit.solution})."
    if np.isfinite(certificate.gap):
        text = (
            f"A solution of the convex program was found together with a dual point, which no solution can go below. "
            f"The two agree to a relative {certificate.gap:.1e}. {kind} It uses {len(pursuit.support)} of {P} columns; "
            f"{len(pursuit.tied)} may be used by some optimal solution, and it is proved that the others are in none."
        )
    else:
        text = "The constraint is not met, so nothing is proved about the convex program."
    rows: dict[str, object] = {
        "objective of the solution (primal)": number(certificate.primal, 12),
        "nothing is below (dual)": number(certificate.dual, 12),
        "relative gap": f"{certificate.gap:.1e}" if np.isfinite(certificate.gap) else "unknown",
        "constraint residual": f"{certificate.residual:.1e}",
        "status": pursuit.status,
    }
    return f"<p>{escape(text)}</p>{_pairs(rows)}"


def _gram(selection: Selection) -> str:
    k = selection.k
    if k > DRAWN:
        return f"<p>The {k} × {k} matrix is too large for a table; see the pictures.</p>"
    gram = selection.gram
    extent = max(1.0, float(np.abs(gram).max()))
    names = [f'<th scope="{{}}" title="{escape(label)}"><bdi>{escape(label)}</bdi></th>' for label in selection.labels]
    lines: list[str] = []
    for i, row in enumerate(gram.tolist()):
        cells = "".join(
            f'<td role="gridcell" tabindex="{0 if i == j == 0 else -1}" data-value="{value:.9g}" '
            f'style="background:{shade(value, extent)}">{fixed(value)}</td>'
            for j, value in enumerate(row)
        )
        lines.append(f"<tr>{_scoped(names[i], 'row')}{cells}</tr>")
    head = "".join(_scoped(name, "col") for name in names)
    dense = " dense" if k > NUMBERED else ""
    return (
        "<p>Ideal is 1 on the diagonal and 0 elsewhere. Orange is above 0, blue below; the deeper, the further. "
        '<span class="screen">Point at a cell, or go there with Tab and the arrow keys.</span></p>'
        '<output class="readout soft" id="readout">Point at a cell to read it here.</output>'
        f'<div class="scroll"><table class="gram{dense}" role="grid" aria-label="Gram matrix" '
        f'aria-describedby="readout"><thead><tr><td></td>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'
    )


def _scoped(head: str, scope: str) -> str:
    return head.replace('scope="{}"', f'scope="{scope}"', 1)


def _repeat(selection: Selection, values: Array, command: str | None) -> str:
    if command is None:
        call = f"isopursuit.select(X, k={selection.k}, c={selection.c:g}, method={selection.method!r})"
        said = "The command was not recorded. From Python, but for options that the answer does not carry:"
    else:
        call, said = command, "The command:"
    rows = {name: _version(name) for name in ("isopursuit", "numpy", "scipy", "matplotlib")}
    rows["python"] = f"{platform.python_implementation()} {platform.python_version()}"
    rows["platform"] = platform.platform()
    rows["data (SHA-256 of X as float64, row by row)"] = hashlib.sha256(values.tobytes()).hexdigest()
    return f'<p>{said}</p><pre tabindex="0"><code>{escape(call)}</code></pre>{_pairs(rows)}'


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


class _Cell:
    """A cell of a sortable table: what is shown, and the number to sort by if it is one."""

    def __init__(self, shown: object, sort: float | None = None, *, head: bool = False):
        self.shown, self.sort, self.head = shown, sort, head

    def __str__(self) -> str:
        if self.head:
            return f'<th scope="row"><bdi>{escape(self.shown)}</bdi></th>'
        if self.sort is None:
            return f"<td><bdi>{escape(self.shown)}</bdi></td>"
        key = repr(float(self.sort)).replace("inf", "Infinity")
        return f'<td class="number" data-sort="{key}">{escape(self.shown)}</td>'


def _rows(head: Iterable[str], rows: Sequence[Sequence[_Cell]], caption: str) -> str:
    """A table that sorts by any column."""
    kinds = [' class="number"' if cell.sort is not None else "" for cell in rows[0]]
    heads = "".join(
        f'<th scope="col" aria-sort="none"{kind}><button type="button">{name}</button></th>'
        for name, kind in zip(head, kinds, strict=True)
    )
    body = "".join(f"<tr>{''.join(str(cell) for cell in row)}</tr>" for row in rows)
    return (
        f'<p class="soft">{caption}<span class="screen">; press a heading to sort by it</span>.</p>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{caption}">'
        f'<table class="rows sortable" aria-label="{caption}">'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _pairs(rows: Mapping[str, object]) -> str:
    """Names and values."""
    lines = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in rows.items())
    return f'<dl class="pairs">{lines}</dl>'


def _asset(name: str) -> str:
    return (files("isopursuit") / "data" / name).read_text(encoding="utf-8")


def _pictures(selection: Selection, X: Any, columns: Array, history: Sequence[SearchProgress]) -> str:
    try:
        optional("matplotlib", "plot", "Drawing")
    except PackageError as error:
        return f"<p>There are no pictures. {escape(str(error))}</p>"
    drawings: list[tuple[str, Callable[[Axes], object]]] = [
        ("Each singular value would be 1 in an orthonormal set.", lambda ax: plots.plot_singular_values(selection, ax)),
        (
            "How long the columns are. Marks below the bars are the picked ones.",
            lambda ax: plots.plot_lengths(X, selection, ax),
        ),
        (
            "The same after normalization, as the pursuit sees them: 1 is best, long and short both come out short.",
            lambda ax: plots.plot_lengths(X, selection, ax, normalized=True),
        ),
        (
            "Before: the inner products of all candidates, with the picked ones marked.",
            lambda ax: plots.plot_gram(columns, ax, picked=selection),
        ),
    ]
    if selection.k > DRAWN:
        drawings.append(("After: the inner products of the picked.", lambda ax: plots.plot_gram(selection, ax)))
    if selection.k == 2:
        drawings.append(("The columns themselves.", lambda ax: plots.plot_vectors(X, selection, ax)))
    if history:
        whole = [*history, _last(selection, history[-1])]
        drawings.append(
            ("The search: the two lines meet when the proof is complete.", lambda ax: plots.plot_progress(whole, ax))
        )
    figures = (
        f"<figure>{_svg(draw, caption, f'p{i}')}<figcaption>{caption}</figcaption></figure>"
        for i, (caption, draw) in enumerate(drawings)
    )
    return f'<div class="pictures">{"".join(figures)}</div>'


def _last(selection: Selection, before: SearchProgress) -> SearchProgress:
    """How the search ended: callbacks come ten times a second, and the end between two of them."""
    search = selection.search
    bound = search.loss if search.optimal else search.lower_bound
    seconds = max(search.seconds, before.seconds)
    return SearchProgress(seconds, search.loss, bound, search.gap, search.nodes, 0)


def _svg(draw: Callable[[Axes], object], caption: str, prefix: str) -> str:
    """A picture as SVG to stand in the page: text as text, in the page's colour, with ids of its own."""
    from matplotlib import rc_context  # pyright: ignore[reportUnknownVariableType]
    from matplotlib.figure import Figure

    inks = ("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color")
    settings: Any = dict.fromkeys(inks, INK)
    settings |= {"svg.fonttype": "none", "svg.hashsalt": "isopursuit", "axes.titlesize": "medium", "font.size": 9}
    settings |= {"axes.facecolor": "none", "legend.framealpha": 0.0, "legend.fontsize": "small"}
    stream = io.StringIO()
    with rc_context(settings), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a glyph that matplotlib's font lacks: the page's has it
        figure = Figure(figsize=(4.6, 3.6), layout="constrained", facecolor="none")
        draw(figure.subplots())
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(stream, format="svg", metadata=nothing)
    svg = stream.getvalue()
    svg = re.sub(r"<!--.*?-->", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    # text cannot hold < or >, so that what these change is never a label
    return re.sub(r"<[^>]+>", lambda tag: _fit(tag[0], caption, prefix), svg)


def _fit(tag: str, caption: str, prefix: str) -> str:
    if tag.startswith("<svg"):
        size = re.search(r'viewBox="[^"]*"', tag)
        return f'<svg role="img" aria-label="{escape(caption)}" {size[0] if size else ""}>'
    tag = re.sub(r'\b(id="|href="#|url\(#)', rf"\1{prefix}-", tag)
    return re.sub(r" *font-family:[^;]*;", "", tag).replace(INK, "currentColor")
