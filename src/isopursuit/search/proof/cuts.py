"""Cuts that exclude columns from every subset better than the incumbent, evaluated for all columns in one pass.

Every bound here is a sum over the columns of a subset S ⊇ S', where S' is included and m columns are missing:

    l(S) ≥ base + Σ_{p ∈ S∖S'} score_p        for every S better than the incumbent.

Hence base + (the m smallest scores) is a lower bound over all columns, and p is in no better subset if base + (the
m − 1 smallest scores) + score_p is not below the incumbent. There are three cuts:

- *tangent* of F(w) = tr q_κ(M(w)) − κ (log det G_S' + log det N(w)), convex in w (loss/envelope.py, _bound.pyx):
  score xᵀKx with K = q_κ'(M) − κ E N⁻¹Eᵀ; E is a basis of the complement of span S'. If fewer columns than rows are
  picked, the least majorants of the eigenvalues replace them (loss/majorant.py). The cut is valid for any w; here w
  comes from the relaxation of a few columns. If M(w) = I for some w (the columns surround the origin), then F = k and
  K = 0, and this cut excludes nothing.
- *pinched*: the loss is convex in the Gram matrix, so the loss of its diagonal blocks is at most that of the whole. The
  score is h₋(‖z_p‖²) + h₊(‖x_p‖²), where z is the residual of x off span S'. It excludes columns of unsuitable length.
- *frame* (pairs.py): the score is μ [(‖x‖² − 1)² + 2‖X_S'ᵀx‖²]. It excludes columns that are far from orthogonal to S'.

The mean of tangent and pinched is also a cut.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from isopursuit._types import Array, Indices
from isopursuit.backend import namespace, on_host
from isopursuit.loss.envelope import Relaxation
from isopursuit.loss.majorant import spread
from isopursuit.loss.penalty import loss_below
from isopursuit.search.passes import on_same_device, pieces, usable
from isopursuit.sources.tasks import Transform
from isopursuit.sources.topk import TopK

ROUNDING = 1e-12  # rounding error of a cut, relative to its terms (chosen: far above eps)
HUGE = 1e150  # larger squared lengths are replaced by this, so that their squares do not overflow (derived)


@dataclass(frozen=True)
class Cuts:
    """All cuts, one row each: pinched, frame, then two for each tangent, itself and its mean with the pinched cut.

    `bases` (J,) are the bases. `least` (J,) are the sums of the m − 1 smallest scores, −∞ if not yet known.
    """

    relaxation: Relaxation
    stiffness: float
    included: Array  # (j, D)
    complement: Array  # (D − j, D)
    missing: int
    bases: Array
    least: Array
    tangents: tuple[Array, ...] = ()
    condition: float = 1.0  # of the included columns

    @classmethod
    def initial(cls, included: Array, relaxation: Relaxation, stiffness: float, missing: int) -> Cuts:
        """The two cuts that need no w. Their scores are not negative, so `least` is at least 0."""
        j, D = included.shape
        k = j + missing
        _, s, vt = np.linalg.svd(included) if j else (None, np.zeros(0), np.eye(D))
        e, c = s**2, relaxation.c
        gram = included @ included.T - np.eye(j)
        below, above = loss_below(e * (1 + 1e-12), c), relaxation.convex_loss_above(e * (1 - 1e-12))
        bases = np.array([k + float(below.sum() + above.sum()), k + stiffness * float((gram**2).sum())])
        condition = float(s[0] / max(s[-1], np.finfo(np.float64).tiny)) if j else 1.0
        bases *= 1 - ROUNDING
        return cls(relaxation, stiffness, included, vt[j:], missing, bases, np.zeros(2), condition=condition)

    def with_tangent(self, w: Array, columns: Array, row: int) -> Cuts:
        """These cuts and, last, the tangent at the weights w of `columns`.

        The tangent at V diag(e) Vᵀ and R Rᵀ is a bound for any orthonormal V, any e and any triangular R, so errors of
        the factorizations only move the point of tangency. The scores xᵀKx have a rounding error below a few times
        D eps ‖K‖ ‖x‖², and K is lowered by as much.
        """
        relaxation, rounding = self.relaxation, 16 * len(columns) * float(np.finfo(np.float64).eps)
        weighted, k = (columns * w) @ columns.T, self.missing + len(self.included)
        e, V = np.linalg.eigh(weighted + self.included.T @ self.included)
        e = spread(np.maximum(e[::-1], 0.0), k) if k < len(e) else e[::-1]
        values, slopes = np.array([relaxation.envelope(float(one), row) for one in e]).T
        K = (V[:, ::-1] * slopes) @ V[:, ::-1].T
        K -= rounding * float(np.abs(slopes).max()) * np.eye(len(K))
        base = float((values - slopes * e)[:k].sum() + np.einsum("pi,ij,pj->", self.included, K, self.included))
        magnitude = float(np.abs(values[:k]).sum() + 2 * np.abs(slopes * e)[:k].sum())
        kappa = float(relaxation.rows[row, 0])
        if kappa > 0:
            whitened, logs, condition = self._whitened(weighted)
            if whitened is None:
                return self.with_tangent(w, columns, 0)  # without the log-det split
            s = np.linalg.svd(self.included, compute_uv=False)
            logs = np.array([*logs, *2 * np.log(s * (1 + rounding) + rounding * s.max(initial=0.0))])
            base -= kappa * float(logs.sum() - self.missing)
            K -= kappa * whitened.T @ whitened
            errors = (condition + self.condition) * np.linalg.norm(whitened, 2) ** 2
            K -= kappa * rounding * float(errors) * np.eye(len(K))
            magnitude += kappa * float(np.abs(logs).sum() + self.missing)
        K = (K + K.T) / 2
        base -= ROUNDING * magnitude
        kept = self.tangents[-1:]
        old = slice(2 + 2 * (len(self.tangents) - len(kept)), None)
        bases = np.concatenate([self.bases[:2], self.bases[old], [base, (base + self.bases[0]) / 2]])
        least = np.concatenate([self.least[:2], self.least[old], [-np.inf, -np.inf]])
        return replace(self, bases=bases, least=least, tangents=(*kept, K))

    def _whitened(self, weighted: Array) -> tuple[Array | None, Array, float]:
        """W with WᵀW = E N⁻¹Eᵀ, the logarithms whose sum is log det N, and a condition number of the solve.

        If fewer columns than rows are picked, N has the eigenvalues of its majorant. W is None if N is singular.
        """
        E = self.complement
        N = E @ weighted @ E.T
        if self.missing == len(E):
            try:
                R = np.linalg.cholesky(N)
            except np.linalg.LinAlgError:
                return None, np.zeros(0), 1.0
            whitened = np.asarray(solve_triangular(R, E, lower=True), dtype=np.float64)
            return whitened, 2 * np.log(np.diag(R)), float(np.linalg.cond(R))
        e, U = np.linalg.eigh(N)
        e = spread(np.maximum(e[::-1], 0.0), self.missing)
        if not e[-1] > ROUNDING * e[0]:
            return None, np.zeros(0), 1.0
        return (U[:, ::-1] / np.sqrt(e)).T @ E, np.log(e[: self.missing]), float(np.sqrt(e[0] / e[-1]))

    def bounds(self, values: Array) -> Array:
        """The best known bound on the loss of a subset with each of these columns."""
        known = np.isfinite(self.least)
        return (self.bases[known, None] + self.least[known, None] + self.scores(values)[known]).max(axis=0)

    def scores(self, z: Any) -> Array:
        """The scores of columns (D, m), with one row for each cut."""
        xp = namespace(z)
        squares = xp.einsum("dp,dp->p", z, z)
        # the error of the residual off the span of the included columns is `angle` times the column's length
        angle = 16 * len(z) * float(np.finfo(np.float64).eps) * self.condition
        off, along = (
            xp.einsum("dp,dp->p", v, v) for v in (on_same_device(F, z) @ z for F in (self.complement, self.included))
        )
        off = (xp.sqrt(off) + angle * xp.sqrt(squares)) ** 2
        pinched = loss_below(xp.clip(off * (1 + 1e-12), self.relaxation.low, None), self.relaxation.c)
        pinched = pinched + self.relaxation.convex_loss_above(squares * (1 - 1e-12))
        rows = [pinched, self.stiffness * ((xp.clip(squares, 0.0, HUGE) - 1) ** 2 + 2 * along)]
        for K in self.tangents:
            score = xp.einsum("dp,dp->p", z, on_same_device(K, z) @ z)
            rows += [score, (score + pinched) / 2]
        return on_host(xp.stack(rows))


@dataclass(frozen=True)
class FilterResult:
    """The result of one pass: the m smallest scores of every cut (J, m), the columns that no cut excludes and their
    number, and the columns with the lowest scores for the last tangent.
    """

    least: Array
    kept: TopK
    survivors: int
    lowest: TopK


@dataclass(frozen=True)
class ColumnFilter:
    """One pass with cuts. A column stays if no cut with known `least` raises its bound to the limit."""

    cuts: Cuts
    missing: int
    limit: float
    transform: Transform
    excluded: Indices
    room: int
    lowest: int = 0
    bars: tuple[float, float] = (-np.inf, -np.inf)

    def __call__(self, block: Any, first: int) -> FilterResult:
        """The result of one block."""
        known = np.isfinite(self.cuts.least)
        start_from = (self.cuts.bases + self.cuts.least)[known, None]
        least = np.full((len(known), self.missing), np.inf)
        bounds: list[Array] = []
        last: list[Array] = []
        for start, z in pieces(block, self.transform):
            scores = self.cuts.scores(z)
            squares = on_host(namespace(z).einsum("dp,dp->p", z, z))
            scores[:, ~usable(squares, first + start, self.excluded)] = np.inf
            least = smallest(least, scores, self.missing)
            bounds.append((start_from + scores[known]).max(axis=0))
            last.append(scores[-2 if self.cuts.tangents else -1])
        bound, score = np.concatenate(bounds), np.concatenate(last)
        stay = np.flatnonzero(bound < self.limit)
        low = np.flatnonzero(score < np.inf)
        kept = TopK.pick(block, first, stay, -bound[stay], self.room, self.bars[0])
        lowest = TopK.pick(block, first, low, -score[low], self.lowest, self.bars[1])
        return FilterResult(least, kept, len(stay), lowest)

    def merge(self, one: FilterResult, other: FilterResult) -> FilterResult:
        """Both blocks in one."""
        return FilterResult(
            smallest(one.least, other.least, self.missing),
            one.kept.joined(other.kept),
            one.survivors + other.survivors,
            one.lowest.joined(other.lowest),
        )

    def after(self, answer: FilterResult) -> ColumnFilter:
        """The task that returns only columns that can still fit into the room; the others are counted, not returned."""
        bars = max(self.bars[0], answer.kept.bar), max(self.bars[1], answer.lowest.bar)
        return replace(self, bars=bars)


def smallest(one: Array, other: Array, count: int) -> Array:
    """The `count` smallest of both, row by row."""
    both = np.concatenate([one, other], axis=1)
    return np.partition(both, count - 1, axis=1)[:, :count]
