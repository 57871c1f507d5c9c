"""Judge given columns: their loss, a lower bound, the best swap, and the best subset found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, Unpack

import numpy as np

from isopursuit._core.clock import Clock
from isopursuit._core.linalg import direction_rank, spectrum, unit_columns
from isopursuit._core.options import SubsetOptions, as_exponent, as_repeatable, as_subset_options
from isopursuit._core.progress import shown
from isopursuit._core.summary import Summary
from isopursuit._core.text import LogLoss, call_text, loss_text, name_of, percent, plain
from isopursuit._core.threads import on_one_blas_thread, worker_count
from isopursuit._core.types import Array, Indices, Label, Labels
from isopursuit.errors import ParameterError, RangeError, RankError, printable
from isopursuit.loss.penalty import log_spectral_loss, to_loss
from isopursuit.results import IMPROVES, Search
from isopursuit.search.incumbent import Callback, Limits
from isopursuit.search.problem import Problem
from isopursuit.search.settings import HALF
from isopursuit.search.solve import Outcome, bounds_are_known, solve
from isopursuit.selection.result import Selection
from isopursuit.selection.select import explain

RULES = {"max_correlation", "apart", "groups", "per_group"}  # options that need k to be known
INVOLVED = 1e-6  # columns with larger entries in a null vector are part of a dependence (chosen: above sqrt of eps)


@dataclass(frozen=True)
class Swap:
    """One column out, another one in, and the loss after the swap. Columns without labels are given by number."""

    out: Label
    into: Label
    loss: float
    log_loss: float
    indices: Indices

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "out": plain(self.out),
            "in": plain(self.into),
            "loss": plain(self.loss),
            "log_loss": plain(self.log_loss),
            "indices": self.indices.tolist(),
        }

    def __str__(self) -> str:
        return f"{printable(self.out)} out, {printable(self.into)} in: loss {loss_text(self)}"


@dataclass(frozen=True, kw_only=True)
class Audit(Selection):
    """The answer of `audit`: the given columns as a `Selection` with their prices, and how good they are.

    Attributes
    ----------
    best : Search
        The best subset found, and whether it is proved to be the best of all.
    swap : Swap or None
        The single swap with the lowest loss; None if no column can replace another, or if there was no time.
    """

    best: Search
    swap: Swap | None

    @property
    def lower_bound(self) -> float:
        """A proved lower bound on the loss of every k columns."""
        return self.best.lower_bound

    @property
    def gap(self) -> float:
        """(loss − lower_bound) / loss: the largest possible decrease of the loss, relative to it."""
        return self.search.gap

    @property
    def excess(self) -> float:
        """How much the loss exceeds that of the best subset found, relative to the latter."""
        with np.errstate(over="ignore"):
            return max(float(np.expm1(self.log_loss - self.best.log_loss)), 0.0)

    @property
    def optimal(self) -> bool:
        """Whether the given columns are proved to be a best subset."""
        return self.search.optimal

    @property
    def best_labels(self) -> Labels:
        """The labels of the best subset found."""
        return tuple(name_of(self.best.labels, i) for i in self.best.indices.tolist())

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        if self.optimal:
            return "proved optimal"
        known = "the best of all" if self.best.optimal else "the best found"
        above = f"{percent(self.excess)} above {known}"
        if self.excess > 1:
            above = f"{loss_text(LogLoss(self.log_loss - self.best.log_loss), 3)} times {known}"
        elif self.excess <= IMPROVES:
            above = "as good as the best found"
        if self.best.optimal or self.best.status == "heuristic":
            return above
        return f"{above}, which is {self.best.verdict}"

    def as_dict(self) -> dict[str, Any]:
        """For JSON: the given columns with their prices, the bound, the best swap and the best subset found."""
        given = super().as_dict()
        kept = (
            "indices", "labels", "c", "k", "unit", "loss", "log_loss", "lower_bound", "gap", "choices", "alternatives",
            "verdict", "notes",
        )  # fmt: skip
        return {
            **{name: given[name] for name in kept},
            "excess": plain(self.excess),
            "optimal": self.optimal,
            "swap": None if self.swap is None else self.swap.as_dict(),
            "best": self.best.as_dict(),
        }

    def overview(self) -> Summary:
        """What is shown of the answer."""
        given = super().overview()
        shift = self.search.per_point.log_loss - self.log_loss  # from all points to one

        def shown(log_loss: float) -> str:
            return loss_text(LogLoss(log_loss + shift))

        best = f"loss {shown(self.best.log_loss)}, {self.best.verdict}: {', '.join(map(str, self.best_labels))}"
        swap = "none"
        if self.swap is not None:
            swap = f"{self.swap.out} out, {self.swap.into} in: loss {shown(self.swap.log_loss)}"
        return replace(
            given,
            title=f"{self.k} given column{'s' * (self.k > 1)}: loss {self.search.loss_words}",
            lines=[*given.lines, f"no subset is below {shown(float(np.log(self.lower_bound)))}"],
            more=[f"best found: {best}", f"best swap: {swap}"],
        )


@on_one_blas_thread
def audit(
    X: Any,
    columns: Iterable[Any],
    c: float = 1.0,
    *,
    time_limit: float | None = 10.0,
    callback: Callback | None = None,
    progress: bool = False,
    **options: Unpack[SubsetOptions],
) -> Audit:
    """Judge given columns: their loss, a proved lower bound, the best swap, and the best subset found.

    Parameters
    ----------
    X : array_like (D, P), data frame, a list (or stack) of such matrices of one shape, or a source
        As in `select`.
    columns : iterable of column numbers or labels
        The columns to judge, without repetitions. They are compared with subsets of the same size.
    c, **options
        As in `select`. They hold for the given columns and for all subsets that these are compared with.
    time_limit : float, optional
        Seconds for the whole call. Default: 10; None for no limit. An exact search starts from the given columns; when
        the time is over, the lower bound is the one proved so far.
    callback : callable, optional
        Called with a `SearchProgress` during the search; return True to stop it.
    progress : bool
        Whether to show the state of the search on the error stream, as in `select`.

    Returns
    -------
    Audit

    Raises
    ------
    RankError
        The given columns are linearly dependent, so their loss is infinite.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.1, 0.6, 3.0], [0.0, 1.0, 0.6, 2.0]])
    >>> judged = audit(X, ["north", "both"], labels=["north", "east", "both", "far"])
    >>> judged.verdict, str(judged.swap)
    ('36 % above the best of all', 'both out, east in: loss 2.005')
    """
    clock, c = Clock.of(time_limit), as_exponent(c)
    columns, options = as_repeatable(columns), as_subset_options(audit, options)
    call = call_text(audit, locals())
    problem, indices = _judged(X, columns, c, options)
    values, rounding = problem.taken(indices)
    _refuse_dependent(problem, values, rounding, indices)
    together = problem.aggregate
    point_losses = log_spectral_loss(spectrum(values), c)
    log_loss = float(together.log_total(point_losses))
    if not log_loss < np.inf:
        raise RangeError("The logarithm of the loss overflows float64. Use a smaller c, or rescale X.")
    ideal = together.ideal(problem.k, len(values))
    started = Search(indices, to_loss(log_loss), log_loss, ideal, 1, "heuristic", "given", labels=problem.labels)
    started = replace(started, aggregate=together, point_log_losses=point_losses if len(values) > 1 else None)
    found = problem.replacements(started, clock.within(HALF * clock.remaining))[1]
    given = explain(values, problem, "given", Outcome(started), found)
    swap = _best_swap(given)
    with shown(progress, callback, lambda now: now.line(time_limit, "audit")) as report:
        best = _best_known(_search(problem, started, report, clock), started, swap)
    proved = best.optimal and log_loss <= best.log_loss + IMPROVES
    status = "optimal" if proved else "heuristic" if best.optimal else best.status
    started = replace(started, status=status, notes=best.notes, lower_bound=best.lower_bound)
    started = replace(started, unit_length=best.unit_length)
    # notes about swaps are left out, since `swap` reports the best one
    known: dict[str, Any] = {one.name: getattr(given, one.name) for one in fields(given)}
    known |= {"search": started, "notes": best.notes, "call": call}
    return Audit(**known, best=best, swap=swap)


def _judged(X: Any, columns: Iterable[Any], c: float, options: SubsetOptions) -> tuple[Problem, Indices]:
    """The problem of picking as many columns as are given, and the sorted numbers of the given columns."""
    ruled = not RULES.isdisjoint(options)
    first: dict[str, Any] = {name: one for name, one in options.items() if name != "include" and name not in RULES}
    problem = Problem.of(X, 1, c, **first)
    names: list[Any] = [columns] if isinstance(columns, str) or not isinstance(columns, Iterable) else list(columns)
    if not names:
        raise ParameterError("columns is empty. Name at least one column.")
    indices = problem.numbers_of(names, "columns")
    problem = replace(problem, k=len(names), include=problem.numbers_of(options.get("include"), "include"))
    if len(indices) < len(names):
        numbers = [int(problem.numbers_of([name], "columns")[0]) for name in names]
        repeated = np.array([i for i in indices.tolist() if numbers.count(i) > 1])
        raise ParameterError(f"columns contains these more than once: {problem.names(repeated)}. Name each once.")
    if len(indices) > problem.rows:
        raise RankError(
            f"The loss is infinite: {len(indices)} columns of {problem.rows} entries are dependent. Name at most "
            f"{problem.rows}."
        )
    outside = np.setdiff1d(problem.include, indices)
    if len(outside):
        raise ParameterError(f"include names columns that are not given: {problem.names(outside)}.")
    left_out = np.intersect1d(problem.exclude, indices)
    if len(left_out):
        raise ParameterError(f"exclude names columns that are given: {problem.names(left_out)}.")
    if not ruled:
        return problem, indices
    problem = Problem.of(X, len(indices), c, **options)
    if problem.rules is not None and not problem.rules.allow(indices[None])[0]:
        broken = f"The given columns {problem.names(indices)} break {problem.rules.words}."
        raise ParameterError(f"{broken} Change them, or leave out these options.")
    return problem, indices


def _refuse_dependent(problem: Problem, values: Array, rounding: list[Array | None], indices: Indices) -> None:
    """Raise an error that names columns of values (n, D, k) that are zero or linearly dependent."""
    for i, (point, error) in enumerate(zip(values, rounding, strict=True)):
        where = f" at point {i}" if len(values) > 1 else ""
        zero = np.flatnonzero(~point.any(axis=0))
        if len(zero):
            raise RankError(f"The loss is infinite{where}: these columns are zero: {problem.names(indices[zero])}.")
        if direction_rank(point, error) < len(indices):
            null = np.linalg.svd(unit_columns(point))[2][-1]
            some = indices[np.abs(null) > INVOLVED * np.abs(null).max()]
            raise RankError(
                f"The loss is infinite{where}: these columns are linearly dependent: {problem.names(some)}. Leave "
                "out one of them."
            )


def _search(problem: Problem, given: Search, callback: Callback | None, clock: Clock) -> Search:
    """The best subset found, which is not worse than the given one, with a bound if one can be computed."""
    limits = Limits(clock, workers=worker_count(None), callback=callback, start=given.indices)
    why = f"no lower bounds are known for c={problem.c:g}"
    if bounds_are_known(problem.c):
        try:
            return solve(problem, "exact", limits).search
        except RangeError:
            why = "the losses are too large for lower bounds"
    found = solve(problem, "exchange", limits).search
    return replace(found, notes=(*found.notes, f"{why}, so exchange search looked for a better subset."))


def _best_swap(given: Selection) -> Swap | None:
    """The swap with the lowest loss among columns that need not be included."""
    if not given.alternatives:
        return None
    best = given.alternatives[0]
    out = next(one.index for one in given.choices if one.label == best.displaces)
    after = np.sort(np.append(np.setdiff1d(given.indices, out), best.index)).astype(np.intp)
    return Swap(best.displaces, best.label, best.loss, best.log_loss, after)


def _best_known(best: Search, given: Search, swap: Swap | None) -> Search:
    """The best of three: the subset of the search, the given columns, and the given columns after the best swap."""
    if best.optimal:
        return best
    known = [(given.log_loss, given.indices), *([] if swap is None else [(swap.log_loss, swap.indices)])]
    log_loss, indices = min(known, key=lambda one: one[0])
    if not log_loss < best.log_loss - IMPROVES:
        return best
    return replace(best, indices=indices, log_loss=log_loss, loss=to_loss(log_loss))
