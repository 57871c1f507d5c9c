import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

def start(x: Array) -> Array:
    """A mild start that uses every column: weights inversely proportional to length, falling off for short ones."""

def evaluate(
    x: Array, y: Array | None, ridge: float, w: Array
) -> tuple[Array, Array, Array, float, float, float] | None:
    """(inverse, q, leverage, primal, dual, value) of f at w over all columns of x, or None where M is singular."""

def measure(x: Array, y: Array | None, inverse: Array, q: Array, leverage: Array) -> None:
    """Write q and leverage of every column of x, from M⁻¹ (n, D, D)."""

def column_keys(values: Array, keys: NDArray[np.uint64], factor: int) -> int:
    """Add to `keys` a hash of the entries of each column; returns the factor for the rows that follow."""

def certify(
    x: Array, inverse: Array, w: Array, support: NDArray[np.intp], B: Array | None = None
) -> tuple[Array, Array, float, float, Array]:
    """What w proves about the program of the identity, from M⁻¹ (n, D, D): (B, norms, missed, rounding, left).

    B (n, |S|, D) is w_p M⁻¹ x_p on the support, `norms` ‖B_p‖, `missed` ‖I − X B‖, and `rounding` bounds the rounding
    of X B: a sum of |S| products is known to |S| eps / 2 of their sizes, and each coefficient to eps. `left` is the
    last point's I − X B. B is written where it is given.
    """

def judge_many(x: Array, w: Array, q: Array, bounds: Array, regular: NDArray[np.uint8]) -> None:
    """What weights w (n, m) prove about n programs x (n, m, D) of the identity.

    Writes q of every column, (primal, dual) of each program over all columns, and whether it is so regular that
    rounding does not matter; w becomes ‖β_p‖.
    """

def largest_slope(x: Array, nu: Array) -> float:
    """The largest ‖νᵀx_p‖ over all columns of x, with a bound on its rounding; ν is (n, D, r)."""
