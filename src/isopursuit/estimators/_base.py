"""What both selectors share: their options, standardization, and the way to `select` and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data  # pyright: ignore[reportUnknownVariableType]

from isopursuit._core.clock import Clock
from isopursuit._core.linalg import EPS, SAMPLE, numerical_rank, singular_values
from isopursuit._core.options import is_whole
from isopursuit._core.text import name_columns
from isopursuit._core.threads import on_one_blas_thread
from isopursuit._core.types import Array, Indices, Labels, Method, Unit
from isopursuit.data._identifiers import identifier_note
from isopursuit.data._matrix import ColumnNumbers, Matrix, as_indices, in_row_space, with_fewer_rows
from isopursuit.data._units import UnitLength, as_unit
from isopursuit.errors import DataTypeError, InputError, ParameterError, RankError
from isopursuit.estimators._relevance import Scoring
from isopursuit.results import Certificate
from isopursuit.selection.result import Selection
from isopursuit.selection.select import select

CONSTANT = 10 * EPS  # a spread below this, relative to the largest entry, is rounding (guess, a few times EPS)


class IsometrySelector(BaseEstimator):
    """The base of both selectors: options, standardization, and the call of `select`."""

    selection_: Selection
    certificate_: Certificate | None
    loss_: float
    lower_bound_: float
    optimal_: bool
    unit_: str
    n_features_in_: int
    mean_: Array
    scale_: Array

    def __init__(
        self,
        k: int | None = None,
        c: float = 1.0,
        *,
        method: Method = "auto",
        standardize: bool = False,
        unit: Unit = "median",
        include: Iterable[Any] | None = None,
        exclude: Iterable[Any] | None = None,
        time_limit: float | None = 60.0,
        gap: float = 0.0,
    ) -> None:
        self.k = k
        self.c = c
        self.method: Method = method
        self.standardize = standardize
        self.unit: Unit = unit
        self.include = include
        self.exclude = exclude
        self.time_limit = time_limit
        self.gap = gap

    def _table(self, X: Any, *, reset: bool) -> Array:
        """Scikit-learn's own validation, which also keeps the features' names, with this package's errors."""
        try:
            return np.asarray(validate_data(self, X, reset=reset, dtype=np.float64))
        except TypeError as error:
            raise DataTypeError(str(error)) from error
        except ValueError as error:
            raise InputError(str(error)) from error

    def _learn_scale(self, table: Array, weight: Array) -> tuple[str, ...]:
        """Learn the mean and spread of each feature, and return notes.

        An infinite scale takes constant features to zero, now and later.
        """
        p, names = table.shape[1], self._names()
        notes = () if names is None else identifier_note(table, names, "drop from X what only names rows")
        self.mean_, self.scale_ = np.zeros(p), np.ones(p)
        if not self._standardizes:
            return notes
        present = weight > 0
        if present.sum() == 1:
            option = "standardize=False" if self.standardize else "unit=None"
            raise RankError(f"Only 1 sample has a weight, so every feature is constant. Pass more, or {option}.")
        largest = np.abs(table[present]).max(axis=0)
        largest[largest == 0] = 1.0
        scaled = table[present] / largest  # so that no square overflows float64
        mean = np.average(scaled, axis=0, weights=weight[present])
        mean += np.average(scaled - mean, axis=0, weights=weight[present])  # takes off the rounding of a long sum
        spread = np.sqrt(np.average((scaled - mean) ** 2, axis=0, weights=weight[present]))
        constant = spread <= CONSTANT
        self.mean_ = mean * largest
        self.scale_ = np.where(constant, np.inf, spread * largest)
        if not constant.any():
            return notes
        same = name_columns(np.flatnonzero(constant).tolist(), names)
        return (*notes, f"standardized, a constant feature is zero and takes no part: {same}.")

    def _standardized(self, table: Array) -> Array:
        return (table - self.mean_) / self.scale_ if self._standardizes else table

    @property
    def _standardizes(self) -> bool:
        """Whether features are compared with mean 0 and variance 1."""
        return self.standardize

    def _names(self) -> Labels | None:
        names: Sequence[Any] | None = getattr(self, "feature_names_in_", None)
        return None if names is None else tuple(names)

    @on_one_blas_thread
    def _pick(
        self,
        matrix: Matrix,
        what: str,
        default: Callable[[int], int],
        weight: Array | None = None,
        scoring: Scoring | None = None,
        clock: Clock | None = None,
    ) -> Selection:
        """Select among the columns of `matrix`, and keep the answer.

        `weight` is how many times a candidate counts in the median length and in the rank; zero excludes it.
        `scoring` is its relevance. `default` returns k for a rank if the user passed none. No column is multiplied by
        ones: a large table would be copied.
        """
        scoring = Scoring() if scoring is None else scoring
        clock = Clock.of(self.time_limit) if clock is None else clock
        unit = as_unit(self.unit)
        P = matrix.values.shape[1]
        matrix = with_fewer_rows(matrix)
        include = as_indices(self.include if scoring.chosen is None else scoring.chosen, matrix, "include")
        absent = () if weight is None else np.flatnonzero(weight == 0).tolist()
        exclude = ColumnNumbers(sorted({*as_indices(self.exclude, matrix, "exclude"), *absent, *scoring.excluded}))
        root = None if weight is None else np.sqrt(weight / weight.max())
        rank = _rank(matrix if root is None else matrix.times(root), exclude, what)
        k = self._size(rank, what, default, len(include))
        compared = matrix if unit == "median" else matrix.in_unit(UnitLength.of(unit, matrix.lengths))
        compared = _leading(compared, root, rank, exclude)
        if unit == "median":
            counted = np.ones(P) if root is None else root**2
            counted[exclude] = 0.0
            compared = compared.in_unit(UnitLength.of("median", compared.lengths, counted))
        compared = replace(compared.with_time_for_rank(clock), notes=compared.notes)  # the rank is known, see above
        factor = None if scoring.factor_of is None else scoring.factor_of(compared.lengths)
        picked = select(
            replace(compared if factor is None else compared.times(factor), notes=()),
            k,
            c=self.c,
            method=self.method,
            include=include,
            exclude=exclude,
            time_limit=clock.remaining_limit,
            gap=self.gap,
        )
        notes = compared.notes + picked.notes
        return self._keep(replace(picked, notes=notes))

    def _keep(self, picked: Selection) -> Selection:
        """The answer as fitted attributes."""
        self.selection_ = picked
        self.certificate_ = None if picked.pursuit is None else picked.pursuit.certificate
        self.loss_ = picked.loss
        self.lower_bound_ = picked.search.lower_bound
        self.optimal_ = picked.search.optimal
        self.unit_ = picked.unit
        return picked

    def _size(self, rank: int, what: str, default: Callable[[int], int], included: int) -> int:
        if self.k is None:
            return min(max(default(rank), included), rank)
        if not is_whole(self.k):
            raise ParameterError(f"k={self.k!r} is not a whole number. Pass how many {what} to pick, from 1 to {rank}.")
        if not 1 <= self.k <= rank:
            raise ParameterError(
                f"k={self.k} is out of range: the table has rank {rank}, so pick from 1 to {rank} {what}."
            )
        return int(self.k)


def _rank(weighted: Matrix, exclude: list[int], what: str) -> int:
    """The rank of the candidates that may be picked."""
    error = float(np.linalg.norm(np.delete(cast(Array, weighted.rounding), exclude)))
    allowed: Indices = np.delete(np.arange(weighted.values.shape[1], dtype=np.intp), exclude)
    D, P = len(weighted.values), len(allowed)
    some = allowed[:: max(P // (SAMPLE * D), 1)]
    if D <= len(some) < P:
        # a few columns often prove full rank: σ_min of all columns is at least that of a few, and σ_max is at most ‖X‖
        least = P * max(EPS * float(np.linalg.norm(weighted.lengths[allowed])), error)
        if float(singular_values(weighted.values[:, some])[-1]) > least:
            return D
    open_to = weighted.values[:, allowed] if exclude else weighted.values
    rank = numerical_rank(singular_values(open_to), open_to.shape[1], error) if open_to.size else 0
    if rank == 0:
        raise RankError(f"No {what} can be picked: all are zero, constant or excluded. Check X and the options.")
    return rank


def _leading(matrix: Matrix, root: Array | None, dimensions: int, exclude: list[int]) -> Matrix:
    """The columns in so many leading dimensions, in which each counts by the square of its root weight.

    In as many dimensions as the rank no column that may be picked changes, but for rounding.
    """
    if dimensions == len(matrix.values):
        return matrix
    if root is None:
        return in_row_space(matrix, dimensions, exclude)
    return in_row_space(matrix.times(root), dimensions, exclude).times(1 / np.where(root > 0, root, 1.0))


def as_weights(values: Any, n: int, what: str) -> Array:
    """One number ≥ 0 for each candidate or sample, not all zero; ones if there are none."""
    if values is None:
        return np.ones(n)
    weights = np.asarray(values, dtype=np.float64)
    if weights.shape != (n,):
        raise ParameterError(f"{what} has shape {weights.shape}, expected ({n},): one number for each.")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ParameterError(f"{what} must be finite and not negative; it is {weights.min()} to {weights.max()}.")
    if not weights.any():
        raise ParameterError(f"{what} is zero everywhere, so nothing can be picked. Pass a positive weight for some.")
    return weights
