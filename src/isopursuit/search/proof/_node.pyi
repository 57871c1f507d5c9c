import numpy as np
from numpy.typing import NDArray

MOST_MISSING: int  # most missing columns of a node that is enumerated

class Outcome:
    """The result of the kernel at one node.

    Attributes
    ----------
    closed : bool
        No subset of the node is better than both the incumbent and `leaf`.
    stopped : bool
        The search was stopped before the node was finished; its bound is valid.
    bound : float
        Lower bound on the loss of every subset of the node that is better than the incumbent.
    candidates, weights : (n,) arrays or None
        For an open node: the columns that a better subset can still contain, and their weights in the relaxation.
    branches, forced : pairs or None
        For an open node: the positions in `candidates` to branch on, by weight and by weight times effect on the loss,
        and whether every better subset contains them.
    row : int
        Row of the envelope table in use.
    leaf : (size,) array or None
        The best subset evaluated that is better than the incumbent, if any.
    least : float
        The least possible loss of an evaluated subset, given rounding.
    evaluations : int
        Number of losses evaluated.
    tests : int
        Number of tests of the enumeration, 0 if there was none.
    """

    closed: bool
    stopped: bool
    bound: float
    candidates: NDArray[np.int32]
    weights: NDArray[np.float32]
    branches: tuple[int, int]
    forced: tuple[bool, bool]
    row: int
    leaf: NDArray[np.int32] | None
    least: float
    evaluations: int
    tests: int

class NodeKernel:
    """Bounds nodes of one problem, several at a time in as many threads (the GIL is released).

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
        Loss of the best subset known; lower it as better ones are found.
    minorant
        From `isopursuit.loss.penalty.quadratic_minorant`.
    """

    incumbent: float

    def __init__(
        self,
        columns: NDArray[np.float64],
        size: int,
        c: float,
        low: float,
        high: float,
        table: NDArray[np.float64],
        incumbent: float,
        minorant: tuple[float, float, float, float],
    ) -> None: ...
    def stop(self) -> None:
        """Make every call of `process`, in any thread, return soon."""

    def process(
        self,
        chosen: NDArray[np.int32],
        candidates: NDArray[np.int32],
        weights: NDArray[np.float32],
        row: int,
        steps: int,
        tolerance: float,
        budget: int,
    ) -> Outcome:
        """Bound the node of all subsets made of `chosen` and some of `candidates`.

        Parameters
        ----------
        chosen, candidates : arrays of column indices
        weights : array
            Starting point of the relaxation, one weight for each candidate.
        row : int
            Row of the envelope table to start with.
        steps : int
            Most Newton steps.
        tolerance : float
            Stop when the relaxation is solved to this share of the distance to the incumbent.
        budget : int
            Most tests for the enumeration of an open node; 0 for no enumeration.
        """
