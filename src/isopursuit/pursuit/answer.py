"""From weights to the answer: certified, in the caller's order and units; `Optimum` keeps what other solutions need."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from isopursuit._core.linalg import EPS
from isopursuit._core.types import Array, Indices, Labels, Mask, PursuitStatus
from isopursuit.errors import BudgetError, RangeError
from isopursuit.pursuit import _program
from isopursuit.pursuit.certificate import Proof, certify, norms_of
from isopursuit.pursuit.design import Design, Evaluation
from isopursuit.pursuit.solutions import MOST_POLYTOPE, Polytope, is_unique, minimum_norm, polytope, polytope_entries
from isopursuit.results import Certificate, Pursuit

NEGLIGIBLE_WEIGHT = 1e-13  # share of all weight below which a column's weight may be rounding (derived: 500 eps)
SLIGHT_WEIGHT = 1e-7  # share of all weight below which a column is left out if the others are enough
UNDECIDED_SHARE = 1e-6  # most of the objective, as a share, on an untied column after proximal steps (documented)
IDENTIFIED_GAP = 1e-8  # above this gap the tied columns are not known, and no other solution is (documented)
RETAINED = 2**17  # entries of a design that is kept as it is for other solutions: 1 MB
TIGHT = 1e-9  # 1 − q below which a column counts as tight when weight is distributed
PURIFIED_GAP = 1e-15  # gap to which the tied columns are solved again before weight is distributed (derived: 5 eps)
HEAVY = 1e-7  # share of the largest weight above which a column keeps its place while others are tried without


@dataclass(frozen=True)
class Caller:
    """How the caller's problem differs from the design.

    Attributes
    ----------
    labels, notes
        Of the caller's matrix.
    many : bool
        Whether the caller passed several points. Answers then have one array for each.
    columns, target : float
        The caller's columns and target, divided by the design's.
    order : ndarray, optional
        Column p of the design is column order[p] of the caller.
    copies : ndarray, optional
        If some columns are identical: a number for each column, equal for identical ones.
    bases, rows : ndarray, optional
        If there are more rows than columns, the caller's X, `rows` (n, P, rows), is Q times the design's, `bases` (n,
        rows, D).
    """

    labels: Labels | None = None
    notes: tuple[str, ...] = ()
    many: bool = False
    columns: float = 1.0
    target: float = 1.0
    order: Indices | None = None
    copies: Indices | None = None
    bases: Array | None = None
    rows: Array | None = None

    @property
    def coefficients(self) -> float:
        """The caller's coefficients, divided by the design's."""
        return self.target / self.columns

    def converted(self, proof: Proof, penalty: float) -> Proof:
        """The proof in the caller's rows and units; its columns are still those of the design."""
        B, nu, certificate = proof.B, proof.nu, proof.certificate
        if self.bases is not None and self.rows is not None:
            # X = Q R up to rounding: the dual point is scaled again, and the error of X B is added to the residual
            B, nu = B @ np.swapaxes(self.bases, 1, 2), self.bases @ nu
            rho = max(_program.largest_slope(self.rows, nu), 1.0)
            longest = float(norms_of(self.rows).max())
            D = self.rows.shape[1]
            missed = math.sqrt(D) * D * EPS * longest * float(proof.norms.sum())
            nu = nu / rho
            certificate = Certificate(
                certificate.primal / max(1 - missed, EPS), certificate.dual / rho, certificate.residual + missed
            )
        unit = self.coefficients if penalty == 0 else self.target**2
        primal, dual = unit * certificate.primal, unit * min(certificate.dual, certificate.primal)
        certificate = Certificate(primal, dual, certificate.residual)
        unit = self.coefficients
        return Proof(proof.support, unit * B, unit * proof.norms, nu / self.columns, certificate)


@dataclass(frozen=True)
class Optimum:
    """An optimal solution, from which all others follow (solutions.py): they use its tied columns.

    `decided` is False if rounding left weight on a column that no optimal solution uses.
    """

    whole: Design
    solved: Evaluation
    caller: Caller
    tied: Indices
    every_copy: Indices | None
    decided: bool
    tol: float

    @classmethod
    def of(
        cls, design: Design, evaluation: Evaluation, caller: Caller, tied: Indices, copies: Indices | None,
        decided: bool, tol: float,
    ) -> Optimum:  # fmt: skip
        """Make one; a large design is not kept, only its tied columns."""
        if design.x.size > RETAINED:
            order = None if caller.order is None else caller.order[tied]
            copies = None if copies is None else copies[tied]
            caller, design, evaluation = replace(caller, order=order), design.take(tied), evaluation.take(tied)
            tied = np.arange(len(tied))
        return cls(design, evaluation, caller, tied, copies, decided, tol)

    @cached_property
    def design(self) -> Design:
        """The program on the tied columns."""
        return self.whole.take(self.tied)

    @cached_property
    def evaluation(self) -> Evaluation:
        """The evaluation on the tied columns."""
        return self.solved.take(self.tied)

    @cached_property
    def place(self) -> Indices:
        """Column j of the design is the pursuit's tied column place[j]."""
        order = self.tied if self.caller.order is None else self.caller.order[self.tied]
        return np.argsort(np.argsort(order))

    @cached_property
    def _least(self) -> tuple[Evaluation, Polytope, Array]:
        """Optimal weights, the polytope that they are in, and its point of least norm."""
        evaluation = _purified(self.design, self.evaluation)
        # columns with q = 1 up to slightly more than rounding
        tight = np.flatnonzero((evaluation.q >= 1 - max(TIGHT, 10 * evaluation.gap)) | (evaluation.weights > 0))
        optimal = polytope(self.design, evaluation, tight)
        return evaluation, optimal, minimum_norm(optimal, evaluation.weights[tight])

    def is_unique(self) -> bool:
        """Whether there is no other solution; False if that would take too much memory to find out."""
        m, weights = len(self.tied), self.evaluation.weights
        entries = polytope_entries(self.design, m)
        if (
            not self.decided
            or entries > MOST_POLYTOPE
            or m * np.count_nonzero(weights > HEAVY * weights.max()) > entries
        ):
            return False
        evaluation, optimal, least = self._least
        weights = np.zeros(m)
        weights[optimal.columns] = least
        # no proof excludes the other tied columns from another solution
        widest = optimal if len(optimal.columns) == m else polytope(self.design, evaluation, np.arange(m))
        return is_unique(widest, weights)

    def minimum_norm(self, found: Pursuit) -> Pursuit:
        """The pursuit with the weights of least norm."""
        if polytope_entries(self.design, len(self.tied)) > MOST_POLYTOPE:
            raise BudgetError(
                f"{len(self.tied)} columns are tied, too many to choose the solution of least norm in memory. "
                "Use the solution as it is: its certificate holds."
            )
        evaluation, optimal, least = self._least
        weights = np.zeros(len(self.tied))
        weights[optimal.columns] = least
        weights = _shared(weights, None if self.every_copy is None else self.every_copy[self.tied])
        # ν is the same at every solution
        proof = certify(self.design, replace(evaluation, weights=weights), np.flatnonzero(weights))
        if proof.error > max(self.tol, found.certificate.gap):
            raise RangeError("Rounding prevents that the solution of least norm is optimal. Use the solution as it is.")
        proof = self.caller.converted(proof, self.design.penalty)
        used = proof.norms > 0
        place = found.tied[self.place[proof.support[used]]]
        weights = np.zeros(len(found.weights))
        weights[place] = proof.norms[used]
        if np.linalg.norm(weights) > np.linalg.norm(found.weights):  # columns that are nearly equal
            return found
        B = proof.B[:, used][:, np.argsort(place)]
        # the dual point of `found` is feasible on all columns
        primal, dual = max(proof.certificate.primal, found.certificate.dual), found.certificate.dual
        return replace(
            found,
            weights=weights,
            support_coefficients=B if self.caller.many else B[0],
            certificate=Certificate(primal, dual, proof.certificate.residual),
        )


def _purified(design: Design, evaluation: Evaluation) -> Evaluation:
    """The same weights up to rounding, with exact zeros on columns that have none in a solution."""
    heavy = evaluation.weights > HEAVY * evaluation.weights.max()
    for columns in (np.flatnonzero((evaluation.q >= 1 - TIGHT) | heavy), np.arange(len(heavy))):
        part, w = design.take(columns), evaluation.weights[columns]
        if part.evaluate(w) is None:
            continue
        part.solve(w, PURIFIED_GAP)
        full = np.zeros(len(heavy))
        full[columns] = w
        again = design.evaluate(full)
        if again is not None and again.gap <= max(evaluation.gap, 10 * PURIFIED_GAP):
            return again
    return evaluation


def judged(design: Design, evaluation: Evaluation, caller: Caller, tol: float, *, stopped: bool) -> Pursuit:
    """The answer that the weights give, in the caller's order and units, with its certificate."""
    copies = caller.copies
    if copies is not None and not (np.bincount(copies)[copies[evaluation.tied]] > 1).any():
        copies = None
    if copies is not None:  # the same M, with equal weights on identical columns
        evaluation = design.evaluate(_shared(evaluation.weights, copies)) or evaluation
    proof = certify(design, evaluation, evaluation.weights.nonzero()[0])
    # drop weights that the certificate does not need: from rounding, or because M must be regular
    for share in (SLIGHT_WEIGHT, NEGLIGIBLE_WEIGHT) if design.thin else (NEGLIGIBLE_WEIGHT,):
        least = share * float(proof.norms.sum())
        if len(proof.norms) and proof.norms.min() <= least:
            proof = _without(proof, proof.norms <= least, design, evaluation, tol)
    tied = _tied(design, evaluation, proof)
    possible = np.zeros(len(evaluation.weights), dtype=bool)
    possible[tied] = True
    if copies is not None:  # rounding may have given identical columns different weights
        possible = (np.bincount(copies, possible) > 0)[copies]
    decided = bool(possible[proof.support].all())
    if not decided:  # drop weights from rounding on columns that no optimal solution uses
        proof = _without(proof, ~possible[proof.support], design, evaluation, tol)
        decided = bool(possible[proof.support].all())
        possible[proof.support] = True
    if not decided or copies is not None:
        tied = np.flatnonzero(possible)
    error = proof.error
    proof = caller.converted(proof, design.penalty)
    error = max(error, proof.certificate.gap)
    used = proof.norms > 0
    order = np.arange(len(possible)) if caller.order is None else caller.order
    place = order[proof.support[used]]
    weights = np.zeros(len(possible))
    weights[place] = proof.norms[used]
    status: PursuitStatus = "optimal" if error <= tol else "stopped" if stopped else "stalled"
    B = proof.B[:, used.nonzero()[0][place.argsort()]]
    optimum = None
    if status == "optimal" and min(evaluation.gap, proof.certificate.gap) <= IDENTIFIED_GAP:
        optimum = Optimum.of(design, evaluation, caller, tied, copies, decided, tol)
    return Pursuit(
        weights=weights,
        tied=np.sort(order[tied]),
        certificate=proof.certificate,
        dual=proof.nu if caller.many else proof.nu[0],
        penalty=design.penalty * caller.columns * caller.target,
        status=status,
        labels=caller.labels,
        notes=caller.notes,
        support_coefficients=B if caller.many else B[0],
        optimum=optimum,
    )


def _shared(weights: Array, copies: Indices | None) -> Array:
    """Equal weights on identical columns."""
    if copies is None:
        return weights
    return (np.bincount(copies, weights) / np.maximum(np.bincount(copies), 1))[copies]


def _without(proof: Proof, dropped: Mask, design: Design, evaluation: Evaluation, tol: float) -> Proof:
    """The proof without some columns of the support, if that is no worse, or good enough."""
    again = certify(design, evaluation, proof.support[~dropped])
    return again if again.error <= max(tol, proof.error) else proof


def _tied(design: Design, evaluation: Evaluation, proof: Proof) -> Indices:
    """The columns that may be in an optimal solution.

    If M is singular at the optimum, the bound that uses its inverse excludes nothing. Then the inequality
    Σ ‖B*_p‖ (1 − ‖νᵀx_p‖) ≤ primal − dual for any optimal B* bounds the weight of every column with ‖νᵀx_p‖ < 1.
    """
    if not design.thin and design.prox == 0:
        return evaluation.tied
    slack = max(proof.error, 1e-13) / UNDECIDED_SHARE
    q = evaluation.q
    return np.flatnonzero((q > 0) & (np.sqrt(q) >= (1 - slack) * np.sqrt(q.max())))


def nothing(design: Design, caller: Caller) -> Pursuit:
    """The answer B = 0, if the target is zero or the penalty is too large for any column."""
    n, P, _ = design.shape
    y = design.target
    objective = 0.5 * float(np.vdot(y, y)) * caller.target**2 if design.penalty > 0 else 0.0
    dual = y / design.penalty / caller.columns if design.penalty > 0 else np.zeros_like(y)
    none = np.zeros((n, 0, y.shape[-1]))
    return Pursuit(
        weights=np.zeros(P),
        tied=np.zeros(0, dtype=np.intp),
        certificate=Certificate(objective, objective),
        dual=dual if caller.many else dual[0],
        penalty=design.penalty * caller.columns * caller.target,
        status="optimal",
        labels=caller.labels,
        notes=caller.notes,
        support_coefficients=none if caller.many else none[0],
    )
