"""Columns in memory, and in .npy files that are read a block at a time."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from isopursuit.errors import FileError, ShapeError
from isopursuit.sources.columns import Source, precision
from isopursuit.sources.tasks import Task
from isopursuit.threads import on_one_blas_thread

Array = NDArray[np.float64]

BLOCK = 16 * 2**20  # bytes that one thread reads and screens at a time
NEIGHBOURS = 2**16  # bytes between two columns that are cheaper read than skipped


class Blocks(Source, Protocol):
    """What can be read a block at a time."""

    def read(self, first: int, last: int) -> NDArray[Any]:
        """Columns first to last − 1, (D₀, m), float32 or float64."""
        ...

    def spans(self) -> Iterator[tuple[int, int]]:
        """All columns, a block at a time."""
        ...


@on_one_blas_thread
def fold_blocks(source: Blocks, task: Task, threads: int | None) -> Any:
    """One pass on a thread pool: one thread reads while another computes; answers merge in the order of columns."""

    @on_one_blas_thread
    def one(asked: Task, first: int, last: int) -> Any:
        return asked(source.read(first, last), first)

    count = threads or processors()
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


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def even_spans(source: Source) -> Iterator[tuple[int, int]]:
    """All columns, BLOCK bytes at a time."""
    D, P = source.shape
    width = max(BLOCK // (D * source.dtype.itemsize), 256)
    return ((first, min(first + width, P)) for first in range(0, P, width))


@dataclass(frozen=True)
class ArraySource:
    """An array in memory, (D₀, P), in any order of strides; what float32 holds exactly is screened in float32."""

    values: NDArray[Any]
    dtype: np.dtype[Any]
    threads: int | None = None

    @classmethod
    def of(cls, x: NDArray[Any], rows: bool, threads: int | None) -> Source:
        """A memory map of a whole file is read as a file, so that its pages do not pile up in memory."""
        if x.ndim != 2:
            raise ShapeError(f"The array has {x.ndim} dimensions {x.shape}; expected a matrix.")
        kind = precision(x.dtype, "The array")
        if isinstance(x, np.memmap) and isinstance(x.base, mmap.mmap) and isinstance(x.filename, str | Path):
            layout = "C" if x.flags.c_contiguous else "F"
            return FileSource(Path(x.filename), x.offset, x.dtype, x.shape, layout, rows, kind, threads)
        return cls(x.T if rows else x, kind, threads)

    @property
    def shape(self) -> tuple[int, int]:
        """(D₀, P)."""
        return self.values.shape

    def read(self, first: int, last: int) -> NDArray[Any]:
        """A view where the precision is right, a copy where not."""
        return np.asarray(self.values[:, first:last], dtype=self.dtype)

    def fold(self, task: Task) -> Any:
        """One pass."""
        return fold_blocks(self, task, self.threads)

    def spans(self) -> Iterator[tuple[int, int]]:
        """Blocks of equal size."""
        return even_spans(self)

    def take(self, indices: NDArray[np.intp]) -> Array:
        """These columns, float64."""
        return np.asarray(self.values[:, indices], dtype=np.float64)


@dataclass(frozen=True)
class FileSource:
    """A matrix in a file, in C or Fortran order, whose columns (or rows) are candidates.

    Blocks are read, not mapped: mapped pages would count as this process's memory.
    """

    path: Path
    offset: int
    stored: np.dtype[Any]
    extent: tuple[int, int]
    layout: str
    rows: bool
    dtype: np.dtype[Any]
    threads: int | None = None

    @classmethod
    def npy(cls, path: Path, rows: bool, threads: int | None) -> FileSource:
        """A .npy file."""
        if not path.is_file():
            raise FileError(f"There is no file {path}.")
        with path.open("rb") as file:
            try:
                version = np.lib.format.read_magic(file)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                extent, fortran, stored = read(file)
            except ValueError as error:
                raise FileError(f"{path.name} is not a .npy file: {error}") from None
            offset = file.tell()
        if len(extent) != 2:
            raise ShapeError(f"{path.name} holds an array of {len(extent)} dimensions {extent}; expected a matrix.")
        kind = precision(stored, path.name)
        expected = offset + extent[0] * extent[1] * stored.itemsize
        if path.stat().st_size < expected:
            raise FileError(f"{path.name} is cut off: {path.stat().st_size} bytes, and its header promises {expected}.")
        return cls(path, offset, stored, extent, "F" if fortran else "C", rows, kind, threads)

    @property
    def shape(self) -> tuple[int, int]:
        """(D₀, P)."""
        one, other = self.extent
        return (other, one) if self.rows else (one, other)

    @property
    def upright(self) -> bool:
        """Whether a candidate's entries stand side by side in the file."""
        return self.rows == (self.layout == "C")

    def read(self, first: int, last: int) -> NDArray[Any]:
        """Columns first to last − 1."""
        D, P = self.shape
        size = self.stored.itemsize
        with self.path.open("rb", buffering=0) as file:
            if self.upright:
                block = np.empty((last - first, D), dtype=self.stored)
                _fill(file, self.offset + first * D * size, block)
                return block.T.astype(self.dtype, copy=False)
            block = np.empty((D, last - first), dtype=self.stored)
            for d in range(D):
                _fill(file, self.offset + (d * P + first) * size, block[d])
        return block.astype(self.dtype, copy=False)

    def fold(self, task: Task) -> Any:
        """One pass."""
        return fold_blocks(self, task, self.threads)

    def spans(self) -> Iterator[tuple[int, int]]:
        """Blocks of equal size."""
        return even_spans(self)

    def take(self, indices: NDArray[np.intp]) -> Array:
        """These columns, float64; near ones are read together."""
        D, _ = self.shape
        near = NEIGHBOURS // (self.stored.itemsize * (D if self.upright else 1))
        return take_runs(self, indices, near)


def take_runs(source: Blocks, indices: NDArray[np.intp], near: int) -> Array:
    """Columns by blocks that leave out gaps of more than `near` columns."""
    D, _ = source.shape
    values = np.empty((D, len(indices)))
    order = np.argsort(indices, kind="stable")
    widest = max(BLOCK // (D * source.dtype.itemsize), 256)
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


def _fill(file: Any, offset: int, block: NDArray[Any]) -> None:
    """Read as many bytes as the block holds."""
    file.seek(offset)
    view = memoryview(block.reshape(-1).view(np.uint8).data)
    while len(view):
        got = file.readinto(view)
        if not got:
            raise FileError(f"{file.name} ends in the middle of a column.")
        view = view[got:]
