"""The two products of all columns with D × D matrices that the solvers for many rows and many columns need."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk, dtrmm, ssyrk, strmm

from isopursuit._core.types import Array, Indices

MULTIPLIED_AT_ONCE = 512  # columns multiplied at once, so that they stay in cache (measured: benchmarks.constants)

Single = NDArray[np.float32]


class ColumnProducts(Protocol):
    """The two products of the columns that the solvers need, computed on a host or a device.

    `rough` requests single precision. If the input is on a device, the result stays there.
    """

    def moments(self, u: Any, rough: bool = False) -> Any:
        """Σ u_p x_p x_pᵀ, (D, D)."""
        ...

    def forms(self, S: Any, rough: bool = False) -> Any:
        """x_pᵀ S x_p of every column."""
        ...

    def place(self, values: Array) -> Any:
        """The values on the device of the columns."""
        ...

    def take(self, columns: Indices) -> ColumnProducts:
        """Some of the columns."""
        ...


class HostProducts:
    """Columns (m, D) in memory."""

    def __init__(self, x: Array, single: Single | None = None) -> None:
        self.x, self.single = x, single

    def values(self, rough: bool) -> NDArray[Any]:
        """The columns in the requested precision."""
        if not rough:
            return self.x
        if self.single is None:
            self.single = self.x.astype(np.float32)
        return self.single

    def moments(self, u: Array, rough: bool = False) -> Array:
        """Σ u_p x_p x_pᵀ: that of the columns with u > 0, minus that of the others, of columns times √|u|."""
        x = self.values(rough)
        D = x.shape[1]
        add_squares = ssyrk if rough else dsyrk
        roots = np.sqrt(np.abs(u)).astype(x.dtype)[:, None]
        total = np.zeros((D, D), dtype=x.dtype, order="F")
        scaled = np.empty((MULTIPLIED_AT_ONCE, D), dtype=x.dtype)
        for sign in (1, -1):
            columns = np.flatnonzero(sign * u > 0)
            for first in range(0, len(columns), MULTIPLIED_AT_ONCE):
                these = columns[first : first + MULTIPLIED_AT_ONCE]
                y = np.take(x, these, axis=0, out=scaled[: len(these)], mode="clip")
                y *= roots[these]
                total = add_squares(sign, y.T, 1, total, lower=1, overwrite_c=1)
        total = np.tril(total.astype(np.float64))
        return total + np.tril(total, -1).T

    def forms(self, S: Array, rough: bool = False) -> Array:
        """x_pᵀ S x_p = 2 x_pᵀ U x_p, where U is the upper triangle of S with half its diagonal."""
        x = self.values(rough)
        multiply = strmm if rough else dtrmm
        half = np.triu(S)
        half[np.diag_indices_from(half)] /= 2
        half = np.asfortranarray(half, dtype=x.dtype)
        found = np.empty(len(x))
        for first in range(0, len(x), MULTIPLIED_AT_ONCE):
            columns = slice(first, first + MULTIPLIED_AT_ONCE)
            products = multiply(1.0, half, x[columns].T)
            found[columns] = 2 * np.einsum("dp,pd->p", products, x[columns])
        return found

    def place(self, values: Array) -> Array:
        """The values as they are, because the columns are in memory."""
        return values

    def take(self, columns: Indices) -> HostProducts:
        """A copy of some of the columns."""
        return HostProducts(self.x[columns], None if self.single is None else self.single[columns])
