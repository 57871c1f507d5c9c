"""The stages of `find_coordinates`: they report progress, and stop before the time limit if they would exceed it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from isopursuit._core.clock import Clock
from isopursuit._core.progress import SEARCHING, stage_line
from isopursuit._core.text import USEFUL, loss_text, seconds_text, within
from isopursuit._core.types import Labels
from isopursuit.errors import StoppedError
from isopursuit.search.incumbent import SearchProgress

SURE = 1.0  # seconds of a stage after which its speed is taken for granted (chosen)
Watch = Callable[[str, int, int], Any]  # stage, done, total; True stops


@dataclass(frozen=True)
class Stages:
    """Reports progress, and stops the work before the search if the callback or the clock requires it."""

    clock: Clock
    callback: Watch | None
    began: dict[str, float] = field(default_factory=dict)  # when each unfinished stage began

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Report a stage before the search; raise `StoppedError` to stop, and if the stage would exceed the limit."""
        began = self.began.setdefault(stage, time.perf_counter())
        share = f"{done / max(total, 1):.0%} done"
        if self.callback is not None and self.callback(stage, done, total) is True:
            raise StoppedError(f"Stopped while {stage} ({share}), before any functions were picked.")
        spent = time.perf_counter() - began
        needed = self.clock.seconds + spent * (total / max(done, 1) - 1)  # for the whole call up to here
        if done == total:
            del self.began[stage]
        if self.clock.expired or (self.clock.limit is not None and spent > SURE and needed > self.clock.limit):
            limit = 10 * math.ceil(2 * needed / 10)
            raise StoppedError(
                f"The time limit is too short: {stage} ({share}) would take until {needed:.0f} s, before any functions "
                f"are picked. Pass a longer limit such as time_limit={limit}, fewer points by frames=, or fewer atoms "
                "by atoms=."
            )

    def redrawing(self, done: int, total: int) -> bool:
        """Report the redraws after a search; True to stop."""
        return self.callback is not None and self.callback("drawing points again", done, total) is True

    def searching(self, share: float, labels: Labels, now: SearchProgress) -> bool:
        """Report a running search; True to stop it. `share` is the share of one point in the loss.

        If the callback has a method `picked`, it receives the labels of the best functions so far.
        """
        if self.callback is None:
            return False
        picked = getattr(self.callback, "picked", None)
        if picked is not None:
            picked([labels[i] for i in now.indices.tolist()])
        gap = f", {within(now.gap)}" if now.gap <= USEFUL else ""
        stage = f"{SEARCHING}, best loss per point {loss_text(share * now.incumbent, 4)}{gap}"
        total = 0 if self.clock.limit is None else round(self.clock.limit)
        return self.callback(stage, round(self.clock.seconds), total) is True


def stage_and_time(clock: Clock, stage: str, done: int, total: int) -> str:
    """A line about a stage, with the time that has passed."""
    return f"{stage_line(stage, done, total)}  {seconds_text(clock.seconds, clock.limit)}"
