"""Dives: depth-first search from many roots by the squares of inner products alone (pairs.py, _dive.pyx)."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

import numpy as np

from isopursuit._types import Array, Indices
from isopursuit.search.incumbent import StopReason
from isopursuit.search.proof._dive import DiveKernel
from isopursuit.search.proof.pairs import PairCosts
from isopursuit.search.proof.tree import Root
from isopursuit.search.settings import REPORT_SECONDS
from isopursuit.threads import on_one_blas_thread

if TYPE_CHECKING:
    from isopursuit.search.proof.prover import Prover

ROUND_ROOTS = 64  # roots searched with the same cutoff, whatever the number of workers (guess)
DIVE_NODES = 200_000  # most nodes of a dive from one root before the tree takes over (guess: a tenth of a second)
RESTART = 0.7  # the target starts anew if a subset's excess over D is below this share of the target's (guess)


def dive(
    prover: Prover, X: Array, positions: Indices, costs: PairCosts, roots: Sequence[Root], target: float
) -> list[Root] | StopReason | None:
    """Search from each root for subsets below the target; returns the roots that need too many nodes.

    None if a subset is so far below the target that a new target is worthwhile.
    """
    pool, incumbent, clock = prover.pool, prover.incumbent, prover.clock
    include = np.arange(len(pool.include), dtype=np.int32)
    kernel = DiveKernel(np.ascontiguousarray(X.T), pool.k, include, costs.own, costs.base, pool.c, costs.stiffness)
    below = target
    hard: list[Root] = []

    threads = ThreadPoolExecutor(prover.limits.workers)
    seek = on_one_blas_thread(kernel.seek)

    def ended() -> StopReason | None:
        """Why the search must end now, if it must."""
        if clock.expired:
            return StopReason.TIME
        return StopReason.INTERRUPTED if incumbent.report(prover.spent) else None

    try:
        for first in range(0, len(roots), ROUND_ROOTS):
            # the roots of a round have the same cutoff, so that the answer does not depend on the number of workers
            some, limit = roots[first : first + ROUND_ROOTS], below
            running = [threads.submit(seek, *root, limit, DIVE_NODES) for root in some]
            for root, future in zip(some, running, strict=True):
                while not future.done():
                    wait([future], max(0.01, min(clock.remaining, REPORT_SECONDS)))
                    if (reason := ended()) is not None:
                        return reason
                finished, loss, subset, least, nodes = future.result()
                prover.dive_nodes += nodes
                incumbent.least = min(incumbent.least, least)
                if subset is not None and loss < below:
                    below = loss
                    pool.load(positions[subset], X[:, subset])
                    incumbent.offer(positions[subset], float(np.log(loss)), "dive")
                    if loss - pool.k < RESTART * (target - pool.k):
                        return None
                if not finished:
                    hard.append(root)
                if prover.limits.nodes is not None and prover.spent >= prover.limits.nodes:
                    return StopReason.NODES
                if (reason := ended()) is not None:
                    return reason
    finally:
        kernel.stop()
        threads.shutdown(cancel_futures=True)
    return hard
