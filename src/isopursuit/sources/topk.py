"""The k largest of many keys with their columns, block by block, for arrays and tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isopursuit._types import Array, Indices
from isopursuit.backend import on_host


@dataclass(frozen=True)
class TopK:
    """The columns of the largest keys, at most `room` of them in the end.

    `parts` are (numbers, keys, values), (m,), (m,) and (m, D₀); `left` is the largest key of a column that was dropped.
    """

    room: int
    parts: tuple[tuple[Indices, Array, NDArray[Any]], ...]
    left: float = -np.inf

    @classmethod
    def pick(cls, block: Any, first: int, which: Any, keys: Any, room: int, bar: float) -> TopK:
        """Of the columns `which` of a block (None: all) those of the largest keys above the bar, copied to the host."""
        above = true(keys > bar)
        left = bar if len(above) < len(keys) else -np.inf
        if len(above) > room:
            kept, left = largest(keys[above], room)
            above = above[kept]
        some = above if which is None else which[above]
        values = block.rows(some) if hasattr(block, "rows") else np.ascontiguousarray(block[:, some].T)
        return cls(room, ((first + on_host(some), on_host(keys[above]), values),), left)

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(len(keys) for _, keys, _ in self.parts)

    @property
    def bar(self) -> float:
        """A lower bound on the keys that can still be among the largest, as far as it is known cheaply."""
        full = len(self.parts) == 1 and self.count >= self.room
        return float(self.parts[0][1].min(initial=np.inf)) if full else -np.inf

    def joined(self, other: TopK) -> TopK:
        """Both; columns are dropped once there are twice as many as there is room for."""
        both = TopK(self.room, self.parts + other.parts, max(self.left, other.left))
        return both.trimmed() if both.count > 2 * self.room else both

    def trimmed(self) -> TopK:
        """One part, of no more columns than there is room for."""
        if len(self.parts) == 1 and self.count <= self.room:
            return self
        indices = np.concatenate([part[0] for part in self.parts])
        keys = np.concatenate([part[1] for part in self.parts])
        kept, left = (np.arange(len(keys)), -np.inf) if len(keys) <= self.room else largest(keys, self.room)
        values = np.empty((len(kept), self.parts[0][2].shape[1]), dtype=self.parts[0][2].dtype)
        starts = np.cumsum([0, *(len(part[1]) for part in self.parts)])
        places = np.searchsorted(kept, starts)
        for (_, _, part), start, a, b in zip(self.parts, starts, places, places[1:], strict=False):
            values[a:b] = part[kept[a:b] - start]
        return TopK(self.room, ((indices[kept], keys[kept], values),), max(self.left, left))


def true(mask: Any) -> Any:
    """Where a mask, an array or a tensor, holds."""
    return np.flatnonzero(mask) if isinstance(mask, np.ndarray) else mask.nonzero()[:, 0]


def largest(keys: Any, room: int) -> tuple[Any, float]:
    """Where the `room` largest of more are, ascending, and the largest of the others."""
    if isinstance(keys, np.ndarray):
        order = np.argpartition(-keys, room)
        return np.sort(order[:room]), float(keys[order[room]])
    values, order = keys.topk(room + 1)
    return order[:room].sort().values, float(values[room])
