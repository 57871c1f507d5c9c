"""Notes for answers in which the scale of the data, and not the angles, decided the selection."""

from __future__ import annotations

import math

from isopursuit._core.types import Array
from isopursuit.data._units import UnitLength
from isopursuit.loss.aggregate import SUM, Aggregate
from isopursuit.loss.penalty import log_penalty, log_sum

# If all picked lengths differ from 1 by more than this share on one side, one common factor would bring each closer
# (derived: 10 % of length costs 1 % of the loss of a column)
ONE_SIDED = 0.1
FAR = 100  # times the ideal: a note names the cause of a larger loss (chosen: columns about six times too long)


def is_far(log_loss: float, ideal: float) -> bool:
    """Whether a loss with this logarithm is more than `FAR` times the ideal one."""
    return log_loss > math.log(FAR * ideal)


def table_notes(log_loss: float, ideal: int, option: str) -> tuple[str, ...]:
    """Return a note if the loss of rows that were not standardized is far from ideal. `option` standardizes them."""
    if not is_far(log_loss, ideal):
        return ()
    return (
        "the loss is far from ideal; rows are nearly parallel where one feature has far larger numbers than others. "
        f"{option} gives all features the same scale.",
    )


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
        return (f"all picked columns are {side} than 1 ({span}), so scale decides what is picked; {remedy}.",)
    n, k = lengths.shape
    ideal = aggregate.ideal(k, n)
    by_lengths = float(aggregate.log_total(log_sum(log_penalty(lengths, c))))
    if is_far(log_loss, ideal) and by_lengths - math.log(ideal) > 0.5 * (log_loss - math.log(ideal)):
        return (f"the loss is far from ideal because picked lengths, {span}, are far from 1; {remedy}.",)
    return ()
