"""The best subset of all columns: most are excluded by cuts, then targets are raised from D until one is met.

**Cuts** (cuts.py) exclude columns that no better subset contains, wherever they are. The tangent cut comes from the
relaxation of the columns at home; those of low score come home and it is solved again, until the bound over all columns
stops rising.

**Targets.** What cannot be excluded grows with the incumbent's loss above D, and among millions of columns without
structure it is nearly everything. So the question is asked for a target first, lower than the incumbent: is there a
subset below it? Columns whose bound is not below the target do not matter, nor do pairs whose inner product is too
large (pairs.py); from each column that is left its compatible ones are searched, by dives (_dive.pyx) and where those
take too long by the tree. A subset found is the best of all; where there is none the target is a lower bound over all
columns, and the next one is higher. An orthonormal basis among a million columns is found and proved this way, though
no swap leads to it. Where nearly all pairs are compatible targets say nothing more, and the tree (tree.py) searches all
columns that are left, if they are not too many to be at home. Where memory or time run out the answer says so, with the
last bound.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from threading import Timer
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isopursuit.search._dive import seek
from isopursuit.search._node import NodeKernel
from isopursuit.search._swap import log_loss_of
from isopursuit.search.cuts import Cuts, Sift, Sifted
from isopursuit.search.field import Field
from isopursuit.search.pairs import EDGES, compatible
from isopursuit.search.passes import OutOfTimeError
from isopursuit.search.relaxation import relax, stiffness
from isopursuit.search.tree import Proof, Roots, SearchProgress, branch_and_bound, judged
from isopursuit.sources.arrays import ArraySource
from isopursuit.sources.columns import Columns
from isopursuit.threads import on_one_blas_thread

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Callback = Callable[[SearchProgress], bool | None]
Dived = tuple[bool, float, NDArray[np.int32] | None, float, int]

PROVED = 4.5e-10  # relative to the incumbent: a better subset is below it by more; with the tree's 5e-10 less than 1e-9
ROUNDS = 8  # of solving the relaxation and screening all columns
STEPS = 200  # Newton steps for the relaxation
SHARE = 0.02  # of the distance to the incumbent: when the bound over all columns has come this close, it is done
WANTED = 1024  # columns of the lowest scores that come home in a round
FEW = 150  # columns that the tree takes as they are
DENSE = 0.3  # of all pairs: a graph that says too little
EASY = 200  # columns that the first target leaves
CROWD = 5000  # columns from which on targets are chosen by pairs instead, or a quarter of all if that is less
PARTNERS, SAMPLE = 128, 256  # compatible ones of a column, on average over so many
ENTRIES = 2**24  # inner products computed for that average
RUNG = 2.0  # times the excess over D from target to target
SHORTEST = 1.2  # and not less
WORTH = 0.7  # of the excess over D: a subset found below this share of the target's starts the target anew
ROUND = 64  # roots that are dived from before what they found limits the next ones
DIVES = 200_000  # nodes of a dive from one root, before the tree takes over
CHEAP = 100  # of them take as long as one of the tree's
TOLD = 0.1  # seconds between two calls of the callback
BATCH = 4_000_000  # candidates of the roots searched at once


class OutOfNodesError(Exception):
    """As many nodes as the caller allowed."""


class Fixing:
    """The exact search over columns wherever they are, once an incumbent is known.

    `room` is how many columns may come home, `most` how many of them the tree takes where pairs say nothing.
    """

    def __init__(
        self,
        field: Field,
        c: float,
        subset: Indices,
        log_loss: float,
        *,
        gap: float,
        room: int,
        most: int,
        node_limit: int | None,
        workers: int,
        callback: Callback | None,
    ) -> None:
        self.field, self.c, self.gap, self.room, self.most = field, c, gap, room, most
        self.node_limit, self.workers, self.callback = node_limit, workers, callback
        self.subset, self.loss = subset, float(np.exp(log_loss))
        self.missing = field.k - len(field.include)
        self.lower, self.nodes, self.dived, self.evaluations = float(field.k), 0, 0, 0
        self.doubt = np.inf  # the least that a loss evaluated in a dive can be, its rounding considered
        self.status: Any = "heuristic"
        self.again = False
        self.notes: tuple[str, ...] = ()
        relaxation = relax(c, field.k, self.loss, np.inf)
        included = np.ascontiguousarray(field.home[:, : len(field.include)].T)
        self.cuts = Cuts.around(included, relaxation, stiffness(c, max(self.loss - field.k, 0.0)), self.missing)

    def finish(self) -> None:
        """Run until the subset is proved or something is spent: `status` tells."""
        try:
            self._run()
        except OutOfTimeError:
            self.status = "time"
        except OutOfNodesError:
            self.status = "nodes"
        except KeyboardInterrupt:
            self.status = "interrupted"

    @property
    def limit(self) -> float:
        """What a better subset's loss is below."""
        return self.loss * (1 - PROVED)

    @property
    def closed(self) -> bool:
        """Whether the bound has come close enough to the incumbent."""
        return self.lower >= self.limit or self.loss - self.lower <= self.gap * self.loss

    @property
    def spent(self) -> int:
        """Nodes of the tree, and what dives amount to."""
        return self.nodes + self.dived // CHEAP

    def _run(self) -> None:
        """Raise the bound, exclude columns, and search what is left."""
        self._pause()
        if not self.closed and (len(self.field.include) == 0 or self.missing > 3):
            self._raise_bound()
        if self.closed:
            self.status = "optimal" if self.lower >= self.limit else "gap"
            return
        field = self.field
        found: Sifted = field.ask(self._sift(self.room))
        before = self.cuts
        self._learn(found)
        P = field.count
        self.notes += (f"{P - found.survivors:,} of {P:,} columns excluded by bounds, {found.survivors:,} left.",)
        kept = found.kept.trimmed()
        numbers, values = field.arrived(kept)
        bounds = before.bounds(values)
        top = self.limit if found.survivors <= self.room else min(-kept.left, self.limit)
        self._climb(numbers, values, bounds, top)

    def _climb(self, numbers: Indices, values: Array, bounds: Array, top: float) -> None:
        """Is there a subset below a target? Targets rise until one is found, or none is left below the incumbent.

        A target leaves only the columns whose bound is below it, and fewer pairs. If the tree finds a subset it is the
        best of all; if not, the target is a lower bound over all columns.
        """
        if time.perf_counter() > self.field.deadline:
            raise OutOfTimeError
        D, rung = self.field.k, RUNG
        few = len(bounds) <= EASY
        target = top if few else max(float(np.partition(bounds, EASY)[EASY]), self.lower + 1e-9 * (top - self.lower))
        crowded = top if few else self._crowded_target(values)
        while True:
            if np.count_nonzero(bounds < target) > min(CROWD, len(bounds) // 4):
                target = max(target, crowded)
            target = min(target, top)
            some = np.flatnonzero(bounds < target)
            last = bool(target >= top or np.count_nonzero(bounds < top) <= self.most)
            if len(some) >= self.missing and not self._search(numbers[some], values[:, some], target, last):
                if self.status == "heuristic":
                    # nearly all pairs are compatible: no target between helps
                    target = top
                    if not self._grow(*self._with_incumbent(numbers, values), None, top):
                        return
                elif self.status != "memory" or rung < SHORTEST or self.lower <= D:
                    return
                else:
                    # too many pairs: try a lower target
                    rung, self.status, self.notes = rung**0.5, "heuristic", self.notes[:-1]
                    target, crowded = D + rung * (self.lower - D), 0.0
                    continue
            if self.loss < target:
                # once more from what was found, with fewer columns and pairs, unless that was the end
                if self.status == "optimal":
                    return
                target = top = self.limit
                continue
            self.lower = max(self.lower, target * (1 - PROVED))
            self._pause()
            if self.closed:
                self.status = "optimal" if self.lower >= self.limit else "gap"
                return
            if target >= top:
                break
            target = D + rung * (target - D)
        if top < self.limit:
            self._give_up(
                f"{len(numbers):,} columns came home, and memory has no room for the others: more memory= helps"
            )
        else:
            self.status = "optimal"

    def _crowded_target(self, values: Array) -> float:
        """One that few pairs of the columns can meet: below it, all targets take about as long."""
        own, base = self._squares(values)
        few = np.linspace(0, len(own) - 1, min(SAMPLE, 1 + ENTRIES // len(own), len(own))).astype(np.intp)
        pairs = 2 * (values[:, few].T @ values) ** 2 + own + own[few][:, None]
        pairs[np.arange(len(few)), few] = np.inf
        partners = min(PARTNERS, EDGES // (2 * len(own)), len(own) // 4)
        cheap = float(np.partition(pairs, partners * len(few), axis=None)[partners * len(few)])
        rest = base + float(np.sort(own)[: max(self.missing - 2, 0)].sum())
        return self.field.k + stiffness(self.c, 0.0) * (cheap + rest)

    def _squares(self, values: Array) -> tuple[Array, float]:
        """What columns add to ‖G − I‖² by themselves and beside the included ones, and what those cost."""
        cuts = self.cuts
        return cuts.scores(values)[1] / cuts.stiffness, float((cuts.bases[1] - self.field.k) / cuts.stiffness)

    def _raise_bound(self) -> None:
        """Column generation: solve the relaxation at home, screen all columns, take in those of low score."""
        for _ in range(ROUNDS):
            solved = self._relaxed()
            if solved is None:
                return
            self.cuts = self.cuts.with_tangent(*solved)
            home = float(self.cuts.bases[-2] + solved[0] @ self.cuts.scores(solved[1])[-2])
            if home <= self.lower + 1e-6 * (self.loss - self.lower):
                return
            found: Sifted = self.field.ask(self._sift(0, WANTED))
            self._learn(found)
            before = self.field.home.shape[1]
            self.field.join(found.wanted.trimmed())
            done = self.lower >= home - SHARE * (self.loss - self.lower)
            if self.closed or done or self.field.home.shape[1] == before:
                return

    def _relaxed(self) -> tuple[Array, Array, int] | None:
        """Weights near the relaxation's minimum over the columns at home, those columns, and the envelope's row."""
        field, k = self.field, len(self.field.include)
        columns = np.ascontiguousarray(field.home.T)
        relaxation = self.cuts.relaxation
        # a generous incumbent, so that the kernel neither closes the node nor drops columns
        kernel = NodeKernel(columns, self.c, relaxation.low, relaxation.high, relaxation.rows, 100 * self.loss)
        candidates = np.arange(k, len(columns), dtype=np.int32)
        start = np.isin(field.numbers[k:], self.subset).astype(np.float32)
        chosen = np.arange(k, dtype=np.int32)
        clock = None if field.left is None else Timer(field.left, kernel.stop)
        if clock is not None:
            clock.start()
        try:
            tolerance = 1e-3 * (self.loss - field.k) / (100 * self.loss)
            outcome = kernel.process(chosen, candidates, start, 1, STEPS, tolerance)
        finally:
            if clock is not None:
                clock.cancel()
        if outcome.closed or outcome.stopped:
            return None
        some = outcome.weights > 0
        return outcome.weights[some].astype(np.float64), field.home[:, outcome.candidates[some]], outcome.row

    def _sift(self, room: int, wanted: int = 0) -> Sift:
        field = self.field
        return Sift(self.cuts, self.missing, self.limit, field.columns.transform, field.barred, room, wanted)

    def _learn(self, found: Sifted) -> None:
        """The sums of the smallest scores over all columns, and the bound they give."""
        least = np.sort(found.least, axis=1)
        self.cuts = replace(self.cuts, least=least[:, : self.missing - 1].sum(axis=1))
        self.lower = max(self.lower, float((self.cuts.bases + least.sum(axis=1)).max()))
        self._pause()

    def _tell(self, loss: float, subset: Indices, lower: float, nodes: int = 0, open_nodes: int = 0) -> bool:
        """Progress for the caller; whether they want to stop."""
        if self.callback is None:
            return False
        lower = min(lower, loss)
        told = SearchProgress(
            self.field.elapsed, loss, lower, (loss - lower) / loss, self.spent + nodes, open_nodes, np.sort(subset)
        )
        return bool(self.callback(told))

    def _pause(self) -> None:
        if self._tell(self.loss, self.subset, self.lower):
            raise KeyboardInterrupt

    def _give_up(self, why: str) -> None:
        self.status = "memory"
        self.notes += (f"not proved: {why}. Fewer columns, or lengths nearer 1, would help.",)

    def _with_incumbent(self, numbers: Indices, values: Array) -> tuple[Array, Indices]:
        """The columns with those included before and the incumbent's after them, which may be excluded; and numbers."""
        field, must = self.field, len(self.field.include)
        extra = self.subset[~np.isin(self.subset, np.concatenate([field.include, numbers]))]
        X = np.concatenate([field.home[:, :must], values, field.home[:, field.place(extra)]], axis=1)
        return np.ascontiguousarray(X), np.concatenate([field.include, numbers, extra])

    def _search(self, numbers: Indices, values: Array, target: float, last: bool) -> bool:
        """Pairs, then dives and the tree, for a subset below the target; False where that could not be finished.

        Where pairs say too little and the tree could take all columns at once, it is left to do that: `last`.
        """
        field, must = self.field, len(self.field.include)
        X, names = self._with_incumbent(numbers, values)
        if len(numbers) <= FEW:
            return self._grow(X, names, None, target)
        rigid = stiffness(self.c, max(target - field.k, 0.0))
        own, base = self._squares(values)
        graph = compatible(values, own, base, (target - field.k) / rigid, self.missing, field.deadline)
        if graph is None and time.perf_counter() > field.deadline:
            raise OutOfTimeError
        if graph is None and len(numbers) > self.most:
            told = f"{len(numbers):,} columns may be in a subset of loss below {target:.6g}"
            self._give_up(f"{told}, and too many pairs of them may go together")
            return False
        if graph is None or len(graph.one) > DENSE * len(numbers) ** 2:
            return False if last else self._grow(X, names, None, target)
        roots: Roots = [
            (p + must, others + np.int32(must))
            for p, others in graph.roots(len(numbers))
            if len(others) >= self.missing - 1
        ]
        own = np.concatenate([np.zeros(must), own, np.zeros(X.shape[1] - must - len(numbers))])
        roots = self._dive(X, names, own, base, rigid, roots, target)
        if self.again:
            return True
        if judged("optimal", min(target, self.loss), self.doubt, 0.0) == "precision":
            self.status = "precision"
            return False
        return self._grow(X, names, roots, min(target, self.loss))

    def _dive(
        self, X: Array, names: Indices, own: Array, base: float, rigid: float, roots: Roots, target: float
    ) -> Roots:
        """Search from each root by squares alone; returns the roots for which that takes too many nodes."""
        columns = np.ascontiguousarray(X.T)
        include = np.arange(len(self.field.include), dtype=np.int32)
        below = target
        hard: list[tuple[int, NDArray[np.int32]]] = []

        @on_one_blas_thread
        def one(limit: float, root: tuple[int, NDArray[np.int32]]) -> Dived:
            if time.perf_counter() > self.field.deadline:
                raise OutOfTimeError
            return seek(columns, include, own, base, *root, self.c, rigid, limit, DIVES)

        self.again = False
        told = time.perf_counter()
        pool = ThreadPoolExecutor(self.workers)
        # the roots of a round know the same limit, so that the answer does not depend on the number of workers
        rounds = (pool.map(partial(one, below), roots[first : first + ROUND]) for first in range(0, len(roots), ROUND))
        try:
            for root, (finished, loss, subset, doubt, nodes) in zip(roots, chain.from_iterable(rounds), strict=True):
                self.dived += nodes
                self.doubt = min(self.doubt, doubt)
                if subset is not None and loss < below:
                    below = loss
                    self.subset, self.loss = names[subset], loss
                    self.field.keep(self.subset, X[:, subset])
                    self.again = loss - self.field.k < WORTH * (target - self.field.k)
                    if self.again:
                        break
                if not finished:
                    hard.append(root)
                if self.node_limit is not None and self.spent >= self.node_limit:
                    raise OutOfNodesError
                if time.perf_counter() > told + TOLD:
                    told = time.perf_counter()
                    self._pause()
        finally:
            pool.shutdown(cancel_futures=True)
        return hard

    def _grow(self, X: Array, names: Indices, roots: Roots | None, target: float) -> bool:
        """The tree, or a forest by parts that memory holds."""
        place = {int(name): i for i, name in enumerate(names)}
        for part in [None] if roots is None else _parts(roots):
            whole = part is None and target >= self.limit
            proof = branch_and_bound(
                X,
                self.c,
                np.array([place[int(name)] for name in self.subset]),
                include=range(len(self.field.include)),
                gap=self.gap if whole else 0.0,
                time_limit=self.field.left,
                node_limit=None if self.node_limit is None else max(self.node_limit - self.spent, 1),
                workers=self.workers,
                callback=self._in_numbers(names, target, part),
                roots=part,
                below=target,
            )
            self.nodes += proof.nodes
            self.evaluations += proof.evaluations
            if part is None:
                self.lower = max(self.lower, min(target, proof.lower_bound))
            if proof.loss < min(target, self.loss):
                self.subset, self.loss, target = names[proof.indices], proof.loss, proof.loss
                self.field.keep(self.subset, X[:, proof.indices])
                if proof.status == "interrupted" and self.again:
                    return True
            if proof.status != "optimal":
                self.status = proof.status
                return False
        if self.loss <= target or target >= self.limit:
            self.lower, self.status = self.loss, "optimal"
        return True

    def _in_numbers(self, names: Indices, target: float, roots: Roots | None) -> Callback:
        """The caller's callback, in numbers of the source; stops a forest where what it found makes it worth while."""
        self.again = False

        def tell(progress: SearchProgress) -> bool | None:
            better = progress.incumbent < target
            loss = progress.incumbent if better else self.loss
            subset = names[progress.indices] if better else self.subset
            lower = self.lower if roots else max(self.lower, min(target, progress.lower_bound))
            stop = self._tell(loss, subset, lower, progress.nodes, progress.open_nodes)
            if roots is not None and self.node_limit is None:
                self.again = better and not stop and loss - self.field.k < WORTH * (target - self.field.k)
            return stop or self.again

        return tell


def _parts(roots: Roots) -> list[Roots]:
    """Roots in turn, as many at once as have BATCH candidates."""
    ends = np.cumsum([len(candidates) for _, candidates in roots]) // BATCH
    cuts = [0, *(np.flatnonzero(np.diff(ends)) + 1).tolist(), len(roots)]
    return [roots[a:b] for a, b in pairwise(cuts) if a < b]


def prove(
    X: Array,
    c: float,
    start: Indices,
    *,
    include: Sequence[int],
    gap: float = 0.0,
    time_limit: float | None = None,
    node_limit: int | None = None,
    workers: int,
    callback: Callback | None = None,
) -> Proof:
    """As `branch_and_bound`, which it ends with, for columns in memory: cuts and targets come first.

    The start's log-loss is below LARGEST_LOG.
    """
    if len(X) - len(include) <= 2:
        return branch_and_bound(
            X, c, start, include=include, gap=gap, time_limit=time_limit, node_limit=node_limit, workers=workers,
            callback=callback,
        )  # fmt: skip
    count = X.shape[1]
    must = np.array(include, dtype=np.intp)
    field = Field(Columns(ArraySource(X, X.dtype, workers)), must, np.zeros(0, np.intp), time_limit)
    field.keep(start, X[:, start])
    log_loss = log_loss_of(np.ascontiguousarray(X[:, start].T), np.arange(len(X), dtype=np.int32), c)
    fixing = Fixing(
        field, c, start, log_loss, gap=gap, room=count, most=count, node_limit=node_limit, workers=workers,
        callback=callback,
    )  # fmt: skip
    fixing.finish()
    return Proof(np.sort(fixing.subset), fixing.loss, fixing.lower, fixing.status, fixing.spent, fixing.evaluations)
