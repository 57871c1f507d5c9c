"""The paper's programs by name: multitask basis pursuit, isometry pursuit, and the lasso path."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isopursuit.errors import ParameterError, RangeError, RankError, ShapeError
from isopursuit.matrix import (
    Label,
    Matrix,
    as_deadline,
    as_exponent,
    as_matrix,
    as_points,
    direction_rank,
    name_columns,
)
from isopursuit.normalize import Normalization, length_range, normalize, workable
from isopursuit.pursuit.answers import Caller, Solution, judged, nothing
from isopursuit.pursuit.design import BLOCK, Design, build_design, whitened_at
from isopursuit.pursuit.streamed import Home, pursue_columns
from isopursuit.pursuit.working_set import PursuitProgress, Solved, pursue
from isopursuit.results import Certificate, Pursuit
from isopursuit.sources.columns import Columns, as_source, is_source, refuse_labels
from isopursuit.threads import on_one_blas_thread

Array = NDArray[np.float64]
Callback = Callable[[PursuitProgress], bool | None]

LARGEST_SCALE = 600.0  # logarithm of a common factor of the columns that objectives can still carry
FEW_ORDERS = 8.0  # a range of lengths, in orders of magnitude, that float64 holds with ease
COPIES, COPYING = 8, 4e8  # of the columns that an order takes, and bytes a second at which they are made
REWHITENINGS = 3  # changes of coordinates tried where rounding keeps the gap open
PROXIMAL = 1e-3  # μ of the first proximal step, relative to the largest useful λ
LEAST_PROXIMAL = 1e-6  # and of the last: smaller ones amplify rounding
STEPS = 40  # proximal steps at most
EXACT = 1e-13  # the gap that each is solved to, where rounding allows
INEXACT = 1e-9  # a gap of one above which no more are taken
HASH, SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(31)  # any odd number, about half the bits
FULL_RANK = 1e-7  # least singular value of a target, relative to the largest, that leaves M regular


@on_one_blas_thread
def basis_pursuit(
    X: Any,
    Y: Any = None,
    *,
    ridge: float = 0.0,
    tol: float = 1e-10,
    solution: Solution = "minimum-norm",
    weights: ArrayLike | None = None,
    labels: Sequence[Label] | None = None,
    callback: Callback | None = None,
    time_limit: float | None = None,
    state: str | Path | None = None,
    memory: int | None = None,
) -> Pursuit:
    """Multitask basis pursuit: min Σ‖β_p‖ subject to X β = Y, certified.

    Parameters
    ----------
    X : array_like (D, P), data frame, a list of such matrices of one shape, or a source
        Columns are candidates. Several matrices share one selection: Σ_p (Σ_i ‖β_p^i‖²)^½ is minimized. Files, memory
        maps, PyTorch tensors, Dask arrays and what `as_source` made of them are streamed over, never loaded as a whole.
    Y : array_like (D, r), or a list of them, optional
        The target; the identity if not given.
    ridge : float
        λ > 0 solves the multitask lasso ½‖Y − Xβ‖² + λ Σ‖β_p‖ instead.
    tol : float
        The relative gap to reach.
    solution : {"minimum-norm", "vertex"}
        Which solution to return where the optimum is not unique. "minimum-norm" does not depend on the order of the
        columns; "vertex" has at most D(D+1)/2 columns, the heaviest of the minimum-norm ones first.
    weights : array_like (P,), optional
        A warm start, for example from an earlier `Pursuit.weights`.
    callback : callable, optional
        Called with a `PursuitProgress` between rounds; return True to stop with what there is.
    time_limit : float, optional
        Seconds after which to stop with what there is.
    state : path, optional
        For a source: a file that keeps the weights after every pass. A run that was killed continues from it.
    memory : int, optional
        For a source: bytes that columns brought home may take. By default between 512 MB and 2 GB, by the number of
        rows.

    Returns
    -------
    Pursuit
        Weights, support, tied set, dual point and certificate.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0, 0.6], [0.0, 1.0, 0.6]])
    >>> found = basis_pursuit(X)
    >>> found.support.tolist(), round(found.objective, 9), found.unique
    ([0, 1], 2.0, True)
    """
    _check_options(ridge, tol, solution)
    deadline = as_deadline(time_limit)
    if is_source(X):
        columns = _as_columns(X, labels)
        target = _as_targets(Y, 1, False, columns.shape[0])
        options = _Options(tol, solution, weights, callback, deadline, state, memory)
        return _pursue_source(columns, None if target is None else target[0], float(ridge), options)
    matrices, many = as_points(X, labels)
    targets = _as_targets(Y, len(matrices), many, len(matrices[0].values))
    problem = _Problem.of([m.values for m in matrices], targets, float(ridge), deadline)
    return problem.pursue(matrices[0], many, tol, solution, weights, callback, deadline)


@on_one_blas_thread
def isometry_pursuit(
    X: Any,
    c: float = 1.0,
    *,
    normalization: Normalization = "symmetric",
    ridge: float = 0.0,
    tol: float = 1e-10,
    solution: Solution = "minimum-norm",
    weights: ArrayLike | None = None,
    labels: Sequence[Label] | None = None,
    callback: Callback | None = None,
    time_limit: float | None = None,
    state: str | Path | None = None,
    memory: int | None = None,
) -> Pursuit:
    """Isometry pursuit: basis pursuit of the identity by the normalized columns of X.

    Parameters are those of `basis_pursuit`, and

    c : float
        The paper's exponent in the normalization.
    normalization : {"symmetric", "logarithmic"} or callable
        See `symmetric_normalize`.

    Raises
    ------
    RangeError
        Where the normalized lengths span more than float64 can hold. The message tells which columns fell out and
        what c or scale would work.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0, 3.0, 0.7], [0.0, 1.0, 3.0, 0.7]])
    >>> found = isometry_pursuit(X)
    >>> found.support.tolist(), found.certificate.gap < 1e-10
    ([0, 1], True)
    """
    c = as_exponent(c)
    _check_options(ridge, tol, solution)
    deadline = as_deadline(time_limit)
    if is_source(X):
        columns = _as_columns(X, labels)
        normalized = replace(columns, transform=replace(columns.transform, c=c, normalization=normalization))
        options = _Options(tol, solution, weights, callback, deadline, state, memory)
        return _pursue_source(normalized, None, float(ridge), options)
    matrices, many = as_points(X, labels)
    try:
        problem, log_scale = _normalized_problem(matrices, c, normalization, float(ridge), deadline)
    except RankError as error:
        raise (_range_error(matrices[0], normalization, c) or error) from None
    if abs(log_scale) > LARGEST_SCALE:
        raise RangeError(
            f"At c={c:g} the longest normalized column has length e^{log_scale:.4g}, so that the objective leaves "
            f"float64. What works: {workable(matrices[0].values, normalization, c)}."
        )
    found = problem.pursue(matrices[0], many, tol, solution, weights, callback, deadline)
    if not np.isfinite(found.certificate.gap):
        raise _range_error(matrices[0], normalization, c) or RangeError(
            f"The pursuit's constraint cannot be met in float64 (residual {found.certificate.residual:.1e}): the "
            "normalized columns are nearly dependent. Try a smaller c, or rescale X so that good columns have length 1."
        )
    return found


@dataclass(frozen=True)
class _Options:
    tol: float
    solution: Solution
    weights: ArrayLike | None
    callback: Callback | None
    deadline: float
    state: str | Path | None
    memory: int | None


def _as_columns(X: Any, labels: Sequence[Label] | None) -> Columns:
    refuse_labels(labels)
    return as_source(X)


def _pursue_source(columns: Columns, target: Array | None, ridge: float, ask: _Options) -> Pursuit:
    """Stream until what matters is at home, then solve that as any other matrix."""
    if target is not None and not target.any():
        raise ParameterError("Y is zero, so that no column is needed.")
    P = columns.shape[1]
    given = _as_weights(ask.weights, P)
    home = pursue_columns(columns, target, ridge, ask.tol, ask.memory, ask.callback, ask.deadline, ask.state, given)
    if abs(home.log_scale) > LARGEST_SCALE:
        raise RangeError(
            f"At c={columns.transform.c:g} the longest normalized column has length e^{home.log_scale:.4g}, so that "
            "the objective leaves float64. Use a smaller c, or rescale the columns to a median length of 1."
        )
    scale = math.exp(-home.log_scale)
    if not home.complete:
        return _at_large(home, ridge, ask.tol, scale, P)
    matrix = Matrix(home.values, None, home.notes)
    caller = Caller(math.exp(home.log_scale))
    found = _pursue(home.design, matrix, False, ask.tol, ask.solution, home.weights, ask.callback, caller, ask.deadline)
    weights = np.zeros(P)
    weights[home.indices] = found.weights
    # on the columns left behind the new dual point is feasible if it proves as much as the one they were left with
    unit = (0.5 if ridge == 0 else 0.5 * ridge) * scale
    feasible = home.value - found.certificate.dual / unit <= home.slack
    if not feasible:  # nor is the bound
        dual = min(home.lower * unit, found.certificate.primal)
        found = replace(found, certificate=replace(found.certificate, dual=dual))
        if found.status == "optimal" and found.certificate.gap > ask.tol:
            found = replace(found, status="stalled")
    return replace(
        found,
        weights=weights,
        tied=home.indices[found.tied],
        dual=found.dual if feasible else scale * home.dual,
        effort=home.effort,
    )


def _at_large(home: Home, ridge: float, tol: float, scale: float, P: int) -> Pursuit:
    """The answer where more columns may be in an optimal solution than could come home."""
    design, evaluation = home.design, home.evaluation
    support = np.flatnonzero(evaluation.weights)
    unit = (0.5 if ridge == 0 else 0.5 * ridge) * scale
    proof = design.certified(evaluation, support)
    objective = scale if ridge == 0 else 1.0
    dual = min(home.lower * unit, objective * proof.certificate.primal)
    certificate = Certificate(objective * proof.certificate.primal, dual, proof.certificate.residual)
    weights = np.zeros(P)
    weights[home.indices[proof.support]] = scale * proof.norms
    return Pursuit(
        weights=weights,
        tied=home.tied,
        unique=False,
        solution="interior",
        certificate=certificate,
        dual=scale * home.dual,
        ridge=ridge,
        status="optimal" if certificate.gap <= tol else "stopped" if home.stopped else "stalled",
        notes=home.notes,
        support_coefficients=scale * proof.B[0][np.argsort(home.indices[proof.support])],
        effort=home.effort,
    )


@dataclass(frozen=True)
class _Problem:
    """A program as it is solved: columns in an order that depends on nothing but the columns, entries near 1.

    Powers of two as factors leave every digit as it was.
    """

    design: Design
    caller: Caller

    @classmethod
    def of(
        cls,
        values: list[Array],
        targets: list[Array] | None,
        ridge: float,
        deadline: float = np.inf,
        log_scale: float = 0.0,
    ) -> _Problem:
        """The program for one matrix or several, whose columns are the caller's times e^(−log_scale).

        Where there is no time for copies the columns stay in the order they came in: no answer to such a program is
        finished.
        """
        reach = 1.0 if targets is None else _power_of_two(targets)
        aims = targets if targets is None or reach == 1 else [t / reach for t in targets]
        size = _power_of_two(values)
        if COPIES * sum(v.nbytes for v in values) / COPYING > deadline - time.perf_counter() and 2**-60 < size < 2**60:
            return cls(build_design(values, aims, ridge / reach), Caller(math.exp(log_scale), reach))
        order, copies = _canonical_order(values)
        scaled = [v[:, order] if size == 1 else v[:, order] / size for v in values]
        caller = Caller(math.exp(log_scale) * size, reach, order, copies)
        return cls(build_design(scaled, aims, ridge / size / reach), caller)

    def pursue(
        self,
        matrix: Matrix,
        many: bool,
        tol: float,
        solution: Solution,
        weights: ArrayLike | None,
        callback: Callback | None,
        deadline: float,
    ) -> Pursuit:
        """The answer, in the caller's order and units."""
        given = _as_weights(weights, self.design.shape[1])
        given = given if given is None or self.caller.order is None else given[self.caller.order]
        start = None if given is None else given / self.caller.coefficients
        return _pursue(self.design, matrix, many, tol, solution, start, callback, self.caller, deadline)


def _canonical_order(values: list[Array]) -> tuple[NDArray[np.intp], NDArray[np.intp] | None]:
    """An order of the columns by a hash of their entries, so that no answer depends on the order they came in.

    Where some columns are identical, they are also numbered, in that order, such that identical ones have one number.
    """
    P = values[0].shape[1]
    keys = np.zeros(P, dtype=np.uint64)
    factors = HASH ** np.arange(1, 2 * len(values) * len(values[0]), 2, dtype=np.uint64)
    for i, v in enumerate(values):
        own = factors[i * len(v) : (i + 1) * len(v), None]
        for first in range(0, P, BLOCK):
            bits = (v[:, first : first + BLOCK] + 0.0).view(np.uint64)  # 0.0 makes −0 equal to 0
            bits = (bits ^ (bits >> SHIFT)) * HASH
            keys[first : first + BLOCK] += ((bits ^ (bits >> SHIFT)) * own).sum(axis=0, dtype=np.uint64)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    copy = np.append(False, keys[1:] == keys[:-1])
    if not copy.any():
        return order, None
    again = np.flatnonzero(copy)  # of equal hash, which almost certainly means equal
    copy[again] = np.all([(v[:, order[again]] == v[:, order[again - 1]]).all(axis=0) for v in values], axis=0)
    return order, np.cumsum(~copy) - 1


def _power_of_two(values: list[Array]) -> float:
    """The power of two next above every entry's size; 1 where all are zero."""
    return math.ldexp(1.0, math.frexp(max(float(max(v.max(), -v.min())) for v in values))[1])


def _normalized_problem(
    matrices: list[Matrix], c: float, normalization: Normalization, ridge: float, deadline: float
) -> tuple[_Problem, float]:
    """The program on normalized columns times e^(−log_scale), one factor for all points."""
    normalized = [normalize(m.values, c, normalization) for m in matrices]
    log_scale = max(one.log_scale for one in normalized) if ridge == 0 else 0.0
    values = [
        one.values if one.log_scale == log_scale else one.values * np.exp(one.log_scale - log_scale)
        for one in normalized
    ]
    carried = log_scale if abs(log_scale) <= LARGEST_SCALE else 0.0
    return _Problem.of(values, None, ridge, deadline, carried), log_scale


@on_one_blas_thread
def lasso_path(
    X: Any,
    Y: Any = None,
    *,
    ridges: Sequence[float] | int = 20,
    smallest: float = 1e-3,
    tol: float = 1e-8,
    labels: Sequence[Label] | None = None,
    callback: Callback | None = None,
    time_limit: float | None = None,
) -> tuple[Pursuit, ...]:
    """The multitask lasso ½‖Y − Xβ‖² + λ Σ‖β_p‖ for falling λ, each solved from the one before.

    Parameters
    ----------
    X, Y, tol, labels, callback
        As in `basis_pursuit`. Pass `symmetric_normalize(X, c)` for the lasso variant of isometry pursuit.
    ridges : sequence of float, or int
        The values of λ, or how many: then they fall geometrically from the largest useful one (at which no column
        is picked) to `smallest` times that.
    time_limit : float, optional
        Seconds after which the path ends with the λ reached.

    Returns
    -------
    tuple of Pursuit
        One for each λ, largest first, as far as there was time; `ridge` holds λ. The support grows from nothing to that
        of basis pursuit.

    Examples
    --------
    >>> import numpy as np
    >>> path = lasso_path(np.eye(2), ridges=[2.0, 0.5])
    >>> [len(found.support) for found in path]
    [0, 2]
    """
    deadline = as_deadline(time_limit)
    matrices, many = as_points(X, labels)
    values = [m.values for m in matrices]
    targets = _as_targets(Y, len(matrices), many, len(values[0]))
    _check_options(0.0, tol, "minimum-norm")
    if isinstance(ridges, Integral):
        if ridges < 1 or not 0 < smallest < 1:
            raise ParameterError(f"Need ridges ≥ 1 and 0 < smallest < 1; got {ridges!r} and {smallest}.")
        products = np.stack([v.T if targets is None else v.T @ targets[i] for i, v in enumerate(values)])
        largest = float(np.sqrt(np.einsum("ipr,ipr->p", products, products).max()))
        grid = largest * np.geomspace(1.0, smallest, int(ridges))
    else:
        try:
            grid = np.sort(np.asarray(ridges, dtype=np.float64).reshape(-1))[::-1]
        except (TypeError, ValueError):
            raise ParameterError(f"ridges={ridges!r} must be positive numbers, or how many of them.") from None
    if not (len(grid) and (grid > 0).all() and (grid < 1e140).all()):
        raise ParameterError("ridges must be positive numbers. For λ = 0 use basis_pursuit.")
    path: list[Pursuit] = []
    weights: Array | None = None
    for ridge in grid.tolist():
        problem = _Problem.of(values, targets, ridge, deadline)
        found = problem.pursue(matrices[0], many, tol, "minimum-norm", weights, callback, deadline)
        path.append(found)
        weights = found.weights if len(found.support) else None
        if found.status == "stopped" or time.perf_counter() > deadline:
            break
    return tuple(path)


def _as_targets(Y: Any, n: int, many: bool, D: int) -> list[Array] | None:
    if Y is None:
        return None
    parts: list[Any] = list(Y) if many else [Y]
    if len(parts) != n:
        raise ShapeError(f"There are {n} matrices but {len(parts)} targets. Pass one target for each.")
    targets = [as_matrix(part, wide=False).values for part in parts]
    if any(target.shape != (D, targets[0].shape[1]) for target in targets):
        raise ShapeError(f"Y must have {D} rows, as X has; got shapes {[t.shape for t in targets]}.")
    return targets


def _pursue(
    design: Design,
    matrix: Matrix,
    many: bool,
    tol: float,
    solution: Solution,
    weights: Array | None,
    callback: Callback | None,
    caller: Caller,
    deadline: float = np.inf,
) -> Pursuit:
    """Solve the design, pick the solution asked for, and let the certificate judge; weights are in its units."""
    if design.idle:
        return nothing(design, matrix, many, caller)
    deficient = design.deficient(FULL_RANK) and design.ridge < PROXIMAL * design.largest_pull
    best: Pursuit | None = None
    for method in (_proximal, _direct) if deficient else (_direct, _proximal):
        part, solved = method(design, tol, weights, callback, deadline)
        found = judged(part, solved, matrix, many, tol, solution, caller, deadline)
        if (
            best is None
            or (found.status == "optimal" and best.status != "optimal")
            or (best.status == "stalled" and found.certificate.gap < best.certificate.gap)
        ):
            best = found
        # a program that was solved in the design's coordinates and not in the caller's is beyond float64
        solvable = found.status == "optimal" or not (deficient or design.ridge > 0 or solved.status == "stalled")
        if solved.status == "stopped" or (solvable and solved.evaluation.minimized):
            break
    assert best is not None
    return best


def _direct(
    design: Design, tol: float, weights: Array | None, callback: Callback | None, deadline: float
) -> tuple[Design, Solved]:
    """Solve for the weights themselves, in other coordinates where rounding keeps the gap open."""
    solved = pursue(design, tol, weights, callback, deadline)
    for _ in range(REWHITENINGS if design.ridge == 0 else 0):
        if solved.status != "stalled" or solved.evaluation.gap > 0.99:
            break
        try:
            design = whitened_at(design, solved.evaluation.weights)
        except RankError:  # the weights themselves are singular
            break
        solved = pursue(design, tol, solved.evaluation.weights, callback, deadline)
    return design, solved


def _proximal(
    design: Design, tol: float, weights: Array | None, callback: Callback | None, deadline: float
) -> tuple[Design, Solved]:
    """Proximal steps on the dual, each from the solution of the one before (design.py), until rounding stops them."""
    prox = PROXIMAL * design.largest_pull
    least = LEAST_PROXIMAL / PROXIMAL * prox
    center: Array | float = 0.0
    best: tuple[float, Design, Solved] | None = None
    idle = 0
    for _ in range(STEPS):
        part = design.step(center, prox)
        solved = pursue(part, EXACT, weights, callback, deadline)
        support = np.flatnonzero(solved.evaluation.weights)
        error = part.certified(solved.evaluation, support).error
        previous = np.inf if best is None else best[0]
        if best is None or error < best[0]:
            best = error, part, solved
        if error > 0.1 * previous:
            prox, idle = max(0.1 * prox, least), idle + 1
        if error <= EXACT or solved.status == "stopped" or idle > 3 or solved.evaluation.gap > INEXACT:
            break
        center, weights = part.slope(solved.evaluation), solved.evaluation.weights
    assert best is not None
    return best[1], best[2]


def _as_weights(weights: ArrayLike | None, P: int) -> Array | None:
    if weights is None:
        return None
    try:
        w = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"weights must be {P} numbers ≥ 0, one for each column of X.") from None
    if w.shape != (P,) or not np.isfinite(w).all() or (w < 0).any():
        raise ParameterError(f"weights must be {P} finite numbers ≥ 0, one for each column of X; got shape {w.shape}.")
    return w


def _check_options(ridge: float, tol: float, solution: str) -> None:
    if not isinstance(ridge, Real) or not 0 <= ridge < 1e140:
        raise ParameterError(f"ridge={ridge!r} must be a number ≥ 0.")
    if not isinstance(tol, Real) or not 0 < tol < 1:
        raise ParameterError(f"tol={tol!r} must be a relative gap between 0 and 1, such as 1e-10.")
    if solution not in ("minimum-norm", "vertex"):
        raise ParameterError(f"solution={solution!r} is not known. Use 'minimum-norm' or 'vertex'.")


def _range_error(matrix: Matrix, normalization: Normalization, c: float) -> RangeError | None:
    """The refusal for lengths beyond float64, or None where the columns are dependent whatever their lengths."""
    values = matrix.values
    orders, fell = length_range(np.linalg.norm(values, axis=0), c, normalization)
    if orders < FEW_ORDERS or direction_rank(values, matrix.rounding) < len(values):
        return None
    which = f" {len(fell)} columns fell out altogether ({name_columns(fell, matrix.labels)})." if len(fell) else ""
    return RangeError(
        f"At c={c:g} the normalized lengths span {orders:.3g} orders of magnitude, more than float64 can hold, and the "
        f"columns that remain do not span all {len(values)} dimensions.{which} "
        f"What works: {workable(values, normalization, c)}."
    )
