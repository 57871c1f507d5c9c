"""Tables from files: CSV, TSV, Parquet, Arrow, .npy and .npz become numbers with names, or a one-line refusal.

CSV, Parquet and Arrow are read by polars (extra `files`). Arrays are never unpickled.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from isopursuit.errors import (
    DataTypeError,
    FileError,
    IsoPursuitError,
    LabelError,
    NonFiniteError,
    ShapeError,
    optional,
)
from isopursuit.matrix import EPS, SHOWN, Label, Matrix, name_columns, row_triangle

if TYPE_CHECKING:
    import polars as pl

Array = NDArray[np.float64]

MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?"]
SEPARATORS = "\t;|,"


@dataclass(frozen=True)
class Table:
    """Numbers with names: `values` (rows, columns), the columns' names, each row's label, remarks for the user."""

    values: Array
    columns: tuple[str, ...]
    rows: tuple[Label, ...]
    notes: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()  # where each row stands in the file, if some were left out
    shift: Array | None = None  # |mean| / spread of each column before standardization

    def standardized(self) -> Table:
        """Columns with mean 0 and variance 1; constant ones are left out with a note."""
        constant = np.ptp(self.values, axis=0) == 0
        notes = self.notes
        if constant.any():
            names = name_columns(np.flatnonzero(constant).tolist(), self.columns)
            notes += (f"left out, constant: {names}.",)
        values = self.values[:, ~constant]
        if values.shape[1] == 0:
            raise ShapeError("Every column is constant, so there is nothing to standardize.")
        columns = tuple(name for name, same in zip(self.columns, constant, strict=True) if not same)
        mean, spread = values.mean(axis=0), values.std(axis=0)
        shift = np.abs(mean) / spread
        return replace(self, values=(values - mean) / spread, columns=columns, notes=notes, shift=shift)

    def samples(self) -> Matrix:
        """Rows as candidates: X is columns × rows, as in the paper's diversification."""
        shift = None if self.shift is None else np.linalg.norm(self.shift)
        return Matrix(np.ascontiguousarray(self.values.T), self.rows, self.notes, _rounding(self.values.T, shift))

    def features(self) -> Matrix:
        """Columns as candidates.

        Their lengths are divided by √rows, so that a standardized column has length 1; where there are more rows than
        columns, the rows are rotated into as many coordinates as there are columns, which changes no inner product.
        """
        n, P = self.values.shape
        scaled = self.values / np.sqrt(n)
        values = row_triangle(scaled.T) if n > P else scaled
        return Matrix(values, self.columns, self.notes, _rounding(scaled, self.shift))


def _rounding(values: Array, shift: Any) -> Array | None:
    """What centring leaves of rounding in each column, as in `Matrix`."""
    return None if shift is None else EPS * (np.linalg.norm(values, axis=0) + 2 * shift)


def read_table(
    path: str | Path,
    *,
    columns: Sequence[str] | str | None = None,
    label: str | None = None,
    drop_missing: bool = False,
) -> Table:
    """Read a table of numbers.

    Parameters
    ----------
    path : path
        A .csv, .tsv, .txt, .parquet, .arrow, .feather, .npy or .npz file. Separator, decimal comma and a missing header
        are recognized.
    columns : sequence of str, or str with commas between, optional
        The columns to use; all numeric ones if not given (text columns are left out with a note).
    label : str, optional
        The column that names the rows.
    drop_missing : bool
        Leave out rows with missing cells instead of refusing them.

    Raises
    ------
    FileError
        The file is not there or not what its name says.
    NonFiniteError
        Cells are missing; the message names the first few by row and column.
    """
    path = Path(path)
    columns = [name.strip() for name in columns.split(",")] if isinstance(columns, str) else columns
    if not path.is_file():
        raise FileError(f"There is no file {path}.{_neighbours(path)}")
    kind = path.suffix.lower()
    if kind in (".npy", ".npz"):
        table = _from_array(_load_array(path), path)
        if label is not None:
            raise LabelError(f"{path.name} is an array without names, so it has no label column {label!r}.")
        return _without_missing(_chosen(table, columns), drop_missing)
    return _without_missing(_from_frame(_load_frame(path, kind), columns, label), drop_missing)


def _neighbours(path: Path) -> str:
    try:
        near = difflib.get_close_matches(path.name, [other.name for other in islice(path.parent.iterdir(), 1000)], n=3)
    except OSError:
        return " Its folder does not exist either."
    return f" Did you mean {' or '.join(near)}?" if near else ""


def _load_array(path: Path) -> NDArray[Any]:
    try:
        with path.open("rb") as file:
            loaded: Any = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return cast("NDArray[Any]", loaded)
            matrices = [name for name in loaded.files if loaded[name].ndim == 2]
            if len(matrices) != 1:
                found = ", ".join(loaded.files) or "none"
                raise FileError(f"{path.name} must hold exactly one matrix; it holds the arrays {found}.")
            return loaded[matrices[0]]
    except IsoPursuitError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever NumPy says of a broken file becomes one line
        pickled = "pickle" in str(error)
        hint = " It holds Python objects, which are never unpickled; save plain numbers." if pickled else ""
        raise FileError(f"{path.name} is not a readable {path.suffix} file: {_one_line(error)}.{hint}") from None


def _from_array(array: NDArray[Any], path: Path) -> Table:
    if array.ndim != 2:
        raise ShapeError(f"{path.name} holds an array of {array.ndim} dimensions {array.shape}; expected a table.")
    if array.dtype.kind not in "biuf":
        raise DataTypeError(f"{path.name} holds {array.dtype}, not real numbers.")
    if array.size == 0:
        raise ShapeError(f"{path.name} is empty: it has {array.shape[0]} rows and {array.shape[1]} columns.")
    columns = tuple(f"column {j}" for j in range(array.shape[1]))
    return Table(array.astype(np.float64), columns, tuple(f"row {i}" for i in range(array.shape[0])))


def _load_frame(path: Path, kind: str) -> pl.DataFrame:
    pl = optional("polars", "files", f"Reading {kind or 'text'} files")
    try:
        if kind in (".parquet", ".pq"):
            return pl.read_parquet(path)
        if kind in (".arrow", ".feather", ".ipc"):
            return pl.read_ipc(path)
        if kind in (".csv", ".tsv", ".txt", ".tab", ".dat", ""):
            separator, decimal_comma, header = _dialect(path)
            return pl.read_csv(
                path,
                separator=separator,
                decimal_comma=decimal_comma,
                has_header=header,
                null_values=MISSING,
                infer_schema_length=None,
                encoding="utf8-lossy",
            )
    except IsoPursuitError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever polars says of a broken file becomes one line
        raise FileError(f"{path.name} is not a readable {kind or 'text'} file: {_one_line(error)}.") from None
    raise FileError(f"{path.name}: {kind} files are not known. Use .csv, .tsv, .parquet, .arrow, .npy or .npz.")


def _dialect(path: Path) -> tuple[str, bool, bool]:
    """Separator, decimal comma, and whether the first line is a header, from the first few lines."""
    with path.open(encoding="utf-8-sig", errors="replace") as text:
        lines = [line.rstrip("\r\n") for line in islice(text, 50) if line.strip()]
    if not lines:
        raise FileError(f"{path.name} is empty. Expected a header line and rows of numbers.")
    bare = [re.sub(r'"[^"]*"', "", line) for line in lines]
    # the first separator that stands equally often in every line, or the most frequent in the first
    regular = (s for s in SEPARATORS if bare[0].count(s) > 0 and len({line.count(s) for line in bare}) == 1)
    separator = next(regular, max(reversed(SEPARATORS), key=bare[0].count))
    cells = [cell for line in lines for cell in line.split(separator)]
    commas = sum(bool(re.fullmatch(r"\s*[-+]?\d*,\d+([eE][-+]?\d+)?\s*", cell)) for cell in cells)
    points = sum(bool(re.fullmatch(r"\s*[-+]?\d*\.\d+([eE][-+]?\d+)?\s*", cell)) for cell in cells)
    first = lines[0].split(separator)
    numbers = [_is_number(cell if separator == "," else cell.replace(",", ".")) for cell in first]
    return separator, separator != "," and commas > points, not all(numbers)


def _is_number(cell: str) -> bool:
    try:
        float(cell.strip().strip('"'))
    except ValueError:
        return False
    return True


def _from_frame(frame: pl.DataFrame, columns: Sequence[str] | None, label: str | None) -> Table:
    import polars as pl

    if frame.height == 0 or frame.width == 0:
        raise ShapeError(f"The file is empty: it has {frame.height} rows and {frame.width} columns.")
    names = frame.columns
    _check_known([*(columns or ()), *([] if label is None else [label])], names)
    wanted = [name for name in (columns if columns is not None else names) if name != label]
    numeric = [name for name in wanted if frame[name].dtype.is_numeric() or frame[name].dtype == pl.Boolean]
    text = [name for name in wanted if name not in numeric]
    if columns is not None and text:
        example = next((str(value) for value in frame[text[0]].drop_nulls().head(1)), "nothing")
        raise DataTypeError(f"Column {text[0]!r} is not numeric: it holds {example!r}. Choose other columns.")
    if not numeric:
        raise DataTypeError(f"No column is numeric; the columns are {', '.join(names[:SHOWN])}.")
    notes = ()
    if text:
        notes = (f"left out, not numeric: {', '.join(text[:SHOWN])}{' and more' if len(text) > SHOWN else ''}.",)
    values = frame.select(pl.col(name).cast(pl.Float64) for name in numeric).to_numpy()
    rows = [f"row {i}" for i in range(frame.height)]
    if label is not None:
        given = [str(value) for value in frame[label]]
        unique = len(set(given)) == len(given)
        rows = given if unique else [f"{value} ({row})" for value, row in zip(given, rows, strict=True)]
    return Table(np.asarray(values, dtype=np.float64), tuple(numeric), tuple(rows), notes)


def _check_known(asked: Iterable[str], known: Sequence[str]) -> None:
    for name in asked:
        if name not in known:
            plain = {other.casefold(): other for other in known}
            near = [plain[found] for found in difflib.get_close_matches(name.casefold(), plain, n=3)]
            hint = f"Did you mean {' or '.join(repr(n) for n in near)}?" if near else f"It has {', '.join(known[:8])}."
            raise LabelError(f"The file has no column {name!r}. {hint}")


def _chosen(table: Table, columns: Sequence[str] | None) -> Table:
    if columns is None:
        return table
    _check_known(columns, table.columns)
    chosen = [table.columns.index(name) for name in columns]
    return replace(table, values=table.values[:, chosen], columns=tuple(columns))


def _without_missing(table: Table, drop: bool) -> Table:
    finite = np.isfinite(table.values)
    if finite.all():
        return table
    if drop:
        whole = np.asarray(finite.all(axis=1))
        if not whole.any():
            raise NonFiniteError("Every row has a missing cell, so dropping them leaves nothing. Choose other columns.")
        numbers = tuple(np.flatnonzero(whole).tolist())
        note = f"left out, with missing cells: {name_columns(np.flatnonzero(~whole).tolist(), table.rows)}."
        rows = tuple(table.rows[i] for i in numbers)
        return replace(table, values=table.values[whole], rows=rows, notes=(*table.notes, note), numbers=numbers)
    where = np.argwhere(~finite)
    some = "; ".join(f"{table.rows[i]}, column {table.columns[j]!r}" for i, j in where[:SHOWN])
    more = f" and {len(where) - SHOWN} more" if len(where) > SHOWN else ""
    raise NonFiniteError(
        f"{len(where)} {'cell is' if len(where) == 1 else 'cells are'} missing or not finite: {some}{more} "
        "(the first row below the header is row 0). "
        "Use --drop-missing (drop_missing=True) to leave those rows out, or choose other columns."
    )


def _one_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
