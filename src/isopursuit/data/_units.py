"""The length that counts as 1, and the standardization of tables.

A unit is a number, the median length, the length of each column, or lengths as they are. The loss of a column is least
at length 1, so the unit changes which columns are picked. Every function that takes `unit` resolves it here, and every
answer says which unit was used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

import numpy as np

from isopursuit._core.linalg import EPS
from isopursuit._core.options import is_number
from isopursuit._core.types import Array, Indices, Mask, Unit
from isopursuit.errors import ParameterError, ShapeError, unknown_option

HALF = 1e-12  # relative rounding error of half the sum of the weights (derived: n EPS for n = 4,500 weights)
# a spread below this, relative to the size of the entries, is rounding (derived: the mean of a long column has a few
# EPS)
CONSTANT = 50 * EPS
# largest length that may count as 1, and inverse of the smallest: as the largest entry in `matrix` (derived)
LARGEST_UNIT = 1e140


class DefaultUnits(TypedDict):
    """The unit of each kind of candidate."""

    rows: Unit
    features: Unit
    gradients: Literal["overall"]
    matrices: Unit


# What is compared, and the unit if the caller passes none. docs/explanation/scale.md says why, and benchmarks/units.py
# measures it. Matrices keep their lengths, as in the paper. "overall": each function has mean square length 1.
DEFAULT_UNITS: DefaultUnits = {"rows": "median", "features": "each", "gradients": "overall", "matrices": None}


@dataclass(frozen=True)
class UnitLength:
    """The divisor of the lengths: `length` for all columns, or the length of each column if how="each"."""

    how: Literal["given", "number", "median", "each"] = "given"
    length: float = 1.0

    @classmethod
    def of(cls, unit: Unit, lengths: Array, weights: Array | None = None) -> UnitLength:
        """The unit for columns of these lengths. Zero lengths do not count in the median.

        `weights` has the shape of `lengths` and makes the median a weighted one.
        """
        unit = as_unit(unit)
        if unit is None:
            return AS_GIVEN
        if unit == "each":
            return cls("each")
        if unit == "median":
            positive = lengths > 0
            weights = None if weights is None else weights[positive]
            return cls("median", _median(lengths[positive], weights)) if positive.any() else AS_GIVEN
        return cls("number", unit) if unit != 1 else AS_GIVEN

    def factors(self, lengths: Array) -> Array:
        """The factors that rescale columns of these lengths; 1 for zero columns, which remain zero."""
        if self.how == "each":
            return 1 / np.where(lengths > 0, lengths, 1.0)
        return np.full(lengths.shape, 1 / self.length)

    def __str__(self) -> str:
        length = f"length {self.length:.4g} = 1"
        texts = {"given": "as given", "number": length, "median": f"median {length}"}
        return texts.get(self.how, "each column has length 1")


AS_GIVEN = UnitLength()


def as_unit(unit: Any) -> Unit:
    """Check a unit: a positive length, "median", "each", or None for lengths as they are."""
    if unit is None or (isinstance(unit, str) and unit in ("median", "each")):
        return unit
    if isinstance(unit, str):
        raise unknown_option("unit", unit, ("median", "each"), "a positive length, or None for lengths as they are")
    if not is_number(unit) or not 1 / LARGEST_UNIT < unit < LARGEST_UNIT:
        raise ParameterError(
            f"unit={unit!r} is not a positive length. Pass a number, 'median', 'each', or None for lengths as they are."
        )
    return float(unit)


def _median(lengths: Array, weights: Array | None) -> float:
    """The weighted median of the lengths."""
    if weights is None or not weights.any():
        return float(np.median(lengths))
    order = np.argsort(lengths)
    total = np.cumsum(weights[order])
    half = total[-1] / 2
    # the mean of two lengths if the weights below and above are equal, as for an even number of lengths
    middle = np.searchsorted(total, [half * (1 - HALF), half * (1 + HALF)])
    return float(lengths[order[middle]].mean())


def without(lengths: Array, excluded: Sequence[int] | Indices) -> Array:
    """The lengths (…, P) without those of the excluded columns, given by number."""
    return np.delete(lengths, excluded, axis=-1) if len(excluded) else lengths


def ranks(table: Array, weights: Array | None = None) -> Array:
    """The rank of each cell in its column, for Spearman's correlation; equal cells have their mean rank.

    With weights, a row counts that many times: the rank is the weight below plus half of the weight of equal cells.
    """
    found = np.empty(table.shape)
    for j, column in enumerate(table.T):
        _, place = np.unique(column, return_inverse=True)
        total = np.bincount(place, weights)
        found[:, j] = (np.cumsum(total) - total / 2)[place]
    return found


@dataclass(frozen=True)
class Standard:
    """What standardization subtracts from each dimension (`mean`), and what it divides it by: `spread`, which is
    infinite if the dimension is constant. Every standardization of tables, estimators and sources is made here.
    """

    mean: Array
    spread: Array

    @classmethod
    def of(cls, values: Array, weights: Array | None = None) -> Standard:
        """The standardization of the columns of a table (rows, columns)."""
        largest = np.abs(values).max(axis=0)
        largest[largest == 0] = 1.0
        scaled = values / largest  # so that no square overflows float64
        mean = np.average(scaled, axis=0, weights=weights)
        mean += np.average(scaled - mean, axis=0, weights=weights)  # takes off the rounding of a long sum
        return cls.of_moments(mean, np.average((scaled - mean) ** 2, axis=0, weights=weights), np.float64(1), largest)

    @classmethod
    def of_moments(cls, mean: Array, variance: Array, size: Any, scale: Array) -> Standard:
        """The standardization of dimensions that are `scale` times dimensions of this mean, variance and size of the
        entries.
        """
        spread = np.sqrt(variance)
        return cls(mean * scale, np.where(spread <= CONSTANT * size, np.inf, spread * scale))

    @property
    def varying(self) -> Mask:
        """The dimensions that are not constant; raises an error if there is none."""
        found = np.isfinite(self.spread)
        if not found.any():
            raise ShapeError("Every dimension (a column of a table) is constant, so there is nothing to standardize.")
        return found

    def apply(self, values: Array) -> Array:
        """The standardized table; constant columns become zero."""
        return (values - self.mean) / self.spread
