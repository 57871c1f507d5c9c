"""Explain a selection: the price and the best replacement of each column, improving swaps and close losers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from isopursuit._core.clock import Clock
from isopursuit._core.text import loss_text, name_of
from isopursuit._core.types import Array, Labels
from isopursuit.loss.penalty import to_loss
from isopursuit.pursuit.normalize import LARGEST_LOG
from isopursuit.results import Search
from isopursuit.search.problem import Problem
from isopursuit.search.replacements import Replacement, ReplacementLists, is_lower, ranked
from isopursuit.search.solve import Outcome
from isopursuit.selection.result import Alternative, Choice, Selection

EXPLAINING_SHARE = 0.25  # largest share of the remaining time to reserve for prices (guess)
EXPLAINING_START = 0.1  # seconds reserved for prices even of a small matrix (guess)
PRODUCT_SPEED = 2e9  # multiplications per second in products with all columns, a low estimate (guess)
SPEED = 2e8  # multiplications per second in the kernel, a low estimate; the price of a column needs k³ (guess)
LOSS_SPEED, LOSS_SHARE = 1e9, 0.5  # rows × k² per second for k singular values, a low estimate, and a share (guess)


def before_explaining(clock: Clock, n: int, k: int, P: int, rows: int) -> Clock:
    """The clock for everything before the prices of k columns among P, at n points with `rows` rows.

    It reserves an estimate of the time for the loss of the answer, and for prices, at most `EXPLAINING_SHARE` of the
    remaining time.
    """
    needed = EXPLAINING_START + n * P * float(k) ** 3 / SPEED
    if n == 1 and k < rows:  # one product for all places
        needed = EXPLAINING_START + P * float(k) * (rows + 4 * k) / PRODUCT_SPEED
    loss = n * rows * float(k) ** 2 / LOSS_SPEED  # of the answer, which is always computed
    return clock.reserve(min(LOSS_SHARE * clock.remaining, loss) + min(EXPLAINING_SHARE * clock.remaining, needed))


def explain(values: Array, problem: Problem, method: str, outcome: Outcome, found: ReplacementLists) -> Selection:
    """The selection of the columns `values` (n, rows, k). `found` lists replacements for each column, or None if there
    was no time to compute them.
    """
    search, labels = outcome.search, problem.labels
    choices = _choices(values, labels, search, found)
    rivals: dict[int, tuple[Replacement, int]] = {}
    for index, swaps in zip(search.indices.tolist(), found, strict=True):
        for one in swaps or () if index not in problem.include else ():
            if one.index not in rivals or is_lower(one.log_loss, rivals[one.index][0].log_loss):
                rivals[one.index] = (one, index)
    notes = search.notes + outcome.notes
    selection = Selection(
        indices=search.indices,
        labels=tuple(name_of(labels, i) for i in search.indices.tolist()),
        loss=search.loss,
        log_loss=search.log_loss,
        pursuit=outcome.pursuit,
        search=search,
        matrix=values if problem.many else values[0],
        choices=choices,
        alternatives=tuple(
            Alternative(
                one.index,
                name_of(labels, one.index),
                float(np.linalg.norm(one.values, axis=1).mean()),
                to_loss(one.log_loss),
                name_of(labels, rivals[one.index][1]),
                one.log_loss,
            )
            for one in ranked(one for one, _ in rivals.values())
        ),
        method=method,
        c=problem.c,
        notes=notes,
        excluded=tuple(map(int, problem.exclude)),
    )
    return replace(selection, notes=notes + _improving_note(selection))


def _improving_note(selection: Selection) -> tuple[str, ...]:
    """A note about the best improving swap, if there is one, and the option that finds it."""
    if not selection.improving_swaps:
        return ()
    best, pursuit = selection.improving_swaps[0], selection.pursuit
    if pursuit is not None and best.index not in pursuit.tied:
        remedy = "the pursuit pruned that column; method='exact' searches all columns"
    else:
        ends = {
            "interrupted": "the search was stopped before it tried such swaps",
            "gap": "the search ended at the requested gap, and gap=0 continues it",
        }
        remedy = ends.get(selection.search.status, "method='exchange' or a longer time limit tries such swaps")
    lower = f"replacing {best.displaces} by {best.label} lowers the loss to {loss_text(best)}"
    return (f"an improving swap is known (a negative price): {lower}; {remedy}.",)


def _choices(values: Array, labels: Labels | None, search: Search, found: ReplacementLists) -> tuple[Choice, ...]:
    """The length (mean over the points), price and best replacement of each picked column."""
    choices: list[Choice] = []
    lengths = np.linalg.norm(values, axis=1).mean(axis=0)
    for index, length, swaps in zip(search.indices.tolist(), lengths.tolist(), found, strict=True):
        label = name_of(labels, index)
        if swaps is None:
            choices.append(Choice(index, label, length, float("nan"), None, float("nan")))
        elif not swaps:
            choices.append(Choice(index, label, length, _rise(search.log_loss, float("inf")), None))
        else:
            best = swaps[0]
            price = _rise(search.log_loss, best.log_loss)
            choices.append(Choice(index, label, length, price, name_of(labels, best.index), best.log_loss))
    return tuple(choices)


def _rise(log_loss: float, log_other: float) -> float:
    """The difference between the other loss and this one; infinite if it overflows float64."""
    if log_other == log_loss:
        return 0.0
    if max(log_loss, log_other) < LARGEST_LOG:
        return to_loss(log_loss) * float(np.expm1(log_other - log_loss))
    return float("inf") if log_other > log_loss else -float("inf")
