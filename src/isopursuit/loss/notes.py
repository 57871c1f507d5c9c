"""Notes for answers in which the scale of the data, and not the angles, decided the selection."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from isopursuit._core.text import Caution
from isopursuit._core.types import Array
from isopursuit.data._units import UnitLength
from isopursuit.loss.aggregate import SUM, Aggregate
from isopursuit.loss.penalty import log_penalty, log_sum

# If all picked lengths differ from 1 by more than this share on one side, one common factor would bring each closer
# (derived: 10 % of length costs 1 % of the loss of a column)
ONE_SIDED = 0.1
CROWDED = 2  # times the ideal: a note says why a larger loss of columns of good length must be expected (chosen)
CARRIED = 0.99  # share of the variance in the directions that carry the data (chosen)
FAR = 100  # times the ideal: a note names the cause of a larger loss (chosen: columns about six times too long)


def is_far(log_loss: float, ideal: float) -> bool:
    """Whether a loss with this logarithm is more than `FAR` times the ideal one."""
    return log_loss > math.log(FAR * ideal)


def table_notes(log_loss: float, ideal: int, option: str) -> tuple[str, ...]:
    """Return a note if the loss of rows that were not standardized is far from ideal. `option` standardizes them."""
    if not is_far(log_loss, ideal):
        return ()
    return (
        Caution(
            "the loss is far from ideal. If one feature has far larger numbers than others, rows are nearly parallel; "
            f"{option} gives all features the same scale."
        ),
    )


def crowding_notes(spectrum: Callable[[], Array], k: int, log_loss: float) -> tuple[str, ...]:
    """A note if k columns of one matrix are far from orthonormal, though their lengths are not the reason.

    `spectrum` returns the squared singular values of all columns with length 1, or of a sample of them.
    """
    if not log_loss > math.log(CROWDED * k):
        return ()
    carried = np.cumsum(np.sort(spectrum())[::-1])
    r = 1 + int(np.searchsorted(carried, CARRIED * carried[-1]))
    if k > r:
        return (
            Caution(
                f"{100 * CARRIED:g} % of the variance lies in {r} direction{'s' * (r > 1)}; {k} nearly orthonormal "
                f"columns cannot be expected there. k={r} or less is nearer to ideal."
            ),
        )
    if not is_far(log_loss, k):
        return ()
    return (Caution("the loss is far from ideal: the picked columns are nearly dependent. A smaller k is nearer."),)


def scale_notes(
    lengths: Array, log_loss: float, c: float, unit: UnitLength, aggregate: Aggregate = SUM
) -> tuple[str, ...]:
    """Return a note on the lengths (n, k) of the selected columns at n points, and on their log-loss.

    There is a note if all lengths (means over the points) are on one side of 1 by more than `ONE_SIDED`, or if the
    loss is far from ideal and orthogonal columns of these lengths have half of its logarithm's excess. It names the
    unit to try next.
    Columns of unit length get no note: if their loss is large, they are nearly dependent.
    """
    if unit.how == "each":
        return ()
    mean = lengths.mean(axis=0)
    span = f"{mean.min():.3g} to {mean.max():.3g}"
    remedy = "unit='median' makes the median length 1, unit='each' every length"
    if unit.how == "median":
        remedy = "unit='each' compares angles alone"
    side = "longer" if mean.min() > 1 + ONE_SIDED else "shorter" if mean.max() < 1 - ONE_SIDED else ""
    if side:
        return (Caution(f"all picked columns are {side} than 1 ({span}), so scale decides what is picked; {remedy}."),)
    n, k = lengths.shape
    ideal = aggregate.ideal(k, n)
    by_lengths = float(aggregate.log_total(log_sum(log_penalty(lengths, c))))
    if is_far(log_loss, ideal) and by_lengths - math.log(ideal) > 0.5 * (log_loss - math.log(ideal)):
        return (Caution(f"the loss is far from ideal because picked lengths, {span}, are far from 1; {remedy}."),)
    return ()
