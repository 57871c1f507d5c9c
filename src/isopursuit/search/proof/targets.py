"""Raise a target from D until a subset below it is found, or the incumbent is proved.

The number of columns that cuts cannot exclude grows with the incumbent's excess over D. Among millions of columns
without structure, it is nearly all of them. So the search first uses a target below the incumbent: is there a subset
with a loss below it? Columns whose bound is not below the target are ignored, and so are pairs whose inner product is
too large (pairs.py). The tree searches each remaining column with its compatible columns, by their pairs first. The
best subset found is the best of all. If there is none, the target is a lower bound
over all columns, and the next target is higher. This finds and proves an orthonormal basis among a million columns even
if no swap leads to it. If nearly all pairs are compatible, targets do not help, and the tree searches all remaining
columns if there are not too many. If memory or time runs out, the status says so, and the last bound is kept.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from isopursuit._core.types import Array, Indices
from isopursuit.loss.penalty import PROVED, STATED, stiffness
from isopursuit.search.incumbent import StopReason
from isopursuit.search.proof.pairs import MAX_PAIRS, SORTED_PAIRS, PairCosts, compatible
from isopursuit.search.proof.tree import Limits, Root, Snapshot, branch_and_bound

if TYPE_CHECKING:
    from isopursuit.search.proof.prover import Prover

FEW_MISSING = 2  # missing columns up to which the tree tests all pairs itself (derived)
FEW_COLUMNS = 150  # so few columns go to the tree without a graph of pairs (kept)
DENSE = 0.3  # share of all pairs: a graph with more edges excludes too little (kept)
EASY_COLUMNS = 200  # columns that the first target leaves (guess)
CROWDED_COLUMNS = 5000  # for more columns, or a quarter of all if that is less, pairs determine the target (guess)
PARTNERS, SAMPLE = 128, 256  # mean number of compatible columns at such a target, and the sample for the mean (guess)
SAMPLE_ENTRIES = 2**24  # most inner products computed for that mean (derived: 128 MB)
TARGET_GROWTH = 2.0  # factor of the target's excess over D, from one target to the next (guess)
MIN_GROWTH = 1.2  # least such factor when a lower target is tried after one that left too many pairs (guess)


class TargetStatus(enum.Enum):
    """The result of the search for a subset below a target."""

    DECIDED = enum.auto()  # all subsets below the target are known
    UNDECIDED = enum.auto()  # pairs exclude too little, and the tree must take all columns
    TOO_MANY = enum.auto()  # too many pairs, and too many columns for the tree


class Targets:
    """The columns that cuts leave, positions and values (D, m), with a bound for each; targets rise up to `top`."""

    def __init__(self, prover: Prover, positions: Indices, values: Array, bounds: Array, top: float) -> None:
        self.prover, self.pool, self.incumbent, self.clock = prover, prover.pool, prover.incumbent, prover.clock
        self.positions, self.values, self.bounds, self.top = positions, values, bounds, top
        self.obstacle = ""

    def run(self) -> StopReason | None:
        """Raise the target until a subset below it is found or the incumbent is proved."""
        if self.clock.expired:
            return StopReason.TIME
        D, growth, incumbent = self.pool.k, TARGET_GROWTH, self.incumbent
        target, crowded = self._first_target()
        while True:
            if np.count_nonzero(self.bounds < target) > min(CROWDED_COLUMNS, len(self.bounds) // 4):
                target = max(target, crowded)
            target = min(target, self.top)
            verdict = self._decide(target)
            if verdict is TargetStatus.UNDECIDED:
                target = self.top  # no lower target helps
                verdict = self._grow(*self._with_incumbent(self.positions, self.values), None, target)
            if isinstance(verdict, StopReason):
                return verdict
            if incumbent.closed:
                return None
            if verdict is TargetStatus.TOO_MANY:
                if growth < MIN_GROWTH or incumbent.lower_bound <= D:
                    return self._out_of_memory(self.obstacle)
                growth = growth**0.5
                target, crowded = D + growth * (incumbent.lower_bound - D), 0.0
                continue
            if incumbent.loss < target and not incumbent.proved:
                # repeat with the subset that was found: fewer columns and pairs remain
                target = self.top = incumbent.limit
                continue
            incumbent.raise_bound(target * (1 - PROVED))
            if self.prover.report():
                return StopReason.INTERRUPTED
            if incumbent.closed:
                return None
            if target >= self.top:
                break
            target = D + growth * (target - D)
        if self.top < incumbent.limit:
            return self._out_of_memory(
                f"{len(self.positions):,} columns were loaded, and memory has no room for the others: a larger memory= "
                "helps"
            )
        incumbent.raise_bound(incumbent.loss)
        return None

    def _first_target(self) -> tuple[float, float]:
        """A target that leaves few columns, and one that leaves few pairs; targets below that take about as long."""
        if len(self.bounds) <= EASY_COLUMNS:
            return self.top, self.top
        lower = self.incumbent.lower_bound
        easy = float(np.partition(self.bounds, EASY_COLUMNS)[EASY_COLUMNS])
        return max(easy, lower + 1e-9 * (self.top - lower)), self._crowded_target()

    def _crowded_target(self) -> float:
        costs, values = self._costs(self.values, 0.0), self.values
        own, count = costs.own, len(costs.own)
        few = np.linspace(0, count - 1, min(SAMPLE, 1 + SAMPLE_ENTRIES // count, count)).astype(np.intp)
        pairs = 2 * (values[:, few].T @ values) ** 2 + own + own[few][:, None]
        pairs[np.arange(len(few)), few] = np.inf
        partners = min(PARTNERS, MAX_PAIRS // (2 * count), count // 4)
        cheap = float(np.partition(pairs, partners * len(few), axis=None)[partners * len(few)])
        rest = costs.base + float(np.sort(own)[: max(self.pool.missing - 2, 0)].sum())
        return self.pool.k + stiffness(self.pool.c, 0.0) * (cheap + rest)

    def _costs(self, values: Array, excess: float) -> PairCosts:
        """What each column adds to ‖G − I‖², alone and with the included ones, and what the included ones add."""
        cuts = self.prover.cuts
        own = cuts.scores(values)[0] / cuts.stiffness
        base = float((cuts.bases[0] - self.pool.k) / cuts.stiffness)
        return PairCosts(own, base, stiffness(self.pool.c, excess))

    def _decide(self, target: float) -> TargetStatus | StopReason:
        """Search for a subset below the target: by pairs, then by the tree."""
        pool, missing = self.pool, self.pool.missing
        some = np.flatnonzero(self.bounds < target)
        if len(some) < missing:
            return TargetStatus.DECIDED
        values, count = self.values[:, some], len(some)
        X, positions = self._with_incumbent(self.positions[some], values)
        if count <= FEW_COLUMNS or missing <= FEW_MISSING:  # pairs exclude little more than the tree does
            return self._grow(X, positions, None, target)
        costs = self._costs(values, max(target - pool.k, 0.0))
        graph = compatible(values, costs, (target - pool.k) / costs.stiffness, missing, self.clock)
        late = self.clock.expired or (count > self.prover.most and self.clock.remaining < MAX_PAIRS / SORTED_PAIRS)
        if graph is None and late:
            return StopReason.TIME
        if graph is None and count > self.prover.most:
            self.obstacle = (
                f"{count:,} columns may be in a subset of loss below {target:.6g}, and too many pairs of them may go "
                "together"
            )
            return TargetStatus.TOO_MANY
        if graph is None or len(graph.one) > DENSE * count**2:
            # the tree can take all columns at once, so leave them to it
            last = target >= self.top or np.count_nonzero(self.bounds < self.top) <= self.prover.most
            return TargetStatus.UNDECIDED if last else self._grow(X, positions, None, target)
        fixed = len(pool.include)
        roots = [
            (p + fixed, others + np.int32(fixed)) for p, others in graph.roots(count) if len(others) >= missing - 1
        ]
        return self._grow(X, positions, roots, target)

    def _with_incumbent(self, positions: Indices, values: Array) -> tuple[Array, Indices]:
        """The included columns, these columns, and the incumbent's, which may have been excluded."""
        pool, subset = self.pool, self.incumbent.subset
        extra = subset[~np.isin(subset, np.concatenate([pool.include, positions]))]
        X = np.concatenate([pool.at_hand(pool.include), values, pool.at_hand(extra)], axis=1)
        return np.ascontiguousarray(X), np.concatenate([pool.include, positions, extra])

    def _grow(
        self, X: Array, positions: Indices, roots: Sequence[Root] | None, target: float
    ) -> TargetStatus | StopReason:
        """Run the tree below a target, from one root or from many."""
        prover, incumbent = self.prover, self.incumbent
        place = {int(position): i for i, position in enumerate(positions)}
        report = _Reporter(self, (positions, X), target, roots is None)
        # the tree measures the gap from the target, which may be below the incumbent by a relative PROVED
        gap = max(incumbent.gap - 2 * PROVED, 0.0) if roots is None and target >= incumbent.limit else 0.0
        limits = Limits(gap, prover.nodes_left, prover.limits.workers, self.clock, report)
        start = np.array([place[int(position)] for position in incumbent.subset])
        include = range(len(self.pool.include))
        proof = branch_and_bound(X, self.pool.c, start, limits, include=include, roots=roots, below=target)
        prover.nodes += proof.nodes
        prover.evaluations += proof.evaluations
        incumbent.least = min(incumbent.least, proof.least)
        found = proof.loss < target
        if found:
            target = proof.loss
            self.pool.load(positions[proof.subset], X[:, proof.subset])
            incumbent.offer(positions[proof.subset], float(np.log(proof.loss)), "tree")
        if roots is None:
            incumbent.raise_bound(min(target, proof.lower_bound))
        if proof.stop is not None:
            return proof.stop
        if proof.lower_bound < proof.loss * (1 - STATED):
            return TargetStatus.DECIDED  # within the requested gap, which closes the search
        if found or target >= incumbent.limit:
            incumbent.raise_bound(incumbent.loss)
        return TargetStatus.DECIDED

    def _out_of_memory(self, why: str) -> StopReason:
        self.incumbent.notes += (f"not proved: {why}. Fewer columns, or lengths nearer 1, would help.",)
        return StopReason.MEMORY


class _Reporter:
    """Reports the tree's subsets to the incumbent and, if it has all columns (`whole`), its bound."""

    def __init__(self, targets: Targets, columns: tuple[Indices, Array], target: float, whole: bool) -> None:
        self.targets, self.columns, self.target, self.whole = targets, columns, target, whole

    def __call__(self, at: Snapshot) -> bool:
        incumbent, prover = self.targets.incumbent, self.targets.prover
        if at.loss < min(self.target, incumbent.loss):
            positions, X = self.columns
            self.targets.pool.load(positions[at.subset], X[:, at.subset])
            incumbent.offer(positions[at.subset], float(np.log(at.loss)), "tree")
        if self.whole:
            incumbent.raise_bound(min(self.target, at.lower_bound))
        return incumbent.report(prover.nodes + at.nodes, at.open_nodes)
