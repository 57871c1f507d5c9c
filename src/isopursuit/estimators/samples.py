"""A scikit-learn selector of samples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted  # pyright: ignore[reportUnknownVariableType]

from isopursuit._types import Array, Indices
from isopursuit.estimators.base import IsometrySelector, as_weights
from isopursuit.loss.lengths import table_notes
from isopursuit.matrix import Matrix
from isopursuit.rank import centring_rounding


class IsometrySampleSelector(ClassNamePrefixFeaturesOutMixin, TransformerMixin, IsometrySelector):
    """Pick k samples that represent the table: as orthogonal, and as close to unit length, as possible.

    This is the paper's diversification. A sample is a vector with one entry for each feature. By default the median
    length of the samples counts as 1, so that the most ordinary ones are preferred, whatever the table's unit.

    A scikit-learn transformer may not change the number of rows, so the picked rows are fitted attributes; `transform`
    gives every sample's distances to them, `predict` the nearest of them, and `score` how well they cover a table
    (for `GridSearchCV`). With `standardize=True` distances are between standardized samples.

    Parameters
    ----------
    k : int, optional
        How many samples to pick; if not given the rank of the table, the paper's choice.
    c : float
        The paper's exponent: larger punishes lengths away from 1 more.
    method : {"two-stage", "exact", "exchange", "greedy", "brute"}
        See `isopursuit.select`.
    space : {"vectors", "leading"}
        Where samples are compared if k is less than their rank: as they are, or by their coordinates in the leading
        k-dimensional space.
    standardize : bool
        Compare samples by features with mean 0 and variance 1; constant ones then take no part.
    unit : number, "median", "each" or None
        The length that counts as 1. "median": the median length of the samples that may be picked. "each": every sample
        has length 1, so that angles alone decide. A number: lengths are divided by it. None: lengths are as they came,
        the paper's choice.
    include, exclude : iterables of row numbers, optional
        Samples that must or must not be picked.
    normalization : {"symmetric", "logarithmic"} or callable
        See `isopursuit.symmetric_normalize`.
    time_limit : float, optional
        Seconds the search may take.
    gap : float
        Stop as soon as the answer is proved to be within this relative distance of the best.

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
        The loss of the picked samples (the ideal is k), and what none of the subsets searched can be below.
    optimal_ : bool
        Whether the search proved its answer: among the samples that the pursuit left (two-stage), or all (exact).
    unit_ : str
        The length that counts as 1, in words.
    mean_, scale_ : ndarray (n_features,)
        What standardization subtracted and divided by (infinite for constant features).
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> from isopursuit.datasets import load_wine
    >>> selector = IsometrySampleSelector(standardize=True).fit(load_wine().values)
    >>> sorted(selector.sample_indices_.tolist())
    [21, 32, 35, 36, 37, 43, 65, 72, 77, 79, 81, 85, 102]
    >>> print(f"{selector.loss_:.4f}: {selector.selection_.verdict}")
    52.0645: proved optimal among the 31 candidates the pursuit left
    """

    sample_indices_: Indices
    representatives_: Array
    labels_: Indices

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, relevance: Any = None) -> Self:
        """Pick samples.

        Parameters
        ----------
        X : array_like or data frame (n_samples, n_features)
            The table.
        y : ignored
            Only there for pipelines.
        sample_weight : array_like (n_samples,), optional
            How many times each sample counts, in the mean and variance of the features, in the median length and in the
            leading space. As everywhere in scikit-learn a weight of 2 is a row that stands there twice, and one of 0 a
            row that does not; it does not make a row more worth having, for two equal rows are no better than one.
        relevance : array_like (n_samples,), optional
            How much each sample is worth having. Only ratios to the largest matter: a sample with half of it becomes
            twice as long if it is longer than 1, half as long if shorter, which is always further from the ideal.
            Zero excludes.
        """
        table = self._table(X, reset=True)
        weight = as_weights(sample_weight, len(table), "sample_weight")
        notes = self._learn_scale(table, weight)
        candidates = np.ascontiguousarray(self._standardized(table).T)
        shift = float(np.linalg.norm(self.mean_ / self.scale_))
        rounding = centring_rounding(candidates, shift)
        picked = self._pick(
            Matrix(candidates, None, notes, rounding),
            "samples",
            lambda rank: rank,
            weight=None if sample_weight is None else weight,
            relevance=None if relevance is None else as_weights(relevance, len(table), "relevance"),
        )
        if not self.standardize:
            more = table_notes(picked.log_loss, picked.ideal, "standardize=True")
            self.selection_ = replace(picked, notes=picked.notes + more)
        rows = table[picked.indices]
        order = np.lexsort(rows.T[::-1])
        self.sample_indices_ = picked.indices[order]
        self.representatives_ = rows[order]
        self.labels_ = self._distances(table).argmin(axis=1)
        return self

    def transform(self, X: Any) -> Array:
        """The distance of every sample to every representative, shape (n_samples, k)."""
        return self._near(X)

    def predict(self, X: Any) -> Indices:
        """For every sample the position, in `sample_indices_`, of its nearest representative."""
        return self._near(X).argmin(axis=1)

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the mean squared distance to the nearest representative: higher is better, 0 is best."""
        return -float(np.mean(self._near(X).min(axis=1) ** 2))

    def _near(self, X: Any) -> Array:
        check_is_fitted(self)
        return self._distances(self._table(X, reset=False))

    def _distances(self, table: Array) -> Array:
        return np.asarray(cdist(self._standardized(table), self._standardized(self.representatives_)))

    @property
    def _n_features_out(self) -> int:
        return len(self.sample_indices_)
