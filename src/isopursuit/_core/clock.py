"""The time limit of one call: a public function creates one `Clock`, and everything that it calls uses that clock.

The pursuit, passes over sources and kernels receive its `deadline`, in seconds of `time.perf_counter`. Shares of
the limit are constants beside the stage that they bound, `…_SHARE`, and in search/settings.py.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import TypeVar

from isopursuit._core.options import MAX_SETTING, is_number
from isopursuit._core.threads import on_one_blas_thread
from isopursuit.errors import ParameterError

T = TypeVar("T")

REPORT_SECONDS = 0.1  # least time between two calls of a callback (chosen: fast enough for the eye)
MIN_LIMIT = 1e-3  # seconds; shortest limit passed on, since 0 is no valid limit (chosen: too short for any work)


class Reporter:
    """Calls `report` in the thread that made it; once that returns True, the work must stop."""

    def __init__(self, report: Callable[[], bool]) -> None:
        self.report, self.thread, self.stopped = report, threading.get_ident(), False

    def __call__(self) -> bool:
        """Whether the work must stop."""
        if not self.stopped and threading.get_ident() == self.thread:
            self.stopped = self.report()
        return self.stopped


@dataclass(frozen=True)
class Clock:
    """The start of a call and its time limit.

    Loops that look at the clock also report to the caller: see `reporting`.

    Attributes
    ----------
    started : float
        The start, in seconds of `time.perf_counter`.
    limit : float or None
        Seconds from `started` to the deadline; None for no limit.
    """

    started: float
    limit: float | None = None
    reporter: Reporter | None = field(default=None, compare=False, repr=False)
    presses: list[float] = field(default_factory=list[float], compare=False, repr=False)  # shared by clocks of one call

    @classmethod
    def of(cls, time_limit: float | None) -> Clock:
        """A clock that starts now. Raises `ParameterError` unless the limit is None or a positive number of seconds."""
        return cls(time.perf_counter(), as_time_limit(time_limit))

    @property
    def deadline(self) -> float:
        """The end of the time, in seconds of `time.perf_counter`; infinite without a limit."""
        return math.inf if self.limit is None else self.started + self.limit

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.started

    @property
    def remaining(self) -> float:
        """Seconds before the deadline, at least 0; infinite without a limit."""
        if self.reporter is not None and self.reporter.stopped:
            return 0.0
        return max(self.deadline - time.perf_counter(), 0.0)

    @property
    def expired(self) -> bool:
        """Whether the deadline has passed, or the caller has ended the work."""
        return (self.reporter is not None and self.reporter()) or time.perf_counter() > self.deadline

    @property
    def remaining_limit(self) -> float | None:
        """The remaining seconds as a `time_limit` for another function: at least `MIN_LIMIT`, or None for no limit."""
        return None if self.limit is None else max(self.remaining, MIN_LIMIT)

    def part(self, fraction: float) -> Clock:
        """A clock that starts now and has this fraction of the remaining time."""
        limit = None if self.limit is None else fraction * self.remaining
        return replace(self, started=time.perf_counter(), limit=limit)

    def within(self, seconds: float) -> Clock:
        """A clock with the same start that ends this many seconds from now, or earlier if this one does."""
        seconds = min(seconds, self.remaining)
        return self if seconds == math.inf else replace(self, limit=self.seconds + seconds)

    def reserve(self, seconds: float) -> Clock:
        """A clock whose deadline is this many seconds earlier, to reserve time for later work."""
        return self if self.limit is None else replace(self, limit=self.limit - seconds)

    def reporting(self, report: Callable[[], bool]) -> Clock:
        """The same clock, which calls `report` whenever this thread looks at it. The clock expires if that is True."""
        return replace(self, reporter=Reporter(report))

    def pressed(self) -> None:
        """Count a Ctrl-C that ends the work of this call but keeps the answer known; at the second one, raise it."""
        self.presses.append(self.seconds)
        if len(self.presses) > 1:
            raise KeyboardInterrupt

    @property
    def silent(self) -> Clock:
        """The same clock without reports, for work that reports itself."""
        return replace(self, reporter=None)

    def waiting(self, work: Callable[[], T]) -> T:
        """The result of work that does not report itself: it runs in another thread while this one reports."""
        if self.reporter is None:
            return work()
        with ThreadPoolExecutor(1) as threads:
            future = threads.submit(on_one_blas_thread(work))
            try:
                while wait([future], REPORT_SECONDS).not_done:
                    self.reporter()
            except BaseException:
                self.reporter.stopped = True  # work that looks at this clock ends
                raise
            return future.result()


UNLIMITED = Clock(time.perf_counter())
EXPIRED = Clock(-math.inf, 0.0)


def as_time_limit(time_limit: float | None) -> float | None:
    """A time limit in seconds, or None for no limit."""
    if time_limit is None:
        return None
    if not is_number(time_limit) or not 0 < time_limit < MAX_SETTING:
        raise ParameterError(
            f"time_limit={time_limit!r} is not a positive number of seconds. Pass one such as 60, or None."
        )
    return float(time_limit)
