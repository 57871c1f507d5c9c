"""Arrays of NumPy and tensors of PyTorch, computed with by the same code."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray


def namespace(array: Any) -> Any:
    """The module that computes with an array: NumPy, or PyTorch for its tensors."""
    return np if isinstance(array, np.ndarray) else import_module("torch")


def on_host(array: Any) -> NDArray[Any]:
    """An array, or a tensor from whatever device, as NumPy's."""
    return np.asarray(array if isinstance(array, np.ndarray) else array.cpu())
