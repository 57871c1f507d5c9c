"""Sources and tasks: what a source must have, and a computation on every block of columns in one pass, merged.

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

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.linalg import EPS, namespace, on_host
from isopursuit._core.types import Array, Indices
from isopursuit.data._matrix import LARGEST
from isopursuit.errors import NonFiniteError, RangeError
from isopursuit.loss.normalize import log_lengths
from isopursuit.sources import _screen
from isopursuit.sources.topk import TopK, copied_rows, true

LARGEST_SINGLE = 1e30  # lengths above this or below its inverse are computed again in float64 (derived: limit is 1e38)
# √q is computed again in float64 if it is above 1 by less than this many rounding errors (derived: then q − 1 has two
# digits where it is not)
UNDECIDED = 100.0
LEAST_QUOTA = 256  # columns that every block of a cluster may send (derived: as many as are screened at once)
SHOWN = 5  # entries that are not finite in a message (chosen)
# entries of columns that are transformed at once (measured by benchmarks.constants: a quarter takes as long, four times
# as many 1.2 times as long)
PIECE = 2**18
DEVICE_PIECE = 2**26  # the same on a device (derived: half a GB of float64)


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


class Source(Protocol):
    """Columns in any storage. `dtype` is the precision of the screening, float32 or float64."""

    @property
    def shape(self) -> tuple[int, int]:
        """(D₀, P): rows and columns."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision of the blocks."""
        ...

    def fold(self, task: Task) -> Any:
        """The task's answer for all columns, in one pass."""
        ...

    def take(self, indices: Indices) -> Array:
        """These columns, (D₀, m), float64."""
        ...


class SameTask:
    """A task that earlier answers do not change."""

    def after(self, answer: Any) -> Self:
        """The same task."""
        return self


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
    log_scale: float = 0.0
    angle: float = 0.0
    each: bool = False
    scale: float = 1.0

    @property
    def plain(self) -> bool:
        """Whether z = x."""
        return self.a is None and self.A is None and not self.each and self.scale == 1

    def apply(self, values: Any) -> Any:
        """A u, (D, m), for columns (D₀, m) of an array or a tensor."""
        xp = namespace(values)
        if self.a is not None and self.b is not None:
            values = values * on_same_device(self.a[:, None], values) - on_same_device(self.b[:, None], values)
        if self.each:
            # summed row by row, so that equal columns remain equal to the last digit in any memory layout
            values = np.ascontiguousarray(values) if xp is np else values
            squares = (values * values).sum(0)
            # columns too short to be squared keep their length
            values = values * (self.scale / xp.sqrt(xp.where(squares > LARGEST**-2, squares, xp.ones_like(squares))))
        elif self.scale != 1:
            values = values * self.scale
        return values if self.A is None else on_same_device(self.A, values) @ values

    def factors(self, lengths: Any) -> tuple[Any, float]:
        """S for every length (0 for zero columns), and the largest logarithm of a normalized length."""
        xp = namespace(lengths)
        alive = lengths > 1 / LARGEST
        if self.c is None:
            longest = float(lengths.max()) if len(lengths) else 0.0
            return alive * xp.ones_like(lengths), float(np.log(longest)) if longest > 0 else -np.inf
        logs = log_lengths(lengths, self.c)
        with np.errstate(divide="ignore", invalid="ignore"):
            s = xp.exp(logs - self.log_scale) / lengths
        return xp.where(alive, s, 0.0), float(logs.max()) if len(logs) else -np.inf

    def columns(self, values: Array) -> Array:
        """The columns of the convex program, (D, m), for columns (D₀, m)."""
        z = self.apply(values)
        return z * self.factors(np.sqrt(np.einsum("dp,dp->p", z, z)))[0]


def on_same_device(values: NDArray[Any], z: Any) -> Any:
    """The values on the device of the columns z, or in memory if they are there."""
    if isinstance(z, np.ndarray):
        return values
    return namespace(z).from_numpy(np.ascontiguousarray(values)).to(z.device)


def doubled(values: Any) -> Any:
    """An array or a tensor in float64, on its device."""
    return np.asarray(values, dtype=np.float64) if isinstance(values, np.ndarray) else values.double()


def pieces(block: Any, transform: Transform) -> Iterator[tuple[int, Any]]:
    """The block's columns after the transform, a few at a time and on their device: (first, (D, m)), float64."""
    width = max((PIECE if isinstance(block, np.ndarray) else DEVICE_PIECE) // block.shape[0], 256)
    for start in range(0, block.shape[1], width):
        yield start, transform.apply(doubled(block[:, start : start + width]))


@dataclass(frozen=True)
class BadEntries:
    """The first entries that are not finite or too large, as (row, column, value), and how many columns have such."""

    entries: tuple[tuple[int, int, float], ...] = ()
    columns: int = 0

    @classmethod
    def of(cls, values: NDArray[Any], numbers: Indices) -> BadEntries:
        """Those of the first of the columns with these numbers, all of which have one."""
        where = np.argwhere(~np.isfinite(values))[:SHOWN]
        if len(where) == 0:
            where = np.argwhere(np.abs(values) == np.abs(values).max())[:1]
        entries = tuple((int(i), int(numbers[j]), float(values[i, j])) for i, j in where)
        return cls(entries, len(numbers))

    @classmethod
    def among(cls, block: Any, first: int, columns: Indices | None = None) -> BadEntries:
        """Those of a block, in the given columns or in those with entries that are not finite."""
        if columns is None:
            sizes = np.abs(on_host(block)).max(axis=0)
            columns = np.flatnonzero(~np.isfinite(sizes) | (sizes == sizes.max()))
        return cls.of(copied_rows(block, on_same_device(columns[:SHOWN], block)).T, first + columns)

    def __add__(self, other: BadEntries) -> BadEntries:
        return BadEntries((self.entries + other.entries)[:SHOWN], self.columns + other.columns)

    def refuse(self) -> None:
        """Raise an error if there are any."""
        if self.columns == 0:
            return
        some = ", ".join(f"({i}, {j}): {value}" for i, j, value in self.entries)
        if all(np.isfinite(value) for _, _, value in self.entries):
            raise RangeError(
                f"Columns such as {some.partition(',')[0]}… have lengths above {LARGEST:g}, whose squares overflow "
                "float64. Rescale the data."
            )
        raise NonFiniteError(
            f"There are NaN or infinite entries in {self.columns} columns; the first, as (row, column): {some}. "
            "Drop those columns, or fill in the entries."
        )


@dataclass(frozen=True)
class Screened:
    """The result of one pass: bounds over all columns, and the columns to load.

    Attributes
    ----------
    zero, short : int
        Numbers of columns that are zero, and nonzero but too short to be squared.
    top : float
        No column has √q above this.
    longest : float
        The largest logarithm of a normalized length.
    largest : TopK
        The columns of largest σ; no other column has σ above `largest.left`.
    bad : BadEntries
        Entries that are not finite.
    """

    zero: int
    short: int
    top: float
    longest: float
    largest: TopK
    bad: BadEntries = BadEntries()


@dataclass(frozen=True)
class Screen:
    """One pass with the inverse K, as described above.

    `room` columns with the largest σ are loaded, where K is most wrong. Columns whose keys are below the `bar` are not
    loaded. At most the share `quota` of a block is loaded, since a cluster would otherwise send everything. Columns
    with numbers in `excluded` (sorted) count as zero columns.
    """

    K: Array
    F: Array | None
    transform: Transform
    room: int
    bar: float = -np.inf
    quota: float = 1.0
    excluded: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.intp))

    def __call__(self, block: Any, first: int) -> Screened:
        """Screen the columns `block` (D₀, m), the first of which is number `first`."""
        measured = self.measured(block)
        squares = measured[0]
        bad = true(~(squares <= LARGEST**2))
        if len(bad):
            nothing = TopK.pick(block, first, None, on_host(squares), 0, np.inf)
            found = BadEntries.among(block, first, on_host(bad))
            return Screened(0, 0, np.inf, -np.inf, nothing, found)
        gone = true(squares <= LARGEST**-2)
        _, root, sigma, longest = self.judged(block, first, *measured)
        keys = self.keys(sigma, first)
        short = int(self.transform.apply(doubled(block[:, gone])).any(0).sum())
        room = min(self.room, max(LEAST_QUOTA, int(self.quota * len(sigma))))
        largest = TopK.pick(block, first, None, keys, room, self.bar)
        return Screened(
            zero=len(gone) - short,
            short=short,
            top=float(root.max()) if len(root) else 0.0,
            longest=longest,
            largest=replace(largest, room=self.room),
        )

    def judged(self, block: Any, first: int, squares: Any, fz: Any, zkz: Any) -> tuple[Any, Any, Any, float]:
        """s, and the worst-case √q and σ of every column, and the largest logarithm of a normalized length."""
        xp = namespace(squares)
        a, b = np.searchsorted(self.excluded, [first, first + block.shape[1]])
        squares[self.excluded[a:b] - first] = 0.0
        kind = xp.finfo(block.dtype)
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
                _, fz, zkz = self.measured(doubled(block[:, again]))
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
            zero=one.zero + other.zero,
            short=one.short + other.short,
            top=max(one.top, other.top),
            longest=max(one.longest, other.longest),
            largest=one.largest.joined(other.largest),
            bad=one.bad + other.bad,
        )

    def after(self, answer: Screened) -> Screen:
        """The screen with a higher bar: columns below the smallest key of a full room need not be copied."""
        return replace(self, bar=max(self.bar, answer.largest.bar))

    def keys(self, sigma: Any, first: int) -> Any:
        """By which columns are loaded: σ, minus infinity for zero and excluded columns."""
        return sigma

    def measured(self, block: Any) -> Any:
        """‖z‖², ‖F z‖² and zᵀK z of every column, (3, m); only ‖z‖² is in float64 for any block."""
        # matrices of size 1, so that single precision does not overflow
        scale = float(np.abs(self.K).max())
        other = scale if self.F is None else float(np.abs(self.F).max()) or 1.0
        kind = np.float32 if namespace(block).finfo(block.dtype).bits < 64 else np.float64
        K = np.ascontiguousarray(self.K / scale, dtype=kind)
        F = None if self.F is None else np.ascontiguousarray(self.F / other, dtype=kind)
        if self.transform.plain:
            found = measure(block, F, K)
        else:
            parts = [_measured_as(block, u, F, K) for _, u in pieces(block, self.transform)]
            xp = namespace(block)
            found = xp.concatenate(parts, 1) if parts else xp.zeros((3, 0))
        found[1] *= other * other
        found[2] *= scale
        return found

    def errors(self, eps: float) -> tuple[float, float]:
        """η / (s‖z‖) and δ / (s‖z‖)² for a precision."""
        F = self.K if self.F is None else self.F
        n = (self.K.shape[0] + 2) * eps / 2
        gamma = n / (1 - n)
        return gamma * _absolute_norm(F), gamma * _absolute_norm(self.K)


@dataclass(frozen=True)
class Listed(SameTask):
    """The numbers of all columns with σ ≥ −reach, block by block."""

    screen: Screen
    reach: float

    def __call__(self, block: Any, first: int) -> list[Indices]:
        """The answer for one block."""
        _, _, sigma, _ = self.screen.judged(block, first, *self.screen.measured(block))
        return [first + on_host(true(sigma >= -self.reach))]

    def merge(self, one: list[Indices], other: list[Indices]) -> list[Indices]:
        """Both lists."""
        return one + other


def _absolute_norm(F: Array) -> float:
    """An upper bound of ‖|F|‖₂: the root of the largest row sum times the largest column sum."""
    return float(np.sqrt(np.linalg.norm(F, 1) * np.linalg.norm(F, np.inf)))


def measure(z: Any, F: NDArray[Any] | None, K: NDArray[Any]) -> Any:
    """‖z‖², ‖F z‖² and zᵀK z of columns z (D, m), in float64, (3, m); F is K if None.

    The products F z and K z are in the precision of z.
    """
    if isinstance(z, np.ndarray):
        return _screen.measure(z, F, K)
    torch = namespace(z)
    Kz = on_same_device(K, z) @ z
    leverage = (Kz * z).sum(0, dtype=torch.float64)
    Fz = Kz if F is None else on_same_device(F, z) @ z
    squares, q = (torch.linalg.vector_norm(one, dim=0, dtype=torch.float64) ** 2 for one in (z, Fz))
    return torch.stack([squares, q, leverage])


def _measured_as(block: Any, u: Any, F: NDArray[Any] | None, K: NDArray[Any]) -> Any:
    """As `measure` for float64 columns u, but the products are in the precision of the block."""
    with np.errstate(over="ignore"):  # such lengths are computed again in float64 (`Screen.judged`)
        rounded = cast("Any", u).astype(block.dtype) if isinstance(u, np.ndarray) else u.to(block.dtype)
    found = measure(rounded, F, K)
    found[0] = (u * u).sum(0)
    return found
