import numpy as np
from numpy.typing import NDArray

class DiveKernel:
    """Searches for subsets with a small sum of squared inner products. The GIL is released.

    Parameters
    ----------
    columns : (N, D) array
        One candidate in each row.
    size : int
        Number of columns of a subset.
    included : indices
        Columns that every subset contains.
    own : (N,) array
        The cost (‖x‖² − 1)² of each column plus twice its squared inner products with the included ones. `base` is
        ‖G − I‖² of the included ones.
    c, stiffness : float
        The exponent, and the μ of pairs.py, valid for losses up to the `below` of every call.
    """

    def __init__(
        self,
        columns: NDArray[np.float64],
        size: int,
        included: NDArray[np.int32],
        own: NDArray[np.float64],
        base: float,
        c: float,
        stiffness: float,
    ) -> None: ...
    def stop(self) -> None:
        """Make every call of `seek`, in any thread, return soon."""

    def seek(
        self, root: int, candidates: NDArray[np.int32], below: float, limit: int
    ) -> tuple[bool, float, NDArray[np.int32] | None, float, int]:
        """The best subset of loss below `below` among the included columns, `root` and its candidates.

        Returns
        -------
        finished, loss, subset, least, nodes
            Whether the search was completed within `limit` nodes and before `stop`; the best loss, or `below` if
            nothing better was found; its columns or None; the least possible loss of an evaluated subset, given
            rounding; and the number of nodes.
        """
