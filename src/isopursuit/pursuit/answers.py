"""From a solved program to the answer: which of its solutions, in whose units, with what certificate."""

from __future__ import annotations

import math
import time
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from isopursuit.matrix import Matrix
from isopursuit.pursuit.design import TIGHT, Design, Evaluation
from isopursuit.pursuit.solutions import choice_seconds, is_unique, minimum_norm, polytope, too_many, vertex
from isopursuit.pursuit.working_set import Solved
from isopursuit.results import Certificate, Pursuit

Array = NDArray[np.float64]
Solution = Literal["minimum-norm", "vertex"]

IDENTIFIED = 1e-8  # gaps above this leave open which columns are tied, so that solutions cannot be told apart
REFINED = 1e-11  # residuals above this are refined away before an answer is judged


def judged(
    design: Design,
    solved: Solved,
    matrix: Matrix,
    many: bool,
    tol: float,
    solution: Solution,
    scale: float,
    deadline: float = np.inf,
) -> Pursuit:
    """The solution asked for, certified, in the units of the caller, whose columns times `scale` the design has."""
    evaluation, unique, kind = _choose(design, solved, solution, tol, deadline)
    support = np.flatnonzero(evaluation.weights)
    B = design.coefficients(evaluation, support)
    dual = scale * design.dual_point(evaluation)
    certificate = evaluation.certificate(design.ridge, design.residual(B, support), scale)
    weights = scale * evaluation.weights
    if design.floor > 0 or certificate.residual > REFINED:
        B, certificate = design.refined(evaluation, support, B, scale)
        weights[support] = scale * np.sqrt(np.einsum("ipr,ipr->p", B, B))
    reached = certificate.gap <= tol
    return Pursuit(
        weights=weights,
        tied=evaluation.tied,
        unique=unique and math.isfinite(certificate.gap),
        solution=kind,
        certificate=certificate,
        dual=dual if many else dual[0],
        ridge=design.ridge,
        status="optimal" if reached else "stopped" if solved.status == "stopped" else "stalled",
        labels=matrix.labels,
        notes=matrix.notes,
        support_coefficients=scale * (B if many else B[0]),
    )


def nothing(design: Design, matrix: Matrix, many: bool) -> Pursuit:
    """The answer B = 0, where the target is zero or the ridge outweighs every column."""
    n, P, D = design.shape
    y = np.broadcast_to(np.eye(D), (n, D, D)) if design.y is None else design.y
    objective = 0.5 * float(np.vdot(y, y)) if design.ridge > 0 else 0.0
    dual = y / design.ridge if design.ridge > 0 else np.zeros_like(y)
    none = np.zeros((n, 0, y.shape[-1]))
    return Pursuit(
        weights=np.zeros(P),
        tied=np.zeros(0, dtype=np.intp),
        unique=True,
        solution="minimum-norm",
        certificate=Certificate(objective, objective),
        dual=dual if many else dual[0],
        ridge=design.ridge,
        status="optimal",
        labels=matrix.labels,
        notes=matrix.notes,
        support_coefficients=none if many else none[0],
    )


def _choose(
    design: Design, solved: Solved, solution: Solution, tol: float, deadline: float
) -> tuple[Evaluation, bool, Literal["minimum-norm", "vertex", "interior"]]:
    """The optimal weights asked for. Where the columns with weight are independent and all that is tight, there is
    no choice; where there is no time for it, none is made.
    """
    evaluation = solved.evaluation
    weighted = int(np.count_nonzero(evaluation.weights))
    if solved.independent and (weighted == len(evaluation.tied) or weighted == len(evaluation.tight)):
        return evaluation, True, solution
    if solved.status != "optimal" or weighted == 0 or evaluation.gap > IDENTIFIED or too_many(design, weighted):
        return evaluation, weighted == 0, "interior" if weighted else solution
    if choice_seconds(design, len(evaluation.tight)) > deadline - time.perf_counter():
        return evaluation, False, "interior"
    evaluation = _purified(design, evaluation)
    optimal = polytope(design, evaluation)
    if optimal is None:
        return evaluation, False, "interior"
    least = minimum_norm(optimal, evaluation.weights[optimal.columns])
    unique = is_unique(optimal, least)
    picked = vertex(optimal, least) if solution == "vertex" and not unique else least
    full = np.zeros_like(evaluation.weights)
    full[optimal.columns] = picked
    again = design.evaluate(full)
    if again is None or again.gap > max(tol, evaluation.gap):
        return evaluation, unique, "interior"
    return again, unique, solution


def _purified(design: Design, evaluation: Evaluation) -> Evaluation:
    """The same weights down to rounding, without the noise on columns that are proved to have none."""
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
