"""Solve many independent problems, one for each matrix of a stack, on CPU threads or on a GPU (extra `torch`).

Each block of problems is normalized and solved (stacks.py), and every answer gets a certificate over all columns.
`isometry_pursuit` then solves the problems that are not within the tolerance, or says why they have no answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.backend import namespace, on_host
from isopursuit._core.clock import Clock
from isopursuit._core.options import as_exponent
from isopursuit._core.threads import on_one_blas_thread, worker_count
from isopursuit.data.matrix import LARGEST
from isopursuit.errors import DataTypeError, InputError, ParameterError, ShapeError
from isopursuit.pursuit.normalize import Normalization, log_lengths, normalize_stack
from isopursuit.pursuit.programs import isometry_pursuit
from isopursuit.pursuit.settings import LARGEST_LOG_SCALE, TIGHT
from isopursuit.results import relative_gaps
from isopursuit.stacks import ENTRIES, Engine, ThreadEngine, TorchEngine

__all__ = ["BatchedProgress", "BatchedPursuit", "batched_pursuit"]

AHEAD = 2  # blocks submitted per thread: no thread waits, and few blocks remain after an interrupt (guess)
# solvers aim at this share of the tolerance: the last steps converge quadratically, so it costs about one step, and the
# support becomes clearer (guess)
SURE = 1e-3
CLOSEST = 1e-11  # least relative gap that they aim at; rounding allows about 1e-12 (guess)


@dataclass(frozen=True)
class BatchedProgress:
    """The state of a batched pursuit: elapsed seconds, finished problems, and all problems."""

    seconds: float
    done: int
    total: int


@dataclass(frozen=True)
class BatchedPursuit:
    """The solutions of many isometry pursuits, each with its certificate dual ≤ optimum ≤ primal.

    Arrays have the type of X: NumPy arrays, or tensors on the device of X.

    Attributes
    ----------
    weights : (n, P)
        ‖β_p‖ for the columns of each problem; exactly zero off the support. If a problem has many solutions, this is
        one of them.
    primal, dual, gap : (n,)
        Bounds on each optimum over all columns, and (primal − dual) / primal.
    supports : (n, P) of bool
        The columns with positive weight.
    status : ndarray of str, shape (n,)
        "optimal": the requested gap was reached. "stalled": rounding does not allow that gap. "stopped": the callback
        or the time limit ended the pursuit. "refused": the problem has no answer; its weights are zero, its bounds are
        NaN, and its gap is infinite.
    refused : mapping
        The number of each refused problem, and the reason.
    """

    weights: Any
    primal: Any
    dual: Any
    gap: Any
    status: NDArray[np.str_]
    refused: Mapping[int, str]

    @property
    def supports(self) -> Any:
        """Which columns have positive weight, (n, P)."""
        return self.weights > 0

    def __len__(self) -> int:
        return len(self.status)

    def __str__(self) -> str:
        kinds, counts = np.unique(self.status, return_counts=True)
        by_kind = ", ".join(f"{count} {kind}" for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True))
        columns, gap = self.weights.shape[1], float(self.gap.max())
        return f"{len(self)} problems of {columns} columns: {by_kind}; largest gap {gap:.1e}"


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
    """Isometry pursuit of every matrix of a stack, independently.

    For one selection that all matrices share, pass them to `isometry_pursuit` instead.

    Parameters
    ----------
    X : array_like or torch.Tensor, shape (n, D, P)
        n independent problems; columns are candidates. Arrays are solved on CPU threads, and tensors by PyTorch on
        their device.
    c, normalization
        As in `isometry_pursuit`. A function of length is called on the CPU.
    tol : float
        The relative gap to reach in every problem.
    device : str, optional
        Where to solve. Default: the device of X. "cuda" copies the problems of an array to the GPU, and the answers
        back.
    workers : int, optional
        Number of threads. Default: one per processor. PyTorch uses its own threads.
    callback : callable, optional
        Called with a `BatchedProgress` after each block of problems; return True to stop. The remaining problems then
        have the weights from which a solver starts, with a valid gap.
    time_limit : float, optional
        Seconds after which to stop. Default: None, no limit.

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
    log_lengths(np.ones(1), c, normalization)  # raises an error for an unknown normalization
    if not isinstance(tol, float | int) or not 0 < tol < 1:
        raise ParameterError(f"tol={tol!r} must be a relative gap between 0 and 1, such as 1e-8.")
    clock = Clock.of(time_limit)
    workers = worker_count(workers)
    on_threads = isinstance(X, np.ndarray) and device in (None, "cpu")
    engine = ThreadEngine(X.shape, workers) if on_threads else TorchEngine(X, device)
    batch = _Batch(X, c, normalization, tol, engine, clock)
    batch.run(callback)
    return BatchedPursuit(batch.weights, batch.primal, batch.dual, batch.gap, batch.status, batch.refused)


class _Batch:
    """The caller's problems and the answers so far, in arrays of the same type."""

    def __init__(
        self, X: Any, c: float, normalization: Normalization, tol: float, engine: Engine, clock: Clock
    ) -> None:
        self.X, self.c, self.normalization, self.tol, self.engine = X, c, normalization, tol, engine
        self.clock = clock
        n, _, P = X.shape
        xp = namespace(X)
        kind = {"dtype": xp.float64} if xp is np else {"dtype": xp.float64, "device": X.device}
        self.weights = xp.zeros((n, P), **kind)
        self.primal, self.dual, self.gap = (xp.zeros(n, **kind) for _ in range(3))
        self.status: NDArray[np.str_] = np.full(n, "optimal", dtype="<U7")
        self.refused: dict[int, str] = {}
        self.stopped = False

    def run(self, callback: Callable[[BatchedProgress], bool | None] | None) -> None:
        """Solve all blocks; between them, call the callback and handle Ctrl-C."""
        done, n = 0, len(self.X)
        blocks = iter(range(0, n, self.engine.size))
        with ThreadPoolExecutor(self.engine.workers) as pool:
            pending = {pool.submit(self.solve, first) for first in islice(blocks, AHEAD * self.engine.workers)}
            while pending:
                finished, pending = wait(pending, return_when=FIRST_COMPLETED)
                for block in finished:
                    done += block.result()
                    if callback is not None and not self.stopped:
                        self.stopped = bool(callback(BatchedProgress(self.clock.seconds, done, n)))
                pending |= {pool.submit(self.solve, first) for first in islice(blocks, len(finished))}

    @on_one_blas_thread
    def solve(self, first: int) -> int:
        """Solve the block of problems that starts here; returns their number."""
        engine, stopped = self.engine, self.stopped or self.clock.expired
        block = slice(first, first + engine.size)
        if self.clock.limit is not None and not stopped and self.X.shape[1] * self.X.shape[2] > ENTRIES:
            # solve large problems one by one, with the solver that can be stopped
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
        found = engine.judge(columns, weights)
        loose = (found.weights > 0) & (found.q < 1 - TIGHT)
        if bool(loose.any()):  # rounding gave weight to columns that no optimal solution uses
            found = found.replaced(engine.judge(columns, xp.where(loose, 0.0, found.weights)), self.tol)
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
        """Solve one problem with the ordinary solver, or record why it has no answer."""
        try:
            found = isometry_pursuit(
                on_host(self.X[i]),
                self.c,
                normalization=self.normalization,
                tol=self.tol,
                time_limit=self.clock.remaining_limit,
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


def _as_stack(X: Any) -> Any:
    """Check that X is a stack of problems (n, D, P): an array or a tensor of real numbers."""
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
