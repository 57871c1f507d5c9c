"""Exchange search: swaps, kicks, pairs at once, and at last the best subset of the columns that did well."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isopursuit.errors import ParameterError
from isopursuit.loss import as_objective
from isopursuit.matrix import Label, as_exponent
from isopursuit.pursuit.streamed import MEMORY
from isopursuit.results import Search
from isopursuit.search.candidates import as_candidates
from isopursuit.search.joint import floors
from isopursuit.search.local import MANY, Found, local_search, pair_descent, swap_descent
from isopursuit.search.relaxation import LARGEST_EXPONENT, LARGEST_LOG, SMALLEST_EXPONENT
from isopursuit.search.streamed import exchange_source
from isopursuit.search.tree import branch_and_bound
from isopursuit.sources.columns import is_source

Array = NDArray[np.float64]
Subset = NDArray[np.int32]

SHARE, LARGE_SHARE = 0.7, 0.95  # of the time, for kicks: where many columns are picked a short search finds little
FEW = 500_000  # P D² up to which pairs are exchanged and all columns searched: beyond, that takes too long
POOL = 90  # columns that are recombined
NODES, WORK = 2_000, 200_000  # a short exact search ends after so many nodes, or so many divided by D² if that is less


def exchange_search(
    X: Any,
    c: float = 1.0,
    *,
    starts: int = 6,
    kicks: int = 300,
    time_limit: float | None = None,
    rng: np.random.Generator | int | None = None,
    include: Iterable[Any] | None = None,
    exclude: Iterable[Any] | None = None,
    labels: Sequence[Label] | None = None,
    memory: int = MEMORY,
) -> Search:
    """The best of many subsets that no exchange of one or two columns improves: often the best of all, without a proof.

    Single columns are swapped while the loss falls, from several starts; the best subset is kicked and improved again,
    many times; then pairs are exchanged, each by the best pair of all; and the columns of the best subsets met, and
    all columns where they are few, are given to a short exact search.

    Parameters
    ----------
    X, c, include, exclude, labels
        As in `greedy_search`.
    starts : int
        Starting subsets: the greedy one, one of locally largest volume (pivoted QR, then maxvol), then random ones.
    kicks : int
        How often the best is shaken, by replacing two to four columns, and improved again.
    time_limit : float, optional
        Seconds after which the best so far is returned.
    rng : numpy.random.Generator or int, optional
        For the random starts and kicks. Without it the answer is always the same, whatever the order of the columns.
    memory : int
        For a source: bytes that columns brought home may take.

    Returns
    -------
    Search
        Its bound is the trivial one: no D columns have a loss below D. For many points it is the sum of what each
        point's own best columns must cost. Over a source a note says whether passes have shown that no single swap with
        any of its columns improves the answer.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0, 0.7, 3.0], [0.0, 1.0, 0.7, 0.0]])
    >>> exchange_search(X).indices.tolist()
    [0, 1]
    """
    if starts < 1 or kicks < 0:
        raise ParameterError(f"Need starts ≥ 1 and kicks ≥ 0; got {starts} and {kicks}.")
    if is_source(X):
        draws = np.random.default_rng(0 if rng is None else rng)
        return exchange_source(X, as_exponent(c), starts, kicks, time_limit, draws, include, exclude, labels, memory)
    goal = as_objective("isometry", c)
    candidates = as_candidates(X, include, exclude, labels).ordered()
    deadline = np.inf if time_limit is None else candidates.began + time_limit
    found = local_search(
        candidates.X,
        as_exponent(c),
        include=candidates.include,
        starts=starts,
        kicks=kicks,
        rng=np.random.default_rng(0 if rng is None else rng),
        time_limit=None if time_limit is None else (SHARE if candidates.k <= MANY else LARGE_SHARE) * time_limit,
    )
    known = SMALLEST_EXPONENT <= c <= LARGEST_EXPONENT and found.log_loss < LARGEST_LOG  # to the bounds
    if kicks and known and len(candidates.X) == 1 and not found.interrupted:
        found = _recombine(candidates.X[0], as_exponent(c), found, candidates.include, deadline)
    status = "interrupted" if found.interrupted else "heuristic"
    bound = None
    if len(candidates.X) > 1 and not found.interrupted:
        try:
            bound = float(floors(candidates.X, as_exponent(c), candidates.include, deadline).sum())
        except KeyboardInterrupt:
            status = "interrupted"
    return candidates.answer(found.indices.tolist(), goal, "exchange", status, found.descents, lower_bound=bound)


def _recombine(X: Array, c: float, found: Found, include: Sequence[int], deadline: float) -> Found:
    """Exchange pairs, then give the columns met first, and where there are few all of them, to a short exact search;
    again while that helps.
    """
    columns, fixed = np.ascontiguousarray(X.T), np.array(include, np.int32)
    best = np.concatenate([fixed, np.setdiff1d(found.indices, fixed)]).astype(np.int32)
    few = X.size * len(X) <= FEW
    pools = [np.array(found.seen[:POOL], np.int32), *([np.arange(len(columns), dtype=np.int32)] if few else [])]
    loss, before, interrupted = found.log_loss, np.inf, False
    try:
        while loss < before - 1e-9 and time.perf_counter() < deadline:
            before = loss
            if few:
                best, loss = pair_descent(columns, best, len(fixed), c, loss, deadline)
            for pool in pools:
                best, loss = _best_among(X, np.union1d(pool, best), best, fixed, c, deadline)
    except KeyboardInterrupt:
        interrupted = True
    return replace(found, indices=np.sort(best).astype(np.intp), log_loss=loss, interrupted=interrupted)


def _best_among(
    X: Array, some: Subset, start: Subset, fixed: Subset, c: float, deadline: float
) -> tuple[Subset, float]:
    """The best of what a short exact search of some columns finds, improved by swaps with all."""
    short = branch_and_bound(
        np.ascontiguousarray(X[:, some]),
        c,
        np.searchsorted(some, start),
        include=np.searchsorted(some, fixed),
        node_limit=max(1, min(NODES, WORK // len(X) ** 2)),
        time_limit=None if deadline == np.inf else max(deadline - time.perf_counter(), 0.0),
        workers=1,
    )
    found = np.concatenate([fixed, np.setdiff1d(some[short.indices], fixed)]).astype(np.int32)
    return swap_descent(np.ascontiguousarray(X.T), found, range(len(fixed), len(found)), c, deadline)
