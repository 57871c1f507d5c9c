"""The front door: normalize → pursue → search, and an answer that explains itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from isopursuit.errors import ParameterError, RangeError, RankError
from isopursuit.loss.penalty import to_loss
from isopursuit.matrix import (
    Label,
    Matrix,
    as_deadline,
    as_exponent,
    as_gap,
    as_indices,
    as_points,
    as_size,
    direction_rank,
    in_row_space,
    left_until,
    name_columns,
)
from isopursuit.normalize import LARGEST_LOG, Normalization
from isopursuit.pursuit.programs import isometry_pursuit
from isopursuit.results import Pursuit, Search, name_of
from isopursuit.search.brute import brute_search
from isopursuit.search.exact import exact_search
from isopursuit.search.exchange import exchange_search
from isopursuit.search.greedy import greedy_search
from isopursuit.search.incumbent import SearchProgress
from isopursuit.search.inputs import as_array_pool, as_column_numbers
from isopursuit.search.passes import OutOfTimeError, fold_until
from isopursuit.search.replacements import Found, Replacement, Replacements, is_lower, ranked, rounding_after
from isopursuit.selection import Alternative, Choice, Selection
from isopursuit.sources.columns import Columns, as_source, is_source, refuse_labels
from isopursuit.threads import on_one_blas_thread

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Method = Literal["two-stage", "exact", "exchange", "greedy", "brute"]

PRUNED = 1e-9  # a log-loss lower by this is a better subset, not rounding
MOST_TIED = 5000  # columns of a source that the search takes on
PURSUIT_SHARE = 0.6  # of the time, for the first of two stages
EXPLAINING_SHARE = 0.25  # of the time at most, for prices and replacements
SPEED, COPYING = 2e8, 1e9  # multiplications, and copied bytes, a second, by which those are judged to take long


@on_one_blas_thread
def select(
    X: Any,
    k: int | None = None,
    c: float = 1.0,
    *,
    method: Method = "two-stage",
    include: Iterable[Any] | None = None,
    exclude: Iterable[Any] | None = None,
    labels: Sequence[Label] | None = None,
    normalization: Normalization = "symmetric",
    time_limit: float | None = 60.0,
    gap: float = 0.0,
    callback: Callable[[SearchProgress], bool | None] | None = None,
) -> Selection:
    """Pick the k columns of X that are as orthonormal as possible.

    Parameters
    ----------
    X : array_like (D, P), data frame, a list (or stack) of such matrices of one shape, or a source
        Columns are candidates; a frame's column names become labels. Several matrices, such as the differentials of
        functions at many points of a manifold, share one selection: their losses are summed. For files, tensors and
        Dask arrays see `as_source`.
    k : int, optional
        How many columns to pick: D if not given. With k < D columns are compared by their coordinates in the leading
        k-dimensional row space of X (at many points, of each of them).
    c : float
        The paper's exponent.
    method : {"two-stage", "exact", "exchange", "greedy", "brute"}
        "two-stage" is the paper's: isometry pursuit prunes, and the best subset of what it leaves (the tied set) is
        found and proved. An orthonormal basis present in X is always in that set, and returned if the search finishes.
        "exact" proves the best of all columns. The others are comparisons.
    include, exclude : iterables of column numbers or labels
        Columns that must or must not be picked; of a source numbers.
    normalization : {"symmetric", "logarithmic"} or callable
        For the pursuit; see `symmetric_normalize`.
    time_limit : float, optional
        Seconds for everything. When they are over the best subset so far is returned with its bound; prices that there
        was no time for are NaN, and a note says so.
    gap : float
        Stop as soon as the subset is proved to be within this relative distance of the best.
    callback : callable, optional
        Called with a `SearchProgress` while "two-stage" or "exact" search; return True to stop.

    Returns
    -------
    Selection

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.1, 0.6, 3.0], [0.0, 1.0, 0.6, 2.0]])
    >>> picked = select(X, labels=["north", "east", "both", "far"])
    >>> picked.labels, round(picked.loss, 4)
    (('north', 'east'), 2.005)
    """
    deadline, gap = as_deadline(time_limit), as_gap(gap)
    if is_source(X) and not (method == "brute" and isinstance(X, np.memmap)):
        refuse_labels(labels)
        columns, c = as_source(X, k=k), as_exponent(c)
        must, barred = (
            as_column_numbers(some, columns.shape[1], what)
            for some, what in ((include, "include"), (exclude, "exclude"))
        )
        rows = (X if isinstance(X, Columns) else columns.source).shape[0]
        told = _reduced_note(columns.shape[0], rows)
        if method == "two-stage":
            return _two_stages(columns, c, must, barred, normalization, deadline, gap, callback, told)
        left = left_until(_before_explaining(deadline, 1, *columns.shape))
        search = _searched(method, columns, c, must, barred, left, gap, callback)
        return _explain_source(columns, c, method, None, search, must, barred, told, deadline)
    points, many = as_points(X, labels, wide=k is None)
    D, P = points[0].values.shape
    k = as_size(k, D, min(direction_rank(one.values, one.rounding) for one in points))
    c = as_exponent(c)
    must, barred = as_indices(include, points[0], "include"), as_indices(exclude, points[0], "exclude")
    reduced = [in_row_space(one, k, barred) for one in points] if k < D else points
    wanted, unwanted = _names(points[0], must), _names(points[0], barred)
    as_array_pool(reduced, c, wanted, unwanted)  # refuses contradictions before any work
    told = _reduced_note(k, D)
    pursuit = None
    until = _before_explaining(deadline, len(points), k, P)
    left = left_until(until)
    if method == "two-stage":
        second = partial(exact_search, gap=gap, callback=callback)
        pursuit = _pursue(reduced, c, normalization, barred, many, _share(left))
        try:
            search = _search_tied(reduced, c, pursuit, second, must, barred, left_until(until))
        except (RankError, RangeError):
            if len(points) == 1:  # what the pursuit left spans all dimensions, so that dependence is not the reason
                raise
            told += (
                f"no subset of the {len(pursuit.tied)} columns that the pursuit left is independent at all "
                f"{len(points)} points, so all columns were searched.",
            )
            pursuit = None
            search = _searched("exact", reduced, c, wanted, unwanted, left_until(until), gap, callback)
    else:
        search = _searched(method, reduced, c, wanted, unwanted, left, gap, callback)
    found = _replacements(reduced, search, c, barred, deadline)
    values = np.stack([one.values[:, search.indices] for one in reduced])
    picked = _explain(values, points[0].labels, c, method, pursuit, search, must, found, told)
    return replace(picked, matrix=picked.matrix if many else picked.matrix[0], excluded=tuple(barred))


def _reduced_note(k: int, D: int) -> tuple[str, ...]:
    return (f"lengths and losses are those in the leading {k} of {D} dimensions.",) if k < D else ()


def _replacements(points: list[Matrix], search: Search, c: float, barred: list[int], deadline: float) -> Found:
    """What could take each picked column's place: the columns that are zero at no point, picked or excluded."""
    if 4 * len(points) * points[0].values.nbytes / COPYING > deadline - time.perf_counter():
        return (None,) * len(search.indices)
    possible = np.all([one.nonzero for one in points], axis=0)
    possible[[*search.indices, *barred]] = False
    open_to = np.flatnonzero(possible)
    known = [one.rounding for one in points if one.rounding is not None]
    rounding = np.stack(known) if len(known) == len(points) else None
    of_picked, of_others = (None if rounding is None else rounding[:, few] for few in (search.indices, open_to))
    picked, others = (np.stack([one.values[:, few] for one in points]) for few in (search.indices, open_to))
    task = Replacements(picked, search.log_loss, c, search.indices, of_picked, deadline=deadline)
    return task.among(others, open_to, of_others)


def _before_explaining(deadline: float, n: int, k: int, P: int) -> float:
    """When the search has to end, so that a share of the time is left for prices where those take long."""
    left = deadline - time.perf_counter()
    return deadline if left == np.inf else deadline - min(EXPLAINING_SHARE * left, 0.1 + n * P * float(k) ** 3 / SPEED)


def _searched(
    method: Method,
    X: Any,
    c: float,
    include: Iterable[Any],
    exclude: Iterable[Any],
    time_limit: float | None,
    gap: float,
    callback: Callable[[SearchProgress], bool | None] | None,
) -> Search:
    """The answer of a search that has one stage."""
    if method == "exact":
        return exact_search(X, c, include=include, exclude=exclude, time_limit=time_limit, gap=gap, callback=callback)
    if method == "exchange":
        return exchange_search(X, c, include=include, exclude=exclude, time_limit=time_limit)
    if method == "greedy":
        return greedy_search(X, c, include=include, exclude=exclude, time_limit=time_limit)
    if method == "brute":
        return brute_search(X, c, include=include, exclude=exclude, time_limit=time_limit)
    raise unknown(method)


def unknown(method: object) -> ParameterError:
    """The refusal of a method that there is not."""
    return ParameterError(f"method={method!r} is not known. Use {', '.join(map(repr, get_args(Method)))}.")


def _two_stages(
    columns: Columns,
    c: float,
    must: Indices,
    barred: Indices,
    normalization: Normalization,
    deadline: float,
    gap: float,
    callback: Callable[[SearchProgress], bool | None] | None,
    told: tuple[str, ...],
) -> Selection:
    """Stream the pursuit, load its tied set into memory, search there."""
    first = _share(left_until(deadline))
    pursuit = isometry_pursuit(columns, c, normalization=normalization, time_limit=first)
    kept, notes = pursuit.tied, pursuit.notes
    if len(kept) > MOST_TIED:
        notes += (f"{len(kept)} columns are tied, too many to search: those with weight were.",)
        kept = pursuit.support
    both = np.intersect1d(barred, kept)
    if len(both):
        raise ParameterError(
            f"exclude names columns that the pursuit keeps: {name_columns(both.tolist(), None)}. Over a source it "
            "cannot leave them out; the methods 'exact', 'exchange' and 'greedy' can."
        )
    kept = np.union1d(kept, must)
    taken = columns.take(kept)
    rounding = rounding_after(columns.transform, replace(columns.transform, A=None).apply(taken))
    matrix = Matrix(columns.transform.apply(taken), None, notes, rounding)
    left = left_until(_before_explaining(deadline, 1, *matrix.values.shape))
    place = np.searchsorted(kept, must).tolist()
    tell = None if callback is None else partial(_in_source_numbers, callback, kept)
    search = exact_search(matrix, c, include=place, time_limit=left, gap=gap, callback=tell)
    search = replace(search, indices=kept[search.indices], labels=None)
    return _explain_source(columns, c, "two-stage", pursuit, search, must, barred, told, deadline)


def _share(time_limit: float | None) -> float | None:
    """Of the time, what the pursuit may take."""
    return None if time_limit is None else PURSUIT_SHARE * time_limit


def _in_source_numbers(
    callback: Callable[[SearchProgress], bool | None], kept: Indices, now: SearchProgress
) -> bool | None:
    return callback(replace(now, indices=kept[now.indices]))


def _explain_source(
    columns: Columns,
    c: float,
    method: str,
    pursuit: Pursuit | None,
    search: Search,
    must: Indices,
    barred: Indices,
    told: tuple[str, ...],
    deadline: float,
) -> Selection:
    """The selection, with the best replacements of all columns: one pass."""
    taken = columns.take(search.indices)
    picked = columns.transform.apply(taken)[None]
    rounding = rounding_after(columns.transform, replace(columns.transform, A=None).apply(taken))
    rounding = None if rounding is None else rounding[None]
    out = np.union1d(search.indices, barred)
    task = Replacements(picked, search.log_loss, c, out, rounding, columns.transform, deadline=deadline)
    try:
        found: Found = fold_until(columns.source, task, deadline)
    except OutOfTimeError:
        found = (None,) * len(search.indices)
    answer = _explain(picked, None, c, method, pursuit, search, must.tolist(), found, told)
    return replace(answer, matrix=picked[0], excluded=tuple(barred.tolist()))


def two_stage(
    points: list[Matrix],
    c: float,
    second: Callable[..., Search] = exact_search,
    normalization: Normalization = "symmetric",
    include: Sequence[int] = (),
    exclude: Sequence[int] = (),
    time_limit: float | None = None,
    *,
    many: bool = False,
) -> tuple[Pursuit, Search]:
    """The paper's method: isometry pursuit prunes, and a second search takes the best of what it leaves (the tied set).

    The arguments are checked already. `second` is a search, called with the matrices, c, include and exclude; its
    `time_limit` is what the pursuit left of ours.
    """
    deadline = as_deadline(time_limit)
    pursuit = _pursue(points, c, normalization, exclude, many, _share(time_limit))
    return pursuit, _search_tied(points, c, pursuit, second, include, exclude, left_until(deadline))


def _search_tied(
    points: list[Matrix],
    c: float,
    pursuit: Pursuit,
    second: Callable[..., Search],
    include: Sequence[int],
    exclude: Sequence[int],
    time_limit: float | None,
) -> Search:
    """The second stage: a search among the tied columns and those included."""
    outside = np.ones(points[0].values.shape[1], dtype=bool)
    outside[[*pursuit.tied, *include]] = False
    outside[list(exclude)] = True
    if time_limit is not None:
        second = partial(second, time_limit=time_limit)
    few, others = _names(points[0], include), _names(points[0], np.flatnonzero(outside))
    return second(points, c, include=few, exclude=others)


def _names(matrix: Matrix, columns: Iterable[int]) -> Iterable[Label]:
    """Columns as a search must be told of them: by label where there are labels, for a label may be a number too."""
    return columns if matrix.labels is None else [matrix.labels[i] for i in columns]


def _pursue(
    points: list[Matrix],
    c: float,
    normalization: Normalization,
    barred: Sequence[int],
    many: bool,
    time_limit: float | None,
) -> Pursuit:
    """Isometry pursuit on the columns that may be picked: the others take part as zero columns.

    A column that is zero at one point may not be picked, because every subset with it is dependent at that point.
    """
    if many or len(barred):
        possible = np.all([one.nonzero for one in points], axis=0)
        possible[list(barred)] = False
        values = np.stack([one.values for one in points]) * possible
    else:
        values = points[0].values[None]
    labels, notes = points[0].labels, points[0].notes
    values = values if many else values[0]
    found = isometry_pursuit(values, c, normalization=normalization, labels=labels, time_limit=time_limit)
    return replace(found, notes=notes)


def _explain(
    values: Array,
    labels: tuple[Label, ...] | None,
    c: float,
    method: str,
    pursuit: Pursuit | None,
    search: Search,
    must: list[int],
    found: Found,
    told: tuple[str, ...],
) -> Selection:
    """The selection of the columns `values` (n, k, k), with what could take the place of each, None where there was no
    time to find out.
    """
    lengths = np.linalg.norm(values, axis=1).mean(axis=0)
    choices: list[Choice] = []
    rivals: dict[int, tuple[Replacement, int]] = {}
    for index, length, swaps in zip(search.indices.tolist(), lengths.tolist(), found, strict=True):
        if swaps is None:
            choices.append(Choice(index, name_of(labels, index), length, float("nan"), None, float("nan")))
            continue
        for one in swaps if index not in must else ():
            if one.index not in rivals or is_lower(one.log_loss, rivals[one.index][0].log_loss):
                rivals[one.index] = (one, index)
        log_loss = swaps[0].log_loss if swaps else float("inf")
        replacement = name_of(labels, swaps[0].index) if swaps else None
        price = _rise(search.log_loss, log_loss)
        choices.append(Choice(index, name_of(labels, index), length, price, replacement, log_loss))
    unpriced = sum(swaps is None for swaps in found)
    if unpriced:
        told += (f"the prices of {unpriced} of {len(choices)} columns were not computed: the time limit came first.",)
    nearest = ranked(one for one, _ in rivals.values())
    return Selection(
        indices=search.indices,
        labels=tuple(name_of(labels, i) for i in search.indices.tolist()),
        loss=search.loss,
        log_loss=search.log_loss,
        pursuit=pursuit,
        search=search,
        matrix=values,
        choices=tuple(choices),
        alternatives=tuple(
            Alternative(
                one.index,
                name_of(labels, one.index),
                float(np.linalg.norm(one.values, axis=1).mean()),
                to_loss(one.log_loss),
                name_of(labels, rivals[one.index][1]),
                one.log_loss,
            )
            for one in nearest
        ),
        method=method,
        c=c,
        notes=search.notes + told + _pruning_note(pursuit, choices, must, search.log_loss),
    )


def _rise(log_loss: float, log_other: float) -> float:
    """How much higher the other loss is, infinite where that leaves float64."""
    if log_other == log_loss:
        return 0.0
    if max(log_loss, log_other) < LARGEST_LOG:
        return to_loss(log_loss) * float(np.expm1(log_other - log_loss))
    return float("inf") if log_other > log_loss else -float("inf")


def _pruning_note(pursuit: Pursuit | None, choices: list[Choice], must: list[int], log_loss: float) -> tuple[str, ...]:
    """What a negative price of a column that need not be picked means: the second stage never saw a better one."""
    if pursuit is None or not any(one.log_loss < log_loss - PRUNED and one.index not in must for one in choices):
        return ()
    return ("a negative price marks a better column among those the pursuit pruned; method='exact' searches them all.",)
