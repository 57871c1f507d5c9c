"""Improve the incumbent step by step, in parallel: beside a proof, or with two local searches at once."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from isopursuit._types import Indices
from isopursuit.clock import REPORT_SECONDS, Clock
from isopursuit.search.driver import Stage, run_inner
from isopursuit.search.incumbent import Incumbent, StopReason
from isopursuit.search.pool import Pool
from isopursuit.search.settings import SOURCE_ENTRIES
from isopursuit.search.stages.local import LocalSearch
from isopursuit.threads import on_one_blas_thread

WALKS = 2  # local searches at once (measured on 10 problems: as good as one with all kicks, in 0.57 of its time)


class Improver:
    """Runs stages step by step on a separate incumbent. A step is one descent of a local search, or another stage.

    `step` shares no state with the proof, so it can run in another thread.
    """

    def __init__(self, stages: Sequence[Stage]) -> None:
        self.stages = stages

    def begin(self, pool: Pool, incumbent: Incumbent, clock: Clock) -> None:
        """Start from this incumbent."""
        self.over = False
        # a stage that reports to this incumbent ends when the improver does
        self.own = Incumbent(pool.ideal, clock=clock, report_to=lambda _: self.over, seen=incumbent.seen)
        self.own.offer(incumbent.subset, incumbent.log_loss, incumbent.found_by)
        self.best = self.own.subset, self.own.log_loss  # replaced as a whole, so that other threads can read it
        self.steps = self._steps(pool, clock)

    def offer(self, subset: Indices, log_loss: float) -> None:
        """Continue from this subset if it is better."""
        self.own.offer(subset, log_loss, "proof")

    def step(self) -> bool:
        """Take one step and update `best`; False after the last one."""
        left = next(self.steps, self) is not self
        self.best = self.own.subset, self.own.log_loss
        return left

    def end(self, incumbent: Incumbent) -> None:
        """Offer the best subset to the incumbent."""
        self.over = True
        with suppress(ValueError):  # after an interrupt a step may still run
            self.steps.close()
        self.steps = _none()
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


@dataclass(frozen=True)
class ParallelSearch:
    """Two local searches from the incumbent on two threads. Each has half of the starts and kicks.

    There are two on any machine, and their subsets are compared in rounds, in a fixed order, so the answer does not
    depend on the number of cores.
    """

    starts: int
    kicks: int
    rng: np.random.Generator
    share: float = 1.0

    def applies(self, pool: Pool, incumbent: Incumbent) -> bool:
        """Always."""
        return True

    def run(self, pool: Pool, incumbent: Incumbent, clock: Clock) -> StopReason | None:
        """Offer the best subsets of each round to the incumbent."""
        if pool.count * pool.rows > SOURCE_ENTRIES:  # each search copies the columns
            return LocalSearch(self.starts, self.kicks, self.rng, resume=True).run(pool, incumbent, clock)
        rngs = [np.random.default_rng(self.rng.integers(2**63, size=2)) for _ in range(WALKS)]
        starts, kicks = -(-self.starts // WALKS), -(-self.kicks // WALKS)
        walks = [Improver([LocalSearch(starts, kicks, rng, resume=True)]) for rng in rngs]
        for walk in walks:
            walk.begin(pool, incumbent, clock)
        threads, advance = ThreadPoolExecutor(WALKS), on_one_blas_thread(Improver.step)
        left = stopped = True
        try:
            while left:
                running = [threads.submit(advance, walk) for walk in walks]
                while wait(running, REPORT_SECONDS).not_done:
                    if incumbent.report():
                        return StopReason.INTERRUPTED
                taken = [step.result() for step in running]
                left = any(taken)
                for walk in walks:
                    incumbent.offer(*walk.best, "local search")
                if incumbent.report():
                    return StopReason.INTERRUPTED
            stopped = False
        finally:
            for walk in walks:
                walk.end(incumbent)
            threads.shutdown(wait=not stopped)  # a running descent ends soon
            # the columns of the best subsets of both first
            seen = zip_longest(*(walk.own.seen for walk in walks))
            incumbent.seen = tuple(dict.fromkeys(one for both in seen for one in both if one is not None))
        return None


def _none() -> Generator[None]:
    yield from ()
