"""The solver's loop: a small set of columns is solved in the kernel, all columns are screened, violators join.

Small problems are their own working set and take one call. Columns in memory and columns that are streamed
(streamed.py) go through the same loop. Nothing here judges an answer: that is the evaluation over all columns at the
end (design.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from isopursuit.errors import RankError
from isopursuit.pursuit.design import Design, Evaluation
from isopursuit.pursuit.truncated import SAMPLE, descend

Array = NDArray[np.float64]
Status = Literal["optimal", "stalled", "stopped"]

SMALL = 4096  # columns up to which the kernel takes the whole problem
WATCHED = 100_000  # entries from which a solve may take long enough to be interrupted
MANY_ROWS = 128  # from which the solver for many rows is the first to try (truncated.py)
ENOUGH = 1500  # columns up to which the kernel is as fast
SPEED = 2e7  # entries a second, at least, that a solver gets through
ROUNDS = 300  # rounds of sweeps the kernel may take on one working set
PASSES = 100  # screenings of all columns
UPDATES = 3  # multiplicative updates of weights whose coefficients converged before they did
PATIENCE = 12  # screenings without progress before giving up


@dataclass(frozen=True)
class PursuitProgress:
    """Where a pursuit stands: elapsed time, the gap over the columns at hand, how many those are, screenings so far.

    `bytes` is what the passes over a source have read.
    """

    seconds: float
    gap: float
    columns: int
    passes: int
    bytes: int = 0


@dataclass(frozen=True)
class Solved:
    """Weights over all columns, judged, and whether the columns with weight determine them."""

    evaluation: Evaluation
    independent: bool
    status: Status


class Watch:
    """Calls the user's callback between rounds of the kernel, which keeps in `error` what that raises.

    It stops the solver at the deadline, by `time.perf_counter`.
    """

    def __init__(self, callback: Callable[[PursuitProgress], bool | None] | None, deadline: float = np.inf) -> None:
        self.callback, self.deadline = callback, deadline
        self.began = time.perf_counter()
        self.columns = self.passes = self.bytes = 0
        self.stopped = False
        self.error: BaseException | None = None

    def __call__(self, gap: float) -> bool:
        """Tell the callback; True stops the kernel."""
        now = PursuitProgress(time.perf_counter() - self.began, gap, self.columns, self.passes, self.bytes)
        asked = self.callback is not None and bool(self.callback(now))
        self.stopped = asked or self.stopped or time.perf_counter() > self.deadline
        return self.stopped

    def check(self) -> bool:
        """Raise what the callback raised; whether it asked to stop."""
        if self.error is not None:
            raise self.error
        return self.stopped


def pursue(
    design: Design,
    tol: float,
    weights: Array | None,
    callback: Callable[[PursuitProgress], bool | None] | None,
    deadline: float = np.inf,
) -> Solved:
    """Minimize f to a relative gap of tol, from the given weights if any."""
    w = _quick_start(design) if weights is None and design.x.size / SPEED > deadline - time.perf_counter() else None
    w = _starting(design, weights) if w is None else w
    # a watch on large problems lets Ctrl-C through even without a callback
    watched = callback is not None or deadline < np.inf or design.x.size > WATCHED
    watch = Watch(callback, deadline) if watched else None
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
    if evaluation is None:  # rounding left M singular: the start is at least an honest answer
        evaluation = design.evaluate(design.start())
    if evaluation is None:
        raise RankError(
            "X's columns are too nearly dependent for float64: no weights make their second moments regular. "
            "Drop or rescale rows, or use a ridge."
        )
    if stopped:
        return Solved(evaluation, independent, "stopped")
    return Solved(evaluation, independent, "optimal" if evaluation.gap <= tol else "stalled")


def _quick_start(design: Design) -> Array | None:
    """Weights on a few columns, spread evenly, where there is no time for more; None where they do not span."""
    n, P, D = design.shape
    w = design.start()
    w[np.arange(P) % max(P // (SAMPLE * n * D), 1) > 0] = 0.0
    few = np.flatnonzero(w)
    return None if design.take(few).evaluate(w[few]) is None else w


def _starting(design: Design, weights: Array | None) -> Array:
    """The caller's weights where they make M regular, blended with the plain start where not."""
    plain = design.start()
    if weights is None:
        return plain
    w = weights.copy()
    if design.evaluate(w) is None:
        total = float(w.sum())
        w = 0.9 * w * (float(plain.sum()) / total if total > 0 else 0.0) + 0.1 * plain
    return w


def solve(design: Design, w: Array, tol: float, watch: Watch | None, *, warm: bool, nested: bool = False) -> bool:
    """Improve w in place, in one call of the kernel or by parts; True when the columns with weight determine it."""
    if watch is not None:
        watch.columns = len(w)
    if watch is not None and time.perf_counter() > watch.deadline:
        watch.stopped = True
        return False
    if many_rows(design):
        if descend_on(design, w, tol, watch, warm=warm) <= tol:
            return False
        warm = True
    if watch is not None and watch.stopped:
        return False
    if len(w) > SMALL:
        return solve_by_parts(Whole(design, w, warm=warm), tol, watch, nested=nested)
    return design.solve(w, tol, ROUNDS, watch)


def many_rows(design: Design) -> bool:
    """Whether products of all columns are cheaper than steps on one at a time."""
    n, m, D = design.shape
    return n == 1 and m > ENOUGH and D >= MANY_ROWS


def descend_on(design: Design, w: Array, tol: float, watch: Watch | None, *, warm: bool) -> float:
    """Improve w in place by the solver for many rows; the gap that it reached."""
    y = None if design.aim is None else design.aim[0]
    deadline = np.inf if watch is None else watch.deadline
    return descend(design.at_hand, design.x[0], y, design.ridge + design.prox, w, tol, watch, warm, deadline)


class Field(Protocol):
    """Weights on all columns, in memory or not, of which a few are solved at a time."""

    @property
    def share(self) -> float:
        """Of the gap over all columns, what a part is solved to."""
        ...

    @property
    def settled(self) -> bool:
        """Whether the parts seen so far decide the rest."""
        ...

    def screen(self) -> float | None:
        """One pass: the gap over all columns; None where M is singular."""
        ...

    def part(self) -> tuple[Design, Array]:
        """The columns with weight and those most wanted, and weights to start from."""
        ...

    def improve(self, part: Design, weights: Array, tol: float, watch: Watch | None) -> bool:
        """Improve the part's weights in place."""
        ...

    def settle(self, weights: Array) -> None:
        """The part's weights become those of the field."""
        ...


def solve_by_parts(field: Field, tol: float, watch: Watch | None, *, nested: bool = False) -> bool:
    """Solve, screen, add the worst violators, and again, each time to a small part of the gap over all columns.

    A part that is large itself is solved by parts in turn; only the outer passes are counted.
    """
    independent = False
    best = np.inf
    stale = 0
    for passes in range(PASSES):
        gap = field.screen()
        if gap is None:
            break
        stale = 0 if gap < 0.9 * best else stale + 1
        best = min(best, gap)
        if gap <= tol or stale > PATIENCE or field.settled or (watch is not None and watch.check()):
            break
        part, v = field.part()
        if watch is not None and not nested:
            watch.passes = passes + 1
        independent = field.improve(part, v, max(0.3 * tol, field.share * gap), watch)
        field.settle(v)
        if watch is not None and watch.check():
            break
    return independent


class Whole:
    """All columns in memory."""

    settled = False

    def __init__(self, design: Design, w: Array, *, warm: bool) -> None:
        self.design, self.w, self.warm = design, w, warm
        D = design.shape[2]
        self.room = max(512, D * (D + 1) // 2)
        self.evaluation: Evaluation | None = None
        self.columns = np.arange(0)

    @property
    def share(self) -> float:
        """Less once the columns that matter are found."""
        return 3e-2 if self.evaluation is None or self.evaluation.gap > 1e-4 else 1e-3

    def screen(self) -> float | None:
        """The gap over all columns."""
        self.evaluation = self.design.evaluate(self.w)
        return None if self.evaluation is None else self.evaluation.gap

    def part(self) -> tuple[Design, Array]:
        """The columns with weight, and the worst violators."""
        assert self.evaluation is not None
        keep, self.warm = self.warm, True
        self.columns = _most_wanted(self.evaluation, max(256, self.room // 2) if keep else self.room, keep)
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
        return part.solve(weights, tol, ROUNDS, watch)

    def settle(self, weights: Array) -> None:
        """Weights on the part's columns, zero elsewhere."""
        self.w[:] = 0.0
        self.w[self.columns] = weights


def _most_wanted(evaluation: Evaluation, room: int, keep: bool) -> NDArray[np.intp]:
    """The columns with weight (if they are to be kept) and, of the others, the `room` with the largest q > 1."""
    q = evaluation.q
    held = evaluation.weights > 0 if keep else np.zeros(len(q), dtype=bool)
    others = np.flatnonzero(~held & (q > 1.0)) if keep else np.arange(len(q))
    if len(others) > room:
        others = others[np.argpartition(-q[others], room)[:room]]
    return np.sort(np.concatenate([np.flatnonzero(held), others]))
