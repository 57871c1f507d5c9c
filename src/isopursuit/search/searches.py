"""The searches as public functions: each one makes a `Problem` and hands it to `solve`."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from isopursuit._core.clock import Clock
from isopursuit._core.options import SubsetOptions, as_count, as_gap, as_subset_options
from isopursuit._core.progress import shown
from isopursuit._core.threads import on_one_blas_thread, worker_count
from isopursuit._core.types import SearchMethod
from isopursuit.results import Search
from isopursuit.search.incumbent import Callback, Limits, ProofFile
from isopursuit.search.problem import BRUTE_FORCE, Problem
from isopursuit.search.settings import BUDGET, KICKS, STARTS
from isopursuit.search.solve import solve
from isopursuit.sources.columns import MEMORY


@on_one_blas_thread
def greedy_search(
    X: Any,
    c: float = 1.0,
    *,
    k: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
    **options: Unpack[SubsetOptions],
) -> Search:
    """Greedy search (the paper's GreedySearch). It proves nothing and can be far from the best.

    Parameters
    ----------
    X, c, k, progress, **options
        As in `select`. For a source each column takes one pass.
    time_limit : float, optional
        Seconds after which the remaining columns are quickly chosen by largest volume, with status "time". Default:
        None, no limit.
    callback : callable, optional
        Called with a `SearchProgress` after each column. Return True to choose the remaining columns quickly, with
        status "interrupted".

    Returns
    -------
    Search
        Deterministic: ties go to the lowest index.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0, 0.7, 3.0], [0.0, 1.0, 0.7, 0.0]])
    >>> greedy_search(X).indices.tolist()
    [0, 1]
    """
    return _search(greedy_search, "greedy", Limits(Clock.of(time_limit)), callback, progress, X, k, c, options)


@on_one_blas_thread
def brute_search(
    X: Any,
    c: float = 1.0,
    *,
    k: int | None = None,
    budget: int = BUDGET,
    time_limit: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
    **options: Unpack[SubsetOptions],
) -> Search:
    """Brute-force search (the paper's BruteSearch): try all subsets.

    Parameters
    ----------
    X, c, k, **options
        As in `greedy_search`; X must be in memory.
    budget : int
        The largest number of subsets to try; if there are more, `BudgetError` is raised.
    time_limit, callback, progress
        As in `exact_search`; `nodes` counts the subsets tried so far, and `open_nodes` the remaining ones.

    Returns
    -------
    Search
        Proved optimal, unless the time limit, a callback or Ctrl-C ended the search. Ties go to the first subset in
        lexicographic order.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0, 0.7, 3.0], [0.0, 1.0, 0.7, 0.0]])
    >>> brute_search(X).optimal
    True
    """
    limits = Limits(Clock.of(time_limit), budget=budget)
    return _search(brute_search, "brute", limits, callback, progress, X, k, c, options, in_memory=BRUTE_FORCE)


@on_one_blas_thread
def exact_search(
    X: Any,
    c: float = 1.0,
    *,
    k: int | None = None,
    time_limit: float | None = None,
    gap: float = 0.0,
    node_limit: int | None = None,
    workers: int | None = None,
    callback: Callback | None = None,
    progress: bool = False,
    memory: int = MEMORY,
    proof: str | os.PathLike[str] | None = None,
    **options: Unpack[SubsetOptions],
) -> Search:
    """Find the k columns of least isometry loss, with a proof.

    At many points that share one selection, expect a proof for D up to 6 and about a hundred columns. For a source,
    passes exclude columns, and the remaining ones are searched in memory.

    Parameters
    ----------
    X, c, k, progress, **options
        As in `select`.
    time_limit : float, optional
        Seconds after which the best subset so far is returned, with its bound and status "time". Default: None. Without
        a limit the search continues until it has a proof, which can take days; Ctrl-C returns the best subset so far.
    gap : float
        Stop once the subset is proved to be within this relative distance of the best, with status "gap".
    node_limit : int, optional
        Stop after this many nodes of the tree, with status "nodes". Without a time limit this is reproducible for any
        number of workers, except for rounding.
    workers : int, optional
        Number of threads. Default: one per processor.
    callback : callable, optional
        Called with a `SearchProgress` about ten times a second and whenever the loss falls. Return True to stop with
        status "interrupted".
    memory : int
        For a source: the most bytes of loaded columns. If they do not suffice, the status is "memory".
    proof : path, optional
        As in `select`.

    Returns
    -------
    Search
        Status "optimal" means proved within a relative 1e-9. "precision" means that float64 cannot decide, because the
        remaining subsets are badly conditioned. Ctrl-C does not raise: it returns the best subset so far with its bound
        and status "interrupted". Of columns in memory that are equal up to sign, the first is picked.

    Raises
    ------
    RangeError
        The best loss known is too large for bounds in float64 (large c).

    Examples
    --------
    >>> from isopursuit.data import load_iris
    >>> found = exact_search(load_iris().matrix())
    >>> found.status, round(found.loss, 4)
    ('optimal', 5.7485)
    """
    nodes = None if node_limit is None else as_count(node_limit, 1, "node_limit")
    limits = Limits(Clock.of(time_limit), as_gap(gap), nodes, worker_count(workers), memory)
    limits = replace(limits, proof=ProofFile.of(proof))
    return _search(exact_search, "exact", limits, callback, progress, X, k, c, options)


@on_one_blas_thread
def exchange_search(
    X: Any,
    c: float = 1.0,
    *,
    k: int | None = None,
    starts: int = STARTS,
    kicks: int = KICKS,
    time_limit: float | None = None,
    rng: np.random.Generator | int | None = None,
    callback: Callback | None = None,
    progress: bool = False,
    memory: int = MEMORY,
    **options: Unpack[SubsetOptions],
) -> Search:
    """Find a subset by swaps and kicks; it is often the best of all.

    From several starts, single columns are swapped while the loss falls. The best subset is then kicked (a few columns
    are replaced) and improved again. If there are few columns, a short exact search follows the first kicks; if it
    proves the subset, the search ends with status "optimal". For a source, swaps with all columns follow.

    Parameters
    ----------
    X, c, k, progress, **options
        As in `select`.
    starts : int
        The number of starting subsets: one of large volume (pivoted QR) or the greedy one, then random ones.
    kicks : int
        How often the best subset is kicked and improved again. With 0 there is no proof either.
    time_limit : float, optional
        Seconds after which the best subset so far is returned. Default: None. Without a limit the search ends after all
        starts and kicks.
    rng : numpy.random.Generator or int, optional
        The source of randomness for starts and kicks. By default the answer is always the same, for any order of the
        columns.
    callback, memory
        As in `exact_search`.

    Returns
    -------
    Search
        The lower bound is that of a short proof or of the relaxation, and at least the trivial one: no k columns have a
        loss below k. For a source, a note says whether passes have shown that no single swap with any of its columns
        improves the answer.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0, 0.7, 3.0], [0.0, 1.0, 0.7, 0.0]])
    >>> exchange_search(X).indices.tolist()
    [0, 1]
    """
    starts, kicks = as_count(starts, 1, "starts"), as_count(kicks, 0, "kicks")
    seed = np.random.default_rng(0 if rng is None else rng)
    limits = Limits(Clock.of(time_limit), memory=memory, starts=starts, kicks=kicks, seed=seed)
    return _search(exchange_search, "exchange", limits, callback, progress, X, k, c, options)


def _search(
    function: Callable[..., Search],
    method: SearchMethod,
    limits: Limits,
    callback: Callback | None,
    progress: bool,
    X: Any,
    k: int | None,
    c: float,
    options: SubsetOptions,
    in_memory: str = "",
) -> Search:
    """The answer of one method; with `progress`, its state is shown on the error stream."""
    options = as_subset_options(function, options)
    problem = Problem.of(X, k, c, clock=limits.clock, in_memory=in_memory, **options)
    with shown(progress, callback, lambda now: now.line(limits.clock.limit, method)) as report:
        return solve(problem, method, replace(limits, callback=report)).search
