"""Pictures of coordinates: the manifold, its plane, losses, the dimension, and the functions on their molecule."""

from __future__ import annotations

from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from isopursuit._core.linalg import row_space, singular_values
from isopursuit._core.text import LARGE, loss_text
from isopursuit._core.threads import on_one_blas_thread
from isopursuit._core.types import Array, Indices
from isopursuit.errors import ParameterError
from isopursuit.molecules import find_bonds
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
    short_heads,
    short_names,
    whole_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isopursuit import Coordinates
    from isopursuit.manifold import DimensionScan, TangentSpaces

DRAWN = 500  # most tangent spaces whose spectra are drawn: more lines hide each other
MOST_POINTS = 3000  # most points of the manifold in a picture: more hide each other
DEEP = 0.1  # share of the variance from which on a third component is drawn (chosen: flat pictures are clearer)
FLOOR = 1e-6  # smaller shares of the variance are drawn here, far below any relevant direction
FEW = (
    2000  # most points of a plane that are drawn one by one; more are counted in hexagons (chosen: they would overlap)
)
FAR = 100.0  # losses that are so many times the median are drawn at the edge (chosen: the others can still be read)
HEXAGONS = 72  # hexagons across the plane, one for every 5 degrees of a torsion
NUMBERED = 3  # points of the largest losses whose numbers are shown (chosen: the text names as many)
APART = 0.05  # share of the axis between the numbers of two points (about the height of a digit)
NAMED = 60  # most atoms with names; in a larger molecule only the atoms of torsions have names (names would overlap)
GAP, BESIDE, ASIDE = 0.22, 0.35, 0.07  # bond lengths: free at each end, to the text beside a line, between two torsions
# most characters of a name beside a bond, along an axis, and in the legend (as many as fit)
TAG, AXIS, LEGEND = 3, 32, 44


@on_one_blas_thread
def plot_manifold(found: Coordinates, ax: Axes | None = None, *, function: int = 0) -> Axes:
    """The points, or the shapes of a molecule, in their first principal components, coloured by a picked function.

    Parameters
    ----------
    found : Coordinates
        The answer of `find_coordinates`.
    ax : Axes, optional
        The Axes to draw on. Default: a new figure. An Axes with a third dimension (projection="3d") shows three
        components.
    function : int
        The position of the function among the picked ones. Angles in radians have the same colour at −π and π.
    """
    places, values = known_values(found)
    if not len(places):
        raise ParameterError("The values of the picked functions at the points are not known, only their gradients.")
    some = np.unique(np.linspace(0, len(places) - 1, min(len(places), MOST_POINTS)).astype(np.intp))
    centred = found.data[places[some]] - found.data[places[some]].mean(axis=0)
    ax = new_axes(ax)
    deep = hasattr(ax, "get_zlim")
    components = row_space(np.ascontiguousarray(centred.T), min(3 if deep else 2, centred.shape[1]))
    share = float((components**2).sum() / (centred**2).sum())
    style: dict[str, Any] = {"vmin": -np.pi, "vmax": np.pi} if found.circular else {}
    colours = _wrapped(values[some, function]) if found.circular else values[some, function]
    image = ax.scatter(*components, c=colours, s=6, linewidths=0, cmap=colour_map(cyclic=found.circular), **style)
    for ordinal, axis in zip(("first", "second", "third")[: len(components)], "xyz", strict=False):
        # numbers on three axes would overlap, and the unit of a component means little
        flat = {f"{axis}label": f"{ordinal} principal component"}
        ax.set(**{f"{axis}label": ordinal, f"{axis}ticklabels": []} if deep else flat)
    name = short_names([short_heads(found.labels)[function]])[0]
    ax.set_title(f"{name}\n{len(components)} components, {share:.0%} of the variance", parse_math=False)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.8, pad=0.1 if deep else 0.05)
    if found.circular:
        bar.set_ticks([-np.pi, -np.pi / 2, 0.0, np.pi / 2, np.pi], labels=["−180°", "−90°", "0°", "90°", "180°"])
    bar.set_label("" if found.circular else name, parse_math=False)
    return ax


def is_deep(found: Coordinates) -> bool:
    """Whether the third principal component of the points is worth drawing."""
    some = found.data[:: -(-len(found.data) // MOST_POINTS)]
    variances = singular_values(some - some.mean(axis=0)) ** 2
    return len(variances) > 2 and bool(variances[2] > DEEP * variances.sum())


def known_values(found: Coordinates) -> tuple[Indices, Array]:
    """Numbers of points or frames, and the values of the picked functions there: all, the known ones, or none."""
    values = found.dictionary.values
    if values is None or len(values) not in (len(found.data), len(found.points)):
        return np.empty(0, dtype=np.intp), np.empty((0, 0))
    every = len(values) == len(found.data)
    return (np.arange(len(values)) if every else found.points), values[:, found.selection.indices]


def plot_coordinates(found: Coordinates, ax: Axes | None = None, *, functions: tuple[int, int] = (0, 1)) -> Axes:
    """All points in the plane of two picked functions; for torsions this is a Ramachandran plot, in degrees.

    Up to 2,000 points are drawn one by one; of more the density is drawn.

    Parameters
    ----------
    found : Coordinates
        The answer of `find_coordinates`.
    ax : Axes, optional
        The Axes to draw on. Default: a new figure.
    functions : pair of int
        The positions of the two functions among the picked ones.
    """
    values, cyclic = known_values(found)[1], found.circular
    if not values.size or max(functions) >= values.shape[1]:
        raise ParameterError(f"functions={functions} are not two of the picked functions whose values are known.")
    x, y = values[:, functions[0]], values[:, functions[1]]
    ax = new_axes(ax)
    x, y = (np.degrees(_wrapped(x)), np.degrees(_wrapped(y))) if cyclic else (x, y)
    if len(x) <= FEW:
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
    one, two = short_names([short_heads(found.labels)[i] for i in functions], AXIS)
    ax.set_xlabel(one, parse_math=False)
    ax.set_ylabel(two, parse_math=False)
    ax.set_title(f"{len(x):,} points in the plane of two functions")
    return ax


def plot_point_losses(found: Coordinates, ax: Axes | None = None) -> Axes:
    """The loss of the picked functions at each point, from the lowest to the highest; the highest are numbered.

    Losses above a hundred times the median, or above 10⁶, are drawn at the upper edge.
    """
    values, unsure = found.point_losses, found.undetermined
    noun = "point" if found.trajectory is None else "frame"
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
    ax.axhline(found.D, color=GREY, linestyle="--", label=f"ideal: {found.D}")
    maybe_log(ax, y)
    low, high = ax.get_ylim()
    scale = np.log if ax.get_yscale() == "log" else np.asarray
    last = np.inf
    for i in rank[::-1][:NUMBERED].tolist():
        height = float((scale(y[i - 1]) - scale(low)) / (scale(high) - scale(low)))
        if last - height > APART:  # numbers would overlap
            last, at = height, (float(i), float(y[i - 1]))
            style: dict[str, Any] = {"textcoords": "offset points", "ha": "right", "va": "center", "fontsize": 8}
            ax.annotate(str(found.points[order[i - 1]]), at, (-5, 0), **style)
    whole_ticks(ax.xaxis)
    ax.set_xlabel(f"{noun}s, lowest loss first")
    ax.set_ylabel("loss" + (" (log scale)" if ax.get_yscale() == "log" else ""))
    ax.set_title(f"Loss at each {noun}")
    ax.legend(loc="upper left")  # losses rise at the right
    return ax


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


def plot_molecule(found: Coordinates, ax: Axes | None = None) -> Axes:
    """The molecule at its first frame, in the plane where it is widest, with the picked functions marked on it.

    A thick line is the axis of a torsion; distances and angles are thin lines.

    Examples
    --------
    >>> from isopursuit import find_coordinates
    >>> from isopursuit.molecules import load_ethanol
    >>> ax = plot_molecule(find_coordinates(load_ethanol(), 2, atoms="all", frames=10))
    >>> [text.get_text() for text in ax.texts][:4]
    ['1', '2', 'C0', 'C1']
    """
    rows = marked_atoms(found)
    if found.trajectory is None or rows is None:
        raise ParameterError("The picked functions have no atoms, or some that are not among those of the shape.")
    molecule, bonds, used = found.trajectory, find_bonds(found.trajectory), {*chain(*rows)}
    names = molecule.names or [f"{s}{n}" for s, n in zip(molecule.symbols, molecule.serials, strict=True)]
    r = molecule.positions[0] - molecule.positions[0].mean(axis=0)
    places = row_space(np.ascontiguousarray(r.T), 2).T
    ax = new_axes(ax)
    i, j = np.array(bonds).T
    unit = float(np.median(np.linalg.norm(places[i] - places[j], axis=1)))
    for i, j in bonds:
        ax.plot(*_between(places, i, j, unit, 0.0), color=GREY, linewidth=1.2)
    tags, titles = short_heads(found.labels), short_names(found.labels, LEGEND)
    if any(len(tag) > TAG for tag in tags):
        tags = [str(i + 1) for i in range(len(rows))]
        titles = [f"{tag}: {title}" for tag, title in zip(tags, titles, strict=True)]
    for m, row in enumerate(rows):
        aside = ASIDE * (m - (len(rows) - 1) / 2)
        style: dict[str, Any] = {"color": COLOURS[m % len(COLOURS)]}
        middle = (len(row) - 2) // 2  # the line that carries the name: of a torsion its axis, otherwise the first
        for step, (i, j) in enumerate(pairwise(row)):
            is_axis = len(row) == 4 and step == middle
            thick: dict[str, Any] = {"linewidth": 6, "alpha": 0.6} if is_axis else {"linewidth": 1.5}
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
    ax.set_title("The picked functions")
    plain_legend(ax, loc="upper center", bbox_to_anchor=(0.5, 0.0), frameon=False)
    return ax


def marked_atoms(found: Coordinates) -> list[list[int]] | None:
    """The atoms of the picked functions by their positions in the trajectory; None if some are not in it."""
    if found.trajectory is None or found.atoms is None:
        return None
    place = {int(serial): i for i, serial in enumerate(found.trajectory.serials)}
    return [[place[atom] for atom in row] for row in found.atoms] if {*chain(*found.atoms)} <= set(place) else None


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
