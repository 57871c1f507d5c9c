"""The main function: normalize, pursue, search, and return an answer that explains itself.

`_auto` implements method="auto". It tries a proof over all columns first, for a short time, because such a proof says
more than one among the columns that the pursuit keeps. Then it tries the paper's two stages, if the pursuit keeps the
best subset known, and then exchange search. If X is large, exchange search runs at once.

The time limit is shared as follows. A quarter of it at most is reserved for the prices at the end, by an estimate of
what they take. The pursuit may take `PURSUIT_SHARE` of the rest, and the search gets the time that remains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from isopursuit import views
from isopursuit._types import AggregateOption, Indices, Label, Method, Space, Unit
from isopursuit.aggregate import Aggregate, as_aggregate
from isopursuit.clock import Clock
from isopursuit.errors import RangeError, RankError, unknown_option
from isopursuit.explain import Outcome, before_explaining, explain
from isopursuit.loss.penalty import LARGEST_EXPONENT, SMALLEST_EXPONENT
from isopursuit.matrix import ColumnNumbers, Matrix
from isopursuit.normalize import Normalization
from isopursuit.parameters import as_exponent, as_gap, as_repeatable, as_space
from isopursuit.problems import MatrixProblem, SourceProblem
from isopursuit.progress import shown
from isopursuit.results import Pursuit, Search, loss_text
from isopursuit.search.brute import brute_search
from isopursuit.search.exact import ExactSettings, exact, exact_search
from isopursuit.search.exchange import Effort, exchange, exchange_search
from isopursuit.search.greedy import greedy_search
from isopursuit.search.incumbent import Callback, SearchProgress
from isopursuit.search.inputs import as_array_pool, as_pool, searched_as_source
from isopursuit.search.pool import ArrayPool
from isopursuit.search.replacements import ReplacementLists
from isopursuit.search.settings import MANY_COLUMNS
from isopursuit.search.source_pool import SourcePool
from isopursuit.selection import IMPROVES, Selection
from isopursuit.sources.columns import is_source
from isopursuit.threads import on_one_blas_thread, worker_count

Problem = MatrixProblem | SourceProblem

PURSUIT_SHARE = 0.6  # largest share of the time before the prices for the first of two stages (guess)
# the pursuit of n × D × P takes at least n D² (P + 30 D) / PURSUIT_SPEED seconds. It is skipped if that is too long,
# but not if it is less than SHORT_PURSUIT seconds (guess)
PURSUIT_SPEED, SHORT_PURSUIT = 3e9, 0.5

# "auto" tries no proof if n P D² exceeds the first, or the second if more than MANY_COLUMNS are picked (guess)
PROOF_WORK, MANY_PROOF_WORK = 1e8, 1e7
# "auto" begins with an exact search for at most this many seconds and this share of the time (guess)
FIRST_SECONDS, FIRST_SHARE = 10.0, 0.3
FIRST_NODES, CLOSED_SHARE = 1000, 0.05  # it gives up after this many nodes if at most this share is closed (guess),
MANY_SECONDS = 1.0  # or after this many seconds if more than MANY_COLUMNS are picked (guess)
INTERRUPTED_SECONDS = 0.2  # for the prices after an interrupt: the command has half a second to end (chosen)
TIED_SHARE = 0.5  # share of the remaining time for the pursuit and the search among the tied columns (guess)
# statuses of a search that more time or another method may improve
UNDECIDED = ("time", "nodes", "memory", "heuristic")
# why "auto" returns the answer of "exact", by its status
EXACT_REASONS = {
    "optimal": "a search of all columns ended with a proof",
    "gap": "a search of all columns reached the requested gap",
    "precision": "a search of all columns ended where float64 cannot decide",
    "interrupted": "the search of all columns was interrupted",
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

    The answer is the subset of least loss l_c that was found, with a lower bound or a proof that no subset is better.

    Parameters
    ----------
    X : array_like (D, P), data frame, a list (or stack) of such matrices of one shape, or a source
        Columns are candidates; a frame's column names become labels. Several matrices, such as the differentials of
        functions at many points of a manifold, share one selection (`aggregate`). For files, tensors and Dask arrays
        see `as_source`.
    k : int, optional
        How many columns to pick. Default: D, which makes them a basis.
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
    space : {"vectors", "leading"}
        How columns are compared if k < D. "vectors" (the default): as they are, by the loss of the D × k matrix.
        "leading": by their coordinates in the leading k-dimensional row space of X, separately at each point; the
        answer also reports the loss of the vectors.
    unit : number, "median", "each" or None
        The length that counts as 1. None (the default) keeps lengths as they are, as in the paper. A number divides
        all lengths by it. "median" divides them by the median length of the columns that may be picked: one number for
        all points, so lengths at different points remain comparable. With space="leading" it is the median of the
        lengths in that space. "each" scales every column to length 1 at every point, so only angles matter. Zero
        columns remain zero.
    aggregate : {"sum", "geometric", "trimmed"} or number
        How the losses at many points are combined into the number to minimize. "sum" (the default) is the paper's
        choice; a single point whose columns are nearly dependent can dominate it. "geometric" is the geometric mean.
        "trimmed" is the mean over the 90 % of the points with the lowest losses; a number sets another share. A
        column that is zero at any point cannot be picked. The k columns must be independent at every point, except at
        points that the trimmed mean ignores.
    include, exclude : iterables of column numbers or labels
        Columns that must or must not be picked. A source has numbers only.
    labels : sequence, optional
        Names of the columns. Default: the column names of a frame, otherwise none.
    normalization : {"symmetric", "logarithmic"} or callable
        The normalization for the pursuit; see `symmetric_normalize`.
    time_limit : float, optional
        Seconds for the whole call. Default: 60; None for no limit. When the time is over, the best subset so far is
        returned with its bound and a note. Prices that there was no time to compute are NaN. Most calls with
        method="auto" finish earlier; "exact" continues until it has a proof.
    gap : float
        Stop as soon as the subset is proved to be within this relative distance of the best. Default: 0, which asks
        for a full proof; 0.01 accepts a subset whose loss is within 1 % of the lower bound.
    callback : callable, optional
        Called with a `SearchProgress` about ten times a second and whenever the loss falls, by all methods except
        "greedy". Return True to stop with the best subset so far.
    progress : bool
        Whether to show the state of the search on the error stream: method, seconds, loss, bound and gap. In a
        terminal and in a notebook one line is updated in place; otherwise, for instance in a log file, a new line
        appears every five seconds. Calls shorter than half a second show nothing.

    Returns
    -------
    Selection

    Notes
    -----
    method="auto" tries the following in order. `Selection.method` names the method that gave the answer, and
    `Selection.reason` says why.

    1. "exact", for at most 10 s and 30 % of the time limit. It gives up earlier if its search tree only grows: after
       1,000 nodes, or after one second if k > 12. If n P D² > 1e8 for n points (1e7 if k > 12), "exchange" runs at
       once.
    2. "two-stage", if the pursuit keeps the best subset known. It must end with a proof within half of the remaining
       time.
    3. "exchange", with the best lower bound known. At many points "exact" continues instead.

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
    clock, gap = Clock.of(time_limit), as_gap(gap)
    include, exclude = as_repeatable(include), as_repeatable(exclude)
    call = views.call_text(select, locals())
    if method not in get_args(Method):
        raise unknown_option("method", method, get_args(Method))
    streamed = is_source(X) and not (method == "brute" and isinstance(X, np.memmap))
    if space == "vectors" and method != "brute":
        streamed = streamed or searched_as_source(X, k, labels)
    space = as_space(space)
    problem = (SourceProblem if streamed else MatrixProblem).of(X, k, space, include, exclude, labels, unit, clock)
    options = _Options(method, as_exponent(c), normalization, gap, as_aggregate(aggregate), progress=progress)
    with shown(progress, callback, lambda now: now.line(time_limit, method)) as report:
        watch = None if report is None else _Watch(report)
        options = replace(options, callback=watch)
        outcome = _run(problem, options, before_explaining(clock, *problem.size, problem.rows))
    stopped = outcome.search.status == "interrupted"
    if stopped:
        clock = clock.within(INTERRUPTED_SECONDS)
    try:
        values, found = problem.replacements(outcome.search, options.c, clock)
    except KeyboardInterrupt:  # the answer is known; without time there are no prices
        stopped = True
        values, found = problem.replacements(outcome.search, options.c, clock.within(0.0))
    why = _stop_note(outcome.search, time_limit, watch is not None and watch.asked) + _price_note(found, stopped)
    outcome = replace(outcome, notes=problem.notes + outcome.notes + why)
    ran = outcome.method or method
    picked = explain(values, problem.labels, options.c, ran, outcome, problem.include, found)
    vectors = problem.loss_of_vectors(picked.search, options.c)
    if vectors is not None:
        picked = replace(picked, space="leading", log_loss_of_vectors=vectors)
    values = values if problem.many else values[0]
    excluded = tuple(map(int, problem.exclude))
    return replace(picked, matrix=values, excluded=excluded, reason=outcome.reason, call=call)


def _run(problem: Problem, options: _Options, clock: Clock) -> Outcome:
    """Run the method; prices are computed afterwards."""
    if options.method == "auto":
        return _auto(problem, options, clock)
    if options.method != "two-stage":
        return Outcome(_search(problem, options, clock))
    problem = problem.checked()  # before the pursuit's work
    too_long = _no_time_to_pursue(problem, clock)
    if too_long:
        return _exchanged(_pool(problem, options, clock), options, clock, None, too_long)
    pursuit = problem.pursue(options.c, options.normalization, clock.part(PURSUIT_SHARE))
    if problem.k < problem.rows and not pursuit.prunes:
        pool = _pool(problem, options, clock)
        return _exchanged(pool, options, clock, None, _too_many_tied(problem, pursuit))
    try:
        return Outcome(_search_tied(problem, pursuit, options, clock), pursuit)
    except (RankError, RangeError):
        n = problem.size[0]
        if n == 1:  # the tied columns span all dimensions, so dependence is not the reason
            raise
        note = (
            f"no subset of the {len(pursuit.tied)} columns that the pursuit keeps is independent at all {n} points, so "
            "all columns were searched."
        )
        return Outcome(_search(problem, replace(options, method="exact"), clock), notes=(note,))


def _auto(problem: Problem, options: _Options, clock: Clock) -> Outcome:
    """Choose the method: a proof if one can be expected soon, otherwise the best subset found, with its bound."""
    n, k, P = problem.size
    pool = _pool(problem, options, clock)
    if n * P * problem.rows**2 > (PROOF_WORK if k <= MANY_COLUMNS else MANY_PROOF_WORK):
        reason = f"{P:,} columns of {problem.rows} entries are too many for a proof of the best {k}"
        return _exchanged(pool, options, clock, None, reason)
    if not SMALLEST_EXPONENT <= options.c <= LARGEST_EXPONENT:
        return _exchanged(pool, options, clock, None, f"no lower bounds are known for c={options.c:g}")
    short = clock.within(min(FIRST_SECONDS, FIRST_SHARE * clock.remaining))
    report = _GivingUp(_reporting(options, "exact"), n, FIRST_SECONDS if k <= MANY_COLUMNS else MANY_SECONDS)
    settings = ExactSettings(options.gap, workers=worker_count(None), callback=report)
    try:
        first = exact(pool, settings, short)
    except RangeError:
        return _exchanged(
            pool, options, clock, None, "losses this large are outside the range in which bounds can be computed"
        )
    if report.gave_up:
        first = replace(first, status="time")
    if first.status not in UNDECIDED:
        return Outcome(first, method="exact", reason=EXACT_REASONS[first.status])
    pruned = _try_two_stage(problem, options, clock, first)
    if isinstance(pruned, Outcome):
        return pruned
    why, best = pruned
    if n > 1:  # at many points an exact search also finds better subsets than kicks do
        found = exact(pool, replace(settings, callback=report.callback, start=best.indices), clock)
        if not found.optimal:
            found = replace(found, lower_bound=max(found.lower_bound, first.lower_bound))
        return Outcome(found, method="exact", reason=f"the search of all columns continued, since {why}")
    return _exchanged(pool, options, clock, best, f"no proof within a few seconds, and {why}")


class _Watch:
    """The caller's callback; it records whether that has stopped the search."""

    def __init__(self, callback: Callback) -> None:
        self.callback, self.asked = callback, False

    def __call__(self, now: SearchProgress) -> bool:
        self.asked = bool(self.callback(now)) or self.asked
        return self.asked


class _GivingUp:
    """The caller's callback; it also stops a search whose tree has hardly any closed nodes: a proof would take long."""

    def __init__(self, callback: Callback | None, points: int, seconds: float) -> None:
        self.callback, self.points, self.seconds = callback, points, seconds
        self.gave_up = False

    def __call__(self, now: SearchProgress) -> bool | None:
        before, self.gave_up = self.gave_up, False  # the caller's stop comes first, also if it raises KeyboardInterrupt
        if self.callback is not None and self.callback(now):
            return True
        # a node that is not closed has two children, so a share 1 − 2 × (share closed) of the bounded nodes is open
        enough = now.nodes >= FIRST_NODES or now.seconds >= self.seconds
        hopeless = enough and now.open_nodes > (1 - 2 * CLOSED_SHARE) * now.nodes
        self.gave_up = before or (hopeless and self.points == 1)
        return self.gave_up


def _try_two_stage(problem: Problem, options: _Options, clock: Clock, first: Search) -> Outcome | tuple[str, Search]:
    """The two-stage answer, if the pursuit keeps the best subset known and the search among the kept columns ends with
    a proof; otherwise the reason, and the best subset known, with the bound of `first` over all columns.
    """
    part = clock.within(TIED_SHARE * clock.remaining)
    too_long = _no_time_to_pursue(problem, part)
    if too_long:
        return too_long, first
    stopped = "the caller ended the search"
    try:
        pursuit = problem.pursue(options.c, options.normalization, part.part(PURSUIT_SHARE))
    except (RangeError, RankError):
        return "the pursuit cannot prune here", first
    except KeyboardInterrupt:
        return Outcome(replace(first, status="interrupted"), method="exact", reason=stopped)
    if problem.k < problem.rows and not pursuit.prunes:
        return _too_many_tied(problem, pursuit), first
    if not np.isin(first.indices, np.union1d(pursuit.tied, problem.include)).all():
        return "the pursuit prunes columns of the best subset known", first
    bound = first.lower_bound
    options = replace(options, callback=_reporting(options, "two-stage", bound))
    found = _search_tied(problem, pursuit, options, part, first.indices)
    if found.status not in ("optimal", "gap") or found.log_loss > first.log_loss + IMPROVES:
        better = replace(found, status=first.status, lower_bound=min(bound, found.loss), method=first.method)
        best = better if found.log_loss < first.log_loss else first
        if found.status == "interrupted":
            return Outcome(replace(best, status="interrupted"), method="exact", reason=stopped)
        return f"none among the {len(pursuit.tied)} columns that the pursuit keeps", best
    ended = "the requested gap was reached" if found.status == "gap" else "there is one"
    reason = f"no proof for all columns within a few seconds, but {ended} among those that the pursuit keeps"
    note = f"no subset of all {problem.size[2]:,} columns has a loss below {loss_text(bound)}."
    return Outcome(found, pursuit, (note,), "two-stage", reason)


def _no_time_to_pursue(problem: Problem, clock: Clock) -> str:
    """Why the pursuit is skipped; empty if there is time for it."""
    (n, _, P), D = problem.size, problem.rows
    seconds, left = n * D**2 * (P + 30.0 * D) / PURSUIT_SPEED, PURSUIT_SHARE * clock.remaining
    if seconds <= max(left, SHORT_PURSUIT):
        return ""
    return f"isometry pursuit takes {seconds:.0f} s or more, and the time limit leaves it {left:.2g} s"


def _too_many_tied(problem: Problem, pursuit: Pursuit) -> str:
    return f"the pursuit cannot prune: {len(pursuit.tied):,} of {problem.size[2]:,} columns are tied"


def _exchanged(
    pool: ArrayPool | SourcePool, options: _Options, clock: Clock, first: Search | None, reason: str
) -> Outcome:
    """Exchange search of all columns from the subset `first`, with the better of the two bounds; `reason` is why."""
    start = None if first is None else first.indices
    effort = Effort(gap=options.gap, start=start, callback=_reporting(options, "exchange"))
    if first is not None:  # a proof was tried
        effort = replace(effort, lower_bound=first.lower_bound, proofs=False)
    found = exchange(pool, effort, clock)
    if found.status == "heuristic" and clock.expired:
        found = replace(found, status="time")
    note = f"the answer is from exchange search: {reason}."
    if first is not None and found.status != "interrupted":
        note += " method='exact' looks for a proof until the time limit."
    return Outcome(found, method="exchange", notes=(note,), reason=reason)


def _stop_note(search: Search, time_limit: float | None, asked: bool) -> tuple[str, ...]:
    """What ended the search before its proof: the caller, or the time limit, and then what to do."""
    if search.status == "interrupted":
        return ("the callback ended the search." if asked else "an interrupt (Ctrl-C) ended the search.",)
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


def _reporting(options: _Options, method: str, bound: float | None = None) -> Callback | None:
    """The caller's callback; it receives the method that runs, and `bound`, if given, instead of its bound."""
    given = options.callback
    if given is None:
        return None

    def report(now: SearchProgress) -> bool | None:
        # the bound of a two-stage search holds among the tied columns only
        known = now.lower_bound if bound is None else bound
        gap = (now.incumbent - known) / now.incumbent if np.isfinite(now.incumbent) else np.inf
        return given(replace(now, method=method, lower_bound=known, gap=max(gap, 0.0)))

    return report


def _pool(problem: Problem, options: _Options, clock: Clock) -> ArrayPool | SourcePool:
    """All columns to search."""
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
    start = np.searchsorted(numbers, start) if start is not None and np.isin(start, numbers).all() else None
    # the columns are pruned already
    settings = ExactSettings(options.gap, workers=worker_count(None), callback=callback, start=start)
    found = exact(pool, settings, clock)
    decided = np.union1d(numbers, problem.exclude)
    if not np.isin(pursuit.tied, decided).all():  # too many were tied; the bound holds for some only
        status = "memory" if found.status in ("optimal", "gap", "precision") else found.status
        found = replace(found, status=status, lower_bound=float(problem.k))
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
    """The paper's method on validated matrices: isometry pursuit prunes, and a second search finds the best subset of
    the columns that it keeps (the tied set).

    `second` is a search; it is called with the matrices, c and the remaining time.
    """
    clock, problem = Clock.of(time_limit), MatrixProblem(points, len(points[0].values), many)
    pursuit = problem.pursue(c, normalization, clock.part(PURSUIT_SHARE))
    numbers, kept = problem.kept(pursuit)
    found = second(kept, c, time_limit=clock.remaining_limit)
    return pursuit, replace(found, indices=numbers[found.indices], labels=problem.labels)
