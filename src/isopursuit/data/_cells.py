"""A column of text as numbers: missing cells, decimal marks, separators of thousands, currency signs and percent signs.

A column becomes numbers only if that is certain for every cell. Otherwise it is refused with a cell as the example, or
left out as text; no cell is read as another number than the one that its author wrote.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from isopursuit.errors import DataTypeError, ParameterError, printable, unknown_option

if TYPE_CHECKING:
    import polars as pl

MISSING = (
    "", "NA", "N/A", "n/a", "n.a.", "#N/A", "#NA", "<NA>", "NaN", "nan", "null", "NULL", "None", "?", "-", "--", "–",
    "—", ".", "..",
)  # fmt: skip
THOUSANDS = ".,'’ "  # what separates thousands
SPACES = "[\u00a0\u2009\u202f]"  # spaces that do not break a line
OTHER = {".": ",", ",": "."}
# 1.841, 1,234.5, 1'234 or 1 234 567, for each separator: digits in groups of three
GROUPED = {mark: rf"^[-+]?[1-9]\d{{0,2}}({re.escape(mark)}\d{{3}})+([.,]\d+)?$" for mark in THOUSANDS}
# numbers with each decimal mark, and perhaps with the other mark between groups of three digits
DECIMAL = {
    mark: rf"^[-+]?((\d{{1,3}}(\{other}\d{{3}})+|\d*)\{mark}\d+|\d+\{mark})([eE][-+]?\d+)?$"
    for mark, other in OTHER.items()
}
ONE_GROUP = {mark: rf"^[-+]?[1-9]\d{{0,2}}\{mark}\d{{3}}$" for mark in OTHER}  # either of the two
CURRENCIES = "$€£¥₹₩₽₺₪₫฿"
SIGNED = rf"(?s)^([-+]?)\s*([{CURRENCIES}]?)\s*(.*?)\s*([{CURRENCIES}%]?)$"
# a measurement with a unit or a bound, such as 12.5 kg or <0.1, but no date or time
BEGINS = re.compile(rf"[-+<>~(]?\s*[{CURRENCIES}]?\s*\d")
DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d.*|\d{1,2}:\d\d.*")
FIRST_ROW = "the first row below the header is row 0"


@dataclass(frozen=True)
class Style:
    """How a file writes numbers.

    `decimal` is the decimal mark if the caller names it, otherwise empty, and `known` the marks that are decimal
    in some column: if there are none, 1.841 may be 1841. `thousands` separates groups of three digits if the caller
    names it. `missing` are words for missing cells.
    """

    decimal: str = ""
    thousands: str = ""
    missing: tuple[str, ...] = ()
    known: str = ""

    @classmethod
    def of(cls, decimal: str | None, thousands: str | None, missing: Sequence[str]) -> Style:
        """The style that the caller describes."""
        for option, given, marks in (("decimal", decimal, ".,"), ("thousands", thousands, THOUSANDS)):
            if given is not None and (given == "" or re.sub(SPACES, " ", given) not in tuple(marks)):
                raise unknown_option(option, given, list(marks))
        if thousands is not None and decimal == thousands:
            raise ParameterError(f"decimal and thousands are both {decimal!r}. Pass two marks.")
        decimal = decimal or OTHER.get(thousands or "", "")
        return cls(decimal, re.sub(SPACES, " ", thousands or ""), tuple(missing), decimal)

    def cleaned(self, cells: pl.Series) -> pl.Series:
        """Cells of text without spaces and quotes around them; missing ones are null."""
        cells = cells.str.strip_chars().str.strip_chars('"').str.strip_chars()
        return cells.set(cells.is_in([*MISSING, *self.missing]), None)

    def numbers(self, cells: pl.Series) -> tuple[pl.Series, pl.Series, int | None]:
        """Cleaned cells as numbers (null if they are text), their currency or percent signs, and the first row with a
        mark that may separate thousands, if there is one.
        """
        import polars as pl

        bodies, signs = _without_signs(cells.str.replace_all("−", "-", literal=True))
        bodies = self.without_thousands(bodies)
        decimal = self.decimal or self._decimal_of(bodies)
        grouped = bodies.str.contains("|".join(GROUPED[mark] for mark in THOUSANDS if mark != decimal))
        if decimal == ",":
            bodies = bodies.set(bodies.str.contains(".", literal=True), "text").str.replace(",", ".", literal=True)
        row = grouped.arg_max() if grouped.any() else None
        return bodies.cast(pl.Float64, strict=False), signs, row

    def without_thousands(self, cells: pl.Series) -> pl.Series:
        """The cells without the separator that the caller names; other cells with it are text."""
        cells = cells.str.replace_all(SPACES, " ")
        if not self.thousands:
            return cells
        mark, decimal = re.escape(self.thousands), f"[{self.decimal or '.,'}]"
        whole = cells.str.contains(rf"^[-+]?\d{{1,3}}({mark}\d{{3}})+({decimal}\d+)?$")
        cells = cells.set(~whole & cells.str.contains(self.thousands, literal=True), "text")
        return cells.str.replace_all(self.thousands, "", literal=True)

    def _decimal_of(self, bodies: pl.Series) -> str:
        """The decimal mark of a column; empty if its only mark, as in 1.841, may separate thousands.

        A mark that is decimal elsewhere in the file is so here. If none is known, numbers without a mark decide:
        920 would be written 920.000 if the point were decimal, and 1920 would be written 1.920 if it separated
        thousands.
        """
        certain = _certain(bodies)
        if certain:
            return max(sorted(certain), key=lambda mark: bodies.str.contains(DECIMAL[mark]).sum())
        marks = [mark for mark in OTHER if bodies.str.contains(ONE_GROUP[mark]).any()]
        if not marks:
            return "."
        if len(marks) == 2 or (self.known and marks[0] not in self.known):
            return ""
        plain = bodies.filter(bodies.str.contains(r"^[-+]?\d+$")).str.strip_chars("-+").str.len_chars()
        return "" if not self.known and len(plain) and plain.max() <= 3 else marks[0]  # pyright: ignore[reportOperatorIssue]


def _known(frame: pl.DataFrame, style: Style) -> str:
    """The decimal marks of a file's columns."""
    import polars as pl

    commas = any(frame.select(pl.all().str.contains(",", literal=True).any()).row(0))
    found: set[str] = set()
    for cells in frame:
        found |= _certain(style.without_thousands(_without_signs(style.cleaned(cells))[0]))
        if found and not commas:
            break  # no other mark can be decimal
    return "".join(sorted(found))


def _certain(bodies: pl.Series) -> set[str]:
    """The decimal marks of cells that can be read in one way only, such as 0,5 and 1.841,25."""
    return {
        mark for mark in OTHER if (bodies.str.contains(DECIMAL[mark]) & ~bodies.str.contains(ONE_GROUP[mark])).any()
    }


def _without_signs(cells: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Cells without their currency or percent sign, and that sign; the cell itself if it has none, or two."""
    minus, before, rest, after = cells.str.extract_groups(SIGNED).struct.unnest().get_columns()
    signed = ((before == "") != (after == "")).fill_null(value=False)
    return (minus + rest).zip_with(signed, cells), (before + after).set(~signed, "")


def read_columns(frame: pl.DataFrame, style: Style) -> tuple[dict[str, pl.Series], dict[str, str], tuple[str, ...]]:
    """Columns of text: those that are numbers, what a note says about the others, and further notes."""
    import polars as pl

    style = style if style.known else replace(style, known=_known(frame, style))
    numbers, about, notes = dict[str, "pl.Series"](), dict[str, str](), list[str]()
    plain = frame.select(pl.all().cast(pl.Float64, strict=False))
    marked = frame.select(pl.all().str.contains(r"[.,]").any()).row(0)
    for column, cells, mark in zip(plain, frame, marked, strict=True):
        name = column.name
        whole = column.null_count() == cells.null_count() < len(cells)
        if whole and (not mark or (style.known == "." and not style.thousands)):  # nearly all columns
            numbers[name] = column
            continue
        found, note = read_column(name, cells, style)
        if found is None:
            about[name] = note
            continue
        numbers[name] = found
        notes += [note] if note else []
    return numbers, about, tuple(notes)


def read_column(name: str, cells: pl.Series, style: Style) -> tuple[pl.Series | None, str]:
    """A column of text as numbers, with a note if they are amounts of one currency, or percentages.

    Other columns are None, with what a note says about them. A measurement with a few bad cells is refused, and so are
    numbers with a mark that may separate thousands.
    """
    import polars as pl

    cells = style.cleaned(cells)
    values, signs, row = style.numbers(cells)
    given, numbers = cells.is_not_null(), values.is_not_null()
    if row is not None:
        _refuse_thousands(name, cells, row)
    if row is None and given.any() and (given == numbers).all():
        return _in_one_unit(name, cells, values, signs)
    if given.any() and cells.drop_nulls().str.to_lowercase().is_in(["true", "false"]).all():
        return (cells.str.to_lowercase() == "true").cast(pl.Float64), ""
    return None, _refused_or_text(name, cells, given, numbers)


def _in_one_unit(name: str, cells: pl.Series, values: pl.Series, signs: pl.Series) -> tuple[pl.Series, str]:
    """The numbers without their signs, with a note; refuses a column that has other signs in some cells."""
    import polars as pl

    marked = (signs != "").arg_max() if (signs != "").any() else None
    if marked is None:
        return values, ""
    others = (values.is_not_null() & (values != 0) & (signs != signs[marked])).arg_true()
    if len(others):
        other = others[0]
        raise DataTypeError(
            f"Column {name!r} has {printable(cells[marked])!r} in row {marked} but {printable(cells[other])!r} in "
            f"row {other} ({FIRST_ROW}), which may be other units. Write all of its cells in one way, or "
            f"{leave_out(name)}."
        )
    what = "without the sign"
    if signs[marked] == "%":
        values, what = pl.Series(values.to_numpy() / 100), "as a fraction"  # polars multiplies by 0.01
    shown = f"in column {printable(name)}, {printable(cells[marked])} was read {what}, {values[marked]:g}."
    return values, shown


def _refuse_thousands(name: str, cells: pl.Series, row: int) -> None:
    """Refuse a column of numbers in which a cell has a mark that may separate thousands."""
    bodies = _without_signs(cells)[0].str.replace_all(SPACES, " ")
    patterns = "|".join((*DECIMAL.values(), *GROUPED.values(), r"^[-+]?\d+$"))
    if not bodies.drop_nulls().str.contains(patterns).all():
        return
    mark = next(character for character in bodies[row] if character in THOUSANDS)
    may_be_decimal = mark in OTHER and re.match(ONE_GROUP[mark], bodies[row])
    remedy = f" if it is the decimal mark, --decimal {mark!r} (decimal=);" if may_be_decimal else ""
    raise DataTypeError(
        f"Column {name!r} has {printable(cells[row])!r} in row {row} ({FIRST_ROW}), where {mark!r} may separate "
        f"thousands. If it does, pass --thousands {mark!r} (thousands=);{remedy} or {leave_out(name)}."
    )


def _refused_or_text(name: str, cells: pl.Series, given: pl.Series, numbers: pl.Series) -> str:
    """What a note says about a column of text; refuses one most of whose cells are numbers."""
    n, count = int(numbers.sum()), int(given.sum())
    if 2 * n > count:
        wrong = (given & ~numbers).arg_true()[0]
        text = printable(cells[wrong])
        as_missing = "" if BEGINS.match(text) else f" read them as missing with --missing {text!r} (missing=),"
        raise DataTypeError(
            f"Column {name!r} has numbers in {n:,} of {count:,} cells, but {text!r} in row {wrong} "
            f"({FIRST_ROW}). Correct such cells,{as_missing} or {leave_out(name)}."
        )
    if n:
        return f"{name} (numbers in {n:,} of {count:,} cells)"
    begin = [cell for cell in cells.filter(given) if BEGINS.match(cell) and not DATE.fullmatch(cell)]
    if 2 * len(begin) > count:
        return f"{name} ({len(begin):,} of {count:,} cells begin with a number, such as {begin[0]!r})"
    return name


def as_text(column: pl.Series) -> str:
    """What a note says about a column of text in a file that has columns of numbers, too."""
    import polars as pl

    n = column.cast(pl.String, strict=False).cast(pl.Float64, strict=False).count()
    return f"{column.name} (numbers stored as text in {n:,} of {column.count():,} cells)" if n else column.name


def leave_out(name: str) -> str:
    """The remedy that leaves a column out."""
    return f"leave the column out: --drop-columns {name!r} (drop_columns=)"
