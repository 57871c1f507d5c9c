"""The first line of a text table: whether it contains column names, and which column contains row labels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

from isopursuit.data._cells import PLAIN, Style
from isopursuit.errors import FileError, printable

if TYPE_CHECKING:
    import polars as pl

Number = Callable[[str], "float | None"]  # a cell as a number; None for text

# a first line of integers is a header if the rows below make it less probable than this (chosen; a note tells)
UNLIKELY = 0.1
SHOWN = 4  # cells of the first line that a note quotes


@dataclass(frozen=True)
class Columns:
    """A file's columns: names, values, row labels if there is an index column, and notes for the user.

    `index_note` is a further note, shown if the index column labels the rows. `style` is how text columns write
    numbers.
    """

    names: list[str]
    series: list[pl.Series]
    index: list[str] | None = None
    notes: tuple[str, ...] = ()
    index_note: str = ""
    style: Style = PLAIN


def has_names(first: list[str], body: list[list[str]], number: Number) -> tuple[bool, str]:
    """Whether the first line contains names, and a note if that is uncertain.

    Text above numbers is a name. Numbers above numbers are names if they are 0, 1, … (as pandas writes them), if they
    are distinct integers while few numbers below are integers, or if they increase in equal steps and are farther from
    all numbers below than those are from one another (years above counts, wavelengths above absorbances).
    """
    shape = Counter(map(len, body))
    if len(body) > 1 and set(shape) == {len(first) + 1} and all(row[-1] for row in body):
        return True, ""  # R writes no name for the column of row names
    cells = [number(cell) for cell in first]
    below = [[number(row[j]) for row in body if j < len(row)] for j in range(len(first))]
    numeric = [bool(column) and None not in column and not _all_missing(column) for column in below]
    if any(cell is None and over for cell, over in zip(cells, numeric, strict=True)):
        return True, ""
    above = [
        j for j, cell in enumerate(cells) if cell is not None and not math.isnan(cell) and (numeric[j] or not body)
    ]
    if not above:
        return None in cells or not body, ""
    texts = [j for j, cell in enumerate(cells) if cell is None]
    repeated = any(row[j] == first[j] for row in body for j in texts if j < len(row))
    H = [cells[j] or 0.0 for j in above]
    rows = [
        [column[i] or 0.0 for column in (below[j] for j in above)] for i in range(min(len(below[j]) for j in above))
    ]
    unnamed = first[0] == "" and len({row[0] for row in body}) == len(body) > 0
    names = not repeated and body != [] and _are_names(H, rows, texts != [], unnamed)
    shown = printable(", ".join(first[:SHOWN]) + (", …" if len(first) > SHOWN else ""))
    if names:
        return True, (
            f"the first line ({shown}) was read as column names; pass header=False (--no-header) if it is a row."
        )
    return False, (
        f"the first line ({shown}) was read as a row; pass header=True (--header) if it contains column names."
    )


def _all_missing(column: list[float | None]) -> bool:
    return all(value is not None and math.isnan(value) for value in column)


def _are_names(H: list[float], rows: list[list[float]], beside_text: bool, unnamed: bool) -> bool:
    """Whether numbers are column names, given the numbers below; text or an unnamed index may be next to them."""
    n = len(H)
    different = len(set(H)) == n
    whole = different and all(value == int(value) for value in H if math.isfinite(value)) and all(map(math.isfinite, H))
    cells = [value for row in rows for value in row if math.isfinite(value)]
    if not cells:
        return False
    share = (sum(value == int(value) for value in cells) + 1) / (len(cells) + 2)
    if whole and (unnamed or share**n < UNLIKELY):
        return True
    steps = [b - a for a, b in pairwise(H)]
    if whole and all(step == 1 for step in steps):
        goes_on = rows[0] == [value + n for value in H]
        symmetric = [row[0] for row in rows] == H[1:]
        if H[0] in ((0.0, 1.0) if beside_text else (0.0,)) and n >= 3 and not goes_on and not symmetric:
            return True
    evenly = n >= 3 and steps[0] > 0 and all(math.isclose(step, steps[0], rel_tol=1e-6) for step in steps)
    evenly |= n == 2 and whole and steps == [1.0]
    width = max(cells) - min(cells)
    far = all(max(min(cells) - value, value - max(cells)) > width for value in H)
    return different and evenly and far and width > 0 and len(rows) > 1


def with_names(names: list[str], series: list[Any], file: str, notes: tuple[str, ...]) -> Columns:
    """The columns with their names; a column of row names becomes the index."""
    index: list[str] | None = None
    index_note = ""
    while names and names[-1] == "" and len(names) > len(series):
        names = names[:-1]  # a separator at the end of the header
    while len(series) > len(names) and series[-1].null_count() == len(series[-1]):
        series = series[:-1]  # and of the rows
    extra = len(series) - len(names)
    if extra == 1 and len(series[0]) > 1 and series[-1].null_count() == 0 and series[0].n_unique() == len(series[0]):
        index, series = [str(value) for value in series[0]], series[1:]
        index_note = "the first column has no name in the header and was read as row labels."
    elif extra:
        raise FileError(
            f"{file} is irregular: its header names {len(names)} columns, but its rows have up to {len(series)} cells. "
            "Quote cells that contain the separator."
        )
    elif names[0] == "" or names[0] == "Unnamed: 0":
        kind = series[0].dtype
        label = kind.is_integer() or (names[0] == "" and not kind.is_numeric())
        if label and len(names) > 1 and series[0].null_count() == 0 and series[0].n_unique() == len(series[0]):
            index = [str(value) for value in series[0]]
            names, series = names[1:], series[1:]
            index_note = "the first column has no name and was read as row labels; give it a name to use its numbers."
    used = [j for j, name in enumerate(names) if name or series[j].null_count() < len(series[j])]
    shift = 1 if index is None else 2
    found: list[str] = []
    seen: set[str] = set()
    repeated: list[str] = []
    for j in used:
        plain = names[j] or f"column_{j + shift}"
        if plain in seen:
            repeated.append(plain)
            plain = f"{plain} (column {j + shift})"
        seen.add(plain)
        found.append(plain)
    if repeated:
        some = printable(", ".join(islice(repeated, SHOWN)))
        notes += (f"several columns have the same name: {some}; the column number was added to the later ones.",)
    return Columns(found, [series[j] for j in used], index, notes, index_note)
