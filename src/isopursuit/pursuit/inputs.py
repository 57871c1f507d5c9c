"""Options and target of a pursuit, validated once."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isopursuit._core.clock import UNLIMITED, Clock
from isopursuit._core.types import Array
from isopursuit.data._matrix import LARGEST, as_matrix
from isopursuit.errors import ParameterError, ShapeError
from isopursuit.pursuit.progress import Callback


@dataclass(frozen=True)
class Options:
    """Options of a pursuit: the gap to reach, where to start, and when to stop.

    `memory` is for sources.
    """

    tol: float = 1e-10
    weights: ArrayLike | None = None
    callback: Callback | None = None
    clock: Clock = UNLIMITED
    memory: int | None = None


@dataclass(frozen=True)
class Goal:
    """What X times the coefficients must equal: a target (None is the identity), with a penalty λ; or, if `k` is given,
    a projection of rank k.
    """

    target: Array | None = None
    penalty: float = 0.0
    k: int | None = None


def as_options(tol: float, time_limit: float | None, **others: Any) -> Options:
    """Validate the options. The time limit starts now."""
    if not isinstance(tol, Real) or not 0 < tol < 1:
        raise ParameterError(f"tol={tol!r} must be a relative gap between 0 and 1, such as 1e-10.")
    return Options(tol, clock=Clock.of(time_limit), **others)


def as_penalty(penalty: float) -> float:
    """Validate λ ≥ 0."""
    if not isinstance(penalty, Real) or not 0 <= penalty < LARGEST:
        raise ParameterError(f"penalty={penalty!r} must be a number ≥ 0.")
    return float(penalty)


def as_targets(Y: Any, n: int, many: bool, D: int) -> list[Array] | None:
    """One target (D, r) for each of n points; None for the identity."""
    if Y is None:
        return None
    parts: list[Any] = list(Y) if many else [Y]
    if len(parts) != n:
        raise ShapeError(f"There are {n} matrices but {len(parts)} targets. Pass one target for each.")
    targets = [as_matrix(part, wide=False).values for part in parts]
    if any(target.shape != (D, targets[0].shape[1]) for target in targets):
        raise ShapeError(f"Y must have {D} rows, as X has; got shapes {[t.shape for t in targets]}.")
    return targets


def as_weights(weights: ArrayLike | None, P: int) -> Array | None:
    """P weights to start from, or None."""
    if weights is None:
        return None
    try:
        w = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"weights must be {P} numbers ≥ 0, one for each column of X.") from None
    if w.shape != (P,) or not np.isfinite(w).all() or (w < 0).any():
        raise ParameterError(f"weights must be {P} finite numbers ≥ 0, one for each column of X; got shape {w.shape}.")
    return w
