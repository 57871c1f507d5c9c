"""One road for every search: `solve(problem, method, limits)`.

`_auto` implements method="auto": a proof within counted work, then exchange search, with the bound that the proof has
reached. If X is large, exchange search runs at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from isopursuit._core.clock import REPORT_SECONDS, Clock
from isopursuit._core.types import Array, Method, SearchMethod
from isopursuit.errors import ParameterError, RangeError, RankError, ShapeError
from isopursuit.loss.penalty import LARGEST_EXPONENT, SMALLEST_EXPONENT
from isopursuit.results import Pursuit, Search
from isopursuit.search.brute import brute
from isopursuit.search.exact import exact
from isopursuit.search.exchange import exchange, trial_nodes
from isopursuit.search.greedy import greedy
from isopursuit.search.incumbent import Callback, Limits, ProofFile, SearchProgress
from isopursuit.search.pool import Pool
from isopursuit.search.problem import Problem
from isopursuit.search.proof.writing import write_proof
from isopursuit.search.settings import (
    COPIES,
    GOOD_ENOUGH,
    HALF,
    JOINT_TRIAL,
    LEAST_TRIAL,
    MOST_TRIALS,
    PURSUIT_SPEED,
)

# statuses of a search that more time or another method may improve
UNDECIDED = ("time", "nodes", "memory", "heuristic")
# why "auto" returns the answer of "exact", by its status
EXACT_REASONS = {
    "optimal": "a search of all columns ended with a proof",
    "gap": "a search of all columns ended with a gap that is small enough",
    "precision": "a search of all columns ended where float64 cannot decide",
    "interrupted": "the search of all columns was interrupted",
    "time": "the time limit ended the search of all columns",
    "memory": "the search of all columns needs more memory",
}


@dataclass(frozen=True)
class Outcome:
    """The results of the stages of a selection, with notes; for method="auto" also the method that ran, and why."""

    search: Search
    pursuit: Pursuit | None = None
    notes: tuple[str, ...] = ()
    method: SearchMethod | None = None
    reason: str = ""


def solve(problem: Problem, method: Method, limits: Limits) -> Outcome:
    """Search for the best subset of the problem's columns, and write a proof if there is a file for it."""
    if limits.proof is None:
        return _solve(problem, method, limits)
    if method not in ("exact", "auto"):
        raise ParameterError(f"method={method!r} proves nothing that can be written. With proof=, pass method='exact'.")
    if problem.rules is not None:
        raise ParameterError("proof= is not available with rules on which columns may be picked together.")
    X = _loaded(problem, limits.memory)
    first = replace(limits, clock=limits.clock.within(HALF * limits.clock.remaining), proof=None)
    outcome = _solve(problem, "exact", first)
    search = outcome.search
    if search.status == "interrupted":
        note = "no proof file was written, because the search was interrupted."
    else:
        note = _write(limits.proof, problem, X, search, limits)
    search = replace(search, notes=(*search.notes, note), seconds=limits.clock.seconds)
    return replace(outcome, search=search, method=outcome.method or "exact")


def _loaded(problem: Problem, memory: int) -> Array:
    """The caller's matrix, which a proof file is about; columns that are read in passes are loaded."""
    if problem.given is not None:
        return problem.given
    if problem.columns is None:
        raise ParameterError("proof= is not available for many points: a proof file is about one matrix.")
    source, transform = problem.columns.source, problem.columns.transform
    if not (transform.a is transform.b is transform.A is None):
        raise ParameterError(
            "proof= is not available for columns that are standardized or projected as they are read. Pass them as a "
            "matrix of the values that are compared."
        )
    rows, count = source.shape
    if 8 * rows * count * COPIES > memory:
        raise ParameterError(
            f"proof= needs all {count:,} columns in memory, {8 * rows * count / 1e9:.3g} GB, and several copies. Pass "
            "a part of them, or a larger memory=."
        )
    return source.take(np.arange(count))


def _write(target: ProofFile, problem: Problem, X: Array, search: Search, limits: Limits) -> str:
    """Write the proof while the time and the callback allow it; returns a note."""
    ask, reported = limits.callback, limits.clock.seconds

    def watch(nodes: int) -> bool:
        nonlocal reported
        now = limits.clock.seconds
        if ask is None or now < reported + REPORT_SECONDS:
            return limits.clock.expired
        reported = now
        state = SearchProgress(now, search.loss, search.lower_bound, search.gap, nodes, 0, search.indices, "the search")
        return bool(ask(replace(state, method="writing the proof"))) or limits.clock.expired

    unit = {"unit": problem.unit, "include": problem.include.tolist(), "exclude": problem.exclude.tolist()}
    claim = {"k": problem.k, "c": problem.c, **unit}
    try:
        return write_proof(target, X, claim, search, limits.workers, watch)
    except KeyboardInterrupt:
        return f"the proof file {target.path} is incomplete, because of an interrupt (Ctrl-C)."


def _solve(problem: Problem, method: Method, limits: Limits) -> Outcome:
    """The search by one of the methods."""
    if method == "auto":
        return _auto(problem, limits)
    limits = replace(limits, gap=limits.gap or 0.0)
    if method == "two-stage":
        return _two_stage(problem, limits)
    search = {"exact": exact, "exchange": exchange, "greedy": greedy, "brute": brute}[method]
    return Outcome(search(problem.pool(limits.clock), limits))


def bounds_are_known(c: float) -> bool:
    """Whether lower bounds are verified for this exponent."""
    return SMALLEST_EXPONENT <= c <= LARGEST_EXPONENT


def _two_stage(problem: Problem, limits: Limits) -> Outcome:
    """The paper's method: isometry pursuit prunes, and a search finds the best subset of the columns that it keeps."""
    clock = limits.clock
    why, pursuit = _no_time_to_pursue(problem, clock), None
    if not why:
        pursuit = problem.pursue(clock.part(HALF))
        why = _prunes_nothing(problem, pursuit)
    if why or pursuit is None:
        return _exchanged(problem.pool(clock), limits, None, why)
    try:
        return Outcome(_search_tied(problem, pursuit, limits), pursuit)
    except (RankError, RangeError, ParameterError, ShapeError):
        n = problem.size[0]
        if problem.rules is not None:
            note = (
                f"among the {len(pursuit.tied)} columns that the pursuit keeps no subset is allowed: all were searched."
            )
            return replace(_solve(problem, "exact", limits), notes=(note,))
        if n == 1:  # the tied columns span all dimensions, so dependence is not the reason
            raise
        note = (
            f"no subset of the {len(pursuit.tied)} columns that the pursuit keeps is independent at all {n} points, so "
            "all columns were searched."
        )
        return replace(_solve(problem, "exact", limits), notes=(note,))


def _auto(problem: Problem, limits: Limits) -> Outcome:
    """Choose the method: a proof if few nodes give one, otherwise the best subset found, with its bound."""
    (n, k, P), clock = problem.size, limits.clock
    pool = problem.pool(clock)
    trial = trial_nodes(n, P, problem.rows)
    if not trial:
        reason = f"{P:,} columns of {problem.rows} entries are too many for a proof of the best {k}"
        return _exchanged(pool, limits, None, reason)
    if not bounds_are_known(problem.c):
        return _exchanged(pool, limits, None, f"no lower bounds are known for c={problem.c:g}")
    enough = GOOD_ENOUGH if limits.gap is None else limits.gap
    short = replace(limits, gap=limits.gap or 0.0, enough=enough, callback=_reporting(limits.callback, "exact"))
    if n > 1:  # an exact search also finds better subsets than kicks do
        short = replace(short, trial=JOINT_TRIAL)
    else:
        many = trial >= LEAST_TRIAL
        nodes = MOST_TRIALS * trial if many else trial
        short = replace(short, trial=trial if many else 1, nodes=nodes if limits.gap is None else None)
        short = replace(short, clock=clock.within(HALF * clock.remaining))
    try:
        first = exact(pool, short)
    except RangeError:
        why = "losses this large are outside the range in which bounds can be computed"
        return _exchanged(pool, limits, None, why)
    if first.status in UNDECIDED and first.gap <= enough:
        first = replace(first, status="gap")
    if n > 1 or first.status not in UNDECIDED:
        return Outcome(first, method="exact", reason=EXACT_REASONS[first.status])
    try:
        return _exchanged(pool, limits, first, "a short search of all columns found no proof")
    except KeyboardInterrupt:  # before the exchange search has an answer
        clock.pressed()
        return Outcome(replace(first, status="interrupted"), method="exact", reason=EXACT_REASONS["interrupted"])


def _search_tied(problem: Problem, pursuit: Pursuit, limits: Limits) -> Search:
    """The second stage: the best of the tied columns and those to include."""
    kept = problem.kept(pursuit)
    found = exact(kept.pool(limits.clock), limits)
    assert kept.caller is not None
    if not np.isin(pursuit.tied, np.union1d(kept.caller, problem.exclude)).all():
        # too many were tied; the bound holds for some only
        status = "memory" if found.status in ("optimal", "gap", "precision") else found.status
        found = replace(found, status=status, lower_bound=float(problem.k))
    return found


def _no_time_to_pursue(problem: Problem, clock: Clock) -> str:
    """Why the pursuit is skipped; empty if there is time for it."""
    (n, _, P), D = problem.size, problem.rows
    seconds, left = n * D**2 * (P + 30.0 * D) / PURSUIT_SPEED, HALF * clock.remaining
    if seconds <= left:
        return ""
    return f"isometry pursuit takes {seconds:.0f} s or more, and the time limit leaves it {left:.2g} s"


def _prunes_nothing(problem: Problem, pursuit: Pursuit) -> str:
    """Why a search among the tied columns is skipped if k < D; empty if the pursuit prunes."""
    if problem.k == problem.rows or pursuit.prunes:
        return ""
    return f"the pursuit cannot prune: {len(pursuit.tied):,} of {problem.size[2]:,} columns are tied"


def _exchanged(pool: Pool, limits: Limits, first: Search | None, reason: str) -> Outcome:
    """Exchange search of all columns from the subset `first`, with the better of the two bounds; `reason` is why."""
    if limits.gap is None:
        limits = replace(limits, gap=GOOD_ENOUGH, brief=True)
    limits = replace(limits, callback=_reporting(limits.callback, "exchange"))
    if first is not None:  # a proof was tried
        limits = replace(limits, start=first.indices, lower_bound=first.lower_bound)
    found = exchange(pool, limits)
    if found.status == "heuristic" and limits.clock.expired:
        found = replace(found, status="time")
    note = f"the answer is from exchange search: {reason}."
    if first is not None and found.status != "interrupted":
        note += " method='exact' looks for a proof until the time limit."
    return Outcome(found, method="exchange", notes=(note,), reason=reason)


def _reporting(given: Callback | None, method: str) -> Callback | None:
    """The caller's callback; it receives the method that runs."""
    return None if given is None else lambda now: given(replace(now, method=method))
