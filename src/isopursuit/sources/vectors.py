"""Vectors in Parquet and Arrow files (extra `files`): rows are candidates, read one row group at a time."""

from __future__ import annotations

import glob
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.text import name_columns
from isopursuit._core.types import Array, Indices
from isopursuit.data._files import check_file, is_there, one_line
from isopursuit.data._reading import ARROW, PANDAS_INDEX, PARQUET
from isopursuit.errors import DataTypeError, FileError, LabelError, NonFiniteError, ShapeError, optional
from isopursuit.sources.arrays import fold_blocks, take_runs
from isopursuit.sources.columns import precision
from isopursuit.sources.tasks import Task

_Layout = tuple[tuple[str, ...], bool, int, np.dtype[Any], tuple[str, ...]]  # as `_layout` returns it

SUFFIXES = PARQUET + ARROW


@dataclass(frozen=True)
class VectorFiles:
    """Files of vectors: one column of lists of equal length, or one numeric column for each dimension.

    `groups` are the units of reading: (path, group, rows). Columns that are not numeric and files without rows are left
    out, with a note.
    """

    groups: tuple[tuple[Path, int, int], ...]
    names: tuple[str, ...]
    listed: bool
    dimensions: int
    dtype: np.dtype[Any]
    workers: int | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, pattern: str | Path, workers: int | None = None) -> VectorFiles:
        """The files that match a pattern, in order of their names."""
        exact = Path(pattern)
        matching = sorted(glob.glob(str(pattern), recursive=True))
        paths = [exact] if is_there(exact) else [Path(found) for found in matching]
        if not paths:
            raise FileError(f"No file matches {pattern}.")
        for path in paths:
            check_file(path)
        unknown = [path.name for path in paths if path.suffix.lower() not in SUFFIXES]
        if unknown:
            raise FileError(f"{unknown[0]} is neither a single .npy file nor one of {', '.join(SUFFIXES)}.")
        groups: list[tuple[Path, int, int]] = []
        empty: list[str] = []
        first: tuple[Path, _Layout] | None = None
        for path in paths:
            file = _open(path) if path.stat().st_size else None
            if file is None or not any(file.sizes):
                empty.append(path.name)
                continue
            found = _layout(file, path)
            if first is None:
                first = path, found
            elif found[:4] != first[1][:4]:
                raise ShapeError(f"{path.name} has other vectors than {first[0].name}: {_described(found)}.")
            groups += [(path, i, rows) for i, rows in enumerate(file.sizes) if rows]
        if first is None:
            raise ShapeError(f"The files of {pattern} have no rows.")
        columns, listed, size, kind, left_out = first[1]
        notes = tuple(
            f"left out, {why}: {name_columns(range(len(names)), tuple(names))}."
            for why, names in (("not numeric", left_out), ("files without rows", empty))
            if names
        )
        return cls(tuple(groups), columns, listed, size, kind, workers, notes)

    @cached_property
    def starts(self) -> list[int]:
        """The number of the first vector of each group, and the number of all vectors."""
        return np.concatenate([[0], np.cumsum([rows for _, _, rows in self.groups])]).tolist()

    @property
    def shape(self) -> tuple[int, int]:
        """(dimensions, vectors)."""
        return self.dimensions, self.starts[-1]

    def read(self, first: int, last: int) -> NDArray[Any]:
        """Vectors first to last − 1 as columns, from one or several groups."""
        parts: list[NDArray[Any]] = []
        i = bisect_right(self.starts, first) - 1
        while first < last:
            end = min(last, self.starts[i + 1])
            path, group, _ = self.groups[i]
            begin = self.starts[i]
            table = _read(path, group, list(self.names)).slice(first - begin, end - first)
            parts.append(_numbers(table, self, path, first))
            first, i = end, i + 1
        return (parts[0] if len(parts) == 1 else np.concatenate(parts)).T

    def fold(self, task: Task) -> Any:
        """One pass, a row group at a time."""
        return fold_blocks(self, task, self.workers)

    def take(self, indices: Indices) -> Array:
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
        if path.suffix.lower() in PARQUET:
            parquet = pq.ParquetFile(path)
            sizes: list[int] = [parquet.metadata.row_group(i).num_rows for i in range(parquet.num_row_groups)]
            return _File(parquet.schema_arrow, sizes, partial(parquet.read_row_group, use_threads=False))
        reader: Any = ipc.open_file(pa.memory_map(str(path)))
        sizes = [reader.get_batch(i).num_rows for i in range(reader.num_record_batches)]
        return _File(reader.schema, sizes, partial(_batch, reader))
    except Exception as error:  # noqa: BLE001 - any pyarrow error about a broken file becomes one line
        raise _unreadable(path, error) from None


def _read(path: Path, group: int, names: list[str]) -> Any:
    """Some columns of one group."""
    file = _open(path)
    try:
        return file.group(group, names)
    except Exception as error:  # noqa: BLE001 - as above
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> FileError:
    return FileError(f"{path.name} is not a readable {path.suffix} file: {one_line(error)}.")


def _batch(reader: Any, i: int, names: list[str]) -> Any:
    import pyarrow as pa

    return cast("Any", pa.Table).from_batches([reader.get_batch(i)]).select(names)


def _layout(file: _File, path: Path) -> _Layout:
    """The columns to read, whether they contain lists, the dimensions, the precision, and the columns left out."""
    import pyarrow.types

    kinds: Any = pyarrow.types

    def number(kind: Any) -> bool:
        return any(
            is_kind(kind) for is_kind in (kinds.is_floating, kinds.is_integer, kinds.is_boolean, kinds.is_decimal)
        )

    def is_list(kind: Any) -> bool:
        some = kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind)
        return some and number(kind.value_type)

    lists = [field for field in file.schema if is_list(field.type)]
    if len(lists) > 1:
        raise ShapeError(f"{path.name} has several columns of vectors: {', '.join(f.name for f in lists)}. Keep one.")
    if lists:
        left_out = tuple(field.name for field in file.schema if field.name != lists[0].name)
        size = lists[0].type.list_size if kinds.is_fixed_size_list(lists[0].type) else None
        if size is None:
            first = next(i for i, rows in enumerate(file.sizes) if rows)
            head = _read(path, first, [lists[0].name]).column(0)[0].as_py()
            size = 0 if head is None else len(head)
        return (lists[0].name,), True, size, _kind(lists[0].type.value_type), left_out
    fields = [field for field in file.schema if number(field.type) and field.name != PANDAS_INDEX]
    if not fields:
        raise DataTypeError(
            f"{path.name} has no column of numbers or of vectors; it has {', '.join(file.schema.names)}."
        )
    names = tuple(field.name for field in fields)
    if len(set(names)) < len(names):
        raise LabelError(f"{path.name} has several columns with the same name. Rename them: {', '.join(names[:8])}.")
    kind = np.dtype(np.result_type(*[_kind(field.type) for field in fields]))
    left_out = tuple(name for name in file.schema.names if name not in set(names))
    return names, False, len(fields), kind, left_out


def _kind(kind: Any) -> np.dtype[Any]:
    import pyarrow.types

    kinds: Any = pyarrow.types
    if kinds.is_decimal(kind):
        return np.dtype(np.float64)
    stored = np.dtype(bool) if kinds.is_boolean(kind) else np.dtype(kind.to_pandas_dtype())
    return precision(stored, "The file")


def _described(layout: _Layout) -> str:
    names, listed, size, kind, _ = layout
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
        return np.column_stack([_array(column, files.dtype) for column in table.columns])
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
    return _array(flat, files.dtype).reshape(len(column), files.dimensions)


def _array(column: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """An Arrow column as a NumPy array; decimals become float64, up to one unit in the last place."""
    import pyarrow as pa

    some: Any = pa
    if some.types.is_decimal(column.type):
        column = column.cast(some.float64())
    values: NDArray[Any] = column.to_numpy() if hasattr(column, "chunks") else column.to_numpy(zero_copy_only=False)
    return values.astype(dtype, copy=False)
