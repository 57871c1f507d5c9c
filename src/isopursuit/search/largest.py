"""The largest set of columns that rules allow, and a first allowed set of k independent columns.

Without groups the largest set is a maximum independent set of the graph of excluded pairs. Its connected components are
independent of each other. In each, branch and bound takes one column after the other. A set has at most one column of a
clique, so at most as many columns can follow as there are cliques in a cover of those that remain. A group of which at
most one may be picked is a clique; those with other limits connect components, and bound the number too. The work is
counted, not timed, so the answer is always the same. If it does not suffice, the answer is a set and an upper bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from isopursuit._core.types import Array, Indices, Mask
from isopursuit.search.rules import Rules
from isopursuit.search.settings import RESIDENT, WORK


def largest(rules: Rules, include: Indices, free: Indices, most: int) -> tuple[Indices, int]:
    """A largest allowed set of at most `most` columns: the included ones and some of `free`, and an upper bound.

    `free` are columns that none of the included ones excludes, in an order that decides ties. The set is empty if no
    allowed one was found.
    """
    have = np.bincount(rules.group[include], minlength=len(rules.most))
    among = rules.take(free)
    order = np.argsort(among.degrees, kind="stable")
    free, among = free[order], among.take(order)
    there = np.bincount(among.group, minlength=len(rules.most))
    least, room = np.maximum(rules.least - have, 0), np.minimum(rules.most - have, there)
    near = [int.from_bytes(row.tobytes(), "little") for row in among.near]
    members = [_bits(np.flatnonzero(among.group == g)) for g in range(len(room))]
    counted = [g for g in range(len(room)) if least[g] > 0 or (room[g] < there[g] and rules.most[g] > 1)]
    limits = {g: (int(least[g]), int(room[g]), members[g]) for g in counted}
    parts: list[tuple[int, dict[int, tuple[int, int, int]]]] = []
    for part in _components(near, (1 << len(near)) - 1, [members[g] for g in counted]):
        inside = {g: limit for g, limit in limits.items() if limit[2] & part}
        if inside:  # those with limits first, so that the least numbers find room
            parts.insert(0, (part, inside))
        else:
            parts.append((part, inside))
    needed = int(least.sum())
    found, bound = include.tolist(), len(include)
    work = 128 * WORK // max(len(free), RESIDENT)  # columns put into cliques, in about 1 s: sets are long integers
    for i, (part, inside) in enumerate(parts):
        needed -= sum(low for low, _, _ in inside.values())
        budget = max(work // (len(parts) - i), 1)
        search = _Packing(near, among.group.tolist(), inside, most - len(found) - needed, budget)
        search.run(part)
        if search.best is None:
            return np.zeros(0, np.intp), 0 if search.bound < 0 else most
        found += free[search.best].tolist()
        bound += search.bound
        work -= budget - max(search.work, 0)
    return np.sort(np.array(found, dtype=np.intp)), min(bound, most)


def _bits(columns: Indices) -> int:
    return sum(1 << p for p in columns.tolist())


def _numbers(bits: int) -> Iterator[int]:
    """The positions of the bits that are set, ascending."""
    while bits:
        low = bits & -bits
        bits ^= low
        yield low.bit_length() - 1


def _components(near: list[int], left: int, together: list[int]) -> list[int]:
    """The connected components of the graph of these columns; columns in each set of `together` are connected."""
    parts: list[int] = []
    while left:
        part, new = 0, left & -left
        while new:
            part |= new
            reached = 0
            for p in _numbers(new):
                reached |= near[p]
            for some in together:
                reached |= some if some & part else 0
            new = reached & left & ~part
        parts.append(part)
        left &= ~part
    return sorted(parts, key=int.bit_count)


class _Packing:
    """Branch and bound for one component: the largest set without excluded pairs and within the limits of groups.

    `limits` has for each group that needs to be counted: the least and the most number, and its columns as bits. After
    `run`, `best` is the largest set found, or None, and `bound` an upper bound of the size; −1 if no set is allowed.
    """

    def __init__(
        self, near: list[int], group: list[int], limits: dict[int, tuple[int, int, int]], goal: int, work: int
    ) -> None:
        self.near, self.group, self.limits, self.goal, self.work = near, group, limits, goal, work
        self.have = dict.fromkeys(limits, 0)
        self.best: list[int] | None = None
        self.bound = 0

    def run(self, part: int) -> None:
        """Search the subsets of a component, a set of bits."""
        chosen: list[int] = []
        first = self.frame(part)
        self.bound = min(len(first[1]) and first[1][-1][1], self.room(part), self.goal)
        frames = [first]
        self.start(part)
        while frames:
            free, order = frames[-1]
            size = -1 if self.best is None else len(self.best)
            done = self.work <= 0 or size >= self.goal or len(chosen) >= self.goal
            if done or not order or len(chosen) + min(order[-1][1], self.room(free)) <= size or not self.enough(free):
                frames.pop()
                if chosen:
                    p = chosen.pop()
                    self.count(p, -1)
                continue
            p, _ = order.pop()
            frames[-1] = (free & ~(1 << p), order)
            chosen.append(p)
            self.count(p, 1)
            rest = self.after(p, free)
            self.record(chosen)
            frames.append(self.frame(rest))
        if self.work > 0:  # the search is complete
            self.bound = -1 if self.best is None else len(self.best)

    def start(self, free: int) -> None:
        """Begin with the set of columns that exclude the fewest of those that remain."""
        chosen: list[int] = []
        while True:
            self.record(chosen)
            if not free or len(chosen) >= self.goal:
                break
            p = min(_numbers(free), key=lambda q: (self.near[q] & free).bit_count())
            chosen.append(p)
            self.count(p, 1)
            free = self.after(p, free)
        for p in chosen:
            self.count(p, -1)

    def after(self, p: int, free: int) -> int:
        """The columns that can follow if p, which was counted, is chosen among these."""
        free &= ~(1 << p) & ~self.near[p]
        g = self.group[p]
        return free & ~self.limits[g][2] if g in self.limits and self.have[g] >= self.limits[g][1] else free

    def record(self, chosen: list[int]) -> None:
        """Keep the chosen columns if they are more than before, and no group needs more."""
        enough = all(self.have[g] >= least for g, (least, _, _) in self.limits.items())
        if enough and (self.best is None or len(chosen) > len(self.best)):
            self.best = chosen.copy()

    def count(self, p: int, change: int) -> None:
        """Add a column to the number of its group, or remove it."""
        if self.group[p] in self.have:
            self.have[self.group[p]] += change

    def room(self, free: int) -> int:
        """How many of these columns the limits of the groups allow."""
        counted = 0
        total = 0
        for g, (_, most, members) in self.limits.items():
            total += min((free & members).bit_count(), most - self.have[g])
            counted |= members
        return total + (free & ~counted).bit_count()

    def enough(self, free: int) -> bool:
        """Whether these columns suffice for the least numbers of all groups."""
        return all(
            self.have[g] + (free & members).bit_count() >= least for g, (least, _, members) in self.limits.items()
        )

    def frame(self, free: int) -> tuple[int, list[tuple[int, int]]]:
        """The free columns, in the order of a greedy cover by cliques, each with the number of its clique."""
        order: list[tuple[int, int]] = []
        cliques, left = 0, free
        while left:
            cliques += 1
            open_ = left
            while open_:
                low = open_ & -open_
                p = low.bit_length() - 1
                order.append((p, cliques))
                left ^= low
                open_ &= self.near[p]
        self.work -= len(order) + 1
        return free, order


def first_allowed(
    X: Array, rules: Rules, include: Indices, k: int, finite: Callable[[Indices], bool]
) -> tuple[Indices | None, bool]:
    """Find k allowed columns of X (n, D, P) of large volume and finite loss; also whether all were tried in vain.

    The column of the largest residual follows, as in pivoted QR; if none can follow, the last one is replaced.
    """
    rest = np.einsum("ndp,ndp->p", X, X)
    basis = np.zeros((X.shape[0], X.shape[1], k))
    subset: list[int] = []
    levels: list[tuple[Array, Mask]] = []

    def push(p: int) -> None:
        direction = X[:, :, p].copy()
        known = basis[:, :, : len(subset)]
        for _ in range(2):  # twice, so that it is orthogonal to the others up to rounding
            direction -= np.einsum("ndj,nj->nd", known, np.einsum("ndj,nd->nj", known, direction))
        direction /= np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), np.finfo(np.float64).tiny)
        basis[:, :, len(subset)] = direction
        residuals = levels[-1][0] - (np.einsum("nd,ndp->np", direction, X) ** 2).sum(axis=0)
        subset.append(p)
        levels.append((residuals, levels[-1][1].copy()))

    levels.append((rest, np.zeros(X.shape[2], dtype=bool)))
    for p in include.tolist():
        push(p)
    steps = k + min(2 * RESIDENT, 64 * WORK // X.size)  # columns tried, in at most about 1 s
    while steps:
        if len(subset) == k and finite(np.array(subset)):
            return np.sort(np.array(subset, dtype=np.intp)), False
        residuals, tried = levels[-1]
        free = ~(rules.blocked(np.array(subset, dtype=np.intp), k) | tried)
        free[subset] = False
        if len(subset) == k or np.count_nonzero(free) < k - len(subset):
            if len(subset) == len(include):
                return None, True
            subset.pop()
            levels.pop()
            continue
        p = int(np.where(free, residuals, -np.inf).argmax())
        tried[p] = True
        push(p)
        steps -= 1
    return None, False
