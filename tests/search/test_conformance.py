"""What holds for every search, kind of input, restriction and limit.

Each fact is checked for greedy, brute, exchange and exact search and for every method of `select`; on an array, on a
source and on many points; with and without columns to include and exclude; for k < D; and when a search is stopped
by time, by nodes, by its callback or by Ctrl-C. The oracle is brute force in extended precision, which shares no code
with the library.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from fuzz.oracle import all_subsets, brute_force, joint_log_loss

import isopursuit as ip
from isopursuit.errors import ParameterError

STATED = 1e-9  # the relative distance from the best loss that "optimal" allows
SIZES = {  # points, rows, columns, exponent and k of the small problems, which brute force solves in milliseconds
    "one row": (3, 1, 9, 0.5, None),
    "two rows": (7, 2, 12, 3.16, None),
    "three rows": (3, 3, 14, 1.0, None),
    "four rows": (3, 4, 12, 0.1, None),
    "two of five rows": (2, 5, 12, 1.0, 2),
    "three of six rows": (2, 6, 12, 2.0, 3),
    "three of twenty rows": (2, 20, 12, 0.4, 3),
}
KINDS = ("array", "source", "points")
RESTRICTIONS = ("plain", "both", "all included")
STATUSES = {
    "greedy": {"heuristic"},
    "brute": {"optimal"},
    "exchange": {"heuristic", "optimal"},
    "exact": {"optimal"},
    "two-stage": {"optimal"},
}
LATE = {  # when time is over: a search that needs no more time than that may have finished
    "greedy": {"time", "heuristic"},
    "brute": {"time", "optimal"},
    "exchange": {"heuristic", "optimal"},
    "exact": {"time", "optimal"},
    "two-stage": {"time", "optimal"},
}
SEARCHES: dict[str, Callable[..., ip.Search]] = {
    "greedy": ip.greedy_search,
    "brute": ip.brute_search,
    "exchange": ip.exchange_search,
    "exact": ip.exact_search,
}


@dataclass(frozen=True)
class Problem:
    """Matrices X (n, D, P), as a search is given them, and the columns that must and must not be picked."""

    X: np.ndarray
    kind: str
    c: float
    include: tuple[int, ...] = ()
    exclude: tuple[int, ...] = ()
    k: int | None = None

    @property
    def size(self):
        """How many columns are picked."""
        return self.k or self.X.shape[1]

    @property
    def given(self):
        return {"array": lambda: self.X[0], "source": lambda: ip.as_source(self.X[0]), "points": lambda: list(self.X)}[
            self.kind
        ]()

    @property
    def options(self):
        return {"c": self.c, "k": self.k, "include": list(self.include), "exclude": list(self.exclude)}

    def search(self, name, **options):
        return SEARCHES[name](self.given, **self.options, **options)

    def select(self, method, **options):
        return ip.select(self.given, method=method, **self.options, **options)

    def best(self):
        """The least log-loss and its columns, by brute force."""
        P = self.X.shape[2]
        return brute_force(self.X, all_subsets(P, self.size, list(self.include), list(self.exclude)), self.c)


@cache
def problem(size, kind, restriction):
    """A restriction takes effect: what is included is not in the best subset, what is excluded is."""
    n, D, P, c, k = SIZES[size]
    rng = np.random.default_rng([D, P])
    columns = rng.normal(size=(D, P)) / np.sqrt(D) * np.exp(0.5 * rng.uniform(-1, 1, P))
    n = n if kind == "points" else 1
    plain = Problem(columns + 0.2 * (n > 1) * rng.normal(size=(n, D, P)), kind, c, k=k)
    plain.X.flags.writeable = False
    return restricted(plain, restriction, plain.best()[1].tolist())


def restricted(plain, restriction, best):
    others = [p for p in range(plain.X.shape[2]) if p not in best]
    include = {"both": others[-1:], "all included": others[: plain.size]}.get(restriction, [])
    exclude = best[-1:] if restriction == "both" else []
    return replace(plain, include=tuple(include), exclude=tuple(exclude))


@cache
def solved(size, kind, restriction):
    return problem(size, kind, restriction).best()


def check(found, given, best, statuses, tolerance=STATED):
    """The picked columns, their loss, the bound and the status, against the least log-loss there is."""
    n, k, P = len(given.X), given.size, given.X.shape[2]
    picked = found.indices.tolist()
    assert picked == sorted(set(picked))
    assert len(picked) == k
    assert set(picked) <= set(range(P)) - set(given.exclude)
    assert set(given.include) <= set(picked)
    own = float(joint_log_loss(given.X, found.indices[None], given.c)[0])
    assert found.log_loss == pytest.approx(own, rel=tolerance, abs=tolerance)
    assert found.loss == pytest.approx(np.exp(own), rel=10 * tolerance)
    assert best <= own + tolerance
    assert n * k * (1 - STATED) <= found.lower_bound <= found.loss
    assert np.log(found.lower_bound) <= best + tolerance
    assert found.status in statuses
    assert found.optimal == (found.status == "optimal")
    if found.optimal:
        assert own <= best + tolerance
        assert (found.lower_bound, found.gap) == (found.loss, 0.0)
    else:
        assert found.gap == pytest.approx(1 - found.lower_bound / found.loss, abs=1e-12)


def every(names, kinds=KINDS):
    """Names and kinds that go together: brute force needs a matrix in memory."""
    return [pair for pair in itertools.product(names, kinds) if pair != ("brute", "source")]


@pytest.mark.parametrize("restriction", RESTRICTIONS)
@pytest.mark.parametrize(("name", "kind"), every(SEARCHES))
@pytest.mark.parametrize("size", SIZES)
def test_an_answer_is_what_brute_force_says_about_it(size, name, kind, restriction):
    given, (best, subset) = problem(size, kind, restriction), solved(size, kind, restriction)
    before = given.X.copy()
    found = given.search(name)
    check(found, given, best, STATUSES[name] | ({"optimal"} if restriction == "all included" else set()))
    if found.optimal:
        assert found.indices.tolist() == subset.tolist()
    assert found.method == name
    np.testing.assert_array_equal(given.X, before)


def turned(given):
    """The same problem with its points and columns in another order and columns of other signs, and that order."""
    n, _, P = given.X.shape
    rng = np.random.default_rng(0)
    order, turn = rng.permutation(P), rng.permutation(n)
    place = np.argsort(order)
    X = given.X[turn][:, :, order] * rng.choice([-1.0, 1.0], P)
    include, exclude = (tuple(place[list(some)].tolist()) for some in (given.include, given.exclude))
    return replace(given, X=X, include=include, exclude=exclude), order


@pytest.mark.parametrize("restriction", RESTRICTIONS)
@pytest.mark.parametrize(("name", "kind"), every(SEARCHES))
@pytest.mark.parametrize("size", ["two rows", "three rows", "two of five rows"])
def test_the_order_of_points_and_the_order_and_signs_of_columns_do_not_matter(size, name, kind, restriction):
    given = problem(size, kind, restriction)
    other, order = turned(given)
    found, again = given.search(name), other.search(name)
    assert sorted(order[again.indices].tolist()) == found.indices.tolist()
    assert again.status == found.status
    assert again.log_loss == pytest.approx(found.log_loss, abs=STATED)


@pytest.mark.parametrize("restriction", ["plain", "both"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_two_stages_do_not_depend_on_the_order_either(kind, restriction):
    given = problem("three rows", kind, restriction)
    other, order = turned(given)
    assert sorted(order[other.select("two-stage").indices].tolist()) == given.select("two-stage").indices.tolist()


@pytest.mark.parametrize("restriction", RESTRICTIONS)
@pytest.mark.parametrize(("name", "kind"), every(SEARCHES, ("array", "points")))
def test_labels_name_the_callers_columns(name, kind, restriction):
    given = problem("three rows", kind, restriction)
    labels = [f"column {p}" for p in range(given.X.shape[2])]
    options = {what: [labels[p] for p in getattr(given, what)] for what in ("include", "exclude")}
    found = SEARCHES[name](given.given, given.c, labels=labels, **options)
    assert found.indices.tolist() == given.search(name).indices.tolist()
    assert found.labels == tuple(labels)


@pytest.mark.parametrize(("name", "kind"), every(SEARCHES))
def test_a_column_both_included_and_excluded_is_refused(name, kind):
    given = replace(problem("three rows", kind, "plain"), include=(1, 2), exclude=(2, 3))
    with pytest.raises(ParameterError, match="both included and excluded"):
        given.search(name)
    with pytest.raises(ParameterError, match="both included and excluded"):
        given.select(name)


@pytest.mark.parametrize("k", [None, 2])
@pytest.mark.parametrize("restriction", RESTRICTIONS[:-1])
@pytest.mark.parametrize(("method", "kind"), every(STATUSES))
def test_select_answers_as_its_search_does(method, kind, restriction, k):
    given = replace(problem("three rows", kind, restriction), k=k)
    among, best = given, given.best()[0]
    before = given.X.copy()
    picked = given.select(method)
    if picked.pursuit is not None:  # best of the columns that the pursuit left, which need not be best of all
        left = {*picked.pursuit.tied.tolist(), *given.include} - set(given.exclude)
        among = replace(given, exclude=tuple(p for p in range(given.X.shape[2]) if p not in left))
        best = among.best()[0]
    # where the pursuit for fewer columns than rows cannot prune, exchange search answers
    check(picked.search, among, best, STATUSES[method] | STATUSES[picked.method])
    assert picked.indices.tolist() == picked.search.indices.tolist()
    assert picked.labels == tuple(picked.indices.tolist())
    assert picked.k == given.size
    assert not set(given.exclude) & {other.index for other in picked.alternatives}
    np.testing.assert_array_equal(given.X, before)


# Stopped early


@pytest.mark.parametrize("limit", [1e-9, 1e-3])
@pytest.mark.parametrize("restriction", RESTRICTIONS)
@pytest.mark.parametrize(("name", "kind"), every(SEARCHES))
def test_when_time_is_over_the_bound_is_true(name, kind, restriction, limit):
    given, (best, _) = problem("four rows", kind, restriction), solved("four rows", kind, restriction)
    statuses = LATE[name] | ({"optimal"} if restriction == "all included" else set())
    check(given.search(name, time_limit=limit), given, best, statuses)


@pytest.mark.parametrize("nodes", [1, 3, 20])
@pytest.mark.parametrize("restriction", RESTRICTIONS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", ["three rows", "four rows"])
def test_a_node_limit_ends_at_the_same_place_with_a_true_bound(size, kind, restriction, nodes):
    given, (best, _) = problem(size, kind, restriction), solved(size, kind, restriction)
    found, again = (given.search("exact", node_limit=nodes, workers=1) for _ in range(2))
    check(found, given, best, {"nodes", "optimal"})
    assert found.nodes <= nodes
    assert found.indices.tolist() == again.indices.tolist()
    assert (found.status, found.lower_bound, found.nodes) == (again.status, again.lower_bound, again.nodes)


@cache
def hard(kind, restriction):
    """A problem that takes the exact search a second or so, and its proved optimum."""
    if kind == "source":
        given, best = hard("array", restriction)
        return replace(given, kind=kind), best
    rng = np.random.default_rng(3)
    n, D, P = (4, 5, 60) if kind == "points" else (1, 8, 150)
    columns = rng.normal(size=(D, P))
    columns = columns / np.linalg.norm(columns, axis=0) + 0.1 * (n > 1) * rng.normal(size=(n, D, P))
    given = Problem(columns, kind, 1.0)
    best = given.search("exact")
    if restriction != "plain":
        given = restricted(given, restriction, best.indices.tolist())
        best = given.search("exact")
    assert best.optimal
    return given, best.log_loss


def stopping():
    """A callback that asks for an end at once."""
    return lambda progress: True


def interrupting():
    """A callback during which Ctrl-C is pressed, once."""
    presses = iter([KeyboardInterrupt])

    def press(progress):
        for pressed in presses:
            raise pressed

    return press


LIMITS = {
    "time": ("time", lambda: {"time_limit": 0.05}),
    "nodes": ("nodes", lambda: {"node_limit": 2, "workers": 1}),
    "gap": ("gap", lambda: {"gap": 0.25}),
    "callback": ("interrupted", lambda: {"callback": stopping()}),
    "Ctrl-C": ("interrupted", lambda: {"callback": interrupting()}),
}


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("restriction", ["plain", "both"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_exact_search_that_is_stopped_says_why_and_how_far_it_came(kind, restriction, limit):
    given, best = hard(kind, restriction)
    status, options = LIMITS[limit]
    found = given.search("exact", **options())
    # a fast machine may have the proof before the time is over
    check(found, given, best, {status, "optimal"} if limit == "time" else {status})
    if status == "gap":
        assert found.gap <= 0.25
    if status == "nodes":
        again = given.search("exact", **options())
        assert (found.indices.tolist(), found.lower_bound) == (again.indices.tolist(), again.lower_bound)


@pytest.mark.parametrize("limit", ["time", "callback", "Ctrl-C"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_selection_that_is_stopped_says_so(kind, limit):
    given, best = hard(kind, "both")
    status, options = LIMITS[limit]
    picked = given.select("exact", **options())
    check(picked.search, given, best, {status, "optimal"} if limit == "time" else {status})
    assert picked.search.status in picked.verdict
