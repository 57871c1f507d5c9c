"""The sums that standardizing and projecting need, in one pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isopursuit._types import Array
from isopursuit.matrix import LARGEST
from isopursuit.sources.settings import SHOWN, SUMMED_AT_ONCE


@dataclass(frozen=True)
class Moments:
    """How many columns, the sum of z and the sum of z zᵀ, for z = s∘(x − x₀), an x₀ near the mean and a scale s."""

    origin: Array
    scale: Array

    def __call__(self, block: Any, first: int) -> Summed:
        """The block's own sums."""
        D, m = block.shape
        total, gram = np.zeros(D), np.zeros((D, D))
        for start in range(0, m, SUMMED_AT_ONCE):
            z = np.asarray(block[:, start : start + SUMMED_AT_ONCE], dtype=np.float64) - self.origin[:, None]
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
