"""One pass of the convex program over all columns: which to load, and bounds that show whether one was missed.

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
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.linalg import EPS, namespace, on_host
from isopursuit._core.types import Array, Indices
from isopursuit.data._matrix import LARGEST
from isopursuit.sources import _screen
from isopursuit.sources.tasks import BadEntries, SameTask, TopK, Transform, doubled, on_same_device, pieces, true

LARGEST_SINGLE = 1e30  # lengths above this or below its inverse are computed again in float64 (derived: limit is 1e38)
# √q is computed again in float64 if it is above 1 by less than this many rounding errors (derived: then q − 1 has two
# digits where it is not)
UNDECIDED = 100.0
LEAST_QUOTA = 256  # columns that every block of a cluster may send (derived: as many as are screened at once)


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
    bad: BadEntries = field(default_factory=BadEntries)


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
