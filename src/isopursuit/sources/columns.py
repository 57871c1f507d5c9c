"""Columns that are not an array in memory: `as_source`, and `Columns`, a source with a transform that is applied on the
fly.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from isopursuit._core.clock import UNLIMITED, Clock
from isopursuit._core.linalg import EPS, LOOSE, fix_signs, in_own_span
from isopursuit._core.options import is_whole
from isopursuit._core.threads import on_one_blas_thread
from isopursuit._core.types import Array, Indices, Unit
from isopursuit.data._matrix import LARGEST, RANK_SHARE, RANK_SPEED
from isopursuit.data._units import AS_GIVEN, Standard, UnitLength, as_unit, without
from isopursuit.data.tables import EXCEL, TEXT
from isopursuit.errors import DataTypeError, FileError, ParameterError, RankError, ShapeError, unknown_option
from isopursuit.sources.arrays import ArraySource, FileSource, mapped_file
from isopursuit.sources.moments import Lengths, Moments, Summed
from isopursuit.sources.screening import Screen, Screened
from isopursuit.sources.tasks import BadEntries, Source, Transform

Vectors = Literal["columns", "rows"]

MEMORY = 2**28  # bytes that resident columns of a source may take by default (chosen)
RUN = 64  # adjacent columns that a sample takes together (derived: a read of a file costs as much as 64 kB)
DEPENDENT = 1e-14  # eigenvalues of Σ z zᵀ below this, relative to the largest, count as zero (derived: 50 eps)
LOADED_BYTES = 2**30  # most bytes to load, as float64, of a source with more rows than columns (chosen)


@dataclass(frozen=True)
class Columns:
    """A source whose columns are standardized, rescaled or projected on the fly. `as_source` makes it.

    A screening and a sample leave out the columns with numbers in `excluded` (sorted).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> columns = as_source(5 + rng.normal(size=(1000, 3)), vectors="rows").standardized().projected(2)
    >>> columns.shape
    (2, 1000)
    """

    source: Source
    transform: Transform = field(default_factory=Transform)
    notes: tuple[str, ...] = ()
    unit_length: UnitLength = AS_GIVEN
    excluded: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.intp))

    @property
    def shape(self) -> tuple[int, int]:
        """(D, P) after the transform."""
        D, P = self.source.shape
        return (D if self.transform.A is None else len(self.transform.A)), P

    @property
    def nbytes(self) -> int:
        """The bytes that one pass reads."""
        D, P = self.source.shape
        return D * P * self.source.dtype.itemsize

    def screen(self, question: Screen) -> Screened:
        """One pass over all columns; raises an error for entries that are not finite."""
        found: Screened = self.source.fold(replace(question, excluded=self.excluded))
        found.bad.refuse()
        return replace(found, largest=found.largest.trimmed())

    def take(self, indices: Indices) -> Array:
        """These columns as stored, (D₀, m), float64; raises an error for entries that are not finite."""
        indices = np.asarray(indices, dtype=np.intp)
        values = self.source.take(indices)
        bad = np.flatnonzero(~np.isfinite(values).all(axis=0))
        if len(bad):
            BadEntries.of(values[:, bad], indices[bad]).refuse()
        return values

    def sample(self, count: int) -> Indices:
        """About `count` columns, in runs spread evenly over all columns."""
        numbers = np.delete(np.arange(self.shape[1]), self.excluded)
        P = len(numbers)
        if count >= P:
            return numbers
        runs = max(count // RUN, 1)
        starts = np.linspace(0, P - RUN, runs).astype(np.intp) if P > RUN else np.zeros(1, dtype=np.intp)
        return numbers[np.unique((starts[:, None] + np.arange(min(RUN, P))).ravel())]

    @on_one_blas_thread
    def standardized(self) -> Columns:
        """Standardize the rows to mean 0 and variance 1; takes one pass. Constant rows are left out, with a note."""
        if self.transform.A is not None or self.unit_length != AS_GIVEN:
            raise ParameterError(
                "Standardize before choosing a unit and before projecting: as_source(x).standardized().projected(k)."
            )
        # each row is scaled by a power of two to size 1, so that squares fit in float64
        some = self.take(self.sample(1024))
        scale = np.ldexp(1.0, -np.frexp(np.abs(some).max(axis=1))[1].clip(-1000, 1000))
        origin = (some * scale[:, None]).mean(axis=1) / scale
        summed = self._summed(origin, scale)
        mean, square = summed.total / summed.columns, np.diag(summed.gram) / summed.columns
        size = np.sqrt((scale * origin) ** 2 + square)
        standard = Standard.of_moments(mean + scale * origin, square - mean**2, size, 1 / scale)
        varying = standard.varying
        spread = np.where(varying, standard.spread, 1.0)
        A = None if varying.all() else np.eye(len(varying))[varying]
        notes = () if A is None else (f"left out, constant: {int((~varying).sum())} rows.",)
        return replace(self, transform=Transform(1 / spread, standard.mean / spread, A), notes=self.notes + notes)

    @on_one_blas_thread
    def projected(self, k: int) -> Columns:
        """The columns' coordinates in the leading k-dimensional row space; takes one pass.

        The leading eigenvectors of Σ z zᵀ span this space; the sum over all columns is computed in float64.
        """
        D, t = self.shape[0], self.transform
        e, U = np.linalg.eigh(self._summed(np.zeros(D), np.ones(D)).gram)
        rank = int((e > DEPENDENT * e[-1]).sum())
        if not isinstance(k, int | np.integer) or not 1 <= k <= D:
            raise ParameterError(
                f"k={k!r} is out of range: there are {D} rows, so project onto 1 to {rank} dimensions."
            )
        if k > rank:
            raise RankError(f"The columns have {D} rows but rank {rank}. Project onto at most {rank} dimensions.")
        leading = fix_signs(U[:, ::-1][:, :k])
        A = leading.T if t.A is None else leading.T @ t.A
        # eps λ_1 / (λ_k − λ_(k+1)), at most LOOSE, as in `_core.linalg.leading_directions`
        gap = float(e[-k] - e[-k - 1]) if k < D else float(e[-k])
        angle = EPS * float(e[-1] / max(gap, EPS / LOOSE * e[-1]))
        return replace(self, transform=replace(t, A=np.ascontiguousarray(A), angle=angle))

    @on_one_blas_thread
    def in_unit(self, unit: Unit, excluded: Indices | tuple[int, ...] = ()) -> Columns:
        """Divide lengths by a unit: a number, "median" or "each", as in `select`.

        The median takes one pass. Zero columns and columns with numbers in `excluded` do not count.
        """
        unit = as_unit(unit)
        if unit is None:
            return self
        t = self.transform
        if unit == "each":
            if t.A is not None and len(t.A) < t.A.shape[1] and t.angle > 0:
                raise ParameterError(
                    "Scale each column to length 1 before projecting: as_source(x, unit='each', leading=k)."
                )
            return replace(self, transform=replace(t, each=True, scale=1.0), unit_length=UnitLength("each"))
        lengths = without(self._lengths(), excluded) if unit == "median" else np.zeros(0)
        resolved = UnitLength.of(unit, lengths[lengths > 1 / LARGEST])
        return replace(self, transform=replace(t, scale=t.scale / resolved.length), unit_length=resolved)

    def _lengths(self) -> Array:
        """The lengths of all columns, in one pass; raises an error for entries that are not finite."""
        lengths = np.concatenate(self.source.fold(Lengths(self.transform)))
        wrong = np.flatnonzero(~(lengths <= LARGEST))
        if len(wrong):
            BadEntries.of(self.source.take(wrong[:1]), wrong).refuse()
        return lengths

    def _summed(self, origin: Array, scale: Array) -> Summed:
        """The moments of the rows, in one pass; raises an error for entries that are not finite."""
        summed: Summed = self.source.fold(Moments(self.transform, origin, scale))
        summed.bad.refuse()
        return summed


@on_one_blas_thread
def as_source(
    x: Any,
    *,
    vectors: Vectors = "columns",
    standardize: bool = False,
    unit: Unit = None,
    leading: int | None = None,
    workers: int | None = None,
) -> Columns:
    """Wrap columns in any storage for `isometry_pursuit`, `basis_pursuit`, `select` and the searches.

    Parameters
    ----------
    x : ndarray, path, PyTorch tensor, Dask array, or a source
        A path names a .npy file, or Parquet or Arrow files of vectors whose rows are candidates (extra `files`). A
        pattern such as ``folder/*.parquet`` names several files. Files and memory maps, as from
        ``np.load(path, mmap_mode="r")``, are read in blocks, never as a whole.
    vectors : {"columns", "rows"}
        Whether the candidates are the columns of x, (D, P), or its rows, (P, D).
    standardize : bool
        Whether to scale every dimension to mean 0 and variance 1. One pass computes the moments; the columns are
        standardized on the fly.
    unit : number, "median", "each" or None
        The length that counts as 1 after standardization, as in `select`. The median takes one pass and eight bytes
        per column. "each" is computed on the fly, before a projection onto the leading space.
    leading : int, optional
        Number of dimensions of the leading row space to project onto. One pass computes Σ x xᵀ; the columns are
        projected on the fly.
    workers : int, optional
        Number of threads for arrays and files. Default: one per processor.

    Returns
    -------
    Columns

    Examples
    --------
    >>> import isopursuit as ip
    >>> X = np.random.default_rng(0).normal(size=(5000, 4)) / 2
    >>> found = ip.isometry_pursuit(as_source(X, vectors="rows"))
    >>> found.certificate.gap < 1e-8, found.effort.passes > 0
    (True, True)
    """
    if vectors not in ("columns", "rows"):
        raise unknown_option("vectors", vectors, ("columns", "rows"))
    columns = open_source(x, vectors, workers)
    D, P = columns.shape
    if D == 0 or P == 0:
        raise ShapeError(f"The source is empty: it has {D} rows and {P} columns.")
    if P < D and (standardize or leading is not None):
        _check_tall(D, P, P if leading is None else leading)
        columns, standardize = _loaded_tall(columns, standardize), False
    if standardize:
        columns = columns.standardized()
    unit = as_unit(unit)
    if unit != "median":
        columns = columns.in_unit(unit)
    if leading is not None and leading != columns.shape[0]:
        columns = columns.projected(leading)
    if unit == "median":  # the median of the lengths that are compared
        columns = columns.in_unit(unit)
    return columns


def as_candidates(x: Any, k: int | None, clock: Clock = UNLIMITED) -> Columns:
    """The columns of a source to pick k from; k defaults to the number of rows."""
    columns = as_source(x)
    D, P = columns.shape
    if P >= D:
        return columns
    _check_tall(D, P, k)
    seconds = 2 * D * P * P / RANK_SPEED  # of a QR factorization
    return _loaded_tall(columns, rotate=seconds <= RANK_SHARE * clock.remaining)


def open_source(x: Any, vectors: Vectors = "columns", workers: int | None = None) -> Columns:
    """Columns of any shape in any storage; nothing is read yet."""
    if isinstance(x, Columns):
        return x
    source = _source(x, vectors == "rows", workers)
    return Columns(source, notes=getattr(source, "notes", ()))


def _check_tall(D: int, P: int, k: int | None) -> None:
    """For P candidates of D > P dimensions: raise an error if k > P, or if they do not fit in memory."""
    shape = f"There are {P} candidates of {D} dimensions"
    turned = "Did you mean vectors='rows' (or 'columns', if you passed 'rows')?"
    if k is None:
        raise ShapeError(f"{shape}, but {D} are needed. {turned} Otherwise pass k={P} or less.")
    if is_whole(k) and k > P:
        raise ParameterError(f"{shape}, so k={k} is out of range. {turned} Otherwise pass k={P} or less.")
    if 8 * D * P > LOADED_BYTES:
        raise ShapeError(
            f"{shape}. {turned} Candidates with more dimensions than there are candidates are loaded into memory, "
            f"and these take {8 * D * P / 2**30:.3g} GiB. Pass an array in memory, or fewer rows."
        )


def _loaded_tall(columns: Columns, standardize: bool = False, rotate: bool = True) -> Columns:
    """Load P columns with D > P rows into memory: the matrix Σ x xᵀ (D × D) of a pass would be larger than the columns.

    Their coordinates in their span, P × P, have the same inner products. Standardized columns are not rotated, because
    it is not known yet whether k < D, nor are others unless `rotate`.
    """
    D, P = columns.shape
    values = columns.transform.apply(columns.take(np.arange(P)))
    notes = columns.notes
    if standardize:
        standard = Standard.of(values.T)
        varying = standard.varying
        values = standard.apply(values.T).T[varying]
        notes += () if varying.all() else (f"left out, constant: {int((~varying).sum())} rows.",)
    loaded = f"{P} candidates of {D} dimensions each were loaded into memory."
    notes += () if loaded in notes else (loaded,)
    values = in_own_span(values) if rotate and not standardize and len(values) > P else values
    return Columns(ArraySource.of(values), notes=notes, unit_length=columns.unit_length)


def is_source(x: Any) -> bool:
    """Whether x is streamed: a path, a tensor, a Dask array, `Columns`, or a matrix mapped from a file."""
    if isinstance(x, np.ndarray):
        return x.ndim == 2 and mapped_file(x) is not None
    return isinstance(x, Columns | str | Path) or type(x).__module__.partition(".")[0] in ("torch", "dask")


def refuse_labels(labels: object) -> None:
    """A pursuit takes labels of matrices in memory only."""
    if labels is not None:
        raise ParameterError(
            "A pursuit of a source knows its columns by number. Leave labels= out (`select` and the searches take "
            "labels), or load the matrix first: np.array(X) for a memory map."
        )


def _source(x: Any, rows: bool, workers: int | None) -> Source:
    if isinstance(x, str | Path):
        if Path(x).suffix.lower() == ".npy":
            return FileSource.of(Path(x), rows, workers)
        name = Path(x).name
        pattern = any(sign in name for sign in "*?[")
        if not pattern and {suffix.lower() for suffix in Path(x).suffixes} & {*TEXT, *EXCEL}:
            raise FileError(
                f"{name} is a table. Read it by read_table of isopursuit.data, and pass read_table({name!r})"
                ".standardized().features() to pick columns, or .samples() in place of .features() to pick rows."
            )
        from isopursuit.sources.vectors import VectorFiles

        return VectorFiles.of(x, workers)
    library = type(x).__module__.partition(".")[0]
    if library == "torch":
        from isopursuit.sources.tensors import tensor_source

        return tensor_source(x, rows, workers)
    if library == "dask":
        from isopursuit.sources.cluster import DaskSource

        return DaskSource.of(x, rows)
    if isinstance(x, np.ndarray):
        return ArraySource.of(x, rows, workers)
    if hasattr(x, "fold") and hasattr(x, "take") and hasattr(x, "shape"):
        return x
    raise DataTypeError(
        f"{type(x).__name__} is not a source of columns. Pass an ndarray, a path to .npy or Parquet files, "
        "a PyTorch tensor or a Dask array."
    )
