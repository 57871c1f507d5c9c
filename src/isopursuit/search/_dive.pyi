import numpy as np
from numpy.typing import NDArray

def seek(
    columns: NDArray[np.float64],
    must: NDArray[np.int32],
    own: NDArray[np.float64],
    base: float,
    root: int,
    candidates: NDArray[np.int32],
    c: float,
    rigid: float,
    below: float,
    limit: int,
) -> tuple[bool, float, NDArray[np.int32] | None, float, int]:
    """The best subset of loss below `below` among `must`, `root` and its candidates.

    Parameters
    ----------
    columns : (N, D) array
        One candidate in each row.
    must : indices
        Columns that every subset has.
    own : (N,) array
        Each column's square, with twice those of its inner products with the included ones; `base` is their sum for
        the included ones themselves.
    rigid : float
        μ, valid for losses up to `below`.
    limit : int
        Nodes at most.

    Returns
    -------
    finished, loss, subset, doubt, nodes
        Whether all was searched; the best loss, or `below` where nothing better was found, and its columns or None; the
        least that the loss of an evaluated subset can be, its rounding considered.
    """
