"""The solver's loop: solve a small working set in the kernel, screen all columns, add violators.

For a small problem the working set has all columns, and one call is enough. Columns in memory and columns of a source
(streamed.py) use the same loop. `solve_design` goes round its failures by proximal steps and changes of coordinates,
and hands each result to answer.py, which certifies it.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from isopursuit._core.types import Array, Indices
from isopursuit.errors import RankError
from isopursuit.pursuit.answer import judged, nothing
from isopursuit.pursuit.certificate import Caller, certify
from isopursuit.pursuit.design import Design, Evaluation, whitened_at
from isopursuit.pursuit.inputs import Options, Watch
from isopursuit.pursuit.rectangular import RectangularDesign
from isopursuit.results import Pursuit

INTERRUPTIBLE = 100_000  # entries of X from which on a solve can be stopped by Ctrl-C (derived: others take 0.1 s)
SCREENINGS = 100  # most screenings of all columns
STALE_SCREENINGS = 12  # screenings in which the gap does not fall to nine tenths before giving up
SLIGHT_WEIGHT = 1e-7  # share of all weight below which a column may have weight only because M is not exact (guess)
POLISHED_GAP = 1e-14  # gap that is close to rounding (derived: 50 eps)
POLISHING_ROUNDS = 20  # most rounds of the solver for that; its second-order methods need one or two
FIRST_PROX = 1e-3  # μ of the first proximal step, relative to the largest useful λ
LEAST_PROX = 1e-6  # μ of the last proximal step; smaller ones amplify rounding
PROX_FACTOR = 0.3  # of μ if a step did not lower the error tenfold (measured: 0.1 takes 1.8 times on 30 × 569)
PROX_STEPS = 40  # most proximal steps
IDLE_STEPS = 7  # steps that did not lower the error tenfold before giving up (measured: with 3 fewer are proved)
PROX_GAP = 1e-13  # gap to which each proximal step is solved, if rounding allows (derived: 500 eps)
INEXACT_PROX_GAP = 1e-9  # no further proximal steps follow one with a larger gap


def solve_design(design: Design, weights: Array | None, caller: Caller, options: Options) -> Pursuit:
    """Solve the design and certify the answer; weights are in the units of the design.

    If Newton's method stalls, because M is singular at the optimum, proximal steps on the dual follow.
    """
    if design.idle:
        return nothing(design, caller)
    best: Pursuit | None = None
    methods = (_direct, _proximal, _whitened) if design.thin and design.penalty == 0 else (_direct, _proximal)
    for method in (_direct,) if isinstance(design, RectangularDesign) else methods:
        part, evaluation = method(design, weights, options)
        found = judged(part, evaluation, caller, options.tol, stopped=options.watch.stopped)
        better = best is None or (best.status == "stalled" and found.certificate.gap < best.certificate.gap)
        best = found if better or found.status == "optimal" else best
        # if it is solved in the design's coordinates but not in the caller's, more precision than float64 is needed
        rounding = design.given is None and design.penalty == 0 and evaluation.gap <= options.tol
        if options.watch.stopped or ((found.status == "optimal" or rounding) and evaluation.minimized):
            break
    assert best is not None
    return best


def _direct(design: Design, weights: Array | None, options: Options) -> tuple[Design, Evaluation]:
    """Solve directly for the weights; change coordinates if rounding prevents a smaller gap and M is regular."""
    evaluation = pursue(design, options.tol, weights, options.watch)
    if isinstance(design, RectangularDesign) or design.penalty > 0 or design.thin or evaluation.gap <= options.tol:
        return design, evaluation
    return _whitened(design, evaluation.weights, options)


def _whitened(design: Design, weights: Array | None, options: Options) -> tuple[Design, Evaluation]:
    """Solve again in coordinates in which M is the identity at the last weights: rounding prevents a smaller gap."""
    evaluation = None if weights is None else design.evaluate(weights)
    evaluation = evaluation or pursue(design, options.tol, None, options.watch)
    if evaluation.gap > 0.99 or options.watch.stopped:
        return design, evaluation
    try:
        design = whitened_at(design, evaluation.weights)
    except RankError:  # M is singular at these weights
        return design, evaluation
    return design, pursue(design, options.tol, evaluation.weights, options.watch)


def _proximal(design: Design, weights: Array | None, options: Options) -> tuple[Design, Evaluation]:
    """Proximal steps on the dual, each from the previous solution (design.py), until rounding stops them."""
    prox = FIRST_PROX * design.largest_pull
    least = LEAST_PROX / FIRST_PROX * prox
    center: Array | float = 0.0
    best: tuple[float, Design, Evaluation] | None = None
    idle = 0
    for _ in range(PROX_STEPS):
        part = design.step(center, prox)
        evaluation = pursue(part, PROX_GAP, weights, options.watch)
        error = certify(part, evaluation, np.flatnonzero(evaluation.weights)).error
        previous = np.inf if best is None else best[0]
        if best is None or error < best[0]:
            best = error, part, evaluation
        if error > 0.1 * previous or error == np.inf:  # far from feasible, larger steps help more
            prox, idle = max(PROX_FACTOR * prox, least), idle + (error < np.inf)
        if error <= PROX_GAP or options.watch.stopped or idle > IDLE_STEPS or evaluation.gap > INEXACT_PROX_GAP:
            break
        center, weights = part.slope(evaluation), evaluation.weights
    assert best is not None
    return best[1], best[2]


def pursue(design: Design, tol: float, weights: Array | None, watch: Watch) -> Evaluation:
    """Minimize f to a relative gap of tol, from the given weights if any."""
    w = design.start() if weights is None else weights.copy()
    solve(design, w, tol, watch, warm=weights is not None)
    watch.check()
    # if rounding made M singular, the start is at least a valid answer
    evaluation = design.evaluate(w) or design.evaluate(design.start())
    if evaluation is None:
        raise RankError(
            "X's columns are too nearly dependent for float64: no weights make their second moments regular. "
            "Drop or rescale rows, or use penalty > 0."
        )
    return evaluation if watch.stopped or evaluation.gap > tol else _polished(design, evaluation)


def _polished(design: Design, evaluation: Evaluation) -> Evaluation:
    """The weights on the tied columns to full precision if some are slight: the kernel's last step was not exact."""
    tied, weights = evaluation.tied, evaluation.weights
    slight = ((weights > 0) & (weights <= SLIGHT_WEIGHT * weights.sum())).any() or isinstance(design, RectangularDesign)
    if not slight or evaluation.gap <= POLISHED_GAP or len(tied) > design.kernel_columns:
        return evaluation
    part, w = design.take(tied), weights[tied]
    part.solve(w, 0.1 * POLISHED_GAP, rounds=POLISHING_ROUNDS)
    full = np.zeros(len(weights))
    full[tied] = w
    again = design.evaluate(full)
    return evaluation if again is None or again.gap > evaluation.gap else again


def solve(design: Design, w: Array, tol: float, watch: Watch, *, warm: bool, nested: bool = False) -> None:
    """Improve w in place, in one call of the kernel or by parts."""
    watch.columns = len(w)
    watch.stopped = watch.stopped or watch.clock.expired
    if watch.stopped:
        return
    if design.many_rows:
        if design.descend(w, tol, watch, warm=warm) <= tol or watch.stopped:
            return
        warm = True
    if len(w) <= design.kernel_columns:
        # a small problem is solved before anybody could stop it
        design.solve(w, tol, watch if watch.limited or design.x.size > INTERRUPTIBLE else None)
        return
    resident = ResidentColumns(design, w, watch, warm=warm)
    solve_by_parts(resident, tol, watch, nested=nested)
    w[:] = resident.w


class ScreenedColumns(Protocol):
    """Weights on all columns, in memory or not, of which a few are solved at a time."""

    @property
    def settled(self) -> bool:
        """Whether no further columns can matter."""
        ...

    def screen(self) -> float | None:
        """Screen all columns in one pass; returns the gap over all columns, or None if M is singular."""
        ...

    def improve(self, gap: float, tol: float) -> None:
        """Solve the columns with weight and those that violate most; the gap over all columns is `gap`."""
        ...


def solve_by_parts(columns: ScreenedColumns, tol: float, watch: Watch, *, nested: bool = False) -> None:
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
        if gap <= tol or stale > STALE_SCREENINGS or columns.settled or watch.check():
            break
        if not nested:
            watch.passes = passes + 1
        columns.improve(gap, tol)
        if watch.check():
            break


def goal_of_a_part(gap: float, tol: float, *, share: float, finish: float = 0.3) -> float:
    """The gap to which a part is solved: a share of that over all columns, or below the tolerance if that is near.

    A last small factor is not worth another pass.
    """
    goal = max(finish * tol, share * gap)
    return finish * tol if goal < 3 * tol else goal


class ResidentColumns:
    """All columns are resident."""

    settled = False

    def __init__(self, design: Design, w: Array, watch: Watch, *, warm: bool) -> None:
        self.design, self.watch, self.warm = design, watch, warm
        self.w: Array = w.copy()
        self.evaluation: Evaluation | None = None

    def screen(self) -> float | None:
        """The gap over all columns."""
        self.evaluation = self.design.evaluate(self.w)
        return None if self.evaluation is None else self.evaluation.gap

    def improve(self, gap: float, tol: float) -> None:
        """Solve the columns with weight and the worst violators in one call of the kernel."""
        assert self.evaluation is not None
        keep, self.warm = self.warm, True
        columns = _worst_violators(self.evaluation, self.design.joining // 2 if keep else self.design.joining, keep)
        part = self.design.take(columns)
        v = self.w[columns] if keep else part.start()
        if part.evaluate(v) is None:  # the first columns do not span: take every column once
            columns, part, v = np.arange(len(self.w)), self.design, self.w.copy()
        self.watch.columns = len(v)
        # more exactly once the columns that matter are found
        part.solve(v, goal_of_a_part(gap, tol, share=3e-2 if gap > 1e-4 else 1e-3), self.watch)
        self.w[:] = 0.0
        self.w[columns] = v


def _worst_violators(evaluation: Evaluation, room: int, keep: bool) -> Indices:
    """The columns with weight (if `keep`) and, among the others, the `room` ones with the largest q > 1."""
    q = evaluation.q
    held = (evaluation.weights > 0) & keep
    others = np.flatnonzero(~held & ((q > 1.0) | (not keep)))
    if len(others) > room:
        others = others[np.argpartition(-q[others], room)[:room]]
    return np.sort(np.concatenate([np.flatnonzero(held), others]))
