"""Options of `find_coordinates`: their checks, the default number of neighbours, and reports of stages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from isopursuit._core.clock import Clock
from isopursuit._core.options import as_count, as_exponent, as_numbers, is_whole
from isopursuit._core.progress import SEARCHING
from isopursuit._core.text import USEFUL, loss_text, within
from isopursuit._core.types import AggregateOption, Indices, Labels, Method, Unit
from isopursuit.data._units import as_unit
from isopursuit.errors import ParameterError, StoppedError, unknown_option
from isopursuit.loss.aggregate import as_aggregate
from isopursuit.search.incumbent import SearchProgress

Watch = Callable[[str, int, int], Any]  # stage, done, total; True stops

# default aggregate (measured by benchmarks/aggregates.py: it finds the known coordinates of four manifolds at least as
# often as "sum")
AGGREGATE: AggregateOption = "trimmed"
FRAMES = 100  # points at which tangent spaces are estimated (guess: losses per point then vary by a few percent)
# neighbours of a point, in units of N^(2/3), for shapes of a molecule and for other points (measured: the loss of
# ethanol is least with 300 to 700 of 16,000 frames; for 10,000 frames of alanine dipeptide, 464 neighbours leave 20 of
# 100 tangent spaces undetermined for D = 2 and D = 4, and 100 leave 80; the coordinates of swiss rolls of 1,000 points
# are found with 20 to 40)
SHAPES, POINTS = 1.0, 0.3
FEWEST_NEIGHBOURS = 10  # for each of the D + 1 directions and the centre that are estimated (guess)


def default_neighbours(N: int, D: int = 2, scale: float = SHAPES) -> int:
    """The number of neighbours for a tangent space of dimension D: scale · N^(2/3), at least 10 (D + 1).

    `find_coordinates` refuses data of which this is more than half.

    A ball of radius r around a point of a D-dimensional manifold contains about k = N r^D points. Curvature turns the
    tangent space by an angle proportional to r, and noise σ across the manifold turns it by an angle proportional to
    σ / (r √k). The sum of squares is least if r^(D + 4) is proportional to 1/N, hence k to N^(4/(D + 4)): N^(2/3) for
    D = 2. More dimensions have a smaller power and a larger factor, so the same number is used. The factor grows with
    the noise: it is 1 for the shapes of a molecule, which vibrates, and 0.3 for other points.

    Examples
    --------
    >>> default_neighbours(10_000), default_neighbours(200), default_neighbours(200, 4)
    (464, 34, 50)
    """
    return max(FEWEST_NEIGHBOURS * (D + 1), round(scale * N ** (2 / 3)))


@dataclass(frozen=True)
class CoordinateOptions:
    """The caller's options."""

    D: int | None
    dictionary: Any
    frames: Any
    neighbours: int | None
    aggregate: AggregateOption
    leave_out: bool
    unit: Unit | Literal["auto"]
    c: float
    method: Method
    seed: int

    def __post_init__(self) -> None:
        """Check the options before any work."""
        if self.D is not None:
            as_count(self.D, 1, "D")
        if self.neighbours is not None:
            as_count(self.neighbours, 2, "neighbours")
        as_aggregate(self.aggregate)
        as_exponent(self.c)
        if self.unit != "auto":
            as_unit(self.unit)
        if self.method not in get_args(Method):
            raise unknown_option("method", self.method, get_args(Method))
        as_count(self.seed, 0, "seed")

    def check_functions(self, P: int, D: int | None = None) -> None:
        """Raise an error if there are fewer than D functions, where D is given or estimated."""
        D = self.D if D is None else D
        if D is None or P >= D:
            return
        if self.D is not None:
            raise ParameterError(f"D={D} functions cannot be picked from {P}. Pass a smaller D or more functions.")
        there = "is 1 function" if P == 1 else f"are {P} functions"
        more = " such as dictionary='all'" if isinstance(self.dictionary, str) and self.dictionary != "all" else ""
        raise ParameterError(
            f"The spectra of the neighbourhoods suggest {D} dimensions, but there {there} to pick from. Pass D={P}, if "
            f"that is the dimension, or more functions{more}."
        )

    def neighbourhood(self, N: int, D: int, scale: float, noun: str) -> int:
        """The number of neighbours, given or by default. Raises an error if they are more than half of the data: such
        neighbourhoods overlap so much that they say nothing about single points.
        """
        k = self.neighbours or default_neighbours(N, D, scale)
        if 2 * k <= N:
            return k
        came = f"The data have {N} {noun}s, and neighbours={k} is more than half of them."
        if self.neighbours is None:
            came = f"{N} {noun}s are too few: by default a tangent space needs {k} neighbours, at most half of them."
        raise ParameterError(
            f"{came} For {k} neighbours at least {2 * k} {noun}s are needed. Pass more data, or neighbours={N // 2} or "
            "fewer, which leaves more tangent spaces undetermined."
        )

    def chosen(self, N: int, noun: str) -> Indices:
        """The numbers of the points at which tangent spaces are estimated; ascending if drawn at random."""
        if not is_whole(self.frames):
            if not np.size(self.frames):
                raise ParameterError(f"frames is empty. Pass how many {noun}s to draw, such as {FRAMES}, or numbers.")
            return as_numbers(self.frames, N, "frames")
        if self.frames < 1:
            raise ParameterError(
                f"frames={self.frames} must be at least 1: how many {noun}s to draw, or their numbers."
            )
        drawn = np.random.default_rng(self.seed).choice(N, min(self.frames, N), replace=False)
        return np.sort(drawn).astype(np.intp)


@dataclass(frozen=True)
class Stages:
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
