"""What the errata in docs/reproduction.md say about the paper's formulas and conjectures."""

from itertools import combinations

import cvxpy as cp
import numpy as np
import pytest
from oracles import clarabel, g, random_rotation
from scipy.optimize import brentq, minimize_scalar

import isopursuit as ip
from paper.methods import conic


def in_the_plane(degrees, lengths):
    angles = np.radians(degrees)
    return np.asarray(lengths) * np.array([np.cos(angles), np.sin(angles)])


def least_curvature(c):
    """The minimum over t of t² g''(t), from the formula in the errata."""
    u = np.exp(np.linspace(-1.0, 3.0, 100_001))
    v = 1 / u
    return float((c / (2 * np.e) * (u * np.exp(u) * (c * (1 + u) - 1) + v * np.exp(v) * (c * (1 + v) + 1))).min())


def test_scaling_the_vector_itself_would_favour_length_1_61():
    found = minimize_scalar(lambda t: -t / g(t), bounds=(1, 3), method="bounded")
    assert found.x == pytest.approx(1.61, abs=5e-3)
    assert -found.fun > 1.27 > 1 / g(1.0)


@pytest.mark.parametrize(("c", "convex"), [(0.1, False), (0.3101, False), (0.3102, True), (1.0, True), (3.0, True)])
def test_g_is_convex_from_0_31012_on(c, convex):
    assert (least_curvature(c) >= 0) == convex
    t = np.exp(np.linspace(-1.0, 3.0, 4001) / c)
    slopes = np.diff(g(t, c)) / np.diff(t)
    assert (np.diff(slopes) >= -1e-12 * np.abs(slopes[1:])).all() == convex


def test_the_thresholds_of_convexity_are_0_31012_and_twice_that_for_eigenvalues():
    threshold = brentq(least_curvature, 0.2, 0.5)
    assert threshold == pytest.approx(0.31012, abs=5e-6)
    assert 2 * threshold == pytest.approx(0.62025, abs=5e-6)
    np.testing.assert_allclose(g(np.sqrt(2.0), 0.7), g(2.0, 0.35))  # h(λ) = g_c(√λ) = g_{c/2}(λ)


def test_the_exponential_of_a_logarithm_is_a_minimum():
    t = np.array([0.5, 2.0])
    np.testing.assert_allclose(np.exp(-np.abs(np.log(t))), np.minimum(t, 1 / t))
    assert np.exp(-np.abs(np.log(2.0))) > 3 * np.exp(-2.0)


def test_a_normalization_of_height_m_has_the_optimum_D_over_m():
    found = ip.basis_pursuit(ip.symmetric_normalize(np.eye(3), normalization=lambda t: 2 * np.minimum(t, 1 / t)))
    assert found.objective == pytest.approx(3 / 2)


def test_rotating_the_rows_multiplies_the_coefficients_by_the_transpose():
    rng = np.random.default_rng(0)
    X, U = rng.normal(size=(4, 30)) / 2, random_rotation(4, rng)
    one, other = ip.isometry_pursuit(X).coefficients, ip.isometry_pursuit(U @ X).coefficients
    np.testing.assert_allclose(other, one @ U.T, atol=1e-9)
    assert np.abs(other - one @ U).max() > 0.1


def test_columns_in_general_position_can_have_many_solutions():
    X = in_the_plane([0, 30, 90, 120], 1.0)
    for i, j in combinations(np.hstack([X, -X]).T, 2):  # general position: no line through two contains a third
        on_it = [abs(np.linalg.det([j - i, p - i])) < 1e-9 for p in np.hstack([X, -X]).T]
        assert sum(on_it) == 2
    assert not ip.isometry_pursuit(X).unique


def test_scs_does_not_converge_to_the_solution_of_least_norm():
    rng = np.random.default_rng(0)
    unit = rng.normal(size=(4, 20))
    X = np.hstack([unit / np.linalg.norm(unit, axis=0), np.linalg.qr(rng.normal(size=(4, 4)))[0]])
    B, least = conic(X, solver="SCS", eps=1e-12).B, ip.basis_pursuit(X).coefficients
    assert ip.multitask_norm(B) == pytest.approx(ip.multitask_norm(least), rel=1e-6)
    assert (B**2).sum() > 1.2 * (least**2).sum()


@pytest.mark.parametrize("normalized", [False, True])
def test_the_best_basis_by_multitask_norm_can_need_a_column_that_is_not_tied(normalized):
    """The lengths 0.9 and 0.8 are those before normalization, or those after it."""
    given = in_the_plane([0, 60, 120, 90], [0.9, 0.9, 0.9, 0.8])
    X = ip.symmetric_normalize(given) if normalized else given
    a, _, _, b = np.linalg.norm(X, axis=0)

    # by hand: Σ uuᵀ = 3/2 I, so B = 2uᵀ/(3a) and ν = I/a have the value 2/a, and ν leaves slack at the fourth column
    B = np.vstack([2 * X[:, :3].T / (3 * a**2), np.zeros(2)])
    np.testing.assert_allclose(X @ B, np.eye(2), atol=1e-12)
    assert ip.multitask_norm(B) == pytest.approx(2 / a)
    np.testing.assert_allclose(np.linalg.norm(X / a, axis=0), [1, 1, 1, b / a])

    # by the library
    found = ip.isometry_pursuit(given) if normalized else ip.basis_pursuit(given)
    assert found.objective == pytest.approx(2 / a)
    assert found.tied.tolist() == [0, 1, 2]
    assert found.unique

    # by Clarabel: the primal optimum, and a dual optimum under which the fourth column has slack
    nu = cp.Variable((2, 2))
    dual = cp.Problem(cp.Maximize(cp.trace(nu)), [cp.norm(nu.T @ X, 2, axis=0) <= 1])
    assert dual.solve(solver="CLARABEL") == pytest.approx(clarabel([X]), rel=1e-6) == pytest.approx(2 / a, rel=1e-6)
    assert np.linalg.norm(nu.value.T @ X[:, 3]) < 0.99

    # by brute force
    norms = {pair: ip.multitask_norm(np.linalg.inv(X[:, pair])) for pair in combinations(range(4), 2)}
    assert min(norms, key=norms.get) == (0, 3)
    assert norms[0, 3] == pytest.approx(1 / a + 1 / b)
    assert norms[0, 3] < min(norms[pair] for pair in combinations(range(3), 2)) == pytest.approx(4 / (np.sqrt(3) * a))
