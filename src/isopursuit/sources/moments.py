"""Tasks of one pass: moments for standardizing and projecting, and lengths for a unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isopursuit._core.linalg import on_host
from isopursuit._core.types import Array
from isopursuit.sources.tasks import BadEntries, SameTask, Transform, on_same_device, pieces


@dataclass(frozen=True)
class Summed:
    """The sums of `Moments`, and the first entries that are not finite."""

    columns: int
    total: Array
    gram: Array
    bad: BadEntries


@dataclass(frozen=True)
class Moments(SameTask):
    """Number of columns, sum of z and sum of z zᵀ, for z = s∘(u − u₀), u a transformed column."""

    transform: Transform
    origin: Array
    scale: Array

    def __call__(self, block: Any, first: int) -> Summed:
        """The sums of one block."""
        total, gram = np.zeros(len(self.origin)), np.zeros((len(self.origin),) * 2)
        for _, u in pieces(block, self.transform):
            z = (u - on_same_device(self.origin[:, None], u)) * on_same_device(self.scale[:, None], u)
            total += on_host(z.sum(1))
            gram += on_host(z @ z.T)
        fine = np.isfinite(total).all() and np.isfinite(gram).all()
        return Summed(block.shape[1], total, gram, BadEntries() if fine else BadEntries.among(block, first))

    def merge(self, one: Summed, other: Summed) -> Summed:
        """The sums of both."""
        with np.errstate(invalid="ignore"):
            total, gram = one.total + other.total, one.gram + other.gram
        return Summed(one.columns + other.columns, total, gram, one.bad + other.bad)


@dataclass(frozen=True)
class Lengths(SameTask):
    """The length of every column after a transform, block by block."""

    transform: Transform

    def __call__(self, block: Any, first: int) -> list[Array]:
        """The answer for one block."""
        return [np.sqrt(on_host((u * u).sum(0))) for _, u in pieces(block, self.transform)]

    def merge(self, one: list[Array], other: list[Array]) -> list[Array]:
        """Both lists."""
        return one + other
