"""Run each method on a task's matrix, on one thread, so that rows computed at the same time do not interfere."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from isopursuit._core.clock import Clock
from isopursuit._core.types import Array
from isopursuit.errors import IsoPursuitError, RankError, optional
from isopursuit.experiments.plan import DRAWS, SCS_EPS, Task, is_ethanol, matrix, molecule, node_limit
from isopursuit.experiments.store import Record
from isopursuit.loss.penalty import isometry_loss, to_loss
from isopursuit.pursuit.normalize import symmetric_normalize
from isopursuit.pursuit.programs import isometry_pursuit
from isopursuit.results import Pursuit, Search
from isopursuit.search.limits import Limits
from isopursuit.search.problem import Problem
from isopursuit.search.searches import brute_search, exact_search, exchange_search, greedy_search
from isopursuit.search.solve import solve

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
    indices = record.indices
    if indices is None:
        return record
    if is_ethanol(task.data):
        ethanol = molecule(task.data)
        names = ", ".join(ethanol.labels[i] for i in indices)
        record = replace(record, turns=ethanol.turns(task, indices), note=names)
    if X.ndim == 2:
        record = replace(record, reversed_loss=isometry_loss(X[:, indices[::-1]], task.c))
    return record


def _two_stage(X: Array, task: Task, objective: str = "isometry") -> Record:
    """Isometry pursuit, then the best subset of the tied columns."""
    limits = Limits(Clock.of(None), nodes=node_limit(task))
    found = solve(Problem.of(X, c=task.c, objective=objective), "two-stage", limits)
    pursuit, search = found.pursuit, found.search
    assert pursuit is not None
    kept = _of_pursuit(pursuit)
    return replace(
        _of_search(search),
        support=kept.support,
        tied=kept.tied,
        primal=kept.primal,
        dual=kept.dual,
        gap=kept.gap,
        second_stage=search.seconds,
    )


def _random(X: Array, task: Task) -> Record:
    """Draw as many columns as the pursuit keeps at random. The row's loss is that of the median draw."""
    size = len(isometry_pursuit(X, task.c).support)
    rng = np.random.default_rng(task.replicate)
    losses: list[float] = []
    for _ in range(DRAWS):
        drawn = np.sort(rng.choice(X.shape[1], size, replace=False))
        try:
            losses.append(exact_search(X[:, drawn], task.c, workers=1).log_loss)
        except RankError:  # the drawn columns do not span, so basis pursuit has no solution
            losses.append(float("inf"))
    middle = float(np.median(losses))
    return Record(loss=to_loss(middle), log_loss=middle, support=size, draws=tuple(losses), status="heuristic")


class Conic(NamedTuple):
    """What CVXPY's solver returned: the objective, B (P, D), whether it reached its tolerance, its iterations."""

    objective: float
    B: Array
    converged: bool
    iterations: int


def conic(X: Array, **options: object) -> Conic:
    """Solve multitask basis pursuit as the paper does: as a cone program with CVXPY."""
    cp = optional("cvxpy", "reproduce", "The comparison with SCS")
    D, P = X.shape
    B = cp.Variable((P, D))
    problem: Any = cp.Problem(cp.Minimize(cp.sum(cp.norm(B, 2, axis=1))), [np.eye(D) == X @ B])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.solve(**options)
    converged, iterations = problem.status == "optimal", int(problem.solver_stats.num_iters)
    return Conic(float(problem.value), np.asarray(B.value), converged, iterations)


def _scs(X: Array, task: Task) -> Record:
    found = conic(symmetric_normalize(X, task.c), solver="SCS", eps=SCS_EPS)
    lengths = np.linalg.norm(found.B, axis=1)
    return Record(primal=found.objective, support=int((lengths > USED * lengths.max()).sum()), status="no certificate")


METHODS: dict[str, Callable[[Array, Task], Record]] = {
    "greedy": lambda X, task: _of_search(greedy_search(X, task.c)),
    "pursuit": lambda X, task: _of_pursuit(isometry_pursuit(X, task.c)),
    "two-stage": _two_stage,
    "exchange": lambda X, task: _of_search(exchange_search(X, task.c)),
    "exact": lambda X, task: _of_search(exact_search(X, task.c, workers=1, node_limit=node_limit(task))),
    "random": _random,
    "SCS": _scs,
    "brute": lambda X, task: _of_search(brute_search(X, task.c)),
    "brute multitask": lambda X, task: _of_search(brute_search(X, task.c, objective="multitask")),
    "two-stage multitask": lambda X, task: _two_stage(X, task, "multitask"),
}


def _of_pursuit(found: Pursuit) -> Record:
    return Record(
        support=len(found.support),
        tied=tuple(found.tied.tolist()),
        primal=found.certificate.primal,
        dual=found.certificate.dual,
        gap=found.certificate.gap,
        status=found.status,
    )


def _of_search(found: Search) -> Record:
    return Record(
        loss=found.loss,
        log_loss=found.log_loss,
        indices=tuple(found.indices.tolist()),
        lower_bound=found.lower_bound,
        status=found.status,
        nodes=found.nodes,
        evaluations=found.evaluations,
    )
