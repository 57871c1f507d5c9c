"""Inner products in place of columns, centring, and Spearman's correlation, beside a selection from the columns."""

import json

import numpy as np
import pandas as pd
import pytest
from commands import run
from oracles import best_loss

import isopursuit as ip
from isopursuit.data import from_gram, load_wine
from isopursuit.errors import IsoPursuitError, LabelError, ParameterError, ShapeError
from isopursuit.estimators import IsometryFeatureSelector

WINE = load_wine()
FRAME = pd.DataFrame(WINE.values, columns=list(WINE.features))


@pytest.mark.parametrize("seed", range(20))
def test_the_factor_has_these_inner_products_and_the_same_best_subset(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rng.integers(3, 12), 9)) * 10.0 ** rng.uniform(-6, 6, size=9)
    G = X.T @ X
    factor = from_gram(G)
    scale = np.sqrt(np.diag(G))
    np.testing.assert_allclose(
        (factor.values.T @ factor.values) / np.outer(scale, scale), G / np.outer(scale, scale), atol=1e-13
    )
    picked = ip.select(gram=G, k=3, unit="each", method="exact")
    assert picked.loss == pytest.approx(best_loss(X / scale, 3), rel=1e-9)
    assert picked.loss == pytest.approx(ip.isometry_loss((X / scale)[:, picked.indices]), rel=1e-9)


def test_correlations_of_a_table_give_what_its_columns_give():
    from_columns = ip.select(FRAME, k=5, unit="each", center=True)
    shuffled = FRAME.corr().sample(frac=1, random_state=0)
    picked = ip.select(gram=shuffled, k=5)
    assert picked.labels == from_columns.labels
    assert picked.loss == pytest.approx(from_columns.loss, rel=1e-9)
    assert picked.search.optimal
    np.testing.assert_allclose(picked.gram, FRAME.corr().loc[list(picked.labels), list(picked.labels)], atol=1e-12)
    assert picked.call == "isopursuit.select(k=5, gram=gram)"
    assert ip.audit(from_gram(FRAME.corr()), from_columns.labels).optimal


def test_frames_of_polars_are_centred():
    frame = pytest.importorskip("polars").DataFrame(WINE.values, schema=list(WINE.features))
    expected = ip.select(FRAME, k=5, unit="each", center=True)
    picked = ip.select(frame, k=5, unit="each", center=True)
    assert picked.labels == expected.labels
    assert picked.take(frame).columns == list(expected.labels)


def test_rounded_correlations_are_used_with_a_note_and_others_refused():
    rng = np.random.default_rng(0)
    R = np.corrcoef(rng.normal(size=(8, 3)) @ rng.normal(size=(3, 400)) + 1e-3 * rng.normal(size=(8, 400)))
    picked = ip.select(gram=np.round(R, 2), k=2)
    assert "not positive semidefinite" in picked.notes[0]
    assert not from_gram(R).notes
    with pytest.raises(ParameterError, match="not positive semidefinite"):
        from_gram([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]])


@pytest.mark.parametrize(
    ("gram", "error", "match"),
    [
        (np.ones((2, 3)), ShapeError, "expected"),
        ([[1.0, 0.5], [0.4, 1.0]], ParameterError, r"not symmetric.*0\.5 for \(0, 1\) and 0\.4"),
        ([[1.0, 0.5], [float("nan"), 1.0]], IsoPursuitError, "NaN"),
        ([[0.0, 3.0], [3.0, 0.0]], ParameterError, "not positive semidefinite|diagonal"),
        ([[-1.0, 0.0], [0.0, 1.0]], ParameterError, "diagonal"),
        (pd.DataFrame([[1, 0], [0, 1]], columns=["a", "b"], index=["a", "c"]), LabelError, "different names"),
    ],
)
def test_what_is_no_matrix_of_inner_products_is_refused(gram, error, match):
    with pytest.raises(error, match=match):
        ip.select(gram=gram, k=1)


def test_a_zero_column_stays_zero_and_data_come_from_one_place():
    assert "1 column is zero" in ip.select(gram=np.diag([4.0, 0.0, 1.0]), k=2, unit="each").notes[0]
    for wrong in ({}, {"X": FRAME, "gram": FRAME.corr()}):
        with pytest.raises(ParameterError, match="either X"):
            ip.select(k=2, **wrong)


def test_correlations_passed_as_data_and_columns_that_are_not_centred_get_a_note():
    assert any("pass it as gram=" in note for note in ip.select(FRAME.corr(), k=3).notes)
    assert not any("gram=" in note for note in ip.select(np.eye(5), k=3).notes)
    assert any("center=True" in note for note in ip.select(FRAME, k=3, unit="each").notes)
    for centred in (ip.select(FRAME, k=3, unit="each", center=True), ip.select(FRAME - FRAME.mean(), k=3, unit="each")):
        assert not any("center=True" in note for note in centred.notes)
        assert centred.labels == ("alcalinity_of_ash", "proanthocyanins", "color_intensity")
    assert "<svg" in centred.to_html(X=FRAME)
    constant = FRAME.assign(same=7.0)
    assert "same" not in ip.select(constant, k=3, unit="each", center=True, exclude=["ash"]).labels
    with pytest.raises(ParameterError, match="in memory"):
        ip.select(np.stack([FRAME, FRAME]), k=3, center=True)


def test_spearman_compares_ranks():
    by_ranks = ip.select(gram=FRAME.corr("spearman"), k=4)
    selector = IsometryFeatureSelector(k=4, correlation="spearman").fit(FRAME)
    assert tuple(selector.get_feature_names_out()) == by_ranks.labels
    assert selector.loss_ == pytest.approx(by_ranks.loss, rel=1e-9)
    monotone = np.exp(3 * FRAME / FRAME.max())
    again = IsometryFeatureSelector(k=4, correlation="spearman").fit(monotone)
    assert again.loss_ == pytest.approx(selector.loss_, rel=1e-9)
    assert selector.transform(FRAME).shape == (178, 4)
    with pytest.raises(ParameterError, match="Did you mean 'spearman'"):
        IsometryFeatureSelector(k=4, correlation="spearmann").fit(FRAME)


def test_the_commands_take_correlations_and_ranks(tmp_path):
    FRAME.to_csv(tmp_path / "wine.csv", index=False)
    FRAME.corr().to_csv(tmp_path / "corr.csv")
    columns = json.loads(run("select", tmp_path / "wine.csv", "--features", "-k", 4, "--json").stdout)
    given = json.loads(run("select", tmp_path / "corr.csv", "--correlation", "-k", 4, "--json").stdout)
    assert given["labels"] == columns["labels"]
    assert given["indices"] == columns["indices"]
    assert given["loss"] == pytest.approx(columns["loss"], rel=1e-9)
    ranks = json.loads(run("select", tmp_path / "wine.csv", "--features", "--spearman", "-k", 4, "--json").stdout)
    assert ranks["labels"] == list(ip.select(gram=FRAME.corr("spearman"), k=4).labels)
    unnamed = run("select", tmp_path / "corr.csv", "-k", 4)
    assert "--correlation" in unnamed.stderr
    assert "Pass --features" in run("select", tmp_path / "wine.csv", "--spearman").stderr
    assert "as many rows as columns" in run("select", tmp_path / "wine.csv", "--correlation", "-k", 4).stderr
