"""Two ways to solve a program, and which to try first: directly for its weights, or by proximal steps on its dual."""

from __future__ import annotations

import numpy as np

from isopursuit._core.types import Array
from isopursuit.errors import RankError
from isopursuit.pursuit.answers import Caller, judged, nothing
from isopursuit.pursuit.design import Design
from isopursuit.pursuit.inputs import Options
from isopursuit.pursuit.rectangular import RectangularDesign
from isopursuit.pursuit.settings import (
    FIRST_PROX,
    FULL_RANK,
    INEXACT_PROX_GAP,
    LEAST_PROX,
    PROX_GAP,
    PROX_STEPS,
    REWHITENINGS,
)
from isopursuit.pursuit.whitening import whitened_at
from isopursuit.pursuit.working_set import Solved, pursue
from isopursuit.results import Pursuit


def solve_design(design: Design, weights: Array | None, caller: Caller, options: Options) -> Pursuit:
    """Solve the design, choose the requested solution, and certify it; weights are in the units of the design."""
    if isinstance(design, RectangularDesign):
        return judged(design, pursue(design, options.tol, weights, options), caller, options)
    if design.idle:
        return nothing(design, caller)
    deficient = design.deficient(FULL_RANK) and design.penalty < FIRST_PROX * design.largest_pull
    best: Pursuit | None = None
    for method in (_proximal, _direct) if deficient else (_direct, _proximal):
        part, solved = method(design, weights, options)
        found = judged(part, solved, caller, options)
        if (
            best is None
            or (found.status == "optimal" and best.status != "optimal")
            or (best.status == "stalled" and found.certificate.gap < best.certificate.gap)
        ):
            best = found
        # if it is solved in the design's coordinates but not in the caller's, more precision than float64 is needed
        solvable = found.status == "optimal" or not (deficient or design.penalty > 0 or solved.status == "stalled")
        if solved.status == "stopped" or (solvable and solved.evaluation.minimized):
            break
    assert best is not None
    return best


def _direct(design: Design, weights: Array | None, options: Options) -> tuple[Design, Solved]:
    """Solve directly for the weights; change coordinates if rounding prevents a smaller gap."""
    solved = pursue(design, options.tol, weights, options)
    for _ in range(REWHITENINGS if design.penalty == 0 else 0):
        if solved.status != "stalled" or solved.evaluation.gap > 0.99:
            break
        try:
            design = whitened_at(design, solved.evaluation.weights)
        except RankError:  # M is singular at these weights
            break
        solved = pursue(design, options.tol, solved.evaluation.weights, options)
    return design, solved


def _proximal(design: Design, weights: Array | None, options: Options) -> tuple[Design, Solved]:
    """Proximal steps on the dual, each from the previous solution (design.py), until rounding stops them."""
    prox = FIRST_PROX * design.largest_pull
    least = LEAST_PROX / FIRST_PROX * prox
    center: Array | float = 0.0
    best: tuple[float, Design, Solved] | None = None
    idle = 0
    for _ in range(PROX_STEPS):
        part = design.step(center, prox)
        solved = pursue(part, PROX_GAP, weights, options)
        support = np.flatnonzero(solved.evaluation.weights)
        error = part.certified(solved.evaluation, support).error
        previous = np.inf if best is None else best[0]
        if best is None or error < best[0]:
            best = error, part, solved
        if error > 0.1 * previous or error == np.inf:  # far from feasible, larger steps help more
            prox, idle = max(0.1 * prox, least), idle + (error < np.inf)
        if error <= PROX_GAP or solved.status == "stopped" or idle > 3 or solved.evaluation.gap > INEXACT_PROX_GAP:
            break
        center, weights = part.slope(solved.evaluation), solved.evaluation.weights
    assert best is not None
    return best[1], best[2]
