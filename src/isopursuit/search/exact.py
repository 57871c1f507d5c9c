"""Exact search: the best subset of all with a proof, or a subset with a gap.

It starts with swaps and a few kicks, as exchange search does (`improve`). Then the proof follows (`Prove`); at many
points `JointTree` gives it. Brute force solves small arrays. For a source, the proof loads at most `memory` bytes.
"""

from __future__ import annotations

from contextlib import suppress
from math import comb

import numpy as np

from isopursuit._core.clock import Clock
from isopursuit.errors import ParameterError, RangeError
from isopursuit.loss.penalty import LARGEST_EXPONENT, LARGEST_LOG, SMALLEST_EXPONENT, to_loss
from isopursuit.results import Search
from isopursuit.search.brute import brute
from isopursuit.search.exchange import improve, started
from isopursuit.search.incumbent import Incumbent, Limits, StopReason
from isopursuit.search.pool import Pool
from isopursuit.search.proof.joint import JointTree
from isopursuit.search.proof.prover import Prove
from isopursuit.search.settings import FEW_SUBSETS, FIRST_KICKS, HALF, KICKS, STARTS


def exact(pool: Pool, limits: Limits) -> Search:
    """`exact_search` on a pool."""
    clock = limits.clock
    if not SMALLEST_EXPONENT <= pool.c <= LARGEST_EXPONENT:
        raise ParameterError(
            f"c={pool.c:g}: bounds of the exact search are verified for c from {SMALLEST_EXPONENT} to "
            f"{LARGEST_EXPONENT}. Use exchange_search for other c."
        )
    if pool.X is not None and pool.points * comb(pool.count - len(pool.include), pool.missing) <= FEW_SUBSETS:
        return brute(pool, limits, "exact")
    pool = pool.distinct()
    incumbent = started(pool, limits)
    start = clock.part(HALF)
    with incumbent.ended_by_caller():
        with incumbent.ended_by_caller():
            incumbent.stop = _start(pool, incumbent, limits, incumbent.reporting(start))
        if incumbent.stop in (None, StopReason.TIME):
            # a subset whose loss is too large for a proof is an answer, where more time may give a better one
            late = clock.expired if incumbent.log_loss < LARGEST_LOG else start.expired
            incumbent.stop = StopReason.TIME if late else None
        if not incumbent.closed and incumbent.stop is None:
            _check_range(pool, incumbent)
            if not pool.resolves(incumbent.subset):
                incumbent.stop = StopReason.PRECISION
        _prove(pool, incumbent, limits, incumbent.reporting(clock))
    with suppress(KeyboardInterrupt):  # in the last call of the callback it has nothing left to end
        incumbent.report(at_once=True)
    return incumbent.answered(lambda: _answer(pool, incumbent))


def _answer(pool: Pool, incumbent: Incumbent) -> Search:
    if incumbent.closed and not pool.resolves(incumbent.subset):  # it may have been found beside the proof
        least = pool.least_log_losses(pool.at_points(incumbent.subset))
        incumbent.least = min(incumbent.least, to_loss(float(least)))
    return pool.answer(incumbent.found(), "exact")


def _start(pool: Pool, incumbent: Incumbent, limits: Limits, clock: Clock) -> StopReason | None:
    """Search for a good subset before the proof, and longer if no subset was found whose loss can be bounded."""
    share = 1 if pool.points == 1 else 3
    starts, kicks = STARTS // share, FIRST_KICKS // share
    stop = improve(pool, incumbent, clock, limits, starts, kicks, brief=True)
    if stop is None and not incumbent.log_loss < LARGEST_LOG:
        stop = improve(pool, incumbent, clock, limits, STARTS, KICKS)
    return stop


def _prove(pool: Pool, incumbent: Incumbent, limits: Limits, clock: Clock) -> None:
    """The proof: of one matrix, or of many points."""
    if incumbent.closed or incumbent.stop is not None:
        return
    if clock.expired:
        incumbent.stop = StopReason.TIME
        return
    one = pool.points == 1
    proof = (
        Prove(limits.nodes, limits.workers, limits.memory, limits.trial, limits.enough)
        if one
        else JointTree(limits.nodes, limits.workers, limits.trial, limits.enough)
    )
    if proof.applies(pool, incumbent):
        incumbent.stop = proof.run(pool, incumbent, clock)


def _check_range(pool: Pool, incumbent: Incumbent) -> None:
    if incumbent.log_loss < LARGEST_LOG:
        return
    scale = "unit='median', which makes the median length 1"
    if pool.X is not None:
        scale += f" (it is {float(np.median(np.linalg.norm(pool.X, axis=1))):.4g})"
    raise RangeError(
        f"The best loss known is e^{incumbent.log_loss:.4g}, outside the range in which bounds can be computed. Use "
        f"exchange_search, which compares logarithms, a smaller c, or {scale}."
    )
