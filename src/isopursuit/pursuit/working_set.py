"""The solver's loop: a small set of columns is solved in the kernel, all columns are screened, violators join.

Small problems are their own working set and take one call. Nothing here judges an answer: that is the evaluation
over all columns at the end (design.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from isopursuit.errors import RankError
from isopursuit.pursuit.design import Design, Evaluation

Array = NDArray[np.float64]
Status = Literal["optimal", "stalled", "stopped"]

SMALL = 4096  # columns up to which the kernel takes the whole problem
WATCHED = 100_000  # entries from which a solve may take long enough to be interrupted
ROUNDS = 300  # rounds of sweeps the kernel may take on one working set
PASSES = 100  # screenings of all columns
PATIENCE = 12  # screenings without progress before giving up


@dataclass(frozen=True)
class PursuitProgress:
    """Where a pursuit stands: elapsed time, the gap over the columns at hand, how many those are, screenings so far."""

    seconds: float
    gap: float
    columns: int
    passes: int


@dataclass(frozen=True)
class Solved:
    """Weights over all columns, judged, and whether the columns with weight determine them."""

    evaluation: Evaluation
    independent: bool
    status: Status


class Watch:
    """Calls the user's callback between rounds of the kernel, which keeps in `error` what that raises."""

    def __init__(self, callback: Callable[[PursuitProgress], bool | None]) -> None:
        self.callback = callback
        self.began = time.perf_counter()
        self.columns = self.passes = 0
        self.stopped = False
        self.error: BaseException | None = None

    def __call__(self, gap: float) -> bool:
        """Tell the callback; True stops the kernel."""
        now = PursuitProgress(time.perf_counter() - self.began, gap, self.columns, self.passes)
        self.stopped = bool(self.callback(now)) or self.stopped
        return self.stopped

    def check(self) -> bool:
        """Raise what the callback raised; whether it asked to stop."""
        if self.error is not None:
            raise self.error
        return self.stopped


def pursue(
    design: Design, tol: float, weights: Array | None, callback: Callable[[PursuitProgress], bool | None] | None
) -> Solved:
    """Minimize f to a relative gap of tol, from the given weights if any."""
    P = design.shape[1]
    w = _starting(design, weights)
    # a watch on large problems lets Ctrl-C through even without a callback
    watch = Watch(callback or (lambda _: None)) if callback is not None or design.x.size > WATCHED else None
    if P <= SMALL:
        independent = _solve_all(design, w, tol, watch)
    else:
        independent = _solve_by_parts(design, w, tol, watch, warm=weights is not None)
    stopped = watch is not None and watch.check()
    evaluation = design.evaluate(w)
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


def _solve_all(design: Design, w: Array, tol: float, watch: Watch | None) -> bool:
    if watch is not None:
        watch.columns = len(w)
    return design.solve(w, tol, ROUNDS, watch)


def _solve_by_parts(design: Design, w: Array, tol: float, watch: Watch | None, *, warm: bool) -> bool:
    """Solve, screen, add the worst violators, and again, each time to a small part of the gap over all columns."""
    _, P, D = design.shape
    room = max(512, D * (D + 1) // 2)
    independent = False
    best = np.inf
    stale = 0
    for passes in range(PASSES):
        evaluation = design.evaluate(w)
        if evaluation is None:
            break
        gap = evaluation.gap
        stale = 0 if gap < 0.9 * best else stale + 1
        best = min(best, gap)
        if gap <= tol or stale > PATIENCE:
            break
        keep = warm or passes > 0
        columns = _most_wanted(evaluation, max(256, room // 2) if keep else room, keep)
        part = design.take(columns)
        v = w[columns] if keep else part.start()
        if part.evaluate(v) is None:  # the first guess does not span: take every column once
            columns = np.arange(P)
            part, v = design, w.copy()
        if watch is not None:
            watch.columns, watch.passes = len(columns), passes + 1
        target = max(0.3 * tol, (3e-2 if gap > 1e-4 else 1e-3) * gap)
        independent = part.solve(v, target, ROUNDS, watch)
        w[:] = 0.0
        w[columns] = v
        if watch is not None and watch.check():
            break
    return independent


def _most_wanted(evaluation: Evaluation, room: int, keep: bool) -> NDArray[np.intp]:
    """The columns with weight (if they are to be kept) and, of the others, the `room` with the largest q > 1."""
    q = evaluation.q
    held = evaluation.weights > 0 if keep else np.zeros(len(q), dtype=bool)
    others = np.flatnonzero(~held & (q > 1.0)) if keep else np.arange(len(q))
    if len(others) > room:
        others = others[np.argpartition(-q[others], room)[:room]]
    return np.sort(np.concatenate([np.flatnonzero(held), others]))
