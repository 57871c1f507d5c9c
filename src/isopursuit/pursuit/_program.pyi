import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

def evaluate(
    x: Array, y: Array | None, ridge: float, w: Array
) -> tuple[Array, Array, Array, float, float, float] | None:
    """(inverse, q, leverage, primal, dual, value) of f at w over all columns of x, or None if M is singular."""

def column_keys(values: Array, keys: NDArray[np.uint64], factor: int) -> int:
    """Add to `keys` a hash of the entries of each column; returns the factor for the rows that follow."""

def largest_slope(x: Array, nu: Array) -> float:
    """An upper bound on the largest ‖νᵀx_p‖ over all columns of x, with its rounding; ν is (n, D, r)."""
