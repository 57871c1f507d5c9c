import pickle
import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import f_classif, mutual_info_classif
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import isopursuit as ip
from isopursuit.data import load_wine
from isopursuit.errors import DataTypeError, InputError, IsoPursuitWarning, ParameterError, RankError
from isopursuit.estimators import IsometryFeatureSelector, IsometrySampleSelector
from isopursuit.estimators._base import length_factor

WINE = load_wine()
FRAME = pd.DataFrame(WINE.values, columns=list(WINE.features))
BOTH = [IsometryFeatureSelector(k=4), IsometrySampleSelector(k=4, standardize=True)]


def table(seed, n=60, p=8):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)) * np.exp(0.3 * rng.normal(size=p)) + 0.3 * rng.normal(size=(n, 1))


def picked(selector):
    return selector.selection_.indices.tolist()


@parametrize_with_checks(
    [
        IsometryFeatureSelector(),
        IsometryFeatureSelector(unit="median", method="exact"),
        IsometrySampleSelector(),
        IsometrySampleSelector(k=1, c=0.5, standardize=True, unit="median", method="exchange"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# What is picked


@pytest.mark.parametrize("method", ["two-stage", "exact", "greedy"])
@pytest.mark.parametrize(("n", "k"), [(60, 3), (60, 8), (5, 3)])
def test_features_are_what_select_picks_among_columns_of_root_mean_square_length(method, n, k):
    X = table(0, n)
    # Uᵀ X by plain SVD: an orthogonal change of the rows
    _, s, v = np.linalg.svd(X / np.sqrt(n), full_matrices=False)
    answer = ip.select(s[:, None] * v, k, method=method)
    selector = IsometryFeatureSelector(k, method=method, unit=None).fit(X)
    assert picked(selector) == answer.indices.tolist()
    assert selector.loss_ == pytest.approx(answer.loss)
    assert selector.selection_.search.lower_bound == pytest.approx(answer.search.lower_bound)
    assert selector.selection_.verdict == answer.verdict


@pytest.mark.parametrize("unit", [None, "median", "each", 2.5])
@pytest.mark.parametrize("k", [None, 3, 6])
def test_samples_are_what_select_picks_in_the_transposed_table(k, unit):
    X = WINE.values[::4, :8]
    standardized = (X - X.mean(axis=0)) / X.std(axis=0)
    answer = ip.select(standardized.T, k, unit=unit, time_limit=None)
    selector = IsometrySampleSelector(k, standardize=True, unit=unit).fit(X)
    assert picked(selector) == answer.indices.tolist()
    assert selector.loss_ == pytest.approx(answer.loss)
    assert selector.selection_.unit == answer.unit
    assert (selector.selection_.pursuit is None) == (answer.pursuit is None)
    if answer.pursuit is not None:
        assert selector.selection_.pursuit.certificate.gap < 1e-8
        assert selector.selection_.pursuit.objective == pytest.approx(answer.pursuit.objective)


@pytest.mark.parametrize("k", [3, 8])
def test_features_are_compared_by_correlation_unless_another_unit_is_asked_for(k):
    X = table(0) * 10.0 ** np.arange(-4, 4) + 5
    selector = IsometryFeatureSelector(k, method="exchange").fit(X)
    centred = X - X.mean(axis=0)
    answer = ip.select(centred, k, unit="each", method="exchange")
    assert picked(selector) == answer.indices.tolist()
    assert selector.loss_ == pytest.approx(answer.loss)
    correlation = np.corrcoef(X[:, picked(selector)].T)
    assert selector.loss_ == pytest.approx(ip.isometry_loss(np.linalg.cholesky(correlation).T))
    assert selector.selection_.unit == "each column has length 1"


@pytest.mark.parametrize("n", [12, 300])
def test_planted_orthogonal_features_are_found(n):
    rng = np.random.default_rng(1)
    planted = np.sqrt(n) * np.linalg.qr(rng.normal(size=(n, 4)))[0]
    mixed = planted @ rng.normal(size=(4, 9))
    X = np.column_stack([mixed[:, :3], planted[:, :2], mixed[:, 3:], planted[:, 2:]])
    selector = IsometryFeatureSelector(k=4, unit=None).fit(X)
    assert picked(selector) == [3, 4, 11, 12]
    assert selector.loss_ == pytest.approx(4)


def test_repeating_the_samples_changes_nothing_so_features_have_the_same_length_in_any_number_of_them():
    X = table(2)
    once, often = IsometryFeatureSelector().fit(X), IsometryFeatureSelector().fit(np.tile(X, (7, 1)))
    assert picked(once) == picked(often)
    assert once.loss_ == pytest.approx(often.loss_)


@pytest.mark.parametrize("seed", range(3))
def test_permuting_features_permutes_the_picked_features(seed):
    X = table(seed)
    order = np.random.default_rng(seed).permutation(8)
    one, other = IsometryFeatureSelector(4).fit(X), IsometryFeatureSelector(4).fit(X[:, order])
    assert sorted(order[picked(other)]) == picked(one)
    assert one.loss_ == pytest.approx(other.loss_)


@pytest.mark.parametrize("seed", range(3))
def test_permuting_samples_changes_neither_samples_nor_labels(seed):
    X = table(seed)
    order = np.random.default_rng(seed).permutation(60)
    one, other = IsometrySampleSelector(4).fit(X), IsometrySampleSelector(4).fit(X[order])
    np.testing.assert_array_equal(one.samples_, other.samples_)
    np.testing.assert_array_equal(one.labels_[order], other.labels_)


def test_half_of_the_features_are_picked_by_default_or_as_many_as_are_independent():
    X = table(3, p=9)
    assert len(picked(IsometryFeatureSelector().fit(X))) == 4
    assert len(picked(IsometryFeatureSelector(include=range(6)).fit(X))) == 6
    assert len(picked(IsometryFeatureSelector().fit(X[:, [0, 1, 0, 1, 0, 1, 0, 1]]))) == 2
    assert len(picked(IsometryFeatureSelector().fit(X[:, :1]))) == 1


# Standardization and units


@pytest.mark.parametrize("estimator", BOTH)
def test_standardize_is_a_scaler_in_front(estimator):
    alone = clone(estimator).fit(WINE.values)
    scaled = type(estimator)(k=4).fit(StandardScaler().fit_transform(WINE.values))
    assert picked(alone) == picked(scaled)
    assert alone.loss_ == pytest.approx(scaled.loss_)


@pytest.mark.parametrize("estimator", BOTH)
def test_a_constant_feature_is_noted_and_takes_no_part(estimator):
    frame = FRAME.assign(zero=0.0, always=0.1)
    selector = clone(estimator).fit(frame)
    assert picked(selector) == picked(clone(estimator).fit(FRAME))
    assert "constant feature is zero and takes no part: zero, always." in selector.selection_.notes[0]


@pytest.mark.parametrize(
    "estimator",
    [
        IsometryFeatureSelector(4),
        IsometryFeatureSelector(4, unit="median"),
        IsometrySampleSelector(),
        IsometrySampleSelector(4, unit="each"),
    ],
)
def test_with_the_median_or_each_as_unit_the_scale_of_the_table_does_not_matter(estimator):
    X = table(4)
    one, other = clone(estimator).fit(X), clone(estimator).fit(1e6 * X)
    assert picked(one) == picked(other)
    assert one.loss_ == pytest.approx(other.loss_)


def test_a_unit_is_the_length_that_counts_as_one():
    X = table(4)
    assert IsometryFeatureSelector(4, unit=3.0).fit(3 * X).loss_ == pytest.approx(
        IsometryFeatureSelector(4, unit=None).fit(X).loss_
    )


# Excluded candidates, and tables far from zero


@pytest.mark.parametrize("method", ["two-stage", "exact", "greedy"])
@pytest.mark.parametrize("seed", range(3))
def test_excluded_candidates_do_not_define_the_unit(method, seed):
    X = table(seed, n=12, p=6)
    X[0] *= 30
    X[:, 1] *= 30
    for selector, direct in (
        (
            IsometrySampleSelector(3, method=method, exclude=[0]),
            ip.select(X.T, 3, method=method, exclude=[0], unit="median"),
        ),
        (
            IsometryFeatureSelector(3, method=method, exclude=[1], unit=None),
            ip.select(X / np.sqrt(12), 3, method=method, exclude=[1]),
        ),
    ):
        selector.fit(X)
        assert selector.loss_ == pytest.approx(direct.loss, rel=1e-9)
        assert picked(selector) == direct.indices.tolist()


@pytest.mark.parametrize("method", ["two-stage", "exact"])
@pytest.mark.parametrize("seed", range(10))
def test_five_rows_of_wine_centred_have_rank_four(method, seed):
    rows = WINE.values[np.random.default_rng(seed).choice(len(WINE.values), 5, replace=False)]
    selector = IsometrySampleSelector(standardize=True, method=method).fit(rows)
    assert len(picked(selector)) == 4
    assert np.isfinite(selector.loss_)
    with pytest.raises(ParameterError, match="rank 4"):
        IsometrySampleSelector(5, standardize=True, method=method).fit(rows)


@pytest.mark.parametrize("far", [1e2, 1e5, 1e8])
@pytest.mark.parametrize("kind", [IsometryFeatureSelector, partial(IsometrySampleSelector, standardize=True)])
def test_a_table_far_from_zero_has_the_rank_of_the_table_centred(kind, far):
    """Rows and columns of whole numbers, so that the table far from zero is exact and the mean is what is rounded."""
    for seed in range(10):
        whole = np.random.default_rng(seed).integers(-9, 10, (5, 8)).astype(float)
        near, there = (kind(4, method="exact").fit(X) for X in (whole, whole + far))
        assert there.loss_ == pytest.approx(near.loss_, rel=1e-6)
        assert len(picked(kind().fit(whole + far))) == 4
        with pytest.raises(ParameterError, match="rank 4"):
            kind(5).fit(whole + far)


def test_features_that_agree_but_for_rounding_do_not_replace_each_other():
    a = np.random.default_rng(0).normal(size=(20, 2)) + 1e6
    X = np.column_stack([a, 3 * a[:, 0] + 2])
    choices = IsometryFeatureSelector(2, method="exact").fit(X).selection_.choices
    assert {choice.index: choice.replacement for choice in choices} == {0: 2, 1: None}


def test_a_long_constant_feature_is_constant():
    X = np.column_stack([np.full(100_000, 0.1), np.random.default_rng(0).normal(size=(100_000, 2))])
    selector = IsometryFeatureSelector(2).fit(X)
    assert picked(selector) == [1, 2]
    assert "takes no part: 0." in selector.selection_.notes[0]


# Weights and relevance


@pytest.mark.parametrize("estimator", BOTH)
def test_a_weight_is_a_number_of_copies(estimator):
    X = table(5)
    weight = np.random.default_rng(5).integers(0, 4, 60)
    weighted = clone(estimator).fit(X, sample_weight=weight)
    repeated = clone(estimator).fit(X.repeat(weight, axis=0))
    assert weighted.loss_ == pytest.approx(repeated.loss_)
    np.testing.assert_allclose(weighted.transform(X), repeated.transform(X))
    np.testing.assert_allclose(weighted.scale_, repeated.scale_)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("kind", [IsometryFeatureSelector, IsometrySampleSelector])
def test_a_median_of_weighted_lengths_is_that_of_the_copies(kind, seed):
    X = table(seed, n=9, p=4)
    weight = np.random.default_rng(seed).integers(0, 4, 9)
    estimator = kind(3, method="exact", unit="median")
    repeated = clone(estimator).fit(X.repeat(weight, axis=0))
    for scale in (1.0, 0.1, 1 / 3):
        weighted = clone(estimator).fit(X, sample_weight=scale * weight)
        assert weighted.loss_ == pytest.approx(repeated.loss_, rel=1e-9)
        lengths = [[choice.length for choice in one.selection_.choices] for one in (weighted, repeated)]
        np.testing.assert_allclose(*map(sorted, lengths))


def test_a_sample_of_zero_weight_and_a_feature_of_zero_relevance_are_not_picked():
    X = table(6)
    first = picked(IsometrySampleSelector().fit(X))
    allowed = np.ones(60)
    allowed[first[:3]] = 0
    for fitted in (
        IsometrySampleSelector().fit(X, sample_weight=allowed),
        IsometrySampleSelector(exclude=first[:3]).fit(X),
    ):
        assert not set(picked(fitted)) & set(first[:3])
        kept = np.flatnonzero(allowed)
        assert picked(fitted) == kept[picked(IsometrySampleSelector().fit(X[kept]))].tolist()
    assert min(picked(IsometryFeatureSelector(3, relevance=[0, 0] + [1] * 6).fit(X))) >= 2


def test_only_ratios_of_scores_matter_and_equal_scores_are_none():
    X = table(7)
    scores = np.random.default_rng(7).uniform(-0.2, 1, 60)
    plain = IsometrySampleSelector(4).fit(X)
    assert picked(IsometrySampleSelector(4).fit(X, scores=np.full(60, 5.0))) == picked(plain)
    assert picked(IsometrySampleSelector(4, relevance=0).fit(X, scores=scores)) == picked(plain)
    one, other = (IsometrySampleSelector(4).fit(X, scores=scale * scores) for scale in (1, 1e5))
    assert picked(one) == picked(other)
    assert one.loss_ == pytest.approx(other.loss_)


@pytest.mark.parametrize("seed", range(3))
def test_the_less_relevant_of_two_equal_candidates_is_not_picked(seed):
    X = table(seed)
    twice = np.vstack([X, X])
    scores = np.concatenate([np.full(60, 0.8), np.ones(60)])
    one = IsometrySampleSelector(4, method="exact").fit(twice, scores=scores)
    assert [i - 60 for i in picked(one)] == picked(IsometrySampleSelector(4, method="exact").fit(X))
    two = IsometryFeatureSelector(3, method="exact", relevance=[0.8] * 8 + [1] * 8).fit(np.hstack([X, X]))
    assert min(picked(two)) >= 8


@pytest.mark.parametrize("trade_off", [0.0, 0.3, 0.5, 0.8])
def test_near_the_ideal_the_loss_is_the_weighted_sum_of_the_trade_off(trade_off):
    """To second order: (1 − θ)(loss − k) = (1 − θ)(Σ u² + ½ Σ s²) + θ Σ (1 − r), at c = 1."""
    local = np.random.default_rng(0)
    X = np.eye(4) + 0.02 * local.normal(size=(4, 4))
    shares = 1 - 1e-3 * local.uniform(size=4)
    shares /= shares.max()
    fitted = IsometrySampleSelector(relevance=trade_off, unit=None).fit(X, scores=shares)
    u = np.log(np.linalg.norm(X, axis=1))
    cosines = (X @ X.T) / np.exp(u[:, None] + u)
    pairs = (np.sum(cosines**2) - 4) / 2
    expected = (1 - trade_off) * (np.sum(u**2) + pairs / 2) + trade_off * np.sum(1 - shares)
    assert (1 - trade_off) * (fitted.loss_ - 4) == pytest.approx(expected, rel=0.1)


def test_a_length_of_1_becomes_shorter_whatever_its_rounding():
    lengths = 1 + np.array([0.0, 2.2e-16, -1.1e-16, 4.4e-16])
    factors = length_factor(lengths, np.full(4, 0.5), 1.0)
    assert np.ptp(factors) < 1e-14
    assert factors.max() < 1


def test_relevance_rises_with_the_trade_off_until_it_decides_alone():
    X = table(8)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    scores = X @ X[0]
    mean = [
        scores[picked(IsometrySampleSelector(4, method="exact", relevance=t).fit(X, scores=scores))].mean()
        for t in (0, 0.5, 0.9, 0.99, 1)
    ]
    assert mean[0] < mean[1] < mean[2] <= mean[3] + 1e-12 <= mean[4] + 2e-12
    best = np.argsort(-scores)[:4]
    assert picked(IsometrySampleSelector(4, relevance=1).fit(X, scores=scores)) == sorted(best.tolist())


def test_relevance_alone_leaves_out_what_is_dependent():
    X = table(9)
    X[1] = 2 * X[0]
    scores = np.linspace(1, 0, 60)
    assert picked(IsometrySampleSelector(3, relevance=1).fit(X, scores=scores)) == [0, 2, 3]
    chosen = IsometrySampleSelector(3, relevance=1, include=[50], exclude=[2]).fit(X, scores=scores)
    assert picked(chosen) == [0, 3, 50]
    assert len(picked(IsometrySampleSelector(relevance=1).fit(X, scores=scores))) == 8  # the rank


@pytest.mark.parametrize(
    ("relevance", "scores", "said"),
    [
        (1.5, np.ones(60), "from 0"),
        (np.ones(60), None, r"fit\(X, scores=...\)"),
        (0.5, np.ones(59), "shape"),
        (0.5, -np.ones(60), "positive"),
        (0.5, np.full(60, np.nan), "finite"),
    ],
)
def test_a_trade_off_or_scores_that_cannot_be_used_are_refused(relevance, scores, said):
    with pytest.raises(ParameterError, match=said):
        IsometrySampleSelector(3, relevance=relevance).fit(table(1), scores=scores)


def test_a_candidate_of_hardly_any_relevance_is_a_last_resort():
    X = table(10)
    scores = np.ones(60)
    scores[::2] = -1e300
    assert all(i % 2 for i in picked(IsometrySampleSelector(4).fit(X, scores=scores)))


@pytest.mark.parametrize("score", [f_classif, lambda X, y: mutual_info_classif(X, y, random_state=0)])
def test_relevance_for_a_target_may_be_one_of_scikit_learns_scores(score):
    X, y = load_breast_cancer(return_X_y=True)
    scores = score(X, y)
    scores = scores[0] if isinstance(scores, tuple) else scores
    selector = IsometryFeatureSelector(5, relevance=score).fit(X, y)
    plain = IsometryFeatureSelector(5).fit(X)
    assert scores[picked(selector)].mean() > scores[picked(plain)].mean()
    assert picked(IsometryFeatureSelector(5, relevance=scores).fit(X)) == picked(selector)


# A user's day


@pytest.mark.parametrize("estimator", BOTH)
def test_it_survives_clone_and_pickle(estimator):
    fitted = clone(estimator).fit(FRAME)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(FRAME), fitted.transform(FRAME))
    assert str(again.selection_) == str(fitted.selection_)
    assert not hasattr(clone(fitted), "selection_")
    assert clone(fitted).get_params() == estimator.get_params()


def test_feature_names_are_kept():
    selector = IsometryFeatureSelector(3, include=["proline"], exclude=["ash", 0]).fit(FRAME)
    names = selector.get_feature_names_out().tolist()
    assert names == [FRAME.columns[i] for i in picked(selector)] == list(selector.selection_.labels)
    assert "proline" in names
    assert not {"ash", FRAME.columns[0]} & set(names)
    assert selector.feature_names_in_.tolist() == list(FRAME.columns)
    with pytest.raises(ValueError, match="feature names"):
        selector.transform(FRAME[FRAME.columns[::-1]])


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("estimator", BOTH)
def test_frames_go_in_and_come_out(library, estimator):
    frame = FRAME if library == "pandas" else pl.from_dict(FRAME.to_dict(orient="list"))
    selector = clone(estimator).set_output(transform=library)
    out = selector.fit_transform(frame)
    assert isinstance(out, pd.DataFrame if library == "pandas" else pl.DataFrame)
    assert list(out.columns) == selector.get_feature_names_out().tolist()
    assert picked(selector) == picked(clone(estimator).fit(WINE.values))
    np.testing.assert_allclose(out.to_numpy(), clone(estimator).fit_transform(WINE.values))


def test_k_and_c_are_tuned_in_a_pipeline():
    X, y = load_breast_cancer(return_X_y=True)
    steps = make_pipeline(StandardScaler(), IsometryFeatureSelector(), LogisticRegression())
    grid = {"isometryfeatureselector__k": [2, 6], "isometryfeatureselector__c": [0.5, 2.0]}
    search = GridSearchCV(steps, grid, cv=3).fit(X, y)
    assert search.best_params_["isometryfeatureselector__k"] == 6
    assert search.best_score_ > 0.9


def test_samples_are_the_last_step_of_a_pipeline_or_one_in_the_middle():
    steps = make_pipeline(StandardScaler(), IsometrySampleSelector())
    search = GridSearchCV(steps, {"isometrysampleselector__k": [1, 4], "isometrysampleselector__c": [0.5, 2.0]}, cv=3)
    search.fit(WINE.values)
    selector = search.best_estimator_[-1]
    assert len(selector.sample_indices_) == 4
    np.testing.assert_array_equal(search.predict(WINE.values), selector.labels_)
    middle = make_pipeline(StandardScaler(), IsometrySampleSelector(8), LogisticRegression(max_iter=1000))
    assert middle.fit(WINE.values, WINE.classes).score(WINE.values, WINE.classes) > 0.9


def test_every_sample_belongs_to_its_nearest_picked_sample():
    selector = IsometrySampleSelector(5, standardize=True).fit(WINE.values)
    X = WINE.standardized()
    distances = np.linalg.norm(X[:, None] - X[selector.sample_indices_], axis=2)
    np.testing.assert_array_equal(selector.labels_, distances.argmin(axis=1))
    np.testing.assert_allclose(selector.transform(WINE.values), distances, atol=1e-12)
    assert selector.score(WINE.values) == pytest.approx(-(distances.min(axis=1) ** 2).mean())
    np.testing.assert_array_equal(selector.labels_[selector.sample_indices_], range(5))
    np.testing.assert_array_equal(WINE.values[selector.sample_indices_], selector.samples_)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"k": 9}, ParameterError, "k=9 is out of range: the table has rank 8, so pick from 1 to 8"),
        ({"k": 0}, ParameterError, "k=0 is out of range"),
        ({"k": 2.5}, ParameterError, r"k=2.5 is not a whole number"),
        ({"c": -1}, ParameterError, "c=-1 is not a positive number"),
        ({"method": "magic"}, ParameterError, "method='magic' is not recognized"),
        ({"unit": "mean"}, ParameterError, "unit='mean' is not recognized"),
        ({"unit": 0.0}, ParameterError, "unit=0.0 is not a positive length"),
        ({"exclude": range(60)}, InputError, "."),
    ],
)
@pytest.mark.parametrize("kind", [IsometryFeatureSelector, IsometrySampleSelector])
def test_a_wrong_option_is_refused_when_fitting(kind, options, error, message):
    with pytest.raises(error, match=message):
        kind(**options).fit(table(0))


@pytest.mark.parametrize("kind", [IsometryFeatureSelector, IsometrySampleSelector])
def test_wrong_data_are_refused_with_errors_of_this_package_that_scikit_learn_knows(kind):
    X = table(0)
    X[3, 1] = np.nan
    with pytest.raises(InputError, match="contains NaN"):
        kind().fit(X)
    with pytest.raises(InputError, match="could not convert string"):
        kind().fit([["a", "b"], ["c", "d"]])
    with pytest.raises(DataTypeError, match="dense data is required"):
        kind().fit(csr_array(table(0)))
    with pytest.raises(RankError, match="all are zero, constant, excluded, or shorter"):
        kind(exclude=range(5)).fit(np.ones((5, 5)))
    with pytest.raises(ParameterError, match="sample_weight must be finite and not negative"):
        kind().fit(table(0), sample_weight=np.linspace(-1, 1, 60))
    with pytest.raises(NotFittedError):
        kind().transform(table(0))


def test_what_asks_for_caution_is_raised_as_a_warning():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(60, 5))
    cases = (
        (IsometryFeatureSelector(k=2), np.column_stack([table, np.ones(60)]), "constant feature"),
        (IsometryFeatureSelector(k=2, unit=100.0), table, "scale decides"),
        (
            IsometryFeatureSelector(k=5),
            table[:, :2] @ rng.normal(size=(2, 8)) + 1e-3 * rng.normal(size=(60, 8)),
            "2 dir",
        ),
        (IsometrySampleSelector(k=2), table * [1, 1, 1, 1, 1e9], "standardize=True"),
    )
    for selector, values, words in cases:
        with pytest.warns(IsoPursuitWarning, match=words) as caught:
            selector.fit(values)
        assert {str(one.message) for one in caught} <= set(selector.selection_.notes)
        assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        IsometryFeatureSelector(k=2).fit(table)


def test_rules_reach_the_search_and_survive_a_clone():
    table = load_wine()
    X = pd.DataFrame(table.values, columns=list(table.features))
    phenols = {"flavanoids": "phenols", "total_phenols": "phenols", "nonflavanoid_phenols": "phenols"}
    selector = clone(IsometryFeatureSelector(max_correlation=0.5, apart=[("ash", "hue")], groups=phenols))
    picked = set(selector.fit(X).get_feature_names_out())
    assert selector.selection_.search.most == len(picked)
    assert not {"ash", "hue"} <= picked
    assert len({*phenols} & picked) <= 1
    correlations = np.abs(np.corrcoef(selector.transform(X).T)) - np.eye(len(picked))
    assert correlations.max() <= 0.5
    groups = [str(i % 7) for i in range(178)]
    samples = IsometrySampleSelector(5, standardize=True, groups=groups, per_group=1, max_correlation=0.4).fit(X)
    assert len({groups[i] for i in samples.sample_indices_}) == 5
    with pytest.raises(ParameterError, match="relevance=1"):
        IsometrySampleSelector(5, relevance=1, groups=groups).fit(X, scores=np.ones(178))
