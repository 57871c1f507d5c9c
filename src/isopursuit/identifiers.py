"""Columns that look like an identifier or a counter: numbers that name rows, and measure nothing.

A column looks like one if it holds
- whole numbers in equal steps, such as 1, 2, 3, … or the years 2001, 2002, …, from `FEW` rows on: whole numbers drawn
  from ten values do so with a probability below 1e-3;
- whole numbers that are all different, in any order, from `MANY` rows on: measurements that are counts repeat;
- numbers that only rise or only fall, from `MANY` rows on: n values in random order do so with probability 2/n!, but
  short tables are often sorted by a column.

These are signs, not proofs: a sorted time, or the population of cities, has them too, and so a note names the column
and nothing is left out. Where more than half of the columns have them, they are the data, and none is named.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from isopursuit._types import Array, Label
from isopursuit.errors import printable

FEW = 5  # rows, from which on equal steps count (guess; see above)
MANY = 20  # rows, from which on different whole numbers or sorted ones count (guess; see above)
EXACT = 2.0**53  # from here on every number of float64 is whole (derived)
SHOWN = 5  # columns that a note names at most (guess: they fit on a line)


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
    # the first rows exclude nearly all columns of measurements, so that few are looked at as a whole
    found = [j for j in _signs(values[:MANY], range(P)) if n <= MANY or _signs(values, [j])]
    return found if 2 * len(found) <= P + 1 else []


def identifier_note(values: Array, names: Sequence[Label] | None, remedy: str) -> tuple[str, ...]:
    """A note that names such columns of a table (rows, columns); `remedy` says what to do, with {names} in it."""
    found = identifier_columns(values)
    if not found:
        return ()
    shown = [printable(j if names is None else names[j]) for j in found[:SHOWN]]
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    listed = ", ".join(shown) + more
    what = f"column {listed} looks like an identifier or a counter"
    if len(found) > 1:
        what = f"columns {listed} look like identifiers or counters"
    return (f"{what}; {remedy.format(names=','.join(shown))}.",)


def _signs(values: Array, columns: Sequence[int]) -> list[int]:
    """Which of these columns have a sign of an identifier in these rows; in fewer than MANY only equal steps count."""
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
