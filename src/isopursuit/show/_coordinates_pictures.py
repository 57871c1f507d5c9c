"""Pictures in the report about coordinates: manifold, planes of pairs, molecule, losses, frequencies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from isopursuit import show as plots
from isopursuit._core.types import Array
from isopursuit.errors import ParameterError
from isopursuit.manifold.coordinates_result import Coordinates
from isopursuit.manifold.internal import all_angles, angle_values
from isopursuit.manifold.trajectory import find_bonds
from isopursuit.selection.pointwise import PointwiseSelection
from isopursuit.show._html import SIZE, draw_pictures
from isopursuit.show._style import short_heads

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_POINTS = 3000  # most points or frames of the manifold in a picture (guess: more hide each other)
MOST_ANGLES = 400  # most planar angles of a shape in a picture; an even sample for a larger molecule (guess)
MOST_PAIRS = 10  # most planes of two functions: all pairs of five functions
DEEP = 0.1  # a third component is drawn if its share of the variance is larger (guess)
SMALL = (3.4, 2.9)  # inches of a picture that takes a third of the page's width
WIDE = (7.0, 3.4)  # inches of a picture that takes three quarters of the page's width
FEW = 2  # if there are more pictures of one kind, they are small
SUBSETS = 8  # most sets of functions whose frequencies are drawn (guess: as many as can be read)
Drawings = dict[str, "Callable[[Axes], object]"]
Pictures = dict[str, str]


def coordinate_pictures(found: Coordinates) -> tuple[dict[str, Pictures], str]:
    """Groups of pictures by name, each with SVGs by caption; or the reason why there are none. `pointwise_pictures`
    draws the last group.
    """
    noun = "point" if found.trajectory is None else "frame"
    groups: dict[str, Drawings] = {
        "molecule": _molecule(found),
        "losses": _losses(found, noun),
        "planes": _planes(found, noun),
        "dimension": _dimension(found, noun),
    }
    pictures: dict[str, Pictures] = {}
    for name, drawings in groups.items():
        size = WIDE if name == "losses" else SMALL if len(drawings) > FEW else SIZE
        pictures[name], missing = draw_pictures(drawings, name, size=size)
        if missing:
            return {}, missing
    pictures["manifold"] = _manifold(found)
    return pictures, ""


def _molecule(found: Coordinates) -> Drawings:
    molecule = found.trajectory
    if molecule is None or found.torsions is None:
        return {}
    places = {int(serial): i for i, serial in enumerate(molecule.serials)}
    rows = [[places[int(atom)] for atom in row] for row in found.torsions]
    names = molecule.names or [f"{symbol}{serial}" for symbol, serial in zip(molecule.symbols, places, strict=True)]
    bonds, labels = find_bonds(molecule), [*map(str, found.labels)]
    draw = partial(plots.plot_torsions, names, rows, bonds=bonds, positions=molecule.positions[0], labels=labels)
    return {f"The molecule with the picked torsions: {_listed(found)}. The thick line is a torsion’s axis.": draw}


def _losses(found: Coordinates, noun: str) -> Drawings:
    draw = partial(
        plots.plot_point_losses,
        found.point_losses,
        points=found.points,
        ideal=len(found.labels),
        undetermined=found.checks.undetermined,
        order="points" if noun == "frame" else "losses",
        noun=noun,
    )
    order = "along the trajectory" if noun == "frame" else "from the lowest to the highest"
    return {f"The loss of the picked functions at each {noun}, {order}; the highest are numbered.": draw}


def pointwise_pictures(picked: PointwiseSelection, noun: str) -> Pictures:
    """How often each function, and each set of functions, is the best at a single point."""
    different = len(picked.subsets)
    some = f"the {SUBSETS} most frequent of {different} sets" if different > SUBSETS else "each set"
    drawings = {
        "How often each function is picked at": partial(plots.plot_frequencies, picked),
        f"How often {some} of functions is picked at": partial(
            plots.plot_frequencies, picked, kind="subsets", shown=SUBSETS
        ),
    }
    whole = {f"{caption} a single {noun}.": partial(_untitled, draw) for caption, draw in drawings.items()}
    return draw_pictures(whole, "pointwise", size=SIZE)[0]


def _dimension(found: Coordinates, noun: str) -> Drawings:
    tangents = found.tangents if found.dimension is None else replace(found.tangents, how="estimated")
    drawings: Drawings = {
        f"The variances of the neighbourhoods of the {noun}s: D is where they fall steeply.": partial(
            plots.plot_spectra, tangents
        )
    }
    if found.dimension is not None:
        caption = "The evidence for the dimension: shares of the variance by the size of the neighbourhoods."
        drawings[caption] = partial(plots.plot_dimension, found.dimension)
    return drawings


def _planes(found: Coordinates, noun: str) -> Drawings:
    """A plane for every pair of picked functions, up to a limit."""
    known = _values(found)
    if known is None:
        return {}
    values, names = known[1], short_heads(found.labels)
    drawings: Drawings = {}
    for i, j in list(combinations(range(values.shape[1]), 2))[:MOST_PAIRS]:
        x, y, labels = values[:, i], values[:, j], (names[i], names[j])
        if found.torsions is None:
            draw = partial(plots.plot_coordinates, x, y, labels=labels)
        else:
            draw = partial(plots.plot_ramachandran, x, y, labels=labels)
        drawings[f"All {len(x):,} {noun}s in the plane of {found.labels[i]} and {found.labels[j]}."] = partial(
            _untitled, draw
        )
    return drawings


def _untitled(draw: Callable[[Axes], Axes], ax: Axes) -> None:
    """Draw without a title, since the caption repeats it."""
    draw(ax).set_title("")


def _manifold(found: Coordinates) -> Pictures:
    """The points or shapes in their principal components, once for each picked function."""
    known = _values(found)
    if known is None:
        return {}
    places, values = known
    some = np.unique(np.linspace(0, len(places) - 1, min(len(places), MOST_POINTS)).astype(np.intp))
    components = plots.principal_components(_shapes(found, places[some]))
    deep = len(components.shares) > 2 and components.shares[2] > DEEP
    what = "points" if found.torsions is None else "shapes of the molecule"
    drawings: Drawings = {
        f"The {what} by principal components, coloured by {label}.": partial(
            plots.plot_manifold, components, values[some, i], label=name, cyclic=found.torsions is not None
        )
        for i, (label, name) in enumerate(zip(found.labels, short_heads(found.labels), strict=True))
    }
    size = SMALL if len(drawings) > FEW else SIZE
    return draw_pictures(drawings, "manifold", size=size, projection="3d" if deep else None)[0]


def _shapes(found: Coordinates, numbers: Any) -> Array:
    """The coordinates of some points: as given, or the planar angles of those frames."""
    if found.trajectory is None:
        return np.asarray(found.data)[numbers]
    positions = found.trajectory.positions[numbers]
    angles = all_angles(positions.shape[1])
    some = np.linspace(0, len(angles) - 1, min(len(angles), MOST_ANGLES)).astype(np.intp)
    return angle_values(positions, angles[some])


def _values(found: Coordinates) -> tuple[Any, Array] | None:
    """Numbers of points or frames, and the values of the picked functions there: all, or the known ones."""
    try:
        values = found.values()
        return np.arange(len(values)), values
    except ParameterError:  # functions of points may have only gradients, or values at the chosen points
        known = None if found.dictionary is None else found.dictionary.values
        if known is None or len(known) != len(found.points):
            return None
        return np.asarray(found.points), known[:, found.selection.indices]


def _listed(found: Coordinates) -> str:
    return ", ".join(map(str, found.labels))
