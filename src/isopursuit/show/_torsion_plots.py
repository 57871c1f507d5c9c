"""Pictures of torsions: marked on a molecule, and two torsions along a trajectory in the plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from isopursuit._core.linalg import row_space
from isopursuit._core.types import Array
from isopursuit.errors import PackageError, ParameterError, ShapeError, optional
from isopursuit.show._molecule_plots import depicted
from isopursuit.show._style import (
    BLUE,
    COLOURS,
    GREY,
    colour_map,
    new_axes,
    plain_legend,
    refuse_empty,
    short_heads,
    short_names,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW = 2000  # most frames drawn as points; more are drawn as a density of hexagons (guess: more points hide each other)
HEXAGONS = 72  # hexagons across the plane of two torsions, one for every 5 degrees
NAMED = 60  # most atoms with names; in a larger molecule only the atoms of torsions have names (guess: names overlap)
GAP = 0.22  # bond lengths left free at each end for the name of the atom (guess)
BESIDE = 0.35  # bond lengths between an axis and the text next to it (guess)
TAG = 3  # most characters of a name next to an axis; longer names are in the legend only (guess)
AXIS = 32  # most characters of a torsion's name along an axis of the plot (as many as fit)
LEGEND = 44  # most characters of a torsion's name in the legend (as many as fit on a page)
APART = 0.07  # bond lengths between the lines of two torsions along the same bond (guess)


def plot_ramachandran(
    first: ArrayLike, second: ArrayLike, ax: Axes | None = None, *, labels: tuple[object, object] = ("φ", "ψ")
) -> Axes:
    """The plane of two torsions along a trajectory: a Ramachandran plot, in degrees.

    Up to 2,000 frames are points; more are counted in hexagons 5 degrees wide.

    Parameters
    ----------
    first, second : array_like (n,)
        The values of the torsions in radians.
    ax : Axes, optional
        The Axes to draw on. Default: a new figure.
    labels : pair of str
        The names of the torsions.
    """
    x, y = (np.asarray(values, dtype=np.float64) for values in (first, second))
    if x.ndim != 1 or x.shape != y.shape:
        raise ShapeError(f"Torsions must be two lists of one length; got shapes {x.shape} and {y.shape}.")
    refuse_empty(x, "frames")
    ax = new_axes(ax)
    x, y = ((np.degrees(angles) + 180) % 360 - 180 for angles in (x, y))
    if len(x) <= FEW:
        ax.scatter(x, y, s=5, color=BLUE, alpha=0.5, linewidths=0)
    else:
        box, colours = (-180.0, 180.0, -180.0, 180.0), colour_map()
        image = ax.hexbin(x, y, gridsize=HEXAGONS, extent=box, bins="log", mincnt=1, cmap=colours, linewidths=0.2)
        ax.figure.colorbar(image, ax=ax, shrink=0.8, label="frames (log scale)")
    ticks = list(range(-180, 181, 90))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks(ticks, [f"{tick}°".replace("-", "−") for tick in ticks], fontsize=8)
    ax.set_xlim(-180, 180)
    ax.set_ylim(-180, 180)
    ax.grid(color=GREY, alpha=0.3, linewidth=0.5)
    ax.set_aspect("equal", adjustable="box")
    one, two = short_names(labels, AXIS)
    ax.set_xlabel(one, parse_math=False)
    ax.set_ylabel(two, parse_math=False)
    ax.set_title(f"{len(x):,} frames in the plane of two torsions")
    return ax


def plot_torsions(
    names: Sequence[str],
    torsions: ArrayLike,
    ax: Axes | None = None,
    *,
    bonds: Sequence[tuple[int, int]] = (),
    positions: ArrayLike | None = None,
    labels: Sequence[object] | None = None,
) -> Axes:
    """A molecule with torsions marked in different colours: a thick axis between two thin lines.

    Atoms are placed as RDKit (extra `chem`) draws the bonds, or else where the positions are, seen from the side that
    shows most of the molecule.

    Parameters
    ----------
    names : sequence of str
        The names of the atoms: symbol and number, or the name in the topology.
    torsions : array_like of int (m, 4)
        The atoms of each torsion, by their positions in `names`.
    ax : Axes, optional
        The Axes to draw on. Default: a new figure.
    bonds : sequence of pairs of int
        Pairs of bonded atoms. Without bonds, only atoms and torsions are drawn.
    positions : array_like (atoms, 3), optional
        The positions in one frame; needed without bonds or without RDKit.
    labels : sequence of str, optional
        The names of the torsions.

    Examples
    --------
    >>> butane = [[-0.5, 1.4, 0.0], [0.0, 0.0, 0.0], [1.5, 0.0, 0.0], [2.0, -1.4, 0.3]]
    >>> ax = plot_torsions(["C0", "C1", "C2", "C3"], [[0, 1, 2, 3]], positions=butane, labels=["C–C–C–C"])
    >>> [text.get_text() for text in ax.texts]
    ['1', 'C0', 'C1', 'C2', 'C3']
    """
    rows = np.asarray(torsions, dtype=np.intp).reshape(-1, 4)
    atoms = {int(a) for pair in bonds for a in pair} | set(rows.ravel().tolist())
    if not atoms <= set(range(len(names))):
        raise ParameterError(f"bonds and torsions name atoms {sorted(atoms)}; the molecule has {len(names)}.")
    places = _layout(len(names), bonds, positions)
    ax = new_axes(ax)
    pairs = np.asarray(bonds, dtype=np.intp).reshape(-1, 2) if bonds else rows[:, 1:3]
    unit = float(np.median(np.linalg.norm(places[pairs[:, 0]] - places[pairs[:, 1]], axis=1))) if len(pairs) else 1.0
    for i, j in bonds:
        ax.plot(*_between(places, i, j, unit, 0.0), color=GREY, linewidth=1.2)
    tags, titles = _tags(len(rows), labels)
    for m, (a, b, c, d) in enumerate(rows.tolist()):
        aside = APART * (m - (len(rows) - 1) / 2)
        colour = COLOURS[m % len(COLOURS)]
        for i, j in ((a, b), (c, d)):
            ax.plot(*_between(places, i, j, unit, aside), color=colour, linewidth=1.5)
        ax.plot(*_between(places, b, c, unit, aside), color=colour, linewidth=6, alpha=0.6, label=titles[m])
        x, y = _beside(places, b, c, unit).tolist()
        ax.text(x, y, tags[m], ha="center", va="center", fontsize=9, fontweight="bold", color=colour, parse_math=False)
    for i, name in enumerate(names):
        if len(names) <= NAMED or i in rows:
            x, y = places[i].tolist()
            ax.text(x, y, name, ha="center", va="center", fontsize=8, parse_math=False)
    ax.update_datalim(places)
    ax.margins(0.08)
    ax.autoscale_view()
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_axis_off()
    ax.set_title("The picked torsions")
    if len(rows):
        plain_legend(ax, loc="upper center", bbox_to_anchor=(0.5, 0.0), frameon=False)
    return ax


def _tags(count: int, labels: Sequence[object] | None) -> tuple[list[str], list[str]]:
    """The text next to each axis (a Greek letter or a number), and the text in the legend."""
    numbers = [str(i + 1) for i in range(count)]
    if labels is None:
        return numbers, [f"torsion {number}" for number in numbers]
    heads, titles = short_heads(labels), short_names(labels, LEGEND)
    if all(len(head) <= TAG for head in heads):
        return heads, titles
    return numbers, [f"{number}: {title}" for number, title in zip(numbers, titles, strict=True)]


def _layout(atoms: int, bonds: Sequence[tuple[int, int]], positions: ArrayLike | None) -> Array:
    """Where to draw each atom, (atoms, 2)."""
    if bonds:
        try:
            return _depicted_places(atoms, bonds)
        except PackageError:
            if positions is None:
                raise
    if positions is None:
        raise ParameterError("There are neither bonds nor positions. Pass one of them to draw the molecule.")
    r = np.asarray(positions, dtype=np.float64)
    if r.shape != (atoms, 3):
        raise ShapeError(f"positions must be ({atoms}, 3), one row for each atom; they are {r.shape}.")
    return row_space(np.ascontiguousarray((r - r.mean(axis=0)).T), 2).T


def _depicted_places(atoms: int, bonds: Sequence[tuple[int, int]]) -> Array:
    """Places in RDKit's drawing with stretched chains, (atoms, 2), which depends only on the bonds."""
    molecule = depicted(["C"] * atoms, bonds)
    optional("rdkit.Chem.rdCoordGen", "chem", "Drawing molecules").AddCoords(molecule)
    return np.array(molecule.GetConformer().GetPositions(), dtype=np.float64)[:, :2]


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
