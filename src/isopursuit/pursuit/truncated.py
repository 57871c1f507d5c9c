"""The solver for many rows: block sweeps find the columns that matter, then Newton's method with conjugate gradients.

With K = M⁻¹ and R = K Y Yᵀ K, so that q_p = x_pᵀR x_p, the curvature H of f acts on a direction u as

    (H u)_p = x_pᵀ (K N R + R N K) x_p,        N = Σ u_p x_p x_pᵀ,

two products of the columns with D × D matrices. H, with one row for each column, is never formed. These products are in
single precision, which is enough for a direction; weights and bounds are in double precision. If H is singular (more
columns are tied than can be distinguished), the term ρ w̄/w_p added to H_pp prevents steps that move weight without
effect; it falls with the gap. Problems that this does not finish are left to the kernel: optima with nearly D(D+1)/2
columns, where H stays nearly singular.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from isopursuit._core.linalg import on_host
from isopursuit._core.types import Array, Indices
from isopursuit.pursuit import _sweep
from isopursuit.pursuit.products import ColumnProducts, HostProducts, Single
from isopursuit.results import relative_gap

TURNS = 40  # most sweeps or Newton steps (guess)
SWEEP_GAP = 0.1  # the gap above which sweeps lower f more than Newton steps do (guess)
SINGLE_GAP = 1e-3  # the gap above which single precision judges well enough (derived: its eps is 1e-7)
SINGLE_EPS = 2.4e-7  # twice the eps of single precision, for a sum of products (derived)
SWEEPS = 2  # sweeps between two evaluations (guess)
SWEPT_AT_ONCE = 64  # columns that take coordinate steps together (guess)
SAMPLE_PER_ROW = 20  # columns for each row in the sample that a cold start takes (guess)
NEAR_SHARE = 3e-4  # share of the gap over all columns to which the columns near √q = 1 are solved (guess)
NEAR_EXCESS = 10.0  # a column is near if √q is within this multiple of the largest excess over 1 (guess)
NEAR_COUNT = 1.5  # most near columns, as a multiple of those with weight or √q > 1 (guess)
LAST_FACTOR = 10  # multiple of the tolerance below which solving to the tolerance is cheaper than screening (guess)
CONJUGATE_STEPS = 60  # most steps of conjugate gradients (guess)
LEAST_RESIDUAL = 1e-3  # relative residual at which conjugate gradients stop (guess: a limit of single precision)
STALE_TURNS = 4  # turns in which the gap does not fall to half before giving up (guess)


def bounds(norms: float, trace: float, squares: float, rho: float, ridge: float) -> tuple[float, float]:
    """Primal and dual value of f: `judge` of _program.pyx, from sums that were computed elsewhere.

    B = W Xᵀ M⁻¹ Y is feasible, with Σ‖B_p‖ = `norms`. ν = M⁻¹Y / ρ is dual feasible if ‖YᵀM⁻¹x_p‖ ≤ ρ for every column;
    `trace` = tr(YᵀM⁻¹Y) and `squares` = ‖M⁻¹Y‖².
    """
    if ridge > 0:
        rho = max(rho, 1.0)
    return 2 * norms + ridge * squares, 2 * trace / rho - ridge * squares / rho**2 if rho > 0 else 0.0


@dataclass(frozen=True)
class Program:
    """The columns x (m, D) of one point, the target y (None for the identity), and `ridge`, added to M's diagonal.

    `products` multiplies the same columns, on threads or on a device.
    """

    products: ColumnProducts
    x: Array
    y: Array | None
    ridge: float

    @cached_property
    def outer(self) -> Array:
        """C = Y Yᵀ."""
        return np.eye(self.x.shape[1]) if self.y is None else self.y @ self.y.T

    def at(self, weights: Array) -> Point | None:
        """The program at weights on all columns; None if M is singular."""
        held = np.flatnonzero(weights)
        return Point.at(self.products.take(held).moments(weights[held]), weights, self.outer, self.ridge)


@dataclass(frozen=True)
class Point:
    """The program at some weights: K, R and quantities that depend on columns only through them."""

    weights: Array
    K: Array
    R: Array
    C: Array
    value: float
    ridge: float

    @classmethod
    def at(cls, moments: Array, weights: Array, C: Array, ridge: float, *, rescaled: bool = True) -> Point | None:
        """M = moments + ridge, rescaled unless a ridge or the caller forbids it; None if M is singular."""
        factor, failed = dpotrf(moments + ridge * np.eye(len(moments)), lower=1)
        if failed:
            return None
        triangle, failed = dpotri(factor, lower=1)
        K = np.tril(triangle) + np.tril(triangle, -1).T
        total, trace = float(weights.sum()), float(np.vdot(K, C))
        if failed or not (total > 0 and trace > 0):
            return None
        s = np.sqrt(trace / total) if ridge == 0 and rescaled else 1.0
        K /= s
        return cls(weights * s, K, K @ C @ K, C, total * s + trace / s, ridge)

    def gap(self, q: Array, w: Array) -> float:
        """The relative gap over the columns whose q and weights are given."""
        norms, trace = float(w @ np.sqrt(q)), self.value - float(w.sum())
        return relative_gap(*bounds(norms, trace, float(np.trace(self.R)), float(np.sqrt(q.max())), self.ridge))


def descend(
    program: Program,
    w: Array,
    tol: float,
    watch: Callable[[float], bool] | None,
    *,
    warm: bool,
    deadline: float = np.inf,
) -> float:
    """Improve the weights w in place to a relative gap of tol; returns the gap that was reached.

    `watch` receives the gap and may stop the solver. A sweep or a step is left unfinished at the deadline, a time of
    `time.perf_counter`.
    """
    m, D = program.x.shape

    def stop(gap: float) -> bool:
        return watch is not None and watch(gap)

    if not warm and m <= D * D:
        _begin(program, w, deadline)
    best = gap = np.inf
    stale = 0
    point = program.at(w)
    goal = 0.0  # gap to reach on the columns near 1; 0 means that all columns are screened next
    everything = np.arange(len(w))
    near = everything[:0]
    q = np.zeros(0)
    part = program.products
    for _ in range(TURNS):
        if point is None:
            return np.inf
        w[:] = point.weights
        if goal == 0:
            q = _screened(program, point, near, q)
            gap = point.gap(q, w)
            if gap <= tol or stop(gap):
                return gap
            if gap > SWEEP_GAP:
                near = everything
            else:
                goal = max(0.9 * tol, NEAR_SHARE * gap)
                goal = 0.9 * tol if goal < LAST_FACTOR * tol else goal
                near = _near(q, w)
                part, q = program.products.take(near), q[near]
        else:
            q = part.forms(point.R, rough=bool(best > SINGLE_GAP))
            gap = point.gap(q, w[near])
            if gap <= goal:
                goal = 0.0
                continue
        stale = 0 if gap < 0.5 * best else stale + 1
        best = min(best, gap)
        if stale > STALE_TURNS or stop(gap):
            break
        if gap > SWEEP_GAP:
            columns = near[(w[near] > 0) | (q > 1)]
            w[columns] = _swept(program.x[columns], program.y, point.K, w[columns], deadline)
            point = program.at(w)
        else:
            new = _near(q, w[near])
            if len(new) < 0.8 * len(near):
                near, q, part = near[new], q[new], part.take(new)
            residual = max(min(0.1, np.sqrt(gap)), 0.3 * goal / gap, LEAST_RESIDUAL)
            point = _stepped(part, near, q, point, residual, gap, deadline)
    return gap


def _begin(program: Program, w: Array, deadline: float) -> None:
    """Replace the weights by those from sweeps over an evenly spaced sample of the columns."""
    m, D = program.x.shape
    sample = np.flatnonzero(np.arange(m) % max(m // (SAMPLE_PER_ROW * D), 1) == 0)
    x = program.x[sample]
    point = Point.at(HostProducts(x).moments(w[sample]), w[sample], program.outer, program.ridge)
    if point is not None:
        w[:] = 0.0
        w[sample] = _swept(x, program.y, point.K, point.weights, deadline)


def _screened(program: Program, point: Point, near: Indices, known: Array) -> Array:
    """Q of every column, in double precision where that matters.

    It is `known` for the columns `near`, unless f is far from its minimum. It is computed in double precision for other
    columns unless single precision shows that they are below 1.
    """
    w, R = point.weights, point.R
    q = program.products.forms(R, rough=True)
    if point.gap(q, w) > SINGLE_GAP:
        return q
    longest = float(np.einsum("pd,pd->p", program.x, program.x).max())
    error = SINGLE_EPS * float(np.sqrt(len(R))) * longest * float(np.linalg.norm(R))
    q[near] = known
    open_ = (w > 0) | (q > 1 - error)
    open_[near] = False
    others = np.flatnonzero(open_)
    q[others] = program.products.take(others).forms(R)
    return q


def _near(q: Array, w: Array) -> Indices:
    """The columns with weight, and those whose √q is near 1 compared with the largest."""
    excess = max(float(np.sqrt(q.max())) - 1, 1e-9)
    held = np.asarray(w > 0)
    most = int(NEAR_COUNT * np.count_nonzero(held | (q > 1)))
    bar = max(1 - NEAR_EXCESS * excess, 0.0) ** 2
    if most < len(q):
        bar = max(bar, min(float(np.partition(q, len(q) - most)[len(q) - most]), 1.0))
    return np.flatnonzero(held | (q >= bar))


def _swept(x: Array, y: Array | None, inverse: Array, weights: Array, deadline: float) -> Array:
    """The weights after a few sweeps of exact coordinate steps, SWEPT_AT_ONCE columns at a time.

    Within a block, products of its columns with K and with each other are updated by the Sherman–Morrison formula.
    """
    single = x.astype(np.float32)
    K: Single = inverse.astype(np.float32)
    right = None if y is None else y.astype(np.float32)
    w = weights.copy()
    columns = np.arange(len(w))
    for _ in range(SWEEPS):
        for first in range(0, len(columns), SWEPT_AT_ONCE):
            if time.perf_counter() > deadline:
                return w
            some = columns[first : first + SWEPT_AT_ONCE]
            block, v = single[some], w[some]
            V: Single = block @ K
            U = V if right is None else V @ right
            mix, steps = _sweep.steps_within((V @ block.T).astype(np.float64), (U @ U.T).astype(np.float64), v)
            w[some] = v
            V = mix.astype(np.float32) @ V
            K -= V.T @ (V * steps.astype(np.float32)[:, None])
        columns = np.flatnonzero(w)
    return w


def _stepped(
    part: ColumnProducts, near: Indices, q: Array, point: Point, residual: float, gap: float, deadline: float
) -> Point | None:
    """A step of Newton's method on the columns near 1, truncated at zero weights and halved until f falls."""
    w = point.weights
    free = np.flatnonzero((w[near] > 0) | (q > 1))
    if len(free) < len(near):
        part = part.take(free)
    v, q = w[near[free]], q[free]
    leverage = part.forms(point.K, rough=True)
    mean = float(v.sum()) / max(np.count_nonzero(v), 1)
    extra = gap * float(np.median(2 * leverage)) * mean / np.maximum(v, 0.1 * mean)
    diagonal = 2 * leverage * q + extra
    curvature = curvature_of(part, point, extra, rough=True)
    least = residual**2 * float((q - 1) @ ((q - 1) / diagonal))
    # K M R + R M K = 2R without a ridge: the curvature in the direction of the weights, by far the largest
    image = part.place(2 * q + extra * v) if point.ridge == 0 else curvature(part.place(v))
    found = conjugate_gradients(
        curvature,
        part.place(q - 1),
        part.place(1 / diagonal),
        lambda _, rz: rz <= least,
        CONJUGATE_STEPS,
        deadline,
        known=(part.place(v), image),
    )
    step: Array = on_host(found)
    t = 1.0
    while t > 1e-3 and time.perf_counter() <= deadline:
        trial = np.zeros_like(w)
        trial[near[free]] = np.maximum(v + t * step, 0.0)
        new = Point.at(part.moments(trial[near[free]]), trial, point.C, point.ridge)
        if new is not None and new.value <= point.value * (1 + 1e-13):
            return new
        t /= 2
    return point


def curvature_of(part: ColumnProducts, point: Point, added: Array, *, rough: bool) -> Callable[[Any], Any]:
    """The product of H + diag(added) with a vector on the device of the columns."""
    K, R, diagonal = (part.place(values) for values in (point.K, point.R, added))

    def apply(u: Any) -> Any:
        S = K @ part.moments(u, rough=rough) @ R
        return part.forms(S + S.T, rough=rough) + diagonal * u

    return apply


def conjugate_gradients(
    apply: Callable[[Any], Any],
    right: Any,
    preconditioner: Any,
    solved: Callable[[Any, float], bool],
    steps: int,
    deadline: float,
    *,
    start: Any = None,
    known: tuple[Any, Any] | None = None,
) -> Any:
    """Solve apply(x) = right until `solved` accepts the residual r and rᵀPr; for arrays, or tensors on a device.

    `known` is a vector v and its image H v. The other directions stay H-orthogonal to v, so that a large eigenvalue
    costs no steps.
    """
    x, r = (0 * right, right) if start is None else (start, right - apply(start))
    bend = 1.0 if known is None else float((known[0] * known[1]).sum())
    if known is not None:
        share = float((known[0] * r).sum()) / bend
        x, r = x + share * known[0], r - share * known[1]
    p: Any = 0.0
    previous = math.inf
    for _ in range(steps):
        z = preconditioner * r
        rz = float((r * z).sum())
        if solved(r, rz) or time.perf_counter() > deadline:
            break
        p = z + rz / previous * p
        if known is not None:
            p = p - float((known[1] * z).sum()) / bend * known[0]
        image = apply(p)
        bent = float((p * image).sum())
        if not bent > 0:
            break
        x, r = x + rz / bent * p, r - rz / bent * image
        previous = rz
    return x
