"""The solver for many columns near √q = 1: an interior-point method with conjugate gradients for the linear systems.

With slacks s_p = 1 − q_p and w_p s_p = μ, a step of Newton's method solves

    (H + S/W) dw = (μ − dw' ds')/w − (1 − q),        ds = (μ − dw' ds')/w − s − (s/w) dw,

with H as in truncated.py; dw' and ds' are the step with μ = 0 (Mehrotra's predictor). Slacks are separate variables, so
columns can join with weight μ/s even if that changes q. The gap contains the excess of q over 1, and μ follows the gap,
so it does not fall while the excess is larger. All columns near 1 have weight, which keeps M⁻¹ accurate on columns that
are not in the set. The weights of a basic solution would make it accurate only on the columns of that solution.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from isopursuit._core.linalg import EPS
from isopursuit._core.types import Array, Indices, Mask
from isopursuit.pursuit.products import ColumnProducts, fetched
from isopursuit.pursuit.settings import (
    DOUBLE_GAP,
    FAR_SLACK,
    LEAST_CENTRING,
    NEARLY_DETERMINED,
    PATH_CONJUGATE_STEPS,
    PATH_RESIDUAL,
    PATH_TURNS,
    SMALL_SHIFT,
    STALE_TURNS,
    TO_THE_BOUNDARY,
)
from isopursuit.pursuit.truncated import Point, Program


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
        light = light[np.cumsum(self.w[light]) < 0.5 * np.sqrt(gap) * total]
        far = np.zeros(len(self.w), dtype=bool)
        if 10 * len(light) > len(far):
            far[light] = True
        return far

    def step(self, point: Point, q: Array, gap: float, tol: float) -> None:
        """One step of Newton's method. Columns far from 1 lose weight by the fraction of the step that is taken."""
        far = self.far(gap)
        kept = np.flatnonzero(~far)
        right, part = q - 1, self.part
        leverage = part.forms(point.K, rough=True)
        if len(kept) < len(far):
            right = right - _curvature(part, point.K, point.R, np.where(far, -self.w, 0.0), rough=gap > DOUBLE_GAP)
            part = part.take(kept)
        w, s = self.w[kept], self.s[kept]
        system = _system(part, point, 2 * leverage[kept] * q[kept], s / w, gap, self.deadline)
        dw, ds = _direction(system, w, s, right[kept], gap, tol)
        length = min(1.0, TO_THE_BOUNDARY * _reach(w, dw))
        self.w[kept] = w + length * dw
        self.s[kept] = s + min(1.0, TO_THE_BOUNDARY * _reach(s, ds)) * ds
        if length < 1:
            self.w[far] *= 1 - length
        elif len(kept) < len(far):
            self.near, self.w, self.s, self.part = self.near[kept], self.w[kept], self.s[kept], part


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


# ------------------------------------------------------------------------------------------------ linear systems


def _curvature(part: ColumnProducts, K: Any, R: Any, u: Any, rough: bool) -> Any:
    """H u."""
    S = K @ part.moments(u, rough=rough) @ R
    return part.forms(S + S.T, rough=rough)


def _system(part: ColumnProducts, point: Point, diagonal: Array, shift: Array, gap: float, deadline: float) -> System:
    """The system H + diag(shift), in the form that is better conditioned; `diagonal` is that of H.

    H has rank at most D(D+1)/2. The unknown is a matrix if about as many columns or more have weight, and shifts are
    small compared with the diagonal of H on more than twice as many. Its step is a small difference of large numbers,
    so it needs double precision.
    """
    D, w = len(point.K), point.weights
    rank = D * (D + 1) // 2
    spread_out = float(w.sum()) ** 2 > NEARLY_DETERMINED * rank * float(w @ w)
    if spread_out and np.count_nonzero(shift < SMALL_SHIFT * diagonal) > 2 * rank:
        lengths, basis = np.linalg.eigh(point.K)
        half = basis * np.sqrt(np.maximum(lengths, 0.0)) @ basis.T
        values, rotation = np.linalg.eigh(half @ point.C @ half)
        if values[0] > EPS * values[-1]:
            return InMoments(part, shift, half @ rotation, values[:, None] + values, deadline)
    return InWeights(part, point, 1 / (diagonal + shift), shift, gap > DOUBLE_GAP, deadline)


class System(Protocol):
    """A linear system (H + diag(shift)) u = right."""

    def solve(self, right: Array, most: float, start: Array | None) -> tuple[Array, Array]:
        """An approximate u with residuals of at most about `most`, and a start for another right-hand side."""
        ...


@dataclass(frozen=True)
class InWeights:
    """The system in the weights, preconditioned by its diagonal."""

    part: ColumnProducts
    point: Point
    preconditioner: Array
    shift: Array
    rough: bool
    deadline: float

    @cached_property
    def placed(self) -> tuple[Any, ...]:
        """K, R, the shift and the preconditioner, on the device of the columns."""
        return tuple(self.part.place(v) for v in (self.point.K, self.point.R, self.shift, self.preconditioner))

    def solve(self, right: Array, most: float, start: Array | None) -> tuple[Array, Array]:
        """Conjugate gradients."""
        K, R, shift, preconditioner = self.placed

        def apply(u: Any) -> Any:
            return _curvature(self.part, K, R, u, self.rough) + shift * u

        def solved(r: Any) -> bool:
            return float(abs(r).max()) <= most

        begin = None if start is None else self.part.place(start)
        u = _conjugate_gradients(apply, self.part.place(right), preconditioner, solved, begin, self.deadline)
        u = fetched(u)
        return u, u


@dataclass(frozen=True)
class InMoments:
    """The system in moments, with H = AᵀGA: u = (right − Aᵀy)/shift, (G⁻¹ + A diag(1/shift) Aᵀ) y = A (right/shift).

    A u = Σ u_p x_p x_pᵀ and G(N) = K N R + R N K. With K½ Y Yᵀ K½ = Q diag(λ) Qᵀ and `base` F = K½Q, y = F z Fᵀ turns
    G⁻¹ into the division of z's entries by λ_i + λ_j, here `sums`.
    """

    part: ColumnProducts
    shift: Array
    base: Array
    sums: Array
    deadline: float

    def moments(self, u: Any, base: Any) -> Any:
        """Fᵀ (A u) F."""
        found = base.T @ self.part.moments(u) @ base
        return (found + found.T) / 2

    def forms(self, z: Any, base: Any) -> Any:
        """Aᵀ (F z Fᵀ)."""
        return self.part.forms(base @ z @ base.T)

    @cached_property
    def placed(self) -> tuple[Any, ...]:
        """The shift, F, the sums and the inverse of `diagonal`, on the device of the columns."""
        return tuple(self.part.place(v) for v in (self.shift, self.base, self.sums, 1 / self.diagonal))

    @property
    def diagonal(self) -> Array:
        """The diagonal of the matrix that acts on z, for columns with independent Gaussian entries."""
        n, D = np.diag(self.moments(1 / self.shift, self.base)), len(self.base)
        return 1 / self.sums + 2 * np.outer(n, n) / float((1 / self.shift).sum()) * D / (D + 2)

    @cached_property
    def size(self) -> float:
        """An estimate of the largest zᵀS z of a column z = Fᵀx (S symmetric, norm 1), for columns in all directions."""
        D = len(self.base)
        leverage = float(self.part.forms(self.base @ self.base.T, rough=True).mean())
        return 4 * leverage * float(np.sqrt(2 / (D * (D + 2))))

    def solve(self, right: Array, most: float, start: Array | None) -> tuple[Array, Array]:
        """Conjugate gradients; a residual r of z corresponds to the residual AᵀG r in the weights."""
        shift, base, sums, preconditioner = self.placed

        def apply(z: Any) -> Any:
            return z / sums + self.moments(self.forms(z, base) / shift, base)

        def solved(r: Any) -> bool:
            return self.size * math.sqrt(_inner(r * sums, r * sums)) <= most

        moments = self.moments(self.part.place(right / self.shift), base)
        begin = None if start is None else self.part.place(start)
        z = fetched(_conjugate_gradients(apply, moments, preconditioner, solved, begin, self.deadline))
        return (right - self.forms(z, self.base)) / self.shift, z


def _conjugate_gradients(
    apply: Callable[[Any], Any],
    right: Any,
    preconditioner: Any,
    solved: Callable[[Any], bool],
    start: Any | None,
    deadline: float,
) -> Any:
    """Solve apply(x) = right until `solved` accepts the residual, for arrays or tensors on a device."""
    x = 0 * right if start is None else start
    r = right if start is None else right - apply(start)
    z = preconditioner * r
    p, rz = z, _inner(r, z)
    for _ in range(PATH_CONJUGATE_STEPS):
        if solved(r) or time.perf_counter() > deadline:
            break
        image = apply(p)
        bent = _inner(p, image)
        if not bent > 0:
            break
        x = x + rz / bent * p
        r = r - rz / bent * image
        z = preconditioner * r
        rz, previous = _inner(r, z), rz
        p = z + rz / previous * p
    return x


def _inner(a: Any, b: Any) -> float:
    return float((a * b).sum())
