import math

import numpy as np
import pytest
from numpy.typing import NDArray

from isopursuit.search._swap import best_swap, extension_log_losses, log_loss_of, swap_descent
from isopursuit.search.exchange import local_search


def log_loss(X: NDArray[np.float64], c: float) -> float:
    powers = np.linalg.svd(X, compute_uv=False) ** c
    return float(np.logaddexp.reduce(np.logaddexp(powers, 1 / powers))) - math.log(2) - 1


@pytest.mark.parametrize("c", [0.1, 1.0, 3.16, 10.0])
def test_the_log_loss_is_finite_where_the_loss_is_not(c: float) -> None:
    columns = np.random.default_rng(0).standard_normal((12, 5)) * 2
    subset = np.array([0, 3, 7, 8, 11], np.int32)
    assert log_loss_of(columns, subset, c) == pytest.approx(log_loss(columns[subset].T, c), rel=1e-10)
    assert log_loss_of(columns, subset[:3], c) == pytest.approx(log_loss(columns[subset[:3]].T, c), rel=1e-10)


@pytest.mark.parametrize("c", [0.1, 0.5, 1.0, 2.0, 10.0])
def test_the_best_swap_is_the_best_of_all(c: float) -> None:
    rng = np.random.default_rng(round(10 * c))
    for _ in range(30):
        dimension = int(rng.integers(1, 8))
        columns = rng.standard_normal((25, dimension)) * np.exp(rng.uniform(-1, 1, (25, 1)))
        subset = rng.permutation(25)[:dimension].astype(np.int32)
        position = int(rng.integers(dimension))
        outside = np.setdiff1d(np.arange(25), subset)
        trials = [np.where(np.arange(dimension) == position, p, subset) for p in outside]
        values = [log_loss(columns[trial].T, c) for trial in trials]
        found, value = best_swap(columns, subset, position, c)
        assert value == pytest.approx(min(values), rel=1e-9)
        assert values[outside.tolist().index(found)] == pytest.approx(min(values), rel=1e-9)
        assert best_swap(columns, subset, position, c, min(values) - 1e-6)[0] == -1


def test_a_descent_ends_where_no_swap_improves_and_keeps_what_is_fixed() -> None:
    rng = np.random.default_rng(4)
    columns = rng.standard_normal((40, 6))
    subset = rng.permutation(40)[:6].astype(np.int32)
    final, value = swap_descent(columns, subset, np.arange(2, 6, dtype=np.int32), 1.0)
    assert final[:2].tolist() == subset[:2].tolist()
    assert value == pytest.approx(log_loss(columns[final].T, 1.0), rel=1e-10)
    for position in range(2, 6):
        assert best_swap(columns, final, position, 1.0)[1] >= value - 1e-9


def test_extensions_are_the_losses_of_the_larger_subsets() -> None:
    columns = np.random.default_rng(6).standard_normal((9, 4))
    subset = np.array([2, 5], np.int32)
    values = extension_log_losses(columns, subset, 1.0)
    for p in range(9):
        expected = math.inf if p in subset else log_loss(columns[[2, 5, p]].T, 1.0)
        assert values[p] == pytest.approx(expected, rel=1e-10)
    assert np.argmin(extension_log_losses(columns, subset[:0], 1.0)) == np.argmin(
        np.abs(np.log(np.linalg.norm(columns, axis=1)))
    )


def test_kicks_repeat_with_the_same_generator() -> None:
    X = np.random.default_rng(7).standard_normal((6, 50))
    first, second = (local_search(X, 1.0, starts=3, kicks=5, rng=np.random.default_rng(1)) for _ in range(2))
    assert first.indices.tolist() == second.indices.tolist()
    assert first.log_loss == second.log_loss
