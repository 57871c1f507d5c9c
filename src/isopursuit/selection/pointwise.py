"""A separate selection at each of many points, and how often each subset and each column is picked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Unpack, get_args

import numpy as np

from isopursuit._core.clock import Clock
from isopursuit._core.options import SubsetOptions, as_count, as_exponent, as_subset_options
from isopursuit._core.summary import Shown, Summary
from isopursuit._core.text import SHOWN, name_of
from isopursuit._core.threads import on_one_blas_thread
from isopursuit._core.types import Array, Indices, Labels, SearchMethod
from isopursuit.data._matrix import Matrix, as_indices, as_points, in_unit
from isopursuit.errors import InputError, ParameterError, unknown_option
from isopursuit.results import Certificate, Search
from isopursuit.search.incumbent import Limits
from isopursuit.search.problem import Problem
from isopursuit.search.solve import solve
from isopursuit.sources.columns import is_source

_Picked = tuple[Search, Certificate | None]  # with the pursuit's certificate
_Picker = Callable[[Matrix], _Picked]


@dataclass(frozen=True)
class Frequency:
    """A subset, and the number of points at which it is picked."""

    indices: tuple[int, ...]
    labels: Labels
    count: int


@dataclass(frozen=True)
class PointwiseSelection(Shown):
    """The selection and its proof at each point, and the frequencies of subsets and columns.

    Attributes
    ----------
    searches : tuple of Search
        One for each point, in order. For "two-stage", the proof holds among the columns that the pursuit keeps at that
        point.
    certificates : tuple of Certificate
        The certificates of the pursuits (two-stage only).
    columns : int
        The number of candidates.
    unreached : int
        The number of points, at the end, without a selection, because the time was over or the search was stopped.
    """

    searches: tuple[Search, ...]
    certificates: tuple[Certificate, ...]
    columns: int
    labels: Labels | None = None
    notes: tuple[str, ...] = ()
    unreached: int = 0

    @cached_property
    def indices(self) -> Indices:
        """The picked columns at each point, (n, D), ascending."""
        return np.stack([search.indices for search in self.searches])

    @cached_property
    def losses(self) -> Array:
        """The loss at each point."""
        return np.array([search.loss for search in self.searches])

    @cached_property
    def subsets(self) -> tuple[Frequency, ...]:
        """The subsets that were picked, the most frequent first."""
        rows: list[list[int]] = self.indices.tolist()
        counts = Counter(tuple(row) for row in rows)
        return tuple(
            Frequency(subset, tuple(name_of(self.labels, i) for i in subset), count)
            for subset, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        )

    @cached_property
    def counts(self) -> Indices:
        """At how many points each column is picked, (P,)."""
        return np.bincount(self.indices.ravel(), minlength=self.columns)

    @property
    def verdict(self) -> str:
        """What is proved, in words."""
        proved = sum(search.optimal for search in self.searches)
        among = " among the candidates the pursuit left" if self.certificates else ""
        missing = f"; {self.unreached} more were not reached" if self.unreached else ""
        return f"proved optimal{among} at {proved} of {len(self.searches)} points{missing}"

    def overview(self) -> Summary:
        """What is shown of the answer."""
        (n, k), more = self.indices.shape, len(self.subsets) - SHOWN
        losses = f"{self.losses.mean():.6g} ± {self.losses.std():.3g} (ideal {k})"
        return Summary(
            title=f"{k} columns at each of {n} points: loss {losses}",
            verdict=self.verdict,
            head=(">points", ">share", "picked"),
            rows=[(one.count, f"{one.count / n:.0%}", ", ".join(map(str, one.labels))) for one in self.subsets[:SHOWN]],
            more=[f"and {more} more subsets"] if more > 0 else [],
            notes=self.notes,
        )


@on_one_blas_thread
def select_pointwise(
    X: Any,
    c: float = 1.0,
    *,
    method: SearchMethod = "two-stage",
    workers: int = 1,
    time_limit: float | None = None,
    callback: Callable[[int, int], bool | None] | None = None,
    **options: Unpack[SubsetOptions],
) -> PointwiseSelection:
    """Pick columns separately at each point. (`select` picks the same columns for all points.)

    Parameters
    ----------
    X : array_like (n, D, P), or a list of matrices (D, P)
        For example the differentials of P functions at n points of a manifold.
    c, **options
        As in `select`, but for `aggregate`, which has no effect; unit="median" is one number for all points. No prices
        are computed, so thousands of points take seconds.
    method : {"two-stage", "exact", "exchange", "greedy", "brute"}
        As in `select`, which also has "auto".
    workers : int
        Number of threads. The kernels release the global interpreter lock.
    time_limit : float, optional
        Seconds for all points together. Default: None, no limit. When the time is over, running searches return their
        best subset and its bound, and the remaining points are counted as `unreached`. The first point is always
        searched.
    callback : callable, optional
        Called with the number of finished points and the number of all points. Return True to stop with the finished
        points; Ctrl-C does the same.

    Returns
    -------
    PointwiseSelection

    Examples
    --------
    >>> import numpy as np
    >>> turns = np.linspace(0.0, 1.0, 5)
    >>> X = [[[1.0, 0.0, np.cos(t)], [0.0, 1.0, np.sin(t)]] for t in turns]
    >>> picked = select_pointwise(np.array(X), labels=["north", "east", "turning"])
    >>> picked.subsets[0].labels, picked.subsets[0].count
    (('north', 'east'), 5)
    """
    options = as_subset_options(select_pointwise, options)
    if is_source(X):
        raise ParameterError(
            f"select_pointwise needs matrices in memory, and X is a {type(X).__name__}. Pass an array or a list."
        )
    points = as_points(X, options.pop("labels", None))[0]
    points = in_unit(points, options.pop("unit", None), as_indices(options.get("exclude"), points[0], "exclude"))
    c, workers, clock = as_exponent(c), as_count(workers, 1, "workers"), Clock.of(time_limit)
    if method not in get_args(SearchMethod):
        raise unknown_option("method", method, get_args(SearchMethod))

    def pick(matrix: Matrix) -> _Picked:
        found = solve(Problem.of(matrix, len(matrix.values), c, **options), method, Limits(clock))
        return found.search, None if found.pursuit is None else found.pursuit.certificate

    picked = _picked(points, pick, clock, workers, callback)
    unreached = len(points) - len(picked)
    stopped = (f"stopped after {len(picked)} of {len(points)} points.",) if unreached else ()
    return PointwiseSelection(
        searches=tuple(replace(search, labels=points[0].labels) for search, _ in picked),
        certificates=tuple(certificate for _, certificate in picked if certificate is not None),
        columns=points[0].values.shape[1],
        labels=points[0].labels,
        notes=points[0].notes + stopped,
        unreached=unreached,
    )


def _picked(
    points: list[Matrix], pick: _Picker, clock: Clock, workers: int, callback: Callable[[int, int], bool | None] | None
) -> list[_Picked]:
    """The selections at the points, up to the first point that was not reached."""

    def at(numbered: tuple[int, Matrix]) -> _Picked | None:
        number, matrix = numbered
        if number and clock.expired:
            return None
        try:
            return pick(matrix)
        except InputError as error:
            raise type(error)(f"At point {number}: {error}") from None

    picked: list[_Picked] = []
    with ThreadPoolExecutor(workers) as pool:
        try:
            for one in pool.map(at, enumerate(points)):
                if one is None:
                    break
                picked.append(one)
                if callback is not None and callback(len(picked), len(points)):
                    break
        except KeyboardInterrupt:
            if not picked:
                raise
            clock.pressed()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return picked
