"""A scikit-learn selector of features."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self, cast

import numpy as np
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted  # pyright: ignore[reportUnknownVariableType]

from isopursuit._core.linalg import centring_rounding
from isopursuit._core.types import Array, Mask, Method, Unit
from isopursuit.data._matrix import Matrix
from isopursuit.data._units import as_unit
from isopursuit.errors import ParameterError
from isopursuit.estimators._base import IsometrySelector, as_weights
from isopursuit.estimators._relevance import Scoring, by_shares

MOST_COPIES = 10_000_000  # rows that a table may have with each sample repeated, for a relevance function (guess)


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
        table if that is smaller.
    c : float
        The paper's exponent: larger punishes lengths away from 1 more.
    method : {"auto", "two-stage", "exact", "exchange", "greedy", "brute"}
        See `isopursuit.select`.
    standardize : bool
        Compare features with mean 0 and variance 1. Constant features then cannot be picked. `transform` still returns
        the features as they came. unit="each" always standardizes.
    unit : number, "median", "each" or None
        The length that counts as 1. "each": every feature is centred and has length 1, so that correlations decide.
        "median": the median length of the candidates becomes 1. A number: lengths are divided by it. None: lengths are
        as they came, the paper's choice.
    include, exclude : iterables of feature names or numbers, optional
        Features that must or must not be picked.
    relevance : callable or array_like (n_features,), optional
        A score for each feature, or a function of (X, y) that returns scores, such as
        `sklearn.feature_selection.f_classif` or `mutual_info_classif` (the first of several arrays counts, NaN is 0).
        Only ratios to the largest score matter. A feature with half of that score becomes twice as long if it is longer
        than 1 and half as long otherwise, so it moves away from the ideal length. A score of 0 excludes a feature.
    time_limit : float, optional
        Seconds the search may take.
    gap : float
        Stop as soon as the answer is proved to be within this relative distance of the best.

    Attributes
    ----------
    selection_ : Selection
        The answer of `isopursuit.select`, with prices, alternatives and notes.
    certificate_ : Certificate or None
        dual ≤ optimum ≤ primal of the convex stage, for the two-stage method.
    loss_, lower_bound_ : float
        The loss of the picked features (the ideal is k), and a lower bound on the loss of every subset searched.
    optimal_ : bool
        Whether the search proved its answer, among the tied features (two-stage) or all features.
    unit_ : str
        The length that counts as 1, in words.
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
    >>> selector.transform(wine.values).shape, round(selector.loss_, 4), selector.optimal_
    ((178, 3), 3.0207, True)
    """

    def __init__(
        self,
        k: int | None = None,
        c: float = 1.0,
        *,
        method: Method = "auto",
        standardize: bool = False,
        unit: Unit = "each",
        include: Iterable[Any] | None = None,
        exclude: Iterable[Any] | None = None,
        relevance: Callable[[Any, Any], Any] | Sequence[float] | Array | None = None,
        time_limit: float | None = 60.0,
        gap: float = 0.0,
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

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Pick features.

        Parameters
        ----------
        X : array_like or data frame (n_samples, n_features)
            The table.
        y : array_like, optional
            Passed to `relevance` if that is a function; otherwise ignored.
        sample_weight : array_like (n_samples,), optional
            How many times each sample counts: a weight of 2 means that the row occurs twice. If `relevance` is a
            function, weights must be whole numbers, because it receives every row as many times as its weight.
        """
        table = self._table(X, reset=True)
        n, p = table.shape
        weight = as_weights(sample_weight, n, "sample_weight")
        notes = self._learn_scale(table, weight)
        # length 1 is root mean square 1
        candidates = self._standardized(table) * np.sqrt(weight / weight.sum())[:, None]
        rounding = centring_rounding(candidates, np.abs(self.mean_) / self.scale_)
        self._pick(
            Matrix(candidates, self._names(), notes, rounding),
            "features",
            lambda rank: min(max(1, p // 2), rank),
            scoring=self._scoring(table, y, weight if sample_weight is not None else None),
        )
        return self

    @property
    def _standardizes(self) -> bool:
        """Unit length without a common mean is what correlation compares."""
        return self.standardize or as_unit(self.unit) == "each"

    def _scoring(self, table: Array, y: Any, weight: Array | None) -> Scoring | None:
        relevance = self._relevance(table, y, weight)
        return None if relevance is None else by_shares(relevance)

    def _relevance(self, table: Array, y: Any, weight: Array | None) -> Array | None:
        if self.relevance is None:
            return None
        if not callable(self.relevance):
            return as_weights(self.relevance, table.shape[1], "relevance")
        if weight is not None:  # a function of (X, y) takes no weights, so repeat the rows
            copies = weight.astype(np.intp)
            if (copies != weight).any() or copies.sum() > MOST_COPIES:
                raise ParameterError(
                    "A relevance that is a function needs sample_weight in whole numbers, at most "
                    f"{MOST_COPIES:,} in all, because it receives every sample as many times as its weight. Pass "
                    "relevance as an array of scores instead."
                )
            table, y = table.repeat(copies, axis=0), None if y is None else np.asarray(y).repeat(copies, axis=0)
        answer: Any = self.relevance(table, y)
        scores = np.asarray(answer[0] if isinstance(answer, tuple) else answer, dtype=np.float64)
        return as_weights(np.where(np.isnan(scores), 0.0, scores), table.shape[1], "relevance")

    def _get_support_mask(self) -> Mask:  # pyright: ignore[reportIncompatibleMethodOverride]
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.selection_.indices] = True
        return mask

    def __sklearn_tags__(self) -> Any:
        tags = cast(Any, super().__sklearn_tags__())
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
