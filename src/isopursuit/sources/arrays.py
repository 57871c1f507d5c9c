"""Columns in memory, in memory maps, and in .npy files."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.types import Array, Indices
from isopursuit.data._files import npy_header
from isopursuit.errors import FileError, NonFiniteError, ShapeError
from isopursuit.sources.blocks import BlockSource, mapped_file, precision

NEIGHBOUR_BYTES = 2**16  # largest gap that is cheaper to read than to skip (derived: 1 GB/s in the 60 µs of a read)


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
