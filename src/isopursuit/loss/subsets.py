"""The distance of a set of columns from orthonormality: the paper's loss l_c, and its multitask norm."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from isopursuit.errors import ShapeError
from isopursuit.loss.penalty import log_spectral_loss, to_loss
from isopursuit.data.matrix import as_matrix
from isopursuit._core.options import as_exponent
from isopursuit._core.linalg import spectrum
from isopursuit._core.threads import on_one_blas_thread


def isometry_loss(X: ArrayLike, c: float = 1.0) -> float:
    """Return the paper's loss l_c(X) = Σ g(σ_d), g(t) = (e^{t^c} + e^{t^-c}) / 2e, over the singular values of X.

    Parameters
    ----------
    X : array_like, shape (D, k) with k ≤ D
        The selected columns.
    c : float
        The paper's exponent. A larger c penalizes deviations from 1 more.

    Returns
    -------
    float
        At least k, and k if and only if the columns are orthonormal. Infinite if they are linearly dependent, or if
        the value overflows float64. `log_isometry_loss` does not overflow.

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
    """Return the logarithm of `isometry_loss`, which is finite for all independent columns.

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
    """Return ‖B‖_{1,2} = Σ_p ‖B_p‖, the sum of the lengths of the rows of B.

    Examples
    --------
    >>> multitask_norm([[3.0, 4.0], [0.0, 0.0], [0.0, 1.0]])
    6.0
    """
    return float(np.linalg.norm(as_matrix(B, wide=False).values, axis=1).sum())
