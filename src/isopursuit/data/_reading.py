"""Read a table from any supported format: columns become numbers, and notes name the columns that are left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.text import name_columns
from isopursuit.data._delimited import GROUPED, Columns, as_number, bare, read_delimited
from isopursuit.data._files import check_file, load_array, one_line
from isopursuit.data._identifiers import identifier_note
from isopursuit.data._matrix import SHOWN
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
    columns = _listed(columns) if isinstance(columns, str) else columns
    dropped = _listed(drop_columns) if isinstance(drop_columns, str) else drop_columns
    columns = None if columns is None else [name for name in columns if name not in dropped]
    check_file(path)
    kind = path.suffix.lower()
    if header is not None and kind not in TEXT:
        raise ParameterError(f"header= is for text files; {path.name} has no header line. Leave it out.")
    if kind in (".npy", ".npz"):
        table = _from_array(load_array(path), path)
        if label is not None:
            raise LabelError(f"{path.name} is an array without names, so it has no label column {label!r}.")
        table = _chosen(table, columns, dropped)
    else:
        table = _from_columns(_without(_load_columns(path, kind, header), dropped, label), columns, label)
    table = _without_missing(table, drop_missing)
    if columns is not None:
        return table
    return replace(table, notes=table.notes + identifier_note(table.values, table.columns, REMEDY))


def _listed(names: str) -> list[str]:
    return [name.strip() for name in names.split(",")]


def _without(read: Columns, dropped: Sequence[str], label: str | None) -> Columns:
    """The file's columns without the dropped ones; the label column is kept, since it only names the rows."""
    if not dropped:
        return read
    _check_known(dropped, read.names)
    kept = [j for j, name in enumerate(read.names) if name == label or name not in dropped]
    if not kept:
        raise ParameterError("drop_columns= (--drop-columns) leaves no column. Drop fewer columns.")
    return replace(read, names=[read.names[j] for j in kept], series=[read.series[j] for j in kept if read.series])


def _load_columns(path: Path, kind: str, header: bool | None) -> Columns:
    pl = optional("polars", "files", f"Reading {kind or 'text'} files")
    try:
        if kind in TEXT:
            return read_delimited(path.read_bytes(), path.name, header)
        if kind in PARQUET + ARROW:
            frame = pl.read_parquet(path) if kind in PARQUET else pl.read_ipc(path)
            names, series = list(frame.columns), list(frame.get_columns())
            if PANDAS_INDEX not in names:
                return Columns(names, series)
            j = names.index(PANDAS_INDEX)
            index = [str(value) for value in series[j]]
            note = "the unnamed index saved by pandas was read as row labels."
            return Columns(names[:j] + names[j + 1 :], series[:j] + series[j + 1 :], index, (), note)
    except IsoPursuitError:
        raise
    except BaseException as error:
        # any polars error about a broken file becomes one line; its panics do not derive from Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise FileError(f"{path.name} is not a readable {kind or 'text'} file: {one_line(error)}.") from None
    raise FileError(f"{path.name}: {kind} files are not supported. Use .csv, .tsv, .parquet, .arrow, .npy or .npz.")


def _from_array(array: NDArray[Any], path: Path) -> Table:
    if array.ndim != 2:
        raise ShapeError(f"{path.name} contains an array of {array.ndim} dimensions {array.shape}; expected a table.")
    if array.dtype.kind not in "biuf":
        raise DataTypeError(f"{path.name} contains {array.dtype}, not real numbers.")
    if array.size == 0:
        raise ShapeError(f"{path.name} is empty: it has {array.shape[0]} rows and {array.shape[1]} columns.")
    columns = tuple(f"column {j}" for j in range(array.shape[1]))
    return Table(array.astype(np.float64), columns, tuple(f"row {i}" for i in range(array.shape[0])))


def _from_columns(read: Columns, columns: Sequence[str] | None, label: str | None) -> Table:
    import polars as pl

    height = len(read.series[0]) if read.series else 0
    if height == 0:
        raise ShapeError(f"The file is empty: it has {height} rows and {len(read.names)} columns.")
    known: dict[str, pl.Series] = dict(zip(read.names, read.series, strict=True))
    asked, notes = _asked(columns, read.names)
    if label is not None:
        _check_known([label], read.names)
    used = [name for name in asked if name != label]
    numeric = [name for name in used if known[name].dtype.is_numeric() or known[name].dtype == pl.Boolean]
    some = set(numeric)
    text = [name for name in used if name not in some]
    for name in text:
        _refuse_thousands(name, known[name])
    if columns is not None and text:
        example = next((str(value) for value in known[text[0]].drop_nulls().head(1)), "nothing")
        raise DataTypeError(f"Column {text[0]!r} is not numeric: it contains {example!r}. Choose other columns.")
    if not numeric:
        shown = ", ".join(read.names[:SHOWN])
        example = next((str(value) for value in known[text[0]].drop_nulls().head(1)), "nothing") if text else "nothing"
        raise DataTypeError(
            f"No column is numeric; the columns are {shown}, and the first contains {example!r}. Check the file's "
            "separator, and that the numbers start directly below one line of names."
        )
    for name in text:
        _refuse_few_words(name, known[name])
    notes = read.notes + notes
    if text:
        notes += (f"left out, not numeric: {name_columns(range(len(text)), tuple(text))}.",)
    values = np.empty((height, len(numeric)))
    for j, name in enumerate(numeric):
        one = known[name]
        values[:, j] = (one if one.dtype == pl.Float64 else one.cast(pl.Float64)).to_numpy()
    rows = read.index or [f"row {i}" for i in range(height)]
    if label is not None:
        rows = [str(value) for value in known[label]]
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
        f"Column {name!r} has {found[0]!r} in row {row} (the first row below the header is row 0), where "
        f"{found[1]!r} may separate thousands. Save the numbers without thousands separators, or leave the column out: "
        f"--drop-columns {name!r} (drop_columns=).{remedy}"
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
            f"Column {name!r} contains numbers stored as text. Convert it to numbers, or leave it out: --drop-columns "
            f"{name!r} (drop_columns=)."
        )
    wrong = str(given.filter(~number)[0])
    row = int((column == wrong).fill_null(False).arg_true()[0])
    raise DataTypeError(
        f"Column {name!r} has numbers in {number.sum():,} of {len(given):,} cells, but {printable(wrong)!r} in row "
        f"{row} (the first row below the header is row 0). Correct such cells, or leave the column out: "
        f"--drop-columns {name!r} (drop_columns=)."
    )


def _asked(columns: Sequence[str] | None, known: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """The columns to use without repetitions, and a note about repeated names."""
    if columns is None:
        return list(known), ()
    if len(columns) == 0:
        raise ParameterError("columns= names no column. Leave it out to use all numeric columns.")
    _check_known(columns, known)
    asked = list(dict.fromkeys(columns))
    twice = [name for name in asked if list(columns).count(name) > 1] if len(asked) < len(columns) else []
    return asked, (f"named more than once, used once: {name_columns(range(len(twice)), tuple(twice))}.",) * bool(twice)


def _check_known(asked: Iterable[str], known: Sequence[str]) -> None:
    names = set(known)
    missing = next((name for name in asked if name not in names), None)
    if missing is not None:
        hint = did_you_mean(str(missing), known) or f"It has {', '.join(known[:8])}."
        raise LabelError(f"The file has no column {missing!r}. {hint}")


def _chosen(table: Table, columns: Sequence[str] | None, dropped: Sequence[str]) -> Table:
    if columns is None and not dropped:
        return table
    _check_known(dropped, table.columns)
    asked, notes = _asked(columns, table.columns)
    asked = [name for name in asked if name not in dropped]
    if not asked:
        raise ParameterError("drop_columns= (--drop-columns) leaves no column. Drop fewer columns.")
    place = {name: j for j, name in enumerate(table.columns)}
    values = table.values[:, [place[name] for name in asked]]
    return replace(table, values=values, columns=tuple(asked), notes=table.notes + notes)


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
        "(the first row below the header is row 0). "
        "Use --drop-missing (drop_missing=True) to leave out those rows, or choose other columns."
    )
