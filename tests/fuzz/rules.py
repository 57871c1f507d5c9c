"""Rules about columns that are picked together, against brute force over the allowed subsets.

The oracle reads the options by itself: it compares cosines of pairs in extended precision, and counts groups. Cosines
within 1e-9 of the threshold are avoided.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

import isopursuit as ip
from fuzz.families import FAMILIES, Array
from fuzz.harness import Outcome, script
from fuzz.oracle import all_subsets, brute_force, joint_log_loss
from fuzz.search import settings

STATED = 1e-9  # what "optimal" promises, relative to the loss
MODES = ("exact", "exact", "exact", "exchange", "greedy", "brute", "auto", "two-stage", "nodes")
FAR = 500.0  # log-losses above this may be refused: the start of a search may be above LARGEST_LOG


@dataclass(frozen=True)
class Ruled:
    """One call: X (n, D, P), and the options of `select`; without k the largest set is asked for."""

    family: str
    X: Array
    c: float
    k: int | None
    mode: str
    small: bool  # settings that take small problems through the tree
    options: dict[str, Any] = field(default_factory=dict)

    def allowed(self, k: int) -> NDArray[np.intp]:
        """All subsets of k columns that the options allow."""
        given, P = self.options, self.X.shape[2]
        zero = [p for p in range(P) if not all(x[:, p].any() for x in self.X)]
        if set(zero) & set(given.get("include", [])):
            return np.zeros((0, k), np.intp)
        subsets = all_subsets(P, k, given.get("include", []), [*given.get("exclude", []), *zero])
        apart = np.zeros((P, P), dtype=bool)
        for p, q in given.get("apart", []):
            apart[p, q] = apart[q, p] = True
        if "max_correlation" in given:
            cosines = np.abs(mean_cosines(self.X))
            apart |= (cosines > given["max_correlation"] + 1e-11) & ~np.eye(P, dtype=bool)
        ok = np.ones(len(subsets), dtype=bool)
        for i, j in combinations(range(k), 2):
            ok &= ~apart[subsets[:, i], subsets[:, j]]
        labels = given.get("groups", [])
        for label in {label for label in labels if label is not None}:
            least, most = limits_of(given.get("per_group", 1), label)
            have = np.array([label == one for one in labels])[subsets].sum(axis=1)
            ok &= (have >= least) & (have <= most)
        return subsets[ok]


def mean_cosines(X: Array) -> Array:
    """The mean of |cosine| over the points, for all pairs."""
    Y = X.astype(np.longdouble)
    length = np.sqrt((Y * Y).sum(axis=1, keepdims=True))
    unit = Y / np.where(length > 0, length, 1)
    return np.mean([np.abs(np.einsum("dp,dq->pq", one, one)) for one in unit], axis=0).astype(float)


def limits_of(per_group: Any, label: Any) -> tuple[int, int]:
    """The least and the most number of columns of one group."""
    given = per_group.get(label, 99) if isinstance(per_group, dict) else per_group
    return given if isinstance(given, tuple) else (0, given)


def draw(rng: np.random.Generator) -> Ruled:
    """A problem of a random family and mode, with at least one kind of rule."""
    family, D = str(rng.choice(list(FAMILIES))), int(rng.choice([2, 3, 3, 4, 4, 5, 6]))
    P = int(rng.integers(D + 1, 14))
    n = int(rng.choice([1, 1, 1, 2]))
    X = np.stack([FAMILIES[family](rng, D, P) for _ in range(n)])
    if n > 1:
        X = X[:1] + 10.0 ** rng.uniform(-6, -1) * rng.standard_normal(X.shape)
    c = 1.0 if rng.random() < 0.6 else float(np.exp(rng.uniform(np.log(0.2), np.log(3))))
    options: dict[str, Any] = {}
    kinds = rng.random(3) < 0.5
    kinds[rng.integers(3)] = True
    if kinds[0]:
        cosines = np.sort(mean_cosines(X)[np.triu_indices(P, 1)])
        gaps = np.flatnonzero(np.diff(cosines) > 1e-9)
        if len(gaps):
            i = int(rng.choice(gaps))
            options["max_correlation"] = float(min((cosines[i] + cosines[i + 1]) / 2, 1.0))
    if kinds[1]:
        pairs = [tuple(rng.choice(P, 2, replace=False).tolist()) for _ in range(int(rng.integers(1, 2 * P)))]
        options["apart"] = pairs
    if kinds[2] or not options:
        names = ["a", "b", "c", "d", "e", None][: int(rng.integers(2, 7))]
        options["groups"] = [names[i] for i in rng.integers(0, len(names), P)]
        there = sorted({name for name in options["groups"] if name is not None})
        kind = rng.random()
        if kind < 0.3 and there:
            options["per_group"] = {name: drawn_limits(rng) for name in there if rng.random() < 0.8}
        elif kind < 0.6:
            options["per_group"] = int(rng.integers(1, 4))
    if rng.random() < 0.3:
        some = rng.permutation(P)
        options["include"] = sorted(some[: rng.integers(0, max(D - 1, 1))].tolist())
        options["exclude"] = sorted(some[D : D + rng.integers(0, max(P - D - 2, 1))].tolist())
    k = None if rng.random() < 0.3 else int(rng.integers(max(len(options.get("include", [])), 1), D + 1))
    return Ruled(family, X, c, k, str(rng.choice(MODES)), bool(rng.random() < 0.7), options)


def drawn_limits(rng: np.random.Generator) -> tuple[int, int]:
    """The least and most number of a group."""
    least = int(rng.choice([0, 0, 1, 2]))
    return least, least + int(rng.integers(0, 3))


def run(seed: int) -> Outcome:
    """Draw a problem, select, compare."""
    problem = draw(np.random.default_rng([seed, 31]))
    X: Any = problem.X[0] if len(problem.X) == 1 else list(problem.X)
    options = {"k": problem.k, "c": problem.c, **problem.options}
    call = "ip.exact_search(X, node_limit=5, workers=1, **options)"
    if problem.mode != "nodes":
        call = f"ip.select(X, method={problem.mode!r}, time_limit=20, **options)"
    text = script(f"found = {call}\nprint(found)", X=X, options=options)
    try:
        with settings(problem.small and problem.mode in ("exact", "nodes", "exchange")):
            if problem.mode == "nodes":
                found = ip.exact_search(X, node_limit=5, workers=1, **options)
            else:
                found = ip.select(X, method=problem.mode, time_limit=20, **options).search
    except ip.errors.InputError as error:
        return Outcome(problem.family, f"refused: {type(error).__name__}", refusal_failures(problem, error), text)
    return Outcome(problem.family, found.status, tuple(answer_failures(problem, found)), text)


def largest_size(problem: Ruled, most: float = 20.0) -> int:
    """The number of columns of the largest allowed set of a lower log-loss, for c = 1."""
    for k in range(min(problem.X.shape[1:]), 0, -1):
        if k >= len(problem.options.get("include", [])):
            subsets = problem.allowed(k)
            if len(subsets) and brute_force(problem.X, subsets, 1.0)[0] < most:
                return k
    return 0


def refusal_failures(problem: Ruled, error: Exception) -> tuple[str, ...]:
    """A refusal is right if no allowed subset has a loss that is finite and moderate."""
    if problem.mode == "two-stage" and isinstance(error, ip.errors.RangeError):  # the pursuit has limits of its own
        return ()
    # if columns are nearly dependent, the largest set is one of an enormous loss
    k = problem.k or largest_size(problem, np.inf if isinstance(error, ip.errors.RangeError) else 20.0)
    subsets = problem.allowed(k) if k else np.zeros((0, 1), np.intp)
    best = brute_force(problem.X, subsets, problem.c)[0] if len(subsets) else np.inf
    far = best > 20 if "dependent" in str(error) or "rank" in str(error) else best > FAR
    return () if far else (f"refused, but brute force has log-loss {best}: {error}",)


def answer_failures(problem: Ruled, found: ip.Search) -> list[str]:
    """What is wrong with an answer."""
    wrong: list[str] = []
    k, given = len(found.indices), problem.options
    if problem.k not in (None, k):
        wrong.append(f"picked {k} columns instead of {problem.k}")
    if problem.k is None:
        size = largest_size(problem)
        assert found.most is not None
        if found.most < size or k > found.most or (k < size and k == found.most):
            wrong.append(f"{k} columns, at most {found.most}, but {size} are possible")
        if found.most != k and k < size:
            wrong.append(f"found {k} columns only, although {size} are possible in a problem this small")
    subsets = problem.allowed(k)
    if not (subsets == found.indices).all(axis=1).any():
        return [*wrong, f"{found.indices.tolist()} is not allowed"]
    best = brute_force(problem.X, subsets, problem.c)[0]
    own = float(joint_log_loss(problem.X, found.indices[None], problem.c)[0])
    if found.optimal and own > best + STATED and problem.mode != "two-stage":
        wrong.append(f"called optimal at log-loss {own!r}, brute force has {best!r}")
    with np.errstate(divide="ignore"):
        bound = float(np.log(found.lower_bound))
    if bound > best + STATED and not bound == np.inf > best > FAR and problem.mode != "two-stage":
        wrong.append(f"{found.status}: lower bound e^{bound!r} is above the optimum e^{best!r}")
    lines = [line for line in found.rules if line.startswith("max_correlation=")]
    if ("max_correlation" in given) != bool(lines):
        wrong.append(f"the answer says {found.rules}")
    return wrong
