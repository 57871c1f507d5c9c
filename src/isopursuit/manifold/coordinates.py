"""Find coordinates of data: read, estimate tangent spaces, project gradients, check, select.

The steps can be used separately: `as_trajectory`, `torsion_matrices` (or `tangent_spaces` and `differentials` for
functions of any kind), `check_points`, `select`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from isopursuit._core.clock import Clock
from isopursuit._core.linalg import direction_rank
from isopursuit._core.options import is_whole
from isopursuit._core.progress import shown, stage_line
from isopursuit._core.text import call_text, seconds_text
from isopursuit._core.types import AggregateOption, Array, Indices, Mask, Method, Unit
from isopursuit.data._matrix import as_matrix
from isopursuit.errors import ParameterError, ShapeError
from isopursuit.loss.aggregate import as_aggregate
from isopursuit.manifold.checks import PointChecks, check_points
from isopursuit.manifold.coordinates_options import (
    AGGREGATE,
    FRAMES,
    POINTS,
    SHAPES,
    CoordinateOptions,
    Stages,
    Watch,
)
from isopursuit.manifold.coordinates_result import Coordinates
from isopursuit.manifold.dictionary import Dictionary, Differentials, differentials
from isopursuit.manifold.dimension import DimensionEvidence, dimension_evidence
from isopursuit.manifold.molecules import TorsionMatrices, torsion_matrices
from isopursuit.manifold.shapes import count_torsions, refuse_large
from isopursuit.manifold.tangent import TangentSpaces, tangent_spaces
from isopursuit.manifold.torsions import torsion_rows
from isopursuit.manifold.trajectory import Trajectory, as_trajectory
from isopursuit.selection.result import Selection
from isopursuit.selection.select import select

FAR = 10.0  # times the ideal loss; a direction is then stretched or shrunk more than threefold (derived: g(3.9) = 10)
NAMED = 8  # most points that a note names (guess)
CHECK_SHARE = 0.3  # largest share of the remaining time for checks of the points (guess: usually a second or two)


def find_coordinates(
    data: Any,
    D: int | None = None,
    *,
    topology: Any = None,
    atoms: str | ArrayLike = "heavy",
    dictionary: Literal["bonds", "rotatable", "all"] | Dictionary | ArrayLike = "bonds",
    frames: int | ArrayLike = FRAMES,
    neighbours: int | None = None,
    aggregate: AggregateOption = AGGREGATE,
    leave_out: bool = False,
    unit: Unit | Literal["auto"] = "auto",
    c: float = 1.0,
    method: Method = "auto",
    time_limit: float | None = 60.0,
    seed: int = 0,
    callback: Watch | None = None,
    progress: bool = False,
) -> Coordinates:
    """Find a few functions that are coordinates of a data manifold: torsions of a molecule, or functions of any kind.

    Parameters
    ----------
    data : path, Trajectory, MDAnalysis Universe or AtomGroup, mdtraj Trajectory, or array_like (N, B)
        A molecule in many frames, whose shapes are the manifold; or points, together with a `Dictionary`.
    D : int, optional
        The dimension of the manifold, which is the number of functions to pick. By default it is estimated from the
        spectra of the tangent spaces: look at `Coordinates.dimension`, and pass D once you have decided.
    topology : path, optional
        The file with atoms and bonds, for trajectory files that have only positions (.dcd, .xtc).
    atoms : "heavy", "all", str or sequence of int
        The atoms for the shape and the torsions: all except hydrogen (the default), all, a selection in the language of
        MDAnalysis or mdtraj, or numbers from 0; see `as_trajectory`.
    dictionary : {"bonds", "rotatable", "all"}, array_like of int (P, 4), or Dictionary
        The functions to pick from. "bonds" (the default): torsions along three bonds. "rotatable": one torsion for each
        rotatable bond. "all": the torsions of every four atoms. An array: rows of four atoms, by their position among
        the chosen atoms. For points: a `Dictionary` with gradients at all N points, or at the points in `frames`.
    frames : int or array_like of int
        The number of frames (or points) at which tangent spaces are estimated, drawn at random without replacement;
        or their numbers. All frames belong to the manifold.
    neighbours : int, optional
        The number of frames for one tangent space, including the frame itself, at most half of all frames. Default:
        `default_neighbours`.
    aggregate : {"sum", "trimmed"} or float
        How the losses at the points are combined; see `select`.
    leave_out : bool
        Whether to leave out points whose tangent space is not determined. They are reported in any case.
    unit : "auto", number, "median", "each" or None
        The length of a differential that counts as 1. "auto" is the default of `torsion_matrices` (a separate unit for
        each torsion, in which it has mean square length 1) or, for a `Dictionary`, of `differentials`. The others are
        one unit for all functions, whose gradients are not normalized; see `select`.
    c, method
        As in `select`.
    time_limit : float, optional
        Seconds for the whole call. Default: 60; None for no limit. When the time is over, the best functions so far
        are returned with their bound. If the tangent spaces alone take longer, `StoppedError` is raised.
    seed : int
        The seed of the random draw of frames.
    callback : callable, optional
        Called with the stage in words, the amount done, and the total amount (for the search: seconds). Return True to
        stop: a search then returns its best functions so far; before the search, `StoppedError` is raised.
    progress : bool
        Whether to show the running stage on the error stream, as in `select`.

    Returns
    -------
    Coordinates

    Examples
    --------
    >>> from isopursuit import find_coordinates
    >>> from isopursuit.manifold.ethanol import load_ethanol
    >>> found = find_coordinates(load_ethanol(), 2, atoms="all", frames=50)
    >>> found.torsions[:, 1:3].tolist()  # one torsion about each bond that turns, C–C and C–O
    [[0, 1], [0, 2]]
    >>> found.values().shape, bool(found.loss_per_point < 2.5)
    ((16000, 2), True)

    Any other manifold: points, and functions with their gradients.

    >>> from isopursuit.manifold.synthetic import swiss_roll
    >>> roll = swiss_roll(2000, noise=0.1)
    >>> sorted(find_coordinates(roll.points, 2, dictionary=roll.dictionary).labels)
    ['arc length', 'height']
    """
    clock, call = Clock.of(time_limit), call_text(find_coordinates, locals())
    options = CoordinateOptions(D, dictionary, frames, neighbours, aggregate, leave_out, unit, c, method, seed)
    with shown(progress, callback, partial(_line, clock)) as watch:
        stages = Stages(clock, watch)
        if _is_points(data, dictionary):
            return replace(_of_points(data, options, stages), call=call)
        stages("reading", 0, 1)
        trajectory = as_trajectory(data, topology, atoms=atoms)
        return replace(_of_trajectory(trajectory, options, stages), call=call)


def _line(clock: Clock, stage: str, done: int, total: int) -> str:
    return f"{stage_line(stage, done, total)}  {seconds_text(clock.seconds, clock.limit)}"


@dataclass(frozen=True)
class _Prepared:
    """The matrices to select from, and their points."""

    at: Indices
    matrices: TorsionMatrices | Differentials
    tangents: TangentSpaces
    evidence: DimensionEvidence | None


def _is_points(data: Any, dictionary: Any) -> bool:
    """Whether the data are points with a dictionary; raises an error if data and dictionary do not match."""
    if isinstance(dictionary, Dictionary):
        if isinstance(data, str | Path | Trajectory):
            raise ParameterError(
                "A Dictionary needs an array of points (N, B). For a trajectory pass dictionary='bonds', "
                "'rotatable', 'all', or rows of four atoms."
            )
        return True
    if isinstance(data, np.ndarray):
        raise ParameterError(
            "An array of points needs dictionary=, a Dictionary of functions with gradients at these points; "
            "`as_dictionary` makes one from an array (N, B, P). For the positions of a molecule pass a Trajectory."
        )
    return False


def _of_trajectory(trajectory: Trajectory, options: CoordinateOptions, stages: Stages) -> Coordinates:
    """Torsions as coordinates of the manifold of a molecule's shapes."""
    N, atoms, _ = trajectory.positions.shape
    at = options.chosen(N, "frame")
    given = options.dictionary
    every = isinstance(given, str) and given == "all"
    rows = given if every else torsion_rows(trajectory, given)
    P = count_torsions(atoms) if every else len(rows)
    options.check_functions(P)
    # before the dimension is estimated
    refuse_large(N, atoms, len(at), options.D or 1, P)
    options.neighbourhood(N, options.D or 1, SHAPES, "frame")
    D, evidence = _dimension(trajectory, at, options, stages)
    options.check_functions(P, D)
    matrices = torsion_matrices(
        trajectory,
        at,
        D=D,
        neighbours=options.neighbourhood(N, D, SHAPES, "frame"),
        torsions=rows,
        normalization="overall" if options.unit == "auto" else None,
        unit=None if options.unit == "auto" else options.unit,
        callback=partial(stages, "estimating tangent spaces"),
    )
    found = _select(_Prepared(at, matrices, matrices.tangents, evidence), options, stages)
    picked = matrices.torsions[found.selection.indices]
    return replace(found, trajectory=trajectory, torsions=trajectory.serials[picked])


def _of_points(data: Any, options: CoordinateOptions, stages: Stages) -> Coordinates:
    """Functions of any kind as coordinates of the manifold of the given points."""
    points, dictionary = as_matrix(data, wide=False).values, options.dictionary
    N, n = len(points), len(dictionary.gradients)
    at = options.chosen(N, "point")
    if n not in (N, len(at)) or (n != N and is_whole(options.frames)):
        raise ShapeError(
            f"The dictionary has gradients at {n} points; expected gradients at all {N} points, or at the points in "
            "frames=."
        )
    P = dictionary.gradients.shape[2]
    options.check_functions(P)
    options.neighbourhood(N, options.D or 1, POINTS, "point")  # before the dimension is estimated
    D, evidence = _dimension(points, at, options, stages)
    options.check_functions(P, D)
    tangents = tangent_spaces(
        points,
        at,
        D=D,
        neighbours=options.neighbourhood(N, D, POINTS, "point"),
        callback=partial(stages, "estimating tangent spaces"),
    )
    here = dictionary.take(at) if n == N else dictionary
    matrices = differentials(here, tangents, unit=options.unit)
    found = _select(_Prepared(at, matrices, tangents, evidence), options, stages)
    return replace(found, data=points, dictionary=dictionary)


def _dimension(
    points: Array | Trajectory, at: Indices, options: CoordinateOptions, stages: Stages
) -> tuple[int, DimensionEvidence | None]:
    """D as given; or as estimated from the spectra of neighbourhoods of several sizes, with this evidence."""
    if options.D is not None:
        return options.D, None
    evidence = dimension_evidence(points, at, callback=partial(stages, "estimating the dimension"))
    return evidence.suggested, evidence


def _select(prepared: _Prepared, options: CoordinateOptions, stages: Stages) -> Coordinates:
    """Check the points, leave out undetermined ones if requested, and select."""
    checks, notes = _check(prepared, options.c, stages)
    used, more = _used(prepared, checks, options.leave_out)
    matrices = _in_unit_of(prepared.matrices, used)
    share = 1 / int(used.sum()) if as_aggregate(options.aggregate).name == "sum" else 1.0  # of one point in the loss

    selection = select(
        matrices.take(used),
        c=options.c,
        method=options.method,
        aggregate=options.aggregate,
        time_limit=stages.clock.remaining_limit,
        callback=partial(stages.searching, share, matrices.labels),
    )
    return Coordinates(
        selection,
        prepared.at,
        used,
        matrices,
        prepared.tangents,
        checks,
        prepared.evidence,
        seconds=stages.clock.seconds,
        notes=(*notes, *more, *_far_note(selection), *selection.notes),
    )


def _far_note(selection: Selection) -> tuple[str, ...]:
    """A note if the loss of a typical point is far from ideal."""
    if not selection.loss_per_point > FAR * selection.k:
        return ()
    return (
        "the loss is far from ideal: at many points these functions are not coordinates. Try another D, other "
        "functions, or more neighbours.",
    )


def _in_unit_of(matrices: TorsionMatrices | Differentials, used: Mask) -> TorsionMatrices | Differentials:
    """All matrices, in units of the used points: mean square lengths do not include points that are left out."""
    if not isinstance(matrices, TorsionMatrices) or not matrices.overall:
        return matrices
    sizes = np.sqrt(np.einsum("idp,idp->p", matrices.matrices[used], matrices.matrices[used]) / int(used.sum()))
    return replace(matrices, matrices=matrices.matrices / np.where(sizes > 0, sizes, 1.0))


def _check(prepared: _Prepared, c: float, stages: Stages) -> tuple[PointChecks, tuple[str, ...]]:
    """The checks of the points; without the functions, and with a note, if these take too long."""
    clock = stages.clock.part(CHECK_SHARE)

    def watch(done: int, total: int) -> None:
        stages("checking points", done, total)
        if clock.expired:
            raise TimeoutError  # check_points has no time limit

    try:
        return check_points(prepared.matrices, prepared.tangents, c=c, callback=watch), ()
    except TimeoutError:
        note = "there was no time to find the best functions at each point; only tangent spaces were checked."
        return check_points(prepared.tangents), (note,)


def _used(prepared: _Prepared, checks: PointChecks, leave_out: bool) -> tuple[Mask, tuple[str, ...]]:
    """The points that the selection uses, and notes. Points without D independent functions are never used."""
    D = prepared.tangents.dimension
    full = np.array([direction_rank(one) >= D for one in prepared.matrices.matrices])
    determined = full & ~checks.undetermined
    notes = ("most points are undetermined: try more neighbours, or another D.",) if determined.mean() < 0.5 else ()
    if full.any() and not full.all():
        some = ", ".join(map(str, prepared.at[~full][:NAMED].tolist()))
        notes += (f"left out, since no {D} functions are independent there: {int((~full).sum())} points ({some}).",)
    full = full if full.any() else np.ones_like(full)
    if not leave_out:
        return full, notes
    if not determined.any():
        return full, (*notes, "no point is determined, so none was left out.")
    return determined, notes
