"""The front door: normalize → pursue → search, and an answer that explains itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from isopursuit.errors import ParameterError
from isopursuit.loss import log_spectral_loss, log_sum, to_loss
from isopursuit.matrix import (
    Label,
    Matrix,
    as_deadline,
    as_exponent,
    as_indices,
    as_points,
    as_size,
    column_rank,
    left_until,
    name_columns,
    row_space,
    spectrum,
)
from isopursuit.normalize import Normalization
from isopursuit.pursuit.programs import isometry_pursuit
from isopursuit.results import Pursuit, Search
from isopursuit.search._swap import Columns as Swaps
from isopursuit.search.brute import brute_search
from isopursuit.search.candidates import as_candidates
from isopursuit.search.exact import exact_search
from isopursuit.search.exchange import exchange_search
from isopursuit.search.field import as_column_numbers, replacements
from isopursuit.search.greedy import greedy_search
from isopursuit.search.passes import OutOfTimeError
from isopursuit.search.tree import SearchProgress
from isopursuit.selection import Alternative, Choice, Selection
from isopursuit.sources.columns import Columns, as_source, is_source
from isopursuit.threads import on_one_blas_thread

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Method = Literal["two-stage", "exact", "exchange", "greedy", "brute"]

NEAREST = 5  # columns that lose narrowly, and replacements kept for each picked column
MOST_TIED = 5000  # columns of a source that the search takes on
BATCH = 64  # swaps that set a limit
PURSUIT_SHARE = 0.6  # of the time, for the first of two stages
EXPLAINING_SHARE = 0.25  # of the time at most, for prices and replacements
SPEED, COPYING = 2e8, 1e9  # multiplications, and copied bytes, a second, by which those are judged to take long
SCORED = 2**18  # entries of the matrices whose losses set a cutoff for replacements


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
    deadline = as_deadline(time_limit)
    if is_source(X):
        if labels is not None:
            raise ParameterError("A source's columns are known by their numbers; labels are for matrices in memory.")
        columns, c = as_source(X, k=k), as_exponent(c)
        must, barred = (
            as_column_numbers(some, columns.shape[1], what)
            for some, what in ((include, "include"), (exclude, "exclude"))
        )
        if method == "two-stage":
            return _two_stages(columns, c, must, barred, normalization, deadline, gap, callback)
        return _select_source(columns, c, method, must, barred, deadline, gap, callback)
    points, many = as_points(X, labels, wide=k is None)
    D, P = points[0].values.shape
    k = as_size(k, D, min(column_rank(one.values) for one in points))
    c = as_exponent(c)
    must, barred = as_indices(include, points[0], "include"), as_indices(exclude, points[0], "exclude")
    reduced = [replace(one, values=row_space(one.values, k, barred)) for one in points] if k < D else points
    wanted, unwanted = _names(points[0], must), _names(points[0], barred)
    as_candidates(reduced, wanted, unwanted)  # refuses contradictions before any work
    pursuit = None
    left = left_until(_before_explaining(deadline, len(points), k, P))
    if method == "two-stage":
        second = partial(exact_search, gap=gap, callback=callback)
        pursuit, search = two_stage(reduced, c, second, normalization, must, barred, left, many=many)
    else:
        search = _searched(method, reduced, c, wanted, unwanted, left, gap, callback)
    told = (f"lengths and losses are those in the leading {k} of {D} dimensions.",) if k < D else ()
    picked = _explain(reduced, c, method, pursuit, search, must, barred, told, deadline)
    return picked if many else replace(picked, matrix=picked.matrix[0])


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
) -> Selection:
    """Stream the pursuit, bring its tied set home, search there."""
    first = _share(left_until(deadline))
    pursuit = isometry_pursuit(columns, c, normalization=normalization, time_limit=first)
    kept, notes = pursuit.tied, columns.notes
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
    matrix = Matrix(columns.transform.apply(columns.take(kept)), None, notes)
    left = left_until(_before_explaining(deadline, 1, *matrix.values.shape))
    place = np.searchsorted(kept, must).tolist()
    search = exact_search(matrix, c, include=place, time_limit=left, gap=gap, callback=callback)
    return _in_numbers(matrix, kept, c, "two-stage", pursuit, search, place, deadline)


def _share(time_limit: float | None) -> float | None:
    """Of the time, what the pursuit may take."""
    return None if time_limit is None else PURSUIT_SHARE * time_limit


def _select_source(
    columns: Columns,
    c: float,
    method: Method,
    must: Indices,
    barred: Indices,
    deadline: float,
    gap: float,
    callback: Callable[[SearchProgress], bool | None] | None,
) -> Selection:
    """Search all columns in passes, and in one more find what would best replace each that was picked."""
    left = left_until(_before_explaining(deadline, 1, *columns.shape))
    search = _searched(method, columns, c, must, barred, left, gap, callback)
    try:
        kept = np.union1d(search.indices, replacements(columns, search.indices, c, barred, deadline))
    except OutOfTimeError:
        kept, deadline = search.indices, -np.inf  # no prices: what would replace a column is not known
    matrix = Matrix(columns.transform.apply(columns.take(kept)), None)
    here = replace(search, indices=np.searchsorted(kept, search.indices))
    return _in_numbers(matrix, kept, c, method, None, here, np.searchsorted(kept, must).tolist(), deadline)


def _in_numbers(
    matrix: Matrix,
    kept: Indices,
    c: float,
    method: str,
    pursuit: Pursuit | None,
    search: Search,
    must: list[int],
    deadline: float,
) -> Selection:
    """The selection from the columns `kept`, which are named by their numbers in the source."""
    numbers = kept.tolist()
    found = _explain([replace(matrix, labels=tuple(numbers))], c, method, pursuit, search, must, [], (), deadline)
    return replace(
        found,
        indices=kept[found.indices],
        matrix=found.matrix[0],
        search=replace(search, indices=kept[search.indices], labels=None),
        choices=tuple(replace(one, index=numbers[one.index]) for one in found.choices),
        alternatives=tuple(replace(one, index=numbers[one.index]) for one in found.alternatives),
    )


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
    inside = np.zeros(points[0].values.shape[1], dtype=bool)
    inside[[*pursuit.tied, *include]] = True
    if time_limit is not None:
        second = partial(second, time_limit=left_until(deadline))
    outside = np.flatnonzero(~inside)
    return pursuit, second(points, c, include=_names(points[0], include), exclude=_names(points[0], outside))


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
    """Isometry pursuit on the columns that may be picked: barred ones take part as zero columns."""
    if many or len(barred):
        values = np.stack([one.values for one in points])
        values[:, :, barred] = 0.0
    else:
        values = points[0].values[None]
    labels, notes = points[0].labels, points[0].notes
    values = values if many else values[0]
    found = isometry_pursuit(values, c, normalization=normalization, labels=labels, time_limit=time_limit)
    return replace(found, notes=notes)


def _explain(
    points: list[Matrix],
    c: float,
    method: str,
    pursuit: Pursuit | None,
    search: Search,
    must: list[int],
    barred: list[int],
    told: tuple[str, ...],
    deadline: float,
) -> Selection:
    values = np.stack([one.values for one in points]) if len(points) > 1 else points[0].values[None]
    P = values.shape[2]
    names: tuple[Label, ...] = tuple(range(P)) if points[0].labels is None else points[0].labels
    lengths = np.linalg.norm(values, axis=1).mean(axis=0)
    picked = search.indices
    open_to = np.setdiff1d(np.flatnonzero(lengths > 0), np.concatenate([picked, np.array(barred, dtype=np.intp)]))
    others = None
    if 4 * values.nbytes / COPYING < deadline - time.perf_counter():
        others = _Rivals(values[:, :, picked], values[:, :, open_to], c, deadline)
    choices: list[Choice] = []
    rivals: dict[int, tuple[float, int]] = {}
    for position, index in enumerate(picked.tolist()):
        found = None if others is None else others.best(position)
        if found is None:
            choices.append(Choice(index, names[index], float(lengths[index]), float("nan"), None))
            continue
        swaps = [(log_loss, int(open_to[other])) for log_loss, other in found]
        for log_loss, rival in swaps if index not in must else []:
            if rival not in rivals or log_loss < rivals[rival][0]:
                rivals[rival] = (log_loss, index)
        best = swaps[0] if swaps else None
        price = float("inf") if best is None else _rise(search.log_loss, best[0])
        replacement = None if best is None else names[best[1]]
        choices.append(Choice(index, names[index], float(lengths[index]), price, replacement))
    unpriced = sum(np.isnan(choice.price) for choice in choices)
    if unpriced:
        told += (f"the prices of {unpriced} of {len(choices)} columns were not computed: the time limit came first.",)
    nearest = sorted(rivals.items(), key=lambda item: (item[1][0], item[0]))[:NEAREST]
    return Selection(
        indices=picked,
        labels=tuple(names[i] for i in picked.tolist()),
        loss=search.loss,
        log_loss=search.log_loss,
        pursuit=pursuit,
        search=search,
        matrix=values[:, :, picked],
        choices=tuple(choices),
        alternatives=tuple(
            Alternative(rival, names[rival], float(lengths[rival]), to_loss(log_loss), names[index])
            for rival, (log_loss, index) in nearest
        ),
        method=method,
        c=c,
        notes=search.notes + told + _pruning_note(pursuit, choices, search.loss),
    )


def _rise(log_loss: float, log_other: float) -> float:
    """How much higher the other loss is, infinite where that leaves float64."""
    if log_other == log_loss:
        return 0.0
    return to_loss(log_loss) * float(np.expm1(log_other - log_loss)) if max(log_loss, log_other) < 700 else np.inf


def _pruning_note(pursuit: Pursuit | None, choices: list[Choice], loss: float) -> tuple[str, ...]:
    """What a negative price means: the second stage never saw the column that would do better."""
    if pursuit is None or not any(choice.price < -1e-9 * loss for choice in choices):
        return ()
    return ("a negative price marks a better column among those the pursuit pruned; method='exact' searches them all.",)


class _Rivals:
    """What could take the place of each picked column, (n, k, k), among the others (n, k, P)."""

    def __init__(self, picked: Array, others: Array, c: float, deadline: float) -> None:
        self.picked, self.others, self.c, self.deadline = picked, others, c, deadline
        both = np.concatenate([picked, others], axis=2)
        self.swaps = Swaps(np.ascontiguousarray(np.swapaxes(both, 1, 2)), c, deadline)
        self.subset = np.arange(picked.shape[2], dtype=np.int32)
        self.log_loss = self.swaps.loss(self.subset)
        self.swaps.price(self.subset, self.log_loss)

    def best(self, position: int) -> list[tuple[float, int]] | None:
        """The best replacements for one picked column, (log-loss, which of the others), lowest first; None where there
        is no time to find them.

        A few that look well set a limit; the kernel finds all below it.
        """
        if time.perf_counter() > self.deadline:
            return None
        some = self._promising(position)
        stack = np.repeat(self.picked[None], len(some), axis=0)
        stack[..., position] = np.moveaxis(self.others[:, :, some], 2, 0)
        scores = np.sort(log_sum(log_spectral_loss(spectrum(stack), self.c)))
        limit = float(scores[NEAREST - 1]) if len(scores) >= NEAREST else np.inf
        limit += 1e-12 * max(abs(limit), 1.0) if limit < np.inf else 0.0
        which, values = self.swaps.below(self.subset, position, self.log_loss, limit)
        if self.swaps.late:
            return None
        found = zip(values.tolist(), (which - len(self.subset)).tolist(), strict=True)
        return sorted(found)[:NEAREST]

    def _promising(self, position: int) -> Indices:
        """With e, V the eigenpairs of Σ x xᵀ over the columns that stay and y = Vᵀx, adding x gives λ_min ≤ e_min +
        y_min² and λ_max ≥ e_max + y_max²: columns of a low bound on the loss.
        """
        n, k, count = self.others.shape
        few = min(BATCH, max(SCORED // (n * k**2), 2 * NEAREST))
        if count <= few or k == 1:
            return np.arange(min(count, few), dtype=np.intp)
        stay = np.delete(self.picked, position, axis=2)
        e, V = np.linalg.eigh(stay @ np.swapaxes(stay, 1, 2))
        ends = (np.swapaxes(V[:, :, [0, -1]], 1, 2) @ self.others) ** 2
        ends += np.maximum(e[:, [0, -1]], 0.0)[..., None]
        ends = np.sqrt(np.stack([np.maximum(ends[:, 1], 1.0), np.minimum(ends[:, 0], 1.0)], axis=-1))
        bound: Array = log_sum(log_spectral_loss(np.where(ends > 0, ends, 1e-300), self.c).T)
        return np.argpartition(bound, few)[:few].astype(np.intp)
