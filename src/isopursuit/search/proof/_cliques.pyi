"""Bounds of pairs at many points, and the subsets all of whose pairs can be in a better one. The GIL is released."""

import numpy as np
from numpy.typing import NDArray

from isopursuit._types import Array
from isopursuit.search._joint import JointKernel

class JointProblem:
    """The columns at all points, (P, n, D), of which `m` are to be picked; what the threads share.

    `points` has three arrays (n): the losses of the included columns; how much of the sum of that loss and the loss of
    the picked ones is certain; the least share. `table` has least values of h, the bits of the first one's
    argument and the shift of those bits. `totals` says whether shares are logarithms, the cap of losses and their unit,
    how many points count and how many are left out, and the relative error of a total.
    """

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
        """Totals of the a-th column with each of those before it; infinite from the limit on."""

    def set_pairs(self, pairs: NDArray[np.int32], ranks: NDArray[np.int32], rows: NDArray[np.float32]) -> None:
        """The pairs (q, 2) that may be in a better subset, by ascending totals; the place of each in that order,
        (P, P); and room for the shares of the first points.
        """

    def fill(self, first: int, last: int) -> None:
        """Compute the shares of these pairs."""

class CliqueSearch:
    """What one thread needs to search subsets: `included` and `positions` are columns of the kernel, `order` its
    points in the problem's order, and no column is in more than `capacity` pairs.
    """

    stop: bool
    @property
    def evaluations(self) -> int:
        """Subsets whose loss was computed."""

    @property
    def bounded(self) -> int:
        """Sets of columns that were bounded."""

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
        limit, and the least that its log-loss can be.
        """
