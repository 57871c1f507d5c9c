"""Losses of subsets at many points, as one number, and bounds of it. The GIL is released."""

import numpy as np
from numpy.typing import NDArray

class JointKernel:
    """The columns (n, P, D) of one problem at n points; one thread at a time.

    The losses of the points become one number: the mean of their logarithms if `geometric`, or the sum of those that
    remain after the `left_out` highest, divided by their number if `mean`. All losses and limits are logarithms.
    The methods that `SwapKernel` has are the same here.
    """

    def __init__(
        self,
        columns: NDArray[np.float64],
        c: float,
        geometric: bool,
        left_out: int,
        mean: bool,
        deadline: float = ...,
    ) -> None: ...
    @property
    def late(self) -> bool: ...
    def set_floors(self, floors: NDArray[np.float64]) -> None:
        """The least loss of any subset at each point by itself, for `bounds`."""

    def bounds(
        self, subset: NDArray[np.int32], candidates: NDArray[np.int32], most: int, limit: float
    ) -> NDArray[np.float64]:
        """For each candidate: no `most` columns with the subset and it have a log-loss below this; infinite above the
        limit. With `most` − 1 columns in the subset it is the loss, less what rounding may have added to it.
        """

    def loss(self, subset: NDArray[np.int32]) -> float:
        """The log-loss of a subset; infinite when it is dependent at a point that counts."""

    def linearize(self, subset: NDArray[np.int32], present_loss: float) -> None:
        """Visit the points by their losses for this subset from now on, the highest first."""

    def replace(
        self, subset: NDArray[np.int32], position: int, present_loss: float, log_limit: float
    ) -> tuple[int, float]:
        """The best other column in one place of the subset, and the log-loss; −1 where none is below the limit."""

    def below(
        self, subset: NDArray[np.int32], position: int, present_loss: float, log_limit: float
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """All other columns that in that place lead to less than `log_limit`, and the log-losses they lead to."""

    def add(self, subset: NDArray[np.int32], log_limit: float, besides: int) -> tuple[int, float]:
        """The column that, added to the subset, gives the least log-loss; not `besides`."""
