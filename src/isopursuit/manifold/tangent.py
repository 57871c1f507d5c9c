"""Tangent spaces of a data manifold: the leading principal directions of each point's neighbourhood."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isopursuit._types import Array, Indices
from isopursuit.errors import ParameterError, RankError, ShapeError
from isopursuit.manifold.neighbours import neighbour_search
from isopursuit.manifold.pca import QUERIES, LocalPCA, Weights, slices
from isopursuit.matrix import as_matrix
from isopursuit.parameters import as_numbers
from isopursuit.rank import EPS
from isopursuit.renamed import renamed_keywords
from isopursuit.threads import on_one_blas_thread

SAMPLE = 200  # points from which the dimension is estimated (a guess)
EXPLAINED = 0.95  # share of the variance: directions beyond it do not count as dimensions (the usual one, a guess)


@dataclass(frozen=True)
class TangentSpaces:
    """Orthonormal bases of tangent spaces, with what they were estimated from.

    Attributes
    ----------
    bases : ndarray, shape (n, B, D)
        Orthonormal columns span the tangent space at each point; the direction of largest variance comes first.
    spectra : ndarray, shape (n, m)
        The leading variances of each neighbourhood, descending.
    totals : ndarray, shape (n,)
        Each neighbourhood's whole variance.
    counts : ndarray of int, shape (n,)
        How many neighbours each has, the point itself included.
    at : ndarray of int, shape (n,), or None
        Which of the points these are the tangent spaces at; None where coordinates were given.
    how : {"given", "estimated"}
        Where the dimension is from.
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
        """The share of each neighbourhood's variance that its tangent space holds."""
        return self.spectra[:, : self.dimension].sum(axis=1) / self.totals

    @property
    def dimensions(self) -> Indices:
        """The dimension that each neighbourhood's own spectrum suggests; see `estimate_dimension`."""
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
        """The tangent spaces of D dimensions, at most the present number: those of largest variance."""
        if not 1 <= D <= self.dimension:
            raise ParameterError(f"D={D} is out of range: these tangent spaces have {self.dimension} dimensions.")
        return replace(self, bases=self.bases[:, :, :D], how=self.how if self.dimension == D else "given")

    def project(self, vectors: ArrayLike) -> Array:
        """Coordinates in each tangent space, (n, D, P), of vectors (n, B, P) there."""
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


@renamed_keywords(jobs="workers")
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
        Numbers of the points, or coordinates, at which to estimate; all points if not given.
    D : int, optional
        The manifold's dimension; estimated if not given, see `estimate_dimension`.
    neighbours : int
        The size of a neighbourhood: so many nearest points, the point itself included. Or
    radius : float
        all points within this distance.
    weights : {"gaussian"} or callable, optional
        How much a neighbour counts by its distance: exp(−2 (d/r)²), with r the neighbourhood's radius (the farthest
        neighbour's distance where their number is given), or a function of an array of distances. Equal by default.
    method : {"exact", "approximate"}
        How nearest neighbours are found: exactly (a k-d tree up to 15 dimensions, matrix products beyond), or by
        pynndescent (extra `manifold`), for more points than exact search has time for. It compiles itself when first
        used, which can take a minute or two.
    leading : int
        How many variances of each neighbourhood to keep; the dimension is sought among them.
    workers : int
        Number of threads.
    callback : callable, optional
        Called with how many points are done and how many there are.

    Returns
    -------
    TangentSpaces

    Raises
    ------
    ShapeError
        Where a neighbourhood has fewer than D + 1 points; the message names a radius that is large enough.
    RankError
        Where a neighbourhood spans fewer than D dimensions, as copies of one point do.

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
    # variances below this are rounding: of the eigenvalues, or of the coordinates themselves
    rounding = np.maximum(spectra[:, 0] * max(B, counts.max()) * EPS, B * (4 * EPS * np.abs(values).max()) ** 2)
    flat = spectra[:, D - 1] <= rounding
    if flat.any():
        first = int(np.flatnonzero(flat)[0])
        rank = int((spectra[first] > rounding[first]).sum())
        raise RankError(
            f"{int(flat.sum())} neighbourhoods span fewer than D={D} dimensions; that of {_name(first, chosen)} spans "
            f"{rank}. Drop copies of points, take larger neighbourhoods, or pass a smaller D."
        )
    return TangentSpaces(bases, spectra, totals, counts, chosen, how)


def estimate_dimension(shares: Array, full: bool = False) -> int:
    """The dimension that a spectrum suggests: after which direction the variances fall by the largest factor.

    `shares` are shares of the variance, descending. Only the directions that together hold 95 % of it may be the last
    one: whatever falls by a factor beyond that is noise or curvature. Where the spectrum is `full`, with a share for
    every dimension there is, and falls nowhere by a factor of 3, the points fill their space.

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

    They span at most count − 1 dimensions: a fall near there is not the manifold's.
    """
    believed = max((count - 1) // 2, 1)
    return estimate_dimension(shares if believed >= B else shares[: believed + 1], full=len(shares) == B <= believed)


def _as_places(at: ArrayLike | None, values: Array) -> tuple[Array, Indices | None]:
    """Coordinates of the places, and their numbers among the points if they are some of them."""
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
    """Refuse options of `tangent_spaces` that do not fit points (N, B)."""
    N, B = shape
    if (neighbours is None) == (radius is None):
        raise ParameterError("Pass either neighbours=, such as 50, or radius=, the size of a neighbourhood.")
    if D is not None and not 1 <= D <= B:
        raise ParameterError(f"D={D} is out of range: the points have {B} coordinates, so D is from 1 to {B}.")
    least = 2 if D is None else D + 1
    if neighbours is not None and not least <= neighbours <= N:
        raise ParameterError(
            f"neighbours={neighbours} is out of range: at least {least} are needed (D + 1), and there are {N} points."
        )
    if radius is not None and not 0 < radius < np.inf:
        raise ParameterError(f"radius={radius!r} must be a positive number.")
    if leading < 1 or workers < 1:
        raise ParameterError(f"leading={leading} and workers={workers} must be at least 1.")


def _refuse_small(counts: Indices, least: int, values: Array, where: Array, radius: float | None) -> None:
    """Neighbourhoods within a radius that have too few points, and the radius that gives all of them enough."""
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
