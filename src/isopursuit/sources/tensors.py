"""Columns in a PyTorch tensor (extra `torch`): products run on the tensor's device, and a few columns are copied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.types import Array, Indices
from isopursuit.errors import ShapeError
from isopursuit.sources.columns import precision
from isopursuit.sources.settings import DEVICE_BLOCK_BYTES, LEAST_BLOCK
from isopursuit.sources.tasks import Task


class Block:
    """Some columns of a tensor with the interface of a block: shape, precision, columns as an array, measures."""

    def __init__(self, tensor: Any, dtype: np.dtype[Any]) -> None:
        self.tensor, self.dtype = tensor, dtype
        self.shape: tuple[int, int] = tuple(tensor.shape)

    def __getitem__(self, key: Any) -> Any:
        import torch

        rows, columns = key
        if isinstance(columns, np.ndarray):
            columns = torch.from_numpy(columns).to(self.tensor.device)
        found = self.tensor[rows, columns]
        return found.cpu().numpy() if found.ndim else found.item()

    def rows(self, columns: Any) -> NDArray[Any]:
        """Some columns, (m, D₀), on the host."""
        return self.tensor[:, columns].T.contiguous().cpu().numpy()

    def doubled(self, columns: Any) -> Block:
        """Some columns in float64, on the same device."""
        return Block(self.tensor[:, columns].double(), np.dtype(np.float64))

    def measure(self, a: Array | None, b: Array | None, A: Array | None, F: Any | None, K: Any | None) -> Any:
        """‖z‖², ‖F z‖² and zᵀK z of every column, as _screen.measure, in the tensor's precision; a tensor.

        If K is None, only the first is computed, and all three are equal to it.
        """
        import torch

        x, device = self.tensor, self.tensor.device

        def there(values: NDArray[Any]) -> Any:
            return torch.from_numpy(np.ascontiguousarray(values)).to(device)

        if a is not None and b is not None:
            x = x.double() * there(a)[:, None] - there(b)[:, None]
        if A is not None:
            x = there(A) @ x.double()
        norm = cast("Any", torch.linalg.vector_norm)
        squares = norm(x, dim=0, dtype=torch.float64) ** 2
        if K is None:
            return torch.stack([squares, squares, squares])
        z = x.to(torch.float32 if self.dtype == np.float32 else torch.float64)
        Kz = there(K) @ z
        leverage = torch.einsum("dp,dp->p", Kz, z) if self.dtype == np.float64 else (Kz * z).sum(0, dtype=torch.float64)
        Fz = Kz if F is None else there(F) @ z
        q = norm(Fz, dim=0, dtype=torch.float64) ** 2
        return torch.stack([squares, q, leverage])


@dataclass(frozen=True)
class TensorSource:
    """A tensor (D₀, P) on its device."""

    tensor: Any
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, x: Any, rows: bool) -> TensorSource:
        """A source for a tensor. Half precision is screened in float32, which represents it exactly."""
        import torch

        if x.ndim != 2:
            raise ShapeError(f"The tensor has {x.ndim} dimensions {tuple(x.shape)}; expected a matrix.")
        x = x.detach()
        kind = np.dtype(np.float32) if x.dtype == torch.bfloat16 else precision(_numpy_dtype(x), "The tensor")
        return cls(x.T if rows else x, kind)

    @property
    def shape(self) -> tuple[int, int]:
        """(D₀, P)."""
        return self.tensor.shape[0], self.tensor.shape[1]

    def fold(self, task: Task) -> Any:
        """One pass, with products in full precision."""
        import torch

        kind = torch.float32 if self.dtype == np.float32 else torch.float64
        answer: Any = None
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")  # the rounding bound requires it
        try:
            D, P = self.shape
            width = max(
                DEVICE_BLOCK_BYTES.get(self.tensor.device.type, DEVICE_BLOCK_BYTES["cpu"]) // (D * self.dtype.itemsize),
                LEAST_BLOCK,
            )
            for first in range(0, P, width):
                block = Block(self.tensor[:, first : first + width].to(kind), self.dtype)
                found = (task if answer is None else task.after(answer))(block, first)
                answer = found if answer is None else task.merge(answer, found)
        finally:
            torch.set_float32_matmul_precision(before)
        return answer

    def products(self, x: Array) -> DeviceProducts | None:
        """Products with columns (m, D) of a program on this device; None if it is the host."""
        return None if self.tensor.device.type == "cpu" else DeviceProducts.of(x, self.tensor.device)

    def take(self, indices: Indices) -> Array:
        """These columns, float64, on the host."""
        import torch

        where = torch.from_numpy(indices).to(self.tensor.device)
        return self.tensor[:, where].double().cpu().numpy()


class DeviceProducts:
    """Columns (m, D) on a device in both precisions, with the products that the solver for many rows needs."""

    def __init__(self, x: Any, single: Any) -> None:
        self.x, self.single = x, single

    @classmethod
    def of(cls, x: Array, device: Any) -> DeviceProducts:
        """Copy columns from the host."""
        import torch

        there = torch.from_numpy(x).to(device)
        return cls(there, there.float())

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
        import torch

        where = torch.from_numpy(columns).to(self.x.device)
        return DeviceProducts(self.x[where], self.single[where])

    def _there(self, values: Any, like: Any) -> Any:
        import torch

        if not isinstance(values, np.ndarray):
            return values.to(like.dtype)
        return torch.from_numpy(np.ascontiguousarray(values)).to(like.device).to(like.dtype)


def _numpy_dtype(x: Any) -> np.dtype[Any]:
    """The NumPy dtype of a tensor."""
    import torch

    return torch.zeros(0, dtype=x.dtype).numpy().dtype
