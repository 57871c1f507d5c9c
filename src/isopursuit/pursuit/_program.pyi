import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

def start(x: Array) -> Array:
    """A mild start that uses every column: weights inversely proportional to length, falling off for short ones."""

def evaluate(
    x: Array, y: Array | None, ridge: float, w: Array
) -> tuple[Array, Array, Array, float, float, float] | None:
    """(inverse, q, leverage, primal, dual, value) of f at w over all columns of x, or None where M is singular."""

def largest_slope(x: Array, nu: Array) -> float:
    """The largest ‖νᵀx_p‖ over all columns of x, with a bound on its rounding; ν is (n, D, r)."""
