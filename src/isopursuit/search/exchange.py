"""Exchange search: swaps, kicks, pairs at once, and at last the best subset of the columns that did well."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isopursuit.errors import RangeError
from isopursuit.loss import as_objective
from isopursuit.matrix import Label, as_count, as_deadline, as_exponent, left_until
from isopursuit.pursuit.programs import isometry_pursuit
from isopursuit.pursuit.settings import MEMORY
from isopursuit.results import Search
from isopursuit.search.candidates import as_candidates
from isopursuit.search.field import Field
from isopursuit.search.fixing import prove
from isopursuit.search.joint import floors
from isopursuit.search.local import Found, Watch, local_search, pair_descent, swap_descent
from isopursuit.search.relaxation import LARGEST_EXPONENT, LARGEST_LOG, SMALLEST_EXPONENT
from isopursuit.search.streamed import exchange_source
from isopursuit.search.tree import Proof, branch_and_bound
from isopursuit.sources.columns import is_source
from isopursuit.threads import on_one_blas_thread

Array = NDArray[np.float64]
Subset = NDArray[np.int32]

QUICK = (3, 10)  # starts and kicks before the first attempt at a proof
SHARE, MANY, LARGE_SHARE = 0.8, 16, 0.95  # of the time, for kicks; more where over MANY columns are picked
FEW = 500_000  # P D² up to which pairs are exchanged and all columns searched: beyond, that takes too long
SEVERAL, LARGE = 10_000_000, 32  # P D² and D up to which isometry pursuit gives a start too
PRUNED_SHARE = 0.2  # of the time, for that
POOL = 90  # columns that are recombined
NODES = 2_000  # after which a short exact search ends, where D is at most 10
CLOSED = ("optimal", "gap")
PROOF_SHARE = 0.7  # of the time, for the first attempt at a proof


@on_one_blas_thread
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
    """The best of many subsets that no exchange of one or two columns improves: often the best of all.

    Single columns are swapped while the loss falls, from several starts; the best subset is kicked and improved again.
    Where columns are few a short exact search follows: if that proves the subset best of all the search ends, with
    status "optimal". If not, the columns that isometry pursuit leaves are searched, as the paper does, and there are
    many more kicks; then pairs are exchanged, each by the best pair of all, and the columns of the best subsets met,
    and all columns where they are few, are given to the short exact search again.

    Parameters
    ----------
    X, c, include, exclude, labels
        As in `greedy_search`.
    starts : int
        Starting subsets: the greedy one, one of locally largest volume (the best of a few pivoted QRs, then maxvol),
        then random ones.
    kicks : int
        How often the best is shaken, by replacing a few columns, and improved again. With 0 nothing is proved either.
    time_limit : float, optional
        Seconds after which the best so far is returned.
    rng : numpy.random.Generator or int, optional
        For the random starts and kicks. Without it the answer is always the same, whatever the order of the columns.
    memory : int
        For a source: bytes that columns brought home may take.

    Returns
    -------
    Search
        Unless the subset is proved its bound is the trivial one: no D columns have a loss below D. For many points it
        is the sum of what each point's own best columns must cost. Over a source a note says whether passes have shown
        that no single swap with any of its columns improves the answer.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0, 0.7, 3.0], [0.0, 1.0, 0.7, 0.0]])
    >>> exchange_search(X).indices.tolist()
    [0, 1]
    """
    starts, kicks = as_count(starts, 1, "starts"), as_count(kicks, 0, "kicks")
    deadline = as_deadline(time_limit)
    draws = np.random.default_rng(0 if rng is None else rng)
    if is_source(X):
        field = Field.over(X, include, exclude, labels, time_limit)
        return exchange_source(field, as_exponent(c), starts, kicks, draws, memory)
    goal, c = as_objective("isometry", c), as_exponent(c)
    candidates = as_candidates(X, include, exclude, labels).distinct(deadline)
    one, bounded = len(candidates.X) == 1, SMALLEST_EXPONENT <= c <= LARGEST_EXPONENT
    prover = partial(prove, candidates.X[0], c, include=candidates.include, workers=1) if one and bounded else None
    nodes = short(NODES, candidates.k)
    found, proof = improve(candidates.X, c, candidates.include, starts, kicks, draws, deadline, prover, nodes)
    status = "interrupted" if found.interrupted else "heuristic" if proof is None else proof.status
    status = "heuristic" if status in ("time", "nodes") else status
    bound = None
    if not one and not found.interrupted:
        try:
            bound = float(floors(candidates.X, c, candidates.include, deadline).sum())
        except KeyboardInterrupt:
            status = "interrupted"
    return candidates.answer(found.indices.tolist(), goal, "exchange", status, found.descents, lower_bound=bound)


def short(nodes: int, D: int) -> int:
    """So many nodes up to D = 10, fewer beyond, where each takes longer."""
    return max(1, min(nodes, 100 * nodes // D**2))


def improve(
    X: Array,
    c: float,
    include: Sequence[int],
    starts: int,
    kicks: int,
    rng: np.random.Generator,
    deadline: float,
    prover: Callable[..., Proof] | None,
    nodes: int,
    watch: Watch | None = None,
) -> tuple[Found, Proof | None]:
    """The exchange search on X (n, D, P), with which the exact one begins: the subset, and the last try to prove it.

    `prover` is `prove` for these columns, to be told a start and limits, at most `nodes`; without it, or kicks, nothing
    is proved.
    """
    began = time.perf_counter()
    _, D, P = X.shape

    def kicked(starts: int, kicks: int, begin: NDArray[np.intp] | None = None) -> Found:
        share = SHARE if D <= MANY else LARGE_SHARE
        limit = None if deadline == np.inf else max(began + share * (deadline - began) - time.perf_counter(), 0.0)
        return local_search(
            X, c, include=include, starts=starts, kicks=kicks, rng=rng, time_limit=limit, watch=watch, begin=begin
        )

    prover, few = prover if kicks else None, P * D**2 <= FEW
    early = (min(starts, QUICK[0]), min(kicks, QUICK[1])) if prover else (starts, kicks)
    found, proof = kicked(*early), None
    if prover is None or found.interrupted or not found.log_loss < LARGEST_LOG:
        return found, None
    if few:
        found, proof = _tried(found, prover, nodes, began + PROOF_SHARE * (deadline - began))
        if found.interrupted or proof.status in CLOSED:
            return found, proof
    try:
        if P * D**2 <= SEVERAL and D <= LARGE and time.perf_counter() < deadline:
            found = _with_pursuit(X[0], c, found, include, kicks // 3, deadline)
    except KeyboardInterrupt:
        return replace(found, interrupted=True), proof
    more = kicked(starts - early[0], kicks - early[1], found.indices)
    found = replace(more, descents=found.descents + more.descents, seen=more.seen + found.seen)
    if found.interrupted:
        return found, proof
    return _recombined(X[0], c, found, include, prover if few else None, proof, nodes, deadline)


def _with_pursuit(X: Array, c: float, found: Found, include: Sequence[int], kicks: int, deadline: float) -> Found:
    """Search among the columns to which isometry pursuit gives weight, the paper's way, then swap with all."""
    try:
        left = None if deadline == np.inf else PRUNED_SHARE * (left_until(deadline) or 0.0)
        pursuit = isometry_pursuit(X, c, time_limit=left)
    except RangeError:
        return found  # normalized lengths leave float64
    most = len(X) * (len(X) + 1) // 2
    some = np.union1d(pursuit.tied if len(pursuit.tied) <= most else pursuit.support, include).astype(np.intp)
    fixed = np.array(include, np.int32)
    inside = np.searchsorted(some, fixed).tolist()
    limit = None if deadline == np.inf else PRUNED_SHARE * max(deadline - time.perf_counter(), 0.0)
    pruned = np.ascontiguousarray(X[:, some])
    if np.linalg.matrix_rank(pruned) < len(X):
        return found
    best = local_search(
        pruned, c, include=inside, starts=QUICK[0], kicks=kicks, rng=np.random.default_rng(0), time_limit=limit
    )
    if best.interrupted:
        raise KeyboardInterrupt
    met = replace(best, indices=some[best.indices], seen=tuple(some[list(best.seen)].tolist()))
    swapped = swap_descent(np.ascontiguousarray(X.T), _behind(fixed, met), range(len(fixed), len(X)), c, deadline)
    seen, descents = found.seen + met.seen, found.descents + met.descents
    return _better(replace(found, seen=seen, descents=descents), *swapped)


def _recombined(
    X: Array,
    c: float,
    found: Found,
    include: Sequence[int],
    prover: Callable[..., Proof] | None,
    proof: Proof | None,
    nodes: int,
    deadline: float,
) -> tuple[Found, Proof | None]:
    """Exchange pairs, then give the columns met first, and where there are few all of them, to a short exact search;
    again while that helps. `proof` is what that came to before.
    """
    columns, fixed = np.ascontiguousarray(X.T), np.array(include, np.int32)
    before = np.inf
    try:
        while found.log_loss < before - 1e-9 and time.perf_counter() < deadline:
            before = found.log_loss
            if prover is not None:
                best, loss = pair_descent(columns, _behind(fixed, found), len(fixed), c, before, deadline)
                found = _better(found, best, loss)
            some = np.union1d(found.seen[:POOL], found.indices).astype(np.intp)
            place = partial(np.searchsorted, some)
            search = partial(branch_and_bound, np.ascontiguousarray(X[:, some]), c, include=place(fixed), workers=1)
            among, _ = _tried(
                replace(found, indices=place(found.indices)), search, min(nodes, short(NODES, len(X))), deadline
            )
            found = replace(among, indices=some[among.indices])
            found = _better(
                found, *swap_descent(columns, _behind(fixed, found), range(len(fixed), len(X)), c, deadline)
            )
            new = proof is None or found.log_loss < np.log(proof.loss) - 1e-9
            if prover is not None and new and not found.interrupted:
                found, proof = _tried(found, prover, nodes, deadline)
            if found.interrupted or (proof is not None and proof.status in CLOSED):
                break
    except KeyboardInterrupt:
        found = replace(found, interrupted=True)
    return found, proof


def _tried(found: Found, search: Callable[..., Proof], nodes: int, until: float) -> tuple[Found, Proof]:
    """A short exact search from the subset found, and the better of both."""
    limit = None if until == np.inf else max(until - time.perf_counter(), 0.0)
    proof = search(found.indices, node_limit=nodes, time_limit=limit)
    found = replace(found, interrupted=proof.status == "interrupted")
    return _better(found, proof.indices, float(np.log(proof.loss))), proof


def _better(found: Found, subset: NDArray[np.integer], log_loss: float) -> Found:
    if log_loss >= found.log_loss:
        return found
    return replace(found, indices=np.sort(subset).astype(np.intp), log_loss=log_loss)


def _behind(fixed: Subset, found: Found) -> Subset:
    """The subset, with the columns that must be in first."""
    return np.concatenate([fixed, np.setdiff1d(found.indices, fixed)]).astype(np.int32)
