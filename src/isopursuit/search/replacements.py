"""The best replacements of each picked column and their losses, from columns in memory or in a source.

A replacement that makes the subset dependent to working precision is ignored. Of columns that are identical up to sign,
only the first is considered.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.linalg import EPS, LOOSE, on_host, spectrum
from isopursuit._core.types import Array, Indices, Mask
from isopursuit.loss.aggregate import SUM, Aggregate
from isopursuit.loss.penalty import ROUNDING, STATED, log_spectral_loss
from isopursuit.search.local import swap_kernel
from isopursuit.search.settings import BATCH
from isopursuit.sources.tasks import Transform, pieces, usable

NEAREST = 5  # replacements kept for each picked column (chosen: a short list for the reader)


@dataclass(frozen=True)
class Replacement:
    """A column that replaces a picked one: the log-loss with it, its number, and its entries (n, D)."""

    log_loss: float
    index: int
    values: Array = field(repr=False)


ReplacementLists = tuple[tuple[Replacement, ...] | None, ...]  # for each picked column; None if there was no time


@dataclass(frozen=True)
class Replacements:
    """The best replacements for each of the columns `picked` (n, D, k), at most NEAREST for each, lowest loss first.

    `log_loss` is that of the picked columns, `rounding` (n, k) is as in `Matrix`. Columns with numbers in `excluded`
    (sorted) are not considered. As a task of one pass, n is 1, and `roundings` (P,), if known, are those of all
    columns. `cutoffs` has one log-loss for each picked column; replacements above it are ignored. `blocked` (k, P) says
    which columns cannot replace each picked one, if all columns are given at once.
    """

    picked: Array
    log_loss: float
    c: float
    excluded: Indices
    rounding: Array | None = None
    transform: Transform = field(default_factory=Transform)
    cutoffs: tuple[float, ...] = ()
    aggregate: Aggregate = SUM
    roundings: Array | None = None
    deadline: float = np.inf
    blocked: Mask | None = None

    @property
    def work(self) -> int:
        """Multiplications for one column."""
        _, rows, k = self.picked.shape
        return 2 * k * rows + k**3

    def __call__(self, block: Any, first: int) -> ReplacementLists:
        """The best of one block."""
        found: ReplacementLists = ()
        task = self
        A = self.transform.A
        for start, z in pieces(block, replace(self.transform, A=None)):
            values = np.asarray(on_host(z), dtype=np.float64)
            rounding = rounding_after(self.transform, values)
            if self.roundings is not None:
                rounding = self.roundings[first + start : first + start + values.shape[1]]
            values = values if A is None else A @ values
            squares = np.einsum("dp,dp->p", values, values)
            possible = usable(squares, first + start, self.excluded)
            if rounding is not None:
                possible &= squares > rounding**2
            which = np.flatnonzero(possible)
            errors = None if rounding is None else rounding[None, which]
            found = self.merge(found, task.among(values[None, :, which], first + start + which, errors))
            task = task.after(found)
        return found

    def merge(self, one: ReplacementLists, other: ReplacementLists) -> ReplacementLists:
        """The best of both."""
        if not one or not other:
            return one or other
        both = enumerate(zip(one, other, strict=True))
        return tuple(
            None if a is None or b is None else a if not b else self._ranked(i, [*a, *b]) for i, (a, b) in both
        )

    def after(self, answer: ReplacementLists) -> Replacements:
        """The task with the cutoffs known so far."""
        cutoffs = tuple(few[-1].log_loss if few is not None and len(few) == NEAREST else np.inf for few in answer)
        return replace(self, cutoffs=cutoffs) if cutoffs else self

    def among(self, others: Array, numbers: Indices, rounding: Array | None = None) -> ReplacementLists:
        """The best of the columns `others` (n, D, P) with these numbers; `rounding` (n, P) is as in `Matrix`."""
        k = self.picked.shape[2]
        subset, (picked, few) = np.arange(k, dtype=np.int32), self._fewer_rows(others)
        both = np.ascontiguousarray(np.swapaxes(np.concatenate([picked, few], axis=2), 1, 2))
        swaps = swap_kernel(both, self.c, self.aggregate, self.deadline, k)
        swaps.prepare(subset)
        found: list[tuple[Replacement, ...] | None] = []
        for position in range(k):
            if time.perf_counter() > self.deadline:
                found.append(None)
                continue
            cutoff = self.cutoffs[position] if self.cutoffs else np.inf
            free = np.arange(len(numbers))
            if self.blocked is not None:
                swaps.skip(np.append(np.zeros(k, dtype=bool), self.blocked[position]))
                free = np.flatnonzero(~self.blocked[position])
            if cutoff == np.inf:
                some = free[self._promising(position, few[:, :, free])]
                scores = np.sort(self._log_losses(position, few[:, :, some], _part(rounding, some)))
                cutoff = float(scores[NEAREST - 1]) if len(scores) >= NEAREST else np.inf
            which, values = swaps.below(subset, position, self._above(cutoff))
            order = np.argsort(values, kind="stable")
            best = None if swaps.late else self._best(position, few, rounding, which[order] - k, values[order])
            if best is not None:
                best = self._ranked(
                    position, [Replacement(loss, int(numbers[p]), others[:, :, p].copy()) for loss, p in best]
                )
            found.append(best)
        return tuple(found)

    def _best(
        self, position: int, few: Array, rounding: Array | None, which: NDArray[np.int32], values: Array
    ) -> list[tuple[float, int]] | None:
        """Log-losses by the SVD of the columns `which` that can be the best ones, and those columns, ascending; None if
        time runs out. `values` are the kernel's log-losses, ascending.
        """
        kept: list[tuple[float, int]] = []
        for first in range(0, len(which), BATCH):
            if time.perf_counter() > self.deadline:
                return None
            last = kept[NEAREST - 1][0] if len(kept) >= NEAREST else np.inf
            if values[first] > self._above(last):
                break
            some = which[first : first + BATCH]
            losses = self._log_losses(position, few[:, :, some], _part(rounding, some))
            kept += [(loss, p) for loss, p in zip(losses.tolist(), some.tolist(), strict=True) if loss < np.inf]
            kept.sort()
        return kept

    def _log_losses(self, position: int, columns: Array, rounding: Array | None) -> Array:
        """The log-loss with each of these columns (n, ·, m) at one position, in the rows of `_fewer_rows`.

        It is infinite if the subset is dependent.
        """
        k, m = self.picked.shape[2], columns.shape[2]
        if m == 0:
            return np.zeros(0)
        stack = np.repeat(self._inside[None], m, axis=0)
        stack[..., position] = np.moveaxis(columns, 2, 0)
        # the same test of independence as in `direction_rank`
        size = np.linalg.norm(stack, axis=2)
        if self.rounding is not None and rounding is not None:
            errors = np.repeat(self.rounding[None], m, axis=0)
            errors[..., position] = rounding.T
            size = np.maximum(size, errors / EPS)
        sigma = spectrum(stack)
        losses = self.aggregate.log_total(log_spectral_loss(sigma, self.c))
        for i in np.flatnonzero((sigma[..., -1] <= ROUNDING**0.5 * size.max(axis=-1)).any(axis=1)):
            s = spectrum(stack[i] / np.where(size[i] > 0, size[i], 1.0)[:, None, :])
            independent = s[:, -1] > k * EPS * np.maximum(s[:, 0], 1.0)
            losses[i] = losses[i] if independent.sum() >= self.aggregate.kept(len(s)) else np.inf
        return losses

    @cached_property
    def _basis(self) -> Array | None:
        """An orthonormal basis of the picked columns' span at each point, if they have more than k + 1 rows."""
        _, rows, k = self.picked.shape
        return np.linalg.qr(self.picked)[0] if rows > k + 1 else None

    @cached_property
    def _inside(self) -> Array:
        """The picked columns in k + 1 rows, if they have more."""
        return self._fewer_rows(self.picked[:, :, :0])[0]

    def _fewer_rows(self, columns: Array) -> tuple[Array, Array]:
        """The picked columns and others (n, D, m) in k + 1 rows, if they have more.

        Inner products between a picked column and another one are kept, and so are lengths; inner products between two
        of the others are not.
        """
        basis, k = self._basis, self.picked.shape[2]
        if basis is None:
            return self.picked, columns
        within, rest = np.zeros((len(columns), k, columns.shape[2])), columns
        for _ in range(2):  # twice, so that the residual is orthogonal to the basis up to rounding
            part = np.swapaxes(basis, 1, 2) @ rest
            within, rest = within + part, rest - basis @ part
        inside = np.concatenate([np.swapaxes(basis, 1, 2) @ self.picked, np.zeros((len(columns), 1, k))], axis=1)
        return inside, np.concatenate([within, np.linalg.norm(rest, axis=1, keepdims=True)], axis=1)

    def _above(self, log_loss: float) -> float:
        """An upper bound on the kernel's log-loss of a subset, given the one from the SVD.

        A log-loss L comes from singular values of at least about L^(−1/c), known to within eps times the largest. The
        relative error of L is c times the relative error of the smallest one.
        """
        if log_loss == np.inf:
            return np.inf
        size = max(float(np.linalg.norm(self.picked, axis=1).max()), 1.0)
        with np.errstate(over="ignore"):
            relative = 64 * self.picked.shape[2] * EPS * self.c * size * np.float64(max(log_loss, 1.0)) ** (1 / self.c)
        return log_loss + max(STATED, float(relative)) * max(abs(log_loss), 1.0) if relative < 0.1 else np.inf

    def _promising(self, position: int, others: Array) -> Indices:
        """Columns with a low bound on the loss.

        Let U and s be the left singular vectors and the singular values of the columns that stay, y = Uᵀx, and z the
        residual of x. Adding x gives λ_min ≤ |z|² and λ_max ≥ s_max² + y_max².
        """
        if self.picked.shape[2] == 1:
            return np.arange(min(others.shape[2], BATCH), dtype=np.intp)
        U, s, _ = np.linalg.svd(np.delete(self._inside, position, axis=2), full_matrices=False)
        y = (np.swapaxes(U, 1, 2) @ others) ** 2
        off = np.einsum("idp,idp->ip", others, others) - y.sum(axis=1)
        ends = np.sqrt(np.stack([np.maximum(s[:, :1] ** 2 + y[:, 0], 1.0), np.clip(off, 0.0, 1.0)], axis=-1))
        bound = self.aggregate.log_total(log_spectral_loss(np.where(ends > 0, ends, 1e-300), self.c).T)
        return np.argsort(bound, kind="stable")[:BATCH].astype(np.intp)

    def _ranked(self, position: int, found: list[Replacement]) -> tuple[Replacement, ...]:
        """Sorted by loss, then by number. Columns that are identical up to sign have equal losses."""
        least = {_unsigned(self.picked[:, :, position]): self.log_loss}
        for one in found:
            key = _unsigned(one.values)
            least[key] = min(one.log_loss, least.get(key, np.inf))
        return ranked(replace(one, log_loss=least[_unsigned(one.values)]) for one in found)


def rounding_after(transform: Transform, centred: Array) -> Array | None:
    """The rounding of columns after a source's transform, as in `Matrix`, given the columns before its projection."""
    if transform.b is None and transform.A is None:
        return None
    shift = 0.0 if transform.b is None else 2 * transform.scale * float(np.linalg.norm(transform.b))
    angle = EPS if transform.A is None else max(min(64 * len(centred) * EPS, LOOSE), 4 * len(centred) * transform.angle)
    return EPS * shift + angle * np.linalg.norm(centred, axis=0)


def is_lower(log_loss: float, other: float) -> bool:
    """Whether a log-loss is lower than the other by more than rounding."""
    return log_loss < other - ROUNDING * max(abs(log_loss), 1.0)


def ranked(found: Iterable[Replacement]) -> tuple[Replacement, ...]:
    """The first few by loss. Losses that differ only by rounding are equal; then the lowest number comes first."""
    waiting = sorted(found, key=lambda one: one.log_loss)
    order: list[Replacement] = []
    while waiting and len(order) < NEAREST:
        equal = [one for one in waiting if not is_lower(waiting[0].log_loss, one.log_loss)]
        order += sorted(equal, key=lambda one: one.index)
        waiting = waiting[len(equal) :]
    return tuple(order[:NEAREST])


def _part(rounding: Array | None, which: NDArray[np.integer[Any]]) -> Array | None:
    return None if rounding is None else rounding[:, which]


def _unsigned(values: Array) -> bytes:
    """A key that is equal for columns (n, D) that are identical up to their sign at each point."""
    first = np.take_along_axis(values, (values != 0).argmax(axis=1)[:, None], axis=1)
    return (np.where(first < 0, -values, values) + 0.0).tobytes()
