"""The exact search: time to proof and nodes per second on ladders of real data."""

import pytest
from sklearn.datasets import load_breast_cancer

import isopursuit as ip
from isopursuit.datasets import load_wine


def prove(benchmark, X, time_limit):
    found = benchmark.pedantic(ip.exact_search, (X,), {"time_limit": time_limit}, rounds=1)
    benchmark.extra_info.update(
        loss=found.loss, bound=found.lower_bound, status=found.status, nodes=found.nodes, seconds=found.seconds
    )
    return found


@pytest.mark.parametrize("D", [6, 8, 10, 13])
def test_wine_ladder(benchmark, D):
    benchmark.extra_info["size"] = D
    assert prove(benchmark, load_wine().matrix(D), 60).optimal


@pytest.mark.parametrize("D", [8, 10, 12])
def test_breast_cancer_ladder(benchmark, D):
    values = load_breast_cancer().data
    benchmark.extra_info["size"] = D
    X = ((values - values.mean(axis=0)) / values.std(axis=0)).T[:D]
    assert prove(benchmark, X, 60).optimal
