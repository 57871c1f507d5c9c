"""The exchange search against proved optima, on data it was and was not made for."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes

import isopursuit as ip
from isopursuit.data import load_wine


def standardized(values):
    return ((values - values.mean(axis=0)) / values.std(axis=0)).T


@pytest.mark.parametrize(("D", "proved"), [(8, 263.755118), (10, 380.836045)])
def test_the_proved_best_of_breast_cancer_is_found(D, proved):
    assert ip.exchange_search(standardized(load_breast_cancer().data)[:D]).loss == pytest.approx(proved, rel=1e-8)


def test_the_proved_best_of_unit_columns_is_found():
    for data, k in ((load_wine().matrix(), 4), (standardized(load_diabetes().data), 5)):
        Z = np.linalg.svd(data)[0][:, :k].T @ data
        Z /= np.linalg.norm(Z, axis=0)
        best = ip.exact_search(Z)
        assert best.status == "optimal"
        assert ip.exchange_search(Z).loss == pytest.approx(best.loss, rel=1e-8)


def test_a_time_limit_is_kept_and_still_no_worse_than_pivoted_qr():
    X = np.random.default_rng(0).standard_normal((40, 3000)) / 6
    found = ip.exchange_search(X, time_limit=0.3)
    residual, picked = X.copy(), []
    for _ in range(40):
        picked.append(int(np.square(residual).sum(axis=0).argmax()))
        q = residual[:, picked[-1]] / np.linalg.norm(residual[:, picked[-1]])
        residual -= np.outer(q, q @ residual)
    assert found.loss <= ip.isometry_loss(X[:, picked]) * (1 + 1e-9)
    assert found.seconds < 10


def test_no_kicks_means_a_descent_and_nothing_more():
    X = load_wine().matrix(D=6)
    assert ip.exchange_search(X, starts=1, kicks=0).evaluations == 1


def test_a_proof_that_comes_easily_is_given():
    X = load_wine().matrix(D=6)
    found = ip.exchange_search(X)
    assert (found.status, found.lower_bound) == ("optimal", found.loss)
    assert found.loss == pytest.approx(ip.exact_search(X).loss, rel=1e-9)


def test_nothing_is_proved_where_bounds_are_not_verified():
    assert ip.exchange_search(load_wine().matrix(D=4), c=50.0).status == "heuristic"


def test_a_callback_ends_a_local_search_with_the_best_subset_so_far():
    losses = []

    def stop_after_five(now):
        losses.append(now.incumbent)
        return len(losses) == 5

    found = ip.exchange_search(standardized(load_breast_cancer().data)[:20], kicks=10**9, callback=stop_after_five)
    assert found.status == "interrupted"
    assert losses[-1] < losses[0]
    assert found.loss == pytest.approx(losses[-1], rel=1e-9)
