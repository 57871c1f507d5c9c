"""The paper's programs by name: multitask basis pursuit and isometry pursuit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from isopursuit._core.options import as_exponent, as_size
from isopursuit._core.progress import shown
from isopursuit._core.threads import on_one_blas_thread
from isopursuit._core.types import Label
from isopursuit.data._matrix import as_points
from isopursuit.errors import ParameterError, RangeError, RankError
from isopursuit.loss.normalize import workable
from isopursuit.pursuit.inputs import Callback, Goal, Options, as_options, as_penalty, as_targets
from isopursuit.pursuit.problem import LARGEST_LOG_SCALE, Problem, range_error
from isopursuit.pursuit.streamed import pursue_source, pursued_as_source, with_room_for
from isopursuit.results import Pursuit
from isopursuit.sources.columns import Columns, as_candidates, is_source, refuse_labels


@on_one_blas_thread
def basis_pursuit(
    X: Any,
    Y: Any = None,
    *,
    penalty: float = 0.0,
    tol: float = 1e-10,
    labels: Sequence[Label] | None = None,
    callback: Callback | None = None,
    progress: bool = False,
    time_limit: float | None = None,
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
    penalty : float
        λ > 0 solves the multitask lasso ½‖Y − Xβ‖² + λ Σ‖β_p‖ instead.
    tol : float
        The relative gap to reach.
    labels : sequence, optional
        Names of the columns, as in `select`.
    callback : callable, optional
        Called with a `PursuitProgress` between rounds. Return True to stop with the best solution so far.
    progress : bool
        Whether to show progress in a line on the error stream: live in a terminal or a notebook, the last one
        elsewhere. Nothing appears in the first half second.
    time_limit : float, optional
        Seconds after which to stop with the best solution so far.
    memory : int, optional
        For a source: bytes that resident columns may take. By default between 256 MiB and 1 GiB, by the number of
        rows, and up to 4 GiB for a tensor on a device.

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
    penalty = as_penalty(penalty)
    with shown(progress, callback, lambda now: now.line(time_limit)) as report:
        options = as_options(tol, time_limit, report, memory)
        return _basis_pursuit(X, Y, penalty, labels, options)


def _basis_pursuit(X: Any, Y: Any, penalty: float, labels: Sequence[Label] | None, options: Options) -> Pursuit:
    """`basis_pursuit` with validated options."""
    if is_source(X) or (labels is None and Y is None and pursued_as_source(X)):
        refuse_labels(labels)
        options = options if is_source(X) else with_room_for(X, options)
        columns = as_candidates(X, None)
        target = as_targets(Y, 1, False, columns.shape[0])
        return pursue_source(columns, Goal(None if target is None else target[0], penalty), options)
    matrices, many = as_points(X, labels)
    targets = as_targets(Y, len(matrices), many, len(matrices[0].values))
    return Problem.of(matrices, many, targets, Goal(None, penalty)).pursue(options)


@on_one_blas_thread
def isometry_pursuit(
    X: Any,
    c: float = 1.0,
    *,
    k: int | None = None,
    penalty: float = 0.0,
    tol: float = 1e-10,
    labels: Sequence[Label] | None = None,
    callback: Callback | None = None,
    progress: bool = False,
    time_limit: float | None = None,
    memory: int | None = None,
) -> Pursuit:
    """Isometry pursuit: basis pursuit of the identity by the normalized columns of X.

    Parameters are those of `basis_pursuit`, and

    c : float
        The paper's exponent in the normalization.
    k : int, optional
        How many columns to pick, if fewer than rows. The identity is then replaced by the cheapest projection of
        rank k, relaxed: min Σ‖β_p‖ subject to X β = P, where P is symmetric with eigenvalues from 0 to 1 and trace k.
        X may then have more rows than columns. If X contains k orthonormal columns, they are always tied. Not available
        with a penalty, or in `basis_pursuit` and `lasso_path`.

    Raises
    ------
    RangeError
        If the normalized lengths exceed the range of float64. The message names the columns that underflow and the c or
        scale that would work.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0, 3.0, 0.7], [0.0, 1.0, 3.0, 0.7]])
    >>> found = isometry_pursuit(X)
    >>> found.support.tolist(), found.certificate.gap < 1e-10
    ([0, 1], True)

    Fewer columns than rows:

    >>> X = np.hstack([np.eye(4)[:, :2], np.full((4, 3), 0.4) + 0.1 * np.eye(4)[:, :3]])
    >>> found = isometry_pursuit(X, k=2)
    >>> found.tied.tolist(), round(found.objective, 9)
    ([0, 1], 2.0)
    """
    c, goal = as_exponent(c), Goal(None, as_penalty(penalty), k)
    with shown(progress, callback, lambda now: now.line(time_limit)) as report:
        options = as_options(tol, time_limit, report, memory)
        return _isometry_pursuit(X, goal, c, labels, options)


def _isometry_pursuit(X: Any, goal: Goal, c: float, labels: Sequence[Label] | None, options: Options) -> Pursuit:
    """`isometry_pursuit` with validated options."""
    if is_source(X):
        refuse_labels(labels)
        return _normalized_source(as_candidates(X, goal.k), goal, c, options)
    if labels is None and pursued_as_source(X):
        return _normalized_source(as_candidates(X, goal.k), goal, c, with_room_for(X, options))
    matrices, many = as_points(X, labels, wide=goal.k is None)
    first = matrices[0]
    goal = _checked(goal, len(first.values), min(one.rank for one in matrices) if goal.k is not None else 0)
    if not many and pursued_as_source(first.values):
        options = with_room_for(first.values, options)
        found = _normalized_source(as_candidates(first.values, goal.k), goal, c, options)
        return replace(found, labels=first.labels, notes=first.notes + found.notes, unit_length=first.unit_length)
    try:
        problem, log_scale = Problem.normalized(matrices, many, goal, c)
        if abs(log_scale) > LARGEST_LOG_SCALE:
            raise RangeError(
                f"At c={c:g} the longest normalized column has length e^{log_scale:.4g}, so that the objective "
                f"overflows float64. What works: {workable(first.values, c)}."
            )
        found = problem.pursue(options)
    except RankError as error:
        raise (range_error(first, c, goal.k) or error) from None
    if not np.isfinite(found.certificate.gap):
        raise range_error(first, c, goal.k) or RangeError(
            f"The pursuit's constraint cannot be met in float64 (residual {found.certificate.residual:.1e}): the "
            "normalized columns are nearly dependent. Try a smaller c, or rescale X so that good columns have length 1."
        )
    return _pursuit_of(goal.k, found)


def _checked(goal: Goal, rows: int, rank: int) -> Goal:
    """The goal with a valid number of columns to pick; None, for the paper's program, if there are as many rows."""
    if goal.k is None:
        return goal
    k = as_size(goal.k, rows, rank)
    if k == rows:
        return replace(goal, k=None)
    if goal.penalty > 0:
        raise ParameterError(
            f"penalty={goal.penalty:g} with k={k} is not available: the lasso is defined for k={rows}, one column for "
            "each row. Leave out k, and let the penalty decide how many columns are kept, or leave out the penalty."
        )
    return replace(goal, k=k)


def _normalized_source(columns: Columns, goal: Goal, c: float, options: Options) -> Pursuit:
    rows = columns.shape[0]
    goal = _checked(goal, rows, rows)
    found = pursue_source(replace(columns, transform=replace(columns.transform, c=c)), goal, options)
    return _pursuit_of(goal.k, found)


def _pursuit_of(k: int | None, found: Pursuit) -> Pursuit:
    """The answer with its k, and a note if it does not help a search."""
    if k is None:
        return found
    found = replace(found, k=k)
    if found.prunes:
        return found
    note = f"the pursuit excludes too few columns to help a search: {len(found.tied)} of {len(found.weights)} are tied."
    return replace(found, notes=(*found.notes, note))
