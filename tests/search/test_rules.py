"""Columns that must not be picked together, groups with limits, and the largest set that such rules allow."""

import itertools

import numpy as np
import pytest
from fuzz import rules as fuzz_rules

import isopursuit as ip
from isopursuit.data import load_wine
from isopursuit.errors import InputError, ParameterError

METHODS = ("auto", "exact", "exchange", "greedy", "brute", "two-stage")
PETERSEN = [*((i, (i + 1) % 5) for i in range(5)), *((i, i + 5) for i in range(5)),
            *((5 + i, 5 + (i + 2) % 5) for i in range(5))]  # fmt: skip


@pytest.fixture(scope="module")
def wine():
    table = load_wine()
    return table.standardized(), table.features


@pytest.fixture(scope="module")
def scattered():
    """Forty directions in twelve dimensions, with lengths near 1."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(12, 40))
    return X / np.linalg.norm(X, axis=0) * np.exp(0.1 * rng.normal(size=40))


def cosines(X):
    unit = X / np.linalg.norm(X, axis=0)
    return np.abs(unit.T @ unit) - np.eye(X.shape[1])


@pytest.mark.parametrize("seed", range(100))
def test_an_answer_is_what_brute_force_over_the_allowed_subsets_says_about_it(seed):
    outcome = fuzz_rules.run(seed)
    assert outcome.failures == (), outcome.script


@pytest.mark.long
def test_a_thousand_more_random_problems_hold():
    for seed in range(100, 1100):
        outcome = fuzz_rules.run(seed)
        assert outcome.failures == (), outcome.script


@pytest.mark.parametrize("method", sorted({*METHODS} - {"greedy"}))  # in greedy search ties go to the first column
def test_the_order_of_the_columns_does_not_matter(wine, method):
    X, names = wine
    groups = {"flavanoids": "phenols", "total_phenols": "phenols", "proanthocyanins": "phenols"}
    some = np.random.default_rng(1).permutation(len(names))
    for k in (4, None):
        options = {"unit": "each", "method": method, "max_correlation": 0.5, "groups": groups}
        given = ip.select(X, k, labels=names, **options)
        moved = ip.select(X[:, some], k, labels=[names[i] for i in some], **options)
        assert set(given.labels) == set(moved.labels)
        assert given.search.most == moved.search.most


@pytest.mark.parametrize("k", [4, 6])
def test_the_tree_proves_what_brute_force_finds(scattered, k):
    """With 40 columns the tree runs, at many nodes or at few, and no path to a forbidden pair is left."""
    near = cosines(scattered)
    subsets = np.array(list(itertools.combinations(range(24), k)))
    for threshold in (0.35, 0.2):
        allowed = np.ones(len(subsets), dtype=bool)
        for i, j in itertools.combinations(range(k), 2):
            allowed &= near[subsets[:, i], subsets[:, j]] <= threshold
        if allowed.any():
            s = np.linalg.svd(np.moveaxis(scattered[:, subsets[allowed]], 1, 0), compute_uv=False)
            best = ((np.exp(s) + np.exp(1 / s)) / (2 * np.e)).sum(axis=1).min()
            found = ip.exact_search(scattered[:, :24], k=k, max_correlation=threshold)
            assert found.optimal
            assert found.loss == pytest.approx(best, rel=1e-9)


def test_limits_of_groups_hold_where_the_best_columns_are_in_few_groups():
    """Columns of good length are in three of six groups: one of each group costs more than any six columns."""
    rng = np.random.default_rng(5)
    X, groups = rng.normal(size=(12, 60)), np.arange(60) % 6
    X *= np.where(groups < 3, 1, 2) / np.linalg.norm(X, axis=0)
    free = ip.exact_search(X, k=6)
    assert free.optimal
    assert (groups[free.indices] < 3).all()
    for rules in ({"groups": groups.tolist(), "per_group": (1, 1)}, {"groups": groups.tolist(), "per_group": 1}):
        ruled = ip.exact_search(X, k=6, **rules)
        assert free.loss < ruled.loss
        assert sorted(groups[ruled.indices]) == list(range(6))
        assert ruled.optimal


def test_the_largest_sets_of_known_graphs():
    X = np.eye(10)
    found = ip.select(X, apart=PETERSEN)
    assert (found.k, found.search.most, found.loss) == (4, 4, pytest.approx(4))
    assert found.search.rule_lines == ("15 pairs not picked together", "4 columns, proved largest")
    cycle = [(i, (i + 1) % 7) for i in range(7)]
    assert ip.select(np.eye(7), apart=cycle).k == 3
    # at most two of each half: the two halves are two paths of the cycle
    halves = ["left"] * 4 + ["right"] * 3
    assert ip.select(np.eye(7), apart=cycle, groups=halves, per_group=1).k == 2
    assert ip.select(np.eye(7), groups=halves, per_group={"left": (2, 3)}).k == 6


def test_without_k_the_rank_limits_the_largest_set():
    X = np.random.default_rng(0).normal(size=(3, 20))
    found = ip.select(X, apart=[(0, 1)])
    assert (found.k, found.search.most) == (3, 3)


def test_a_bound_is_given_where_the_largest_set_is_not_proved():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 400))
    found = ip.select(X, max_correlation=0.15, unit="each", method="greedy")
    assert found.k < found.search.most <= 60
    assert f"{found.k} columns, at most {found.search.most}" in str(found)
    assert cosines(X[:, found.indices]).max() <= 0.15
    # never fewer columns than a filter that goes through the columns in their order
    taken = []
    for p in range(400):
        if not taken or cosines(X[:, [*taken, p]])[-1].max() <= 0.15:
            taken.append(p)
    assert found.k >= len(taken)


@pytest.mark.parametrize("method", METHODS)
def test_prices_are_those_of_allowed_replacements(wine, method):
    X, names = wine
    picked = ip.select(X, 4, unit="each", method=method, labels=names, max_correlation=0.3)
    unit = X / np.linalg.norm(X, axis=0)
    for choice in picked.choices:
        rest = [i for i in picked.indices if i != choice.index]
        others = [p for p in range(len(names)) if p not in picked.indices]
        allowed = [p for p in others if cosines(X[:, [*rest, p]]).max() <= 0.3]
        losses = {names[p]: ip.isometry_loss(unit[:, [*rest, p]]) for p in allowed}
        assert choice.price == pytest.approx(min(losses.values(), default=np.inf) - picked.loss, abs=1e-9)
        assert choice.replacement == min(losses, key=losses.__getitem__, default=None)


def test_equal_columns_in_different_groups_are_different_candidates():
    X = np.array([[1.0, 1.0, 0.0, 0.3], [0.0, 0.0, 1.0, 1.0]])
    picked = ip.select(X, groups=["a", "b", "a", "b"], per_group=1, method="exact")
    assert picked.indices.tolist() == [1, 2]
    assert picked.loss == pytest.approx(2)


def test_pairs_that_are_orthonormal_may_still_be_kept_apart():
    for method in set(METHODS) - {"greedy"}:
        picked = ip.select(np.hstack([np.eye(3), 1.1 * np.eye(3)]), apart=[(0, 1), (0, 4)], method=method)
        assert picked.indices.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"k": 3, "include": ["a", "b"], "apart": [("b", "a")]}, "two columns that must not be picked together: a, b"),
        ({"k": 3, "include": ["a", "b"], "groups": {"a": "g", "b": "g"}}, "2 columns of group 'g', of which at most 1"),
        ({"k": 2, "groups": {"a": "g"}, "per_group": {"g": (2, 3)}}, "Group 'g' must give at least 2 columns"),
        ({"k": 2, "groups": {"a": "g", "b": "h"}, "per_group": {"i": 1}}, "group 'i', which no column has"),
        ({"k": 1, "groups": list("ghghg"), "per_group": (1, 2)}, "need 2 columns, but only 1"),
        ({"k": 4, "groups": list("ghghg")}, "At most 2 columns can be picked with groups=, but k=4"),
        ({"k": 2, "apart": [("a", "a")]}, "not a pair of two columns"),
        ({"k": 2, "apart": [("a", "z")]}, "'z', which is not a column"),
        ({"k": 2, "max_correlation": 70}, "a number from 0 to 1, such as 0.7"),
        ({"k": 2, "per_group": 2}, "per_group needs groups="),
        ({"k": 2, "groups": ["g"]}, "1 labels for 5 columns"),
        ({"k": 2, "groups": list("ghghg"), "per_group": (2, 1)}, "a pair (least, most)"),
    ],
)
def test_contradictions_are_named(options, words):
    with pytest.raises(InputError) as caught:
        ip.select(np.eye(5), labels=list("abcde"), **options)
    assert words in str(caught.value)


def test_sources_are_refused_with_advice():
    X = np.random.default_rng(0).normal(size=(4, 30))
    for search in (ip.select, ip.exact_search, ip.exchange_search, ip.greedy_search):
        with pytest.raises(ParameterError, match="needs the columns in memory"):
            search(ip.as_source(X), k=2, max_correlation=0.5)


def test_an_answer_says_which_rules_held(wine):
    X, names = wine
    groups = {"ash": "minerals", "magnesium": "minerals"}
    options = {
        "max_correlation": 0.5,
        "apart": [("hue", "proline")],
        "groups": groups,
        "per_group": {"minerals": (1, 1)},
    }
    picked = ip.select(X, 4, unit="each", labels=names, **options)
    lines = picked.search.rules
    assert lines[0].startswith("max_correlation=0.5, the largest of a picked pair is 0.")
    assert lines[1:] == ("1 pair not picked together", "groups: 1 of 1 (minerals 1)")
    assert picked.as_dict()["rules"] == list(lines)
    assert all(line in str(picked) and line in picked._repr_html_() for line in lines)
    assert "max_correlation=0.5, apart=[['hue', 'proline']], groups={'ash': 'minerals'" in picked.call
    assert eval(picked.call, {"isopursuit": ip, "X": X, "labels": names}).loss == picked.loss


def test_many_points_average_the_cosines():
    rng = np.random.default_rng(2)
    points = [rng.normal(size=(3, 12)) for _ in range(4)]
    mean = np.mean([cosines(X) for X in points], axis=0)
    for method in ("exact", "exchange", "greedy", "brute"):
        found = ip.select(points, 3, method=method, max_correlation=0.4).search
        assert mean[np.ix_(found.indices, found.indices)].max() <= 0.4
    best = ip.brute_search(points, k=3, max_correlation=0.4)
    assert ip.exact_search(points, k=3, max_correlation=0.4).loss == pytest.approx(best.loss, rel=1e-12)
    assert ip.select(points, max_correlation=0.4).k <= 3
