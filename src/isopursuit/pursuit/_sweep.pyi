from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

def start(x: Array) -> Array: ...
def solve(
    x: Array,
    y: Array | None,
    ridge: float,
    w: Array,
    tol: float,
    rounds: int,
    watch: Callable[[float], bool] | None = None,
) -> tuple[float, bool]: ...
def evaluate(
    x: Array, y: Array | None, ridge: float, w: Array
) -> tuple[Array, Array, Array, float, float, float] | None: ...
