"""The paper's greedy search: add the column that leaves the objective lowest, until there are D."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isopursuit.errors import ParameterError
from isopursuit.loss import Objective, as_objective
from isopursuit.matrix import Label, as_count, as_deadline, as_exponent
from isopursuit.results import Search
from isopursuit.search._swap import Columns
from isopursuit.search.candidates import Candidates, as_candidates
from isopursuit.search.field import greedy_source
from isopursuit.search.volume import large_volume
from isopursuit.sources.columns import is_source
from isopursuit.threads import on_one_blas_thread

Array = NDArray[np.float64]
Subset = NDArray[np.int32]

TIE = 1e-12  # scores this close, relative to their size, count as equal: ties go to the lowest index
BATCH = 4096  # submatrices evaluated at once


@on_one_blas_thread
def greedy_search(
    X: Any,
    c: float = 1.0,
    *,
    objective: str | Callable[[Array], float] = "isometry",
    starts: int = 1,
    include: Iterable[Any] | None = None,
    exclude: Iterable[Any] | None = None,
    labels: Sequence[Label] | None = None,
    time_limit: float | None = None,
) -> Search:
    """Greedy search (the paper's GreedySearch). It proves nothing, and can be far from the best.

    Parameters
    ----------
    X : array_like (D, P), data frame, a list of such matrices of one shape, or a source
        Columns are candidates; D of them are picked. Several matrices share one selection: losses are summed. Over a
        source (`as_source`) each column takes one pass, and the answer is the array's.
    c : float
        The paper's exponent.
    objective : {"isometry", "multitask", "deformation", "nuclear", "volume"} or callable
        What to minimize: l_c, the multitask norm of the inverse of the normalized columns, σ_max/σ_min, Σσ, −Σ log σ,
        or a function of a D × k matrix.
    starts : int
        Greedy runs from this many first columns, the best ones by themselves, and the best run is kept.
    include, exclude : iterables of column numbers or labels
        Columns that must or must not be picked.
    time_limit : float, optional
        Seconds after which the columns still missing are those of largest volume, found in little time; the status is
        "time" then.

    Returns
    -------
    Search
        Deterministic: ties go to the lowest index.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0, 0.7, 3.0], [0.0, 1.0, 0.7, 0.0]])
    >>> greedy_search(X).indices.tolist()
    [0, 1]
    """
    starts = as_count(starts, 1, "starts")
    deadline = as_deadline(time_limit)
    if is_source(X):
        if objective != "isometry" or starts > 1:
            raise ParameterError("Over a source greedy search has one start, and objective='isometry'.")
        return greedy_source(X, as_exponent(c), include, exclude, labels, time_limit)
    candidates = as_candidates(X, include, exclude, labels)
    goal = as_objective(objective, c)
    k = candidates.k
    firsts = [list(candidates.include)]
    evaluations = 0
    if starts > 1 and len(candidates.include) < k:
        scores, free = extension_scores(candidates, goal, firsts[0], deadline)
        evaluations += len(free)
        best = free[np.lexsort((free, scores))][:starts]
        firsts = [[*candidates.include, int(p)] for p in best]
    columns = np.ascontiguousarray(np.swapaxes(candidates.X, 1, 2))
    runs: list[list[int]] = []
    late = False
    for subset in firsts:
        evaluations += sum(columns.shape[1] - size for size in range(len(subset), k))
        if objective == "isometry":
            subset = greedy_subset(columns, as_exponent(c), subset, deadline).tolist()
        else:
            while len(subset) < k and time.perf_counter() <= deadline:
                scores, free = extension_scores(candidates, goal, subset, deadline)
                subset = [*subset, int(free[lowest(scores)])]
        late = late or len(subset) < k
        runs.append(large_volume(candidates.X, subset, deadline).tolist() if len(subset) < k else subset)
        if late:
            break
    picked = runs[lowest(goal.total(np.stack([candidates.X[:, :, run] for run in runs])))]
    return candidates.answer(picked, goal, "greedy", "time" if late else "heuristic", evaluations)


def lowest(scores: Array) -> int:
    """The first of the scores that are lowest, to within rounding."""
    least = float(scores.min())
    if not np.isfinite(least):
        return int(np.argmin(scores))
    return int(np.argmax(scores <= least + TIE * max(abs(least), 1.0)))


def extension_scores(
    candidates: Candidates, goal: Objective, subset: list[int], deadline: float = np.inf
) -> tuple[Array, NDArray[np.intp]]:
    """Scores of subset + p for every candidate p outside it, and those p; infinite for those past the deadline."""
    X = candidates.X
    free = np.setdiff1d(np.arange(X.shape[2]), subset)
    scores = np.full(len(free), np.inf)
    batch = max(1, BATCH // len(X))
    for first in range(0, len(free), batch):
        if first and time.perf_counter() > deadline:
            break
        some = free[first : first + batch]
        stack = np.empty((len(some), *X.shape[:2], len(subset) + 1))
        stack[..., :-1] = X[:, :, subset]
        stack[..., -1] = np.moveaxis(X[:, :, some], 2, 0)
        scores[first : first + batch] = goal.total(stack)
    return scores, free


def greedy_subset(columns: Array, c: float, include: Sequence[int], deadline: float = np.inf) -> Subset:
    """The paper's greedy search on `columns` (n, P, D); fewer than D of them where the deadline comes first."""
    subset = np.array(include, np.int32)
    swaps = Columns(columns, c, deadline)
    while len(subset) < columns.shape[2]:
        found, _ = swaps.add(subset, np.inf, -1)
        if swaps.late:  # not all columns were tried
            break
        if found < 0:  # every further column is dependent: any will do
            found = int(np.setdiff1d(np.arange(columns.shape[1]), subset)[0])
        subset = np.append(subset, np.int32(found))
    return subset
