"""The pursuit over a source of columns: a few are solved, a pass brings home what violates most, and again.

The first few are a sample, or the longest normalized columns of all, where columns outnumber D² by far.
Each pass brings the columns of largest σ (sources/tasks.py). Once f(w) − lower bound < σ² for all that stayed behind,
no optimal solution uses any of those, and the rest is an ordinary problem in memory. Its dual point ν satisfies
‖νᵀx_p‖ ≤ √q_p + √((f(w) − dual) x_pᵀM⁻¹x_p) < 1 on every column left behind as well, by the same inequality, so that
its certificate holds over all columns without one more pass.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from isopursuit.errors import RangeError, RankError
from isopursuit.matrix import length_notes
from isopursuit.outputs import check_writable
from isopursuit.pursuit.design import Design, Evaluation, build_design
from isopursuit.pursuit.state import load_state, save_state
from isopursuit.pursuit.working_set import (
    PursuitProgress,
    Watch,
    descend_on,
    many_rows,
    solve,
    solve_by_parts,
)
from isopursuit.results import Effort
from isopursuit.sources.columns import Columns
from isopursuit.sources.tasks import Listed, Screen, Screened

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

MEMORY = 2**29  # bytes that columns brought home may take, by default
MORE = 2**31  # and that they may where many rows need many columns
SPANNING = 1.25  # times D(D + 1): so many columns of random directions have a multiple of the identity in their hull
COARSE = 1e-3  # the gap that a sample is solved to
FINE = 1e-7  # and the longest columns, as if they were equally long
FEW_ROWS = 16  # below which the kernel solves any sample at once
LEAST = 1e-100  # a length below this is none
WIDEST = 250.0  # logarithm of a normalized length, relative to the sample's longest, that float64 can still carry
REPAIRS = 4  # passes that may look for directions which the sample lacks


@dataclass(frozen=True)
class Home:
    """What came home of a source: every column that may be in an optimal solution, or at least the working set.

    Attributes
    ----------
    indices, values, weights : ndarray, (m,), (D, m) and (m,)
        Columns as they enter the program, with weights near the optimum.
    complete : bool
        Whether every column that may be in an optimal solution is here, as long as f(w) − dual ≤ `slack`.
    design, evaluation : Design and Evaluation
        The program on these columns, and f at the weights.
    lower, dual : float and ndarray
        The best lower bound on min f over all columns, and the dual point that proves it.
    """

    indices: Indices
    values: Array
    weights: Array
    complete: bool
    slack: float
    value: float
    design: Design
    evaluation: Evaluation
    lower: float
    dual: Array
    tied: Indices
    log_scale: float
    stopped: bool
    effort: Effort
    notes: tuple[str, ...]


class Stream:
    """A source as a field of the solver's loop."""

    share = 0.1

    def __init__(
        self,
        columns: Columns,
        target: Array | None,
        ridge: float,
        memory: int | None,
        watch: Watch,
        state: Path | None,
        weights: Array | None,
    ) -> None:
        self.columns, self.target, self.ridge, self.watch = columns, target, ridge, watch
        self.state = state
        D = columns.shape[0]
        # two piles; stored, transformed, in the kernel twice, and once more on the way: six numbers for each entry
        many = SPANNING * D * (D + 1)
        memory = int(np.clip(48 * D * many, MEMORY, MORE)) if memory is None else memory
        self.room = max(2048, memory // (96 * D))
        self.band = 2 * COARSE
        self.seconds: list[float] = []
        self.lower, self.reach = -np.inf, np.inf
        self.dual = np.zeros((D, D))
        self.settled = False
        self.indices = np.arange(0)
        self.stored = np.zeros((columns.source.shape[0], 0))
        self.weights: Array = np.zeros(0)
        self.found: Screened | None = None
        self.notes = columns.notes
        self.unsaved = ""
        if state is not None:
            check_writable(state, "The state file")
        kept = None if state is None else load_state(state, self)
        if kept is None:
            self.begin(weights)
        else:
            self.restore(kept)

    # ------------------------------------------------------------------------------------------- the beginning

    def begin(self, weights: Array | None) -> None:
        """Begin with a sample, and with the given weights if any.

        Where columns outnumber D² by far and the target is the identity, a pass finds the longest normalized columns of
        all: as far as columns point everywhere, M is a multiple of the identity and length is all that matters. They
        are solved as if they were equally long, as their small differences would lead K astray on all other columns.
        """
        D = self.columns.shape[0]
        given = np.arange(0) if weights is None else np.flatnonzero(weights)
        many = min(int(SPANNING * D * (D + 1)), 2 * self.room)
        wide = self.target is None and D >= FEW_ROWS and self.columns.shape[1] > 4 * many
        self.hold(np.union1d(self.columns.sample(many if wide else 2 * self.room), given))
        self.scale()
        if wide:
            longest = self.ask(Screen(np.eye(D), None, self.columns.transform, many, band=-np.inf))
            self.join(longest, np.isin(self.indices, given))
        self.span()
        if weights is not None:
            self.weights = weights[self.indices] * np.exp(self.columns.transform.log_scale)
            if self.design.evaluate(self.weights) is not None:
                return
        self.weights = self.design.start()
        if wide:
            lengths = np.linalg.norm(self.design.x[0], axis=1)
            unit = self.at_hand(replace(self.design, x=self.design.x / np.maximum(lengths, LEAST)[:, None]))
            descend_on(unit, self.weights, FINE, self.watch, warm=False)
            self.band = 100 * FINE
            self.weights = np.divide(self.weights, lengths**2, out=self.weights, where=lengths > LEAST)
        else:
            solve(self.design, self.weights, COARSE, self.watch, warm=False, nested=True)

    def restore(self, kept: dict[str, Array]) -> None:
        """Begin with a saved state."""
        transform = replace(self.columns.transform, log_scale=float(kept["log_scale"]))
        self.columns = replace(self.columns, transform=transform)
        self.hold(kept["indices"].astype(np.intp))
        self.build()
        self.weights = kept["weights"]
        self.notes += (f"continued from {self.state}, after {int(kept['passes'])} passes.",)

    def hold(self, indices: Indices) -> None:
        """These columns make up the part at hand."""
        self.indices, self.stored = indices, self.columns.take(indices)

    def build(self) -> None:
        """The program on the part at hand."""
        self.values = self.columns.transform.columns(self.stored)
        design = build_design([self.values], None if self.target is None else [self.target], self.ridge)
        self.design = self.at_hand(design)

    def at_hand(self, design: Design) -> Design:
        """The program with its columns where the source multiplies them, if it does."""
        hand = getattr(self.columns.source, "hand", None)
        return design if hand is None else replace(design, hand=hand(design.x[0]))

    def scale(self) -> None:
        """One factor for all columns keeps the sample's longest near 1, whatever c."""
        transform = self.columns.transform
        z = transform.apply(self.stored)
        longest = transform.factors(np.sqrt(np.einsum("dp,dp->p", z, z)))[1]
        if transform.c is not None and 5.0 < abs(longest) < np.inf and self.ridge == 0:
            self.columns = replace(self.columns, transform=replace(transform, log_scale=longest))

    def span(self) -> None:
        """Bring in columns until those at hand span all dimensions; refuse where none do."""
        for _ in range(REPAIRS):
            try:
                self.build()
            except RankError:
                # with a trifle of the identity in M, what sticks out of the span has the largest σ
                z = self.values
                M = z @ z.T / max(float(np.einsum("dp,dp->", z, z)), 1e-300)
                K = np.asarray(np.linalg.inv(M + 1e-6 * np.eye(len(M))), dtype=np.float64)
                before = self.indices
                self.join(self.ask(Screen(K, None, self.columns.transform, self.room)), np.ones(len(before), bool))
                if len(self.indices) == len(before):
                    break
            else:
                return
        self.build()

    # ------------------------------------------------------------------------------------------------ the loop

    def screen(self) -> float | None:
        """One pass, if time allows: the gap over all columns. The first is made in any case, for nothing is known of
        the optimum over all columns without one.
        """
        evaluation = self.design.evaluate(self.weights)
        if evaluation is None and self.found is None:
            self.weights = self.design.start()
            evaluation = self.design.evaluate(self.weights)
        if evaluation is None:
            return None
        self.evaluation = evaluation
        if self.found is not None and not self.time_for_a_pass:
            self.watch.stopped = True
            return self.gap
        K, F = self.design.screening(evaluation)
        found = self.ask(Screen(K, F, self.columns.transform, self.room, self.reach, self.band))
        self.found = found
        if found.longest - self.columns.transform.log_scale > WIDEST:
            raise RangeError(
                "Normalized lengths span more than float64 can hold: some columns are e^"
                f"{found.longest - self.columns.transform.log_scale:.0f} times longer than any of a sample. Rescale "
                "the data to a median length of 1, or use a smaller c."
            )
        lower = self.design.dual_value(evaluation, found.top)
        if lower > self.lower:
            self.lower = lower
            self.dual = self.design.dual_point(evaluation, found.top)[0]
        slack = max(evaluation.value - self.lower, 1e-15 * evaluation.value)
        self.reach = float(np.sqrt(slack)) * (1 + 1e-9) + 1e-12
        self.settled = found.wanted.left < -self.reach
        self.band = max(found.top - 1, 0.0)
        if self.state is not None:
            self.unsaved = save_state(self.state, self)
        self.watch.columns, self.watch.passes = self.columns.shape[1], len(self.seconds)
        self.watch.bytes = len(self.seconds) * self.columns.nbytes
        self.watch(self.gap)
        return self.gap

    def part(self) -> tuple[Design, Array]:
        """The columns with weight, and the violators that would lower f most."""
        assert self.found is not None
        self.join(self.found, self.weights > 0)
        self.build()
        return self.design, self.weights

    def improve(self, part: Design, weights: Array, tol: float, watch: Watch | None) -> bool:
        """By parts in turn, where the solver for many rows does not do: there are many columns at hand."""
        if many_rows(part) and descend_on(part, weights, tol, watch, warm=True) <= 0.3 * self.gap:
            return False
        return solve(part, weights, tol, watch, warm=True, nested=True)

    def settle(self, weights: Array) -> None:
        """The part's weights are the field's."""
        self.weights = weights

    def join(self, found: Screened, keep: NDArray[np.bool_]) -> None:
        """Those of the part at hand that are to be kept, and what came home.

        Columns a little below 1 come too. Those of largest σ lie where K errs, which is to one side: alone they would
        let the next K err to all others. A sample of the columns near 1 holds it on every side (Clarkson's idea for
        linear programs with many more constraints than unknowns).
        """
        self.indices, self.stored = self.indices[keep], self.stored[:, keep]
        for indices, _, values in found.wanted.parts + found.drawn.parts:
            new = np.flatnonzero(~np.isin(indices, self.indices))
            self.indices = np.concatenate([self.indices, indices[new]])
            self.stored = np.concatenate([self.stored, values[new].T.astype(np.float64)], axis=1)
        if len(self.weights):
            room = len(self.indices) - int(keep.sum())
            self.weights = np.concatenate([self.weights[keep], np.zeros(room)])

    def ask(self, question: Screen) -> Screened:
        """One pass, timed."""
        began = time.perf_counter()
        found = self.columns.screen(question)
        self.seconds.append(time.perf_counter() - began)
        return found

    @property
    def time_for_a_pass(self) -> bool:
        """Whether a pass like the last one would end before the deadline."""
        return time.perf_counter() + max(self.seconds[-1:], default=0.0) <= self.watch.deadline

    @property
    def gap(self) -> float:
        """Over all columns, as far as passes have proved it."""
        primal = self.evaluation.primal
        return max(primal - self.lower, 0.0) / primal if primal > 0 else 0.0

    # ------------------------------------------------------------------------------------------------- the end

    def home(self) -> Home:
        """What came home, with every column that may matter where those are few enough."""
        evaluation = self.design.evaluate(self.weights) or self.evaluation
        found = self.found
        if found is not None and self.settled:
            # the proof is about the weights that were screened: their columns stay too
            held = np.asarray(self.weights > 0)
            indices, sigma, values = found.wanted.parts[0]
            near = np.flatnonzero((sigma >= -self.reach) & ~np.isin(indices, self.indices[held]))
            self.indices = np.concatenate([self.indices[held], indices[near]])
            self.stored = np.concatenate([self.stored[:, held], values[near].T.astype(np.float64)], axis=1)
            self.weights = np.concatenate([self.weights[held], np.zeros(len(near))])
            order = np.argsort(self.indices)
            self.indices, self.stored, self.weights = self.indices[order], self.stored[:, order], self.weights[order]
            self.build()
            tied = self.indices
        else:
            # without time to list those that no proof excludes, none is excluded
            known = found is not None and self.time_for_a_pass
            tied = self.listed() if known else np.arange(self.columns.shape[1])
        notes = self.notes
        if found is not None:
            notes += length_notes(found.zero, found.short)
        if self.unsaved:
            notes += (f"the state was not saved: {self.unsaved} The run went on without it.",)
        return Home(
            indices=self.indices,
            values=self.values,
            weights=self.weights,
            complete=self.settled,
            slack=self.reach**2,
            value=evaluation.value,
            design=self.design,
            evaluation=evaluation,
            lower=self.lower,
            dual=self.dual,
            tied=tied,
            log_scale=self.columns.transform.log_scale,
            stopped=self.watch.stopped,
            effort=Effort(len(self.seconds), len(self.seconds) * self.columns.nbytes, tuple(self.seconds)),
            notes=notes,
        )

    def listed(self) -> Indices:
        """One more pass, for the columns that no proof excludes: they are too many to come home."""
        K, F = self.design.screening(self.evaluation)
        began = time.perf_counter()
        found: list[Indices] = self.columns.source.fold(Listed(Screen(K, F, self.columns.transform, 1, self.reach)))
        self.seconds.append(time.perf_counter() - began)
        return np.concatenate(found)


def pursue_columns(
    columns: Columns,
    target: Array | None,
    ridge: float,
    tol: float,
    memory: int | None,
    callback: Callable[[PursuitProgress], bool | None] | None,
    deadline: float,
    state: str | Path | None,
    weights: Array | None,
) -> Home:
    """Minimize f over a source to a relative gap of tol, or until all that matters has come home."""
    watch = Watch(callback, deadline)
    stream = Stream(columns, target, ridge, memory, watch, None if state is None else Path(state), weights)
    solve_by_parts(stream, tol, watch)
    watch.check()
    return stream.home()
