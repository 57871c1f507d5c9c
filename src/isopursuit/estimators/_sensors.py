"""An optimizer of sensor positions for PySensors: `SSPOR(optimizer=IsometrySensorSelector())`.

PySensors passes the basis matrix, one row for each place and one column for each mode, to `fit`, and keeps the first
`n_sensors` entries of what `get_sensors` returns. Nothing is imported from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Self

import numpy as np
from scipy.linalg import qr
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted  # pyright: ignore[reportUnknownVariableType]

from isopursuit._core.options import is_whole
from isopursuit._core.types import Array, Indices, Method, Unit
from isopursuit.data._matrix import as_matrix
from isopursuit.errors import ParameterError
from isopursuit.selection.result import Selection
from isopursuit.selection.select import select


class IsometrySensorSelector(BaseEstimator):
    """Rank places for sensors, the best set of k first: an optimizer for `pysensors.SSPOR`.

    A place is the vector of its values in all modes. Sensors whose vectors are long and nearly orthogonal determine the
    coefficients of the modes with little amplification of noise.

    Parameters
    ----------
    k : int, optional
        How many sensors to place, as many as there are independent modes if not given; pass the same number to `SSPOR`
        as `n_sensors`. Up to the number of modes, `isopursuit.select` picks the set. Further sensors are added one by
        one, each where it reduces the variance of the coefficients the most. `SSPOR` shuffles everything after the
        first n_modes sensors; to keep the order, assign `model.ranked_sensors_ = model.optimizer.get_sensors()`.
    c : float
        The paper's exponent.
    method : {"auto", "two-stage", "exact", "exchange", "greedy", "brute"}
        See `isopursuit.select`.
    unit : "longest", number, "median", "each" or None
        The length that counts as 1, as in `isopursuit.select`. "longest" is the length of the longest vector, so that
        long vectors are better than short ones. With "median" places with an average signal would be preferred.
    include, exclude : iterables of int, optional
        Places that must or must not have a sensor.
    time_limit : float, optional
        Seconds the search may take.
    gap : float
        Stop as soon as the set is proved to be within this relative distance of the best.

    Attributes
    ----------
    selection_ : Selection
        The answer of `isopursuit.select` for the first min(k, modes) sensors, with its bound.
    sensors_ : ndarray (n_places,)
        All places, best first. Only the first max(k, modes) are ranked.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0, np.pi, 101)
    >>> modes = np.sin(np.outer(x, [1, 2]))
    >>> sorted(IsometrySensorSelector().fit(modes).get_sensors()[:2].tolist())
    [33, 67]
    """

    selection_: Selection
    sensors_: Indices

    def __init__(
        self,
        k: int | None = None,
        c: float = 1.0,
        *,
        method: Method = "auto",
        unit: Unit | Literal["longest"] = "longest",
        include: Iterable[Any] | None = None,
        exclude: Iterable[Any] | None = None,
        time_limit: float | None = 60.0,
        gap: float = 0.0,
    ) -> None:
        self.k = k
        self.c = c
        self.method: Method = method
        self.unit: Unit | Literal["longest"] = unit
        self.include = include
        self.exclude = exclude
        self.time_limit = time_limit
        self.gap = gap

    def fit(self, basis_matrix: Any) -> Self:
        """Place sensors for a basis matrix (n_places, n_modes)."""
        matrix = as_matrix(np.transpose(basis_matrix), wide=False)
        vectors, modes, places = matrix.values, matrix.rank, matrix.values.shape[1]
        k = self._size(modes, places)
        self.selection_ = select(
            vectors,
            min(k, modes),
            c=self.c,
            method=self.method,
            unit=float(np.linalg.norm(vectors, axis=0).max()) if self.unit == "longest" else self.unit,
            include=self.include,
            exclude=self.exclude,
            time_limit=self.time_limit,
            gap=self.gap,
        )
        excluded = np.array(self.selection_.excluded, dtype=np.intp)
        first = _ranked(vectors, self.selection_.indices, excluded, modes)
        ranked = _extended(vectors, first, excluded, min(k, places - len(excluded)))
        self.sensors_ = np.concatenate([ranked, np.setdiff1d(np.arange(places), ranked)])
        return self

    def get_sensors(self) -> Indices:
        """All places, best first."""
        check_is_fitted(self, "sensors_")
        return self.sensors_.copy()  # SSPOR shuffles the end of the array it gets

    def _size(self, modes: int, places: int) -> int:
        if self.k is None:
            return modes
        if not is_whole(self.k) or not 1 <= self.k <= places:
            raise ParameterError(f"k={self.k!r} is not a number of sensors. Pass a whole number from 1 to {places}.")
        return int(self.k)


def _ranked(vectors: Array, picked: Indices, excluded: Indices, modes: int) -> Indices:
    """The picked places in the order of QR's pivots, then further pivots: up to one place for each mode."""
    Q, _, order = qr(vectors[:, picked], mode="economic", pivoting=True)
    rest = vectors - Q @ (Q.T @ vectors)
    rest[:, np.concatenate([picked, excluded])] = 0.0
    further = qr(rest, mode="r", pivoting=True)[1][: modes - len(picked)]
    further = further[rest[:, further].any(axis=0)]
    return np.concatenate([picked[order], further]).astype(np.intp)


def _extended(vectors: Array, ranked: Indices, excluded: Indices, k: int) -> Indices:
    """Further places, each where it reduces tr M⁻¹ the most: (M + xxᵀ)⁻¹ = M⁻¹ − M⁻¹xxᵀM⁻¹ / (1 + xᵀM⁻¹x)."""
    chosen = ranked.tolist()
    inverse = np.linalg.pinv(vectors[:, ranked] @ vectors[:, ranked].T) if k > len(ranked) else np.eye(len(vectors))
    while len(chosen) < k:
        solved = inverse @ vectors
        spread = 1 + np.einsum("dp,dp->p", vectors, solved)
        gains = np.einsum("dp,dp->p", solved, solved) / spread
        gains[chosen], gains[excluded] = -1.0, -1.0
        best = int(gains.argmax())
        inverse -= np.outer(solved[:, best], solved[:, best]) / spread[best]
        chosen.append(best)
    return np.array(chosen, dtype=np.intp)
