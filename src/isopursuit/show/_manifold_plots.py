"""Pictures of coordinates: the manifold, its plane, losses, frequencies, spectra, and torsions on their molecule."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from isopursuit._core.linalg import row_space
from isopursuit._core.text import LARGE, loss_text
from isopursuit._core.threads import on_one_blas_thread
from isopursuit._core.types import Array
from isopursuit.data._matrix import as_matrix
from isopursuit.errors import ParameterError, ShapeError
from isopursuit.show._style import (
    BLUE,
    COLOURS,
    GREY,
    ORANGE,
    SKY,
    colour_map,
    maybe_log,
    new_axes,
    plain_legend,
    refuse_empty,
    short_heads,
    short_names,
    whole_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isopursuit.manifold import DimensionScan, TangentSpaces

DRAWN = 500  # most tangent spaces whose spectra are drawn: more lines hide each other
FLOOR = 1e-6  # smaller shares of the variance are drawn here, far below any relevant direction
FEW = (
    2000  # most points of a plane that are drawn one by one; more are counted in hexagons (chosen: they would overlap)
)
FAR = 100.0  # losses that are so many times the median are drawn at the edge (chosen: the others can still be read)
HEXAGONS = 72  # hexagons across the plane, one for every 5 degrees of a torsion
APART = 0.05  # share of the axis between the numbers of two points (about the height of a digit)
NAMED = 60  # most atoms with names; in a larger molecule only the atoms of torsions have names (names would overlap)
GAP, BESIDE, ASIDE = 0.22, 0.35, 0.07  # bond lengths: free at each end, to the text beside a line, between two torsions
# most characters of a name beside a bond, along an axis, and in the legend (as many as fit)
TAG, AXIS, LEGEND = 3, 32, 44


# ------------------------------------------------------------------------------------------------------- the manifold


@on_one_blas_thread
def plot_manifold(
    points: ArrayLike, values: ArrayLike, ax: Axes | None = None, *, label: object = "", cyclic: bool = False
) -> Axes:
    """Points in their first two principal components, coloured by a function.

    Parameters
    ----------
    points : array_like (n, B)
        The data.
    values : array_like (n,)
        The values of the function at the points.
    ax : Axes, optional
        The Axes to draw on. Default: a new figure. An Axes with a third dimension (projection="3d") shows three
        components.
    label : str
        The name of the function.
    cyclic : bool
        Whether the values are angles in radians: they are mapped to −π … π, and both ends have the same colour.
    """
    data, colours = as_matrix(points, wide=False).values, np.asarray(values, dtype=np.float64)
    if colours.shape != (len(data),):
        raise ShapeError(f"There are {len(data)} points, but values of shape {colours.shape}; expected one for each.")
    centred = data - data.mean(axis=0)
    if not centred.any():
        raise ParameterError(f"All {len(data)} points are equal. Pass at least two different points.")
    ax = new_axes(ax)
    deep = hasattr(ax, "get_zlim")
    components = row_space(np.ascontiguousarray(centred.T), min(3 if deep else 2, data.shape[1]))
    share = float((components**2).sum() / (centred**2).sum())
    style: dict[str, Any] = {"vmin": -np.pi, "vmax": np.pi} if cyclic else {}
    style["cmap"] = colour_map(cyclic=cyclic)
    image = ax.scatter(*components, c=_wrapped(colours) if cyclic else colours, s=6, linewidths=0, **style)
    for ordinal, axis in zip(("first", "second", "third")[: len(components)], "xyz", strict=False):
        # numbers on three axes would overlap, and the unit of a component means little
        flat = {f"{axis}label": f"{ordinal} principal component"}
        ax.set(**{f"{axis}label": ordinal, f"{axis}ticklabels": []} if deep else flat)
    name = short_names([label])[0]
    ax.set_title(f"{name}\n{len(components)} components, {share:.0%} of the variance", parse_math=False)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.8, pad=0.1 if deep else 0.05)
    if cyclic:
        bar.set_ticks([-np.pi, -np.pi / 2, 0.0, np.pi / 2, np.pi], labels=["−180°", "−90°", "0°", "90°", "180°"])
    bar.set_label("" if cyclic else name, parse_math=False)
    return ax


def plot_coordinates(
    first: ArrayLike,
    second: ArrayLike,
    ax: Axes | None = None,
    *,
    labels: tuple[object, object] = ("first", "second"),
    cyclic: bool = False,
    colours: ArrayLike | None = None,
) -> Axes:
    """All points in the plane of two functions; for torsions this is a Ramachandran plot, in degrees.

    Up to 2,000 points are drawn one by one; of more, without `colours`, the density is drawn.

    Parameters
    ----------
    first, second : array_like (n,)
        The values of the functions at the points.
    ax : Axes, optional
        The Axes to draw on. Default: a new figure.
    labels : pair of str
        The names of the functions.
    cyclic : bool
        Whether they are angles in radians.
    colours : array_like (n,), optional
        A third quantity to colour the points by, such as an energy.
    """
    x, y = (np.asarray(values, dtype=np.float64) for values in (first, second))
    if x.ndim != 1 or x.shape != y.shape:
        raise ShapeError(f"Coordinates must be two lists of one length; got shapes {x.shape} and {y.shape}.")
    refuse_empty(x, "points")
    ax = new_axes(ax)
    x, y = (np.degrees(_wrapped(x)), np.degrees(_wrapped(y))) if cyclic else (x, y)
    if colours is not None:
        image = ax.scatter(x, y, s=5, c=np.asarray(colours, dtype=np.float64), cmap=colour_map(), linewidths=0)
        ax.figure.colorbar(image, ax=ax, shrink=0.8)
    elif len(x) <= FEW:
        ax.scatter(x, y, s=5, color=BLUE, alpha=0.5, linewidths=0)
    else:
        box: dict[str, Any] = {"extent": (-180.0, 180.0, -180.0, 180.0)} if cyclic else {}
        image = ax.hexbin(x, y, gridsize=HEXAGONS, bins="log", mincnt=1, cmap=colour_map(), linewidths=0.2, **box)
        ax.figure.colorbar(image, ax=ax, shrink=0.8, label="points (log scale)")
    if cyclic:
        ticks = list(range(-180, 181, 90))
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_ticks(ticks, [f"{tick}°".replace("-", "−") for tick in ticks], fontsize=8)
        ax.set(xlim=(-180, 180), ylim=(-180, 180))
        ax.grid(color=GREY, alpha=0.3, linewidth=0.5)
    ax.set_aspect("equal", adjustable="box" if cyclic else "datalim")
    one, two = short_names(labels, AXIS)
    ax.set_xlabel(one, parse_math=False)
    ax.set_ylabel(two, parse_math=False)
    ax.set_title(f"{len(x):,} points in the plane of two functions")
    return ax


# ------------------------------------------------------------------------------------------------------------- points


def plot_point_losses(
    losses: ArrayLike,
    ax: Axes | None = None,
    *,
    points: ArrayLike | None = None,
    ideal: float | None = None,
    undetermined: ArrayLike | None = None,
    worst: int = 3,
    noun: str = "point",
) -> Axes:
    """The loss of the picked functions at each point, from the lowest to the highest; the highest are numbered.

    Losses above a hundred times the median, or above 10⁶, are drawn at the upper edge.

    Parameters
    ----------
    losses : array_like (n,)
        The loss at each point, for example of a selection.
    ax : Axes, optional
        The Axes to draw on. Default: a new figure.
    points : array_like of int (n,), optional
        The numbers of the points, such as frames of a trajectory. Default: 0 to n − 1.
    ideal : float, optional
        The loss of orthonormal columns, which is the number of picked functions.
    undetermined : array_like of bool (n,), optional
        The points whose tangent space is not determined; they have a different marker.
    worst : int
        How many of the highest losses to number.
    noun : str
        The word for a point, such as "frame".
    """
    values = np.asarray(losses, dtype=np.float64)
    numbers = np.arange(values.size) if points is None else np.asarray(points, dtype=np.intp)
    unsure = np.zeros(values.size, dtype=bool) if undetermined is None else np.asarray(undetermined, dtype=bool)
    if values.ndim != 1 or not numbers.shape == unsure.shape == values.shape:
        raise ShapeError(
            f"losses have shape {values.shape}, points {numbers.shape} and undetermined {unsure.shape}; expected one "
            "number for each point."
        )
    refuse_empty(values, "losses")
    ax = new_axes(ax)
    order = np.argsort(values, kind="stable")
    limit = min(LARGE, FAR * float(np.median(values)))
    rank, y = np.arange(1, len(values) + 1), np.minimum(values[order], 2 * limit)
    for some, marker, colour, label in (
        (~unsure[order], "o", BLUE, "determined" if unsure.any() else "_points"),
        (unsure[order], "s", ORANGE, "tangent space not determined"),
    ):
        if some.any():
            name = label if label.startswith("_") else f"{label} ({int(some.sum())})"
            ax.plot(rank[some], y[some], marker, color=colour, markersize=4, markerfacecolor="none", label=name)
    if (values > limit).any():
        text = "10⁶" if limit == LARGE else loss_text(limit, 4)
        ax.plot([], [], " ", label=f"above {text}: {int((values > limit).sum())}")
    if ideal is not None:
        ax.axhline(ideal, color=GREY, linestyle="--", label=f"ideal: {ideal:g}")
    maybe_log(ax, y)
    low, high = ax.get_ylim()
    scale = np.log if ax.get_yscale() == "log" else np.asarray
    last = np.inf
    for i in rank[::-1][:worst].tolist():
        height = float((scale(y[i - 1]) - scale(low)) / (scale(high) - scale(low)))
        if last - height > APART:  # numbers would overlap
            last = height
            at = (float(i), float(y[i - 1]))
            ax.annotate(
                str(numbers[order[i - 1]]), at, (-5, 0), textcoords="offset points", ha="right", va="center", fontsize=8
            )
    whole_ticks(ax.xaxis)
    ax.set_xlabel(f"{noun}s, lowest loss first")
    ax.set_ylabel("loss" + (" (log scale)" if ax.get_yscale() == "log" else ""))
    ax.set_title(f"Loss at each {noun}")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc="upper left")  # losses rise at the right
    return ax


# ---------------------------------------------------------------------------------------------------------- dimension


def plot_spectra(tangents: TangentSpaces, ax: Axes | None = None) -> Axes:
    """The variances of the neighbourhoods from which tangent spaces were estimated, and their dimension.

    Each neighbourhood is a thin line, and their mean is a thick one. At a good dimension they drop steeply.
    """
    ax, shares = new_axes(ax), np.maximum(tangents.shares, FLOOR)
    rank = list(range(1, shares.shape[1] + 1))
    lines = shares[np.linspace(0, len(shares) - 1, min(len(shares), DRAWN)).astype(np.intp)]
    ax.plot(rank, lines.T, color=SKY, linewidth=0.5, alpha=0.5)
    ax.plot([], [], color=SKY, linewidth=1, label=f"{len(shares)} neighbourhoods")
    ax.plot(rank, np.maximum(tangents.shares.mean(axis=0), FLOOR), "o-", color=BLUE, markersize=4, label="mean")
    ax.axvline(tangents.dimension + 0.5, color=ORANGE, linestyle="--", label=f"D = {tangents.dimension}")
    ax.set(yscale="log", xlabel="direction, by rank", ylabel="share of the variance (log scale)")
    whole_ticks(ax.xaxis)
    ax.set_title("Spectra of the neighbourhoods")
    ax.legend()
    return ax


def plot_dimension(scan: DimensionScan, ax: Axes | None = None) -> Axes:
    """The loss per direction for each dimension, over redraws of the points, and the lowest of random functions.

    The recommended dimension is blue. Losses above 10⁶ are drawn at the upper edge.
    """
    ax = new_axes(ax)
    largest = np.log(2 * LARGE)
    for row in scan.rows:
        colour = BLUE if scan.recommended == row.D else ORANGE
        redraws = np.exp(np.minimum(row.evidence.log_losses, largest))
        ax.plot([row.D] * len(redraws), redraws, "-", color=colour, linewidth=5, alpha=0.3, solid_capstyle="round")
        ax.plot([row.D], [np.exp(min(row.log_loss, largest))], "o", color=colour)
    drawn = [(row.D, np.exp(min(row.evidence.random.min(), largest))) for row in scan.rows if row.evidence.random.size]
    if drawn:
        ax.plot(*zip(*drawn, strict=True), "_", color=GREY, markersize=12, label="best of random functions")
    ax.plot([], [], "o", color=BLUE, label=f"D = {scan.recommended}: {'recommended' if scan.supported else 'lowest'}")
    ax.plot([], [], "-", color=ORANGE, linewidth=5, alpha=0.3, label="range over redraws")
    ax.axhline(1.0, color=GREY, linestyle="--", label="ideal: 1")
    ax.set(yscale="log", xlabel="D", ylabel="loss per direction (log scale)")
    whole_ticks(ax.xaxis)
    ax.set_title("Loss per direction by dimension")
    ax.legend()
    return ax


# ---------------------------------------------------------------------------------------------------------- molecules


def plot_torsions(
    names: Sequence[str],
    torsions: Sequence[Sequence[int]] | ArrayLike,
    ax: Axes | None = None,
    *,
    bonds: Sequence[tuple[int, int]] = (),
    positions: ArrayLike,
    labels: Sequence[object] | None = None,
) -> Axes:
    """A molecule in one frame, in the plane where it is widest, with torsions marked on it: a thick line is the axis.

    Angles and distances, of three and two atoms, are thin lines.

    Parameters
    ----------
    names : sequence of str
        The name of each atom: symbol and number, or the name in the topology.
    torsions : sequence of 2 to 4 atoms each
        The atoms of each torsion, by their positions in `names`.
    ax : Axes, optional
        The Axes to draw on. Default: a new figure.
    bonds : sequence of pairs of int
        Pairs of bonded atoms. Without bonds, only atoms and torsions are drawn.
    positions : array_like (atoms, 3)
        The positions in one frame.
    labels : sequence of str, optional
        The names of the torsions.

    Examples
    --------
    >>> butane = [[-0.5, 1.4, 0.0], [0.0, 0.0, 0.0], [1.5, 0.0, 0.0], [2.0, -1.4, 0.3]]
    >>> ax = plot_torsions(["C0", "C1", "C2", "C3"], [[0, 1, 2, 3]], positions=butane, labels=["C–C–C–C"])
    >>> [text.get_text() for text in ax.texts]
    ['1', 'C0', 'C1', 'C2', 'C3']
    """
    rows = [[int(atom) for atom in row] for row in torsions]  # pyright: ignore
    used = {atom for row in rows for atom in row}
    if not {int(a) for pair in bonds for a in pair} | used <= set(range(len(names))):
        raise ParameterError(f"bonds and torsions name atoms {sorted(used)}; the molecule has {len(names)}.")
    r = np.asarray(positions, dtype=np.float64)
    if r.shape != (len(names), 3):
        raise ShapeError(f"positions must be ({len(names)}, 3), one row for each atom; they are {r.shape}.")
    places = row_space(np.ascontiguousarray((r - r.mean(axis=0)).T), 2).T
    ax = new_axes(ax)
    lines = np.array(list(bonds) or [row[:2] for row in rows], dtype=np.intp)
    unit = float(np.median(np.linalg.norm(places[lines[:, 0]] - places[lines[:, 1]], axis=1)))
    for i, j in bonds:
        ax.plot(*_between(places, i, j, unit, 0.0), color=GREY, linewidth=1.2)
    tags = [str(i + 1) for i in range(len(rows))]
    titles = [f"torsion {tag}" for tag in tags]
    if labels is not None:
        heads, titles = short_heads(labels), short_names(labels, LEGEND)
        if all(len(head) <= TAG for head in heads):
            tags = heads
        else:
            titles = [f"{tag}: {title}" for tag, title in zip(tags, titles, strict=True)]
    for m, row in enumerate(rows):
        aside = ASIDE * (m - (len(rows) - 1) / 2)
        style: dict[str, Any] = {"color": COLOURS[m % len(COLOURS)]}
        middle = (len(row) - 2) // 2  # the line that carries the name: of a torsion its axis, otherwise the first
        for step, (i, j) in enumerate(pairwise(row)):
            thick: dict[str, Any] = (
                {"linewidth": 6, "alpha": 0.6} if len(row) == 4 and step == middle else {"linewidth": 1.5}
            )
            label = titles[m] if step == middle else None
            ax.plot(*_between(places, i, j, unit, aside), **style, **thick, label=label)
        x, y = _beside(places, row[middle], row[middle + 1], unit).tolist()
        ax.text(x, y, tags[m], ha="center", va="center", fontsize=9, fontweight="bold", parse_math=False, **style)
    for i, name in enumerate(names):
        if len(names) <= NAMED or i in used:
            x, y = places[i].tolist()
            ax.text(x, y, name, ha="center", va="center", fontsize=8, parse_math=False)
    ax.update_datalim(places)
    ax.margins(0.08)
    ax.autoscale_view()
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_axis_off()
    ax.set_title("The picked torsions")
    if rows:
        plain_legend(ax, loc="upper center", bbox_to_anchor=(0.5, 0.0), frameon=False)
    return ax


def _beside(places: Array, i: int, j: int, unit: float) -> Array:
    """A place for text next to the line between two atoms, on the side that is farther from other atoms."""
    middle, step = (places[i] + places[j]) / 2, places[j] - places[i]
    aside = BESIDE * unit * np.array([-step[1], step[0]]) / max(float(np.linalg.norm(step)), 1e-12)
    sides = np.stack([middle + aside, middle - aside])
    room = np.sort(np.linalg.norm(sides[:, None] - places, axis=2), axis=1)[:, 2]  # beyond the two atoms themselves
    return sides[int(room.argmax())]


def _between(places: Array, i: int, j: int, unit: float, aside: float) -> Array:
    """The line between two atoms without its ends, `aside` bond lengths to one side: x and y."""
    low, high = sorted((i, j))  # the side does not depend on the direction of the bond
    step = places[high] - places[low]
    length = max(float(np.linalg.norm(step)), 1e-12)
    gap = min(GAP * unit, 0.4 * length) * step / length
    shift = aside * unit * np.array([-step[1], step[0]]) / length
    return np.array([places[low] + gap + shift, places[high] - gap + shift]).T


def _wrapped(angles: Array) -> Array:
    """Angles between −π and π."""
    return (angles + np.pi) % (2 * np.pi) - np.pi
