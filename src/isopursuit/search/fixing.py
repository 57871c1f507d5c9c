"""The best subset of all columns of a source: most are excluded where they are, the rest is searched at home.

**Cuts.** Every bound here is a sum over the columns of a subset S ⊇ S' (S' must be picked, m are missing):

    l(S) ≥ base + Σ_{p ∈ S∖S'} score_p        for every S better than the incumbent.

Hence base + (the m smallest scores of all) is a lower bound over all columns, and p is in no better subset if base +
(the m − 1 smallest) + score_p is not below the incumbent. One pass gives the scores of all columns. There are three:

- *tangent* of F(w) = tr q_κ(M(w)) − κ (log det G_S' + log det N(w)), convex in w (relaxation.py): score xᵀKx with
  K = q_κ'(M) − κ E N⁻¹Eᵀ, E a basis of the complement of span S'. Valid for any w, here from the relaxation of the
  columns at home; columns of low score come home and it is solved again, until the bound over all stops rising. Where
  the columns surround the origin, so that M(w) = I for some w, F = D and K = 0: this cut then says nothing.
- *pinched*: the loss is convex in the Gram matrix, so its diagonal blocks cost no more than the whole. h₋(‖z_p‖²) +
  h₊(‖x_p‖²), z the part of x off span S': columns of the wrong length are out.
- *frame* (pairs.py): μ [(‖x‖² − 1)² + 2‖X_S'ᵀx‖²], for what is not orthogonal to S'.

The mean of tangent and pinched is a cut as well.

**Targets.** What cannot be excluded grows with the incumbent's loss above D, and among millions of columns without
structure it is nearly everything. So the question at home is asked for a target first, lower than the incumbent: is
there a subset below it? Columns whose bound is not below the target do not matter, nor do pairs whose inner product is
too large (pairs.py); from each column that is left its compatible ones are searched, by dives (_dive.pyx) and where
those take too long by the tree. A subset found is the best of all; where there is none the target is a lower bound over
all columns, and the next one is higher. An orthonormal basis among a million columns is found and proved this way,
though no swap leads to it. Where memory, pairs or time run out the answer says so, with the last target as its bound.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isopursuit.errors import RangeError
from isopursuit.matrix import namespace, on_host
from isopursuit.results import Search
from isopursuit.search._dive import seek
from isopursuit.search._node import NodeKernel
from isopursuit.search.field import Field, OutOfTimeError, greedy_field
from isopursuit.search.pairs import compatible
from isopursuit.search.passes import alive, beside, pieces
from isopursuit.search.relaxation import LARGEST_LOG, Relaxation, loss_below, relax, stiffness
from isopursuit.search.streamed import Exchange
from isopursuit.search.tree import Roots, SearchProgress, branch_and_bound
from isopursuit.sources.tasks import Pile, Transform

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Callback = Callable[[SearchProgress], bool | None]

PROVED = 5e-10  # the tree's: a bound this close to the incumbent, relative to it, closes
ROUNDING = 1e-12  # of a cut, relative to its terms
ROUNDS = 8  # of solving the relaxation and screening all columns
STEPS = 200  # Newton steps for the relaxation
SHARE = 0.02  # of the distance to the incumbent: when the bound over all columns has come this close, it is done
WANTED = 1024  # columns of the lowest scores that come home in a round
FEW = 150  # columns that the tree takes as they are
DENSE = 0.3  # of all pairs: a graph that says too little
MOST = 5000  # and the most that it takes where the graph of pairs is too dense
ROOM = 2048  # columns that come home however little memory there is
EASY = 200  # columns that the first target leaves
RUNG = 2.0  # times the excess over D from target to target
SHORTEST = 1.2  # and not less
WORTH = 0.7  # of the excess over D: a subset found below this share of the target's starts the target anew
DIVES = 200_000  # nodes of a dive from one root, before the tree takes over
TOLD = 0.1  # seconds between two calls of the callback
BATCH = 4_000_000  # candidates of the roots searched at once


@dataclass(frozen=True)
class Cuts:
    """The cuts' rows: pinched, frame, then for each tangent itself and its mean with the pinched one.

    `bases` and `least` (J,) are the bases and the sums of the m − 1 smallest scores, −∞ where those are not known yet.
    """

    relaxation: Relaxation
    stiffness: float
    included: Array  # (k, D)
    complement: Array  # (D − k, D)
    bases: Array
    least: Array
    tangents: tuple[Array, ...] = ()

    @classmethod
    def around(cls, included: Array, relaxation: Relaxation, stiffness: float, missing: int) -> Cuts:
        """The two that need no w; their scores are not negative, which is a first bound on the least."""
        k, D = included.shape
        _, s, vt = np.linalg.svd(included) if k else (None, np.zeros(0), np.eye(D))
        e, c = s**2, relaxation.c
        gram = included @ included.T - np.eye(k)
        below, above = loss_below(e * (1 + 1e-12), c), _plus(e * (1 - 1e-12), relaxation, np)
        bases = np.array([D + float(below.sum() + above.sum()), D + stiffness * float((gram**2).sum())])
        return cls(relaxation, stiffness, included, vt[k:], bases * (1 - ROUNDING), np.zeros(2))

    def with_tangent(self, w: Array, home: Array, row: int) -> Cuts:
        """With the tangent at the weights w of the columns `home`, in the last place."""
        relaxation, E = self.relaxation, self.complement
        weighted = (home * w) @ home.T
        e, V = np.linalg.eigh(weighted + self.included.T @ self.included)
        values, slopes = np.array([relaxation.envelope(float(one), row) for one in e]).T
        K = (V * slopes) @ V.T
        magnitude = float(np.abs(values).sum() + np.abs(slopes * e).sum())
        base = float(values.sum())
        kappa = float(relaxation.rows[row, 0])
        if kappa > 0:
            N = E @ weighted @ E.T
            logs = np.linalg.slogdet(N)[1] + np.linalg.slogdet(self.included @ self.included.T)[1]
            base -= kappa * float(logs)
            K -= kappa * E.T @ np.linalg.solve(N, E)
            magnitude += abs(kappa * float(logs)) + kappa * len(E)
        K = (K + K.T) / 2
        base -= float(np.einsum("ij,ij->", K, weighted)) + ROUNDING * magnitude
        kept = self.tangents[-1:]
        old = slice(2 + 2 * (len(self.tangents) - len(kept)), None)
        bases = np.concatenate([self.bases[:2], self.bases[old], [base, (base + self.bases[0]) / 2]])
        least = np.concatenate([self.least[:2], self.least[old], [-np.inf, -np.inf]])
        return replace(self, bases=bases, least=least, tangents=(*kept, K))

    def bounds(self, values: Array) -> Array:
        """The best known bound on the loss of a subset with each of these columns."""
        known = np.isfinite(self.least)
        return (self.bases[known, None] + self.least[known, None] + self.scores(values)[known]).max(axis=0)

    def scores(self, z: Any) -> Array:
        """The scores of columns (D, m), one row a cut."""
        xp, c = namespace(z), self.relaxation.c
        squares = xp.einsum("dp,dp->p", z, z)
        off, along = (xp.einsum("dp,dp->p", v, v) for v in (beside(F, z) @ z for F in (self.complement, self.included)))
        u = xp.clip(off * (1 + 1e-12), self.relaxation.low, 1.0) ** (c / 2)
        pinched = (xp.exp(u) + xp.exp(1 / u)) / (2 * np.e) - 1 + _plus(squares * (1 - 1e-12), self.relaxation, xp)
        rows = [pinched, self.stiffness * ((squares - 1) ** 2 + 2 * along)]
        for K in self.tangents:
            score = xp.einsum("dp,dp->p", z, beside(K, z) @ z)
            rows += [score, (score + pinched) / 2]
        return on_host(xp.stack(rows))


def _plus(squares: Any, relaxation: Relaxation, xp: Any) -> Any:
    """The convex envelope of h₊: q_0 − 1 above one, constant where no better subset reaches."""
    _, left, right, value, slope = relaxation.rows[0].tolist()
    inside = xp.clip(squares, 1.0, relaxation.high)
    u = inside ** (relaxation.c / 2)
    above = (xp.exp(u) + xp.exp(1 / u)) / (2 * np.e)
    if left <= right:
        above = xp.where((inside >= left) & (inside <= right), value + slope * (inside - left), above)
    return xp.clip(above - 1, 0.0, None)


@dataclass(frozen=True)
class Sifted:
    """What one pass found: the m smallest scores of every cut (J, m), the columns no cut excludes and how many they
    are, and those of the lowest scores for the last tangent.
    """

    least: Array
    kept: Pile
    survivors: int
    wanted: Pile


@dataclass(frozen=True)
class Sift:
    """One pass with cuts. A column stays if no cut of known `least` takes it to the limit."""

    cuts: Cuts
    missing: int
    limit: float
    transform: Transform
    barred: Indices
    room: int
    wanted: int = 0
    bars: tuple[float, float] = (-np.inf, -np.inf)

    def __call__(self, block: Any, first: int) -> Sifted:
        """Sift one block."""
        known = np.isfinite(self.cuts.least)
        start_from = (self.cuts.bases + self.cuts.least)[known, None]
        least = np.full((len(known), self.missing), np.inf)
        bounds: list[Array] = []
        last: list[Array] = []
        for start, z in pieces(block, self.transform):
            scores = self.cuts.scores(z)
            squares = on_host(namespace(z).einsum("dp,dp->p", z, z))
            scores[:, ~alive(squares, first + start, self.barred)] = np.inf
            least = smallest(least, scores, self.missing)
            bounds.append((start_from + scores[known]).max(axis=0))
            last.append(scores[-2 if self.cuts.tangents else -1])
        bound, score = np.concatenate(bounds), np.concatenate(last)
        stay = np.flatnonzero(bound < self.limit)
        low = np.flatnonzero(score < np.inf)
        kept = Pile.pick(block, first, stay, -bound[stay], self.room, self.bars[0])
        wanted = Pile.pick(block, first, low, -score[low], self.wanted, self.bars[1])
        return Sifted(least, kept, len(stay), wanted)

    def merge(self, one: Sifted, other: Sifted) -> Sifted:
        """Both blocks in one."""
        return Sifted(
            smallest(one.least, other.least, self.missing),
            one.kept.joined(other.kept),
            one.survivors + other.survivors,
            one.wanted.joined(other.wanted),
        )

    def after(self, answer: Sifted) -> Sift:
        """Columns below all that fill the room stay behind; they are counted all the same."""
        bars = max(self.bars[0], answer.kept.bar), max(self.bars[1], answer.wanted.bar)
        return replace(self, bars=bars)


def smallest(one: Array, other: Array, count: int) -> Array:
    """The `count` smallest of both, row by row."""
    both = np.concatenate([one, other], axis=1)
    return np.partition(both, count - 1, axis=1)[:, :count]


class Fixing:
    """The exact search over a source, once an incumbent is known."""

    def __init__(
        self, field: Field, c: float, exchange: Exchange, gap: float, memory: int, callback: Callback | None
    ) -> None:
        self.field, self.c, self.gap, self.callback = field, c, gap, callback
        self.subset, self.loss = exchange.subset, float(np.exp(exchange.log_loss))
        self.missing = field.k - len(field.include)
        self.room = max(ROOM, memory // (96 * field.k))
        self.lower, self.nodes, self.evaluations = float(field.k), 0, exchange.descents
        self.status: Any = "heuristic"
        self.again = False
        self.notes: tuple[str, ...] = ()
        relaxation = relax(c, field.k, self.loss, np.inf)
        included = np.ascontiguousarray(field.home[:, : len(field.include)].T)
        self.cuts = Cuts.around(included, relaxation, stiffness(c, max(self.loss - field.k, 0.0)), self.missing)

    @property
    def limit(self) -> float:
        """What a better subset's loss is below."""
        return self.loss * (1 - PROVED)

    @property
    def closed(self) -> bool:
        """Whether the bound has come close enough to the incumbent."""
        return self.lower >= self.limit or self.loss - self.lower <= self.gap * self.loss

    def run(self, workers: int, node_limit: int | None) -> None:
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
        self._climb(numbers, values, bounds, top, workers, node_limit)

    def _climb(
        self, numbers: Indices, values: Array, bounds: Array, top: float, workers: int, node_limit: int | None
    ) -> None:
        """Is there a subset below a target? Targets rise until one is found, or none is left below the incumbent.

        A target leaves only the columns whose bound is below it, and fewer pairs. If the tree finds a subset it is the
        best of all; if not, the target is a lower bound over all columns.
        """
        ordered = np.sort(bounds)
        target = float(ordered[EASY]) if len(ordered) > EASY else top
        target = max(target, self.lower + 1e-9 * (top - self.lower))
        rung = RUNG
        while True:
            target = min(target, top)
            some = np.flatnonzero(bounds < target)
            if len(some) >= self.missing and not self._search(
                numbers[some], values[:, some], target, workers, node_limit
            ):
                if self.status != "memory" or rung < SHORTEST or self.lower <= self.field.k:
                    return
                # too many pairs: try a lower target
                rung, self.status, self.notes = rung**0.5, "heuristic", self.notes[:-1]
                target = self.field.k + rung * (self.lower - self.field.k)
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
            target = self.field.k + rung * (target - self.field.k)
        if top < self.limit:
            self._give_up(
                f"{len(numbers):,} columns came home, and memory has no room for the others: more memory= helps"
            )
        else:
            self.status = "optimal"

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
        outcome = kernel.process(chosen, candidates, start, 1, STEPS, 1e-3 * (self.loss - field.k) / (100 * self.loss))
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

    def _tell(
        self, loss: float | None = None, subset: Indices | None = None, nodes: int = 0, open_nodes: int = 0
    ) -> bool:
        """Progress for the caller; whether they want to stop."""
        if self.callback is None:
            return False
        loss, subset = loss or self.loss, self.subset if subset is None else subset
        lower = min(self.lower, loss)
        gap = (loss - lower) / loss
        indices = np.sort(subset)
        return bool(
            self.callback(SearchProgress(self.field.elapsed, loss, lower, gap, self.nodes + nodes, open_nodes, indices))
        )

    def _pause(self) -> None:
        if self._tell():
            raise KeyboardInterrupt

    def _give_up(self, why: str) -> None:
        self.status = "memory"
        self.notes += (f"not proved: {why}. Fewer columns, or lengths nearer 1, would help.",)

    def _search(self, numbers: Indices, values: Array, target: float, workers: int, node_limit: int | None) -> bool:
        """Pairs, then dives and the tree, for a subset below the target; False where that could not be finished."""
        field, cuts = self.field, self.cuts
        must = len(field.include)
        # the tree starts from the incumbent, whose own columns may be excluded
        extra = ~np.isin(self.subset, np.concatenate([field.include, numbers]))
        incumbent = field.home[:, field.place(self.subset[extra])]
        X = np.ascontiguousarray(np.concatenate([field.home[:, :must], values, incumbent], axis=1))
        names = np.concatenate([field.include, numbers, self.subset[extra]])
        if len(numbers) <= FEW:
            return self._grow(X, names, None, target, workers, node_limit)
        rigid = stiffness(self.c, max(target - field.k, 0.0))
        own = cuts.scores(values)[1] / cuts.stiffness
        base = float((cuts.bases[1] - field.k) / cuts.stiffness)
        graph = compatible(values, own, base, (target - field.k) / rigid, self.missing, field.deadline)
        if graph is None and time.perf_counter() > field.deadline:
            raise OutOfTimeError
        if graph is None and len(numbers) > MOST:
            told = f"{len(numbers):,} columns may be in a subset of loss below {target:.6g}"
            self._give_up(f"{told}, and too many pairs of them may go together")
            return False
        if graph is None or len(graph.one) > DENSE * len(numbers) ** 2:
            return self._grow(X, names, None, target, workers, node_limit)
        roots: Roots = [
            (p + must, others + np.int32(must))
            for p, others in graph.roots(len(numbers))
            if len(others) >= self.missing - 1
        ]
        own = np.concatenate([np.zeros(must), own, np.zeros(int(extra.sum()))])
        roots = self._dive(X, names, own, base, rigid, roots, target, workers)
        return self.again or self._grow(X, names, roots, min(target, self.loss), workers, node_limit)

    def _dive(
        self, X: Array, names: Indices, own: Array, base: float, rigid: float, roots: Roots, target: float, workers: int
    ) -> Roots:
        """Search from each root by squares alone; returns the roots for which that takes too many nodes."""
        columns = np.ascontiguousarray(X.T)
        include = np.arange(len(self.field.include), dtype=np.int32)
        below = target
        hard: list[tuple[int, NDArray[np.int32]]] = []

        def one(root: tuple[int, NDArray[np.int32]]) -> tuple[bool, float, NDArray[np.int32] | None, int]:
            if time.perf_counter() > self.field.deadline:
                raise OutOfTimeError
            return seek(columns, include, own, base, *root, self.c, rigid, min(target, below), DIVES)

        self.again = False
        told = time.perf_counter()
        pool = ThreadPoolExecutor(workers)
        try:
            for root, (finished, loss, subset, nodes) in zip(roots, pool.map(one, roots), strict=True):
                self.nodes += nodes
                if subset is not None and loss < below:
                    below = loss
                    self.subset, self.loss = names[subset], loss
                    self.field.keep(self.subset, X[:, subset])
                    self.again = loss - self.field.k < WORTH * (target - self.field.k)
                    if self.again:
                        break
                if not finished:
                    hard.append(root)
                if time.perf_counter() > told + TOLD:
                    told = time.perf_counter()
                    self._pause()
        finally:
            pool.shutdown(cancel_futures=True)
        return hard

    def _grow(
        self, X: Array, names: Indices, roots: Roots | None, target: float, workers: int, limit: int | None
    ) -> bool:
        """The tree, or a forest by parts that memory holds."""
        place = {int(name): i for i, name in enumerate(names)}
        for part in [None] if roots is None else _parts(roots):
            proof = branch_and_bound(
                X,
                self.c,
                np.array([place[int(name)] for name in self.subset]),
                include=range(len(self.field.include)),
                time_limit=self.field.left,
                node_limit=None if limit is None else max(limit - self.nodes, 1),
                workers=workers,
                callback=self._in_numbers(names, target),
                roots=part,
                below=target,
            )
            self.nodes += proof.nodes
            self.evaluations += proof.evaluations
            if proof.loss < min(target, self.loss):
                self.subset, self.loss, target = names[proof.indices], proof.loss, proof.loss
                self.field.keep(self.subset, X[:, proof.indices])
                if proof.status == "interrupted" and self.again:
                    return True
            if proof.status != "optimal":
                self.status = proof.status
                return False
        if self.loss <= target:
            self.lower, self.status = self.loss, "optimal"
        return True

    def _in_numbers(self, names: Indices, target: float) -> Callback:
        """The caller's callback, in numbers of the source; stops the tree where what it found makes it worth while."""
        self.again = False

        def tell(progress: SearchProgress) -> bool | None:
            better = progress.incumbent < target
            loss = progress.incumbent if better else self.loss
            subset = names[progress.indices] if better else self.subset
            stop = self._tell(loss, subset, progress.nodes, progress.open_nodes)
            self.again = better and not stop and loss - self.field.k < WORTH * (target - self.field.k)
            return stop or self.again

        return tell


def _parts(roots: Roots) -> list[Roots]:
    """Roots in turn, as many at once as have BATCH candidates."""
    ends = np.cumsum([len(candidates) for _, candidates in roots]) // BATCH
    cuts = [0, *(np.flatnonzero(np.diff(ends)) + 1).tolist(), len(roots)]
    return [roots[a:b] for a, b in pairwise(cuts) if a < b]


def exact_source(
    X: Any,
    c: float,
    time_limit: float | None,
    gap: float,
    node_limit: int | None,
    workers: int,
    callback: Callback | None,
    include: Iterable[Any] | None,
    exclude: Iterable[Any] | None,
    labels: object,
    memory: int,
) -> Search:
    """`exact_search` on a source."""
    field = Field(X, include, exclude, labels, time_limit)
    if field.k - len(field.include) <= 1:
        # one pass evaluates them all
        subset, seen = greedy_field(field, c)
        return field.answer(subset, c, "exact", "optimal", seen)
    exchange = Exchange(field, c, memory, field.include)
    part = np.inf if time_limit is None else field.began + 0.3 * time_limit
    exchange.run(2, 10, np.random.default_rng(0), part)
    if exchange.stopped == "interrupted":
        return field.answer(exchange.subset, c, "exact", "interrupted", exchange.descents)
    if not exchange.log_loss < LARGEST_LOG:
        raise RangeError(
            f"The best loss known is e^{exchange.log_loss:.4g}, beyond the range in which bounds can be computed. Use "
            "exchange_search, which compares logarithms, a smaller c, or rescale the columns to a median length of 1."
        )
    fixing = Fixing(field, c, exchange, gap, memory, callback)
    try:
        fixing.run(workers, node_limit)
    except OutOfTimeError:
        fixing.status = "time"
    except KeyboardInterrupt:
        fixing.status = "interrupted"
    return field.answer(
        fixing.subset,
        c,
        "exact",
        fixing.status,
        fixing.evaluations,
        lower_bound=fixing.lower,
        nodes=fixing.nodes,
        notes=fixing.notes,
    )
