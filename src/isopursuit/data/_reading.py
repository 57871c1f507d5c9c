"""Read a table from any supported format: columns become numbers, and notes name the columns that are left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.text import SHOWN, listed, name_columns
from isopursuit.data._delimited import GROUPED, read_delimited
from isopursuit.data._files import check_file, load_array, one_line
from isopursuit.data._header import Columns, as_number, bare
from isopursuit.data._identifiers import identifier_note
from isopursuit.data._table import Table
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

if TYPE_CHECKING:
    import polars as pl

TEXT = (".csv", ".tsv", ".txt", ".tab", ".dat", "")
PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")
REMEDY = "leave out columns that only name rows, with --drop-columns {names} (drop_columns=)"
FIRST_ROW = "the first row below the header is row 0"
PANDAS_INDEX = "__index_level_0__"  # the name that pandas gives to an unnamed index


def read_table(
    path: str | Path,
    *,
    columns: Sequence[str] | str | None = None,
    label: str | None = None,
    drop_missing: bool = False,
    header: bool | None = None,
    drop_columns: Sequence[str] | str = (),
) -> Table:
    """Read a table of numbers.

    Parameters
    ----------
    path : path
        A .csv, .tsv, .txt, .parquet, .arrow, .feather, .npy or .npz file. Separator, decimal comma, comments, a missing
        header and an index column without a name, as pandas and R write it, are recognized.
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
        counters (see `isopursuit.data._identifiers`).

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
    columns, dropped = _listed(columns), _listed(drop_columns) or []
    check_file(path)
    kind = path.suffix.lower()
    if header is not None and kind not in TEXT:
        raise ParameterError(f"header= is for text files; {path.name} has no header line. Leave it out.")
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
        table = _from_columns(_load_columns(path, kind, header), columns, dropped, label)
    table = _without_missing(table, drop_missing)
    if columns is not None:
        return table
    return replace(table, notes=table.notes + identifier_note(table.values, table.columns, REMEDY))


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


def _load_columns(path: Path, kind: str, header: bool | None) -> Columns:
    pl = optional("polars", "files", f"Reading {kind or 'text'} files")
    if kind not in TEXT + PARQUET + ARROW:
        raise FileError(f"{path.name}: {kind} files are not supported. Use .csv, .tsv, .parquet, .arrow, .npy or .npz.")
    try:
        if kind in TEXT:
            return read_delimited(path.read_bytes(), path.name, header)
        frame = pl.read_parquet(path) if kind in PARQUET else pl.read_ipc(path)
    except IsoPursuitError:
        raise
    except BaseException as error:
        # any polars error about a broken file becomes one line; its panics do not derive from Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise FileError(f"{path.name} is not a readable {kind or 'text'} file: {one_line(error)}.") from None
    if PANDAS_INDEX not in frame.columns:
        return Columns(frame.columns, frame.get_columns())
    index, rest = [str(value) for value in frame[PANDAS_INDEX]], frame.drop(PANDAS_INDEX)
    note = "the unnamed index saved by pandas was read as row labels."
    return Columns(rest.columns, rest.get_columns(), index, (), note)


def _check_array(array: NDArray[Any], path: Path) -> None:
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
    numeric: dict[str, pl.Series] = {}
    text: dict[str, pl.Series] = {}
    for name, j in used.items():
        one = read.series[j]
        (numeric if one.dtype.is_numeric() or one.dtype == pl.Boolean else text)[name] = one
    for name, one in text.items():
        _refuse_thousands(name, one)
    example = next((str(value) for one in text.values() for value in one.drop_nulls().head(1)), "nothing")
    if columns is not None and text:
        raise DataTypeError(f"Column {next(iter(text))!r} is not numeric: it contains {example!r}. Choose others.")
    if not numeric:
        raise DataTypeError(
            f"No column is numeric; the columns are {listed(read.names)}, and the first contains {example!r}. Check "
            "the file's separator, and that the numbers start directly below one line of names."
        )
    for name, one in text.items():
        _refuse_few_words(name, one)
    notes = read.notes + notes
    if text:
        notes += (f"left out, not numeric: {listed(text)}.",)
    values = np.empty((height, len(numeric)))
    for j, one in enumerate(numeric.values()):
        values[:, j] = (one if one.dtype == pl.Float64 else one.cast(pl.Float64)).to_numpy()
    rows = read.index or [f"row {i}" for i in range(height)]
    if label is not None:
        rows = [str(value) for value in read.series[read.names.index(label)]]
    if read.index is not None:
        notes += (read.index_note if label is None else "left out, the unnamed index.",)
    if len(set(rows)) < height:
        rows = [f"{value} (row {i})" for i, value in enumerate(rows)]
    return Table(values, tuple(numeric), tuple(rows), notes)


def _refuse_thousands(name: str, column: pl.Series) -> None:
    """Refuse a text column of numbers with thousands separators, or with a point or comma that may be one."""
    import polars as pl

    if column.dtype != pl.String:
        return
    cells = ["" if cell is None else bare(cell) for cell in column]
    if any(not GROUPED.fullmatch(cell) and as_number(cell, decimal_comma=True) is None for cell in cells):
        return
    row, found = next(((i, found) for i, cell in enumerate(cells) if (found := GROUPED.fullmatch(cell))), (0, None))
    if found is None:
        return
    may_be_decimal = found[1] in ".," and not found[2] and not found[4]
    remedy = f" If {found[1]!r} is the decimal mark, write another digit: {found[0]}0." if may_be_decimal else ""
    raise DataTypeError(
        f"Column {name!r} has {found[0]!r} in row {row} ({FIRST_ROW}), where {found[1]!r} may separate thousands. Save "
        f"the numbers without thousands separators, or {_leave_out(name)}.{remedy}"
    )


def _refuse_few_words(name: str, column: pl.Series) -> None:
    """Refuse a column of text most of whose cells are numbers: it is a measurement with a few bad cells."""
    import polars as pl

    if column.dtype != pl.String:
        return
    given = column.drop_nulls()
    number = given.str.strip_chars().cast(pl.Float64, strict=False).is_not_null()
    if not 2 * int(number.sum()) > len(given):
        return
    if number.all():
        raise DataTypeError(
            f"Column {name!r} contains numbers stored as text. Convert it to numbers, or {_leave_out(name)}."
        )
    wrong = str(given.filter(~number)[0])
    row = int((column == wrong).fill_null(False).arg_true()[0])
    raise DataTypeError(
        f"Column {name!r} has numbers in {number.sum():,} of {len(given):,} cells, but {printable(wrong)!r} in row "
        f"{row} ({FIRST_ROW}). Correct such cells, or {_leave_out(name)}."
    )


def _leave_out(name: str) -> str:
    return f"leave the column out: --drop-columns {name!r} (drop_columns=)"


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
        note = f"left out, with missing cells: {name_columns(np.flatnonzero(~whole).tolist(), table.rows)}."
        rows = tuple(table.rows[i] for i in numbers)
        return replace(table, values=table.values[whole], rows=rows, notes=(*table.notes, note), numbers=numbers)
    where = np.argwhere(~finite)
    some = "; ".join(f"{printable(table.rows[i])}, column {table.columns[j]!r}" for i, j in where[:SHOWN])
    more = f" and {len(where) - SHOWN} more" if len(where) > SHOWN else ""
    raise NonFiniteError(
        f"{len(where)} {'cell is' if len(where) == 1 else 'cells are'} missing or not finite: {some}{more} "
        f"({FIRST_ROW}). Use --drop-missing (drop_missing=True) to leave out those rows, or choose other columns."
    )
