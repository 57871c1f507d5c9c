"""The best subset of all, with a proof, or how far from it the answer can be."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isopursuit.errors import ParameterError, RangeError
from isopursuit.loss import as_objective, to_loss
from isopursuit.matrix import Label, as_deadline, as_exponent, as_gap, as_time_limit, left_until
from isopursuit.pursuit.settings import MEMORY
from isopursuit.results import Search
from isopursuit.search.brute import brute_search
from isopursuit.search.candidates import Candidates, as_candidates
from isopursuit.search.exchange import CLOSED, improve, short
from isopursuit.search.field import Field, greedy_field
from isopursuit.search.fixing import Fixing, prove
from isopursuit.search.joint import joint_branch_and_bound
from isopursuit.search.relaxation import LARGEST_EXPONENT, LARGEST_LOG, SMALLEST_EXPONENT
from isopursuit.search.streamed import Exchange
from isopursuit.search.tree import SearchProgress, thread_count
from isopursuit.sources.columns import is_source
from isopursuit.threads import on_one_blas_thread

Callback = Callable[[SearchProgress], bool | None]

FEW = 2000  # subsets that are evaluated faster than a search is set up
MOST = 5000  # columns of a source that the tree takes at once
ROOM = 2048  # and that come home however little memory there is
SHORT, WORK = 10_000, 300_000_000  # nodes of the tries for a proof before the last, and those times P D² if more
START_SHARE, FAR_SHARE, FAR = 0.5, 0.9, 12  # of the time, for the subset to be proved; more where over FAR are picked
# starts and kicks for one point, for many points, and for those where that found nothing bounds can be computed for
ONE, MANY, HARD = (6, 300), (3, 4), (8, 60)


@on_one_blas_thread
def exact_search(
    X: Any,
    c: float = 1.0,
    *,
    time_limit: float | None = None,
    gap: float = 0.0,
    node_limit: int | None = None,
    workers: int | None = None,
    callback: Callback | None = None,
    include: Iterable[Any] | None = None,
    exclude: Iterable[Any] | None = None,
    labels: Sequence[Label] | None = None,
    memory: int = MEMORY,
) -> Search:
    """The D columns of least isometry loss, proved.

    It begins as `exchange_search` does. Then cuts exclude columns that no better subset contains, targets above D are
    shown to be missed by all subsets (fixing.py), and where that says no more best-first branch and bound on a convex
    relaxation of the loss decides (tree.py).

    At many points that share one selection the losses are summed and bounded point by point (joint.py): expect a proof
    for D = 2 or 3, and a gap beyond. Over a source (`as_source`) passes exclude columns, and what is left is searched
    in memory; where that is too much the status is "memory".

    Parameters
    ----------
    X, c, include, exclude, labels
        As in `greedy_search`.
    time_limit : float, optional
        Seconds after which the best subset so far is returned, with its bound and status "time".
    gap : float
        Stop once the subset is proved to be within this relative distance of the best, with status "gap".
    node_limit : int, optional
        Stop after so many nodes of the tree (100 of the cheap ones of a dive count as one), with status "nodes": with
        workers=1, and no time limit, at the same place every time. Short searches before the last one are not counted.
    workers : int, optional
        Threads; one for each processor by default (one in all for many points).
    callback : callable, optional
        Called about ten times a second with a `SearchProgress`; return True to stop with status "interrupted".
    memory : int
        For a source: bytes that columns brought home may take.

    Returns
    -------
    Search
        Status "optimal" means proved within a relative 1e-9; "precision" that float64 cannot decide, because the
        subsets in question are badly conditioned. Ctrl-C does not raise: it returns the best subset so far with its
        bound and status "interrupted". Of columns that are equal up to sign the first is picked.

    Raises
    ------
    RangeError
        Where the best loss known is beyond the range in which float64 can hold bounds (large c).

    Examples
    --------
    >>> from isopursuit.datasets import load_iris
    >>> found = exact_search(load_iris().matrix())
    >>> found.status, round(found.loss, 4)
    ('optimal', 5.7485)
    """
    c = as_exponent(c)
    gap = as_gap(gap)
    time_limit, deadline = as_time_limit(time_limit), as_deadline(time_limit)
    if node_limit is not None and (not isinstance(node_limit, int) or node_limit < 1):
        raise ParameterError(f"node_limit={node_limit!r} must be a whole number of nodes, at least 1, or None.")
    workers = thread_count(workers)
    if not SMALLEST_EXPONENT <= c <= LARGEST_EXPONENT:
        raise ParameterError(
            f"c={c:g}: the exact search's bounds are verified for c from {SMALLEST_EXPONENT} to {LARGEST_EXPONENT}. "
            "Use exchange_search beyond that."
        )
    if is_source(X):
        field = Field.over(X, include, exclude, labels, time_limit)
        return _over_source(field, c, gap, node_limit, workers, callback, memory)
    candidates = as_candidates(X, include, exclude, labels)
    if len(candidates.X) * comb(len(candidates.free), candidates.k - len(candidates.include)) <= FEW:
        return replace(brute_search(X, c, include=include, exclude=exclude, labels=labels), method="exact")
    candidates, goal = candidates.distinct(deadline), as_objective("isometry", c)
    tell = None if callback is None else _in_callers_columns(callback, candidates.columns)
    watch = None if tell is None else partial(_before_the_tree, tell, candidates)
    shared: dict[str, Any] = {"include": candidates.include, "gap": gap, "callback": tell}
    share = START_SHARE if candidates.k <= FAR else FAR_SHARE
    until = np.inf if time_limit is None else deadline - (1 - share) * time_limit
    nodes = max(short(SHORT, candidates.k), WORK // candidates.X.size // candidates.k)
    nodes = nodes if node_limit is None else min(nodes, node_limit)
    one = len(candidates.X) == 1
    prover = partial(prove, candidates.X[0], c, workers=workers, **shared) if one else None
    begin = partial(improve, candidates.X, c, candidates.include)
    start, proof = begin(*(ONE if one else MANY), np.random.default_rng(0), until, prover, nodes, watch)
    if not one and not start.interrupted and not start.log_loss < LARGEST_LOG:
        start, proof = begin(*HARD, np.random.default_rng(0), until, prover, nodes, watch)
    if start.interrupted:
        if tell is not None and proof is None:
            _before_the_tree(tell, candidates, start.log_loss, start.indices)
        bound = None if proof is None else proof.lower_bound
        return candidates.answer(
            start.indices.tolist(), goal, "exact", "interrupted", start.descents, lower_bound=bound
        )
    if not start.log_loss < LARGEST_LOG and time.perf_counter() > until:
        return candidates.answer(start.indices.tolist(), goal, "exact", "time", start.descents)
    if not start.log_loss < LARGEST_LOG:
        raise RangeError(
            f"The best loss known is e^{start.log_loss:.4g}, beyond the range in which bounds can be computed. Use "
            "exchange_search, which compares logarithms, a smaller c, or divide X by its median length "
            f"{candidates.median_length:.4g}."
        )
    if (proof is None or proof.status not in CLOSED) and not goal.resolves(candidates.X[:, :, start.indices]):
        bound = None if proof is None else proof.lower_bound
        return candidates.answer(start.indices.tolist(), goal, "exact", "precision", start.descents, lower_bound=bound)
    if proof is None or proof.status not in CLOSED:
        if time.perf_counter() > deadline:
            bound = None if proof is None else proof.lower_bound
            return candidates.answer(start.indices.tolist(), goal, "exact", "time", start.descents, lower_bound=bound)
        left = left_until(deadline)
        search = prover or partial(joint_branch_and_bound, candidates.X, c, **shared)
        earlier = float(candidates.k) if proof is None else proof.lower_bound
        proof = search(start.indices, time_limit=left, node_limit=node_limit)
        proof = replace(proof, lower_bound=max(earlier, proof.lower_bound))
    return candidates.answer(
        proof.indices.tolist(),
        goal,
        "exact",
        proof.status,
        start.descents + proof.evaluations,
        lower_bound=proof.lower_bound,
        nodes=proof.nodes,
    )


def _before_the_tree(tell: Callback, candidates: Candidates, log_loss: float, subset: NDArray[Any]) -> bool | None:
    """Tell the callback where the local search stands: no subset has a loss below D, at any point."""
    loss, bound = to_loss(log_loss), float(candidates.k * len(candidates.X))
    seconds = time.perf_counter() - candidates.began
    gap = (loss - bound) / loss if loss < np.inf else np.inf
    return tell(SearchProgress(seconds, loss, bound, gap, 0, 0, subset.astype(np.intp)))


def _in_callers_columns(callback: Callback, columns: NDArray[np.intp]) -> Callback:
    return lambda progress: callback(replace(progress, indices=np.sort(columns[progress.indices])))


def _over_source(
    field: Field, c: float, gap: float, node_limit: int | None, workers: int, callback: Callback | None, memory: int
) -> Search:
    """`exact_search` on a source."""
    if field.k - len(field.include) <= 1:
        # one pass evaluates them all
        subset, seen, finished = greedy_field(field, c)
        return field.answer(subset, c, "exact", "optimal" if finished else "time", seen)
    exchange = Exchange(field, c, memory, field.include)
    exchange.run(2, 10, np.random.default_rng(0), field.began + 0.3 * (field.deadline - field.began))
    if exchange.stopped == "interrupted":
        return field.answer(exchange.subset, c, "exact", "interrupted", exchange.descents)
    if not exchange.log_loss < LARGEST_LOG and exchange.stopped == "time":
        return field.answer(exchange.subset, c, "exact", "time", exchange.descents)
    if not exchange.log_loss < LARGEST_LOG:
        raise RangeError(
            f"The best loss known is e^{exchange.log_loss:.4g}, beyond the range in which bounds can be computed. Use "
            "exchange_search, which compares logarithms, a smaller c, or rescale the columns to a median length of 1."
        )
    if not as_objective("isometry", c).resolves(field.home[None, :, field.place(exchange.subset)]):
        return field.answer(exchange.subset, c, "exact", "precision", exchange.descents)
    room = max(ROOM, memory // (96 * field.k))
    fixing = Fixing(
        field, c, exchange.subset, exchange.log_loss, gap=gap, room=room, most=MOST, node_limit=node_limit,
        workers=workers, callback=callback,
    )  # fmt: skip
    fixing.finish()
    return field.answer(
        fixing.subset,
        c,
        "exact",
        fixing.status,
        exchange.descents + fixing.evaluations,
        lower_bound=fixing.lower,
        nodes=fixing.spent,
        notes=fixing.notes,
    )
