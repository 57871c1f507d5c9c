"""Find coordinates of data: read, estimate tangent spaces, project gradients, check the points, select.

The steps can be used separately: `tangent_spaces` of points or of the `shape_values` of a molecule, `differentials` or
`torsion_differentials`, `check_points`, `select`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import comb
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from isopursuit._core.clock import Clock
from isopursuit._core.linalg import direction_rank
from isopursuit._core.options import as_count, as_exponent, as_numbers, as_repeatable, is_whole
from isopursuit._core.progress import SEARCHING, shown, stage_line
from isopursuit._core.text import USEFUL, call_text, listed, loss_text, seconds_text, within
from isopursuit._core.types import AggregateOption, Array, Indices, Label, Labels, Method
from isopursuit.data._matrix import as_matrix
from isopursuit.data._units import DEFAULT_GRADIENT_UNIT
from isopursuit.errors import BudgetError, ParameterError, RankError, ShapeError, StoppedError, unknown_option
from isopursuit.loss.aggregate import as_aggregate
from isopursuit.manifold.dictionary import (
    Dictionary,
    Differentials,
    GradientUnit,
    Periodic,
    as_dictionary,
    differentials,
    known_functions,
    torsion_differentials,
    unmarked_angles,
)
from isopursuit.manifold.dimension import MOST, DimensionScan
from isopursuit.manifold.evidence import AGGREGATE, KICKS, REDRAWS, STARTS, check_points, gather_evidence
from isopursuit.manifold.result import Coordinates
from isopursuit.manifold.slopes import local_slopes
from isopursuit.manifold.tangent import POINTS, SHAPES, TangentSpaces, default_neighbours, tangent_spaces
from isopursuit.molecules import (
    Trajectory,
    as_trajectory,
    shape_values,
    torsion_labels,
    torsion_rows,
    torsion_shapes,
    torsion_values,
)
from isopursuit.molecules.shapes import MAX_BYTES, refuse_large
from isopursuit.molecules.torsions import TorsionKind
from isopursuit.search.incumbent import SearchProgress
from isopursuit.search.searches import exchange_search
from isopursuit.selection.select import select

# points at which tangent spaces are estimated (measured: over eight draws of alanine dipeptide the loss per point has a
# standard deviation of 6 % with 25 or 50 frames, and of 2 % with 100 or 200)
FRAMES = 100
SEARCH_SHARE = 0.7  # of the time of one dimension for its search; redraws follow (chosen)
QUICK = 1.0  # seconds that a search in a redraw may take in any case, of at least 20 searches (chosen)
SURE = 1.0  # seconds of a stage after which its speed is taken for granted (chosen)
TIED = 1e-9  # relative difference of losses that rounding can make
Shapes = Literal["torsions", "angles"]
Watch = Callable[[str, int, int], Any]  # stage, done, total; True stops


def find_coordinates(
    data: Any,
    D: int | Iterable[int] | None = None,
    *,
    topology: Any = None,
    atoms: str | ArrayLike = "heavy",
    shapes: Shapes = "torsions",
    dictionary: Any = "rotatable",
    periodic: Periodic = False,
    include: Iterable[Label] | None = None,
    exclude: Iterable[Label] | None = None,
    frames: int | ArrayLike = FRAMES,
    neighbours: int | None = None,
    aggregate: AggregateOption = AGGREGATE,
    leave_out: bool = False,
    unit: GradientUnit = DEFAULT_GRADIENT_UNIT,
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
        together with functions.
    D : int or several, optional
        The dimension of the manifold, which is the number of functions to pick. For several, such as ``range(1, 8)``,
        the answers are compared (`Coordinates.scan`), and that of the recommended dimension is returned. Default: 1 to
        7, as far as data and functions allow.
    topology : path, optional
        The file with atoms and bonds, for trajectory files that have only positions (.dcd, .xtc).
    atoms : "heavy", "all", str or sequence of int
        The atoms for the shape and the torsions: all except hydrogen (the default), all, a selection in the language of
        MDAnalysis, or numbers from 0.
    shapes : {"torsions", "angles"}
        What the shape of a molecule is made of. "torsions" (the default): cosines and sines of all torsions along three
        bonds, which know how far bonds turn and tell mirror images apart, but forget bond lengths and angles. "angles",
        as in the paper: all planar angles, which forget mirror images, and for which turning a stretched chain is a small
        change.
    dictionary : {"rotatable", "bonds", "all"}, Dictionary, functions or values
        The functions to pick from. For a molecule: "rotatable" (the default), one torsion for each rotatable bond;
        "bonds", the torsions along three bonds; "all", the torsions of every four atoms; or rows of four whole numbers,
        atoms by their position among the chosen atoms. For points and molecules: the values of functions at all points
        as an array (N, P), a data frame or the path of a COLVAR file; named callables, which take all points (N, B), or
        all positions (N, atoms, 3), and return N values; or a `Dictionary`, with values at all N points, or gradients at
        all N points or at the points in `frames`. Differentials of functions without gradients are estimated from the
        values on the neighbours of each point.
    periodic : bool, number, labels, or mapping from labels to periods
        Which functions jump back after a period, if they are given by values: as in `isopursuit.manifold.as_dictionary`.
    include, exclude : iterables of labels, optional
        Functions that must, or must not, be picked.
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
        are returned with their bound. `StoppedError` is raised as soon as the tangent spaces alone would take longer.
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

    Any other manifold: points, and the values of functions.

    >>> from isopursuit.manifold import swiss_roll
    >>> roll = swiss_roll(2000, noise=0.1)
    >>> values = {name: roll.dictionary.value(name) for name in ("x", "arc length", "height", "radius")}
    >>> sorted(find_coordinates(roll.points, 2, dictionary=values).labels)
    ['arc length', 'height']
    """
    clock, call = Clock.of(time_limit), call_text(find_coordinates, locals())
    wanted = _dimensions(D)
    if neighbours is not None:
        as_count(neighbours, 2, "neighbours")
    if method not in get_args(Method):
        raise unknown_option("method", method, get_args(Method))
    if shapes not in get_args(Shapes):
        raise unknown_option("shapes", shapes, get_args(Shapes))
    as_count(seed, 0, "seed")
    as_exponent(c)
    options = {
        "c": c,
        "aggregate": as_aggregate(aggregate),
        "include": as_repeatable(include),
        "exclude": as_repeatable(exclude),
    }
    with shown(progress, callback, partial(_line, clock)) as watch:
        stages = _Stages(clock, watch)
        draw = partial(_drawn, frames, seed)
        if _is_molecule(data):
            stages("reading", 0, 1)
            trajectory = as_trajectory(data, topology, atoms=atoms)
            manifold = _of_molecule(trajectory, shapes, dictionary, periodic, draw, unit, wanted or 1, stages)
        else:
            manifold = _of_points(data, dictionary, periodic, draw, unit, is_whole(frames))
        several = wanted is None or not isinstance(wanted, int)
        tried, notes = manifold.possible(wanted, neighbours) if several else ([wanted], ())
        manifold.check(min(tried), neighbours)
        points = manifold.points()
        tried = [D for D in tried if D <= points.shape[1]] or tried[:1]
        found: list[Coordinates] = []
        for D, matrices, random in _each_dimension(points, manifold, tried, neighbours, several, stages):
            share = clock.part(1 / (1 + max(tried) - D))  # of the time that is left
            try:
                found.append(_pick(manifold, matrices, random, options, method, leave_out, share, stages))
            except RankError:
                if not found:
                    raise
                break  # no D functions are independent
    scan = DimensionScan(tuple(one.row for one in found)) if several else None
    best = found[0] if scan is None else next(one for one in found if scan.recommended == one.D)
    return replace(best, scan=scan, call=call, seconds=clock.seconds, notes=best.notes + notes)


def _dimensions(D: Any) -> int | list[int] | None:
    """The dimensions to try, ascending; a number if there is one, None for the default."""
    if D is None:
        return None
    if not isinstance(D, Iterable):
        return as_count(D, 1, "D")
    several = sorted({as_count(one, 1, "D") for one in D})
    if not several:
        raise ParameterError("D is empty. Pass a dimension, several such as range(1, 8), or nothing for the default.")
    return several


def _each_dimension(
    points: Array,
    manifold: _Manifold,
    tried: Sequence[int],
    neighbours: int | None,
    several: bool,
    stages: _Stages,
) -> Generator[tuple[int, Differentials, Iterable[Array]]]:
    """Differentials for each dimension, and slopes of sets of random functions.

    Dimensions with the same number of neighbours share the tangent spaces of the largest.
    """
    sizes = {D: neighbours or default_neighbours(manifold.size, D, manifold.scale) for D in tried}
    for size in sorted(set(sizes.values())):
        group = [D for D in tried if sizes[D] == size]
        tangents = None
        while tangents is None:
            try:
                tangents = tangent_spaces(
                    points,
                    manifold.at,
                    D=group[-1],
                    neighbours=size,
                    callback=partial(stages, "estimating tangent spaces"),
                )
            except RankError:
                if not several or group[-1] == tried[0]:
                    raise
                group.pop()
                if not group:
                    return
        matrices = manifold.differentials(tangents)
        random = _RandomFunctions(points, matrices)
        for D in group:
            yield D, matrices.of_dimension(D), random.of_dimension(D)


def _full_labels(given: Sequence[Label] | None, labels: Labels) -> list[Label] | None:
    """Labels, where the name of a torsion such as "φ" stands for those with that name."""
    if given is None:
        return None
    found: list[Label] = []
    for one in given:
        named = [label for label in labels if str(label).startswith(f"{one} (")]
        found += named if named and one not in labels else [one]
    return found


class _RandomFunctions:
    """Sets of slopes of random functions at the points of some differentials, made when they are first needed."""

    def __init__(self, points: Array, matrices: Differentials) -> None:
        self.points, self.matrices = points, matrices
        self.made: list[Array] = []
        self.rng = np.random.default_rng(0)

    def of_dimension(self, D: int) -> Generator[Array]:
        """`REDRAWS` sets in the leading D directions."""
        n, _, P = self.matrices.matrices.shape
        for draw in range(REDRAWS):
            if draw == len(self.made) and self.matrices.errors is None:
                self.made.append(self.rng.normal(size=self.matrices.matrices.shape))
            elif draw == len(self.made):
                values = self.rng.normal(size=(len(self.points), P))
                self.made.append(local_slopes(self.points, values, self.matrices.tangents)[0])
            yield self.made[draw][:, :D]


def _pick(
    manifold: _Manifold,
    matrices: Differentials,
    random: Iterable[Array],
    options: dict[str, Any],
    method: Method,
    leave_out: bool,
    clock: Clock,
    stages: _Stages,
) -> Coordinates:
    """The coordinates for one dimension, with their evidence."""
    checks = check_points(matrices)
    bad, dimension, aggregate = checks.undetermined, matrices.tangents.dimension, options["aggregate"]
    # the loss is infinite where fewer than D functions are independent
    full = np.array([direction_rank(one) >= dimension for one in matrices.matrices])
    used = full & ~bad if leave_out else full
    used = used if used.any() else np.ones_like(used)
    matrices = matrices if used.all() else matrices.take(used)
    share = 1 / len(matrices.matrices) if aggregate.name == "sum" else 1.0  # of one point in the loss
    before = clock.part(SEARCH_SHARE)
    options = options | {name: _full_labels(options[name], matrices.labels) for name in ("include", "exclude")}
    selection = select(
        matrices,
        method=method,
        time_limit=before.remaining_limit,
        callback=partial(stages.searching, share, matrices.labels),
        **options,
    )

    def search(some: Array) -> tuple[Indices, float]:
        """The columns that a quick search picks, and the logarithm of their loss per point."""
        clock_now = clock.part(1 / REDRAWS).within(max(QUICK, selection.search.seconds))
        limit = clock_now.remaining_limit
        again = exchange_search(some, starts=STARTS, kicks=KICKS, time_limit=limit, labels=matrices.labels, **options)
        return again.indices, aggregate.per_point(again.log_loss, len(some))

    sets = () if selection.search.status == "interrupted" else (one[used] for one in random)
    evidence = gather_evidence(matrices, selection.indices, search, sets, clock, stages.redrawing)
    found = Coordinates(
        selection, matrices, checks, evidence, None, manifold.trajectory, manifold.data, manifold.dictionary
    )
    notes = selection.notes
    tied = [str(choice.replacement) for choice in selection.choices if abs(choice.price) <= TIED * selection.loss]
    if tied:
        notes = (f"ties: {listed(tied)} would give the same loss.", *notes)
    jumps = [] if manifold.dictionary is None else unmarked_angles(manifold.dictionary)
    if jumps:
        notes = (f"{listed(jumps)} may be angles that jump back after a turn: if so, pass periodic=.", *notes)
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

    def possible(self, wanted: list[int] | None, neighbours: int | None) -> tuple[list[int], tuple[str, ...]]:
        """The dimensions that can be compared, and a note about those that cannot."""
        given = list(range(1, MOST + 1)) if wanted is None else wanted
        first = given[:1]  # if it is not possible either, `check` says why
        kept = [
            D
            for D in given
            if D <= self.functions and 2 * (neighbours or default_neighbours(self.size, D, self.scale)) <= self.size
        ]
        left = [D for D in given if D not in kept]
        if not left or not kept or wanted is None:
            return kept or first, ()
        return kept, (f"not compared: D = {listed(left)}, for which there are too few {self.noun}s or functions.",)

    def check(self, D: int, neighbours: int | None) -> None:
        """Raise an error if there are fewer than D functions, or if neighbourhoods are more than half of the data: such
        neighbourhoods overlap so much that they say nothing about single points.
        """
        N, P, noun = self.size, self.functions, self.noun
        if P < D:
            more = "" if self.trajectory is None else ", such as dictionary='bonds'"
            raise ParameterError(
                f"D={D} functions cannot be picked from {P}. Pass a smaller D or more functions{more}."
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


def _is_molecule(data: Any) -> bool:
    """Whether the data are a trajectory, and not points."""
    return isinstance(data, str | Path | Trajectory) or not (hasattr(data, "shape") or _is_rows(data))


def _is_rows(data: Any) -> bool:
    """Whether the data are a list of rows of numbers."""
    return isinstance(data, list | tuple) and bool(data) and isinstance(data[0], list | tuple)


def _of_points(
    data: Any,
    given: Any,
    periodic: Periodic,
    draw: Callable[[int, str], Indices],
    unit: GradientUnit,
    drawn: bool,
) -> _Manifold:
    """Functions of any kind on the manifold of the given points; `drawn`: not at points of the caller's choice."""
    points = as_matrix(data, wide=False).values
    if isinstance(given, str) and given in get_args(TorsionKind):
        raise ParameterError(
            "Points need dictionary=, the functions to pick from: their values at all points as an array (N, P) or a "
            "data frame, or named callables. For the positions of a molecule pass a Trajectory."
        )
    dictionary = known_functions(given, points, periodic)
    N, n = len(points), dictionary.points
    at = draw(N, "point")
    if n not in (N, len(at)) or (n != N and (drawn or dictionary.gradients is None)):
        what = "values" if dictionary.gradients is None else "gradients"
        or_there = "" if dictionary.gradients is None else ", or at the points in frames="
        raise ShapeError(f"The dictionary has {what} at {n} points; expected {what} at all {N} points{or_there}.")
    here = dictionary.take(at) if n == N and dictionary.gradients is not None else dictionary
    return _Manifold(
        "point", N, len(dictionary.labels), at, POINTS, lambda: points,
        lambda tangents: differentials(here, tangents, unit=unit, points=points), data=points, dictionary=dictionary,
    )  # fmt: skip


def _of_molecule(
    trajectory: Trajectory,
    shapes: Shapes,
    given: Any,
    periodic: Periodic,
    draw: Callable[[int, str], Indices],
    unit: GradientUnit,
    D: int | list[int],
    stages: _Stages,
) -> _Manifold:
    """Torsions or other functions on the manifold of a molecule's shapes."""
    N, atoms, _ = trajectory.positions.shape
    at, angles = draw(N, "frame"), shapes == "angles"
    largest = D if isinstance(D, int) else max(D)
    every = 6 * comb(atoms, 4) if isinstance(given, str) and given == "all" else 0
    if angles:  # before the rows of all torsions are made
        refuse_large(N, atoms, len(at), largest, every)
    elif 8 * N * every > MAX_BYTES:
        raise BudgetError(
            f"{N:,} frames have {every:,} torsions of every four atoms each: more than {MAX_BYTES / 1e9:.1f} GB. Pass "
            "dictionary='bonds', or fewer atoms by atoms=."
        )
    rows = None
    if (isinstance(given, str) and given in get_args(TorsionKind)) or _is_torsions(given):
        rows = torsion_rows(trajectory, given)
    if angles and rows is not None:
        refuse_large(N, atoms, len(at), largest, len(rows))
    if rows is not None:
        values = None if angles else torsion_values(trajectory.positions, rows)
        labels = torsion_labels(trajectory, rows)
        dictionary = None if values is None else as_dictionary(values=values, labels=labels, periodic=True)
        P = len(rows)
    else:
        if isinstance(given, str) and not Path(given).exists():
            raise unknown_option("dictionary", given, get_args(TorsionKind), "values, functions or a COLVAR file")
        dictionary = known_functions(given, trajectory.positions, periodic)
        P = len(dictionary.labels)
        if dictionary.points != N or dictionary.gradients is not None:
            came = "gradients" if dictionary.gradients is not None else f"{dictionary.points} values of each function"
            raise ShapeError(f"There are {came}, and {N} frames. Pass the value of each function at each frame.")

    def points() -> Array:
        measuring = partial(stages, "measuring shapes")
        return shape_values(trajectory.positions, measuring) if angles else torsion_shapes(trajectory, measuring)

    made: list[Array] = []

    def remembered() -> Array:
        if not made:
            made.append(points())
        return made[0]

    def project(tangents: TangentSpaces) -> Differentials:
        if dictionary is None and rows is not None:
            told = partial(stages, "projecting gradients")
            return torsion_differentials(trajectory, tangents, rows, unit=unit, callback=told)
        found = differentials(dictionary, tangents, unit=unit, points=remembered())
        return replace(found, torsions=rows)

    return _Manifold("frame", N, P, at, SHAPES, remembered, project, trajectory=trajectory, dictionary=dictionary)


def _is_torsions(given: Any) -> bool:
    """Whether these are rows of four atoms, not values."""
    array = np.asarray(given) if isinstance(given, np.ndarray | list | tuple) and len(given) else None
    return array is not None and array.dtype.kind in "iu"


@dataclass(frozen=True)
class _Stages:
    """Reports progress, and stops the work before the search if the callback or the clock requires it."""

    clock: Clock
    callback: Watch | None
    began: dict[str, float] = field(default_factory=dict)  # when each unfinished stage began

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Report a stage before the search; raise `StoppedError` to stop, and if the stage would exceed the limit."""
        began = self.began.setdefault(stage, time.perf_counter())
        share = f"{done / max(total, 1):.0%} done"
        if self.callback is not None and self.callback(stage, done, total) is True:
            raise StoppedError(f"Stopped while {stage} ({share}), before any functions were picked.")
        spent = time.perf_counter() - began
        needed = self.clock.seconds + spent * (total / max(done, 1) - 1)  # for the whole call up to here
        if done == total:
            del self.began[stage]
        if self.clock.expired or (self.clock.limit is not None and spent > SURE and needed > self.clock.limit):
            raise StoppedError(
                f"The time limit was over while {stage} ({share}), before any functions were picked: this would take "
                f"about {max(needed, self.clock.seconds):.0f} s. Pass a longer limit such as "
                f"time_limit={_rounded_up(2 * needed)}, fewer frames by frames=, or fewer atoms by atoms=; shapes made "
                "of torsions take less time than shapes made of angles."
                if stage != "reading"
                else f"The time limit was over while {stage}. Pass a longer time limit by time_limit=."
            )

    def redrawing(self, done: int, total: int) -> bool:
        """Report the redraws after a search; True to stop."""
        return self.callback is not None and self.callback("drawing points again", done, total) is True

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


def _rounded_up(seconds: float) -> int:
    """A number of seconds to recommend, rounded up to tens."""
    return 10 * math.ceil(seconds / 10)
