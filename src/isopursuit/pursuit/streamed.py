"""The pursuit over a source of columns: solve a few columns, make a pass that loads the worst violators, and repeat.

The first columns are a sample or, if there are far more columns than D², the longest normalized columns of all. Each
pass loads the columns of largest σ (sources/screening.py). Once f(w) − lower bound < σ² for all columns that were not
loaded, no optimal solution uses any of those, and the others are an ordinary problem in memory. Its dual point ν
satisfies ‖νᵀx_p‖ ≤ √q_p + √((f(w) − dual) x_pᵀM⁻¹x_p) < 1 on every column that was not loaded, by the same inequality.
So its certificate is valid over all columns without another pass.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.types import Array, Indices, Mask
from isopursuit.data._matrix import length_notes
from isopursuit.errors import ParameterError, RangeError, RankError
from isopursuit.pursuit.certificate import Caller, certify
from isopursuit.pursuit.design import Design, build_design
from isopursuit.pursuit.inputs import Goal, Options
from isopursuit.pursuit.problem import LARGEST_LOG_SCALE
from isopursuit.pursuit.rectangular import RectangularDesign
from isopursuit.pursuit.working_set import goal_of_a_part, solve, solve_by_parts, solve_design
from isopursuit.results import Certificate, Effort, Pursuit, relative_gap
from isopursuit.sources.columns import MEMORY, Columns
from isopursuit.sources.screening import Listed, Screen, Screened

# entries of X from which on an array is pursued like a source (measured: 24 × 10,000 takes 0.78 times as long; both
# take the same time at 64 × 20,000 and 48 × 200,000)
SOURCE_ENTRIES = 2**17
ENTRY_BYTES = 48  # memory for each entry of a loaded column (derived: stored, transformed, 4 copies in solvers)
FEWEST_LOADED = 2048  # columns that a pass may load in any case (derived: the kernel solves twice as many)
MOST_MEMORY = 2**30  # bytes that resident columns may take by default if there are many rows (chosen)
DEVICE_MEMORY = 2**32  # the same for the columns of a tensor: machines with a large device have a large memory (chosen)
SPANNING = 1.25  # columns in a start, per D(D+1), twice the dimension of x xᵀ: random points then surround 0 (Wendel)
WIDE = 4  # multiple of that number of columns from which on a start from the longest ones is worthwhile (guess)
WIDE_ROWS = 16  # rows below which it is not worthwhile, because the kernel solves any sample at once (guess)
START_GAP = 1e-7  # the least gap to which the longest columns are solved, as if they were equally long (guess)
LENGTH_SHARE = 0.01  # that gap relative to the differences of lengths, which cause a gap of about a third (guess)
SHORTEST = 1e-100  # columns shorter than this count as zero when they are divided by their length (derived)
SAMPLE_GAP = 1e-3  # the gap to which a sample is solved: other columns change the optimum by more (guess)
LARGEST_LOG_LENGTH = 250.0  # largest log of a length relative to the sample's longest (derived: squares stay finite)
SPAN_PASSES = 4  # most passes that search for directions missing from the sample (guess)


def starting_columns(D: int, P: int, room: int | None = None) -> int:
    """How many of the longest columns to start from, at most `room`; 0 if there are not far more columns than D².

    If columns have all directions, M is nearly a multiple of the identity, and only their lengths matter.
    """
    many = int(SPANNING * D * (D + 1))
    many = many if room is None else min(many, room)
    return many if D >= WIDE_ROWS and WIDE * many < P else 0


def pursued_as_source(X: Any) -> bool:
    """Whether X is an array that is pursued in passes like a source, so that only a few of its columns are copied."""
    values = cast("NDArray[Any]", X if isinstance(X, np.ndarray) else np.zeros(0))
    if values.ndim != 2 or values.size < SOURCE_ENTRIES or values.dtype.kind not in "biuf":
        return False
    D, P = values.shape
    return P > WIDE * SPANNING * D * (D + 1)


def with_room_for(X: Array, options: Options) -> Options:
    """The options, with memory for half of the array if the caller set no limit."""
    return options if options.memory is not None else replace(options, memory=max(4 * X.size, MOST_MEMORY))


def pursue_source(columns: Columns, goal: Goal, options: Options) -> Pursuit:
    """Make passes until every column that matters is resident, then solve the program on those in memory."""
    if goal.target is not None and not goal.target.any():
        raise ParameterError("Y is zero, so that no column is needed.")
    stream = load_columns(columns, goal, options)
    log_scale = stream.columns.transform.log_scale
    if abs(log_scale) > LARGEST_LOG_SCALE:
        raise RangeError(
            f"At c={columns.transform.c:g} the longest normalized column has length e^{log_scale:.4g}, so "
            "that the objective overflows float64. Use a smaller c, or rescale the columns to a median length of 1."
        )
    tied = stream.finish_loading()
    scale = math.exp(-log_scale)
    unit = (0.5 if goal.penalty == 0 else 0.5 * goal.penalty) * scale  # the objective is f times this
    weights = np.zeros(columns.shape[1])
    if not stream.settled:
        return _partly_loaded(stream, tied, weights, options.tol, scale, unit)
    caller = Caller(notes=stream.notes, columns=math.exp(log_scale), unit_length=columns.unit_length)
    found = solve_design(stream.design, stream.weights, caller, options)
    weights[stream.indices] = found.weights
    # if its bound is high enough, the new dual point is also feasible on the columns that were not loaded
    feasible = stream.evaluation.value - found.certificate.dual / unit <= stream.reach**2
    if not feasible:  # then its bound is not valid either
        dual = min(stream.lower * unit, found.certificate.primal)
        found = replace(found, certificate=replace(found.certificate, dual=dual))
        if found.status == "optimal" and found.certificate.gap > options.tol:
            found = replace(found, status="stalled")
    return replace(
        found,
        weights=weights,
        tied=stream.indices[found.tied],
        dual=found.dual if feasible else scale * stream.dual,
        effort=stream.effort,
    )


def _partly_loaded(
    stream: StreamedColumns, tied: Indices, weights: Array, tol: float, scale: float, unit: float
) -> Pursuit:
    """The answer if the columns that may be in an optimal solution do not fit in memory."""
    penalty = stream.goal.penalty
    proof = certify(stream.design, stream.evaluation, np.flatnonzero(stream.evaluation.weights))
    primal = (scale if penalty == 0 else 1.0) * proof.certificate.primal
    certificate = Certificate(primal, min(stream.lower * unit, primal), proof.certificate.residual)
    indices = stream.indices[proof.support]
    weights[indices] = scale * proof.norms
    return Pursuit(
        weights=weights,
        tied=tied,
        certificate=certificate,
        dual=scale * stream.dual,
        penalty=penalty,
        status="optimal" if certificate.gap <= tol else "stopped" if stream.watch.stopped else "stalled",
        notes=stream.notes,
        support_coefficients=scale * proof.B[0][np.argsort(indices)],
        effort=stream.effort,
        unit_length=stream.columns.unit_length,
    )


def load_columns(columns: Columns, goal: Goal, options: Options) -> StreamedColumns:
    """Minimize f over a source to the requested relative gap, or until every column that matters is resident."""
    stream = StreamedColumns(columns, goal, options)
    stream.begin()
    solve_by_parts(stream, options.tol, options.watch)
    options.watch.check()
    return stream


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

    def __init__(self, columns: Columns, goal: Goal, options: Options) -> None:
        self.columns, self.goal, self.watch = columns, goal, options.watch
        D, memory = columns.shape[0], options.memory
        if memory is None:
            most = DEVICE_MEMORY if hasattr(columns.source, "products") else MOST_MEMORY
            memory = int(np.clip(2 * ENTRY_BYTES * D * SPANNING * D * (D + 1), MEMORY, most))
        self.room = max(FEWEST_LOADED, memory // (ENTRY_BYTES * D))
        self.seconds: list[float] = []
        self.lower, self.reach = -np.inf, np.inf
        self.dual = np.zeros((D, D))
        self.settled = False
        self.indices = np.arange(0)
        self.stored = np.zeros((columns.source.shape[0], 0))
        self.weights: Array = np.zeros(0)
        self.found: Screened | None = None

    # ------------------------------------------------------------------------------------------- the beginning

    def begin(self) -> None:
        """Begin with a sample.

        If there are far more columns than D² and the target is the identity, a pass finds the longest normalized
        columns: if columns have all directions, M is nearly a multiple of the identity, and only lengths matter. For a
        projection of rank k only lengths matter if no direction has too large an eigenvalue.
        """
        D, P = self.columns.shape
        many = starting_columns(D, P, 2 * self.room) if self.goal.target is None else 0
        if self.goal.k is not None:
            many = self.room if 2 * self.room < P else 0
        self.indices = self.columns.sample(many or 2 * self.room)
        self.stored = self.columns.take(self.indices)
        self.scale()
        if many:
            longest = self.ask(Screen(np.eye(D), None, self.columns.transform, many))
            self.join(longest, np.zeros(len(self.indices), dtype=bool))
        self.span()
        self.weights = self.design.start()
        if many and self.goal.k is None:
            self.solve_as_if_equally_long()
        else:
            solve(self.design, self.weights, SAMPLE_GAP, self.watch, warm=False, nested=True)

    def solve_as_if_equally_long(self) -> None:
        """Weights that solve the program for the columns divided by their lengths.

        Otherwise small differences in length would make K inaccurate on all columns that are not part of the design.
        """
        lengths = np.linalg.norm(self.design.x[0], axis=1)
        unit = self.on_device(replace(self.design, x=self.design.x / np.maximum(lengths, SHORTEST)[:, None]))
        tol = max(START_GAP, LENGTH_SHARE * (1 - float(lengths.min() / lengths.max())))
        unit.descend(self.weights, tol, self.watch, warm=False)
        np.divide(self.weights, lengths**2, out=self.weights, where=lengths > SHORTEST)

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
        found = self.ask(Screen(K, F, self.columns.transform, self.room))
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

    def improve(self, gap: float, tol: float) -> None:
        """Solve the columns with weight and the violators that would lower f most.

        Solvers that multiply all columns are tried first if that takes fewer multiplications than the kernel. The
        central path does not converge superlinearly at the end, so it leaves more of the gap.
        """
        assert self.found is not None
        self.join(self.found, self.weights > 0)
        self.build()
        part, weights, watch = self.design, self.weights, self.watch
        crowded = part.crowded(weights)
        goal = goal_of_a_part(gap, tol, share=0.3, finish=0.999) if crowded else goal_of_a_part(gap, tol, share=0.1)
        if crowded or part.many_rows:
            watch.columns = len(weights)
            if crowded and part.follow(weights, goal, watch) <= 0.5 * gap:
                return
            if part.descend(weights, goal, watch, warm=True) <= 0.3 * gap:
                return
        solve(part, weights, goal, watch, warm=True, nested=True)

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
        screen = Screen(K, F, self.columns.transform, 1, excluded=self.columns.excluded)
        found: list[Indices] = self.columns.source.fold(Listed(screen, self.reach))
        self.seconds.append(time.perf_counter() - began)
        return np.concatenate(found)
