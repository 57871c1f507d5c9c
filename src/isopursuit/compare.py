"""Compare our methods with others that pick k columns, by the same loss."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from isopursuit import peers, views
from isopursuit._types import Array, Indices, Label, Labels, SearchMethod, Unit
from isopursuit.clock import Clock
from isopursuit.errors import ParameterError, ShapeError, printable
from isopursuit.loss.penalty import log_spectral_loss, log_sum, to_loss
from isopursuit.matrix import as_points, in_unit
from isopursuit.parameters import as_count, as_exponent
from isopursuit.problems import MatrixProblem
from isopursuit.rank import in_own_span, spectrum, unit_columns
from isopursuit.results import PROVED, loss_text, name_of, plain
from isopursuit.scale import AS_GIVEN
from isopursuit.search.incumbent import Callback
from isopursuit.select import select
from isopursuit.selection import Selection
from isopursuit.sources.columns import is_source
from isopursuit.threads import on_one_blas_thread

OURS: tuple[SearchMethod, ...] = ("greedy", "two-stage", "exchange", "exact")
HEADS = ("method", "loss", "largest |cos|", "mean |cos|", "seconds", "proof")


@dataclass(frozen=True)
class Compared:
    """The answer of one method.

    Attributes
    ----------
    method : str
        Its name.
    indices, labels
        The picked columns, ascending, and their labels (or numbers if there are no labels).
    loss, log_loss : float
        The loss of the columns and its logarithm; infinite if the columns are dependent.
    largest_cosine, mean_cosine : float
        The largest and the mean absolute cosine of pairs of picked columns; 0 for one column. At many points, the
        columns of all points are stacked first.
    seconds : float
        Wall-clock time.
    status, proof : str
        As `Search.status` and `Selection.verdict`. Only our methods have proofs.
    """

    method: str
    indices: Indices
    labels: Labels
    loss: float
    log_loss: float
    largest_cosine: float
    mean_cosine: float
    seconds: float
    status: str = "heuristic"
    proof: str = "no proof"

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of a table."""
        loss = "infinite" if self.log_loss == np.inf else loss_text(self)
        cosines = (f"{self.largest_cosine:.3f}", f"{self.mean_cosine:.3f}")
        return (self.method, loss, *cosines, f"{self.seconds:.2g}", self.proof)

    def as_dict(self) -> dict[str, Any]:
        """For JSON; values that are not finite become None."""
        numbers = ("loss", "log_loss", "largest_cosine", "mean_cosine", "seconds", "status", "proof")
        return {
            "method": self.method,
            "indices": self.indices.tolist(),
            "labels": [plain(label) for label in self.labels],
            **{name: plain(getattr(self, name)) for name in numbers},
        }


@dataclass(frozen=True)
class Comparison:
    """The answer of `compare`: a row for each method, ours first.

    Attributes
    ----------
    rows : tuple of Compared
    k, c
        How many columns were picked, and the exponent of the loss.
    ideal : int
        The loss of orthonormal columns.
    unit : str
        The length that counts as 1.
    """

    rows: tuple[Compared, ...]
    k: int
    c: float
    ideal: int
    notes: tuple[str, ...] = ()
    unit: str = str(AS_GIVEN)

    @property
    def best(self) -> Compared:
        """The row with the lowest loss; among equal losses, the first with a proof, otherwise the first."""
        least = min(row.log_loss for row in self.rows)
        equal = [row for row in self.rows if row.log_loss <= least + PROVED]
        return next((row for row in equal if row.proof == "proved optimal"), equal[0])

    def __getitem__(self, method: str) -> Compared:
        """The row of one method."""
        return next(row for row in self.rows if row.method == method)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        rows = [row.as_dict() for row in self.rows]
        about = {"k": self.k, "c": self.c, "ideal": self.ideal, "unit": self.unit}
        return {**about, "rows": rows, "notes": list(self.notes)}

    def __str__(self) -> str:
        cells = [HEADS, *(row.cells for row in self.rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(HEADS))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
        title = f"{self.k} columns, c={self.c:g}: the ideal loss is {self.ideal}; unit: {self.unit}"
        notes = [f"note: {printable(note)}" for note in self.notes]
        return "\n".join([title, *(f"  {line.rstrip()}" for line in lines), *notes])

    def _repr_html_(self) -> str:
        best = self.best
        title = f"{self.k} columns by {len(self.rows)} methods"
        verdict = f"the lowest loss is {loss_text(best)} ({best.method}); the ideal is {self.ideal}; unit: {self.unit}"
        return views.result(title, verdict, views.table(HEADS, [row.cells for row in self.rows]), notes=self.notes)


@on_one_blas_thread
def compare(
    X: Any,
    k: int | None = None,
    c: float = 1.0,
    *,
    unit: Unit = None,
    labels: Sequence[Label] | None = None,
    draws: int = 100,
    time_limit: float | None = 60.0,
    callback: Callback | None = None,
    progress: bool = False,
) -> Comparison:
    """Compare our methods with pivoted QR, greedy DPP, maxvol, a correlation filter and random draws.

    Parameters
    ----------
    X : array_like (D, P), data frame, or a list (or stack) of such matrices of one shape
        As in `select`, in memory. At many points, the other methods use the stacked columns of all points.
    k, c, unit, labels
        As in `select`.
    draws : int
        Number of random subsets; the table shows the best and the median of them.
    time_limit : float, optional
        Seconds for each of our methods. Default: 60; None for no limit. The limit also holds for maxvol and the filter;
        the others take less.
    callback : callable, optional
        Called with a `SearchProgress` while one of our methods searches; return True to stop that search.
    progress : bool
        Whether to show the state of the search on the error stream, as in `select`.

    Returns
    -------
    Comparison

    Notes
    -----
    Pivoted QR uses lengths as they are. The kernel of the DPP is the matrix of cosines, so it ignores lengths. On
    columns of equal length both pick the same columns, except for ties. The filter visits long columns first, and its
    threshold is chosen so that it keeps k columns.

    Examples
    --------
    >>> from isopursuit.datasets import load_wine
    >>> found = compare(load_wine().matrix(6), k=4)
    >>> round(found.best.loss, 4), found["exact"].proof
    (4.2124, 'proved optimal')
    """
    if is_source(X) and not isinstance(X, np.ndarray):
        raise ParameterError("compare needs a matrix in memory, as the other methods do. Load the data first.")
    points, many = as_points(X, labels, wide=k is None)
    points = in_unit(points, unit)
    given: Any = points if many else points[0]
    c, draws = as_exponent(c), as_count(draws, 1, "draws")
    rows: list[Compared] = []
    for method in OURS:
        began = time.perf_counter()
        picked = select(given, k, c, method=method, time_limit=time_limit, callback=callback, progress=progress)
        rows.append(of_selection(picked, time.perf_counter() - began))
    k = rows[0].indices.size
    rows += other_methods(MatrixProblem(points, k, many), c, draws, time_limit)
    return Comparison(tuple(rows), k, c, k * len(points), points[0].notes, str(points[0].unit_length))


def of_selection(picked: Selection, seconds: float) -> Compared:
    """The row of one of our methods."""
    largest, mean = _cosines(picked.matrix)
    status, proof = picked.search.status, picked.verdict
    return Compared(
        picked.method,
        picked.indices,
        picked.labels,
        picked.loss,
        picked.log_loss,
        largest,
        mean,
        seconds,
        status,
        proof,
    )


def other_methods(problem: MatrixProblem, c: float, draws: int, time_limit: float | None) -> list[Compared]:
    """The rows of the other methods, without zero columns."""
    matrix, k = problem.points[0], problem.k
    possible = np.flatnonzero(np.all([one.nonzero for one in problem.points], axis=0))
    if len(possible) < k:
        raise ShapeError(f"Only {len(possible)} columns are not zero, but k={k}. Pass a smaller k.")
    values = np.stack([one.values[:, possible] for one in problem.points])
    stacked = values.reshape(-1, len(possible))
    stacked = in_own_span(stacked) if len(stacked) > len(possible) else stacked  # the same lengths and angles

    def row(method: str, picked: Indices, seconds: float) -> Compared:
        chosen = values[:, :, picked]
        log_loss = float(log_sum(log_spectral_loss(spectrum(chosen), c)))
        largest, mean = _cosines(chosen)
        indices = possible[picked]
        named = tuple(name_of(matrix.labels, i) for i in indices.tolist())
        return Compared(method, indices, named, to_loss(log_loss), log_loss, largest, mean, seconds)

    methods: dict[str, Callable[[Clock], Indices]] = {
        "pivoted QR": lambda _: peers.pivoted_qr(stacked, k),
        "DPP, greedy": lambda _: peers.greedy_dpp(stacked, k),
        "maxvol": lambda clock: peers.maxvol(stacked, k, clock),
        "correlation filter": lambda clock: peers.correlation_filter(stacked, k, clock),
    }
    rows: list[Compared] = []
    for method, pick in methods.items():
        clock = Clock.of(time_limit)
        rows.append(row(method, pick(clock), clock.seconds))
    clock = Clock.of(time_limit)
    subsets = peers.random_draws(len(possible), k, draws, np.random.default_rng(0))
    losses = [float(log_sum(log_spectral_loss(spectrum(values[:, :, one]), c))) for one in subsets]
    order, seconds = np.argsort(losses, kind="stable"), clock.seconds
    for name, place in (("best", 0), ("median", (draws - 1) // 2)):
        rows.append(row(f"random, {name} of {draws}", subsets[order[place]], seconds))
    return rows


def _cosines(picked: Array) -> tuple[float, float]:
    """The largest and the mean absolute cosine of the columns (D, k) or (n, D, k)."""
    k = picked.shape[-1]
    if k == 1:
        return 0.0, 0.0
    unit = unit_columns(picked.reshape(-1, k))
    cosines = np.minimum(np.abs(unit.T @ unit)[np.triu_indices(k, 1)], 1.0)
    return float(cosines.max()), float(cosines.mean())
