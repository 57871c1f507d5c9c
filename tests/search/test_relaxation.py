import math
from itertools import combinations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from isopursuit._core.linalg import spectrum
from isopursuit.loss.envelope import Relaxation, relax, spread
from isopursuit.loss.penalty import (
    curvature,
    eigenvalue_loss,
    eigenvalue_slope,
    isometry_loss,
    log_spectral_loss,
)
from isopursuit.search.proof._tree import OpenNode
from isopursuit.search.proof.tree import NO_LIMIT, Explored, Limits, branch_and_bound, tree_kernel
from isopursuit.search.searches import brute_search

EXPONENTS = [0.05, 0.1, 0.3, 0.5, 0.6, 0.62, 0.6203, 0.63, 0.8, 1.0, 1.5, 2.0, 3.16, 5.0, 10.0]
PROBLEMS = [(2, 2.2, 8.0), (6, 9.0, 60.0), (13, 52.0, 400.0), (12, 433.0, 900.0), (4, 5.4e26, 300.0), (5, 1e100, 50.0)]


def relaxations(c: float) -> list[Relaxation]:
    return [relax(c, *problem) for problem in PROBLEMS]


@pytest.mark.parametrize("c", EXPONENTS)
def test_the_curvature_falls_and_then_rises(c: float) -> None:
    # u from 1/300 to 300: the whole range in which the loss is a finite number.
    points = np.exp(np.linspace(-1, 1, 4001) * 2 / c * math.log(300))
    steps = np.diff([curvature(point, c) for point in points.tolist()])
    assert np.sum(np.diff(np.sign(steps[steps != 0])) != 0) == 1


@pytest.mark.parametrize("c", EXPONENTS)
def test_envelopes_are_below_the_loss_where_a_better_subset_lives(c: float) -> None:
    for relaxation in relaxations(c):
        for row, (kappa, *_, high) in enumerate(relaxation.rows.reshape(-1, 6).tolist()):
            for eigenvalue in np.geomspace(relaxation.low, high, 400).tolist():
                value = eigenvalue_loss(eigenvalue, c) + kappa * math.log(eigenvalue)
                scale = eigenvalue_loss(eigenvalue, c) + kappa * (1 + abs(math.log(eigenvalue)))
                assert relaxation.envelope(eigenvalue, row)[0] <= value + 1e-13 * scale


@pytest.mark.parametrize("c", EXPONENTS)
def test_envelopes_are_convex(c: float) -> None:
    for relaxation in relaxations(c):
        for row in range(len(relaxation.rows.reshape(-1, 6))):
            points = np.geomspace(relaxation.low / 100, relaxation.high * 100, 200)
            values, slopes = np.array([relaxation.envelope(point, row) for point in points.tolist()]).T
            # Every tangent supports every point.
            tangents = values[:, None] + slopes[:, None] * (points[None, :] - points[:, None])
            scale = np.abs(values[:, None]) + np.abs(slopes[:, None]) * (points[None, :] + points[:, None])
            assert np.all(tangents <= values + 1e-12 * (scale + np.abs(values)))


@pytest.mark.parametrize("c", EXPONENTS)
def test_a_better_subset_has_its_eigenvalues_in_range(c: float) -> None:
    for (dimension, incumbent, trace), relaxation in zip(PROBLEMS, relaxations(c), strict=True):
        assert eigenvalue_loss(relaxation.low, c) >= incumbent
        assert relaxation.high >= trace or eigenvalue_loss(relaxation.high, c) >= incumbent - dimension + 1


@pytest.mark.parametrize("c", EXPONENTS)
def test_kappas_ascend_from_zero_for_shorter_and_shorter_ranges(c: float) -> None:
    for relaxation in relaxations(c):
        kappas, ends = relaxation.rows[:, :, 0], relaxation.rows[:, :, 5]
        assert np.all(kappas[:, 0] == 0)
        assert np.all(np.diff(kappas, axis=1) > 0)
        assert ends[0, 0] == relaxation.high
        assert np.all(ends == ends[:, :1])
        assert np.all(np.diff(ends[:, 0]) <= 0)


def test_the_loss_is_its_own_envelope_exactly_above_the_threshold() -> None:
    for c, own in ((0.6204, True), (0.62, False)):
        relaxation = relax(c, 6, 20.0, 1e3)
        assert (relaxation.rows[0, 0, 1] == relaxation.high) == own


def test_the_envelope_at_zero_shift_starts_to_be_linear_above_one() -> None:
    # so that its part above one bounds the loss of long eigenvalues by itself
    for c in EXPONENTS:
        for relaxation in relaxations(c):
            for _, left, _, _, _, high in relaxation.rows[:, 0].tolist():
                assert left >= min(1 - 1e-12, high)


# ---------------------------------------------------------------------------------------- fewer columns than dimensions

FUNCTIONS = {  # convex, with their derivatives
    "loss": (lambda t: eigenvalue_losses(t), lambda t: eigenvalue_slopes(t)),
    "inverse": (lambda t: 1 / t, lambda t: -1 / t**2),
    "logarithm": (lambda t: -np.log(t), lambda t: -1 / t),
}


def eigenvalue_losses(t: np.ndarray) -> np.ndarray:
    return np.array([eigenvalue_loss(one, 1.0) for one in t.tolist()])


def eigenvalue_slopes(t: np.ndarray) -> np.ndarray:
    return np.array([eigenvalue_slope(one, 1.0) for one in t.tolist()])


def value_and_gradient(M: np.ndarray, k: int, function: str) -> tuple[float, np.ndarray]:
    """F_k and its gradient, from the least majorant."""
    f, slope = FUNCTIONS[function]
    e, V = np.linalg.eigh(M)
    mu = spread(np.maximum(e[::-1], 0.0), k)
    return float(f(mu[:k]).sum()), (V[:, ::-1] * slope(mu)) @ V[:, ::-1].T


def moments(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, int]:
    """Columns, two weightings of them that sum to k, and k."""
    B = int(rng.integers(2, 8))
    k, P = int(rng.integers(1, B + 1)), int(rng.integers(B, 16))
    X = rng.standard_normal((B, P)) * np.exp(rng.normal(0, 0.6, P)) / np.sqrt(B)
    w = rng.random((2, P)) ** rng.integers(1, 4)
    return X, k * w / w.sum(axis=1, keepdims=True), k


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("seed", range(60))
def test_the_relaxation_of_k_columns_is_convex_and_above_its_tangents(function: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, (w, v), k = moments(rng)
    M, N = (X * w) @ X.T, (X * v) @ X.T
    (one, gradient), (other, _), (middle, _) = (value_and_gradient(A, k, function) for A in (M, N, (M + N) / 2))
    size = abs(one) + abs(other)
    assert middle <= (one + other) / 2 + 1e-9 * size
    assert other >= one + np.sum(gradient * (N - M)) - 1e-9 * size


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("seed", range(30))
def test_a_tangent_of_k_columns_bounds_every_subset_of_k(function: str, seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    X, (w, _), k = moments(rng)
    value, gradient = value_and_gradient((X * w) @ X.T, k, function)
    scores = np.einsum("dp,de,ep->p", X, gradient, X)
    f, _ = FUNCTIONS[function]
    for subset in combinations(range(X.shape[1]), k):
        s = np.linalg.svd(X[:, subset], compute_uv=False)
        if s[-1] > 0.01:  # a finite loss
            exact = float(f(s**2).sum())
            bound = value - scores @ w + scores[list(subset)].sum()
            assert bound <= exact + 1e-9 * (abs(exact) + abs(value))


@pytest.mark.parametrize("c", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("seed", range(25))
def test_every_node_bounds_its_subsets(seed: int, c: float) -> None:
    """The kernel's bound, candidates and cut at random nodes, against all subsets of the node."""
    rng = np.random.default_rng(seed)
    X, _, k = moments(rng)
    P = X.shape[1]
    subsets = [np.array(one) for one in combinations(range(P), k)]
    losses = np.array([isometry_loss(X[:, one], c) for one in subsets])
    for share in (0.0, 0.5, 3.0):
        incumbent = float(losses.min() + share * (np.median(losses[losses < np.inf]) - losses.min())) * (1 + 1e-7)
        if not incumbent < 1e100:
            continue
        kernel = tree_kernel(np.ascontiguousarray(X.T), k, c, incumbent)
        chosen = rng.choice(P, int(rng.integers(0, k)), replace=False).astype(np.int32)
        free = np.setdiff1d(np.arange(P, dtype=np.int32), chosen).astype(np.int32)
        budget = int(rng.choice([0, 300, NO_LIMIT]))  # no enumeration, one that is given up, a whole one
        weights, paired = rng.random(len(free)).astype(np.float32), bool(rng.integers(2))
        node = OpenNode(float(k), chosen, free, weights, paired)
        work = int(rng.choice([0, 10**6]))  # one node, or some more
        budgets = np.where(np.arange(k + 1) <= 2, NO_LIMIT, budget)  # as in `Budgets`
        found = Explored(*kernel.explore([node], incumbent, budgets, np.zeros(k + 1, np.int8), 0, work, NO_LIMIT))
        known = np.inf if found.leaf is None else isometry_loss(X[:, found.leaf], c)
        for one, loss in zip(subsets, losses, strict=True):
            if loss < min(incumbent * (1 - 1e-8), known * (1 - 1e-9)) and np.isin(chosen, one).all():
                inside = [np.isin(one, np.concatenate([at.chosen, at.candidates])).all() for at in found.open]
                bounds = [
                    at.bound
                    for at, into in zip(found.open, inside, strict=True)
                    if into and np.isin(at.chosen, one).all()
                ]
                assert bounds  # a better subset is in an open node,
                assert min(bounds) <= loss * (1 + 1e-12)  # whose bound is not above its loss


def test_a_tree_from_a_bad_start_finds_the_best_of_ill_conditioned_columns() -> None:
    values = load_breast_cancer().data
    X = ((values - values.mean(axis=0)) / values.std(axis=0)).T[:5, :30]
    best = brute_search(X)
    for seed in range(5):
        start = np.random.default_rng(seed).choice(30, 5, replace=False)
        proof = branch_and_bound(X, 1.0, start, Limits())
        assert (proof.stop, proof.loss) == (None, pytest.approx(best.loss, rel=1e-9))


@pytest.mark.parametrize(("k", "D", "P"), [(5, 5, 18), (4, 6, 16)])
@pytest.mark.parametrize("seed", range(8))
def test_a_tree_from_a_bad_start_finds_what_is_just_below_a_high_loss(seed: int, k: int, D: int, P: int) -> None:
    # seen: the exponential of the determinant test overflowed at losses of some hundred, and excluded the best subset
    rng = np.random.default_rng(seed)
    subsets = np.array(list(combinations(range(P), k)))
    for _ in range(20):
        X = rng.normal(size=(D, P)) * np.exp(rng.uniform(-4, 0, (D, 1)))
        losses = np.exp(np.minimum(log_spectral_loss(spectrum(np.moveaxis(X[:, subsets], 1, 0)), 1.0), 600.0))
        best = float(losses.min())
        for factor in (1 + 1e-6, 1.001, 1.1):
            proof = branch_and_bound(X, 1.0, subsets[losses.argmax()], Limits(), below=best * factor)
            assert (proof.stop, proof.loss) == (None, pytest.approx(best, rel=1e-9))
