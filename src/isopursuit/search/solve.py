"""One road for every search: `solve(problem, method, limits)`.

`_auto` implements method="auto". It tries a proof over all columns first, for a short time, because such a proof says
more than one among the columns that the pursuit keeps. Then it tries the paper's two stages, if the pursuit keeps the
best subset known, and then exchange search. If X is large, exchange search runs at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from isopursuit._core.clock import REPORT_SECONDS, Clock
from isopursuit._core.text import loss_text
from isopursuit._core.types import Method, SearchMethod
from isopursuit.errors import ParameterError, RangeError, RankError, ShapeError
from isopursuit.loss.penalty import LARGEST_EXPONENT, SMALLEST_EXPONENT
from isopursuit.results import IMPROVES, Pursuit, Search
from isopursuit.search.brute import brute
from isopursuit.search.exact import exact
from isopursuit.search.exchange import exchange, short_proof_nodes
from isopursuit.search.greedy import greedy
from isopursuit.search.incumbent import Callback, Limits, ProofFile, SearchProgress
from isopursuit.search.pool import Pool
from isopursuit.search.problem import Problem
from isopursuit.search.proof.writing import write_proof
from isopursuit.search.settings import (
    FIRST_NODES,
    FIRST_SECONDS,
    FRUITLESS_KICKS,
    GOOD_ENOUGH,
    HALF,
    JOINT_NODES,
    PROOF_WORK,
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
    if problem.given is None:
        what = "columns that are read in passes" if problem.points is None else "many points"
        raise ParameterError(
            f"proof= is not available for {what}: a proof file is about one matrix in memory"
            + (", such as a part of your columns." if problem.points is None else ".")
        )
    first = replace(limits, clock=limits.clock.within(HALF * limits.clock.remaining), proof=None)
    outcome = _solve(problem, "exact", first)
    search = outcome.search
    if search.status == "interrupted":
        note = "no proof file was written, because the search was interrupted."
    else:
        note = _write(limits.proof, problem, search, limits)
    search = replace(search, notes=(*search.notes, note), seconds=limits.clock.seconds)
    return replace(outcome, search=search, method=outcome.method or "exact")


def _write(target: ProofFile, problem: Problem, search: Search, limits: Limits) -> str:
    """Write the proof while the time and the callback allow it; returns a note."""
    assert problem.given is not None
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
        return write_proof(target, problem.given, claim, search, limits.workers, watch)
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
    """Choose the method: a proof if one can be expected soon, otherwise the best subset found, with its bound."""
    (n, k, P), clock = problem.size, limits.clock
    pool = problem.pool(clock)
    work = n * P * float(min(problem.rows, P)) ** 2
    if work > PROOF_WORK:
        reason = f"{P:,} columns of {problem.rows} entries are too many for a proof of the best {k}"
        return _exchanged(pool, limits, None, reason)
    if not bounds_are_known(problem.c):
        return _exchanged(pool, limits, None, f"no lower bounds are known for c={problem.c:g}")
    hopeless, nodes = short_proof_nodes(pool) if n == 1 else None, None
    if limits.gap is None:  # a proof if it is quick, otherwise an answer that is good enough
        limits = replace(limits, gap=GOOD_ENOUGH, patience=hopeless or JOINT_NODES, fruitless=FRUITLESS_KICKS)
        nodes = FIRST_NODES * limits.patience
    callback = _reporting(limits.callback, "exact")
    short = clock.within(min(FIRST_SECONDS, HALF * clock.remaining))
    try:
        first = exact(pool, replace(limits, clock=short, nodes=nodes, callback=callback, hopeless=hopeless))
    except RangeError:
        why = "losses this large are outside the range in which bounds can be computed"
        return _exchanged(pool, limits, None, why)
    if first.status not in UNDECIDED:
        return Outcome(first, method="exact", reason=EXACT_REASONS[first.status])
    known = first
    try:
        why, known, pursuit = _try_two_stage(problem, limits, first)
        if pursuit is not None:
            note = f"no subset of all {P:,} columns has a loss below {loss_text(first.lower_bound)}."
            return Outcome(known, pursuit, (note,), "two-stage", why)
        if known.status != "interrupted":
            if n == 1:
                return _exchanged(pool, limits, known, f"no proof within a few seconds, and {why}")
            # at many points an exact search also finds better subsets than kicks do
            limits = replace(limits, patience=0, callback=callback, start=known.indices, lower_bound=first.lower_bound)
            reason = f"the search of all columns continued, since {why}"
            return Outcome(exact(pool, limits), method="exact", reason=reason)
    except KeyboardInterrupt:  # between two searches, or before one has an answer
        clock.pressed()
        known = replace(known, status="interrupted")
    return Outcome(known, method="exact", reason="the caller ended the search")


def _try_two_stage(problem: Problem, limits: Limits, first: Search) -> tuple[str, Search, Pursuit | None]:
    """The two-stage answer and the pursuit, if that keeps the best subset known and the search among the kept columns
    ends with a proof; otherwise the best subset known, with the bound of `first` over all columns. And the reason.
    """
    part = limits.clock.within(HALF * limits.clock.remaining)
    too_long = _no_time_to_pursue(problem, part) if problem.rules is None else "the pursuit does not know the rules"
    if too_long:
        return too_long, first, None
    try:
        pursuit = problem.pursue(part.part(HALF))
    except (RangeError, RankError):
        return "the pursuit cannot prune here", first, None
    why = _prunes_nothing(problem, pursuit)
    if why:
        return why, first, None
    if not np.isin(first.indices, np.union1d(pursuit.tied, problem.include)).all():
        return "the pursuit prunes columns of the best subset known", first, None
    bound = first.lower_bound
    report = _reporting(limits.callback, "two-stage", bound)
    found = _search_tied(problem, pursuit, replace(limits, clock=part, callback=report, start=first.indices))
    if found.status in ("optimal", "gap") and found.log_loss <= first.log_loss + IMPROVES:
        ended = "a gap that is small enough" if found.status == "gap" else "there is one"
        why = f"no proof for all columns within a few seconds, but {ended} among those that the pursuit keeps"
        return why, found, pursuit
    better = replace(found, status=first.status, lower_bound=min(bound, found.loss), method=first.method)
    best = better if found.log_loss < first.log_loss else first
    best = replace(best, status="interrupted") if found.status == "interrupted" else best
    return f"none among the {len(pursuit.tied)} columns that the pursuit keeps", best, None


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
        limits = replace(limits, gap=GOOD_ENOUGH, fruitless=FRUITLESS_KICKS)
    limits = replace(limits, patience=0, callback=_reporting(limits.callback, "exchange"))
    if first is not None:  # a proof was tried
        limits = replace(limits, start=first.indices, lower_bound=first.lower_bound)
    found = exchange(pool, limits)
    if found.status == "heuristic" and limits.clock.expired:
        found = replace(found, status="time")
    note = f"the answer is from exchange search: {reason}."
    if first is not None and found.status != "interrupted":
        note += " method='exact' looks for a proof until the time limit."
    return Outcome(found, method="exchange", notes=(note,), reason=reason)


def _reporting(given: Callback | None, method: str, bound: float | None = None) -> Callback | None:
    """The caller's callback; it receives the method that runs, and `bound`, if given, instead of its bound."""
    if given is None:
        return None

    def report(now: SearchProgress) -> bool | None:
        # the bound of a two-stage search holds among the tied columns only
        known = now.lower_bound if bound is None else bound
        gap = (now.incumbent - known) / now.incumbent if np.isfinite(now.incumbent) else np.inf
        return given(replace(now, method=method, lower_bound=known, gap=max(gap, 0.0)))

    return report
