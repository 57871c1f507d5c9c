"""The main function: make a problem, solve it, and return an answer that explains itself.

A quarter of the time limit at most is reserved for the prices at the end, by an estimate of what they take. The search
gets the rest.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from isopursuit._core.clock import Clock
from isopursuit._core.options import as_gap, as_repeatable
from isopursuit._core.progress import shown
from isopursuit._core.text import Caution, call_text, loss_text, name_of
from isopursuit._core.threads import on_one_blas_thread, worker_count
from isopursuit._core.types import AggregateOption, Array, Label, Method, PerGroup, Unit
from isopursuit.data._matrix import Matrix, centred
from isopursuit.data.gram import from_gram
from isopursuit.errors import ParameterError, unknown_option
from isopursuit.loss.notes import crowding_notes
from isopursuit.loss.penalty import LARGEST_EXP, to_loss
from isopursuit.results import Search
from isopursuit.search.incumbent import Callback, Limits, ProofFile, SearchProgress
from isopursuit.search.problem import BRUTE_FORCE, Problem
from isopursuit.search.replacements import Replacement, ReplacementLists, is_lower, ranked
from isopursuit.search.settings import RESIDENT
from isopursuit.search.solve import Outcome, solve
from isopursuit.selection.result import Alternative, Choice, Selection

PRICE_SHARE = 0.25  # largest share of the remaining time that is reserved for prices (chosen)
PRICE_SPEED = 2e8  # multiplications per second when prices are computed, a low estimate (measured: 64 × 2000, k = 20)
QUICK = 0.2  # seconds for the prices of a small matrix, and after an interrupt: the command has half a second to end


@on_one_blas_thread
def select(
    X: Any = None,
    k: int | None = None,
    c: float = 1.0,
    *,
    gram: Any = None,
    method: Method = "auto",
    unit: Unit = None,
    center: bool = False,
    aggregate: AggregateOption = "sum",
    include: Iterable[Any] | None = None,
    exclude: Iterable[Any] | None = None,
    labels: Sequence[Label] | None = None,
    max_correlation: float | None = None,
    apart: Iterable[Any] | None = None,
    groups: Sequence[Label] | Mapping[Any, Label] | None = None,
    per_group: PerGroup = None,
    time_limit: float | None = 10.0,
    gap: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
    proof: str | os.PathLike[str] | ProofFile | None = None,
) -> Selection:
    """Pick the k columns of X that are as orthonormal as possible.

    The answer is the subset of least loss l_c that was found, with a lower bound or a proof that no subset is better.

    Parameters
    ----------
    X : array_like (D, P), data frame, a list (or stack) of such matrices of one shape, or a source
        Columns are candidates; a frame's column names become labels. Several matrices, such as the differentials of
        functions at many points of a manifold, share one selection (`aggregate`). For files, tensors and Dask arrays
        see `as_source`.
    gram : array_like or data frame (P, P)
        In place of X, the inner products of its columns: a correlation, covariance or kernel matrix. It must be
        symmetric and positive semidefinite up to rounding; see `isopursuit.data.from_gram`.
    k : int, optional
        How many columns to pick. Default: D, which makes them a basis; with `max_correlation`, `apart` or `groups`, as
        many as these allow (and are independent). `Search.most` says whether that is proved to be the largest number.
    c : float
        The paper's exponent: a larger one penalizes lengths and angles more strongly. Default: 1, as in the paper.
    method : {"auto", "two-stage", "exact", "exchange", "greedy", "brute"}
        How to search. "auto" (the default) looks for a proof where one can be expected within seconds and for a good
        subset elsewhere; the notes below say how it chooses. "two-stage" is the paper's method: isometry pursuit prunes
        the columns, and an exact search proves the best subset of the columns that it keeps (the tied set). Orthonormal
        columns of X are always in that set, and are returned if the search finishes. If k < D and the pursuit hardly
        prunes (k far below D, or columns of equal length), exchange search runs instead. "exact" proves the best subset
        of all columns. "exchange" improves subsets by swaps and reports a lower bound. "greedy" and "brute" are for
        comparison.
    unit : number, "median", "each" or None
        The length that counts as 1. None (the default) keeps lengths as they are, as in the paper. A number divides
        all lengths by it. "median" divides them by the median length of the columns that may be picked: one number for
        all points, so lengths at different points remain comparable. "each" scales every column to length 1 at every
        point, so only angles matter. Zero columns remain zero.
    center : bool
        Whether to subtract the mean of each column. With unit="each" inner products are then correlations: the rows of
        X are observations, and its columns variables. For Spearman's correlation pass ranks, such as ``df.rank()``.
    aggregate : {"sum", "trimmed"} or number
        How the losses at many points are combined into the number to minimize. "sum" (the default) is the paper's
        choice; a single point whose columns are nearly dependent can dominate it. "trimmed" is the mean over the
        90 % of the points with the lowest losses; a number sets another share. A column that is zero at any point
        cannot be picked. The k columns must be independent at every point, except at points that the trimmed mean
        ignores.
    include, exclude : iterables of column numbers or labels
        Columns that must or must not be picked.
    labels : sequence, optional
        Names of the columns. Default: the column names of a frame, otherwise none.
    max_correlation : float, optional
        No two picked columns have a larger absolute cosine than this. The cosine of two centred columns (`center=True`)
        is their correlation. At many points the mean absolute cosine counts. X must be in memory, as for `apart` and
        `groups`.
    apart : iterable of pairs of column numbers or labels, optional
        Pairs that must not be picked together.
    groups : sequence or mapping, optional
        The group of each column, or a mapping of columns to groups. Columns without a group (None) have no limit.
    per_group : int, pair or mapping, optional
        How many columns of each group may be picked. Default: at most 1. A pair is (least, most); a mapping has a
        number or a pair for some groups, and does not limit others.
    time_limit : float, optional
        Seconds for the whole call. Default: 10; None for no limit. When the time is over, the best subset so far is
        returned with its bound and a note. Prices that there was no time to compute are NaN. Most calls with
        method="auto" finish earlier; "exact" continues until then unless it has a proof.
    gap : float, optional
        Stop as soon as the subset is proved to be within this relative distance of the best. 0 asks for a full proof.
        Default: 0, and for method="auto" 0.01 once the search has taken about half a second (see the notes below).
    callback : callable, optional
        Called with a `SearchProgress` about ten times a second and whenever the loss falls. Return True to stop with
        the best subset so far.
    progress : bool
        Whether to show the state of the search on the error stream: method, seconds, loss, bound and gap. In a
        terminal and in a notebook one line is updated in place; elsewhere, as in a log file, only the last one is
        written. Calls shorter than half a second show nothing. rich draws it (extra `cli`).
    proof : path, optional
        Write what is proved to this file, which `check_proof` and the command `isopursuit check` can check. This needs
        one matrix, of which several copies fit in memory, and method "exact"; "auto" is then "exact". The file is
        written after the search, for which half of the time limit is reserved.

    Returns
    -------
    Selection

    Notes
    -----
    method="auto" tries the following in order. `Selection.method` names the method that gave the answer, and
    `Selection.reason` says why.

    1. "exact", for at most half of the time limit. After N = 4e7 / (n P D²) nodes of its tree at n points (about half a
       second) it gives up if the tree only grows, and from then on a gap of 0.01 is enough. Unless `gap` is given, it
       ends after 10 N nodes. If N < 100, it ends after N nodes, or once a gap of 0.01 is proved; if N < 1, "exchange"
       runs at once. Many points have no second method: "exact" has all of the time limit, and 0.01 is enough after
       50,000 pairs of columns.
    2. "exchange", with the lower bound that is known. If `gap` is not given, it ends when kicks have stopped to help.

    The loss of a column is least at length 1, so the unit decides which columns can be picked at all. Pass
    unit="median" unless a length of 1 has a meaning in your data.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.1, 0.6, 3.0], [0.0, 1.0, 0.6, 2.0]])
    >>> picked = select(X, labels=["north", "east", "both", "far"])
    >>> picked.labels, round(picked.loss, 4)
    (('north', 'east'), 2.005)
    """
    clock, most = Clock.of(time_limit), None if gap is None else as_gap(gap)
    include, exclude, apart = as_repeatable(include), as_repeatable(exclude), as_repeatable(apart)
    groups = as_repeatable(groups)
    call = call_text(select, locals())
    if method not in get_args(Method):
        raise unknown_option("method", method, get_args(Method))
    target = ProofFile.of(proof)
    if target is not None and (center or gram is not None):
        raise ParameterError(
            "A proof is about the matrix that you pass. With proof=, pass no gram=, and centre X before."
        )
    if (X is None) == (gram is None):
        raise ParameterError("Pass either X, whose columns are the candidates, or gram=, their inner products.")
    if center and (gram is not None or isinstance(X, Matrix)):
        raise ParameterError(
            "center=True needs observations as rows of X, which gram= and a Table's matrix do not have. Leave it out: "
            "correlations and standardized tables are centred."
        )
    if gram is not None:
        X, labels = from_gram(gram, labels), None
    if center:
        X, labels = centred(X, labels), None
    problem = Problem.of(
        X, k, c, unit=unit, aggregate=aggregate, include=include, exclude=exclude, labels=labels,
        max_correlation=max_correlation, apart=apart, groups=groups, per_group=per_group, clock=clock,
        in_memory=BRUTE_FORCE if method == "brute" else "",
    )  # fmt: skip
    with shown(progress, callback, lambda now: now.line(time_limit, method)) as report:
        watch = None if report is None else _Watch(report)
        before = before_explaining(clock, problem)
        outcome = solve(problem, method, Limits(before, most, workers=worker_count(None), callback=watch, proof=target))
    stopped = outcome.search.status == "interrupted"
    if stopped:
        clock = clock.within(QUICK)
    try:
        values, found = problem.replacements(outcome.search, clock)
    except KeyboardInterrupt:  # the answer is known; without time there are no prices
        clock.pressed()
        stopped = True
        values, found = problem.replacements(outcome.search, clock.within(0.0))
    why = _stop_note(outcome.search, time_limit, gap, watch is not None and watch.asked) + _price_note(found, stopped)
    few = not problem.many and problem.k <= RESIDENT // 2 and not stopped
    if few and not any(isinstance(note, Caution) for note in outcome.search.notes):
        why += crowding_notes(problem.squared_singular_values, problem.k, outcome.search.log_loss)
    outcome = replace(outcome, notes=outcome.notes + why)
    picked = explain(values, problem, outcome.method or method, outcome, found)
    return replace(picked, reason=outcome.reason, call=call)


class _Watch:
    """The caller's callback; it records whether that has stopped the search."""

    def __init__(self, callback: Callback) -> None:
        self.callback, self.asked = callback, False

    def __call__(self, now: SearchProgress) -> bool:
        self.asked = bool(self.callback(now)) or self.asked
        return self.asked


def _stop_note(search: Search, time_limit: float | None, gap: float | None, asked: bool) -> tuple[str, ...]:
    """What ended the search before its proof: the caller, the time limit or the default gap, and then what to do."""
    if search.status == "interrupted":
        return ("the callback ended the search." if asked else "an interrupt (Ctrl-C) ended the search.",)
    if search.status == "gap" and gap is None:
        return ("a short search found no proof, but a loss within 1 % of its bound; method='exact' looks for one.",)
    if search.status != "time" or time_limit is None:
        return ()
    return (f"the time limit of {time_limit:g} s ended the search; a longer time_limit= may improve or prove it.",)


def _price_note(found: ReplacementLists, stopped: bool) -> tuple[str, ...]:
    """How many prices are unknown, and why."""
    unpriced = sum(swaps is None for swaps in found)
    if not unpriced:
        return ()
    why = "because the call was stopped" if stopped else "before the time limit"
    return (f"the prices of {unpriced} of {len(found)} columns were not computed {why}.",)


def before_explaining(clock: Clock, problem: Problem) -> Clock:
    """The clock for everything before the prices: it reserves an estimate of the time for them."""
    n, k, P = problem.size
    needed = QUICK + n * P * float(k) * (problem.rows + 4 * k) / PRICE_SPEED
    return clock.reserve(min(PRICE_SHARE * clock.remaining, needed))


def explain(values: Array, problem: Problem, method: str, outcome: Outcome, found: ReplacementLists) -> Selection:
    """The selection of the columns `values` (n, rows, k), with prices, alternatives and a note on an improving swap.

    `found` lists replacements for each column, or None if there was no time to compute them.
    """
    search, labels = outcome.search, problem.labels
    choices: list[Choice] = []
    rivals: dict[int, tuple[Replacement, int]] = {}
    lengths = np.linalg.norm(values, axis=1).mean(axis=0).tolist()  # means over the points
    for index, length, swaps in zip(search.indices.tolist(), lengths, found, strict=True):
        label, price, replacement, log_loss = name_of(labels, index), float("nan"), None, float("nan")
        if swaps is not None:
            log_loss, replacement = (swaps[0].log_loss, name_of(labels, swaps[0].index)) if swaps else (np.inf, None)
            price = _rise(search.log_loss, log_loss)
        choices.append(Choice(index, label, length, price, replacement, log_loss))
        for one in swaps or () if index not in problem.include else ():
            if one.index not in rivals or is_lower(one.log_loss, rivals[one.index][0].log_loss):
                rivals[one.index] = (one, index)
    alternatives = [
        Alternative(
            one.index, name_of(labels, one.index), float(np.linalg.norm(one.values, axis=1).mean()),
            to_loss(one.log_loss), name_of(labels, rivals[one.index][1]), one.log_loss,
        )
        for one in ranked(one for one, _ in rivals.values())
    ]  # fmt: skip
    selection = Selection(
        indices=search.indices,
        labels=tuple(choice.label for choice in choices),
        loss=search.loss,
        log_loss=search.log_loss,
        pursuit=outcome.pursuit,
        search=search,
        matrix=values if problem.many else values[0],
        choices=tuple(choices),
        alternatives=tuple(alternatives),
        method=method,
        c=problem.c,
        notes=search.notes + outcome.notes,
        excluded=tuple(map(int, problem.exclude)),
    )
    return replace(selection, notes=selection.notes + _improving_note(selection))


def _improving_note(selection: Selection) -> tuple[str, ...]:
    """A note about the best improving swap, if there is one, and the option that finds it."""
    if not selection.improving_swaps:
        return ()
    best, pursuit = selection.improving_swaps[0], selection.pursuit
    ends = {
        "interrupted": "the search was stopped before it tried such swaps",
        "gap": "the search ended at the requested gap, and gap=0 continues it",
    }
    remedy = ends.get(selection.search.status, "method='exchange' or a longer time limit tries such swaps")
    if pursuit is not None and best.index not in pursuit.tied:
        remedy = "the pursuit pruned that column; method='exact' searches all columns"
    lower = f"replacing {best.displaces} by {best.label} lowers the loss to {loss_text(best)}"
    return (f"an improving swap is known (a negative price): {lower}; {remedy}.",)


def _rise(log_loss: float, log_other: float) -> float:
    """The difference between the other loss and this one; infinite if it overflows float64."""
    if log_other == log_loss:
        return 0.0
    if max(log_loss, log_other) < LARGEST_EXP:
        return to_loss(log_loss) * float(np.expm1(log_other - log_loss))
    return float("inf") if log_other > log_loss else -float("inf")
