"""Read text tables; separator, decimal comma, header line and index column are detected.

If the file leaves something open, a note states the assumption and the option that changes it.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from isopursuit.data._header import MISSING, Columns, Number, as_number, bare, has_names, with_names
from isopursuit.errors import FileError

if TYPE_CHECKING:
    import polars as pl

SEPARATORS = "\t;|,"
LINES, CELLS = 50, 100_000  # lines and cells from which the layout is detected (chosen: they take milliseconds)
# 1.841, 1,234.5, 1'234 or 1 234 567: digits in groups of three, with one mark between the groups
GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}([.,'’ \u00a0\u2009\u202f])\d{3}((\1\d{3})*)((?!\1)[.,]\d+)?")


def read_delimited(raw: bytes, name: str, header: bool | None) -> Columns:
    """The columns of a text table; `header` says whether the first line has their names (None: detect it)."""
    import polars as pl

    raw, notes = _decoded(raw, name)
    raw, separator, lines = _plain(raw, name)
    decimal_comma, certain = _decimal_mark(lines, separator)
    number = partial(as_number, decimal_comma=decimal_comma)
    first, body = lines[0], lines[1:]
    named, note = has_names(first, body, number) if header is None else (header, "")
    names = [first[0].lstrip("#").strip(), *first[1:]] if named else []
    notes += (note,) if note else ()
    if named:
        raw = raw.split(b"\n", skipped := _lines_of_first(raw, separator, name))[skipped]
    if not raw.strip():
        return Columns(names, [], None, notes)
    options: dict[str, Any] = {"separator": separator, "has_header": False}
    options |= {"null_values": MISSING, "decimal_comma": decimal_comma, "encoding": "utf8-lossy"}
    try:
        frame = pl.read_csv(raw, infer_schema_length=None, **options)
    except pl.exceptions.ComputeError:  # for example integers with more digits than any integer type has
        frame = pl.read_csv(raw, infer_schema=False, **options)
    if not certain:  # then columns are needed as they are written
        written = pl.read_csv(raw, infer_schema=False, **options)
        frame = frame.with_columns(written[one.name] for one in frame.get_columns() if one.dtype == pl.Float64)
    mark = ("," if decimal_comma else ".") if certain else ""
    series = [_numbers(one, number, mark) if one.dtype == pl.String else one for one in frame.get_columns()]
    if not named:
        return Columns([f"column_{j + 1}" for j in range(len(series))], series, None, notes)
    return with_names(names, series, name, notes)


def _numbers(column: pl.Series, number: Number, mark: str) -> pl.Series:
    """Convert a text column to numbers if all of its cells are numbers with spaces, quotes or plus signs.

    A column with a thousands separator remains text.
    """
    import polars as pl

    found: list[float] = []
    for cell in column:
        value = float("nan") if cell is None else number(cell)
        if value is None:
            return column.str.strip_chars()
        found.append(value)
    if column.null_count() == len(column):
        return column
    if _has_thousands([bare(cell) for cell in column.drop_nulls()], mark):
        return column.str.strip_chars()
    return pl.Series(column.name, found, dtype=pl.Float64)


def _has_thousands(cells: list[str], mark: str) -> bool:
    """Whether a point or comma in a column of numbers separates thousands; `mark` is the file's decimal mark if known.

    If it is known, the other mark separates thousands unless a cell like 0.841 or 2.75 shows that it does not. If it
    is not known, as in a file whose only numbers with a mark are like 1.841, numbers without a mark beside them decide:
    920 would be written 920.000 if the point were decimal, and 1920 would be written 1.920 if it separated thousands.
    """
    grouped = {found[1] for found in map(GROUPED.fullmatch, cells) if found}
    decimal = {one for cell in cells if not GROUPED.fullmatch(cell) for one in ".," if one in cell}
    if mark:
        other = grouped - {mark}
        return other != set() and (not other <= decimal or mark in grouped | decimal)
    plain = [len(cell.lstrip("-+")) for cell in cells if cell.lstrip("-+").isdecimal()]
    return bool(grouped - decimal) and plain != [] and max(plain) <= 3


def _decoded(raw: bytes, name: str) -> tuple[bytes, tuple[str, ...]]:
    """The file as UTF-8 with line feeds."""
    notes: tuple[str, ...] = ()
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raw = raw.decode("utf-16", "replace").encode()
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    if b"\x00" in raw:
        raise FileError(f"{name} is not a text file: it contains zero bytes. Correct its extension, or save it as CSV.")
    try:
        raw.decode()
    except UnicodeDecodeError:
        raw = raw.decode("cp1252", "replace").encode()
        notes = ("the file is not UTF-8 and was read as Windows-1252; save it as UTF-8 if names look wrong.",)
    if b"\r" in raw and b"\n" not in raw:
        raw = raw.replace(b"\r", b"\n")
    if not raw.strip():
        raise FileError(f"{name} is empty. Expected a header line and rows of numbers.")
    return raw, notes


def _plain(raw: bytes, name: str) -> tuple[bytes, str, list[list[str]]]:
    """The text without blank lines and comments, its separator, and the cells of its first lines."""
    lines = _lines(raw)
    given = re.fullmatch(r"sep=(.)", lines[0].strip())  # as Excel writes and reads it
    if given:
        raw = raw.partition(b"\n")[2]
        lines = _lines(raw)
    bare = [re.sub(r'"[^"]*"', "quoted", line) for line in lines]
    plain = [line for line in bare if not line.startswith("#")] or bare
    separator = given[1] if given else _separator(plain)
    blank = b"[ ]*" if separator == "\t" else b"[ \t]*"
    raw = re.sub(rb"(?m)^" + blank + rb"\r?\n", b"", raw).rstrip(b"\r\n ") + b"\n"
    if separator == " ":  # runs of spaces and tabs count as one
        spaced = (re.sub(r"\s+", " ", line.strip()) for line in raw.decode().splitlines())
        raw = "\n".join(spaced).encode() + b"\n"
    if b"\n#" in raw or raw.startswith(b"#"):
        raw = _without_comments(raw, separator, Counter(_count(line, separator) for line in plain).most_common(1)[0][0])
    if not raw.strip():
        raise FileError(f"{name} contains only comments. Expected a header line and rows of numbers.")
    try:
        cells = [[cell.strip() for cell in record] for record in _records(_lines(raw), separator)]
    except csv.Error as error:
        raise FileError(f"{name} is not a table of cells between {separator!r}: {error}.") from None
    return raw, separator, cells


def _lines(raw: bytes) -> list[str]:
    """The first lines that are not blank, at least three."""
    found: list[str] = []
    cells = start = 0
    while start < len(raw) and len(found) < LINES and (cells < CELLS or len(found) < 3):
        end = raw.find(b"\n", start) + 1 or len(raw)
        line = raw[start:end].decode()
        start = end
        if line.strip():
            found.append(line)
            cells += 1 + max(line.count(separator) for separator in SEPARATORS + " ")
    return found


def _records(lines: list[str], separator: str) -> Iterator[list[str]]:
    return csv.reader(lines, delimiter=separator, skipinitialspace=True)


def _separator(lines: list[str]) -> str:
    """The separator: the first that is equally frequent in all rows, else the most frequent, else spaces."""
    first, body = lines[0], [line.rstrip("\r\n") for line in lines[1:] or lines]
    counts = {separator: {line.count(separator) for line in body} for separator in SEPARATORS}
    regular = [separator for separator, found in counts.items() if len(found) == 1 and found != {0}]
    if regular == [","] and "," not in first and all(re.fullmatch(r"\s*[-+]?\d+,\d+\s*", line) for line in body):
        # numbers with a decimal comma below one name, unless the digits before the comma number the rows
        before = [int(line.partition(",")[0]) for line in body]
        if before not in (list(range(len(body))), list(range(1, len(body) + 1))):
            return ";"
    if regular:
        return next((separator for separator in regular if separator in first), regular[0])
    most = max(reversed(SEPARATORS), key=lambda separator: sum(line.count(separator) for line in lines))
    if any(most in line for line in lines):
        return most
    return " " if all(len(line.split()) > 1 for line in lines) else ","


def _count(line: str, separator: str) -> int:
    """How many cells a line has; a leading # is ignored."""
    line = re.sub(r'"[^"]*"', "quoted", line).strip("\r\n ").lstrip("#").strip(" ")
    return len(line.split()) if separator == " " else line.count(separator) + 1


def _without_comments(raw: bytes, separator: str, usual: int) -> bytes:
    """The lines without comments: lines that begin with # and have fewer or more cells than the others.

    The last line with # at the top may contain the names, if it has as many cells and a row of numbers follows.
    """
    lines = raw.decode().splitlines(keepends=True)
    marked = [line.startswith("#") for line in lines]
    if all(marked) and usual > 1:
        return raw
    top = marked.index(False) if False in marked else len(lines)
    below = [as_number(cell) for record in _records(lines[top : top + 1], separator) for cell in record]
    kept: list[str] = []
    for i, line in enumerate(lines):
        if marked[i]:
            full = usual > 1 and _count(line, separator) == usual
            values = [as_number(cell) for cell in line.rstrip("\r\n").split(separator)[1:]]
            numbers = any(value is not None for value in values)
            if not full or not (numbers or (i == top - 1 and any(value is not None for value in below))):
                continue
            line = line if numbers else line.lstrip("#").lstrip(" ")
        kept.append(line)
    return "".join(kept).encode()


def _lines_of_first(raw: bytes, separator: str, name: str) -> int:
    """How many lines the first record takes, which is more than one if a quoted cell has a line break."""
    lines = _lines(raw)
    records = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    next(records)
    if 1 < len(lines) == records.line_num:
        raise FileError(f"{name} has a quoted name in its first line that does not end. Close or remove the quote.")
    return records.line_num


def _decimal_mark(lines: list[list[str]], separator: str) -> tuple[bool, bool]:
    """Whether the decimal mark is a comma, and whether that is certain: 1.841 and 1,841 may be thousands, 0,5 not."""
    if separator == ",":
        return False, True
    cells = [cell for line in lines for cell in line][:CELLS]
    counts: list[tuple[int, int]] = []
    for mark, other in ((",", "."), (".", ",")):
        number = re.compile(rf"[-+]?(\d*|\d{{1,3}}(\{other}\d{{3}})+)\{mark}\d+([eE][-+]?\d+)?")
        marked = [cell for cell in cells if number.fullmatch(cell)]
        counts.append((sum(other in cell or not GROUPED.fullmatch(cell) for cell in marked), len(marked)))
    (sure_commas, commas), (sure_points, points) = counts
    return (sure_commas, commas) > (sure_points, points), sure_commas + sure_points > 0 or commas + points == 0
