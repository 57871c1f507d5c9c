"""What both selectors share: options, standardization, weights, and the way to `select` and back.

Relevance. Near the ideal the loss is a sum of squares. For k columns of lengths e^(u_i) with cosines s_ij,

    l_c ≈ k + c² [ Σ u_i² + ½ Σ_{i<j} s_ij² ]                (h''(1)/2 = c²/4; see loss/penalty.py).

A candidate with score r_i, as a share of the largest, is given the length e^(±v_i) with v_i² = u_i² + t (1 − r_i), on
its own side of 1, and below 1 if its length is 1. Then l_c ≈ k + c² [ Σ u_i² + ½ Σ s_ij² + t Σ (1 − r_i) ], and with
t = θ / (1 − θ) the least loss is the least of

    (1 − θ) · (what lengths and angles cost) + θ · Σ (1 − r_i),

a weighted sum, which maximal marginal relevance has for one step of its greedy search. As θ rises the shortest column
dominates the loss, and the k most relevant candidates win; θ = 1 picks them directly.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data  # pyright: ignore[reportUnknownVariableType]

from isopursuit._core.clock import Clock
from isopursuit._core.linalg import direction_rank, leading_directions
from isopursuit._core.options import beyond_dimensions, is_whole
from isopursuit._core.text import Caution, name_columns
from isopursuit._core.threads import on_one_blas_thread
from isopursuit._core.types import Array, Label, Labels, Method, PerGroup, Unit
from isopursuit.data._identifiers import doubtful_columns
from isopursuit.data._matrix import (
    LARGEST,
    ColumnNumbers,
    Matrix,
    as_indices,
    as_numbers_of,
    frame_names,
    refuse_entries,
    with_fewer_rows,
)
from isopursuit.data._units import DEFAULT_UNITS, Standard, UnitLength, as_unit
from isopursuit.errors import DataTypeError, InputError, IsoPursuitWarning, ParameterError, RankError
from isopursuit.selection.result import Selection
from isopursuit.selection.select import select

# relative: a length above 1 by less is 1 (derived: above EPS √D for D < 1e13, and no loss shows it)
LONGER = 1e-9
# the least relevance, as a share of the largest (derived: with lengths 1e6 apart half of the digits are lost), and the
# |log length| that irrelevance leads to, at most
LEAST = 1e-6
MOST_LOG_LENGTH = -float(np.log(LEAST))
# t (1 − r) of the k-th most relevant, at most: a length of e^−3, whose loss e^(c e^6 / 2) float64 holds for c < 3.5
MOST_COST = 9.0


@dataclass(eq=False, repr=False)
class IsometrySelector(BaseEstimator):
    """The base of both selectors: options, standardization, and the call of `select`."""

    kind: ClassVar[Literal["rows", "features"]]
    what: ClassVar[str]  # the candidates, in messages

    k: int | None = None
    c: float = 1.0
    _: KW_ONLY
    method: Method = "auto"
    unit: Unit | Literal["auto"] = "auto"
    include: Iterable[Any] | None = None
    exclude: Iterable[Any] | None = None
    max_correlation: float | None = None
    apart: Iterable[Any] | None = None
    groups: Sequence[Label] | Mapping[Any, Label] | None = None
    per_group: PerGroup = None
    relevance: Any = None
    time_limit: float | None = 10.0
    gap: float | None = None

    def _warn(self) -> None:
        """Raise the notes that ask for caution as warnings, as estimators are rarely printed."""
        for note in self.selection_.notes:
            if isinstance(note, Caution):
                warnings.warn(note, IsoPursuitWarning, stacklevel=3)

    @property
    def _unit(self) -> Unit:
        """The length that counts as 1."""
        return DEFAULT_UNITS[self.kind] if isinstance(self.unit, str) and self.unit == "auto" else as_unit(self.unit)

    @property
    def _standardizes(self) -> bool:
        """Whether features get mean 0 and variance 1."""
        raise NotImplementedError

    def _table(self, X: Any, *, reset: bool) -> Array:
        """Scikit-learn's own validation, which also keeps the features' names, with this package's errors."""
        if frame_names(X) is not None:  # an error here names the column
            names, values = as_numbers_of(X)
            refuse_entries(values, names)
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
        notes = () if names is None else doubtful_columns(table, names, "drop from X what only names rows")
        self.mean_, self.scale_ = np.zeros(p), np.ones(p)
        if not self._standardizes:
            return notes
        present = weight > 0
        if present.sum() == 1:
            option = "unit=None" if self.kind == "features" else "standardize=False"
            raise RankError(f"Only 1 sample has a weight, so every feature is constant. Pass more, or {option}.")
        standard = Standard.of(table[present], weight[present])
        self.mean_, self.scale_ = standard.mean, standard.spread
        constant = np.isinf(self.scale_)
        if not constant.any():
            return notes
        same = name_columns(np.flatnonzero(constant).tolist(), names)
        return (*notes, Caution(f"standardized, a constant feature is zero and takes no part: {same}."))

    def _standardized(self, table: Array) -> Array:
        return (table - self.mean_) / self.scale_

    def _names(self) -> Labels | None:
        names: Sequence[Any] | None = getattr(self, "feature_names_in_", None)
        return None if names is None else tuple(names)

    @on_one_blas_thread
    def _pick(
        self,
        matrix: Matrix,
        default: Callable[[int], int],
        clock: Clock,
        *,
        weight: Array | None = None,
        include: Any = None,
        absent: Iterable[int] = (),
        factor_of: Callable[[Array], Array] | None = None,
    ) -> Selection:
        """Select among the columns of `matrix`, and keep the answer.

        `weight` is how many times a candidate counts in the median length. Those in `absent` cannot be picked.
        `default` returns k for a rank if the user passed none, and `factor_of` what lengths are multiplied by.
        """
        unit, matrix = self._unit, with_fewer_rows(matrix)
        required = as_indices(self.include if include is None else include, matrix, "include")
        exclude = ColumnNumbers(sorted({*as_indices(self.exclude, matrix, "exclude"), *absent}))
        allowed = np.setdiff1d(np.arange(matrix.values.shape[1]), exclude)
        rank = (matrix.take(allowed) if exclude else matrix).rank if len(allowed) else 0
        if rank == 0:
            raise RankError(
                f"No {self.what} can be picked: all are zero, constant, excluded, or shorter than {1 / LARGEST:g}, "
                "whose square underflows float64. Check X and options."
            )
        rules = {name: getattr(self, name) for name in ("max_correlation", "apart", "groups", "per_group")}
        ruled = any(value is not None for value in rules.values())
        k = None if ruled and self.k is None else self._size(rank, default, len(required))
        if rank < len(matrix.values):  # no column that may be picked changes, but for rounding
            matrix = in_row_space(matrix, rank, exclude)
        counted = np.ones(matrix.values.shape[1]) if weight is None else weight.copy()
        counted[exclude] = 0.0
        compared = replace(matrix.in_unit(UnitLength.of(unit, matrix.lengths, counted)), full_rank_assumed=True)
        used = compared if factor_of is None else compared.times(factor_of(compared.lengths))
        picked = select(
            replace(used, notes=()),
            k,
            c=self.c,
            method=self.method,
            include=required,
            exclude=exclude,
            time_limit=clock.remaining_limit,
            gap=self.gap,
            **rules,
        )
        picked = replace(picked, notes=compared.notes + picked.notes)
        self.selection_ = picked
        self.loss_ = picked.loss
        return picked

    def _size(self, rank: int, default: Callable[[int], int], included: int) -> int:
        what = self.what
        if self.k is None:
            return min(max(default(rank), included), rank)
        if not is_whole(self.k):
            raise ParameterError(f"k={self.k!r} is not a whole number. Pass how many {what} to pick, from 1 to {rank}.")
        if not 1 <= self.k <= rank:
            why = f" {beyond_dimensions(rank)}" if self.k > rank and self.kind == "rows" else ""
            raise ParameterError(
                f"k={self.k} is out of range: the table has rank {rank}, so pick from 1 to {rank} {what}.{why}"
            )
        return int(self.k)


def in_row_space(matrix: Matrix, k: int, without: Sequence[int] = ()) -> Matrix:
    """The matrix in its leading k dimensions, U_kᵀ X where X = U S Vᵀ; columns that are only rounding become zero.

    Columns with numbers in `without` do not contribute to the space.
    """
    before = np.linalg.norm(matrix.values, axis=0)
    leading, angle = leading_directions(matrix.values, k, without)
    values = leading.T @ matrix.values
    rounding = 4 * len(matrix.values) * angle * before
    rounding = rounding if matrix.rounding is None else np.maximum(rounding, matrix.rounding)
    gone = (np.linalg.norm(values, axis=0) <= rounding) & (before > 0)
    values[:, gone] = 0.0
    names = name_columns(np.flatnonzero(gone).tolist(), matrix.labels)
    note = f"columns that are zero in the leading {k} dimensions cannot be picked: {names}."
    notes = (*matrix.notes, Caution(note)) if gone.any() else matrix.notes
    return replace(matrix, values=values, notes=notes, rounding=rounding)


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


def share_factor(lengths: Array, relevance: Array) -> Array:
    """What to multiply features of these lengths by: |log length| grows by |log relevance|, on its own side of 1."""
    share = np.maximum(relevance / relevance.max(), LEAST)
    return share ** np.where(lengths > 1 + LONGER, -1.0, 1.0)


def length_factor(lengths: Array, shares: Array, t: float) -> Array:
    """What to multiply samples of these lengths by, where 1 is the ideal: see the first lines of this module."""
    u = np.log(np.where(lengths > 0, lengths, 1.0))
    v = np.sqrt(np.minimum(u**2 + t * (1 - shares), np.maximum(MOST_LOG_LENGTH, np.abs(u)) ** 2))
    return np.exp(np.where(u > LONGER, v, -v) - u)


def cost_of_irrelevance(trade_off: float, shares: Array, k: int) -> float:
    """The t of a trade-off θ < 1, or the most that float64 has room for if k are to be picked."""
    missing = 1 - float(np.partition(shares, -k)[-k])
    t = trade_off / (1 - trade_off)
    return min(t, MOST_COST / missing) if missing > 0 else t


def most_relevant(values: Array, shares: Array, k: int, include: Iterable[int], exclude: Iterable[int]) -> list[int]:
    """At most k independent columns with the largest sum of scores, those to include first.

    Sets of independent columns are a matroid, so that taking one after the other by score is best.
    """
    taken = list(include)
    never = {*taken, *exclude}
    for i in np.argsort(-shares, kind="stable").tolist():
        if len(taken) >= k:
            break
        if i not in never and direction_rank(values[:, [*taken, i]]) > len(taken):
            taken.append(i)
    return taken
