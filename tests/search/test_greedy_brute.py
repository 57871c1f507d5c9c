import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import isopursuit as ip
from isopursuit.data import load_wine
from isopursuit.errors import BudgetError
from isopursuit.search import greedy

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


def plain_greedy(X, k, c):
    """Greedy search by a loop over all columns."""
    subset = []
    for _ in range(k):
        losses = [np.inf if p in subset else ip.log_isometry_loss(X[:, [*subset, p]], c) for p in range(X.shape[1])]
        least = min(losses)
        subset.append(next(p for p, loss in enumerate(losses) if loss <= least + 1e-12 * max(abs(least), 1.0)))
    return sorted(subset)


@settings(deadline=None, max_examples=30)
@given(seeds, st.sampled_from([0.3, 0.7, 1.0, 2.0, 10.0]), st.sampled_from([(4, 4), (7, 3), (12, 5)]), st.booleans())
def test_greedy_adds_the_best_column_each_time(seed, c, size, single):
    D, k = size
    X = problem(seed, D, 40, spread=1.5 if seed % 2 else 0.1)
    X = X.astype(np.float32).astype(float)
    X[:, 30:] = X[:, :10] * np.random.default_rng(seed).choice([-1.0, 1.0], 10)  # equal up to sign: the first is picked
    given = X.astype(np.float32) if single else X
    expected = plain_greedy(X, k, c)
    assert ip.greedy_search(given, c, k=k).indices.tolist() == expected
    assert ip.greedy_search(ip.as_source(given), c, k=k).indices.tolist() == expected


def test_greedy_over_a_source_picks_the_same_when_memory_for_coordinates_is_short(monkeypatch):
    X = problem(3, 9, 500)
    expected = ip.greedy_search(X, k=6).indices.tolist()
    for rows in (0, 1, 3):
        monkeypatch.setattr(greedy, "MEMORY", 8 * 500 * rows)
        assert ip.greedy_search(ip.as_source(X), k=6).indices.tolist() == expected
        assert ip.greedy_search(X, k=6, include=[4, 77]).indices.tolist() == (
            ip.greedy_search(ip.as_source(X), k=6, include=[4, 77]).indices.tolist()
        )


def test_ties_go_to_the_lowest_index():
    X = np.hstack([np.eye(3), np.eye(3), -np.eye(3)])
    assert ip.greedy_search(X).indices.tolist() == [0, 1, 2]
    assert ip.brute_search(X).indices.tolist() == [0, 1, 2]


def test_brute_refuses_politely_above_its_budget():
    with pytest.raises(BudgetError, match=r"264,566,400 subsets.*exact_search"):
        ip.brute_search(load_wine().matrix(5)[:, :128], budget=10**6)


def test_large_exponents_stay_finite_and_ordered():
    X = load_wine().matrix()
    greedy, exchange = ip.greedy_search(X, c=10), ip.exchange_search(X, c=10, kicks=30)
    assert np.isfinite(greedy.log_loss)
    assert np.isfinite(exchange.log_loss)
    assert exchange.log_loss <= greedy.log_loss
    small = load_wine().matrix(13)[:, :15]
    brute = ip.brute_search(small, c=10)
    assert np.isfinite(brute.log_loss)
    assert ip.exchange_search(small, c=10).log_loss == pytest.approx(brute.log_loss, rel=1e-9)
