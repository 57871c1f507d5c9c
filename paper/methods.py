"""Run each method on a task's matrix, on one thread, so that rows computed at the same time do not interfere."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import isopursuit as ip
from isopursuit.errors import IsoPursuitError, RankError
from paper.plan import DRAWS, Task, is_ethanol, matrix, molecule, node_limit
from paper.rows import Record

SCS_EPS = 1e-12  # the tolerance in the authors' scripts
BATCH = 2**14  # bases whose norms are computed at once
TIE = 1e-12  # relative; norms this close are equal, and the first basis wins
USED = 1e-6  # a row of SCS's answer is in its support if its length exceeds this share of the longest


def run(task: Task) -> Record:
    """Run one task. If a method refuses the matrix (at large c lengths exceed float64), the record says so."""
    X = matrix(task)
    began = time.perf_counter()
    try:
        record = METHODS[task.method](X, task)
    except IsoPursuitError as error:
        record = Record(status="refused", note=str(error))
    record = replace(record, seconds=time.perf_counter() - began)
    if record.indices is None:
        return record
    if is_ethanol(task.data):
        ethanol = molecule(task.data)
        names = ", ".join(ethanol.labels[i] for i in record.indices)
        record = replace(record, turns=ethanol.turns(task, record.indices), note=names)
    if X.ndim == 2:
        record = replace(record, reversed_loss=ip.isometry_loss(X[:, record.indices[::-1]], task.c))
    return record


def _greedy(X: np.ndarray, task: Task) -> Record:
    return _of_search(ip.greedy_search(X, task.c))


def _pursuit(X: np.ndarray, task: Task) -> Record:
    return _of_pursuit(ip.isometry_pursuit(X, task.c))


def _two_stage(X: np.ndarray, task: Task, by_norm: bool = False) -> Record:
    """The paper's Algorithm 2: isometry pursuit, then the best subset of the columns that it keeps."""
    pursuit = ip.isometry_pursuit(X, task.c)
    began = time.perf_counter()
    kept = X[..., pursuit.tied]
    if by_norm:
        second = _brute_by_norm(kept, task)
    else:
        second = _of_search(ip.exact_search(kept, task.c, workers=1, node_limit=node_limit(task)))
    first = _of_pursuit(pursuit)
    return replace(
        second,
        indices=tuple(pursuit.tied[list(second.indices or ())].tolist()),
        **{name: getattr(first, name) for name in ("support", "tied", "primal", "dual", "gap")},
        second_stage=time.perf_counter() - began,
    )


def _exchange(X: np.ndarray, task: Task) -> Record:
    return _of_search(ip.exchange_search(X, task.c))


def _exact(X: np.ndarray, task: Task) -> Record:
    return _of_search(ip.exact_search(X, task.c, workers=1, node_limit=node_limit(task)))


def _brute(X: np.ndarray, task: Task) -> Record:
    return _of_search(ip.brute_search(X, task.c))


def _brute_by_norm(X: np.ndarray, task: Task) -> Record:
    indices, norm = least_norm(X, task.c)
    return Record(loss=norm, log_loss=float(np.log(norm)), indices=indices, lower_bound=norm, status="optimal", nodes=0)


def least_norm(X: np.ndarray, c: float = 1.0) -> tuple[tuple[int, ...], float]:
    """The basis of X (D, P) whose inverse has the least multitask norm after normalization, and that norm.

    Its rows have the lengths of the rows of V S⁻¹, where U S Vᵀ are the normalized columns.
    """
    normalized, (D, P) = ip.symmetric_normalize(X, c), X.shape
    best: tuple[tuple[int, ...], float] = ((), float("inf"))
    subsets = itertools.combinations(range(P), D)
    while some := list(itertools.islice(subsets, BATCH)):
        _, s, Vt = np.linalg.svd(np.moveaxis(normalized[:, np.array(some)], 1, 0))
        with np.errstate(divide="ignore", invalid="ignore"):
            norms = np.linalg.norm(np.swapaxes(Vt, 1, 2) / s[:, None, :], axis=2).sum(axis=1)
        norms[s[:, -1] <= D * np.finfo(float).eps * s[:, 0]] = np.inf  # dependent columns
        least = int(norms.argmin())
        if norms[least] < best[1] * (1 - TIE):
            best = some[least], float(norms[least])
    return best


def _random(X: np.ndarray, task: Task) -> Record:
    """Draw as many columns as the pursuit keeps at random. The row's loss is that of the median draw."""
    size = len(ip.isometry_pursuit(X, task.c).support)
    rng = np.random.default_rng(task.replicate)
    losses: list[float] = []
    for _ in range(DRAWS):
        drawn = np.sort(rng.choice(X.shape[1], size, replace=False))
        try:
            found = ip.exact_search(X[:, drawn], task.c, workers=1, node_limit=node_limit(task))
            losses.append(found.log_loss)
        except RankError:  # the drawn columns do not span, so basis pursuit has no solution
            losses.append(float("inf"))
    middle = float(np.median(losses))
    return Record(loss=float(np.exp(middle)), log_loss=middle, support=size, draws=tuple(losses), status="heuristic")


class Conic(NamedTuple):
    """What CVXPY's solver returned: the objective, B (P, D), whether it reached its tolerance, its iterations."""

    objective: float
    B: np.ndarray
    converged: bool
    iterations: int


def conic(X: np.ndarray, **options: object) -> Conic:
    """Solve multitask basis pursuit as the paper does: as a cone program with CVXPY."""
    import cvxpy as cp

    D, P = X.shape
    B = cp.Variable((P, D))
    problem: Any = cp.Problem(cp.Minimize(cp.sum(cp.norm(B, 2, axis=1))), [np.eye(D) == X @ B])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.solve(**options)
    converged, iterations = problem.status == "optimal", int(problem.solver_stats.num_iters)
    return Conic(float(problem.value), np.asarray(B.value), converged, iterations)


def _scs(X: np.ndarray, task: Task) -> Record:
    found = conic(ip.symmetric_normalize(X, task.c), solver="SCS", eps=SCS_EPS)
    lengths = np.linalg.norm(found.B, axis=1)
    return Record(primal=found.objective, support=int((lengths > USED * lengths.max()).sum()), status="no certificate")


METHODS: dict[str, Callable[[np.ndarray, Task], Record]] = {
    "greedy": _greedy,
    "pursuit": _pursuit,
    "two-stage": _two_stage,
    "exchange": _exchange,
    "exact": _exact,
    "random": _random,
    "SCS": _scs,
    "brute": _brute,
    "brute multitask": _brute_by_norm,
    "two-stage multitask": lambda X, task: _two_stage(X, task, by_norm=True),
}


def _of_pursuit(found: ip.Pursuit) -> Record:
    return Record(
        support=len(found.support),
        tied=tuple(found.tied.tolist()),
        primal=found.certificate.primal,
        dual=found.certificate.dual,
        gap=found.certificate.gap,
        status=found.status,
    )


def _of_search(found: ip.Search) -> Record:
    return Record(
        loss=found.loss,
        log_loss=found.log_loss,
        indices=tuple(found.indices.tolist()),
        lower_bound=found.lower_bound,
        status=found.status,
        nodes=found.nodes,
    )
