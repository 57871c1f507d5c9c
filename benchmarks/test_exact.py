"""The exact search: time to proof and nodes on ladders of real data, with as many picks as rows and with fewer."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

import isopursuit as ip
from isopursuit._core.linalg import unit_columns
from isopursuit.data import load_wine

LIMIT = 60.0  # seconds for one proof


def prove(benchmark, X, k=None):
    found = benchmark.pedantic(ip.exact_search, (X,), {"k": k, "time_limit": LIMIT}, rounds=1)
    benchmark.extra_info.update(
        size=len(X) if k is None else k,
        loss=found.loss,
        bound=found.lower_bound,
        status=found.status,
        nodes=found.nodes,
        seconds=found.seconds,
    )
    return found


def features(values):
    """Candidates are features, centred and of length 1: inner products are correlations."""
    values = values[:, values.std(axis=0) > 0]
    return unit_columns(values - values.mean(axis=0))


@pytest.mark.parametrize("D", [6, 8, 10, 13])
def test_wine_ladder(benchmark, D):
    assert prove(benchmark, load_wine().matrix(D)).optimal


@pytest.mark.parametrize("D", [8, 10, 12, 15, 16])
def test_breast_cancer_ladder(benchmark, D):
    values = load_breast_cancer().data
    X = ((values - values.mean(axis=0)) / values.std(axis=0)).T[:D]
    found = prove(benchmark, X)
    assert found.optimal or D > 12


@pytest.mark.parametrize(("D", "P"), [(8, 300), (10, 200), (12, 150)])
def test_unit_length_columns(benchmark, D, P):
    found = prove(benchmark, unit_columns(np.random.default_rng(0).normal(size=(D, P))))
    assert found.optimal or D > 10


@pytest.mark.parametrize("k", [3, 5, 8, 10, 12, 15, 20])
def test_breast_cancer_features(benchmark, k):
    assert prove(benchmark, features(load_breast_cancer().data), k).optimal
