"""Vectors in Parquet and Arrow files (extra `files`): rows are candidates, read one row group at a time."""

from __future__ import annotations

import glob
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.text import name_columns
from isopursuit._core.types import Array, Indices
from isopursuit.data._files import check_file, is_there, one_line
from isopursuit.data.tables import ARROW, PANDAS_INDEX, PARQUET
from isopursuit.errors import DataTypeError, FileError, LabelError, NonFiniteError, ShapeError, optional
from isopursuit.sources.arrays import BlockSource, precision

SUFFIXES = PARQUET + ARROW


@dataclass(frozen=True)
class Layout:
    """How a file stores its vectors: one column of lists of equal length, or one numeric column for each dimension."""

    names: tuple[str, ...]
    listed: bool
    dimensions: int
    dtype: np.dtype[Any]

    def __str__(self) -> str:
        columns = "one column of lists" if self.listed else f"{len(self.names)} columns"
        return f"{self.dimensions} dimensions of {self.dtype} in {columns}"


@dataclass(frozen=True)
class VectorFiles(BlockSource):
    """Files of vectors. `groups` are the units of reading: (path, group, rows).

    Columns that are not numeric and files without rows are left out, with a note.
    """

    groups: tuple[tuple[Path, int, int], ...]
    layout: Layout
    dtype: np.dtype[Any]
    workers: int | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, pattern: str | Path, workers: int | None = None) -> VectorFiles:
        """The files that match a pattern, in order of their names."""
        matching = [str(pattern)] if is_there(Path(pattern)) else sorted(glob.glob(str(pattern), recursive=True))
        paths = [Path(found) for found in matching]
        if not paths:
            raise FileError(f"No file matches {pattern}.")
        for path in paths:
            check_file(path)
            if path.suffix.lower() not in SUFFIXES:
                raise FileError(f"{path.name} is neither a single .npy file nor one of {', '.join(SUFFIXES)}.")
        groups: list[tuple[Path, int, int]] = []
        empty: list[str] = []
        layouts: dict[Path, Layout] = {}
        left_out: tuple[str, ...] = ()
        for path in paths:
            file = _File(path) if path.stat().st_size else None
            if file is None or not any(file.sizes):
                empty.append(path.name)
                continue
            layout = file.layout()
            for first, other in layouts.items():
                if layout != other:
                    raise ShapeError(f"{path.name} has other vectors than {first.name}: {layout}.")
            if not layouts:
                layouts[path] = layout
                left_out = tuple(name for name in file.schema.names if name not in set(layout.names))
            groups += [(path, i, rows) for i, rows in enumerate(file.sizes) if rows]
        if not layouts:
            raise ShapeError(f"The files of {pattern} have no rows.")
        notes = tuple(
            f"left out, {why}: {name_columns(range(len(names)), tuple(names))}."
            for why, names in (("not numeric", left_out), ("files without rows", empty))
            if names
        )
        (layout,) = layouts.values()
        return cls(tuple(groups), layout, layout.dtype, workers, notes)

    @cached_property
    def starts(self) -> list[int]:
        """The number of the first vector of each group, and the number of all vectors."""
        return np.concatenate([[0], np.cumsum([rows for _, _, rows in self.groups])]).tolist()

    @property
    def shape(self) -> tuple[int, int]:
        """(dimensions, vectors)."""
        return self.layout.dimensions, self.starts[-1]

    def spans(self) -> Iterator[tuple[int, int]]:
        """One row group at a time."""
        return zip(self.starts[:-1], self.starts[1:], strict=True)

    def read(self, first: int, last: int) -> NDArray[Any]:
        """Vectors first to last − 1 as columns, from one or several groups."""
        parts: list[NDArray[Any]] = []
        i = bisect_right(self.starts, first) - 1
        while first < last:
            end = min(last, self.starts[i + 1])
            path, group, _ = self.groups[i]
            table = _File(path).read(group, self.layout.names).slice(first - self.starts[i], end - first)
            parts.append(_numbers(table, self.layout, path, first))
            first, i = end, i + 1
        return (parts[0] if len(parts) == 1 else np.concatenate(parts)).T

    def take(self, indices: Indices) -> Array:
        """These vectors as columns, float64; each group is read once."""
        return self.take_runs(indices, max(rows for _, _, rows in self.groups))


class _File:
    """A Parquet or Arrow file as groups of rows, which `sizes` counts."""

    def __init__(self, path: Path) -> None:
        self.path, self.parquet = path, path.suffix.lower() in PARQUET
        pa, ipc, pq = (
            optional(f"pyarrow{part}", "files", f"Reading vectors from {path.suffix} files")
            for part in ("", ".ipc", ".parquet")
        )
        self.pa: Any = pa
        try:
            if self.parquet:
                self.file: Any = pq.ParquetFile(path)
                self.schema: Any = self.file.schema_arrow
                groups = range(self.file.num_row_groups)
                self.sizes: list[int] = [self.file.metadata.row_group(i).num_rows for i in groups]
            else:
                self.file = ipc.open_file(pa.memory_map(str(path)))
                self.schema = self.file.schema
                self.sizes = [self.file.get_batch(i).num_rows for i in range(self.file.num_record_batches)]
        except Exception as error:  # noqa: BLE001 - any pyarrow error about a broken file becomes one line
            raise self.unreadable(error) from None

    def unreadable(self, error: Exception) -> FileError:
        """The error for a broken file."""
        return FileError(f"{self.path.name} is not a readable {self.path.suffix} file: {one_line(error)}.")

    def read(self, group: int, names: tuple[str, ...]) -> Any:
        """Some columns of one group, as a table."""
        try:
            if self.parquet:
                return self.file.read_row_group(group, list(names), use_threads=False)
            return self.pa.Table.from_batches([self.file.get_batch(group)]).select(list(names))
        except Exception as error:  # noqa: BLE001 - as above
            raise self.unreadable(error) from None

    def layout(self) -> Layout:
        """The columns of numbers or of lists of numbers; raises an error if there are none, or several of lists."""
        types, name = self.pa.types, self.path.name
        lists = [f for f in self.schema if _is_list(types, f.type) and _is_number(types, f.type.value_type)]
        if len(lists) > 1:
            raise ShapeError(f"{name} has several columns of vectors: {', '.join(f.name for f in lists)}. Keep one.")
        if lists:
            one = lists[0]
            if types.is_fixed_size_list(one.type):
                size = one.type.list_size
            else:
                first = next(i for i, rows in enumerate(self.sizes) if rows)
                size = len(self.read(first, (one.name,)).column(0)[0].as_py() or ())
            return Layout((one.name,), True, size, _precision(types, one.type.value_type))
        fields = [field for field in self.schema if _is_number(types, field.type) and field.name != PANDAS_INDEX]
        names = tuple(field.name for field in fields)
        if not names:
            raise DataTypeError(
                f"{name} has no column of numbers or of vectors; it has {', '.join(self.schema.names)}."
            )
        if len(set(names)) < len(names):
            raise LabelError(f"{name} has several columns with the same name. Rename them: {', '.join(names[:8])}.")
        kinds = [_precision(types, field.type) for field in fields]
        return Layout(names, False, len(names), np.dtype(np.result_type(*kinds)))


def _is_list(types: Any, kind: Any) -> bool:
    return types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)


def _is_number(types: Any, kind: Any) -> bool:
    return types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind) or types.is_decimal(kind)


def _precision(types: Any, kind: Any) -> np.dtype[Any]:
    """Decimals become float64, up to one unit in the last place."""
    stored = np.float64 if types.is_decimal(kind) else bool if types.is_boolean(kind) else kind.to_pandas_dtype()
    return precision(np.dtype(stored), "The file")


def _numbers(table: Any, layout: Layout, path: Path, first: int) -> NDArray[Any]:
    """The table's vectors, (m, D), contiguous; the first is number `first`."""
    import pyarrow.compute

    pc: Any = pyarrow.compute
    missing = sum(column.null_count for column in table.columns)
    if missing:
        row = next(i for column in table.columns for i, null in enumerate(pc.is_null(column).to_pylist()) if null)
        raise NonFiniteError(f"{path.name} has {missing} missing vectors or cells, the first in row {first + row}.")
    if not layout.listed:
        return np.column_stack([_array(column, layout.dtype) for column in table.columns])
    column = table.column(0).combine_chunks()
    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(lengths != layout.dimensions)
    if len(wrong):
        row = int(wrong[0])
        raise ShapeError(
            f"{path.name}: the vector in row {first + row} has {lengths[row]} entries; expected {layout.dimensions}."
        )
    flat = column.flatten()
    if flat.null_count:
        raise NonFiniteError(f"{path.name} has {flat.null_count} missing entries in its vectors.")
    return _array(flat, layout.dtype).reshape(len(column), layout.dimensions)


def _array(column: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """An Arrow column without missing entries as a NumPy array."""
    import pyarrow as pa

    some: Any = pa
    if some.types.is_decimal(column.type):
        column = column.cast(some.float64())
    return np.asarray(column).astype(dtype, copy=False)
