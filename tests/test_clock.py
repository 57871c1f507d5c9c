"""The clock: one deadline for everything behind a call."""

import math
import time

import numpy as np
import pytest

from isopursuit._core.clock import MIN_LIMIT, Clock
from isopursuit.errors import ParameterError


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that the clock sees, as a list of one number that a test may change."""
    at = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: at[0])
    return at


def test_time_passes_until_the_deadline(now: list[float]) -> None:
    clock = Clock.of(10)
    assert (clock.started, clock.limit, clock.deadline) == (100.0, 10.0, 110.0)
    now[0] = 104.0
    assert (clock.seconds, clock.remaining, clock.remaining_limit, clock.expired) == (4.0, 6.0, 6.0, False)
    now[0] = 111.0
    assert (clock.seconds, clock.remaining, clock.remaining_limit, clock.expired) == (11.0, 0.0, MIN_LIMIT, True)


def test_without_a_limit_time_is_never_over(now: list[float]) -> None:
    clock = Clock.of(None)
    now[0] = 1e9
    for one in (clock, clock.part(0.5), clock.reserve(3.0)):
        assert (one.limit, one.deadline, one.remaining, one.remaining_limit) == (None, math.inf, math.inf, None)
        assert not one.expired
    assert clock.seconds == 1e9 - 100.0


def test_parts_of_the_time(now: list[float]) -> None:
    clock = Clock.of(10)
    now[0] = 104.0
    part = clock.part(0.5)
    assert (part.started, part.deadline, part.remaining) == (104.0, 107.0, 3.0)
    assert clock.reserve(2.5).deadline == 107.5
    now[0] = 120.0
    assert clock.part(0.5).remaining == 0.0
    assert clock.deadline == 110.0  # nothing changed the clock itself


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf"), 10**400, "60", True, [1.0], 1j])
def test_a_time_limit_is_a_positive_number_of_seconds(limit: object) -> None:
    with pytest.raises(ParameterError, match="is not a positive number of seconds"):
        Clock.of(limit)  # pyright: ignore[reportArgumentType]


def test_numpy_numbers_are_time_limits() -> None:
    assert Clock.of(np.float32(2.5)).limit == 2.5
    assert Clock.of(np.int64(3)).limit == 3.0
