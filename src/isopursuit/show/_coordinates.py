"""The page about coordinates of a manifold; its template is coordinates.html.jinja."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from isopursuit._core.text import LogLoss
from isopursuit.manifold.result import Coordinates
from isopursuit.show import manifold_plots as plots
from isopursuit.show._html import SIZE, draw_pictures, render, require_templates

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WORST = 10  # points with the highest losses in the table (chosen: a short list)
LISTED = 30  # most undetermined points in the table (chosen: a screen)
SPELLED = 40  # most atoms whose symbols are listed (as many as fit on a line)
MOST_POINTS = 3000  # most points or frames of the manifold in a picture: more hide each other
MOST_PAIRS = 10  # most planes of two functions: all pairs of five functions
DEEP = 0.1  # a third component is drawn if its share of the variance is larger (chosen: a flat picture is clearer)
FEW = 2  # if there are more pictures of one kind, they are small
SMALL = (3.4, 2.9)  # inches of a picture that takes a third of the page's width
WIDE = (7.0, 3.4)  # inches of a picture that takes three quarters of the page's width
Drawings = dict[str, "Callable[[Axes], object]"]


def coordinates_page(found: Coordinates, *, title: str | None = None, command: str | None = None) -> str:
    """A report about coordinates of a manifold, with losses, pictures and the proof.

    Parameters
    ----------
    found : Coordinates
        The answer of `find_coordinates`.
    title : str, optional
        The heading of the page.
    command : str, optional
        The command that reproduces the answer. The call of `find_coordinates` is always shown.

    Examples
    --------
    >>> import isopursuit as ip
    >>> from isopursuit.molecules import load_ethanol
    >>> found = ip.find_coordinates(load_ethanol(), 2, atoms="all", frames=20)
    >>> "<h1>Ethanol</h1>" in found.to_html(title="Ethanol")
    True
    """
    require_templates()
    selection, molecule = found.selection, found.trajectory
    noun, place = "function", "point" if molecule is None else "frame"
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
    bad = np.flatnonzero(found.checks.undetermined)
    return render(
        "coordinates.html.jinja",
        found=found,
        selection=selection.per_point(),
        title=title or f"{D} of {P} {noun}s" + ("" if source is None else f" of {source}"),
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
        worst=[(int(found.points[i]), LogLoss(float(losses[i]))) for i in found.worst(WORST).tolist()],
        undetermined=[(int(found.checks.at[i]), found.checks.reason(i)) for i in bad[:LISTED].tolist()],
        undetermined_count=len(bad),
        moves=", ".join(f"{name} {moves}" for name, moves, _ in found.rows),
        notes=found.notes,
        atoms=["–".join(str(atom + 1) for atom in row) for row in found.atoms or ()],
        pictures=pictures,
        no_pictures=missing,
        command=command,
    )


def _data_words(found: Coordinates) -> str:
    if found.trajectory is not None:
        n, atoms, _ = found.trajectory.positions.shape
        symbols = f" ({''.join(found.trajectory.symbols)})" if atoms <= SPELLED else ""
        return f"{n:,} frames of {atoms} atoms{symbols}"
    N, B = found.data.shape
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
    if plots.marked_atoms(found) is None:
        return {}
    listed = ", ".join(map(str, found.labels))
    return {f"The molecule with the picked functions: {listed}.": partial(plots.plot_molecule, found)}


def _losses(found: Coordinates, noun: str) -> Drawings:
    caption = (
        f"The loss of the picked functions at each {noun}, from the lowest to the highest; the highest are numbered."
    )
    return {caption: partial(plots.plot_point_losses, found)}


def _dimension(found: Coordinates, noun: str) -> Drawings:
    spectra = f"The variances of the neighbourhoods of the {noun}s: thin lines, and their mean as a thick one."
    drawings: Drawings = {spectra: partial(plots.plot_spectra, found.tangents)}
    if found.scan is not None:
        caption = "The loss per direction for each dimension, its range over redraws, and the best of random functions."
        drawings = {caption: partial(plots.plot_dimension, found.scan), **drawings}
    return drawings


def _planes(found: Coordinates, noun: str) -> Drawings:
    """A plane for every pair of picked functions, up to a limit."""
    places, values = plots.known_values(found)
    return {
        f"All {len(places):,} {noun}s in the plane of {found.labels[i]} and {found.labels[j]}.": partial(
            _untitled, partial(plots.plot_coordinates, found, functions=(i, j))
        )
        for i, j in list(combinations(range(values.shape[1]), 2))[:MOST_PAIRS]
    }


def _coloured(found: Coordinates) -> tuple[Drawings, dict[str, Any]]:
    """The points or shapes in their principal components, once for each picked function."""
    if not len(plots.known_values(found)[0]):
        return {}, {}
    what = "points" if found.trajectory is None else "shapes of the molecule"
    drawings: Drawings = {
        f"The {what} by principal components, coloured by {label}.": partial(plots.plot_manifold, found, function=i)
        for i, label in enumerate(found.labels)
    }
    return drawings, {"projection": "3d" if plots.is_deep(found) else None}


def _untitled(draw: Callable[..., Axes], ax: Axes) -> None:
    """Draw without a title, since the caption repeats it."""
    draw(ax).set_title("")
