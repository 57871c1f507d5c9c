"""A table of named numbers, and its rows or columns as candidates."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from isopursuit._core.linalg import centring_rounding
from isopursuit._core.text import name_columns
from isopursuit._core.types import Array, Labels
from isopursuit.data._matrix import Matrix, with_fewer_rows
from isopursuit.data._units import Standard, ranks


@dataclass(frozen=True)
class Table:
    """A table: `values` (rows, columns), the names of the columns, the labels of the rows, and notes for the user."""

    values: Array
    columns: tuple[str, ...]
    rows: Labels
    notes: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()  # row numbers in the file, if some rows were left out
    shift: Array | None = None  # |mean| / spread of each column before standardization

    def ranked(self) -> Table:
        """The table with the ranks of the cells in each column (equal cells have their mean rank), for Spearman's
        correlation.
        """
        return replace(self, values=ranks(self.values))

    def standardized(self) -> Table:
        """The table with columns of mean 0 and variance 1; constant columns are left out, with a note."""
        standard = Standard.of(self.values)
        varying, notes = standard.varying, self.notes
        if not varying.all():
            notes += (f"left out, constant: {name_columns(np.flatnonzero(~varying).tolist(), self.columns)}.",)
        columns = tuple(name for name, kept in zip(self.columns, varying, strict=True) if kept)
        shift = (np.abs(standard.mean) / standard.spread)[varying]
        return replace(self, values=standard.apply(self.values)[:, varying], columns=columns, notes=notes, shift=shift)

    def samples(self) -> Matrix:
        """Rows as candidates: X is columns × rows, as in the paper's diversification."""
        shift = None if self.shift is None else np.linalg.norm(self.shift)
        return Matrix(
            np.ascontiguousarray(self.values.T), self.rows, self.notes, centring_rounding(self.values.T, shift)
        )

    def features(self) -> Matrix:
        """Columns as candidates.

        Their lengths are divided by √rows, so a standardized column has length 1. If there are more rows than columns,
        the rows are rotated into as many coordinates as there are columns, which does not change inner products.
        """
        scaled = self.values / np.sqrt(len(self.values))
        matrix = Matrix(scaled, self.columns, self.notes, centring_rounding(scaled, self.shift))
        return with_fewer_rows(matrix)
