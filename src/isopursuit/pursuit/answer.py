"""From weights to the answer: certified, in the caller's order and units."""

from __future__ import annotations

import numpy as np

from isopursuit._core.types import Indices, Mask, PursuitStatus
from isopursuit.pursuit.certificate import Caller, Proof, certify
from isopursuit.pursuit.design import Design, Evaluation
from isopursuit.pursuit.solutions import Optimum, shared
from isopursuit.results import Certificate, Pursuit

NEGLIGIBLE_WEIGHT = 1e-13  # share of all weight below which a column's weight may be rounding (derived: 500 eps)
UNDECIDED_SHARE = 1e-6  # most of the objective, as a share, on an untied column after proximal steps (documented)
IDENTIFIED_GAP = 1e-8  # above this gap the tied columns are not known, and no other solution is (documented)


def judged(design: Design, evaluation: Evaluation, caller: Caller, tol: float, *, stopped: bool) -> Pursuit:
    """The answer that the weights give, in the caller's order and units, with its certificate."""
    copies = caller.copies
    if copies is not None:  # the same M, with equal weights on identical columns
        evaluation = design.evaluate(shared(evaluation.weights, copies)) or evaluation
    proof = certify(design, evaluation, evaluation.weights.nonzero()[0])
    # drop weights that the certificate does not need: from rounding, or because M must be regular
    proof = _without(proof, proof.norms <= NEGLIGIBLE_WEIGHT * float(proof.norms.sum()), design, evaluation, tol)
    possible = np.zeros(len(evaluation.weights), dtype=bool)
    possible[_tied(design, evaluation, proof)] = True
    if copies is not None:  # rounding may have given identical columns different weights
        possible = (np.bincount(copies, possible) > 0)[copies]
    decided = bool(possible[proof.support].all())
    if not decided:  # drop weights from rounding on columns that no optimal solution uses
        proof = _without(proof, ~possible[proof.support], design, evaluation, tol)
        decided = bool(possible[proof.support].all())
        possible[proof.support] = True
    tied = possible.nonzero()[0]
    error = proof.error
    proof = proof.in_units_of(caller, design.penalty)
    error = max(error, proof.certificate.gap)
    status: PursuitStatus = "optimal" if error <= tol else "stopped" if stopped else "stalled"
    optimum = None
    if decided and status == "optimal" and min(evaluation.gap, proof.certificate.gap) <= IDENTIFIED_GAP:
        optimum = Optimum.of(design, evaluation, caller, tied, tol)
    used = proof.norms > 0
    numbers = caller.numbers(len(possible))
    place = numbers[proof.support[used]]
    weights = np.zeros(len(possible))
    weights[place] = proof.norms[used]
    B = proof.B[:, used.nonzero()[0][place.argsort()]]
    return Pursuit(
        weights=weights,
        tied=np.sort(numbers[tied]),
        certificate=proof.certificate,
        dual=proof.nu if caller.many else proof.nu[0],
        penalty=design.penalty * caller.columns * caller.target,
        status=status,
        labels=caller.labels,
        notes=caller.notes,
        support_coefficients=B if caller.many else B[0],
        optimum=optimum,
        unit_length=caller.unit_length,
    )


def _without(proof: Proof, dropped: Mask, design: Design, evaluation: Evaluation, tol: float) -> Proof:
    """The proof without some columns of the support, if that is no worse, or good enough."""
    if not dropped.any():
        return proof
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
    y = design.target
    objective = 0.5 * float(np.vdot(y, y)) * caller.target**2 if design.penalty > 0 else 0.0
    dual = y / design.penalty / caller.columns if design.penalty > 0 else np.zeros_like(y)
    none = y[:, :0]
    return Pursuit(
        weights=np.zeros(design.shape[1]),
        tied=np.zeros(0, dtype=np.intp),
        certificate=Certificate(objective, objective),
        dual=dual if caller.many else dual[0],
        penalty=design.penalty * caller.columns * caller.target,
        status="optimal",
        labels=caller.labels,
        notes=caller.notes,
        support_coefficients=none if caller.many else none[0],
        unit_length=caller.unit_length,
    )
