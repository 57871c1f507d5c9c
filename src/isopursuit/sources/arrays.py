"""Columns that are read block by block, by one pass on a thread pool: in memory, in memory maps, and in .npy files."""

from __future__ import annotations

import mmap
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.threads import on_one_blas_thread, processors
from isopursuit._core.types import Array, Indices
from isopursuit.data._files import npy_header
from isopursuit.errors import DataTypeError, FileError, NonFiniteError, ShapeError
from isopursuit.sources.tasks import Task

# bytes that one worker reads and screens at a time (measured by benchmarks.constants: 2 MB take 1.1 times as long,
# 32 MB take 1.3 to 1.5 times as long)
BLOCK_BYTES = 16 * 2**20
LEAST_BLOCK = 256  # least number of columns in a block, for any number of rows (derived: the width of _screen.pyx)
NEIGHBOUR_BYTES = 2**16  # largest gap that is cheaper to read than to skip (derived: 1 GB/s in the 60 µs of a read)


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


@dataclass(frozen=True)
class ArraySource(BlockSource):
    """An array in memory or a memory map, (D₀, P), with any strides.

    Types that float32 represents exactly are screened in float32. `file` is the mapped file: its pages are released
    when they have been copied, because they count as memory of this process.
    """

    values: NDArray[Any]
    dtype: np.dtype[Any]
    workers: int | None = None
    file: mmap.mmap | None = None

    @classmethod
    def of(cls, x: NDArray[Any], rows: bool = False, workers: int | None = None) -> ArraySource:
        """A source for an array."""
        if x.ndim != 2:
            raise ShapeError(f"The array has {x.ndim} dimensions {x.shape}; expected a matrix.")
        if np.ma.is_masked(x):
            raise NonFiniteError("The array is masked and has missing entries. Fill them in, or drop those columns.")
        kind = precision(x.dtype, "The array")
        # pages of a copy-on-write map hold changes that the file does not have, so they are not released
        file = None if getattr(x, "mode", "c") == "c" else mapped_file(x)
        return cls(np.asarray(x.T if rows else x), kind, workers, file)

    @property
    def shape(self) -> tuple[int, int]:
        """(D₀, P)."""
        return self.values.shape

    def read(self, first: int, last: int) -> NDArray[Any]:
        """A view if the array is in memory and the precision matches, otherwise a copy."""
        return self._loaded(slice(first, last), self.dtype)

    def take(self, indices: Indices) -> Array:
        """These columns, float64."""
        return self._loaded(indices, np.dtype(np.float64))

    def _loaded(self, columns: slice | Indices, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Some columns."""
        if self.file is None:
            return np.asarray(self.values[:, columns], dtype=dtype)
        copy = np.array(self.values[:, columns], dtype=dtype)
        if hasattr(mmap, "MADV_DONTNEED"):
            self.file.madvise(mmap.MADV_DONTNEED)
        return copy


@dataclass(frozen=True)
class FileSource(BlockSource):
    """A matrix (D₀, P) in a .npy file; `upright` if the entries of a candidate are adjacent there.

    Blocks are read and not mapped: a file that another process cuts off is an error here, not the end of the process.
    """

    path: Path
    offset: int
    stored: np.dtype[Any]
    size: tuple[int, int]
    upright: bool
    dtype: np.dtype[Any]
    workers: int | None = None

    @classmethod
    def of(cls, path: Path, rows: bool, workers: int | None) -> FileSource:
        """The source for a path."""
        shape, fortran, stored, offset = npy_header(path)
        if len(shape) != 2:
            raise ShapeError(f"{path.name} contains an array of {len(shape)} dimensions {shape}; expected a matrix.")
        one, other = shape[::-1] if rows else shape
        return cls(path, offset, stored, (one, other), rows != fortran, precision(stored, path.name), workers)

    @property
    def shape(self) -> tuple[int, int]:
        """(D₀, P)."""
        return self.size

    def read(self, first: int, last: int) -> NDArray[Any]:
        """Columns first to last − 1."""
        D, P = self.shape
        if self.upright:
            return self._numbers([first * D], (last - first) * D).reshape(last - first, D).T
        return self._numbers([d * P + first for d in range(D)], last - first)

    def _numbers(self, begins: list[int], count: int) -> NDArray[Any]:
        """`count` numbers from each of some places in the file, one row for each place."""
        values = np.empty((len(begins), count), dtype=self.dtype)
        try:
            with self.path.open("rb", buffering=0) as file:
                for row, begin in zip(values, begins, strict=True):
                    file.seek(self.offset + begin * self.stored.itemsize)
                    found = np.fromfile(file, self.stored, count)
                    if len(found) < count:
                        break
                    row[:] = found
                else:
                    return values
        except OSError as error:
            raise FileError(f"{self.path} can no longer be read: {error.strerror}.") from None
        raise FileError(f"{self.path} ends in the middle of a column.")

    def take(self, indices: Indices) -> Array:
        """These columns, float64; neighbouring columns are read together."""
        width = self.shape[0] if self.upright else 1  # adjacent entries of a column
        return self.take_runs(indices, NEIGHBOUR_BYTES // (self.stored.itemsize * width))


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
