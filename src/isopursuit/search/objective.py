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
from isopursuit.loss.normalize import symmetric_normalize
from isopursuit.loss.penalty import STATED, is_dependent, least_log_spectral_loss, log_spectral_loss, to_loss
from isopursuit.search.settings import TIE

ENTRIES = 2**18  # entries of all matrices whose scores are computed at once (derived: 2 MB stay in cache)


@dataclass(frozen=True)
class Objective:
    """The objective of a search.

    `score` maps a stack of submatrices (..., D, k) to numbers to compare; for the isometry loss of exponent `c` they
    are log-losses. `bound` is the least possible loss of k columns. Other objectives have no `c`, and are summed over
    points.
    """

    name: str
    score: Callable[[Array], Array]
    bound: Callable[[int], float] = lambda k: -np.inf
    c: float | None = None
    aggregate: Aggregate = SUM

    @property
    def isometry(self) -> bool:
        """Whether this is the isometry loss."""
        return self.c is not None

    def loss(self, score: float) -> float:
        """The reported value of a score."""
        return to_loss(score) if self.isometry else float(score)

    def total(self, stack: Array) -> Array:
        """Scores of all points together, for subsets at n points (..., n, D, k)."""
        scores = self.score(stack)
        return self.aggregate.log_total(scores) if self.isometry else scores.sum(axis=-1)

    def least(self, stack: Array) -> Array:
        """The least possible log-losses of subsets (..., n, D, k), given rounding."""
        assert self.c is not None
        return self.aggregate.log_total(least_log_spectral_loss(spectrum(stack), self.c))

    def resolves(self, subset: Array) -> bool:
        """Whether the log-loss of a subset (n, D, k) is precise enough in float64 for a proof. If not, bounds near that
        loss are meaningless too.
        """
        score = float(self.total(subset))
        return score < np.inf and score - float(self.least(subset)) <= STATED


def as_objective(objective: str | Callable[[Array], float], c: float = 1.0, aggregate: Aggregate = SUM) -> Objective:
    """The objective of this name at exponent c, or a user's function of one D × k matrix."""
    c = as_exponent(c)
    if objective == "isometry":
        return Objective("isometry", lambda stack: log_spectral_loss(spectrum(stack), c), float, c, aggregate)
    if aggregate.name != "sum":
        raise ParameterError(f"aggregate={str(aggregate)!r} is for objective='isometry'. Others are summed.")
    if callable(objective):
        return Objective(getattr(objective, "__name__", "custom"), _one_by_one(objective))
    if objective == "multitask":
        return Objective("multitask", lambda stack: _multitask(stack, c), float)
    if objective in _SPECTRAL:
        score, bound = _SPECTRAL[objective]
        return Objective(objective, lambda stack: score(spectrum(stack)), lambda k: bound)
    raise unknown_option("objective", objective, ("isometry", "multitask", *_SPECTRAL), "a function")


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


def _multitask(stack: Array, c: float) -> Array:
    """‖(w(X, c)_S)⁺‖_{1,2}: the basis-pursuit loss of the normalized columns (the supplement's deep dive)."""
    flat = stack.reshape(-1, *stack.shape[-2:])
    D, k = stack.shape[-2:]
    normalized = symmetric_normalize(np.moveaxis(flat, 0, 1).reshape(D, -1), c).reshape(D, -1, k)
    _, s, vt = np.linalg.svd(np.moveaxis(normalized, 1, 0), full_matrices=False)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # rows of the pseudo-inverse V S⁻¹ Uᵀ have the lengths of the rows of V S⁻¹
        lengths = np.linalg.norm(np.swapaxes(vt, 1, 2) / s[:, None, :], axis=2)
    return np.where(is_dependent(s), np.inf, lengths.sum(axis=1)).reshape(stack.shape[:-2])


def _distortion(s: Array) -> Array:
    return np.divide(s[..., 0], s[..., -1], out=np.full(s.shape[:-1], np.inf), where=~is_dependent(s))


def _log_volume(s: Array) -> Array:
    with np.errstate(divide="ignore"):
        return -np.log(s).sum(axis=-1)


_SPECTRAL: dict[str, tuple[Callable[[Array], Array], float]] = {  # functions of singular values, and their least values
    "deformation": (_distortion, 1.0),  # greedy manifold methods minimize it; blind to overall scale
    "nuclear": (lambda s: s.sum(axis=-1), 0.0),  # least for short columns, orthonormal or not
    "volume": (_log_volume, -np.inf),  # −log of the volume, as in determinantal point processes and pivoted QR
}


def lowest(scores: Array) -> int:
    """The first of the lowest scores, up to rounding."""
    least = float(scores.min())
    if not np.isfinite(least):
        return int(np.argmin(scores))
    return int(np.argmax(scores <= least + TIE * max(abs(least), 1.0)))
