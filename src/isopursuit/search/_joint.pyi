"""Losses, swaps and proofs at many points. The GIL is released."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

def table_of_h(c: float) -> NDArray[np.float64]:
    """The least values of h between neighbouring floats of 11 binary digits, from 2⁻⁶ to 2⁶."""

class JointKernel:
    """The columns (P, n, D) of one problem at n points. Only one thread may use an instance at a time. Entries of one
    column at one point are together in memory.

    The aggregate is the sum of the losses without the `left_out` highest, divided by their number if `mean`. All losses
    and limits are logarithms. Methods with the names of `SwapKernel`'s do the same.
    """

    def __init__(
        self, columns: NDArray[np.float64], c: float, left_out: int, mean: bool, deadline: float = ...
    ) -> None: ...
    @property
    def late(self) -> bool: ...
    @property
    def kappa(self) -> float:
        """The least ratio of the second derivative of h(eᵗ) to eᵗ."""

    def loss(self, subset: NDArray[np.int32]) -> float:
        """The log-loss of a subset; infinite if it is dependent at a point that is not left out."""

    def prepare(self, subset: NDArray[np.int32]) -> None:
        """Take the order of the points and the cap of their losses from this subset."""

    def total_limit(self, log_loss: float) -> float:
        """No subset with a total of shares of at least this has a log-loss below the given one."""

    def least_loss(self, total: float) -> float:
        """The least loss of a subset with this total."""

    def skip(self, columns: NDArray[np.bool_]) -> None:
        """Do not try these columns (P,) in the next call of `add`, `replace` or `below`."""

    def replace(self, subset: NDArray[np.int32], position: int, log_limit: float) -> tuple[int, float]:
        """The best replacement at one position of the subset, and its log-loss; −1 if none is below the limit."""

    def below(
        self, subset: NDArray[np.int32], position: int, log_limit: float
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """All replacements at one position with a log-loss below `log_limit`, and their log-losses."""

    def add(self, subset: NDArray[np.int32], log_limit: float) -> tuple[int, float]:
        """The column with the least log-loss when added to the subset, and that log-loss."""

class CliqueSearch:
    """The search of one thread for subsets of the included and `m` other columns of the kernel.

    `tables` are from `Rules.tables`. Totals and limits are those of the kernel (`JointKernel.total_limit`).
    """

    stop: bool
    @property
    def evaluations(self) -> int:
        """Number of subsets whose loss was computed."""

    @property
    def additive(self) -> bool:
        """Whether several columns raise a total by at least the sum of what each of them raises it by."""

    @property
    def first_total(self) -> float:
        """The total of the included columns."""

    def __init__(
        self,
        kernel: JointKernel,
        included: NDArray[np.int32],
        m: int,
        tables: tuple[NDArray[Any], ...] | None = None,
    ) -> None: ...
    def totals(self, first: NDArray[np.int32], columns: NDArray[np.int32], limit: float) -> NDArray[np.float64]:
        """Totals of the included and the first columns with each of these; infinite if not below the limit.

        After `stop` and after the deadline they are not computed, and infinite too.
        """

    def set_pairs(
        self,
        columns: NDArray[np.int32],
        pairs: NDArray[np.int32],
        ranks: NDArray[np.int32],
        capacity: int,
        rest: float,
    ) -> None:
        """Set the pairs (q, 2) of these s columns that can be in a better subset, in ascending order of their totals,
        and their ranks (s, s) in that order. No column is in more than `capacity` pairs. If three columns are chosen,
        the others add at least `rest`.
        """

    def run(self, first: int, last: int, log_limit: float) -> tuple[int, NDArray[np.int32] | None, float]:
        """Search the subsets whose pair of the highest rank is one of these. If m is 1, both columns of a pair are the
        same.

        Returns how many of the pairs are done (fewer after `stop` and after the deadline), the best subset below the
        limit, and its least possible log-loss, given rounding.
        """
