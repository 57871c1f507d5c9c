"""How stable a selection is: the same selection from resampled rows, and how often each column is picked.

A resample draws as many rows (at many points: as many points) as there are, with replacement. A column that is picked
in nearly all resamples does not depend on which rows happen to be in the table. One that is picked in some of them has
substitutes, whose losses differ by less than the noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from isopursuit._core.clock import Clock
from isopursuit._core.options import SubsetOptions, as_count, as_gap, as_subset_options
from isopursuit._core.summary import Shown, Summary
from isopursuit._core.text import listed, name_of
from isopursuit._core.threads import on_one_blas_thread, worker_count
from isopursuit._core.types import Array, Indices, Label, Labels, Method
from isopursuit.data._matrix import Matrix, as_points, centred
from isopursuit.errors import ParameterError, RankError, ShapeError, StoppedError
from isopursuit.results import Search
from isopursuit.search.incumbent import Limits
from isopursuit.search.problem import Problem
from isopursuit.search.solve import solve
from isopursuit.sources.columns import is_source

SHOWN, PAIRS = 5, 3  # in the text: columns that are picked from resamples only, and pairs that are picked together


@dataclass(frozen=True)
class Stability(Shown):
    """The answer of `stability`.

    Attributes
    ----------
    search : Search
        The selection from all rows.
    picks : ndarray of int, shape (resamples, k)
        The columns picked in each resample.
    count : int
        The number of candidates.
    rows : int
        How many rows (or points) a resample draws.
    what : {"rows", "points"}
        What is resampled.
    failed : int
        Resamples in which no k columns were independent.
    """

    search: Search
    picks: Indices
    count: int
    rows: int
    what: str
    failed: int = 0
    notes: tuple[str, ...] = ()

    @property
    def indices(self) -> Indices:
        """The columns picked from all rows."""
        return self.search.indices

    @property
    def labels(self) -> Labels:
        """Their labels, or their numbers if there are none."""
        return tuple(self.name(i) for i in self.indices.tolist())

    @property
    def frequency(self) -> Array:
        """The share of the resamples in which each column is picked, (P,)."""
        return np.bincount(self.picks.ravel(), minlength=self.count) / len(self.picks)

    @property
    def columns(self) -> Indices:
        """The columns that are picked at least once, the most frequent first."""
        frequency = self.frequency
        order = np.argsort(-frequency, kind="stable")
        return order[frequency[order] > 0]

    @property
    def together(self) -> Array:
        """The share of the resamples in which two of `columns` are both picked; the diagonal has their frequencies."""
        inside = self._inside(self.columns).astype(float)
        return inside.T @ inside / len(inside)

    @property
    def same(self) -> float:
        """The share of the resamples in which exactly the columns picked from all rows are picked."""
        return float(self._inside(self.indices).all(axis=1).mean())

    def name(self, i: int) -> Label:
        """The label of a column, or its number."""
        return name_of(self.search.labels, i)

    def substitute(self, i: int) -> tuple[Label, float] | None:
        """The column that is picked most often in the resamples without column i, of those that are not picked from all
        rows, and in which share of these resamples; None if there is none.
        """
        without = self.picks[~self._inside(np.array([i]))[:, 0]]
        times = np.bincount(without.ravel(), minlength=self.count)
        times[self.indices] = 0
        best = int(times.argmax())
        return (self.name(best), float(times[best] / len(without))) if times[best] else None

    def _inside(self, columns: Indices) -> Any:
        """Whether each of some columns is picked in each resample, (resamples, m)."""
        return (self.picks[:, :, None] == columns).any(axis=1)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: how often each column is picked, and each pair of columns."""
        names, share = [str(self.name(i)) for i in self.columns.tolist()], self.frequency[self.columns]
        return {
            "resamples": len(self.picks),
            "of": self.what,
            "failed": self.failed,
            "same": self.same,
            "frequency": dict(zip(names, share.tolist(), strict=True)),
            "together": {"columns": names, "share": self.together.tolist()},
            "picks": self.picks.tolist(),
            "notes": list(self.notes),
        }

    @property
    def verdict(self) -> str:
        """How often the same columns were picked."""
        return f"the same columns in {100 * self.same:.0f} % of the resamples"

    def overview(self) -> Summary:
        """What is shown of the answer."""
        frequency, picked = self.frequency, set(self.indices.tolist())
        others = [i for i in self.columns.tolist() if i not in picked]
        rows: list[tuple[str, str, str, str]] = []
        for i in (*sorted(picked, key=lambda i: -frequency[i]), *others[:SHOWN]):
            instead = self.substitute(i) if i in picked else None
            text = "" if instead is None else f"{instead[0]} ({100 * instead[1]:.0f} %)"
            rows.append((str(self.name(i)), "yes" if i in picked else "", f"{100 * frequency[i]:.0f} %", text))
        return Summary(
            title=f"{len(picked)} columns in {len(self.picks)} resamples of {self.rows:,} {self.what}",
            verdict=self.verdict,
            head=("column", f"all {self.what}", ">resamples", "most often in its place"),
            rows=rows,
            more=self._pairs(),
            notes=self.notes,
        )

    def _pairs(self) -> list[str]:
        """A line with the pairs of columns that are picked together most often."""
        names, share = [self.name(i) for i in self.columns.tolist()], np.triu(self.together, 1)
        order = np.argsort(-share, axis=None, kind="stable")[:PAIRS]
        pairs = zip(*np.unravel_index(order, share.shape), strict=True)
        some = [f"{names[i]} and {names[j]} ({100 * share[i, j]:.0f} %)" for i, j in pairs if share[i, j] > 0]
        return [f"most often together: {listed(some)}"] if some else []


@on_one_blas_thread
def stability(
    X: Any,
    k: int | None = None,
    c: float = 1.0,
    *,
    resamples: int = 50,
    rng: np.random.Generator | int = 0,
    method: Method = "auto",
    center: bool = False,
    time_limit: float | None = 60.0,
    gap: float | None = None,
    callback: Callable[[int, int], bool | None] | None = None,
    **options: Unpack[SubsetOptions],
) -> Stability:
    """Select from resampled rows, and count how often each column is picked.

    Parameters
    ----------
    X : array_like (D, P), data frame, or a list (or stack) of such matrices
        Columns are candidates and rows are observations, as of a table whose columns are features. Rows are drawn with
        replacement; of several matrices, points are drawn.
    k, c, method, center, **options
        As in `select`. Centring and the unit are computed from each resample, which picks as many columns as all rows.
    resamples : int
        How many resamples to draw.
    rng : Generator or int
        Source of randomness.
    time_limit : float, optional
        Seconds for the whole call. When they are over, the resamples so far are the answer, with a note.
    gap : float, optional
        As in `select`. Unless it is 0, columns also differ between resamples because searches stop early.
    callback : callable, optional
        Called with the number of finished resamples and of all; return True to stop.

    Returns
    -------
    Stability

    Examples
    --------
    >>> from isopursuit.data import load_wine
    >>> wine = load_wine()
    >>> found = stability(wine.values, 3, unit="each", center=True, labels=wine.features, resamples=20)
    >>> found.labels, [round(share, 2) for share in found.frequency[found.indices].tolist()]
    (('alcalinity_of_ash', 'proanthocyanins', 'color_intensity'), [0.55, 0.4, 0.6])
    """
    clock, resamples = Clock.of(time_limit), as_count(resamples, 2, "resamples")
    most = None if gap is None else as_gap(gap)
    if is_source(X) or isinstance(X, Matrix):
        raise ParameterError(
            f"stability resamples the rows of a table in memory, which {type(X).__name__} does not keep. Pass an array "
            "or a data frame, such as read_table(path).values."
        )
    options = as_subset_options(stability, options)
    labels = options.pop("labels", None)
    points, many = as_points(X, labels, wide=False)
    n = len(points) if many else len(points[0].values)

    def picked_from(rows: Indices | None, part: Clock) -> Search:
        if many:
            data: Any = points if rows is None else [points[i] for i in rows.tolist()]
        else:
            data = X if rows is None else Matrix(points[0].values[rows], points[0].labels)
        names = labels if rows is None and not many else None
        data, names = (centred(data, names), None) if center else (data, names)
        named: SubsetOptions = {**options, "labels": names}
        problem = Problem.of(data, k, c, clock=part, **named)
        return solve(problem, method, Limits(part, most, workers=worker_count(None))).search

    generator = np.random.default_rng(rng)
    first = picked_from(None, clock.part(1 / (resamples + 1)))
    k = len(first.indices)
    picks: list[Indices] = []
    failed = proved = 0
    notes = first.notes
    for done in range(resamples):
        rows = generator.integers(n, size=n)
        if clock.expired or (callback is not None and callback(done, resamples)):
            notes += (f"{done} of {resamples} resamples were finished before the call was stopped.",)
            break
        try:
            found = picked_from(rows, clock.part(1 / (resamples - done)))
        except (RankError, ShapeError, ParameterError):  # the options are valid, since there is a first answer
            failed += 1
            continue
        if found.status == "interrupted":
            notes += (f"an interrupt (Ctrl-C) ended the call after {done} of {resamples} resamples.",)
            break
        picks.append(found.indices)
        proved += found.status == "optimal"
    if not picks and failed:
        raise RankError(
            f"In none of {failed} resamples of {n} rows were {k} columns independent and allowed: a resample has about "
            "two thirds of the rows. Pick fewer columns."
        )
    if not picks:
        raise StoppedError("No resample was finished. Pass a longer time_limit=.")
    if failed:
        notes += (f"{failed} resamples had no {k} columns that are independent and allowed, and do not count.",)
    if proved < len(picks):
        notes += (
            f"{len(picks) - proved} of {len(picks)} searches ended without a proof, which adds to the differences.",
        )
    return Stability(first, np.array(picks), points[0].values.shape[1], n, "points" if many else "rows", failed, notes)
