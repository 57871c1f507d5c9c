from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

def measure(
    x: NDArray[Any], a: Array | None, b: Array | None, A: Array | None, F: NDArray[Any] | None, K: NDArray[Any] | None
) -> Array: ...
