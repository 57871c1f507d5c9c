"""Shares: what each point adds to the total that the joint proof compares. A share is a capped loss or its logarithm.

The trimmed mean is not a sum over the points, but a sum bounds it: for every cap t, the sum of the m lowest of n losses
is at least Σ min(lᵢ, t) − (n − m) t, with equality if t is the m-th lowest loss. The proof takes t from the incumbent.
For the sum of all losses the cap is the incumbent's loss, which no point of a better subset exceeds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from isopursuit._types import Array
from isopursuit.aggregate import Aggregate
from isopursuit.loss.penalty import eigenvalue_of_loss, least_log_spectral_loss, log_penalty, to_loss
from isopursuit.rank import spectrum

CELLS = 2**15  # entries of the table of h (derived: 256 kB fit into the cache of a processor)
TABLE_ERROR = 1e-11  # relative error of one entry of the table (derived: 600 × 40 eps)
FLOAT_ERROR = 6e-8  # relative error of one float32 operation (derived)
LARGEST_SHARE = 1e38  # if shares are logarithms, larger losses are replaced by this (derived: the range of float32)
TRUSTED = 1e-3  # relative error from the included columns above which a point has only its floor as a bound (guess)


@dataclass(frozen=True)
class Shares:
    """The conversion of losses at n points to one total that bounds the aggregate.

    Attributes
    ----------
    geometric : bool
        Whether a share is the logarithm of the loss.
    cap, unit : float
        A loss above the cap is replaced by the cap. Shares are multiples of the unit.
    kept, left_out : float
        A total is compared with `kept` times the aggregate plus `left_out` times the cap.
    points : int
        The number of points.
    """

    geometric: bool
    cap: float
    unit: float
    kept: float
    left_out: float
    points: int

    @classmethod
    def of(cls, aggregate: Aggregate, log_losses: Array) -> Shares:
        """The shares for subsets that are better than one with these log-losses."""
        n, loss = len(log_losses), to_loss(float(aggregate.log_total(log_losses)))
        if aggregate.name == "geometric":
            return cls(True, np.inf, 1.0, 1.0, 0.0, n)
        if aggregate.name == "sum":
            return cls(False, loss, loss, 1.0, 0.0, n)
        kept = aggregate.kept(n)
        cap = to_loss(float(np.sort(log_losses)[kept - 1]))
        return cls(False, cap, kept * loss + (n - kept) * cap, kept, n - kept, n)

    @property
    def margin(self) -> float:
        """The relative error of a total, a sum of float32 numbers."""
        return (self.points + 8) * FLOAT_ERROR

    def limit(self, log_loss: float) -> float:
        """No subset with a total above this has a log-loss below the given one."""
        if self.geometric:
            return self.points * log_loss * (1 + self.margin)
        return (self.kept * math.exp(log_loss) + self.left_out * self.cap) / self.unit * (1 + self.margin)

    def bound(self, total: float) -> float:
        """No subset with this total has a loss below this."""
        total *= 1 - self.margin
        if self.geometric:
            return to_loss(total / self.points)
        return (total * self.unit - self.left_out * self.cap) / self.kept

    def share(self, losses: Array) -> Array:
        """The shares of these losses, each at its point."""
        return np.log(losses) if self.geometric else np.minimum(losses, self.cap) / self.unit

    @property
    def largest(self) -> float:
        """The largest h(λ) of one eigenvalue that matters."""
        return LARGEST_SHARE if self.geometric else self.cap


def penalty_table(c: float, largest: float) -> tuple[Array, int, int]:
    """A table of the least values of h between neighbouring floats of few binary digits, while h is at most `largest`.

    Returns the values, the shifted bits of the first argument, and the number of bits of the shift.
    """
    last = min(max(eigenvalue_of_loss(max(largest, 1.0), c), 2.0), 1e300)
    digits = max(int(math.log2(CELLS / (2 * math.log2(last)))), 0)
    shift = 52 - digits
    first, end = (np.array([1 / last, last]).view(np.int64) >> shift).tolist()
    ends = (np.arange(first, end + 2, dtype=np.int64) << shift).view(np.float64)
    # h falls up to 1, a boundary of cells, and then rises, so its least value in a cell is at one end
    nearest = np.where(ends[1:] <= 1, ends[1:], ends[:-1])
    values = np.exp(np.minimum(log_penalty(np.sqrt(nearest), c), 690.0)) * (1 - TABLE_ERROR)
    return np.maximum(values, 1 - TABLE_ERROR), first, shift


def off_included(X: Array, included: Array, c: float, m: int, largest: float) -> tuple[Array, Array, Array]:
    """The residuals of X (n, D, P) off the span of the included columns (n, D, j), the losses of the included columns,
    and the share of both losses that is certain.

    The error of a residual is the angle of the computed span times the column's length. It moves an eigenvalue λ, and
    the relative change of h is at most (c/2) λ^(−1−c/2) times that.
    """
    if not included.shape[2]:
        return X, np.zeros(len(X)), np.ones(len(X))
    Q: Array = np.linalg.qr(included)[0]
    for _ in range(2):
        X = X - np.matmul(Q, np.matmul(np.swapaxes(Q, 1, 2), X))
    sigma = spectrum(included)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        angle: Array = 64 * X.shape[1] * np.finfo(np.float64).eps * sigma[:, 0] / sigma[:, -1]
        moved = 4 * m * angle * np.square(np.linalg.norm(X, axis=1)).max(axis=1)
        last = max(eigenvalue_of_loss(max(largest, 1.0), c), 2.0)
        error: Array = 2 * moved * c * last ** (1 + c / 2)
    losses: Array = np.exp(np.minimum(least_log_spectral_loss(sigma, c), 690.0))
    trust: Array = np.where(error < TRUSTED, 1 - error, 0.0)
    return X, losses, trust
