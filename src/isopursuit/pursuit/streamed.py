"""The pursuit over a source of columns: solve a few columns, make a pass that loads the worst violators, and repeat.

The first columns are a sample or, if there are far more columns than D², the longest normalized columns of all. Each
pass loads the columns of largest σ (sources/tasks.py). Once f(w) − lower bound < σ² for all columns that were not
loaded, no optimal solution uses any of those, and the others are an ordinary problem in memory. Its dual point ν
satisfies ‖νᵀx_p‖ ≤ √q_p + √((f(w) − dual) x_pᵀM⁻¹x_p) < 1 on every column that was not loaded, by the same inequality.
So its certificate is valid over all columns without another pass.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from isopursuit._core.types import Array, Indices, Mask
from isopursuit.data._matrix import length_notes
from isopursuit.errors import RangeError, RankError
from isopursuit.pursuit.design import Design, build_design
from isopursuit.pursuit.inputs import Goal, Options, as_weights
from isopursuit.pursuit.progress import Watch
from isopursuit.pursuit.rectangular import RectangularDesign
from isopursuit.pursuit.settings import (
    DEVICE_MEMORY,
    ENTRY_BYTES,
    FEWEST_LOADED,
    LARGEST_LOG_LENGTH,
    MEMORY,
    MOST_MEMORY,
    ROUNDED_TOLERANCE,
    SAMPLE_GAP,
    SPAN_PASSES,
    SPANNING,
)
from isopursuit.pursuit.working_set import solve, solve_as_if_equally_long, solve_by_parts, starting_columns
from isopursuit.results import Effort, relative_gap
from isopursuit.sources.columns import Columns
from isopursuit.sources.tasks import Listed, Screen, Screened


class StreamedColumns:
    """A source's columns for the solver's loop: a few are resident, a pass screens all.

    Attributes
    ----------
    indices, stored, weights : ndarray, (m,), (D₀, m) and (m,)
        The resident columns' numbers, entries before the transform, and weights.
    design, evaluation : Design and Evaluation
        The program on these columns, and f at the weights of the last pass.
    settled : bool
        Whether every column that may be in an optimal solution was loaded, given that f(w) − dual ≤ `reach`².
    lower, dual : float and ndarray
        The best lower bound on min f over all columns, and the dual point that proves it.
    """

    def __init__(
        self,
        columns: Columns,
        goal: Goal,
        memory: int | None,
        watch: Watch,
        weights: Array | None,
    ) -> None:
        self.columns, self.goal, self.watch = columns, goal, watch
        D = columns.shape[0]
        many = SPANNING * D * (D + 1)
        most = DEVICE_MEMORY if hasattr(columns.source, "products") else MOST_MEMORY
        memory = int(np.clip(2 * ENTRY_BYTES * D * many, MEMORY, most)) if memory is None else memory
        self.room = max(FEWEST_LOADED, memory // (ENTRY_BYTES * D))
        self.seconds: list[float] = []
        self.lower, self.reach = -np.inf, np.inf
        self.dual = np.zeros((D, D))
        self.settled = False
        self.indices = np.arange(0)
        self.stored = np.zeros((columns.source.shape[0], 0))
        self.weights: Array = np.zeros(0)
        self.found: Screened | None = None
        self.begin(weights)

    # ------------------------------------------------------------------------------------------- the beginning

    def begin(self, weights: Array | None) -> None:
        """Begin with a sample, and with the given weights if any.

        If there are far more columns than D² and the target is the identity, a pass finds the longest normalized
        columns: if columns have all directions, M is nearly a multiple of the identity, and only lengths matter. They
        are solved as if they were equally long (`solve_as_if_equally_long` says why). For a projection of rank k only
        lengths matter if no direction has too large an eigenvalue.
        """
        D = self.columns.shape[0]
        given = np.arange(0) if weights is None else np.flatnonzero(weights)
        P = self.columns.shape[1]
        many = starting_columns(D, P, 2 * self.room) if self.goal.target is None else 0
        if self.goal.k is not None:
            many = self.room if 2 * self.room < P else 0
        self.indices = np.union1d(self.columns.sample(many or 2 * self.room), given)
        self.stored = self.columns.take(self.indices)
        self.scale()
        if many:
            longest = self.ask(Screen(np.eye(D), None, self.columns.transform, many))
            self.join(longest, np.isin(self.indices, given))
        self.span()
        if weights is not None:
            self.weights = weights[self.indices] * np.exp(self.columns.transform.log_scale)
            if self.design.evaluate(self.weights) is not None:
                return
        if many and self.goal.k is None:
            self.weights = solve_as_if_equally_long(self.design, self.watch, self.on_device)
        else:
            self.weights = self.design.start()
            solve(self.design, self.weights, SAMPLE_GAP, self.watch, warm=False, nested=True)

    def build(self) -> None:
        """Build the program on the resident columns."""
        self.values = self.columns.transform.columns(self.stored)
        target, penalty, k = self.goal.target, self.goal.penalty, self.goal.k
        if k is None:
            design = build_design([self.values], None if target is None else [target], penalty)
        else:
            design = RectangularDesign(np.ascontiguousarray(self.values.T)[None], None, 0.0, k=k)
        self.design = self.on_device(design)

    def on_device(self, design: Design) -> Design:
        """The program with its columns on the device of the source, if it has one."""
        products = getattr(self.columns.source, "products", None)
        return design if products is None else replace(design, products=products(design.x[0]))

    def scale(self) -> None:
        """Set the common factor of all columns that keeps the longest of the sample near 1 for any c."""
        transform = self.columns.transform
        z = transform.apply(self.stored)
        longest = transform.factors(np.sqrt(np.einsum("dp,dp->p", z, z)))[1]
        if transform.c is not None and 5.0 < abs(longest) < np.inf and self.goal.penalty == 0:
            self.columns = replace(self.columns, transform=replace(transform, log_scale=longest))

    def span(self) -> None:
        """Load columns until the resident ones span all dimensions, or k; raise RankError if that is impossible."""
        for _ in range(SPAN_PASSES):
            try:
                self.build_regular()
            except RankError:
                # with a small multiple of the identity in M, columns outside the span have the largest σ
                z = self.values
                M = z @ z.T / max(float(np.einsum("dp,dp->", z, z)), 1e-300)
                K = np.asarray(np.linalg.inv(M + 1e-6 * np.eye(len(M))), dtype=np.float64)
                before = self.indices
                self.join(self.ask(Screen(K, None, self.columns.transform, self.room)), np.ones(len(before), bool))
                if len(self.indices) == len(before):
                    break
            else:
                return
        self.build_regular()

    def build_regular(self) -> None:
        """As `build`, but raise RankError if the resident columns have rank below k."""
        self.build()
        k = self.goal.k
        if k is not None and self.design.evaluate(self.design.start()) is None:
            raise RankError(f"No {k} columns are independent. Pass a smaller k, or drop dependent rows.")

    # ------------------------------------------------------------------------------------------------ the loop

    @property
    def share(self) -> float:
        """Larger if the central path solves a part, because it does not converge superlinearly at the end."""
        return 0.3 if self.design.crowded(self.weights) else 0.1

    @property
    def finish(self) -> float:
        """Slightly below 1 for the central path, to allow rounding: all columns that matter are in the part."""
        return ROUNDED_TOLERANCE if self.design.crowded(self.weights) else 0.3

    def screen(self) -> float | None:
        """Make a pass if time allows; returns the gap over all columns.

        The first pass is always made, because without it there is no bound over all columns.
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
        found = self.ask(Screen(K, F, self.columns.transform, self.room, self.reach))
        self.found = found
        if found.longest - self.columns.transform.log_scale > LARGEST_LOG_LENGTH:
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
        self.settled = found.largest.left < -self.reach
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

    def improve(self, part: Design, weights: Array, tol: float, watch: Watch | None) -> None:
        """Use solvers that multiply all columns if that takes fewer multiplications than the kernel.

        Solve by parts if that is not enough, because many columns are resident.
        """
        crowded = part.crowded(weights)
        if crowded and watch is not None:
            watch.columns = len(weights)
        if crowded and part.follow(weights, tol, watch) <= 0.5 * self.gap:
            return
        if (crowded or part.many_rows) and part.descend(weights, tol, watch, warm=True) <= 0.3 * self.gap:
            return
        solve(part, weights, tol, watch, warm=True, nested=True)

    def settle(self, weights: Array) -> None:
        """The part's weights become those of the set."""
        self.weights = weights

    def join(self, found: Screened, keep: Mask) -> None:
        """Replace the resident columns by those to keep and those that a pass found.

        Columns slightly below 1 are included: with the worst violators alone, which are in the directions in which K is
        wrong, the next K would be wrong in all other directions.
        """
        self.indices, self.stored = self.indices[keep], self.stored[:, keep]
        for indices, _, values in found.largest.parts:
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
        return max(self.seconds[-1:], default=0.0) <= self.watch.clock.remaining

    @property
    def gap(self) -> float:
        """The gap over all columns that passes have proved."""
        return relative_gap(self.evaluation.primal, self.lower)

    # ------------------------------------------------------------------------------------------------- the end

    def finish_loading(self) -> Indices:
        """Make every column resident that may matter if those are few enough; returns all columns that may matter."""
        if not np.array_equal(self.evaluation.weights, self.weights):
            self.evaluation = self.design.evaluate(self.weights) or self.evaluation
        if self.found is None or not self.settled:
            # if there is no time to list the columns that no proof excludes, none is excluded
            known = self.found is not None and self.time_for_a_pass
            return self.listed() if known else np.arange(self.columns.shape[1])
        # the proof uses the weights that were screened, so their columns stay
        held = np.asarray(self.weights > 0)
        numbers, sigma, values = self.found.largest.parts[0]
        near = np.flatnonzero((sigma >= -self.reach) & ~np.isin(numbers, self.indices[held]))
        indices = np.concatenate([self.indices[held], numbers[near]])
        order = np.argsort(indices)
        self.indices = indices[order]
        self.stored = np.concatenate([self.stored[:, held], values[near].T.astype(np.float64)], axis=1)[:, order]
        self.weights = np.concatenate([self.weights[held], np.zeros(len(near))])[order]
        self.build()
        return self.indices

    @property
    def effort(self) -> Effort:
        """What the passes took."""
        return Effort(len(self.seconds), len(self.seconds) * self.columns.nbytes, tuple(self.seconds))

    @property
    def notes(self) -> tuple[str, ...]:
        """The source's notes, and those about columns that are zero or too short."""
        return self.columns.notes + (() if self.found is None else length_notes(self.found.zero, self.found.short))

    def listed(self) -> Indices:
        """Make one more pass to list the columns that no proof excludes, which are too many to load."""
        K, F = self.design.screening(self.evaluation)
        began = time.perf_counter()
        screen = Screen(K, F, self.columns.transform, 1, self.reach, excluded=self.columns.excluded)
        found: list[Indices] = self.columns.source.fold(Listed(screen))
        self.seconds.append(time.perf_counter() - began)
        return np.concatenate(found)


def load_columns(columns: Columns, goal: Goal, options: Options) -> StreamedColumns:
    """Minimize f over a source to the requested relative gap, or until every column that matters is resident."""
    watch = Watch(options.callback, options.clock)
    weights = as_weights(options.weights, columns.shape[1])
    stream = StreamedColumns(columns, goal, options.memory, watch, weights)
    solve_by_parts(stream, options.tol, watch)
    watch.check()
    return stream
