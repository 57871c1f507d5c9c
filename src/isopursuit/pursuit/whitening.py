"""From matrices to a design: rows are whitened if they are ill-conditioned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg.lapack import dpotrf, dsyevd

from isopursuit._core.linalg import numerical_rank, row_triangle, spectrum
from isopursuit._core.types import Array
from isopursuit.errors import RankError
from isopursuit.pursuit.design import Design, lower_solve
from isopursuit.pursuit.settings import TRANSPOSED_AT_ONCE, WELL_CONDITIONED, WHITENED_AT_ONCE


def build_design(
    values: Sequence[Array], targets: Sequence[Array] | None, penalty: float, weights: Array | None = None
) -> Design:
    """The program for one matrix or several; rows are whitened if they are ill-conditioned.

    X B = Y and (T⁻¹X) B = T⁻¹Y have the same solutions. With T from a QR of (X √W)ᵀ, M(w) is the identity at those
    weights, so near them the gap can reach rounding for any X of full numerical rank. If no weights are given and
    whitening is needed, they are 1/length. Raises RankError if X lacks rank.
    """
    y = None if targets is None else np.ascontiguousarray(np.stack(list(targets)))
    triangles = [None if penalty > 0 else _whitening(v, weights) for v in values]
    if len(values) == 1 and triangles[0] is None and values[0].T.flags.c_contiguous:
        x = values[0].T[None]
    else:
        x = np.empty((len(values), values[0].shape[1], values[0].shape[0]))
        for i, (v, triangle) in enumerate(zip(values, triangles, strict=True)):
            width = TRANSPOSED_AT_ONCE if triangle is None else WHITENED_AT_ONCE
            for first in range(0, v.shape[1], width):
                block = v[:, first : first + width]
                x[i, first : first + width] = (block if triangle is None else lower_solve(triangle, block)).T
    if all(triangle is None for triangle in triangles):
        return Design(x, y, penalty)
    sides = [np.eye(len(values[0]))] * len(values) if targets is None else targets
    y = np.stack([s if t is None else lower_solve(t, s) for s, t in zip(sides, triangles, strict=True)])
    given = None if targets is None else tuple(targets)
    # in the new coordinates a column's leverage is w‖x‖². Multiply the weights by it, so that short columns that no
    # direction depends on do not dominate the others.
    lengths = np.sqrt(sum(np.einsum("dp,dp->p", v, v) for v in values))
    plain = np.divide(1.0, lengths, out=np.zeros(len(lengths)), where=lengths > 0) if weights is None else weights
    start_weights = (plain * np.sqrt(np.einsum("ipd,ipd->p", x, x))) ** 2
    return Design(x, np.ascontiguousarray(y), penalty, tuple(values), given, tuple(triangles), start_weights)


def whitened_at(design: Design, weights: Array) -> Design:
    """The same program in the coordinates in which M(weights) is the identity."""
    if design.values is None:
        targets = None if design.y is None else list(design.y)
        return build_design([x.T for x in design.x], targets, design.penalty, weights)
    return build_design(design.values, design.targets, design.penalty, weights)


def _whitening(values: Array, weights: Array | None) -> Array | None:
    """T (lower triangular) with X √W = T·(orthonormal rows), or None if X needs no whitening."""
    D, P = values.shape
    if weights is None:
        moments = values @ values.T
        shifted = moments.copy()
        shifted.ravel()[:: D + 1] -= WELL_CONDITIONED * float(shifted.trace())
        if dpotrf(shifted)[1] == 0:  # the least eigenvalue is above this share of the sum of all
            return None
        eigenvalues = dsyevd(moments, compute_v=0)[0]
        if eigenvalues[0] > WELL_CONDITIONED * eigenvalues[-1]:
            return None
        lengths = np.linalg.norm(values, axis=0)
        weights = np.divide(1.0, lengths, out=np.zeros(P), where=lengths > 0)
    triangle = row_triangle(values, np.sqrt(weights))
    rank = numerical_rank(spectrum(triangle), P)
    if rank < D:
        raise RankError(
            f"X has {D} rows but rank {rank}, so its columns cannot span the target. "
            f"Pass k={rank} to `select` for its {rank}-dimensional row space, drop dependent rows, or use penalty > 0."
        )
    return triangle.T
