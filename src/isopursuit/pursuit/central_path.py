"""The solver for more columns near √q = 1 than D(D+1)/2: an interior-point method in moments.

With slacks s_p = 1 − q_p and w_p s_p = μ, a step of Newton's method solves

    (H + S/W) dw = (μ − dw' ds')/w − (1 − q),        ds = (μ − dw' ds')/w − s − (s/w) dw,

with H as in truncated.py; dw' and ds' are the step with μ = 0 (Mehrotra's predictor). H = AᵀGA has rank D(D+1)/2 at
most, where A u = Σ u_p x_p x_pᵀ and G(N) = K N R + R N K, so the unknown is a matrix y of second moments:

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
from functools import cached_property
from typing import Any

import numpy as np

from isopursuit._core.backend import on_host
from isopursuit._core.linalg import EPS
from isopursuit._core.types import Array, Indices
from isopursuit.pursuit.products import ColumnProducts
from isopursuit.pursuit.settings import (
    FAR_SLACK,
    LEAST_CENTRING,
    NEARLY_DETERMINED,
    PATH_CONJUGATE_STEPS,
    PATH_RESIDUAL,
    PATH_TURNS,
    STALE_TURNS,
    TO_THE_BOUNDARY,
)
from isopursuit.pursuit.truncated import Point, Program, conjugate_gradients


def follow(
    program: Program, w: Array, tol: float, watch: Callable[[float], bool] | None, deadline: float = np.inf
) -> float:
    """Improve the weights w in place to a relative gap of tol; returns the gap that was reached.

    `watch` receives the gap and may stop the solver. A step is left unfinished at the deadline, a time of
    `time.perf_counter`. If few columns have weight, truncated.py is the better solver, and nothing is done.
    """
    D = program.x.shape[1]
    spread_out = float(w.sum()) ** 2 > NEARLY_DETERMINED * D * (D + 1) / 2 * float(w @ w)
    point = program.at(w) if spread_out else None
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
        elif not path.step(point, q[path.near], gap, tol):
            break
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

    def step(self, point: Point, q: Array, gap: float, tol: float) -> bool:
        """One step of Newton's method; False if K½CK½ is singular."""
        w, s = self.w, self.s
        system = System.at(self.part, point, w / s, self.deadline)
        if system is None:
            return False
        dw, ds = _direction(system, w, s, q - 1, gap, tol)
        self.w = w + min(1.0, TO_THE_BOUNDARY * _reach(w, dw)) * dw
        self.s = s + min(1.0, TO_THE_BOUNDARY * _reach(s, ds)) * ds
        return True


def _slacks(q: Array, gap: float) -> Array:
    """Positive slacks: 1 − q after q is scaled so that its maximum is slightly below 1, except for few outliers."""
    excess = min(max(float(q.max()) - 1, gap), 4 * gap)
    return np.maximum(1 - q / (1 + 2 * excess), gap)


def _direction(system: System, w: Array, s: Array, right: Array, gap: float, tol: float) -> tuple[Array, Array]:
    """The step of weights and slacks towards a smaller μ, or the same μ if the gap is much larger."""
    m, total = len(w), float(w.sum())
    mu = float(w @ s) / m
    unit = total / m  # a μ of `unit` times a gap is the mean w s at twice that gap
    least = max(2 * LEAST_CENTRING * gap, tol) * unit
    goal, correction, start = mu, np.zeros(m), None
    if least < mu:
        dw, start = system.solve(right, mu / unit, None)
        ds = -s - s / w * dw
        ahead = float((w + min(1.0, _reach(w, dw)) * dw) @ (s + min(1.0, _reach(s, ds)) * ds)) / m
        goal, correction = max(min(1.0, (ahead / mu) ** 3) * mu, least), dw * ds
    pull = (goal - correction) / w
    dw, _ = system.solve(right + pull, PATH_RESIDUAL * goal / unit, start)
    return dw, pull - s - s / w * dw


def _reach(x: Array, d: Array) -> float:
    """The t at which x + t d is no longer positive."""
    most = float((-d / x).max())
    return 1 / most if most > 0 else np.inf


@dataclass(frozen=True)
class System:
    """The system for z: F, the sums λ_i + λ_j, and `ratio` = w/s."""

    part: ColumnProducts
    ratio: Array
    base: Array
    sums: Array
    deadline: float

    @classmethod
    def at(cls, part: ColumnProducts, point: Point, ratio: Array, deadline: float) -> System | None:
        """The system at a point; None if K½ Y Yᵀ K½ is singular."""
        lengths, basis = np.linalg.eigh(point.K)
        half = basis * np.sqrt(np.maximum(lengths, 0.0)) @ basis.T
        values, rotation = np.linalg.eigh(half @ point.C @ half)
        if values[0] <= EPS * values[-1]:
            return None
        return cls(part, ratio, half @ rotation, values[:, None] + values, deadline)

    def moments(self, u: Any, base: Any) -> Any:
        """Fᵀ (A u) F."""
        found = base.T @ self.part.moments(u) @ base
        return (found + found.T) / 2

    def forms(self, z: Any, base: Any) -> Any:
        """Aᵀ (F z Fᵀ)."""
        return self.part.forms(base @ z @ base.T)

    @cached_property
    def placed(self) -> tuple[Any, ...]:
        """The ratio, F, the sums and the inverse of the matrix's diagonal, on the device of the columns.

        The diagonal is that for columns with independent Gaussian entries.
        """
        n, D = np.diag(self.moments(self.ratio, self.base)), len(self.base)
        diagonal = 1 / self.sums + 2 * np.outer(n, n) / float(self.ratio.sum()) * D / (D + 2)
        return tuple(self.part.place(v) for v in (self.ratio, self.base, self.sums, 1 / diagonal))

    @cached_property
    def size(self) -> float:
        """An estimate of the largest zᵀS z of a column z = Fᵀx (S symmetric, norm 1), for columns in all directions."""
        D = len(self.base)
        leverage = float(self.part.forms(self.base @ self.base.T, rough=True).mean())
        return 4 * leverage * float(np.sqrt(2 / (D * (D + 2))))

    def solve(self, right: Array, most: float, start: Array | None) -> tuple[Array, Array]:
        """A step with residuals of at most about `most`, and a start for another right-hand side.

        A residual r of z corresponds to the residual AᵀG r in the weights.
        """
        ratio, base, sums, preconditioner = self.placed

        def apply(z: Any) -> Any:
            return z / sums + self.moments(self.forms(z, base) * ratio, base)

        def solved(r: Any, _: float) -> bool:
            return self.size * math.sqrt(float((r * sums * r * sums).sum())) <= most

        moments = self.moments(self.part.place(right * self.ratio), base)
        begin = None if start is None else self.part.place(start)
        steps = PATH_CONJUGATE_STEPS
        found = conjugate_gradients(apply, moments, preconditioner, solved, steps, self.deadline, start=begin)
        z: Array = on_host(found)
        return (right - self.forms(z, self.base)) * self.ratio, z
