"""The time limit of one call: a public function creates one `Clock`, and everything that it calls uses that clock.

The pursuit, passes over sources and kernels receive its `deadline`, in seconds of `time.perf_counter`. The shares of
the limit are defined in search/settings.py for a search, and in select.py and explain.py for `select`.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from isopursuit.errors import ParameterError
from isopursuit.parameters import MAX_SETTING, is_number

MIN_LIMIT = 1e-3  # seconds; shortest limit passed to another function, since 0 is not a valid limit (guess)


@dataclass(frozen=True)
class Clock:
    """The start of a call and its time limit.

    Attributes
    ----------
    started : float
        The start, in seconds of `time.perf_counter`.
    limit : float or None
        Seconds from `started` to the deadline; None for no limit.
    """

    started: float
    limit: float | None = None

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
        return max(self.deadline - time.perf_counter(), 0.0)

    @property
    def expired(self) -> bool:
        """Whether the deadline has passed."""
        return time.perf_counter() > self.deadline

    @property
    def remaining_limit(self) -> float | None:
        """The remaining seconds as a `time_limit` for another function: at least `MIN_LIMIT`, or None for no limit."""
        return None if self.limit is None else max(self.remaining, MIN_LIMIT)

    def part(self, fraction: float) -> Clock:
        """A clock that starts now and has this fraction of the remaining time."""
        return Clock(time.perf_counter(), None if self.limit is None else fraction * self.remaining)

    def within(self, seconds: float) -> Clock:
        """A clock with the same start that ends this many seconds from now, or earlier if this one does."""
        seconds = min(seconds, self.remaining)
        return self if seconds == math.inf else Clock(self.started, self.seconds + seconds)

    def reserve(self, seconds: float) -> Clock:
        """A clock whose deadline is this many seconds earlier, to reserve time for later work."""
        return self if self.limit is None else Clock(self.started, self.limit - seconds)


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
