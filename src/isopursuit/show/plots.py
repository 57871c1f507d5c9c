"""Pictures of one selection, of its search, and of the loss as a function of length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from isopursuit._core.text import NO_BOUND, USEFUL, fixed, loss_text, percent
from isopursuit._core.types import Array
from isopursuit.data._matrix import as_matrix, centred
from isopursuit.errors import ParameterError, ShapeError
from isopursuit.search.incumbent import SearchProgress
from isopursuit.selection.result import Selection
from isopursuit.selection.stability import Stability
from isopursuit.show._style import (
    BLUE,
    COLOURS,
    GREY,
    MARKERS,
    ORANGE,
    SKY,
    maybe_log,
    name_ticks,
    new_axes,
    plain_legend,
    plain_ticks,
    refuse_empty,
    short_names,
    whole_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


NUMBERED = 13  # most columns of a Gram matrix whose cells have numbers (as many as can be read)
NAMED = 30  # most names on an axis
IMAGE = 500  # most columns in the picture of all inner products: about one pixel each


def compared_columns(X: Any, selection: Selection) -> Array:
    """All columns of X as they were compared: in the unit of the selection.

    Raises an error if the selection was made from another matrix.
    """
    given, unit = as_matrix(X, wide=False), selection.search.unit_length
    for matrix in (given, centred(given)):
        values = (matrix if matrix.unit_length == unit else matrix.in_unit(unit)).values
        fits = len(values) == selection.matrix.shape[-2] and selection.indices.max() < values.shape[1]
        if fits and np.allclose(values[:, selection.indices], selection.matrix, rtol=1e-6, atol=1e-9):
            return values
    raise ShapeError(
        f"X {np.shape(X)} is not the matrix that these {selection.k} columns were selected from. Pass the X that was "
        "given to select, or from_gram(gram) of isopursuit.data if gram= was given."
    )


def plot_gram(
    columns: Selection | ArrayLike,
    ax: Axes | None = None,
    *,
    picked: Selection | None = None,
    noun: str = "column",
) -> Axes:
    """The inner products of columns: the identity if they are orthonormal.

    Parameters
    ----------
    columns : Selection or array_like (D, P)
        The picked columns ("after"), or any columns, such as all candidates ("before"). If there are more than 500
        columns, an even sample is shown.
    ax : Axes, optional
        The Axes to draw on. Default: a new figure.
    picked : Selection, optional
        If all candidates are shown: the selection whose columns are marked on the axes and kept in the sample.
    noun : str
        The word for a candidate, such as "row" if the columns of X are the rows of a table.
    """
    ax = new_axes(ax)
    if isinstance(columns, Selection):
        gram, title = columns.gram, f"Inner products of the picked {noun}s"
        names, places = short_names(columns.labels), list(range(columns.k))
    else:
        values = as_matrix(columns, wide=False).values
        P = values.shape[1]
        marked = np.zeros(0, dtype=np.intp) if picked is None else picked.indices
        shown = np.union1d(np.linspace(0, P - 1, min(P, IMAGE)).round().astype(np.intp), marked)
        gram = values[:, shown].T @ values[:, shown]
        title = f"Inner products of {'all' if len(shown) == P else f'{len(shown)} of {P}'} {noun}s"
        names = [str(i) for i in shown] if picked is None else short_names(picked.labels)
        places = list(range(len(shown))) if picked is None else np.searchsorted(shown, marked).tolist()
        title += "" if picked is None else f"\nticks: the {picked.k} picked"
    extent = max(1.0, float(np.abs(gram).max()))
    image = ax.imshow(gram, cmap="RdBu_r", vmin=-extent, vmax=extent, interpolation="nearest")
    if len(gram) <= NUMBERED:
        for (i, j), value in np.ndenumerate(gram):
            ink = "white" if abs(value) > 0.6 * extent else "black"
            ax.text(j, i, fixed(float(value)), ha="center", va="center", color=ink, fontsize=7)
    if picked is None or isinstance(columns, Selection):
        upright = max(map(len, names), default=0) > 2
        name_ticks(ax.xaxis, places, names, len(gram) // NAMED, turn=90 if upright else 0)
        name_ticks(ax.yaxis, places, names, len(gram) // NAMED)
    else:  # names on one side only, to leave room for the picture
        ax.set_xticks(places, [""] * len(places))
        name_ticks(ax.yaxis, places, names, len(gram) // (NAMED // 2))
    ax.set_title(title)
    ax.figure.colorbar(image, ax=ax, shrink=0.8, label="inner product")
    return ax


def plot_singular_values(
    selection: Selection | Sequence[Selection], ax: Axes | None = None, *, noun: str = "column"
) -> Axes:
    """The singular values of the picked columns and their ideal, 1, for one or several selections.

    For a selection at many points, their means are shown. `noun` is the word for a candidate.
    """
    several = [selection] if isinstance(selection, Selection) else list(selection)
    refuse_empty(several, "selections")
    ax = new_axes(ax)
    ax.axhline(1.0, color=GREY, linestyle="--", label="orthonormal: all are 1")
    for i, one in enumerate(several):
        sigma = np.linalg.svd(one.matrix, compute_uv=False).reshape(-1, one.k).mean(axis=0)
        place = np.arange(1, len(sigma) + 1) + 0.15 * (i - (len(several) - 1) / 2)
        colour, marker = COLOURS[i % 5], MARKERS[i % 5]
        ax.vlines(place, 1.0, sigma, color=colour, linewidth=1)
        label = f"{one.method}, loss {loss_text(one, 4)} (ideal {one.ideal})"
        ax.plot(place, sigma, marker, color=colour, label=label)
    ax.set_yscale("log")
    plain_ticks(ax.yaxis)
    whole_ticks(ax.xaxis)
    ax.set_xlabel("singular value, by rank")
    ax.set_ylabel("size (no unit, log scale)")
    ax.set_title(f"Singular values of the picked {noun}s")
    ax.legend()
    return ax


def plot_lengths(
    X: Any,
    selection: Selection,
    ax: Axes | None = None,
    *,
    noun: str = "column",
) -> Axes:
    """The lengths of all columns of X and of the picked ones.

    Parameters
    ----------
    X : array_like (D, P) or data frame
        The matrix that the selection was made from.
    selection : Selection
        The selection; its columns are marked below the histogram.
    ax : Axes, optional
        The Axes to draw on. Default: a new figure.
    noun : str
        The word for a candidate.
    """
    ax = new_axes(ax)
    lengths = np.linalg.norm(compared_columns(X, selection), axis=0)
    positive = lengths[lengths > 0]
    ends = np.log([min(positive.min(), 1.0) / 1.05, max(positive.max(), 1.0) * 1.05])
    bins = np.exp(np.linspace(ends[0], ends[1], 31))
    ax.set_xscale("log")
    plain_ticks(ax.xaxis)
    ax.set_xlabel(f"length (unit: {selection.unit}; log scale)")
    ax.set_title("Lengths")
    zero = int((lengths == 0).sum())
    label = f"all {len(lengths)} {noun}s" + (f" ({zero} of length 0 not shown)" if zero else "")
    counts, _, _ = ax.hist(lengths, bins=bins.tolist(), color=SKY, edgecolor="white", linewidth=0.5, label=label)
    top = float(np.max(counts))
    mark = np.full(selection.k, -0.06 * top)
    ax.plot(lengths[selection.indices], mark, "|", color=ORANGE, markersize=11, mew=1.5, label=f"{selection.k} picked")
    ax.axvline(1.0, color=GREY, linestyle="--", label="ideal: 1")
    whole_ticks(ax.yaxis)
    ax.set_ylim(0.0, 1.08 * top)
    ax.set_yticks(ax.get_yticks())
    ax.set_ylim(-0.12 * top, 1.08 * top)
    ax.set_ylabel(f"number of {noun}s")
    ax.legend()
    return ax


def plot_vectors(X: Any, selection: Selection, ax: Axes | None = None, *, noun: str = "column") -> Axes:
    """For k = 2: all columns as points in the plane, the picked ones as arrows, and the unit circle.

    In more than two dimensions, all columns are projected onto the plane of the picked ones. `noun` is
    what a candidate is called.
    """
    if selection.k != 2:
        raise ParameterError(f"Vectors can only be drawn for k = 2, but {selection.k} columns were picked.")
    ax = new_axes(ax)
    values, picked = compared_columns(X, selection), selection.matrix
    if len(values) > 2:
        plane = np.linalg.qr(picked)[0]
        values, picked = plane.T @ values, plane.T @ picked
    angle = np.linspace(0.0, 2 * np.pi, 200)
    ax.plot(np.cos(angle), np.sin(angle), "--", color=GREY, linewidth=1, label="length 1")
    ax.plot(values[0], values[1], ".", color=SKY, markersize=4, label=f"all {values.shape[1]} {noun}s")
    for name, (x, y), colour, line in zip(
        short_names(selection.labels), picked.T, (BLUE, ORANGE), ("-", "--"), strict=True
    ):
        ax.plot([0, x], [0, y], line, color=colour, linewidth=2)
        ax.plot(x, y, "o", color=colour, label=name)
    ax.axhline(0.0, color=GREY, linewidth=0.5)
    ax.axvline(0.0, color=GREY, linewidth=0.5)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xlabel("first coordinate")
    ax.set_ylabel("second coordinate")
    ax.set_title(f"The two picked {noun}s, loss {loss_text(selection, 4)} (ideal 2)")
    plain_legend(ax)
    return ax


def plot_stability(found: Stability, ax: Axes | None = None) -> Axes:
    """How often each column is picked in resamples; filled bars are picked from all rows.

    Examples
    --------
    >>> import isopursuit as ip
    >>> from isopursuit.data import load_iris
    >>> found = ip.stability(load_iris().values, 2, unit="each", center=True, resamples=10)
    >>> plot_stability(found).get_xlabel()
    'picked in this share of 10 resamples'
    """
    ax = new_axes(ax)
    columns = found.columns[:NAMED]
    picked = np.isin(columns, found.indices)
    place = np.arange(len(columns))
    for some, colour, label in ((picked, BLUE, f"picked from all {found.what}"), (~picked, "none", "not picked")):
        if some.any():
            share = found.frequency[columns[some]]
            ax.barh(place[some], share, color=colour, edgecolor=BLUE, linewidth=1, label=label)
    ax.set_yticks(place, short_names([found.name(i) for i in columns.tolist()]))
    ax.invert_yaxis()
    ax.set_xlim(0.0, 1.0)
    ax.set_xlabel(f"picked in this share of {len(found.picks)} resamples")
    ax.set_title(f"{len(found.indices)} columns: the same in {100 * found.same:.0f} % of the resamples")
    plain_legend(ax, loc="lower right")
    return ax


def plot_progress(history: Sequence[SearchProgress], ax: Axes | None = None) -> Axes:
    """The best loss and the lower bound over the time of a search.

    Examples
    --------
    >>> import isopursuit as ip
    >>> from isopursuit.data import load_iris
    >>> history = []
    >>> picked = ip.select(load_iris().matrix(), method="exact", callback=history.append)
    >>> plot_progress(history).get_xlabel()
    'time (s)'
    """
    ax = new_axes(ax)
    seconds = np.array([state.seconds for state in history])
    incumbent = np.array([state.incumbent for state in history])
    bound = np.array([state.lower_bound for state in history])
    incumbent, bound = (np.where(np.isfinite(a), a, np.nan) for a in (incumbent, bound))
    # a search that ended before its second report has one point: draw a line from the start to it
    if len(seconds) == 1:
        seconds, incumbent, bound = np.array([0.0, seconds[0]]), incumbent.repeat(2), bound.repeat(2)
    ax.fill_between(seconds, bound, incumbent, step="post", color=SKY, alpha=0.3, linewidth=0)
    step = max(1, len(seconds) // 15)  # markers that do not hide the line, one of them at the end
    sparse = ((len(seconds) - 1) % step, step) if len(seconds) else None
    for y, colour, style, label in (
        (incumbent, BLUE, "o-", "best loss found"),
        (bound, ORANGE, "s--", "no subset is below this"),
    ):
        ax.step(seconds, y, style, where="post", color=colour, markersize=4, markevery=sparse, label=label)
    maybe_log(ax, np.concatenate([incumbent, bound]))
    ax.set_xlabel("time (s)")
    ax.set_ylabel("loss")
    title = "The search"
    if history:
        last = history[-1]
        gap = f"gap {percent(last.gap)}" if last.gap <= USEFUL else NO_BOUND
        nodes = f" and {last.nodes:,} nodes" if last.nodes else ""
        title += f": {gap} after {last.seconds:.2g} s{nodes}"
    ax.set_title(title)
    ax.legend()
    return ax
