"""Losses of subsets that differ in one column, as logarithms so that nothing overflows at any exponent.

`columns` is (P, D), one candidate in each row. Subsets are arrays of row numbers. The GIL is released.
"""

import numpy as np
from numpy.typing import NDArray

def log_loss_of(columns: NDArray[np.float64], subset: NDArray[np.int32], c: float) -> float:
    """Logarithm of the loss of one subset of at most D columns; infinite if they are dependent."""

class SwapKernel:
    """The columns of one problem, with the memory for swaps. Only one thread may use an instance at a time.

    Subsets have at most `most` columns (0 means D). The deadline is a time of `time.perf_counter`; past it, the methods
    return what they have found so far, and `late` is True.
    """

    def __init__(self, columns: NDArray[np.float64], c: float, deadline: float = ..., most: int = 0) -> None: ...
    @property
    def late(self) -> bool: ...
    def loss(self, subset: NDArray[np.int32]) -> float:
        """The log-loss of a subset, as `log_loss_of`."""

    def skip(self, columns: NDArray[np.bool_]) -> None:
        """Do not try these columns (P,) in the next call of `add`, `replace` or `below`."""

    def prepare(self, subset: NDArray[np.int32]) -> None:
        """Bound all swaps into this subset at once, for `replace` and `below`, which must be given the same subset."""

    def add(self, subset: NDArray[np.int32], log_limit: float) -> tuple[int, float]:
        """The column with the least log-loss when added to the subset, and that log-loss.

        Ties go to the lowest index. Returns −1 and `log_limit` if no column is below `log_limit`.
        """

    def replace(self, subset: NDArray[np.int32], position: int, log_limit: float) -> tuple[int, float]:
        """The best replacement at one position of the subset; returns as `add`."""

    def below(
        self, subset: NDArray[np.int32], position: int, log_limit: float
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """All replacements at one position with a log-loss below `log_limit`, and their log-losses."""
