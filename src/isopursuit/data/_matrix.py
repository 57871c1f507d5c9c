"""Validation: convert the caller's data to a D × P matrix of float64, or raise an error that says what to do.

A matrix is validated once. Functions then pass `Matrix` objects and column numbers to each other; `as_matrix` and
`as_points` do not check a validated `Matrix` again, and `as_indices` does not check `ColumnNumbers` again. Integers,
booleans and float32 are converted to float64. The caller's data are never changed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.clock import Clock
from isopursuit._core.linalg import SAMPLE, centring_rounding, direction_rank, in_own_span
from isopursuit._core.options import as_numbers, is_whole
from isopursuit._core.text import SHOWN, Caution, listed, name_columns
from isopursuit._core.types import Array, Indices, Label, Labels, Mask, Unit
from isopursuit.data._identifiers import doubtful_columns
from isopursuit.data._units import AS_GIVEN, Standard, UnitLength, as_unit, without
from isopursuit.errors import (
    DataTypeError,
    LabelError,
    NonFiniteError,
    ParameterError,
    RangeError,
    RankError,
    ShapeError,
    did_you_mean,
)

# largest entry, and inverse of the shortest length: sums of up to 1e27 squares of such numbers stay below 1.8e308, the
# limit of float64 (derived)
LARGEST = 1e140
# operations per second of QR, a low estimate (measured on one thread: 7e9 for D = 50, 4e10 for D = 1000)
RANK_SPEED = 2e9
RANK_SHARE = 0.2  # largest share of the time to compute the rank (chosen: the search keeps most of it)


class ColumnNumbers(list[int]):
    """Numbers of columns, as `as_indices` returns them: sorted, unique and in range.

    The type distinguishes them from the caller's columns, in which an integer may be a label.
    """


@dataclass(frozen=True)
class Matrix:
    """A matrix `values` (D, P), a label for each column if there are any, and notes for the user.

    `rounding` (P,) bounds the rounding error of each column, as a length, if earlier steps amplified it: centring a
    table leaves errors of eps × |mean|, which can be far larger than eps × |entry|. None means eps × the length of the
    column.

    `unit_length` is the divisor of the lengths. `full_rank_assumed`: there was no time to compute the rank. Only
    `as_matrix` sets `validated`; tables and estimators make matrices that it has not checked yet.
    """

    values: Array
    labels: Labels | None = None
    notes: tuple[str, ...] = ()
    rounding: Array | None = None
    validated: bool = False
    unit_length: UnitLength = AS_GIVEN
    full_rank_assumed: bool = False

    @cached_property
    def lengths(self) -> Array:
        """The length of each column."""
        return np.sqrt(np.einsum("dp,dp->p", self.values, self.values))

    @cached_property
    def nonzero(self) -> Mask:
        """Which columns are not zero."""
        return np.asarray(self.values.any(axis=0))

    @cached_property
    def rank(self) -> int:
        """The rank of the columns, regardless of their lengths; see `direction_rank`."""
        return min(self.values.shape) if self.full_rank_assumed else direction_rank(self.values, self.rounding)

    def with_time_for_rank(self, clock: Clock) -> Matrix:
        """The matrix; its rank is assumed to be full, with a note, if that takes too much of the time to compute."""
        P, D = sorted(self.values.shape)[::-1]
        # QR of some columns, or of all if their rounding is known, and the singular values of a triangle
        used = P if self.rounding is not None else min(P, SAMPLE * D)
        seconds = D * D * (2 * used + 10 * D) / RANK_SPEED
        if self.full_rank_assumed or seconds <= RANK_SHARE * clock.remaining:
            return self
        return replace(self, full_rank_assumed=True, notes=(*self.notes, "the rank was not computed, to save time."))

    def take(self, columns: Sequence[int] | Indices) -> Matrix:
        """The matrix of these columns, given by number."""
        rounding = None if self.rounding is None else self.rounding[columns]
        labels = None if self.labels is None else tuple(self.labels[i] for i in columns)
        return replace(self, values=np.take(self.values, columns, axis=1), labels=labels, rounding=rounding)

    def times(self, factors: Array) -> Matrix:
        """Multiply every column and its rounding by a factor."""
        rounding = None if self.rounding is None else self.rounding * factors
        return replace(self, values=self.values * factors, rounding=rounding)

    def in_unit(self, unit: UnitLength) -> Matrix:
        """Divide lengths by the unit; columns whose squared length would underflow become zero."""
        if unit == AS_GIVEN:
            return self
        factors = unit.factors(self.lengths)
        lengths = self.lengths * factors
        if not lengths.max(initial=0.0) < LARGEST:
            raise RangeError(
                f"With unit {unit.length:.4g} a column has length {lengths.max():.1g}, whose square overflows "
                "float64. Pass a larger unit, or unit='median'."
            )
        found = replace(self.times(factors * (lengths > 1 / LARGEST)), unit_length=unit)
        if "rank" in self.__dict__ and lengths[self.nonzero].min(initial=1.0) > 1 / LARGEST:
            found.__dict__["rank"] = self.rank  # factors do not change it
        return found


def as_matrix(X: Any, labels: Sequence[Label] | None = None, *, wide: bool = True) -> Matrix:
    """Validate one matrix.

    Parameters
    ----------
    X : array_like, data frame or Matrix, shape (D, P)
        Columns are candidates. The column names of a frame become labels; a `Matrix` already has labels.
    labels : sequence, optional
        One name for each column.
    wide : bool
        Whether X must have at least as many columns as rows.
    """
    if isinstance(X, Matrix) and X.validated and labels is None:
        check_wide(X.values.shape, wide)
        return X
    check_wide(getattr(X, "shape", ()), wide)  # before X is copied
    frame = not isinstance(X, Matrix) and frame_names(X) is not None
    names, values = (X.labels, X.values) if isinstance(X, Matrix) else as_numbers_of(X)
    if values.ndim != 2:
        hint = " Use X.reshape(1, -1) for a single feature." if values.ndim < 2 else ""
        raise ShapeError(
            f"X has {values.ndim} dimensions {values.shape}; expected a matrix (D, P) with candidates as columns.{hint}"
        )
    labels = as_labels(names if labels is None else labels, values.shape[1])
    found = _checked(values, labels, wide, names if frame else None)
    D, P = values.shape
    notes = found.notes
    if frame:
        notes += doubtful_columns(values, names, "drop columns that only name rows")
    if D > P and not isinstance(X, Matrix):
        notes += (f"{P} candidate columns with {D} rows each; to pick rows pass X.T.",)
    if not isinstance(X, Matrix) and is_like_correlation(values):
        notes += (Caution("X looks like a correlation matrix. If it is one, pass it as gram= in place of X."),)
    if isinstance(X, Matrix):
        kept = {"rounding": X.rounding, "unit_length": X.unit_length, "full_rank_assumed": X.full_rank_assumed}
        return replace(found, notes=X.notes + notes, **kept)
    return replace(found, notes=notes) if notes else found


def is_like_correlation(values: Array) -> bool:
    """Whether a matrix is symmetric with ones on its diagonal and smaller numbers beside them, but is not the identity.

    Examples
    --------
    >>> is_like_correlation(np.corrcoef(np.random.default_rng(0).normal(size=(3, 9)))), is_like_correlation(np.eye(3))
    (True, False)
    """
    if (
        values.shape[0] != values.shape[1]
        or len(values) < 3
        or not np.allclose(np.diag(values), 1.0, rtol=0, atol=1e-9)
    ):
        return False
    others = np.abs(values - np.diag(np.diag(values)))
    return bool(0 < others.max() <= 1 + 1e-9) and np.allclose(values, values.T, rtol=0, atol=1e-9)


def centred(X: Any, labels: Sequence[Label] | None = None) -> Matrix:
    """The columns minus their means. Constant ones become zero; the inner products of others, with length 1, are
    correlations.
    """
    source = hasattr(X, "fold") and frame_names(X) is None  # a frame of Polars has a method of that name
    if source or isinstance(X, str | PathLike) or getattr(X, "ndim", 2) != 2:
        raise ParameterError(
            "center=True needs one matrix in memory. Of a table in a file pass read_table(path).values; of other data, "
            "subtract the means of the columns before."
        )
    matrix = as_matrix(X, labels, wide=False)
    standard = Standard.of(matrix.values)
    values = np.where(np.isfinite(standard.spread), matrix.values - standard.mean, 0.0)
    shift = np.abs(standard.mean) * np.sqrt(len(values))
    notes = tuple(note for note in matrix.notes if "X.T" not in note and "gram=" not in note)  # rows are observations
    return replace(matrix, values=values, rounding=centring_rounding(values, shift), validated=False, notes=notes)


def uncentred_notes(matrix: Matrix) -> tuple[str, ...]:
    """A note if most columns of a table have means that are large beside their spreads, so that cosines are not
    correlations.
    """
    values = matrix.values
    if len(values) < 3:
        return ()
    shifted = int((np.abs(values.mean(axis=0)) > values.std(axis=0)).sum())
    if 2 * shifted <= values.shape[1]:
        return ()
    return (
        Caution(
            f"{shifted} of {values.shape[1]} columns have a mean above their standard deviation, which their cosines "
            "include. unit='each' with center=True compares correlations."
        ),
    )


def check_count(k: object, shape: tuple[int, ...]) -> None:
    """Raise an error, before any work, if k exceeds the number of columns."""
    D, P = shape
    if not is_whole(k) or k <= P:
        return
    turned = f" Did you mean X.T, whose {D} columns are the rows of X?" if k <= D else ""
    raise ParameterError(
        f"k={k} is out of range: X has {P} columns (the candidates) and {D} rows.{turned} "
        f"Otherwise pick from 1 to {min(D, P)} columns."
    )


def with_fewer_rows(matrix: Matrix) -> Matrix:
    """If there are more rows than columns, express the columns in coordinates of their span: P × P instead of D × P,
    with the same inner products.
    """
    D, P = matrix.values.shape
    return matrix if D <= P else replace(matrix, values=in_own_span(matrix.values))


def _is_validated(X: Any) -> bool:
    return isinstance(X, list) and len(X) > 0 and all(isinstance(one, Matrix) and one.validated for one in X)  # pyright: ignore[reportUnknownVariableType]


def as_points(X: Any, labels: Sequence[Label] | None = None, *, wide: bool = True) -> tuple[list[Matrix], bool]:
    """One matrix, or a list (or stack) of matrices of the same shape that share one selection.

    An object with `matrices` and `labels`, such as the differentials of a dictionary, is such a stack. Returns the
    matrices, and whether X was a list or a stack. A list that this function returned is not checked again.
    """
    if labels is None and _is_validated(X):
        return X, True
    unit = AS_GIVEN
    if hasattr(X, "matrices"):
        labels, unit, X = (X.labels if labels is None else labels), getattr(X, "unit_length", unit), X.matrices
    stacked = isinstance(X, np.ndarray) and X.ndim == 3
    listed = isinstance(X, list | tuple) and len(X) > 0 and getattr(X[0], "ndim", 0) == 2  # pyright: ignore
    if not (stacked or listed):
        return [as_matrix(X, labels, wide=wide)], False
    points: list[Any] = list(X)
    matrices = [as_matrix(point, labels, wide=wide) for point in points]
    if len({matrix.labels for matrix in matrices}) > 1:
        raise LabelError("The labels of the columns, or their order, differ between points. Align them first.")
    shapes = {matrix.values.shape for matrix in matrices}
    if not matrices:
        raise ShapeError("X contains no matrices. Pass at least one (D, P) matrix.")
    if len(shapes) > 1:
        raise ShapeError(f"All points must have the same shape (D, P); got {sorted(shapes)}.")
    gone = np.flatnonzero(~np.any([matrix.nonzero for matrix in matrices], axis=0)).tolist()
    notes = length_notes(
        len(gone), 0, name_columns(gone, matrices[0].labels), zero_is="zero or too short at every point"
    )
    if unit != AS_GIVEN:
        matrices = [replace(one, unit_length=unit) for one in matrices]
    return [one if one.notes == notes else replace(one, notes=notes) for one in matrices], True


def in_unit(points: list[Matrix], unit: Unit, excluded: Sequence[int] = ()) -> list[Matrix]:
    """The columns at all points in a unit; see `select`.

    The median is one number for all points and for all columns that can be picked: columns that are not excluded and
    not zero at any point.
    """
    if as_unit(unit) is None:
        return points
    vanishing = np.flatnonzero(~np.all([one.nonzero for one in points], axis=0))
    lengths = without(np.stack([one.lengths for one in points]), np.union1d(vanishing, excluded).astype(np.intp))
    resolved = UnitLength.of(unit, lengths)
    return [one.in_unit(resolved) for one in points]


def in_unit_stack(stack: Array, unit: Unit) -> tuple[Array, UnitLength]:
    """Matrices (n, D, P) in a unit, as in `in_unit`, and the divisor of their lengths."""
    points = in_unit([Matrix(one) for one in stack], unit)
    if as_unit(unit) is None or not points:
        return stack, AS_GIVEN
    return np.stack([one.values for one in points]), points[0].unit_length


def as_indices(columns: Iterable[Any] | None, matrix: Matrix, what: str) -> ColumnNumbers:
    """The sorted column numbers of indices or labels, without repetitions."""
    if isinstance(columns, ColumnNumbers):
        return columns
    if columns is None:
        return ColumnNumbers()
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        columns = [columns]
    P = matrix.values.shape[1]
    array = isinstance(columns, np.ndarray)
    if array and (columns.dtype == bool or (matrix.labels is None and columns.dtype.kind in "iu")):
        return ColumnNumbers(np.unique(as_numbers(columns, P, what, from_end=True)).tolist())
    position: dict[Label, int] = {label: i for i, label in enumerate(matrix.labels or ())}
    found: set[int] = set()
    numbered = not any(isinstance(label, int | np.integer) for label in position)
    for column in columns:
        if isinstance(column, Hashable) and column in position:
            found.add(position[column])
        elif numbered and is_whole(column):
            if not -P <= column < P:
                raise ParameterError(f"{what} names column {column}, but X has {P} columns, 0 to {P - 1}.")
            found.add(int(column) % P)
        else:
            first = f"The first labels are {tuple(position)[:5]}."
            hint = did_you_mean(str(column), map(str, position)) or first
            hint = hint if position else "X has no labels; pass labels= or column numbers."
            raise LabelError(f"{what} names {column!r}, which is not a column. {hint}".rstrip())
    return ColumnNumbers(sorted(found))


def too_few_columns(left: int, P: int, k: int, others: str = "excluded") -> ShapeError:
    """The error if only `left` of P columns can be picked and k are needed."""
    return ShapeError(
        f"Only {left} of {P} columns can be picked (the others are {others}), but {k} are needed. Exclude fewer "
        "columns, or pass a smaller k."
    )


def length_notes(
    zero: int, short: int, zero_names: str = "", short_names: str = "", *, zero_is: str = "zero"
) -> tuple[str, ...]:
    """Notes about columns that cannot be picked: zero columns, and columns whose squared length underflows."""
    what = f"shorter than {1 / LARGEST:g}, whose square underflows float64,"
    return tuple(
        Caution(f"{count} {'columns are' if count > 1 else 'column is'} {kind} and cannot be picked{names}.")
        for count, kind, names in (
            (zero, zero_is, zero_names and f": {zero_names}"),
            (short, what, short_names and f": {short_names}"),
        )
        if count
    )


def frame_names(X: Any) -> Labels | None:
    """The column names of a pandas, Polars or Arrow frame; None for anything else."""
    if type(X).__name__ == "LazyFrame":
        raise DataTypeError("X is a LazyFrame, whose cells are not computed yet. Pass X.collect().")
    if hasattr(X, "to_numpy"):
        return tuple(X.columns) if hasattr(X, "columns") else None
    return tuple(X.column_names) if hasattr(X, "column_names") and hasattr(X, "columns") else None


def as_numbers_of(X: Any) -> tuple[Labels | None, Array]:
    """The column names of a frame (None for an array), and the numbers as float64."""
    if hasattr(X, "tocsc") and hasattr(X, "toarray"):
        D, P = X.shape
        raise DataTypeError(
            f"X is a sparse matrix ({D} × {P}); dense columns are needed. "
            f"Pass X.toarray() ({8e-6 * D * P:.1f} MB as float64), or fewer columns."
        )
    names = frame_names(X)
    raw: NDArray[Any]
    if names is not None:
        if hasattr(X, "to_numpy"):
            raw = X.to_numpy()
            dates = [name for name, kind in zip(names, X.dtypes, strict=True) if getattr(kind, "is_temporal", bool)()]
            if dates:  # Polars converts them to numbers of days
                raise DataTypeError(
                    f"X is not numeric: column {listed(dates)} contains dates. Drop or encode them first."
                )
        else:  # an Arrow table
            raw = np.empty((X.num_rows, X.num_columns), dtype=object)
            for j, column in enumerate(X.columns):
                raw[:, j] = column.to_pylist()
    else:
        if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):  # pyright: ignore
            raise NonFiniteError("X is a masked array with missing entries. Fill them in, or drop those columns.")
        try:
            raw = np.asarray(X)
        except (ValueError, OverflowError) as error:
            raise ShapeError(f"X is not a matrix: {error}. All rows must have the same length.") from None
    if raw.dtype.kind == "c":
        raise DataTypeError("X is complex. Pass real numbers, for example np.vstack([X.real, X.imag]).")
    if raw.dtype.kind not in "biuf":
        raw = _from_objects(raw, names)
    return names, np.ascontiguousarray(raw, dtype=np.float64)


def _from_objects(raw: NDArray[Any], names: Labels | None) -> Array:
    """Numbers that NumPy has as objects; raises an error that names the column of a cell that is no number."""
    try:
        if raw.dtype.kind == "O":
            return raw.astype(np.float64)
    except OverflowError:
        raise RangeError("X has entries that exceed float64. Rescale them first.") from None
    except (TypeError, ValueError):
        pass
    for j in range(raw.shape[1] if raw.ndim == 2 else 0):
        cells: Iterable[Any] = raw[:, j]
        for i, value in enumerate(cells):
            kind = type(value).__name__
            missing = value is None or kind in ("NAType", "NaTType")
            if raw.dtype.kind not in "mM" and not missing:
                try:
                    float(value)  # pyright: ignore[reportArgumentType]
                    continue
                except (TypeError, ValueError):
                    pass
            column = f"column {name_columns([j], names)}"
            if missing:
                raise NonFiniteError(
                    f"X has a missing cell in {column}, row {i}. Drop or fill in such cells, or drop the column."
                )
            what = f"the date {value}" if raw.dtype.kind in "mM" or hasattr(value, "year") else repr(value)
            raise DataTypeError(f"X is not numeric: {column} contains {what}. Drop or encode such columns first.")
    raise DataTypeError(f"X is not numeric: its dtype is {raw.dtype}. Pass integers or floats.")


def _checked(values: Array, labels: Labels | None, wide: bool, names: Labels | None) -> Matrix:
    """Raise an error for unusable entries, by `names` of columns in a frame; columns whose squared length underflows
    become zero.
    """
    D, P = values.shape
    if values.size == 0:
        raise ShapeError(f"X is empty: it has shape {D} × {P}. Pass at least one row and one column.")
    check_wide(values.shape, wide)
    sizes = np.maximum(values.max(axis=0), -values.min(axis=0))
    largest = float(sizes.max())
    if not largest < LARGEST:
        refuse_entries(values, names)
    gone = sizes < 1 / LARGEST
    if not gone.any():
        return Matrix(values, labels, validated=True)
    if gone.all() and wide:
        found = "is zero everywhere" if largest == 0 else f"has no entry above {largest:.1g}"
        raise RankError(f"X {found}, so no column can be picked. Check how X was read, or rescale it.")
    if sizes[gone].any():
        values = values.copy()
        values[:, gone] = 0.0
    zero, short = (np.flatnonzero(some).tolist() for some in (sizes == 0, gone & (sizes > 0)))
    notes = length_notes(len(zero), len(short), name_columns(zero, labels), name_columns(short, labels))
    return Matrix(values, labels, notes, validated=True)


def check_wide(shape: tuple[int, ...], wide: bool = True) -> None:
    """Raise an error if there are fewer columns than rows and as many columns as rows must be picked (`wide`)."""
    D, P = shape if len(shape) == 2 else (0, 0)
    if wide and 0 < P < D:
        raise ShapeError(
            f"X has {D} rows and only {P} columns, but columns are the candidates and {D} of them are needed. "
            "Did you mean X.T? Otherwise pass fewer rows, or to `select` k=, the number of columns to pick."
        )


def refuse_entries(values: Array, names: Labels | None = None) -> None:
    """Raise an error for entries that are not finite or too large; `names` are the columns of a frame."""
    bad = ~np.isfinite(values)
    if not bad.any():
        largest = np.abs(values).max(initial=0.0)
        if not largest < LARGEST:
            raise RangeError(
                f"X has entries of size {largest:.1g}, whose squares overflow float64. Divide X by that size; columns "
                "of length 1 have the least loss anyway."
            )
        return
    where = np.argwhere(bad)
    some = listed(f"({i}, {j}): {values[i, j]}" for i, j in where)
    place = f"at (row, column) {some}"
    if names is not None:
        columns = np.flatnonzero(bad.any(axis=0)).tolist()
        place = f"in {len(columns)} of {len(names)} columns: {name_columns(columns, names)}"
    raise NonFiniteError(
        f"X has {len(where)} entries that are NaN or infinite, {place}. Drop those rows or columns, or fill them in."
    )


def as_labels(labels: Sequence[Label] | None, P: int) -> Labels | None:
    """Labels for P columns, checked."""
    if labels is None:
        return None
    if not isinstance(labels, Iterable):
        raise LabelError(f"labels={labels!r} is not a list. Pass one label for each column.")
    labels = tuple(labels)
    if not all(isinstance(label, Hashable) for label in labels):
        raise LabelError("Labels must be text, numbers or other hashable values, one for each column.")
    if len(labels) != P:
        raise LabelError(f"There are {len(labels)} labels for {P} columns. Pass one label for each column.")
    if len(set(labels)) != P:
        seen: set[Label] = set()
        repeated = [label for label in labels if label in seen or seen.add(label)]
        some = ", ".join(repr(label) for label in dict.fromkeys(repeated[:SHOWN]))
        raise LabelError(f"Labels must be unique, but these appear more than once: {some}. Rename or drop them.")
    return labels
