"""The columns of a source as a pool: they are read in passes, and a few are resident."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace

import numpy as np

from isopursuit._types import Array, Indices
from isopursuit.clock import Clock
from isopursuit.errors import ParameterError, RankError, ShapeError
from isopursuit.matrix import Matrix, length_notes, name_columns
from isopursuit.rank import unit_columns
from isopursuit.results import Search
from isopursuit.search.incumbent import SearchOutcome
from isopursuit.search.objective import Objective
from isopursuit.search.pass_tasks import FirstEqual, Lengths
from isopursuit.search.passes import usable
from isopursuit.search.pool import CallerNumbers, Pool
from isopursuit.search.settings import RESIDENT
from isopursuit.sources.columns import Columns

CHUNK = 4096  # excluded columns that are read at once to see whether they are zero (guess)


class SourcePool(Pool):
    """Columns of a source; positions are the caller's numbers.

    The first pass raises an error for entries that are not finite, counts zero columns, and draws the resident columns
    at random.
    """

    def __init__(
        self, columns: Columns, include: Indices, excluded: Indices, *, k: int, c: float, clock: Clock
    ) -> None:
        self.clock, self.started = clock, clock.started
        self._source, self.c, self.points = columns, c, 1
        self.k = k
        self.rows, self.count = columns.shape
        self.include = include
        self.excluded = np.union1d(excluded, include)
        self.matrix = Matrix(np.zeros((self.rows, 0)), None, columns.notes, unit_length=columns.unit_length)
        self._residents = include, self.taken(include)
        self._first_pass(np.setdiff1d(excluded, include))

    @property
    def columns(self) -> Columns:
        """What a pass reads."""
        return self._source

    def _resident(self) -> tuple[Indices, Array]:
        assert self._residents is not None
        return self._residents

    def _first_pass(self, excluded: Indices) -> None:
        k = self.k
        transform = self.columns.transform
        # enough columns to complete a subset when the time is over
        everything = Lengths(np.eye(1), None, transform, max(RESIDENT, 2 * k), band=1.0)
        began = time.perf_counter()
        found = self.columns.screen(everything)
        self.pass_seconds = (time.perf_counter() - began,)
        self.matrix = replace(self.matrix, notes=self.matrix.notes + length_notes(found.zero, found.short))
        left = self.count - found.zero - found.short
        if left - len(excluded) < k and left - self._usable(excluded) < k:
            raise ShapeError(
                f"Fewer than {k} of {self.count} columns can be picked (the others are zero or excluded), but {k} are "
                "needed. Exclude fewer columns, or pass a smaller k."
            )
        zero = self.include[~self.resident_columns.any(axis=0)].tolist()
        if zero:
            raise ParameterError(f"include names zero columns: {name_columns(zero, None)}.")
        if np.linalg.matrix_rank(unit_columns(self.resident_columns)) < len(self.include):
            names = name_columns(self.include.tolist(), None)
            raise RankError(f"The included columns are linearly dependent: {names}.")
        self.load(*self.columns_of(found.drawn))

    def _usable(self, numbers: Indices) -> int:
        """How many of these columns are neither zero nor too short."""
        parts = (self.taken(numbers[first : first + CHUNK]) for first in range(0, len(numbers), CHUNK))
        nothing = np.zeros(0, dtype=np.intp)
        return sum(int(usable(np.einsum("dp,dp->p", part, part), 0, nothing).sum()) for part in parts)

    def taken(self, numbers: Indices) -> Array:
        """These columns after the transform, (rows, m), read from the source."""
        if len(numbers) == 0:
            return np.zeros((self.rows, 0))
        return self.columns.transform.apply(self.columns.take(numbers))

    def to_caller(self, positions: Indices) -> CallerNumbers:
        """Positions are the caller's numbers."""
        return CallerNumbers(np.sort(positions))

    def positions_of(self, numbers: Indices) -> Indices | None:
        """The same numbers; the columns become resident."""
        self.load(numbers, self.taken(numbers))
        return numbers

    def answer(self, found: SearchOutcome, objective: Objective, method: str) -> Search:
        """The result. Of columns that are equal up to sign, it has the first."""
        values = self.at_hand(found.subset)
        numbers = self._first_equal(found.subset, values)
        passes = f"{len(self.pass_seconds)} passes over {self.count:,} columns."
        found = replace(found, notes=(*found.notes, passes))
        return self.answer_for(values[None], CallerNumbers(numbers), found, objective, method)

    def _first_equal(self, subset: Indices, values: Array) -> Indices:
        """The first columns that are equal to these up to sign, if there is time for a pass."""
        free = ~np.isin(subset, self.include)
        if not free.any():
            return subset
        task = FirstEqual(values[:, free].T.copy(), self.columns.transform, self.excluded)
        first: Indices | None = None
        with suppress(KeyboardInterrupt):  # the answer is known and must not be lost
            first = self.ask(task, self.clock)
        numbers = subset.copy()
        if first is not None:
            numbers[free] = np.where(first >= 0, first, subset[free])
        return numbers
