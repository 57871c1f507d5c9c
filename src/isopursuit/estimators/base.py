"""What both selectors share: their options, standardization, and the way to `select` and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data  # pyright: ignore[reportUnknownVariableType]

from isopursuit._types import Array, Labels, Method
from isopursuit.clock import Clock
from isopursuit.errors import DataTypeError, InputError, ParameterError, RankError
from isopursuit.estimators.relevance import Scoring
from isopursuit.identifiers import identifier_note
from isopursuit.matrix import ColumnNumbers, Matrix, as_indices, in_row_space, name_columns, with_fewer_rows
from isopursuit.normalize import Normalization
from isopursuit.parameters import is_whole
from isopursuit.rank import EPS, numerical_rank, singular_values
from isopursuit.results import Certificate
from isopursuit.select import select
from isopursuit.selection import Selection
from isopursuit.threads import on_one_blas_thread

CONSTANT = 10 * EPS  # a spread below this, relative to the largest entry, is rounding (guess, a few times EPS)
HALF = 1e-12  # relative rounding of half the sum of the weights (guess: sums of up to about 1e4 weights)


class IsometrySelector(BaseEstimator):
    """The base of both selectors: options, standardization, and the call of `select`."""

    selection_: Selection
    certificate_: Certificate | None
    loss_: float
    lower_bound_: float
    optimal_: bool
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
        unit: float | Literal["median"] = 1.0,
        include: Iterable[Any] | None = None,
        exclude: Iterable[Any] | None = None,
        normalization: Normalization = "symmetric",
        time_limit: float | None = 60.0,
        gap: float = 0.0,
    ) -> None:
        self.k = k
        self.c = c
        self.method: Method = method
        self.standardize = standardize
        self.unit: float | Literal["median"] = unit
        self.include = include
        self.exclude = exclude
        self.normalization: Normalization = normalization
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
        if not self.standardize:
            return notes
        present = weight > 0
        if present.sum() == 1:
            raise RankError(
                "Only 1 sample has a weight, so every feature is constant. Pass more, or standardize=False."
            )
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
        return (table - self.mean_) / self.scale_ if self.standardize else table

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
    ) -> Selection:
        """Select among the columns of `matrix`, and keep the answer.

        `weight` says how much a candidate counts in the leading space, and a zero excludes it; `scoring` says how much
        it is worth having. `default` gives k for a rank, where the user did not.
        """
        scoring = Scoring() if scoring is None else scoring
        clock = Clock.of(self.time_limit)
        P = matrix.values.shape[1]
        matrix = with_fewer_rows(matrix)
        include = as_indices(self.include if scoring.chosen is None else scoring.chosen, matrix, "include")
        absent = () if weight is None else np.flatnonzero(weight == 0).tolist()
        exclude = ColumnNumbers(sorted({*as_indices(self.exclude, matrix, "exclude"), *absent, *scoring.excluded}))
        root = np.ones(P) if weight is None else np.sqrt(weight / weight.max())
        weighted = _scaled(matrix, root)
        k = self._size(weighted, exclude, what, default, len(include))
        if k < len(matrix.values):
            matrix = _scaled(in_row_space(weighted, k, exclude), 1 / np.where(root > 0, root, 1.0))
        counted = root**2
        counted[exclude] = 0.0
        lengths = np.linalg.norm(matrix.values, axis=0)
        unit = self._unit_length(lengths, counted)
        factor = (1.0 if scoring.factor_of is None else scoring.factor_of(lengths / unit)) / np.full(P, unit)
        picked = select(
            replace(_scaled(matrix, factor), notes=()),
            c=self.c,
            method=self.method,
            include=include,
            exclude=exclude,
            normalization=self.normalization,
            time_limit=clock.remaining_limit,
            gap=self.gap,
        )
        self.selection_ = replace(picked, notes=matrix.notes + picked.notes)
        self.certificate_ = None if picked.pursuit is None else picked.pursuit.certificate
        self.loss_ = picked.loss
        self.lower_bound_ = picked.search.lower_bound
        self.optimal_ = picked.search.optimal
        return self.selection_

    def _size(
        self, weighted: Matrix, exclude: list[int], what: str, default: Callable[[int], int], included: int
    ) -> int:
        open_to = np.delete(weighted.values, exclude, axis=1)
        error = float(np.linalg.norm(np.delete(cast(Array, weighted.rounding), exclude)))
        rank = numerical_rank(singular_values(open_to), open_to.shape[1], error) if open_to.size else 0
        if rank == 0:
            raise RankError(f"No {what} can be picked: all are zero, constant or excluded. Check X and the options.")
        if self.k is None:
            return min(max(default(rank), included), rank)
        if not is_whole(self.k):
            raise ParameterError(f"k={self.k!r} is not a whole number. Pass how many {what} to pick, from 1 to {rank}.")
        if not 1 <= self.k <= rank:
            raise ParameterError(
                f"k={self.k} is out of range: the table has rank {rank}, so pick from 1 to {rank} {what}."
            )
        return int(self.k)

    def _unit_length(self, lengths: Array, weight: Array) -> float:
        """The length that counts as 1: a number, or the median of the lengths, each counted as its weight says."""
        if self.unit == "median":
            order = np.argsort(lengths)
            total = np.cumsum(np.where(lengths > 0, weight, 0.0)[order])
            half = total[-1] / 2
            # two lengths where the weights below and above are equal, as between the middle two of an even number
            middle = np.searchsorted(total, [half * (1 - HALF), half * (1 + HALF)])
            return float(lengths[order[middle]].mean())
        if isinstance(self.unit, str) or not 0 < self.unit < np.inf:
            raise ParameterError(f"unit={self.unit!r} is not a positive length. Pass a number, or 'median'.")
        return float(self.unit)


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
        raise ParameterError(f"{what} is zero everywhere, so nothing is left to pick. Give a positive weight to some.")
    return weights


def _scaled(matrix: Matrix, factor: Array) -> Matrix:
    """Every column, and its rounding, times its factor."""
    rounding = None if matrix.rounding is None else matrix.rounding * factor
    return replace(matrix, values=matrix.values * factor, rounding=rounding)
