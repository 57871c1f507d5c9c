"""What is asked of every block of columns in one pass, and how the blocks' answers become one.

A column enters the convex program as s·z, z = A (a∘x − b), with s its normalized length over its length. At weights
with M = Σ w x xᵀ, K = M⁻¹ and F = Yᵀ K (F = K for isometry pursuit), one pass computes

    √q = s‖F z‖,        leverage k = s² zᵀK z,        σ = (√q − 1)/√k.

σ² is what an exact coordinate step on the column takes off f where σ > 0; where σ < 0 the column is in no optimal
solution once f(w) − min f < σ² (design.py, `Evaluation.tied`). So the columns of largest σ are those to bring home,
and the largest σ left behind says whether anything that matters was.

**Rounding.** With u the unit roundoff of the block's precision, z rounded once, F rounded once and a sum of D
products in any order, |fl(F z) − F z| ≤ γ |F||z| componentwise, γ = (D+2)u / (1 − (D+2)u). Lengths, s and sums of
squares are float64. Hence |√q̂ − √q| ≤ η = γ ‖|F|‖₂ s‖z‖, and |k̂ − k| ≤ δ = γ ‖|K|‖₂ s²‖z‖². Every column is
reported at its worst, √q̂ + η and (√q̂ + η − 1)/√(k̂ + δ); columns of float32 data for which η could decide are
computed again in float64, where they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from isopursuit.normalize import Normalization, log_lengths
from isopursuit.sources import _screen

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

LARGEST = 1e140  # lengths whose squares leave float64
SINGLE = 1e30  # lengths beyond this, or below its inverse, are no matter for float32
UNDECIDED = 100.0  # √q within so many times η of 1 is computed again in float64
EPS = float(np.finfo(np.float64).eps)
LEAST = 256  # columns that may come along from any block
POSITIONS = 5  # of entries that are not finite, told in a message


class Task(Protocol):
    """A question for every block of columns, and the way to put two answers together."""

    def __call__(self, block: Any, first: int) -> Any:
        """The answer for the columns `block` (D₀, m), the first of which is number `first`."""
        ...

    def merge(self, one: Any, other: Any) -> Any:
        """The answer for both."""
        ...

    def after(self, answer: Any) -> Task:
        """What remains to be asked of the next block, once so much is known."""
        ...


@dataclass(frozen=True)
class Transform:
    """z = A (a∘x − b) for a column x, and s = the normalized length over the length of z times e^(−log_scale)."""

    a: Array | None = None
    b: Array | None = None
    A: Array | None = None
    c: float | None = None  # None: lengths stay as they are
    normalization: Normalization = "symmetric"
    log_scale: float = 0.0

    def apply(self, values: Array) -> Array:
        """A (a∘x − b), (D, m), for columns (D₀, m)."""
        if self.a is not None and self.b is not None:
            values = values * self.a[:, None] - self.b[:, None]
        return values if self.A is None else self.A @ values

    def logs(self, lengths: Array) -> Array:
        """Logarithms of the new lengths."""
        if self.c is None:
            with np.errstate(divide="ignore"):
                return np.log(lengths)
        return log_lengths(lengths, self.c, self.normalization)

    def factors(self, lengths: Array) -> tuple[Array, float]:
        """S for every length (0 for no length at all), and the largest logarithm of a new length."""
        alive = lengths > 1 / LARGEST
        if self.c is None:
            longest = float(lengths.max(initial=0.0))
            return alive * 1.0, float(np.log(longest)) if longest > 0 else -np.inf
        logs = self.logs(lengths)
        with np.errstate(divide="ignore", invalid="ignore"):
            s = np.exp(logs - self.log_scale) / lengths
        return np.where(alive, s, 0.0), float(logs.max(initial=-np.inf))

    def columns(self, values: Array) -> Array:
        """What enters the program, (D, m), for columns (D₀, m)."""
        z = self.apply(values)
        return z * self.factors(np.sqrt(np.einsum("dp,dp->p", z, z)))[0]


@dataclass(frozen=True)
class Screened:
    """What one pass found: bounds over all columns, and the columns of largest σ.

    Attributes
    ----------
    columns, zero : int
        How many columns were seen, and how many of them have no length.
    top : float
        No column has √q above this.
    left : float
        No column that was left behind has σ above this.
    near : int
        How many columns have σ ≥ −reach.
    longest : float
        The largest logarithm of a normalized length.
    parts : tuple
        (indices, σ, values), (m,), (m,) and (m, D₀): the columns that come home, as they were stored.
    bad : tuple
        (row, column, value) of the first entries that are not finite, and `spoiled` how many columns have such.
    """

    columns: int
    zero: int
    top: float
    left: float
    near: int
    longest: float
    parts: tuple[tuple[Indices, Array, NDArray[Any]], ...]
    bad: tuple[tuple[int, int, float], ...] = ()
    spoiled: int = 0

    @property
    def count(self) -> int:
        """How many columns come home."""
        return sum(len(sigma) for _, sigma, _ in self.parts)

    def trimmed(self, room: int) -> Screened:
        """At most `room` columns, those of largest σ, in one part."""
        if self.count <= room and len(self.parts) == 1:
            return self
        indices, sigma = (np.concatenate([part[i] for part in self.parts]) for i in (0, 1))
        kept, left = best(sigma, room)
        values = np.empty((len(kept), self.parts[0][2].shape[1]), dtype=self.parts[0][2].dtype)
        starts = np.cumsum([0, *(len(part[1]) for part in self.parts)])
        places = np.searchsorted(kept, starts)
        for (_, _, part), start, a, b in zip(self.parts, starts, places, places[1:], strict=False):
            values[a:b] = part[kept[a:b] - start]
        return replace(self, left=max(self.left, left), parts=((indices[kept], sigma[kept], values),))


@dataclass(frozen=True)
class Screen:
    """One pass at the inverse K: the question of this module.

    `room` is how many columns come home, `reach` the √(f − lower bound) known before the pass. A column with σ ≤ `bar`
    stays behind, and of a block at most the share `quota` comes along (clusters would else send everything).
    """

    K: Array
    F: Array | None
    transform: Transform
    room: int
    reach: float = np.inf
    bar: float = -np.inf
    quota: float = 1.0

    def __call__(self, block: Any, first: int) -> Screened:
        """Screen the columns `block` (D₀, m), the first of which is number `first`."""
        squares, fz, zkz = self.measured(block)
        if not squares.max(initial=0.0) <= LARGEST**2:
            return self._spoiled(block, first, squares)
        s, root, sigma, longest = self.judged(block, squares, fz, zkz)
        kept, left = best(sigma, min(self.room, max(LEAST, int(self.quota * len(sigma)))), self.bar)
        return Screened(
            columns=block.shape[1],
            zero=int(np.count_nonzero(s == 0)),
            top=float(root.max(initial=0.0)),
            left=left,
            near=int(np.count_nonzero(sigma >= -self.reach)),
            longest=longest,
            parts=((first + kept, sigma[kept], np.ascontiguousarray(block[:, kept].T)),),
        )

    def judged(self, block: Any, squares: Array, fz: Array, zkz: Array) -> tuple[Array, Array, Array, float]:
        """S, √q and σ of every column, the latter two at their worst, and the largest logarithm of a new length."""
        kind = np.finfo(block.dtype)
        lengths = np.sqrt(squares)
        s, longest = self.transform.factors(lengths)
        t = s * lengths
        root = s * np.sqrt(fz)
        k = s * s * zkz
        spread, depth = self.errors(float(kind.eps))
        eta = spread * t
        if kind.bits < 64:
            unsure = (root > 1 - eta) & (root < 1 + UNDECIDED * eta)
            if lengths.max(initial=0.0) > SINGLE or lengths.min(initial=1.0) < 1 / SINGLE:
                unsure |= (lengths > SINGLE) | ((lengths < 1 / SINGLE) & (s > 0))
            again = np.flatnonzero(unsure)
            if len(again):
                _, fz, zkz = self.measured(np.asarray(block[:, again], dtype=np.float64))
                root[again], k[again] = s[again] * np.sqrt(fz), s[again] ** 2 * zkz
                eta[again] = self.errors(EPS)[0] * t[again]
        root += eta
        k += depth * t * t
        with np.errstate(divide="ignore", invalid="ignore"):
            sigma = np.where(s > 0, (root - 1) / np.sqrt(k), -np.inf)
        return s, root, sigma, longest

    def merge(self, one: Screened, other: Screened) -> Screened:
        """Both blocks in one; columns are let go once there are twice as many as there is room for."""
        both = Screened(
            columns=one.columns + other.columns,
            zero=one.zero + other.zero,
            top=max(one.top, other.top),
            left=max(one.left, other.left),
            near=one.near + other.near,
            longest=max(one.longest, other.longest),
            parts=one.parts + other.parts,
            bad=(one.bad + other.bad)[:POSITIONS],
            spoiled=one.spoiled + other.spoiled,
        )
        return both.trimmed(self.room) if both.count > 2 * self.room else both

    def after(self, answer: Screened) -> Screen:
        """Columns below all that fill the room already need not come along."""
        if len(answer.parts) > 1 or answer.count < self.room:
            return self
        return replace(self, bar=max(self.bar, float(answer.parts[0][1].min())))

    def measured(self, block: Any) -> Array:
        """‖z‖², ‖F z‖² and zᵀK z of every column, (3, m)."""
        scale = float(np.abs(self.K).max())
        other = scale if self.F is None else float(np.abs(self.F).max()) or 1.0
        K = np.ascontiguousarray(self.K / scale, dtype=block.dtype)
        F = None if self.F is None else np.ascontiguousarray(self.F / other, dtype=block.dtype)
        t = self.transform
        if isinstance(block, np.ndarray):
            found = _screen.measure(block, t.a, t.b, t.A, F, K)
        else:
            found = block.measure(t.a, t.b, t.A, F, K)
        found[1] *= other * other
        found[2] *= scale
        return found

    def errors(self, eps: float) -> tuple[float, float]:
        """η / (s‖z‖) and δ / (s‖z‖)² for a precision."""
        F = self.K if self.F is None else self.F
        n = (self.K.shape[0] + 2) * eps / 2
        gamma = n / (1 - n)
        return gamma * _absolute_norm(F), gamma * _absolute_norm(self.K)

    def _spoiled(self, block: NDArray[Any], first: int, squares: Array) -> Screened:
        columns = np.flatnonzero(~(squares <= LARGEST**2))
        where = np.argwhere(~np.isfinite(block[:, columns[:1000]]))[:POSITIONS]
        if len(where) == 0:
            where = np.argwhere(np.abs(block[:, columns[:1000]]) > 0)[:1]
        bad = tuple((int(i), int(first + columns[j]), float(block[i, columns[j]])) for i, j in where)
        empty = np.zeros(0)
        return Screened(
            columns=block.shape[1],
            zero=0,
            top=np.inf,
            left=np.inf,
            near=block.shape[1],
            longest=-np.inf,
            parts=((empty.astype(np.intp), empty, np.zeros((0, block.shape[0]), dtype=block.dtype)),),
            bad=bad,
            spoiled=len(columns),
        )


@dataclass(frozen=True)
class Listed:
    """The numbers of all columns with σ ≥ −reach, block by block."""

    screen: Screen

    def __call__(self, block: Any, first: int) -> list[Indices]:
        """Those of one block."""
        _, _, sigma, _ = self.screen.judged(block, *self.screen.measured(block))
        return [first + np.flatnonzero(sigma >= -self.screen.reach)]

    def merge(self, one: list[Indices], other: list[Indices]) -> list[Indices]:
        """One after the other."""
        return one + other

    def after(self, answer: list[Indices]) -> Listed:
        """The same."""
        return self


def _absolute_norm(F: Array) -> float:
    """An upper bound of ‖|F|‖₂: the root of the largest row sum times the largest column sum."""
    return float(np.sqrt(np.linalg.norm(F, 1) * np.linalg.norm(F, np.inf)))


def best(sigma: Array, room: int, bar: float = -np.inf) -> tuple[Indices, float]:
    """Where the `room` largest above the bar are, ascending, and the largest of the others."""
    above = np.flatnonzero(sigma > bar)
    if len(above) > room:
        order = np.argpartition(-sigma[above], room)
        return np.sort(above[order[:room]]), float(sigma[above[order[room]]])
    return above, bar if len(above) < len(sigma) else -np.inf


@dataclass(frozen=True)
class Moments:
    """How many columns, the sum of x − x₀ and the sum of (x − x₀)(x − x₀)ᵀ, for an x₀ near the mean."""

    origin: Array

    def __call__(self, block: Any, first: int) -> Summed:
        """The block's own sums."""
        D, m = block.shape
        total, gram = np.zeros(D), np.zeros((D, D))
        for start in range(0, m, 8192):
            z = np.asarray(block[:, start : start + 8192], dtype=np.float64) - self.origin[:, None]
            total += z.sum(axis=1)
            gram += z @ z.T
        bad = ()
        if not (np.isfinite(total).all() and np.isfinite(gram).all()):
            where = np.argwhere(~np.isfinite(np.asarray(block[:, :])))[:POSITIONS]
            bad = tuple((int(i), int(first + j), float(block[i, j])) for i, j in where) or ((0, first, LARGEST),)
        return Summed(m, total, gram, bad)

    def merge(self, one: Summed, other: Summed) -> Summed:
        """Sums add up."""
        with np.errstate(invalid="ignore"):
            total, gram = one.total + other.total, one.gram + other.gram
        return Summed(one.columns + other.columns, total, gram, (one.bad + other.bad)[:POSITIONS])

    def after(self, answer: Summed) -> Moments:
        """The same."""
        return self


@dataclass(frozen=True)
class Summed:
    """What `Moments` adds up."""

    columns: int
    total: Array
    gram: Array
    bad: tuple[tuple[int, int, float], ...] = ()
