"""The answers of pursuits and searches: frozen objects with their proof, and with text and HTML representations."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from isopursuit._core.summary import Shown, Summary
from isopursuit._core.text import NO_BOUND, USEFUL, LogLoss, listed, loss_text, name_of, percent, plain, within
from isopursuit._core.types import Array, Indices, Labels, PursuitStatus, Status
from isopursuit.data._units import AS_GIVEN, UnitLength
from isopursuit.errors import RangeError
from isopursuit.loss.aggregate import SUM, Aggregate

# largest relative residual of a solution (chosen: solvers reach 1e-10, and `primal` counts what removes it)
FEASIBLE = 1e-6
PRUNED = 10.0  # a pursuit helps a search if it divides the number of subsets at least by this (chosen)
PROVED = 1e-9  # largest relative gap of an answer that is called proved optimal, as in the exact search
IMPROVES = 1e-9  # log-losses that differ by less are equal up to rounding (as for "optimal")
UNDECIDED = "optimum not decided"  # where float64 cannot compare losses, and more time would not help


def relative_gap(primal: float, dual: float) -> float:
    """The gap of every solver and certificate: (primal − dual) / primal, or 0 if rounding makes the dual larger."""
    return max(primal - dual, 0.0) / primal if primal > 0 else 0.0


@dataclass(frozen=True)
class Certificate:
    """dual ≤ optimum ≤ primal: the proof that an answer is (nearly) best.

    Attributes
    ----------
    primal : float
        The objective of the coefficients, plus the cost of removing their residual. An upper bound on the optimum.
    dual : float
        The value of a feasible dual point. A lower bound on the optimum.
    residual : float
        ‖X B − Y‖ / ‖Y‖: how exactly the coefficients satisfy the constraint. 0 for the lasso, which has no constraint.
    """

    primal: float
    dual: float
    residual: float = 0.0

    @property
    def gap(self) -> float:
        """(primal − dual) / primal; infinite if the constraint is not met, since nothing is proved then."""
        if not (self.residual <= FEASIBLE and np.isfinite(self.primal)):
            return float("inf")
        return relative_gap(self.primal, self.dual)

    def as_dict(self) -> dict[str, Any]:
        """For JSON; values that are not finite become None."""
        return {name: plain(getattr(self, name)) for name in ("primal", "dual", "gap", "residual")}

    def __str__(self) -> str:
        return f"{self.dual:.10g} ≤ optimum ≤ {self.primal:.10g} (gap {self.gap:.1e})"


@dataclass(frozen=True)
class Effort:
    """The cost of a pursuit over a source: passes over all columns, bytes read, and the seconds of each pass."""

    passes: int
    bytes: int
    seconds: tuple[float, ...]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"passes": self.passes, "bytes": self.bytes, "seconds": list(self.seconds)}

    def __str__(self) -> str:
        return f"{self.passes} passes over all columns, {self.bytes / 1e9:.3g} GB read in {sum(self.seconds):.3g} s"


class Optimum(Protocol):
    """What an optimal solution says about the others: see pursuit/answer.py."""

    def is_unique(self) -> bool:
        """Whether there is no other solution."""
        ...

    def minimum_norm(self, found: Pursuit) -> Pursuit:
        """The solution of least norm."""
        ...


@dataclass(frozen=True)
class Pursuit(Shown):
    """The solution of multitask basis pursuit (or lasso), with its certificate.

    Attributes
    ----------
    weights : ndarray, shape (P,)
        w_p = ‖β_p‖ at the optimum; exactly zero off the support.
    support : ndarray of int
        The columns with weight, ascending.
    tied : ndarray of int
        Every column that some optimal solution may use; the others are proved to be in no optimal solution. For a
        target that does not span all rows, the others carry at most 1e-6 of the objective in any optimal solution.
    certificate : Certificate
        Primal, dual and gap.
    dual : ndarray, shape (D, r) or (n, D, r)
        ν with ‖νᵀ x_p‖ ≤ 1 for every column. If `k` is given, the dual value is the sum of its k smallest singular
        values, and r is the smaller of the numbers of rows and columns.
    penalty : float
        λ of the multitask lasso; 0 for basis pursuit.
    status : {"optimal", "stalled", "stopped"}
        "optimal": the returned `coefficients` and `dual` reach the requested gap. "stalled": rounding does not allow
        that gap. "stopped": the callback or the time limit ended the pursuit.
    effort : Effort or None
        For a source: the number and cost of the passes.
    k : int or None
        How many columns the pursuit is for, if fewer than the rows. X B is then a symmetric matrix P with eigenvalues
        from 0 to 1 and trace k, and the residual is the nuclear norm of the difference between X B and the nearest
        such matrix. The optimal P need not be unique. `unique` refers to the weights, hence to B and P = X B; it is
        True only if the equations alone determine them.
    unit : str
        The length that counts as 1, in words.
    """

    weights: Array
    tied: Indices
    certificate: Certificate
    dual: Array
    penalty: float
    status: PursuitStatus
    labels: Labels | None = None
    notes: tuple[str, ...] = ()
    support_coefficients: Array = field(default_factory=lambda: np.zeros((0, 0)), repr=False)
    effort: Effort | None = None
    k: int | None = None
    optimum: Optimum | None = field(default=None, repr=False, compare=False)
    unit_length: UnitLength = AS_GIVEN

    @property
    def unit(self) -> str:
        """The length that counts as 1, in words."""
        return str(self.unit_length)

    @cached_property
    def unique(self) -> bool:
        """Whether the optimal coefficients are known to be unique. Computed when it is first asked for."""
        return len(self.support) == 0 if self.optimum is None else self.optimum.is_unique()

    def minimum_norm(self) -> Pursuit:
        """The optimal solution whose weights have the least sum of squares, in which tied columns share the weight.

        Raises
        ------
        RangeError
            If the gap is above 1e-8, so that the tied columns are not known, or rounding prevents it.
        """
        if self.unique:
            return self
        if self.optimum is None:
            raise RangeError(
                f"Other solutions are known only at a gap of at most 1e-8; this pursuit is {self.status} at "
                f"{self.certificate.gap:.1e}. Pass tol=1e-10, and enough time and memory."
            )
        return self.optimum.minimum_norm(self)

    @cached_property
    def support(self) -> Indices:
        """The columns with weight, ascending."""
        return np.flatnonzero(self.weights)

    @property
    def coefficients(self) -> Array:
        """B, shape (P, r), or (n, P, r) for many points; zero off the support."""
        some = self.support_coefficients
        full = np.zeros((*some.shape[:-2], len(self.weights), some.shape[-1]))
        full[..., self.support, :] = some
        return full

    @property
    def objective(self) -> float:
        """The certified objective value, which is the primal value."""
        return self.certificate.primal

    @property
    def prunes(self) -> bool:
        """Whether the pursuit leaves at most a tenth of all subsets of the size to pick.

        Otherwise a search among the tied columns is hardly easier than one among all columns.
        """
        k = self.dual.shape[-2] if self.k is None else self.k
        tied, all_columns = len(self.tied), len(self.weights)
        if tied < k or tied == all_columns:
            return tied < all_columns
        # logarithm of the ratio of two binomial coefficients
        kept = sum(math.log(tied - i) - math.log(all_columns - i) for i in range(k))
        return kept <= -math.log(PRUNED)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: the columns with weight, the tied ones, the certificate."""
        return {
            "columns": [
                {"index": int(i), "label": plain(name_of(self.labels, int(i))), "weight": float(self.weights[i])}
                for i in self.support
            ],
            "tied": self.tied.tolist(),
            "unique": self.unique,
            "status": self.status,
            "penalty": self.penalty,
            "k": self.k,
            "unit": self.unit,
            "certificate": self.certificate.as_dict(),
            "effort": None if self.effort is None else self.effort.as_dict(),
            "notes": list(self.notes),
        }

    def overview(self) -> Summary:
        """What is shown of the answer."""
        gap = self.certificate.gap
        verdict = "proved optimal" if gap <= PROVED else f"proved within {percent(gap)} of the optimum"
        if not gap <= USEFUL:
            verdict = NO_BOUND if np.isfinite(gap) else "nothing is proved: the constraint is not met"
        heaviest = self.support[np.argsort(-self.weights[self.support], kind="stable")].tolist()
        lines = [
            f"{self.certificate}, {'the only solution' if self.unique else 'one of many solutions'}",
            f"tied set: {len(self.tied)} columns; no other column is in any optimal solution",
            f"largest weights: {listed(f'{name_of(self.labels, i)} {self.weights[i]:.4g}' for i in heaviest)}",
            f"unit: {self.unit}",
            *([] if self.effort is None else [str(self.effort)]),
        ]
        goal = "" if self.k is None else f" for k = {self.k}"
        title = f"Pursuit{goal}: {len(self.support)} of {len(self.weights)} columns"
        return Summary(title, verdict, lines, notes=self.notes)


@dataclass(frozen=True)
class Search(Shown):
    """A subset of columns, its loss, and a lower bound on the loss of every subset.

    Attributes
    ----------
    indices : ndarray of int
        The picked columns, ascending.
    loss : float
        The isometry loss of the picked columns.
    log_loss : float
        Its logarithm, which is finite even if the loss overflows float64.
    lower_bound : float
        No subset that was searched has a lower loss than this (two-stage: no subset of the tied set).
    evaluations : int
        How many subsets were evaluated.
    status : {"optimal", "gap", "time", "nodes", "memory", "precision", "interrupted", "heuristic"}
        "optimal": proved. "gap": proved within the requested gap. The others say why the search ended earlier; the
        lower bound says how far from the best the subset can be. "time", "nodes", "interrupted": a limit or the caller
        stopped the search. "memory": too many columns of a source could not be excluded. "precision": the remaining
        subsets are so badly conditioned that float64 cannot distinguish their losses. "heuristic": the method ended
        without a proof, and the bound is the best one known, often the trivial one.
    nodes : int
        Nodes of the search tree (exact search).
    seconds : float
        Wall-clock time.
    unit : str
        The length that counts as 1, in words.
    aggregate : Aggregate
        How the losses at many points were combined.
    point_log_losses : ndarray, shape (n,), or None
        The logarithm of the loss at each point; None for one matrix.
    rules : tuple of str
        What holds of the picked columns because of `max_correlation`, `apart` and `groups`, in words.
    most : int or None
        If k was not given and such rules were: no set that they allow has more columns. It is proved.
    """

    indices: Indices
    loss: float
    log_loss: float
    lower_bound: float
    evaluations: int
    status: Status
    method: str
    nodes: int = 0
    seconds: float = 0.0
    labels: Labels | None = None
    notes: tuple[str, ...] = ()
    unit_length: UnitLength = AS_GIVEN
    aggregate: Aggregate = SUM
    point_log_losses: Array | None = field(default=None, repr=False)
    rules: tuple[str, ...] = ()
    most: int | None = None

    @property
    def rule_lines(self) -> tuple[str, ...]:
        """What holds because of rules, and whether the set is a largest one, in words."""
        if self.most is None:
            return self.rules
        k = len(self.indices)
        proof = "proved largest" if k == self.most else f"at most {self.most}"
        return (*self.rules, f"{k} column{'s' * (k > 1)}, {proof}")

    @property
    def points(self) -> int:
        """At how many points the columns were compared: 1 for one matrix."""
        return 1 if self.point_log_losses is None else len(self.point_log_losses)

    @property
    def per_point(self) -> LogLoss:
        """The loss of a typical point: the mean of the losses if `loss` is their sum."""
        return LogLoss(self.aggregate.per_point(self.log_loss, self.points))

    @property
    def loss_words(self) -> str:
        """The loss and its ideal as text; at many points, those of a typical point."""
        k, points = len(self.indices), self.points
        if points == 1:
            return f"{loss_text(self, 6)} (ideal {k})"
        return f"{loss_text(self.per_point, 6)} a point (ideal {k}, {self.aggregate.words(points)})"

    @property
    def unit(self) -> str:
        """The length that counts as 1, in words."""
        return str(self.unit_length)

    @property
    def optimal(self) -> bool:
        """Whether the subset is proved to be a best one."""
        return self.status == "optimal"

    @property
    def gap(self) -> float:
        """(loss − lower_bound) / loss; zero if proved optimal, infinite if it is not known.

        It is not known if there is no bound, or if the loss overflows float64.
        """
        if self.optimal:
            return 0.0
        if not (np.isfinite(self.loss) and np.isfinite(self.lower_bound)):
            return float("inf")
        if self.loss == self.lower_bound:
            return 0.0
        return (self.loss - self.lower_bound) / abs(self.loss)

    @property
    def verdict(self) -> str:
        """The proof in words."""
        if self.optimal:
            return "proved optimal"
        if self.status == "heuristic":
            return f"{within(self.gap)}, not proved optimal" if self.gap <= USEFUL else "no proof"
        if self.status == "precision" and not self.gap <= USEFUL:
            return f"{UNDECIDED} (precision)"
        asked = self.status == "gap"  # then the caller asked for this gap, however large
        return f"{within(self.gap, most=np.inf if asked else USEFUL)} ({self.status})"

    def as_dict(self) -> dict[str, Any]:
        """For JSON; values that are not finite become None."""
        names = ("loss", "log_loss", "lower_bound", "gap", "status", "verdict", "method", "nodes")
        return {
            "indices": self.indices.tolist(),
            "labels": [plain(name_of(self.labels, i)) for i in self.indices.tolist()],
            **{name: plain(getattr(self, name)) for name in (*names, "evaluations", "seconds", "unit")},
            "aggregate": None if self.points == 1 else str(self.aggregate),
            "loss_per_point": None if self.points == 1 else plain(self.per_point.loss),
            "rules": list(self.rules),
            "most": self.most,
            "notes": list(self.notes),
        }

    def overview(self) -> Summary:
        """What is shown of the answer."""
        lines = [f"columns: {', '.join(str(name_of(self.labels, i)) for i in self.indices.tolist())}"]
        if not self.optimal and np.isfinite(self.lower_bound):
            lines.append(f"no subset is below {loss_text(self.lower_bound, 9)}")
        lines += [f"unit: {self.unit}", *self.rule_lines]
        title = f"{len(self.indices)} columns by {self.method} search: loss {self.loss_words}"
        return Summary(title, self.verdict, lines, notes=self.notes)
