"""Lower bounds of a loss summed over points, for all subsets that contain a few given columns. The GIL is released."""

import numpy as np
from numpy.typing import NDArray

def extend(
    columns: NDArray[np.float64],
    most: int,
    subset: NDArray[np.int32],
    candidates: NDArray[np.int32],
    c: float,
    floors: NDArray[np.float64],
    limit: float,
) -> NDArray[np.float64]:
    """For each candidate: no `most` columns with the subset and it have a summed loss below this; infinite above
    the limit.

    `columns` is (n, P, D), `floors` (n,) a bound of each point's loss by itself. With `most` − 1 columns in the
    subset it is the loss, less what rounding may have added to it.
    """
