"""A pursuit in canonical form: the order of the columns depends only on their entries, which are scaled to near 1."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from isopursuit._core.clock import UNLIMITED, Clock
from isopursuit._core.linalg import EPS, direction_rank
from isopursuit._core.text import name_columns
from isopursuit._core.types import Array, Indices
from isopursuit.data._matrix import Matrix
from isopursuit.errors import RangeError
from isopursuit.pursuit import _program
from isopursuit.pursuit.answers import Caller
from isopursuit.pursuit.design import Design
from isopursuit.pursuit.inputs import Options, as_weights
from isopursuit.pursuit.normalize import Normalization, length_range, normalize, workable
from isopursuit.pursuit.rectangular import RectangularDesign, largest_slope
from isopursuit.pursuit.settings import (
    COPIES,
    COPY_RATE,
    FEW_ORDERS,
    LARGEST_LOG_SCALE,
    TRANSPOSED_AT_ONCE,
)
from isopursuit.pursuit.strategies import solve_design
from isopursuit.pursuit.whitening import build_design
from isopursuit.results import Certificate, Pursuit

HASH = 0x9E3779B97F4A7C15  # factor of the first row in a column's hash (any odd number; 2^64 over the golden ratio)


@dataclass(frozen=True)
class Problem:
    """A program in canonical form: the order of the columns depends only on their entries, which are scaled to near 1.

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
        penalty: float,
        clock: Clock = UNLIMITED,
        log_scale: float = 0.0,
    ) -> Problem:
        """The program for one matrix or several, whose columns are the caller's times e^(−log_scale).

        If there is no time for copies, the columns stay in the caller's order: no such program is solved to the end.
        """
        values = [m.values for m in matrices]
        labels, notes = matrices[0].labels, matrices[0].notes
        reach = 1.0 if targets is None else _power_of_two(targets)
        aims = targets if targets is None or reach == 1 else [t / reach for t in targets]
        size = _power_of_two(values)
        duration = COPIES * sum(v.nbytes for v in values) / COPY_RATE
        if duration > clock.remaining and 2**-60 < size < 2**60:
            caller = Caller(labels, notes, many, math.exp(log_scale), reach)
            return cls(build_design(values, aims, penalty / reach), caller)
        order, copies = _canonical_order(values)
        scaled = [_reordered(v, order, size) for v in values]
        caller = Caller(labels, notes, many, math.exp(log_scale) * size, reach, order, copies)
        return cls(build_design(scaled, aims, penalty / size / reach), caller)

    def with_penalty(self, penalty: float) -> Problem:
        """The same columns and target with another λ > 0; λ was positive before."""
        unit = self.caller.columns * self.caller.target
        return replace(self, design=replace(self.design, penalty=penalty / unit))

    def pursue(self, options: Options) -> Pursuit:
        """The answer, in the caller's order and units."""
        given = as_weights(options.weights, self.design.shape[1])
        given = given if given is None or self.caller.order is None else given[self.caller.order]
        start = None if given is None else given / self.caller.coefficients
        return solve_design(self.design, start, self.caller, options)


def _canonical_order(values: list[Array]) -> tuple[Indices, Indices | None]:
    """An order of the columns by a hash of their entries, so that answers do not depend on the caller's order.

    If some columns are identical, also a number for each column in that order, equal for identical columns.
    """
    P = values[0].shape[1]
    keys = np.zeros(P, dtype=np.uint64)
    factor = HASH
    for v in values:
        factor = _program.column_keys(np.ascontiguousarray(v), keys, factor)
    order = np.argsort(keys)
    if (np.diff(keys[order]) > 0).all():
        return order, None
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    copy = np.append(False, keys[1:] == keys[:-1])
    again = np.flatnonzero(copy)  # columns with equal hashes, which are almost certainly equal
    copy[again] = np.all([(v[:, order[again]] == v[:, order[again - 1]]).all(axis=0) for v in values], axis=0)
    return order, np.cumsum(~copy) - 1


def _reordered(values: Array, order: Indices, size: float) -> Array:
    """The columns in this order, divided by `size`, each contiguous in memory as the kernels need them."""
    x = np.empty(values.shape[::-1])
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    for first in range(0, len(x), TRANSPOSED_AT_ONCE):
        block = values[:, first : first + TRANSPOSED_AT_ONCE].T
        x[places[first : first + TRANSPOSED_AT_ONCE]] = block if size == 1 else block / size
    return x.T


def _power_of_two(values: list[Array]) -> float:
    """The least power of two above the size of every entry; 1 if all are zero."""
    return math.ldexp(1.0, math.frexp(max(float(max(v.max(), -v.min())) for v in values))[1])


def normalized_problem(
    matrices: list[Matrix], many: bool, c: float, normalization: Normalization, penalty: float, clock: Clock
) -> tuple[Problem, float]:
    """The program on normalized columns times e^(−log_scale), one factor for all points."""
    values, log_scale = _normalized(matrices, c, normalization, penalty)
    carried = log_scale if abs(log_scale) <= LARGEST_LOG_SCALE else 0.0
    points = [replace(m, values=v) for m, v in zip(matrices, values, strict=True)]
    return Problem.of(points, many, None, penalty, clock, carried), log_scale


def _normalized(
    matrices: list[Matrix], c: float, normalization: Normalization, penalty: float
) -> tuple[list[Array], float]:
    """The normalized columns times e^(−log_scale), one factor for all points; 1 with a penalty."""
    normalized = [normalize(m.values, c, normalization) for m in matrices]
    log_scale = max(own for _, own in normalized) if penalty == 0 else 0.0
    return [v if own == log_scale else v * np.exp(own - log_scale) for v, own in normalized], log_scale


def rectangular_problem(
    matrices: list[Matrix], many: bool, k: int, c: float, normalization: Normalization
) -> tuple[RectangularProblem, float]:
    """The program for k columns of more than k rows; `normalized_problem` makes the square one.

    If rows outnumber columns, X = Q R, and the program is that of R, because it depends only on inner products.
    """
    values, log_scale = _normalized(matrices, c, normalization, 0.0)
    order, copies = _canonical_order(values)
    size = _power_of_two(values)
    values = [_reordered(v, order, size) for v in values]
    bases = [np.linalg.qr(v) for v in values] if len(values[0]) > len(order) else None
    rows = values if bases is None else [R for _, R in bases]
    x = np.stack([np.ascontiguousarray(v.T) for v in rows])
    carried = log_scale if abs(log_scale) <= LARGEST_LOG_SCALE else 0.0
    caller = Caller(matrices[0].labels, matrices[0].notes, many, math.exp(carried) * size, 1.0, order, copies)
    problem = Problem(RectangularDesign(x, None, 0.0, k=k), caller)
    return RectangularProblem(problem, None if bases is None else [Q for Q, _ in bases], values), log_scale


@dataclass(frozen=True)
class RectangularProblem:
    """A program for k columns of more than k rows.

    If rows outnumber columns, the program is that of Qᵀ X, and `bases` has Q and `values` has X for each point.
    """

    problem: Problem
    bases: list[Array] | None
    values: list[Array]

    def pursue(self, options: Options) -> Pursuit:
        """The answer, in the caller's order, units and rows."""
        found = self.problem.pursue(options)
        if self.bases is None:
            return found
        many, unit = self.problem.caller.many, self.problem.caller.columns
        Q = np.stack(self.bases) if many else self.bases[0]
        B, nu = found.support_coefficients @ np.swapaxes(Q, -1, -2), Q @ found.dual
        # X = Q R up to rounding: the dual point is scaled again, and the error of X B is added to the residual
        rows = np.stack([np.ascontiguousarray(v.T) for v in self.values])
        rho = max(largest_slope(rows, (nu if many else nu[None]) * unit), 1.0)
        sizes = float(np.sqrt(np.einsum("ipd,ipd->p", rows, rows)).max()) * unit * float(found.weights.sum())
        proof = found.certificate
        missed = math.sqrt(rows.shape[1]) * rows.shape[1] * EPS * sizes
        primal, dual = proof.primal / max(1 - missed, EPS), proof.dual / rho
        proof = Certificate(primal, min(dual, primal), proof.residual + missed)
        status = "stalled" if found.status == "optimal" and proof.gap > options.tol else found.status
        return replace(found, dual=nu / rho, support_coefficients=B, certificate=proof, status=status)


def range_error(matrix: Matrix, normalization: Normalization, c: float, k: int | None = None) -> RangeError | None:
    """The error for lengths beyond float64, or None if the columns are dependent whatever their lengths."""
    values = matrix.values
    needed = len(values) if k is None else k
    orders, fell = length_range(np.linalg.norm(values, axis=0), c, normalization)
    if orders < FEW_ORDERS or direction_rank(values, matrix.rounding) < needed:
        return None
    which = f" {len(fell)} columns underflow to zero ({name_columns(fell, matrix.labels)})." if len(fell) else ""
    return RangeError(
        f"At c={c:g} the normalized lengths span {orders:.3g} orders of magnitude, more than float64 can hold, and the "
        f"columns that remain do not span {'all ' if k is None else ''}{needed} dimensions.{which} "
        f"What works: {workable(values, normalization, c)}."
    )
