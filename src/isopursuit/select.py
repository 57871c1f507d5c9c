"""The main function: normalize → pursue → search, and an answer that explains itself.

One rule shares the time limit: the prices at the end are left what they are estimated to take, at most a quarter of the
time; of the rest the pursuit may take `PURSUIT_SHARE`, and the search takes whatever the pursuit did not use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from isopursuit._types import Label, Method, Space
from isopursuit.clock import Clock
from isopursuit.errors import ParameterError, RangeError, RankError
from isopursuit.explain import Outcome, before_explaining, explain
from isopursuit.matrix import ColumnNumbers, Matrix
from isopursuit.normalize import Normalization
from isopursuit.parameters import as_exponent, as_gap
from isopursuit.problems import MatrixProblem, SourceProblem
from isopursuit.results import Pursuit, Search
from isopursuit.search.brute import brute_search
from isopursuit.search.exact import ExactSettings, exact, exact_search
from isopursuit.search.exchange import exchange_search
from isopursuit.search.greedy import greedy_search
from isopursuit.search.incumbent import Callback
from isopursuit.search.inputs import as_array_pool, searched_as_source
from isopursuit.selection import Selection
from isopursuit.sources.columns import is_source
from isopursuit.threads import on_one_blas_thread, worker_count

Problem = MatrixProblem | SourceProblem

PURSUIT_SHARE = 0.6  # of the time before the prices, the most that the first of two stages may take (guess)


@dataclass(frozen=True)
class _Options:
    """How to select, validated."""

    method: Method
    c: float
    normalization: Normalization
    gap: float
    callback: Callback | None


@on_one_blas_thread
def select(
    X: Any,
    k: int | None = None,
    c: float = 1.0,
    *,
    method: Method = "two-stage",
    space: Space = "vectors",
    include: Iterable[Any] | None = None,
    exclude: Iterable[Any] | None = None,
    labels: Sequence[Label] | None = None,
    normalization: Normalization = "symmetric",
    time_limit: float | None = 60.0,
    gap: float = 0.0,
    callback: Callback | None = None,
) -> Selection:
    """Pick the k columns of X that are as orthonormal as possible.

    Parameters
    ----------
    X : array_like (D, P), data frame, a list (or stack) of such matrices of one shape, or a source
        Columns are candidates; a frame's column names become labels. Several matrices, such as the differentials of
        functions at many points of a manifold, share one selection: their losses are summed. For files, tensors and
        Dask arrays see `as_source`.
    k : int, optional
        How many columns to pick: D if not given.
    c : float
        The paper's exponent.
    method : {"two-stage", "exact", "exchange", "greedy", "brute"}
        "two-stage" is the paper's: isometry pursuit prunes, and the best subset of what it leaves (the tied set) is
        found and proved. An orthonormal basis present in X is always in that set, and returned if the search finishes.
        "exact" proves the best of all columns. The others are comparisons.
    space : {"vectors", "leading"}
        Where columns are compared if k < D. "vectors": as they are, by the loss of the D × k matrix. "leading": by
        their coordinates in the leading k-dimensional row space of X (at many points, of each of them); the answer has
        the loss of the vectors beside it.
    include, exclude : iterables of column numbers or labels
        Columns that must or must not be picked; of a source numbers.
    normalization : {"symmetric", "logarithmic"} or callable
        For the pursuit; see `symmetric_normalize`.
    time_limit : float, optional
        Seconds for everything. When they are over the best subset so far is returned with its bound; prices that there
        was no time for are NaN, and a note says so.
    gap : float
        Stop as soon as the subset is proved to be within this relative distance of the best.
    callback : callable, optional
        Called with a `SearchProgress` while "two-stage" or "exact" search; return True to stop.

    Returns
    -------
    Selection

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.1, 0.6, 3.0], [0.0, 1.0, 0.6, 2.0]])
    >>> picked = select(X, labels=["north", "east", "both", "far"])
    >>> picked.labels, round(picked.loss, 4)
    (('north', 'east'), 2.005)
    """
    clock, gap = Clock.of(time_limit), as_gap(gap)
    if method not in get_args(Method):
        raise unknown(method)
    streamed = is_source(X) and not (method == "brute" and isinstance(X, np.memmap))
    if space == "vectors" and method != "brute":
        streamed = streamed or searched_as_source(X, k, labels)
    if space not in get_args(Space):
        raise ParameterError(f"space={space!r} is not known. Use {', '.join(map(repr, get_args(Space)))}.")
    problem = (SourceProblem if streamed else MatrixProblem).of(X, k, space, include, exclude, labels)
    options = _Options(method, as_exponent(c), normalization, gap, callback)
    outcome = _run(problem, options, before_explaining(clock, *problem.size, problem.rows))
    values, found = problem.replacements(outcome.search, options.c, clock)
    outcome = replace(outcome, notes=problem.notes + outcome.notes)
    picked = explain(values, problem.labels, options.c, method, outcome, problem.include, found)
    vectors = problem.loss_of_vectors(picked.indices, options.c)
    if vectors is not None:
        picked = replace(picked, space="leading", log_loss_of_vectors=vectors)
    return replace(picked, matrix=values if problem.many else values[0], excluded=tuple(map(int, problem.exclude)))


def _run(problem: Problem, options: _Options, clock: Clock) -> Outcome:
    """Everything before the prices."""
    if options.method != "two-stage":
        return Outcome(_search(problem, options, clock))
    if problem.k < problem.rows:
        return Outcome(_search(problem, replace(options, method="exact"), clock))
    problem = problem.checked()  # before the pursuit's work
    pursuit = problem.pursue(options.c, options.normalization, clock.part(PURSUIT_SHARE))
    try:
        return Outcome(_search_tied(problem, pursuit, options, clock), pursuit)
    except (RankError, RangeError):
        n = problem.size[0]
        if n == 1:  # the tied columns span all dimensions, so that dependence is not the reason
            raise
        note = (
            f"no subset of the {len(pursuit.tied)} columns that the pursuit left is independent at all {n} points, so "
            "all columns were searched."
        )
        return Outcome(_search(problem, replace(options, method="exact"), clock), notes=(note,))


def _search(problem: Problem, options: _Options, clock: Clock) -> Search:
    """A search over all columns."""
    X, c = problem.searched, options.c
    given: dict[str, Any] = {
        "k": problem.k, "include": problem.include, "exclude": problem.exclude, "time_limit": clock.remaining_limit,
    }  # fmt: skip
    if options.method == "exact":
        return exact_search(X, c, gap=options.gap, callback=options.callback, **given)
    others = {"exchange": exchange_search, "greedy": greedy_search, "brute": brute_search}
    return others[options.method](X, c, **given)


def _search_tied(problem: Problem, pursuit: Pursuit, options: _Options, clock: Clock) -> Search:
    """The second stage: an exact search among the tied columns and those to include."""
    numbers, points = problem.kept(pursuit)
    include = ColumnNumbers(np.searchsorted(numbers, problem.include).tolist())
    given = options.callback
    callback: Callback | None = None if given is None else lambda now: given(replace(now, indices=numbers[now.indices]))
    pool = as_array_pool(points, options.c, include)
    # the columns are pruned already
    found = exact(pool, ExactSettings(options.gap, workers=worker_count(None), callback=callback, prune=False), clock)
    return replace(found, indices=numbers[found.indices], labels=problem.labels)


def two_stage(
    points: list[Matrix],
    c: float,
    second: Callable[..., Search] = exact_search,
    normalization: Normalization = "symmetric",
    time_limit: float | None = None,
    *,
    many: bool = False,
) -> tuple[Pursuit, Search]:
    """The paper's method on validated matrices: isometry pursuit prunes, and a second search takes the best of what it
    leaves (the tied set).

    `second` is a search, called with the matrices, c and the rest of the time limit.
    """
    clock, problem = Clock.of(time_limit), MatrixProblem(points, len(points[0].values), many)
    pursuit = problem.pursue(c, normalization, clock.part(PURSUIT_SHARE))
    numbers, kept = problem.kept(pursuit)
    found = second(kept, c, time_limit=clock.remaining_limit)
    return pursuit, replace(found, indices=numbers[found.indices], labels=problem.labels)


def unknown(method: object) -> ParameterError:
    """The error for an unknown method."""
    return ParameterError(f"method={method!r} is not known. Use {', '.join(map(repr, get_args(Method)))}.")
