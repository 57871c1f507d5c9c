"""Read text tables; separator, decimal comma, header line and index column are detected.

If the file leaves something open, a note states the assumption and the option that changes it.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from isopursuit.data._cells import GROUPED, MISSING, PLAIN, Style, as_plain_numbers, bare, without_sign
from isopursuit.data._header import Columns, has_names, with_names
from isopursuit.errors import FileError

SEPARATORS = "\t;|,"
LINES, CELLS = 50, 100_000  # lines and cells from which the layout is detected (chosen: they take milliseconds)


def read_delimited(raw: bytes, name: str, header: bool | None, style: Style) -> Columns:
    """The columns of a text table; `header` says whether the first line has their names (None: detect it), and `style`
    how numbers are written (without a decimal mark: detect it).
    """
    import polars as pl

    raw, notes = _decoded(raw, name)
    raw, separator, lines = _plain(raw, name)
    if not style.decimal:
        comma, certain = _decimal_mark(lines, separator)
        style = replace(style, decimal="," if comma else ".", certain=certain)
    first, body = lines[0], lines[1:]
    named, note = has_names(first, body, style.number) if header is None else (header, "")
    names = [first[0].lstrip("#").strip(), *first[1:]] if named else []
    notes += (note,) if note else ()
    if named:
        raw = raw.split(b"\n", skipped := _lines_of_first(raw, separator, name))[skipped]
    if not raw.strip():
        return Columns(names, [], None, notes)
    options: dict[str, Any] = {"separator": separator, "has_header": False, "encoding": "utf8-lossy"}
    options |= {"null_values": [*MISSING, *style.missing]}
    as_text = partial(pl.read_csv, raw, infer_schema=False, **options)
    if style.thousands or style.decimal == "," == separator:
        frame = as_text()
    else:
        try:
            frame = pl.read_csv(raw, infer_schema_length=None, decimal_comma=style.decimal == ",", **options)
        except pl.exceptions.ComputeError:  # for example integers with more digits than any integer type has
            frame = as_text()
    if not style.certain:  # then columns are needed as they are written
        written = as_text()
        frame = frame.with_columns(written[one.name] for one in frame.get_columns() if one.dtype == pl.Float64)
    series = [as_plain_numbers(one, style) if one.dtype == pl.String else one for one in frame.get_columns()]
    if not named:
        return Columns([f"column_{j + 1}" for j in range(len(series))], series, None, notes, style=style)
    return replace(with_names(names, series, name, notes), style=style)


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
    whole = [re.sub(r'"[^"]*"', "quoted", line) for line in lines]
    plain = [line for line in whole if not line.startswith("#")] or whole
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
    below = [PLAIN.number(cell) for record in _records(lines[top : top + 1], separator) for cell in record]
    kept: list[str] = []
    for i, line in enumerate(lines):
        if marked[i]:
            full = usual > 1 and _count(line, separator) == usual
            values = [PLAIN.number(cell) for cell in line.rstrip("\r\n").split(separator)[1:]]
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
    cells = [without_sign(bare(cell))[0] for line in lines for cell in line][:CELLS]
    counts: list[tuple[int, int]] = []
    for mark, other in ((",", "."), (".", ",")):
        number = re.compile(rf"[-+]?(\d*|\d{{1,3}}(\{other}\d{{3}})+)\{mark}\d+([eE][-+]?\d+)?")
        marked = [cell for cell in cells if number.fullmatch(cell)]
        counts.append((sum(other in cell or not GROUPED.fullmatch(cell) for cell in marked), len(marked)))
    (sure_commas, commas), (sure_points, points) = counts
    return (sure_commas, commas) > (sure_points, points), sure_commas + sure_points > 0 or commas + points == 0
