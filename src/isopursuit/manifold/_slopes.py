"""Slopes of functions from their values, by linear regression on the neighbours of each point.

In the neighbourhood of a point, with tangent coordinates u_j = Tᵀ (x_j − x̄) of its k neighbours, the values of a
function are a + ⟨b, u_j⟩ + r_j. Least squares gives the slopes b = G⁻¹ Σ u_j f_j with G = Σ u_j u_jᵀ; they estimate the
differential Tᵀ ∇f, averaged over the neighbourhood. Their covariance is s² G⁻¹ with s² = Σ r_j² / (k − D − 1).
Curvature of f counts as a residual r_j.

A circular function, with values θ of period 2π, is regressed as z = e^{iθ}. With the mean a of z and its slopes b, the
angle of z changes in the middle of the neighbourhood by

    dθ = Im(ā b) / |a|².
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import pinvh

from isopursuit._core.threads import on_one_blas_thread
from isopursuit._core.types import Array
from isopursuit.data._matrix import as_matrix
from isopursuit.errors import ParameterError, ShapeError
from isopursuit.manifold.tangent import TangentSpaces


@on_one_blas_thread
def local_slopes(
    points: ArrayLike, values: Array, tangents: TangentSpaces, periods: Array | None = None
) -> tuple[Array, Array]:
    """Slopes of functions along tangent spaces and their standard errors, each (n, D, P).

    Parameters
    ----------
    points : array_like (N, B)
        All points.
    values : ndarray (N, P)
        The values of the functions at all points.
    tangents : TangentSpaces
        Tangent spaces at n of the points, from `tangent_spaces`.
    periods : ndarray (P,), optional
        The periods of the functions, infinite if they have none.
    """
    places = as_matrix(points, wide=False).values
    if tangents.members is None:
        raise ParameterError("The neighbours of these tangent spaces are not known. Make them with `tangent_spaces`.")
    if len(values) != len(places):
        raise ShapeError(f"There are values at {len(values)} points, but {len(places)} points. Pass values at each.")
    n, _, D = tangents.bases.shape
    k, P = tangents.neighbours, values.shape[1]
    around = np.zeros(P, dtype=bool) if periods is None else np.isfinite(periods)
    rates = 2 * np.pi / periods[around] if periods is not None else np.empty(0)
    slopes, errors = np.empty((n, D, P)), np.empty((n, D, P))
    for i, near in enumerate(tangents.members):
        offsets = (places[near] - places[tangents.at[i]]) @ tangents.bases[i]
        offsets -= offsets.mean(axis=0)
        inverse: Array = np.asarray(pinvh(offsets.T @ offsets), dtype=np.float64)
        spread = np.sqrt(np.diag(inverse) / max(k - D - 1, 1))
        for some, circular in ((~around, False), (around, True)):
            if not some.any():
                continue
            f: NDArray[Any] = values[near][:, some]
            f = np.exp(1j * rates * f) if circular else f
            mean = f.mean(axis=0)
            b = inverse @ (offsets.T @ (f - mean))
            residuals = f - mean - offsets @ b
            if circular:  # the change of the angle, by residuals at right angles to z
                around_mean = np.conj(mean) / np.maximum(np.abs(mean) ** 2, np.finfo(np.float64).tiny) / rates
                b, residuals = np.imag(around_mean * b), np.imag(around_mean * residuals)
            slopes[i][:, some] = np.real(b)
            errors[i][:, some] = np.outer(spread, np.linalg.norm(residuals, axis=0))
    return slopes, errors
