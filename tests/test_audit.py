"""Given columns are judged as all subsets, written out, judge them."""

import itertools

import numpy as np
import pytest

import isopursuit as ip
from isopursuit.errors import LabelError, ParameterError, RankError


def problem(seed, D, P):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(D, P)) / np.sqrt(D) * np.exp(0.5 * rng.uniform(-1, 1, P))


def loss(X, columns, c=1.0):
    """By the definition, of one matrix or summed over points."""
    points = X if np.ndim(X) == 3 else [X]
    return sum(ip.isometry_loss(point[:, list(columns)], c) for point in points)


def swaps(X, given, c=1.0, include=(), exclude=()):
    """All single swaps: the loss after each."""
    P = np.shape(X)[-1]
    outs = [i for i in given if i not in include]
    ins = [p for p in range(P) if p not in given and p not in exclude]
    return {(out, new): loss(X, [*(i for i in given if i != out), new], c) for out, new in itertools.product(outs, ins)}


@pytest.mark.parametrize("seed", range(12))
def test_an_audit_is_what_brute_force_says(seed):
    rng = np.random.default_rng(seed)
    D, P = int(rng.integers(2, 6)), int(rng.integers(7, 12))
    k, c = int(rng.integers(1, D + 1)), float(rng.choice([0.5, 1.0, 2.0]))
    X, given = problem(seed, D, P), np.sort(rng.choice(P, k, replace=False)).tolist()
    best = ip.brute_search(X, c, k=k)
    found = ip.audit(X, rng.permutation(given), c)
    assert found.indices.tolist() == given
    assert found.loss == pytest.approx(loss(X, given, c))
    assert found.lower_bound == pytest.approx(best.loss)
    assert found.best.optimal
    assert found.best.loss == pytest.approx(best.loss)
    assert found.excess == pytest.approx(found.loss / best.loss - 1, rel=1e-9, abs=1e-9)
    assert found.gap == pytest.approx(1 - best.loss / found.loss, abs=1e-9)
    assert found.optimal == (found.excess < 1e-9)
    table = swaps(X, given, c)
    out, new = min(table, key=table.__getitem__)
    assert (found.swap.out, found.swap.into) == (out, new)
    assert found.swap.loss == pytest.approx(table[out, new])
    assert found.swap.indices.tolist() == sorted({*given, new} - {out})


def test_the_best_subset_is_proved_optimal_when_it_is_given():
    X = problem(0, 4, 30)
    best = ip.exact_search(X)
    found = ip.audit(X, best.indices)
    assert found.optimal
    assert found.verdict == "proved optimal"
    assert found.gap == 0


def test_columns_that_must_or_must_not_be_picked():
    X, given = problem(3, 4, 12), [1, 4, 6, 9]
    found = ip.audit(X, given, include=[1, 6], exclude=[0, 2])
    allowed = [s for s in itertools.combinations(range(12), 4) if {1, 6} <= set(s) and not {0, 2} & set(s)]
    assert found.lower_bound == pytest.approx(min(loss(X, s) for s in allowed))
    table = swaps(X, given, include=[1, 6], exclude=[0, 2])
    assert (found.swap.out, found.swap.into) == min(table, key=table.__getitem__)
    with pytest.raises(ParameterError, match="include names columns that are not given: 3"):
        ip.audit(X, given, include=[3])
    with pytest.raises(ParameterError, match="exclude names columns that are given: 4"):
        ip.audit(X, given, exclude=[4])


def test_rules_hold_for_the_given_columns_and_for_those_they_are_compared_with():
    X, given = problem(3, 4, 12), [1, 4, 6, 9]
    found = ip.audit(X, given, apart=[(0, 2)], groups=dict.fromkeys(range(3, 8), "a"), per_group=2)
    allowed = [
        s for s in itertools.combinations(range(12), 4)
        if not {0, 2} <= set(s) and len(set(s) & set(range(3, 8))) <= 2
    ]  # fmt: skip
    assert found.lower_bound == pytest.approx(min(loss(X, s) for s in allowed))
    assert found.call.endswith("per_group=2)")
    with pytest.raises(ParameterError, match=r"given columns 1, 4, 6, 9 break apart=\."):
        ip.audit(X, given, apart=[(1, 4)])


def test_labels_many_points_and_sources_are_judged_alike():
    X = problem(1, 3, 15)
    names = [f"v{i}" for i in range(15)]
    plain, named = ip.audit(X, [0, 5, 7]), ip.audit(X, ["v7", "v0", "v5"], labels=names)
    assert named.labels == ("v0", "v5", "v7")
    assert named.swap.out == f"v{plain.swap.out}"
    assert named.best_labels == tuple(f"v{i}" for i in plain.best.indices)
    source = ip.audit(ip.as_source(X), [0, 5, 7])
    assert (source.loss, source.lower_bound) == (plain.loss, pytest.approx(plain.lower_bound))
    assert source.swap.indices.tolist() == plain.swap.indices.tolist()
    points = np.stack([problem(seed, 3, 10) for seed in range(3)])
    joint = ip.audit(points, [1, 2, 3])
    assert joint.loss == pytest.approx(loss(points, [1, 2, 3]))
    assert joint.lower_bound == pytest.approx(min(loss(points, s) for s in itertools.combinations(range(10), 3)))
    table = swaps(points, [1, 2, 3])
    assert joint.swap.loss == pytest.approx(min(table.values()))
    assert f"no subset is below {joint.lower_bound / 3:.6g}\n" in str(joint)  # a point, as the loss


def test_all_columns_and_one_column():
    X = problem(2, 5, 4)
    found = ip.audit(X, range(4))
    assert found.optimal
    assert found.swap is None
    assert "best swap: none" in str(found)
    one = ip.audit(X, 2)
    assert one.k == 1
    assert one.lower_bound == pytest.approx(min(loss(X, [i]) for i in range(4)))


def test_what_cannot_be_judged_is_refused():
    X = problem(0, 3, 9)
    X[:, 4] = X[:, 0] - 2 * X[:, 1]
    X[:, 8] = 0
    names = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota"]
    for columns, error, words in (
        (["alpha", "beta", "alpha"], ParameterError, "more than once: alpha"),
        (["alpha", 0], ParameterError, "more than once: alpha"),
        (["alpha", "beta", "epsilon"], RankError, "linearly dependent: alpha, beta, epsilon"),
        (["gamma", "iota"], RankError, "zero: iota"),
        (names[:4], RankError, "4 columns of 3 entries"),
        (["alpha", "gama"], LabelError, "Did you mean 'gamma'"),
        ([], ParameterError, "is empty"),
    ):
        with pytest.raises(error, match=words):
            ip.audit(X, columns, labels=names)
    with pytest.raises(ParameterError, match="more than once: 3"):
        ip.audit(ip.as_source(X), [3, 3, 1])


def test_a_column_that_repeats_another_is_judged():
    """The search drops one of two equal columns; the answer is still not worse than what was given."""
    X = problem(5, 4, 40)
    X[:, 30] = X[:, 3]
    found = ip.audit(X, [3, 1, 2, 0])
    twin = ip.audit(X, [30, 1, 2, 0])
    assert twin.loss == pytest.approx(found.loss)
    assert twin.lower_bound == pytest.approx(found.lower_bound)
    assert twin.best.loss <= twin.loss


def test_a_stopped_audit_has_a_valid_bound_and_is_not_worse_than_what_was_given():
    X = problem(7, 10, 400)
    known = ip.exchange_search(X, time_limit=5)
    found = ip.audit(X, known.indices, time_limit=0.3)
    assert found.best.log_loss <= known.log_loss + 1e-12
    assert 10 <= found.lower_bound <= found.best.loss
    assert not found.optimal
    seen = []
    ip.audit(X, known.indices, callback=lambda now: seen.append(now.incumbent) or True)
    assert seen[0] <= known.loss * (1 + 1e-12)  # the search begins with the given columns


def test_losses_beyond_bounds_are_judged_without_one():
    X = 30 * problem(0, 3, 60)
    found = ip.audit(X, [0, 1, 2], c=5)
    assert found.lower_bound == 3
    assert found.best.log_loss <= found.log_loss
    assert "e^" in str(found)
    assert any("too large for lower bounds" in note for note in found.notes)
    assert any("c=20" in note for note in ip.audit(X / 30, [0, 1, 2], c=20).notes)


@pytest.mark.parametrize(
    ("unit", "said"), [(None, "as given"), (2, "length 2 = 1"), ("median", "median length "), ("each", "each column")]
)
def test_an_audit_says_which_length_counts_as_1(unit, said):
    X = problem(0, 3, 9)
    found = ip.audit(X, [0, 1, 2], unit=unit)
    assert found.unit == ip.select(X, unit=unit).unit
    assert found.unit.startswith(said)
    assert f"unit: {found.unit}" in str(found)
    assert found.unit in found._repr_html_()
    assert found.as_dict()["unit"] == found.unit


def test_an_audit_shows_itself(tmp_path):
    pytest.importorskip("jinja2")
    X = problem(0, 3, 9)
    names = [f"<v{i}>" for i in range(9)]
    found = ip.audit(X, [0, 1, 2], labels=names)
    answer = found.as_dict()
    assert answer["labels"] == names[:3]
    assert answer["swap"]["in"] == found.swap.into
    assert answer["best"]["status"] == "optimal"
    assert found.verdict in str(found)
    html = found._repr_html_()
    assert "&lt;v0&gt;" in html
    assert "<v0>" not in html
    page = found.to_html(tmp_path / "r.html", X=X)
    assert "Your subset" in page
    assert "isopursuit.audit(X, [0, 1, 2], labels=labels)" in page
    assert "<v" not in page
