"""The report of coordinates of a manifold; the template is data/coordinates.html.jinja."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from textwrap import fill

import numpy as np

from isopursuit.manifold.coordinates_result import Coordinates
from isopursuit.outputs import write_whole
from isopursuit.report.coordinate_pictures import coordinate_pictures
from isopursuit.report.page import render, require_templates
from isopursuit.results import LogLoss, name_of

WORST = 10  # points of the highest losses in the table (guess: a short list)
LISTED = 30  # undetermined points in the table (guess: a screen)
REPEATED = 200  # points whose numbers are written out, so that the same ones can be taken again (guess)
SPELLED = 40  # atoms: the symbols of a larger molecule are not written out (guess: one line)
WIDE = 96  # characters of a line of Python (as many as fit a page's width)


@dataclass(frozen=True)
class PointRow:
    """One chosen point in a table: its number, its loss, its own best functions, and why it is undetermined."""

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
    """Write `coordinates_report_html` to a file, whole or not at all, and return its path."""
    path = Path(path)
    write_whole(path, coordinates_report_html(found, title=title, source=source, command=command))
    return path


def coordinates_report_html(
    found: Coordinates, *, title: str | None = None, source: str | None = None, command: str | None = None
) -> str:
    """The coordinates of a manifold as one HTML page: what was picked, the loss at each point, pictures, the proof.

    Parameters
    ----------
    found : Coordinates
        The answer of `find_coordinates`.
    title : str, optional
        The page's heading.
    source : str, optional
        Where the data came from; the trajectory's own source if not given.
    command : str, optional
        What to type to repeat it; lines of Python if not given.

    Returns
    -------
    str

    Raises
    ------
    PackageError
        Jinja2, which the extra `report` brings, is not installed.

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
    selection, molecule = found.selection, found.trajectory
    noun, place = ("function", "point") if molecule is None else ("torsion", "frame")
    source = source or (None if molecule is None else molecule.source) or None
    P, D = np.shape(found.matrices.matrices)[-1], selection.k
    undetermined = np.flatnonzero(found.checks.undetermined)
    losses = found.point_log_losses
    worst = np.argsort(-losses, kind="stable")[:WORST]
    pictures, no_pictures = coordinate_pictures(found)
    return render(
        "coordinates.html.jinja",
        found=found,
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
        worst=[_row(found, i) for i in worst.tolist()],
        undetermined=[_row(found, i) for i in undetermined[:LISTED].tolist()],
        undetermined_count=len(undetermined),
        neighbours=int(np.median(found.tangents.counts)),
        evidence=None if found.dimension is None else str(found.dimension),
        notes=tuple(dict.fromkeys((*found.notes, *selection.notes))),
        pictures=pictures,
        no_pictures=no_pictures,
        command=command,
        python=_python(found),
    )


def _row(found: Coordinates, i: int) -> PointRow:
    """The i-th chosen point."""
    reached = i < len(found.pointwise.searches)  # the time for the selections at single points may be over before
    best = found.pointwise.searches[i] if reached else None
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


def _python(found: Coordinates) -> str:
    """Lines that repeat it, but for options that the answer does not carry."""
    selection = found.selection
    aggregate = selection.aggregate
    how = f"{aggregate.share:g}" if aggregate.name == "trimmed" else repr(aggregate.name)
    data = "data, dictionary=dictionary"
    if found.trajectory is not None:
        data = repr(found.trajectory.source) if found.trajectory.source else "trajectory"
    listed = len(found.points) <= REPEATED
    frames = f"frames = [{', '.join(map(str, found.points.tolist()))}]"
    call = (
        f"isopursuit.find_coordinates({data}, D={selection.k}, frames={'frames' if listed else len(found.points)}, "
        f"neighbours={int(np.median(found.tangents.counts))}, aggregate={how}, c={selection.c:g}, "
        f"method={selection.method!r})"
    )
    lines = ["import isopursuit", frames, call] if listed else ["import isopursuit", call]
    return "\n".join(fill(line, WIDE, subsequent_indent="    ", break_long_words=False) for line in lines)
