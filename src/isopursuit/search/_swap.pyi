"""Losses of subsets that differ in one column, as logarithms so that nothing overflows at any exponent.

`columns` is (P, D), one candidate in each row. Subsets are arrays of row numbers. The GIL is released.
"""

import numpy as np
from numpy.typing import NDArray

def log_loss_of(columns: NDArray[np.float64], subset: NDArray[np.int32], c: float) -> float:
    """Logarithm of the loss of one subset of at most D columns; infinite when they are dependent."""

def best_column(
    columns: NDArray[np.float64],
    others: NDArray[np.int32],
    c: float,
    log_limit: float = ...,
    besides: int = -1,
    deadline: float = ...,
) -> tuple[int, float]:
    """The column that, added to fewer than D others, gives the least log-loss, and that log-loss.

    Of equal columns the lowest index; at the deadline, by `time.perf_counter`, the best so far. Returns −1 and
    `log_limit` when no column but the others and `besides` leads to less than `log_limit`.
    """

class SwapKernel:
    """The columns of one problem with the memory that swaps among them need; one thread at a time.

    Subsets have at most `most` columns, D if that is 0.
    At the deadline, by `time.perf_counter`, the methods return what they have found so far, and `late` is True.
    """

    def __init__(self, columns: NDArray[np.float64], c: float, deadline: float = ..., most: int = 0) -> None: ...
    @property
    def late(self) -> bool: ...
    def loss(self, subset: NDArray[np.int32]) -> float:
        """As `log_loss_of`."""

    def linearize(self, subset: NDArray[np.int32], present_loss: float) -> None:
        """Compute the tangent of the loss at a subset, for `replace` and `below`."""

    def replace(
        self, subset: NDArray[np.int32], position: int, present_loss: float, log_limit: float
    ) -> tuple[int, float]:
        """The best other column in one place of the subset linearized last, as `best_column`."""

    def below(
        self, subset: NDArray[np.int32], position: int, present_loss: float, log_limit: float
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """All other columns that in that place lead to less than `log_limit`, and the log-losses they lead to."""

    def add(self, subset: NDArray[np.int32], log_limit: float, besides: int) -> tuple[int, float]:
        """As `best_column`."""
