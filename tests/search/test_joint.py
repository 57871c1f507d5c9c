"""One selection for many points: the searches for summed losses against brute force and the paper's formula."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import strategies as st
from proofs import prove

import isopursuit as ip
from isopursuit.errors import ParameterError, RankError, ShapeError
from isopursuit.loss.aggregate import as_aggregate
from isopursuit.loss.penalty import log_penalty
from isopursuit.search._joint import CliqueSearch, JointKernel, table_of_h
from isopursuit.search.local import joint_kernel

seeds = st.integers(0, 2**32 - 1)
METHODS = ("two-stage", "exact", "exchange", "greedy", "brute")


def points(seed, n, D, P, spread=0.4):
    """Columns that turn a little from point to point, of lengths about 1."""
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(D, P)) / np.sqrt(D) * np.exp(spread * rng.uniform(-1, 1, P))
    return columns + spread * rng.normal(size=(n, D, P)) / np.sqrt(D)


def summed_loss(X, S, c=1.0):
    return sum(ip.isometry_loss(x[:, list(S)], c) for x in X)


def best_by_enumeration(X, c=1.0, columns=None):
    columns = range(X.shape[2]) if columns is None else columns
    return min((summed_loss(X, S, c), S) for S in itertools.combinations(columns, X.shape[1]))


def test_exchange_ends_where_no_swap_improves():
    X = points(0, 8, 4, 25)
    found = ip.exchange_search(X)
    S = found.indices.tolist()
    for out, new in itertools.product(S, set(range(25)) - set(S)):
        assert summed_loss(X, [*(p for p in S if p != out), new]) >= found.loss * (1 - 1e-9)
    assert found.lower_bound <= ip.brute_search(X).loss * (1 + 1e-9)
    assert found.status == "optimal"
    assert ip.exchange_search(X, kicks=0).status == "heuristic"


def test_one_point_in_a_list_is_that_matrix():
    X = points(0, 1, 4, 20)
    for method in METHODS[:-1]:
        alone, listed = ip.select(X[0], method=method), ip.select(X, method=method)
        assert listed.indices.tolist() == alone.indices.tolist()
        assert listed.loss == pytest.approx(alone.loss)
        assert listed.matrix.shape == (1, 4, 4)


def test_an_orthonormal_basis_at_every_point_is_found_by_every_method():
    X = points(1, 20, 3, 40)
    X[:, :, [7, 19, 33]] = np.linalg.qr(np.random.default_rng(0).normal(size=(20, 3, 3)))[0]
    for method in METHODS:
        picked = ip.select(X, method=method)
        assert picked.indices.tolist() == [7, 19, 33]
        assert picked.loss == pytest.approx(60)
        assert picked.points == 20
        assert picked.ideal == 60
        np.testing.assert_allclose(picked.gram, np.eye(3), atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_two_stage_is_brute_force_on_the_jointly_tied_set(seed):
    X = points(seed, 4, 2, 30)
    picked = ip.select(X, method="two-stage")
    tied = ip.isometry_pursuit(X).tied
    loss, S = best_by_enumeration(X, columns=tied)
    assert picked.indices.tolist() == list(S)
    assert picked.loss == pytest.approx(loss)
    assert picked.pursuit.certificate.gap <= 1e-10


@pytest.mark.parametrize("seed", range(3))
def test_prices_and_alternatives_are_what_a_full_table_of_swaps_says(seed):
    X = points(seed, 5, 3, 15)
    picked = ip.select(X, method="exact")
    S = picked.indices.tolist()
    rivals = {}
    for choice in picked.choices:
        swaps = {p: summed_loss(X, [*(i for i in S if i != choice.index), p]) for p in range(15) if p not in S}
        best = min(swaps, key=swaps.__getitem__)
        assert choice.replacement == best
        assert choice.price == pytest.approx(swaps[best] - picked.loss, rel=1e-8)
        assert choice.length == pytest.approx(np.linalg.norm(X[:, :, choice.index], axis=1).mean())
        for p, loss in swaps.items():
            rivals[p] = min(loss, rivals.get(p, np.inf))
    nearest = sorted(rivals, key=rivals.__getitem__)[:5]
    assert [other.index for other in picked.alternatives] == nearest
    assert f"loss {picked.loss / 5:.6g} a point (ideal 3, mean over 5 points), proved optimal" in str(picked)
    assert picked._repr_html_()
    assert picked.as_dict()["k"] == 3


def test_losses_beyond_float64_are_compared_by_their_logarithms():
    X = 4 * points(0, 3, 2, 10)
    found = ip.exchange_search(X, 10.0)
    assert found.loss == np.inf
    logs = {
        S: np.logaddexp.reduce([ip.log_isometry_loss(x[:, list(S)], 10.0) for x in X])
        for S in itertools.combinations(range(10), 2)
    }
    assert found.indices.tolist() == list(min(logs, key=logs.__getitem__))
    assert found.log_loss == pytest.approx(min(logs.values()))


def test_what_cannot_be_picked_at_one_point_is_told():
    X = points(0, 3, 2, 6)
    X[1, :, 4] = 0.0
    found = ip.exact_search(X, labels=list("abcdef"))
    assert 4 not in found.indices
    assert any("zero at some of the 3 points" in note for note in found.notes)
    X[2, 1] = 0.0
    with pytest.raises(RankError, match="at point 2"):
        ip.exact_search(X)
    with pytest.raises(ShapeError, match="same shape"):
        ip.exact_search([X[0], X[1][:, :4]])


def test_pointwise_selections_are_those_of_each_point_alone():
    X = points(6, 12, 2, 30)
    names = [f"f{i}" for i in range(30)]
    for method in METHODS:
        picked = ip.select_pointwise(X, method=method, labels=names)
        alone = [ip.select(x, method=method) for x in X]
        assert [row.tolist() for row in picked.indices] == [one.indices.tolist() for one in alone]
        np.testing.assert_allclose(picked.losses, [one.loss for one in alone])
        assert all(search.lower_bound <= search.loss + 1e-12 for search in picked.searches)
    picked = ip.select_pointwise(X, labels=names, workers=2)
    assert max(certificate.gap for certificate in picked.certificates) <= 1e-10
    counts = Counter(map(tuple, picked.indices.tolist()))
    assert {one.indices: one.count for one in picked.subsets} == counts
    assert picked.subsets[0].count == max(counts.values())
    assert picked.subsets[0].labels == tuple(names[i] for i in picked.subsets[0].indices)
    assert picked.counts.sum() == 24
    assert picked.counts[picked.indices[0, 0]] >= 1
    assert "12 of 12 points" in str(picked)


@pytest.mark.parametrize("workers", [1, 2])
def test_pointwise_in_no_time_says_which_points_were_not_reached(workers):
    X = points(0, 40, 2, 10)
    stopped = ip.select_pointwise(X, time_limit=1e-9, workers=workers)
    done = len(stopped.searches)
    assert 1 <= done < 40
    assert stopped.unreached == 40 - done
    assert f"{40 - done} more were not reached" in stopped.verdict
    assert f"{done} of 40" in stopped.notes[-1]
    whole = ip.select_pointwise(X, time_limit=60)
    assert whole.unreached == 0
    # in no time the first points have some answer, which need not be the whole one
    assert stopped.indices.shape == (done, 2)
    np.testing.assert_array_equal(whole.indices, ip.select_pointwise(X).indices)


def test_a_hard_point_does_not_outlast_the_time():
    X = points(0, 2, 24, 200)
    stopped = ip.select_pointwise(X, method="exact", time_limit=0.5)
    assert stopped.searches[0].status == "time"
    assert 24 <= stopped.searches[0].lower_bound <= stopped.searches[0].loss
    assert "proved optimal at 0 of" in stopped.verdict
    with pytest.raises(ParameterError, match="time_limit=0 "):
        ip.select_pointwise(X, time_limit=0)


def test_pointwise_errors_name_the_point():
    X = points(0, 4, 2, 10)
    X[3, 1] = 2 * X[3, 0]
    with pytest.raises(RankError, match="At point 3"):
        ip.select_pointwise(X)
    with pytest.raises(ParameterError, match="two-stage"):
        ip.select_pointwise(X, method="magic")
    with pytest.raises(ParameterError, match="workers"):
        ip.select_pointwise(X, workers=0)


def aggregated(X, S, aggregate, c=1.0):
    """The logarithm of the aggregate by its definition."""
    losses = np.sort([ip.log_isometry_loss(x[:, list(S)], c) for x in X])
    if aggregate == "sum":
        return np.logaddexp.reduce(losses)
    kept = math.ceil((0.9 if aggregate == "trimmed" else aggregate) * len(X))
    return np.logaddexp.reduce(losses[:kept]) - math.log(kept)


def spoiled(seed, n, D, P):
    """Some points have columns of another scale, nearly in a plane."""
    rng, X = np.random.default_rng(seed), points(seed, n, D, P)
    for i in rng.permutation(n)[: n // 3]:
        X[i] *= np.exp(rng.normal())
        X[i, 0] *= 0.1
    return X


AGGREGATES = ("sum", "trimmed", 0.5)


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("seed", range(5))
def test_every_method_minimizes_the_aggregate_and_its_bound_holds(seed, aggregate):
    rng = np.random.default_rng(seed)
    n, D, P = int(rng.integers(3, 13)), int(rng.integers(2, 5)), int(rng.integers(8, 12))
    k = int(rng.integers(1, D + 1))
    X = spoiled(seed, n, D, P)
    include, exclude = ([3], [5]) if seed % 2 else ([], [])
    allowed = [p for p in range(P) if p not in exclude]
    values = {S: aggregated(X, S, aggregate) for S in itertools.combinations(allowed, k) if set(include) <= set(S)}
    best = min(values.values())
    for method in (*METHODS, "auto"):
        picked = ip.select(X, k, method=method, aggregate=aggregate, include=include, exclude=exclude)
        assert picked.log_loss == pytest.approx(values[tuple(picked.indices.tolist())], abs=1e-9)
        if method != "two-stage":  # proved among what the pursuit leaves
            assert np.log(picked.search.lower_bound) <= best + 1e-9
        if method in ("exact", "brute"):
            assert picked.search.optimal
            assert picked.log_loss == pytest.approx(best, abs=1e-9)
        if len(picked.indices) < len(allowed):
            for choice in picked.choices:
                rest = [i for i in picked.indices if i != choice.index]
                swaps = [aggregated(X, [*rest, p], aggregate) for p in allowed if p not in picked.indices]
                assert choice.log_loss == pytest.approx(min(swaps), abs=1e-7)
    judged = ip.audit(X, picked.indices.tolist(), aggregate=aggregate)
    assert judged.log_loss == pytest.approx(picked.log_loss, abs=1e-9)


def test_one_bad_point_decides_the_sum_and_not_the_trimmed_mean():
    X = np.tile(np.eye(3)[:, [0, 1, 2, 0]], (60, 1, 1)) * [1, 1, 1, 1.3]
    X[7] = np.eye(3)[:, [0, 1, 2, 0]] * [0.02, 1, 1, 1]  # where the first column nearly vanishes
    assert ip.select(X, method="exact").indices.tolist() == [1, 2, 3]
    picked = ip.select(X, method="exact", aggregate="trimmed")
    assert picked.indices.tolist() == [0, 1, 2]
    assert picked.ideal == 3


def test_the_worst_points_are_named_and_no_loss_has_forty_digits():
    X = points(0, 12, 2, 8)
    X[4, 0] *= 1e-2
    picked = ip.select(X, method="exact", aggregate="trimmed")
    assert "highest losses: at point 4 (" in str(picked)
    np.testing.assert_allclose(
        picked.search.point_log_losses, [ip.log_isometry_loss(x[:, picked.indices]) for x in X], rtol=1e-12
    )
    assert "highest losses: at point 4 (e^" in str(picked)
    assert "mean over the best 11 of 12 points" in str(picked)
    answer = picked.as_dict()
    assert answer["aggregate"] == "trimmed 0.9"
    assert answer["loss_per_point"] == pytest.approx(picked.loss_per_point) == pytest.approx(picked.loss)


def test_an_aggregate_must_be_known():
    X = points(0, 3, 2, 8)
    for wrong in ("median", 0.0, 1.5, None, True):
        with pytest.raises(ParameterError, match="aggregate="):
            ip.select(X, aggregate=wrong)
    alone = ip.select(X[0], aggregate="trimmed")
    assert alone.loss == pytest.approx(ip.select(X[0]).loss)


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("seed", range(20))
def test_the_joint_tree_proves_the_best_subset_from_the_worst(seed, aggregate):
    """The tree alone, against enumeration: many c, and columns that must be in."""
    rng = np.random.default_rng(seed)
    n, D, P = int(rng.integers(2, 9)), int(rng.integers(2, 5)), int(rng.integers(7, 11))
    c = float(rng.choice([0.3, 1.0, 2.0]))
    X = spoiled(seed, n, D, P) if aggregate == 0.5 else points(seed, n, D, P, spread=0.3)
    include = [2] if seed % 2 else []
    values = {S: aggregated(X, S, aggregate, c) for S in itertools.combinations(range(P), D) if set(include) <= set(S)}
    best, start = min(values.values()), max((S for S in values if values[S] < 300), key=values.__getitem__)
    proof = prove(X, c, np.array(start), include=include, joint=True, aggregate=aggregate)
    assert proof.proved
    assert proof.log_loss == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_the_joint_proof_does_not_depend_on_the_number_of_threads(aggregate):
    X = spoiled(3, 12, 4, 30)
    one, two = (ip.exact_search(X, aggregate=aggregate, workers=workers) for workers in (1, 2))
    assert one.status == two.status == "optimal"
    assert (one.indices == two.indices).all()
    assert (one.nodes, one.evaluations) == (two.nodes, two.evaluations)


def curvature_in_logarithms(t, c):
    """The second derivative of h(e^t) by t, from the formula of the loss."""
    u, v = np.exp(c / 2 * t), np.exp(-c / 2 * t)
    return c * c / 4 * ((u + u * u) * np.exp(u) + (v + v * v) * np.exp(v)) / (2 * np.e)


@pytest.mark.parametrize("c", [0.05, 0.1, 0.3, 0.5, 0.62, 0.8, 1.0, 1.5, 2.0, 5.0, 10.0])
def test_h_minus_kappa_times_the_eigenvalue_is_convex_in_its_logarithm(c):
    kappa = JointKernel(np.ones((1, 2, 1)), c, False, 0, False).kappa
    t = np.linspace(-12 / c, 12 / c, 400_001)
    t = t[np.abs(t) < 2 / c * np.log(300)]
    ratio = curvature_in_logarithms(t, c) * np.exp(-t)
    assert kappa <= ratio.min() <= kappa * (1 + 1e-4)


@pytest.mark.parametrize("c", [0.3, 1.0, 2.0])
def test_the_loss_is_at_least_that_of_some_columns_and_of_the_parts_of_the_others(c):
    """The inequality of the joint proof: parts off their span have a loss, those in it add κ times their squares."""
    kappa = JointKernel(np.ones((1, 2, 1)), c, False, 0, False).kappa
    rng = np.random.default_rng(0)
    for _ in range(300):
        D = int(rng.integers(2, 6))
        j = int(rng.integers(1, D))
        X = (np.eye(D) + rng.uniform(0, 1) * rng.normal(size=(D, D))) * np.exp(0.3 * rng.normal(size=D))
        Q, _ = np.linalg.qr(X[:, :j])
        inside = Q @ (Q.T @ X[:, j:])
        parts = ip.isometry_loss(X[:, :j], c) + ip.isometry_loss(X[:, j:] - inside, c)
        assert ip.isometry_loss(X, c) >= (parts + kappa * np.square(inside).sum()) * (1 - 1e-9)


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("seed", range(6))
def test_no_subset_is_better_than_the_bound_of_two_of_its_columns(seed, aggregate):
    X = spoiled(seed, 9, 4, 10)
    include = np.array([4] if seed % 2 else [], np.int32)
    kernel = joint_kernel(np.ascontiguousarray(X.transpose(2, 0, 1)), 1.0, as_aggregate(aggregate))
    kernel.prepare(np.arange(4, dtype=np.int32))
    search = CliqueSearch(kernel, include, 4 - len(include))
    others = [p for p in range(10) if p not in include]
    values = {S: aggregated(X, S, aggregate) for S in map(frozenset, itertools.combinations(range(10), 4))}
    for first, second in itertools.permutations(others, 2):
        total = search.totals(np.array([first], np.int32), np.array([second], np.int32), np.inf)[0]
        best = min(value for S, value in values.items() if {first, second, *include} <= S)
        assert kernel.least_loss(total) <= np.exp(best) * (1 + 1e-12)


@pytest.mark.parametrize("c", [0.05, 1.0, 10.0])
def test_the_table_of_h_has_its_least_values(c):
    cells = table_of_h(c)
    ends = np.logspace(-6, 6, len(cells) + 1, base=2)
    eigenvalues = np.exp(np.random.default_rng(0).uniform(-6, 6, 1000) * np.log(2))
    eigenvalues = np.append(eigenvalues, [1.0, np.nextafter(1, 0), np.nextafter(1, 2)])
    cell = (eigenvalues.view(np.int64) >> 41) - (ends[:1].view(np.int64)[0] >> 41)
    log_truth = log_penalty(np.sqrt(eigenvalues), c)
    inside = log_truth < 600
    assert (np.log(cells[cell]) <= log_truth + 1e-12)[inside].all()
    assert (np.log(cells[cell]) >= log_truth - 0.02 * c * np.maximum(log_truth, 1))[inside].all()


def test_singular_values_of_the_kernel_are_those_of_lapack():
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 5, 12, 40):
        X = rng.normal(size=(2, size, size)) * np.exp(rng.normal(size=size))
        kernel = JointKernel(np.ascontiguousarray(X.transpose(2, 0, 1)), 0.1, False, 0, False)
        truth = np.logaddexp.reduce([ip.log_isometry_loss(x, 0.1) for x in X])
        assert kernel.loss(np.arange(size, dtype=np.int32)) == pytest.approx(truth, rel=1e-12)


def test_a_stack_whose_first_starts_are_singular_is_searched_all_the_same():
    rng = np.random.default_rng(252)
    X = rng.integers(-1, 2, (10, 3, 14)).astype(float)
    X = X[:, :, X.any(axis=1).all(axis=0)]
    assert ip.exact_search(X).loss == pytest.approx(ip.brute_search(X).loss)


def test_points_with_losses_of_1e17_do_not_hide_the_others():
    """A trimmed mean ignores two points of such losses; rounding of their sum must not exclude the best subset."""
    for n, bad in itertools.product(range(6, 20), (0.0245, 0.025, 0.0255)):
        X = points(n, n, 2, 8)
        X[0] *= 0.02
        X[1] *= bad
        values = {S: aggregated(X, S, (n - 2) / n) for S in itertools.combinations(range(8), 2)}
        start = max((S for S in values if values[S] < 300), key=values.__getitem__)
        proof = prove(X, 1.0, np.array(start), joint=True, aggregate=(n - 2) / n)
        assert proof.proved
        assert proof.log_loss == pytest.approx(min(values.values()), abs=1e-9)


@pytest.mark.parametrize("scale", [1e-120, 1e120])
def test_pairs_of_columns_are_compared_at_any_length_that_float64_can_square(scale):
    X = points(0, 3, 2, 12) * scale
    kernel = JointKernel(np.ascontiguousarray(X.transpose(2, 0, 1)), 0.01, False, 0, False)
    losses = [ip.log_isometry_loss(x[:, [3, 7]], 0.01) for x in X]
    assert kernel.loss(np.array([3, 7], np.int32)) == pytest.approx(np.logaddexp.reduce(losses))
