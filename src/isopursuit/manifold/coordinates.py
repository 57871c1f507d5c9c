"""Find coordinates of data: read, estimate tangent spaces, project gradients, check the points, select.

The steps can be used separately: `tangent_spaces` of points or of the `shape_values` of a molecule, `differentials` or
`torsion_differentials`, `check_points`, `select`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import comb
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from isopursuit._core.clock import Clock
from isopursuit._core.linalg import direction_rank
from isopursuit._core.options import as_count, as_exponent, as_numbers, is_whole
from isopursuit._core.progress import SEARCHING, shown, stage_line
from isopursuit._core.text import USEFUL, call_text, listed, loss_text, seconds_text, within
from isopursuit._core.types import AggregateOption, Array, Indices, Labels, Method
from isopursuit.data._matrix import as_matrix
from isopursuit.data._units import DEFAULT_UNITS
from isopursuit.errors import ParameterError, ShapeError, StoppedError, unknown_option
from isopursuit.loss.aggregate import as_aggregate
from isopursuit.manifold.dictionary import Dictionary, Differentials, GradientUnit, differentials, torsion_differentials
from isopursuit.manifold.evidence import AGGREGATE, check_points, dimension_evidence
from isopursuit.manifold.result import Coordinates
from isopursuit.manifold.tangent import POINTS, SHAPES, TangentSpaces, default_neighbours, tangent_spaces
from isopursuit.molecules import Trajectory, as_trajectory, shape_values, torsion_rows
from isopursuit.molecules.shapes import refuse_large
from isopursuit.search.incumbent import SearchProgress
from isopursuit.selection.select import select

# points at which tangent spaces are estimated (measured: over eight draws of alanine dipeptide the loss per point has a
# standard deviation of 6 % with 25 or 50 frames, and of 2 % with 100 or 200)
FRAMES = 100
Watch = Callable[[str, int, int], Any]  # stage, done, total; True stops


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
    unit: GradientUnit = DEFAULT_UNITS["gradients"],
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
    data : path, Trajectory, object of MDAnalysis, mdtraj or ASE, or array_like (N, B)
        A molecule in many frames, whose shapes are the manifold (see `isopursuit.molecules.as_trajectory`); or points,
        together with a `Dictionary`.
    D : int, optional
        The dimension of the manifold, which is the number of functions to pick. By default it is estimated from the
        spectra of the tangent spaces: look at `Coordinates.dimension`, and pass D once you have decided.
    topology : path, optional
        The file with atoms and bonds, for trajectory files that have only positions (.dcd, .xtc).
    atoms : "heavy", "all", str or sequence of int
        The atoms for the shape and the torsions: all except hydrogen (the default), all, a selection in the language of
        MDAnalysis, or numbers from 0.
    dictionary : {"bonds", "rotatable", "all"}, array_like of int (P, 4), or Dictionary
        The functions to pick from. "bonds" (the default): torsions along three bonds. "rotatable": one torsion for each
        rotatable bond. "all": the torsions of every four atoms. An array: rows of four atoms, by their position among
        the chosen atoms. For points: a `Dictionary` with gradients at all N points, or at the points in `frames`.
    frames : int or array_like of int
        The number of frames (or points) at which tangent spaces are estimated, drawn at random without replacement;
        or their numbers. All frames belong to the manifold.
    neighbours : int, optional
        The number of frames for one tangent space, including the frame itself, at most half of all frames. Default:
        `isopursuit.manifold.default_neighbours`.
    aggregate : {"trimmed", "sum"} or float
        How the losses at the points are combined; see `select`.
    leave_out : bool
        Whether to leave out points whose tangent space is not determined by the data. They are reported in any case.
    unit : "overall", number, "median", "each" or None
        The length of a differential that counts as 1; see `isopursuit.manifold.differentials`. "overall" (the default):
        each function in a unit in which it has mean square length 1.
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
    >>> from isopursuit.molecules import load_ethanol
    >>> found = find_coordinates(load_ethanol(), 2, atoms="all", frames=50)
    >>> found.torsions[:, 1:3].tolist()  # one torsion about each bond that turns, C–C and C–O
    [[0, 1], [0, 2]]
    >>> found.values().shape, found.quality
    ((16000, 2), 'good coordinates')

    Any other manifold: points, and functions with their gradients.

    >>> from isopursuit.manifold import swiss_roll
    >>> roll = swiss_roll(2000, noise=0.1)
    >>> sorted(find_coordinates(roll.points, 2, dictionary=roll.dictionary).labels)
    ['arc length', 'height']
    """
    clock, call = Clock.of(time_limit), call_text(find_coordinates, locals())
    if D is not None:
        as_count(D, 1, "D")
    if neighbours is not None:
        as_count(neighbours, 2, "neighbours")
    if method not in get_args(Method):
        raise unknown_option("method", method, get_args(Method))
    as_count(seed, 0, "seed")
    as_exponent(c)
    counted = as_aggregate(aggregate)
    with shown(progress, callback, partial(_line, clock)) as watch:
        stages = _Stages(clock, watch)
        draw = partial(_drawn, frames, seed)
        _refuse_mismatch(data, dictionary)
        if isinstance(dictionary, Dictionary):
            manifold = _of_points(data, dictionary, draw, unit, is_whole(frames))
        else:
            stages("reading", 0, 1)
            manifold = _of_molecule(as_trajectory(data, topology, atoms=atoms), dictionary, draw, unit, D, stages)
        manifold.check(D or 1, neighbours, estimated=False)  # before the dimension is estimated
        points, evidence, dimension = manifold.points(), None, D
        if dimension is None:
            evidence = dimension_evidence(points, manifold.at, callback=partial(stages, "estimating the dimension"))
            dimension = evidence.suggested
            manifold.check(dimension, neighbours, estimated=True)
        tangents = tangent_spaces(
            points,
            manifold.at,
            D=dimension,
            neighbours=neighbours or default_neighbours(manifold.size, dimension, manifold.scale),
            callback=partial(stages, "estimating tangent spaces"),
        )
        matrices, checks = manifold.differentials(tangents), check_points(tangents)
        bad = checks.undetermined
        # the loss is infinite where fewer than D functions are independent
        full = np.array([direction_rank(one) >= dimension for one in matrices.matrices])
        used = full & ~bad if leave_out else full
        matrices = matrices.take(used) if used.any() and not used.all() else matrices
        share = 1 / len(matrices.matrices) if counted.name == "sum" else 1.0  # of one point in the loss
        selection = select(
            matrices,
            c=c,
            method=method,
            aggregate=aggregate,
            time_limit=clock.remaining_limit,
            callback=partial(stages.searching, share, matrices.labels),
        )
    found = Coordinates(
        selection, matrices, checks, evidence, manifold.trajectory, manifold.data, manifold.dictionary, clock.seconds,
        call=call,
    )  # fmt: skip
    notes = selection.notes
    if full.any() and not full.all():
        some = listed(manifold.at[~full].tolist())
        notes = (f"left out, since no {dimension} functions are independent there: {some}.", *notes)
    if found.quality == "not coordinates":
        notes = ("try another D, other functions, or more neighbours.", *notes)
    if bad.mean() > 0.5:
        notes = ("most points are undetermined: try more neighbours, or another D.", *notes)
    return replace(found, notes=notes)


def _line(clock: Clock, stage: str, done: int, total: int) -> str:
    return f"{stage_line(stage, done, total)}  {seconds_text(clock.seconds, clock.limit)}"


def _drawn(frames: Any, seed: int, N: int, noun: str) -> Indices:
    """The numbers of the points at which tangent spaces are estimated; ascending if drawn at random."""
    if not is_whole(frames):
        if not np.size(frames):
            raise ParameterError(f"frames is empty. Pass how many {noun}s to draw, such as {FRAMES}, or numbers.")
        return as_numbers(frames, N, "frames")
    if frames < 1:
        raise ParameterError(f"frames={frames} must be at least 1: how many {noun}s to draw, or their numbers.")
    drawn = np.random.default_rng(seed).choice(N, min(frames, N), replace=False)
    return np.sort(drawn).astype(np.intp)


@dataclass(frozen=True)
class _Manifold:
    """`size` points and a number of `functions` on them; `scale` is that of the default number of neighbours.

    `points` makes the points, and `differentials` the matrices to select from, at the points `at`.
    """

    noun: str
    size: int
    functions: int
    at: Indices
    scale: float
    points: Callable[[], Array]
    differentials: Callable[[TangentSpaces], Differentials]
    trajectory: Trajectory | None = None
    data: Array | None = None
    dictionary: Dictionary | None = None

    def check(self, D: int, neighbours: int | None, *, estimated: bool) -> None:
        """Raise an error if there are fewer than D functions, or if neighbourhoods are more than half of the data: such
        neighbourhoods overlap so much that they say nothing about single points.
        """
        N, P, noun = self.size, self.functions, self.noun
        if P < D and not estimated:
            raise ParameterError(f"D={D} functions cannot be picked from {P}. Pass a smaller D or more functions.")
        if P < D:
            there = "is 1 function" if P == 1 else f"are {P} functions"
            more = "" if self.trajectory is None else " such as dictionary='all'"
            raise ParameterError(
                f"The spectra of the neighbourhoods suggest {D} dimensions, but there {there} to pick from. Pass "
                f"D={P}, if that is the dimension, or more functions{more}."
            )
        k = neighbours or default_neighbours(N, D, self.scale)
        if 2 * k <= N:
            return
        came = f"The data have {N} {noun}s, and neighbours={k} is more than half of them."
        if neighbours is None:
            came = f"{N} {noun}s are too few: by default a tangent space needs {k} neighbours, at most half of them."
        raise ParameterError(
            f"{came} For {k} neighbours at least {2 * k} {noun}s are needed. Pass more data, or neighbours={N // 2} or "
            "fewer, which leaves more tangent spaces undetermined."
        )


def _refuse_mismatch(data: Any, dictionary: Any) -> None:
    """Raise an error if a Dictionary comes without points, or points without a Dictionary."""
    if isinstance(dictionary, Dictionary) and isinstance(data, str | Path | Trajectory):
        raise ParameterError(
            "A Dictionary needs an array of points (N, B). For a trajectory pass dictionary='bonds', "
            "'rotatable', 'all', or rows of four atoms."
        )
    if isinstance(data, np.ndarray) and not isinstance(dictionary, Dictionary):
        raise ParameterError(
            "An array of points needs dictionary=, a Dictionary of functions with gradients at these points; "
            "`as_dictionary` makes one from an array (N, B, P). For the positions of a molecule pass a Trajectory."
        )


def _of_points(
    data: Any, dictionary: Dictionary, draw: Callable[[int, str], Indices], unit: GradientUnit, drawn: bool
) -> _Manifold:
    """Functions of any kind on the manifold of the given points; `drawn`: not at points of the caller's choice."""
    points = as_matrix(data, wide=False).values
    N, n = len(points), len(dictionary.gradients)
    at = draw(N, "point")
    if n not in (N, len(at)) or (n != N and drawn):
        raise ShapeError(
            f"The dictionary has gradients at {n} points; expected gradients at all {N} points, or at the points in "
            "frames=."
        )
    here = dictionary.take(at) if n == N else dictionary
    return _Manifold(
        "point", N, dictionary.gradients.shape[2], at, POINTS, lambda: points,
        lambda tangents: differentials(here, tangents, unit=unit), data=points, dictionary=dictionary,
    )  # fmt: skip


def _of_molecule(
    trajectory: Trajectory,
    dictionary: Any,
    draw: Callable[[int, str], Indices],
    unit: GradientUnit,
    D: int | None,
    stages: _Stages,
) -> _Manifold:
    """Torsions on the manifold of a molecule's shapes."""
    N, atoms, _ = trajectory.positions.shape
    at = draw(N, "frame")
    every = isinstance(dictionary, str) and dictionary == "all"
    P = 6 * comb(atoms, 4) if every else 0
    refuse_large(N, atoms, len(at), D or 1, P)  # before the rows of all torsions are made
    rows = torsion_rows(trajectory, dictionary)
    refuse_large(N, atoms, len(at), D or 1, len(rows))
    return _Manifold(
        "frame", N, len(rows), at, SHAPES,
        lambda: shape_values(trajectory.positions, partial(stages, "measuring shapes")),
        lambda tangents: torsion_differentials(
            trajectory, tangents, rows, unit=unit, callback=partial(stages, "projecting gradients")
        ),
        trajectory=trajectory,
    )  # fmt: skip


@dataclass(frozen=True)
class _Stages:
    """Reports progress, and stops the work before the search if the callback or the clock requires it."""

    clock: Clock
    callback: Watch | None

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Report a stage before the search; raise `StoppedError` to stop."""
        share = f"{done / max(total, 1):.0%} done"
        if self.callback is not None and self.callback(stage, done, total) is True:
            raise StoppedError(f"Stopped while {stage} ({share}), before any functions were picked.")
        if self.clock.expired:
            raise StoppedError(
                f"The time limit was over while {stage} ({share}), before any functions were picked. Pass a longer "
                "time limit, fewer frames, or fewer atoms."
            )

    def searching(self, share: float, labels: Labels, now: SearchProgress) -> bool:
        """Report a running search; True to stop it. `share` is the share of one point in the loss.

        If the callback has a method `picked`, it receives the labels of the best functions so far.
        """
        if self.callback is None:
            return False
        picked = getattr(self.callback, "picked", None)
        if picked is not None:
            picked([labels[i] for i in now.indices.tolist()])
        gap = f", {within(now.gap)}" if now.gap <= USEFUL else ""
        stage = f"{SEARCHING}, best loss per point {loss_text(share * now.incumbent, 4)}{gap}"
        total = 0 if self.clock.limit is None else round(self.clock.limit)
        return self.callback(stage, round(self.clock.seconds), total) is True
