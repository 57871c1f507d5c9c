import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

def start(x: Array) -> Array:
    """A start with weight on every column: inversely proportional to length, and smaller for short columns."""

def evaluate(
    x: Array, y: Array | None, ridge: float, w: Array
) -> tuple[Array, Array, Array, float, float, float] | None:
    """(inverse, q, leverage, primal, dual, value) of f at w over all columns of x, or None if M is singular."""

def measure(x: Array, y: Array | None, inverse: Array, q: Array, leverage: Array) -> None:
    """Write q and leverage of every column of x, from M⁻¹ (n, D, D)."""

def column_keys(values: Array, keys: NDArray[np.uint64], factor: int) -> int:
    """Add to `keys` a hash of the entries of each column; returns the factor for the rows that follow."""

def certify(
    x: Array, inverse: Array, w: Array, support: NDArray[np.intp], B: Array | None = None
) -> tuple[Array, Array, float, float, Array]:
    """The primal side of the certificate for the identity, from M⁻¹ (n, D, D): (B, norms, missed, rounding, left).

    B (n, |S|, D) is w_p M⁻¹ x_p on the support, `norms` is ‖B_p‖, and `missed` is ‖I − X B‖. `rounding` bounds the
    rounding error of X B: that of a sum of |S| products is |S| eps / 2 times the sum of their sizes, and that of a
    coefficient is eps. `left` is I − X B at the last point. If B is given, it is overwritten.
    """

def judge_many(x: Array, w: Array, q: Array, bounds: Array, regular: NDArray[np.uint8]) -> None:
    """Bounds from weights w (n, m) for n programs x (n, m, D) of the identity.

    Writes q of every column, (primal, dual) of each program over all columns, and whether it is so well conditioned
    that rounding does not matter; w becomes ‖β_p‖.
    """

def largest_slope(x: Array, nu: Array) -> float:
    """The largest ‖νᵀx_p‖ over all columns of x, with a bound on its rounding; ν is (n, D, r)."""
