"""Scikit-learn selectors of features and of samples."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted  # pyright: ignore[reportUnknownVariableType]

from isopursuit._core.clock import Clock
from isopursuit._core.linalg import centring_rounding
from isopursuit._core.options import is_number, is_whole
from isopursuit._core.types import Array, Indices, Mask
from isopursuit.data._matrix import Matrix, as_indices
from isopursuit.data._units import ranks
from isopursuit.errors import ParameterError, unknown_option
from isopursuit.estimators._base import (
    IsometrySelector,
    as_weights,
    cost_of_irrelevance,
    length_factor,
    most_relevant,
    share_factor,
)
from isopursuit.loss.notes import table_notes

BLOCK = 4096  # samples whose products with all picked samples are in memory (derived: 3 MB for 100)


@dataclass(eq=False, repr=False)
class IsometryFeatureSelector(SelectorMixin, IsometrySelector):
    """Pick k features that are as uncorrelated as possible.

    A feature is a vector with one entry for each sample, by default centred and of length 1, so that the inner product
    of two is their correlation. With another unit its length is its root mean square: entries are divided by √n_samples
    (with weights: by √Σw, each sample times √w), so that a feature of variance 1 has length 1 once it is centred,
    however many samples there are.

    Parameters
    ----------
    k : int, optional
        How many features to pick; by default half of them (as in `sklearn.feature_selection.RFE`), or the rank of the
        table if that is smaller. With `max_correlation`, `apart` or `groups`, by default as many as these allow.
    c, method, include, exclude, max_correlation, apart, groups, per_group, time_limit, gap
        As in `isopursuit.select`. Columns are features, by name or number.
    unit : number, "median", "each", None or "auto"
        The length that counts as 1, as in `isopursuit.select`. "auto" is "each": every feature is centred and has
        length 1, so that correlations decide and constant features cannot be picked. `transform` returns features as
        they came.
    correlation : {"pearson", "spearman"}
        Whether features are compared by their values or by the ranks of their values.
    relevance : callable or array_like (n_features,), optional
        A score for each feature, or a function of (X, y) that returns scores, such as
        `sklearn.feature_selection.f_classif` or `mutual_info_classif` (the first of several arrays counts, NaN is 0).
        Only ratios to the largest score matter. A feature with half of that score becomes twice as long if it is longer
        than 1 and half as long otherwise, so it moves away from the ideal length. A score of 0 excludes a feature.

    Attributes
    ----------
    selection_ : Selection
        The answer of `isopursuit.select`, with its proof, prices, alternatives, unit and notes.
    loss_ : float
        The loss of the picked features (the ideal is k).
    mean_, scale_ : ndarray (n_features,)
        What standardization subtracted and divided by (infinite for constant features).
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> from isopursuit.data import load_wine
    >>> wine = load_wine()
    >>> selector = IsometryFeatureSelector(k=3, method="exact").fit(wine.values)
    >>> [wine.features[i] for i in selector.get_support(indices=True)]
    ['alcalinity_of_ash', 'proanthocyanins', 'color_intensity']
    >>> selector.transform(wine.values).shape, round(selector.loss_, 4), selector.selection_.verdict
    ((178, 3), 3.0207, 'proved optimal')
    """

    kind: ClassVar[Literal["rows", "features"]] = "features"
    what: ClassVar[str] = "features"

    correlation: Literal["pearson", "spearman"] = field(default="pearson", kw_only=True)

    @property
    def _standardizes(self) -> bool:
        return self._unit == "each"  # that is what correlation compares

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Pick features.

        Parameters
        ----------
        X : array_like or data frame (n_samples, n_features)
            The table.
        y : array_like, optional
            Passed to `relevance` if that is a function; otherwise ignored.
        sample_weight : array_like (n_samples,), optional
            How many times each sample counts: a weight of 2 means that the row occurs twice.
        """
        clock, table = Clock.of(self.time_limit), self._table(X, reset=True)
        n, p = table.shape
        weight = as_weights(sample_weight, n, "sample_weight")
        relevance = self._relevance(table, y, sample_weight is not None)
        if self.correlation not in ("pearson", "spearman"):
            raise unknown_option("correlation", self.correlation, ("pearson", "spearman"))
        if self.correlation == "spearman":
            table = ranks(table, weight)
        notes = self._learn_scale(table, weight)
        # length 1 is root mean square 1
        candidates = self._standardized(table) * np.sqrt(weight / weight.sum())[:, None]
        rounding = centring_rounding(candidates, np.abs(self.mean_) / self.scale_)
        self._pick(
            Matrix(candidates, self._names(), notes, rounding),
            lambda rank: min(max(1, p // 2), rank),
            clock,
            absent=() if relevance is None else np.flatnonzero(relevance == 0).tolist(),
            factor_of=None if relevance is None else partial(share_factor, relevance=relevance),
        )
        self._warn()
        return self

    def _relevance(self, table: Array, y: Any, weighted: bool) -> Array | None:
        if self.relevance is None:
            return None
        if not callable(self.relevance):
            return as_weights(self.relevance, table.shape[1], "relevance")
        if weighted:
            raise ParameterError("A relevance that is a function takes no sample_weight. Pass an array of scores.")
        answer: Any = self.relevance(table, y)
        scores = np.asarray(answer[0] if isinstance(answer, tuple) else answer, dtype=np.float64)
        return as_weights(np.where(np.isnan(scores), 0.0, scores), table.shape[1], "relevance")

    def _get_support_mask(self) -> Mask:  # pyright: ignore[reportIncompatibleMethodOverride]
        check_is_fitted(self)
        mask = np.zeros(len(self.mean_), dtype=bool)
        mask[self.selection_.indices] = True
        return mask

    def __sklearn_tags__(self) -> Any:
        tags = cast(Any, super().__sklearn_tags__())
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@dataclass(eq=False, repr=False)
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
        How many samples to pick; by default the rank of the table, the paper's choice. With `max_correlation`, `apart`
        or `groups`, by default as many as these allow.
    c, method, include, exclude, max_correlation, apart, groups, per_group, time_limit, gap
        As in `isopursuit.select`. Columns are samples, by row number.
    standardize : bool
        Compare samples by features with mean 0 and variance 1. Constant features are then ignored.
    unit : number, "median", "each", None or "auto"
        The length that counts as 1, as in `isopursuit.select`. "auto" is "median".
    relevance : float, optional
        The weight of the scores that are passed to `fit`: 0 is orthogonality alone, 1 is relevance alone. Default: 0.5.
        In between, lengths are changed such that near the ideal the loss is a weighted sum of both
        (`isopursuit.estimators._base` has the derivation). Without scores it has no effect.

    Attributes
    ----------
    sample_indices_ : ndarray of int (k,)
        The picked rows, in the order of their entries (first feature, then second, ...), so that the labels do not
        depend on the order of the rows.
    samples_ : ndarray (k, n_features)
        The picked samples as they came, in that order.
    labels_ : ndarray of int (n_samples,)
        For every sample the position of its nearest picked sample.
    selection_, loss_, mean_, scale_, n_features_in_, feature_names_in_
        As for `IsometryFeatureSelector`; candidates are samples.

    Examples
    --------
    >>> from isopursuit.data import load_wine
    >>> selector = IsometrySampleSelector(k=4, standardize=True).fit(load_wine().values)
    >>> sorted(selector.sample_indices_.tolist())
    [84, 92, 100, 130]
    >>> print(f"{selector.loss_:.4f}: {selector.selection_.verdict}")
    4.0231: proved optimal
    """

    kind: ClassVar[Literal["rows", "features"]] = "rows"
    what: ClassVar[str] = "samples"

    standardize: bool = field(default=False, kw_only=True)

    @property
    def _standardizes(self) -> bool:
        return self.standardize

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
        clock, table = Clock.of(self.time_limit), self._table(X, reset=True)
        trade_off = self._trade_off()
        weight = as_weights(sample_weight, len(table), "sample_weight")
        notes = self._learn_scale(table, weight)
        candidates = self._standardized(table).T
        rounding = centring_rounding(candidates, float(np.linalg.norm(self.mean_ / self.scale_)))
        matrix = Matrix(candidates, None, notes, rounding)
        absent = np.flatnonzero(weight == 0).tolist()
        k = min(max(self.k, 1), *table.shape) if is_whole(self.k) else min(table.shape)
        include, factor_of = None, None
        if scores is not None:
            shares = _as_shares(scores, len(table))
            if trade_off < 1:
                t = cost_of_irrelevance(trade_off, shares, k)
                factor_of = partial(length_factor, shares=shares, t=t)
            elif not (self.max_correlation is self.apart is self.groups is None):
                raise ParameterError(
                    "relevance=1 picks the most relevant samples, without max_correlation=, apart= and groups=. Pass "
                    "relevance=0.99."
                )
            else:
                first, never = (as_indices(some, matrix, "include") for some in (self.include, self.exclude))
                include = most_relevant(candidates, shares, k, first, {*never, *absent})
        picked = self._pick(
            matrix,
            lambda rank: rank,
            clock,
            weight=weight,
            include=include,
            absent=absent,
            factor_of=factor_of,
        )
        if not self.standardize:
            more = table_notes(picked.log_loss, picked.ideal, "standardize=True")
            self.selection_ = replace(picked, notes=picked.notes + more)
        rows = table[picked.indices]
        order = np.lexsort(rows.T[::-1])
        self.sample_indices_ = picked.indices[order]
        self.samples_ = rows[order]
        self.labels_ = self._nearest(table)
        self._warn()
        return self

    def _trade_off(self) -> float:
        """θ in the first lines of `_base`."""
        relevance = 0.5 if self.relevance is None else self.relevance
        if not is_number(relevance) or not 0 <= relevance <= 1:
            raise ParameterError(
                f"relevance={relevance!r} must be a number from 0 (orthogonality alone) to 1 (relevance alone). "
                "Scores of the samples are passed to fit: fit(X, scores=...)."
            )
        return float(relevance)

    def transform(self, X: Any) -> Array:
        """The distance of every sample to every picked sample, shape (n_samples, k)."""
        check_is_fitted(self)
        return self._distances(self._table(X, reset=False))

    def predict(self, X: Any) -> Indices:
        """For every sample the position, in `sample_indices_`, of its nearest picked sample."""
        check_is_fitted(self)
        return self._nearest(self._table(X, reset=False))

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the mean squared distance to the nearest picked sample: higher is better, 0 is best."""
        return -float(np.mean(self.transform(X).min(axis=1) ** 2))

    def _nearest(self, table: Array) -> Indices:
        """For every sample the position of its nearest picked sample."""
        origin = self.samples_.mean(axis=0)  # near the samples, so that squares of distances keep their digits
        r = (self.samples_ - origin) / self.scale_
        half = 0.5 * np.einsum("ij,ij->i", r, r)
        # ‖x − r‖² = ‖x‖² + ‖r‖² − 2 xᵀr
        blocks = ((table[first : first + BLOCK] - origin) / self.scale_ for first in range(0, len(table), BLOCK))
        return np.concatenate([(half - block @ r.T).argmin(axis=1) for block in blocks])

    def _distances(self, table: Array) -> Array:
        found = cdist(self._standardized(table), self._standardized(self.samples_))
        return np.asarray(found, dtype=np.float64)

    @property
    def _n_features_out(self) -> int:
        return len(self.sample_indices_)


def _as_shares(scores: Any, n: int) -> Array:
    """One score for each of n samples; only ratios to the largest, which is positive, matter."""
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (n,):
        raise ParameterError(f"scores has shape {values.shape}, expected ({n},): one number for each sample.")
    if not np.isfinite(values).all() or values.max() <= 0:
        raise ParameterError("scores must be finite, and the largest positive. Subtract the least one if none is.")
    return values / values.max()
