"""Bounds of pairs at many points, and search of the sets all of whose pairs can be in a better subset.

The GIL is released.
"""

import numpy as np
from numpy.typing import NDArray

from isopursuit._types import Array
from isopursuit.search._joint import JointKernel

class JointProblem:
    """The data that threads share: the columns at all points, (P, n, D), of which `m` must be picked.

    `points` has three arrays (n): the losses of the included columns; the share of the sum of both losses, of included
    and picked columns, that is certain; and the least shares. `table` has least values of h, the shifted bits of the
    first argument, and the shift. `totals` has: whether shares are logarithms, the cap and the unit of losses, how many
    points are kept and left out, and the relative error of a total. After `stop`, in any thread, the methods return
    soon with values that may be too small.
    """

    stop: bool
    def __init__(
        self,
        columns: Array,
        m: int,
        points: tuple[Array, Array, Array],
        table: tuple[Array, int, int],
        totals: tuple[bool, float, float, float, float, float],
    ) -> None: ...
    def among(self, some: NDArray[np.intp]) -> JointProblem:
        """The same problem with these columns."""

    def pair_totals(self, a: int, limit: float) -> Array:
        """Totals of the a-th column with each column before it; infinite if not below the limit."""

    def set_pairs(self, pairs: NDArray[np.int32], ranks: NDArray[np.int32], rows: NDArray[np.float32]) -> None:
        """Set the pairs (q, 2) that may be in a better subset, in ascending order of their totals; their ranks (P, P)
        in that order; and memory for their shares at the first points.
        """

    def fill(self, first: int, last: int) -> None:
        """Compute the shares of these pairs."""

class CliqueSearch:
    """The search of one thread.

    `included` and `positions` are columns of the kernel, and `order` has its points in the problem's order. No column
    is in more than `capacity` pairs.
    """

    stop: bool
    @property
    def evaluations(self) -> int:
        """Number of subsets whose loss was computed."""

    def __init__(
        self,
        problem: JointProblem,
        kernel: JointKernel,
        included: NDArray[np.int32],
        positions: NDArray[np.int32],
        order: NDArray[np.int32],
        capacity: int,
        deadline: float,
    ) -> None: ...
    def run(self, first: int, last: int, log_limit: float) -> tuple[int, NDArray[np.int32] | None, float]:
        """Search the subsets whose pair of the highest rank is one of these.

        Returns how many of the pairs are done (fewer after `stop` and after the deadline), the best subset below the
        limit, and its least possible log-loss, given rounding.
        """
