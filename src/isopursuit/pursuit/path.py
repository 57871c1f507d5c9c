"""The lasso path: a sequence of penalties, each solved from the previous solution."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from isopursuit._core.threads import on_one_blas_thread
from isopursuit._core.types import Array, Label
from isopursuit.data._matrix import LARGEST, Matrix, as_points
from isopursuit.errors import ParameterError
from isopursuit.pursuit.inputs import Callback, Goal, as_options, as_targets
from isopursuit.pursuit.problem import Problem
from isopursuit.results import Pursuit


@on_one_blas_thread
def lasso_path(
    X: Any,
    Y: Any = None,
    *,
    penalties: Sequence[float] | int = 20,
    smallest: float = 1e-3,
    tol: float = 1e-8,
    labels: Sequence[Label] | None = None,
    callback: Callback | None = None,
    time_limit: float | None = None,
) -> tuple[Pursuit, ...]:
    """The multitask lasso ½‖Y − Xβ‖² + λ Σ‖β_p‖ for decreasing λ, each solved from the previous solution.

    Parameters
    ----------
    X, Y, tol, labels, callback
        As in `basis_pursuit`. Pass `symmetric_normalize(X, c)` for the lasso variant of isometry pursuit.
    penalties : sequence of float, or int
        The values of λ, or their number. With a number, λ falls geometrically from the least value at which no column
        is picked to `smallest` times that.
    time_limit : float, optional
        Seconds after which the path ends early.

    Returns
    -------
    tuple of Pursuit
        One for each λ, largest first, until time runs out; `penalty` has λ. The support goes from empty to that of
        basis pursuit.

    Examples
    --------
    >>> import numpy as np
    >>> path = lasso_path(np.eye(2), penalties=[2.0, 0.5])
    >>> [len(found.support) for found in path]
    [0, 2]
    """
    options = as_options(tol, time_limit, callback)
    matrices, many = as_points(X, labels)
    targets = as_targets(Y, len(matrices), many, len(matrices[0].values))
    grid = _grid(penalties, smallest, matrices, targets)
    problem = Problem.of(matrices, many, targets, Goal(None, grid[0]))
    path: list[Pursuit] = []
    for penalty in grid:
        earlier = path[-1].weights if path and len(path[-1].support) else None
        found = problem.with_penalty(penalty).pursue(options, earlier)
        path.append(found)
        if found.status == "stopped" or options.watch.clock.expired:
            break
    return tuple(path)


def _grid(
    penalties: Sequence[float] | int, smallest: float, matrices: list[Matrix], targets: list[Array] | None
) -> list[float]:
    """The values of λ, largest first."""
    if isinstance(penalties, Integral):
        if penalties < 1 or not 0 < smallest < 1:
            raise ParameterError(f"Need penalties ≥ 1 and 0 < smallest < 1; got {penalties!r} and {smallest}.")
        products = np.stack(
            [m.values.T if targets is None else m.values.T @ targets[i] for i, m in enumerate(matrices)]
        )
        largest = float(np.sqrt(np.einsum("ipr,ipr->p", products, products).max()))
        grid = largest * np.geomspace(1.0, smallest, int(penalties))
    else:
        try:
            grid = np.sort(np.asarray(penalties, dtype=np.float64).reshape(-1))[::-1]
        except (TypeError, ValueError):
            raise ParameterError(f"penalties={penalties!r} must be positive numbers, or how many of them.") from None
    if not (len(grid) and (grid > 0).all() and (grid < LARGEST).all()):
        raise ParameterError("penalties must be positive numbers. For λ = 0 use basis_pursuit.")
    return grid.tolist()
