"""Tangent spaces of a data manifold: the leading principal directions of each point's neighbourhood."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from scipy.spatial import cKDTree

from isopursuit._core.linalg import EPS, fix_signs
from isopursuit._core.options import as_count, as_numbers
from isopursuit._core.threads import on_one_blas_thread
from isopursuit._core.types import Array, Indices
from isopursuit.data._matrix import as_matrix
from isopursuit.errors import ParameterError, RankError

LEADING = 10  # variances of a neighbourhood that are kept, if D is smaller (chosen: more are not shown)
# beyond so many dimensions a k-d tree has one leaf, which is a plain scan. For 464 of 10,000 points in 252 dimensions
# this takes 0.7 ms a query, and leaves of 16 points take 2.8 ms
TREE_DIMENSIONS = 15
# neighbours for each of D + 1 unknowns, the directions and the centre (derived from `check_points`: if ten more
# directions have a tenth of the variance each, a direction is off by at most 14°, and the tangent space is determined)
FEWEST = 10
# neighbours of a point, in units of N^(2/3), for shapes of a molecule and for other points (measured: the loss of
# ethanol is least with 300 to 700 of 16,000 frames; for 10,000 frames of alanine dipeptide, 464 neighbours leave 20 of
# 100 tangent spaces undetermined for D = 2 and D = 4, and 100 leave 80; the coordinates of swiss rolls of 1,000 points
# are found with 20 to 40)
SHAPES, POINTS = 1.0, 0.3
BLOCK = 8  # points between two calls of the callback: a tenth of the default, for an early estimate of the time


@dataclass(frozen=True)
class TangentSpaces:
    """Orthonormal bases of tangent spaces, and the spectra that they were estimated from.

    Attributes
    ----------
    bases : ndarray, shape (n, B, D)
        Orthonormal columns that span the tangent space at each point, in order of decreasing variance.
    spectra : ndarray, shape (n, m)
        The leading variances of each neighbourhood, descending.
    totals : ndarray, shape (n,)
        The total variance of each neighbourhood.
    neighbours : int
        The number of points in each neighbourhood, including the point itself.
    at : ndarray of int, shape (n,)
        The numbers of the points.
    members : ndarray of int, shape (n, neighbours), or None
        The numbers of the points in each neighbourhood, nearest first.
    """

    bases: Array
    spectra: Array
    totals: Array
    neighbours: int
    at: Indices
    members: Indices | None = None

    @property
    def dimension(self) -> int:
        """D, the number of directions in each basis."""
        return self.bases.shape[2]

    @property
    def shares(self) -> Array:
        """The leading variances as shares of the total, (n, m)."""
        return self.spectra / self.totals[:, None]

    @property
    def explained(self) -> Array:
        """The share of each neighbourhood's variance in its tangent space."""
        return self.shares[:, : self.dimension].sum(axis=1)

    def take(self, points: ArrayLike) -> TangentSpaces:
        """Some of the tangent spaces, given by their numbers or a mask."""
        some = as_numbers(points, len(self.bases), "points")
        members = None if self.members is None else self.members[some]
        return TangentSpaces(
            self.bases[some], self.spectra[some], self.totals[some], self.neighbours, self.at[some], members
        )

    def of_dimension(self, D: int) -> TangentSpaces:
        """The tangent spaces spanned by the D directions of largest variance; D is at most the present dimension."""
        if not 1 <= D <= self.dimension:
            raise ParameterError(f"D={D} is out of range: these tangent spaces have {self.dimension} dimensions.")
        return replace(self, bases=self.bases[:, :, :D])

    def project(self, vectors: ArrayLike) -> Array:
        """Project vectors (n, B, P) onto the tangent spaces: coordinates (n, D, P)."""
        return np.swapaxes(self.bases, 1, 2) @ np.asarray(vectors, dtype=np.float64)

    def __str__(self) -> str:
        shares = ", ".join(f"{share:.3g}" for share in self.shares.mean(axis=0)[: self.dimension + 3])
        more = ", …" if self.spectra.shape[1] > self.dimension + 3 else ""
        return (
            f"{len(self.bases)} tangent spaces of dimension {self.dimension} in {self.bases.shape[1]} dimensions, from "
            f"{self.neighbours} neighbours each\n  shares of the variance: {shares}{more}"
        )


@on_one_blas_thread
def tangent_spaces(
    points: ArrayLike,
    at: ArrayLike | None = None,
    *,
    D: int,
    neighbours: int,
    leading: int = LEADING,
    callback: Callable[[int, int], object] | None = None,
) -> TangentSpaces:
    """Tangent spaces by local principal component analysis.

    Parameters
    ----------
    points : array_like (N, B)
        The data: N points in B dimensions.
    at : array_like of int (n,), optional
        Numbers of the points at which to estimate. Default: all points.
    D : int
        The dimension of the manifold; `find_coordinates` compares several.
    neighbours : int
        The number of points in a neighbourhood, including the point itself: at least D + 1, and at most half of all
        points.
    leading : int
        The number of variances of each neighbourhood to keep; at least D + 1 are kept.
    callback : callable, optional
        Called with the number of finished points and the number of all points.

    Returns
    -------
    TangentSpaces

    Raises
    ------
    RankError
        A neighbourhood spans fewer than D dimensions, for example because it consists of copies of one point.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.linspace(0.0, 2 * np.pi, 400, endpoint=False)
    >>> circle = np.column_stack([np.cos(t), np.sin(t), np.zeros(400)])
    >>> spaces = tangent_spaces(circle, [0, 100], D=1, neighbours=9)
    >>> np.abs(spaces.bases[:, :, 0]).round(6).tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """
    values = as_matrix(points, wide=False).values
    N, B = values.shape
    check_neighbourhood((N, B), D, neighbours)
    where: Indices = np.arange(N, dtype=np.intp) if at is None else as_numbers(at, N, "at")
    if not where.size:
        raise ParameterError("at is empty. Pass the numbers of some points, or nothing for all points.")
    kept = min(max(as_count(leading, 1, "leading"), D + 1), B)
    tree = cKDTree(values, leafsize=16 if B <= TREE_DIMENSIONS else N, balanced_tree=False, compact_nodes=False)
    bases, spectra, totals = np.empty((len(where), B, D)), np.zeros((len(where), kept)), np.empty(len(where))
    members = np.empty((len(where), neighbours), dtype=np.intp)
    for first in range(0, len(where), BLOCK):
        some = where[first : first + BLOCK]
        found: Indices = np.asarray(tree.query(values[some], k=neighbours)[1], dtype=np.intp)
        members[first : first + len(some)] = found
        for i, near in enumerate(found, start=first):
            bases[i], variances, totals[i] = _principal(values[near] - values[where[i]], D, kept)
            spectra[i, : len(variances)] = variances
        if callback is not None:
            callback(first + len(some), len(where))
    # variances below this are rounding errors of the eigenvalues or of the coordinates
    rounding = np.maximum(spectra[:, 0] * max(B, neighbours) * EPS, B * (4 * EPS * np.abs(values).max()) ** 2)
    flat = spectra[:, D - 1] <= rounding
    if flat.any():
        one = int(flat.argmax())
        raise RankError(
            f"{int(flat.sum())} neighbourhoods span fewer than D={D} dimensions; that of point {where[one]} spans "
            f"{int((spectra[one] > rounding[one]).sum())}. Drop copies of points, use larger neighbourhoods, or pass a "
            "smaller D."
        )
    return TangentSpaces(bases, spectra, totals, neighbours, where, members)


def default_neighbours(N: int, D: int = 2, scale: float = SHAPES) -> int:
    """The number of neighbours for a tangent space of dimension D: scale · N^(2/3), at least 10 (D + 1).

    A ball of radius r around a point of a D-dimensional manifold contains about k = N r^D points. Curvature turns the
    tangent space by an angle proportional to r, and noise σ across the manifold turns it by an angle proportional to
    σ / (r √k). The sum of squares is least if r^(D + 4) is proportional to 1/N, hence k to N^(4/(D + 4)): N^(2/3) for
    D = 2. More dimensions have a smaller power and a larger factor, so the same number is used. The factor grows with
    the noise: it is 1 for the shapes of a molecule, which vibrates, and 0.3 for other points.

    Examples
    --------
    >>> default_neighbours(10_000), default_neighbours(200), default_neighbours(200, 4)
    (464, 34, 50)
    """
    return max(FEWEST * (D + 1), round(scale * N ** (2 / 3)))


def check_neighbourhood(shape: tuple[int, int], D: int, neighbours: int) -> None:
    """Raise an error if D or the number of neighbours does not fit points (N, B)."""
    N, B = shape
    if not 1 <= as_count(D, 1, "D") <= B:
        raise ParameterError(f"D={D} is out of range: the points have {B} coordinates, so D is from 1 to {B}.")
    as_count(neighbours, D + 1, "neighbours")
    if 2 * neighbours > N:
        raise ParameterError(
            f"neighbours={neighbours} is more than half of the {N} points. Pass at most {N // 2}; for {neighbours} "
            f"neighbours at least {2 * neighbours} points are needed."
        )


def _principal(Y: Array, D: int, count: int) -> tuple[Array, Array, float]:
    """The D leading directions (B, D), at most `count` leading variances, and the total variance of points Y (k, B).

    Y are differences from one of the points, which are exact for close points even far from the origin.
    """
    Y = Y - Y.mean(axis=0)
    Y /= np.sqrt(len(Y))
    tall = len(Y) >= Y.shape[1]
    square = Y.T @ Y if tall else Y @ Y.T
    size = len(square)
    values, vectors = eigh(square, subset_by_index=[size - min(count, size), size - 1], check_finite=False)
    vectors = vectors[:, ::-1][:, :D]
    if not tall:  # v = Yᵀu / σ
        vectors = np.linalg.qr(Y.T @ vectors)[0]
    return fix_signs(vectors), np.maximum(values[::-1], 0.0), float(np.trace(square))
