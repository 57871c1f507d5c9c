"""The parts of a search by themselves, as tests call them: a local search, the tree, and a whole proof."""

import time
from types import SimpleNamespace

import numpy as np

from isopursuit._core.clock import Clock
from isopursuit.search import local
from isopursuit.search.incumbent import Incumbent, SearchProgress
from isopursuit.search.problem import Problem
from isopursuit.search.proof.joint import JointTree
from isopursuit.search.proof.prover import Prove
from isopursuit.search.proof.tree import Limits, branch_and_bound


def clock_of(time_limit):
    return Clock(time.perf_counter(), time_limit)


def local_search(X, c=1.0, *, starts=1, kicks=0, rng=None, include=()):
    """The incumbent after one local search."""
    pool = Problem.of(X, c=c, include=include).pool(clock_of(None))
    incumbent = Incumbent(float(pool.k * pool.points))
    rng = np.random.default_rng(0) if rng is None else rng
    local.local_search(pool, incumbent, clock_of(None), local.Effort(rng, starts, kicks))
    return incumbent


def tree(X, c, start, *, include=(), gap=0.0, time_limit=None, workers=2, callback=None):
    """What branch and bound proves, with the status that a search would report."""
    report = None
    if callback is not None:

        def report(at):
            gap = (at.loss - at.lower_bound) / at.loss
            return callback(SearchProgress(0.0, at.loss, at.lower_bound, gap, at.nodes, at.open_nodes, at.subset))

    limits = Limits(gap, nodes=None, workers=workers, clock=clock_of(time_limit), report=report)
    proof = branch_and_bound(np.asarray(X), c, np.array(start), limits, include=include)
    closed = "optimal" if proof.lower_bound >= proof.loss * (1 - 1e-9) else "gap"
    status = closed if proof.stop is None else proof.stop.value
    return SimpleNamespace(status=status, loss=proof.loss, lower_bound=proof.lower_bound, indices=proof.subset)


def prove(X, c, start, *, include=(), gap=0.0, joint=False, aggregate="sum"):
    """What a proof makes of a start."""
    pool = Problem.of(X, c=c, include=include, aggregate=aggregate).pool(clock_of(None))
    log_loss = pool.log_loss(np.asarray(start))
    incumbent = Incumbent(pool.ideal, gap=gap, subset=np.sort(start), log_loss=log_loss)
    for proof in [JointTree()] if joint else [Prove(workers=1)]:
        if not incumbent.closed and incumbent.stop is None and proof.applies(pool, incumbent):
            incumbent.stop = proof.run(pool, incumbent, clock_of(None))
    return incumbent
