"""The paper's brute-force search: evaluate every subset. The oracle for everything else, on small problems."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, islice
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isopursuit.errors import BudgetError, ParameterError
from isopursuit.loss import STATED, as_objective
from isopursuit.matrix import Label, as_deadline
from isopursuit.results import Search
from isopursuit.search.candidates import as_candidates
from isopursuit.search.greedy import TIE, lowest
from isopursuit.sources.columns import is_source
from isopursuit.threads import on_one_blas_thread

Array = NDArray[np.float64]

BATCH = 8192  # subsets evaluated at once, fewer where they are large
ENTRIES = 2**20  # of all matrices evaluated at once


@on_one_blas_thread
def brute_search(
    X: Any,
    c: float = 1.0,
    *,
    objective: str | Callable[[Array], float] = "isometry",
    budget: int = 2_000_000,
    include: Iterable[Any] | None = None,
    exclude: Iterable[Any] | None = None,
    labels: Sequence[Label] | None = None,
    time_limit: float | None = None,
) -> Search:
    """Brute-force search (the paper's BruteSearch): the best subset by trying them all.

    Parameters
    ----------
    X, c, objective, include, exclude, labels
        As in `greedy_search`.
    budget : int
        The most subsets to try; more are refused with the count.
    time_limit : float, optional
        Seconds after which the best subset so far is returned, with status "time" and the trivial bound.

    Returns
    -------
    Search
        Proved optimal, unless time was over. Of equal subsets the first in lexicographic order.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0, 0.7, 3.0], [0.0, 1.0, 0.7, 0.0]])
    >>> brute_search(X).optimal
    True
    """
    deadline = as_deadline(time_limit)
    if is_source(X) and not isinstance(X, np.memmap):
        raise ParameterError(
            "Brute force needs a matrix in memory: a source has too many subsets to try. Use exact_search, which "
            "proves the same answer where it can."
        )
    candidates = as_candidates(X, include, exclude, labels)
    goal = as_objective(objective, c)
    free = candidates.free.tolist()
    missing = candidates.k - len(candidates.include)
    count = comb(len(free), missing)
    if count > budget:
        raise BudgetError(
            f"Brute force would try {count:,} subsets of {missing} out of {len(free)} columns, more than the budget of "
            f"{budget:,}. Use exact_search, which proves the same answer far sooner, or raise budget=."
        )
    subsets = combinations(free, missing)
    n, D, _ = candidates.X.shape
    size = max(1, min(BATCH // n, ENTRIES // (n * D * D)))
    best: tuple[float, list[int]] = (np.inf, [])
    least, tried = np.inf, 0
    while batch := list(islice(subsets, size)):
        picked = np.array([(*candidates.include, *rest) for rest in batch], dtype=np.intp)
        stack = np.moveaxis(candidates.X[:, :, picked], 2, 0)
        scores = goal.total(stack)
        if goal.least is not None:
            least = min(least, float(goal.add(goal.least(stack)).min()))
        i = lowest(scores)
        if best[0] == np.inf or scores[i] < best[0] - TIE * max(abs(best[0]), 1.0):
            best = (float(scores[i]), picked[i].tolist())
        tried += len(batch)
        if time.perf_counter() > deadline:
            break
    if tried < count:
        return candidates.answer(best[1], goal, "brute", "time", tried)
    # a subset of larger loss may be the best one, if rounding explains the difference
    decided = goal.least is None or not best[0] - least > STATED
    bound = None if decided else goal.loss(least)
    return candidates.answer(best[1], goal, "brute", "optimal" if decided else "precision", count, lower_bound=bound)
