"""The exchange search against proved optima, on data it was and was not made for."""

import sys

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes

import isopursuit as ip
from isopursuit.clock import Clock
from isopursuit.datasets import load_wine
from isopursuit.search.incumbent import Incumbent, StopReason
from isopursuit.search.inputs import as_array_pool
from isopursuit.search.stages.improve import ParallelSearch


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


@pytest.fixture
def rows():
    data = load_breast_cancer().data[:, :20]
    return ((data - data.mean(axis=0)) / data.std(axis=0)).T


def test_two_local_searches_at_once_give_the_same_answer_however_their_threads_are_switched(rows):
    before = sys.getswitchinterval()
    found = []
    try:
        for seconds in (1e-6, 1.0):
            sys.setswitchinterval(seconds)
            found.append(ip.exchange_search(rows, unit="median", kicks=40, rng=3))
    finally:
        sys.setswitchinterval(before)
    one, other = found
    assert one.indices.tolist() == other.indices.tolist()
    assert one.evaluations == other.evaluations


def test_a_callback_ends_two_local_searches_at_once(rows):
    pool = as_array_pool(rows)
    losses = []

    def stop_at_the_first_better_subset(now):
        losses.append(now.incumbent)
        return now.incumbent < losses[0]

    incumbent = Incumbent(pool.ideal, report_to=stop_at_the_first_better_subset)
    incumbent.offer(np.arange(20), pool.log_loss(np.arange(20)), "start")
    assert not incumbent.report()
    reason = ParallelSearch(0, 10**9, np.random.default_rng(0)).run(pool, incumbent, Clock.of(None))
    assert reason is StopReason.INTERRUPTED
    assert losses[-1] < losses[0]
    assert set(losses[:-1]) == {losses[0]}  # nobody is called after the callback has returned True
    assert incumbent.loss <= losses[-1]  # a descent that runs at that moment may still find a better subset
