import numpy as np
from numpy.typing import NDArray

class DiveKernel:
    """Searches for subsets whose inner products' squares add up to little. The GIL is released.

    Parameters
    ----------
    columns : (N, D) array
        One candidate in each row.
    size : int
        Columns of a subset.
    included : indices
        Columns that every subset has.
    own : (N,) array
        Each column's square, with twice those of its inner products with the included ones; `base` is their sum for
        the included ones themselves.
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
    def seek(
        self, root: int, candidates: NDArray[np.int32], below: float, limit: int
    ) -> tuple[bool, float, NDArray[np.int32] | None, float, int]:
        """The best subset of loss below `below` among the included columns, `root` and its candidates.

        Returns
        -------
        finished, loss, subset, least, nodes
            Whether all was searched within `limit` nodes; the best loss, or `below` where nothing better was found, and
            its columns or None; the least that the loss of an evaluated subset can be, given its rounding.
        """
