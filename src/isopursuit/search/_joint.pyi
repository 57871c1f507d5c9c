"""The aggregate of a subset's losses at many points, and lower bounds on it. The GIL is released."""

import numpy as np
from numpy.typing import NDArray

class JointKernel:
    """The columns (n, P, D) of one problem at n points. Only one thread may use an instance at a time.

    The aggregate is the mean of the logarithms of the losses if `geometric`. Otherwise it is the sum of the losses
    without the `left_out` highest, divided by their number if `mean`. All losses and limits are logarithms. Methods
    with the names of `SwapKernel`'s do the same.
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
        """Set lower bounds on the loss of any subset at each single point, for `bounds`."""

    def bounds(
        self, subset: NDArray[np.int32], candidates: NDArray[np.int32], most: int, limit: float
    ) -> NDArray[np.float64]:
        """Lower bounds on the log-loss of `most` columns that contain the subset and each candidate.

        A bound above the limit is infinite. If the subset has `most` − 1 columns, the bound is the log-loss minus its
        possible rounding error.
        """

    def loss(self, subset: NDArray[np.int32]) -> float:
        """The log-loss of a subset; infinite if it is dependent at a point that is not left out."""

    def prepare(self, subset: NDArray[np.int32]) -> None:
        """From now on visit the points in descending order of their losses for this subset."""

    def replace(self, subset: NDArray[np.int32], position: int, log_limit: float) -> tuple[int, float]:
        """The best replacement at one position of the subset, and its log-loss; −1 if none is below the limit."""

    def below(
        self, subset: NDArray[np.int32], position: int, log_limit: float
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """All replacements at one position with a log-loss below `log_limit`, and their log-losses."""

    def add(self, subset: NDArray[np.int32], log_limit: float) -> tuple[int, float]:
        """The column with the least log-loss when added to the subset, and that log-loss."""
