"""What a caller asks of a pursuit: a target, a tolerance and limits, validated once; and the progress that it sees."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

from isopursuit._core.clock import UNLIMITED, Clock
from isopursuit._core.text import seconds_text
from isopursuit._core.types import Array
from isopursuit.data._matrix import LARGEST, as_matrix
from isopursuit.errors import ParameterError, ShapeError


@dataclass(frozen=True)
class PursuitProgress:
    """The state of a pursuit: elapsed time, the gap over the columns being solved, their number, screenings so far.

    `bytes` is how many bytes the passes over a source have read.
    """

    seconds: float
    gap: float
    columns: int
    passes: int
    bytes: int = 0

    def line(self, time_limit: float | None = None) -> str:
        """One line of text."""
        screened = f"{self.columns:,} columns solved, all screened {self.passes} times"
        return f"pursuit, {seconds_text(self.seconds, time_limit)}: gap {self.gap:.1e}  {screened}"


Callback = Callable[[PursuitProgress], bool | None]


class Watch:
    """Calls the user's callback between rounds of the kernel, which stores an exception of the callback in `error`.

    It stops the solver when the clock has expired.
    """

    def __init__(self, callback: Callback | None = None, clock: Clock = UNLIMITED) -> None:
        self.callback, self.clock = callback, clock
        self.began = time.perf_counter()
        self.columns = self.passes = self.bytes = 0
        self.stopped = False
        self.error: BaseException | None = None

    def __call__(self, gap: float) -> bool:
        """Report to the callback; True stops the kernel."""
        if self.callback is not None:
            now = PursuitProgress(time.perf_counter() - self.began, gap, self.columns, self.passes, self.bytes)
            self.stopped = bool(self.callback(now)) or self.stopped
        self.stopped = self.stopped or self.clock.expired
        return self.stopped

    @property
    def limited(self) -> bool:
        """Whether there is a callback or a time limit."""
        return self.callback is not None or self.clock.limit is not None

    def check(self) -> bool:
        """Raise the callback's exception, if any; returns whether it asked to stop."""
        if self.error is not None:
            raise self.error
        return self.stopped


@dataclass(frozen=True)
class Options:
    """The gap to reach, what stops the pursuit before, and for a source the bytes of its resident columns."""

    tol: float
    watch: Watch
    memory: int | None = None


@dataclass(frozen=True)
class Goal:
    """What X times the coefficients must equal: a target (None is the identity), with a penalty λ; or, if `k` is given,
    a projection of rank k.
    """

    target: Array | None = None
    penalty: float = 0.0
    k: int | None = None


def as_options(
    tol: float, time_limit: float | None, callback: Callback | None = None, memory: int | None = None
) -> Options:
    """Validate the options. The time limit starts now."""
    if not isinstance(tol, Real) or not 0 < tol < 1:
        raise ParameterError(f"tol={tol!r} must be a relative gap between 0 and 1, such as 1e-10.")
    return Options(tol, Watch(callback, Clock.of(time_limit)), memory)


def as_penalty(penalty: float) -> float:
    """Validate λ ≥ 0."""
    if not isinstance(penalty, Real) or not 0 <= penalty < LARGEST:
        raise ParameterError(f"penalty={penalty!r} must be a number ≥ 0.")
    return float(penalty)


def as_targets(Y: Any, n: int, many: bool, D: int) -> list[Array] | None:
    """One target (D, r) for each of n points; None for the identity."""
    if Y is None:
        return None
    parts: list[Any] = list(Y) if many else [Y]
    if len(parts) != n:
        raise ShapeError(f"There are {n} matrices but {len(parts)} targets. Pass one target for each.")
    targets = [as_matrix(part, wide=False).values for part in parts]
    if any(target.shape != (D, targets[0].shape[1]) for target in targets):
        raise ShapeError(f"Y must have {D} rows, as X has; got shapes {[t.shape for t in targets]}.")
    return targets
