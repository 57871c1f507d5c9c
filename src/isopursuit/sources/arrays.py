"""Columns in memory, and in .npy files that are read block by block."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.threads import on_one_blas_thread, processors
from isopursuit._core.types import Array, Indices
from isopursuit.data._files import npy_header
from isopursuit.errors import FileError, IsoPursuitError, NonFiniteError, ShapeError
from isopursuit.sources.columns import Source, precision
from isopursuit.sources.settings import BLOCK_BYTES, FINGERPRINT, LEAST_BLOCK, NEIGHBOUR_BYTES, SPARSE
from isopursuit.sources.tasks import Task


class Blocks(Source, Protocol):
    """A source that can be read block by block."""

    def read(self, first: int, last: int) -> NDArray[Any]:
        """Columns first to last − 1, (D₀, m), float32 or float64."""
        ...

    def spans(self) -> Iterator[tuple[int, int]]:
        """The first and last column of each block."""
        ...


@on_one_blas_thread
def fold_blocks(source: Blocks, task: Task, workers: int | None) -> Any:
    """One pass on a thread pool: one thread reads while another computes; answers merge in the order of columns."""

    @on_one_blas_thread
    def one(asked: Task, first: int, last: int) -> Any:
        return asked(source.read(first, last), first)

    count = workers or processors()
    answer: Any = None
    waiting: list[Future[Any]] = []
    with ThreadPoolExecutor(count) as pool:
        try:
            for first, last in source.spans():
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


def _joined(task: Task, answer: Any, found: Any) -> Any:
    return found if answer is None else task.merge(answer, found)


def _block_width(source: Source) -> int:
    """How many columns are read at once."""
    return max(BLOCK_BYTES // (source.shape[0] * source.dtype.itemsize), LEAST_BLOCK)


def even_spans(source: Source) -> Iterator[tuple[int, int]]:
    """All columns, BLOCK_BYTES bytes at a time."""
    P, width = source.shape[1], _block_width(source)
    return ((first, min(first + width, P)) for first in range(0, P, width))


@dataclass(frozen=True)
class ArraySource:
    """An array in memory, (D₀, P), with any strides. Types that float32 represents exactly are screened in float32."""

    values: NDArray[Any]
    dtype: np.dtype[Any]
    workers: int | None = None

    @classmethod
    def of(cls, x: NDArray[Any], rows: bool, workers: int | None) -> Source:
        """A source for an array. A memory map is read as a file, so that its pages do not accumulate in memory.

        The array itself is used if the file has other contents: a copy-on-write map may have been written to, and the
        file of a map may have been replaced or removed.
        """
        if x.ndim != 2:
            raise ShapeError(f"The array has {x.ndim} dimensions {x.shape}; expected a matrix.")
        if np.ma.is_masked(x):
            raise NonFiniteError("The array is masked and has missing entries. Fill them in, or drop those columns.")
        kind = precision(x.dtype, "The array")
        values = x.T if rows else x
        file = FileSource.mapped(values, kind, workers) if isinstance(values, np.memmap) else None
        return file or cls(np.asarray(values), kind, workers)

    @property
    def shape(self) -> tuple[int, int]:
        """(D₀, P)."""
        return self.values.shape

    def read(self, first: int, last: int) -> NDArray[Any]:
        """A view if the precision matches, otherwise a copy."""
        return np.asarray(self.values[:, first:last], dtype=self.dtype)

    def fold(self, task: Task) -> Any:
        """One pass."""
        return fold_blocks(self, task, self.workers)

    def spans(self) -> Iterator[tuple[int, int]]:
        """Blocks of equal size."""
        return even_spans(self)

    def take(self, indices: Indices) -> Array:
        """These columns, float64."""
        return np.asarray(self.values[:, indices], dtype=np.float64)


@dataclass(frozen=True)
class FileSource:
    """A matrix (D₀, P) in a file: entry (d, p) of type `stored` is at byte offset + d strides[0] + p strides[1].

    Blocks are read and not mapped, because mapped pages would count as memory of this process.
    """

    path: Path
    offset: int
    stored: np.dtype[Any]
    shape: tuple[int, int]
    strides: tuple[int, int]
    dtype: np.dtype[Any]
    workers: int | None = None

    @classmethod
    def npy(cls, path: Path, rows: bool, workers: int | None) -> FileSource:
        """A .npy file."""
        shape, fortran, stored, offset = npy_header(path)
        if len(shape) != 2:
            raise ShapeError(f"{path.name} contains an array of {len(shape)} dimensions {shape}; expected a matrix.")
        one, other, size = *shape, stored.itemsize
        down, along = (size, one * size) if fortran else (other * size, size)
        if rows:
            one, other, down, along = other, one, along, down
        return cls(path, offset, stored, (one, other), (down, along), precision(stored, path.name), workers)

    @classmethod
    def mapped(cls, x: np.memmap[Any, Any], kind: np.dtype[Any], workers: int | None) -> FileSource | None:
        """The file under a memory map, or under a slice of one; None where the array itself must be read."""
        whole = x if isinstance(x.base, mmap.mmap) else x.base
        if x.mode == "c" or x.size == 0 or not isinstance(x.filename, str | Path):
            return None
        if not isinstance(whole, np.memmap) or not isinstance(whole.base, mmap.mmap):
            return None
        near, far = sorted(zip(x.strides, x.shape, strict=True))
        if near[0] < x.itemsize or near[0] > SPARSE * x.itemsize or far[0] < near[0] * near[1]:
            return None
        if x.mode != "r":
            x.flush()
        offset = x.offset + x.ctypes.data - whole.ctypes.data
        found = cls(Path(x.filename), offset, x.dtype, x.shape, (x.strides[0], x.strides[1]), kind, workers)
        few: Indices = np.unique(np.linspace(0, x.shape[1] - 1, FINGERPRINT).astype(np.intp))
        try:
            same = all(found.raw(p, p + 1).tobytes() == x[:, p].tobytes() for p in few.tolist())
        except FileError:
            same = False
        return found if same else None

    @property
    def upright(self) -> bool:
        """Whether the entries of a candidate are adjacent in the file."""
        return self.strides[0] < self.strides[1]

    def raw(self, first: int, last: int) -> NDArray[Any]:
        """Columns first to last − 1, (D₀, m), as stored."""
        D, m = self.shape[0], last - first
        along, across = self.strides
        size, begin = self.stored.itemsize, self.offset + first * across
        try:
            with self.path.open("rb", buffering=0) as file:
                if self.upright and across <= SPARSE * D * along:
                    block = _read(file, begin, (m - 1) * across + (D - 1) * along + size)
                    return np.ndarray((D, m), self.stored, block, strides=self.strides)
                values = np.empty((D, m), dtype=self.stored, order="F" if self.upright else "C")
                if self.upright:
                    for p in range(m):
                        block = _read(file, begin + p * across, (D - 1) * along + size)
                        values[:, p] = np.ndarray(D, self.stored, block, strides=along)
                else:
                    for d in range(D):
                        block = _read(file, begin + d * along, (m - 1) * across + size)
                        values[d] = np.ndarray(m, self.stored, block, strides=across)
                return values
        except IsoPursuitError:
            raise
        except OSError as error:
            raise FileError(f"{self.path} can no longer be read: {error.strerror}.") from None

    def read(self, first: int, last: int) -> NDArray[Any]:
        """Columns first to last − 1."""
        return self.raw(first, last).astype(self.dtype, copy=False)

    def fold(self, task: Task) -> Any:
        """One pass."""
        return fold_blocks(self, task, self.workers)

    def spans(self) -> Iterator[tuple[int, int]]:
        """Blocks of equal size."""
        return even_spans(self)

    def take(self, indices: Indices) -> Array:
        """These columns, float64; neighbouring columns are read together."""
        D, _ = self.shape
        near = NEIGHBOUR_BYTES // (self.stored.itemsize * (D if self.upright else 1))
        return take_runs(self, indices, near)


def take_runs(source: Blocks, indices: Indices, near: int) -> Array:
    """Columns, read in blocks that skip gaps of more than `near` columns."""
    D, _ = source.shape
    values = np.empty((D, len(indices)))
    order = np.argsort(indices, kind="stable")
    widest = _block_width(source)
    begin = 0
    while begin < len(order):
        first = int(indices[order[begin]])
        end = begin + 1
        while (
            end < len(order)
            and indices[order[end]] - indices[order[end - 1]] <= near
            and indices[order[end]] - first < widest
        ):
            end += 1
        some = order[begin:end]
        values[:, some] = source.read(first, int(indices[some[-1]]) + 1)[:, indices[some] - first]
        begin = end
    return values


def _read(file: Any, offset: int, count: int) -> NDArray[np.uint8]:
    """`count` bytes from an offset."""
    file.seek(offset)
    block = np.empty(count, dtype=np.uint8)
    view = memoryview(block.data)
    while len(view):
        got = file.readinto(view)
        if not got:
            raise FileError(f"{file.name} ends in the middle of a column.")
        view = view[got:]
    return block
