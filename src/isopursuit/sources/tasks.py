"""Tasks: a computation on every block of columns in one pass, and how the answers of blocks are merged.

A column enters the convex program as s·z, z = A (a∘x − b), with s its normalized length over its length. At weights
with M = Σ w x xᵀ, K = M⁻¹ and F = Yᵀ K (F = K for isometry pursuit), one pass computes

    √q = s‖F z‖,        leverage k = s² zᵀK z,        σ = (√q − 1)/√k.

If σ > 0, an exact coordinate step on the column decreases f by σ². If σ < 0, the column is in no optimal solution once
f(w) − min f < σ² (design.py, `Evaluation.tied`). So the columns with the largest σ are loaded, and the largest σ of the
others shows whether a relevant column was missed.

**Rounding.** With u the unit roundoff of the block's precision, z rounded once, F rounded once and a sum of D
products in any order, |fl(F z) − F z| ≤ γ |F||z| componentwise, γ = (D+2)u / (1 − (D+2)u). Lengths, s and sums of
squares are float64. Hence |√q̂ − √q| ≤ η = γ ‖|F|‖₂ s‖z‖, and |k̂ − k| ≤ δ = γ ‖|K|‖₂ s²‖z‖². Every column is
reported with its worst-case values √q̂ + η and (√q̂ + η − 1)/√(k̂ + δ). Columns of float32 data for which η could be
decisive are computed again in float64, on the same device.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.backend import namespace, on_host
from isopursuit._core.linalg import EPS
from isopursuit._core.types import Array, Indices
from isopursuit.data._matrix import LARGEST
from isopursuit.pursuit.normalize import Normalization, log_lengths
from isopursuit.sources import _screen
from isopursuit.sources.settings import LARGEST_SINGLE, LEAST_QUOTA, SHOWN, UNDECIDED
from isopursuit.sources.topk import TopK, true


class Task(Protocol):
    """A computation on every block of columns, and a way to merge two answers."""

    def __call__(self, block: Any, first: int) -> Any:
        """The answer for the columns `block` (D₀, m), the first of which is number `first`."""
        ...

    def merge(self, one: Any, other: Any) -> Any:
        """The answer for both."""
        ...

    def after(self, answer: Any) -> Task:
        """The task for the next block, given the answer so far."""
        ...


@dataclass(frozen=True)
class Transform:
    """z = A u for a column x, and s = the normalized length over the length of z times e^(−log_scale).

    u = scale · (a∘x − b), or u = scale · (a∘x − b) / ‖a∘x − b‖ if `each` column has length 1. `angle` is the sine of
    the angle by which rounding may turn the space that A projects onto.
    """

    a: Array | None = None
    b: Array | None = None
    A: Array | None = None
    c: float | None = None  # None: lengths are not normalized
    normalization: Normalization = "symmetric"
    log_scale: float = 0.0
    angle: float = 0.0
    each: bool = False
    scale: float = 1.0

    def apply(self, values: Any) -> Any:
        """A u, (D, m), for columns (D₀, m) of an array or a tensor."""
        if self.a is not None and self.b is not None:
            values = values * self.a[:, None] - self.b[:, None]
        if self.each:
            # summed row by row, so that equal columns remain equal to the last digit in any memory layout
            values = values if namespace(values) is not np else np.ascontiguousarray(values)
            values = values * namespace(values).sqrt(self._factors((values * values).sum(0)))
        elif self.scale != 1:
            values = values * self.scale
        return values if self.A is None else self.A @ values

    def squares(self, block: Any) -> Any:
        """‖a∘x − b‖², (m,): the squared lengths before `each` and `scale`."""
        return measure(block, self.a, self.b, None, None, None)[0]

    def rescaled(self, found: Any, block: Any) -> Any:
        """Convert squares (…, m) of A (a∘x − b), measured for a block, to squares of A u."""
        return found * self._factors(self.squares(block)) if self.each else found * self.scale**2

    def _factors(self, squares: Any) -> Any:
        """‖u‖² / ‖a∘x − b‖² if each column has length 1; columns too short to be squared keep their length."""
        xp = namespace(squares)
        return self.scale**2 / xp.where(squares > LARGEST**-2, squares, xp.ones_like(squares))

    def factors(self, lengths: Any) -> tuple[Any, float]:
        """S for every length (0 for zero columns), and the largest logarithm of a normalized length."""
        xp = namespace(lengths)
        alive = lengths > 1 / LARGEST
        if self.c is None:
            longest = float(lengths.max()) if len(lengths) else 0.0
            return alive * xp.ones_like(lengths), float(np.log(longest)) if longest > 0 else -np.inf
        logs = log_lengths(lengths, self.c, self.normalization)
        with np.errstate(divide="ignore", invalid="ignore"):
            s = xp.exp(logs - self.log_scale) / lengths
        return xp.where(alive, s, 0.0), float(logs.max()) if len(logs) else -np.inf

    def columns(self, values: Array) -> Array:
        """The columns of the convex program, (D, m), for columns (D₀, m)."""
        z = self.apply(values)
        return z * self.factors(np.sqrt(np.einsum("dp,dp->p", z, z)))[0]


@dataclass(frozen=True)
class Screened:
    """The result of one pass: bounds over all columns, and the columns to load.

    Attributes
    ----------
    columns, zero, short : int
        Numbers of columns: all, zero, and nonzero but too short to be squared.
    top : float
        No column has √q above this.
    near : int
        How many columns have σ ≥ −reach.
    longest : float
        The largest logarithm of a normalized length.
    largest : TopK
        The columns of largest σ; no other column has σ above `largest.left`.
    drawn : TopK
        Columns drawn at random among those with √q > 1 − band.
    bad : tuple
        (row, column, value) of the first entries that are not finite; `bad_columns` counts the columns with such
        entries.
    """

    columns: int
    zero: int
    short: int
    top: float
    near: int
    longest: float
    largest: TopK
    drawn: TopK
    bad: tuple[tuple[int, int, float], ...] = ()
    bad_columns: int = 0


@dataclass(frozen=True)
class Screen:
    """One pass with the inverse K, as described above.

    `room` columns with the largest σ are loaded, where K is most wrong now, and as many random columns with
    √q > 1 − band, where it may be wrong next. `reach` is the √(f − lower bound) known before the pass. Columns whose
    keys are below the `bars` are not loaded. At most the share `quota` of a block is loaded, since a cluster would
    otherwise send everything. Columns with numbers in `excluded` (sorted) count as zero columns.
    """

    K: Array
    F: Array | None
    transform: Transform
    room: int
    reach: float = np.inf
    band: float = 0.0
    bars: tuple[float, float] = (-np.inf, -np.inf)
    quota: float = 1.0
    excluded: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.intp))

    def __call__(self, block: Any, first: int) -> Screened:
        """Screen the columns `block` (D₀, m), the first of which is number `first`."""
        squares, fz, zkz = self.measured(block)
        if not bool((squares <= LARGEST**2).all()):
            return self._with_bad_entries(block, first, on_host(squares))
        gone = true(squares <= LARGEST**-2)
        _, root, sigma, longest = self.judged(block, first, squares, fz, zkz)
        short = int(self.transform.apply(np.asarray(block[:, gone], dtype=np.float64)).any(axis=0).sum())
        room = min(self.room, max(LEAST_QUOTA, int(self.quota * len(sigma))))
        largest = TopK.pick(block, first, None, sigma, room, self.bars[0])
        near = true((root > 1 - self.band) & (sigma > -np.inf))
        drawn = TopK.pick(block, first, near, random_keys(first + near), room, self.bars[1])
        return Screened(
            columns=block.shape[1],
            zero=len(gone) - short,
            short=short,
            top=float(root.max()) if len(root) else 0.0,
            near=int((sigma >= -self.reach).sum()),
            longest=longest,
            largest=replace(largest, room=self.room),
            drawn=replace(drawn, room=self.room),
        )

    def judged(self, block: Any, first: int, squares: Any, fz: Any, zkz: Any) -> tuple[Any, Any, Any, float]:
        """s, and the worst-case √q and σ of every column, and the largest logarithm of a normalized length."""
        xp = namespace(squares)
        a, b = np.searchsorted(self.excluded, [first, first + block.shape[1]])
        squares[self.excluded[a:b] - first] = 0.0
        kind = np.finfo(block.dtype)
        lengths = xp.sqrt(squares)
        s, longest = self.transform.factors(lengths)
        t = s * lengths
        root = s * xp.sqrt(fz)
        k = s * s * zkz
        spread, depth = self.errors(float(kind.eps))
        eta = spread * t
        if kind.bits < 64:
            unsure = (root > 1 - eta) & (root < 1 + UNDECIDED * eta)
            unsure |= (lengths > LARGEST_SINGLE) | ((lengths < 1 / LARGEST_SINGLE) & (s > 0))
            again = true(unsure)
            if len(again):
                _, fz, zkz = self.measured(doubled(block, again))
                root[again], k[again] = s[again] * xp.sqrt(fz), s[again] ** 2 * zkz
                eta[again] = self.errors(EPS)[0] * t[again]
        root += eta
        k += depth * t * t
        with np.errstate(divide="ignore", invalid="ignore"):
            sigma = xp.where(s > 0, (root - 1) / xp.sqrt(k), -np.inf)
        return s, root, sigma, longest

    def merge(self, one: Screened, other: Screened) -> Screened:
        """The answer for both blocks."""
        return Screened(
            columns=one.columns + other.columns,
            zero=one.zero + other.zero,
            short=one.short + other.short,
            top=max(one.top, other.top),
            near=one.near + other.near,
            longest=max(one.longest, other.longest),
            largest=one.largest.joined(other.largest),
            drawn=one.drawn.joined(other.drawn),
            bad=(one.bad + other.bad)[:SHOWN],
            bad_columns=one.bad_columns + other.bad_columns,
        )

    def after(self, answer: Screened) -> Screen:
        """The screen with higher bars: columns below the smallest key of a full room need not be copied."""
        return replace(self, bars=(max(self.bars[0], answer.largest.bar), max(self.bars[1], answer.drawn.bar)))

    def measured(self, block: Any) -> Any:
        """‖z‖², ‖F z‖² and zᵀK z of every column, (3, m)."""
        found, t = self._measured_as_stored(block), self.transform
        if not t.each and t.scale == 1:
            return found
        if (
            np.finfo(block.dtype).bits < 64
        ):  # `judged` checks the lengths in the unit; these lengths must fit in float32 too
            odd = true((found[0] > LARGEST_SINGLE**2) | ((found[0] < LARGEST_SINGLE**-2) & (found[0] > 0)))
            if len(odd):
                found[:, odd] = self._measured_as_stored(doubled(block, odd))
        return t.rescaled(found, block)

    def _measured_as_stored(self, block: Any) -> Any:
        """The same for z = A (a∘x − b)."""
        scale = float(np.abs(self.K).max())
        other = scale if self.F is None else float(np.abs(self.F).max()) or 1.0
        K = np.ascontiguousarray(self.K / scale, dtype=block.dtype)
        F = None if self.F is None else np.ascontiguousarray(self.F / other, dtype=block.dtype)
        t = self.transform
        found = measure(block, t.a, t.b, t.A, F, K)
        found[1] *= other * other
        found[2] *= scale
        return found

    def errors(self, eps: float) -> tuple[float, float]:
        """η / (s‖z‖) and δ / (s‖z‖)² for a precision."""
        F = self.K if self.F is None else self.F
        n = (self.K.shape[0] + 2) * eps / 2
        gamma = n / (1 - n)
        return gamma * _absolute_norm(F), gamma * _absolute_norm(self.K)

    def _with_bad_entries(self, block: NDArray[Any], first: int, squares: Array) -> Screened:
        columns = np.flatnonzero(~(squares <= LARGEST**2))
        where = np.argwhere(~np.isfinite(block[:, columns[:1000]]))[:SHOWN]
        if len(where) == 0:
            where = np.argwhere(np.abs(block[:, columns[:1000]]) > 0)[:1]
        bad = tuple((int(i), int(first + columns[j]), float(block[i, columns[j]])) for i, j in where)
        nothing = TopK.pick(block, first, np.arange(0), np.zeros(0), self.room, -np.inf)
        return Screened(
            columns=block.shape[1],
            zero=0,
            short=0,
            top=np.inf,
            near=block.shape[1],
            longest=-np.inf,
            largest=nothing,
            drawn=nothing,
            bad=bad,
            bad_columns=len(columns),
        )


@dataclass(frozen=True)
class Listed:
    """The numbers of all columns with σ ≥ −reach, block by block."""

    screen: Screen

    def __call__(self, block: Any, first: int) -> list[Indices]:
        """The answer for one block."""
        _, _, sigma, _ = self.screen.judged(block, first, *self.screen.measured(block))
        return [first + on_host(true(sigma >= -self.screen.reach))]

    def merge(self, one: list[Indices], other: list[Indices]) -> list[Indices]:
        """Both lists."""
        return one + other

    def after(self, answer: list[Indices]) -> Listed:
        """The same task."""
        return self


def _absolute_norm(F: Array) -> float:
    """An upper bound of ‖|F|‖₂: the root of the largest row sum times the largest column sum."""
    return float(np.sqrt(np.linalg.norm(F, 1) * np.linalg.norm(F, np.inf)))


def measure(block: Any, a: Array | None, b: Array | None, A: Array | None, F: Any, K: Any) -> Any:
    """‖z‖², ‖F z‖² and zᵀK z for z = A (a∘x − b), (3, m): see `_screen.measure`."""
    if isinstance(block, np.ndarray):
        return _screen.measure(block, a, b, A, F, K)
    return block.measure(a, b, A, F, K)


def doubled(block: Any, columns: Any) -> Any:
    """Some columns of a block in float64, on the device of the block."""
    return np.asarray(block[:, columns], dtype=np.float64) if isinstance(block, np.ndarray) else block.doubled(columns)


def random_keys(numbers: Any) -> Any:
    """A pseudo-random number in [0, 1) for each column: a hash of its index (splitmix64), independent of the blocks."""
    z = numbers * -0x61C8864680B583EB  # products wrap around in int64
    z = (z ^ ((z >> 30) & (2**34 - 1))) * -0x40A7B892E31B1A47
    z = (z ^ ((z >> 27) & (2**37 - 1))) * -0x6B2FB644ECCEEE15
    z = z ^ ((z >> 31) & (2**33 - 1))
    return z / 2.0**64 + 0.5
