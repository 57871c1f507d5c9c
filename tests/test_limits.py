"""A time limit is refused or kept in the same way everywhere, and what is proved when it is over is finite and true."""

import time
import tracemalloc

import numpy as np
import pytest

import isopursuit as ip
from isopursuit._core.clock import Clock
from isopursuit.errors import ParameterError
from isopursuit.search.local import large_volume

SMALL = np.random.default_rng(0).normal(size=(3, 12)) / np.sqrt(3)
METHODS = ("two-stage", "exact", "exchange", "greedy", "brute")


def _fitted(X, limit):
    pytest.importorskip("sklearn")
    from isopursuit.estimators import IsometryFeatureSelector

    return IsometryFeatureSelector(time_limit=limit).fit(X.T)


CALLS = {
    "isometry_pursuit": lambda X, t: ip.isometry_pursuit(X, time_limit=t),
    "isometry_pursuit, source": lambda X, t: ip.isometry_pursuit(ip.as_source(X), time_limit=t),
    "basis_pursuit": lambda X, t: ip.basis_pursuit(X, time_limit=t),
    "basis_pursuit, source": lambda X, t: ip.basis_pursuit(ip.as_source(X), time_limit=t),
    "lasso_path": lambda X, t: ip.lasso_path(X, time_limit=t),
    "exact_search": lambda X, t: ip.exact_search(X, time_limit=t),
    "exact_search, source": lambda X, t: ip.exact_search(ip.as_source(X), time_limit=t),
    "exchange_search": lambda X, t: ip.exchange_search(X, time_limit=t),
    "exchange_search, source": lambda X, t: ip.exchange_search(ip.as_source(X), time_limit=t),
    "greedy_search": lambda X, t: ip.greedy_search(X, time_limit=t),
    "greedy_search, source": lambda X, t: ip.greedy_search(ip.as_source(X), time_limit=t),
    "brute_search": lambda X, t: ip.brute_search(X, time_limit=t),
    "select_pointwise": lambda X, t: ip.select_pointwise(X[None], time_limit=t),
    "IsometryFeatureSelector": _fitted,
    **{f"select, {m}": lambda X, t, m=m: ip.select(X, method=m, time_limit=t) for m in METHODS},
    **{
        f"select, {m}, source": lambda X, t, m=m: ip.select(ip.as_source(X), method=m, time_limit=t)
        for m in METHODS[:4]
    },
}


@pytest.mark.parametrize("limit", [-1, 0, float("nan"), float("inf"), -float("inf"), "5", True, [1.0]], ids=repr)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_limit_that_is_no_positive_number_of_seconds_is_refused_in_the_same_words(call, limit):
    with pytest.raises(ParameterError, match=r"time_limit=.* is not a positive number of seconds"):
        call(SMALL, limit)


@pytest.mark.parametrize("limit", [None, 3, 3.5, np.float32(3), np.int64(3)], ids=repr)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_none_and_positive_numbers_of_any_kind_are_limits(call, limit):
    call(SMALL, limit)


def tables():
    rng = np.random.default_rng(3)
    yield "gauss", rng.normal(size=(24, 6000)) / np.sqrt(24)
    yield "lattice", rng.integers(-2, 3, (16, 5000)) / 3.0
    sparse = np.zeros((20, 8000))
    sparse[rng.integers(0, 6, 8000), np.arange(8000)] = rng.uniform(0.5, 2, 8000)
    sparse[:, [17, 999, 4001, 7990]] += rng.normal(size=(20, 4))
    sparse[:, 5000:5020] = np.eye(20)  # what no sample of the columns shows
    yield "rare directions", sparse


TABLES = dict(tables())


def certificate_holds(found, X):
    """Dual feasible over all columns, and dual ≤ primal, both finite, from the caller's columns alone."""
    normalized = ip.symmetric_normalize(X)
    proof = found.certificate
    assert np.isfinite([proof.primal, proof.dual, proof.gap]).all()
    slopes = np.linalg.norm(found.dual.T @ normalized, axis=0)
    assert slopes.max() <= 1 + 1e-9
    assert np.trace(found.dual) == pytest.approx(proof.dual, rel=1e-9)
    assert proof.dual <= proof.primal * (1 + 1e-12)
    assert np.linalg.norm(normalized @ found.coefficients - np.eye(len(X))) < 1e-6


@pytest.mark.parametrize("source", [False, True])
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("limit", [1e-6, 0.05])
def test_a_pursuit_that_is_stopped_has_a_finite_certificate_over_all_columns(name, limit, source):
    X = TABLES[name]
    certificate_holds(ip.isometry_pursuit(ip.as_source(X) if source else X, time_limit=limit), X)


def test_a_pursuit_of_many_rows_is_stopped_between_two_steps_of_a_solver():
    X = np.random.default_rng(5).normal(size=(128, 4000)) / np.sqrt(128)
    began = time.perf_counter()
    found = ip.isometry_pursuit(X, time_limit=0.02)
    assert found.status == "stopped"
    assert time.perf_counter() - began < 30  # to the end it takes minutes
    certificate_holds(found, X)


@pytest.mark.parametrize("method", METHODS[:4])
@pytest.mark.parametrize("source", [False, True])
@pytest.mark.parametrize("name", TABLES)
def test_a_search_that_is_stopped_answers_with_its_loss_and_a_bound(name, source, method):
    X = TABLES[name]
    found = ip.select(ip.as_source(X) if source else X, method=method, time_limit=0.02)
    D = len(X)
    assert len(np.unique(found.indices)) == D
    assert found.log_loss == pytest.approx(ip.log_isometry_loss(X[:, found.indices]), rel=1e-6)
    assert D * (1 - 1e-12) <= found.search.lower_bound <= found.loss  # the best have a loss of D, up to rounding
    assert found.search.status in ("time", "heuristic", "optimal", "gap")
    priced = [one for one in found.choices if not np.isnan(one.price)]
    if len(priced) < D:
        assert any("prices of" in note for note in found.notes)
    for one in priced[:3]:
        if one.replacement is not None:
            swapped = [one.replacement if i == one.index else i for i in found.indices.tolist()]
            loss = ip.isometry_loss(X[:, swapped])
            assert loss - found.loss == pytest.approx(one.price, rel=1e-5, abs=1e-6 * loss)


def test_brute_force_stopped_early_claims_nothing():
    X = np.random.default_rng(1).normal(size=(4, 80)) / 2
    found = ip.brute_search(X, time_limit=1e-6)
    assert found.status == "time"
    assert found.lower_bound == 4
    assert 0 < found.evaluations < 1_581_580
    assert ip.brute_search(X[:, :20], time_limit=60).optimal


def test_a_lasso_path_stopped_early_ends_with_the_penalties_reached():
    X = TABLES["gauss"]
    path = ip.lasso_path(X, penalties=200, time_limit=0.1)
    assert 1 <= len(path) < 200
    assert all(np.isfinite(found.certificate.gap) for found in path)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("include", [(), (3, 4999)])
def test_columns_of_large_volume_span_however_little_time_there_is(name, include):
    X = TABLES[name]
    subset = large_volume(X[None], include, len(X), Clock(time.perf_counter() - 2, 1.0))
    assert list(subset[: len(include)]) == list(include)
    assert np.linalg.matrix_rank(X[:, subset]) == len(X)


@pytest.mark.long
@pytest.mark.parametrize("method", ["auto", "two-stage", "exchange", "greedy"])
@pytest.mark.parametrize(
    ("shape", "k"), [((1000, 3000), None), ((1500, 3000), 700), ((3000, 1200), 700), ((1600, 3000), 1500)]
)
def test_a_limit_is_kept_if_many_columns_are_picked(shape, k, method):
    """Each factorization takes seconds, so that the rank, rotations and isometry pursuit are skipped."""
    X = np.random.default_rng(0).standard_normal(shape, dtype=np.float32) / np.float32(shape[0] ** 0.5)
    began = time.perf_counter()
    found = ip.select(X, k, method=method, time_limit=4)
    assert time.perf_counter() - began < 25
    assert len(set(found.indices.tolist())) == (k or shape[0])
    assert found.log_loss < np.inf
    if method == "two-stage":
        assert any("isometry pursuit takes" in note for note in found.notes)


@pytest.mark.long
@pytest.mark.parametrize("method", ["auto", "two-stage", "exact", "greedy"])
@pytest.mark.parametrize("k", [None, 50])
def test_a_limit_is_kept_over_a_file_of_embeddings(tmp_path, k, method):
    values = np.random.default_rng(0).standard_normal((384, 150_000), dtype=np.float32)
    np.save(tmp_path / "emb.npy", values / np.float32(384**0.5))
    del values
    began = time.perf_counter()
    found = ip.select(str(tmp_path / "emb.npy"), k, method=method, time_limit=4)
    assert time.perf_counter() - began < 20
    assert len(set(found.indices.tolist())) == (k or 384)
    if method == "two-stage":
        assert any("isometry pursuit takes" in note for note in found.notes)


@pytest.mark.long
@pytest.mark.parametrize(("k", "copies"), [(None, 7), (20, 3.5)])
def test_the_limit_of_a_selector_of_samples_includes_its_preparation_and_a_table_is_not_copied_often(k, copies):
    pytest.importorskip("sklearn")
    from isopursuit.estimators import IsometrySampleSelector

    table = np.random.default_rng(0).standard_normal((100_000, 384), dtype=np.float32)
    tracemalloc.start()
    try:
        began = time.perf_counter()
        fitted = IsometrySampleSelector(k, time_limit=5).fit(table)
        seconds, (_, peak) = time.perf_counter() - began, tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert seconds < 20
    assert peak < copies * 8 * table.size  # copies in float64; for as many samples as features the kernels have theirs
    nearest = np.linalg.norm(table[:100, None] - fitted.samples_, axis=2).argmin(axis=1)
    np.testing.assert_array_equal(fitted.labels_[:100], nearest)
    np.testing.assert_array_equal(fitted.predict(table[:100]), nearest)


@pytest.mark.long
@pytest.mark.parametrize(
    ("shape", "k", "kind"),
    [
        ((384, 60_000), 50, "array"),
        ((384, 60_000), 50, "source"),
        ((384, 60_000), None, "source"),
        ((384, 5_000), None, "array"),
    ],
)
def test_a_callback_is_called_many_times_in_each_second(shape, k, kind):
    X = np.random.default_rng(0).standard_normal(shape, dtype=np.float32) / np.float32(shape[0] ** 0.5)
    seen = []
    ip.select(
        ip.as_source(X) if kind == "source" else X, k, time_limit=5, callback=lambda now: seen.append(now.seconds)
    )
    assert len(seen) >= 8
    assert np.median(np.diff(seen)) < 0.5


def test_a_callback_ends_a_pass_over_a_source():
    X = np.random.default_rng(0).standard_normal((256, 60_000), dtype=np.float32) / np.float32(16)
    began = time.perf_counter()
    found = ip.exchange_search(ip.as_source(X), k=30, callback=lambda now: now.seconds > 0.3)
    assert found.status == "interrupted"
    assert time.perf_counter() - began < 20  # to the end it takes minutes
    assert len(set(found.indices.tolist())) == 30


def test_columns_of_large_volume_are_independent_although_few_columns_are():
    X = np.repeat(np.random.default_rng(0).normal(size=(1, 30, 4)), 50, axis=2)
    X[0, :, -30:] += 1e-5 * np.eye(30)
    for resident in (1024, 10):
        with pytest.MonkeyPatch.context() as fewer:
            fewer.setattr("isopursuit.search.local.RESIDENT", resident)
            assert np.linalg.matrix_rank(X[0][:, large_volume(X, [], 30)]) == 30
