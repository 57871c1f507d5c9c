"""The time limit of one call: a function makes one `Clock` when it begins, and everything behind it asks that clock.

The pursuit, passes over sources and kernels are given its `deadline`, in seconds of `time.perf_counter`. Shares of the
limit are in search/settings.py, for a search, and in select.py and explain.py, for `select`.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from isopursuit.errors import ParameterError
from isopursuit.parameters import MAX_SETTING, is_number

MIN_LIMIT = 1e-3  # seconds; the shortest limit passed on to a function, which refuses 0 (guess)


@dataclass(frozen=True)
class Clock:
    """When a call began and how long it may take.

    Attributes
    ----------
    started : float
        By `time.perf_counter`, in seconds.
    limit : float or None
        Seconds after `started` at which the time is over; None for no limit.
    """

    started: float
    limit: float | None = None

    @classmethod
    def of(cls, time_limit: float | None) -> Clock:
        """A clock that starts now. Raises `ParameterError` unless the limit is None or a positive number of seconds."""
        return cls(time.perf_counter(), as_time_limit(time_limit))

    @property
    def deadline(self) -> float:
        """When the time is over, by `time.perf_counter`; infinite without a limit."""
        return math.inf if self.limit is None else self.started + self.limit

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.started

    @property
    def remaining(self) -> float:
        """Seconds before the deadline, at least 0; infinite without a limit."""
        return max(self.deadline - time.perf_counter(), 0.0)

    @property
    def expired(self) -> bool:
        """Whether the deadline has passed."""
        return time.perf_counter() > self.deadline

    @property
    def remaining_limit(self) -> float | None:
        """The remaining seconds as the `time_limit` of another function: at least `MIN_LIMIT`; None without a limit."""
        return None if self.limit is None else max(self.remaining, MIN_LIMIT)

    def part(self, fraction: float) -> Clock:
        """A clock that starts now and has this fraction of the remaining time."""
        return Clock(time.perf_counter(), None if self.limit is None else fraction * self.remaining)

    def within(self, seconds: float) -> Clock:
        """The clock that began with this one and ends so many seconds from now, or with it if that is sooner."""
        return Clock(self.started, self.seconds + min(seconds, self.remaining))

    def reserve(self, seconds: float) -> Clock:
        """The clock whose deadline is so many seconds before this one's, so that later work has time."""
        return self if self.limit is None else Clock(self.started, self.limit - seconds)


UNLIMITED = Clock(time.perf_counter())


def as_time_limit(time_limit: float | None) -> float | None:
    """Seconds that a function may take, or None for no limit."""
    if time_limit is None:
        return None
    if not is_number(time_limit) or not 0 < time_limit < MAX_SETTING:
        raise ParameterError(
            f"time_limit={time_limit!r} is not a positive number of seconds. Pass one such as 60, or None."
        )
    return float(time_limit)
