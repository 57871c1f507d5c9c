"""The solver for many columns near √q = 1: an interior-point method with conjugate gradients.

With slacks s_p = 1 − q_p and w_p s_p = μ, a step of Newton's method solves

    (H + S/W) dw = (μ − dw' ds')/w − (1 − q),        ds = (μ − dw' ds')/w − s − (s/w) dw,

with H as in truncated.py; dw' and ds' are the step with μ = 0 (Mehrotra's predictor). H = AᵀGA has rank D(D+1)/2 at
most, where A u = Σ u_p x_p x_pᵀ and G(N) = K N R + R N K. If S/W is small on more columns than that, the unknown is a
matrix y of second moments:

    dw = W/S (right − Aᵀy),        (G⁻¹ + A diag(w/s) Aᵀ) y = A (w/s ∘ right).

With K½ Y Yᵀ K½ = Q diag(λ) Qᵀ and F = K½Q, y = F z Fᵀ turns G⁻¹ into the division of z's entries by λ_i + λ_j. The more
columns are near 1, the better the other term is conditioned. The step is a small difference of large numbers and needs
double precision.

Slacks are separate variables, so columns can join with weight μ/s even if that changes q. The gap contains the excess
of q over 1, and μ follows the gap, so it does not fall while the excess is larger. All columns near 1 have weight,
which keeps M⁻¹ accurate on columns that are not in the set. The weights of a basic solution would make it accurate only
on the columns of that solution.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from isopursuit._core.linalg import EPS, on_host
from isopursuit._core.types import Array, Indices, Mask
from isopursuit.pursuit.products import ColumnProducts
from isopursuit.pursuit.truncated import STALE_TURNS, Point, Program, conjugate_gradients, curvature_of

PATH_TURNS = 60  # most steps of Newton's method; 7 to 20 are usual (measured: benchmarks/scale.py)
PATH_CONJUGATE_STEPS = 1000  # most steps of conjugate gradients for one linear system (guess)
PATH_RESIDUAL = 0.1  # residual of a system, relative to the target of 1 − q (measured: 0.3 stalls at 256 × 10,000,000)
LEAST_CENTRING = 0.1  # least target of μ, as a share of the gap (guess)
FAR_SLACK = 10.0  # a column is far from 1 if 1 − q is above this multiple of twice the gap (guess)
SMALL_SHIFT = 0.3  # S/W relative to H's diagonal, below which systems in the weights need many more steps (guess)
DOUBLE_GAP = 5e-6  # the gap below which systems in the weights need double precision (guess: 50 times single's eps)
TO_THE_BOUNDARY = 0.95  # longest step, as a share of the distance to zero weights or slacks (customary: 0.9 to 0.995)

# solves for a right-hand side, to residuals of about a number or less; also returns a start for another right-hand side
Solver: TypeAlias = Callable[[Array, float, Any], tuple[Array, Any]]


def follow(
    program: Program, w: Array, tol: float, watch: Callable[[float], bool] | None, deadline: float = np.inf
) -> float:
    """Improve the weights w in place to a relative gap of tol; returns the gap that was reached.

    `watch` receives the gap and may stop the solver. A step is left unfinished at the deadline, a time of
    `time.perf_counter`.
    """
    point = program.at(w)
    if point is None:
        return np.inf
    q = program.products.forms(point.R)
    best = gap = point.gap(q, point.weights)
    w[:] = point.weights
    path = None if gap <= tol else Path.begin(program, point, q, gap, deadline)
    least, stale = np.inf, 0
    for _ in range(0 if path is None else PATH_TURNS):
        assert path is not None
        point = path.point()
        if point is None:
            break
        q = program.products.forms(point.R)
        gap, gap_near = point.gap(q, point.weights), point.gap(q[path.near], path.w)
        if gap < best:
            best, w[:] = gap, point.weights
        stale = 0 if gap < 0.9 * least else stale + 1
        least = min(least, gap)
        if gap <= tol or stale > STALE_TURNS or time.perf_counter() > deadline or (watch is not None and watch(gap)):
            break
        if gap > 2 * gap_near:
            path.join(q, gap_near)
        else:
            path.step(point, q[path.near], gap, tol)
    return best


@dataclass
class Path:
    """Positive weights w and slacks s of the columns `near`."""

    program: Program
    near: Indices
    part: ColumnProducts
    w: Array
    s: Array
    deadline: float

    @classmethod
    def begin(cls, program: Program, point: Point, q: Array, gap: float, deadline: float) -> Path:
        """The columns with weight and those near 1, with w s at least a common μ."""
        w, slack = point.weights, _slacks(q, gap)
        near = np.flatnonzero((w > 0) | (slack < 2 * FAR_SLACK * gap))
        w, s = w[near], slack[near]
        mu = gap * float(w.sum()) / min(len(near), 2 * np.count_nonzero(w))
        return cls(program, near, program.products.take(near), np.maximum(w, mu / s), s, deadline)

    def point(self) -> Point | None:
        """The program at the rescaled weights."""
        w = np.zeros(len(self.program.x))
        w[self.near] = self.w
        point = Point.at(self.part.moments(self.w), w, self.program.outer, self.program.ridge)
        if point is not None:
            self.w = point.weights[self.near]
        return point

    def join(self, q: Array, gap: float) -> None:
        """Add columns that are near 1, or above, and not yet in the set; `gap` is that of the columns in the set."""
        slack = _slacks(q, gap)
        slack[self.near] = np.inf
        new = np.flatnonzero(slack < 2 * FAR_SLACK * gap)
        mu = float(self.w @ self.s) / len(self.w)
        self.near = np.concatenate([self.near, new])
        self.w, self.s = np.concatenate([self.w, mu / slack[new]]), np.concatenate([self.s, slack[new]])
        self.part = self.program.products.take(self.near)

    def far(self, gap: float) -> Mask:
        """Columns of small weight far from 1, as many as can leave in one step; none if they are few.

        A step that moves the share t of all weight leaves an error of about t² in q, which should be below the gap.
        """
        total = float(self.w.sum())
        slack = 2 * FAR_SLACK * max(gap, 0.5 * float(self.w @ self.s) / total)
        light = np.flatnonzero((self.w < 0.1 * total / len(self.w)) & (self.s > slack))
        light = light[np.argsort(self.w[light])]
        light = light[np.cumsum(self.w[light]) < 0.5 * math.sqrt(gap) * total]
        far = np.zeros(len(self.w), dtype=bool)
        far[light] = 10 * len(light) > len(far)
        return far

    def step(self, point: Point, q: Array, gap: float, tol: float) -> None:
        """One step of Newton's method. Columns far from 1 lose weight by the fraction of the step that is taken.

        The system is solved in moments if s/w is small on more than 2 D(D+1)/2 columns, so that H + S/W is nearly
        singular.
        """
        far, part, D, right = self.far(gap), self.part, len(point.K), q - 1
        shift, diagonal = self.s / self.w, 2 * part.forms(point.K, rough=True) * q
        if far.any():
            leaving = curvature_of(part, point, 0 * shift, rough=gap > DOUBLE_GAP)
            right = right + on_host(leaving(part.place(np.where(far, self.w, 0.0))))
            part = part.take(np.flatnonzero(~far))
        w, s, shift, diagonal, right = (values[~far] for values in (self.w, self.s, shift, diagonal, right))
        solve = None
        if np.count_nonzero(shift < SMALL_SHIFT * diagonal) > D * (D + 1):
            solve = solver_in_moments(part, point, 1 / shift, self.deadline)
        if solve is None:
            solve = solver_in_weights(part, point, diagonal, shift, gap > DOUBLE_GAP, self.deadline)
        dw, ds = _direction(solve, w, s, right, gap, tol)
        length = min(1.0, TO_THE_BOUNDARY * _reach(w, dw))
        self.w[~far] = w + length * dw
        self.s[~far] = s + min(1.0, TO_THE_BOUNDARY * _reach(s, ds)) * ds
        self.w[far] *= 1 - length
        if length == 1:
            self.near, self.w, self.s, self.part = self.near[~far], self.w[~far], self.s[~far], part


def _slacks(q: Array, gap: float) -> Array:
    """Positive slacks: 1 − q after q is scaled so that its maximum is slightly below 1, except for few outliers."""
    excess = min(max(float(q.max()) - 1, gap), 4 * gap)
    return np.maximum(1 - q / (1 + 2 * excess), gap)


def _direction(solve: Solver, w: Array, s: Array, right: Array, gap: float, tol: float) -> tuple[Array, Array]:
    """The step of weights and slacks towards a smaller μ, or the same μ if the gap is much larger."""
    m, total = len(w), float(w.sum())
    mu = float(w @ s) / m
    unit = total / m  # a μ of `unit` times a gap is the mean w s at twice that gap
    least = max(2 * LEAST_CENTRING * gap, tol) * unit
    goal, correction, start = mu, np.zeros(m), None
    if least < mu:
        dw, start = solve(right, mu / unit, None)
        ds = -s - s / w * dw
        ahead = float((w + min(1.0, _reach(w, dw)) * dw) @ (s + min(1.0, _reach(s, ds)) * ds)) / m
        goal, correction = max(min(1.0, (ahead / mu) ** 3) * mu, least), dw * ds
    pull = (goal - correction) / w
    dw, _ = solve(right + pull, PATH_RESIDUAL * goal / unit, start)
    return dw, pull - s - s / w * dw


def _reach(x: Array, d: Array) -> float:
    """The t at which x + t d is no longer positive."""
    most = float((-d / x).max())
    return 1 / most if most > 0 else np.inf


# ------------------------------------------------------------------------------------------------ linear systems


def solver_in_weights(
    part: ColumnProducts, point: Point, diagonal: Array, shift: Array, rough: bool, deadline: float
) -> Solver:
    """A solver for (H + diag(shift)) dw = right, preconditioned by the diagonal; `diagonal` is that of H."""
    apply = curvature_of(part, point, shift, rough=rough)
    preconditioner = part.place(1 / (diagonal + shift))

    def solve(right: Array, most: float, start: Any) -> tuple[Array, Any]:
        def solved(r: Any, _: float) -> bool:
            return float(abs(r).max()) <= most

        right = part.place(right)
        found = conjugate_gradients(apply, right, preconditioner, solved, PATH_CONJUGATE_STEPS, deadline, start=start)
        return on_host(found), found

    return solve


def solver_in_moments(part: ColumnProducts, point: Point, ratio: Array, deadline: float) -> Solver | None:
    """A solver for dw by way of z; `ratio` is w/s. None if K½ Y Yᵀ K½ is singular.

    A residual r of z corresponds to the residual AᵀG r in the weights.
    """
    lengths, basis = np.linalg.eigh(point.K)
    half = basis * np.sqrt(np.maximum(lengths, 0.0)) @ basis.T
    values, rotation = np.linalg.eigh(half @ point.C @ half)
    if values[0] <= EPS * values[-1]:
        return None
    D, base = len(half), half @ rotation
    sums = values[:, None] + values

    def moments(u: Any, base: Any) -> Any:
        found = base.T @ part.moments(u) @ base
        return (found + found.T) / 2

    # the diagonal is that for columns with independent Gaussian entries
    n = np.diag(moments(ratio, base))
    diagonal = 1 / sums + 2 * np.outer(n, n) / float(ratio.sum()) * D / (D + 2)
    F, ratios, divisors, preconditioner = (part.place(values) for values in (base, ratio, sums, 1 / diagonal))
    # an estimate of the largest zᵀS z of a column z = Fᵀx (S symmetric, norm 1), for columns in all directions
    size = 4 * float(part.forms(base @ base.T, rough=True).mean()) * math.sqrt(2 / (D * (D + 2)))

    def apply(z: Any) -> Any:
        return z / divisors + moments(part.forms(F @ z @ F.T) * ratios, F)

    def solve(right: Array, most: float, start: Any) -> tuple[Array, Any]:
        def solved(r: Any, _: float) -> bool:
            return size * math.sqrt(float((r * divisors * r * divisors).sum())) <= most

        b = moments(part.place(right * ratio), F)
        z = conjugate_gradients(apply, b, preconditioner, solved, PATH_CONJUGATE_STEPS, deadline, start=start)
        return (right - part.forms(base @ on_host(z) @ base.T)) * ratio, z

    return solve
