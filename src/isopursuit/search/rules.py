"""Which columns may be picked together: pairs that exclude each other, and groups with a least and a most number.

A set of columns is *allowed* if it has no excluded pair, and from every group at least the least and at most the most
number of columns. `Rules.blocked` says which columns cannot join some others; swaps, greedy choices and prices skip
these. The tree drops them from the candidates of a node, and evaluates allowed sets only. Bounds of problems without
rules remain valid, because rules only remove subsets; the tree makes them tighter (_node.pxd).

largest.py finds the largest allowed sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.options import is_number, is_whole
from isopursuit._core.text import listed, name_columns
from isopursuit._core.types import Array, Indices, Label, Labels, Mask, PerGroup
from isopursuit.data._matrix import Matrix, as_indices
from isopursuit.errors import BudgetError, ParameterError
from isopursuit.loss.penalty import ROUNDING
from isopursuit.search.settings import SOURCE_ENTRIES, TABLE_BYTES

NO_LIMIT = 2**30  # columns of a group without a limit


@dataclass(frozen=True, kw_only=True, eq=False)
class Rules:
    """Which of P columns may be picked together.

    Attributes
    ----------
    near : (P, ⌈P / 8⌉) array of uint8
        The bit q of row p: columns p and q exclude each other, also because their group may give only one column.
    group : (P,) array
        The number of each column's group; columns without a label are in the last group, which has no limits.
    least, most : (G,) arrays
        How many columns of each group must, and may, be picked.
    max_correlation, apart
        The threshold, and the number of pairs that the caller named.
    groups : tuple
        The labels of the groups.
    """

    near: NDArray[np.uint8]
    group: NDArray[np.int32]
    least: NDArray[np.int32]
    most: NDArray[np.int32]
    max_correlation: float | None = None
    apart: int = 0
    groups: Labels = ()

    @property
    def count(self) -> int:
        """The number of columns."""
        return len(self.group)

    @property
    def degrees(self) -> Indices:
        """How many columns each one excludes."""
        bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1)
        return bits[self.near].sum(axis=1).astype(np.intp)

    def near_of(self, columns: Indices) -> Mask:
        """Whether each column (P,) excludes at least one of these."""
        if len(columns) == 0:
            return np.zeros(self.count, dtype=bool)
        bits = np.bitwise_or.reduce(self.near[columns], axis=0)
        return np.unpackbits(bits, count=self.count, bitorder="little").astype(bool)

    def blocked(self, columns: NDArray[np.integer], k: int) -> Mask:
        """Which columns (P,) cannot be added to these if k are to be picked; all, if no k allowed ones contain them."""
        have = np.bincount(self.group[columns], minlength=len(self.most))
        needed = np.maximum(self.least - have, 0)
        full = have >= self.most
        if needed.sum() >= k - len(columns):  # only columns of groups that need more
            full |= needed == 0 if needed.sum() == k - len(columns) else True
        return self.near_of(columns.astype(np.intp)) | full[self.group]

    def allow(self, subsets: NDArray[np.integer]) -> Mask:
        """Which of these subsets (n, k) are allowed."""
        allowed = np.ones(len(subsets), dtype=bool)
        for g in np.flatnonzero((self.least > 0) | (self.most < NO_LIMIT)).tolist():
            have = (self.group[subsets] == g).sum(axis=1)
            allowed &= (have >= self.least[g]) & (have <= self.most[g])
        for i in range(subsets.shape[1] if len(subsets) else 0):
            for j in range(i):
                p, q = subsets[:, i], subsets[:, j]
                allowed &= (self.near[p, q >> 3] >> (q & 7).astype(np.uint8)) & 1 == 0
        return allowed

    def take(self, positions: Indices) -> Rules:
        """The rules among these columns."""
        if np.array_equal(positions, np.arange(self.count)):
            return self
        size = _rows(self.count)
        parts = (positions[first : first + size] for first in range(0, len(positions), size))
        rows = [
            np.packbits(
                np.unpackbits(self.near[some], axis=1, count=self.count, bitorder="little")[:, positions],
                axis=1, bitorder="little",
            )
            for some in parts
        ]  # fmt: skip
        near = np.concatenate(rows) if rows else self.near[:0]
        return replace(self, near=near, group=self.group[positions])

    @cached_property
    def tables(self) -> tuple[NDArray[Any], ...]:
        """The arrays that the kernels read (_rules.pxd)."""
        return np.ascontiguousarray(self.near), self.group, self.least, self.most, self.cliques()

    def cliques(self) -> NDArray[np.int32]:
        """A clique for each column (P,), by number: columns of one clique exclude each other. Greedy, not least."""
        found, degree = np.full(self.count, -1, dtype=np.int32), self.degrees
        cliques = 0
        for p in np.argsort(-degree, kind="stable").tolist():
            if found[p] >= 0:
                continue
            found[p], open_ = cliques, self.near_of(np.array([p])) & (found < 0)
            while open_.any():
                q = int(np.flatnonzero(open_)[degree[open_].argmax()])
                found[q] = cliques
                open_ &= self.near_of(np.array([q]))
            cliques += 1
        return found

    # ------------------------------------------------------------------------------------------ messages
    def check(self, include: Indices, possible: Indices, k: int | None, labels: Labels | None) -> None:
        """Raise an error that names the columns or the group if the included columns or the limits contradict."""
        have = np.bincount(self.group[include], minlength=len(self.most))
        there = np.bincount(self.group[np.union1d(include, possible)], minlength=len(self.most))
        for g, label in enumerate(self.groups):
            if have[g] > self.most[g]:
                raise ParameterError(
                    f"include names {have[g]} columns of group {label!r}, of which at most {self.most[g]} may be "
                    "picked."
                )
            if there[g] < self.least[g]:
                raise ParameterError(
                    f"Group {label!r} must give at least {self.least[g]} columns, but only {there[g]} of them can be "
                    "picked. Lower its limit in per_group."
                )
        for p in include.tolist():
            other = include[self.near_of(np.array([p]))[include]]
            if len(other):
                pair = name_columns(sorted([p, int(other[0])]), labels)
                raise ParameterError(f"include names two columns that must not be picked together: {pair}.")
        needed = int(np.maximum(self.least, have).sum())
        if k is not None and needed > k:
            raise ParameterError(
                f"include and the least numbers of groups need {needed} columns, but only {k} are picked. Pass "
                f"k={needed}."
            )

    @property
    def words(self) -> str:
        """The options, for messages."""
        parts = [] if self.max_correlation is None else [f"max_correlation={self.max_correlation:g}"]
        parts += ["apart="] if self.apart else []
        return " and ".join([*parts, *(["groups="] if self.groups else [])])

    def held(self, subset: Indices, X: Array) -> tuple[str, ...]:
        """What holds of a picked subset, with columns X (n, D, k), in words."""
        lines: list[str] = []
        if self.max_correlation is not None:
            unit = X / np.linalg.norm(X, axis=1, keepdims=True)
            cosines = np.abs(np.swapaxes(unit, 1, 2) @ unit).mean(axis=0)[np.triu_indices(len(subset), 1)]
            largest = f", the largest of a picked pair is {cosines.max():.4g}" if len(cosines) else ""
            lines.append(f"max_correlation={self.max_correlation:g}{largest}")
        if self.apart:
            lines.append(f"{self.apart} pair{'s' * (self.apart > 1)} not picked together")
        if self.groups:
            have = np.bincount(self.group[subset], minlength=len(self.most)).tolist()
            some = [f"{label} {n}" for label, n in zip(self.groups, have, strict=False) if n]
            lines.append(f"groups: {len(some)} of {len(self.groups)} ({listed(some)})")
        return tuple(lines)


# ---------------------------------------------------------------------------------------------------- from the caller


def as_rules(
    points: list[Matrix],
    max_correlation: float | None,
    apart: Iterable[Any] | None,
    groups: Any,
    per_group: PerGroup,
) -> Rules | None:
    """The rules that the caller's options describe; None if there are none. At many points |cosines| are averaged."""
    P = points[0].values.shape[1]
    if groups is None and per_group is not None:
        raise ParameterError("per_group needs groups=: the group of each column.")
    if max_correlation is None and apart is None and groups is None:
        return None
    if P * P > 16 * TABLE_BYTES:  # one bit each
        raise BudgetError(
            f"max_correlation=, apart= and groups= need a table of all pairs, too large for {P:,} columns. Pass at "
            f"most {4 * int(TABLE_BYTES**0.5):,}."
        )
    near = np.zeros((P, -(-P // 8)), dtype=np.uint8)
    if max_correlation is not None:
        if not is_number(max_correlation) or not 0 <= max_correlation <= 1:
            raise ParameterError(f"max_correlation={max_correlation!r} must be a number from 0 to 1, such as 0.7.")
        _mark_similar(near, [_directions(one.values) for one in points], float(max_correlation))
    pairs = list(_pairs(apart, points[0]))
    for p, q in pairs:
        near[p, q >> 3] |= 1 << (q & 7)
        near[q, p >> 3] |= 1 << (p & 7)
    group, names, least, most = _grouped(groups, per_group, points[0])
    for g in np.flatnonzero(most == 1).tolist():
        inside = np.packbits(group == g, bitorder="little")
        some = np.flatnonzero(group == g)
        near[some] |= inside
        near[some, some >> 3] &= ~(1 << (some & 7)).astype(np.uint8)
    threshold = None if max_correlation is None else float(max_correlation)
    return Rules(
        near=near, group=group, least=least, most=most, max_correlation=threshold, apart=len(set(pairs)), groups=names
    )


def _directions(values: Array) -> Array:
    lengths = np.linalg.norm(values, axis=0)
    return values / np.where(lengths > 0, lengths, 1.0)


def _rows(columns: int) -> int:
    """Rows of the table of pairs that are computed at once."""
    return max(SOURCE_ENTRIES // columns, 1)


def _mark_similar(near: NDArray[np.uint8], points: list[Array], threshold: float) -> None:
    """Set the bits of pairs whose mean |cosine| is above the threshold."""
    P = len(near)
    size = _rows(P)
    for first in range(0, P, size):
        some = slice(first, min(first + size, P))
        cosines = sum(np.abs(one[:, some].T @ one) for one in points) / len(points)
        above = np.asarray(cosines > threshold + ROUNDING)
        above[np.arange(above.shape[0]), np.arange(some.start, some.stop)] = False
        near[some] = np.packbits(above, axis=1, bitorder="little")


def _pairs(apart: Iterable[Any] | None, matrix: Matrix) -> Iterator[tuple[int, int]]:
    """The pairs of column numbers."""
    for pair in apart or ():
        names: list[Any] = list(pair) if isinstance(pair, Iterable) and not isinstance(pair, str) else [pair]
        both = as_indices(names, matrix, "apart")
        if len(both) != 2 or len(names) != 2:
            raise ParameterError(f"apart names {pair!r}, which is not a pair of two columns. Pass [(one, other), ...].")
        yield both[0], both[1]


def _grouped(
    groups: Any, per_group: PerGroup, matrix: Matrix
) -> tuple[NDArray[np.int32], Labels, NDArray[np.int32], NDArray[np.int32]]:
    """The number of each column's group, the groups' labels, and their limits; the last group has no label."""
    P = matrix.values.shape[1]
    of: list[Label | None] = [None] * P
    if isinstance(groups, Mapping):
        named = cast(Mapping[Any, Any], groups)
        place = {name: i for i, name in enumerate(matrix.labels or ())}
        for name, label in named.items():
            of[place[name] if name in place else as_indices([name], matrix, "groups")[0]] = label
    elif groups is not None:
        of = list(groups) if isinstance(groups, Iterable) and not isinstance(groups, str) else []
        if len(of) != P:
            raise ParameterError(f"groups has {len(of)} labels for {P} columns. Pass one for each, or a mapping.")
    none = [label is None or label != label for label in of]  # NaN marks a column without a group in a data frame
    names: Labels = tuple(dict.fromkeys(label for label, without in zip(of, none, strict=True) if not without))
    code = {label: g for g, label in enumerate(names)}
    group = np.array(
        [len(names) if without else code[label] for label, without in zip(of, none, strict=True)], np.int32
    )
    least, most = np.zeros(len(names) + 1, np.int32), np.full(len(names) + 1, NO_LIMIT, np.int32)
    limits: Any = 1 if per_group is None else per_group
    if isinstance(limits, Mapping):
        of_group = cast(Mapping[Any, Any], limits)
        for label, given in of_group.items():
            if label not in code:
                raise ParameterError(f"per_group names group {label!r}, which no column has. There is {listed(names)}.")
            least[code[label]], most[code[label]] = _limits(given)
    else:
        least[:-1], most[:-1] = _limits(limits)
    return group, names, least, most


def _limits(given: Any) -> tuple[int, int]:
    """The least and the most number of columns of a group."""
    pair = tuple(cast(Sequence[Any], given)) if isinstance(given, tuple | list) else (0, given)
    low, high = pair if len(pair) == 2 else (None, None)
    if not (is_whole(low) and is_whole(high) and 0 <= low <= high <= NO_LIMIT):
        raise ParameterError(f"per_group={given!r} must be the most columns of a group, or a pair (least, most).")
    return int(low), int(high)
