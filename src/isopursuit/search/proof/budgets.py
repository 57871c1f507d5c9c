"""How work is divided: enumeration or branching at a node, and the proof or the search for a better subset.

Both decisions count work, not seconds, so that a search is reproducible.
"""

from __future__ import annotations

import numpy as np

from isopursuit.search.proof._node import MOST_MISSING, Outcome

BOUND_TESTS = 60_000  # tests of an enumeration that take as long as the bound of a node (measured: 3 ns and 0.2 ms)
TRIAL_SHARE = 0.1  # share of all work for enumerations if earlier ones have mostly failed (guess)
MOST_TESTS = 2**20  # most tests of one enumeration (derived: about 3 ms, so that the bound rises steadily)
NO_LIMIT = 2**62
KEPT = 0.9  # weight of earlier gains in their running mean (guess)
HOPE = 0.01  # share of the gap that the first step and the first round are expected to close (guess)


class Budgets:
    """The most tests of an enumeration, for each number m of missing columns.

    The alternative is to branch. If a share p of the nodes with m missing columns stays open, one of them leads to
    1/(1 − p) nodes with m missing columns, each bounded at the cost of BOUND_TESTS, and to p/(1 − p) nodes with m − 1.
    An enumeration is given up once it has cost as much as branching would, so the work is at most twice that of the
    cheaper way. If enumerations have mostly failed, or have cost more than branching, they get only a share of all
    work.
    """

    def __init__(self, k: int) -> None:
        self.bounded, self.left_open = np.ones(k + 1), np.full(k + 1, 0.5)
        self.tried, self.finished, self.tests = np.ones(k + 1), np.ones(k + 1), np.zeros(k + 1)
        self.doubtful = 0  # tests of enumerations that were tried although earlier ones had failed

    def record(self, m: int, outcome: Outcome) -> None:
        """Count a node and, if it was enumerated, its tests."""
        self.bounded[m] += 1
        self.left_open[m] += outcome.tests > 0 or not outcome.closed
        if outcome.tests > 0:
            self.tried[m] += 1
            self.finished[m] += outcome.closed
            self.tests[m] += outcome.tests

    def for_nodes(self, missing: list[int]) -> list[int]:
        """The most tests for each of the next nodes."""
        limits, fails = self._limits()
        spare = TRIAL_SHARE * (BOUND_TESTS * self.bounded.sum() + self.tests.sum()) - self.doubtful
        budgets: list[int] = []
        for m in missing:
            budget = limits[m]
            if fails[m]:
                budget = budget if budget <= spare else 0
                spare -= budget
                self.doubtful += budget
            budgets.append(budget)
        return budgets

    def _limits(self) -> tuple[list[int], list[bool]]:
        """For each number of missing columns: the cost of branching, and whether enumerations have cost more."""
        limits, fails, below = [NO_LIMIT], [False], 0.0
        for m in range(1, len(self.tests)):
            share = min(self.left_open[m] / self.bounded[m], 0.99)
            branched = (BOUND_TESTS + share * below) / (1 - share)
            enumerated = self.tests[m] / self.finished[m]
            fails.append(m > 2 and bool(self.finished[m] < self.tried[m] / 2 or enumerated > branched))
            below = branched if fails[m] else min(branched, BOUND_TESTS + share * enumerated)
            limits.append(NO_LIMIT if m <= 2 else min(int(branched), MOST_TESTS) if m <= MOST_MISSING else 0)
        return limits, fails


class Contest:
    """Decides from recent gains whether a step towards a better subset runs in parallel with the next round of nodes.

    A gain is the share of the gap that is closed. The frequency of steps depends on their share in the expected gain of
    both. The expected gain of a round is the running mean of its gains. That of a step is the running mean plus
    HOPE / (1 + n) after n steps without a gain (Laplace's rule of succession). So steps never stop, and they are
    frequent if the bound hardly rises.
    """

    def __init__(self) -> None:
        self.by_bound, self.by_steps = HOPE, 0.0
        self.idle = 0  # steps since the last gain
        self.credit = 0.0  # a proof that ends in a round or two waits for no step

    def due(self) -> bool:
        """Whether a step runs in parallel with the next round."""
        if self.credit < 1:
            step = self.by_steps + HOPE / (1 + self.idle)
            self.credit += step / (step + self.by_bound)
            return False
        self.credit -= 1
        return True

    def record_round(self, before: float, bound: float, loss: float) -> None:
        """Record the bound before and after a round of nodes."""
        self.by_bound = KEPT * self.by_bound + (1 - KEPT) * _closed(loss - before, bound - before)

    def record_step(self, bound: float, before: float, loss: float) -> None:
        """Record the loss before and after a step."""
        gain = _closed(before - bound, before - loss)
        self.by_steps = KEPT * self.by_steps + (1 - KEPT) * gain
        self.idle = 0 if gain > 0 else self.idle + 1


def _closed(gap: float, gain: float) -> float:
    return gain / gap if 0 < gap < np.inf else 0.0
