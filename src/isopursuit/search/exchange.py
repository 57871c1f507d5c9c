"""Exchange search: swap single columns while the loss falls, then kick a few out and swap again; several starts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from isopursuit.errors import ParameterError
from isopursuit.loss import as_objective
from isopursuit.matrix import Label, as_exponent
from isopursuit.pursuit.streamed import MEMORY
from isopursuit.results import Search
from isopursuit.search.candidates import as_candidates
from isopursuit.search.joint import floors
from isopursuit.search.local import local_search
from isopursuit.search.streamed import exchange_source
from isopursuit.sources.columns import is_source


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
    memory: int = MEMORY,
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
    bound = None
    if len(candidates.X) > 1 and not found.interrupted:
        deadline = np.inf if time_limit is None else candidates.began + time_limit
        try:
            bound = float(floors(candidates.X, as_exponent(c), candidates.include, deadline).sum())
        except KeyboardInterrupt:
            status = "interrupted"
    return candidates.answer(found.indices.tolist(), goal, "exchange", status, found.descents, lower_bound=bound)
