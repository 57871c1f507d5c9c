"""Many small programs at once, in PyTorch (extra `torch`), on the device of their columns.

This is the interior-point method of _newton.pyx for a stack of independent problems, with a smaller linear system. Let
R M Rᵀ = I, x̂ = R x and v = Rᵀx̂ = M⁻¹x, so q = ‖v‖². The curvature H = 2(XᵀM⁻¹X)∘(XᵀM⁻²X) of f has the entries
2 (x̂_pᵀx̂_q)(v_pᵀv_q), so H = ΨᵀΨ, where column p of Ψ is √2 x̂_p ⊗ v_p. A Newton step (H + 1/θ) dw = r then has D²
equations instead of P,

    H dw = Ψᵀ (I + Ψ diag(θ) Ψᵀ)⁻¹ Ψ θ r,        dw = θ (r − H dw),

and consists of a dozen batched products. A step never waits for the device. Every few steps the problems that are done
are removed from the stack.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from isopursuit.results import relative_gaps

STEPS = 30  # most interior-point steps; problems that need more go to the ordinary solver (guess)
BETWEEN = 3  # steps between two checks of which problems are done (guess)
FLOOR = 0.1  # least gap from the barrier alone, as a share of the target gap (guess)
HEADROOM = 1.1  # 1/q for the largest q at the start (guess)
LIGHTEST = 0.05  # the least weight at the start, as a share of their mean (guess)
WORTH = 10  # weights with exact zeros are preferred up to this multiple of the target gap (guess)
POLISHES = 5  # Newton steps on the support (guess)
LOOSE = 1e6  # θ of the columns with weight in those steps, relative to a typical weight (guess)
UNROLLED = {"cpu": 8, "cuda": 64}  # rows up to which unrolled factorizations over the stack are faster than LAPACK's
CACHE, MEMORY = 2**25, 2**33  # most bytes for the problems in progress on a CPU and on a GPU (guess)


@dataclass(frozen=True)
class Judged:
    """Bounds on each program's optimum from weights (n, P)."""

    weights: Tensor
    primal: Tensor
    dual: Tensor

    @property
    def gap(self) -> Tensor:
        """Relative to the primal value."""
        return relative_gaps(self.primal, self.dual)

    def replaced(self, other: Judged, gap: float) -> Judged:
        """The answers, with those of `other` for problems where its gap is not larger, or at most `gap`."""
        better = other.gap <= self.gap.clamp_min(gap)
        pairs = [(getattr(other, field.name), getattr(self, field.name)) for field in fields(Judged)]
        return Judged(*(torch.where(better[:, None] if a.ndim == 2 else better, a, b) for a, b in pairs))


def capacity(D: int, P: int, device: torch.device) -> int:
    """How many problems of this size are best solved together."""
    each = 8 * (2 * D**2 * P + (8 * D + 20) * P + 4 * D**4)
    room = CACHE if device.type == "cpu" else min(MEMORY, torch.cuda.mem_get_info(device)[0] // 2)
    return max(1, room // each)


def solve(x: Tensor, goal: float, steps: int = STEPS) -> Tensor:
    """Weights for each problem of x (n, D, P); zero if M is singular.

    The interior-point method stops at a gap of `goal`; polishing continues from there to rounding.
    """
    stack = _Stack.start(x)
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
    best = _Point(x, weights).judged()
    typical = weights.square().sum(1, keepdim=True) / weights.sum(1, keepdim=True)
    heavy = torch.where(weights > typical * slack, weights, 0.0)
    for sparse in (heavy, _polished(x, heavy, typical)):
        best = best.replaced(_Point(x, sparse).judged(), WORTH * goal)
    return best.weights.nan_to_num(0.0)


class _Stack:
    """Problems in progress: columns x (n, D, P), weights w and slacks s (n, P), and which of them are not done (n,)."""

    def __init__(self, x: Tensor, w: Tensor, s: Tensor, live: Tensor) -> None:
        self.x, self.w, self.s, self.live = x, w, s, live

    @classmethod
    def start(cls, x: Tensor) -> _Stack:
        """A strictly feasible start: the kernel's weights, one multiplicative update, then q < 1 by scaling."""
        length = x.square().sum(1).sqrt()
        longest = length.amax(1, keepdim=True)
        w = torch.minimum(longest / length, 100 * length / longest).nan_to_num(0.0)
        w = w * _Point(x, w).q.sqrt()
        w = torch.maximum(w, LIGHTEST * w.mean(1, keepdim=True))
        q = _Point(x, w).q
        squared = HEADROOM * q.amax(1, keepdim=True)
        live = torch.ones(len(x), dtype=torch.bool, device=x.device)
        return cls(x, w * squared.sqrt(), 1 - q / squared, live)

    def take(self, some: Tensor) -> _Stack:
        return _Stack(self.x[some], self.w[some], self.s[some], self.live[some])

    def step(self, goal: float) -> None:
        """Mehrotra's predictor and corrector on w s = target, s = 1 − q(w), for every live problem."""
        w, s = self.w, self.s
        point = _Point(self.x, w)
        self.live = self.live & (point.gap > goal)
        root = (w / s).sqrt()
        system = _System(point, root)
        r_s = 1 - point.q - s
        mu = (w * s).mean(1, keepdim=True)

        def direction(r_c: Tensor) -> tuple[Tensor, Tensor]:
            # s dw + w ds = r_c and ds = r_s + H dw
            ds = r_s + system.pull(root * (r_c / w - r_s)) / root
            return (r_c - w * ds) / s, ds

        dw, ds = direction(-w * s)
        ahead = ((w + _longest(w, dw) * dw) * (s + _longest(s, ds) * ds)).mean(1, keepdim=True)
        least = FLOOR * goal / w.shape[1] * point.primal[:, None]
        target = torch.maximum((ahead / mu).pow(3).clamp_max(1.0) * mu, least)
        dw, ds = direction(target - w * s - dw * ds)
        reach = 1 - point.gap.clamp(0.0, 0.1)[:, None]
        t_w, t_s = (torch.where(t < 1, reach * t, 1.0) for t in (_longest(w, dw), _longest(s, ds)))
        live = self.live[:, None]
        self.w, self.s = torch.where(live, w + t_w * dw, w), torch.where(live, s + t_s * ds, s)


def _polished(x: Tensor, w: Tensor, typical: Tensor) -> Tensor:
    """Newton's method on q = 1 for the columns with weight; weights that would become negative are set to 0."""
    for _ in range(POLISHES):
        root = torch.where(w > 0, (LOOSE * typical).sqrt(), 0.0)
        point = _Point(x, w)
        r = root * (point.q - 1)
        w = (w + root * (r - _System(point, root).pull(r))).clamp_min(0.0)
    return w


class _Point:
    """Weights w (n, P) of the problems x, with M⁻¹, q and the bounds that follow."""

    def __init__(self, x: Tensor, w: Tensor) -> None:
        self.x, self.w = x, w
        identity = torch.eye(x.shape[1], dtype=x.dtype, device=x.device).expand(len(x), -1, -1)
        R = _Cholesky((x * w[:, None]) @ x.mT, lost=torch.nan).forward(identity)
        self.white = R @ x
        self.v = R.mT @ self.white
        self.q = self.v.square().sum(1)
        self.trace = R.square().sum((1, 2))  # of M⁻¹ = RᵀR
        # B = W Xᵀ M⁻¹ is feasible, M⁻¹ / max √q is dual feasible
        self.primal = (w * self.q.sqrt()).sum(1)
        self.dual = self.trace / self.q.amax(1).sqrt()
        self.gap: Tensor = relative_gaps(self.primal, self.dual)

    def judged(self) -> Judged:
        """The certificate, at weights rescaled to Σw = tr M⁻¹."""
        weights = self.w * (self.trace / self.w.sum(1)).sqrt()[:, None]
        return Judged(weights, self.primal, self.dual)


class _System:
    """Newton's equations (H + 1/θ) dw = r at a point; `root` is √θ."""

    def __init__(self, point: _Point, root: Tensor) -> None:
        left = (2**0.5 * root)[:, None] * point.white
        self.psi = (left[:, :, None] * point.v[:, None]).flatten(1, 2)  # Ψ diag(root)
        S = torch.bmm(self.psi, self.psi.mT)
        S.diagonal(dim1=1, dim2=2).add_(1.0)
        self.factor = _Cholesky(S, lost=0.0)

    def pull(self, r: Tensor) -> Tensor:
        """√θ H dw, where dw solves the equations for the right-hand side r / √θ."""
        solved = self.factor.backward(self.factor.forward(torch.bmm(self.psi, r[:, :, None])))
        return torch.bmm(solved.mT, self.psi)[:, 0]


class _Cholesky:
    """A = L Lᵀ for a stack of matrices (n, m, m), and solves with L.

    `lost` replaces 1/L_kk if rounding made the pivot zero or negative: NaN invalidates the answer, and 0 omits that
    direction.
    """

    def __init__(self, A: Tensor, lost: float) -> None:
        self.unrolled = A.shape[1] <= UNROLLED[A.device.type]
        if not self.unrolled:
            self.L = torch.linalg.cholesky_ex(A)[0]
            return
        L = _stack_last(A)
        least = 1e-15 * L.diagonal().mT
        self.scale = torch.empty_like(least)
        for k in range(len(L)):
            self.scale[k] = torch.where(L[k, k] > least[k], L[k, k].rsqrt(), lost)
            below = L[k + 1 :, k].mul_(self.scale[k])
            L[k + 1 :, k + 1 :].addcmul_(below[:, None], below, value=-1)
        self.L = L

    def forward(self, b: Tensor) -> Tensor:
        """L⁻¹ b, b (n, m, c)."""
        if not self.unrolled:
            return torch.linalg.solve_triangular(self.L, b, upper=False)  # pyright: ignore[reportUnknownVariableType]
        b = _stack_last(b)
        for k in range(len(b)):
            b[k].mul_(self.scale[k])
            b[k + 1 :].addcmul_(self.L[k + 1 :, k, None], b[k], value=-1)
        return b.permute(2, 0, 1).contiguous()

    def backward(self, b: Tensor) -> Tensor:
        """L⁻ᵀ b, b (n, m, c)."""
        if not self.unrolled:
            return torch.linalg.solve_triangular(self.L.mT, b, upper=True)  # pyright: ignore[reportUnknownVariableType]
        b = _stack_last(b)
        for k in reversed(range(len(b))):
            b[k].mul_(self.scale[k])
            b[:k].addcmul_(self.L[k, :k, None], b[k], value=-1)
        return b.permute(2, 0, 1).contiguous()


def _stack_last(A: Tensor) -> Tensor:
    """A copy (·, ·, n) of a stack (n, ·, ·), so that unrolled operations run along the stack."""
    return A.permute(1, 2, 0).clone(memory_format=torch.contiguous_format)


def _longest(x: Tensor, dx: Tensor) -> Tensor:
    """The largest t ≤ 1 with x + t dx ≥ 0, for each problem."""
    return 1 / (-dx / x).amax(1, keepdim=True).clamp_min(1.0)
