"""Tangent spaces of a data manifold: the leading principal directions of each point's neighbourhood."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isopursuit._core.linalg import EPS
from isopursuit._core.options import as_numbers
from isopursuit._core.threads import on_one_blas_thread
from isopursuit._core.types import Array, Indices
from isopursuit.data._matrix import as_matrix
from isopursuit.errors import ParameterError, RankError, ShapeError
from isopursuit.manifold.neighbours import neighbour_search
from isopursuit.manifold.pca import QUERIES, LocalPCA, Weights, slices

SAMPLE = 200  # points from which the dimension is estimated (guess)
EXPLAINED = 0.95  # share of the variance beyond which directions do not count as dimensions (guess: a common value)


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
    counts : ndarray of int, shape (n,)
        The number of neighbours of each point, including the point itself.
    at : ndarray of int, shape (n,), or None
        The numbers of the points; None if coordinates were given.
    how : {"given", "estimated"}
        Whether the dimension was given or estimated.
    """

    bases: Array
    spectra: Array
    totals: Array
    counts: Indices
    at: Indices | None
    how: Literal["given", "estimated"]

    @property
    def dimension(self) -> int:
        """D, the number of directions in each basis."""
        return self.bases.shape[2]

    @property
    def explained(self) -> Array:
        """The share of each neighbourhood's variance in its tangent space."""
        return self.spectra[:, : self.dimension].sum(axis=1) / self.totals

    @property
    def dimensions(self) -> Indices:
        """The dimension that the spectrum of each neighbourhood suggests; see `estimate_dimension`."""
        shares = self.spectra / self.totals[:, None]
        B, counts = self.bases.shape[1], self.counts.tolist()
        return np.array([_suggested(share, k, B) for share, k in zip(shares, counts, strict=True)], dtype=np.intp)

    def take(self, points: ArrayLike) -> TangentSpaces:
        """Some of the tangent spaces, given by their numbers or a mask."""
        some = as_numbers(points, len(self.bases), "points")
        at = None if self.at is None else self.at[some]
        parts = self.bases[some], self.spectra[some], self.totals[some], self.counts[some]
        return TangentSpaces(*parts, at, self.how)

    def of_dimension(self, D: int) -> TangentSpaces:
        """The tangent spaces spanned by the D directions of largest variance; D is at most the present dimension."""
        if not 1 <= D <= self.dimension:
            raise ParameterError(f"D={D} is out of range: these tangent spaces have {self.dimension} dimensions.")
        return replace(self, bases=self.bases[:, :, :D], how=self.how if self.dimension == D else "given")

    def project(self, vectors: ArrayLike) -> Array:
        """Project vectors (n, B, P) onto the tangent spaces: coordinates (n, D, P)."""
        return np.swapaxes(self.bases, 1, 2) @ np.asarray(vectors, dtype=np.float64)

    def __str__(self) -> str:
        shares = ", ".join(
            f"{share:.3g}" for share in (self.spectra / self.totals[:, None]).mean(axis=0)[: self.dimension + 3]
        )
        agree = (self.dimensions == self.dimension).mean()
        least, largest = int(self.counts.min()), int(self.counts.max())
        size = f"{least} neighbours each" if least == largest else f"{least} to {largest} neighbours"
        most = int(np.bincount(self.dimensions).argmax())
        others = "" if most == self.dimension else f", {(self.dimensions == most).mean():.0%} D = {most}"
        return (
            f"{len(self.bases)} tangent spaces of dimension {self.dimension} ({self.how}) in {self.bases.shape[1]} "
            f"dimensions, from {size}\n"
            f"  shares of the variance: {shares}{', …' if self.spectra.shape[1] > self.dimension + 3 else ''}; "
            f"{agree:.0%} of the neighbourhoods suggest D = {self.dimension}{others}"
        )


@on_one_blas_thread
def tangent_spaces(
    points: ArrayLike,
    at: ArrayLike | None = None,
    *,
    D: int | None = None,
    neighbours: int | None = None,
    radius: float | None = None,
    weights: Weights | None = None,
    method: Literal["exact", "approximate"] = "exact",
    leading: int = 10,
    workers: int = 1,
    callback: Callable[[int, int], object] | None = None,
) -> TangentSpaces:
    """Tangent spaces by local principal component analysis.

    Parameters
    ----------
    points : array_like (N, B)
        The data: N points in B dimensions.
    at : array_like of int (n,) or of float (n, B), optional
        Numbers or coordinates of the points at which to estimate. Default: all points.
    D : int, optional
        The dimension of the manifold. Default: estimated; see `estimate_dimension`.
    neighbours : int, optional
        The number of points in a neighbourhood, including the point itself, at most half of all points. Pass either
        this or `radius`.
    radius : float, optional
        The radius of a neighbourhood.
    weights : {"gaussian"} or callable, optional
        Weights of the neighbours. "gaussian" is exp(−2 (d/r)²) at distance d, where r is the radius of the
        neighbourhood (the distance of the farthest neighbour if `neighbours` is given). A callable takes an array of
        distances. Default: equal weights.
    method : {"exact", "approximate"}
        How nearest neighbours are found. "exact": with a k-d tree up to 15 dimensions, and with matrix products beyond.
        "approximate": with pynndescent (extra `manifold`), for data that are too large for exact search. Its first
        use compiles code, which can take a minute or two.
    leading : int
        The number of variances of each neighbourhood to keep; the dimension is estimated from them.
    workers : int
        Number of threads.
    callback : callable, optional
        Called with the number of finished points and the number of all points.

    Returns
    -------
    TangentSpaces

    Raises
    ------
    ShapeError
        A neighbourhood has fewer than D + 1 points; the message gives a radius that is large enough.
    RankError
        A neighbourhood spans fewer than D dimensions, for example because it consists of copies of one point.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.linspace(0.0, 2 * np.pi, 400, endpoint=False)
    >>> circle = np.column_stack([np.cos(t), np.sin(t), np.zeros(400)])
    >>> spaces = tangent_spaces(circle, [0, 100], neighbours=9)
    >>> spaces.dimension, spaces.how, np.abs(spaces.bases[:, :, 0]).round(6).tolist()
    (1, 'estimated', [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    """
    values = as_matrix(points, wide=False).values
    N, B = values.shape
    check_options((N, B), D, neighbours, radius, leading, workers)
    where, chosen = _as_places(at, values)
    search = neighbour_search(values, neighbours, radius, method)
    pca = LocalPCA(values, weights, neighbours, radius, min(max(leading, 2 if D is None else D + 1), B))
    if D is None:
        some = np.unique(np.linspace(0, len(where) - 1, min(len(where), SAMPLE)).astype(np.intp))
        _, spectra, totals, counts = pca.run(search, where[some], 0, workers, None)
        _refuse_small(counts, 2, values, where[some], radius)
        shares = (spectra / np.maximum(totals, np.finfo(np.float64).tiny)[:, None]).mean(axis=0)
        D = _suggested(shares, int(counts.min()), B)
        how: Literal["given", "estimated"] = "estimated"
    else:
        how = "given"
    bases, spectra, totals, counts = pca.run(search, where, D, workers, callback)
    _refuse_small(counts, D + 1, values, where, radius)
    if 2 * counts.max() > N:
        raise ParameterError(
            f"radius={radius:g} is too large: a neighbourhood has {counts.max()} of {N} points, and at most half of "
            "them make a tangent space. Pass a smaller radius or more points."
        )
    # variances below this are rounding errors of the eigenvalues or of the coordinates
    rounding = np.maximum(spectra[:, 0] * max(B, counts.max()) * EPS, B * (4 * EPS * np.abs(values).max()) ** 2)
    flat = spectra[:, D - 1] <= rounding
    if flat.any():
        first = int(np.flatnonzero(flat)[0])
        rank = int((spectra[first] > rounding[first]).sum())
        raise RankError(
            f"{int(flat.sum())} neighbourhoods span fewer than D={D} dimensions; that of {_name(first, chosen)} spans "
            f"{rank}. Drop copies of points, use larger neighbourhoods, or pass a smaller D."
        )
    return TangentSpaces(bases, spectra, totals, counts, chosen, how)


def estimate_dimension(shares: Array, full: bool = False) -> int:
    """The dimension that a spectrum suggests: the direction after which the variance drops by the largest factor.

    `shares` are shares of the variance, descending. Only drops within the first 95 % of the variance count, because
    later drops are due to noise or curvature. If the spectrum is `full` (it has a share for every dimension) and
    nowhere drops by a factor of 3, the points fill the whole space.

    Examples
    --------
    >>> import numpy as np
    >>> estimate_dimension(np.array([0.5, 0.45, 0.03, 0.01, 1e-9]))
    2
    """
    tiny = 1e-15 * max(float(shares[0]), np.finfo(np.float64).tiny)
    falls = np.log(np.maximum(shares[:-1], tiny)) - np.log(np.maximum(shares[1:], tiny))
    enough = int(np.searchsorted(np.cumsum(shares), EXPLAINED)) + 1
    if full and (len(falls) == 0 or falls.max() < np.log(3.0)):
        return len(shares)
    return int(falls[:enough].argmax()) + 1 if len(falls) else 1


def _suggested(shares: Array, count: int, B: int) -> int:
    """The dimension that the spectrum of `count` points in B dimensions suggests.

    The points span at most count − 1 dimensions; a drop near that number does not belong to the manifold.
    """
    believed = max((count - 1) // 2, 1)
    return estimate_dimension(shares if believed >= B else shares[: believed + 1], full=len(shares) == B <= believed)


def _as_places(at: ArrayLike | None, values: Array) -> tuple[Array, Indices | None]:
    """Coordinates of the places, and their numbers if they are some of the points."""
    N, B = values.shape
    if at is None:
        return values, np.arange(N, dtype=np.intp)
    places: NDArray[Any] = np.asarray(at)
    if places.dtype == bool and places.shape == (N,):
        places = np.flatnonzero(places)
    if places.size == 0:
        raise ShapeError("at is empty. Pass the numbers of some points, coordinates, or nothing for all points.")
    if places.dtype.kind in "iu" and places.ndim == 1:
        if places.min() < -N or places.max() >= N:
            raise ParameterError(f"at names point {places.max()}, but there are {N} points, 0 to {N - 1}.")
        chosen = places.astype(np.intp) % N
        return values[chosen], chosen
    if places.ndim == 2 and places.shape[1] == B:
        return as_matrix(places, wide=False).values, None
    raise ShapeError(
        f"at has shape {places.shape} and type {places.dtype}; expected numbers of points, or coordinates (n, {B})."
    )


def check_options(
    shape: tuple[int, int],
    D: int | None,
    neighbours: int | None,
    radius: float | None = None,
    leading: int = 1,
    workers: int = 1,
) -> None:
    """Check the options of `tangent_spaces` for points (N, B)."""
    N, B = shape
    if (neighbours is None) == (radius is None):
        raise ParameterError("Pass either neighbours=, such as 50, or radius=, the size of a neighbourhood.")
    if D is not None and not 1 <= D <= B:
        raise ParameterError(f"D={D} is out of range: the points have {B} coordinates, so D is from 1 to {B}.")
    least = 2 if D is None else D + 1
    if neighbours is not None and neighbours < least:
        raise ParameterError(f"neighbours={neighbours} is out of range: at least {least} are needed (D + 1).")
    if neighbours is not None and 2 * neighbours > N:
        raise ParameterError(
            f"neighbours={neighbours} is more than half of the {N} points. Pass at most {N // 2}; for {neighbours} "
            f"neighbours at least {2 * neighbours} points are needed."
        )
    if radius is not None and not 0 < radius < np.inf:
        raise ParameterError(f"radius={radius!r} must be a positive number.")
    if leading < 1 or workers < 1:
        raise ParameterError(f"leading={leading} and workers={workers} must be at least 1.")


def _refuse_small(counts: Indices, least: int, values: Array, where: Array, radius: float | None) -> None:
    """Raise an error if neighbourhoods have too few points; the message gives a sufficient radius."""
    small = np.flatnonzero(counts < least)
    if len(small) == 0:
        return
    if least > len(values):
        raise ShapeError(f"There are {len(values)} points, but a neighbourhood needs at least {least} (D + 1).")
    nearest = neighbour_search(values, least, None, "exact")
    needed = max(float(nearest(where[block])[1].max()) for block in slices(len(where), QUERIES))
    raise ShapeError(
        f"{len(small)} of {len(counts)} neighbourhoods have fewer than {least} points (the smallest {counts.min()}), "
        "too few for their tangent space. "
        f"Pass radius ≥ {needed * (1 + 1e-3):.4g} (it was {radius:.4g}), or neighbours=."
    )


def _name(i: int, chosen: Indices | None) -> str:
    return f"place {i}" if chosen is None else f"point {chosen[i]}"
