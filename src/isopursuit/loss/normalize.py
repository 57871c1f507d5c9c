"""Symmetric normalization: it gives columns of unit length the largest new length.

The paper's new length is 1/g(t) with g(t) = (e^{t^c} + e^{t^-c}) / 2e. (The paper prints q_c as the reciprocal. Its
figures, its theory and the authors' scripts scale the unit vector by 1/g.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isopursuit._core.linalg import singular_values
from isopursuit._core.options import as_exponent
from isopursuit._core.types import Array
from isopursuit.data._matrix import as_matrix
from isopursuit.errors import ParameterError, unknown_option
from isopursuit.loss.penalty import LARGEST_EXP, log_penalty

Normalization = str | Callable[[Array], Array]


def symmetric_normalize(X: ArrayLike, c: float = 1.0, *, normalization: Normalization = "symmetric") -> Array:
    """Rescale every column of X to its normalized length.

    Parameters
    ----------
    X : array_like, shape (D, P)
        Columns are candidates.
    c : float
        The paper's exponent. A larger c shrinks columns of other lengths than 1 more.
    normalization : {"symmetric", "logarithmic"} or callable
        "symmetric" is the paper's 1/g. "logarithmic" is the non-smooth ``exp(−c |log t|)`` = min(t, 1/t)^c. A
        function must map an array of lengths t to their new lengths q(t) and be a symmetric normalization: q has its
        maximum only at 1, and q(t) = q(1/t).

    Returns
    -------
    ndarray, shape (D, P)
        Zero columns stay zero. Columns whose new length underflows float64 become zero.

    Examples
    --------
    >>> import numpy as np
    >>> np.linalg.norm(symmetric_normalize([[1.0, 2.0, 0.5]]), axis=0).round(6)
    array([1.      , 0.601538, 0.601538])
    """
    values = as_matrix(X, wide=False).values
    lengths = np.linalg.norm(values, axis=0)
    return _rescale(values, lengths, _new_logs(lengths, as_exponent(c), normalization))


def log_lengths(lengths: Any, c: float) -> Any:
    """Logarithms of the paper's normalized lengths, of an array or a tensor; −inf for zero columns."""
    return -log_penalty(lengths, c)


def _new_logs(lengths: Array, c: float, normalization: Normalization) -> Array:
    """Logarithms of the lengths after any normalization; −inf for zero columns."""
    if normalization == "symmetric":
        return log_lengths(lengths, c)
    positive = lengths > 0
    safe = np.where(positive, lengths, 1.0)
    if callable(normalization):
        check_symmetric(normalization)
        with np.errstate(all="ignore"):
            new = _apply(normalization, safe)
        return np.where(positive & (new > 0), np.log(np.maximum(new, np.finfo(np.float64).tiny)), -np.inf)
    if normalization == "logarithmic":
        return np.where(positive, -c * np.abs(np.log(safe)), -np.inf)
    raise unknown_option("normalization", normalization, ("symmetric", "logarithmic"), "a function of length")


def check_symmetric(normalization: Callable[[Array], Array]) -> None:
    """Raise an error for a function that is not a symmetric normalization by the paper's definition."""
    t = np.exp(np.linspace(-4.0, 4.0, 161))
    with np.errstate(all="ignore"):
        q = _apply(normalization, t)
    name = getattr(normalization, "__name__", repr(normalization))
    if not np.isfinite(q).all() or (q < 0).any():
        worst = t[~(np.isfinite(q) & (q >= 0))][0]
        raise ParameterError(f"{name} is not a normalization: at length {worst:.4g} its value is not a length ≥ 0.")
    middle = len(t) // 2
    others = np.delete(np.arange(len(t)), middle)
    if (q[others] >= q[middle]).any():
        worst = t[others][np.argmax(q[others])]
        raise ParameterError(
            f"{name} is not a symmetric normalization: it must be largest at length 1 only, "
            f"but q({worst:.4g}) = {q[others].max():.6g} ≥ q(1) = {q[middle]:.6g}."
        )
    unequal = np.abs(q - q[::-1]) > 1e-8 * q + 1e-300
    if unequal.any():
        i = int(np.flatnonzero(unequal)[0])
        raise ParameterError(
            f"{name} is not a symmetric normalization: q(t) must equal q(1/t), "
            f"but q({t[i]:.4g}) = {q[i]:.6g} and q({1 / t[i]:.4g}) = {q[-1 - i]:.6g}."
        )


def _apply(normalization: Callable[[Array], Array], t: Array) -> Array:
    try:
        q = np.asarray(normalization(t), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"The normalization does not map lengths to lengths: {error}.") from None
    if q.shape != t.shape:
        raise ParameterError(
            f"The normalization returned shape {q.shape} for lengths of shape {t.shape}. "
            "It must map an array of lengths to an array of new lengths."
        )
    return q


def _rescale(values: Array, lengths: Array, new_log: Array) -> Array:
    """Scale columns to new lengths. A column whose new length underflows float64 becomes zero."""
    positive = lengths > 0
    factor = np.maximum(new_log, -1500.0) - np.log(np.where(positive, lengths, 1.0))
    # multiply twice by the square root, because e^factor can overflow float64 even if the new column does not
    half = np.exp((factor / 2).clip(-LARGEST_EXP, LARGEST_EXP)) * positive
    scaled = values * half
    scaled *= half
    return scaled


def normalize(values: Array, c: float) -> tuple[Array, float]:
    """Return the normalized matrix times e^(−log_scale), and log_scale, which keeps the longest column near 1."""
    lengths = np.sqrt(np.einsum("dp,dp->p", values, values))
    new_log = log_lengths(lengths, c)
    longest = float(new_log.max())
    log_scale = longest if 5.0 < abs(longest) < math.inf else 0.0
    return _rescale(values, lengths, new_log - log_scale), log_scale


def length_range(lengths: Array, c: float) -> tuple[float, list[int]]:
    """Return the orders of magnitude that the normalized lengths span, and the columns that underflow float64."""
    new_log = log_lengths(lengths, c)
    relative = new_log - (new_log.max() if np.isfinite(new_log.max()) else 0.0)
    positive = lengths > 0
    orders = -float(relative[positive].min()) / np.log(10.0) if np.isfinite(new_log.max()) else np.inf
    return orders, np.flatnonzero(positive & (relative < -LARGEST_EXP)).tolist()


def workable(values: Array, c: float) -> str:
    """Describe which c or which scale keeps the normalized columns within the range of float64."""

    def reachable(matrix: Array, exponent: float) -> bool:
        s = singular_values(normalize(matrix, exponent)[0])
        return bool(s[-1] > 1e-10 * s[0])

    lengths = np.linalg.norm(values, axis=0)
    median = float(np.median(lengths[lengths > 0]))
    advice = [f"c ≤ {e:.3g}" for e in (c * 0.8**i for i in range(1, 30)) if reachable(values, e)][:1]
    if reachable(values / median, c):
        advice.append(f"X divided by its median length {median:.4g}")
    return " or ".join(advice) if advice else "a smaller c together with columns rescaled to about unit length"
