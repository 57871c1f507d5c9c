"""The paper's greedy search: add the column that gives the least loss until there are k.

At one point each pick takes one product of a vector with all columns (scan.py). Many points use the kernel of swaps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from isopursuit._core.clock import EXPIRED, UNLIMITED, Clock
from isopursuit._core.linalg import numerical_rank, spectrum, unit_columns
from isopursuit._core.types import Array, Indices, Status
from isopursuit.errors import RankError
from isopursuit.results import Search
from isopursuit.search.incumbent import Limits, SearchOutcome, SearchProgress
from isopursuit.search.local import ruled, swap_kernel, with_large_volume
from isopursuit.search.pool import Pool
from isopursuit.search.scan import BestAddition, BestColumn, Coordinates
from isopursuit.sources.columns import MEMORY


def greedy(pool: Pool, limits: Limits) -> Search:
    """`greedy_search` on a pool."""
    pool, clock, stopped = pool.reduced(), limits.clock, False
    callback = pool.translated(limits.callback)

    def report(subset: Indices) -> bool:
        nonlocal stopped
        if callback is not None:
            left = pool.k - len(subset)
            now = SearchProgress(clock.seconds, np.inf, pool.ideal, np.inf, 0, left, subset, "greedy", "greedy")
            stopped = bool(callback(now)) or stopped
        return stopped

    subset, finished = (greedy_subset if pool.points == 1 else _at_points)(pool, pool.include, clock, report)
    if pool.rules is not None and pool.log_loss(subset) == np.inf:
        subset = pool.first_allowed()  # the rules left only columns that depend on the others
    evaluations = sum(pool.count - size for size in range(len(pool.include), pool.k))
    status: Status = "interrupted" if stopped else "heuristic" if finished else "time"
    return pool.answer(SearchOutcome(subset, status, evaluations), "greedy")


def greedy_subset(
    pool: Pool, subset: Indices, clock: Clock, report: Callable[[Indices], bool] = lambda subset: False
) -> tuple[Indices, bool]:
    """Add columns at one point to the subset until it has k, one pass for each; also whether there was time.

    `report` is called after each column; if it returns True, the time is over. If time runs out, columns in memory of
    large volume complete the subset. Passes continue if those cannot.
    """
    source, finished, basis = pool.columns.source, True, np.zeros((0, pool.rows))
    known: Coordinates | None = None
    if hasattr(source, "read") or hasattr(source, "tensor"):  # passes are made in this process and can store rows
        rows = min(pool.k, MEMORY // (pool.count * source.dtype.itemsize))
        known = Coordinates(np.empty(pool.count), np.empty((rows, pool.count), source.dtype))
    while len(subset) < pool.k:
        here = pool.at_hand(subset)
        basis = _extended(basis, here)
        if pool.is_stuck(subset):
            return pool.first_allowed(), finished
        excluded = np.union1d(pool.excluded, np.flatnonzero(pool.blocked(subset)))
        task = BestAddition.to(here, basis, pool.c, pool.columns.transform, excluded, known)
        best: BestColumn | None = pool.ask(task, clock)
        if best is None:
            finished, clock = False, UNLIMITED
            quick = with_large_volume(pool, subset)
            if quick is not None:
                return quick, finished
            continue
        if known is not None:
            known = Coordinates(known.squares, known.rows, min(len(subset), len(known.rows)))
        if best.index < 0:  # the loss overflows float64 with every column
            quick = with_large_volume(pool, subset)
            subset = subset if quick is None else quick
            break
        if best.values is not None and pool.X is None:
            pool.load(np.array([best.index]), best.values[:, None])
        subset = np.append(subset, best.index)
        if report(subset):
            clock = EXPIRED
    rank = numerical_rank(spectrum(unit_columns(pool.at_hand(subset))), pool.k)
    if rank < pool.k and pool.X is None:
        raise RankError(
            f"The columns that can be picked have rank {rank}, so any {pool.k} of them are dependent and have infinite "
            f"loss. Pass k={rank} or less."
        )
    return subset, finished


def _extended(basis: Array, columns: Array) -> Array:
    """An orthonormal basis (m, rows) of the span of these columns (rows, m), given one of the first of them."""
    for x in columns.T[len(basis) :]:
        for _ in range(2):  # twice, so that it is orthogonal to the others up to rounding
            x = x - basis.T @ (basis @ x)
            x = x / max(float(np.linalg.norm(x)), np.finfo(np.float64).tiny)
        basis = np.vstack([basis, x])
    return basis


def _at_points(pool: Pool, subset: Indices, clock: Clock, report: Callable[[Indices], bool]) -> tuple[Indices, bool]:
    """As `greedy_subset`, at many points."""
    assert pool.X is not None
    columns = np.ascontiguousarray(np.swapaxes(pool.X, 1, 2))
    kernel = ruled(swap_kernel(columns, pool.c, pool.aggregate, clock.deadline, pool.k), pool)
    while len(subset) < pool.k and not clock.expired:
        if pool.is_stuck(subset):
            return pool.first_allowed(), True
        number, _ = kernel.add(subset.astype(np.int32), np.inf)
        if kernel.late:  # not all columns were tried
            break
        if number < 0:  # every other column is dependent on these: take any
            number = int(np.flatnonzero(~pool.blocked(subset))[0])
        subset = np.append(subset, number)
        if report(subset):
            break
    finished = len(subset) == pool.k
    whole = subset if finished else with_large_volume(pool, subset)
    assert whole is not None
    return whole, finished
