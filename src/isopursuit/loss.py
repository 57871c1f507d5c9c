"""How far a set of columns is from orthonormal: the paper's loss l_c, and the others its searches can use.

Everything is computed as a logarithm, so that nothing overflows for any exponent c.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isopursuit.errors import ParameterError, ShapeError
from isopursuit.matrix import as_exponent, as_matrix, spectrum
from isopursuit.normalize import log_penalty, symmetric_normalize
from isopursuit.threads import on_one_blas_thread

Array = NDArray[np.float64]

STATED = 1e-9  # relative to the loss: what "proved optimal" promises


def isometry_loss(X: ArrayLike, c: float = 1.0) -> float:
    """The paper's loss l_c(X) = Σ g(σ_d), g(t) = (e^{t^c} + e^{t^-c}) / 2e, over the singular values of X.

    Parameters
    ----------
    X : array_like, shape (D, k) with k ≤ D
        The chosen columns.
    c : float
        The paper's exponent; larger is less forgiving.

    Returns
    -------
    float
        At least k, and equal to k exactly when the columns are orthonormal. Infinite when they are linearly
        dependent, or where the value is beyond float64: `log_isometry_loss` still tells such sets apart.

    Examples
    --------
    >>> import numpy as np
    >>> round(isometry_loss(np.eye(3)), 12)
    3.0
    >>> round(isometry_loss([[2.0, 0.0], [0.0, 0.5]]), 6)
    3.324812
    """
    return to_loss(log_isometry_loss(X, c))


@on_one_blas_thread
def log_isometry_loss(X: ArrayLike, c: float = 1.0) -> float:
    """The logarithm of `isometry_loss`, finite wherever the columns are independent.

    Examples
    --------
    >>> import numpy as np
    >>> log_isometry_loss(0.1 * np.eye(2), c=10) > 1e9
    True
    """
    values = as_matrix(X, wide=False).values
    D, k = values.shape
    if k > D:
        raise ShapeError(f"{k} columns in {D} dimensions are dependent, so their loss is infinite. Pass at most {D}.")
    return float(log_spectral_loss(spectrum(values), as_exponent(c)))


def multitask_norm(B: ArrayLike) -> float:
    """‖B‖_{1,2} = Σ_p ‖B_p‖, the sum of the lengths of the rows of B.

    Examples
    --------
    >>> multitask_norm([[3.0, 4.0], [0.0, 0.0], [0.0, 1.0]])
    6.0
    """
    return float(np.linalg.norm(as_matrix(B, wide=False).values, axis=1).sum())


def to_loss(log_loss: float) -> float:
    """e^log_loss, infinite beyond float64 without a warning."""
    return float(np.exp(log_loss)) if log_loss < 709.0 else float("inf")


def singular_value_error(sigma: Array) -> Array:
    """The error of singular values that LAPACK computed, along the last axis, descending: k eps σ_1."""
    return np.finfo(np.float64).eps * sigma.shape[-1] * sigma[..., :1]


def log_spectral_loss(sigma: Array, c: float) -> Array:
    """The logarithm of Σ_d g(σ_d) over the last axis of descending singular values; infinite for dependent columns."""
    dependent = sigma[..., -1] <= singular_value_error(sigma)[..., 0]
    return np.where(dependent, np.inf, log_total_penalty(sigma, c))


def least_log_spectral_loss(sigma: Array, c: float) -> Array:
    """The least that `log_spectral_loss` can be in exact arithmetic: every singular value is moved towards 1 by its
    error.
    """
    error = singular_value_error(sigma)
    moved = np.where(sigma < 1, np.minimum(sigma + error, 1.0), np.maximum(sigma - error, 1.0))
    total = log_total_penalty(moved, c)
    return np.where(total < np.inf, total * (1 - 8 * np.finfo(np.float64).eps), np.inf)


def log_total_penalty(t: Array, c: float) -> Array:
    """The logarithm of Σ g(t) over the last axis."""
    terms = log_penalty(t, c)
    top = terms.max(axis=-1)
    finite = np.where(top < np.inf, top, 0.0)
    with np.errstate(over="ignore"):
        return np.where(top < np.inf, finite + np.log(np.exp(terms - finite[..., None]).sum(axis=-1)), np.inf)


@dataclass(frozen=True)
class Objective:
    """What a search minimizes.

    `score` maps a stack of submatrices (..., D, k) to numbers to compare; `loss` turns a score into the value that is
    reported. For l_c the score is the log-loss. `bound(k)` is the least loss any k columns can have. `add` turns the
    scores of many points that share one selection (along the last axis) into that of their summed losses. `least` is
    the score less what rounding may have added to it, where that is known.
    """

    name: str
    score: Callable[[Array], Array]
    least: Callable[[Array], Array] | None = None
    loss: Callable[[float], float] = float
    bound: Callable[[int], float] = lambda k: -np.inf
    add: Callable[[Array], Array] = lambda scores: scores.sum(axis=-1)

    def total(self, stack: Array) -> Array:
        """Scores (m,) of the losses summed over points, for m subsets at n points (m, n, D, k)."""
        return self.add(self.score(stack))

    def resolves(self, subset: Array) -> bool:
        """Whether float64 knows the loss of a subset (n, D, k) well enough for a proof. Where it does not, bounds near
        that loss say nothing either.
        """
        if self.least is None:
            return True
        score = float(self.total(subset[None])[0])
        return score < np.inf and score - float(self.add(self.least(subset))) <= STATED


def as_objective(objective: str | Callable[[Array], float], c: float = 1.0) -> Objective:
    """The objective of that name at exponent c, or the user's own function of one D × k matrix."""
    if callable(objective):
        return Objective(getattr(objective, "__name__", "custom"), _one_by_one(objective))
    try:
        return _OBJECTIVES[objective](as_exponent(c))
    except KeyError:
        names = ", ".join(repr(name) for name in _OBJECTIVES)
        raise ParameterError(f"objective={objective!r} is not known. Use one of {names}, or a function.") from None


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


def _isometry(c: float) -> Objective:
    def score(stack: Array) -> Array:
        return log_spectral_loss(spectrum(stack), c)

    def least(stack: Array) -> Array:
        return least_log_spectral_loss(spectrum(stack), c)

    return Objective("isometry", score, least, loss=to_loss, bound=float, add=log_sum)


def log_sum(log_losses: Array) -> Array:
    """Log Σ l_i from the log l_i, along the last axis."""
    return np.logaddexp.reduce(log_losses, axis=-1)


def _multitask(c: float) -> Objective:
    """‖(w(X, c)_S)⁺‖_{1,2}: the basis-pursuit loss of the normalized columns (the supplement's deep dive)."""

    def score(stack: Array) -> Array:
        flat = stack.reshape(-1, *stack.shape[-2:])
        D, k = stack.shape[-2:]
        normalized = symmetric_normalize(np.moveaxis(flat, 0, 1).reshape(D, -1), c).reshape(D, -1, k)
        normalized = np.moveaxis(normalized, 1, 0)
        _, s, vt = np.linalg.svd(normalized, full_matrices=False)
        full = s[:, -1] > np.finfo(np.float64).eps * k * s[:, 0]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # rows of the pseudo-inverse V S⁻¹ Uᵀ have the lengths of the rows of V S⁻¹
            lengths = np.linalg.norm(np.swapaxes(vt, 1, 2) / s[:, None, :], axis=2)
        return np.where(full, lengths.sum(axis=1), np.inf).reshape(stack.shape[:-2])

    return Objective("multitask", score, bound=float)


def _deformation(c: float) -> Objective:
    """σ_max / σ_min, the distortion that greedy manifold methods minimize; blind to overall scale."""

    def score(stack: Array) -> Array:
        s = spectrum(stack)
        full = s[..., -1] > np.finfo(np.float64).eps * s.shape[-1] * s[..., 0]
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
