from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_MISSING: int  # most missing columns of a node that is enumerated
WORK_OF_TEST: int  # multiplications of a relaxation that take as long as a test of an enumeration
TESTS_OF_BOUND: int  # tests that take as long as the bound of a node, before one is known

class OpenNode:
    """The subsets made of the chosen columns and some of the candidates, none of which has a loss below the bound.

    `weights` are a starting point of the relaxation. `paired` says that the candidates are those of a graph of
    compatible pairs, so that tests of pairs are tried before the relaxation.
    """

    def __init__(
        self,
        bound: float,
        chosen: NDArray[np.int32],
        candidates: NDArray[np.int32],
        weights: NDArray[np.float32],
        paired: bool = False,
    ) -> None: ...
    @property
    def bound(self) -> float: ...
    @property
    def chosen(self) -> NDArray[np.int32]: ...
    @property
    def candidates(self) -> NDArray[np.int32]: ...

class TreeKernel:
    """Explores subtrees of one problem, several at a time in as many threads (the GIL is released).

    `columns` (P, D) are the candidates. Subsets have `size` <= D of them, and tasks search for losses below the
    incumbent. `low`, `high` and `table` are from `envelope.relax`, `stiffness` is from `penalty.stiffness`, and `rules`
    from `Rules.tables`.
    """

    def __init__(
        self,
        columns: NDArray[np.float64],
        size: int,
        c: float,
        low: float,
        high: float,
        table: NDArray[np.float64],
        incumbent: float,
        stiffness: float,
        rules: tuple[NDArray[Any], ...] | None = None,
    ) -> None: ...
    def stop(self) -> None:
        """Make every call, in any thread, return soon."""

    def explore(
        self,
        start: list[OpenNode],
        incumbent: float,
        budgets: NDArray[np.int64],
        doubted: NDArray[np.int8],
        spare: int,
        work: int,
        most_nodes: int,
    ) -> tuple[list[OpenNode], NDArray[np.int32] | None, float, int, int, int, int, NDArray[np.int64]]:
        """Explore the subtrees of these nodes, lowest bounds first; at least so many nodes. `start` is used up.

        The result has the fields of `tree.Explored`.

        An enumeration makes at most as many tests as `budgets` (size + 1) has for its number of missing columns, and
        all those that are `doubted` (size + 1) together make at most `spare`. No other node is started after so many
        multiplications and nodes.
        """

    def relax(
        self, start: OpenNode, steps: int = ..., tolerance: float = ...
    ) -> tuple[float, NDArray[np.int32], NDArray[np.float64]] | None:
        """Bound, candidates and weights of the relaxation of one node; None if it has no bound or was stopped.

        It is solved to this share of the distance to the incumbent, with at most so many Newton steps; by default as
        in the tree.
        """
