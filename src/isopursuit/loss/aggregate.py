"""Combine the losses at many points into one number: their sum, or a trimmed mean.

Each aggregate increases with the loss at every point, so lower bounds at the points give a lower bound on it. The paper
uses the sum. A single point with a badly estimated tangent space can have a loss of e^(1/σ), more than all other points
together. The trimmed mean ignores it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from isopursuit._core.options import is_number
from isopursuit._core.types import AggregateName, Array
from isopursuit.errors import unknown_option

SHARE = 0.9  # share of the points, lowest losses first, that "trimmed" keeps (chosen: allows one bad point in ten)


@dataclass(frozen=True)
class Aggregate:
    """The sum of the losses at n points, or the mean of the `share` with the lowest losses."""

    name: AggregateName = "sum"
    share: float = 1.0

    def kept(self, n: int) -> int:
        """How many of n points count, lowest losses first."""
        return max(1, math.ceil(self.share * n - 1e-9))

    def ideal(self, k: int, n: int) -> float:
        """The aggregate for k orthonormal columns at each of n points."""
        return float(k * n if self.name == "sum" else k)

    def log_total(self, log_losses: Array) -> Array:
        """The logarithm of the aggregate, from the points' log-losses along the last axis.

        Examples
        --------
        >>> losses = np.log([2.0, 8.0, 2.0, 2.0])
        >>> np.exp([Aggregate(name, 0.75).log_total(losses) for name in ("sum", "trimmed")]).round(3)
        array([14.,  2.])
        """
        n = log_losses.shape[-1]
        if self.name == "sum":
            return np.logaddexp.reduce(log_losses, axis=-1)
        m = self.kept(n)
        lowest = log_losses if m == n else np.partition(log_losses, m - 1, axis=-1)[..., :m]
        return np.logaddexp.reduce(lowest, axis=-1) - math.log(m)

    def per_point(self, log_total: float, n: int) -> float:
        """The logarithm of the loss of a typical point: for the sum, that of the mean loss."""
        return log_total - math.log(n) if self.name == "sum" else log_total

    def words(self, n: int) -> str:
        """A description of `per_point`.

        Examples
        --------
        >>> Aggregate("trimmed", 0.9).words(100), Aggregate().words(3)
        ('mean over the best 90 of 100 points', 'mean over 3 points')
        """
        if self.name == "trimmed":
            return f"mean over the best {self.kept(n)} of {n} points"
        return f"mean over {n} points"

    def __str__(self) -> str:
        return f"trimmed {self.share:g}" if self.name == "trimmed" else self.name


SUM = Aggregate()


def as_aggregate(given: Any) -> Aggregate:
    """An aggregate by its name, or the trimmed mean of a given share.

    Examples
    --------
    >>> as_aggregate("trimmed"), str(as_aggregate(0.75))
    (Aggregate(name='trimmed', share=0.9), 'trimmed 0.75')
    """
    if isinstance(given, Aggregate):
        return given
    if given == "sum":
        return SUM
    if given == "trimmed":
        return Aggregate("trimmed", SHARE)
    if is_number(given) and 0 < float(given) <= 1:
        return Aggregate("trimmed", float(given))
    share = "the share of the points that a trimmed mean keeps, such as 0.8"
    raise unknown_option("aggregate", given, get_args(AggregateName), share)
