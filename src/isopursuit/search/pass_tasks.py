"""Tasks for one pass over all columns: find the best column to add, those that may improve a subset, and equal ones.

Both searches use the lower bounds of bounds.py. Greedy search evaluates the columns that the bounds do not exclude in
the process that reads the block; those that may improve a subset by a swap are loaded and tried.

**One product for each pick.** Let Q be an orthonormal basis of span S, in the order of the picks. The bounds need ‖x‖²,
‖Qᵀx‖² and ‖S⁺x‖² = ‖R⁻¹Qᵀx‖², S = QR. A pick adds one column to Q, so only one row of QᵀX is new. `Coordinates` has
the rows that are known, for as many picks as memory allows; the others are computed again in each pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.backend import namespace, on_host
from isopursuit._core.types import Array, Indices
from isopursuit.loss.penalty import to_loss
from isopursuit.search._swap import SwapKernel
from isopursuit.search.bounds import AdditionBounds, SwapBounds
from isopursuit.search.passes import DeadlineTask, OutOfTimeError, pieces, usable
from isopursuit.search.settings import TIE
from isopursuit.sources.tasks import Screen, Transform, on_same_device
from isopursuit.sources.topk import TopK, copied_rows

FIRST_BATCH = 16  # columns evaluated first, those of the least bounds (derived: as many as one kernel call is worth)
GROWTH = 4  # factor by which later batches grow: all columns take few calls, and little is evaluated in vain (chosen)


@dataclass(frozen=True)
class FirstEqual:
    """The number of the first column that is equal, up to sign, to each of `few` (k, D); −1 if there is none."""

    few: Array
    transform: Transform
    excluded: Indices

    def __call__(self, block: Any, first: int) -> Indices:
        """Those of one block."""
        found = np.full(len(self.few), -1, dtype=np.intp)
        largest = np.abs(self.few).argmax(axis=1)
        for start, z in pieces(block, self.transform):
            squares = on_host(namespace(z).einsum("dp,dp->p", z, z))
            here = usable(squares, first + start, self.excluded)
            for j in np.flatnonzero(found < 0).tolist():
                x, row = self.few[j], int(largest[j])
                where = np.flatnonzero(here & (np.abs(on_host(z[row])) == abs(x[row])))
                some = on_host(z[:, where] if isinstance(z, np.ndarray) else z[:, on_same_device(where, z)]).T
                equal = (some == x).all(axis=1) | (some == -x).all(axis=1)
                if equal.any():
                    found[j] = first + start + int(where[equal.argmax()])
        return found

    def merge(self, one: Indices, other: Indices) -> Indices:
        """The lower numbers."""
        return np.where((one < 0) | ((other >= 0) & (other < one)), other, one)

    def after(self, answer: Indices) -> FirstEqual:
        """The same task: earlier answers do not shorten the rest of the pass."""
        return self


@dataclass(frozen=True)
class Lengths(Screen):
    """The first pass: a screen by ‖z‖ alone, without products rows × rows, that draws columns at random."""

    def measured(self, block: Any) -> Any:
        """‖z‖² of every column, three times: what the screen computes for K = I."""
        parts = [namespace(z).einsum("dp,dp->p", z, z) for _, z in pieces(block, self.transform)]
        squares = np.concatenate(parts) if isinstance(parts[0], np.ndarray) else namespace(parts[0]).cat(parts)
        return namespace(squares).stack([squares, squares, squares])

    def keys(self, sigma: Any, first: int) -> Any:
        """A pseudo-random number in [0, 1) for each column: a hash of its number (splitmix64)."""
        z = (first + np.arange(len(sigma))) * -0x61C8864680B583EB  # products wrap around in int64
        z = (z ^ ((z >> 30) & (2**34 - 1))) * -0x40A7B892E31B1A47
        z = (z ^ ((z >> 27) & (2**37 - 1))) * -0x6B2FB644ECCEEE15
        z = z ^ ((z >> 31) & (2**33 - 1))
        keys = on_same_device(z / 2.0**64 + 0.5, sigma)
        return namespace(sigma).where(sigma > -np.inf, keys, -np.inf)


# ------------------------------------------------------------------------------------------------------ one column more


@dataclass(frozen=True)
class BestColumn:
    """The best column to add: the log-loss with it, its number and its entries (D,); number −1 if there is none."""

    log_loss: float = np.inf
    index: int = -1
    values: Array | None = None


@dataclass(frozen=True)
class Coordinates:
    """What is known about all columns: ‖x‖², (P,), and the first `known` rows of QᵀX, in an array (most, P)."""

    squares: Array
    rows: NDArray[Any]
    known: int = -1  # if the squares are not known either


@dataclass(frozen=True)
class BestAddition(DeadlineTask):
    """The column with the least log-loss when added to the `others` (rows, m). Ties go to the lowest number.

    Only log-losses below `limit` count. Past the deadline it raises `OutOfTimeError`. `basis` is Qᵀ (m, rows),
    `inverse` is R⁻¹ (m, m), `smallest` the smallest singular value of the others.
    """

    others: Array
    basis: Array
    inverse: Array
    smallest: float
    additions: AdditionBounds
    transform: Transform
    excluded: Indices
    limit: float = np.inf
    coordinates: Coordinates | None = field(default=None, repr=False)

    @classmethod
    def to(
        cls, others: Array, basis: Array, c: float, transform: Transform, excluded: Indices, known: Coordinates | None
    ) -> BestAddition:
        """The task for these others, with an orthonormal basis (m, rows) of their span."""
        inside = basis @ others
        U, s, Vt = np.linalg.svd(inside)
        s = np.maximum(s, 1e-150)
        e = np.sort(s**2)[None]
        additions = AdditionBounds.of(e, e, c)
        smallest = float(s.min(initial=np.inf))
        return cls(others, basis, (Vt.T / s) @ U.T, smallest, additions, transform, excluded, coordinates=known)

    @property
    def work(self) -> int:
        """Multiplications for one column."""
        m, rows = self.basis.shape
        return 2 * rows + m * (m + rows if self.coordinates is None else m)

    def __call__(self, block: Any, first: int) -> BestColumn:
        """The best of one block."""
        best, asked = BestColumn(), self
        for start, z in pieces(block, self.transform, exact=False):
            found = asked.among(block, z, first, start)
            best = self.merge(best, found)
            asked = asked.after(best)
        return best

    def among(self, block: Any, z: Any, first: int, start: int) -> BestColumn:
        """Bound all columns of a piece, and evaluate those that the bounds do not exclude."""
        squares, inside = self.measured(block, z, first, start)
        m, rows = self.basis.shape
        # rounding of a coordinate, relative to ‖x‖: a sum of `rows` products, and of m in R⁻¹Qᵀx
        rounding = (rows + m) * float(np.finfo(inside.dtype).eps)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            off = np.clip(squares - np.einsum("mp,mp->p", inside, inside, dtype=np.float64), 0.0, None)
            solved = self.inverse.astype(inside.dtype) @ inside
            leak = np.sqrt(np.einsum("mp,mp->p", solved, solved, dtype=np.float64))
            leak = np.clip(leak - rounding * np.sqrt(m * squares) / self.smallest, 0.0, None)
            inverse = (1 + leak**2) / (off + 4 * rounding * np.sqrt(m) * squares)
            low = self.additions(squares, inverse[None])[0]
        can = usable(squares, first + start, self.excluded)
        which = np.flatnonzero(can & (low < to_loss(self.limit)))
        which = which[np.argsort(low[which], kind="stable")]
        best, task, batch, done = BestColumn(), self, FIRST_BATCH, 0
        while done < len(which) and low[which[done]] < to_loss(task.limit):
            some = np.sort(which[done : done + batch])
            best = self.merge(best, task.evaluated(self.exactly(block, start + some), first + start + some))
            task = task.after(best)
            done, batch = done + batch, GROWTH * batch
        return best

    def measured(self, block: Any, z: Any, first: int, start: int) -> tuple[Array, NDArray[Any]]:
        """‖x‖² and Qᵀx of the columns z (rows, p), those of a block from `start` on; stored if there is room."""
        known = self.coordinates
        columns = slice(first + start, first + start + z.shape[1])
        have = 0 if known is None else known.known
        new = on_host(on_same_device(self.basis[max(have, 0) :].astype(on_host(z[:0]).dtype), z) @ z)
        if known is None or have < 0:
            wide = z
            if isinstance(z, np.ndarray) and z.dtype != np.float64:  # a bound by ‖x‖² has no room for the rounding of z
                wide = self.transform.apply(np.asarray(block[:, start : start + z.shape[1]], dtype=np.float64))
            squares = on_host(namespace(z).einsum("dp,dp->p", wide, wide))
        else:
            squares = known.squares[columns]
        if known is None:
            return squares, new
        if have < 0:
            known.squares[columns], have = squares, 0
        room = len(known.rows) - have
        known.rows[have : have + len(new), columns] = new[:room]
        return squares, np.concatenate([known.rows[:have, columns], new], dtype=known.rows.dtype)

    def exactly(self, block: Any, which: Indices) -> Array:
        """These columns of a block in float64, (rows, p)."""
        return self.transform.apply(copied_rows(block, on_same_device(which, block)).T.astype(np.float64))

    def evaluated(self, x: Array, numbers: Indices) -> BestColumn:
        """The best of the columns x (rows, p) with these ascending numbers."""
        m = len(self.basis)
        # the loss depends only on the coordinates of x in span S and on the length of its residual
        rest, inside = x, np.zeros((m, x.shape[1]))
        for _ in range(2):  # twice, so that the residual is orthogonal to the basis up to rounding
            part = self.basis @ rest
            inside, rest = inside + part, rest - self.basis.T @ part
        few = np.vstack([inside, np.linalg.norm(rest, axis=0)])
        columns = np.concatenate([np.vstack([self.basis @ self.others, np.zeros(m)]), few], axis=1)
        kernel = SwapKernel(np.ascontiguousarray(columns.T), self.additions.c, self.deadline, m + 1)
        found, value = kernel.add(np.arange(m, dtype=np.int32), self.limit)
        if kernel.late:
            raise OutOfTimeError
        return BestColumn() if found < 0 else BestColumn(value, int(numbers[found - m]), x[:, found - m].copy())

    def merge(self, one: BestColumn, other: BestColumn) -> BestColumn:
        """The better one. Ties go to the lower number."""
        if other.index < 0 or one.index < 0:
            return one if other.index < 0 else other
        tie = abs(one.log_loss - other.log_loss) <= TIE * max(abs(min(one.log_loss, other.log_loss)), 1.0)
        return min(one, other, key=lambda best: best.index if tie else best.log_loss)

    def after(self, answer: BestColumn) -> BestAddition:
        """The task with the best loss so far, up to a tie, as its limit."""
        if answer.index < 0:
            return self
        return replace(self, limit=min(self.limit, limit_with_ties(answer.log_loss)))


def limit_with_ties(log_loss: float) -> float:
    """A limit slightly above this log-loss, so that equal log-losses are below it."""
    return log_loss + 2 * TIE * max(abs(log_loss), 1.0)


# ------------------------------------------------------------------------------------------------------------- one swap


@dataclass(frozen=True)
class SwapCandidates:
    """The columns that may improve a subset if they replace one of its columns, at a position `free`.

    A column's key is minus the least bound of its swaps. Columns with keys above minus the loss of the subset may
    improve it. Of those with keys above `bar`, at most `room` of them are loaded.
    """

    bounds: SwapBounds
    free: range
    transform: Transform
    excluded: Indices
    room: int
    bar: float

    @property
    def work(self) -> int:
        """Multiplications for one column: coordinates, and two sets of products with them."""
        k, rows = self.bounds.basis.shape
        return 2 * k * (rows + 3 * k)

    def __call__(self, block: Any, first: int) -> TopK:
        """Those of one block."""
        keys = np.concatenate([self.keys(z, first + start) for start, z in pieces(block, self.transform)])
        return TopK.pick(block, first, None, keys, self.room, self.bar)

    def keys(self, z: Any, first: int) -> Array:
        """The key of every column; minus infinity for columns that are excluded."""
        xp = namespace(z)
        squares = on_host(xp.einsum("dp,dp->p", z, z))
        low = on_host(xp.amin(self.bounds(z)[self.free.start : self.free.stop], 0))
        return np.where(usable(squares, first, self.excluded), -low, -np.inf)

    def merge(self, one: TopK, other: TopK) -> TopK:
        """The best of both."""
        return one.joined(other)

    def after(self, answer: TopK) -> SwapCandidates:
        """The task without columns whose keys are below those that already fill the room."""
        return replace(self, bar=max(self.bar, answer.bar))
