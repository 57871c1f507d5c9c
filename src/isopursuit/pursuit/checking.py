"""Check a pursuit from its coefficients and its dual point alone, with bounds on all rounding: `check_pursuit`.

The program is min Σ‖β_p‖ subject to Z β = I, where Z are the normalized columns of X. Nothing of the solver or of its
certificate is used, and the normalization is computed here again.

Any coefficients B with ‖Z B − I‖ ≤ e < 1 become feasible as B (Z B)⁻¹, whose rows are at most 1/(1 − e) longer. Any ν,
divided by the largest ‖νᵀz_p‖, is feasible for the dual program, max tr ν subject to ‖νᵀz_p‖ ≤ 1.

With U = 2⁻⁵³, a sum of n products has an error of at most n U times the sum of their sizes; exp, log and sqrt are
assumed to be within 8 U. So a length t has a relative error of (D/2 + 9) U, p = t^c one of (c (D/2 + 9) + 16) U, and
the new length 2e / (e^p + e^(1/p)) at most p + 1/p times that, and 32 U more.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from isopursuit.data._matrix import as_matrix
from isopursuit.errors import ParameterError, ShapeError
from isopursuit.results import Certificate

if TYPE_CHECKING:
    from isopursuit.results import Pursuit

U = 2.0**-53
TINY = 1e-290  # normalized lengths below this count as zero


def check_pursuit(X: Any, pursuit: Pursuit, c: float | None = 1.0) -> Certificate:
    """Bounds on the optimum of an isometry or basis pursuit that its answer proves, recomputed with directed rounding.

    Parameters
    ----------
    X : array_like (D, P) or data frame
        The matrix that was pursued.
    pursuit : Pursuit
        Its answer: of `isometry_pursuit`, or of `basis_pursuit` without a target; not with `k` or a penalty. Only
        `coefficients` and `dual` are read.
    c : float or None
        The exponent of the normalization, as in `isometry_pursuit`; None if columns are compared as they are, as in
        `basis_pursuit`.

    Returns
    -------
    Certificate
        Its `primal` is not below the optimum, and its `dual` not above it, including rounding. `primal` is infinite if
        the coefficients are not feasible.

    Examples
    --------
    >>> import isopursuit as ip
    >>> X = ip.data.load_wine().matrix(6)
    >>> print(check_pursuit(X, ip.isometry_pursuit(X)))
    7.127629108 ≤ optimum ≤ 7.127629108 (gap 1.6e-13)
    """
    values = as_matrix(X, wide=False).values
    D, P = values.shape
    B, nu = pursuit.coefficients, pursuit.dual
    if pursuit.k not in (None, D) or pursuit.penalty > 0 or B.shape != (P, D) or nu.shape != (D, D):
        if B.shape[0] != P:
            raise ShapeError(f"The pursuit is about {B.shape[0]} columns, and X has {P}.")
        raise ParameterError("check_pursuit checks pursuits without k, penalty and target, of one matrix.")
    Z, error = _normalized(values, c)
    lengths, norms = np.linalg.norm(Z, axis=0), np.linalg.norm(B, axis=1)
    used = np.flatnonzero(norms)
    residual = np.linalg.norm(Z[:, used] @ B[used] - np.eye(D)) * (1 + (D * D + 8) * U)
    residual += float(((error + (len(used) + 4) * U) * lengths * norms)[used].sum()) * (1 + 1e-9)
    primal = float(norms.sum()) * (1 + (D + len(used) + 8) * U)
    primal = primal / (1 - residual) * (1 + 4 * U) if residual < 1 else math.inf
    slopes = np.linalg.norm(nu.T @ Z, axis=0) * (1 + (D + 8) * U)
    longest = float((slopes + float(np.linalg.norm(nu)) * lengths * (error + (2 * D + 8) * U) * (1 + 1e-9)).max())
    longest += float(np.linalg.norm(nu)) * TINY
    trace = float(np.trace(nu)) - 2 * D * U * float(np.abs(np.diag(nu)).sum())
    dual = max(trace, 0.0) / longest * (1 - 8 * U) if longest > 0 else 0.0
    return Certificate(primal, dual, float(residual))


def _normalized(values: Any, c: float | None) -> tuple[Any, Any]:
    """The normalized columns, and bounds on their relative errors."""
    D = len(values)
    if c is None:
        return values, np.zeros(values.shape[1])
    lengths = np.linalg.norm(values, axis=0)
    with np.errstate(all="ignore"):
        p = np.power(np.where(lengths > 0, lengths, 1.0), c)
        new = 2 * math.e / (np.exp(p) + np.exp(1 / p))
    used = (lengths > 0) & (new > TINY)  # shorter columns count as zero; their slopes are below ‖ν‖ TINY
    if not used.any():
        raise ParameterError(f"No column has a normalized length above {TINY:g}, so nothing can be checked.")
    error = (np.where(used, p + 1 / p, 0.0) * (c * (D / 2 + 9) + 16) + 64 + D) * U
    return values * np.where(used, new / np.where(used, lengths, 1.0), 0.0), error
