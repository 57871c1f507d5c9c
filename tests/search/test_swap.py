import math

import numpy as np
import pytest
from numpy.typing import NDArray
from proofs import local_search

from isopursuit.search._swap import SwapKernel, log_loss_of
from isopursuit.search.local import swap_descent, swap_kernel


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
@pytest.mark.parametrize("points", [1, 3])
def test_swaps_and_additions_are_the_best_of_all(c: float, points: int) -> None:
    rng = np.random.default_rng([round(10 * c), points])
    for _ in range(20):
        rows = int(rng.integers(1, 8))
        k = int(rng.integers(1, rows + 1))
        columns = rng.standard_normal((points, 25, rows)) * np.exp(rng.uniform(-1, 1, (25, 1)))
        subset = rng.permutation(25)[:k].astype(np.int32)
        position, kernel = int(rng.integers(k)), swap_kernel(columns, c, most=k)
        others, outside = np.delete(subset, position), np.setdiff1d(np.arange(25), subset)
        values = np.array([[log_loss(one[[*others, p]].T, c) for one in columns] for p in outside])
        losses = np.logaddexp.reduce(values, axis=1)
        best, least = outside[int(np.argmin(losses))], float(losses.min())
        if rng.random() < 0.5:
            kernel.prepare(subset)
        for limit in (np.inf, float(np.quantile(losses, 0.43))):
            assert kernel.replace(subset, position, limit) == (best, pytest.approx(least, rel=1e-9))
            which, found = kernel.below(subset, position, limit)
            assert set(which.tolist()) == set(outside[losses < limit].tolist())
            assert found == pytest.approx([losses[outside == p][0] for p in which], rel=1e-9)
        assert kernel.replace(subset, position, least - 1e-6 * max(1.0, least))[0] == -1
        kernel.skip(np.isin(np.arange(25), subset[position]))
        assert kernel.add(others, np.inf) == (best, pytest.approx(least, rel=1e-9))
        kernel.skip(np.zeros(25, dtype=bool))


def test_a_descent_ends_where_no_swap_improves_and_keeps_what_is_fixed() -> None:
    rng = np.random.default_rng(4)
    columns = rng.standard_normal((40, 6))
    subset = rng.permutation(40)[:6].astype(np.int32)
    final, value = swap_descent(SwapKernel(columns, 1.0), subset, range(2, 6))
    assert final[:2].tolist() == subset[:2].tolist()
    assert value == pytest.approx(log_loss(columns[final].T, 1.0), rel=1e-10)
    for position in range(2, 6):
        assert SwapKernel(columns, 1.0).replace(final, position, np.inf)[1] >= value - 1e-9


def test_of_equal_columns_the_lowest_is_added() -> None:
    columns = np.vstack([np.eye(3), np.eye(3), -np.eye(3)])
    kernel = SwapKernel(columns, 1.0)
    assert kernel.add(np.array([4], np.int32), np.inf)[0] == 0
    assert kernel.replace(np.array([3, 1], np.int32), 1, np.inf)[0] == 2


def test_kicks_repeat_with_the_same_generator() -> None:
    X = np.random.default_rng(7).standard_normal((6, 50))
    first, second = (local_search(X, 1.0, starts=3, kicks=5, rng=np.random.default_rng(1)) for _ in range(2))
    assert first.subset.tolist() == second.subset.tolist()
    assert first.log_loss == second.log_loss
