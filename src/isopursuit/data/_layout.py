"""The columns of a text file or an Excel sheet: encoding, separator, comments, names and row labels are detected.

If the file leaves something open, a note states the assumption and the option that changes it.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Set
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from isopursuit._core.text import listed
from isopursuit.data._cells import CURRENCIES, MISSING, Style
from isopursuit.errors import FileError, printable

if TYPE_CHECKING:
    import polars as pl

SEPARATORS = "\t;|,"
LINES, CELLS = 50, 100_000  # lines and cells from which the layout is detected (chosen: they take milliseconds)
NUMBER = re.compile(r"[-+−]?(\d[\d.,'’\s]*|[.,]\d+)([eE][-+]?\d+)?")
# a first line of integers has names if the rows below make integers less probable than this (chosen; a note tells)
UNLIKELY = 0.1
SHOWN = 4  # cells of the first line that a note quotes

Row = list["str | None"]


@dataclass(frozen=True)
class Columns:
    """A file's columns: names, values, row labels if there is an index column, and notes for the user.

    `index_note` is a further note, shown if the index column labels the rows. `style` is how text columns write
    numbers; without one, as in Parquet files, a column of text is never numbers.
    """

    names: list[str]
    series: list[pl.Series]
    index: list[str] | None = None
    notes: tuple[str, ...] = ()
    index_note: str = ""
    style: Style | None = None


def read_text(raw: bytes, name: str, header: bool | None, style: Style) -> Columns:
    """The columns of a text file; `header` says whether the first line has their names (None: detect it)."""
    import polars as pl

    text, notes = _decoded(raw, name)
    text, separator = _without_comments(*_plain(text), name)
    quoted = _is_quoted(text, separator)
    style_of_quotes = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    records = csv.reader(_head(text), delimiter=separator, skipinitialspace=True, quoting=style_of_quotes)
    widths = [len(record) for record in records]
    # polars takes the number of columns from the first line
    first = separator.join(map(str, range(max(widths))))
    options: dict[str, Any] = {"separator": separator, "quote_char": '"' if quoted else None}
    frame = pl.read_csv(f"{first}\n{text}".encode(), infer_schema=False, **options)
    style = replace(style, known=style.known or ("." if separator == "," else ""))
    found = read_frame(frame, name, header, style, widths)
    return replace(found, notes=notes + found.notes)


def read_frame(frame: pl.DataFrame, name: str, header: bool | None, style: Style, widths: list[int]) -> Columns:
    """The columns of a frame of text, whose first lines have these numbers of cells."""
    top = frame.head(max(3, min(LINES, CELLS // frame.width))).rows()
    first, *body = [[None if cell is None else cell.strip(' "') or None for cell in row] for row in top]
    first = first[: widths[0]]
    named, note = has_names(first, body, {*MISSING, *style.missing}) if header is None else (header, "")
    notes = (note,) if note else ()
    if not named:
        return Columns([f"column_{j + 1}" for j in range(frame.width)], frame.get_columns(), None, notes, "", style)
    names = [(first[0] or "").lstrip("#").strip(), *(cell or "" for cell in first[1:])]
    short = max(widths[1:], default=len(names))
    while names and names[-1] == "" and len(names) > short:
        names = names[:-1]  # a separator at the end of the header
    if len(names) > short:
        raise _irregular(name, len(names), short)
    series = frame[1:].get_columns()
    series[0] = style.cleaned(series[0])  # perhaps row labels
    return with_names(names, series, name, notes, style)


def _irregular(name: str, names: int, cells: int) -> FileError:
    return FileError(
        f"{name} is irregular: its header names {names} columns, but its rows have up to {cells} cells. Quote cells "
        "that contain the separator."
    )


def _decoded(raw: bytes, name: str) -> tuple[str, tuple[str, ...]]:
    """The text, with line feeds."""
    notes: tuple[str, ...] = ()
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raw = raw.decode("utf-16", "replace").encode()
    if b"\x00" in raw:
        raise FileError(f"{name} is not a text file: it contains zero bytes. Correct its extension, or save it as CSV.")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("cp1252", "replace")
        notes = ("the file is not UTF-8 and was read as Windows-1252; save it as UTF-8 if names look wrong.",)
    text = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
    if not text.strip():
        raise FileError(f"{name} is empty. Expected a header line and rows of numbers.")
    return text, notes


def _plain(text: str) -> tuple[str, str]:
    """The text without blank lines, and its separator."""
    given = re.match(r"\s*sep=(.)\n", text)  # as Excel writes and reads it
    text = text[given.end() :] if given else text
    whole = [re.sub(r'"[^"]*"', "quoted", line) for line in _head(re.sub(r"(?m)^[ \t]*\n", "", text))]
    separator = given[1] if given else _separator([line for line in whole if not line.startswith("#")] or whole)
    text = re.sub(r"(?m)^[ ]*\n" if separator == "\t" else r"(?m)^[ \t]*\n", "", text).rstrip("\n ") + "\n"
    if separator == " ":  # runs of spaces and tabs count as one
        text = re.sub(r"(?m)^[ \t]+|[ \t]+$", "", re.sub(r"[ \t]+", " ", text))
    return text, separator


def _head(text: str) -> list[str]:
    """The first lines, at least three, but not many more than `CELLS` characters."""
    found: list[str] = []
    start = 0
    while start < len(text) and len(found) < LINES and (start < CELLS or len(found) < 3):
        end = text.find("\n", start) + 1 or len(text)
        found.append(text[start:end])
        start = end
    return found


def _separator(lines: list[str]) -> str:
    """The separator: the first that is equally frequent in all rows, else the most frequent, else spaces."""
    first, body = lines[0], [line.rstrip("\n") for line in lines[1:] or lines]
    counts = {separator: {line.count(separator) for line in body} for separator in SEPARATORS}
    regular = [separator for separator, found in counts.items() if len(found) == 1 and found != {0}]
    one = rf"[-+\s{CURRENCIES}]*\d+,\d+[\s%{CURRENCIES}]*"
    if regular == [","] and "," not in first and all(re.fullmatch(one, line) for line in body):
        # numbers with a decimal comma below one name, unless the digits before the comma number the rows
        before = [line.partition(",")[0].strip() for line in body]
        if before not in ([str(i) for i in range(len(body))], [str(i + 1) for i in range(len(body))]):
            return ";"
    if regular:
        return next((separator for separator in regular if separator in first), regular[0])
    most = max(reversed(SEPARATORS), key=lambda separator: sum(line.count(separator) for line in lines))
    if any(most in line for line in lines):
        return most
    return " " if all(len(line.split()) > 1 for line in lines) else ","


def _without_comments(text: str, separator: str, name: str) -> tuple[str, str]:
    """The text without comments: lines that begin with #, unless they have as many cells as the other lines and
    contain numbers.

    The last line with # at the top may contain the names, if it has as many cells and a row of numbers follows.
    """
    if not text.startswith("#") and "\n#" not in text:
        return text, separator

    def cells(line: str) -> list[str]:
        return next(csv.reader([line.lstrip("#").strip(" \n")], delimiter=separator, skipinitialspace=True), [])

    def has_numbers(some: list[str]) -> bool:
        return any(NUMBER.fullmatch(cell.strip()) for cell in some)

    lines = text.splitlines(keepends=True)
    plain = [line for line in lines[:CELLS] if not line.startswith("#")] or lines[:LINES]
    usual = Counter(len(cells(line)) for line in plain[:LINES]).most_common(1)[0][0]
    top = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
    kept: list[str] = []
    for i, line in enumerate(lines):
        found = cells(line) if line.startswith("#") else []
        if not found or (len(found) == usual > 1 and has_numbers(found[1:])):
            kept.append(line)
        elif i == top - 1 and top < len(lines) and len(found) == usual > 1 and has_numbers(cells(lines[top])):
            kept.append(line.lstrip("#").lstrip(" "))
    if not kept:
        raise FileError(f"{name} contains only comments. Expected a header line and rows of numbers.")
    return "".join(kept), separator


def _is_quoted(text: str, separator: str) -> bool:
    """Whether quotes enclose cells; otherwise, as in 5" pipe, they are characters of their own."""
    if '"' not in text:
        return False
    cell = rf'(?:^|(?<={re.escape(separator)}))[ ]*"(?:[^"]|"")*"[ ]*(?={re.escape(separator)}|$)'
    return '"' not in re.sub(cell, "", text, flags=re.MULTILINE)


# ----------------------------------------------------------------------------------------------- names and row labels


def has_names(first: Row, body: list[Row], missing: Set[str]) -> tuple[bool, str]:
    """Whether the first line contains names, and a note if that is uncertain.

    Text above numbers is a name. Numbers above numbers are names if the cell before them is empty above a column of
    labels, if they are 0, 1, … (as pandas writes them), if they are integers and few numbers below are, or if they
    increase in equal steps and are farther from all numbers below than those are from one another (years above counts,
    wavelengths above absorbances).
    """
    if len(body) > 1 and len(body[0]) == len(first) + 1 and all(row[-1] is not None for row in body):
        return True, ""  # R writes no name for the column of row names
    cells = [_value(cell, missing) for cell in first]
    below = [[_value(row[j], missing) for row in body] for j in range(len(first))]
    numeric = [None not in column and not all(map(math.isnan, column)) for column in below]  # pyright: ignore
    if any(cell is None and over for cell, over in zip(cells, numeric, strict=True)):
        return True, ""
    above = [j for j, cell in enumerate(cells) if cell is not None and not math.isnan(cell) and numeric[j]]
    if not above:
        return None in cells or not body, ""
    repeated = any(row[j] == first[j] for row in body for j, cell in enumerate(cells) if cell is None)
    labelled = first[0] is None and len({row[0] for row in body}) == len(body)
    rows = [[row[j] or 0.0 for j in above] for row in zip(*below, strict=True)]
    names = not repeated and (labelled or _are_names([cells[j] or 0.0 for j in above], rows))
    shown = printable(", ".join(cell or "" for cell in first[:SHOWN]) + (", …" if len(first) > SHOWN else ""))
    if names:
        return True, (
            f"the first line ({shown}) was read as column names; pass header=False (--no-header) if it is a row."
        )
    return False, (
        f"the first line ({shown}) was read as a row; pass header=True (--header) if it contains column names."
    )


def _value(cell: str | None, missing: Set[str] = frozenset()) -> float | None:
    """About which number a cell is: NaN if it is missing, None if it is text."""
    if cell is None or cell in missing:
        return math.nan
    if not NUMBER.fullmatch(cell):
        return None
    try:
        return float(cell.replace(",", "."))
    except ValueError:
        return 0.0


def _are_names(H: list[float], rows: list[list[float]]) -> bool:
    """Whether numbers are column names, given the numbers below."""
    n = len(H)
    if list(range(n)) == H and n > 2:
        goes_on = rows[0] == [value + n for value in H]
        symmetric = [row[0] for row in rows] == H[1:]
        return not goes_on and not symmetric
    cells = [value for row in rows for value in row if math.isfinite(value)]
    share = (sum(value == int(value) for value in cells) + 1) / (len(cells) + 2)
    if len({*H}) == n and all(value == int(value) for value in H) and share**n < UNLIKELY:
        return True
    steps = [after - before for before, after in pairwise(H)]
    evenly = n > 2 and steps[0] > 0 and all(math.isclose(step, steps[0], rel_tol=1e-6) for step in steps)
    width = max(cells) - min(cells)
    far = all(max(min(cells) - value, value - max(cells)) > width for value in H)
    return evenly and far and width > 0 and len(rows) > 1


def with_names(names: list[str], series: list[Any], file: str, notes: tuple[str, ...], style: Style) -> Columns:
    """The columns with their names; a column of row names becomes the index."""
    index: list[str] | None = None
    index_note = ""
    while len(series) > len(names) and series[-1].null_count() == len(series[-1]):
        series = series[:-1]  # a separator at the end of the rows
    extra = len(series) - len(names)
    labels = series[0].null_count() == 0 and series[0].n_unique() == len(series[0])
    if extra == 1 and len(series[0]) > 1 and series[-1].null_count() == 0 and labels:
        index, series = [str(value) for value in series[0]], series[1:]
        index_note = "the first column has no name in the header and was read as row labels."
    elif extra:
        raise _irregular(file, len(names), len(series))
    elif labels and len(names) > 1 and names[0] in ("", "Unnamed: 0"):
        whole = series[0].str.contains(r"^[-+]?\d+$").all()
        if whole or (names[0] == "" and None in map(_value, series[0])):
            index = [str(value) for value in series[0]]
            names, series = names[1:], series[1:]
            index_note = "the first column has no name and was read as row labels; give it a name to use its numbers."
    used = [j for j, name in enumerate(names) if name or series[j].null_count() < len(series[j])]
    shift = 1 if index is None else 2
    found: dict[str, int] = {}
    repeated: list[str] = []
    for j in used:
        name = names[j] or f"column_{j + shift}"
        if name in found:
            repeated.append(name)
            name = f"{name} (column {j + shift})"
        found[name] = j
    if repeated:
        some = listed(repeated)
        notes += (f"several columns have the same name: {some}; the column number was added to the later ones.",)
    return Columns(list(found), [series[j] for j in found.values()], index, notes, index_note, style)
