"""Objectives of a search: the isometry loss, the other objectives of the paper, or a user's function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from isopursuit._core.linalg import spectrum
from isopursuit._core.options import as_exponent
from isopursuit._core.types import Array
from isopursuit.errors import ParameterError, unknown_option
from isopursuit.loss.aggregate import SUM, Aggregate
from isopursuit.loss.penalty import STATED, is_dependent, least_log_spectral_loss, log_spectral_loss, to_loss
from isopursuit.pursuit.normalize import symmetric_normalize
from isopursuit.search.settings import TIE


@dataclass(frozen=True)
class Objective:
    """The objective of a search.

    `score` maps a stack of submatrices (..., D, k) to numbers to compare, and `loss` converts a score to the reported
    value. For l_c the score is the log-loss. `bound(k)` is the least possible loss of k columns. `add` combines the
    scores of many points that share one selection (along the last axis). `least` is the score minus its possible
    rounding error, if known.
    """

    name: str
    score: Callable[[Array], Array]
    least: Callable[[Array], Array] | None = None
    loss: Callable[[float], float] = float
    bound: Callable[[int], float] = lambda k: -np.inf
    add: Callable[[Array], Array] = lambda scores: scores.sum(axis=-1)

    def total(self, stack: Array) -> Array:
        """Scores (m,) of all points together, for m subsets at n points (m, n, D, k)."""
        return self.add(self.score(stack))

    def resolves(self, subset: Array) -> bool:
        """Whether the loss of a subset (n, D, k) is precise enough in float64 for a proof. If not, bounds near that
        loss are meaningless too.
        """
        if self.least is None:
            return True
        score = float(self.total(subset[None])[0])
        return score < np.inf and score - self.least_score(subset) <= STATED

    def least_score(self, subset: Array) -> float:
        """The least possible score of a subset (n, D, k), given rounding."""
        return -np.inf if self.least is None else float(self.add(self.least(subset)))


def as_objective(objective: str | Callable[[Array], float], c: float = 1.0, aggregate: Aggregate = SUM) -> Objective:
    """The objective of this name at exponent c, or a user's function of one D × k matrix."""
    if objective == "isometry":
        return _isometry(as_exponent(c), aggregate)
    if aggregate.name != "sum":
        raise ParameterError(f"aggregate={str(aggregate)!r} is for objective='isometry'. Others are summed.")
    if callable(objective):
        return Objective(getattr(objective, "__name__", "custom"), _one_by_one(objective))
    try:
        return _OBJECTIVES[objective](as_exponent(c))
    except KeyError:
        raise unknown_option("objective", objective, _OBJECTIVES, "a function") from None


def _one_by_one(function: Callable[[Array], float]) -> Callable[[Array], Array]:
    def score(stack: Array) -> Array:
        flat = stack.reshape(-1, *stack.shape[-2:])
        try:
            values = np.array([float(function(matrix)) for matrix in flat])
        except (TypeError, ValueError) as error:
            raise ParameterError(f"The objective must return one number for a D × k matrix: {error}.") from None
        if np.isnan(values).any():
            raise ParameterError("The objective returned NaN. Return infinity for sets that must not be picked.")
        return values.reshape(stack.shape[:-2])

    return score


def _isometry(c: float, aggregate: Aggregate = SUM) -> Objective:
    def score(stack: Array) -> Array:
        return log_spectral_loss(spectrum(stack), c)

    def least(stack: Array) -> Array:
        return least_log_spectral_loss(spectrum(stack), c)

    return Objective("isometry", score, least, loss=to_loss, bound=float, add=aggregate.log_total)


def _multitask(c: float) -> Objective:
    """‖(w(X, c)_S)⁺‖_{1,2}: the basis-pursuit loss of the normalized columns (the supplement's deep dive)."""

    def score(stack: Array) -> Array:
        flat = stack.reshape(-1, *stack.shape[-2:])
        D, k = stack.shape[-2:]
        normalized = symmetric_normalize(np.moveaxis(flat, 0, 1).reshape(D, -1), c).reshape(D, -1, k)
        normalized = np.moveaxis(normalized, 1, 0)
        _, s, vt = np.linalg.svd(normalized, full_matrices=False)
        full = ~is_dependent(s)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # rows of the pseudo-inverse V S⁻¹ Uᵀ have the lengths of the rows of V S⁻¹
            lengths = np.linalg.norm(np.swapaxes(vt, 1, 2) / s[:, None, :], axis=2)
        return np.where(full, lengths.sum(axis=1), np.inf).reshape(stack.shape[:-2])

    return Objective("multitask", score, bound=float)


def _deformation(c: float) -> Objective:
    """σ_max / σ_min, the distortion that greedy manifold methods minimize; blind to overall scale."""

    def score(stack: Array) -> Array:
        s = spectrum(stack)
        full = ~is_dependent(s)
        return np.divide(s[..., 0], s[..., -1], out=np.full(s.shape[:-1], np.inf), where=full)

    return Objective("deformation", score, bound=lambda k: 1.0)


def _nuclear(c: float) -> Objective:
    """Σ σ_d: least for short columns, orthonormal or not."""
    return Objective("nuclear", lambda stack: spectrum(stack).sum(axis=-1), bound=lambda k: 0.0)


def _volume(c: float) -> Objective:
    """−Σ log σ_d: the negative log-volume, as determinantal point processes and pivoted QR use it."""

    def score(stack: Array) -> Array:
        s = spectrum(stack)
        with np.errstate(divide="ignore"):
            return -np.log(s).sum(axis=-1)

    return Objective("volume", score)


_OBJECTIVES: dict[str, Callable[[float], Objective]] = {
    "isometry": _isometry,
    "multitask": _multitask,
    "deformation": _deformation,
    "nuclear": _nuclear,
    "volume": _volume,
}


def lowest(scores: Array) -> int:
    """The first of the lowest scores, up to rounding."""
    least = float(scores.min())
    if not np.isfinite(least):
        return int(np.argmin(scores))
    return int(np.argmax(scores <= least + TIE * max(abs(least), 1.0)))
