"""A pursuit in canonical form: the order of the columns depends only on their entries, which are scaled to near 1."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from isopursuit._core.linalg import direction_rank
from isopursuit._core.text import name_columns
from isopursuit._core.types import Array, Indices
from isopursuit.data._matrix import Matrix
from isopursuit.errors import RangeError
from isopursuit.loss.normalize import length_range, normalize, workable
from isopursuit.pursuit import _program
from isopursuit.pursuit.certificate import Caller
from isopursuit.pursuit.design import Design, build_design
from isopursuit.pursuit.inputs import Goal, Options
from isopursuit.pursuit.rectangular import RectangularDesign
from isopursuit.pursuit.working_set import solve_design
from isopursuit.results import Pursuit

LARGEST_LOG_SCALE = 600.0  # largest log of a common factor of the columns (derived: objectives stay below e^709)
FEW_ORDERS = 8.0  # range of lengths, in orders of magnitude, that is safe in float64 (derived: half of its 16 digits)
TRANSPOSED_AT_ONCE = 256  # columns that are transposed at once, which stay in cache (derived: 1 MB at 500 rows)
HASH = 0x9E3779B97F4A7C15  # factor of the first row in a column's hash (derived: 2^64 over the golden ratio)


@dataclass(frozen=True)
class Problem:
    """A program in canonical form, and how the caller's problem differs from it.

    The scale factors are powers of two, so scaling is exact.
    """

    design: Design
    caller: Caller

    @classmethod
    def of(
        cls,
        matrices: list[Matrix],
        many: bool,
        targets: list[Array] | None,
        goal: Goal,
        log_scale: float = 0.0,
    ) -> Problem:
        """The program for one matrix or several, whose columns are the caller's times e^(−log_scale).

        For k columns of more than k rows: if rows outnumber columns, X = Q R, and the program is that of R, because it
        depends only on inner products.
        """
        values = [m.values for m in matrices]
        reach = 1.0 if targets is None else _power_of_two(targets)
        aims = targets if targets is None or reach == 1 else [t / reach for t in targets]
        size = _power_of_two(values)
        order, copies = _canonical_order(values)
        scaled = [_reordered(v, order, size) for v in values]
        first, unit = matrices[0], math.exp(log_scale) * size
        caller = Caller(first.labels, first.notes, many, unit, reach, order, copies, first.unit_length)
        if goal.k is None:
            return cls(build_design(scaled, aims, goal.penalty / size / reach), caller)
        x = np.stack([v.T for v in scaled])
        if x.shape[2] <= x.shape[1]:
            return cls(RectangularDesign(x, None, 0.0, k=goal.k), caller)
        Q, R = np.linalg.qr(np.swapaxes(x, 1, 2))
        R = np.ascontiguousarray(np.swapaxes(R, 1, 2))
        return cls(RectangularDesign(R, None, 0.0, values=x, k=goal.k, bases=Q), caller)

    @classmethod
    def normalized(cls, matrices: list[Matrix], many: bool, goal: Goal, c: float) -> tuple[Problem, float]:
        """The program on normalized columns times e^(−log_scale), one factor for all points (1 with a penalty)."""
        parts = [normalize(m.values, c) for m in matrices]
        log_scale = max(own for _, own in parts) if goal.penalty == 0 else 0.0
        values = [v if own == log_scale else v * np.exp(own - log_scale) for v, own in parts]
        points = [replace(m, values=v) for m, v in zip(matrices, values, strict=True)]
        carried = log_scale if abs(log_scale) <= LARGEST_LOG_SCALE else 0.0
        return cls.of(points, many, None, goal, carried), log_scale

    def with_penalty(self, penalty: float) -> Problem:
        """The same columns and target with another λ > 0; λ was positive before."""
        unit = self.caller.columns * self.caller.target
        return replace(self, design=replace(self.design, penalty=penalty / unit))

    def pursue(self, options: Options, weights: Array | None = None) -> Pursuit:
        """The answer, in the caller's order and units; `weights` are those of an earlier answer to start from."""
        start = None if weights is None else weights[self.caller.numbers(len(weights))] / self.caller.coefficients
        return solve_design(self.design, start, self.caller, options)


def _canonical_order(values: list[Array]) -> tuple[Indices, Indices | None]:
    """An order of the columns by a hash of their entries, so that answers do not depend on the caller's order.

    If some columns are identical, also a number for each column in that order, equal for identical columns.
    """
    keys = np.zeros(values[0].shape[1], dtype=np.uint64)
    factor = HASH
    for v in values:
        factor = _program.column_keys(np.ascontiguousarray(v), keys, factor)
    order = keys.argsort(kind="stable")
    keys = keys[order]
    copy = np.zeros(len(keys), dtype=bool)
    copy[1:] = keys[1:] == keys[:-1]
    if not copy.any():
        return order, None
    again = np.flatnonzero(copy)  # columns with equal hashes, which are almost certainly equal
    copy[again] = np.all([(v[:, order[again]] == v[:, order[again - 1]]).all(axis=0) for v in values], axis=0)
    return order, np.cumsum(~copy) - 1


def _reordered(values: Array, order: Indices, size: float) -> Array:
    """The columns in this order, divided by `size`, each contiguous in memory as the kernels need them."""
    x = np.empty(values.shape[::-1])
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    for first in range(0, len(x), TRANSPOSED_AT_ONCE):
        block = slice(first, first + TRANSPOSED_AT_ONCE)
        x[places[block]] = values[:, block].T / size
    return x.T


def _power_of_two(values: list[Array]) -> float:
    """The least power of two above the size of every entry; 1 if all are zero."""
    return math.ldexp(1.0, math.frexp(max(float(max(v.max(), -v.min())) for v in values))[1])


def range_error(matrix: Matrix, c: float, k: int | None = None) -> RangeError | None:
    """The error for lengths beyond float64, or None if the columns are dependent whatever their lengths."""
    values = matrix.values
    needed = len(values) if k is None else k
    orders, fell = length_range(np.linalg.norm(values, axis=0), c)
    if orders < FEW_ORDERS or direction_rank(values, matrix.rounding) < needed:
        return None
    which = f" {len(fell)} columns underflow to zero ({name_columns(fell, matrix.labels)})." if len(fell) else ""
    return RangeError(
        f"At c={c:g} the normalized lengths span {orders:.3g} orders of magnitude, more than float64 can hold, and the "
        f"columns that remain do not span {'all ' if k is None else ''}{needed} dimensions.{which} "
        f"What works: {workable(values, c)}."
    )
