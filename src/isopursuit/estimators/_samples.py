"""A scikit-learn selector of samples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted  # pyright: ignore[reportUnknownVariableType]

from isopursuit._core.clock import Clock
from isopursuit._core.linalg import centring_rounding
from isopursuit._core.options import is_whole
from isopursuit._core.types import Array, Indices, Method, Unit
from isopursuit.data._matrix import Matrix, as_indices
from isopursuit.estimators._base import IsometrySelector, as_weights
from isopursuit.estimators._relevance import (
    Scoring,
    as_scores,
    as_trade_off,
    cost_of_irrelevance,
    length_factor,
    most_relevant,
)
from isopursuit.loss.lengths import table_notes

MANY_PRODUCTS = 2**29  # products from which on distances are not computed one by one (guess)
BLOCK = 4096  # samples whose distances to all representatives are in memory (guess)
LABEL_SHARE, PRODUCT_SPEED = 0.2, 5e9  # largest share of the time for labels, and multiplications per second (guess)


class IsometrySampleSelector(ClassNamePrefixFeaturesOutMixin, TransformerMixin, IsometrySelector):
    """Pick k samples that differ from each other: as orthogonal, and as close to unit length, as possible.

    This is the paper's diversification. A sample is a vector with one entry for each feature. By default the median
    length of the samples counts as 1, so samples of ordinary length are preferred, whatever the table's unit.

    The loss does not distinguish x from −x: opposite samples count as copies of each other. Centring and
    `standardize=True` create opposite samples; non-negative tables have none.

    A scikit-learn transformer may not change the number of rows, so the picked rows are fitted attributes. `transform`
    returns the distances of every sample to them, `predict` the nearest of them, and `score` how well they cover a
    table (for `GridSearchCV`). With `standardize=True` distances are between standardized samples.

    Parameters
    ----------
    k : int, optional
        How many samples to pick; by default the rank of the table, the paper's choice.
    c : float
        The paper's exponent: larger punishes lengths away from 1 more.
    method : {"auto", "two-stage", "exact", "exchange", "greedy", "brute"}
        See `isopursuit.select`.
    standardize : bool
        Compare samples by features with mean 0 and variance 1. Constant features are then ignored.
    unit : number, "median", "each" or None
        The length that counts as 1. "median": the median length of the samples that may be picked. "each": every sample
        has length 1, so that angles alone decide. A number: lengths are divided by it. None: lengths are as they came,
        the paper's choice.
    include, exclude : iterables of row numbers, optional
        Samples that must or must not be picked.
    time_limit : float, optional
        Seconds the search may take.
    gap : float
        Stop as soon as the answer is proved to be within this relative distance of the best.
    relevance : float
        The weight of the scores that are passed to `fit`: 0 is orthogonality alone, 1 is relevance alone. In between,
        lengths are changed such that near the ideal the loss is a weighted sum of both, as
        `isopursuit.estimators._relevance` derives. Without scores it has no effect.

    Attributes
    ----------
    sample_indices_ : ndarray of int (k,)
        The picked rows, in the order of their entries (first feature, then second, ...), so that the labels do not
        depend on the order of the rows.
    representatives_ : ndarray (k, n_features)
        The picked samples as they came, in that order.
    labels_ : ndarray of int (n_samples,)
        For every sample the position of its nearest representative.
    selection_ : Selection
        The answer of `isopursuit.select`, with prices, alternatives and notes.
    certificate_ : Certificate or None
        dual ≤ optimum ≤ primal of the convex stage, for the two-stage method.
    loss_, lower_bound_ : float
        The loss of the picked samples (the ideal is k), and a lower bound on the loss of every subset searched.
    optimal_ : bool
        Whether the search proved its answer, among the tied samples (two-stage) or all samples.
    unit_ : str
        The length that counts as 1, in words.
    mean_, scale_ : ndarray (n_features,)
        What standardization subtracted and divided by (infinite for constant features).
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> from isopursuit.data import load_wine
    >>> selector = IsometrySampleSelector(k=4, standardize=True).fit(load_wine().values)
    >>> sorted(selector.sample_indices_.tolist())
    [84, 92, 100, 130]
    >>> print(f"{selector.loss_:.4f}: {selector.selection_.verdict}")
    4.0231: proved optimal
    """

    sample_indices_: Indices
    representatives_: Array
    labels_: Indices

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
        relevance: float = 0.5,
    ) -> None:
        super().__init__(
            k,
            c,
            method=method,
            standardize=standardize,
            unit=unit,
            include=include,
            exclude=exclude,
            time_limit=time_limit,
            gap=gap,
        )
        self.relevance = relevance

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, scores: Any = None) -> Self:
        """Pick samples.

        Parameters
        ----------
        X : array_like or data frame (n_samples, n_features)
            The table.
        y : ignored
            Present for pipelines only.
        sample_weight : array_like (n_samples,), optional
            How many times each sample counts in the mean and variance of the features, in the median length and in the
            leading space. As everywhere in scikit-learn, a weight of 2 means that the row occurs twice, and a weight of
            0 that it is absent. A large weight does not make a row more likely to be picked; use `scores` for that.
        scores : array_like (n_samples,), optional
            The relevance of each sample, such as its similarity to a query. Only ratios to the largest score matter,
            which must be positive.
        """
        clock, trade_off = Clock.of(self.time_limit), as_trade_off(self.relevance)
        table = self._table(X, reset=True)
        weight = as_weights(sample_weight, len(table), "sample_weight")
        notes = self._learn_scale(table, weight)
        candidates = self._standardized(table).T
        shift = float(np.linalg.norm(self.mean_ / self.scale_))
        rounding = centring_rounding(candidates, shift)
        matrix = Matrix(candidates, None, notes, rounding)
        picked = self._pick(
            matrix,
            "samples",
            lambda rank: rank,
            weight=None if sample_weight is None else weight,
            scoring=None if scores is None else self._scoring(matrix, as_scores(scores, len(table)), trade_off, weight),
            # time for the labels, by an estimate for the most representatives
            clock=clock.reserve(min(LABEL_SHARE * clock.remaining, table.size * self._most(table) / PRODUCT_SPEED)),
        )
        if not self.standardize:
            more = table_notes(picked.log_loss, picked.ideal, "standardize=True")
            self.selection_ = replace(picked, notes=picked.notes + more)
        rows = table[picked.indices]
        order = np.lexsort(rows.T[::-1])
        self.sample_indices_ = picked.indices[order]
        self.representatives_ = rows[order]
        self.labels_ = self._nearest(table)
        return self

    def _scoring(self, matrix: Matrix, shares: Array, trade_off: float, weight: Array) -> Scoring:
        """How the scores' shares of the largest count; at 1 they decide alone."""
        k = self.k if is_whole(self.k) else None
        if trade_off < 1:
            most = min(matrix.values.shape)
            t = cost_of_irrelevance(trade_off, shares, most if k is None else min(max(k, 1), most))
            return Scoring(partial(length_factor, shares=shares, t=t))
        include, exclude = as_indices(self.include, matrix, "include"), as_indices(self.exclude, matrix, "exclude")
        absent = np.flatnonzero(weight == 0).tolist()
        return Scoring(chosen=most_relevant(matrix.values, shares, k, include, {*exclude, *absent}))

    def transform(self, X: Any) -> Array:
        """The distance of every sample to every representative, shape (n_samples, k)."""
        return self._near(X)

    def predict(self, X: Any) -> Indices:
        """For every sample the position, in `sample_indices_`, of its nearest representative."""
        check_is_fitted(self)
        return self._nearest(self._table(X, reset=False))

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the mean squared distance to the nearest representative: higher is better, 0 is best."""
        return -float(np.mean(self._near(X).min(axis=1) ** 2))

    def _near(self, X: Any) -> Array:
        check_is_fitted(self)
        return self._distances(self._table(X, reset=False))

    def _most(self, table: Array) -> int:
        """The number of representatives, or at least as many."""
        return self.k if is_whole(self.k) else min(table.shape)

    def _nearest(self, table: Array) -> Indices:
        """For every sample the position of its nearest representative."""
        if table.size * len(self.representatives_) <= MANY_PRODUCTS:
            return self._distances(table).argmin(axis=1)
        # ‖x − r‖² = ‖x‖² + ‖r‖² − 2 xᵀr, in blocks: much faster, and less accurate only where distances nearly agree
        r = self._standardized(self.representatives_)
        half = 0.5 * np.einsum("ij,ij->i", r, r)
        blocks = (self._standardized(table[first : first + BLOCK]) for first in range(0, len(table), BLOCK))
        return np.concatenate([(half - block @ r.T).argmin(axis=1) for block in blocks])

    def _distances(self, table: Array) -> Array:
        return np.asarray(cdist(self._standardized(table), self._standardized(self.representatives_)))

    @property
    def _n_features_out(self) -> int:
        return len(self.sample_indices_)
