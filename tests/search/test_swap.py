import math
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from proofs import local_search

from isopursuit.search._swap import SwapKernel, best_column, log_loss_of
from isopursuit.search.stages.recombine import pair_descent
from isopursuit.search.swaps import swap_descent, swap_kernel


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
        others, present = np.delete(subset, position), int(subset[position])
        found, value = best_column(columns, others, c, besides=present)
        assert value == pytest.approx(min(values), rel=1e-9)
        assert values[outside.tolist().index(found)] == pytest.approx(min(values), rel=1e-9)
        assert best_column(columns, others, c, min(values) - 1e-6, present)[0] == -1


@pytest.mark.parametrize("c", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("points", [1, 3])
def test_all_swaps_below_a_limit_are_found(c: float, points: int) -> None:
    rng = np.random.default_rng(round(10 * c) + points)
    for _ in range(10):
        columns = rng.standard_normal((points, 30, 4)) / 2
        subset = rng.permutation(30)[:4].astype(np.int32)
        position = int(rng.integers(4))
        swaps = swap_kernel(columns, c)
        loss = swaps.loss(subset)
        swaps.linearize(subset, loss)
        outside = np.setdiff1d(np.arange(30), subset)
        values = {}
        for p in outside.tolist():
            trial = np.where(np.arange(4) == position, p, subset)
            values[p] = np.logaddexp.reduce([log_loss(one[trial].T, c) for one in columns])
        for limit in (np.inf, float(np.quantile(list(values.values()), 0.43))):
            which, found = swaps.below(subset, position, loss, limit)
            assert set(which.tolist()) == {p for p, value in values.items() if value < limit}
            assert found == pytest.approx([values[p] for p in which.tolist()], rel=1e-9)


def test_a_descent_ends_where_no_swap_improves_and_keeps_what_is_fixed() -> None:
    rng = np.random.default_rng(4)
    columns = rng.standard_normal((40, 6))
    subset = rng.permutation(40)[:6].astype(np.int32)
    final, value = swap_descent(SwapKernel(columns, 1.0), subset, range(2, 6))
    assert final[:2].tolist() == subset[:2].tolist()
    assert value == pytest.approx(log_loss(columns[final].T, 1.0), rel=1e-10)
    for position in range(2, 6):
        assert best_column(columns, np.delete(final, position), 1.0, besides=int(final[position]))[1] >= value - 1e-9


@pytest.mark.parametrize("c", [0.1, 0.5, 1.0, 3.0, 10.0])
def test_the_best_addition_is_the_best_of_all(c: float) -> None:
    rng = np.random.default_rng(round(10 * c))
    for _ in range(40):
        dimension = int(rng.integers(1, 8))
        columns = rng.standard_normal((20, dimension)) * np.exp(rng.uniform(-1, 1, (20, 1)))
        others = rng.permutation(20)[: int(rng.integers(0, dimension))].astype(np.int32)
        outside = np.setdiff1d(np.arange(20), others)
        values = [log_loss(columns[[*others, p]].T, c) for p in outside]
        found, value = best_column(columns, others, c)
        assert value == pytest.approx(min(values), rel=1e-9)
        assert found == outside[int(np.argmin(values))]


def test_of_equal_columns_the_lowest_is_added() -> None:
    columns = np.vstack([np.eye(3), np.eye(3), -np.eye(3)])
    assert best_column(columns, np.array([4], np.int32), 1.0)[0] == 0
    assert best_column(columns, np.array([3], np.int32), 1.0, besides=1)[0] == 2


def test_kicks_repeat_with_the_same_generator() -> None:
    X = np.random.default_rng(7).standard_normal((6, 50))
    first, second = (local_search(X, 1.0, starts=3, kicks=5, rng=np.random.default_rng(1)) for _ in range(2))
    assert first.subset.tolist() == second.subset.tolist()
    assert first.log_loss == second.log_loss


@pytest.mark.parametrize("c", [0.5, 1.0, 2.0, 10.0])
def test_in_a_linearized_subset_the_best_replacement_is_the_best_of_all(c: float) -> None:
    rng = np.random.default_rng(round(10 * c))
    for _ in range(30):
        dimension = int(rng.integers(2, 8))
        columns = rng.standard_normal((30, dimension)) * np.exp(rng.uniform(-1, 1, (30, 1)))
        subset = rng.permutation(30)[:dimension].astype(np.int32)
        swaps, loss = SwapKernel(columns, c), log_loss(columns[subset].T, c)
        swaps.linearize(subset, loss)
        for position in range(dimension):
            outside = np.setdiff1d(np.arange(30), subset)
            values = [log_loss(columns[np.where(np.arange(dimension) == position, p, subset)].T, c) for p in outside]
            found, value = swaps.replace(subset, position, loss, loss)
            if min(values) < loss - 1e-9:
                assert value == pytest.approx(min(values), rel=1e-9)
                assert found == outside[int(np.argmin(values))]
            else:
                assert found == -1


@pytest.mark.parametrize("seed", range(4))
def test_where_pairs_were_exchanged_no_pair_improves(seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = rng.standard_normal((16, 4)) * np.exp(rng.uniform(-1, 1, (16, 1)))
    subset = rng.permutation(16)[:4].astype(np.int32)
    final, value = pair_descent(columns, 1.0, subset, 1)
    assert final[0] == subset[0]
    assert value == pytest.approx(log_loss(columns[final].T, 1.0), rel=1e-10)
    for kept in combinations(final[1:], 1):
        for pair in combinations(np.setdiff1d(np.arange(16), [final[0], *kept]), 2):
            assert log_loss(columns[[final[0], *kept, *pair]].T, 1.0) >= value - 1e-8


def test_a_start_that_no_swap_can_leave_is_left_by_pairs() -> None:
    best = math.inf
    for seed in range(30):
        columns = np.random.default_rng(seed).standard_normal((30, 3))
        stuck, loss = swap_descent(SwapKernel(columns, 1.0), np.array([0, 1, 2], np.int32), range(3))
        best = min(best, pair_descent(columns, 1.0, stuck, 0)[1] - loss)
    assert best < -1e-3
