"""Where the optimum is not unique: the tied set, the minimum-norm weights, and a vertex."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import random_rotation

import isopursuit as ip
from isopursuit.data import load_iris, load_wine

seeds = st.integers(0, 2**32 - 1)


def unit_columns(D, P, seed):
    X = np.random.default_rng(seed).normal(size=(D, P))
    X[0] = 3 * np.abs(X[0])
    return X / np.linalg.norm(X, axis=0)


@pytest.mark.parametrize("X", [load_iris().replicate(0), load_wine().replicate(0, D=6), load_wine().replicate(0)])
def test_copies_and_negatives_share_their_weight_equally(X):
    P = X.shape[1]
    alone = ip.isometry_pursuit(X)
    found = ip.isometry_pursuit(np.hstack([X, -X, X]))
    shares = found.weights.reshape(3, P)
    np.testing.assert_allclose(shares, np.broadcast_to(shares[0], shares.shape), atol=1e-12)
    np.testing.assert_allclose(shares.sum(axis=0), alone.weights, atol=1e-9)
    assert alone.unique
    assert not found.unique
    assert found.certificate.gap < 1e-10
    assert found.solution == "minimum-norm"


@pytest.mark.parametrize("seed", range(5))
def test_a_vertex_is_as_good_and_as_small_as_caratheodory_promises(seed):
    X = unit_columns(4, 200, seed)
    vertex, least = ip.basis_pursuit(X, solution="vertex"), ip.basis_pursuit(X)
    assert vertex.objective == pytest.approx(least.objective, rel=1e-10)
    assert vertex.certificate.gap < 1e-10
    assert len(vertex.support) <= 10
    assert vertex.tied.tolist() == least.tied.tolist() == list(range(200))


@pytest.mark.parametrize(("D", "P"), [(2, 60), (3, 200)])
def test_minimum_norm_agrees_with_a_quadratic_program(D, P):
    X = unit_columns(D, P, 0)
    found = ip.basis_pursuit(X)
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
