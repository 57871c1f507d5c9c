"""The solver's loop: solve a small working set in the kernel, screen all columns, add violators.

For a small problem the working set has all columns, and one call is enough. Columns in memory and columns of a source
(streamed.py) use the same loop. It does not certify an answer: the evaluation over all columns does (design.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from isopursuit._core.types import Array, Indices, PursuitStatus
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
    """Weights over all columns with their evaluation, and whether the columns with weight determine them."""

    evaluation: Evaluation
    independent: bool
    status: PursuitStatus


def pursue(design: Design, tol: float, weights: Array | None, options: Options) -> Solved:
    """Minimize f to a relative gap of tol, from the given weights if any; the options say when to stop."""
    callback, clock = options.callback, options.clock
    short = weights is None and design.x.size / SOLVER_RATE > clock.remaining
    w = quick_start(design) if short else None
    w = plain_start(design, weights) if w is None else w
    # on large problems a watch makes Ctrl-C possible even without a callback
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
    if evaluation is None:  # rounding made M singular: the start is at least a valid answer
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
    """Improve w in place, in one call of the kernel or by parts; True if the columns with weight determine it."""
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

    def improve(self, part: Design, weights: Array, tol: float, watch: Watch | None) -> bool:
        """Improve the part's weights in place."""
        ...

    def settle(self, weights: Array) -> None:
        """The part's weights become those of the columns."""
        ...


def solve_by_parts(columns: ScreenedColumns, tol: float, watch: Watch | None, *, nested: bool = False) -> bool:
    """Solve a part to a small share of the gap over all columns, screen, add the worst violators, and repeat.

    A large part is itself solved by parts; only the outer passes are counted.
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
        goal = columns.finish * tol if goal < 3 * tol else goal  # a last small factor is not worth another pass
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
        """Smaller once the columns that matter are found."""
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
        if part.evaluate(v) is None:  # the first columns do not span: take every column once
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
    """The columns with weight (if `keep`) and, among the others, the `room` ones with the largest q > 1."""
    q = evaluation.q
    held = evaluation.weights > 0 if keep else np.zeros(len(q), dtype=bool)
    others = np.flatnonzero(~held & (q > 1.0)) if keep else np.arange(len(q))
    if len(others) > room:
        others = others[np.argpartition(-q[others], room)[:room]]
    return np.sort(np.concatenate([np.flatnonzero(held), others]))
