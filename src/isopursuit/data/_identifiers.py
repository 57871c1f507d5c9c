"""Columns of doubtful use: nearly constant ones, and those that look like identifiers or counters, whose numbers name
rows instead of measuring something.

A column looks like an identifier if it has
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
SAME = 0.99  # least share of the rows with one value in a column that is nearly constant (chosen)
SOME = 1000  # about as many rows are examined first (chosen: a millisecond for a hundred columns)
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


def nearly_constant(values: Array) -> list[int]:
    """The columns of a table (rows, columns) with one value in at least `SAME` of the rows, but not in all.

    Examples
    --------
    >>> nearly_constant(np.column_stack([np.arange(300) == 7, np.arange(300) % 2, np.ones(300)]).astype(float))
    [0]
    """
    if len(values) < MANY:
        return []
    # some rows rule out nearly all columns, so few are examined in full
    some = values[:: max(len(values) // SOME, 1)]
    likely = np.flatnonzero((some == np.median(some, axis=0)).mean(axis=0) >= 2 * SAME - 1)
    shares = [(j, float((values[:, j] == np.median(values[:, j])).mean())) for j in likely.tolist()]
    return [j for j, share in shares if SAME <= share < 1]


def doubtful_columns(values: Array, names: Sequence[Label] | None, remedy: str) -> tuple[str, ...]:
    """Notes that name columns of a table (rows, columns) that may be no measurements: those that look like identifiers
    (`remedy` says what to do about them, and contains {names}), and those that are nearly constant.
    """

    def named(columns: list[int]) -> list[Label]:
        return [j if names is None else names[j] for j in columns]

    notes: tuple[str, ...] = ()
    found, same = named(identifier_columns(values)), named(nearly_constant(values))
    if found:
        shown = ",".join(map(printable, found[:SHOWN]))
        what = f"columns {listed(found)} look like identifiers or counters"
        what = what if len(found) > 1 else f"column {listed(found)} looks like an identifier or a counter"
        notes += (f"{what}; {remedy.format(names=shown)}.",)
    if same:
        share = f"{100 * SAME:g} % of the rows or more have one value"
        notes += (f"nearly constant ({share}), so few rows decide correlations: {listed(same)}.",)
    return notes


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
