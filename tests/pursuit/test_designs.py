"""Normalized weights of basis pursuit are A-optimal designs of experiments."""

import numpy as np
import pytest
from scipy.optimize import brentq

import isopursuit as ip

X = np.linspace(-1, 1, 201)
QUADRATIC = np.vander(X, 3, increasing=True).T


def shares(pursuit):
    return pursuit.weights / pursuit.weights.sum()


def test_a_quadratic_on_an_interval_has_its_runs_at_the_ends_and_half_of_them_in_the_middle():
    pursuit = ip.basis_pursuit(QUADRATIC)
    np.testing.assert_allclose(X[pursuit.support], [-1, 0, 1], atol=1e-12)
    np.testing.assert_allclose(shares(pursuit)[pursuit.support], [0.25, 0.5, 0.25], atol=1e-9)
    assert pursuit.certificate.primal**2 == pytest.approx(8, rel=1e-9)  # tr M⁻¹ = 1 / (a (1 − 2a)) at a = 1/4


@pytest.mark.parametrize("degree", [2, 3, 5])
def test_the_equivalence_theorem_holds_and_the_squared_bounds_enclose_the_least_variance(degree):
    F = np.vander(X, degree + 1, increasing=True).T
    pursuit = ip.basis_pursuit(F)
    inverse = np.linalg.inv((F * shares(pursuit)) @ F.T)
    assert ((inverse @ F) ** 2).sum(axis=0).max() <= np.trace(inverse) * (1 + 1e-6)
    assert np.trace(inverse) == pytest.approx(pursuit.certificate.dual**2, rel=1e-8)


def test_a_lasso_places_further_runs_beside_those_already_made():
    made, n = np.vander([-1.0, -0.8, -0.6, -0.4], 3, increasing=True).T, 8
    T = np.linalg.inv(np.linalg.cholesky(made @ made.T))

    def lasso(log_penalty):
        return ip.basis_pursuit(T @ QUADRATIC, T, penalty=np.exp(log_penalty))

    found = lasso(brentq(lambda log: np.log(lasso(log).weights.sum()) - log - np.log(n), -12, 0))
    inverse = np.linalg.inv(made @ made.T + n * (QUADRATIC * shares(found)) @ QUADRATIC.T)
    slopes = ((inverse @ QUADRATIC) ** 2).sum(axis=0)  # of −tr (M₀ + n M)⁻¹ in each share: equal where there are runs
    np.testing.assert_allclose(slopes[found.support], slopes.max(), rtol=1e-6)
