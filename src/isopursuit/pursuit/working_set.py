"""The solver's loop: a small set of columns is solved in the kernel, all columns are screened, violators join.

Small problems are their own working set and take one call. Columns in memory and columns that are streamed
(streamed.py) go through the same loop. Nothing here judges an answer: that is the evaluation over all columns at the
end (design.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from isopursuit._types import Array, Indices, PursuitStatus
from isopursuit.errors import RankError
from isopursuit.pursuit.design import Design
from isopursuit.pursuit.evaluation import Evaluation
from isopursuit.pursuit.inputs import Options
from isopursuit.pursuit.progress import Watch
from isopursuit.pursuit.settings import (
    INTERRUPTIBLE,
    KERNEL_ROUNDS,
    REDUCED,
    SCREENINGS,
    SOLVER_RATE,
    STALE_SCREENINGS,
    UPDATES,
)
from isopursuit.pursuit.starts import plain_start, quick_start, start_from_longest, starting_columns


@dataclass(frozen=True)
class Solved:
    """Weights over all columns, judged, and whether the columns with weight determine them."""

    evaluation: Evaluation
    independent: bool
    status: PursuitStatus


def pursue(design: Design, tol: float, weights: Array | None, options: Options) -> Solved:
    """Minimize f to a relative gap of tol, from the given weights if any; the options say when to stop."""
    callback, clock = options.callback, options.clock
    short = weights is None and design.x.size / SOLVER_RATE > clock.remaining
    w = quick_start(design) if short else None
    w = plain_start(design, weights) if w is None else w
    # a watch on large problems lets Ctrl-C through even without a callback
    watched = callback is not None or clock.limit is not None or design.x.size > INTERRUPTIBLE
    watch = Watch(callback, clock) if watched else None
    independent = solve(design, w, tol, watch, warm=weights is not None)
    stopped = watch is not None and watch.check()
    evaluation = design.evaluate(w)
    for _ in range(UPDATES):
        if stopped or evaluation is None or evaluation.minimized:
            break
        # the coefficients converged and the weights did not: with w_p = ‖B_p‖ = w_p √q_p, f is at most the primal value
        trial = evaluation.weights * np.sqrt(evaluation.q)
        determined = solve(design, trial, tol, watch, warm=True)
        stopped = watch is not None and watch.check()
        again = design.evaluate(trial)
        if again is None or again.gap > max(tol, evaluation.gap):
            break
        evaluation, independent = again, determined
    if evaluation is None:  # rounding left M singular: the start is at least a valid answer
        evaluation = design.evaluate(design.start())
    if evaluation is None:
        raise RankError(
            "X's columns are too nearly dependent for float64: no weights make their second moments regular. "
            "Drop or rescale rows, or use penalty > 0."
        )
    if stopped:
        return Solved(evaluation, independent, "stopped")
    return Solved(evaluation, independent, "optimal" if evaluation.gap <= tol else "stalled")


def solve(design: Design, w: Array, tol: float, watch: Watch | None, *, warm: bool, nested: bool = False) -> bool:
    """Improve w in place, in one call of the kernel or by parts; True when the columns with weight determine it."""
    if watch is not None:
        watch.columns = len(w)
    if watch is not None and watch.clock.expired:
        watch.stopped = True
        return False
    n, P, D = design.shape
    many = starting_columns(D, P) if n == 1 and design.unit_target and not warm else 0
    start = start_from_longest(design, many, watch) if many else None
    if start is not None:
        w[:] = start
        warm = True
    if design.many_rows:
        if design.descend(w, tol, watch, warm=warm) <= tol:
            return False
        warm = True
    if watch is not None and watch.stopped:
        return False
    if len(w) > design.kernel_columns:
        resident = ResidentColumns(design, w, warm=warm)
        independent = solve_by_parts(resident, tol, watch, nested=nested)
        w[:] = 0.0
        w[resident.remaining] = resident.w
        return independent
    return design.solve(w, tol, KERNEL_ROUNDS, watch)


class ScreenedColumns(Protocol):
    """Weights on all columns, in memory or not, of which a few are solved at a time."""

    @property
    def share(self) -> float:
        """Of the gap over all columns, what a part is solved to."""
        ...

    @property
    def finish(self) -> float:
        """Of the tolerance over all columns, what a part is solved to at least."""
        ...

    @property
    def settled(self) -> bool:
        """Whether the parts seen so far decide the rest."""
        ...

    def screen(self) -> float | None:
        """One pass: the gap over all columns; None where M is singular."""
        ...

    def part(self) -> tuple[Design, Array]:
        """The columns with weight and those that violate most, and weights to start from."""
        ...

    def improve(self, part: Design, weights: Array, tol: float, watch: Watch | None) -> bool:
        """Improve the part's weights in place."""
        ...

    def settle(self, weights: Array) -> None:
        """The part's weights become those of the columns."""
        ...


def solve_by_parts(columns: ScreenedColumns, tol: float, watch: Watch | None, *, nested: bool = False) -> bool:
    """Solve, screen, add the worst violators, and again, each time to a small part of the gap over all columns.

    A part that is large itself is solved by parts in turn; only the outer passes are counted.
    """
    independent = False
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
        goal = columns.finish * tol if goal < 3 * tol else goal  # the last factor is not worth a pass of its own
        independent = columns.improve(part, v, goal, watch)
        columns.settle(v)
        if watch is not None and watch.check():
            break
    return independent


class ResidentColumns:
    """All columns are resident. Those that a proof excludes from every optimal solution are no longer screened."""

    settled = False
    finish = 0.3

    def __init__(self, design: Design, w: Array, *, warm: bool) -> None:
        self.design: Design = design
        self.w: Array = w.copy()
        self.warm = warm
        self.room = design.joining
        self.remaining: Indices = np.arange(len(w))
        self.evaluation: Evaluation | None = None
        self.columns = np.arange(0)

    @property
    def share(self) -> float:
        """Less once the columns that matter are found."""
        return 3e-2 if self.evaluation is None or self.evaluation.gap > 1e-4 else 1e-3

    def screen(self) -> float | None:
        """The gap over all columns."""
        self.evaluation = self.design.evaluate(self.w)
        if self.evaluation is None:
            return None
        gap = self.evaluation.gap
        possible = self.w > 0
        possible[self.evaluation.tied] = True
        kept = np.flatnonzero(possible)
        if len(kept) < REDUCED * len(self.w):
            self.design, self.evaluation = self.design.take(kept), self.evaluation.take(kept)
            self.w, self.remaining = self.w[kept], self.remaining[kept]
        return gap

    def part(self) -> tuple[Design, Array]:
        """The columns with weight, and the worst violators."""
        assert self.evaluation is not None
        keep, self.warm = self.warm, True
        self.columns = _worst_violators(self.evaluation, self.room // 2 if keep else self.room, keep)
        part = self.design.take(self.columns)
        v = self.w[self.columns] if keep else part.start()
        if part.evaluate(v) is None:  # the first guess does not span: take every column once
            self.columns = np.arange(len(self.w))
            part, v = self.design, self.w.copy()
        return part, v

    def improve(self, part: Design, weights: Array, tol: float, watch: Watch | None) -> bool:
        """In one call of the kernel."""
        if watch is not None:
            watch.columns = len(weights)
        return part.solve(weights, tol, KERNEL_ROUNDS, watch)

    def settle(self, weights: Array) -> None:
        """Weights on the part's columns, zero elsewhere."""
        self.w[:] = 0.0
        self.w[self.columns] = weights


def _worst_violators(evaluation: Evaluation, room: int, keep: bool) -> Indices:
    """The columns with weight (if they are to be kept) and, of the others, the `room` with the largest q > 1."""
    q = evaluation.q
    held = evaluation.weights > 0 if keep else np.zeros(len(q), dtype=bool)
    others = np.flatnonzero(~held & (q > 1.0)) if keep else np.arange(len(q))
    if len(others) > room:
        others = others[np.argpartition(-q[others], room)[:room]]
    return np.sort(np.concatenate([np.flatnonzero(held), others]))
