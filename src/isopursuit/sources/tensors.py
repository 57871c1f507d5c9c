"""Columns in a PyTorch tensor (extra `torch`) on a device: products run there, and a few columns are copied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isopursuit._core.types import Array, Indices
from isopursuit.errors import ShapeError
from isopursuit.sources.arrays import BLOCK_BYTES, LEAST_BLOCK, ArraySource, precision
from isopursuit.sources.tasks import Source, Task, doubled, on_same_device

DEVICE_BLOCK_BYTES = 2**31  # bytes of a tensor's columns screened at once (chosen: a device has several times that)


def tensor_source(x: Any, rows: bool, workers: int | None) -> Source:
    """A source for a tensor. In the memory of the host it is an array."""
    import torch

    if x.ndim != 2:
        raise ShapeError(f"The tensor has {x.ndim} dimensions {tuple(x.shape)}; expected a matrix.")
    x = x.detach().T if rows else x.detach()
    if x.device.type == "cpu" and x.dtype != torch.bfloat16:  # NumPy has no such type
        return ArraySource.of(x.numpy(), workers=workers)
    return TensorSource.of(x)


@dataclass(frozen=True)
class TensorSource:
    """A tensor (D₀, P) on its device."""

    tensor: Any
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, x: Any) -> TensorSource:
        """A source for a matrix. Half precision is screened in float32, which represents it exactly."""
        import torch

        stored = np.dtype(np.float32) if x.dtype == torch.bfloat16 else torch.zeros(0, dtype=x.dtype).numpy().dtype
        return cls(x, precision(stored, "The tensor"))

    @property
    def shape(self) -> tuple[int, int]:
        """(D₀, P)."""
        return self.tensor.shape[0], self.tensor.shape[1]

    def fold(self, task: Task) -> Any:
        """One pass, with products in full precision."""
        import torch

        kind = torch.float32 if self.dtype == np.float32 else torch.float64
        D, P = self.shape
        size = BLOCK_BYTES if self.tensor.device.type == "cpu" else DEVICE_BLOCK_BYTES
        width = max(size // (D * self.dtype.itemsize), LEAST_BLOCK)
        answer: Any = None
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")  # the rounding bound requires it
        try:
            for first in range(0, P, width):
                block = self.tensor[:, first : first + width].to(kind)
                found = (task if answer is None else task.after(answer))(block, first)
                answer = found if answer is None else task.merge(answer, found)
        finally:
            torch.set_float32_matmul_precision(before)
        return answer

    def take(self, indices: Indices) -> Array:
        """These columns, float64, on the host."""
        return doubled(self.tensor[:, on_same_device(indices, self.tensor)]).cpu().numpy()

    def products(self, x: Array) -> DeviceProducts:
        """Products with columns (m, D) of a program on this device."""
        there = on_same_device(x, self.tensor)
        return DeviceProducts(there, there.float())


@dataclass(frozen=True)
class DeviceProducts:
    """Columns (m, D) on a device in both precisions, with the products that the solver for many rows needs."""

    x: Any
    single: Any

    def moments(self, u: Any, rough: bool = False) -> Any:
        """Σ u_p x_p x_pᵀ."""
        x = self.single if rough else self.x
        found = (x.T @ (x * self._there(u, x)[:, None])).double()
        return found.cpu().numpy() if isinstance(u, np.ndarray) else found

    def forms(self, S: Any, rough: bool = False) -> Any:
        """x_pᵀ S x_p of every column."""
        import torch

        x = self.single if rough else self.x
        found = torch.einsum("pd,pd->p", x @ self._there(S, x), x).double()
        return found.cpu().numpy() if isinstance(S, np.ndarray) else found

    def place(self, values: Array) -> Any:
        """Values on the device, in double precision."""
        return self._there(values, self.x)

    def take(self, columns: Indices) -> DeviceProducts:
        """Some of the columns."""
        where = on_same_device(columns, self.x)
        return DeviceProducts(self.x[where], self.single[where])

    def _there(self, values: Any, like: Any) -> Any:
        return (on_same_device(values, like) if isinstance(values, np.ndarray) else values).to(like.dtype)
