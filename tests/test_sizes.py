"""What a call accepts, and what it answers, does not depend on whether an array is large and read in passes."""

import numpy as np
import pytest

import isopursuit as ip
from isopursuit.errors import IsoPursuitError
from isopursuit.pursuit.streamed import SOURCE_ENTRIES as PURSUED
from isopursuit.search.settings import SOURCE_ENTRIES as SEARCHED

METHODS = ("auto", "two-stage", "exact", "exchange", "greedy", "brute")
D, P, K = 4, 100, 2  # a small problem, which also brute force solves, with enough columns for the pursuit in passes


def columns(P, D=D):
    rng = np.random.default_rng(P)
    X = rng.normal(size=(D, P)) / np.sqrt(D) * np.exp(0.3 * rng.uniform(-1, 1, P))
    X[:, 40:43] = X[:, 10:13]  # repeated columns
    X[:, 17] = 0.0
    return X


X = columns(P)
BEST = ip.brute_search(X, k=K).indices.tolist()
LABELS = [f"x{p}" for p in range(P)]
PLANES = X.copy()
PLANES[1:] = 0.0  # of rank 1


def frame(X, names):
    return pytest.importorskip("pandas").DataFrame(X, columns=names)


OPTIONS = {
    "no option": {},
    "include": {"include": [3]},
    "include all": {"include": [3, 7]},
    "exclude": {"exclude": BEST},
    "exclude an array": {"exclude": np.array(BEST)},
    "exclude by a mask": {"exclude": np.isin(np.arange(P), BEST)},
    "exclude a set": {"exclude": set(BEST)},
    "exclude from the end": {"exclude": [one - P for one in BEST]},
    "exclude one": {"exclude": BEST[0]},
    "exclude most": {"exclude": range(20, P)},
    "both": {"include": [3], "exclude": [*BEST, 17]},
    "labels": {"labels": LABELS, "include": ["x3"], "exclude": [f"x{one}" for one in BEST]},
    "c=0.5": {"c": 0.5, "exclude": BEST},
    "c=2": {"c": 2.0},
    "unit=median": {"unit": "median", "exclude": BEST},
    "unit=each": {"unit": "each", "exclude": BEST},
    "unit=2": {"unit": 2.0},
    "aggregate": {"aggregate": "trimmed"},
    "no limit": {"time_limit": None},
    "all rows": {"k": D, "include": [3, 7], "exclude": BEST},
    "k=None": {"k": None, "include": [3, 7]},
    "one column": {"k": 1, "exclude": BEST},
    "callback": {"callback": lambda now: None},
    "progress": {"progress": True},
}
MATRICES = {
    "float32": X.astype(np.float32),
    "integers": np.round(10 * X).astype(int),
    "numbers as objects": X.astype(object),
    "lists": X.tolist(),
    "columns in a row": np.asfortranarray(X),
    "every second": np.repeat(X, 2, axis=1)[:, ::2],
    "masked array": np.ma.masked_array(X),
    "more rows than columns": np.vstack([X[:, :50]] * 15),
    "read-only": np.broadcast_to(X, X.shape),
}
REFUSED = {
    "column both included and excluded": {"include": [1], "exclude": [1]},
    "unknown label": {"include": ["a"]},
    "number out of range": {"exclude": [P]},
    "number that is not whole": {"exclude": [1.5]},
    "short mask": {"include": np.ones(3, dtype=bool)},
    "too many included": {"include": [1, 2, 3]},
    "included zero column": {"include": [17]},
    "included copies": {"include": [10, 40]},
    "too many excluded": {"exclude": range(1, P)},
    "k=0": {"k": 0},
    "k above the rows": {"k": D + 1},
    "k=2.5": {"k": 2.5},
    "too few labels": {"labels": ["a"]},
    "unknown unit": {"unit": "mean"},
    "negative gap": {"gap": -1.0},
    "c=-1": {"c": -1.0},
    "NaN": {"X": np.where(np.arange(P) == 60, np.nan, X)},
    "infinity": {"X": np.where(np.arange(P) == 60, np.inf, X)},
    "text": {"X": np.full(X.shape, "a")},
    "complex": {"X": 1j * X},
    "dependent columns": {"X": PLANES},
    "missing entries": {"X": np.ma.masked_array(X, np.arange(D * P).reshape(D, P) == 7)},
}


@pytest.fixture
def at_each_size(monkeypatch):
    """The answers of a call below and above both sizes from which on arrays are read in passes."""

    def answers(call):
        found = []
        for entries in (2**40, 1):
            monkeypatch.setattr("isopursuit.search.problem.SOURCE_ENTRIES", entries)
            monkeypatch.setattr("isopursuit.pursuit.streamed.SOURCE_ENTRIES", entries)
            try:
                found.append(call())
            except IsoPursuitError as error:
                found.append(type(error))
        return found

    return answers


def same(small, large):
    """Both are the same answer, or the same kind of error."""
    if isinstance(small, type) or isinstance(large, type):
        assert small is large
        return
    assert small.indices.tolist() == large.indices.tolist()
    assert small.loss == pytest.approx(large.loss, rel=1e-6)
    assert small.labels == large.labels


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_an_option_of_select_gives_the_same_answer_at_any_size(at_each_size, options, method):
    small, large = at_each_size(lambda: ip.select(X, **{"k": K, "method": method, **options}))
    assert not isinstance(small, type)
    same(small, large)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES)
def test_a_matrix_of_any_kind_gives_the_same_answer_at_any_size(at_each_size, matrix, method):
    small, large = at_each_size(lambda: ip.select(matrix, K, method=method, exclude=[1]))
    assert not isinstance(small, type)
    same(small, large)


@pytest.mark.parametrize("method", METHODS)
def test_a_gap_is_kept_at_any_size(at_each_size, method):
    best = ip.brute_search(X, k=K).loss
    for found in at_each_size(lambda: ip.select(X, K, method=method, gap=0.1)):
        assert best <= found.loss * (1 + 1e-9)
        if found.search.status == "gap":
            assert found.loss * 0.9 <= best


@pytest.mark.needs("pandas")
@pytest.mark.parametrize("method", METHODS)
def test_a_data_frame_gives_the_same_answer_at_any_size(at_each_size, method):
    options = {"method": method, "include": ["x3"], "exclude": [f"x{one}" for one in BEST]}
    small, large = at_each_size(lambda: ip.select(frame(X, LABELS), K, **options))
    assert not isinstance(small, type)
    same(small, large)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("options", REFUSED.values(), ids=REFUSED)
def test_what_is_refused_is_refused_at_any_size(at_each_size, options, method):
    given = {"X": X, "k": K, "method": method, **options}
    small, large = at_each_size(lambda: ip.select(**given))
    assert isinstance(small, type)
    assert small is large


SEARCHES = {
    "exact": (ip.exact_search, {"node_limit": 10**6, "workers": 1, "gap": 0.0, "memory": 2**20}),
    "exchange": (ip.exchange_search, {"starts": 8, "kicks": 50, "rng": 3, "memory": 2**20}),
    "greedy": (ip.greedy_search, {"time_limit": 60.0}),
    "brute": (ip.brute_search, {}),
}


@pytest.mark.parametrize("restriction", ["no option", "exclude", "labels", "unit=each", "all rows", "exclude most"])
@pytest.mark.parametrize(("search", "options"), SEARCHES.values(), ids=SEARCHES)
def test_a_search_gives_the_same_answer_at_any_size(at_each_size, search, options, restriction):
    small, large = at_each_size(lambda: search(X, **{"k": K, **options, **OPTIONS[restriction]}))
    assert not isinstance(small, type)
    same(small, large)


PURSUITS = {
    "no option": {},
    "labels": {"labels": LABELS},
    "k": {"k": K},
    "c": {"c": 2.0},
    "penalty": {"penalty": 0.1},
    "memory": {"memory": 2**24},
    "objects": {"X": X.astype(object)},
    "float32": {"X": X.astype(np.float32)},
}


@pytest.mark.parametrize("options", PURSUITS.values(), ids=PURSUITS)
def test_an_option_of_isometry_pursuit_gives_the_same_answer_at_any_size(at_each_size, options):
    small, large = at_each_size(lambda: ip.isometry_pursuit(**{"X": X, **options}))
    assert not isinstance(small, type)
    assert not isinstance(large, type)
    assert small.objective == pytest.approx(large.objective, rel=1e-8)
    assert small.tied.tolist() == large.tied.tolist()
    assert small.labels == large.labels


@pytest.mark.long
@pytest.mark.parametrize("method", METHODS[:-1])
@pytest.mark.parametrize("entries", [PURSUED, SEARCHED])
def test_every_option_is_accepted_just_below_and_just_above_a_size(entries, method):
    """The sizes are those from which on an array is pursued and searched in passes."""
    for count in (entries // 16 - 1, entries // 16):
        X = columns(count, 16).astype(np.float32)
        some = np.argsort(np.abs(np.linalg.norm(X, axis=0) - 1))[:20].tolist()
        names = [f"x{p}" for p in range(count)]
        for options in ({"exclude": some}, {"include": some[:2], "exclude": some[2:]}, {"k": 16, "exclude": some}):
            for more in ({}, {"unit": "median"}, {"labels": names}):
                given = {"k": 4, "method": method, "time_limit": 1.0, **options, **more}
                picked = ip.select(X, **given).indices.tolist()
                assert not set(picked) & set(given["exclude"])
                assert set(given.get("include", [])) <= set(picked)
                assert len(picked) == given["k"]
