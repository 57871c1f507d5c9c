"""Prove an incumbent: raise the bound over all columns, exclude most of them, search the others.

**Cuts** (cuts.py) exclude columns that no better subset contains, in memory or in a source. For a source the tangent
cut comes from the relaxation over the resident columns. Columns of low score are loaded, and the relaxation is solved
again until the bound over all columns stops rising. In memory the tree's root does the same.

**Targets** (targets.py) are losses below the incumbent's. The proof searches for a subset below a target, and the
target rises until one is found or the incumbent is proved. The **tree** (tree.py) does each search.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

import numpy as np

from isopursuit._core.clock import REPORT_SECONDS, Clock
from isopursuit._core.threads import on_one_blas_thread
from isopursuit._core.types import Array
from isopursuit.loss.envelope import relax
from isopursuit.loss.penalty import LARGEST_EXPONENT, LARGEST_LOG, SMALLEST_EXPONENT, stiffness
from isopursuit.search.incumbent import Incumbent, StopReason
from isopursuit.search.pool import Pool
from isopursuit.search.proof._tree import OpenNode
from isopursuit.search.proof.cuts import ColumnFilter, Cuts, FilterResult
from isopursuit.search.proof.targets import Targets
from isopursuit.search.proof.tree import tree_kernel
from isopursuit.search.settings import BYTES_PER_ENTRY, MAX_TREE_COLUMNS, MIN_ROOM, PURSUIT_ROWS

ROUNDS = 8  # most rounds of solving the relaxation and screening all columns (guess)
NEWTON_STEPS = 200  # most Newton steps for the relaxation (derived: far more than it takes to converge)
STEPS, STEP_SPEED = 50, 1e9  # Newton steps of a node, and multiplications per second, to estimate its time (guess)
NEARLY = 0.02  # share of the distance to the incumbent at which the bound over all columns is good enough (guess)
LOADED = 1024  # columns of the lowest scores that are loaded in a round (guess)


def can_bound(pool: Pool, incumbent: Incumbent) -> bool:
    """Whether the relaxation can be used for this exponent and a loss of this size."""
    return SMALLEST_EXPONENT <= pool.c <= LARGEST_EXPONENT and incumbent.log_loss < LARGEST_LOG


@dataclass(frozen=True)
class Prove:
    """The stage that proves the incumbent, or finds better subsets on the way.

    `nodes` is the most nodes of the tree. `memory` is the most bytes of columns that a source may load. A `short` proof
    is one attempt among other stages: if its nodes are used up, the search continues, and they are counted only if it
    succeeds. With `root`, only the bound of the relaxation over all columns is computed, if no better bound is known
    and there are not too many rows.
    """

    nodes: int | None = None
    workers: int = 1
    memory: int = 0
    short: bool = False
    root: bool = False

    def applies(self, pool: Pool, incumbent: Incumbent) -> bool:
        """If there is one point, and the loss can be bounded."""
        useful = not self.root or (incumbent.lower_bound <= incumbent.ideal and pool.rows <= PURSUIT_ROWS)
        return useful and pool.points == 1 and can_bound(pool, incumbent)

    def run(self, pool: Pool, incumbent: Incumbent, clock: Clock) -> StopReason | None:
        """Raise the incumbent's bound."""
        clock = clock.silent  # a proof reports itself, with its nodes
        prover = Prover(pool, incumbent, clock, self)
        try:
            stop = prover.run()
        finally:
            if incumbent.closed or not self.short:
                incumbent.nodes += prover.nodes
                incumbent.evaluations += prover.evaluations
        return stop if stop is StopReason.INTERRUPTED or not self.short else None


def node_seconds(D: int, P: int) -> float:
    """About how many seconds the relaxation of one node takes with P columns of D rows."""
    return STEPS * D**2 * (P + D) / STEP_SPEED


class Prover:
    """The state of one proof: the cuts known so far, and the work done."""

    def __init__(self, pool: Pool, incumbent: Incumbent, clock: Clock, limits: Prove) -> None:
        self.pool, self.incumbent, self.clock, self.limits = pool, incumbent, clock, limits
        self.nodes = self.evaluations = 0
        in_memory = pool.X is not None
        self.room = pool.count if in_memory else max(MIN_ROOM, limits.memory // (BYTES_PER_ENTRY * pool.rows))
        self.most = pool.count if in_memory else MAX_TREE_COLUMNS  # columns for the tree if pairs exclude nothing
        pool.load(incumbent.subset, pool.at_hand(incumbent.subset))
        loss = incumbent.loss
        included = np.ascontiguousarray(pool.resident_columns[:, : len(pool.include)].T)
        self.cuts = Cuts.initial(
            included, relax(pool.c, pool.k, loss, np.inf), stiffness(pool.c, max(loss - pool.k, 0.0)), pool.missing
        )

    @property
    def nodes_left(self) -> int | None:
        """How many more nodes the tree may take; at least one, so that the tree itself reports why it ends."""
        return None if self.limits.nodes is None else max(self.limits.nodes - self.nodes, 1)

    def run(self) -> StopReason | None:
        """Raise the bound, exclude columns, and search the others."""
        pool, incumbent = self.pool, self.incumbent
        if self.report():
            return StopReason.INTERRUPTED
        if pool.missing == 0:  # the included columns are the only subset
            incumbent.raise_bound(incumbent.loss)
            return None
        if (self.limits.root or pool.X is None) and not incumbent.closed:
            stop = self._raise_bound()
            if stop is not None:
                return stop
        if incumbent.closed or self.limits.root:
            return None
        if pool.X is not None and node_seconds(pool.rows, pool.count) > self.clock.remaining:
            return StopReason.TIME
        found: FilterResult | None = pool.ask(
            self._filter(self.room), self.incumbent.reporting(self.clock, lambda: self.nodes)
        )
        if found is None:
            return StopReason.TIME
        before = self.cuts
        if self._learn(found):
            return StopReason.INTERRUPTED
        if pool.X is None:
            excluded = pool.count - found.survivors
            note = f"{excluded:,} of {pool.count:,} columns excluded by bounds, {found.survivors:,} left."
            incumbent.notes += (note,)
        kept = found.kept.trimmed()
        positions, values = pool.columns_of(kept)
        top = incumbent.limit if found.survivors <= self.room else min(-kept.left, incumbent.limit)
        return Targets(self, positions, values, before.bounds(values), top).run()

    def report(self) -> bool:
        """Report progress to the caller; True if the search must stop."""
        return self.incumbent.report(self.nodes, at_once=True)

    def _raise_bound(self) -> StopReason | None:
        """Column generation: solve the relaxation over resident columns, screen all, load those of low score."""
        pool, incumbent = self.pool, self.incumbent
        for _ in range(ROUNDS):
            solved = self._relaxed()
            if solved is None or isinstance(solved, StopReason):
                return solved
            self.cuts = self.cuts.with_tangent(*solved)
            here = float(self.cuts.bases[-1] + solved[0] @ self.cuts.scores(solved[1])[-1])
            if here <= incumbent.lower_bound + 1e-6 * (incumbent.loss - incumbent.lower_bound):
                return None
            found: FilterResult | None = pool.ask(
                self._filter(0, LOADED), self.incumbent.reporting(self.clock, lambda: self.nodes)
            )
            if found is None:
                return StopReason.TIME
            if self._learn(found):
                return StopReason.INTERRUPTED
            before = pool.resident_columns.shape[1]
            pool.load(*pool.columns_of(found.lowest.trimmed()))
            done = incumbent.lower_bound >= here - NEARLY * (incumbent.loss - incumbent.lower_bound)
            if incumbent.closed or done or pool.resident_columns.shape[1] == before:
                return None
        return None

    def _relaxed(self) -> tuple[Array, Array] | StopReason | None:
        """Weights near the relaxation's minimum over the resident columns, and those columns.

        None if they give no bound; a reason if a callback stops the search.
        """
        pool, loss, fixed = self.pool, self.incumbent.loss, len(self.pool.include)
        if node_seconds(pool.rows, len(pool.resident_positions)) > self.clock.remaining:
            return None
        columns = np.ascontiguousarray(pool.resident_columns.T)
        # a high incumbent, so that the kernel neither closes the node nor drops columns
        kernel = tree_kernel(columns, pool.k, pool.c, 100 * loss)
        candidates = np.arange(fixed, len(columns), dtype=np.int32)
        start = np.isin(pool.resident_positions[fixed:], self.incumbent.subset).astype(np.float32)
        root = OpenNode(float(pool.k), np.arange(fixed, dtype=np.int32), candidates, start)
        tolerance = 1e-3 * (loss - pool.k) / (100 * loss)
        interrupted = False
        with ThreadPoolExecutor(1) as thread:
            solving = thread.submit(on_one_blas_thread(kernel.relax), root, NEWTON_STEPS, tolerance)
            try:
                while wait([solving], max(0.01, min(self.clock.remaining, REPORT_SECONDS))).not_done:
                    interrupted = interrupted or self.incumbent.report(self.nodes)
                    if interrupted or self.clock.expired:
                        kernel.stop()
            finally:
                kernel.stop()  # after Ctrl-C the thread is still solving
        solved = solving.result()
        if interrupted:
            return StopReason.INTERRUPTED
        if solved is None:
            return None
        _, numbers, weights = solved
        some = weights > 0
        return weights[some], pool.resident_columns[:, numbers[some]]

    def _filter(self, room: int, lowest: int = 0) -> ColumnFilter:
        pool = self.pool
        return ColumnFilter(
            self.cuts, pool.missing, self.incumbent.limit, pool.columns.transform, pool.excluded, room, lowest
        )

    def _learn(self, found: FilterResult) -> bool:
        """Store the sums of the smallest scores over all columns and the bound they give; True to stop."""
        least = np.sort(found.least, axis=1)
        self.cuts = replace(self.cuts, least=least[:, : self.pool.missing - 1].sum(axis=1))
        self.incumbent.raise_bound(float((self.cuts.bases + least.sum(axis=1)).max()))
        return self.report()
