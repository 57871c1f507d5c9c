"""The searches on hostile problems, against brute force in extended precision."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import hadamard

import isopursuit as ip
from fuzz.families import FAMILIES, Array, lattice, short_and_long, signs
from fuzz.harness import Outcome, script
from fuzz.oracle import all_subsets, brute_force, joint_log_loss
from isopursuit.loss.penalty import LARGEST_LOG
from isopursuit.search import exact
from isopursuit.search.exchange import improve
from isopursuit.search.proof import prover

STATED = 1e-9  # what "optimal" promises, relative to the loss
SUBSETS = 4000  # that brute force tries at most
OVERTIME = 5.0  # seconds after a time limit in which a search must return, also on a loaded machine
MODES = (
    "exact", "exact", "exact source", "exchange", "exchange source", "exact nodes", "exact time", "exact gap",
    "select", "brute",
)  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """One call: X is (n, D, P) points; `optimum` is the least log-loss where it is known without brute force."""

    family: str
    X: Array
    c: float
    mode: str
    small: bool  # settings that take small problems from a bad start through pairs and targets
    include: list[int] = field(default_factory=list)
    exclude: list[int] = field(default_factory=list)
    k: int | None = None
    aggregate: str | float = "sum"
    limits: dict[str, Any] = field(default_factory=dict)
    optimum: float | None = None

    @property
    def call(self) -> str:
        """As source text."""
        kind, _, rest = self.mode.partition(" ")
        of = "ip.as_source(X)" if rest == "source" else "X"
        named = {"c": self.c, "k": self.k, "include": self.include, "exclude": self.exclude, **self.limits}
        named |= {} if len(self.X) == 1 else {"aggregate": self.aggregate}
        if kind == "select":
            named = {"method": "exact", **named}
        given = ", ".join(f"{name}={value!r}" for name, value in named.items() if value != [] and value is not None)
        return f"{'select' if kind == 'select' else kind + '_search'}({of}, {given})"


def run(seed: int) -> Outcome:
    """Draw a problem, search, compare."""
    problem = draw(np.random.default_rng([seed, 12]))
    if len(problem.X) > 1:
        drawn = str(np.random.default_rng([seed, 15]).choice(["sum", "0.7", "0.4"]))
        problem = replace(problem, aggregate=float(drawn) if drawn[0] == "0" else drawn)
    X: Any = problem.X[0] if len(problem.X) == 1 else list(problem.X)
    source = script(f"found = ip.{problem.call}\nprint(found)", X=X)
    began = time.perf_counter()
    try:
        with settings(problem.small):
            found = answer(problem, X)
            again = answer(problem, X, workers=2) if problem.mode == "exact" and found.optimal else None
    except ip.errors.IsoPursuitError as error:
        return Outcome(problem.family, type(error).__name__, refusal_failures(problem, error), source)
    late = time.perf_counter() - began - problem.limits.get("time_limit", np.inf)
    failures = [*answer_failures(problem, found)]
    if late > OVERTIME:
        failures.append(f"returned {late:.1f} s after the time limit")
    if again is not None and not np.array_equal(again.indices, found.indices):
        failures.append(f"workers=2 gives {again.indices.tolist()}, workers=1 {found.indices.tolist()}")
    return Outcome(problem.family, found.status, tuple(failures), source)


def draw(rng: np.random.Generator) -> Problem:
    """A problem of a random family, size, exponent and mode."""
    if rng.random() < 0.03:
        return planted(rng)
    if rng.random() < 0.02:
        return crowded(rng)
    name = str(rng.choice(list(FAMILIES)))
    mode = str(rng.choice(MODES))
    D = int(rng.choice([1, 2, 3, 3, 4, 4, 5, 6]))
    n = int(rng.integers(2, 4)) if rng.random() < 0.15 and "source" not in mode and mode != "select" else 1
    P = int(rng.integers(D + 1, 16))
    while D * np.log(P) > 12 and P > D + 1 and len(all_subsets(P, D, [], [])) * n > SUBSETS:
        P -= 1
    X = np.stack([FAMILIES[name](rng, D, P) for _ in range(n)])
    if n > 1 and rng.random() < 0.5:
        X = X[:1] + 10.0 ** rng.uniform(-12, -1) * rng.standard_normal(X.shape)
    c = 1.0 if rng.random() < 0.5 else float(np.exp(rng.uniform(np.log(0.05), np.log(10))))
    include, exclude = [], []
    if rng.random() < 0.3:
        some = rng.permutation(P)
        include = sorted(some[: rng.integers(0, max(D - 1, 1))].tolist())
        exclude = sorted(some[D : D + rng.integers(0, P - D)].tolist())
    k = None
    if rng.random() < 0.5:
        k = int(rng.integers(1, D + 1))
        X = _in_more_rows(X, rng) if rng.random() < 0.5 else X
    include = include[:k] if k is not None else include
    limits: dict[str, Any] = {
        "exact nodes": {"node_limit": int(rng.integers(1, 30)), "workers": 1},
        "exact time": {"time_limit": float(10 ** rng.uniform(-3, -1))},
        "exact gap": {"gap": float(rng.choice([0.5, 0.1, 1e-3]))},
        "exact": {"workers": 1},
    }.get(mode, {})
    return Problem(name, X, c, mode, bool(rng.random() < 0.6), include, exclude, k, limits=limits)


def crowded(rng: np.random.Generator) -> Problem:
    """Thousands of columns whose own bounds are just below a known loss: all of them take minutes."""
    D = int(rng.integers(4, 7))
    X = short_and_long(rng, D, int(rng.integers(1000, 3000)))
    limits: dict[str, Any] = {"time_limit": float(10 ** rng.uniform(-3, -0.3))}
    known = float(np.log(ip.isometry_loss(X[:, :D])))  # an upper bound on the least log-loss
    return Problem("crowded", X[None], 1.0, "exact", False, limits=limits, optimum=known)


def _in_more_rows(X: Array, rng: np.random.Generator) -> Array:
    """The same columns in up to three times as many rows, often more than there are columns: rotated or not."""
    more = int(rng.integers(1, 2 * X.shape[1] + 8))
    taller = np.concatenate([X, np.zeros((len(X), more, X.shape[2]))], axis=1)
    if rng.random() < 0.5:
        return taller[:, rng.permutation(taller.shape[1])]
    return np.linalg.qr(rng.standard_normal((taller.shape[1], taller.shape[1])))[0] @ taller


def planted(rng: np.random.Generator) -> Problem:
    """Hundreds of columns of which D are exactly orthonormal: the least loss is D, whatever else there is."""
    D = int(rng.choice([4, 6, 8]))
    columns = (lattice if rng.random() < 0.5 else signs)(rng, D, int(rng.integers(400, 3000)))
    if rng.random() < 0.7:
        squares = (columns**2).sum(axis=0)
        columns = columns[:, squares == np.sort(squares)[len(squares) // 2]]
        columns = columns / np.linalg.norm(columns[:, 0])
    columns = columns[:, (columns != 0).any(axis=0)][:, : int(rng.integers(20, 300))]
    basis = np.eye(D)
    if D % 4 == 0:
        basis = np.kron(np.eye(D // 4), hadamard(4) / 2)[rng.permutation(D)]
    near = np.diag(np.append(np.ones(D - 1), 1 + 10.0 ** rng.uniform(-5, -1)))
    X = np.hstack([near, columns, basis])
    X = X[:, rng.permutation(X.shape[1])] if rng.random() < 0.5 else X
    mode = str(rng.choice(["exact", "exact source", "exchange", "exchange source"]))
    limits: dict[str, Any] = {"time_limit": 20.0}
    return Problem("planted", X[None], 1.0, mode, False, limits=limits, optimum=float(np.log(D)))


def worst_start(pool: Any, incumbent: Any, clock: Any, *effort: Any, **brief: Any) -> Any:
    """In place of the local search before a proof: the tree must find what the local search would."""
    if pool.X is None or pool.points > 1:
        return improve(pool, incumbent, clock, *effort, **brief)
    rng, free = np.random.default_rng(0), np.setdiff1d(np.arange(pool.count), pool.include)
    subsets = [np.sort(np.append(pool.include, rng.choice(free, pool.missing, replace=False))) for _ in range(20)]
    allowed = np.ones(len(subsets), dtype=bool) if pool.rules is None else pool.rules.allow(np.array(subsets))
    finite = [one for one, may in zip(subsets, allowed, strict=True) if may and pool.log_loss(one) < LARGEST_LOG]
    if not finite:
        return improve(pool, incumbent, clock, *effort, **brief)
    worst = max(finite, key=pool.log_loss)
    incumbent.offer(worst, pool.log_loss(worst), "start")
    return None


@contextmanager
def settings(small: bool) -> Iterator[None]:
    """Small problems take the paths of large ones: a bad start, no brute force inside, pairs of few columns."""
    new = {
        (exact, "FEW_SUBSETS"): 0,
        (prover, "FEW_COLUMNS"): 3,
        (exact, "improve"): worst_start,
    }
    new = new if small else {}
    old = {key: getattr(*key) for key in new}
    try:
        for (module, name), value in new.items():
            setattr(module, name, value)
        yield
    finally:
        for (module, name), value in old.items():
            setattr(module, name, value)


def answer(problem: Problem, X: Any, **changed: Any) -> ip.Search:
    """The library's."""
    kind, _, rest = problem.mode.partition(" ")
    data = ip.as_source(X) if rest == "source" else X
    named = {"include": problem.include, "exclude": problem.exclude, **problem.limits, **changed}
    named |= {} if len(problem.X) == 1 else {"aggregate": problem.aggregate}
    if kind == "select":
        return ip.select(data, problem.k, problem.c, method="exact", **named).search
    search = {"exact": ip.exact_search, "exchange": ip.exchange_search, "brute": ip.brute_search}[kind]
    return search(data, problem.c, k=problem.k, **named)


def best_subset(problem: Problem) -> tuple[float, NDArray[np.intp]]:
    """The least log-loss and where it is, by brute force."""
    X = problem.X
    # a column that is zero at some point cannot be picked, also where that point would be left out
    zero = np.flatnonzero(~X.any(axis=1).all(axis=0)).tolist() if problem.aggregate != "sum" else []
    subsets = all_subsets(X.shape[2], size_of(problem), problem.include, sorted({*problem.exclude, *zero}))
    return brute_force(X, subsets, problem.c, problem.aggregate)


def size_of(problem: Problem) -> int:
    """How many columns are picked."""
    return problem.k or problem.X.shape[1]


def answer_failures(problem: Problem, found: ip.Search) -> Iterator[str]:
    """What is wrong with an answer."""
    X = problem.X
    picked = found.indices.tolist()
    k = size_of(problem)
    if len(set(picked)) != k or not set(problem.include) <= set(picked) or set(picked) & set(problem.exclude):
        yield f"{picked} are not {k} columns with {problem.include} and without {problem.exclude}"
        return
    best = best_subset(problem)[0] if problem.optimum is None else problem.optimum
    own = float(joint_log_loss(X, found.indices[None], problem.c, problem.aggregate)[0])
    stated = STATED
    if found.optimal:
        if own > best + stated:
            yield f"called {found.status} at log-loss {own!r}, brute force has {best!r}"
        if abs(found.log_loss - own) > stated:
            yield f"reports log-loss {found.log_loss!r}, extended precision has {own!r}"
    with np.errstate(divide="ignore"):
        bound = float(np.log(found.lower_bound))
    if bound > best + stated and not bound == np.inf > best > 709:
        yield f"{found.status}: lower bound e^{bound!r} is above the optimum e^{best!r}"
    if 1 - np.exp(best - own) > found.gap + stated:  # as shares of the loss: a gap near 1 has few digits below 1
        yield f"{found.status}: gap {found.gap!r}, but e^{own!r} against e^{best!r}"
    if found.status == "gap" and own > best - np.log1p(-problem.limits["gap"]) + stated:
        yield f"says within {problem.limits['gap']}, is e^{own!r} against e^{best!r}"
    if found.optimal and not problem.mode.endswith("source"):
        for p in set(picked) - set(problem.include):
            twins = [q for q in range(p) if q not in picked and q not in problem.exclude and same(X, p, q)]
            if twins:
                yield f"column {p} is picked, but its equal {twins[0]} comes first"


def same(X: Array, p: int, q: int) -> bool:
    """Whether two columns are equal up to sign, at every point."""
    return all(np.array_equal(x[:, p], x[:, q]) or np.array_equal(x[:, p], -x[:, q]) for x in X)


def refusal_failures(problem: Problem, error: Exception) -> tuple[str, ...]:
    """A problem may be refused only where no subset has a loss that float64 holds comfortably.

    The exact search refuses by the best loss that its start found. Over a source that start is short, and a limit of a
    few milliseconds, a tenth of a second on a loaded machine, may end it before it has a subset that is independent at
    all of several points.
    """
    X = np.stack(problem.X)
    allowed = [p for p in range(X.shape[2]) if p not in problem.exclude and all(x[:, p].any() for x in X)]
    if len(allowed) < size_of(problem) or not set(problem.include) <= set(allowed):
        return ()
    best, subset = best_subset(problem)
    spectra = np.linalg.svd(X[:, :, subset], compute_uv=False)
    resolved = (spectra[:, -1] > 1e-10 * spectra[:, 0]).all()
    if problem.limits.get("time_limit", 1.0) < 0.1 and len(X) > 1:
        return ()
    most = 50 if problem.mode == "exact source" else 500
    return (f"refused ({error}), although the least log-loss is {best!r}",) if best < most and resolved else ()
