"""Where the optimum is not unique: the tied set, and the minimum-norm weights."""

import pickle

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import random_rotation

import isopursuit as ip
from isopursuit.data import load_iris, load_wine
from isopursuit.errors import RangeError

seeds = st.integers(0, 2**32 - 1)


def unit_columns(D, P, seed):
    X = np.random.default_rng(seed).normal(size=(D, P))
    X[0] = 3 * np.abs(X[0])
    return X / np.linalg.norm(X, axis=0)


@pytest.mark.parametrize("X", [load_iris().replicate(0), load_wine().replicate(0, D=6), load_wine().replicate(0)])
def test_copies_and_negatives_share_their_weight_equally(X):
    P = X.shape[1]
    alone = ip.isometry_pursuit(X)
    found = ip.isometry_pursuit(np.hstack([X, -X, X])).minimum_norm()
    shares = found.weights.reshape(3, P)
    np.testing.assert_allclose(shares, np.broadcast_to(shares[0], shares.shape), atol=1e-12)
    np.testing.assert_allclose(shares.sum(axis=0), alone.weights, atol=1e-9)
    assert alone.unique
    assert not found.unique
    assert alone.minimum_norm() is alone
    assert found.certificate.gap < 1e-10


def test_the_minimum_norm_of_a_source_is_that_of_its_array():
    X = unit_columns(4, 300, 3)
    X = np.hstack([X, X])
    found, streamed = (ip.basis_pursuit(one).minimum_norm() for one in (X, ip.as_source(X)))
    np.testing.assert_allclose(streamed.weights, found.weights, atol=1e-8)
    for one in (found, streamed):
        assert one.status == "optimal"
        assert one.certificate.gap <= 1e-10
        assert np.abs(X @ one.coefficients - np.eye(4)).max() < 1e-9
        np.testing.assert_allclose(np.linalg.norm(one.coefficients, axis=1), one.weights, atol=1e-12)


@pytest.mark.parametrize("k", [2, 3])
def test_the_minimum_norm_for_fewer_columns_than_rows_shares_weight(k):
    X = np.random.default_rng(0).normal(size=(30, 12)) / np.sqrt(30)
    found = ip.isometry_pursuit(np.hstack([X, -X]), k=k)
    least = found.minimum_norm()
    assert not found.unique
    np.testing.assert_allclose(least.weights[:12], least.weights[12:], atol=1e-7)
    assert np.linalg.norm(least.weights) <= np.linalg.norm(found.weights) * (1 + 1e-9)
    assert least.certificate.gap <= 1e-9


def test_a_pursuit_that_was_stopped_knows_no_other_solution():
    found = ip.basis_pursuit(unit_columns(8, 200, 0), tol=1e-3)
    assert not found.unique
    with pytest.raises(RangeError, match="tol=1e-10"):
        found.minimum_norm()


def test_a_pursuit_can_be_pickled_and_asked_afterwards():
    X = unit_columns(3, 50, 1)
    found = ip.basis_pursuit(X)
    again = pickle.loads(pickle.dumps(found))
    assert again.unique == found.unique
    np.testing.assert_array_equal(again.minimum_norm().weights, found.minimum_norm().weights)


def test_the_minimum_norm_does_not_depend_on_the_order_of_columns():
    X = unit_columns(4, 80, 2)
    order = np.random.default_rng(0).permutation(80)
    plain, moved = ip.basis_pursuit(X), ip.basis_pursuit(X[:, order])
    np.testing.assert_array_equal(moved.weights, plain.weights[order])
    np.testing.assert_array_equal(moved.minimum_norm().weights, plain.minimum_norm().weights[order])


@pytest.mark.parametrize(("D", "P"), [(2, 60), (3, 200)])
def test_minimum_norm_agrees_with_a_quadratic_program(D, P):
    X = unit_columns(D, P, 0)
    found = ip.basis_pursuit(X).minimum_norm()
    M = (X * found.weights) @ X.T
    w = cp.Variable(P, nonneg=True)
    cp.Problem(cp.Minimize(cp.sum_squares(w)), [X @ cp.diag(w) @ X.T == M]).solve(solver="CLARABEL")
    assert np.linalg.norm(found.weights) == pytest.approx(np.linalg.norm(w.value), rel=1e-6)
    np.testing.assert_allclose(found.weights, w.value, atol=1e-4)


@settings(deadline=None, max_examples=40)
@given(seeds, st.integers(2, 6), st.floats(0.3, 3.0))
def test_a_planted_orthonormal_basis_is_tied_and_found(seed, D, c):
    rng = np.random.default_rng(seed)
    distractors = rng.normal(size=(D, 40)) / np.sqrt(D) * np.exp(0.4 * rng.normal(size=40))
    basis = random_rotation(D, rng)
    order = rng.permutation(40 + D)
    X = np.hstack([distractors, basis])[:, order]
    planted = np.flatnonzero(order >= 40)
    assert set(planted) <= set(ip.isometry_pursuit(X, c).tied)
    picked = ip.select(X, c=c)
    assert picked.indices.tolist() == planted.tolist()
    assert picked.loss == pytest.approx(D, abs=1e-9)


def test_a_basis_among_unit_columns_is_found_though_every_column_is_tied():
    rng = np.random.default_rng(5)
    X = np.hstack([unit_columns(4, 60, 1), random_rotation(4, rng)])
    found = ip.isometry_pursuit(X)
    assert len(found.tied) == 64
    assert not found.unique
    assert ip.select(X).loss == pytest.approx(4.0, abs=1e-9)


def test_the_orthonormal_optimum_is_D():
    X = np.hstack([np.eye(3), 0.5 * np.ones((3, 1))])
    found = ip.isometry_pursuit(X)
    assert found.objective == pytest.approx(3.0, abs=1e-12)
    assert found.unique
    assert found.support.tolist() == [0, 1, 2]


@settings(deadline=None, max_examples=40)
@given(seeds, st.integers(2, 6), st.floats(0.3, 3.0))
def test_the_optimum_is_at_least_D_for_any_number_of_columns(seed, D, c):
    """Normalized columns have length ≤ 1, so ν = I is dual feasible, with the value D."""
    X = np.random.default_rng(seed).normal(size=(D, 5 * D)) / np.sqrt(D)
    assert np.linalg.norm(ip.symmetric_normalize(X, c), axis=0).max() <= 1 + 1e-12
    assert ip.isometry_pursuit(X, c).objective >= D * (1 - 1e-12)


@settings(deadline=None, max_examples=40)
@given(seeds, st.integers(2, 6), st.floats(0.3, 3.0))
def test_with_an_orthonormal_basis_the_tied_columns_are_exactly_those_of_length_1(seed, D, c):
    rng = np.random.default_rng(seed)
    others = unit_columns(D, 20, seed) * rng.choice([0.5, 1.0, 1.6], 20)
    X = np.hstack([others, random_rotation(D, rng)])
    found, N = ip.isometry_pursuit(X, c), ip.symmetric_normalize(X, c)
    assert found.objective == pytest.approx(D, rel=1e-9)
    np.testing.assert_allclose((N * found.weights) @ N.T, np.eye(D), atol=1e-6)
    assert found.tied.tolist() == np.flatnonzero(np.isclose(np.linalg.norm(X, axis=0), 1)).tolist()


def test_a_tied_column_need_not_be_in_any_solution():
    found = ip.isometry_pursuit([[1.0, 0.0, np.sqrt(0.5)], [0.0, 1.0, np.sqrt(0.5)]])
    assert (found.unique, found.support.tolist(), found.tied.tolist()) == (True, [0, 1], [0, 1, 2])
