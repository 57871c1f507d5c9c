"""Tasks for one pass over all columns: find the best column to add, those that may improve a subset, and equal ones.

Let O be the columns that stay and M_O = Σ x xᵀ over them, with eigenvalues e_1 = 0 and e_2 ≤ e_3 ≤ …, those that are
not zero. When a column x is added, the eigenvalues μ of M_O + x xᵀ interlace, e_a ≤ μ_a ≤ e_(a+1). If y is the distance
of x from span O,

    μ_1 ≤ β = y² / (1 + ‖O⁺x‖²),        μ_max ≥ max(‖x‖², e_max)

(Rayleigh quotients of the inverse Gram matrix and of the Gram matrix). So the loss with x is below a limit only if β is
above one threshold and ‖x‖² below another, and both are known before the pass. Let B = X_S⁺, b = Bx, g = B Bᵀ, and let
ρ be the distance of x from span S. Then one product (2k × rows) is enough for all k swaps: if column i leaves,

    y_i² = b_i²/g_ii + ρ²,        ‖O_i⁺x‖² = ‖b‖² − 2 (b_i/g_ii) (g b)_i + (b_i/g_ii)² (g²)_ii.

With as many columns as rows, ρ = 0. With fewer, most columns are nearly as far from span O as they are long, and β
excludes few of them, but `SwapBounds` excludes many (swap_bounds.py).

Columns that pass both tests are evaluated by the kernels: in the process that reads the block (greedy), or after they
are loaded (swaps). Everything is computed in float64, so only the rounding of float64 must be considered, whatever the
precision of the columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from isopursuit._types import Array, Indices
from isopursuit.backend import namespace, on_host
from isopursuit.loss.penalty import LARGEST_LOG, eigenvalue_of_loss, log_penalty, loss_above, loss_below, to_loss
from isopursuit.rank import spectrum
from isopursuit.search._swap import SwapKernel
from isopursuit.search.passes import DeadlineTask, OutOfTimeError, on_same_device, pieces, usable
from isopursuit.search.settings import TIE
from isopursuit.search.swap_bounds import ROUNDING, SwapBounds
from isopursuit.sources.tasks import Screen, Transform
from isopursuit.sources.topk import TopK

TINY = 1e-300  # a threshold of β that every column passes (derived: the smallest normal float64 is 2e-308)
MANY_POSITIONS = 64  # for more picked columns one threshold holds for all positions: one for each takes k⁴ (guess)
SLACK = 1e-9  # relative slack of thresholds for rounding (chosen: far above the rounding of float64)


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
    """The first pass: a screen by ‖z‖ alone, without products rows × rows."""

    def measured(self, block: Any) -> Any:
        """‖z‖² of every column, three times: what the screen computes for K = I."""
        parts = [namespace(z).einsum("dp,dp->p", z, z) for _, z in pieces(block, self.transform)]
        squares = np.concatenate(parts) if isinstance(parts[0], np.ndarray) else namespace(parts[0]).cat(parts)
        return namespace(squares).stack([squares, squares, squares])


# ------------------------------------------------------------------------------------------------------ one column more


@dataclass(frozen=True)
class BestColumn:
    """The best column to add: its number, its entries (D,) and the log-loss with it; number −1 if there is none."""

    log_loss: float = np.inf
    index: int = -1
    values: Array | None = None
    columns: int = 0


@dataclass(frozen=True)
class BestAddition(DeadlineTask):
    """The column with the least log-loss when added to the `others` (k, D). Ties go to the lowest number.

    Only log-losses below `limit` count. Past the deadline it raises `OutOfTimeError`.
    """

    others: Array
    c: float
    transform: Transform
    excluded: Indices
    limit: float = np.inf

    def __call__(self, block: Any, first: int) -> BestColumn:
        """The best of one block."""
        best = BestColumn(columns=block.shape[1])
        asked = self
        for start, z in pieces(block, self.transform):
            found = asked.among(z, first + start)
            best = self.merge(best, found)
            asked = asked.after(best)
        return best

    def among(self, z: Any, first: int) -> BestColumn:
        """Apply the thresholds, then the kernel to the columns that pass."""
        least, shares, most = self.thresholds
        xp = namespace(z)
        squares = on_host(xp.einsum("dp,dp->p", z, z))
        can = usable(squares, first, self.excluded) & (squares <= most)
        if least > 0:
            inside, leak = (xp.einsum("dp,dp->p", v, v) for v in (on_same_device(F, z) @ z for F in shares))
            off = squares - on_host(inside)
            can &= off >= least * (1 + on_host(leak)) * (1 - SLACK) - 1e-14 * squares.max(initial=0.0)
        where = np.flatnonzero(can)
        k = len(self.others)
        if len(where) == 0:
            return BestColumn()
        if k == 0:
            found, value = self.alone(squares[where])
            if not value < self.limit:
                return BestColumn()
            column = z[:, int(where[found])]
            return BestColumn(value, first + int(where[found]), np.asarray(on_host(column), dtype=np.float64).copy())
        few = on_host(z[:, where] if isinstance(z, np.ndarray) else z[:, on_same_device(where, z)]).T
        columns = np.ascontiguousarray(np.concatenate([self.others, few]))
        chosen = np.arange(k, dtype=np.int32)
        swaps = SwapKernel(columns, self.c, self.deadline, k + 1)
        found, value = swaps.add(chosen, self.limit, -1)
        if swaps.late:
            raise OutOfTimeError
        return BestColumn() if found < 0 else BestColumn(value, first + int(where[found - k]), columns[found].copy())

    def alone(self, squares: Array) -> tuple[int, float]:
        """The best single column, from the lengths alone."""
        values = log_penalty(np.sqrt(squares), self.c)
        least = float(values.min())
        return int(np.argmax(values <= least + TIE * max(abs(least), 1.0))), least

    @property
    def thresholds(self) -> tuple[float, tuple[Array, Array], float]:
        """The least β, the matrices that map x to its coordinates in span O and to O⁺x, and the largest ‖x‖²."""
        k, D = self.others.shape
        nothing = np.zeros((0, D))
        if self.limit > LARGEST_LOG:
            return 0.0, (nothing, nothing), np.inf
        if k == 0:
            return (
                0.0,
                (nothing, nothing),
                eigenvalue_of_loss(float(np.exp(self.limit)) * (1 + SLACK), self.c) * (1 + SLACK),
            )
        u, s, vt = np.linalg.svd(self.others, full_matrices=False)
        excess = float(np.exp(self.limit)) * (1 + SLACK) - (k + 1)
        middle = middle_excess(s[::-1] ** 2, self.c)
        least = 1 / eigenvalue_of_loss(1 + max(excess - middle, 0.0), self.c)
        most = eigenvalue_of_loss(1 + max(excess, 0.0), self.c) * (1 + SLACK)
        return least, (vt, (u / np.maximum(s, 1e-150)) @ vt), most

    def merge(self, one: BestColumn, other: BestColumn) -> BestColumn:
        """The better one. Ties go to the lower number."""
        if other.index < 0 or one.index < 0:
            found = one if other.index < 0 else other
        else:
            tie = abs(one.log_loss - other.log_loss) <= TIE * max(abs(min(one.log_loss, other.log_loss)), 1.0)
            found = min(one, other, key=lambda best: best.index if tie else best.log_loss)
        return replace(found, columns=one.columns + other.columns)

    def after(self, answer: BestColumn) -> BestAddition:
        """The task with the best loss so far, up to a tie, as its limit."""
        if answer.index < 0:
            return self
        return replace(self, limit=min(self.limit, limit_with_ties(answer.log_loss)))


def limit_with_ties(log_loss: float) -> float:
    """A limit slightly above this log-loss, so that equal log-losses are below it."""
    return log_loss + 2 * TIE * max(abs(log_loss), 1.0)


def middle_excess(e: Array, c: float) -> float:
    """The least excess loss, Σ (h − 1), of the eigenvalues between the first and the last after a column is added.

    e has the k eigenvalues of the columns before, ascending: e_2, …, e_(k+1) in the interlacing above.
    """
    above = loss_above(e[:-1], c).sum()
    return float(above + loss_below(e[1:], c).sum() + (loss_above(e[-1:], c).sum()))


# ------------------------------------------------------------------------------------------------------------- one swap


@dataclass(frozen=True)
class SwapCandidates:
    """The columns that may improve a subset if they replace one of its columns.

    `basis` (k, rows) is an orthonormal basis of span S. `products` (2k, k) maps coordinates in it to b and g b.
    `diagonals` (2, k) are those of g and g². `least` (k,) has the threshold of β for each position, infinite if no
    column can improve the subset there. A column's key is its largest β/least; with `bounds`, it is 1 plus the relative
    distance of its least bound below `loss`. Columns with keys above 1 may improve; at most `room` of them are loaded.
    """

    basis: Array
    products: Array
    diagonals: Array
    least: Array
    most: float
    transform: Transform
    excluded: Indices
    room: int
    loss: float = np.inf
    bounds: SwapBounds | None = None
    bar: float = 1 - SLACK

    @classmethod
    def into(
        cls, subset: Array, free: range, c: float, log_loss: float, transform: Transform, excluded: Indices, room: int
    ) -> SwapCandidates:
        """The task for the columns `subset` (rows, k) with this log-loss; those at positions `free` may be replaced."""
        rows, k = subset.shape
        U, s, Wt = np.linalg.svd(subset, full_matrices=False)
        s = np.maximum(s, 1e-150)
        B, g = Wt.T / s, (Wt.T / s**2) @ Wt
        least = np.full(k, np.inf)
        most = np.inf
        if log_loss > LARGEST_LOG:
            least[free] = TINY
        else:
            excess = float(np.exp(log_loss)) - k
            most = eigenvalue_of_loss(1 + excess, c) * (1 + SLACK)
            # eigenvalues without a column interlace those with it, which gives one lower threshold for all positions
            e = s[::-1] ** 2
            lowest = float(loss_above(e[:-1], c).sum() + loss_below(e[2:], c).sum())
            few = k <= MANY_POSITIONS
            for i in free:
                middle = middle_excess(spectrum(np.delete(subset, i, axis=1))[::-1] ** 2, c) if few else lowest
                if (left := excess - middle) > 0:
                    least[i] = 1 / eigenvalue_of_loss(1 + left, c)
        diagonals = np.stack([np.diag(g), np.einsum("ij,ij->i", g, g)])
        bounds = SwapBounds.of(subset, c, log_loss) if k < rows else None
        products = np.concatenate([B, g @ B])
        return cls(U.T, products, diagonals, least, most, transform, excluded, room, to_loss(log_loss), bounds)

    @property
    def work(self) -> int:
        """Multiplications for one column: coordinates, and two sets of products with them."""
        k, rows = self.basis.shape
        return rows**3 if k == rows else 2 * k * (rows + 3 * k)

    def __call__(self, block: Any, first: int) -> TopK:
        """Those of one block."""
        keys = np.concatenate([self.keys(z, first + start) for start, z in pieces(block, self.transform)])
        which = np.flatnonzero(keys > 1 - SLACK)
        return TopK.pick(block, first, which, keys[which], self.room, self.bar)

    def keys(self, z: Any, first: int) -> Array:
        """The key of every column; 0 for columns that are too long or excluded."""
        xp = namespace(z)
        squares = on_host(xp.einsum("dp,dp->p", z, z))
        if self.bounds is not None:
            places = np.flatnonzero(np.isfinite(self.least))
            low = self.bounds(z)[on_same_device(places, z)]
            key = 1 + (self.loss - on_host(xp.amin(low, 0))) / self.loss if len(places) else np.zeros(len(squares))
        else:
            key = self.ratios(z)
        return np.where(usable(squares, first, self.excluded) & (squares <= self.most), key, 0.0)

    def ratios(self, z: Any) -> Array:
        """The largest β/least of every column."""
        xp = namespace(z)
        k = len(self.basis)
        q = on_same_device(self.basis, z) @ z
        both = on_same_device(self.products, z) @ q
        b, gb = both[:k], both[k:]
        diagonal, square = (on_same_device(row, z)[:, None] for row in self.diagonals)
        total = xp.einsum("dp,dp->p", b, b)
        share = b / diagonal
        reach = share * share * square
        leak = 1 + xp.clip(total * (1 - SLACK) - 2 * share * gb + reach * (1 - SLACK), 0.0, None)
        off = b * share
        if k < len(z):
            squares = xp.einsum("dp,dp->p", z, z)
            off = off + xp.clip(squares - xp.einsum("dp,dp->p", q, q), 0.0, None) + ROUNDING * squares
        with np.errstate(over="ignore"):  # infinity is larger than 1, as it should be
            return on_host(xp.amax(off / (leak * on_same_device(self.least, z)[:, None]), 0))

    def merge(self, one: TopK, other: TopK) -> TopK:
        """The best of both."""
        return one.joined(other)

    def after(self, answer: TopK) -> SwapCandidates:
        """The task without columns whose keys are below those that already fill the room."""
        return replace(self, bar=max(self.bar, answer.bar))
