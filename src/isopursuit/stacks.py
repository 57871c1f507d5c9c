"""Solve a stack of problems, on CPU threads or with PyTorch, and compute the bounds that the weights prove."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np

from isopursuit._core.backend import namespace, on_host
from isopursuit._core.linalg import EPS
from isopursuit._core.types import Array
from isopursuit.data.matrix import LARGEST
from isopursuit.errors import ParameterError, optional
from isopursuit.pursuit import _program, _sweep
from isopursuit.pursuit.settings import KERNEL_ROUNDS, REFINED_RESIDUAL, WELL_CONDITIONED
from isopursuit.results import relative_gaps

BLOCK = 256  # problems that a thread takes at a time (guess)
ENTRIES = 200_000  # entries of all problems of a block, so that a block takes well below a second (guess)
# least eigenvalue of M, relative to the largest, for which rounding of M⁻¹ does not affect a certificate (guess)
REGULAR = 1e-9
ROUNDING = 2 * EPS  # relative rounding error of a product of two numbers (derived)


class Engine(Protocol):
    """A solver of blocks of `size` problems on `workers` threads."""

    size: int
    workers: int

    def take(self, part: Any) -> Any:
        """The block in float64, on the device of this engine."""
        ...

    def solve(self, columns: Any, goal: float, stopped: bool) -> Any:
        """Weights (m, P) for normalized columns (m, D, P)."""
        ...

    def judge(self, columns: Any, weights: Any) -> Judged:
        """The bounds that these weights prove."""
        ...

    def bring(self, found: Any) -> Any:
        """An answer as an array of the caller's type."""
        ...


class ThreadEngine:
    """The compiled kernel, on threads of this process."""

    def __init__(self, shape: tuple[int, int, int], workers: int) -> None:
        n, D, P = shape
        self.size = max(1, min(BLOCK, -(-n // workers), ENTRIES // (D * P)))
        self.workers = workers

    def take(self, part: Array) -> Array:
        """See `Engine`."""
        return np.asarray(part, dtype=np.float64)

    def solve(self, columns: Array, goal: float, stopped: bool) -> Array:
        """See `Engine`."""
        weights = np.zeros((len(columns), columns.shape[2]))
        _sweep.solve_many(_side_by_side(columns), goal, 0 if stopped else KERNEL_ROUNDS, weights)
        return weights

    def judge(self, columns: Array, weights: Array) -> Judged:
        """See `Engine`."""
        weights, q, bounds = weights.copy(), np.empty(weights.shape), np.empty((len(weights), 2))
        regular = np.empty(len(weights), dtype=np.uint8)
        _program.judge_many(_side_by_side(columns), weights, q, bounds, regular)
        return Judged(weights, bounds[:, 0], bounds[:, 1], q, regular.astype(bool))

    def bring(self, found: Array) -> Array:
        """See `Engine`."""
        return found


class TorchEngine:
    """The interior-point method of stacked.py on a PyTorch device, with PyTorch's threads."""

    def __init__(self, X: Any, device: str | None) -> None:
        torch = optional("torch", "torch", f"device={device!r}")
        from isopursuit.pursuit import stacked

        self.torch, self.stacked = torch, stacked
        try:
            self.device = torch.device(X.device if device is None else device)
            torch.empty(0, device=self.device)
        except (RuntimeError, AssertionError, TypeError) as error:
            reason = str(error).partition("\n")[0]
            raise ParameterError(f"PyTorch cannot use device={device!r}: {reason} Try 'cpu'.") from None
        if self.device.type not in stacked.UNROLLED:
            raise ParameterError(f"device={str(self.device)!r} is not supported. Use 'cpu' or 'cuda'.")
        self.size = stacked.capacity(X.shape[1], X.shape[2], self.device)
        self.workers = 1
        self.from_array = isinstance(X, np.ndarray)

    def take(self, part: Any) -> Any:
        """See `Engine`."""
        if self.from_array:
            part = np.require(part, requirements="W")  # PyTorch warns about read-only memory
        return self.torch.as_tensor(part, dtype=self.torch.float64, device=self.device)

    def solve(self, columns: Any, goal: float, stopped: bool) -> Any:
        """See `Engine`."""
        return self.stacked.solve(columns, goal, 0 if stopped else self.stacked.STEPS)

    def judge(self, columns: Any, weights: Any) -> Judged:
        """See `Engine`."""
        return judge(columns, weights)

    def bring(self, found: Any) -> Any:
        """See `Engine`."""
        return on_host(found) if self.from_array else found


@dataclass(frozen=True)
class Judged:
    """Weights (m, P), made equal to ‖β_p‖, what they prove over all columns (m,), and q (m, P).

    `regular` says that X and M are so far from singular that rounding does not matter, and that the ordinary solver
    would not refuse the problem.
    """

    weights: Any
    primal: Any
    dual: Any
    q: Any
    regular: Any

    def replaced(self, other: Judged, tol: float) -> Judged:
        """The answer of `other` for each problem that it solves."""
        xp = namespace(self.weights)
        better = other.regular & (relative_gaps(other.primal, other.dual) <= tol)
        pairs = [(getattr(other, one.name), getattr(self, one.name)) for one in fields(Judged)]
        return Judged(*(xp.where(better[:, None] if a.ndim == 2 else better, a, b) for a, b in pairs))


def _side_by_side(columns: Array) -> Array:
    """Columns (m, D, P) in the layout of the kernels, (m, P, D)."""
    return np.ascontiguousarray(columns.transpose(0, 2, 1))


def judge(columns: Any, weights: Any) -> Judged:
    """Both bounds of every problem, computed from its weights (pursuit/design.py has the formulas)."""
    xp = namespace(columns)
    D = columns.shape[1]
    eye = xp.eye(D) if xp is np else xp.eye(D, dtype=columns.dtype, device=columns.device)
    weights = xp.where((weights.sum(1) < LARGEST)[:, None], weights, 0.0)  # lengths near underflow make them infinite
    spread = xp.linalg.eigvalsh(columns @ columns.mT)
    M = (columns * weights[:, None]) @ columns.mT
    sizes = xp.linalg.eigvalsh(M)
    regular = (spread[:, 0] > WELL_CONDITIONED * spread[:, -1]) & (sizes[:, 0] > REGULAR * sizes[:, -1])
    inverse = xp.linalg.inv(xp.where(regular[:, None, None], M, eye))
    v = inverse @ columns
    q = (v * v).sum(1)
    norms = weights * xp.sqrt(q)
    off = (columns * weights[:, None]) @ v.mT - eye
    missed = xp.sqrt((off * off).sum((1, 2)))
    regular &= missed <= REFINED_RESIDUAL
    # rounding error of ‖νᵀx_p‖, by which ν = M⁻¹ is divided, and the cost of removing the residual
    lengths = xp.sqrt((columns * columns).sum(1))
    error = ROUNDING * D * xp.amax(lengths, 1) * xp.sqrt((inverse * inverse).sum((1, 2)))
    largest = xp.where(regular, xp.sqrt(xp.amax(q, 1)) + error, 1.0)
    dual = xp.einsum("naa->n", inverse) / largest
    primal = norms.sum(1) * (1 + missed)
    nan = xp.where(regular, 0.0, math.nan)
    return Judged(norms, primal + nan, xp.minimum(dual, primal) + nan, q, regular)
