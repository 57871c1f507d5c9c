"""The main function: normalize → pursue → search, and an answer that explains itself.

The method "auto" is in `_auto`: a proof over all columns says more than one over what the pursuit left, so that comes
first, for a short time; then the paper's two stages, if they leave the best subset known; then exchange search. Where
many columns are picked proofs are rare, and exchange search comes first.

One rule shares the time limit: the prices at the end are left what they are estimated to take, at most a quarter of the
time; of the rest the pursuit may take `PURSUIT_SHARE`, and the search takes whatever the pursuit did not use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from isopursuit._types import AggregateOption, Indices, Label, Method, Space, Unit
from isopursuit.aggregate import Aggregate, as_aggregate
from isopursuit.clock import Clock
from isopursuit.errors import ParameterError, RangeError, RankError
from isopursuit.explain import Outcome, before_explaining, explain
from isopursuit.loss.penalty import LARGEST_EXPONENT, SMALLEST_EXPONENT
from isopursuit.matrix import ColumnNumbers, Matrix
from isopursuit.normalize import Normalization
from isopursuit.parameters import as_exponent, as_gap, as_space
from isopursuit.problems import MatrixProblem, SourceProblem
from isopursuit.progress import shown
from isopursuit.results import Pursuit, Search, loss_text
from isopursuit.search.brute import brute_search
from isopursuit.search.exact import ExactSettings, exact, exact_search
from isopursuit.search.exchange import default_effort, exchange, exchange_search
from isopursuit.search.greedy import greedy_search
from isopursuit.search.incumbent import Callback, SearchProgress
from isopursuit.search.inputs import as_array_pool, as_pool, searched_as_source
from isopursuit.search.pool import ArrayPool
from isopursuit.search.settings import MANY_COLUMNS
from isopursuit.search.source_pool import SourcePool
from isopursuit.selection import IMPROVES, Selection
from isopursuit.sources.columns import is_source
from isopursuit.threads import on_one_blas_thread, worker_count

Problem = MatrixProblem | SourceProblem

PURSUIT_SHARE = 0.6  # of the time before the prices, the most that the first of two stages may take (guess)

# "auto": n P D² beyond which no proof is tried, if at most MANY_COLUMNS columns are picked, and if more are (guess)
PROOF_WORK, MANY_PROOF_WORK = 1e8, 1e7
# seconds, and share of the time, of the exact search that "auto" begins with (guess)
FIRST_SECONDS, FIRST_SHARE = 10.0, 0.3
FIRST_NODES, CLOSED_SHARE = 1000, 0.05  # it ends after so many nodes if no larger share of them is closed (guess),
MANY_SECONDS = 1.0  # or after so many seconds, where more than MANY_COLUMNS are picked (guess)
INTERRUPTED_SECONDS = 0.2  # for the prices after an interrupt: the command has half a second to end (chosen)
TIED_SHARE = 0.5  # of the rest, for the pursuit and the search among the tied columns (guess)
# statuses of a search that more time or another method may improve
UNDECIDED = ("time", "nodes", "memory", "heuristic")
# why "exact" is the answer of "auto", by its status
EXACT_REASONS = {
    "precision": "a search of all columns ended where float64 cannot decide",
    "interrupted": "it was interrupted in a search of all columns",
}


@dataclass(frozen=True)
class _Options:
    """How to select, validated."""

    method: Method
    c: float
    normalization: Normalization
    gap: float
    aggregate: Aggregate
    callback: Callback | None = None
    progress: bool = False


@on_one_blas_thread
def select(
    X: Any,
    k: int | None = None,
    c: float = 1.0,
    *,
    method: Method = "auto",
    space: Space = "vectors",
    unit: Unit = None,
    aggregate: AggregateOption = "sum",
    include: Iterable[Any] | None = None,
    exclude: Iterable[Any] | None = None,
    labels: Sequence[Label] | None = None,
    normalization: Normalization = "symmetric",
    time_limit: float | None = 60.0,
    gap: float = 0.0,
    callback: Callback | None = None,
    progress: bool = False,
) -> Selection:
    """Pick the k columns of X that are as orthonormal as possible.

    Parameters
    ----------
    X : array_like (D, P), data frame, a list (or stack) of such matrices of one shape, or a source
        Columns are candidates; a frame's column names become labels. Several matrices, such as the differentials of
        functions at many points of a manifold, share one selection (`aggregate`). For files, tensors and Dask arrays
        see `as_source`.
    k : int, optional
        How many columns to pick: D if not given.
    c : float
        The paper's exponent.
    method : {"auto", "two-stage", "exact", "exchange", "greedy", "brute"}
        "auto" chooses: "exact" if that proves the best of all columns within ten seconds (it is given up earlier where
        its tree only grows); else "two-stage" if that ends with a proof and the pursuit leaves the best subset known;
        else, or where X is large, "exchange", with the bound that is known (at many points "exact" goes on). The answer
        says which ran (`Selection.method`) and why (`Selection.reason`).
        "two-stage" is the paper's: isometry pursuit prunes, and the best subset of what it leaves (the tied set) is
        found and proved. Orthonormal columns present in X are always in that set, and returned if the search finishes.
        Where the pursuit can hardly prune (k far below D, columns of one length) exchange search answers.
        "exact" proves the best of all columns. The others are comparisons.
    space : {"vectors", "leading"}
        Where columns are compared if k < D. "vectors": as they are, by the loss of the D × k matrix. "leading": by
        their coordinates in the leading k-dimensional row space of X (at many points, of each of them); the answer has
        the loss of the vectors beside it.
    unit : number, "median", "each" or None
        The length that counts as 1. A number: lengths are divided by it. "median": by the median length of the columns
        that may be picked, one number for all points, so that lengths at different points stay comparable; with
        space="leading" it is the median of the lengths there. "each": every column has length 1, at every point, so
        that angles alone decide. None: lengths are as they are, which is the paper's choice. Zero columns stay zero.
    aggregate : {"sum", "geometric", "trimmed"} or number
        How the losses at many points become one number, which is then minimized, and proved least. "sum": the paper's;
        one point whose columns are nearly dependent can decide it. "geometric": their geometric mean, which counts the
        logarithm of each loss. "trimmed": the mean of the 90 % of the points with the lowest losses; a number is
        another share than 0.9. A column that is zero at any point cannot be picked, and at every point k columns must
        be independent, also where that point would be left out.
    include, exclude : iterables of column numbers or labels
        Columns that must or must not be picked; of a source numbers.
    normalization : {"symmetric", "logarithmic"} or callable
        For the pursuit; see `symmetric_normalize`.
    time_limit : float, optional
        Seconds for everything, one minute if not given; None for no limit. When they are over the best subset so far is
        returned with its bound, and a note says that time ended the search; prices that there was no time for are NaN.
        Most calls with method="auto" end sooner, by themselves. "exact" goes on until it has a proof.
    gap : float
        Stop as soon as the subset is proved to be within this relative distance of the best.
    callback : callable, optional
        Called with a `SearchProgress` about ten times a second, and whenever the loss has fallen, by all methods but
        "greedy"; return True to stop with what there is.
    progress : bool
        Whether to show a line about the running search on the error stream: method, loss, bound, gap and seconds. In a
        terminal and in a notebook the line replaces itself; elsewhere there is one every few seconds. Calls of less
        than half a second show nothing.

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
        raise unknown(method, Method)
    streamed = is_source(X) and not (method == "brute" and isinstance(X, np.memmap))
    if space == "vectors" and method != "brute":
        streamed = streamed or searched_as_source(X, k, labels)
    problem = (SourceProblem if streamed else MatrixProblem).of(X, k, as_space(space), include, exclude, labels, unit)
    options = _Options(method, as_exponent(c), normalization, gap, as_aggregate(aggregate), progress=progress)
    with shown(progress, callback, lambda now: now.line(time_limit, method)) as report:
        options = replace(options, callback=report)
        outcome = _run(problem, options, before_explaining(clock, *problem.size, problem.rows))
    if outcome.search.status == "interrupted":
        clock = clock.within(INTERRUPTED_SECONDS)
    values, found = problem.replacements(outcome.search, options.c, clock)
    outcome = replace(outcome, notes=problem.notes + outcome.notes + _time_note(outcome.search, time_limit))
    ran = outcome.method or method
    picked = explain(values, problem.labels, options.c, ran, outcome, problem.include, found)
    vectors = problem.loss_of_vectors(picked.search, options.c)
    if vectors is not None:
        picked = replace(picked, space="leading", log_loss_of_vectors=vectors)
    values = values if problem.many else values[0]
    return replace(picked, matrix=values, excluded=tuple(map(int, problem.exclude)), reason=outcome.reason)


def _run(problem: Problem, options: _Options, clock: Clock) -> Outcome:
    """Everything before the prices."""
    if options.method == "auto":
        return _auto(problem, options, clock)
    if options.method != "two-stage":
        return Outcome(_search(problem, options, clock))
    problem = problem.checked()  # before the pursuit's work
    pursuit = problem.pursue(options.c, options.normalization, clock.part(PURSUIT_SHARE))
    if problem.k < problem.rows and not pursuit.prunes:
        pool = _pool(problem, options, clock)
        return _exchanged(pool, options, clock, None, _too_many_tied(problem, pursuit))
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


def _auto(problem: Problem, options: _Options, clock: Clock) -> Outcome:
    """The method by size: a proof where it can be had, else the best subset that can be found, with its bound."""
    n, k, P = problem.size
    pool = _pool(problem, options, clock)
    if n * P * problem.rows**2 > (PROOF_WORK if k <= MANY_COLUMNS else MANY_PROOF_WORK):
        reason = f"{P:,} columns of {problem.rows} entries are too many for a proof of the best {k}"
        return _exchanged(pool, options, clock, None, reason)
    if not SMALLEST_EXPONENT <= options.c <= LARGEST_EXPONENT:
        return _exchanged(pool, options, clock, None, f"bounds are not known for c={options.c:g}")
    short = clock.within(min(FIRST_SECONDS, FIRST_SHARE * clock.remaining))
    report = _GivingUp(_reporting(options, "exact"), n, FIRST_SECONDS if k <= MANY_COLUMNS else MANY_SECONDS)
    settings = ExactSettings(options.gap, workers=worker_count(None), callback=report)
    try:
        first = exact(pool, settings, short)
    except RangeError:
        return _exchanged(pool, options, clock, None, "losses this large leave the range in which bounds are computed")
    if report.gave_up:
        first = replace(first, status="time")
    if first.status not in UNDECIDED:
        reason = EXACT_REASONS.get(first.status, "a search of all columns ended with a proof")
        return Outcome(first, method="exact", reason=reason)
    pruned = _try_two_stage(problem, options, clock, first)
    if isinstance(pruned, Outcome):
        return pruned
    why, best = pruned
    if n > 1:  # at many points an exact search also finds more than kicks do
        found = exact(pool, replace(settings, callback=report.callback, start=best.indices), clock)
        return Outcome(found, method="exact", reason=f"a search of all columns went on, since {why}")
    return _exchanged(pool, options, clock, best, f"no proof within a few seconds, and {why}")


class _GivingUp:
    """The callback, which also ends a search in whose tree hardly any node is closed: its proof would take long."""

    def __init__(self, callback: Callback | None, points: int, seconds: float) -> None:
        self.callback, self.points, self.seconds = callback, points, seconds
        self.gave_up = False

    def __call__(self, now: SearchProgress) -> bool | None:
        if self.callback is not None and self.callback(now):
            return True
        # a node that is not closed leaves two, so the open ones are 1 − 2 × share of the bounded ones
        enough = now.nodes >= FIRST_NODES or now.seconds >= self.seconds
        hopeless = enough and now.open_nodes > (1 - 2 * CLOSED_SHARE) * now.nodes
        self.gave_up = self.gave_up or (hopeless and self.points == 1)
        return self.gave_up


def _try_two_stage(problem: Problem, options: _Options, clock: Clock, first: Search) -> Outcome | tuple[str, Search]:
    """The two-stage answer, if the pursuit leaves the best subset known and the search among what it leaves ends by
    proof; if not, why, and the best subset known then, with the bound of `first` over all columns.
    """
    if len(problem.exclude) and isinstance(problem, SourceProblem):
        return "the pursuit cannot prune here", first
    part = clock.within(TIED_SHARE * clock.remaining)
    try:
        pursuit = problem.pursue(options.c, options.normalization, part.part(PURSUIT_SHARE))
    except (RangeError, RankError):
        return "the pursuit cannot prune here", first
    if problem.k < problem.rows and not pursuit.prunes:
        return _too_many_tied(problem, pursuit), first
    if not np.isin(first.indices, np.union1d(pursuit.tied, problem.include)).all():
        return "the pursuit prunes columns of the best subset known", first
    bound = first.lower_bound
    options = replace(options, callback=_reporting(options, "two-stage", bound))
    found = _search_tied(problem, pursuit, options, part, first.indices)
    if found.status in UNDECIDED or found.log_loss > first.log_loss + IMPROVES:
        better = replace(found, status=first.status, lower_bound=min(bound, found.loss), method=first.method)
        best = better if found.log_loss < first.log_loss else first
        return f"none among the {len(pursuit.tied)} columns that the pursuit leaves", best
    reason = "no proof for all columns within a few seconds, but one among those that the pursuit leaves"
    note = f"no subset of all {problem.size[2]:,} columns has a loss below {loss_text(bound)}."
    return Outcome(found, pursuit, (note,), "two-stage", reason)


def _too_many_tied(problem: Problem, pursuit: Pursuit) -> str:
    return f"the pursuit cannot prune: {len(pursuit.tied):,} of {problem.size[2]:,} columns are tied"


def _exchanged(
    pool: ArrayPool | SourcePool, options: _Options, clock: Clock, first: Search | None, reason: str
) -> Outcome:
    """Exchange search of all columns from the subset `first`, with the better of the two bounds, and why it ran."""
    start, bound = (None, None) if first is None else (first.indices, first.lower_bound)
    effort = default_effort(pool, start, _reporting(options, "exchange", bound))
    if first is not None:  # a proof was tried
        effort = replace(effort, proof_nodes=0, bound=False)
    found = exchange(pool, effort, clock)
    if found.status == "heuristic":
        known = found.lower_bound if bound is None else max(bound, found.lower_bound)
        found = replace(found, status="time" if clock.expired else "heuristic", lower_bound=known)
    note = f"exchange search answered: {reason}."
    if first is not None:
        note += " method='exact' searches for a proof until the time limit."
    return Outcome(found, method="exchange", notes=(note,), reason=reason)


def _time_note(search: Search, time_limit: float | None) -> tuple[str, ...]:
    """What to do where the time limit ended the search."""
    if search.status != "time" or time_limit is None:
        return ()
    return (f"the time limit of {time_limit:g} s ended the search: a longer time_limit= may improve it or prove it.",)


def _reporting(options: _Options, method: str, bound: float | None = None) -> Callback | None:
    """The callback, which receives the method that runs, and a bound over all columns if that of the search is not."""
    given = options.callback
    if given is None:
        return None

    def report(now: SearchProgress) -> bool | None:
        known = now.lower_bound
        if bound is not None:  # the bound of a two-stage search is one among the tied columns
            known = bound if method == "two-stage" else min(max(bound, known), now.incumbent)
        gap = (now.incumbent - known) / now.incumbent if np.isfinite(now.incumbent) else np.inf
        return given(replace(now, method=method, lower_bound=known, gap=max(gap, 0.0)))

    return report


def _pool(problem: Problem, options: _Options, clock: Clock) -> ArrayPool | SourcePool:
    """All columns."""
    pool = as_pool(problem.searched, options.c, problem.include, problem.exclude, None, clock, problem.k)
    return pool.with_aggregate(options.aggregate)


def _search(problem: Problem, options: _Options, clock: Clock) -> Search:
    """A search over all columns."""
    X, c = problem.searched, options.c
    given: dict[str, Any] = {
        "k": problem.k, "include": problem.include, "exclude": problem.exclude, "aggregate": options.aggregate,
        "time_limit": clock.remaining_limit,
    }  # fmt: skip
    if options.method == "greedy":
        return greedy_search(X, c, progress=options.progress, **given)
    if options.method == "exact":
        given["gap"] = options.gap
    others = {"exact": exact_search, "exchange": exchange_search, "brute": brute_search}
    return others[options.method](X, c, callback=options.callback, **given)


def _search_tied(
    problem: Problem, pursuit: Pursuit, options: _Options, clock: Clock, start: Indices | None = None
) -> Search:
    """The second stage: an exact search among the tied columns and those to include, from the subset `start`."""
    numbers, points = problem.kept(pursuit)
    include = ColumnNumbers(np.searchsorted(numbers, problem.include).tolist())
    given = options.callback
    callback: Callback | None = None if given is None else lambda now: given(replace(now, indices=numbers[now.indices]))
    pool = as_array_pool(points, options.c, include, k=problem.k).with_aggregate(options.aggregate)
    start = None if start is None else np.searchsorted(numbers, start)
    # the columns are pruned already
    settings = ExactSettings(options.gap, workers=worker_count(None), callback=callback, prune=False, start=start)
    found = exact(pool, settings, clock)
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


def unknown(method: object, known: Any) -> ParameterError:
    """The error for an unknown method; `known` is the type of those that there are."""
    return ParameterError(f"method={method!r} is not known. Use {', '.join(map(repr, get_args(known)))}.")
