"""Many small programs at once, in PyTorch (extra `torch`), on whatever device their columns are.

This is the interior point of _newton.pyx for a stack of independent problems. Write φ_p for the d = D(D+1)/2 distinct
entries of x_p x_pᵀ (off the diagonal times √2, so that inner products are traces), Φ for the matrix of these columns,
N = M⁻¹, and L(S) for the matrix of Z ↦ SZ + ZS on such entries. Then M = Φw, q = Φᵀ(N²), dN = −N dM N, dq = Φᵀ L(N) dN,
and a Newton step (H + 1/θ) dw = r with the P × P curvature H = 2(XᵀNX)∘(XᵀN²X) takes d equations only:

    (L(M) + L(N) Φ diag(θ) Φᵀ L(N)) z = L(N) Φ(θ r),        H dw = Φᵀ L(N) z,        dw = θ (r − H dw).

A step is thus a dozen batched products. Nothing in it waits for the device; every few steps the problems that are done
drop out.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache

import torch
from torch import Tensor

STEPS = 30  # of the interior point; what needs more is left to the ordinary solver
BETWEEN = 3  # steps between two looks at which problems are done
FLOOR = 0.1  # the share of the gap aimed at that the barrier alone may leave
HEADROOM = 1.1  # 1/q for the largest q at the start
LIGHTEST = 0.05  # the least weight at the start, as a share of their mean
WORTH = 10  # how far above the gap aimed at weights with exact zeros may be
POLISHES = 5  # Newton steps on the support
LOOSE = 1e6  # θ of the columns with weight in those, relative to a typical weight
UNROLLED = 64  # rows up to which factorizations are unrolled over the stack; LAPACK's batches win beyond
CACHE, MEMORY = 2**25, 2**33  # bytes that problems under way may take on a CPU, and at most on a GPU


@dataclass(frozen=True)
class Judged:
    """What weights (n, P) prove of each program's f/2, and how exactly their coefficients meet the constraint."""

    weights: Tensor
    primal: Tensor
    dual: Tensor
    residual: Tensor

    @property
    def gap(self) -> Tensor:
        """Relative to the primal value."""
        return (self.primal - self.dual).clamp_min(0.0) / self.primal

    def replaced(self, other: Judged, gap: float) -> Judged:
        """Each problem's answer from `other` where its gap is no larger, or at most this."""
        better = other.gap <= self.gap.clamp_min(gap)
        pairs = [(getattr(other, field.name), getattr(self, field.name)) for field in fields(Judged)]
        return Judged(*(torch.where(better[:, None] if a.ndim == 2 else better, a, b) for a, b in pairs))


def judge(x: Tensor, weights: Tensor) -> Judged:
    """The certificate of design.py for every problem, at weights rescaled to Σw = tr N."""
    M = (x * weights[:, None]) @ x.mT
    N = _inverse(M)
    off = M @ N - torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
    root = (N @ x).square().sum(1).sqrt()
    trace = N.diagonal(dim1=1, dim2=2).sum(1)
    # B = W Xᵀ N is feasible, N / max √q is dual feasible
    return Judged(
        weights * (trace / weights.sum(1)).sqrt()[:, None],
        (weights * root).sum(1),
        trace / root.amax(1),
        off.square().mean((1, 2)).mul(x.shape[1]).sqrt(),
    )


def capacity(D: int, P: int, device: torch.device) -> int:
    """How many problems of this size are best solved together."""
    d = D * (D + 1) // 2
    each = 8 * (3 * d * P + 20 * P + 8 * d * d)
    room = CACHE if device.type == "cpu" else min(MEMORY, torch.cuda.mem_get_info(device)[0] // 2)
    return max(1, room // each)


def solve(x: Tensor, goal: float, steps: int = STEPS) -> Judged:
    """Weights for each problem of x (n, D, P), judged over all columns; NaN where M is singular.

    A gap of `goal` is aimed at by the interior point, and polishing goes on from there to rounding.
    """
    whole = stack = _Stack.start(x)
    weights, slack = stack.w.clone(), stack.s.clone()
    place = torch.arange(len(x), device=x.device)
    for step in range(1, steps + 1):
        stack.step(goal)
        if step % BETWEEN == 0 or step == steps:
            weights[place], slack[place] = stack.w, stack.s
            live = stack.live.nonzero()[:, 0]
            if len(live) == 0:
                break
            if len(live) < len(place):
                place, stack = place[live], stack.take(live)
    best = judge(x, weights)
    typical = weights.square().sum(1, keepdim=True) / weights.sum(1, keepdim=True)
    heavy = torch.where(weights > typical * slack, weights, 0.0)
    for sparse in (heavy, whole.polished(heavy, typical)):
        best = best.replaced(judge(x, sparse), WORTH * goal)
    return best


class _Stack:
    """Problems under way: Φ (n, d, P), weights w and slacks s (n, P), and which problems are not done (n,)."""

    def __init__(self, entries: _Entries, phi: Tensor, w: Tensor, s: Tensor, live: Tensor) -> None:
        self.entries, self.phi, self.w, self.s, self.live = entries, phi, w, s, live

    @classmethod
    def start(cls, x: Tensor) -> _Stack:
        """A strictly feasible start: the kernel's weights, one multiplicative update, then q < 1 by scaling."""
        entries = _entries(x.shape[1], x.device)
        length = x.square().sum(1).sqrt()
        longest = length.amax(1, keepdim=True)
        w = torch.minimum(longest / length, 100 * length / longest).nan_to_num(0.0)
        phi = x[:, entries.rows] * x[:, entries.columns] * entries.root[:, None]
        live = torch.ones(len(x), dtype=torch.bool, device=x.device)
        w = w * _information(entries, phi, w)[2].sqrt()
        w = torch.maximum(w, LIGHTEST * w.mean(1, keepdim=True))
        q = _information(entries, phi, w)[2]
        squared = HEADROOM * q.amax(1, keepdim=True)
        return cls(entries, phi, w * squared.sqrt(), 1 - q / squared, live)

    def take(self, some: Tensor) -> _Stack:
        return _Stack(self.entries, self.phi[some], self.w[some], self.s[some], self.live[some])

    def step(self, goal: float) -> None:
        """Mehrotra's predictor and corrector on w s = target, s = 1 − q(w), for every live problem."""
        w, s = self.w, self.s
        system = _System(self.entries, self.phi, w, w / s)
        self.live = self.live & (system.gap > goal)
        r_s = 1 - system.q - s
        mu = (w * s).mean(1, keepdim=True)

        def direction(r_c: Tensor) -> tuple[Tensor, Tensor]:
            ds = r_s + system.curvature(r_c / w - r_s)
            return (r_c - w * ds) / s, ds

        dw, ds = direction(-w * s)
        ahead = ((w + _longest(w, dw) * dw) * (s + _longest(s, ds) * ds)).mean(1, keepdim=True)
        least = FLOOR * goal / w.shape[1] * system.primal[:, None]
        target = torch.maximum((ahead / mu).pow(3).clamp_max(1.0) * mu, least)
        dw, ds = direction(target - w * s - dw * ds)
        reach = 1 - system.gap.clamp(0.0, 0.1)[:, None]
        t_w, t_s = (torch.where(t < 1, reach * t, 1.0) for t in (_longest(w, dw), _longest(s, ds)))
        live = self.live[:, None]
        self.w, self.s = torch.where(live, w + t_w * dw, w), torch.where(live, s + t_s * ds, s)

    def polished(self, w: Tensor, typical: Tensor) -> Tensor:
        """Newton on q = 1 for the columns with weight; those that would fall below zero lose it."""
        for _ in range(POLISHES):
            theta = torch.where(w > 0, LOOSE * typical, 0.0)
            system = _System(self.entries, self.phi, w, theta)
            r = system.q - 1
            w = (w + theta * (r - system.curvature(r))).clamp_min(0.0)
        return w


class _System:
    """Newton's equations (H + 1/θ) dw = r at weights w, with q and the gap there."""

    def __init__(self, entries: _Entries, phi: Tensor, w: Tensor, theta: Tensor) -> None:
        m, N, self.q = _information(entries, phi, w)
        # B = W Xᵀ N is feasible, N / max √q is dual feasible
        self.primal = (w * self.q.sqrt()).sum(1)
        self.gap = 1 - N @ entries.identity / (self.q.amax(1).sqrt() * self.primal)
        self.phi, self.theta, self.L = phi, theta, entries.products(N)
        spread = torch.bmm(phi * theta[:, None], phi.mT)
        self.factor = _Cholesky(entries.products(m) + self.L @ spread @ self.L)

    def curvature(self, r: Tensor) -> Tensor:
        """H dw for the dw that solves the equations; dw itself is θ(r − H dw)."""
        right = self.L @ torch.bmm(self.phi, (self.theta * r)[:, :, None])
        change = self.L @ self.factor.solve(right[:, :, 0])[:, :, None]
        return torch.bmm(change.mT, self.phi)[:, 0]


def _information(entries: _Entries, phi: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The entries (n, d) of M and of N = M⁻¹, and q (n, P)."""
    m = torch.bmm(phi, w[:, :, None])[:, :, 0]
    N = _inverse(entries.matrix(m))
    return m, entries.vector(N), torch.bmm(entries.vector(N @ N)[:, None], phi)[:, 0]


@dataclass(frozen=True)
class _Entries:
    """The d distinct entries of symmetric D × D matrices: which they are, and how to get there and back."""

    rows: Tensor  # (d,)
    columns: Tensor  # (d,)
    root: Tensor  # (d,), 1 on the diagonal and √2 off it
    identity: Tensor  # (d,), the entries of I
    home: Tensor  # (D, D), where an entry of the matrix is found
    operators: Tensor  # (d, d²), the entries of S times this are L(S)

    def vector(self, S: Tensor) -> Tensor:
        return S[:, self.rows, self.columns] * self.root

    def matrix(self, v: Tensor) -> Tensor:
        return (v / self.root)[:, self.home]

    def products(self, v: Tensor) -> Tensor:
        """L(S)."""
        d = len(self.root)
        return (v @ self.operators).view(-1, d, d)


@lru_cache(maxsize=32)
def _entries(D: int, device: torch.device) -> _Entries:
    i, j = torch.triu_indices(D, D)
    identity = (i == j).double()
    root = (2 - identity).sqrt()
    k = torch.arange(len(i))
    home = torch.empty(D, D, dtype=torch.long)
    home[i, j] = home[j, i] = k
    basis = torch.zeros(len(i), D, D, dtype=torch.float64)
    basis[k, i, j] = basis[k, j, i] = 1 / root
    # the inner product of S E_l + E_l S with E_m, for S = E_k
    operators = 2 * torch.einsum("kab,lbc,mac->klm", basis, basis, basis).reshape(len(i), -1)
    return _Entries(*(part.to(device) for part in (i, j, root, identity, home, operators)))


class _Cholesky:
    """Factors of positive definite matrices K (n, d, d); a pivot lost to rounding takes its direction out of play."""

    def __init__(self, K: Tensor) -> None:
        d = K.shape[1]
        self.unrolled = d <= UNROLLED
        if not self.unrolled:
            self.factor = torch.linalg.cholesky_ex(K)[0]
            return
        A = K.permute(1, 2, 0).contiguous()  # the stack last: each operation below runs along it
        least = 1e-15 * A.diagonal().mT
        self.scale = torch.empty_like(least)  # 1 / the factor's diagonal
        for k in range(d):
            self.scale[k] = torch.where(A[k, k] > least[k], A[k, k].rsqrt(), 0.0)
            below = A[k + 1 :, k].mul_(self.scale[k])
            A[k + 1 :, k + 1 :].addcmul_(below[:, None], below[None], value=-1)
        self.factor = A

    def solve(self, right: Tensor) -> Tensor:
        """K⁻¹ times right (n, d)."""
        if not self.unrolled:
            return torch.cholesky_solve(right[:, :, None], self.factor)[:, :, 0]
        b = right.mT.contiguous()
        for k in range(len(b)):
            b[k] *= self.scale[k]
            b[k + 1 :].addcmul_(self.factor[k + 1 :, k], b[k], value=-1)
        for k in reversed(range(len(b))):
            b[k] *= self.scale[k]
            b[:k].addcmul_(self.factor[k, :k], b[k], value=-1)
        return b.mT


def _inverse(M: Tensor) -> Tensor:
    """M⁻¹ of positive definite matrices (n, D, D), by Gauss and Jordan; of singular ones, not finite."""
    if M.shape[1] > UNROLLED:
        return torch.linalg.inv_ex(M)[0]  # pyright: ignore[reportUnknownVariableType]
    A = M.permute(1, 2, 0).contiguous()
    for k in range(len(A)):
        pivot = A[k, k].reciprocal()
        column = A[:, k].clone()
        row = A[k] * pivot
        A.addcmul_(column[:, None], row[None], value=-1)
        A[:, k] = -column * pivot
        A[k] = row
        A[k, k] = pivot
    return A.permute(2, 0, 1).contiguous()


def _longest(x: Tensor, dx: Tensor) -> Tensor:
    """The largest t ≤ 1 with x + t dx ≥ 0, for each problem."""
    return 1 / (-dx / x).amax(1, keepdim=True).clamp_min(1.0)
