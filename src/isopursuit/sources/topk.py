"""The columns with the k largest keys, collected block by block, for arrays and tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.linalg import on_host
from isopursuit._core.types import Array, Indices


@dataclass(frozen=True)
class TopK:
    """The columns with the largest keys, at most `room` of them after `trimmed`.

    `parts` are (numbers, keys, values) of shapes (m,), (m,) and (m, D₀). `left` is the largest key of a dropped column.
    """

    room: int
    parts: tuple[tuple[Indices, Array, NDArray[Any]], ...]
    left: float = -np.inf

    @classmethod
    def pick(cls, block: Any, first: int, which: Any, keys: Any, room: int, bar: float) -> TopK:
        """Copy to the host those columns `which` of a block (None: all) that have the largest keys above the bar."""
        above = true(keys > bar)
        left = bar if len(above) < len(keys) else -np.inf
        if len(above) > room:
            kept, left = largest(keys[above], room)
            above = above[kept]
        some = above if which is None else which[above]
        return cls(room, ((first + on_host(some), on_host(keys[above]), copied_rows(block, some)),), left)

    @property
    def count(self) -> int:
        """The number of columns."""
        return sum(len(keys) for _, keys, _ in self.parts)

    @property
    def bar(self) -> float:
        """A lower bound on the keys that can still be among the largest, if it is cheap to compute."""
        full = len(self.parts) == 1 and self.count >= self.room
        return float(self.parts[0][1].min(initial=np.inf)) if full else -np.inf

    def joined(self, other: TopK) -> TopK:
        """Both together; columns are dropped once there are more than twice `room`."""
        both = TopK(self.room, self.parts + other.parts, max(self.left, other.left))
        return both.trimmed() if both.count > 2 * self.room else both

    def trimmed(self) -> TopK:
        """One part with at most `room` columns."""
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


def copied_rows(block: Any, columns: Any) -> NDArray[Any]:
    """Some columns of an array or a tensor, (m, D₀), on the host."""
    return np.ascontiguousarray(on_host(block[:, columns].T))


def true(mask: Any) -> Any:
    """The indices at which a mask (array or tensor) is True."""
    return np.flatnonzero(mask) if isinstance(mask, np.ndarray) else mask.nonzero()[:, 0]


def largest(keys: Any, room: int) -> tuple[Any, float]:
    """The ascending indices of the `room` largest keys, and the largest of the other keys."""
    if isinstance(keys, np.ndarray):
        order = np.argpartition(-keys, room)
        return np.sort(order[:room]), float(keys[order[room]])
    values, order = keys.topk(room + 1)
    return order[:room].sort().values, float(values[room])
