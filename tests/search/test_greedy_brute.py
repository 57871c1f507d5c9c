import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import isopursuit as ip
from isopursuit.datasets import load_wine
from isopursuit.errors import BudgetError, ParameterError

seeds = st.integers(0, 2**32 - 1)


def problem(seed, D, P, spread=0.5):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(D, P)) / np.sqrt(D) * np.exp(spread * rng.uniform(-1, 1, P))


@settings(deadline=None, max_examples=20)
@given(seeds, st.sampled_from([0.5, 1.0, 2.0]))
def test_brute_is_the_least_of_all_subsets(seed, c):
    X = problem(seed, 3, 9)
    losses = {S: ip.log_isometry_loss(X[:, S], c) for S in itertools.combinations(range(9), 3)}
    found = ip.brute_search(X, c)
    assert tuple(found.indices) == min(losses, key=losses.__getitem__)
    assert found.optimal
    assert found.evaluations == 84
    assert found.loss == pytest.approx(np.exp(min(losses.values())), rel=1e-12)


@settings(deadline=None, max_examples=20)
@given(seeds)
def test_greedy_adds_the_best_column_each_time(seed):
    X = problem(seed, 4, 12)
    subset = []
    for _ in range(4):
        rest = [p for p in range(12) if p not in subset]
        subset.append(min(rest, key=lambda p: ip.log_isometry_loss(X[:, [*subset, p]])))
    assert ip.greedy_search(X).indices.tolist() == sorted(subset)


def test_ties_go_to_the_lowest_index():
    X = np.hstack([np.eye(3), np.eye(3), -np.eye(3)])
    assert ip.greedy_search(X).indices.tolist() == [0, 1, 2]
    assert ip.brute_search(X).indices.tolist() == [0, 1, 2]


def test_more_starts_never_hurt():
    for seed in range(10):
        X = problem(seed, 5, 30)
        losses = [ip.greedy_search(X, starts=n).loss for n in (1, 5, 30)]
        assert losses[0] >= losses[1] >= losses[2]


@pytest.mark.parametrize("objective", ["isometry", "multitask", "deformation", "nuclear", "volume"])
def test_brute_is_no_worse_than_greedy_for_every_objective(objective):
    for seed in range(5):
        X = problem(seed, 3, 12)
        brute, greedy = ip.brute_search(X, objective=objective), ip.greedy_search(X, objective=objective)
        assert brute.loss <= greedy.loss + 1e-12
        assert brute.objective == greedy.objective == objective


def test_a_users_own_objective():
    def condition(S):
        return np.linalg.cond(S)

    X = problem(0, 3, 10)
    mine, named = ip.brute_search(X, objective=condition), ip.brute_search(X, objective="deformation")
    assert mine.indices.tolist() == named.indices.tolist()
    assert mine.objective == "condition"
    with pytest.raises(ParameterError, match="NaN"):
        ip.greedy_search(X, objective=lambda S: np.nan)


def test_brute_refuses_politely_above_its_budget():
    with pytest.raises(BudgetError, match=r"264,566,400 subsets.*exact_search"):
        ip.brute_search(load_wine().matrix(5)[:, :128], budget=10**6)


def test_large_exponents_stay_finite_and_ordered():
    X = load_wine().matrix()
    greedy, exchange = ip.greedy_search(X, c=10), ip.exchange_search(X, c=10)
    assert np.isfinite(greedy.log_loss)
    assert np.isfinite(exchange.log_loss)
    assert exchange.log_loss <= greedy.log_loss
    small = load_wine().matrix(13)[:, :16]
    brute = ip.brute_search(small, c=10)
    assert np.isfinite(brute.log_loss)
    assert ip.exchange_search(small, c=10).log_loss == pytest.approx(brute.log_loss, rel=1e-9)


def test_brute_reports_an_objective_that_reaches_zero():
    X = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]])
    steps = []
    found = ip.brute_search(X, objective="volume", callback=steps.append)
    assert found.indices.tolist() == [0, 1]
    assert found.loss == 0
    assert len(steps) == 1
