"""Singular values, rank and row space of wide matrices, and NumPy or PyTorch for an array or a tensor.

Nothing here validates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from hashlib import blake2b
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from isopursuit._core.types import Array, Indices

EPS = float(np.finfo(np.float64).eps)
# a sine, the most that a leading space counts as being off: where singular values are so close that rounding decides
# which space it is, either is as good (derived: √n EPS for sums of n = 2e5 products)
LOOSE = 1e-13
# columns per row that are tried first to show full rank (measured: 1 Gaussian one is enough, but tables repeat rows)
SAMPLE = 8


def spectrum(stack: Array) -> Array:
    """Singular values of a matrix, or of a stack of matrices, in descending order."""
    return np.asarray(np.linalg.svd(stack, compute_uv=False), dtype=np.float64)


def singular_values(values: Array) -> Array:
    """Singular values of a matrix, in descending order, without a copy of it.

    Blocks of its longer side are reduced to triangles by QR (no Gram matrix is formed), so small ones stay accurate.
    """
    return spectrum(row_triangle(values if values.shape[0] <= values.shape[1] else values.T))


def in_own_span(values: Array) -> Array:
    """Columns (D, P), D > P, in an orthonormal basis of their span, (P, P): inner products stay.

    Columns that are equal up to sign stay so to the last bit, which rounding alone would not leave them.
    """
    R = row_triangle(values.T)
    leading = np.take_along_axis(values, (values != 0).argmax(axis=0)[None], axis=0)[0]
    signs = np.where(leading < 0, -1.0, 1.0)
    first: dict[bytes, int] = {}
    unsigned = (values[:, p] * signs[p] + 0.0 for p in range(len(R)))
    like = np.array([first.setdefault(blake2b(one.tobytes()).digest(), p) for p, one in enumerate(unsigned)])
    return R[:, like] * (signs[like] * signs)


def rotated(values: Array) -> Array:
    """Columns at n points (n, D, P), D > P, in their own spans, (n, P, P)."""
    return np.stack([in_own_span(one) for one in values])


def row_triangle(values: Array, scale: Array | None = None, block: int = 4096) -> Array:
    """R (upper, D × D) with X Xᵀ = Rᵀ R, from QR of Xᵀ by blocks; columns are multiplied by `scale` first."""
    D, P = values.shape
    R = np.zeros((0, D))
    for first in range(0, P, block):
        columns = values[:, first : first + block]
        if scale is not None:
            columns = columns * scale[first : first + block]
        # unlike NumPy's, SciPy's QR releases the global interpreter lock
        (R,) = qr(np.vstack([R, columns.T]), mode="r", overwrite_a=True, check_finite=False)
        R = np.asarray(R[:D], dtype=np.float64)
    return R


def pivoted_qr(values: Array) -> tuple[Array, Indices]:
    """R and the order of the columns: each is the one of largest residual, whose length is on the diagonal of R."""
    factors: Any = qr(values, mode="r", pivoting=True, check_finite=False)
    return factors[0], factors[1].astype(np.intp)


def numerical_rank(s: Array, P: int, error: float = 0.0) -> int:
    """The number of singular values above the rounding error: eps times the largest, or `error` if that is larger."""
    return int((s > max(len(s), P) * max(EPS * s[0], error)).sum()) if s.max(initial=0.0) > 0 else 0


def direction_rank(values: Array, rounding: Array | None = None) -> int:
    """The rank of the columns, regardless of their lengths.

    Every column is divided by its length, or by rounding / eps if that is larger. Then each has an error of at most
    eps, and directions that differ by less count as equal.
    """
    D, P = values.shape
    if D > P:  # R of X = Q R has the same inner products
        (R,) = qr(values, mode="r", check_finite=False)
        values = np.asarray(R[:P], dtype=np.float64)
    size = np.sqrt(np.einsum("dp,dp->p", values, values))
    size = size if rounding is None else np.maximum(size, rounding / EPS)
    size[size == 0] = 1.0
    # a few columns often prove full rank: σ_min of all columns is at least that of a few, and σ_max is at most √P
    few = slice(None, None, max(P // (SAMPLE * len(values)), 1))
    some = values[:, few] / size[few]
    if len(values) <= some.shape[1] < P and float(singular_values(some)[-1]) > 2 * P * math.sqrt(P) * EPS:
        return len(values)
    return numerical_rank(singular_values(values / size), max(D, P), EPS)


def centring_rounding(values: Array, shift: Any) -> Array | None:
    """A bound on the rounding error of each column after centring, as in `Matrix`; `shift` is the length of the
    subtracted mean, or None if nothing was subtracted.
    """
    # unlike `norm`, `einsum` does not need a copy of the values
    return None if shift is None else EPS * (np.sqrt(np.einsum("dp,dp->p", values, values)) + 2 * shift)


def unit_columns(values: Array) -> Array:
    """Columns scaled to length 1; zero columns remain zero."""
    lengths = np.linalg.norm(values, axis=0)
    return values / np.where(lengths > 0, lengths, 1.0)


def side_by_side(values: Array, block: int = 256) -> Array:
    """The columns as rows, (P, D), copied in blocks that fit in cache."""
    x = np.empty(values.shape[::-1])
    for first in range(0, len(x), block):
        x[first : first + block] = values[:, first : first + block].T
    return x


def fix_signs(vectors: Array) -> Array:
    """Flip vectors (…, D, k) so that their largest entries are positive, independently of the signs from LAPACK."""
    top = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=-2, keepdims=True), axis=-2)
    return vectors * np.where(top < 0, -1.0, 1.0)


def row_space(values: Array, k: int, without: Sequence[int] = ()) -> Array:
    """The columns' coordinates in the leading k-dimensional row space: U_kᵀ X, where X = U S Vᵀ.

    Columns with numbers in `without` do not contribute to that space.
    """
    return leading_directions(values, k, without)[0].T @ values


def leading_directions(values: Array, k: int, without: Sequence[int]) -> tuple[Array, float]:
    """U_k, and the sine of the angle by which rounding may turn its span: eps σ_1 / (σ_k − σ_(k+1)), at most LOOSE.

    If X has more rows than columns, the span is that of X V_k, where X = Q R and R = U S Vᵀ, so that no array is larger
    than X.
    """
    kept = np.delete(values, without, axis=1) if without else values
    if kept.shape[0] > kept.shape[1]:
        _, s, vt = np.linalg.svd(row_triangle(kept.T))
        u = np.linalg.qr(kept @ vt[:k].T)[0]
    else:
        u, s, _ = np.linalg.svd(row_triangle(kept).T)
    gap = s[k - 1] - (s[k] if k < len(s) else 0.0)
    return fix_signs(u[:, :k]), EPS * float(s[0] / max(gap, EPS / LOOSE * s[0]))


def namespace(array: Any) -> Any:
    """The module that computes with an array: NumPy, or PyTorch for its tensors."""
    return np if isinstance(array, np.ndarray) else import_module("torch")


def on_host(array: Any) -> NDArray[Any]:
    """An array, or a tensor on any device, as a NumPy array."""
    return np.asarray(array if isinstance(array, np.ndarray) else array.cpu())
