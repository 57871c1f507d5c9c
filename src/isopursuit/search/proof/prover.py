"""Prove an incumbent: raise the bound over all columns, exclude most of them, search the others below rising targets.

**Cuts** (cuts.py) exclude columns that no better subset contains, in memory or in a source. For a source the tangent
cut comes from the relaxation over the resident columns. In memory the tree's root does the same.

**Targets.** The number of columns that cuts cannot exclude grows with the incumbent's excess over k. Among millions of
columns without structure, it is nearly all of them. So the proof first asks for a subset below a target. Columns whose
bound is not below the target are ignored, and so are pairs whose inner product is too large (cuts.py). The **tree**
(tree.py) searches each remaining column with its compatible columns, by their pairs first. The best subset found is the
best of all. If there is none, the target is a lower bound over all columns, and the next target is higher. This finds
and proves an orthonormal basis among a million columns even if no swap leads to it. If nearly all pairs are compatible,
targets do not help, and the tree searches all remaining columns if there are not too many. If memory or time runs out,
the status says so, and the last bound is kept.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.clock import REPORT_SECONDS, Clock
from isopursuit._core.threads import on_one_blas_thread
from isopursuit._core.types import Array, Indices
from isopursuit.loss.envelope import relax
from isopursuit.loss.penalty import LARGEST_EXPONENT, LARGEST_LOG, PROVED, SMALLEST_EXPONENT, STATED, stiffness
from isopursuit.search.incumbent import Incumbent, StopReason
from isopursuit.search.pool import Pool
from isopursuit.search.proof._tree import OpenNode
from isopursuit.search.proof.cuts import ColumnFilter, Cuts, FilterResult, compatible, roots, typical_cost
from isopursuit.search.proof.tree import Limits, Snapshot, branch_and_bound, tree_kernel
from isopursuit.search.settings import COPIES, RESIDENT, WORK

NEWTON_STEPS = 200  # most Newton steps for the relaxation (derived: far more than it takes to converge)
# So few columns go to the tree without a graph of pairs, and the first target leaves so many (measured by the ladder's
# "hiddensource6": 100 and 400 take 1.1 and 1.3 times as long)
FEW_COLUMNS = 200
# Share of all pairs: a graph with more edges excludes too little (measured by the ladder's "gauss8" and "cancer10": 0.9
# takes 1.2 and 1.9 times as long, 0.1 the same)
DENSE = 0.3


@dataclass(frozen=True)
class Prove:
    """The stage that proves the incumbent, or finds better subsets on the way.

    `nodes` is the most nodes of the tree. `memory` is the most bytes of columns that a source may load. `trial` and
    `enough` are those of the tree. With `root`, only the bound of the relaxation over all columns is computed, if no
    better bound is known and there are not too many rows.
    """

    nodes: int | None = None
    workers: int = 1
    memory: int = 0
    trial: int | None = None
    enough: float = 0.0
    root: bool = False

    def applies(self, pool: Pool, incumbent: Incumbent) -> bool:
        """If there is one point, and the loss can be bounded."""
        useful = not self.root or (incumbent.lower_bound <= incumbent.ideal and pool.rows**6 <= 32 * WORK)
        can_bound = SMALLEST_EXPONENT <= pool.c <= LARGEST_EXPONENT and incumbent.log_loss < LARGEST_LOG
        return useful and pool.points == 1 and can_bound

    def run(self, pool: Pool, incumbent: Incumbent, clock: Clock) -> StopReason | None:
        """Raise the incumbent's bound."""
        prover = Prover(pool, incumbent, clock.silent, self)  # a proof reports itself, with its nodes
        try:
            stop = prover.run()
        finally:
            incumbent.nodes += prover.nodes
            incumbent.evaluations += prover.evaluations
        return stop


class Prover:
    """The state of one proof: the cuts known so far, the columns they leave, and the work done.

    `positions` and `values` (D, m) are the columns that the cuts leave, and `bounds` a bound for subsets with each.
    Targets rise up to `top`.
    """

    positions: Indices
    values: Array
    bounds: Array
    top: float

    def __init__(self, pool: Pool, incumbent: Incumbent, clock: Clock, limits: Prove) -> None:
        self.pool, self.incumbent, self.clock, self.limits = pool, incumbent, clock, limits
        self.nodes = self.evaluations = 0
        in_memory = pool.X is not None
        self.room = pool.count if in_memory else max(2 * RESIDENT, limits.memory // (8 * COPIES * pool.rows))
        self.most = pool.count if in_memory else 5 * RESIDENT  # columns for the tree if pairs exclude nothing
        pool.load(incumbent.subset, pool.at_hand(incumbent.subset))
        loss = incumbent.loss
        included = np.ascontiguousarray(pool.resident_columns[:, : len(pool.include)].T)
        self.cuts = Cuts.initial(
            included, relax(pool.c, pool.k, loss, np.inf), stiffness(pool.c, max(loss - pool.k, 0.0)), pool.missing
        )

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
        before = self.cuts
        found = self._screen(self.room)
        if found is None or isinstance(found, StopReason):
            return found or StopReason.TIME
        if pool.X is None:
            excluded = pool.count - found.survivors
            note = f"{excluded:,} of {pool.count:,} columns excluded by bounds, {found.survivors:,} left."
            incumbent.notes += (note,)
        kept = found.kept.trimmed()
        self.positions, self.values = pool.columns_of(kept)
        self.bounds = before.bounds(self.values)
        self.top = incumbent.limit if found.survivors <= self.room else min(-kept.left, incumbent.limit)
        return self._raise_target()

    def report(self) -> bool:
        """Report progress to the caller; True if the search must stop."""
        return self.incumbent.report(self.nodes, at_once=True)

    # ------------------------------------------------------------------------------------------ bounds of all columns
    def _raise_bound(self) -> StopReason | None:
        """Solve the relaxation over resident columns, and screen all by its tangent if that may raise the bound."""
        incumbent, solved = self.incumbent, self._relaxed()
        if solved is None or isinstance(solved, StopReason):
            return solved
        weights, columns = solved
        cuts = self.cuts.with_tangent(weights, columns)
        here = float(cuts.bases[-1] + weights @ cuts.scores(columns)[-1])
        if here <= incumbent.lower_bound + 1e-6 * (incumbent.loss - incumbent.lower_bound):
            return None
        self.cuts = cuts
        found = self._screen(0)
        return StopReason.TIME if found is None else found if isinstance(found, StopReason) else None

    def _relaxed(self) -> tuple[Array, Array] | StopReason | None:
        """Weights near the relaxation's minimum over the resident columns, and those columns.

        None if they give no bound; a reason if a callback stops the search.
        """
        pool, loss, fixed = self.pool, self.incumbent.loss, len(self.pool.include)
        columns = np.ascontiguousarray(pool.resident_columns.T)
        # a high incumbent, so that the kernel neither closes the node nor drops columns
        rules = None if pool.rules is None else pool.rules.take(pool.resident_positions)
        kernel = tree_kernel(columns, pool.k, pool.c, 100 * loss, rules)
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

    def _screen(self, room: int) -> FilterResult | StopReason | None:
        """One pass with all cuts, from which the cuts and the bound are updated; None if there is no time for it."""
        pool, incumbent = self.pool, self.incumbent
        task = ColumnFilter(self.cuts, pool.missing, incumbent.limit, pool.columns.transform, pool.excluded, room)
        found: FilterResult | None = pool.ask(task, incumbent.reporting(self.clock, lambda: self.nodes))
        if found is None:
            return None
        least = np.sort(found.least, axis=1)
        self.cuts = replace(self.cuts, least=least[:, : pool.missing - 1].sum(axis=1))
        incumbent.raise_bound(float((self.cuts.bases + least.sum(axis=1)).max()))
        return StopReason.INTERRUPTED if self.report() else found

    # ------------------------------------------------------------------------------------------ targets
    def _raise_target(self) -> StopReason | None:
        """Raise the target until a subset below it is found or the incumbent is proved."""
        k, incumbent = self.pool.k, self.incumbent
        target = self._first_target()
        while not self.clock.expired:
            if np.count_nonzero(self.bounds < target) > min(self.most, len(self.bounds) // 4):
                target = max(target, self._crowded_target())
            target = min(target, self.top)
            some = np.flatnonzero(self.bounds < target)
            pairs = self._pairs(some, target)
            if isinstance(pairs, StopReason):
                return pairs
            left = np.flatnonzero(self.bounds < self.top)
            if pairs is None and len(some) > FEW_COLUMNS and self.pool.missing > 2 and len(left) <= self.most:
                # pairs exclude too little, and the tree can take all columns at once: no lower target helps
                target, some = self.top, left
            stop = self._grow(some, pairs, target)
            if stop is not None or incumbent.closed:
                return stop
            if incumbent.loss < target and not incumbent.proved:
                # repeat with the subset that was found: fewer columns and pairs remain
                target = self.top = incumbent.limit
                continue
            incumbent.raise_bound(target * (1 - PROVED))
            if self.report():
                return StopReason.INTERRUPTED
            if incumbent.closed:
                return None
            if target < self.top:
                target = 2 * target - k  # twice the excess, so that the last one costs most
            elif self.top < incumbent.limit:
                return self._out_of_memory(
                    f"{len(self.positions):,} columns were loaded, and memory has no room for the others: a larger "
                    "memory= helps"
                )
            else:
                incumbent.raise_bound(incumbent.loss)
                return None
        return StopReason.TIME

    def _first_target(self) -> float:
        """A target that leaves few columns."""
        if len(self.bounds) <= FEW_COLUMNS:
            return self.top
        lower = self.incumbent.lower_bound
        return max(float(np.partition(self.bounds, FEW_COLUMNS)[FEW_COLUMNS]), lower + 1e-9 * (self.top - lower))

    def _crowded_target(self) -> float:
        """A target that leaves few pairs; lower ones take about as long."""
        cuts, mu = self.cuts, stiffness(self.pool.c, 0.0)
        own = cuts.scores(self.values)[0] / cuts.stiffness
        base = float((cuts.bases[0] - self.pool.k) / cuts.stiffness)
        return self.pool.k + mu * (base + typical_cost(self.values, own, self.pool.missing))

    def _pairs(self, some: Indices, target: float) -> NDArray[np.int32] | StopReason | None:
        """The compatible pairs of some columns below a target; None if pairs exclude too little for the tree."""
        pool, cuts, count = self.pool, self.cuts, len(some)
        if count <= FEW_COLUMNS or pool.missing <= 2:  # the tree tests all pairs itself
            return None
        values, excess = self.values[:, some], target - pool.k
        budget = excess / stiffness(pool.c, max(excess, 0.0)) - float((cuts.bases[0] - pool.k) / cuts.stiffness)
        pairs = compatible(values, cuts.scores(values)[0] / cuts.stiffness, budget, pool.missing, self.clock)
        if pairs is None and count > self.most:
            if self.clock.expired:
                return StopReason.TIME
            return self._out_of_memory(
                f"{count:,} columns may be in a subset of loss below {target:.6g}, and too many pairs of them may go "
                "together"
            )
        return None if pairs is None or 2 * pairs.shape[1] > DENSE * count**2 else pairs

    def _grow(self, some: Indices, pairs: NDArray[np.int32] | None, target: float) -> StopReason | None:
        """Search for a subset of some columns below a target: from one root, or from one for each column with pairs."""
        pool, incumbent = self.pool, self.incumbent
        if len(some) < pool.missing:
            return None
        # the included columns, these columns, and the incumbent's, which may have been excluded
        fixed, subset, positions = len(pool.include), incumbent.subset, self.positions[some]
        extra = subset[~np.isin(subset, np.concatenate([pool.include, positions]))]
        X = np.concatenate([pool.at_hand(pool.include), self.values[:, some], pool.at_hand(extra)], axis=1)
        positions = np.concatenate([pool.include, positions, extra])
        start = np.flatnonzero(np.isin(positions, subset))
        some_roots = None if pairs is None else roots(pairs + np.int32(fixed), len(some) + fixed, pool.missing - 1)

        def offer(found: Indices, loss: float) -> None:
            pool.load(positions[found], X[:, found])
            incumbent.offer(positions[found], float(np.log(loss)), "tree")

        def report(at: Snapshot) -> bool:
            if at.loss < min(target, incumbent.loss):
                offer(at.subset, at.loss)
            if some_roots is None:
                incumbent.raise_bound(min(target, at.lower_bound))
            return incumbent.report(self.nodes + at.nodes, at.open_nodes)

        # the tree measures the gap from the target, which may be below the incumbent by a relative PROVED
        gap = max(incumbent.gap - 2 * PROVED, 0.0) if some_roots is None and target >= incumbent.limit else 0.0
        # at least one node, so that the tree itself reports why it ends
        nodes = None if self.limits.nodes is None else max(self.limits.nodes - self.nodes, 1)
        trial = None if self.limits.trial is None else max(self.limits.trial - self.nodes, 0)
        limits = Limits(gap, nodes, self.limits.workers, self.clock, report, trial, self.limits.enough)
        X = np.ascontiguousarray(X)
        rules = None if pool.rules is None else pool.rules.take(positions)
        proof = branch_and_bound(
            X, pool.c, start, limits, include=range(fixed), roots=some_roots, below=target, rules=rules
        )
        self.nodes += proof.nodes
        self.evaluations += proof.evaluations
        incumbent.least = min(incumbent.least, proof.least)
        found = proof.loss < target
        if found:
            target = proof.loss
            offer(proof.subset, proof.loss)
        if some_roots is None:
            incumbent.raise_bound(min(target, proof.lower_bound))
        # otherwise it ended within the requested gap, which closes the search
        whole = proof.stop is None and proof.lower_bound >= proof.loss * (1 - STATED)
        if whole and (found or target >= incumbent.limit):
            incumbent.raise_bound(incumbent.loss)
        return proof.stop

    def _out_of_memory(self, why: str) -> StopReason:
        self.incumbent.notes += (f"not proved: {why}. Fewer columns, or lengths nearer 1, would help.",)
        return StopReason.MEMORY
