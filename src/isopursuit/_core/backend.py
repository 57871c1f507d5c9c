"""One code for NumPy arrays and PyTorch tensors."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray


def namespace(array: Any) -> Any:
    """The module that computes with an array: NumPy, or PyTorch for its tensors."""
    return np if isinstance(array, np.ndarray) else import_module("torch")


def on_host(array: Any) -> NDArray[Any]:
    """An array, or a tensor on any device, as a NumPy array."""
    return np.asarray(array if isinstance(array, np.ndarray) else array.cpu())
