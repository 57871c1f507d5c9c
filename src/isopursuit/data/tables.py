"""Tables of named numbers: read from any supported format, standardized, and their rows or columns as candidates."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

import numpy as np

from isopursuit._core.linalg import centring_rounding
from isopursuit._core.text import SHOWN, listed, name_columns
from isopursuit._core.types import Array, Labels
from isopursuit.data._cells import FIRST_ROW, Style, as_text, read_columns
from isopursuit.data._files import check_file, load_array, one_line
from isopursuit.data._identifiers import doubtful_columns
from isopursuit.data._layout import Columns, read_frame, read_text
from isopursuit.data._matrix import Matrix, with_fewer_rows
from isopursuit.data._units import Standard, ranks
from isopursuit.errors import (
    DataTypeError,
    FileError,
    IsoPursuitError,
    LabelError,
    NonFiniteError,
    ParameterError,
    ShapeError,
    did_you_mean,
    optional,
    printable,
)

TEXT = (".csv", ".tsv", ".txt", ".tab", ".dat", "")
EXCEL = (".xlsx", ".xlsm", ".xlsb", ".xls")
PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")
REMEDY = "leave out columns that only name rows, with --drop-columns {names} (drop_columns=)"
PANDAS_INDEX = "__index_level_0__"  # the name that pandas gives to an unnamed index


@dataclass(frozen=True)
class Table:
    """A table: `values` (rows, columns), the names of the columns, the labels of the rows, and notes for the user."""

    values: Array
    columns: tuple[str, ...]
    rows: Labels
    notes: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()  # row numbers in the file, if some rows were left out
    shift: Array | None = None  # |mean| / spread of each column before standardization

    def ranked(self) -> Table:
        """The table with the ranks of the cells in each column (equal cells have their mean rank), for Spearman's
        correlation.
        """
        return replace(self, values=ranks(self.values))

    def standardized(self) -> Table:
        """The table with columns of mean 0 and variance 1; constant columns are left out, with a note."""
        standard = Standard.of(self.values)
        varying, notes = standard.varying, self.notes
        if not varying.all():
            notes += (f"left out, constant: {name_columns(np.flatnonzero(~varying).tolist(), self.columns)}.",)
        columns = tuple(name for name, kept in zip(self.columns, varying, strict=True) if kept)
        shift = (np.abs(standard.mean) / standard.spread)[varying]
        return replace(self, values=standard.apply(self.values)[:, varying], columns=columns, notes=notes, shift=shift)

    def samples(self) -> Matrix:
        """Rows as candidates: X is columns × rows, as in the paper's diversification."""
        shift = None if self.shift is None else np.linalg.norm(self.shift)
        return Matrix(
            np.ascontiguousarray(self.values.T), self.rows, self.notes, centring_rounding(self.values.T, shift)
        )

    def features(self) -> Matrix:
        """Columns as candidates.

        Their lengths are divided by √rows, so a standardized column has length 1. If there are more rows than columns,
        the rows are rotated into as many coordinates as there are columns, which does not change inner products.
        """
        scaled = self.values / np.sqrt(len(self.values))
        matrix = Matrix(scaled, self.columns, self.notes, centring_rounding(scaled, self.shift))
        return with_fewer_rows(matrix)


def read_table(
    path: str | Path,
    *,
    columns: Sequence[str] | str | None = None,
    label: str | None = None,
    drop_missing: bool = False,
    header: bool | None = None,
    drop_columns: Sequence[str] | str = (),
    decimal: str | None = None,
    thousands: str | None = None,
    missing: Sequence[str] | str = (),
) -> Table:
    """Read a table of numbers.

    Parameters
    ----------
    path : path
        A .csv, .tsv, .txt (or .csv.gz), .xlsx, .parquet, .arrow, .feather, .npy or .npz file. Separator, decimal comma,
        comments, a missing header and an index column without a name, as pandas and R write it, are recognized, and so
        are amounts of one currency and percentages, with a note. Of an Excel file the first sheet is read.
    columns : sequence of str, or str separated by commas, optional
        The columns to use. Default: all numeric columns (a note names the text columns, which are left out).
    label : str, optional
        The column that names the rows. Default: an index column without a name, if there is one.
    drop_missing : bool
        Leave out rows with missing cells. By default they raise an error.
    header : bool, optional
        Whether the first line of a text file contains column names. By default this is detected; if the names could
        be numbers, a note says what was assumed.
    drop_columns : sequence of str, or str separated by commas
        Columns to leave out. If `columns` is not given, a note names the columns that look like identifiers or
        counters, and those that are nearly constant (see `isopursuit.data._identifiers`).
    decimal : {".", ","}, optional
        The decimal mark of a text file. Default: detected; a column in which it is not certain is refused.
    thousands : str, optional
        What separates thousands in a text file, such as ",". Default: nothing; a column with such a mark is refused.
    missing : sequence of str, or str separated by commas
        Words for missing cells, in addition to an empty cell, NA, N/A, #N/A, NaN, null, None, ?, -, . and the like.

    Raises
    ------
    FileError
        The file does not exist, or does not have the format that its name implies.
    NonFiniteError
        Cells are missing; the message gives the row and column of the first few.
    """
    if not isinstance(path, str | PathLike):
        raise ParameterError(f"path is {type(path).__name__}; expected the name of a file.")
    path = Path(path)
    columns, dropped, missing = _listed(columns), _listed(drop_columns) or [], _listed(missing) or []
    style = Style.of(decimal, thousands, missing)
    check_file(path)
    packed = path.suffix.lower() == ".gz"
    kind = (Path(path.stem) if packed else path).suffix.lower()
    if packed and kind not in TEXT:
        raise FileError(f"{path.name}: of packed files only text is read, such as .csv.gz. Unpack it first.")
    for option, given in (("header", header), ("decimal", decimal), ("thousands", thousands), ("missing", missing)):
        if given not in (None, []) and kind not in TEXT + EXCEL:
            raise ParameterError(f"{option}= is for text files, and {path.name} is none. Leave it out.")
    if kind in (".npy", ".npz"):
        array = load_array(path)
        _check_array(array, path)
        if label is not None:
            raise LabelError(f"{path.name} is an array without names, so it has no label column {label!r}.")
        used, notes = _used([f"column {j}" for j in range(array.shape[1])], columns, dropped)
        places = list(used.values())
        values = (array if columns is None and not dropped else array[:, places]).astype(np.float64)
        table = Table(values, tuple(used), tuple(f"row {i}" for i in range(len(array))), notes)
    else:
        table = _from_columns(_load_columns(path, kind, header, style), columns, dropped, label)
    table = _without_missing(table, drop_missing)
    if columns is not None:
        return table
    return replace(table, notes=table.notes + doubtful_columns(table.values, table.columns, REMEDY))


def _listed(names: Sequence[str] | str | None) -> Sequence[str] | None:
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else names


def _used(
    known: Sequence[str], columns: Sequence[str] | None, dropped: Sequence[str], label: str | None = None
) -> tuple[dict[str, int], tuple[str, ...]]:
    """The names and places of the columns to use, and a note about names that were given twice."""
    if columns is not None and len(columns) == 0:
        raise ParameterError("columns= names no column. Leave it out to use all numeric columns.")
    place = {name: j for j, name in enumerate(known)}
    for name in (*dropped, *(columns or ()), *(() if label is None else (label,))):
        if name not in place:
            hint = did_you_mean(str(name), known) or f"It has {', '.join(known[:8])}."
            raise LabelError(f"The file has no column {name!r}. {hint}")
    out = {label, *dropped}
    asked = [name for name in (known if columns is None else columns) if name not in out]
    if dropped and not asked:
        raise ParameterError("drop_columns= (--drop-columns) leaves no column. Drop fewer columns.")
    used = {name: place[name] for name in asked}
    twice = [name for name, times in Counter(asked).items() if times > 1] if len(used) < len(asked) else []
    return used, (f"named more than once, used once: {listed(twice)}.",) if twice else ()


def _load_columns(path: Path, kind: str, header: bool | None, style: Style) -> Columns:
    pl = optional("polars", "files", f"Reading {kind or 'text'} files")
    if kind not in TEXT + EXCEL + PARQUET + ARROW:
        raise FileError(
            f"{path.name}: {kind} files are not supported. Use .csv, .csv.gz, .tsv, .xlsx, .parquet, .arrow, .npy or "
            ".npz."
        )
    if kind in EXCEL:
        optional("fastexcel", "files", f"Reading {kind} files", "save the sheet as .csv")
    try:
        if kind in TEXT:
            raw = path.read_bytes()
            raw = gzip.decompress(raw) if path.suffix.lower() == ".gz" else raw
            return read_text(raw, path.name, header, style)
        if kind in EXCEL:  # cells as text, so that they are read by the same rules
            sheet = pl.read_excel(path, has_header=False, infer_schema_length=0)
            return read_frame(sheet, path.name, header, replace(style, known="."), [sheet.width])
        frame = pl.read_parquet(path) if kind in PARQUET else pl.read_ipc(path)
    except IsoPursuitError:
        raise
    except BaseException as error:
        # any polars error about a broken file becomes one line; its panics do not derive from Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        remedy = " Save the sheet as .csv." if kind in EXCEL else ""
        raise FileError(f"{path.name} is not a readable {kind or 'text'} file: {one_line(error)}.{remedy}") from None
    if PANDAS_INDEX not in frame.columns:
        return Columns(frame.columns, frame.get_columns())
    index, rest = [str(value) for value in frame[PANDAS_INDEX]], frame.drop(PANDAS_INDEX)
    note = "the unnamed index saved by pandas was read as row labels."
    return Columns(rest.columns, rest.get_columns(), index, (), note)


def _check_array(array: Array, path: Path) -> None:
    if array.ndim != 2:
        raise ShapeError(f"{path.name} contains an array of {array.ndim} dimensions {array.shape}; expected a table.")
    if array.dtype.kind not in "biuf":
        raise DataTypeError(f"{path.name} contains {array.dtype}, not real numbers.")
    if array.size == 0:
        raise ShapeError(f"{path.name} is empty: it has {array.shape[0]} rows and {array.shape[1]} columns.")


def _from_columns(read: Columns, columns: Sequence[str] | None, dropped: Sequence[str], label: str | None) -> Table:
    import polars as pl

    height = len(read.series[0]) if read.series else 0
    if height == 0:
        raise ShapeError(f"The file is empty: it has {height} rows and {len(read.names)} columns.")
    used, notes = _used(read.names, columns, dropped, label)
    numeric: dict[str, pl.Series]
    about: dict[str, str]
    frame = pl.DataFrame([read.series[j].alias(name) for name, j in used.items()])
    if read.style is None:  # the file knows which columns are numbers
        kinds = {name: kind.is_numeric() or kind == pl.Boolean for name, kind in frame.schema.items()}
        numeric = {name: frame[name].cast(pl.Float64) for name, number in kinds.items() if number}
        about = {name: as_text(frame[name]) for name, number in kinds.items() if not number}
    else:
        numeric, about, further = read_columns(frame, read.style)
        notes += further
    example = next((str(value) for name in about for value in frame[name].drop_nulls().head(1)), "nothing")
    if columns is not None and about:
        raise DataTypeError(f"Column {next(iter(about))!r} is not numeric: it contains {example!r}. Choose others.")
    if not numeric:
        raise DataTypeError(
            f"No column is numeric; the columns are {listed(read.names)}, and the first contains {example!r}. Check "
            "the file's separator, and that the numbers start directly below one line of names."
        )
    notes = read.notes + notes
    if about:
        unique = next((name for name, note in about.items() if note == name and frame[name].is_unique().all()), None)
        if label is None and read.index is None and unique is not None and height > 1:
            about[unique] = f"{unique} (--label {unique} names the rows by it)"
        notes += (f"left out, not numeric: {listed(about.values())}.",)
    values = np.empty((height, len(numeric)))
    for j, one in enumerate(numeric.values()):
        values[:, j] = one.to_numpy()
    rows = read.index or [f"row {i}" for i in range(height)]
    if label is not None:
        named = read.series[read.names.index(label)]
        rows = [rows[i] if value is None else str(value).strip(' "') for i, value in enumerate(named)]
    if read.index is not None:
        notes += (read.index_note if label is None else "left out, the unnamed index.",)
    if len(set(rows)) < height:
        rows = [f"{value} (row {i})" for i, value in enumerate(rows)]
    return Table(values, tuple(numeric), tuple(rows), notes)


def _without_missing(table: Table, drop: bool) -> Table:
    finite = np.isfinite(table.values)
    if finite.all():
        return table
    if drop:
        whole = np.asarray(finite.all(axis=1))
        if not whole.any():
            raise NonFiniteError(
                "Every row has a missing cell, so no row remains after dropping them. Choose other columns."
            )
        numbers = tuple(np.flatnonzero(whole).tolist())
        gone = np.flatnonzero(~whole)
        some = name_columns(gone.tolist(), table.rows)
        note = f"{len(gone):,} of {len(whole):,} rows dropped, with missing cells: {some}"
        alone = ~finite & (finite.sum(axis=1, keepdims=True) == finite.shape[1] - 1)
        worst = int(alone.sum(axis=0).argmax())  # the column that alone drops most rows
        if 2 * int(alone[:, worst].sum()) > len(gone) > 1:
            note += f"; {int(alone[:, worst].sum()):,} of them only because of column {printable(table.columns[worst])}"
        note += "."
        rows = tuple(table.rows[i] for i in numbers)
        return replace(table, values=table.values[whole], rows=rows, notes=(*table.notes, note), numbers=numbers)
    where = np.argwhere(~finite)
    some = "; ".join(f"{printable(table.rows[i])}, column {table.columns[j]!r}" for i, j in where[:SHOWN])
    more = f" and {len(where) - SHOWN} more" if len(where) > SHOWN else ""
    raise NonFiniteError(
        f"{len(where)} {'cell is' if len(where) == 1 else 'cells are'} missing or not finite, in "
        f"{len(np.unique(where[:, 0])):,} of {len(finite):,} rows: {some}{more} "
        f"({FIRST_ROW}). Use --drop-missing (drop_missing=True) to leave out those rows, or choose other columns."
    )
