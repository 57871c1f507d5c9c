"""Progress of a pursuit, and what stops it: the caller's callback and the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from isopursuit._core.clock import Clock
from isopursuit._core.text import seconds_text


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

    def __init__(self, callback: Callback | None, clock: Clock) -> None:
        self.callback, self.clock = callback, clock
        self.began = time.perf_counter()
        self.columns = self.passes = self.bytes = 0
        self.stopped = False
        self.error: BaseException | None = None

    def __call__(self, gap: float) -> bool:
        """Report to the callback; True stops the kernel."""
        now = PursuitProgress(time.perf_counter() - self.began, gap, self.columns, self.passes, self.bytes)
        asked = self.callback is not None and bool(self.callback(now))
        self.stopped = asked or self.stopped or self.clock.expired
        return self.stopped

    def check(self) -> bool:
        """Raise the callback's exception, if any; returns whether it asked to stop."""
        if self.error is not None:
            raise self.error
        return self.stopped
