"""A trade-off between orthogonality and relevance, from 0 (orthogonality alone) to 1 (relevance alone).

Near the ideal the loss is a sum of squares. For k columns of lengths e^(u_i) with cosines s_ij,

    l_c ≈ k + c² [ Σ u_i² + ½ Σ_{i<j} s_ij² ]                (h''(1)/2 = c²/4; see loss/penalty.py).

A candidate with score r_i, as a share of the largest, is given the length e^(±v_i) with v_i² = u_i² + t (1 − r_i), on
its own side of 1, and below 1 if its length is 1. Then
l_c ≈ k + c² [ Σ u_i² + ½ Σ s_ij² + t Σ (1 − r_i) ], and with t = θ / (1 − θ) the least loss is
the least of

    (1 − θ) · (what lengths and angles cost) + θ · Σ (1 − r_i),

a weighted sum, which maximal marginal relevance has for one step of its greedy search. As θ rises the shortest column
dominates the loss, and the k most relevant candidates win; θ = 1 picks them directly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from isopursuit._core.options import is_number
from isopursuit._core.types import Array
from isopursuit.errors import ParameterError

LONGER = 1e-9  # relative: a length above 1 by less than this is 1, whatever rounding says (guess, many times EPS)
LEAST = 1e-6  # the least relevance, as a share of the largest: with less, lengths would differ too much (guess)
MOST_LOG_LENGTH = -float(np.log(LEAST))  # |log length| that irrelevance leads to, at most
MOST_COST = (
    9.0  # t (1 − r) of the k-th most relevant, at most: a length of e^−3, so that losses stay in float64 (guess)
)
INDEPENDENT = 1e-10  # a sine: a column within this angle of the span of others adds nothing to it (guess)


@dataclass(frozen=True)
class Scoring:
    """What scores do to candidates: `factor_of` their lengths (1 is the ideal) is what they are multiplied by, those
    `excluded` cannot be picked, and `chosen` ones must be, in place of those that the user includes.
    """

    factor_of: Callable[[Array], Array] | None = None
    excluded: tuple[int, ...] = ()
    chosen: list[int] | None = None


def by_shares(relevance: Array) -> Scoring:
    """The scoring of features: zero excludes; |log length| grows by |log relevance|, on its own side of 1."""
    share = np.maximum(relevance / relevance.max(), LEAST)

    def factor_of(lengths: Array) -> Array:
        return share ** np.where(lengths > 1 + LONGER, -1.0, 1.0)

    return Scoring(factor_of, tuple(np.flatnonzero(relevance == 0).tolist()))


def as_trade_off(relevance: float) -> float:
    """The trade-off θ."""
    if not is_number(relevance) or not 0 <= relevance <= 1:
        raise ParameterError(
            f"relevance={relevance!r} must be a number from 0 (orthogonality alone) to 1 (relevance alone). "
            "Scores of the samples are passed to fit: fit(X, scores=...)."
        )
    return float(relevance)


def as_scores(scores: Any, n: int) -> Array:
    """One score for each of n samples; only ratios to the largest, which is positive, matter."""
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (n,):
        raise ParameterError(f"scores has shape {values.shape}, expected ({n},): one number for each sample.")
    if not np.isfinite(values).all() or values.max() <= 0:
        raise ParameterError("scores must be finite, and the largest positive. Subtract the least one if none is.")
    return values / values.max()


def cost_of_irrelevance(trade_off: float, shares: Array, k: int) -> float:
    """The t of a trade-off θ < 1, or the most that float64 has room for if k are to be picked: with it the k most
    relevant are favoured about as much as lengths can express.
    """
    missing = 1 - float(np.partition(shares, -k)[-k])
    t = trade_off / (1 - trade_off)
    return min(t, MOST_COST / missing) if missing > 0 else t


def length_factor(lengths: Array, shares: Array, t: float) -> Array:
    """What to multiply columns of these lengths by, where 1 is the ideal."""
    u = np.log(np.where(lengths > 0, lengths, 1.0))
    v = np.sqrt(np.minimum(u**2 + t * (1 - shares), np.maximum(MOST_LOG_LENGTH, np.abs(u)) ** 2))
    return np.exp(np.where(u > LONGER, v, -v) - u)


def most_relevant(
    values: Array, shares: Array, k: int | None, include: Iterable[int], exclude: Iterable[int]
) -> list[int]:
    """The k independent columns with the largest sum of scores, those to include first; all that are independent if k
    is None.

    Sets of independent columns are a matroid, so that taking one after the other by score is best.
    """
    first, never = list(include), set(exclude)
    order = [*first, *(i for i in np.argsort(-shares, kind="stable").tolist() if i not in never and i not in first)]
    basis = np.zeros((0, len(values)))
    taken: list[int] = []
    for i in order:
        if len(taken) == (min(values.shape) if k is None else k):
            break
        x = values[:, i]
        rest = x - basis.T @ (basis @ x)
        rest -= basis.T @ (basis @ rest)
        if np.linalg.norm(rest) > INDEPENDENT * np.linalg.norm(x) or i in first:
            taken.append(i)
            basis = np.vstack([basis, rest / max(float(np.linalg.norm(rest)), 1e-300)])
    return taken
