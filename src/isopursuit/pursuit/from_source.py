"""The pursuit of a source: from its resident columns to the answer over all columns."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from isopursuit._core.types import Array, Indices
from isopursuit.errors import ParameterError, RangeError
from isopursuit.pursuit.answer import Caller
from isopursuit.pursuit.certificate import certify
from isopursuit.pursuit.design import MANY_ROWS
from isopursuit.pursuit.inputs import Goal, Options
from isopursuit.pursuit.problem import LARGEST_LOG_SCALE
from isopursuit.pursuit.settings import MOST_MEMORY, SOURCE_ENTRIES, WIDE
from isopursuit.pursuit.streamed import StreamedColumns, load_columns
from isopursuit.pursuit.working_set import solve_design, starting_columns
from isopursuit.results import Certificate, Pursuit
from isopursuit.sources.columns import Columns


def pursued_as_source(X: Array) -> bool:
    """Whether an array is pursued in passes like a source, so that only a few of its columns are copied."""
    if X.ndim != 2 or X.size < SOURCE_ENTRIES or X.dtype.kind not in "biuf":
        return False
    D, P = X.shape
    return starting_columns(D, P) > 0 or (D < MANY_ROWS and P >= WIDE * D * (D + 1))


def with_room_for(X: Array, options: Options) -> Options:
    """The options, with memory for half of the array if the caller set no limit."""
    return options if options.memory is not None else replace(options, memory=max(4 * X.size, MOST_MEMORY))


def pursue_source(columns: Columns, goal: Goal, options: Options) -> Pursuit:
    """Make passes until every column that matters is resident, then solve the program on those in memory."""
    penalty = goal.penalty
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
    unit = (0.5 if penalty == 0 else 0.5 * penalty) * scale  # the objective is f times this
    weights = np.zeros(columns.shape[1])
    if not stream.settled:
        return _partly_loaded(stream, tied, weights, options.tol, scale, unit)
    caller = Caller(notes=stream.notes, columns=math.exp(log_scale))
    found = solve_design(stream.design, stream.weights, caller, options)
    weights[stream.indices] = found.weights
    # if its bound is high enough, the new dual point is also feasible on the columns that were not loaded (streamed.py)
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
    )
