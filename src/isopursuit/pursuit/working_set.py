"""The solver's loop: solve a small working set in the kernel, screen all columns, add violators.

For a small problem the working set has all columns, and one call is enough. Columns in memory and columns of a source
(streamed.py) use the same loop. `solve_design` goes round its failures by proximal steps and changes of coordinates,
and hands each result to answer.py, which certifies it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from isopursuit._core.types import Array, Indices, PursuitStatus
from isopursuit.errors import RankError
from isopursuit.pursuit.answer import IDENTIFIED_GAP, SLIGHT_WEIGHT, Caller, judged, nothing
from isopursuit.pursuit.certificate import certify
from isopursuit.pursuit.design import Design, Evaluation, whitened_at
from isopursuit.pursuit.inputs import Options
from isopursuit.pursuit.progress import Watch
from isopursuit.pursuit.rectangular import RectangularDesign
from isopursuit.pursuit.settings import LENGTH_SHARE, SHORTEST, SPANNING, START_GAP, WIDE, WIDE_ROWS
from isopursuit.results import Pursuit

INTERRUPTIBLE = 100_000  # entries of X from which on a solve may take long enough to be interrupted
SCREENINGS = 100  # most screenings of all columns
STALE_SCREENINGS = 12  # screenings in which the gap does not fall to nine tenths before giving up
WHITENINGS = 3  # most changes of coordinates if rounding prevents a smaller gap
PRECISE_GAP, EXACT_GAP = 1e-14, 1e-12  # gaps that are close enough to rounding (derived: 50 and 5000 eps)
POLISHING_ROUNDS = 4  # most rounds of the kernel; its second-order methods need one or two
POLISHING_STEPS = 20  # most Newton steps for fewer columns than rows
POLISHED_GAP = 1e-15  # gap to which these are solved, if rounding allows (derived: 5 eps)
FIRST_PROX = 1e-3  # μ of the first proximal step, relative to the largest useful λ
LEAST_PROX = 1e-6  # μ of the last proximal step; smaller ones amplify rounding
PROX_STEPS = 40  # most proximal steps
PROX_GAP = 1e-13  # gap to which each proximal step is solved, if rounding allows (derived: 500 eps)
INEXACT_PROX_GAP = 1e-9  # no further proximal steps follow one with a larger gap


@dataclass(frozen=True)
class Solved:
    """Weights over all columns with their evaluation."""

    evaluation: Evaluation
    status: PursuitStatus


def solve_design(design: Design, weights: Array | None, caller: Caller, options: Options) -> Pursuit:
    """Solve the design and certify the answer; weights are in the units of the design.

    If Newton's method stalls, because M is singular at the optimum, proximal steps on the dual follow.
    """
    if design.idle:
        return nothing(design, caller)
    best: Pursuit | None = None
    methods = (_direct, _proximal, _whitened) if design.thin and design.penalty == 0 else (_direct, _proximal)
    for method in (_direct,) if isinstance(design, RectangularDesign) else methods:
        part, solved = method(design, weights, options)
        found = judged(part, solved.evaluation, caller, options.tol, stopped=solved.status == "stopped")
        better = best is None or (best.status == "stalled" and found.certificate.gap < best.certificate.gap)
        best = found if better or found.status == "optimal" else best
        # if it is solved in the design's coordinates but not in the caller's, more precision than float64 is needed
        rounding = design.given is None and design.penalty == 0 and solved.status == "optimal"
        if solved.status == "stopped" or ((found.status == "optimal" or rounding) and solved.evaluation.minimized):
            break
    assert best is not None
    return best


def _direct(design: Design, weights: Array | None, options: Options) -> tuple[Design, Solved]:
    """Solve directly for the weights; change coordinates if rounding prevents a smaller gap and M is regular."""
    solved = pursue(design, options.tol, weights, options)
    if isinstance(design, RectangularDesign) or design.penalty > 0 or design.thin:
        return design, solved
    return _whitened(design, solved.evaluation.weights, options, solved)


def _whitened(
    design: Design, weights: Array | None, options: Options, solved: Solved | None = None
) -> tuple[Design, Solved]:
    """Solve in other coordinates while rounding prevents a smaller gap, and at least once if nothing is solved yet."""
    forced = solved is None
    solved = solved or pursue(design, options.tol, weights, options)
    for turn in range(WHITENINGS):
        if solved.evaluation.gap > 0.99 or (solved.status != "stalled" and (turn > 0 or not forced)):
            break
        try:
            design = whitened_at(design, solved.evaluation.weights)
        except RankError:  # M is singular at these weights
            break
        solved = pursue(design, options.tol, solved.evaluation.weights, options)
    return design, solved


def _proximal(design: Design, weights: Array | None, options: Options) -> tuple[Design, Solved]:
    """Proximal steps on the dual, each from the previous solution (design.py), until rounding stops them."""
    prox = FIRST_PROX * design.largest_pull
    least = LEAST_PROX / FIRST_PROX * prox
    center: Array | float = 0.0
    best: tuple[float, Design, Solved] | None = None
    idle = 0
    for _ in range(PROX_STEPS):
        part = design.step(center, prox)
        solved = pursue(part, PROX_GAP, weights, options)
        error = certify(part, solved.evaluation, np.flatnonzero(solved.evaluation.weights)).error
        previous = np.inf if best is None else best[0]
        if best is None or error < best[0]:
            best = error, part, solved
        if error > 0.1 * previous or error == np.inf:  # far from feasible, larger steps help more
            prox, idle = max(0.1 * prox, least), idle + (error < np.inf)
        if error <= PROX_GAP or solved.status == "stopped" or idle > 3 or solved.evaluation.gap > INEXACT_PROX_GAP:
            break
        center, weights = part.slope(solved.evaluation), solved.evaluation.weights
    assert best is not None
    return best[1], best[2]


def pursue(design: Design, tol: float, weights: Array | None, options: Options) -> Solved:
    """Minimize f to a relative gap of tol, from the given weights if any; the options say when to stop."""
    w = _start(design, weights)
    # on large problems a watch makes Ctrl-C possible even without a callback
    watched = options.callback is not None or options.clock.limit is not None or design.x.size > INTERRUPTIBLE
    watch = Watch(options.callback, options.clock) if watched else None
    solve(design, w, tol, watch, warm=weights is not None)
    stopped = watch is not None and watch.check()
    evaluation = design.evaluate(w)
    if evaluation is None:  # rounding made M singular: the start is at least a valid answer
        evaluation = design.evaluate(design.start())
    if evaluation is None:
        raise RankError(
            "X's columns are too nearly dependent for float64: no weights make their second moments regular. "
            "Drop or rescale rows, or use penalty > 0."
        )
    if not stopped and evaluation.gap <= min(tol, IDENTIFIED_GAP):
        evaluation = _polished(design, evaluation)
    return Solved(evaluation, "stopped" if stopped else "optimal" if evaluation.gap <= tol else "stalled")


def _polished(design: Design, evaluation: Evaluation) -> Evaluation:
    """The weights on the tied columns to full precision, so that fewer columns are tied and have weight."""
    if evaluation.gap <= PRECISE_GAP:
        return evaluation
    tied, weights = evaluation.tied, evaluation.weights
    # the kernel leaves slight weights, or columns outside of its part nearly tied, unless its last step was exact
    slight = ((weights > 0) & (weights <= SLIGHT_WEIGHT * weights.sum())).any()
    precise = PRECISE_GAP if slight or isinstance(design, RectangularDesign) else EXACT_GAP
    if evaluation.gap <= precise or len(tied) > design.kernel_columns:
        return evaluation
    part, w = design.take(tied), weights[tied]
    part.solve(w, POLISHED_GAP, rounds=POLISHING_STEPS if isinstance(design, RectangularDesign) else POLISHING_ROUNDS)
    full = np.zeros(len(weights))
    full[tied] = w
    again = design.evaluate(full)
    return evaluation if again is None or again.gap > evaluation.gap else again


def _start(design: Design, weights: Array | None) -> Array:
    """The caller's weights if M is regular with them; otherwise they are mixed with the plain start."""
    if weights is None:
        return design.start()
    if design.evaluate(weights) is not None:
        return weights.copy()
    plain = design.start()
    total = float(weights.sum())
    return 0.9 * weights * (float(plain.sum()) / total if total > 0 else 0.0) + 0.1 * plain


def starting_columns(D: int, P: int, room: int | None = None) -> int:
    """How many of the longest columns to start from, at most `room`; 0 if there are not far more columns than D².

    If columns have all directions, M is nearly a multiple of the identity, and only their lengths matter.
    """
    many = int(SPANNING * D * (D + 1))
    many = many if room is None else min(many, room)
    return many if D >= WIDE_ROWS and WIDE * many < P else 0


def solve_as_if_equally_long(
    design: Design, watch: Watch | None, placed: Callable[[Design], Design] | None = None
) -> Array:
    """Weights that solve the program for the columns divided by their lengths, on the device chosen by `placed`.

    Otherwise small differences in length would make K inaccurate on all columns that are not part of the design.
    """
    lengths = np.linalg.norm(design.x[0], axis=1)
    w = design.start()
    unit = replace(design, x=design.x / np.maximum(lengths, SHORTEST)[:, None])
    unit = unit if placed is None else placed(unit)
    tol = max(START_GAP, LENGTH_SHARE * (1 - float(lengths.min() / lengths.max())))
    unit.descend(w, tol, watch, warm=False)
    return np.divide(w, lengths**2, out=w, where=lengths > SHORTEST)


def solve(design: Design, w: Array, tol: float, watch: Watch | None, *, warm: bool, nested: bool = False) -> None:
    """Improve w in place, in one call of the kernel or by parts, from the longest columns if there are many."""
    if watch is not None:
        watch.columns = len(w)
        watch.stopped = watch.stopped or watch.clock.expired
        if watch.stopped:
            return
    n, P, D = design.shape
    many = starting_columns(D, P)
    if many and n == 1 and design.aim is None and not warm and not isinstance(design, RectangularDesign):
        lengths = np.linalg.norm(design.x[0], axis=1)
        # a sample of all columns makes it likely that these span
        columns = np.union1d(np.argpartition(-lengths, many)[:many], np.arange(0, P, P // many))
        part = design.take(columns)
        v = solve_as_if_equally_long(part, watch)
        if part.evaluate(v) is not None:
            w[:] = 0.0
            w[columns] = v
            warm = True
    if design.many_rows:
        if design.descend(w, tol, watch, warm=warm) <= tol or (watch is not None and watch.stopped):
            return
        warm = True
    if len(w) > design.kernel_columns:
        resident = ResidentColumns(design, w, warm=warm)
        solve_by_parts(resident, tol, watch, nested=nested)
        w[:] = resident.w
    else:
        design.solve(w, tol, watch)


class ScreenedColumns(Protocol):
    """Weights on all columns, in memory or not, of which a few are solved at a time."""

    @property
    def share(self) -> float:
        """The share of the gap over all columns to which a part is solved."""
        ...

    @property
    def finish(self) -> float:
        """The least gap to which a part is solved, as a share of the tolerance."""
        ...

    @property
    def settled(self) -> bool:
        """Whether no further columns can matter."""
        ...

    def screen(self) -> float | None:
        """Screen all columns in one pass; returns the gap over all columns, or None if M is singular."""
        ...

    def part(self) -> tuple[Design, Array]:
        """The columns with weight and those that violate most, and weights to start from."""
        ...

    def improve(self, part: Design, weights: Array, tol: float, watch: Watch | None) -> None:
        """Improve the part's weights in place."""
        ...

    def settle(self, weights: Array) -> None:
        """The part's weights become those of the columns."""
        ...


def solve_by_parts(columns: ScreenedColumns, tol: float, watch: Watch | None, *, nested: bool = False) -> None:
    """Solve a part to a small share of the gap over all columns, screen, add the worst violators, and repeat.

    A large part is itself solved by parts; only the outer passes are counted.
    """
    best = np.inf
    stale = 0
    for passes in range(SCREENINGS):
        gap = columns.screen()
        if gap is None:
            break
        stale = 0 if gap < 0.9 * best else stale + 1
        best = min(best, gap)
        if gap <= tol or stale > STALE_SCREENINGS or columns.settled or (watch is not None and watch.check()):
            break
        part, v = columns.part()
        if watch is not None and not nested:
            watch.passes = passes + 1
        goal = max(columns.finish * tol, columns.share * gap)
        goal = columns.finish * tol if goal < 3 * tol else goal  # a last small factor is not worth another pass
        columns.improve(part, v, goal, watch)
        columns.settle(v)
        if watch is not None and watch.check():
            break


class ResidentColumns:
    """All columns are resident."""

    settled = False
    finish = 0.3

    def __init__(self, design: Design, w: Array, *, warm: bool) -> None:
        self.design, self.warm = design, warm
        self.w: Array = w.copy()
        self.evaluation: Evaluation | None = None
        self.columns = np.arange(0)

    @property
    def share(self) -> float:
        """Smaller once the columns that matter are found."""
        return 3e-2 if self.evaluation is None or self.evaluation.gap > 1e-4 else 1e-3

    def screen(self) -> float | None:
        """The gap over all columns."""
        self.evaluation = self.design.evaluate(self.w)
        return None if self.evaluation is None else self.evaluation.gap

    def part(self) -> tuple[Design, Array]:
        """The columns with weight, and the worst violators."""
        assert self.evaluation is not None
        keep, self.warm = self.warm, True
        room = self.design.joining // 2 if keep else self.design.joining
        self.columns = _worst_violators(self.evaluation, room, keep)
        part = self.design.take(self.columns)
        v = self.w[self.columns] if keep else part.start()
        if part.evaluate(v) is None:  # the first columns do not span: take every column once
            self.columns = np.arange(len(self.w))
            part, v = self.design, self.w.copy()
        return part, v

    def improve(self, part: Design, weights: Array, tol: float, watch: Watch | None) -> None:
        """In one call of the kernel."""
        if watch is not None:
            watch.columns = len(weights)
        part.solve(weights, tol, watch)

    def settle(self, weights: Array) -> None:
        """Weights on the part's columns, zero elsewhere."""
        self.w[:] = 0.0
        self.w[self.columns] = weights


def _worst_violators(evaluation: Evaluation, room: int, keep: bool) -> Indices:
    """The columns with weight (if `keep`) and, among the others, the `room` ones with the largest q > 1."""
    q = evaluation.q
    held = evaluation.weights > 0 if keep else np.zeros(len(q), dtype=bool)
    others = np.flatnonzero(~held & (q > 1.0)) if keep else np.arange(len(q))
    if len(others) > room:
        others = others[np.argpartition(-q[others], room)[:room]]
    return np.sort(np.concatenate([np.flatnonzero(held), others]))
