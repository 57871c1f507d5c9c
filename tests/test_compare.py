"""The other methods of `compare` against naive implementations, and the table that it makes."""

import itertools

import numpy as np
import pytest

import isopursuit as ip
from isopursuit import peers
from isopursuit.errors import ParameterError


def problem(seed, D, P):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(D, P)) * np.exp(0.5 * rng.uniform(-1, 1, P))


def volume(S):
    return np.sqrt(max(np.linalg.det(S.T @ S), 0.0))


def greedy_volume(X, k):
    """Each time the column that makes the volume largest, computed anew."""
    picked = []
    for _ in range(k):
        rest = [p for p in range(X.shape[1]) if p not in picked]
        picked.append(max(rest, key=lambda p: volume(X[:, [*picked, p]])))
    return sorted(picked)


SIZES = [(3, 8, 3), (5, 20, 3), (6, 9, 6), (8, 12, 5), (4, 30, 1)]


@pytest.mark.parametrize(("D", "P", "k"), SIZES)
@pytest.mark.parametrize("seed", range(4))
def test_pivoted_qr_and_the_greedy_dpp_make_the_volume_grow_fastest(seed, D, P, k):
    X = problem(seed, D, P)
    assert peers.pivoted_qr(X, k).tolist() == greedy_volume(X, k)
    if k > 1:  # the first is a matter of rounding where all have length 1
        unit = X / np.linalg.norm(X, axis=0)
        picked = peers.greedy_dpp(X, k).tolist()
        assert 0 in picked
        chosen = [0]
        while len(chosen) < k:
            rest = [p for p in range(P) if p not in chosen]
            chosen.append(max(rest, key=lambda p: volume(unit[:, [*chosen, p]])))
        assert picked == sorted(chosen)


@pytest.mark.parametrize(("D", "P", "k"), SIZES)
@pytest.mark.parametrize("seed", range(4))
def test_after_maxvol_no_swap_raises_the_volume_by_a_percent(seed, D, P, k):
    X = problem(seed, D, P)
    picked = peers.maxvol(X, k).tolist()
    now = volume(X[:, picked])
    assert now >= volume(X[:, peers.pivoted_qr(X, k)]) * (1 - 1e-12)
    for out, new in itertools.product(picked, sorted(set(range(P)) - set(picked))):
        assert volume(X[:, [*(i for i in picked if i != out), new]]) <= 1.01 * now * (1 + 1e-9)


@pytest.mark.parametrize(("D", "P", "k"), SIZES)
@pytest.mark.parametrize("seed", range(4))
def test_the_correlation_filter_keeps_k_at_the_lowest_threshold(seed, D, P, k):
    X = problem(seed, D, P)
    unit = X / np.linalg.norm(X, axis=0)
    cosines = np.abs(unit.T @ unit)

    def kept(threshold):
        found = []
        for p in np.argsort(-np.linalg.norm(X, axis=0), kind="stable").tolist():
            if all(cosines[p, q] <= threshold for q in found):
                found.append(p)
        return found

    picked = peers.correlation_filter(X, k).tolist()
    thresholds = [0.0, *sorted(cosines[np.triu_indices(P, 1)].tolist())]
    # kept() changes at these alone; bisection ends at a threshold where fewer than k are kept just below
    assert any(sorted(kept(t * (1 + 1e-12))[:k]) == picked and len(kept(t * (1 + 1e-12))) >= k for t in thresholds)
    largest = max((cosines[i, j] for i, j in itertools.combinations(picked, 2)), default=0.0)
    assert k == 1 or len(kept(largest - 1e-6)) < k or len(kept(largest)) > k


def test_each_row_has_the_loss_and_the_cosines_of_its_columns():
    X = problem(1, 5, 20) / 2
    found = ip.compare(X, 3, c=0.7, draws=11)
    for row in found.rows:
        S = X[:, row.indices]
        assert row.loss == pytest.approx(ip.isometry_loss(S, 0.7))
        unit = S / np.linalg.norm(S, axis=0)
        cosines = [abs(unit[:, i] @ unit[:, j]) for i, j in itertools.combinations(range(3), 2)]
        assert (row.largest_cosine, row.mean_cosine) == pytest.approx((max(cosines), np.mean(cosines)))
        assert row.seconds >= 0
    assert found["exact"].proof == "proved optimal"
    assert found.best.loss == pytest.approx(ip.brute_search(X, 0.7, k=3).loss)
    assert all(row.loss >= found["exact"].loss * (1 - 1e-9) for row in found.rows)
    best, median = found["random, best of 11"], found["random, median of 11"]
    draws = peers.random_draws(20, 3, 11, np.random.default_rng(0))
    losses = sorted(ip.isometry_loss(X[:, one], 0.7) for one in draws)
    assert (best.loss, median.loss) == pytest.approx((losses[0], losses[5]))


def test_labels_frames_points_and_zero_columns():
    X = problem(2, 3, 12)
    X[:, 0] = 0
    names = [f"v{i}" for i in range(12)]
    found = ip.compare(X, labels=names)
    assert all(row.labels == tuple(names[i] for i in row.indices) for row in found.rows)
    assert all(0 not in row.indices for row in found.rows)
    points = np.stack([problem(seed, 3, 10) for seed in range(2)])
    joint = ip.compare(points, 2)
    assert joint.ideal == 4
    for row in joint.rows:
        assert row.loss == pytest.approx(sum(ip.isometry_loss(one[:, row.indices]) for one in points))
    with pytest.raises(ParameterError, match="in memory"):
        ip.compare(ip.as_source(X))


def test_a_comparison_shows_itself():
    found = ip.compare(problem(3, 3, 8), labels=[f"<{i}>" for i in range(8)])
    assert len(str(found).splitlines()) == len(found.rows) + 2
    assert all(
        head in str(found).splitlines()[1] for head in ("loss", "largest |cos|", "mean |cos|", "seconds", "proof")
    )
    answer = found.as_dict()
    assert [row["method"] for row in answer["rows"]][:4] == ["greedy", "two-stage", "exchange", "exact"]
    assert "pivoted QR" in found._repr_html_()


def test_dependent_columns_have_an_infinite_loss():
    """A filter may keep columns that are dependent together, though no two of them are alike."""
    X = np.array([[3.0, 0.0, 2.0, 0.1], [0.0, 3.0, 2.0, 0.1], [0.0, 0.0, 0.0, 0.1]])
    row = ip.compare(X)["correlation filter"]
    assert row.indices.tolist() in ([0, 1, 2], [0, 1, 3])
    assert (row.log_loss > 30) == (row.indices.tolist() == [0, 1, 2])
