from typing import Any

import numpy as np
from numpy.typing import NDArray

def measure(z: NDArray[Any], F: NDArray[Any] | None, K: NDArray[Any]) -> NDArray[np.float64]: ...
