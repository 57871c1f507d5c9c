"""The report about coordinates of a manifold; its template is coordinates.html.jinja."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np

from isopursuit._core.clock import Clock
from isopursuit._core.outputs import write_whole
from isopursuit._core.text import LogLoss, name_of
from isopursuit.manifold.coordinates_result import REPORT_SECONDS, Coordinates
from isopursuit.selection.pointwise import PointwiseSelection
from isopursuit.show._coordinates_pictures import coordinate_pictures, pointwise_pictures
from isopursuit.show._html import render, require_templates

WORST = 10  # points with the highest losses in the table (guess: a short list)
POINTWISE_SHARE = 0.8  # of the time that is left for searches at single points; their pictures follow (guess)
LISTED = 30  # most undetermined points in the table (guess: a screen)
SPELLED = 40  # most atoms whose symbols are listed (guess: one line)


@dataclass(frozen=True)
class PointRow:
    """A row about one chosen point: number, loss, the best functions there, and why it is undetermined."""

    number: int
    loss: LogLoss
    best: LogLoss | None
    functions: str
    reason: str


def write_coordinates_report(
    found: Coordinates,
    path: str | PathLike[str],
    *,
    title: str | None = None,
    source: str | None = None,
    command: str | None = None,
) -> Path:
    """Write `coordinates_report_html` to a file, completely or not at all, and return its path."""
    path = Path(path)
    write_whole(path, coordinates_report_html(found, title=title, source=source, command=command))
    return path


def coordinates_report_html(
    found: Coordinates,
    *,
    title: str | None = None,
    source: str | None = None,
    command: str | None = None,
    time_limit: float | None = REPORT_SECONDS,
) -> str:
    """A report about coordinates of a manifold as one HTML page, with losses, pictures and the proof.

    Parameters
    ----------
    found : Coordinates
        The answer of `find_coordinates`.
    title : str, optional
        The heading of the page.
    source : str, optional
        Where the data came from. Default: the source of the trajectory.
    command : str, optional
        The command that reproduces the answer. The call of `find_coordinates` is always shown.
    time_limit : float, optional
        Seconds for the report. Default: 60; None for no limit. All pictures are drawn, and in the time that they leave
        the best functions at single points are searched, unless they are known (`Coordinates.pointwise`).

    Returns
    -------
    str

    Raises
    ------
    PackageError
        Jinja2 is not installed; the extra `report` installs it.

    Examples
    --------
    >>> import isopursuit as ip
    >>> from isopursuit.manifold.synthetic import swiss_roll
    >>> roll = swiss_roll(2000, noise=0.1)
    >>> found = ip.find_coordinates(roll.points, 2, dictionary=roll.dictionary)
    >>> "<h1>A swiss roll</h1>" in coordinates_report_html(found, title="A swiss roll")
    True
    """
    require_templates()
    clock = Clock.of(time_limit)
    selection, molecule = found.selection, found.trajectory
    noun, place = ("function", "point") if molecule is None else ("torsion", "frame")
    source = source or (None if molecule is None else molecule.source) or None
    P, D = np.shape(found.matrices.matrices)[-1], selection.k
    undetermined = np.flatnonzero(found.checks.undetermined)
    losses = found.point_log_losses
    worst = np.argsort(-losses, kind="stable")[:WORST]
    pictures, no_pictures = coordinate_pictures(found)
    picked = found.pointwise_within(clock.part(POINTWISE_SHARE).remaining_limit)
    if pictures:
        pictures["pointwise"] = pointwise_pictures(picked, place)
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
        left_out=len(found.points) - selection.points,
        median=LogLoss(float(np.median(losses))),
        lowest=LogLoss(float(losses.min())),
        worst=[_row(found, picked, i) for i in worst.tolist()],
        undetermined=[_row(found, picked, i) for i in undetermined[:LISTED].tolist()],
        undetermined_count=len(undetermined),
        neighbours=int(np.median(found.tangents.counts)),
        evidence=None if found.dimension is None else str(found.dimension),
        notes=tuple(dict.fromkeys((*found.notes, *selection.notes))),
        pictures=pictures,
        no_pictures=no_pictures,
        command=command,
    )


def _row(found: Coordinates, picked: PointwiseSelection, i: int) -> PointRow:
    """The i-th chosen point."""
    reached = i < len(picked.searches)  # the time limit may have ended the selections at single points
    best = picked.searches[i] if reached else None
    names = "" if best is None else ", ".join(str(name_of(found.matrices.labels, c)) for c in best.indices.tolist())
    return PointRow(
        int(found.points[i]),
        LogLoss(float(found.point_log_losses[i])),
        None if best is None else LogLoss(best.log_loss),
        names,
        found.checks.reasons[i],
    )


def _data_words(found: Coordinates) -> str:
    if found.trajectory is not None:
        n, atoms, _ = found.trajectory.positions.shape
        symbols = f" ({''.join(found.trajectory.symbols)})" if atoms <= SPELLED else ""
        return f"{n:,} frames of {atoms} atoms{symbols}"
    N, B = np.asarray(found.data).shape
    return f"{N:,} points in {B} dimensions"
