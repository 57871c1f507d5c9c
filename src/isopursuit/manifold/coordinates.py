"""Find coordinates of data: read, estimate tangent spaces, project gradients, check the points, select.

The steps can be used separately: `tangent_spaces` of points or of the `torsion_shapes` of a molecule, `differentials`,
`check_points`, `select`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from isopursuit._core.clock import Clock
from isopursuit._core.linalg import direction_rank
from isopursuit._core.options import SubsetOptions, as_count, as_numbers, as_subset_options, is_whole
from isopursuit._core.progress import shown
from isopursuit._core.text import call_text, listed
from isopursuit._core.types import Array, Indices, Label, Labels
from isopursuit.data._matrix import as_matrix
from isopursuit.data._units import DEFAULT_UNITS
from isopursuit.errors import IsoPursuitError, ParameterError, RankError, ShapeError, unknown_option
from isopursuit.loss.aggregate import as_aggregate
from isopursuit.manifold._slopes import local_slopes
from isopursuit.manifold._stages import Stages, Watch, stage_and_time
from isopursuit.manifold.dictionary import Dictionary, Periodic, known_functions, unmarked_angles
from isopursuit.manifold.differentials import Differentials, differentials
from isopursuit.manifold.dimension import MOST, DimensionScan
from isopursuit.manifold.evidence import AGGREGATE, KICKS, REDRAWS, STARTS, check_points, gather_evidence
from isopursuit.manifold.internal import describes_atoms, internal_coordinates, torsion_dictionary
from isopursuit.manifold.result import Coordinates
from isopursuit.manifold.tangent import POINTS, SHAPES, default_neighbours, tangent_spaces
from isopursuit.molecules.shapes import torsion_shapes
from isopursuit.molecules.trajectory import Trajectory, as_trajectory, open_atoms
from isopursuit.search.searches import exchange_search
from isopursuit.selection.select import select

# points at which tangent spaces are estimated (measured: over eight draws of alanine dipeptide the loss per point has a
# standard deviation of 6 % with 25 or 50 frames, and of 2 % with 100 or 200)
FRAMES = 100
SEARCH_SHARE = 0.7  # of the time of one dimension for its search; redraws follow (chosen)
QUICK = 1.0  # seconds that a search in a redraw may take in any case, of at least 20 searches (chosen)
TIED = 1e-9  # relative difference of losses and differentials that rounding can make
LARGEST_COMPARED = 10**7  # entries of differentials that are compared for equality (chosen: a second at most)


def find_coordinates(
    data: Any,
    D: int | Iterable[int] | None = None,
    *,
    dictionary: Any = "rotatable",
    periodic: Periodic = False,
    topology: Any = None,
    atoms: str | ArrayLike = "heavy",
    frames: int | ArrayLike = FRAMES,
    neighbours: int | None = None,
    time_limit: float | None = 60.0,
    seed: int = 0,
    callback: Watch | None = None,
    progress: bool = False,
    **options: Unpack[SubsetOptions],
) -> Coordinates:
    """Find a few functions that are coordinates of a data manifold: torsions of a molecule, or functions of any kind.

    Parameters
    ----------
    data : path, Trajectory, object of MDAnalysis, or array_like (N, B)
        A molecule in many frames, whose shapes are the manifold (see `isopursuit.molecules.as_trajectory` and
        `isopursuit.molecules.torsion_shapes`); or points, together with functions.
    D : int or several, optional
        The dimension of the manifold, which is the number of functions to pick. For several, such as ``range(1, 8)``,
        the answers are compared (`Coordinates.scan`), and that of the recommended dimension is returned. Default: 1 to
        7, as far as data and functions allow.
    dictionary : str, Dictionary, functions or values
        The functions to pick from: their values at all points as an array (N, P), a data frame, a mapping or the path
        of a COLVAR file; callables by label, which take all points (N, B), or all positions (N, atoms, 3), and return N
        values; or a `Dictionary`, with values at all N points, or gradients at all N points or at the points in
        `frames`. Differentials of functions without gradients are estimated from the values on the neighbours of each
        point. For a molecule also "rotatable" (the default), one torsion for each rotatable bond; "bonds", the torsions
        along three bonds, of which at most one about each bond is picked; or what
        `isopursuit.manifold.internal_coordinates` takes, such as "distances of name CA".
    periodic : bool, number, labels, or mapping from labels to periods
        Which functions jump back after a period, if they are given by values; see `isopursuit.manifold.as_dictionary`.
    topology : path, optional
        The file with atoms and bonds, for trajectory files that have only positions (.dcd, .xtc).
    atoms : "heavy", "all", str or sequence of int
        The atoms for the shape and the torsions: all except hydrogen (the default), all, a selection in the words of
        MDAnalysis, or numbers from 0.
    frames : int or array_like of int
        The number of frames (or points) at which tangent spaces are estimated, drawn at random without replacement;
        or their numbers. All frames belong to the manifold.
    neighbours : int, optional
        The number of frames for one tangent space, including the frame itself, at most half of all frames. Default:
        `isopursuit.manifold.default_neighbours`.
    time_limit : float, optional
        Seconds for the whole call. Default: 60; None for no limit. When the time is over, the best functions so far
        are returned with their bound. `StoppedError` is raised as soon as the tangent spaces alone would take longer,
        with the time that is needed.
    seed : int
        The seed of the random draw of frames.
    callback : callable, optional
        Called with the stage in words, the amount done, and the total amount (for the search: seconds). Return True to
        stop: a search then returns its best functions so far; before the search, `StoppedError` is raised.
    progress : bool
        Whether to show the running stage on the error stream, as in `select`.
    **options
        `include`, `exclude`, `groups` and the others as in `select`. A torsion can be named without its atoms, such as
        "φ". The defaults are aggregate="trimmed" and unit="overall", which gives each function a unit in which its
        differentials have mean square length 1; see `isopursuit.manifold.differentials`.

    Returns
    -------
    Coordinates

    Examples
    --------
    >>> from isopursuit import find_coordinates
    >>> from isopursuit.molecules import load_ethanol
    >>> found = find_coordinates(load_ethanol(), 2, atoms="all", frames=50)
    >>> [atoms[1:3] for atoms in found.atoms]  # one torsion about each bond that turns, C–C and C–O
    [(0, 1), (0, 2)]
    >>> found.values().shape, found.quality
    ((16000, 2), 'good coordinates')

    Any other manifold: points, and the values of functions.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> t, height = rng.uniform(-3, 3, (2, 2000))
    >>> points = np.column_stack([np.cos(t), np.sin(t), height])
    >>> values = {"angle": t, "height": height, "x": np.cos(t), "product": t * height}
    >>> sorted(find_coordinates(points, 2, dictionary=values, periodic=["angle"]).labels)
    ['angle', 'height']
    """
    clock, call = Clock.of(time_limit), call_text(find_coordinates, locals())
    wanted = _dimensions(D)
    if neighbours is not None:
        as_count(neighbours, 2, "neighbours")
    as_count(seed, 0, "seed")
    subset: dict[str, Any] = dict(as_subset_options(find_coordinates, options))
    unit = subset.pop("unit", DEFAULT_UNITS["gradients"])
    subset["aggregate"] = as_aggregate(subset.get("aggregate", AGGREGATE))
    with shown(progress, callback, partial(stage_and_time, clock)) as watch:
        stages = Stages(clock, watch)
        stages("reading", 0, 1)
        given = _read(data, dictionary, periodic, topology, atoms, frames, seed)
        if subset.get("groups") is None:
            subset["groups"] = given.bonds
        else:
            given = replace(given, bonds=None)
        tried, notes = given.possible(wanted, neighbours)
        given.check(tried[0], neighbours)
        tried = [D for D in tried if len(subset.get("include") or ()) <= D] or tried[-1:]
        found: list[Coordinates] = []
        try:
            for D, matrices, random in _each_dimension(given, tried, neighbours, unit, stages):
                share = clock.part(1 / (1 + max(tried) - D))  # of the time that is left
                found.append(_pick(given, matrices, random, subset, share, stages))
        except IsoPursuitError as error:
            if not found:
                raise
            notes += (f"larger D were not compared: {error}",)
    scan = None if isinstance(wanted, int) else DimensionScan(tuple(one.row for one in found))
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


@dataclass(frozen=True)
class _Given:
    """Points, functions on them, and the numbers of the points at which these are compared.

    `scale` is that of the default number of neighbours. `bonds` are those about which torsions turn, if only one
    torsion about each may be picked.
    """

    points: Array
    dictionary: Dictionary
    at: Indices
    scale: float
    trajectory: Trajectory | None = None
    bonds: list[str] | None = None

    @property
    def noun(self) -> str:
        """The word for a point."""
        return "point" if self.trajectory is None else "frame"

    @property
    def most(self) -> int:
        """The largest possible dimension."""
        return len(self.dictionary.labels if self.bonds is None else set(self.bonds))

    def neighbours(self, D: int, given: int | None) -> int:
        """The number of neighbours for a dimension."""
        return given or default_neighbours(len(self.points), D, self.scale)

    def possible(self, wanted: int | list[int] | None, neighbours: int | None) -> tuple[list[int], tuple[str, ...]]:
        """The dimensions that can be compared, and a note about those that cannot."""
        if isinstance(wanted, int):
            return [wanted], ()
        given = list(range(1, MOST + 1)) if wanted is None else wanted
        N, B = self.points.shape
        kept = [D for D in given if min(self.most, B) >= D and 2 * self.neighbours(D, neighbours) <= N]
        left = [D for D in given if D not in kept]
        if not left or not kept or wanted is None:
            return kept or given[:1], ()  # if the first is not possible either, `check` says why
        return kept, (f"not compared: D = {listed(left)}, for which there are too few {self.noun}s or functions.",)

    def check(self, D: int, neighbours: int | None) -> None:
        """Raise an error if there are fewer than D functions, or if neighbourhoods are more than half of the data: such
        neighbourhoods overlap so much that they say nothing about single points.
        """
        N, noun = len(self.points), self.noun
        if self.most < D:
            more = "" if self.trajectory is None else ", such as dictionary='bonds'"
            raise ParameterError(
                f"D={D} functions cannot be picked from {self.most}. Pass a smaller D or more functions{more}."
            )
        k = self.neighbours(D, neighbours)
        if 2 * k <= N:
            return
        came = f"The data have {N} {noun}s, and neighbours={k} is more than half of them."
        if neighbours is None:
            came = f"{N} {noun}s are too few: by default a tangent space needs {k} neighbours, at most half of them."
        raise ParameterError(
            f"{came} For {k} neighbours at least {2 * k} {noun}s are needed. Pass more data, or neighbours={N // 2} or "
            "fewer, which leaves more tangent spaces undetermined."
        )


def _read(
    data: Any, functions: Any, periodic: Periodic, topology: Any, atoms: Any, frames: int | ArrayLike, seed: int
) -> _Given:
    """The points and the functions that the caller describes."""
    if not _is_molecule(data):
        points = as_matrix(data, wide=False).values
        if describes_atoms(functions):
            raise ParameterError(
                "Points need dictionary=, the functions to pick from: their values at all points as an array (N, P) or "
                "a data frame, or callables by label. For the positions of a molecule pass a Trajectory."
            )
        at = _drawn(frames, seed, len(points), "point")
        return _Given(points, _at_points(known_functions(functions, points, periodic), points, at, frames), at, POINTS)
    opened = open_atoms(data, topology)
    trajectory = as_trajectory(opened, atoms=atoms)
    at = _drawn(frames, seed, len(trajectory.positions), "frame")
    points, bonds = torsion_shapes(trajectory), None
    if isinstance(functions, str) and functions in ("rotatable", "bonds"):
        dictionary = torsion_dictionary(trajectory, functions)
        axes = [sorted(row[1:3]) for row in dictionary.atoms or ()]
        bonds = [f"{j}–{k}" for j, k in axes] if functions == "bonds" else None
    elif describes_atoms(functions):
        dictionary = internal_coordinates(opened, functions)
    elif isinstance(functions, str) and not Path(functions).exists():
        others = "'distances of …', values, functions or a COLVAR file"
        raise unknown_option("dictionary", functions, ("rotatable", "bonds"), others)
    else:
        dictionary = known_functions(functions, trajectory.positions, periodic)
    return _Given(points, _at_points(dictionary, points, at, frames), at, SHAPES, trajectory, bonds)


def _is_molecule(data: Any) -> bool:
    """Whether the data are a trajectory, and not points."""
    rows = isinstance(data, list | tuple) and bool(data) and isinstance(data[0], list | tuple)
    return isinstance(data, str | Path | Trajectory) or not (hasattr(data, "shape") or rows)


def _at_points(dictionary: Dictionary, points: Array, at: Indices, frames: int | ArrayLike) -> Dictionary:
    """The dictionary, if it has values or gradients at all points, or gradients at those that the caller chose."""
    n, N, chosen = dictionary.points, len(points), not is_whole(frames) and dictionary.gradients is not None
    if n != N and not (chosen and n == len(at)):
        what = "values" if dictionary.gradients is None else "gradients"
        or_there = "" if dictionary.gradients is None else ", or at the points in frames="
        raise ShapeError(f"The functions have {what} at {n} points; expected {what} at all {N} points{or_there}.")
    return dictionary


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


def _each_dimension(
    given: _Given, tried: Sequence[int], neighbours: int | None, unit: Any, stages: Stages
) -> Generator[tuple[int, Differentials, Iterable[Array]]]:
    """Differentials for each dimension, and slopes of sets of random functions.

    Dimensions with the same number of neighbours share the tangent spaces of the largest.
    """
    whole = given.dictionary.gradients is not None and given.dictionary.points == len(given.points)
    here = given.dictionary.take(given.at) if whole else given.dictionary
    sizes = {D: given.neighbours(D, neighbours) for D in tried}
    told = partial(stages, "estimating tangent spaces")
    for size in sorted(set(sizes.values())):
        group = [D for D in tried if sizes[D] == size]
        tangents = None
        while tangents is None:
            try:
                tangents = tangent_spaces(given.points, given.at, D=group[-1], neighbours=size, callback=told)
            except RankError:
                if len(tried) == 1 or group[-1] == tried[0]:
                    raise
                group.pop()
                if not group:
                    return
        matrices = differentials(here, tangents, unit=unit, points=given.points)
        random = _RandomFunctions(given.points, matrices)
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
        P = len(self.matrices.labels)
        for draw in range(REDRAWS):
            if draw == len(self.made) and self.matrices.errors is None:
                self.made.append(self.rng.normal(size=self.matrices.matrices.shape))
            elif draw == len(self.made):
                values = self.rng.normal(size=(len(self.points), P))
                self.made.append(local_slopes(self.points, values, self.matrices.tangents)[0])
            yield self.made[draw][:, :D]


def _pick(
    given: _Given,
    matrices: Differentials,
    random: Iterable[Array],
    options: dict[str, Any],
    clock: Clock,
    stages: Stages,
) -> Coordinates:
    """The coordinates for one dimension, with their evidence."""
    checks = check_points(matrices)
    bad, dimension, aggregate = checks.undetermined, matrices.tangents.dimension, options["aggregate"]
    # the loss is infinite where fewer than D functions are independent
    full = np.array([direction_rank(one) >= dimension for one in matrices.matrices])
    used = full if full.any() else np.ones_like(full)
    matrices = matrices if used.all() else matrices.take(used)
    share = 1 / len(matrices.matrices) if aggregate.name == "sum" else 1.0  # of one point in the loss
    before = clock.part(SEARCH_SHARE)
    options = options | {name: _full_labels(options.get(name), matrices.labels) for name in ("include", "exclude")}
    selection = select(
        matrices,
        dimension,
        time_limit=before.remaining_limit,
        callback=partial(stages.searching, share, matrices.labels),
        **options,
    )

    def search(some: Array) -> tuple[Indices, float]:
        """The columns that a quick search picks, and the logarithm of their loss per point; NaN if time ran short."""
        enough = max(QUICK, selection.search.seconds)
        clock_now = clock.part(1 / REDRAWS).within(enough)
        limit = clock_now.remaining_limit
        again = exchange_search(
            some, k=dimension, starts=STARTS, kicks=KICKS, time_limit=limit, labels=matrices.labels, **options
        )
        short = clock_now.expired and (clock_now.limit or 0.0) < enough and again.status != "optimal"
        return again.indices, np.nan if short else aggregate.per_point(again.log_loss, len(some))

    sets = () if selection.search.status == "interrupted" else (one[used] for one in random)
    names = _same_choice(matrices, given.dictionary)
    blocks = given.trajectory is not None
    evidence = gather_evidence(matrices, selection.indices, search, sets, names, clock, stages.redrawing, blocks=blocks)
    found = Coordinates(selection, matrices, checks, evidence, None, given.trajectory, given.points, given.dictionary)
    # each function has its own unit: advice about another one does not help
    notes = tuple(note for note in selection.notes if not (matrices.overall and "unit='" in note))
    tied = [str(choice.replacement) for choice in selection.choices if abs(choice.price) <= TIED * selection.loss]
    if tied:
        notes = (f"ties: {listed(tied)} would give the same loss.", *notes)
    jumps = unmarked_angles(given.dictionary)
    if jumps:
        notes = (f"{listed(jumps)} may be angles that jump back after a turn: if so, pass periodic=.", *notes)
    if full.any() and not full.all():
        some = listed(given.at[~full].tolist())
        notes = (f"left out, since no {dimension} functions are independent there: {some}.", *notes)
    k, N = matrices.tangents.neighbours, len(given.points)
    more = "more neighbours" if 4 * k <= N else f"more {given.noun}s"
    if bad.mean() > 0.5:
        notes = (f"most {given.noun}s are undetermined: try {more} (there are {k} of {N}), or another D.", *notes)
    elif found.quality == "not coordinates":
        notes = (f"try another D, other functions, or {more}.", *notes)
    return replace(found, notes=notes)


def _same_choice(found: Differentials, dictionary: Dictionary) -> list[object]:
    """What makes two functions the same choice: the bond of a torsion, or equal differentials up to sign."""
    if dictionary.atoms is not None:
        return [tuple(sorted(row[1:3])) if len(row) == 4 else row for row in dictionary.atoms]
    columns = found.matrices.reshape(-1, len(found.labels))
    if columns.size > LARGEST_COMPARED:
        return list(found.labels)
    lengths = np.linalg.norm(columns, axis=0)
    units = columns / np.where(lengths > 0, lengths, 1.0)
    equal = (np.abs(units.T @ units) > 1 - TIED) & np.isclose(lengths[:, None], lengths, rtol=TIED)
    return [int(np.flatnonzero(row)[0]) if row.any() else -i for i, row in enumerate(equal, start=1)]
