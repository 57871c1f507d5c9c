"""Normalized weights of basis pursuit are A-optimal designs of experiments."""

import doctest
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq
from snippets import FENCED

import isopursuit as ip

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "experiment.md"
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


@pytest.fixture(scope="module")
def page():
    """The names that the page on experiments has defined where it rounds shares to whole runs."""
    names = {}
    for kind, block in FENCED.findall(PAGE.read_text("utf-8").partition("## Runs that you have already made")[0]):
        assert kind == "python"
        exec(doctest.script_from_examples(block), names)
    return names


def variance(F, settings):
    """tr (Σ f fᵀ)⁻¹ by singular values; infinite if the runs do not determine the coefficients."""
    singular = np.linalg.svd(F[:, settings], compute_uv=False)
    return np.sum(singular**-2.0) if singular[-1] > 1e-9 else np.inf


def exchange(F, settings):
    """Replace each run in turn by the best one, until nothing changes: the variance of the result."""
    least, before = variance(F, settings), np.inf
    while least < before * (1 - 1e-9):
        before = least
        for i in range(len(settings)):
            others = np.delete(settings, i)
            found = [variance(F, [*others, j]) for j in range(F.shape[1])]
            settings, least = np.append(others, np.argmin(found)), min(found)
    return least


@pytest.mark.parametrize("n", [7, 8, 9, 10, 12, 20])
def test_the_pages_whole_runs_are_near_the_bound_also_where_there_are_fewer_than_shares(page, n):
    Q, region = page["Q"], page["region"]
    runs, claimed = page["rounded"](Q, page["shares"], n)
    assert runs.sum() == n
    assert runs.min() == 0
    found = variance(Q, np.repeat(np.arange(len(runs)), runs))
    assert claimed == pytest.approx(found)
    assert region.certificate.dual**2 / n <= found < 1.08 * region.certificate.dual**2 / n


def test_eight_runs_are_as_good_as_an_exchange_from_random_runs(page):
    Q, rng = page["Q"], np.random.default_rng(0)
    starts = [rng.choice(Q.shape[1], 8, replace=False) for _ in range(3)]
    assert page["rounded"](Q, page["shares"], 8)[1] <= min(exchange(Q, one) for one in starts) * (1 + 1e-9)


def test_runs_are_found_although_those_of_the_largest_shares_are_dependent(page):
    line = np.stack([np.ones(5), [0.0, 0.0, 0.0, 1.0, 1.0]])
    runs, found = page["rounded"](line, np.array([0.3, 0.25, 0.2, 0.15, 0.1]), 2)
    assert runs[:3].sum() == runs[3:].sum() == 1
    assert found == pytest.approx(3)  # M = [[2, 1], [1, 1]]
