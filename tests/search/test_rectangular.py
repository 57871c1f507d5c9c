"""Fewer columns than rows, against brute force that does not use the library: all subsets, NumPy's singular values."""

from __future__ import annotations

import math
from itertools import combinations
from unittest import mock

import numpy as np
import pytest
from oracles import g

import isopursuit as ip
from isopursuit.errors import RankError, ShapeError
from isopursuit.search import exact, scan
from isopursuit.search.scan import SwapBounds

CLOSE = 1e-9  # relative: what "optimal" promises


def loss_of(points, subset, c):
    """The summed loss of these columns at all points, by the paper's formula."""
    total = 0.0
    for X in points:
        s = np.linalg.svd(X[:, list(subset)], compute_uv=False)
        if s[-1] < 1e-12 * s[0]:
            return math.inf
        total += float(g(s, c).sum())
    return total


class Problem:
    """A random problem: columns at one to three points, k of them, some included and some excluded."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.rows = int(rng.integers(2, 9))
        self.k = int(rng.integers(1, min(self.rows - 1, 5) + 1))
        P = int(rng.integers(self.k + 2, 17))
        self.c = float(rng.choice([0.3, 1.0, 2.0]))
        n = int(rng.choice([1, 1, 2, 3]))
        lengths = np.exp(0.4 * rng.normal(size=(n, 1, P)))
        X = rng.normal(size=(n, self.rows, P))
        if rng.random() < 0.3:  # one direction dominates
            X += 2 * rng.normal(size=(n, self.rows, 1))
        X *= lengths / np.linalg.norm(X, axis=1, keepdims=True)
        self.points = list(X)
        self.include = rng.choice(P, int(rng.integers(0, min(self.k, 2) + 1)), replace=False)
        others = np.setdiff1d(np.arange(P), self.include)
        spare = P - self.k - 1
        self.exclude = rng.choice(others, int(rng.integers(0, min(spare, 2) + 1)), replace=False)
        self.free = np.setdiff1d(others, self.exclude)

    @property
    def X(self):
        return self.points[0] if len(self.points) == 1 else self.points

    @property
    def given(self):
        return {"k": self.k, "include": self.include.tolist(), "exclude": self.exclude.tolist()}

    def loss(self, subset):
        return loss_of(self.points, subset, self.c)

    def subsets(self):
        missing = self.k - len(self.include)
        return (tuple(self.include) + some for some in combinations(self.free, missing))

    def best(self):
        return min(self.loss(subset) for subset in self.subsets())

    def greedy(self):
        subset = list(self.include)
        while len(subset) < self.k:
            rest = [p for p in self.free if p not in subset]
            losses = [self.loss([*subset, p]) for p in rest]
            subset.append(rest[int(np.argmin(losses))])
        return subset

    def check(self, found):
        """What every answer must satisfy."""
        subset = found.indices.tolist()
        assert len(set(subset)) == self.k
        assert set(self.include) <= set(subset)
        assert not set(self.exclude) & set(subset)
        assert found.loss == pytest.approx(self.loss(subset), rel=1e-9)
        best = self.best()
        assert found.lower_bound <= best * (1 + CLOSE)
        assert found.loss >= best * (1 - CLOSE)
        if found.status == "optimal":
            assert found.loss == pytest.approx(best, rel=CLOSE)


def check_arrays(seed):
    problem = Problem(seed)
    for search in (ip.exact_search, ip.brute_search, ip.exchange_search):
        problem.check(search(problem.X, problem.c, **problem.given))
    found = ip.brute_search(problem.X, problem.c, **problem.given)
    assert found.status == "optimal"
    found = ip.greedy_search(problem.X, problem.c, **problem.given)
    problem.check(found)
    assert found.loss == pytest.approx(problem.loss(problem.greedy()), rel=1e-9)
    with mock.patch.object(exact, "FEW_SUBSETS", 0):  # without brute force inside
        found = ip.exact_search(problem.X, problem.c, **problem.given)
    problem.check(found)
    assert found.status == "optimal"


@pytest.mark.parametrize("seed", range(30))
def test_searches_of_arrays_equal_brute_force(seed):
    check_arrays(seed)


@pytest.mark.parametrize("c", [0.3, 0.65, 0.75, 1.0, 2.0])
@pytest.mark.parametrize("rows", [5, 6, 40])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("work", [2**25, 16])
def test_bounds_of_swaps_are_below_the_losses_and_tight_near_the_ideal(work, seed, rows, c, monkeypatch):
    monkeypatch.setattr(scan, "WORK", work)  # with less one bound serves all positions
    rng = np.random.default_rng(seed)
    k = 5
    X = rng.normal(size=(rows, 60)) / math.sqrt(rows)
    subset = X[:, :k]
    low = SwapBounds.of(subset, c)(X[:, k:])
    lost = []  # of the loss above the ideal, by the bound
    for i in range(k):
        for p in range(X.shape[1] - k):
            swapped = subset.copy()
            swapped[:, i] = X[:, k + p]
            true = loss_of([swapped], range(k), c)
            assert low[i, p] <= true * (1 + 1e-12)
            lost.append((true - low[i, p]) / (true - k) if rows == 40 else 0.0)
    if 0.75 <= c <= 1 and work >= k**4:  # beyond, terms of fourth order count
        assert np.median(lost) < 0.2


def test_the_bound_of_a_column_orthogonal_to_the_others_is_its_loss():
    X = np.diag([0.8, 1.3, 0.9, 1.1])
    bounds = SwapBounds.of(X[:, :3], 1.0)(X[:, 3:])
    for i in range(3):
        assert bounds[i, 0] == pytest.approx(loss_of([np.delete(X, i, axis=1)], range(3), 1.0), rel=1e-8)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["array", "source"])
def test_a_large_array_is_searched_as_a_source(kind, monkeypatch):
    from isopursuit.search import problem

    rng = np.random.default_rng(0)
    X = (rng.normal(size=(20, 600)) / math.sqrt(20)).astype(np.float32)
    monkeypatch.setattr(problem, "SOURCE_ENTRIES", 1000)
    found = ip.exchange_search(X if kind == "array" else ip.as_source(X), k=4, include=[7], exclude=[3])
    assert found.loss == pytest.approx(loss_of([X.astype(float)], found.indices, 1.0), rel=1e-9)
    assert 7 in found.indices
    assert any("passes" in note for note in found.notes)
    assert ip.exchange_search(X.astype(float), k=4, include=[7], exclude=[3], labels=range(600)).loss == pytest.approx(
        found.loss, rel=1e-6
    )
    picked = ip.select(X, 4, method="exchange")
    assert picked.loss == pytest.approx(loss_of([X.astype(float)], picked.indices, 1.0), rel=1e-9)


def test_more_columns_than_the_rank_are_refused_with_the_rank():
    X = np.random.default_rng(0).normal(size=(8, 3)) @ np.random.default_rng(1).normal(size=(3, 50))
    for given in (X, ip.as_source(X)):
        with pytest.raises(RankError, match="rank 3"):
            ip.exchange_search(given, k=5)
        assert len(ip.exchange_search(given, k=3).indices) == 3


def test_a_source_may_have_fewer_columns_than_rows():
    X = np.random.default_rng(0).normal(size=(30, 12)) / math.sqrt(30)
    for search in (ip.greedy_search, ip.exchange_search, ip.exact_search):
        found = search(ip.as_source(X), k=4)
        assert found.loss == pytest.approx(search(X, k=4).loss, rel=1e-9)
    with pytest.raises(ShapeError, match="12 candidates of 30 dimensions"):
        ip.exchange_search(ip.as_source(X))
