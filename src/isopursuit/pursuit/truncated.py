"""The solver for many rows: sweeps by blocks find the columns that matter, Newton's method by conjugate gradients ends.

With K = M⁻¹ and R = K Y Yᵀ K, so that q_p = x_pᵀR x_p, the curvature H of f acts on a direction u as

    (H u)_p = x_pᵀ (K N R + R N K) x_p,        N = Σ u_p x_p x_pᵀ,

two products of the columns with D × D matrices: H itself, as many rows as columns, is never formed. Those products are
in single precision, as a direction needs no more; weights and what is judged are in double. Where more columns are
tied than can be told apart (H is singular), the term ρ w̄/w_p beside H_pp keeps the step from moving weight about for
nothing; it falls with the gap. What this does not finish (optima with nearly D(D+1)/2 columns, where H is nearly
singular for good) is left to the kernel.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri

from isopursuit.pursuit import _sweep

Array = NDArray[np.float64]
Single = NDArray[np.float32]
Indices = NDArray[np.intp]

TURNS = 40
FAR = 0.1  # the gap above which sweeps do more than Newton
ROUGH = 1e-3  # the gap above which single precision judges well enough
SWEEPS = 2  # between two evaluations
SAMPLE = 20  # columns for each row that a cold start begins with, where the columns are fewer than D²
BLOCK = 64  # columns swept together
STRIPS = 4  # that a symmetric matrix is cut into, so that little more than its lower triangle is computed
CHUNK = 1024  # columns multiplied at once, so that the product stays in cache
SHARE = 3e-4  # of the gap over all columns, what the columns near 1 are solved to
AROUND = 10.0  # columns within so many times the largest excess of √q over 1 are near
CROWD = 1.5  # and at most so many times as many as have weight or √q > 1
CONJUGATE = 60  # steps of conjugate gradients at most
TIGHTEST = 1e-3  # their relative residual at the least: single precision holds no more
PATIENCE = 4  # turns that may pass without the gap falling to half


class Hand(Protocol):
    """Columns at hand, on a host or a device, with the two products that the solver needs.

    `rough` asks for single precision.
    """

    def moments(self, u: Array, rough: bool = False) -> Array:
        """Σ u_p x_p x_pᵀ, (D, D)."""
        ...

    def forms(self, S: Array, rough: bool = False) -> Array:
        """x_pᵀ S x_p of every column."""
        ...

    def take(self, columns: Indices) -> Hand:
        """Some of the columns."""
        ...


class HostHand:
    """Columns (m, D) in memory."""

    def __init__(self, x: Array, single: Single | None = None) -> None:
        self.x, self.single = x, single
        edges = [i * x.shape[1] // STRIPS for i in range(STRIPS + 1)]
        self.strips = [slice(a, b) for a, b in pairwise(edges)]

    def values(self, rough: bool) -> NDArray[Any]:
        """The columns in the precision asked for."""
        if not rough:
            return self.x
        if self.single is None:
            self.single = self.x.astype(np.float32)
        return self.single

    def moments(self, u: Array, rough: bool = False) -> Array:
        """Σ u_p x_p x_pᵀ: the strips of its lower triangle."""
        x = self.values(rough)
        total = np.zeros((x.shape[1],) * 2, dtype=x.dtype)
        weights = u.astype(x.dtype)
        for first in range(0, len(x), CHUNK):
            block = x[first : first + CHUNK]
            other = block * weights[first : first + CHUNK, None]
            for strip in self.strips:
                total[strip, : strip.stop] += block[:, strip].T @ other[:, : strip.stop]
        lower = np.tril(total).astype(np.float64)
        return lower + np.tril(lower, -1).T

    def forms(self, S: Array, rough: bool = False) -> Array:
        """x_pᵀ S x_p, which is twice x_pᵀ L x_p for S's lower triangle L with half its diagonal."""
        x = self.values(rough)
        L = np.tril(S)
        L[np.diag_indices_from(L)] /= 2
        L = L.astype(x.dtype)
        found = np.zeros(len(x))
        for first in range(0, len(x), CHUNK):
            block = x[first : first + CHUNK]
            for strip in self.strips:
                product = block[:, : strip.stop] @ L[strip, : strip.stop].T
                found[first : first + CHUNK] += np.einsum("pd,pd->p", product, block[:, strip])
        return 2 * found

    def take(self, columns: Indices) -> HostHand:
        """A copy of some."""
        return HostHand(self.x[columns], None if self.single is None else self.single[columns])


@dataclass(frozen=True)
class Point:
    """The program at some weights: K, R and what depends on columns only through them."""

    weights: Array
    K: Array
    R: Array
    value: float
    ridge: float

    @classmethod
    def at(cls, moments: Array, weights: Array, C: Array, ridge: float) -> Point | None:
        """M = moments + ridge, rescaled where no ridge forbids it; None where M is singular."""
        factor, failed = dpotrf(moments + ridge * np.eye(len(moments)), lower=1)
        if failed:
            return None
        triangle, failed = dpotri(factor, lower=1)
        K = np.tril(triangle) + np.tril(triangle, -1).T
        total, trace = float(weights.sum()), float(np.vdot(K, C))
        if failed or not (total > 0 and trace > 0):
            return None
        s = np.sqrt(trace / total) if ridge == 0 else 1.0
        K /= s
        return cls(weights * s, K, K @ C @ K, total * s + trace / s, ridge)

    def gap(self, q: Array, w: Array) -> float:
        """Relative, over the columns that q is of, w being their weights."""
        squares = float(np.trace(self.R))
        mass, norms = float(w.sum()), float(w @ np.sqrt(q))
        rho = float(np.sqrt(q.max()))
        trace = self.value - mass
        if self.ridge > 0:
            rho = max(rho, 1.0)
        primal = 2 * norms + self.ridge * squares
        dual = 2 * trace / rho - self.ridge * squares / rho**2
        return max(primal - dual, 0.0) / primal


def descend(
    hand: Hand,
    x: Array,
    y: Array | None,
    ridge: float,
    w: Array,
    tol: float,
    watch: Callable[[float], bool] | None,
    warm: bool,
    deadline: float = np.inf,
) -> float:
    """Improve the weights w of the columns x (m, D) in place to a relative gap of tol; the gap that was reached.

    `hand` multiplies the same columns, wherever that is fast. `watch` is told the gap and may end it. At the deadline,
    by `time.perf_counter`, a sweep or a step is left unfinished.
    """
    m, D = x.shape
    C = np.eye(D) if y is None else y @ y.T

    def stop(gap: float) -> bool:
        return watch is not None and watch(gap)

    if not warm and m <= D * D:
        _begin(x, y, C, ridge, w, deadline)
    best = gap = np.inf
    stale = 0
    point = _evaluated(hand, w, C, ridge)
    goal = 0.0  # of the columns near 1; at 0 all columns are looked at
    near = np.arange(0)
    part = hand
    for _ in range(TURNS):
        if point is None:
            return np.inf
        w[:] = point.weights
        if goal == 0:
            q = hand.forms(point.R)
            gap = point.gap(q, w)
            if gap <= tol or stop(gap):
                return gap
            goal = max(0.9 * tol, SHARE * gap)
            near = _near(q, w)
            part, q = hand.take(near), q[near]
        else:
            q = part.forms(point.R, rough=bool(best > ROUGH))
            gap = point.gap(q, w[near])
            if gap <= goal:
                goal = 0.0
                continue
        stale = 0 if gap < 0.5 * best else stale + 1
        best = min(best, gap)
        if stale > PATIENCE or stop(gap):
            break
        if gap > FAR:
            columns = near[(w[near] > 0) | (q > 1)]
            w[columns] = _swept(x[columns], y, point.K, w[columns], deadline)
            point = _evaluated(hand, w, C, ridge)
        else:
            new = _near(q, w[near])
            if len(new) < 0.8 * len(near):
                near, q, part = near[new], q[new], part.take(new)
            residual = max(min(0.1, np.sqrt(gap)), 0.3 * goal / gap, TIGHTEST)
            point = _stepped(part, near, q, point, C, residual, gap, deadline)
    return gap


def _evaluated(hand: Hand, w: Array, C: Array, ridge: float) -> Point | None:
    held = np.flatnonzero(w)
    return Point.at(hand.take(held).moments(w[held]), w, C, ridge)


def _begin(x: Array, y: Array | None, C: Array, ridge: float, w: Array, deadline: float) -> None:
    """Weights from sweeps over a sample of the columns, spread evenly, in the place of weights on all of them."""
    m, D = x.shape
    sample = np.flatnonzero(np.arange(m) % max(m // (SAMPLE * D), 1) == 0)
    point = Point.at(HostHand(x[sample]).moments(w[sample]), w[sample], C, ridge)
    if point is not None:
        w[:] = 0.0
        w[sample] = _swept(x[sample], y, point.K, point.weights, deadline)


def _near(q: Array, w: Array) -> Indices:
    """The columns with weight, and those whose √q is near 1 compared with the largest."""
    excess = max(float(np.sqrt(q.max())) - 1, 1e-9)
    held = np.asarray(w > 0)
    most = int(CROWD * np.count_nonzero(held | (q > 1)))
    bar = max(1 - AROUND * excess, 0.0) ** 2
    if most < len(q):
        bar = max(bar, min(float(np.partition(q, len(q) - most)[len(q) - most]), 1.0))
    return np.flatnonzero(held | (q >= bar))


def _swept(x: Array, y: Array | None, inverse: Array, weights: Array, deadline: float) -> Array:
    """The weights after a few sweeps of exact coordinate steps, BLOCK columns at a time.

    Within a block the products of its columns with K, and of those with each other, follow by Sherman and Morrison.
    """
    single = x.astype(np.float32)
    K: Single = inverse.astype(np.float32)
    right = None if y is None else y.astype(np.float32)
    w = weights.copy()
    columns = np.arange(len(w))
    for _ in range(SWEEPS):
        for first in range(0, len(columns), BLOCK):
            if time.perf_counter() > deadline:
                return w
            some = columns[first : first + BLOCK]
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
    part: Hand, near: Indices, q: Array, point: Point, C: Array, residual: float, gap: float, deadline: float
) -> Point | None:
    """A step of Newton's method on the columns near 1, cut off at zero, and halved until f falls."""
    w = point.weights
    free = np.flatnonzero((w[near] > 0) | (q > 1))
    if len(free) < len(near):
        part = part.take(free)
    v, q = w[near[free]], q[free]
    K, R = point.K.astype(np.float32), point.R.astype(np.float32)
    leverage = part.forms(point.K, rough=True)
    mean = float(v.sum()) / max(np.count_nonzero(v), 1)
    extra = gap * float(np.median(2 * leverage)) * mean / np.maximum(v, 0.1 * mean)

    def curvature(u: Array) -> Array:
        S = K @ part.moments(u, rough=True).astype(np.float32) @ R
        return part.forms(S + S.T, rough=True) + extra * u

    step = _conjugate_gradients(curvature, q - 1, 2 * leverage * q + extra, residual, deadline)
    t = 1.0
    while t > 1e-3 and time.perf_counter() <= deadline:
        trial = np.zeros_like(w)
        trial[near[free]] = np.maximum(v + t * step, 0.0)
        new = Point.at(part.moments(trial[near[free]]), trial, C, point.ridge)
        if new is not None and new.value <= point.value * (1 + 1e-13):
            return new
        t /= 2
    return point


def _conjugate_gradients(
    curvature: Callable[[Array], Array], right: Array, diagonal: Array, residual: float, deadline: float
) -> Array:
    """About H⁻¹ right, preconditioned by H's diagonal."""
    x = np.zeros_like(right)
    r = right.copy()
    z = r / diagonal
    p = z
    rz = float(r @ z)
    goal = residual**2 * rz
    for _ in range(CONJUGATE):
        if time.perf_counter() > deadline:
            break
        Hp = curvature(p)
        bent = float(p @ Hp)
        if not bent > 0:
            break
        x += rz / bent * p
        r -= rz / bent * Hp
        z = r / diagonal
        new = float(r @ z)
        if new <= goal:
            break
        p = z + new / rz * p
        rz = new
    return x
