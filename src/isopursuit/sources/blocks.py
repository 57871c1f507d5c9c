"""Sources that are read block by block: one pass on a thread pool, and columns read in runs."""

from __future__ import annotations

import mmap
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.threads import on_one_blas_thread, processors
from isopursuit._core.types import Array, Indices
from isopursuit.errors import DataTypeError
from isopursuit.sources.tasks import Task

# bytes that one worker reads and screens at a time (measured by benchmarks.constants: 2 MB take 1.1 times as long,
# 32 MB take 1.3 to 1.5 times as long)
BLOCK_BYTES = 16 * 2**20
LEAST_BLOCK = 256  # least number of columns in a block, for any number of rows (derived: the width of _screen.pyx)


class BlockSource(ABC):
    """A source that is read block by block, by several threads."""

    dtype: np.dtype[Any]
    workers: int | None

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(D₀, P)."""

    @abstractmethod
    def read(self, first: int, last: int) -> NDArray[Any]:
        """Columns first to last − 1, (D₀, m), float32 or float64."""

    @abstractmethod
    def take(self, indices: Indices) -> Array:
        """These columns, (D₀, m), float64."""

    def spans(self) -> Iterator[tuple[int, int]]:
        """The first and last column of each block."""
        P, width = self.shape[1], self.block_width
        return ((first, min(first + width, P)) for first in range(0, P, width))

    @property
    def block_width(self) -> int:
        """How many columns are read at once."""
        return max(BLOCK_BYTES // (self.shape[0] * self.dtype.itemsize), LEAST_BLOCK)

    @on_one_blas_thread
    def fold(self, task: Task) -> Any:
        """One pass: one thread reads while another computes; answers merge in the order of columns."""

        @on_one_blas_thread
        def one(asked: Task, first: int, last: int) -> Any:
            return asked(self.read(first, last), first)

        if self.shape[1] <= self.block_width:
            return one(task, 0, self.shape[1])  # to start threads would take longer than a small block
        count = self.workers or processors()
        answer: Any = None
        waiting: list[Future[Any]] = []
        with ThreadPoolExecutor(count) as pool:
            try:
                for first, last in self.spans():
                    asked = task if answer is None else task.after(answer)
                    waiting.append(pool.submit(one, asked, first, last))
                    if len(waiting) > count:
                        answer = _joined(task, answer, waiting.pop(0).result())
                for future in waiting:
                    answer = _joined(task, answer, future.result())
            finally:
                for future in waiting:
                    future.cancel()
        return answer

    def take_runs(self, indices: Indices, near: int) -> Array:
        """These columns, float64, read in blocks that skip gaps of more than `near` columns."""
        values = np.empty((self.shape[0], len(indices)))
        order = np.argsort(indices, kind="stable")
        numbers, widest = indices[order], self.block_width
        begin = 0
        while begin < len(order):
            first = int(numbers[begin])
            end = begin + 1
            while end < len(order) and numbers[end] - numbers[end - 1] <= near and numbers[end] - first < widest:
                end += 1
            block = self.read(first, int(numbers[end - 1]) + 1)
            values[:, order[begin:end]] = block[:, numbers[begin:end] - first]
            begin = end
        return values


def _joined(task: Task, answer: Any, found: Any) -> Any:
    return found if answer is None else task.merge(answer, found)


def precision(dtype: np.dtype[Any], what: str) -> np.dtype[Any]:
    """Float32 for types that it represents exactly, float64 for other real numbers."""
    if dtype.kind not in "biuf":
        raise DataTypeError(f"{what} contains {dtype}, not real numbers. Convert it to integers or floats first.")
    return np.dtype(np.float32 if np.can_cast(dtype, np.float32) else np.float64)


def mapped_file(x: Any) -> mmap.mmap | None:
    """The file that a memory map, or a slice of one, is mapped from."""
    if not isinstance(x, np.memmap):
        return None
    base = cast("Any", x)
    while isinstance(base, np.ndarray):
        base = cast("Any", base).base
    return base if isinstance(base, mmap.mmap) else None
