"""Run a schedule of stages until the gap is closed, or time, nodes or memory run out.

A stage does one thing to the incumbent: it improves the subset, or raises the bound, or both. Exact and exchange search
are schedules of the same stages. A stage that needs a smaller search calls `run_inner` on a smaller pool.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from isopursuit.clock import Clock
from isopursuit.search.incumbent import Incumbent, StopReason
from isopursuit.search.pool import Pool


class Stage(Protocol):
    """One step of a search.

    `share` is the share of the remaining time that the stage may use. `applies` says whether the stage is useful for
    this pool. `run` reports each result to the incumbent at once, so nothing is lost if it is interrupted. It returns
    None, or the reason why the whole search must end.
    """

    @property
    def share(self) -> float:
        """The share of the remaining time that the stage may use."""
        ...

    def applies(self, pool: Pool, incumbent: Incumbent) -> bool:
        """Whether the stage is useful for this pool."""
        ...

    def run(self, pool: Pool, incumbent: Incumbent, clock: Clock) -> StopReason | None:
        """Improve the incumbent."""
        ...


def run(stages: Iterable[Stage], pool: Pool, incumbent: Incumbent, clock: Clock) -> None:
    """Run the stages in turn. Ctrl-C ends the search and returns the best subset so far, if there is one."""
    try:
        run_inner(stages, pool, incumbent, clock)
    except KeyboardInterrupt:
        if len(incumbent.subset) == 0:
            raise
        incumbent.stop = StopReason.INTERRUPTED


def run_inner(stages: Iterable[Stage], pool: Pool, incumbent: Incumbent, clock: Clock) -> None:
    """As `run`, for a search inside a stage; Ctrl-C ends the outer search."""
    for stage in stages:
        if incumbent.closed or incumbent.stop is not None:
            return
        if len(incumbent.subset) and clock.expired:
            incumbent.stop = StopReason.INTERRUPTED if incumbent.asked else StopReason.TIME
            return
        if stage.applies(pool, incumbent):
            reason = stage.run(pool, incumbent, clock if stage.share == 1 else clock.part(stage.share))
            # a stage whose share of the time is over does not end the search
            over = reason is StopReason.TIME and stage.share < 1 and not clock.expired
            incumbent.stop = None if over else reason
            if incumbent.asked:  # without a subset the next stage finds one, with an expired clock
                incumbent.stop = StopReason.INTERRUPTED if len(incumbent.subset) else None
