"""From a solved program to the answer: choose a solution, convert it to the caller's units, and certify it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from isopursuit._core.types import Indices, Labels
from isopursuit.pursuit.design import Design
from isopursuit.pursuit.evaluation import Certified, Evaluation
from isopursuit.pursuit.inputs import Options
from isopursuit.pursuit.settings import IDENTIFIED_GAP, NEGLIGIBLE_WEIGHT, TIGHT, UNDECIDED_SHARE
from isopursuit.pursuit.solutions import choice_seconds, is_unique, minimum_norm, polytope, too_many, vertex
from isopursuit.pursuit.working_set import Solved
from isopursuit.results import Certificate, Pursuit


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
    """

    labels: Labels | None = None
    notes: tuple[str, ...] = ()
    many: bool = False
    columns: float = 1.0
    target: float = 1.0
    order: Indices | None = None
    copies: Indices | None = None

    @property
    def coefficients(self) -> float:
        """The caller's coefficients, divided by the design's."""
        return self.target / self.columns

    def objective(self, penalty: float) -> float:
        """The caller's objective, divided by the design's."""
        return self.coefficients if penalty == 0 else self.target**2


def judged(design: Design, solved: Solved, caller: Caller, options: Options) -> Pursuit:
    """The requested solution with its certificate, in the caller's units."""
    tol, many = options.tol, caller.many
    evaluation, unique, kind = _choose(design, solved, options)
    copies = caller.copies
    if copies is not None and not (np.bincount(copies)[copies[evaluation.tied]] > 1).any():
        copies = None
    if copies is not None and kind != "vertex":
        evaluation = _shared(design, evaluation, copies)
    proof = design.certified(evaluation, np.flatnonzero(evaluation.weights))
    heavy = proof.norms > NEGLIGIBLE_WEIGHT * proof.norms.sum()
    if not heavy.all():  # drop weights from rounding that the certificate does not need
        again = design.certified(evaluation, proof.support[heavy])
        proof = again if again.error <= max(tol, proof.error) else proof
    tied = _tied(design, evaluation, proof)
    possible = np.zeros(len(evaluation.weights), dtype=bool)
    possible[tied] = True
    if copies is not None:  # rounding may have given identical columns different weights
        tied = np.flatnonzero((np.bincount(copies, possible) > 0)[copies])
        possible[tied] = True
    proved = possible[proof.support]
    if not proved.all():  # drop weights from rounding on columns that no optimal solution uses
        again = design.certified(evaluation, proof.support[proved])
        if again.error <= max(tol, proof.error) and possible[again.support].all():
            proof = again
        else:
            tied, unique = np.union1d(tied, proof.support), False
    B, certificate, reached = proof.B, proof.certificate, proof.error <= tol
    order = np.arange(len(possible)) if caller.order is None else caller.order
    used = proof.norms > 0
    place = order[proof.support[used]]
    weights = np.zeros(len(possible))
    weights[place] = caller.coefficients * proof.norms[used]
    unit = caller.objective(design.penalty)
    return Pursuit(
        weights=weights,
        tied=np.sort(order[tied]),
        unique=unique and reached,
        solution=kind,
        certificate=Certificate(
            unit * certificate.primal, unit * min(certificate.dual, certificate.primal), certificate.residual
        ),
        dual=(proof.nu if many else proof.nu[0]) / caller.columns,
        penalty=design.penalty * caller.columns * caller.target,
        status="optimal" if reached else "stopped" if solved.status == "stopped" else "stalled",
        labels=caller.labels,
        notes=caller.notes,
        support_coefficients=caller.coefficients * (B if many else B[0])[..., used, :][..., np.argsort(place), :],
    )


def _shared(design: Design, evaluation: Evaluation, copies: Indices) -> Evaluation:
    """The same M, with equal weights on identical columns."""
    mean = np.bincount(copies, evaluation.weights) / np.bincount(copies)
    return design.evaluate(mean[copies]) or evaluation


def _tied(design: Design, evaluation: Evaluation, proof: Certified) -> Indices:
    """The columns that may be in an optimal solution.

    After proximal steps M may be singular, and the bound that uses its inverse does not apply. Then the inequality
    Σ ‖B*_p‖ (1 − ‖νᵀx_p‖) ≤ primal − dual for any optimal B* bounds the weight of every column with ‖νᵀx_p‖ < 1.
    """
    if design.prox == 0:
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
        unique=True,
        solution="minimum-norm",
        certificate=Certificate(objective, objective),
        dual=dual if caller.many else dual[0],
        penalty=design.penalty * caller.columns * caller.target,
        status="optimal",
        labels=caller.labels,
        notes=caller.notes,
        support_coefficients=none if caller.many else none[0],
    )


def _choose(
    design: Design, solved: Solved, options: Options
) -> tuple[Evaluation, bool, Literal["minimum-norm", "vertex", "interior"]]:
    """The requested optimal weights.

    If the columns with weight are independent and no others are tight, the solution is unique. If there is no time, the
    weights stay as they are.
    """
    evaluation, solution = solved.evaluation, options.solution
    weighted = int(np.count_nonzero(evaluation.weights))
    if solved.independent and design.prox == 0 and weighted == len(evaluation.tied):
        return evaluation, True, solution
    if solved.status == "stopped" or weighted == 0 or evaluation.gap > IDENTIFIED_GAP or too_many(design, weighted):
        return evaluation, weighted == 0, "interior" if weighted else solution
    if choice_seconds(design, len(evaluation.tight)) > options.clock.remaining:
        return evaluation, False, "interior"
    evaluation = _purified(design, evaluation)
    optimal = polytope(design, evaluation, evaluation.tight)
    if optimal is None:
        return evaluation, False, "interior"
    least = minimum_norm(optimal, evaluation.weights[optimal.columns])
    full = np.zeros_like(evaluation.weights)
    full[optimal.columns] = least
    # no proof excludes the other tied columns from another solution
    widest = optimal if len(optimal.columns) == len(evaluation.tied) else polytope(design, evaluation, evaluation.tied)
    unique = widest is not None and is_unique(widest, full[widest.columns])
    if solution == "vertex" and not unique:
        full[optimal.columns] = vertex(optimal, least)
    again = design.evaluate(full)
    if again is None or again.gap > max(options.tol, evaluation.gap):
        return evaluation, unique, "interior"
    return again, unique, solution


def _purified(design: Design, evaluation: Evaluation) -> Evaluation:
    """The same weights up to rounding, with exact zeros on columns that are proved to have no weight."""
    tied = evaluation.tied
    heavy = evaluation.weights[tied] > 1e-7 * evaluation.weights.max()
    for columns in (tied[(evaluation.q[tied] >= 1 - TIGHT) | heavy], tied):
        part = design.take(columns)
        w = evaluation.weights[columns]
        if part.evaluate(w) is None:
            continue
        part.solve(w, 1e-15, 20)
        full = np.zeros_like(evaluation.weights)
        full[columns] = w
        again = design.evaluate(full)
        if again is not None and again.gap <= max(evaluation.gap, 1e-14):
            return again
    return evaluation
