"""One scan of all columns with lower bounds: the best column to add, and the columns that may improve a subset.

Let O be the columns that stay, G_O their Gram matrix with eigenvalues e_1 ≤ … ≤ e_m, and y the distance of x from their
span. The Gram matrix with x is G', and

    tr G'⁻¹ = tr G_O⁻¹ + 1/β,        β = y² / (1 + ‖O⁺x‖²).

**Diagonal blocks.** For c ≥ FULL_EXPONENT and d = c²/4 the function f(λ) = h(λ) − d/λ is convex, since λ³ h''(λ)/2 is
least at λ = 1. For smaller c ≥ CONVEX_EXPONENT h itself is convex, and d = 0 is used. The trace of a convex function
does not rise if G' is replaced by its diagonal blocks G_O and ‖x‖², so

    l(O + x) ≥ l(O) + h(‖x‖²) + d (1/β − 1/‖x‖²).

Near the ideal the bound is equal to the loss up to terms of third order.

**Ends of the spectrum**, for every c. The eigenvalues μ of G' interlace, e_(a−1) ≤ μ_a ≤ e_a. The first is at most β,
and the last at least ‖x‖² (Rayleigh quotients of G'⁻¹ and of G'). With h − 1 = h₋ + h₊, the parts below and above 1,

    l(O + x) ≥ m + 1 + Σ_(a<m) h₊(e_a) + Σ_(a>1) h₋(e_a) + h₋(β) + h₊(max(‖x‖², e_m)).

**Swaps.** If x replaces the i-th column of S, O is S without it. Let B = S⁺, b = Bx, g = B Bᵀ, and let ρ be the
distance of x from span S. Then products with k × k matrices are enough for all positions i:

    y_i² = b_i²/g_ii + ρ²,        ‖O_i⁺x‖² = ‖b‖² − 2 (b_i/g_ii) (g b)_i + (b_i/g_ii)² (g²)_ii.

**One product for each addition.** Let Q be an orthonormal basis of span O, in the order of the picks. The bounds need
‖x‖², ‖Qᵀx‖² and ‖O⁺x‖² = ‖R⁻¹Qᵀx‖², O = QR. A pick adds one column to Q, so only one row of QᵀX is new. `Coordinates`
has the rows that are known, for as many picks as memory allows; the others are computed again in each pass.

Everything is written for NumPy arrays and tensors alike. The columns that a bound does not exclude are evaluated where
the block is read (additions), or loaded and tried (swaps).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.linalg import namespace, on_host
from isopursuit._core.types import Array, Indices
from isopursuit.loss.penalty import (
    CONVEX_EXPONENT,
    FULL_EXPONENT,
    LARGEST,
    LARGEST_LOG,
    ROUNDING,
    STATED,
    loss_above,
    loss_below,
    to_loss,
)
from isopursuit.search._swap import SwapKernel
from isopursuit.search.settings import BATCH, WORK
from isopursuit.sources.screening import Screen
from isopursuit.sources.tasks import OutOfTimeError, TopK, Transform, copied_rows, on_same_device, pieces, usable


@dataclass(frozen=True)
class AdditionBounds:
    """The bounds above for columns that are added to one or several sets of others: arrays (sets, 1), or numbers.

    `loss` is l(O), `inner` the constant part of the second bound, `top` is h₊(e_m). If the losses are too large for
    bounds (`usable` is False), a column gets −β, which excludes nothing: the columns of the largest β come first.
    """

    c: float
    loss: Any
    inner: Any
    top: Any
    usable: bool = True

    @classmethod
    def of(cls, low: Array, high: Array, c: float) -> AdditionBounds:
        """The bounds for others whose ascending eigenvalues are between these (sets, m), known up to rounding."""
        sets, m = low.shape
        nothing = np.zeros((sets, 1))
        if m == 0:
            return cls(c, nothing, nothing + 1, nothing)
        error = 4 * m * np.finfo(np.float64).eps * high[:, -1:]  # of the Gram matrix and of LAPACK
        with np.errstate(over="ignore"):
            below = loss_below(high + error, c)
            above = loss_above(low - error, c)
        inner = m + 1 + above[:, :-1].sum(axis=1, keepdims=True) + below[:, 1:].sum(axis=1, keepdims=True)
        loss = m + (above + below).sum(axis=1, keepdims=True)
        return cls(c, loss, inner, above[:, -1:], bool(np.log(loss).max() < LARGEST_LOG))

    def __call__(self, squares: Any, inverse: Any) -> Any:
        """The bound for columns with these ‖x‖² (p,) and 1/β (sets, p)."""
        xp = namespace(inverse)
        if not self.usable:
            return -1 / inverse
        loss, inner, top = (on_same_device(one, inverse) for one in (self.loss, self.inner, self.top))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            above = loss_above(squares, self.c)
            bound = inner + loss_below(1 / inverse, self.c) + xp.maximum(above, top)
            if self.c >= CONVEX_EXPONENT:
                blocks = loss + 1 + above + loss_below(squares, self.c)
                if self.c >= FULL_EXPONENT:
                    blocks = blocks + self.c**2 / 4 * xp.clip(inverse - 1 / squares, 0.0, None)
                bound = xp.maximum(bound, blocks)
            # where a bound overflows, so may all losses: the cap lets their logarithms decide
            bound = xp.where(xp.isnan(bound), -np.inf, xp.clip(bound, None, LARGEST))
        return bound * (1 - STATED)


@dataclass(frozen=True)
class SwapBounds:
    """Lower bounds for the swaps into one subset S = U diag(s) Wᵀ.

    `basis` is Uᵀ (k, rows), and `products` (2k, k) maps coordinates in it to b and g b. `diagonals` (2, k) has g_ii and
    (g²)_ii.
    """

    basis: Array
    products: Array
    diagonals: Array
    additions: AdditionBounds

    @classmethod
    def of(cls, subset: Array, c: float) -> SwapBounds:
        """Bounds for the columns `subset` (rows, k)."""
        k = subset.shape[1]
        U, s, Wt = np.linalg.svd(subset, full_matrices=False)
        s = np.maximum(s, 1e-150)
        W, G = Wt.T, (Wt.T * s**2) @ Wt
        g = (W / s**2) @ Wt
        low, high = s[None, :0:-1] ** 2, s[None, -2::-1] ** 2  # without a column, eigenvalues interlace those with it
        if k > 1 and k**4 <= WORK:  # otherwise one bound on the eigenvalues serves all positions
            stays = np.nonzero(~np.eye(k, dtype=bool))[1].reshape(k, k - 1)
            low = high = np.linalg.eigvalsh(G[stays[:, :, None], stays[:, None, :]])  # without each column in turn
        additions = AdditionBounds.of(low, high, c)
        diagonals = np.stack([np.diag(g), np.einsum("ij,ij->i", g, g)])
        return cls(np.ascontiguousarray(U.T), np.concatenate([W / s, W / s**3]), diagonals, additions)

    def __call__(self, z: Any) -> Any:
        """A lower bound on the loss with each of the columns z (rows, m) at each position, (k, m)."""
        xp = namespace(z)
        k = len(self.basis)
        q = on_same_device(self.basis, z) @ z
        squares = xp.einsum("dp,dp->p", z, z)
        both = on_same_device(self.products, z) @ q
        b, gb = both[:k], both[k:]
        diagonal, square = (on_same_device(row, z)[:, None] for row in self.diagonals)
        off = xp.clip(squares - xp.einsum("dp,dp->p", q, q), 0.0, None)
        off = off + 4 * k * float(np.finfo(np.float64).eps) * squares  # the rounding of a squared length
        share = b / diagonal
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            leak = xp.clip(xp.einsum("dp,dp->p", b, b) * (1 - STATED) + share * (share * square - 2 * gb), 0.0, None)
            return self.additions(squares, (1 + leak) * (1 - STATED) / (share * b + off))


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
class BestAddition:
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
    deadline: float = np.inf

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
        best, task, batch, done = BestColumn(), self, BATCH, 0  # batches grow: all columns take few calls
        while done < len(which) and low[which[done]] < to_loss(task.limit):
            some = np.sort(which[done : done + batch])
            values = copied_rows(block, on_same_device(start + some, block))
            x = self.transform.apply(values.T.astype(np.float64))
            best = self.merge(best, task.evaluated(x, first + start + some))
            task = task.after(best)
            done, batch = done + batch, 4 * batch
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
        tie = abs(one.log_loss - other.log_loss) <= ROUNDING * max(abs(min(one.log_loss, other.log_loss)), 1.0)
        return min(one, other, key=lambda best: best.index if tie else best.log_loss)

    def after(self, answer: BestColumn) -> BestAddition:
        """The task with the best loss so far as its limit, slightly raised, so that equal losses are below it."""
        if answer.index < 0:
            return self
        return replace(self, limit=min(self.limit, answer.log_loss + 2 * ROUNDING * max(abs(answer.log_loss), 1.0)))


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
