"""Every convex answer carries its proof; here the proof is checked against the paper's formulas and other solvers."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import clarabel, random_rotation

import isopursuit as ip
from isopursuit.data import load_iris, load_wine
from isopursuit.errors import ParameterError, RankError, ShapeError

seeds = st.integers(0, 2**32 - 1)


def gaussian(D, P, seed=0, spread=0.0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(D, P)) / np.sqrt(D) * np.exp(spread * rng.normal(size=P))


def assert_certified(X, found, gap=1e-10):
    """Feasibility and both bounds, recomputed from the coefficients and the dual point alone."""
    B, nu = found.coefficients, found.dual
    assert np.abs(X @ B - np.eye(len(X))).max() < 1e-8
    assert ip.multitask_norm(B) == pytest.approx(found.certificate.primal, rel=1e-9)
    assert np.linalg.norm(nu.T @ X, axis=0).max() <= 1 + 1e-9
    assert np.trace(nu) == pytest.approx(found.certificate.dual, rel=1e-9)
    assert found.certificate.gap <= gap
    assert found.status == "optimal"
    assert set(found.support) <= set(found.tied)


def assert_honest(X, Y, found, penalty=0.0, tol=1e-10):
    """What is said of an answer, recomputed in extended precision from its coefficients and dual point alone."""
    X, Y, B, nu = (one.astype(np.longdouble) for one in (X, Y, found.coefficients, found.dual))
    norms = np.sqrt((B**2).sum(axis=1))
    misfit = ((Y - X @ B) ** 2).sum()
    primal, dual = norms.sum(), (Y * nu).sum()
    if penalty > 0:
        primal, dual = misfit / 2 + penalty * primal, penalty * dual - penalty**2 * (nu**2).sum() / 2
    proof = found.certificate
    assert np.sqrt(((nu.T @ X) ** 2).sum(axis=0)).max() <= 1 + 1e-12
    assert proof.dual <= proof.primal
    assert dual >= proof.dual * (1 - 1e-14)
    assert penalty > 0 or np.sqrt(misfit / (Y**2).sum()) <= proof.residual
    assert np.abs(norms - found.weights).max() <= 1e-12 * norms.max()
    assert set(found.support) <= set(found.tied)
    if found.status == "optimal":
        assert float(primal) == pytest.approx(proof.primal, rel=1e-9)
        assert abs(primal - dual) <= 1.001 * tol * primal


@pytest.mark.parametrize("replicate", range(5))
def test_the_papers_replicates_are_certified(replicate):
    for X in (
        load_iris().replicate(replicate),
        load_wine().replicate(replicate, D=6),
        load_wine().replicate(replicate),
    ):
        assert_certified(ip.symmetric_normalize(X), ip.isometry_pursuit(X))


def test_real_and_gaussian_problems_are_certified(digits, breast_cancer):
    for X in (digits, breast_cancer, gaussian(13, 178), gaussian(2, 756), gaussian(16, 1000), gaussian(32, 5000)):
        assert_certified(X, ip.basis_pursuit(X))


@pytest.mark.long
def test_64_by_10_000_is_certified():
    X = gaussian(64, 10_000)
    assert_certified(ip.symmetric_normalize(X), ip.isometry_pursuit(X))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("kind", ["identity", "any target", "penalty", "many points"])
def test_the_objective_agrees_with_a_conic_solver(seed, kind):
    rng = np.random.default_rng(seed)
    D, n = int(rng.integers(2, 6)), 3 if kind == "many points" else 1
    Xs = [gaussian(D, int(D + 26), 10 * seed + i, spread=0.3) for i in range(n)]
    Ys = [rng.normal(size=(D, int(rng.integers(1, 6))))] if kind == "any target" else None
    penalty = [0.5, 0.1, 0.02, 0.005][seed % 4] if kind == "penalty" else 0.0
    found = ip.basis_pursuit(Xs if n > 1 else Xs[0], None if Ys is None else Ys[0], penalty=penalty)
    assert found.certificate.gap < 1e-10
    assert found.objective == pytest.approx(clarabel(Xs, Ys, penalty), rel=1e-6)
    Bs = found.coefficients if n > 1 else found.coefficients[None]
    misfits = [(np.eye(D) if Ys is None else Ys[0]) - X @ B for X, B in zip(Xs, Bs, strict=True)]
    if penalty == 0:
        assert np.abs(misfits).max() < 1e-9
    else:
        direct = 0.5 * (misfits[0] ** 2).sum() + penalty * ip.multitask_norm(found.coefficients)
        assert direct == pytest.approx(found.objective, rel=1e-9)


@settings(deadline=None, max_examples=30)
@given(seeds, st.integers(2, 6))
def test_rotating_the_rows_changes_nothing(seed, D):
    rng = np.random.default_rng(seed)
    X = gaussian(D, 40, seed, spread=0.4)
    plain, turned = ip.isometry_pursuit(X), ip.isometry_pursuit(random_rotation(D, rng) @ X)
    assert plain.support.tolist() == turned.support.tolist()
    assert plain.objective == pytest.approx(turned.objective, rel=1e-10)


@settings(deadline=None, max_examples=30)
@given(seeds, st.integers(2, 6))
def test_permuting_columns_permutes_the_answer(seed, D):
    X = gaussian(D, 40, seed, spread=0.4)
    order = np.random.default_rng(seed).permutation(40)
    plain, permuted = ip.isometry_pursuit(X), ip.isometry_pursuit(X[:, order])
    assert sorted(order[permuted.support].tolist()) == plain.support.tolist()
    np.testing.assert_allclose(permuted.weights, plain.weights[order], atol=1e-8)


@pytest.mark.parametrize("condition", [1e2, 1e4, 1e6, 1e8])
def test_row_scaling_does_not_spoil_the_certificate(condition):
    for seed in range(3):
        X = np.geomspace(1.0, 1 / condition, 6)[:, None] * gaussian(6, 200, seed)
        found = ip.basis_pursuit(X)
        assert found.certificate.gap <= 1e-9
        assert found.certificate.residual <= 1e-6


@pytest.mark.parametrize("least", [1e-3, 1e-5, 1e-8])
def test_a_mixing_that_is_nearly_rank_deficient_is_optimal_only_where_float64_can_hold_the_proof(least):
    U = random_rotation(6, np.random.default_rng(1))
    X = U @ np.diag([1, 1, 1, 1, 1, least]) @ U.T @ gaussian(6, 200)
    found = ip.basis_pursuit(X)
    assert_honest(X, np.eye(6), found)
    assert found.certificate.gap <= 1e-15 / least
    assert (found.status == "optimal") == (found.certificate.gap <= 1e-10)


def test_the_callback_sees_progress_and_can_stop_with_an_honest_gap():
    X = gaussian(16, 600)
    seen = []

    def stop_at_a_tenth(progress):
        seen.append(progress)
        return progress.gap < 0.1

    found = ip.basis_pursuit(X, callback=stop_at_a_tenth)
    best = ip.basis_pursuit(X).objective
    assert found.status == "stopped"
    assert found.certificate.gap > 1e-6
    assert found.certificate.dual <= best <= found.certificate.primal
    assert all(a.seconds <= b.seconds for a, b in itertools.pairwise(seen))


def test_an_error_in_the_callback_reaches_the_caller():
    def fail(_):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        ip.basis_pursuit(gaussian(8, 100), callback=fail)


def test_options_out_of_range_are_refused():
    X = gaussian(3, 10)
    for options in (
        {"penalty": -1.0},
        {"tol": 0.0},
    ):
        with pytest.raises(ParameterError):
            ip.basis_pursuit(X, **options)
    with pytest.raises(ShapeError, match="3 rows"):
        ip.basis_pursuit(X, np.eye(2))
    with pytest.raises(RankError, match="rank 2"):
        ip.basis_pursuit(np.vstack([X[:2], X[0]]))


def test_the_lasso_path_runs_from_nothing_to_basis_pursuit():
    X = gaussian(5, 60, spread=0.3)
    path = ip.lasso_path(X, penalties=30, smallest=1e-5)
    sizes = [len(found.support) for found in path]
    assert sizes[0] == 0
    assert all(found.certificate.gap < 1e-8 for found in path)
    assert any(0 < size < 5 for size in sizes)
    assert path[-1].support.tolist() == ip.basis_pursuit(X).support.tolist()


@pytest.mark.parametrize("seed", range(12))
def test_a_target_spanned_by_few_columns_uses_only_those(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4, 15))
    longest = int(np.linalg.norm(X, axis=0).argmax())
    found = ip.basis_pursuit(X, X[:, [longest]])
    assert found.objective == pytest.approx(clarabel([X], [X[:, [longest]]]), rel=1e-6)
    assert found.certificate.gap < 1e-6
    assert np.abs(X @ found.coefficients - X[:, [longest]]).max() < 1e-8
    assert found.weights[longest] == pytest.approx(1.0, abs=1e-6)
    assert np.delete(found.weights, longest).max() < 1e-6


def test_the_identitys_first_column_needs_one_column():
    found = ip.basis_pursuit(np.eye(4), np.eye(4)[:, :1])
    assert found.support.tolist() == [0]
    assert found.unique
    assert found.weights.tolist() == pytest.approx([1, 0, 0, 0])


def test_a_zero_target_and_a_huge_penalty_need_nothing():
    X = gaussian(3, 10)
    nothing = ip.basis_pursuit(X, np.zeros((3, 2)))
    assert len(nothing.support) == 0
    assert nothing.objective == nothing.certificate.dual == 0
    heavy = ip.basis_pursuit(X, penalty=1e30)
    assert len(heavy.support) == 0
    assert heavy.objective == heavy.certificate.dual == 1.5


@pytest.mark.parametrize("factor", [0.02, 10.0, 50.0])
def test_everything_is_in_the_units_of_the_normalized_matrix_whatever_its_scale(factor):
    X = factor * gaussian(3, 30)
    N, found = ip.symmetric_normalize(X), ip.isometry_pursuit(X)
    assert np.abs(N @ found.coefficients - np.eye(3)).max() < 1e-9
    assert ip.multitask_norm(found.coefficients) == pytest.approx(found.objective, rel=1e-9)
    assert np.linalg.norm(found.dual.T @ N, axis=0).max() == pytest.approx(1.0, rel=1e-9)
    np.testing.assert_allclose(np.linalg.norm(found.coefficients, axis=1), found.weights, rtol=1e-6, atol=1e-300)


def test_a_shadow_of_a_column_carries_no_weight():
    found = ip.basis_pursuit([[1.0, 1.0 - 1e-8]])
    assert found.support.tolist() == [0]


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_reaches_a_long_solve():
    code = (
        "import os, signal, threading, numpy as np, isopursuit as ip\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "X = np.random.default_rng(0).normal(size=(400, 8000)) / 20\n"
        "threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "try:\n    ip.basis_pursuit(X); print('finished')\n"
        "except KeyboardInterrupt:\n    print('interrupted')\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout == "interrupted\n"


def integers(seed, size=2):
    rng = np.random.default_rng(seed)
    D = int(rng.integers(2, 6))
    X = rng.integers(-size, size + 1, (D, int(rng.integers(D, 25)))).astype(float)
    return X if np.linalg.matrix_rank(X) == D and X[:, 0].any() else integers(seed + 10_000, size)


@pytest.mark.parametrize("seed", range(60))
def test_a_target_of_one_column_or_low_rank_is_proved_on_integers(seed):
    X = integers(seed)
    rng = np.random.default_rng(seed)
    mixed = np.hstack([np.zeros((len(X), 1)), X[:, :2] @ rng.integers(-1, 2, (2, 3)), X[:, :1]])
    for Y in (X[:, :1], mixed):
        found = ip.basis_pursuit(X, Y)
        assert_honest(X, Y, found)
        assert found.status == "optimal"


@pytest.mark.parametrize("seed", [23, 36, 43, 48])
def test_one_column_of_ill_conditioned_rows_as_target_is_proved(seed):
    X = np.array([1, 0.1, 1e-2, 1e-3])[:, None] * np.random.default_rng(seed).normal(size=(4, 23))
    found = ip.basis_pursuit(X, 100 * X[:, [0]])
    assert found.status == "optimal"
    assert found.objective <= 100 * (1 + 1e-10)  # the column itself


def test_a_column_that_has_copies_is_no_unique_solution_for_itself():
    for seed in range(40):
        X = integers(seed)
        X = np.hstack([X, X[:, :1], -X[:, :1]])
        found = ip.basis_pursuit(X, X[:, :1])
        # the weight may move from a column in the support to its copy
        copies = [0, X.shape[1] - 2, X.shape[1] - 1]
        assert not (np.isin(copies, found.support).any() and found.unique)
        shared = found.minimum_norm().weights[copies]
        assert shared == pytest.approx(shared[0], abs=1e-6)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("size", "reach"), [(7e4, 1.0), (1e-8, 1e8), (1e8, 1e-8), (1.0, 1e8)])
def test_penalties_and_scales_far_from_1_are_proved(seed, size, reach):
    X = integers(seed, 1)
    Y = X[:, :1]
    for penalty in (0.0, 1e-10, 1e-3, 0.3):
        found = ip.basis_pursuit(size * X, reach * Y, penalty=penalty * size * reach)
        assert_honest(size * X, reach * Y, found, penalty * size * reach)
        assert found.status == "optimal"


def test_the_objective_of_nearly_dependent_normalized_columns_is_in_the_callers_units():
    X = 0.1 * np.array([[1.0, 0.9], [1e-6, 2e-6]])
    found = ip.isometry_pursuit(X)
    assert found.objective == pytest.approx(found.weights.sum(), rel=1e-12)
    assert_honest(ip.symmetric_normalize(X), np.eye(2), found)


def test_weights_along_a_lasso_path_are_the_norms_of_the_coefficients():
    for seed in range(10):
        X = gaussian(4, 25, seed, spread=1.0)
        for found in ip.lasso_path(X, penalties=6, smallest=1e-7):
            assert_honest(X, np.eye(4), found, found.penalty, tol=1e-8)


def standardized(X):
    X = X[X.std(axis=1) > 0]
    return (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)


def test_the_order_of_columns_changes_neither_status_nor_support():
    from sklearn.datasets import load_digits

    rng = np.random.default_rng(0)
    digits = standardized(load_digits().data.T)
    plain = ip.isometry_pursuit(digits)
    assert_honest(ip.symmetric_normalize(digits), np.eye(len(digits)), plain)
    problems = [integers(seed) for seed in range(30)]
    answers = [(digits, plain)] + [(X, ip.basis_pursuit(X, X[:, :1])) for X in problems]
    for X, found in answers:
        order = rng.permutation(X.shape[1])
        again = ip.isometry_pursuit(X[:, order]) if X is digits else ip.basis_pursuit(X[:, order], X[:, :1])
        assert again.status == found.status
        assert sorted(order[again.support]) == found.support.tolist()
        assert sorted(order[again.tied]) == found.tied.tolist()
        assert again.unique == found.unique


def test_hostile_problems_hold_in_extended_precision():
    from fuzz.pursuit import run

    for seed in range(150):
        outcome = run(seed)
        assert not outcome.failures, outcome.script


@pytest.mark.parametrize(
    ("X", "Y"),
    [
        ([[1, 0, -2, 1], [0, -1, 2, -1]], [[100], [0]]),
        (
            [
                [-1, -2, 2, -2, 1, 0, 3, 0, 0, -1, 2, -1],
                [-1, -2, 0, 3, -2, -1, 1, 1, -1, 0, 2, 0],
                [3, 2, -3, -3, 0, -3, 0, 0, -3, -1, 0, 1],
            ],
            [[2, 2], [2, 0], [0, -3]],
        ),
    ],
)
def test_weights_that_are_rounding_are_not_in_the_support(X, Y):
    X, Y = np.array(X, dtype=float), np.array(Y, dtype=float)
    found = ip.basis_pursuit(X, Y)
    assert found.status == "optimal"
    assert found.coefficients.shape == (X.shape[1], Y.shape[1])
    assert np.linalg.norm(X @ found.coefficients - Y) <= 1e-12 * np.linalg.norm(Y)
    assert found.weights[found.support].min() > 1e-12 * found.weights.sum()
