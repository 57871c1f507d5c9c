"""Former names of keywords and attributes still work, and warn."""

import numpy as np
import pytest

import isopursuit as ip
from isopursuit.estimators import IsometrySampleSelector

X = np.random.default_rng(0).normal(size=(3, 20))


@pytest.mark.parametrize("function", [ip.basis_pursuit, ip.isometry_pursuit])
def test_ridge_is_called_penalty(function):
    expected = function(X, penalty=0.1)
    with pytest.warns(FutureWarning, match="ridge is now called penalty") as record:
        found = function(X, ridge=0.1)
    assert record[0].filename == __file__
    np.testing.assert_array_equal(found.weights, expected.weights)
    assert found.penalty == pytest.approx(0.1)


def test_the_former_attribute_of_a_pursuit():
    found = ip.basis_pursuit(X, penalty=0.1)
    with pytest.warns(FutureWarning, match="ridge is now called penalty"):
        assert found.ridge == found.penalty


def test_ridges_are_called_penalties():
    with pytest.warns(FutureWarning, match="ridges is now called penalties"):
        path = ip.lasso_path(X, ridges=[1.0, 0.5])
    assert [found.penalty for found in path] == [1.0, 0.5]


def test_threads_are_called_workers():
    with pytest.warns(FutureWarning, match="threads is now called workers"):
        columns = ip.as_source(X, threads=1)
    assert columns.shape == X.shape


def test_the_relevance_of_samples_is_called_scores():
    rows = np.random.default_rng(1).normal(size=(20, 3))
    scores = np.linspace(0.1, 1, 20)
    with pytest.warns(FutureWarning, match="relevance is now called scores"):
        found = IsometrySampleSelector(2).fit(rows, relevance=scores)
    expected = IsometrySampleSelector(2).fit(rows, scores=scores)
    np.testing.assert_array_equal(found.sample_indices_, expected.sample_indices_)


def test_both_names_at_once_are_refused():
    with pytest.raises(TypeError, match="both penalty and its former name ridge"):
        ip.basis_pursuit(X, ridge=0.1, penalty=0.1)
