import numpy as np
from numpy.typing import NDArray

MOST_MISSING: int  # most missing columns of a node that is enumerated
WORK_OF_TEST: int  # multiplications of a relaxation that take as long as a test of an enumeration

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

class Explored:
    """The result of a task.

    Attributes
    ----------
    open : list of OpenNode
        The nodes that are still open.
    leaf : (size,) array or None
        The best subset evaluated that is better than the incumbent, if any.
    least : float
        The least possible loss of an evaluated subset, given rounding.
    nodes, evaluations, work, spent : int
        Numbers of nodes, of losses evaluated, of multiplications, and of tests in doubted enumerations.
    counts : (size + 1, 6) array
        For each number of missing columns: nodes, those left open by their bound, work of the bounds, enumerations,
        those that closed their node, and their tests.
    """

    open: list[OpenNode]
    leaf: NDArray[np.int32] | None
    least: float
    nodes: int
    evaluations: int
    work: int
    spent: int
    counts: NDArray[np.int64]

class TreeKernel:
    """Explores subtrees of one problem, several at a time in as many threads (the GIL is released).

    Parameters
    ----------
    columns : (P, D) array
        The candidates, one in each row.
    size : int
        Number of columns of a subset, at most D.
    c : float
        Exponent of the loss.
    low, high, table
        From `isopursuit.loss.envelope.relax`.
    incumbent : float
        Loss of the best subset known; subsets that tasks search for have a lower one.
    stiffness : float
        From `isopursuit.loss.penalty.stiffness`.
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
    ) -> None: ...
    def stop(self) -> None:
        """Make every call, in any thread, return soon."""

    def explore(
        self,
        start: OpenNode,
        incumbent: float,
        budgets: NDArray[np.int64],
        doubted: NDArray[np.int8],
        spare: int,
        ceiling: float,
        work: int,
        most_nodes: int,
    ) -> Explored:
        """Explore the subtree of a node, lowest bounds first, until the work is done; at least one node.

        The node is used up.

        Parameters
        ----------
        start : OpenNode
        incumbent : float
            Loss of the best subset known.
        budgets, doubted : (size + 1,) arrays
            For each number of missing columns: the most tests of an enumeration, and whether it is doubted.
        spare : int
            Most tests of doubted enumerations.
        ceiling : float
            Nodes whose bound is not below this are left open, but for the first one.
        work, most_nodes : int
            Multiplications and nodes after which no other node is started.
        """

    def relax(
        self, start: OpenNode, steps: int, tolerance: float
    ) -> tuple[float, NDArray[np.int32], NDArray[np.float64]] | None:
        """Bound, candidates and weights of the relaxation of one node; None if it has no bound or was stopped.

        Parameters
        ----------
        start : OpenNode
        steps : int
            Most Newton steps.
        tolerance : float
            Stop when the relaxation is solved to this share of the distance to the incumbent.
        """
