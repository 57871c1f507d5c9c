"""A cell of text as a number: missing cells, decimal marks, separators of thousands, currency signs and percent signs.

A column becomes numbers only if that is certain for every cell. Otherwise it is refused with a cell as the example, or
left out as text; no cell is read as another number than the one that its author wrote.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isopursuit.errors import DataTypeError, ParameterError, printable, unknown_option

if TYPE_CHECKING:
    import polars as pl

MISSING = (
    "", "NA", "N/A", "n/a", "n.a.", "#N/A", "#NA", "<NA>", "NaN", "nan", "null", "NULL", "None", "?", "-", "--", "–",
    "—", ".", "..",
)  # fmt: skip
CURRENCIES = "$€£¥₹₩₽₺₪₫฿"
GROUPS = ".,'’ \u00a0\u2009\u202f"  # what separates thousands
SPACES = "\u00a0\u2009\u202f"  # spaces that do not break a line
# 1.841, 1,234.5, 1'234 or 1 234 567: digits in groups of three, with one mark between the groups
GROUPED = re.compile(rf"[-+]?[1-9]\d{{0,2}}([{GROUPS}])\d{{3}}((\1\d{{3}})*)((?!\1)[.,]\d+)?")
SIGNED = re.compile(rf"([-+]?)\s*([{CURRENCIES}]?)\s*(.*?)\s*([{CURRENCIES}%]?)", flags=re.DOTALL)
BEGINS = re.compile(
    rf"[-+<>~(]?\s*[{CURRENCIES}]?\s*\d"
)  # a measurement with a unit or a bound, such as 12.5 kg or <0.1
DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d.*|\d{1,2}:\d\d.*")  # or a time: not a measurement
FIRST_ROW = "the first row below the header is row 0"


def bare(cell: str) -> str:
    """A cell without spaces and quotes around it, and with the minus of the keyboard."""
    return cell.strip().strip('"').strip().replace("−", "-")


def without_sign(cell: str) -> tuple[str, str]:
    """A bare cell without its currency or percent sign, and that sign; the cell itself if it has none, or two."""
    found = SIGNED.fullmatch(cell)
    minus, before, rest, after = found.groups() if found else ("", "", cell, "")
    return (minus + rest, before or after) if bool(before) != bool(after) else (cell, "")


@dataclass(frozen=True)
class Style:
    """How a file writes numbers.

    `decimal` is the decimal mark, and `certain` whether that is known: otherwise 1.841 may be 1841. `thousands`
    separates groups of three digits; it is empty unless the caller names it. `missing` are words for missing cells.
    """

    decimal: str = "."
    certain: bool = True
    thousands: str = ""
    missing: tuple[str, ...] = ()

    @classmethod
    def of(cls, decimal: str | None, thousands: str | None, missing: Sequence[str]) -> Style:
        """The style that the caller describes; the decimal mark is empty if it must be detected."""
        for option, given, known in (("decimal", decimal, ".,"), ("thousands", thousands, GROUPS)):
            if given is not None and (given == "" or given not in tuple(known)):
                raise unknown_option(option, given, list(known[:5]))
        if thousands is not None and decimal == thousands:
            raise ParameterError(f"decimal and thousands are both {decimal!r}. Pass two marks.")
        implied = {".": ",", ",": "."}.get(thousands or "", "")
        return cls(decimal or implied, True, thousands or "", tuple(missing))

    def number(self, cell: str) -> float | None:
        """A cell as a number; NaN if it is missing, None if it is text."""
        cell = bare(cell)
        if cell in MISSING or cell in self.missing:
            return math.nan
        if self.thousands:
            cell = re.sub(f"[{SPACES}]", " ", cell) if self.thousands == " " else cell
            mark, point = re.escape(self.thousands), re.escape(self.decimal)
            if re.fullmatch(rf"[-+]?\d{{1,3}}({mark}\d{{3}})+({point}\d+)?", cell):
                cell = cell.replace(self.thousands, "")
            if self.thousands in cell:
                return None
        cell = cell.replace(",", ".") if self.decimal == "," else cell
        try:
            return None if "_" in cell else float(cell)
        except ValueError:
            return None

    def has_thousands(self, cells: list[str]) -> bool:
        """Whether a point or comma in a column of numbers separates thousands although the caller named no separator.

        If the decimal mark is known, the other mark separates thousands unless a cell like 0.841 or 2.75 shows that it
        does not. If it is not known, as in a file whose only numbers with a mark are like 1.841, numbers without a mark
        beside them decide: 920 would be written 920.000 if the point were decimal, and 1920 would be written 1.920 if
        it separated thousands.
        """
        grouped = {found[1] for found in map(GROUPED.fullmatch, cells) if found}
        decimal = {one for cell in cells if not GROUPED.fullmatch(cell) for one in ".," if one in cell}
        if self.certain:
            other = grouped - {self.decimal}
            return other != set() and (not other <= decimal or self.decimal in grouped | decimal)
        plain = [len(cell.lstrip("-+")) for cell in cells if cell.lstrip("-+").isdecimal()]
        return bool(grouped - decimal) and plain != [] and max(plain) <= 3


PLAIN = Style()


def as_plain_numbers(column: pl.Series, style: Style) -> pl.Series:
    """Convert a column of text to numbers if all of its cells are numbers with spaces, quotes or plus signs.

    A column with a thousands separator that the caller has not named remains text.
    """
    import polars as pl

    found: list[float] = []
    for cell in column:
        value = math.nan if cell is None else style.number(cell)
        if value is None:
            return column.str.strip_chars()
        found.append(value)
    if column.null_count() == len(column):
        return column
    if not style.thousands and style.has_thousands([bare(cell) for cell in column.drop_nulls()]):
        return column.str.strip_chars()
    return pl.Series(column.name, found, dtype=pl.Float64)


def as_signed_numbers(name: str, column: pl.Series, style: Style) -> tuple[pl.Series | None, str]:
    """A column of text as numbers if its cells are amounts of one currency, or percentages; with a note.

    Other columns of text are None, with what a note says about them. A measurement with a few bad cells is refused.
    """
    import polars as pl

    if column.dtype != pl.String:
        return None, name
    cells = ["" if cell is None else bare(cell) for cell in column]
    values = [style.number(cell) for cell in cells]
    signs = [""] * len(cells)
    for i, cell in enumerate(cells):
        if values[i] is None:
            cells[i], signs[i] = without_sign(cell)
            values[i] = style.number(cells[i])
    if None in values or (not style.thousands and style.has_thousands(cells)):
        _refuse_thousands(name, column, cells, style)
    given = [i for i, cell in enumerate(cells) if cell not in MISSING and cell not in style.missing]
    numbers = [i for i in given if values[i] is not None]
    if not numbers or len(numbers) < len(given):
        return None, _refused_or_text(name, column, given, numbers)
    if not any(signs):
        raise DataTypeError(
            f"Column {name!r} contains numbers stored as text. Convert it to numbers, or {leave_out(name)}."
        )
    marked = next(i for i in numbers if signs[i])
    other = next((i for i in numbers if signs[i] != signs[marked] and values[i] != 0), None)
    if other is not None:
        raise DataTypeError(
            f"Column {name!r} has {printable(column[marked])!r} in row {marked} but {printable(column[other])!r} in "
            f"row {other} ({FIRST_ROW}), which may be other units. Write all of its cells in one way, or "
            f"{leave_out(name)}."
        )
    scale = 100.0 if signs[marked] == "%" else 1.0
    found = pl.Series(column.name, [math.nan if value is None else value / scale for value in values], dtype=pl.Float64)
    what = f"as a fraction, {found[marked]:g}" if scale == 100 else f"without the sign, {found[marked]:g}"
    return found, f"in column {printable(name)}, {printable(column[marked])} was read {what}."


def _refuse_thousands(name: str, column: pl.Series, cells: list[str], style: Style) -> None:
    """Refuse a text column of numbers with thousands separators, or with a point or comma that may be one."""
    other = Style("," if style.decimal == "." else ".", missing=style.missing)
    if any(not GROUPED.fullmatch(cell) and style.number(cell) is other.number(cell) is None for cell in cells):
        return
    row, found = next(((i, found) for i, cell in enumerate(cells) if (found := GROUPED.fullmatch(cell))), (0, None))
    if found is None or style.thousands == found[1]:
        return
    mark = " " if found[1] in SPACES else found[1]
    may_be_decimal = mark in ".," and not found[2] and not found[4]
    remedy = f" if it is the decimal mark, --decimal {mark!r} (decimal=);" if may_be_decimal else ""
    raise DataTypeError(
        f"Column {name!r} has {printable(column[row])!r} in row {row} ({FIRST_ROW}), where {found[1]!r} may separate "
        f"thousands. If it does, pass --thousands {mark!r} (thousands=);{remedy} or {leave_out(name)}."
    )


def _refused_or_text(name: str, column: pl.Series, given: list[int], numbers: list[int]) -> str:
    """What a note says about a column of text; refuses one most of whose cells are numbers."""
    if 2 * len(numbers) > len(given):
        wrong = min(set(given) - set(numbers))
        text = printable(column[wrong])
        as_missing = "" if BEGINS.match(text) else f" read them as missing with --missing {text!r} (missing=),"
        raise DataTypeError(
            f"Column {name!r} has numbers in {len(numbers):,} of {len(given):,} cells, but {text!r} in row {wrong} "
            f"({FIRST_ROW}). Correct such cells,{as_missing} or {leave_out(name)}."
        )
    if numbers:
        return f"{name} (numbers in {len(numbers):,} of {len(given):,} cells)"
    begin = [i for i in given if BEGINS.match(column[i]) and not DATE.fullmatch(column[i])]
    if 2 * len(begin) > len(given):
        return f"{name} ({len(begin):,} of {len(given):,} cells begin with a number, such as {column[begin[0]]!r})"
    return name


def leave_out(name: str) -> str:
    """The remedy that leaves a column out."""
    return f"leave the column out: --drop-columns {name!r} (drop_columns=)"
