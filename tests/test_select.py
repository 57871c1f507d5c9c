import itertools

import numpy as np
import pytest

import isopursuit as ip
from isopursuit.datasets import load_wine
from isopursuit.errors import ParameterError


def problem(seed, D, P):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(D, P)) / np.sqrt(D) * np.exp(0.5 * rng.uniform(-1, 1, P))


@pytest.mark.parametrize("method", ["two-stage", "exact", "exchange", "greedy", "brute"])
def test_every_method_answers_in_the_same_shape(method):
    X = problem(0, 4, 20)
    picked = ip.select(X, method=method, labels=[f"v{i}" for i in range(20)])
    assert picked.k == 4
    assert picked.labels == tuple(f"v{i}" for i in picked.indices)
    assert picked.loss == pytest.approx(ip.isometry_loss(X[:, picked.indices]))
    np.testing.assert_array_equal(picked.matrix, X[:, picked.indices])
    assert (picked.pursuit is not None) == (method == "two-stage")
    assert f"by {method}" in str(picked)


@pytest.mark.parametrize("method", ["two-stage", "exact", "exchange", "greedy", "brute"])
def test_labels_that_are_numbers_are_labels(method):
    """Such as a data frame's own: they must not be taken for positions on the way to the search."""
    X = problem(0, 3, 12)
    plain = ip.select(X, method=method)
    without = plain.indices[0]
    barred = ip.select(X, method=method, exclude=[without])
    for labels in (list(range(11, -1, -1)), list(range(100, 112))):
        picked = ip.select(X, method=method, labels=labels)
        assert picked.indices.tolist() == plain.indices.tolist()
        assert picked.labels == tuple(labels[i] for i in plain.indices)
        picked = ip.select(X, method=method, labels=labels, exclude=[labels[without]])
        assert picked.indices.tolist() == barred.indices.tolist()
        other = barred.indices[0]
        assert other in ip.select(X, method=method, labels=labels, include=[labels[other]]).indices


@pytest.mark.parametrize("seed", range(5))
def test_two_stage_is_brute_force_on_the_tied_set(seed):
    X = problem(seed, 4, 40)
    picked = ip.select(X)
    tied = ip.isometry_pursuit(X).tied
    oracle = ip.brute_search(X[:, tied])
    assert picked.indices.tolist() == tied[oracle.indices].tolist()
    assert picked.search.optimal


@pytest.mark.parametrize("seed", range(3))
def test_prices_and_alternatives_are_what_a_full_table_of_swaps_says(seed):
    X = problem(seed, 4, 30)
    picked = ip.select(X, method="exact")
    S = picked.indices.tolist()
    table = {
        (out, new): ip.isometry_loss(X[:, [*(i for i in S if i != out), new]])
        for out, new in itertools.product(S, sorted(set(range(30)) - set(S)))
    }
    for choice in picked.choices:
        replacements = {new: loss for (out, new), loss in table.items() if out == choice.index}
        best = min(replacements, key=replacements.__getitem__)
        assert choice.replacement == best
        assert choice.price == pytest.approx(replacements[best] - picked.loss, rel=1e-9)
        assert choice.length == pytest.approx(np.linalg.norm(X[:, choice.index]))
    by_rival = {}
    for (_, new), loss in table.items():
        by_rival[new] = min(loss, by_rival.get(new, np.inf))
    nearest = sorted(by_rival, key=by_rival.__getitem__)[:5]
    assert [other.index for other in picked.alternatives] == nearest
    assert [other.loss for other in picked.alternatives] == pytest.approx([by_rival[p] for p in nearest])


def test_fewer_columns_than_rows_are_compared_in_the_row_space():
    X = load_wine().matrix()
    picked = ip.select(X, k=4)
    assert picked.k == 4
    assert picked.matrix.shape == (4, 4)
    U = np.linalg.svd(X, full_matrices=False)[0][:, :4]
    assert picked.loss == pytest.approx(ip.isometry_loss(U.T @ X[:, picked.indices]), rel=1e-9)


def test_the_order_of_columns_does_not_matter():
    X = problem(1, 5, 60)
    order = np.random.default_rng(0).permutation(60)
    for method in ("two-stage", "exact", "exchange"):
        plain, permuted = ip.select(X, method=method), ip.select(X[:, order], method=method)
        assert sorted(order[permuted.indices].tolist()) == plain.indices.tolist()


def test_must_include_and_exclude_hold_in_every_method():
    X = problem(2, 4, 20)
    best = ip.select(X, method="exact").indices
    odd = int(np.setdiff1d(np.arange(20), best)[0])
    for method in ("two-stage", "exact", "exchange", "greedy", "brute"):
        picked = ip.select(X, method=method, include=[odd], exclude=[int(best[0])])
        assert odd in picked.indices
        assert best[0] not in picked.indices
        assert best[0] not in [other.index for other in picked.alternatives]


def test_out_of_time_the_incumbent_comes_with_a_bound():
    X = np.random.default_rng(0).normal(size=(24, 400)) / np.sqrt(24)
    picked = ip.select(X, method="exact", time_limit=0.5)
    assert picked.search.status == "time"
    assert 24 <= picked.search.lower_bound <= picked.loss
    assert 0 < picked.search.gap < 1
    assert "%" in picked.verdict


def test_an_unknown_method_is_refused():
    with pytest.raises(ParameterError, match="two-stage"):
        ip.select(problem(0, 2, 5), method="magic")


def test_contradictions_are_refused_by_every_method():
    for method in ("two-stage", "exact", "exchange", "greedy", "brute"):
        with pytest.raises(ParameterError, match="both included and excluded"):
            ip.select(problem(0, 3, 8), method=method, include=[0], exclude=[0])


def test_a_tall_table_is_fine_when_few_columns_are_wanted():
    X = np.random.default_rng(0).normal(size=(10, 5))
    assert ip.select(X, k=3, method="exact").k == 3


def test_excluded_columns_do_not_define_the_row_space():
    X = problem(0, 5, 12)
    X[:, 0] *= 1e3
    without = ip.select(X[:, 1:], k=2, method="exact").indices + 1
    assert ip.select(X, k=2, method="exact", exclude=[0]).indices.tolist() == without.tolist()


def test_prices_beyond_float64_are_numbers():
    picked = ip.select(load_wine().matrix(), c=10, method="exchange")
    assert not any(np.isnan(choice.price) for choice in picked.choices)
    assert "e^" in str(picked)


def test_an_included_column_outside_the_tied_set_is_told():
    X = problem(1, 4, 40)
    outside = int(np.setdiff1d(np.arange(40), ip.isometry_pursuit(X).tied)[0])
    picked = ip.select(X, include=[outside])
    assert "and those included" in picked.verdict
    assert ip.select(X).verdict.endswith("candidates the pursuit left")


def test_few_subsets_are_tried_outright():
    X = np.random.default_rng(0).normal(size=(3, 9))
    found = ip.exact_search(X)
    assert (found.method, found.status, found.nodes, found.evaluations) == ("exact", "optimal", 0, 84)
    assert found.indices.tolist() == ip.brute_search(X).indices.tolist()
