"""Searches over sources: the array's answers, checked by trying every swap and every subset."""

import itertools

import numpy as np
import pytest
from backends import SOURCES, marked

import isopursuit as ip
from isopursuit._core.clock import Clock
from isopursuit.errors import LabelError, NonFiniteError, ParameterError, RankError, ShapeError
from isopursuit.loss.envelope import relax
from isopursuit.loss.penalty import eigenvalue_loss, eigenvalue_of_loss, log_spectral_loss, stiffness
from isopursuit.search import exchange, pool
from isopursuit.search.proof import cuts, prover
from isopursuit.search.proof import cuts as column_cuts
from isopursuit.sources import tasks

pytest.importorskip("pyarrow")


@pytest.fixture
def small_memory(monkeypatch):
    """Few columns are resident, blocks are short, and pairs and tangents take part."""
    monkeypatch.setattr(pool, "RESIDENT", 12)
    monkeypatch.setattr(exchange, "RESIDENT", 12)
    monkeypatch.setattr(tasks, "PIECE", 100)
    monkeypatch.setattr(tasks, "LEAST_PIECE", 1)
    monkeypatch.setattr(prover, "FEW_COLUMNS", 5)
    monkeypatch.setattr(prover, "DENSE", 2.0)


def problem(seed, largest=5, columns=60):
    """A matrix of some size, lengths, scale of rows and precision; an exponent; columns that must be in, or out."""
    rng = np.random.default_rng(seed)
    D = int(rng.integers(1, largest + 1))
    P = int(rng.integers(D + 6, columns))
    X = rng.normal(size=(D, P)) / np.sqrt(D)
    if seed % 3 == 1:
        X *= np.exp(0.5 * rng.normal(size=P))
    if seed % 3 == 2:
        X *= np.geomspace(0.3, 2, D)[:, None]
    X[:, 3] = 0
    if seed % 7 == 0:
        X[:, 5:8] = X[:, [0, 1, 0]]
    include = rng.choice(np.arange(8, P), int(rng.integers(0, D + 1)), replace=False).tolist() if seed % 4 == 3 else []
    exclude = [i for i in range(0, P, 6) if i not in include] if seed % 5 == 4 else []
    return X.astype(np.float32 if seed % 2 else np.float64), float(rng.choice([0.4, 1.0, 1.0, 3.0])), include, exclude


def log_loss(X, c):
    return float(log_spectral_loss(np.linalg.svd(X, compute_uv=False), c))


def best_swap(X, c, picked, include, exclude):
    """The least log-loss by one swap, trying them all."""
    X = X.astype(np.float64)
    open_to = [p for p in range(X.shape[1]) if p not in picked and p not in exclude and X[:, p].any()]
    out = [i for i, p in enumerate(picked) if p not in include]
    trials = ([*picked[:i], p, *picked[i + 1 :]] for i in out for p in open_to)
    return min((log_loss(X[:, trial], c) for trial in trials), default=np.inf)


@pytest.mark.parametrize("kind", marked(SOURCES))
@pytest.mark.parametrize("seed", range(14))
def test_greedy_picks_what_it_picks_from_the_array(seed, kind, tmp_path):
    X, c, include, exclude = problem(seed, largest=8, columns=900)
    expected = ip.greedy_search(X, c, include=include, exclude=exclude)
    found = ip.greedy_search(SOURCES[kind](X, tmp_path), c, include=include, exclude=exclude)
    assert found.indices.tolist() == expected.indices.tolist()
    assert found.loss == pytest.approx(expected.loss, rel=1e-9)


def test_greedy_ties_go_to_the_lowest_number():
    X = np.random.default_rng(0).normal(size=(4, 3000))
    X /= np.linalg.norm(X, axis=0)
    X[:, 1000:2000] = X[:, :1000]
    assert ip.greedy_search(ip.as_source(X)).indices.tolist() == ip.greedy_search(X).indices.tolist()


@pytest.mark.parametrize("kind", marked(SOURCES))
@pytest.mark.parametrize("seed", range(12))
def test_no_swap_improves_what_exchange_gives(seed, kind, tmp_path, small_memory):
    X, c, include, exclude = problem(seed, largest=5, columns=300)
    found = ip.exchange_search(SOURCES[kind](X, tmp_path), c, include=include, exclude=exclude)
    picked = found.indices.tolist()
    assert set(include) <= set(picked)
    assert not set(exclude) & set(picked)
    assert found.log_loss == pytest.approx(log_loss(X.astype(np.float64)[:, picked], c), rel=1e-9, abs=1e-12)
    assert best_swap(X, c, picked, include, exclude) >= found.log_loss - 1e-9
    assert any("no single swap" in note for note in found.notes)


@pytest.mark.parametrize("seed", range(3))
def test_the_answer_over_a_source_does_not_depend_on_the_order_of_its_columns(seed, small_memory):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 2000)) / np.sqrt(12)
    order = rng.permutation(2000)
    for k in (6, 12):
        found, again = (ip.exchange_search(ip.as_source(one), k=k) for one in (X, X[:, order]))
        assert sorted(order[again.indices].tolist()) == found.indices.tolist()


@pytest.mark.parametrize("kind", marked(SOURCES))
@pytest.mark.parametrize("seed", range(12))
def test_exact_proves_the_arrays_optimum(seed, kind, tmp_path, small_memory):
    X, c, include, exclude = problem(seed)
    expected = ip.exact_search(X, c, include=include, exclude=exclude)
    found = ip.exact_search(SOURCES[kind](X, tmp_path), c, include=include, exclude=exclude, workers=1)
    assert found.optimal
    assert found.loss == pytest.approx(expected.loss, rel=1e-8)
    assert set(include) <= set(found.indices.tolist())
    assert not set(exclude) & set(found.indices.tolist())


@pytest.mark.parametrize("seed", range(100, 300))
def test_nothing_is_excluded_that_a_better_subset_needs(seed, small_memory):
    """Against brute force: bounds of a subset's columns never exceed its loss, whatever the incumbent."""
    X, c, include, _ = problem(seed, largest=4, columns=22)
    D = len(X)
    if D - len(include) < 2:
        return
    best = ip.brute_search(X, c, include=include)
    found = ip.exact_search(ip.as_source(X), c, include=include, workers=1)
    assert found.loss == pytest.approx(best.loss, rel=1e-8)
    # the cuts alone, at weights that are nobody's optimum
    rng = np.random.default_rng(seed)
    Z = X.astype(np.float64)
    incumbent = best.loss * rng.uniform(1, 3)
    relaxation = relax(c, D, incumbent, np.inf)
    included = Z[:, include].T
    cuts = column_cuts.Cuts.initial(included, relaxation, stiffness(c, incumbent - D), D - len(include))
    cuts = cuts.with_tangent(rng.uniform(0, 1, Z.shape[1]), Z)
    scores = cuts.scores(Z)
    free = [p for p in range(Z.shape[1]) if p not in include and Z[:, p].any()]
    for rest in itertools.islice(itertools.combinations(free, D - len(include)), 3000):
        loss = np.exp(min(log_loss(Z[:, [*include, *rest]], c), 600))
        if loss <= incumbent:
            assert (cuts.bases + scores[:, rest].sum(axis=1) <= loss * (1 + 1e-9)).all()


@pytest.mark.parametrize("c", [0.1, 0.5, 1.0, 2.0, 10.0])
@pytest.mark.parametrize("excess", [0.0, 1e-8, 1e-3, 0.3, 20.0])
def test_the_loss_is_above_a_parabola(c, excess):
    rigid = stiffness(c, excess)
    last = eigenvalue_of_loss(1 + excess, c)
    assert 0 < rigid <= c * c / 4
    for point in np.concatenate([np.linspace(1, last, 500), 1 / np.linspace(1, last, 500)]):
        assert eigenvalue_loss(float(point), c) >= 1 + rigid * (point - 1) ** 2 - 1e-12
    if excess <= 1e-8:
        assert rigid > 0.95 * c * c / 4


def test_compatible_pairs_are_what_they_are_by_definition():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3, 80))
    X /= np.linalg.norm(X, axis=0) * rng.uniform(0.9, 1.1, 80)
    own = ((X**2).sum(axis=0) - 1) ** 2
    found = cuts.compatible(X, own, 0.05, 3, Clock.of(None))
    assert found is not None
    inner = 2 * (X.T @ X) ** 2
    good = own[:, None] + own + inner + own.min() < 0.05
    np.fill_diagonal(good, False)
    triples = [
        t
        for t in itertools.combinations(range(80), 3)
        if sum(own[list(t)]) + sum(inner[a, b] for a, b in itertools.combinations(t, 2)) < 0.05
    ]
    edges = set(map(tuple, found.T.tolist()))
    assert triples
    assert edges == {(int(i), int(j)) for i, j in np.argwhere(good) if i < j}
    assert {edge for t in triples for edge in itertools.combinations(t, 2)} <= edges


@pytest.mark.parametrize("kind", marked(["array", "tensor", "dask"]))
def test_a_hidden_basis_is_found_and_proved_among_many(kind, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 120_000)) / np.sqrt(6)
    Q, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    hidden = np.sort(rng.choice(120_000, 6, replace=False))
    X[:, hidden] = Q + 3e-4 * rng.normal(size=(6, 6))
    X = X.astype(np.float32)
    found = ip.exact_search(SOURCES[kind](X, tmp_path), workers=1)
    assert found.status == "optimal"
    assert found.indices.tolist() == hidden.tolist()
    assert found.lower_bound == found.loss


def test_where_nothing_is_proved_it_is_said(monkeypatch):
    X = np.random.default_rng(0).normal(size=(8, 20_000)) / np.sqrt(8)
    monkeypatch.setattr(prover, "RESIDENT", 125)
    monkeypatch.setattr(cuts, "TABLE_BYTES", 64 * 20_000)
    found = ip.exact_search(ip.as_source(X), workers=1)
    assert found.status == "memory"
    assert not found.optimal
    assert any("not proved" in note and "pairs" in note for note in found.notes)
    assert 8 < found.lower_bound < found.loss


def test_columns_that_memory_does_not_hold_are_counted(monkeypatch):
    X = np.random.default_rng(0).normal(size=(8, 20_000)) / np.sqrt(8)
    monkeypatch.setattr(prover, "RESIDENT", 150)
    found = ip.exact_search(ip.as_source(X), memory=0, workers=1)
    assert found.status == "memory"
    assert any("memory" in note for note in found.notes)
    assert 8 < found.lower_bound < found.loss


@pytest.mark.parametrize("kind", marked(SOURCES))
@pytest.mark.parametrize("method", ["greedy", "exchange", "exact"])
def test_standardized_and_projected_on_the_fly(method, kind, tmp_path):
    from isopursuit._core.linalg import row_space

    rng = np.random.default_rng(5)
    X = (rng.normal(size=(4, 4)) @ rng.normal(size=(4, 300)) + 100 * rng.normal(size=(4, 1))).astype(np.float32)
    plain = X.astype(np.float64)
    plain = (plain - plain.mean(axis=1, keepdims=True)) / plain.std(axis=1, keepdims=True)
    search = {"greedy": ip.greedy_search, "exchange": ip.exchange_search, "exact": ip.exact_search}[method]
    for k in (None, 2):
        expected = search(plain if k is None else row_space(plain, k))
        found = search(ip.as_source(SOURCES[kind](X, tmp_path), standardize=True, leading=k))
        assert found.loss == pytest.approx(expected.loss, rel=1e-6)
        if method != "exchange":
            assert found.indices.tolist() == expected.indices.tolist()


@pytest.mark.parametrize("method", ["greedy", "exchange", "exact", "two-stage"])
def test_select_explains_what_it_picked_from_a_source(method):
    X = np.random.default_rng(2).normal(size=(4, 3000)).astype(np.float32) / 2
    found = ip.select(ip.as_source(X), method=method, include=[17])
    assert 17 in found.indices
    assert found.labels == tuple(found.indices.tolist())
    assert found.loss == pytest.approx(ip.isometry_loss(X[:, found.indices]), rel=1e-9)
    if method == "two-stage":
        return
    plain = ip.select(X, method=method, include=[17]) if method != "exchange" else None
    for choice in found.choices:
        picked = [p for p in found.indices.tolist() if p != choice.index]
        swaps = [log_loss(X.astype(np.float64)[:, [*picked, p]], 1.0) for p in range(3000) if p not in found.indices]
        assert choice.price == pytest.approx(np.exp(min(swaps)) - found.loss, rel=1e-6)
    if plain is not None:
        assert [one.replacement for one in plain.choices] == [one.replacement for one in found.choices]


def test_what_cannot_be_done_is_refused_in_plain_words():
    X = np.random.default_rng(0).normal(size=(3, 500))
    source = ip.as_source(X)
    with pytest.raises(ParameterError, match="needs the columns in memory"):
        ip.select(source, method="brute")
    with pytest.raises(ParameterError, match="not recognized"):
        ip.select(source, method="best")
    with pytest.raises(LabelError, match="2 labels for 500 columns"):
        ip.exchange_search(source, labels=["a", "b"])
    with pytest.raises(LabelError, match="not a column"):
        ip.exact_search(source, include=["a"])
    with pytest.raises(ParameterError, match="both included and excluded"):
        ip.exact_search(source, include=[1], exclude=[1])
    with pytest.raises(ParameterError, match="only 3 are picked"):
        ip.exact_search(source, include=[1, 2, 3, 4])
    with pytest.raises(ShapeError, match="Only 2 of 500"):
        ip.greedy_search(source, exclude=range(498))
    flat = X.copy()
    flat[2] = flat[0] + flat[1]
    with pytest.raises(RankError, match="rank 2"):
        ip.exchange_search(ip.as_source(flat))
    with pytest.raises(RankError, match="included columns"):
        ip.exact_search(ip.as_source(np.hstack([X, X[:, :1]])), include=[0, 500])
    X[1, 7] = np.nan
    with pytest.raises(NonFiniteError, match="7"):
        ip.greedy_search(ip.as_source(X))


def test_large_exponents_are_compared_by_logarithms():
    X = 2 * np.random.default_rng(0).normal(size=(5, 400))
    assert ip.greedy_search(ip.as_source(X), 10.0).indices.tolist() == ip.greedy_search(X, 10.0).indices.tolist()
    found = ip.exchange_search(ip.as_source(X), 10.0)
    assert best_swap(X, 10.0, found.indices.tolist(), [], []) >= found.log_loss * (1 - 1e-9)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("method", ["auto", "two-stage", "exact", "exchange", "greedy"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fewer_columns_than_rows_are_picked_from_a_tensor(method, dtype):
    X = np.random.default_rng(0).normal(size=(16, 50)).astype(dtype)
    given = pytest.importorskip("torch").from_numpy(X)
    found, expected = (ip.select(one, 8, method=method, unit="median", time_limit=2) for one in (given, X))
    assert len(set(found.indices.tolist())) == 8
    if found.search.optimal and expected.search.optimal:
        assert found.loss == pytest.approx(expected.loss, rel=1e-6)
    length = found.search.unit_length.length
    assert found.loss == pytest.approx(ip.isometry_loss(X[:, found.indices] / length), rel=1e-6)
