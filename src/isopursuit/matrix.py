"""The door: whatever the caller has becomes a validated D × P matrix of float64, or a clear refusal.

Validated here once; behind the door nothing checks again. Integers, booleans and float32 are converted to float64.
The caller's data are never changed.
"""

from __future__ import annotations

import difflib
import math
import time
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import qr

from isopursuit.errors import (
    DataTypeError,
    LabelError,
    NonFiniteError,
    ParameterError,
    RangeError,
    RankError,
    ShapeError,
    printable,
)

Array = NDArray[np.float64]
Label = Hashable
LARGEST_NUMBER = 1e30  # that a setting may be; Python's integers have no limit, and float32 holds this one
SHOWN = 5  # how many positions or names a message lists
EPS = float(np.finfo(np.float64).eps)
LOOSE = 1e-13  # rounding of a row space that is hardly determined: which space it is does not matter then
SHORTEST = 1e-3  # seconds, the least time limit that one function passes on to another
SAMPLE = 8  # columns for each row that are looked at first for the rank of all
LARGEST = 1e140  # entries beyond this, or columns below its inverse, have squares that leave float64


@dataclass(frozen=True)
class Matrix:
    """A validated matrix: `values` (D, P), a label for each column if there are any, and remarks for the user.

    `rounding` (P,) bounds the length of each column's error where earlier steps amplified it: centring a table leaves
    errors of eps × |mean|, which may be far above eps × |entry|. None stands for eps × the column's own length.
    """

    values: Array
    labels: tuple[Label, ...] | None = None
    notes: tuple[str, ...] = ()
    rounding: Array | None = None

    @property
    def nonzero(self) -> NDArray[np.bool_]:
        """Which columns have a direction at all."""
        return np.asarray(self.values.any(axis=0))


def as_matrix(X: Any, labels: Sequence[Label] | None = None, *, wide: bool = True) -> Matrix:
    """Validate one matrix.

    Parameters
    ----------
    X : array_like, data frame or Matrix, shape (D, P)
        Columns are candidates. A frame's column names become labels; a `Matrix`, as tables give them, has its own.
    labels : sequence, optional
        One name for each column.
    wide : bool
        Whether X must have at least as many columns as rows.
    """
    names, values = (X.labels, X.values) if isinstance(X, Matrix) else _numbers(X)
    if values.ndim < 2:
        raise ShapeError(
            f"X has {values.ndim} dimensions and {values.size} entries; expected a matrix (D, P) whose columns are "
            "candidates. Use X.reshape(1, -1) for candidates with a single feature."
        )
    if values.ndim != 2:
        raise ShapeError(f"X has {values.ndim} dimensions {values.shape}; expected a matrix (D, P).")
    if labels is not None and not isinstance(labels, Iterable):
        raise LabelError(f"labels={labels!r} is not a list. Pass one label for each column.")
    labels = names if labels is None else tuple(labels)
    if labels is not None:
        _check_labels(labels, values.shape[1])
    found = _checked(values, labels, wide)
    return replace(found, notes=X.notes + found.notes, rounding=X.rounding) if isinstance(X, Matrix) else found


def as_points(X: Any, labels: Sequence[Label] | None = None, *, wide: bool = True) -> tuple[list[Matrix], bool]:
    """One matrix, or a list (or stack) of matrices of the same shape that share one selection.

    What has `matrices` and `labels`, as the differentials of a dictionary do, is such a stack. Returns the matrices and
    whether there were several to begin with.
    """
    if hasattr(X, "matrices"):
        labels, X = (X.labels if labels is None else labels), X.matrices
    stacked = isinstance(X, np.ndarray) and X.ndim == 3
    listed = isinstance(X, list | tuple) and len(X) > 0 and getattr(X[0], "ndim", 0) == 2  # pyright: ignore
    if not (stacked or listed):
        return [as_matrix(X, labels, wide=wide)], False
    points: list[Any] = list(X)
    matrices = [as_matrix(point, labels, wide=wide) for point in points]
    if len({matrix.labels for matrix in matrices}) > 1:
        raise LabelError("The points' columns have different labels, or the same in another order. Align them first.")
    shapes = {matrix.values.shape for matrix in matrices}
    if not matrices:
        raise ShapeError("X holds no matrices. Pass at least one (D, P) matrix.")
    if len(shapes) > 1:
        raise ShapeError(f"All points must have the same shape (D, P); got {sorted(shapes)}.")
    gone = np.flatnonzero(~np.any([matrix.nonzero for matrix in matrices], axis=0)).tolist()
    notes = length_notes(
        len(gone), 0, name_columns(gone, matrices[0].labels), zero_is="zero or too short at every point"
    )
    return [replace(matrix, notes=notes) for matrix in matrices], True


def as_numbers(numbers: ArrayLike, n: int, what: str) -> NDArray[np.intp]:
    """Numbers of some of n things, each from 0 to n − 1; a mask of n is taken as the numbers where it holds."""
    given: NDArray[Any] = np.asarray(numbers)
    if given.dtype == bool and given.shape == (n,):
        given = np.flatnonzero(given)
    if given.ndim != 1 or given.dtype.kind not in "iu" or (given.size and not 0 <= given.min() <= given.max() < n):
        raise ParameterError(f"{what} must be a list of whole numbers from 0 to {n - 1}, or a mask of {n}.")
    return given.astype(np.intp)


def is_number(value: object) -> TypeGuard[float]:
    """Whether this is a real number, and not a truth value."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def as_gap(gap: float) -> float:
    """A relative gap."""
    if not is_number(gap) or not 0 <= gap < 1:
        raise ParameterError(f"gap={gap!r} must be a relative gap from 0 to below 1, such as 0.01.")
    return float(gap)


def as_count(count: int, least: int, what: str) -> int:
    """A whole number, at least so large."""
    if not isinstance(count, int | np.integer) or isinstance(count, bool) or count < least:
        raise ParameterError(f"{what}={count!r} must be a whole number, at least {least}.")
    return int(count)


def as_exponent(c: float) -> float:
    """The paper's exponent c > 0."""
    if not is_number(c) or not 0 < c < LARGEST_NUMBER:
        raise ParameterError(f"c={c!r} is not a positive number. The paper uses c=1; try values from 0.1 to 10.")
    return float(c)


def as_time_limit(time_limit: float | None) -> float | None:
    """Seconds that a function may take, or None."""
    if time_limit is None:
        return None
    if not is_number(time_limit) or not 0 < time_limit < LARGEST_NUMBER:
        raise ParameterError(
            f"time_limit={time_limit!r} is not a positive number of seconds. Pass one such as 60, or None."
        )
    return float(time_limit)


def as_deadline(time_limit: float | None) -> float:
    """The time, by `time.perf_counter`, at which a limit that begins now is over; infinite where there is none."""
    limit = as_time_limit(time_limit)
    return np.inf if limit is None else time.perf_counter() + limit


def left_until(deadline: float) -> float | None:
    """Seconds before the deadline, at least a millisecond; None where there is none."""
    return None if deadline == np.inf else max(deadline - time.perf_counter(), SHORTEST)


def as_size(k: int | None, D: int, rank: int) -> int:
    """How many columns to pick: D, or fewer, never more than the rank."""
    if k is None:
        k = D
    if not isinstance(k, int | np.integer) or isinstance(k, bool):
        raise ParameterError(f"k={k!r} is not a whole number. Pass how many columns to pick, from 1 to {rank}.")
    if not 1 <= k <= D:
        raise ParameterError(f"k={k} is out of range: X has {D} rows, so pick from 1 to {rank} columns.")
    if k > rank:
        raise RankError(
            f"X has {D} rows but rank {rank}, so no {k} columns can be independent. "
            f"Pass k={rank} to select in its {rank}-dimensional row space, or drop dependent rows."
        )
    return int(k)


def as_indices(columns: Iterable[Any] | None, matrix: Matrix, what: str) -> list[int]:
    """Column numbers for indices or labels, sorted and without repeats."""
    if columns is None:
        return []
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        columns = [columns]
    P = matrix.values.shape[1]
    if matrix.labels is None and isinstance(columns, np.ndarray) and ((columns >= 0) & (columns < P)).all():
        return np.unique(columns.astype(np.intp, casting="safe")).tolist()
    position: dict[Label, int] = {label: i for i, label in enumerate(matrix.labels or ())}
    found: set[int] = set()
    numbered = not any(isinstance(label, int | np.integer) for label in position)
    for column in columns:
        if isinstance(column, Hashable) and column in position:
            found.add(position[column])
        elif numbered and isinstance(column, int | np.integer) and not isinstance(column, bool):
            if not -P <= column < P:
                raise ParameterError(f"{what} names column {column}, but X has {P} columns, 0 to {P - 1}.")
            found.add(int(column) % P)
        else:
            close = difflib.get_close_matches(str(column), [str(label) for label in position], n=3)
            hint = f" Did you mean {', '.join(repr(name) for name in close)}?" if close else ""
            known = "" if position else " X has no labels; pass labels= or column numbers."
            raise LabelError(f"{what} names {column!r}, which is not a column.{hint}{known}")
    return sorted(found)


def namespace(array: Any) -> Any:
    """The module that computes with an array: NumPy, or PyTorch for its tensors."""
    return np if isinstance(array, np.ndarray) else import_module("torch")


def on_host(array: Any) -> NDArray[Any]:
    """An array, or a tensor from whatever device, as NumPy's."""
    return np.asarray(array if isinstance(array, np.ndarray) else array.cpu())


def spectrum(stack: Array) -> Array:
    """Singular values of a matrix, or of a stack of matrices, in descending order."""
    return np.asarray(np.linalg.svd(stack, compute_uv=False), dtype=np.float64)


def singular_values(values: Array) -> Array:
    """Singular values of a wide matrix, in descending order, without a copy of it.

    Blocks of columns are reduced to triangles by QR (no Gram matrix is formed), so small ones stay accurate.
    """
    return spectrum(row_triangle(values))


def row_triangle(values: Array, scale: Array | None = None, block: int = 4096) -> Array:
    """R (upper, D × D) with X Xᵀ = Rᵀ R, from QR of Xᵀ by blocks; columns are multiplied by `scale` first."""
    D, P = values.shape
    R = np.zeros((0, D))
    for first in range(0, P, block):
        columns = values[:, first : first + block]
        if scale is not None:
            columns = columns * scale[first : first + block]
        # SciPy's lets other threads run meanwhile, NumPy's does not
        (R,) = qr(np.vstack([R, columns.T]), mode="r", overwrite_a=True, check_finite=False)
        R = np.asarray(R[:D], dtype=np.float64)
    return R


def numerical_rank(s: Array, P: int, error: float = 0.0) -> int:
    """How many singular values are above rounding: eps times the largest, or `error` where that is more."""
    return int((s > max(len(s), P) * max(EPS * s[0], error)).sum()) if s[0] > 0 else 0


def direction_rank(values: Array, rounding: Array | None = None) -> int:
    """The rank of the columns, whatever their lengths.

    Every column is divided by its length, or by rounding / eps where that is larger: then each has an error of at most
    eps, and no direction is told from another by less than that.
    """
    D, P = values.shape
    if rounding is None:
        # a few columns often show that the rank is full: σ_min of all is at least that of some, and σ_max at most √P
        some = values[:, :: max(P // (SAMPLE * D), 1)]
        if D <= some.shape[1] < P and float(singular_values(unit_columns(some))[-1]) > 2 * P * math.sqrt(P) * EPS:
            return D
        return numerical_rank(singular_values(unit_columns(values)), P)
    size = np.maximum(np.linalg.norm(values, axis=0), rounding / EPS)
    return numerical_rank(singular_values(values / np.where(size > 0, size, 1.0)), P, EPS)


def side_by_side(values: Array, block: int = 256) -> Array:
    """The columns as rows, (P, D), copied a block at a time, so that it stays in cache."""
    x = np.empty(values.shape[::-1])
    for first in range(0, len(x), block):
        x[first : first + block] = values[:, first : first + block].T
    return x


def row_space(values: Array, k: int, without: Sequence[int] = ()) -> Array:
    """The columns' coordinates in the leading k-dimensional row space: U_kᵀ X, where X = U S Vᵀ.

    Columns named in `without` do not take part in finding that space.
    """
    return _leading_directions(values, k, without)[0].T @ values


def _leading_directions(values: Array, k: int, without: Sequence[int]) -> tuple[Array, float]:
    """U_k, and how far the space it spans may be off, as a sine: eps σ_1 / (σ_k − σ_(k+1)), at most LOOSE."""
    kept = np.delete(values, without, axis=1) if without else values
    u, s, _ = np.linalg.svd(row_triangle(kept).T)
    leading = u[:, :k]
    # fix the signs, so that the answer does not depend on LAPACK's
    leading = leading * np.where(leading[np.abs(leading).argmax(axis=0), np.arange(k)] < 0, -1.0, 1.0)
    gap = s[k - 1] - (s[k] if k < len(s) else 0.0)
    return leading, EPS * float(s[0] / max(gap, EPS / LOOSE * s[0]))


def in_row_space(matrix: Matrix, k: int, without: Sequence[int] = ()) -> Matrix:
    """The matrix in its leading k dimensions: see `row_space`. Columns of which only rounding is left become zero."""
    before = np.linalg.norm(matrix.values, axis=0)
    leading, angle = _leading_directions(matrix.values, k, without)
    values = leading.T @ matrix.values
    rounding = 4 * len(matrix.values) * angle * before
    rounding = rounding if matrix.rounding is None else np.maximum(rounding, matrix.rounding)
    gone = (np.linalg.norm(values, axis=0) <= rounding) & (before > 0)
    values[:, gone] = 0.0
    names = name_columns(np.flatnonzero(gone).tolist(), matrix.labels)
    note = f"columns that are zero in the leading {k} dimensions cannot be picked: {names}."
    return replace(matrix, values=values, notes=matrix.notes + ((note,) if gone.any() else ()), rounding=rounding)


def name_columns(indices: Iterable[int], labels: tuple[Label, ...] | None, shown: int = SHOWN) -> str:
    """The first few columns by name, for messages."""
    indices = list(indices)
    names = [str(i) if labels is None else printable(labels[i]) for i in indices[:shown]]
    return ", ".join(names) + (f" and {len(indices) - shown} more" if len(indices) > shown else "")


def length_notes(
    zero: int, short: int, zero_names: str = "", short_names: str = "", *, zero_is: str = "zero"
) -> tuple[str, ...]:
    """What is said of columns that cannot be picked: zero ones, and others too short for float64 to square."""
    what = f"shorter than {1 / LARGEST:g}, whose square leaves float64,"
    return tuple(
        f"{count} {'column is' if count == 1 else 'columns are'} {kind} and cannot be picked{names and f': {names}'}."
        for count, kind, names in ((zero, zero_is, zero_names), (short, what, short_names))
        if count
    )


def unit_columns(values: Array) -> Array:
    """Columns of length 1, zero ones left zero: what rank depends on, whatever the lengths."""
    lengths = np.linalg.norm(values, axis=0)
    return values / np.where(lengths > 0, lengths, 1.0)


def _numbers(X: Any) -> tuple[tuple[Label, ...] | None, Array]:
    if hasattr(X, "tocsc") and hasattr(X, "toarray"):
        D, P = X.shape
        raise DataTypeError(
            f"X is a sparse matrix ({D} × {P}); dense columns are needed. "
            f"Pass X.toarray() ({8e-6 * D * P:.1f} MB as float64), or fewer columns."
        )
    names: tuple[Label, ...] | None = None
    raw: NDArray[Any]
    if hasattr(X, "columns") and hasattr(X, "to_numpy"):  # a pandas or polars frame
        names = tuple(X.columns)
        raw = X.to_numpy()
    else:
        if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):  # pyright: ignore
            raise NonFiniteError("X is a masked array with missing entries. Fill them, or drop those columns.")
        try:
            raw = np.asarray(X)
        except (ValueError, OverflowError) as error:
            raise ShapeError(f"X is not a matrix: {error}. All rows must have the same length.") from None
    if raw.dtype.kind == "c":
        raise DataTypeError("X is complex. Pass real numbers, for example np.vstack([X.real, X.imag]).")
    if raw.dtype.kind not in "biuf":
        raw = _from_objects(raw, names)
    return names, np.ascontiguousarray(raw, dtype=np.float64)


def _from_objects(raw: NDArray[Any], names: tuple[Label, ...] | None) -> Array:
    try:
        if raw.dtype.kind == "O":
            return raw.astype(np.float64)
    except OverflowError:
        raise RangeError("X has entries that float64 cannot hold. Rescale them first.") from None
    except (TypeError, ValueError):
        pass
    if raw.ndim == 2:
        for j in range(raw.shape[1]):
            for value in raw[:, j]:
                try:
                    float(value)
                except (TypeError, ValueError):
                    column = name_columns([j], names)
                    raise DataTypeError(
                        f"X is not numeric: column {column} holds {value!r}. Drop or encode such columns first."
                    ) from None
    raise DataTypeError(f"X is not numeric: its dtype is {raw.dtype}. Pass integers or floats.")


def _checked(values: Array, labels: tuple[Label, ...] | None, wide: bool) -> Matrix:
    """Refuse what cannot be computed with; columns shorter than any square that float64 holds become zero."""
    D, P = values.shape
    if values.size == 0:
        raise ShapeError(f"X is empty: it has shape {D} × {P}. Pass at least one row and one column.")
    if wide and P < D:
        raise ShapeError(
            f"X has {D} rows and only {P} columns, but columns are the candidates and {D} of them are needed. "
            "Did you mean X.T? Otherwise pass fewer rows, or to `select` a smaller k."
        )
    sizes = np.maximum(values.max(axis=0), -values.min(axis=0))
    largest = float(sizes.max())
    if not largest < LARGEST:
        _refuse_entries(values, largest)
    gone = sizes < 1 / LARGEST
    if not gone.any():
        return Matrix(values, labels)
    if gone.all() and wide:
        told = "is zero everywhere" if largest == 0 else f"has no entry above {largest:.1g}"
        raise RankError(f"X {told}, so there is nothing to pick. Check how it was read, or rescale it.")
    if sizes[gone].any():
        values = values.copy()
        values[:, gone] = 0.0
    zero, short = (np.flatnonzero(some).tolist() for some in (sizes == 0, gone & (sizes > 0)))
    notes = length_notes(len(zero), len(short), name_columns(zero, labels), name_columns(short, labels))
    return Matrix(values, labels, notes)


def _refuse_entries(values: Array, largest: float) -> None:
    where = np.argwhere(~np.isfinite(values))
    if len(where) == 0:
        raise RangeError(
            f"X has entries of size {largest:.1g}, whose squares leave float64. Divide X by that size: columns of "
            "about unit length are what is wanted anyway."
        )
    some = ", ".join(f"({i}, {j}): {values[i, j]}" for i, j in where[:SHOWN])
    more = f" and {len(where) - SHOWN} more" if len(where) > SHOWN else ""
    raise NonFiniteError(
        f"X has {len(where)} entries that are NaN or infinite, at (row, column) {some}{more}. "
        "Drop those rows or columns, or fill them in."
    )


def _check_labels(labels: tuple[Label, ...], P: int) -> None:
    if not all(isinstance(label, Hashable) for label in labels):
        raise LabelError("Labels must be text, numbers or other hashable values, one for each column.")
    if len(labels) != P:
        raise LabelError(f"There are {len(labels)} labels for {P} columns. Pass one label for each column.")
    if len(set(labels)) != P:
        seen: set[Label] = set()
        repeated = [label for label in labels if label in seen or seen.add(label)]
        some = ", ".join(repr(label) for label in dict.fromkeys(repeated[:SHOWN]))
        raise LabelError(f"Labels must be unique, but these appear more than once: {some}. Rename or drop them.")
