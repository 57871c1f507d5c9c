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
            raise StoppedError(
                f"The time limit was over while {stage} ({share}), before any functions were picked: this would take "
                f"about {max(needed, self.clock.seconds):.0f} s. Pass a longer limit such as "
                f"time_limit={_rounded_up(2 * needed)}, fewer frames by frames=, or fewer atoms by atoms=; shapes made "
                "of torsions take less time than shapes made of angles."
                if stage != "reading"
                else f"The time limit was over while {stage}. Pass a longer time limit by time_limit=."
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


def _rounded_up(seconds: float) -> int:
    """A number of seconds to recommend, rounded up to tens."""
    return 10 * math.ceil(seconds / 10)


def stage_and_time(clock: Clock, stage: str, done: int, total: int) -> str:
    return f"{stage_line(stage, done, total)}  {seconds_text(clock.seconds, clock.limit)}"
