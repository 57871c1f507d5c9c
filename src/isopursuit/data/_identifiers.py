"""Columns that look like identifiers or counters: their numbers name rows instead of measuring something.

A column looks like one if it has
- integers in equal steps, such as 1, 2, 3, … or the years 2001, 2002, …, and at least `FEW` rows: integers drawn from
  ten values do this with a probability below 1e-3;
- distinct integers in any order, and at least `MANY` rows: measured counts repeat;
- strictly increasing or decreasing numbers, and at least `MANY` rows: n values in random order do this with probability
  2/n!, but short tables are often sorted by a column.

These signs are no proof: sorted times and populations of cities have them too. So a note names the column, and no
column is dropped. If more than half of the columns have these signs, they are the data, and no column is named.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from isopursuit._core.text import SHOWN, listed
from isopursuit._core.types import Array, Label
from isopursuit.errors import printable

FEW = 5  # least number of rows for equal steps to count (derived, see above)
MANY = 20  # least number of rows for distinct integers or sorted numbers to count (derived, see above)
EXACT = 2.0**53  # every float64 above this is an integer (derived)


def identifier_columns(values: Array) -> list[int]:
    """The columns of a table (rows, columns) that look like an identifier or a counter.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> identifier_columns(np.column_stack([np.arange(30), rng.normal(size=30), rng.permutation(30) + 1000]))
    [0, 2]
    """
    n, P = values.shape
    if n < FEW:
        return []
    # the first rows rule out nearly all columns of measurements, so few are examined in full
    found = [j for j in _signs(values[:MANY], range(P)) if n <= MANY or _signs(values, [j])]
    return found if 2 * len(found) <= P + 1 else []


def identifier_note(values: Array, names: Sequence[Label] | None, remedy: str) -> tuple[str, ...]:
    """A note that names such columns of a table (rows, columns); `remedy` says what to do and contains {names}."""
    found = identifier_columns(values)
    if not found:
        return ()
    some = listed(j if names is None else names[j] for j in found)
    what = f"column {some} looks like an identifier or a counter"
    if len(found) > 1:
        what = f"columns {some} look like identifiers or counters"
    shown = ",".join(printable(j if names is None else names[j]) for j in found[:SHOWN])
    return (f"{what}; {remedy.format(names=shown)}.",)


def _signs(values: Array, columns: Sequence[int]) -> list[int]:
    """The columns that look like identifiers in these rows; in fewer than MANY rows only equal steps count."""
    n = len(values)
    found: list[int] = []
    for j in columns:
        column = values[:, j]
        steps = np.diff(column)
        rising = bool((steps > 0).all() or (steps < 0).all())
        whole = bool(((column == np.floor(column)) & (np.abs(column) < EXACT)).all())
        even = rising and whole and bool((steps == steps[0]).all())
        if even or (n >= MANY and (rising or (whole and len(np.unique(column)) == n))):
            found.append(j)
    return found
