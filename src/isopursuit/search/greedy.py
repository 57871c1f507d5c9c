"""The paper's greedy search: add the column with the lowest objective until there are k."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from isopursuit._types import AggregateOption, Array, Indices, Label, Status, Unit
from isopursuit.aggregate import as_aggregate
from isopursuit.clock import Clock
from isopursuit.errors import ParameterError
from isopursuit.parameters import as_count, as_exponent
from isopursuit.progress import shown, stage_line
from isopursuit.results import Search
from isopursuit.search.incumbent import SearchOutcome
from isopursuit.search.inputs import Given, as_array_pool, as_pool
from isopursuit.search.objective import Objective, as_objective, lowest
from isopursuit.search.pool import ArrayPool
from isopursuit.search.source_pool import SourcePool
from isopursuit.search.stages.source import greedy_passes
from isopursuit.search.swaps import greedy_subset
from isopursuit.search.volume import large_volume
from isopursuit.sources.columns import is_source
from isopursuit.threads import on_one_blas_thread

BATCH = 4096  # submatrices evaluated at once (guess: larger stacks do not stay in cache)


@on_one_blas_thread
def greedy_search(
    X: Any,
    c: float = 1.0,
    *,
    k: int | None = None,
    unit: Unit = None,
    aggregate: AggregateOption = "sum",
    objective: str | Callable[[Array], float] = "isometry",
    starts: int = 1,
    include: Iterable[Any] | None = None,
    exclude: Iterable[Any] | None = None,
    labels: Sequence[Label] | None = None,
    time_limit: float | None = None,
    progress: bool = False,
) -> Search:
    """Greedy search (the paper's GreedySearch). It proves nothing and can be far from the best.

    Parameters
    ----------
    X : array_like (D, P), data frame, a list of such matrices of one shape, or a source
        Columns are candidates. Several matrices share one selection. For a source (`as_source`) each column takes one
        pass, and the answer is the same as for an array.
    c : float
        The paper's exponent.
    k : int, optional
        How many columns to pick. Default: D. The loss is that of the D × k matrix of the columns as they are.
    unit : number, "median", "each" or None
        The length that counts as 1, as in `select`.
    aggregate : {"sum", "geometric", "trimmed"} or number
        How the losses of several matrices are combined, as in `select`. Objectives other than "isometry" are summed.
    objective : {"isometry", "multitask", "deformation", "nuclear", "volume"} or callable
        The objective to minimize: l_c, the multitask norm of the inverse of the normalized columns, σ_max/σ_min, Σσ,
        −Σ log σ, or a function of a D × k matrix.
    starts : int
        The number of greedy runs, each from another first column (the best single ones first). The best run is kept.
    include, exclude : iterables of column numbers or labels
        Columns that must or must not be picked.
    time_limit : float, optional
        Seconds after which the remaining columns are quickly chosen by largest volume, with status "time". Default:
        None, no limit.
    progress : bool
        For a source: whether to show how many columns are picked, as in `select`.

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
    starts, clock, c = as_count(starts, 1, "starts"), Clock.of(time_limit), as_exponent(c)
    given = Given(X, exclude, labels).in_unit(unit, k)
    one_start = objective == "isometry" and starts == 1
    if is_source(given.X) and not one_start:
        raise ParameterError("For a source, greedy search supports only one start and objective='isometry'.")
    if one_start:
        pool = as_pool(given.X, c, include, given.exclude, given.labels, clock, k)
    else:
        pool = as_array_pool(given.X, c, include, given.exclude, given.labels, k)
    together = as_aggregate(aggregate)
    if isinstance(pool, SourcePool):
        with shown(progress, None, _line(pool.k)) as report:
            subset, seen, finished = greedy_passes(pool, clock, report)
        found = SearchOutcome(subset, "heuristic" if finished else "time", seen)
        return pool.answer(found, as_objective("isometry", c), "greedy")
    return greedy(pool.with_aggregate(together), as_objective(objective, c, together), starts, clock)


def _line(k: int) -> Callable[[int], str]:
    return lambda done: stage_line("greedy", done, k)


def greedy(pool: ArrayPool, objective: Objective, starts: int, clock: Clock) -> Search:
    """`greedy_search` on columns in memory."""
    pool = pool.reduced()
    firsts, evaluations = [pool.include.tolist()], 0
    if starts > 1 and pool.missing > 0:
        scores, free = _extension_scores(pool, objective, firsts[0], clock)
        evaluations += len(free)
        firsts = [[*firsts[0], int(p)] for p in free[np.lexsort((free, scores))][:starts]]
    columns = np.ascontiguousarray(np.swapaxes(pool.X, 1, 2))
    runs: list[list[int]] = []
    late = False
    for subset in firsts:
        evaluations += sum(pool.count - size for size in range(len(subset), pool.k))
        if objective.name == "isometry":
            start = np.array(subset, dtype=np.intp)
            subset = greedy_subset(columns, pool.c, start, pool.k, clock, pool.aggregate).tolist()
        else:
            while len(subset) < pool.k and not clock.expired:
                scores, free = _extension_scores(pool, objective, subset, clock)
                subset = [*subset, int(free[lowest(scores)])]
        late = late or len(subset) < pool.k
        runs.append(large_volume(pool.X, subset, pool.k, clock).tolist() if len(subset) < pool.k else subset)
        if late:
            break
    picked = runs[lowest(objective.total(np.stack([pool.X[:, :, run] for run in runs])))]
    status: Status = "time" if late else "heuristic"
    return pool.answer(SearchOutcome(np.array(picked), status, evaluations), objective, "greedy")


def _extension_scores(pool: ArrayPool, objective: Objective, subset: list[int], clock: Clock) -> tuple[Array, Indices]:
    """Scores of subset + p for every candidate p outside it (infinite after the deadline), and those p."""
    X = pool.X
    free = np.setdiff1d(np.arange(X.shape[2]), subset)
    scores = np.full(len(free), np.inf)
    batch = max(1, BATCH // len(X))
    for first in range(0, len(free), batch):
        if first and clock.expired:
            break
        some = free[first : first + batch]
        stack = np.empty((len(some), *X.shape[:2], len(subset) + 1))
        stack[..., :-1] = X[:, :, subset]
        stack[..., -1] = np.moveaxis(X[:, :, some], 2, 0)
        scores[first : first + batch] = objective.total(stack)
    return scores, free
