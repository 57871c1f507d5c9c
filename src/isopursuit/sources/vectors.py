"""Vectors in Parquet and Arrow files (extra `files`): rows are candidates, read by row groups, never all at once."""

from __future__ import annotations

import glob
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from isopursuit.errors import DataTypeError, FileError, NonFiniteError, ShapeError, optional
from isopursuit.sources.arrays import fold_blocks, take_runs
from isopursuit.sources.tasks import Task

Array = NDArray[np.float64]

SUFFIXES = (".parquet", ".pq", ".arrow", ".feather", ".ipc")


@dataclass(frozen=True)
class VectorFiles:
    """Files of vectors: one column of lists of equal length, or one numeric column for each dimension.

    `groups` are (path, group, rows): what is read at once. Columns that are not numbers are left aside.
    """

    groups: tuple[tuple[Path, int, int], ...]
    names: tuple[str, ...]
    listed: bool
    dimensions: int
    dtype: np.dtype[Any]
    threads: int | None = None

    @classmethod
    def of(cls, pattern: str | Path | Sequence[Path], threads: int | None = None) -> VectorFiles:
        """The files that a pattern names, in order of their names."""
        paths = [Path(found) for found in sorted(glob.glob(str(pattern), recursive=True))]
        if not paths:
            raise FileError(f"No file matches {pattern}.")
        unknown = [path.name for path in paths if path.suffix.lower() not in SUFFIXES]
        if unknown:
            raise FileError(f"{unknown[0]} is neither .npy nor one of {', '.join(SUFFIXES)}.")
        groups: list[tuple[Path, int, int]] = []
        layout: tuple[tuple[str, ...], bool, int, np.dtype[Any]] | None = None
        for path in paths:
            file = _open(path)
            found = _layout(file, path)
            if layout is not None and found != layout:
                raise ShapeError(f"{path.name} does not hold vectors like those of {paths[0].name}: {_told(found)}.")
            layout = found
            groups += [(path, i, rows) for i, rows in enumerate(file.sizes) if rows]
        assert layout is not None
        if not groups:
            raise ShapeError(f"The files of {pattern} hold no rows.")
        return cls(tuple(groups), *layout, threads)

    @cached_property
    def starts(self) -> list[int]:
        """The number of the first vector of each group, and of the end."""
        return np.concatenate([[0], np.cumsum([rows for _, _, rows in self.groups])]).tolist()

    @property
    def shape(self) -> tuple[int, int]:
        """(dimensions, vectors)."""
        return self.dimensions, self.starts[-1]

    def read(self, first: int, last: int) -> NDArray[Any]:
        """Vectors first to last − 1 as columns, all from one or several groups."""
        parts: list[NDArray[Any]] = []
        i = bisect_right(self.starts, first) - 1
        while first < last:
            end = min(last, self.starts[i + 1])
            path, group, _ = self.groups[i]
            begin = self.starts[i]
            table = _open(path).group(group, list(self.names)).slice(first - begin, end - first)
            parts.append(_numbers(table, self, path, first))
            first, i = end, i + 1
        return (parts[0] if len(parts) == 1 else np.concatenate(parts)).T

    def fold(self, task: Task) -> Any:
        """One pass, a row group at a time."""
        return fold_blocks(self, task, self.threads)

    def take(self, indices: NDArray[np.intp]) -> Array:
        """These vectors as columns, float64; each group is read once."""
        return take_runs(self, indices, max(rows for _, _, rows in self.groups))

    def spans(self) -> Iterator[tuple[int, int]]:
        """One row group at a time."""
        return zip(self.starts[:-1], self.starts[1:], strict=True)


class _File:
    """A Parquet or Arrow file as groups of rows."""

    def __init__(self, schema: Any, sizes: list[int], group: Any) -> None:
        self.schema, self.sizes, self.group = schema, sizes, group


def _open(path: Path) -> _File:
    pa, ipc, pq = (
        optional(f"pyarrow{part}", "files", f"Reading vectors from {path.suffix} files")
        for part in ("", ".ipc", ".parquet")
    )
    try:
        if path.suffix.lower() in (".parquet", ".pq"):
            parquet = pq.ParquetFile(path)
            sizes: list[int] = [parquet.metadata.row_group(i).num_rows for i in range(parquet.num_row_groups)]
            return _File(parquet.schema_arrow, sizes, partial(parquet.read_row_group, use_threads=False))
        reader: Any = ipc.open_file(pa.memory_map(str(path)))
        sizes = [reader.get_batch(i).num_rows for i in range(reader.num_record_batches)]
        return _File(reader.schema, sizes, partial(_batch, reader))
    except (ValueError, OSError) as error:  # pyarrow's own errors are ValueError too
        raise FileError(f"{path.name} is not a readable {path.suffix} file: {str(error).splitlines()[0]}.") from None


def _batch(reader: Any, i: int, names: list[str]) -> Any:
    import pyarrow as pa

    return cast("Any", pa.Table).from_batches([reader.get_batch(i)]).select(names)


def _layout(file: _File, path: Path) -> tuple[tuple[str, ...], bool, int, np.dtype[Any]]:
    """The columns to read, whether they hold lists, the number of dimensions, and the precision."""
    import pyarrow.types

    kinds: Any = pyarrow.types

    def number(kind: Any) -> bool:
        return kinds.is_floating(kind) or kinds.is_integer(kind) or kinds.is_boolean(kind)

    def is_list(kind: Any) -> bool:
        some = kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind)
        return some and number(kind.value_type)

    lists = [field for field in file.schema if is_list(field.type)]
    if len(lists) > 1:
        raise ShapeError(f"{path.name} has several columns of vectors: {', '.join(f.name for f in lists)}. Keep one.")
    if lists:
        size = lists[0].type.list_size if kinds.is_fixed_size_list(lists[0].type) else None
        if size is None:
            first = next((i for i, rows in enumerate(file.sizes) if rows), None)
            head = None if first is None else file.group(first, [lists[0].name]).column(0)[0].as_py()
            size = 0 if head is None else len(head)
        return (lists[0].name,), True, size, _kind(lists[0].type.value_type)
    fields = [field for field in file.schema if number(field.type)]
    if not fields:
        raise DataTypeError(
            f"{path.name} has no column of numbers or of vectors; it has {', '.join(file.schema.names)}."
        )
    kind = np.dtype(np.result_type(*[_kind(field.type) for field in fields]))
    return tuple(field.name for field in fields), False, len(fields), kind


def _kind(kind: Any) -> np.dtype[Any]:
    import pyarrow.types

    kinds: Any = pyarrow.types
    stored = np.dtype(bool) if kinds.is_boolean(kind) else np.dtype(kind.to_pandas_dtype())
    return np.dtype(np.float32 if np.can_cast(stored, np.float32) else np.float64)


def _told(layout: tuple[tuple[str, ...], bool, int, np.dtype[Any]]) -> str:
    names, listed, size, kind = layout
    return f"{size} dimensions of {kind} in {'one column of lists' if listed else f'{len(names)} columns'}"


def _numbers(table: Any, files: VectorFiles, path: Path, first: int) -> NDArray[Any]:
    """The table's vectors, (m, D), contiguous."""
    import pyarrow.compute

    pc: Any = pyarrow.compute
    missing = sum(column.null_count for column in table.columns)
    if missing:
        row = next(i for column in table.columns for i, null in enumerate(pc.is_null(column).to_pylist()) if null)
        raise NonFiniteError(f"{path.name} has {missing} missing vectors or cells, the first in row {first + row}.")
    if not files.listed:
        return np.column_stack([column.to_numpy().astype(files.dtype, copy=False) for column in table.columns])
    column = table.column(0).combine_chunks()
    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    if (lengths != files.dimensions).any():
        row = int(np.flatnonzero(lengths != files.dimensions)[0])
        raise ShapeError(
            f"{path.name}: the vector in row {first + row} has {lengths[row]} entries; expected {files.dimensions}."
        )
    flat = column.flatten()
    if flat.null_count:
        raise NonFiniteError(f"{path.name} has {flat.null_count} missing entries in its vectors.")
    return flat.to_numpy(zero_copy_only=False).astype(files.dtype, copy=False).reshape(len(column), files.dimensions)
