"""How far a set of columns is from orthonormal: the paper's loss l_c, and the multitask norm of its program."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from isopursuit.errors import ShapeError
from isopursuit.loss.penalty import log_spectral_loss, to_loss
from isopursuit.matrix import as_matrix
from isopursuit.parameters import as_exponent
from isopursuit.rank import spectrum
from isopursuit.threads import on_one_blas_thread


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
        dependent, or where the value overflows float64: `log_isometry_loss` still compares such sets.

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
