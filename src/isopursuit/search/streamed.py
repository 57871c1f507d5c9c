"""Exchange search over a source: at home among a few columns, then swaps with all of them, one pass a round.

A pass (passes.py, `Swaps`) brings home every column whose bound leaves open that it improves the subset by taking one
column's place. At home they are tried. A pass whose columns improve nothing, and which left none behind, proves that no
single swap with any column of the source improves the subset.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isopursuit.results import Search
from isopursuit.search._swap import log_loss_of
from isopursuit.search.field import HOME, Field, greedy_field
from isopursuit.search.local import local_search, swap_descent
from isopursuit.search.passes import Addition, Best, OutOfTimeError, Swaps
from isopursuit.sources.tasks import Pile, Transform

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

GREEDY_SHARE = 0.3  # of the time, for the greedy search over all columns
ROUNDS = 4  # searches at home, each followed by passes
CROWD = 2 * HOME  # columns at home that kicks are tried among


@dataclass
class Exchange:
    """The state of an exchange search: the best subset (numbers) and its log-loss.

    `settled` tells that no single swap with any column improves it, `stopped` why it ended before that was known.
    """

    field: Field
    c: float
    memory: int
    subset: Indices
    log_loss: float = np.inf
    descents: int = 0
    settled: bool = False
    stopped: str = ""

    def run(self, starts: int, kicks: int, rng: np.random.Generator, deadline: float) -> None:
        """Greedy over all columns, then rounds of a search at home and swaps with all, while they help."""
        try:
            began = time.perf_counter()
            self.subset = greedy_field(self.field, self.c, began + GREEDY_SHARE * (deadline - began))[0]
            self.log_loss = self._loss_of(self.subset)
            for number in range(ROUNDS):
                if not self._at_home(starts, kicks, rng, deadline) and number > 0:
                    break
                self._descend(deadline)
                if self.stopped or not self.settled:
                    break
        except OutOfTimeError:
            self.stopped = "time"
        except KeyboardInterrupt:
            if self.log_loss == np.inf:
                raise
            self.stopped = "interrupted"

    def _at_home(self, starts: int, kicks: int, rng: np.random.Generator, deadline: float) -> bool:
        """Search among the columns at home; whether that found a better subset."""
        field = self.field
        must = len(field.include)
        here = int(field.home.shape[1])
        recent = np.arange(max(must, here - CROWD), here)
        some = np.concatenate([np.arange(must), recent])
        some = np.union1d(some, field.place(self.subset)) if len(self.subset) == field.k else some
        left = None if deadline == np.inf else max(deadline - time.perf_counter(), 0.0)
        found = local_search(
            np.ascontiguousarray(field.home[:, some]),
            self.c,
            include=tuple(range(must)),
            starts=starts,
            kicks=kicks,
            rng=rng,
            time_limit=left,
        )
        self.descents += found.descents
        better = found.log_loss < self.log_loss - 1e-10 - 1e-13 * abs(self.log_loss)
        if better or len(self.subset) < field.k:
            self.subset, self.log_loss, self.settled = field.numbers[some[found.indices]], found.log_loss, False
        if found.interrupted:
            raise KeyboardInterrupt
        return better

    def _descend(self, deadline: float) -> None:
        """Swaps with all columns, a pass at a time, until none improves."""
        field, D = self.field, self.field.k
        room = max(HOME, self.memory // (96 * D))
        self.settled = False
        while time.perf_counter() <= deadline:
            # those that must be picked stand first
            self.subset = np.concatenate([field.include, np.setdiff1d(self.subset, field.include)])
            here = field.home[:, field.place(self.subset)]
            free = range(len(field.include), D)
            barred = np.union1d(field.barred, self.subset)
            asked = Swaps.into(here, free, self.c, self.log_loss, field.columns.transform, barred, room)
            pile: Pile = field.ask(asked)
            pile = pile.trimmed()
            numbers, values = field.arrived(pile)
            came, keys, _ = pile.parts[0]
            few = np.flatnonzero(np.isin(numbers, came[np.argsort(-keys, kind="stable")[:CROWD]]))
            field.keep(numbers[few], values[:, few])
            columns = np.ascontiguousarray(np.concatenate([here, values[:, few]], axis=1).T)
            subset, loss = swap_descent(columns, np.arange(D, dtype=np.int32), free, self.c, deadline)
            self.descents += 1
            if loss < self.log_loss:
                self.subset, self.log_loss = np.concatenate([self.subset, numbers[few]])[subset], loss
            elif not self._swapped(here, numbers, values, free, deadline):
                self.settled = pile.left <= 1 and time.perf_counter() <= deadline
                return
        self.stopped = "time"

    def _swapped(self, here: Array, numbers: Indices, values: Array, free: range, deadline: float) -> bool:
        """Make the best swap with any of these columns (D, m), if one improves the subset `here`."""
        limit = self.log_loss - 1e-10 - 1e-13 * abs(self.log_loss)
        place, best = -1, Best(limit)
        for i in free:
            if time.perf_counter() > deadline:
                return False
            others = np.delete(here, i, axis=1).T
            found = Addition(others, self.c, Transform(), np.zeros(0, np.intp), best.log_loss)(values, 0)
            place, best = (i, found) if found.index >= 0 else (place, best)
        if place < 0:
            return False
        number = numbers[best.index : best.index + 1]
        self.field.keep(number, values[:, best.index : best.index + 1])
        self.subset, self.log_loss = np.append(np.delete(self.subset, place), number), best.log_loss
        return True

    def _loss_of(self, subset: Indices) -> float:
        columns = np.ascontiguousarray(self.field.home[:, self.field.place(subset)].T)
        return log_loss_of(columns, np.arange(self.field.k, dtype=np.int32), self.c)


def exchange_source(field: Field, c: float, starts: int, kicks: int, rng: np.random.Generator, memory: int) -> Search:
    """`exchange_search` on a source."""
    found = Exchange(field, c, memory, field.include)
    found.run(starts, kicks // 3, rng, field.deadline)  # at home, where there are ROUNDS of them
    told = "no single swap with any column improves it: proved."
    if not found.settled:
        told = "whether a swap with some column improves it was not settled: more time or memory would."
    status = "interrupted" if found.stopped == "interrupted" else "heuristic"
    return field.answer(found.subset, c, "exchange", status, found.descents, notes=(told,))
