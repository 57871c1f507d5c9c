"""The sums that standardizing and projecting need, and the lengths that a unit needs, in one pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isopursuit._types import Array
from isopursuit.backend import on_host
from isopursuit.matrix import LARGEST
from isopursuit.sources.settings import SHOWN, SUMMED_AT_ONCE
from isopursuit.sources.tasks import Transform, measure


@dataclass(frozen=True)
class Moments:
    """How many columns, the sum of z and the sum of z zᵀ, for z = s∘(x − x₀), an x₀ near the mean and a scale s.

    With a transform x is a column after it.
    """

    origin: Array
    scale: Array
    transform: Transform | None = None

    def __call__(self, block: Any, first: int) -> Summed:
        """The block's own sums."""
        D, m = len(self.origin), block.shape[1]
        total, gram = np.zeros(D), np.zeros((D, D))
        for start in range(0, m, SUMMED_AT_ONCE):
            z = np.asarray(block[:, start : start + SUMMED_AT_ONCE], dtype=np.float64)
            z = (z if self.transform is None else self.transform.apply(z)) - self.origin[:, None]
            z *= self.scale[:, None]
            total += z.sum(axis=1)
            gram += z @ z.T
        bad = ()
        if not (np.isfinite(total).all() and np.isfinite(gram).all()):
            where = np.argwhere(~np.isfinite(np.asarray(block[:, :])))[:SHOWN]
            bad = tuple((int(i), int(first + j), float(block[i, j])) for i, j in where) or ((0, first, LARGEST),)
        return Summed(m, total, gram, bad)

    def merge(self, one: Summed, other: Summed) -> Summed:
        """Sums add up."""
        with np.errstate(invalid="ignore"):
            total, gram = one.total + other.total, one.gram + other.gram
        return Summed(one.columns + other.columns, total, gram, (one.bad + other.bad)[:SHOWN])

    def after(self, answer: Summed) -> Moments:
        """The same."""
        return self


@dataclass(frozen=True)
class Summed:
    """What `Moments` adds up."""

    columns: int
    total: Array
    gram: Array
    bad: tuple[tuple[int, int, float], ...] = ()


@dataclass(frozen=True)
class Lengths:
    """The length of every column after a transform, block by block."""

    transform: Transform

    def __call__(self, block: Any, first: int) -> list[Array]:
        """Those of one block."""
        t = self.transform
        squares = measure(block, t.a, t.b, t.A, None, None)[0]
        return [np.sqrt(on_host(t.rescaled(squares, block)))]

    def merge(self, one: list[Array], other: list[Array]) -> list[Array]:
        """One after the other."""
        return one + other

    def after(self, answer: list[Array]) -> Lengths:
        """The same."""
        return self
