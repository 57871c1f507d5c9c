"""Improve the incumbent in parallel with a proof, step by step: kicks, isometry pursuit, recombination, more kicks."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import suppress

import numpy as np

from isopursuit._types import Indices
from isopursuit.clock import Clock
from isopursuit.search.driver import Stage, run_inner
from isopursuit.search.incumbent import Incumbent
from isopursuit.search.pool import Pool
from isopursuit.search.stages.local import LocalSearch

ENDLESS = 10**9  # kicks after the last stage: more than any proof has time for (chosen)


class Improver:
    """Runs stages step by step on a separate incumbent. A step is one descent of a local search, or another stage.

    `step` shares no state with the proof, so it can run in another thread.
    """

    def __init__(self, stages: Sequence[Stage], rng: np.random.Generator) -> None:
        self.stages: list[Stage] = [*stages, LocalSearch(0, ENDLESS, rng, resume=True)]

    def begin(self, pool: Pool, incumbent: Incumbent, clock: Clock) -> None:
        """Start from this incumbent."""
        self.own = Incumbent(pool.ideal, clock=clock, seen=incumbent.seen)
        self.own.offer(incumbent.subset, incumbent.log_loss, incumbent.found_by)
        self.best = self.own.subset, self.own.log_loss  # replaced as a whole, so that other threads can read it
        self.steps = self._steps(pool, clock)

    def offer(self, subset: Indices, log_loss: float) -> None:
        """Continue from this subset if it is better."""
        self.own.offer(subset, log_loss, "proof")

    def step(self) -> None:
        """Take one step and update `best`."""
        next(self.steps, None)
        self.best = self.own.subset, self.own.log_loss

    def end(self, incumbent: Incumbent) -> None:
        """Offer the best subset to the incumbent."""
        with suppress(ValueError):  # after an interrupt a step may still run
            self.steps.close()
        incumbent.offer(*self.best, "local search")
        incumbent.least = min(incumbent.least, self.own.least)
        incumbent.evaluations += self.own.evaluations

    def _steps(self, pool: Pool, clock: Clock) -> Generator[None]:
        for stage in self.stages:
            if not stage.applies(pool, self.own):
                continue
            if isinstance(stage, LocalSearch):
                yield from stage.steps(pool, self.own, clock)
            else:
                run_inner([stage], pool, self.own, clock)
                self.own.stop = None
                yield
