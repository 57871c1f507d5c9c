"""The pursuit of k columns in more than k dimensions: its certificate, what it excludes, and the paper's guarantee."""

import json

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles import clarabel_projection, random_rotation

import isopursuit as ip
from isopursuit.errors import ParameterError, RankError
from isopursuit.loss.envelope import spread
from isopursuit.pursuit.certificate import certify
from isopursuit.pursuit.rectangular import RectangularDesign

seeds = st.integers(0, 2**32 - 1)


def problem(seed):
    """Up to 8 rows and 40 columns at 1 to 3 points; some lack rank, some have copies, zeros or one length, and k."""
    rng = np.random.default_rng(seed)
    D, P, n = int(rng.integers(2, 9)), int(rng.integers(2, 41)), int(rng.choice([1, 1, 1, 2, 3]))
    rank = int(rng.integers(1, min(D, P) + 1)) if rng.random() < 0.3 else min(D, P)
    lengths = np.exp(rng.choice([0.0, 0.1, 0.5, 1.0]) * rng.normal(size=P))
    Xs = []
    for _ in range(n):
        X = rng.normal(size=(D, rank)) @ rng.normal(size=(rank, P))
        Xs.append(X / np.linalg.norm(X, axis=0) * lengths)
    one, other = rng.integers(0, P, size=2)
    copied, sign, zero = rng.random() < 0.3, rng.choice([1, -1]), rng.random() < 0.1
    for X in Xs:
        X[:, one] = sign * X[:, other] if copied else X[:, one]
        X[:, 0] = 0.0 if zero else X[:, 0]
    most = min(np.linalg.matrix_rank(X) for X in Xs)
    return Xs, int(rng.integers(1, most + 1)) if most > 0 else 0


def points(Xs):
    return Xs if len(Xs) > 1 else Xs[0]


def gaussian(D, P, seed=0, spread=0.3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(D, P)) / np.sqrt(D) * np.exp(spread * rng.normal(size=P))


def assert_honest(Xs, k, found):
    """Both bounds in extended precision, from the coefficients and the dual point alone."""
    many = len(Xs) > 1
    Ns = [ip.symmetric_normalize(X).astype(np.longdouble) for X in Xs]
    Bs, nus = (one.astype(np.longdouble) if many else one[None].astype(np.longdouble) for one in
               (found.coefficients, found.dual))  # fmt: skip
    proof = found.certificate
    norms = np.sqrt(sum((B**2).sum(axis=1) for B in Bs))
    for N, B in zip(Ns, Bs, strict=True):  # X B is symmetric with eigenvalues from 0 to 1 and trace k
        product = (N @ B).astype(float)
        eigenvalues = np.linalg.eigvalsh((product + product.T) / 2)
        away = max(np.abs(product - product.T).max(), -eigenvalues.min(), eigenvalues.max() - 1)
        assert max(away, abs(np.trace(product) - k)) <= proof.residual + 1e-14
    slopes = np.sqrt(sum(((nu.T @ N) ** 2).sum(axis=0) for nu, N in zip(nus, Ns, strict=True)))
    assert slopes.max() <= 1 + 1e-14
    smallest = sum(np.sort(np.linalg.svd(nu.astype(float), compute_uv=False))[:k].sum() for nu in nus)
    assert proof.dual <= smallest * (1 + 1e-14)
    assert norms.sum() <= proof.primal * (1 + 1e-14)
    assert proof.dual <= proof.primal
    assert json.loads(json.dumps(found.as_dict()))
    np.testing.assert_allclose(found.weights, norms.astype(float), rtol=0, atol=1e-12 * norms.max())
    assert set(found.support) <= set(found.tied)


def assert_euler(Xs, k, found):
    """With M and its eigenvalues from the weights alone: 2 Γ_k/√max q ≤ twice the optimum ≤ 2 √(Σ w · Γ_k)."""
    w, q, gamma = found.weights, 0.0, 0.0
    for N in map(ip.symmetric_normalize, Xs):
        values, V = np.linalg.eigh((N * w) @ N.T)
        roots = 1 / spread(np.maximum(values[::-1], 0.0), k)
        gamma += roots[:k].sum()
        q = q + ((V[:, ::-1].T @ N) ** 2 * roots[:, None] ** 2).sum(axis=0)
    assert w @ q == pytest.approx(gamma, rel=1e-9)
    assert gamma / np.sqrt(q.max()) == pytest.approx(found.objective, rel=1e-6)
    assert np.sqrt(w.sum() * gamma) == pytest.approx(found.objective, rel=1e-6)


@pytest.mark.parametrize("batch", range(10))
def test_certificates_hold_in_extended_precision(batch):
    """500 problems in all; k = D, which some of them have, is the paper's program."""
    for seed in range(50 * batch, 50 * batch + 50):
        Xs, k = problem(seed)
        if k == 0 or k == len(Xs[0]):
            continue
        found = ip.isometry_pursuit(points(Xs), k=k)
        assert found.k == k
        assert found.status == "optimal", seed
        assert found.certificate.gap <= 1e-10
        assert_honest(Xs, k, found)
        assert_euler(Xs, k, found)


@pytest.mark.parametrize("seed", range(30))
def test_the_objective_agrees_with_a_conic_solver(seed):
    Xs, k = problem(seed)
    if k == 0 or k == len(Xs[0]):
        return
    found = ip.isometry_pursuit(points(Xs), k=k)
    optimum, norms, accurate = clarabel_projection([ip.symmetric_normalize(X) for X in Xs], k)
    assert found.objective == pytest.approx(optimum, rel=1e-6 if accurate else 1e-4)
    if found.unique and accurate:
        np.testing.assert_allclose(norms, found.weights, atol=2e-3 * norms.max())


@pytest.mark.parametrize("seed", range(20))
def test_untied_columns_are_not_needed(seed):
    Xs, k = problem(seed)
    found = ip.isometry_pursuit(points(Xs), k=k)
    again = ip.isometry_pursuit(points([X[:, found.tied] for X in Xs]), k=k)
    assert again.objective == pytest.approx(found.objective, rel=1e-9)
    assert len(again.tied) == len(found.tied)


@pytest.mark.parametrize("seed", range(25))
def test_hidden_orthonormal_columns_are_tied(seed):
    """They make the optimum k, and then a column is tied exactly if its normalized length is 1."""
    rng = np.random.default_rng(seed)
    D, P = int(rng.integers(3, 13)), int(rng.integers(5, 60))
    k = int(rng.integers(1, D))
    X = rng.normal(size=(D, P))
    lengths = np.where(rng.random(P) < 0.3, 1.0, np.exp(rng.choice([-1, 1], P) * rng.uniform(0.02, 2, P)))
    X *= lengths / np.linalg.norm(X, axis=0)
    X = np.hstack([X, random_rotation(D, rng)[:, :k]])
    found = ip.isometry_pursuit(X, k=k)
    assert found.objective == pytest.approx(k, rel=1e-10)
    assert found.tied.tolist() == [*np.flatnonzero(lengths == 1.0), *range(P, P + k)]


@pytest.mark.parametrize("seed", range(10))
def test_as_many_columns_as_rows_is_the_papers_program(seed):
    X = gaussian(int(np.random.default_rng(seed).integers(2, 9)), 40, seed)
    D = len(X)
    paper, same = ip.isometry_pursuit(X), ip.isometry_pursuit(X, k=D)
    np.testing.assert_array_equal(paper.weights, same.weights)
    assert paper.certificate == same.certificate
    assert same.k is None
    design = RectangularDesign(np.ascontiguousarray(ip.symmetric_normalize(X).T)[None], None, 0.0, k=D)
    w = design.start()
    design.solve(w, 1e-12)
    found = certify(design, design.evaluate(w), np.flatnonzero(w))
    assert found.certificate.primal == pytest.approx(paper.objective, rel=1e-9)
    assert found.certificate.dual == pytest.approx(paper.objective, rel=1e-9)
    np.testing.assert_allclose(w, paper.weights, atol=1e-6)


@pytest.fixture(scope="module")
def features():
    """The 30 breast-cancer features, centred and of unit length, as 569 rows."""
    from sklearn.datasets import load_breast_cancer

    A = load_breast_cancer().data
    A = A - A.mean(axis=0)
    return A / np.linalg.norm(A, axis=0)


@pytest.mark.needs("sklearn")
@pytest.mark.parametrize(
    ("k", "tied", "optimum"),
    [(3, 30, 3.0), (5, 14, 5.0435666618), (8, 16, 9.0031979219), (10, 21, 12.9178018599), (15, 26, 27.1827522434)],
)
def test_breast_cancer_features(features, k, tied, optimum):
    """Found with its rows as they are and by R of a QR; the best five of all 142,506 sets are among the tied ones."""
    R = np.linalg.qr(features, mode="r")
    found, tall = ip.isometry_pursuit(R, k=k), ip.isometry_pursuit(features, k=k)
    assert found.status == tall.status == "optimal"
    assert len(found.tied) == tied
    assert found.objective == pytest.approx(optimum, rel=1e-10)
    assert found.prunes == (k > 3)
    assert tall.tied.tolist() == found.tied.tolist()
    assert tall.objective == pytest.approx(found.objective, rel=1e-10)
    assert_honest([features], k, tall)
    if k == 5:
        assert {1, 13, 16, 18, 24} <= set(found.tied)  # l_1 = 5.1550, the least of all sets of five


def gamma(M, k):
    return float((1 / spread(np.maximum(np.linalg.eigvalsh(M)[::-1], 0.0), k))[:k].sum())


def random_moments(D, rank, rng):
    A = rng.normal(size=(D, rank)) * np.exp(rng.normal(size=rank))
    return A @ A.T


@settings(deadline=None, max_examples=100)
@given(seeds, st.integers(2, 7))
def test_gamma_is_convex_and_lies_above_its_tangents(seed, D):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, D + 1))
    one, other = (random_moments(D, int(rng.integers(k, D + 3)), rng) for _ in range(2))
    middle = gamma((one + other) / 2, k)
    assert middle <= (gamma(one, k) + gamma(other, k)) / 2 * (1 + 1e-9)
    values, V = np.linalg.eigh(one)
    slope = -(V[:, ::-1] / spread(np.maximum(values[::-1], 0.0), k) ** 2) @ V[:, ::-1].T
    tangent = gamma(one, k) + float(np.vdot(slope, other - one))
    assert gamma(other, k) >= tangent - 1e-9 * (gamma(one, k) + abs(tangent))


@settings(deadline=None, max_examples=20)
@example(2213814, 4)
@given(seeds, st.integers(3, 6))
def test_neither_rotations_nor_the_order_of_columns_change_the_answer(seed, D):
    rng = np.random.default_rng(seed)
    X, k = gaussian(D, 30, seed), int(rng.integers(1, D))
    order = rng.permutation(30)
    plain, moved = ip.isometry_pursuit(X, k=k), ip.isometry_pursuit(X[:, order], k=k)
    np.testing.assert_array_equal(moved.weights, plain.weights[order])
    turned = ip.isometry_pursuit(random_rotation(D, rng) @ X, k=k)
    assert turned.objective == pytest.approx(plain.objective, rel=1e-10)
    # a column whose slope is 1 up to the square root of the gap may be excluded by one solve and not by the other
    slopes = np.linalg.norm(plain.dual @ ip.symmetric_normalize(X), axis=0)
    assert (slopes[np.setxor1d(turned.tied, plain.tied)] > 1 - 1e-4).all()
    assert {*np.flatnonzero(slopes > 1 - 1e-9)} <= {*turned.tied} & {*plain.tied}


def test_orthonormal_columns_alone_are_the_only_solution():
    X = np.hstack([gaussian(10, 60, 0), random_rotation(10, np.random.default_rng(1))[:, :4]])
    found = ip.isometry_pursuit(X, k=4)
    assert found.support.tolist() == [60, 61, 62, 63]
    assert found.unique
    assert found.weights[60:] == pytest.approx(np.ones(4), abs=1e-9)


def test_copies_share_their_weight():
    X = gaussian(6, 20)
    X = np.hstack([X, X, -X[:, :5]])
    found = ip.isometry_pursuit(X, k=3)
    assert not found.unique
    assert found.weights[:20] == pytest.approx(found.weights[20:40], abs=1e-9)


def test_columns_of_one_length_are_all_tied_and_the_answer_says_so():
    X = np.random.default_rng(0).normal(size=(40, 300))
    X /= np.linalg.norm(X, axis=0)
    steps = []
    found = ip.isometry_pursuit(X, k=4, callback=steps.append)
    assert found.tied.tolist() == list(range(300))
    assert found.objective == pytest.approx(4, rel=1e-12)
    assert not steps  # equal weights are optimal: no step is needed
    assert not found.prunes
    assert not found.unique
    assert "300 of 300 are tied" in found.notes[-1]
    assert "for k = 4" in str(found)
    assert found.as_dict()["k"] == 4


@pytest.mark.parametrize("k", [2, 8, 15])
def test_a_source_answers_as_its_array_does(k):
    X = gaussian(16, 6000, 5)
    found = ip.isometry_pursuit(X, k=k)
    streamed = ip.isometry_pursuit(ip.as_source(X), k=k, memory=0)
    assert found.status == streamed.status == "optimal"
    assert streamed.k == k
    assert streamed.objective == pytest.approx(found.objective, rel=1e-9)
    assert set(found.support) <= set(streamed.tied)
    assert set(streamed.support) <= set(found.tied)
    assert_honest([X], k, streamed)


def test_a_source_of_columns_of_one_length_takes_few_passes():
    X = np.random.default_rng(1).normal(size=(20, 8000))
    X /= np.linalg.norm(X, axis=0)
    found = ip.isometry_pursuit(ip.as_source(X), k=5, memory=0)
    assert found.status == "optimal"
    assert len(found.tied) == 8000
    assert found.effort.passes <= 4


def test_a_stopped_pursuit_has_an_honest_gap():
    X = gaussian(20, 400, 3)
    best = ip.isometry_pursuit(X, k=10).objective
    for options in ({"callback": lambda now: now.gap < 0.1}, {"time_limit": 1e-9}):
        found = ip.isometry_pursuit(X, k=10, **options)
        assert found.status == "stopped"
        assert found.certificate.dual <= best <= found.certificate.primal
        assert_honest([X], 10, found)


@pytest.mark.parametrize("factor", [0.02, 30.0])
def test_everything_is_in_the_units_of_the_normalized_matrix(factor):
    X = factor * gaussian(5, 30)
    assert_honest([X], 3, ip.isometry_pursuit(X, k=3))


def test_options_that_make_no_sense_are_refused():
    X = gaussian(4, 10)
    for k in (0, 5, 1.5, True):
        with pytest.raises(ParameterError, match="k="):
            ip.isometry_pursuit(X, k=k)
    with pytest.raises(RankError, match="rank 2"):
        ip.isometry_pursuit(np.vstack([X[:2], X[:2]]), k=3)
    with pytest.raises(ParameterError, match=r"penalty=0\.1 with k=2"):
        ip.isometry_pursuit(X, k=2, penalty=0.1)
    with pytest.raises(ParameterError, match="penalty"):
        ip.isometry_pursuit(ip.as_source(X), k=2, penalty=0.1)


def test_lengths_near_underflow_at_one_of_many_points_end_with_a_certificate():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 3, 11))
    X[3] *= 8  # at c = 2 its normalized columns have lengths of about e^-200
    for k in (1, 2):
        found = ip.isometry_pursuit(list(X), 2.0, k=k)
        assert 0 < found.certificate.dual <= found.certificate.primal < np.inf
