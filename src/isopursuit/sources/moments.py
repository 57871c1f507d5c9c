"""Tasks of one pass: moments for standardizing and projecting, and lengths for a unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isopursuit._core.backend import on_host
from isopursuit._core.types import Array
from isopursuit.data._matrix import LARGEST
from isopursuit.sources.settings import SHOWN, SUMMED_AT_ONCE
from isopursuit.sources.tasks import Transform, measure


@dataclass(frozen=True)
class Moments:
    """Number of columns, sum of z and sum of z zᵀ, for z = s∘(x − x₀) with an x₀ near the mean and a scale s.

    If there is a transform, x is a transformed column.
    """

    origin: Array
    scale: Array
    transform: Transform | None = None

    def __call__(self, block: Any, first: int) -> Summed:
        """The sums of one block."""
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
        """The sums of both."""
        with np.errstate(invalid="ignore"):
            total, gram = one.total + other.total, one.gram + other.gram
        return Summed(one.columns + other.columns, total, gram, (one.bad + other.bad)[:SHOWN])

    def after(self, answer: Summed) -> Moments:
        """The same task."""
        return self


@dataclass(frozen=True)
class Summed:
    """The sums of `Moments`."""

    columns: int
    total: Array
    gram: Array
    bad: tuple[tuple[int, int, float], ...] = ()


@dataclass(frozen=True)
class Lengths:
    """The length of every column after a transform, block by block."""

    transform: Transform

    def __call__(self, block: Any, first: int) -> list[Array]:
        """The answer for one block."""
        t = self.transform
        squares = measure(block, t.a, t.b, t.A, None, None)[0]
        return [np.sqrt(on_host(t.rescaled(squares, block)))]

    def merge(self, one: list[Array], other: list[Array]) -> list[Array]:
        """Both lists."""
        return one + other

    def after(self, answer: list[Array]) -> Lengths:
        """The same task."""
        return self
