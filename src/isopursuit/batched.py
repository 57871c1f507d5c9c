"""Many independent problems at once, one for each matrix of a stack: on CPU threads, or on a GPU (extra `torch`).

A block of problems is normalized and handed to a solver, whose answers come with their certificates over all columns.
What is not within the tolerance then is finished, or refused by name, by `isometry_pursuit`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from isopursuit.errors import DataTypeError, InputError, ParameterError, ShapeError, optional
from isopursuit.matrix import LARGEST, as_deadline, as_exponent, left_until, namespace, on_host
from isopursuit.normalize import Normalization, log_lengths, normalize_stack
from isopursuit.pursuit import _sweep
from isopursuit.pursuit.programs import isometry_pursuit
from isopursuit.pursuit.settings import (
    KERNEL_ROUNDS,
    LARGEST_LOG_SCALE,
    REFINED_RESIDUAL,
    TIGHT,
    WELL_CONDITIONED,
)
from isopursuit.results import relative_gaps
from isopursuit.search.tree import thread_count
from isopursuit.threads import on_one_blas_thread

__all__ = ["BatchedProgress", "BatchedPursuit", "batched_pursuit"]

Array = NDArray[np.float64]

BLOCK = 256  # problems that a thread takes at a time
ENTRIES = 200_000  # of them together, so that a block takes well below a second
AHEAD = 2  # blocks handed out for each thread, so that none waits and few are left to finish after an interrupt
SURE = 1e-3  # the share of the tolerance that solvers aim at: their last steps are quadratic, and show the support
REGULAR = 1e-9  # least eigenvalue of M, relative to the largest, that leaves the digits of a certificate alone
ROUNDING = 2 * float(np.finfo(np.float64).eps)  # of a product of two numbers, relative
CLOSEST = 1e-11  # the least gap they aim at


@dataclass(frozen=True)
class BatchedProgress:
    """Where a batched pursuit stands: elapsed time, problems done, of how many."""

    seconds: float
    done: int
    total: int


@dataclass(frozen=True)
class BatchedPursuit:
    """The solutions of many isometry pursuits, each with its certificate dual ≤ optimum ≤ primal.

    Numbers are of the caller's kind: NumPy arrays, or tensors on the device of X.

    Attributes
    ----------
    weights : (n, P)
        ‖β_p‖ of each problem's columns, exactly zero off the support; one of the solutions where there are many.
    primal, dual, gap : (n,)
        Bounds on each optimum over all columns, and (primal − dual) / primal.
    supports : (n, P) of bool
        The columns with weight.
    status : ndarray of str, shape (n,)
        "optimal": the gap asked for was reached. "stalled": rounding does not allow it. "stopped": by the
        callback or the time limit. "refused": the problem has no answer; its weights are zero, its bounds NaN and its
        gap infinite.
    refused : mapping
        The number of each refused problem, and why.
    """

    weights: Any
    primal: Any
    dual: Any
    gap: Any
    status: NDArray[np.str_]
    refused: Mapping[int, str]

    @property
    def supports(self) -> Any:
        """Which columns have weight, (n, P)."""
        return self.weights > 0

    def __len__(self) -> int:
        return len(self.status)

    def __str__(self) -> str:
        kinds, counts = np.unique(self.status, return_counts=True)
        told = ", ".join(f"{count} {kind}" for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True))
        return (
            f"{len(self)} problems of {self.weights.shape[1]} columns: {told}; largest gap {float(self.gap.max()):.1e}"
        )


@on_one_blas_thread
def batched_pursuit(
    X: Any,
    c: float = 1.0,
    *,
    normalization: Normalization = "symmetric",
    tol: float = 1e-8,
    device: str | None = None,
    workers: int | None = None,
    callback: Callable[[BatchedProgress], bool | None] | None = None,
    time_limit: float | None = None,
) -> BatchedPursuit:
    """Isometry pursuit of every matrix of a stack by itself.

    For one selection that the matrices share, pass them to `isometry_pursuit` instead.

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, D, P)
        n independent problems; columns are candidates. Arrays are solved on CPU threads, tensors by PyTorch where
        they are.
    c, normalization
        As in `isometry_pursuit`. A function of length is called on the CPU.
    tol : float
        The relative gap to reach in every problem.
    device : str, optional
        Where to solve, if not where X is: "cuda" takes an array's problems to the GPU and the answers back.
    workers : int, optional
        Number of threads, by default one for each processor; PyTorch has its own.
    callback : callable, optional
        Called with a `BatchedProgress` after each block of problems; return True to stop. The problems left then keep
        the weights that a solver starts from, with an honest gap.
    time_limit : float, optional
        Seconds after which to stop, as a callback does.

    Returns
    -------
    BatchedPursuit

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(1000, 3, 20))
    >>> X[7, 0, 3] = np.nan
    >>> found = batched_pursuit(X)
    >>> found.weights.shape, found.status[6:8].tolist(), bool(found.gap[6] <= 1e-8)
    ((1000, 20), ['optimal', 'refused'], True)
    >>> found.refused[7].partition(",")[0]
    'NonFiniteError: X has 1 entries that are NaN or infinite'
    """
    X = _as_stack(X)
    c = as_exponent(c)
    log_lengths(np.ones(1), c, normalization)  # refuses one that is not known
    if not isinstance(tol, float | int) or not 0 < tol < 1:
        raise ParameterError(f"tol={tol!r} must be a relative gap between 0 and 1, such as 1e-8.")
    deadline = as_deadline(time_limit)
    workers = thread_count(workers)
    on_threads = isinstance(X, np.ndarray) and device in (None, "cpu")
    engine = _Threads(X.shape, workers) if on_threads else _Torch(X, device)
    batch = _Batch(X, c, normalization, tol, engine, deadline)
    batch.run(callback)
    return BatchedPursuit(batch.weights, batch.primal, batch.dual, batch.gap, batch.status, batch.refused)


class _Engine(Protocol):
    """What solves a block of problems: how many at a time, on how many threads, and where."""

    size: int
    workers: int

    def take(self, part: Any) -> Any:
        """The block in float64, where this engine computes."""
        ...

    def solve(self, columns: Any, goal: float, stopped: bool) -> Any:
        """Weights (m, P) for normalized columns (m, D, P)."""
        ...

    def bring(self, found: Any) -> Any:
        """An answer as the caller's arrays can take it."""
        ...


class _Threads:
    """The compiled kernel, on threads of this process."""

    def __init__(self, shape: tuple[int, int, int], workers: int) -> None:
        n, D, P = shape
        self.size = max(1, min(BLOCK, -(-n // workers), ENTRIES // (D * P)))
        self.workers = workers

    def take(self, part: Array) -> Array:
        return np.asarray(part, dtype=np.float64)

    def solve(self, columns: Array, goal: float, stopped: bool) -> Array:
        weights = np.zeros((len(columns), columns.shape[2]))
        x = np.ascontiguousarray(columns.transpose(0, 2, 1))
        _sweep.solve_many(x, goal, 0 if stopped else KERNEL_ROUNDS, weights)
        return weights

    def bring(self, found: Array) -> Array:
        return found


class _Torch:
    """The interior point of stacked.py, on a device of PyTorch's; its own threads do the work."""

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
            raise ParameterError(f"device={str(self.device)!r} is not one to solve on. Use 'cpu' or 'cuda'.")
        self.size = stacked.capacity(X.shape[1], X.shape[2], self.device)
        self.workers = 1
        self.from_array = isinstance(X, np.ndarray)

    def take(self, part: Any) -> Any:
        if self.from_array:
            part = np.require(part, requirements="W")  # PyTorch warns of memory it must not write to
        return self.torch.as_tensor(part, dtype=self.torch.float64, device=self.device)

    def solve(self, columns: Any, goal: float, stopped: bool) -> Any:
        return self.stacked.solve(columns, goal, 0 if stopped else self.stacked.STEPS)

    def bring(self, found: Any) -> Any:
        return on_host(found) if self.from_array else found


class _Batch:
    """The caller's problems and the answers so far, in arrays of the caller's kind."""

    def __init__(
        self, X: Any, c: float, normalization: Normalization, tol: float, engine: _Engine, deadline: float
    ) -> None:
        self.X, self.c, self.normalization, self.tol, self.engine = X, c, normalization, tol, engine
        self.deadline = deadline
        n, _, P = X.shape
        xp = namespace(X)
        kind = {"dtype": xp.float64} if xp is np else {"dtype": xp.float64, "device": X.device}
        self.weights = xp.zeros((n, P), **kind)
        self.primal, self.dual, self.gap = (xp.zeros(n, **kind) for _ in range(3))
        self.status: NDArray[np.str_] = np.full(n, "optimal", dtype="<U7")
        self.refused: dict[int, str] = {}
        self.stopped = False

    def run(self, callback: Callable[[BatchedProgress], bool | None] | None) -> None:
        """Solve all blocks; between them, tell the callback and listen to the keyboard."""
        began, done, n = time.perf_counter(), 0, len(self.X)
        blocks = iter(range(0, n, self.engine.size))
        with ThreadPoolExecutor(self.engine.workers) as pool:
            pending = {pool.submit(self.solve, first) for first in islice(blocks, AHEAD * self.engine.workers)}
            while pending:
                finished, pending = wait(pending, return_when=FIRST_COMPLETED)
                for block in finished:
                    done += block.result()
                    if callback is not None and not self.stopped:
                        self.stopped = bool(callback(BatchedProgress(time.perf_counter() - began, done, n)))
                pending |= {pool.submit(self.solve, first) for first in islice(blocks, len(finished))}

    @on_one_blas_thread
    def solve(self, first: int) -> int:
        """Answer the block of problems that begins here; returns how many they are."""
        engine, stopped = self.engine, self.stopped or time.perf_counter() > self.deadline
        block = slice(first, first + engine.size)
        if self.deadline < np.inf and not stopped and self.X.shape[1] * self.X.shape[2] > ENTRIES:
            # large problems one by one, by the solver that can be stopped
            numbers = range(first, min(first + engine.size, len(self.X)))
            for i in numbers:
                self.finish(i)
            return len(numbers)
        X = engine.take(self.X[block])
        xp = namespace(X)
        usable = xp.amax(xp.abs(X), (1, 2)) < LARGEST
        X = xp.where(usable[:, None, None], X, 0.0)
        columns, log_scale = normalize_stack(X, self.c, self.normalization)
        weights = engine.solve(columns, max(SURE * self.tol, CLOSEST), stopped)
        found = _judged(columns, weights)
        loose = (found.weights > 0) & (found.q < 1 - TIGHT)
        if bool(loose.any()):  # rounding left weight on columns that no optimal solution uses
            found = found.replaced(_judged(columns, xp.where(loose, 0.0, found.weights)), self.tol)
            loose = (found.weights > 0) & (found.q < 1 - TIGHT)
        scale = xp.exp(-xp.clip(log_scale, -LARGEST_LOG_SCALE, LARGEST_LOG_SCALE))
        gap = relative_gaps(found.primal, found.dual)
        good = (gap <= self.tol) & found.regular & ~loose.any(1) & (xp.abs(log_scale) <= LARGEST_LOG_SCALE)
        answer = (found.weights * scale[:, None], found.primal * scale, found.dual * scale, gap)
        self.weights[block], self.primal[block], self.dual[block], self.gap[block] = map(engine.bring, answer)
        good, judged = on_host(good), on_host(gap < 1)
        if stopped:
            self.status[block][~good & judged] = "stopped"
            good |= judged
        for i in np.flatnonzero(~good).tolist():
            self.finish(first + i)
        return len(X)

    def finish(self, i: int) -> None:
        """Let the ordinary solver answer one problem, or say why there is no answer."""
        try:
            found = isometry_pursuit(
                on_host(self.X[i]),
                self.c,
                normalization=self.normalization,
                tol=self.tol,
                time_limit=left_until(self.deadline),
            )
        except InputError as error:
            self.refused[i] = f"{type(error).__name__}: {error}"
            self.status[i] = "refused"
            self.weights[i], self.primal[i], self.dual[i], self.gap[i] = 0.0, np.nan, np.nan, np.inf
            return
        proof = found.certificate
        self.weights[i] = namespace(self.weights).asarray(found.weights)
        self.primal[i], self.dual[i], self.gap[i] = proof.primal, proof.dual, proof.gap
        self.status[i] = found.status


@dataclass(frozen=True)
class _Judged:
    """Weights (m, P), made equal to ‖β_p‖, what they prove over all columns (m,), and q (m, P).

    `regular` says that X and M are so far from singular that rounding is no matter, and the ordinary solver would not
    refuse the problem.
    """

    weights: Any
    primal: Any
    dual: Any
    q: Any
    regular: Any

    def replaced(self, other: _Judged, tol: float) -> _Judged:
        """The other's answer for each problem that it solves."""
        xp = namespace(self.weights)
        better = other.regular & (relative_gaps(other.primal, other.dual) <= tol)
        pairs = [(getattr(other, one.name), getattr(self, one.name)) for one in fields(_Judged)]
        return _Judged(*(xp.where(better[:, None] if a.ndim == 2 else better, a, b) for a, b in pairs))


def _judged(columns: Any, weights: Any) -> _Judged:
    """Both bounds of every problem from its weights alone (pursuit/design.py has the formulas)."""
    xp = namespace(columns)
    D = columns.shape[1]
    eye = xp.eye(D) if xp is np else xp.eye(D, dtype=columns.dtype, device=columns.device)
    weights = xp.where((weights.sum(1) < LARGEST)[:, None], weights, 0.0)  # lengths near underflow leave them infinite
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
    # rounding: of ‖νᵀx_p‖, by which ν = M⁻¹ is divided, and what it costs to remove the residual
    lengths = xp.sqrt((columns * columns).sum(1))
    error = ROUNDING * D * xp.amax(lengths, 1) * xp.sqrt((inverse * inverse).sum((1, 2)))
    largest = xp.where(regular, xp.sqrt(xp.amax(q, 1)) + error, 1.0)
    dual = xp.einsum("naa->n", inverse) / largest
    primal = norms.sum(1) * (1 + missed)
    nan = xp.where(regular, 0.0, math.nan)
    return _Judged(norms, primal + nan, xp.minimum(dual, primal) + nan, q, regular)


def _as_stack(X: Any) -> Any:
    """A stack of problems (n, D, P) as an array or a tensor of real numbers, refused as a whole if it is none."""
    if type(X).__module__.partition(".")[0] == "torch":
        X = X.detach()
        real = not X.is_complex()
    else:
        try:
            X = np.asarray(X)
        except ValueError as error:
            raise ShapeError(f"X is not a stack of matrices: {error}. All must have the same shape (D, P).") from None
        real = X.dtype.kind in "biuf"
    if not real:
        raise DataTypeError(f"X is not a stack of real numbers: its dtype is {X.dtype}. Pass integers or floats.")
    if X.ndim != 3:
        raise ShapeError(
            f"X has {X.ndim} dimensions {tuple(X.shape)}; expected a stack (n, D, P) of n problems. "
            "For one matrix use isometry_pursuit."
        )
    n, D, P = X.shape
    if not (n and D and P):
        raise ShapeError(f"X is empty: it has shape {n} × {D} × {P}. Pass at least one problem, row and column.")
    if P < D:
        raise ShapeError(f"Each problem has {D} rows and only {P} columns, but needs {D} of them. Did you mean X.mT?")
    return X
