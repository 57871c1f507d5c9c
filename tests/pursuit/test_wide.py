"""A wide array and `as_source` of it take one path: the same start, the same loop, the same answer."""

import numpy as np
import pytest

import isopursuit as ip


def columns(D, P, seed, spread=0.3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(D, P)) / np.sqrt(D) * np.exp(spread * rng.normal(size=P))


@pytest.mark.parametrize(("D", "P"), [(17, 6000), (24, 10_000)])
@pytest.mark.parametrize("penalty", [0.0, 0.05])
def test_an_array_answers_as_its_source_does(D, P, penalty):
    X = columns(D, P, D)
    found, expected = ip.isometry_pursuit(X, penalty=penalty), ip.isometry_pursuit(ip.as_source(X), penalty=penalty)
    assert found.status == expected.status == "optimal"
    assert found.objective == pytest.approx(expected.objective, rel=1e-9)
    assert found.unique == expected.unique
    assert set(found.support) <= set(expected.tied)
    assert set(expected.support) <= set(found.tied)


def test_the_order_of_many_columns_does_not_matter():
    X = columns(16, 8000, 1)
    order = np.random.default_rng(2).permutation(8000)
    found, other = ip.isometry_pursuit(X), ip.isometry_pursuit(X[:, order])
    np.testing.assert_array_equal(found.weights[order], other.weights)


def test_a_direction_that_only_two_short_columns_have():
    """Neither the longest columns nor a sample spans all rows."""
    X = columns(16, 8000, 3)
    X[15] = 0.0
    X[15, [2501, 5003]] = 0.2
    found = ip.basis_pursuit(X)
    assert found.status == "optimal"
    assert {2501, 5003} & set(found.support)
    assert found.certificate.gap <= 1e-10


def test_columns_without_weight_may_leave_open_which_solution_it_is():
    """More tied columns than x xᵀ has entries: the uniqueness test needs no large linear program."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(16, 3000))
    X /= np.linalg.norm(X, axis=0)
    found = ip.basis_pursuit(X)
    assert found.status == "optimal"
    assert not found.unique
    assert len(found.tied) > 16 * 17 // 2
