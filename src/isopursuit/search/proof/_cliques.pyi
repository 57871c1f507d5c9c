"""Bounds of pairs at many points, and search of the sets all of whose pairs can be in a better subset.

The GIL is released.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.types import Array
from isopursuit.search._joint import JointKernel

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
    def totals(self, first: NDArray[np.int32], columns: NDArray[np.int32], limit: float) -> Array:
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
