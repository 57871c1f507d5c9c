from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

def moments(x: NDArray[Any], u: Array, total: NDArray[Any]) -> None:
    """Add Σ u_p x_p x_pᵀ to the upper triangle of `total`, which has the precision of the columns x (m, D)."""

def forms(x: NDArray[Any], half: NDArray[Any], found: Array) -> None:
    """Write 2 x_pᵀ U x_p of every column; U = `half` is a symmetric matrix's upper triangle with half its diagonal."""
