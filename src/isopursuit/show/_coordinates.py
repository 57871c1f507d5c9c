"""The page about coordinates of a manifold; its template is coordinates.html.jinja."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from isopursuit._core.clock import Clock
from isopursuit._core.linalg import singular_values
from isopursuit._core.text import LogLoss, name_of
from isopursuit._core.types import Array, Indices
from isopursuit.errors import ParameterError
from isopursuit.manifold.result import Coordinates
from isopursuit.molecules import angle_values, find_bonds, shape_angles, torsion_shapes
from isopursuit.selection.pointwise import PointwiseSelection
from isopursuit.show import _manifold_plots as plots
from isopursuit.show._html import SIZE, draw_pictures, render, require_templates
from isopursuit.show._style import short_heads

if TYPE_CHECKING:
    from matplotlib.axes import Axes

REPORT_SECONDS = 60.0  # default time limit: pictures take a few seconds, and 100 points as many
POINTWISE_SHARE = 0.8  # of the time that is left for searches at single points; their pictures follow (chosen)
WORST = 10  # points with the highest losses in the table (chosen: a short list)
LISTED = 30  # most undetermined points in the table (chosen: a screen)
SPELLED = 40  # most atoms whose symbols are listed (as many as fit on a line)
MOST_POINTS = 3000  # most points or frames of the manifold in a picture: more hide each other
MOST_ANGLES = 400  # most planar angles of a shape in a picture; an even sample for a larger molecule (chosen)
MOST_PAIRS = 10  # most planes of two functions: all pairs of five functions
DEEP = 0.1  # a third component is drawn if its share of the variance is larger (chosen: a flat picture is clearer)
SUBSETS = 8  # most sets of functions whose frequencies are drawn (as many as can be read)
FEW = 2  # if there are more pictures of one kind, they are small
SMALL = (3.4, 2.9)  # inches of a picture that takes a third of the page's width
WIDE = (7.0, 3.4)  # inches of a picture that takes three quarters of the page's width
Drawings = dict[str, "Callable[[Axes], object]"]


@dataclass(frozen=True)
class PointRow:
    """A row about one point: number, loss, and the best functions there with their loss."""

    number: int
    loss: LogLoss
    best: LogLoss | None
    functions: str


def coordinates_page(
    found: Coordinates,
    *,
    title: str | None = None,
    command: str | None = None,
    time_limit: float | None = REPORT_SECONDS,
) -> str:
    """A report about coordinates of a manifold, with losses, pictures and the proof.

    Parameters
    ----------
    found : Coordinates
        The answer of `find_coordinates`.
    title : str, optional
        The heading of the page.
    command : str, optional
        The command that reproduces the answer. The call of `find_coordinates` is always shown.
    time_limit : float, optional
        Seconds for the report. Default: 60; None for no limit. All pictures are drawn, and in the time that they leave
        the best functions at single points are searched, unless they are known (`Coordinates.pointwise`).

    Examples
    --------
    >>> import isopursuit as ip
    >>> from isopursuit.manifold import swiss_roll
    >>> roll = swiss_roll(2000, noise=0.1)
    >>> found = ip.find_coordinates(roll.points, 2, dictionary=roll.dictionary)
    >>> "<h1>A swiss roll</h1>" in found.to_html(title="A swiss roll")
    True
    """
    require_templates()
    clock, selection, molecule = Clock.of(time_limit), found.selection, found.trajectory
    noun, place = ("function", "point") if molecule is None else ("torsion", "frame")
    source = None if molecule is None else molecule.source or None
    P, D, losses = np.shape(found.matrices.matrices)[-1], selection.k, found.point_log_losses
    groups: dict[str, tuple[Drawings, dict[str, Any]]] = {
        "molecule": (_molecule(found), {}),
        "losses": (_losses(found, place), {"size": WIDE}),
        "planes": (_planes(found, place), {}),
        "dimension": (_dimension(found, place), {}),
        "manifold": _coloured(found),
    }
    pictures, missing = _drawn(groups)
    picked = found.pointwise_within(clock.part(POINTWISE_SHARE).remaining_limit)
    if pictures:
        pictures |= _drawn({"pointwise": (_frequencies(picked, place), {})})[0]
    bad = np.flatnonzero(found.checks.undetermined)
    return render(
        "coordinates.html.jinja",
        found=found,
        pointwise=picked,
        selection=selection.per_point(),
        title=title or f"{D} of {P} {noun}s as coordinates" + ("" if source is None else f" of {source}"),
        noun=noun,
        place=place,
        source=source,
        data=_data_words(found),
        P=P,
        numbers=range(P),
        aggregate=selection.aggregate.words(selection.points).replace("point", place),
        left_out=len(found.checks.at) - len(found.points),
        median=LogLoss(float(np.median(losses))),
        lowest=LogLoss(float(losses.min())),
        worst=[_row(found, picked, i) for i in found.worst(WORST).tolist()],
        undetermined=[(int(found.checks.at[i]), found.checks.reasons[i]) for i in bad[:LISTED].tolist()],
        undetermined_count=len(bad),
        moves=", ".join(f"{name} {moves}" for name, moves, _ in found.rows),
        notes=tuple(dict.fromkeys((*found.notes, *selection.notes))),
        pictures=pictures,
        no_pictures=missing,
        command=command,
    )


def _row(found: Coordinates, picked: PointwiseSelection, i: int) -> PointRow:
    # the time limit may have ended the selections at single points
    best = picked.searches[i] if i < len(picked.searches) else None
    names = "" if best is None else ", ".join(str(name_of(found.matrices.labels, c)) for c in best.indices.tolist())
    loss = LogLoss(float(found.point_log_losses[i]))
    return PointRow(int(found.points[i]), loss, None if best is None else LogLoss(best.log_loss), names)


def _data_words(found: Coordinates) -> str:
    if found.trajectory is not None:
        n, atoms, _ = found.trajectory.positions.shape
        symbols = f" ({''.join(found.trajectory.symbols)})" if atoms <= SPELLED else ""
        return f"{n:,} frames of {atoms} atoms{symbols}"
    N, B = np.asarray(found.data).shape
    return f"{N:,} points in {B} dimensions"


# ------------------------------------------------------------------------------------------------------------ pictures


def _drawn(groups: dict[str, tuple[Drawings, dict[str, Any]]]) -> tuple[dict[str, dict[str, str]], str]:
    """SVGs by caption for each group of pictures, or the reason why there are none."""
    pictures: dict[str, dict[str, str]] = {}
    for name, (drawings, options) in groups.items():
        options = {"size": SMALL if len(drawings) > FEW else SIZE} | options
        pictures[name], missing = draw_pictures(drawings, name, **options)
        if missing:
            return {}, missing
    return pictures, ""


def _molecule(found: Coordinates) -> Drawings:
    molecule = found.trajectory
    if molecule is None or found.matrices.torsions is None:
        return {}
    pairs = zip(molecule.symbols, molecule.serials, strict=True)
    names = molecule.names or [f"{symbol}{serial}" for symbol, serial in pairs]
    draw = partial(
        plots.plot_torsions,
        names,
        found.matrices.torsions[found.selection.indices],
        bonds=find_bonds(molecule),
        positions=molecule.positions[0],
        labels=[*map(str, found.labels)],
    )
    listed = ", ".join(map(str, found.labels))
    return {f"The molecule with the picked torsions: {listed}. The thick line is a torsion’s axis.": draw}


def _losses(found: Coordinates, noun: str) -> Drawings:
    draw = partial(
        plots.plot_point_losses,
        found.point_losses,
        points=found.points,
        ideal=len(found.labels),
        undetermined=found.undetermined,
        noun=noun,
    )
    caption = (
        f"The loss of the picked functions at each {noun}, from the lowest to the highest; the highest are numbered."
    )
    return {caption: draw}


def _frequencies(picked: PointwiseSelection, noun: str) -> Drawings:
    """How often each function, and each set of functions, is the best at a single point."""
    different = len(picked.subsets)
    some = f"the {SUBSETS} most frequent of {different} sets" if different > SUBSETS else "each set"
    drawings = {
        "each function": partial(plots.plot_frequencies, picked),
        f"{some} of functions": partial(plots.plot_frequencies, picked, kind="subsets", shown=SUBSETS),
    }
    return {
        f"How often {what} is picked at a single {noun}.": partial(_untitled, draw) for what, draw in drawings.items()
    }


def _dimension(found: Coordinates, noun: str) -> Drawings:
    spectra = f"The variances of the neighbourhoods of the {noun}s: thin lines, and their mean as a thick one."
    drawings: Drawings = {spectra: partial(plots.plot_spectra, found.tangents)}
    if found.scan is not None:
        caption = "The loss per direction for each dimension, its range over redraws, and the best of random functions."
        drawings = {caption: partial(plots.plot_dimension, found.scan), **drawings}
    return drawings


def _planes(found: Coordinates, noun: str) -> Drawings:
    """A plane for every pair of picked functions, up to a limit."""
    places, values = _values(found)
    names, cyclic = short_heads(found.labels), found.circular
    return {
        f"All {len(places):,} {noun}s in the plane of {found.labels[i]} and {found.labels[j]}.": partial(
            _untitled,
            partial(plots.plot_coordinates, values[:, i], values[:, j], labels=(names[i], names[j]), cyclic=cyclic),
        )
        for i, j in list(combinations(range(values.shape[1]), 2))[:MOST_PAIRS]
    }


def _coloured(found: Coordinates) -> tuple[Drawings, dict[str, Any]]:
    """The points or shapes in their principal components, once for each picked function."""
    places, values = _values(found)
    if not len(places):
        return {}, {}
    some = np.unique(np.linspace(0, len(places) - 1, min(len(places), MOST_POINTS)).astype(np.intp))
    points = _shapes(found, places[some])
    variances = singular_values(points - points.mean(axis=0)) ** 2
    deep = len(variances) > 2 and variances[2] > DEEP * variances.sum()
    what = "points" if found.torsions is None else "shapes of the molecule"
    names = short_heads(found.labels)
    drawings: Drawings = {
        f"The {what} by principal components, coloured by {label}.": partial(
            plots.plot_manifold, points, values[some, i], label=names[i], cyclic=found.circular
        )
        for i, label in enumerate(found.labels)
    }
    return drawings, {"projection": "3d" if deep else None}


def _shapes(found: Coordinates, numbers: Indices) -> Array:
    """The coordinates of some points: as given, or the shapes of those frames by torsions or by some of the angles."""
    if found.trajectory is None:
        return np.asarray(found.data)[numbers]
    some = found.trajectory.take(numbers)
    if found.tangents.bases.shape[1] != len(angles := shape_angles(len(some.numbers))):
        return torsion_shapes(some)
    kept = np.linspace(0, len(angles) - 1, min(len(angles), MOST_ANGLES)).astype(np.intp)
    return angle_values(some.positions, angles[kept])


def _values(found: Coordinates) -> tuple[Any, Array]:
    """Numbers of points or frames, and the values of the picked functions there: all, the known ones, or none."""
    try:
        values = found.values()
        return np.arange(len(values)), values
    except ParameterError:  # functions of points may have only gradients, or values at the chosen points
        known = None if found.dictionary is None else found.dictionary.values
        if known is None or len(known) != len(found.points):
            return np.empty(0, dtype=np.intp), np.empty((0, 0))
        return found.points, known[:, found.selection.indices]


def _untitled(draw: Callable[[Axes], Axes], ax: Axes) -> None:
    """Draw without a title, since the caption repeats it."""
    draw(ax).set_title("")
