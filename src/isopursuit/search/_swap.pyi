"""Losses of subsets that differ in one column, as logarithms so that nothing overflows at any exponent.

`columns` is (P, D), one candidate in each row; subsets are arrays of row numbers. The GIL is released.
"""

import numpy as np
from numpy.typing import NDArray

def log_loss_of(columns: NDArray[np.float64], subset: NDArray[np.int32], c: float) -> float:
    """Logarithm of the loss of one subset of at most D columns; infinite when they are dependent."""

def best_swap(
    columns: NDArray[np.float64], subset: NDArray[np.int32], position: int, c: float, log_limit: float = ...
) -> tuple[int, float]:
    """The best column for one position of a full subset, and the log-loss it leads to.

    Returns −1 and `log_limit` when no column outside the subset leads to less than `log_limit`.
    """

def swap_descent(
    columns: NDArray[np.float64], subset: NDArray[np.int32], positions: NDArray[np.int32], c: float
) -> tuple[NDArray[np.int32], float]:
    """Replace columns of a full subset, each by the best for its position in turn, until none improves.

    Only the given positions change. Returns the subset in its order, and its log-loss.
    """

def extension_log_losses(columns: NDArray[np.float64], subset: NDArray[np.int32], c: float) -> NDArray[np.float64]:
    """Log-losses of the subset with each of the P columns added, for fewer than D columns; infinite for its own."""
