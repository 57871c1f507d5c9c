"""Find coordinates of data: read, estimate tangent spaces, project gradients, check the points, select.

The steps can be used separately: `tangent_spaces` of points or of the `shape_values` of a molecule, `differentials` or
`torsion_differentials`, `check_points`, `select`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from isopursuit._core.clock import Clock
from isopursuit._core.linalg import direction_rank
from isopursuit._core.options import as_count, as_exponent, as_repeatable, is_whole
from isopursuit._core.progress import shown
from isopursuit._core.text import call_text, listed
from isopursuit._core.types import AggregateOption, Array, Indices, Label, Labels, Method
from isopursuit.data._units import DEFAULT_UNITS
from isopursuit.errors import IsoPursuitError, ParameterError, RankError, unknown_option
from isopursuit.loss.aggregate import as_aggregate
from isopursuit.manifold._given import FRAMES, Manifold, Shapes, drawn_points, is_molecule, of_molecule, of_points
from isopursuit.manifold._stages import Stages, Watch, stage_and_time
from isopursuit.manifold.dictionary import Differentials, GradientUnit, Periodic, unmarked_angles
from isopursuit.manifold.dimension import DimensionScan
from isopursuit.manifold.evidence import AGGREGATE, KICKS, REDRAWS, STARTS, check_points, gather_evidence
from isopursuit.manifold.result import Coordinates
from isopursuit.manifold.slopes import local_slopes
from isopursuit.manifold.tangent import default_neighbours, tangent_spaces
from isopursuit.molecules import as_trajectory
from isopursuit.search.rules import PerGroup
from isopursuit.search.searches import exchange_search
from isopursuit.selection.select import select

SEARCH_SHARE = 0.7  # of the time of one dimension for its search; redraws follow (chosen)
QUICK = 1.0  # seconds that a search in a redraw may take in any case, of at least 20 searches (chosen)
TIED = 1e-9  # relative difference of losses that rounding can make


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
    groups: Literal["bonds"] | Sequence[Label] | Mapping[Any, Label] | None = None,
    per_group: PerGroup = None,
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
        as in the paper: all planar angles, which forget mirror images, and for which turning a stretched chain is a
        small change.
    dictionary : {"rotatable", "bonds", "all"}, Dictionary, functions or values
        The functions to pick from. For a molecule: "rotatable" (the default), one torsion for each rotatable bond;
        "bonds", the torsions along three bonds; "all", the torsions of every four atoms; or rows of four whole numbers,
        atoms by their position among the chosen atoms. For points and molecules: the values of functions at all points
        as an array (N, P), a data frame or the path of a COLVAR file; named callables, which take all points (N, B), or
        all positions (N, atoms, 3), and return N values; or a `Dictionary`, with values at all N points, or gradients
        at all N points or at the points in `frames`. Differentials of functions without gradients are estimated from
        the values on the neighbours of each point.
    periodic : bool, number, labels, or mapping from labels to periods
        Which functions jump back after a period, if they are given by values; see `isopursuit.manifold.as_dictionary`.
    include, exclude : iterables of labels, optional
        Functions that must, or must not, be picked. The name of a torsion without its atoms, such as "φ", is enough.
    groups, per_group : optional
        How many functions of each group may be picked, as in `select`. groups="bonds": at most one torsion about each
        bond.
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
    options: dict[str, Any] = {
        "c": c,
        "aggregate": as_aggregate(aggregate),
        "include": as_repeatable(include),
        "exclude": as_repeatable(exclude),
        "groups": as_repeatable(groups),
        "per_group": per_group,
    }
    with shown(progress, callback, partial(stage_and_time, clock)) as watch:
        stages = Stages(clock, watch)
        draw = partial(drawn_points, frames, seed)
        if is_molecule(data):
            stages("reading", 0, 1)
            trajectory = as_trajectory(data, topology, atoms=atoms)
            manifold = of_molecule(trajectory, shapes, dictionary, periodic, draw, unit, wanted or 1, stages)
        else:
            manifold = of_points(data, dictionary, periodic, draw, unit, is_whole(frames))
        several = not isinstance(wanted, int)
        tried, notes = manifold.possible(wanted, neighbours) if not isinstance(wanted, int) else ([wanted], ())
        manifold.check(min(tried), neighbours)
        points = manifold.points()
        tried = [D for D in tried if points.shape[1] >= D] or tried[:1]
        tried = [D for D in tried if len(options["include"] or ()) <= D] or tried[-1:]
        found: list[Coordinates] = []
        try:
            for D, matrices, random in _each_dimension(points, manifold, tried, neighbours, several, stages):
                share = clock.part(1 / (1 + max(tried) - D))  # of the time that is left
                found.append(_pick(manifold, matrices, random, options, method, leave_out, share, stages))
        except IsoPursuitError as error:
            if not found:
                raise
            notes += (f"larger D were not compared: {error}",)
    scan = DimensionScan(tuple(one.row for one in found)) if several else None
    best = found[0] if scan is None else next(one for one in found if scan.recommended == one.D)
    return replace(best, scan=scan, call=call, seconds=clock.seconds, notes=best.notes + notes)


def _dimensions(D: Any) -> int | list[int] | None:
    """The dimensions to try, ascending; a number if there is one, None for the default."""
    if D is None:
        return None
    if not isinstance(D, Iterable):
        return as_count(D, 1, "D")
    given: list[Any] = list(D)  # pyright: ignore[reportUnknownArgumentType]
    several = sorted({as_count(one, 1, "D") for one in given})
    if not several:
        raise ParameterError("D is empty. Pass a dimension, several such as range(1, 8), or nothing for the default.")
    return several


def _each_dimension(
    points: Array,
    manifold: Manifold,
    tried: Sequence[int],
    neighbours: int | None,
    several: bool,
    stages: Stages,
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


def _bonds(matrices: Differentials, groups: str) -> list[str]:
    """The bond about which each torsion turns."""
    if groups != "bonds" or matrices.torsions is None:
        raise ParameterError(
            f"groups={groups!r} is not understood. Pass groups='bonds' for torsions, or the group of each function."
        )
    return [f"{min(j, k)}–{max(j, k)}" for _, j, k, _ in matrices.torsions.tolist()]


class _RandomFunctions:
    """Sets of slopes of random functions at the points of some differentials, made when they are first needed."""

    def __init__(self, points: Array, matrices: Differentials) -> None:
        self.points, self.matrices = points, matrices
        self.made: list[Array] = []
        self.rng = np.random.default_rng(0)

    def of_dimension(self, D: int) -> Generator[Array]:
        """`REDRAWS` sets in the leading D directions."""
        P = len(self.matrices.labels)
        for draw in range(REDRAWS):
            if draw == len(self.made) and self.matrices.errors is None:
                self.made.append(self.rng.normal(size=self.matrices.matrices.shape))
            elif draw == len(self.made):
                values = self.rng.normal(size=(len(self.points), P))
                self.made.append(local_slopes(self.points, values, self.matrices.tangents)[0])
            yield self.made[draw][:, :D]


def _pick(
    manifold: Manifold,
    matrices: Differentials,
    random: Iterable[Array],
    options: dict[str, Any],
    method: Method,
    leave_out: bool,
    clock: Clock,
    stages: Stages,
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
    if isinstance(options["groups"], str):
        options["groups"] = _bonds(matrices, options["groups"])
    selection = select(
        matrices,
        dimension,
        method=method,
        time_limit=before.remaining_limit,
        callback=partial(stages.searching, share, matrices.labels),
        **options,
    )

    def search(some: Array) -> tuple[Indices, float]:
        """The columns that a quick search picks, and the logarithm of their loss per point."""
        clock_now = clock.part(1 / REDRAWS).within(max(QUICK, selection.search.seconds))
        limit = clock_now.remaining_limit
        again = exchange_search(
            some, k=dimension, starts=STARTS, kicks=KICKS, time_limit=limit, labels=matrices.labels, **options
        )
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
