"""What the caller of `find_coordinates` gives: points or a molecule, functions on them, and where to compare them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from math import comb
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from isopursuit._core.options import as_numbers, is_whole
from isopursuit._core.text import listed
from isopursuit._core.types import Array, Indices
from isopursuit.data._matrix import as_matrix
from isopursuit.errors import BudgetError, ParameterError, ShapeError, unknown_option
from isopursuit.manifold._stages import Stages
from isopursuit.manifold.dictionary import (
    Dictionary,
    Differentials,
    GradientUnit,
    Periodic,
    as_dictionary,
    differentials,
    known_functions,
    torsion_differentials,
)
from isopursuit.manifold.dimension import MOST
from isopursuit.manifold.tangent import POINTS, SHAPES, TangentSpaces, default_neighbours
from isopursuit.molecules import (
    Trajectory,
    shape_values,
    torsion_labels,
    torsion_rows,
    torsion_shapes,
    torsion_values,
)
from isopursuit.molecules.shapes import MAX_BYTES, refuse_large
from isopursuit.molecules.torsions import TorsionKind

# points at which tangent spaces are estimated (measured: over eight draws of alanine dipeptide the loss per point has a
# standard deviation of 6 % with 25 or 50 frames, and of 2 % with 100 or 200)
FRAMES = 100
Shapes = Literal["torsions", "angles"]


def drawn_points(frames: Any, seed: int, N: int, noun: str) -> Indices:
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
class Manifold:
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
            if self.functions >= D and 2 * (neighbours or default_neighbours(self.size, D, self.scale)) <= self.size
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


def is_molecule(data: Any) -> bool:
    """Whether the data are a trajectory, and not points."""
    return isinstance(data, str | Path | Trajectory) or not (hasattr(data, "shape") or _is_rows(data))


def _is_rows(data: Any) -> bool:
    """Whether the data are a list of rows of numbers."""
    return isinstance(data, list | tuple) and bool(data) and isinstance(data[0], list | tuple)


def of_points(
    data: Any,
    given: Any,
    periodic: Periodic,
    draw: Callable[[int, str], Indices],
    unit: GradientUnit,
    drawn: bool,
) -> Manifold:
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
    return Manifold(
        "point", N, len(dictionary.labels), at, POINTS, lambda: points,
        lambda tangents: differentials(here, tangents, unit=unit, points=points), data=points, dictionary=dictionary,
    )  # fmt: skip


def of_molecule(
    trajectory: Trajectory,
    shapes: Shapes,
    given: Any,
    periodic: Periodic,
    draw: Callable[[int, str], Indices],
    unit: GradientUnit,
    D: int | list[int],
    stages: Stages,
) -> Manifold:
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
    dictionary = None
    if rows is None:
        if isinstance(given, str) and not Path(given).exists():
            raise unknown_option("dictionary", given, get_args(TorsionKind), "values, functions or a COLVAR file")
        dictionary = known_functions(given, trajectory.positions, periodic)
        if dictionary.points != N or dictionary.gradients is not None:
            came = "gradients" if dictionary.gradients is not None else f"{dictionary.points} values of each function"
            raise ShapeError(f"There are {came}, and {N} frames. Pass the value of each function at each frame.")
    elif not angles:
        values = torsion_values(trajectory.positions, rows)
        dictionary = as_dictionary(values=values, labels=torsion_labels(trajectory, rows), periodic=True)

    @cache
    def points() -> Array:
        measuring = partial(stages, "measuring shapes")
        return shape_values(trajectory.positions, measuring) if angles else torsion_shapes(trajectory, measuring)

    def project(tangents: TangentSpaces) -> Differentials:
        if dictionary is not None:
            return replace(differentials(dictionary, tangents, unit=unit, points=points()), torsions=rows)
        told = partial(stages, "projecting gradients")
        return torsion_differentials(trajectory, tangents, given, unit=unit, callback=told)

    P = len(dictionary.labels if rows is None and dictionary is not None else () if rows is None else rows)
    return Manifold("frame", N, P, at, SHAPES, points, project, trajectory=trajectory, dictionary=dictionary)


def _is_torsions(given: Any) -> bool:
    """Whether these are rows of four atoms, not values."""
    if not isinstance(given, np.ndarray | list | tuple):
        return False
    return np.asarray(given).dtype.kind in "iu"  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
