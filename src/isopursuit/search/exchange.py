"""Exchange search: swap single columns while the loss falls, then kick a few out and swap again; several starts."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isopursuit.errors import ParameterError
from isopursuit.loss import as_objective
from isopursuit.matrix import Label, as_exponent
from isopursuit.results import Search
from isopursuit.search._swap import best_column, log_loss_of
from isopursuit.search.candidates import as_candidates
from isopursuit.search.greedy import greedy_subset

Array = NDArray[np.float64]
Subset = NDArray[np.int32]


def exchange_search(
    X: Any,
    c: float = 1.0,
    *,
    starts: int = 4,
    kicks: int = 15,
    time_limit: float | None = None,
    rng: np.random.Generator | int | None = None,
    include: Iterable[Any] | None = None,
    exclude: Iterable[Any] | None = None,
    labels: Sequence[Label] | None = None,
) -> Search:
    """Multistart exchange, greedy first: often the best, without a proof.

    Parameters
    ----------
    X, c, include, exclude, labels
        As in `greedy_search`.
    starts : int
        Starting subsets: the greedy one, the one of greedily largest volume (pivoted QR), then random ones.
    kicks : int
        How often each is shaken, by replacing two to four columns, and improved again.
    time_limit : float, optional
        Seconds after which no further kick is made.
    rng : numpy.random.Generator or int, optional
        For the random starts and kicks. Without it the answer is always the same, whatever the order of the columns.

    Returns
    -------
    Search
        Its bound is the trivial one: no D columns have a loss below D.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0, 0.7, 3.0], [0.0, 1.0, 0.7, 0.0]])
    >>> exchange_search(X).indices.tolist()
    [0, 1]
    """
    if starts < 1 or kicks < 0:
        raise ParameterError(f"Need starts ≥ 1 and kicks ≥ 0; got {starts} and {kicks}.")
    goal = as_objective("isometry", c)
    candidates = as_candidates(X, include, exclude, labels).ordered()
    found = local_search(
        candidates.X,
        as_exponent(c),
        include=candidates.include,
        starts=starts,
        kicks=kicks,
        rng=np.random.default_rng(0 if rng is None else rng),
        time_limit=time_limit,
    )
    status = "interrupted" if found.interrupted else "heuristic"
    return candidates.answer(found.indices.tolist(), goal, "exchange", status, found.descents)


@dataclass(frozen=True)
class Found:
    """A subset that no single swap improves, unless the search was interrupted."""

    indices: NDArray[np.intp]
    log_loss: float
    descents: int
    interrupted: bool


def local_search(
    X: Array,
    c: float,
    *,
    include: Sequence[int] = (),
    starts: int,
    kicks: int,
    rng: np.random.Generator,
    time_limit: float | None = None,
) -> Found:
    """The search behind `exchange_search` on a validated matrix; Ctrl-C returns the best so far.

    The deadline is looked at before every swap. The greedy start comes after the one of largest volume, which takes
    no time, so that there always is an answer.
    """
    columns = np.ascontiguousarray(X.T)
    count, dimension = columns.shape
    deadline = np.inf if time_limit is None else time.perf_counter() + time_limit
    free = range(len(include), dimension)
    best = _volume_start(X, include, None)
    best_loss = log_loss_of(columns, best, c)
    descents = 0
    interrupted = False
    try:
        for number in range(starts):
            if number == 0:
                subset = greedy_subset(columns, c, include, deadline)
            else:
                subset = _volume_start(X, include, None if number == 1 else rng)
            loss = np.inf
            for kick in range(1 + (kicks if count > dimension and len(free) else 0)):
                if time.perf_counter() > deadline:
                    break
                trial = subset if kick == 0 else _kick(subset, free, count, rng)
                if trial is None:
                    break
                trial, trial_loss = swap_descent(columns, trial, free, c, deadline)
                descents += 1
                if trial_loss < loss + 1e-9:
                    subset, loss = trial, trial_loss
                if loss < best_loss:
                    best, best_loss = trial, loss
    except KeyboardInterrupt:
        interrupted = True
    return Found(np.sort(best).astype(np.intp), best_loss, descents, interrupted)


def swap_descent(
    columns: Array, subset: Subset, free: Iterable[int], c: float, deadline: float = np.inf
) -> tuple[Subset, float]:
    """Replace the columns at free positions, each by the best for its place in turn, until none improves."""
    current = subset.copy()
    loss = log_loss_of(columns, current, c)
    positions = list(free)
    unchanged = turn = 0
    while unchanged < len(positions) and time.perf_counter() <= deadline:
        position = positions[turn % len(positions)]
        # a margin above rounding, so that equal subsets do not alternate
        limit = loss - 1e-10 - 1e-13 * abs(loss) if loss < np.inf else loss
        present = int(current[position])
        found, value = best_column(columns, np.delete(current, position), c, limit, present)
        turn += 1
        unchanged += 1
        if found >= 0:
            current[position], loss, unchanged = found, value, 0
    return current, loss


def _volume_start(X: Array, include: Sequence[int], rng: np.random.Generator | None) -> Subset:
    """Columns of large volume: the largest residual each time (pivoted QR), or drawn in proportion to its square."""
    residuals = X.copy()
    subset: list[int] = []
    for step in range(X.shape[0]):
        squares = np.einsum("dp,dp->p", residuals, residuals)
        squares[subset] = 0
        if step < len(include):
            column = int(include[step])
        elif rng is None:
            column = int(squares.argmax())
        else:
            column = int(rng.choice(X.shape[1], p=squares / squares.sum()))
        subset.append(column)
        direction = residuals[:, column] / np.sqrt(max(squares[column], np.finfo(np.float64).tiny))
        residuals -= np.outer(direction, direction @ residuals)
    return np.array(subset, np.int32)


def _kick(subset: Subset | None, free: Sequence[int], count: int, rng: np.random.Generator) -> Subset | None:
    """Replace two to four columns by random ones."""
    if subset is None:
        return None
    kicked = subset.copy()
    size = min(int(rng.integers(2, 5)), len(free), count - len(subset))
    outside = np.setdiff1d(np.arange(count), subset)
    kicked[rng.choice(np.array(free), size, replace=False)] = rng.choice(outside, size, replace=False)
    return kicked
