from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

def solve(
    x: Array,
    y: Array | None,
    ridge: float,
    w: Array,
    tol: float,
    rounds: int,
    watch: Callable[[float], bool] | None = None,
) -> float:
    """Improve the weights w in place; return the gap.

    `watch(gap)` is called between rounds and between steps of the interior-point method. It stops the solver by
    returning True. An exception that it raises is stored in `watch.error`.
    """

def steps_within(k: Array, q: Array, w: Array) -> tuple[Array, Array]:
    """Exact coordinate steps on a few columns in turn, from k = XᵀM⁻¹X and q = XᵀM⁻¹YYᵀM⁻¹X, both overwritten.

    Changes w in place; returns (C, t) such that M⁻¹ becomes M⁻¹ − Σ t_j v_j v_jᵀ with v = C XᵀM⁻¹, row by row.
    """
