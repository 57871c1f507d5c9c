"""The scikit-learn door (extra `sklearn`): pick features, or samples, inside a pipeline.

Both estimators turn a table (n_samples, n_features) into candidates, hand them to `select`, and keep its answer with
the proof. They differ in what a candidate is: a feature, or a sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from isopursuit._types import Method
from isopursuit.errors import DataTypeError, InputError, ParameterError, RankError, optional
from isopursuit.matrix import (
    EPS,
    Label,
    Matrix,
    as_deadline,
    as_indices,
    in_row_space,
    left_until,
    name_columns,
    numerical_rank,
    row_triangle,
    singular_values,
)
from isopursuit.normalize import Normalization
from isopursuit.results import Certificate
from isopursuit.select import select
from isopursuit.selection import Selection
from isopursuit.threads import on_one_blas_thread

optional("sklearn", "sklearn", "isopursuit.estimators")
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin  # noqa: E402
from sklearn.feature_selection import SelectorMixin  # noqa: E402
from sklearn.utils.validation import (  # noqa: E402
    check_is_fitted,  # pyright: ignore[reportUnknownVariableType]
    validate_data,  # pyright: ignore[reportUnknownVariableType]
)

__all__ = ["IsometryFeatureSelector", "IsometrySampleSelector"]

Array = NDArray[np.float64]
CONSTANT = 10 * EPS  # a spread below this, relative to the largest entry, is rounding
HALF = 1e-12  # relative rounding of half the weights
MOST_COPIES = 10_000_000  # rows that a table may have with each sample repeated
LEAST = 1e-6  # a relevance below this share of the largest counts as this: longer vectors would drown the others


class _IsometrySelector(BaseEstimator):
    """What both selectors share: their options, standardization, and the way to `select` and back."""

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
        method: Method = "two-stage",
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
        """Mean and spread of each feature; an infinite scale takes constant features to zero, now and later."""
        p = table.shape[1]
        self.mean_, self.scale_ = np.zeros(p), np.ones(p)
        if not self.standardize:
            return ()
        present = weight > 0
        if present.sum() == 1:
            raise RankError(
                "Only 1 sample has a weight, so every feature is constant. Pass more, or standardize=False."
            )
        largest = np.abs(table[present]).max(axis=0)
        largest[largest == 0] = 1.0
        scaled = table[present] / largest  # so that no square leaves float64
        mean = np.average(scaled, axis=0, weights=weight[present])
        mean += np.average(scaled - mean, axis=0, weights=weight[present])  # takes off the rounding of a long sum
        spread = np.sqrt(np.average((scaled - mean) ** 2, axis=0, weights=weight[present]))
        constant = spread <= CONSTANT
        self.mean_ = mean * largest
        self.scale_ = np.where(constant, np.inf, spread * largest)
        if not constant.any():
            return ()
        names = name_columns(np.flatnonzero(constant).tolist(), self._names())
        return (f"standardized, a constant feature is zero and takes no part: {names}.",)

    def _standardized(self, table: Array) -> Array:
        return (table - self.mean_) / self.scale_ if self.standardize else table

    def _names(self) -> tuple[Label, ...] | None:
        names: Sequence[Label] | None = getattr(self, "feature_names_in_", None)
        return None if names is None else tuple(names)

    @on_one_blas_thread
    def _pick(
        self,
        candidates: Array,
        rounding: Array,
        what: str,
        default: Callable[[int], int],
        *,
        labels: tuple[Label, ...] | None = None,
        weight: Array | None = None,
        relevance: Array | None = None,
        notes: tuple[str, ...] = (),
    ) -> Selection:
        """Select among the columns of `candidates`, and keep the answer.

        `rounding` is as in `Matrix`. `weight` says how much a candidate counts in the leading space, `relevance` how
        much it is worth having; a zero in either excludes it. `default` gives k for a rank, where the user did not.
        """
        deadline = as_deadline(self.time_limit)
        P = candidates.shape[1]
        if len(candidates) > P:
            candidates = row_triangle(candidates.T)  # P × P, with the same lengths and angles
        matrix = Matrix(candidates, labels, rounding=rounding)
        must, barred = as_indices(self.include, matrix, "include"), as_indices(self.exclude, matrix, "exclude")
        for zero in (weight, relevance):
            barred += [] if zero is None else np.flatnonzero(zero == 0).tolist()
        barred = sorted(set(barred))
        root = np.ones(P) if weight is None else np.sqrt(weight / weight.max())
        weighted = replace(matrix, values=candidates * root, rounding=rounding * root)
        k = self._size(weighted, barred, what, default, len(must))
        if k < len(candidates):
            reduced = in_row_space(weighted, k, barred)
            unweighted = 1 / np.where(root > 0, root, 1.0)
            candidates, notes = reduced.values * unweighted, notes + reduced.notes
            rounding = rounding if reduced.rounding is None else reduced.rounding * unweighted
        counted = root**2
        counted[barred] = 0.0
        lengths = np.linalg.norm(candidates, axis=0)
        unit = self._unit_length(lengths, counted)
        factor = _relevance_factor(lengths / unit, relevance) / unit
        picked = select(
            Matrix(candidates * factor, labels, rounding=rounding * factor),
            c=self.c,
            method=self.method,
            include=must,
            exclude=barred,
            normalization=self.normalization,
            time_limit=left_until(deadline),
            gap=self.gap,
        )
        self.selection_ = replace(picked, notes=notes + picked.notes)
        self.certificate_ = None if picked.pursuit is None else picked.pursuit.certificate
        self.loss_ = picked.loss
        self.lower_bound_ = picked.search.lower_bound
        self.optimal_ = picked.search.optimal
        return self.selection_

    def _size(
        self, weighted: Matrix, barred: list[int], what: str, default: Callable[[int], int], included: int
    ) -> int:
        open_to = np.delete(weighted.values, barred, axis=1)
        error = float(np.linalg.norm(np.delete(cast(Array, weighted.rounding), barred)))
        rank = numerical_rank(singular_values(open_to), open_to.shape[1], error) if open_to.size else 0
        if rank == 0:
            raise RankError(f"No {what} can be picked: all are zero, constant or excluded. Check X and the options.")
        if self.k is None:
            return min(max(default(rank), included), rank)
        if not isinstance(self.k, int | np.integer) or isinstance(self.k, bool):
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


class IsometryFeatureSelector(SelectorMixin, _IsometrySelector):
    """Pick k features that are as uncorrelated, and as close to unit length, as possible.

    A feature is a vector with one entry for each sample, divided by √n_samples (with weights: by √Σw, each sample
    times √w): its length is then its root mean square, 1 for a standardized feature however many samples there are,
    and the inner product of two standardized features is their correlation. Features are compared by their coordinates
    in the leading k-dimensional space, the first k principal components (uncentred unless standardized).

    Parameters
    ----------
    k : int, optional
        How many features to pick; if not given half of them (as in `sklearn.feature_selection.RFE`), or as many as
        are independent if that is fewer.
    c : float
        The paper's exponent: larger punishes lengths away from 1 more.
    method : {"two-stage", "exact", "exchange", "greedy", "brute"}
        See `isopursuit.select`.
    standardize : bool
        Compare features with mean 0 and variance 1. Constant ones then cannot be picked. `transform` still returns
        the features as they came.
    unit : float or "median"
        The length that counts as 1; "median" is that of the candidates, so that the table's unit does not matter.
    include, exclude : iterables of feature names or numbers, optional
        Features that must or must not be picked.
    relevance : callable or array_like (n_features,), optional
        How much each feature is worth having, or a function of (X, y) that says so, such as
        `sklearn.feature_selection.f_classif` or `mutual_info_classif` (the first of several arrays counts, NaN is 0).
        Only ratios to the largest matter: a feature with half of it becomes twice as long if it is longer than 1,
        half as long if shorter, which is always further from the ideal. Zero excludes.
    normalization : {"symmetric", "logarithmic"} or callable
        See `isopursuit.symmetric_normalize`.
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
        The loss of the picked features (the ideal is k), and what none of the subsets searched can be below.
    optimal_ : bool
        Whether the search proved its answer: among the features that the pursuit left (two-stage), or all (exact).
    mean_, scale_ : ndarray (n_features,)
        What standardization subtracted and divided by (infinite for constant features).
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> from isopursuit.datasets import load_wine
    >>> wine = load_wine()
    >>> selector = IsometryFeatureSelector(k=3, method="exact", standardize=True).fit(wine.values)
    >>> [wine.features[i] for i in selector.get_support(indices=True)]
    ['alcohol', 'ash', 'od280/od315_of_diluted_wines']
    >>> selector.transform(wine.values).shape, round(selector.loss_, 4), selector.optimal_
    ((178, 3), 3.0925, True)
    """

    def __init__(
        self,
        k: int | None = None,
        c: float = 1.0,
        *,
        method: Method = "two-stage",
        standardize: bool = False,
        unit: float | Literal["median"] = 1.0,
        include: Iterable[Any] | None = None,
        exclude: Iterable[Any] | None = None,
        relevance: Callable[[Any, Any], Any] | Sequence[float] | Array | None = None,
        normalization: Normalization = "symmetric",
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
            normalization=normalization,
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
        y : ignored
            But given to `relevance` where that is a function.
        sample_weight : array_like (n_samples,), optional
            How many times each sample counts: a weight of 2 is a row that stands there twice. Where `relevance` is a
            function, it is given the rows so repeated, and weights must be whole numbers.
        """
        table = self._table(X, reset=True)
        n, p = table.shape
        weight = _weights(sample_weight, n, "sample_weight")
        notes = self._learn_scale(table, weight)
        # length 1 is root mean square 1
        candidates = self._standardized(table) * np.sqrt(weight / weight.sum())[:, None]
        self._pick(
            candidates,
            EPS * (np.linalg.norm(candidates, axis=0) + 2 * np.abs(self.mean_) / self.scale_),
            "features",
            lambda rank: min(max(1, p // 2), rank),
            labels=self._names(),
            relevance=self._relevance(table, y, weight if sample_weight is not None else None),
            notes=notes,
        )
        return self

    def _relevance(self, table: Array, y: Any, weight: Array | None) -> Array | None:
        if self.relevance is None:
            return None
        if not callable(self.relevance):
            return _weights(self.relevance, table.shape[1], "relevance")
        if weight is not None:  # a function of (X, y) knows of copies only
            copies = weight.astype(np.intp)
            if (copies != weight).any() or copies.sum() > MOST_COPIES:
                raise ParameterError(
                    "A relevance that is a function needs sample_weight in whole numbers, at most "
                    f"{MOST_COPIES:,} in all, because it is given every sample as often as its weight says. Pass "
                    "relevance as an array of scores instead."
                )
            table, y = table.repeat(copies, axis=0), None if y is None else np.asarray(y).repeat(copies, axis=0)
        answer: Any = self.relevance(table, y)
        scores = np.asarray(answer[0] if isinstance(answer, tuple) else answer, dtype=np.float64)
        return _weights(np.where(np.isnan(scores), 0.0, scores), table.shape[1], "relevance")

    def _get_support_mask(self) -> NDArray[np.bool_]:  # pyright: ignore[reportIncompatibleMethodOverride]
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.selection_.indices] = True
        return mask

    def __sklearn_tags__(self) -> Any:
        tags = cast(Any, super().__sklearn_tags__())
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class IsometrySampleSelector(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _IsometrySelector):
    """Pick k samples that represent the table: as orthogonal, and as close to unit length, as possible.

    This is the paper's diversification. A sample is a vector with one entry for each feature; samples are compared by
    their coordinates in the leading k-dimensional space.

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
    standardize : bool
        Compare samples by features with mean 0 and variance 1; constant ones then take no part.
    unit : float or "median"
        The length that counts as 1; "median" is that of the candidates, so that the most ordinary are preferred.
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

    sample_indices_: NDArray[np.intp]
    representatives_: Array
    labels_: NDArray[np.intp]

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, relevance: Any = None) -> Self:
        """Pick samples.

        Parameters
        ----------
        X : array_like or data frame (n_samples, n_features)
            The table.
        y : ignored
            Only there for pipelines.
        sample_weight : array_like (n_samples,), optional
            How many times each sample counts, in the mean and variance of the features and in the leading space. As
            everywhere in scikit-learn a weight of 2 is a row that stands there twice, and one of 0 a row that does
            not; it does not make a row more worth having, for two equal rows are no better than one.
        relevance : array_like (n_samples,), optional
            How much each sample is worth having. Only ratios to the largest matter: a sample with half of it becomes
            twice as long if it is longer than 1, half as long if shorter, which is always further from the ideal.
            Zero excludes.
        """
        table = self._table(X, reset=True)
        weight = _weights(sample_weight, len(table), "sample_weight")
        notes = self._learn_scale(table, weight)
        candidates = np.ascontiguousarray(self._standardized(table).T)
        shift = float(np.linalg.norm(self.mean_ / self.scale_))
        picked = self._pick(
            candidates,
            EPS * (np.linalg.norm(candidates, axis=0) + 2 * shift),
            "samples",
            lambda rank: rank,
            weight=None if sample_weight is None else weight,
            relevance=None if relevance is None else _weights(relevance, len(table), "relevance"),
            notes=notes,
        )
        rows = table[picked.indices]
        order = np.lexsort(rows.T[::-1])
        self.sample_indices_ = picked.indices[order]
        self.representatives_ = rows[order]
        self.labels_ = self._distances(table).argmin(axis=1)
        return self

    def transform(self, X: Any) -> Array:
        """The distance of every sample to every representative, shape (n_samples, k)."""
        return self._near(X)

    def predict(self, X: Any) -> NDArray[np.intp]:
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


def _weights(values: Any, n: int, what: str) -> Array:
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


def _relevance_factor(lengths: Array, relevance: Array | None) -> Array:
    """|log length| grows by |log relevance|: the less relevant, the further from length 1, on its own side of it."""
    if relevance is None:
        return np.ones(len(lengths))
    share = np.maximum(relevance / relevance.max(), LEAST)
    return share ** np.where(lengths > 1, -1.0, 1.0)
