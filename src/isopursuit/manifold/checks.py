"""Points whose tangent space is not determined: which they are, and why.

A tangent space is estimated from the covariance of n neighbours, with eigenvalues λ₁ ≥ λ₂ ≥ …. For a sample of a normal
distribution (T. W. Anderson, 1963) the standard error of log λ is √(2/n), and the mean squared sine by which direction
i turns towards direction j is

    λ_i λ_j / (n (λ_i − λ_j)²)

to first order. A neighbourhood on a manifold is closer to uniform than to normal, so both estimates are conservative.
They are not conservative for neighbours that follow each other in time, which are not independent.

Two more checks look at the functions: there may be a direction of the tangent space in which none of them changes, and
even the best subset for that point alone may be far from isometric.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from isopursuit._core.options import as_exponent
from isopursuit._core.text import loss_text
from isopursuit._core.threads import on_one_blas_thread
from isopursuit._core.types import Array, Indices, Mask
from isopursuit.errors import InputError, NonFiniteError, ParameterError, ShapeError
from isopursuit.loss.penalty import LARGEST_EXPONENT, SMALLEST_EXPONENT, log_penalty, to_loss
from isopursuit.manifold.tangent import TangentSpaces
from isopursuit.search.searches import exact_search, exchange_search, greedy_search

CERTAIN = 2.0  # standard errors by which log λ_D must exceed log λ_{D+1} (the usual 95 %)
TURNED = 0.5  # mean squared sine of the worst direction: expected to be off by 45° (chosen)
FAR = 3.0  # a subset that stretches or shrinks one direction by a larger factor is far from isometric (chosen)
FEW_COLUMNS = 200  # up to this many functions, the best subset at a point is proved in milliseconds (measured)
SECONDS = 1.0  # time for the proof at one point with more functions (guess)
SHOWN = 8  # most points in the text for each reason (guess)
# the kinds of defects, in the order of the text
FEW, NO_GAP, UNCERTAIN, FLAT, STRETCHED = (
    "too few neighbours",
    "no gap in the spectrum",
    "direction uncertain",
    "no function changes along one direction",
    "far from isometric",
)


@dataclass(frozen=True)
class PointChecks:
    """Which tangent spaces are not determined, and why.

    Attributes
    ----------
    kinds : mapping from str to ndarray of bool (n,)
        For each kind of defect, the points that have it.
    reasons : tuple of str
        The defects of each point in words; empty if there are none.
    gaps : ndarray (n,)
        log λ_D − log λ_{D+1}, in standard errors; infinite where there is no direction D + 1.
    angles : ndarray (n,)
        The expected error of the least certain direction, in degrees, at most 90.
    own_log_losses : ndarray (n,) or None
        The logarithm of the loss of the best subset (or the best known one) at each point; None without matrices.
    at : ndarray of int (n,) or None
        The numbers of the points in the data.
    """

    kinds: Mapping[str, Mask]
    reasons: tuple[str, ...]
    gaps: Array
    angles: Array
    own_log_losses: Array | None
    at: Indices | None

    @property
    def undetermined(self) -> Mask:
        """The points that have any defect, as a mask; ``found.take(~checks.undetermined)`` leaves them out."""
        return np.array([bool(reason) for reason in self.reasons], dtype=np.bool_)

    def __str__(self) -> str:
        n, bad = len(self.reasons), int(self.undetermined.sum())
        if bad == 0:
            return f"all {n} tangent spaces are determined"
        lines = [f"{bad} of {n} tangent spaces are not determined"]
        numbers = np.arange(n) if self.at is None else self.at
        for kind, mask in self.kinds.items():
            if mask.any():
                some = ", ".join(map(str, numbers[mask][:SHOWN].tolist()))
                more = ", …" if mask.sum() > SHOWN else ""
                lines.append(f"  {int(mask.sum()):>5}  {kind} (at {some}{more})")
        if self.kinds.get(STRETCHED, np.zeros(1)).mean() > 0.5:
            lines.append("  At most points the functions are far from isometric: check their unit, or D.")
        elif bad > n / 2:
            lines.append("  That is most of them: take larger neighbourhoods, or another D.")
        return "\n".join(lines)


@on_one_blas_thread
def check_points(
    found: Any,
    tangents: TangentSpaces | None = None,
    *,
    c: float = 1.0,
    callback: Callable[[int, int], object] | None = None,
) -> PointChecks:
    """Find the points whose tangent space is not determined.

    A point is reported if it has fewer than 2 D + 1 neighbours; if the variances D and D + 1 of its neighbourhood are
    less than two standard errors apart; if sampling turns a direction of its tangent space by 45° or more; if there is
    a direction along which no D functions of the dictionary change; or if even the best subset at this point is as far
    from isometric as one that stretches or shrinks a direction threefold.

    Parameters
    ----------
    found : Differentials, TorsionMatrices, array_like (n, D, P) or TangentSpaces
        The matrices at the points. For tangent spaces, only the tangent spaces are checked.
    tangents : TangentSpaces, optional
        The tangent spaces, if `found` does not contain them.
    c : float
        The exponent of the loss.
    callback : callable, optional
        Called with the number of finished points and the number of all points.

    Returns
    -------
    PointChecks

    Examples
    --------
    >>> import numpy as np
    >>> from isopursuit.manifold.tangent import tangent_spaces
    >>> ball = np.random.default_rng(0).normal(size=(500, 3))  # of three dimensions, not two
    >>> checks = check_points(tangent_spaces(ball, range(4), D=2, neighbours=30))
    >>> bool(checks.undetermined.any())
    True
    """
    if isinstance(found, TangentSpaces):
        found, tangents = None, found
    spaces = getattr(found, "tangents", None) if tangents is None else tangents
    if spaces is None:
        raise ParameterError("There are matrices but no tangent spaces. Pass tangents=, from `tangent_spaces`.")
    gaps, sines, kinds, words = _spectral(spaces)
    own: Array | None = None
    if found is not None:
        matrices = np.asarray(getattr(found, "matrices", found), dtype=np.float64)
        expected = (len(spaces.bases), spaces.dimension)
        if matrices.ndim != 3 or matrices.shape[:2] != expected or not matrices.shape[2]:
            raise ShapeError(
                f"matrices has shape {matrices.shape}; expected ({len(spaces.bases)}, {spaces.dimension}, P), one for "
                "each tangent space."
            )
        broken = ~np.isfinite(matrices).all(axis=(1, 2))
        if broken.any():
            raise NonFiniteError(f"The matrix at point {int(broken.argmax())} has entries that are NaN or infinite.")
        c = as_exponent(c)
        limit = _far(spaces.dimension, c)
        own = np.empty(len(matrices))
        for i, X in enumerate(matrices):
            own[i] = _own_log_loss(X, c, limit)
            if callback is not None:
                callback(i + 1, len(matrices))
        _of_functions(matrices, own, c, kinds, words)
    reasons = tuple("; ".join(words[kind][i] for kind in kinds if kinds[kind][i]) for i in range(len(gaps)))
    return PointChecks(kinds, reasons, gaps, np.degrees(np.arcsin(np.sqrt(sines))), own, spaces.at)


def _spectral(spaces: TangentSpaces) -> tuple[Array, Array, dict[str, Mask], dict[str, list[str]]]:
    """Checks of the spectra: gaps in standard errors, squared sines, the defects of points, and their descriptions."""
    D, counts, spectra = spaces.dimension, spaces.counts, spaces.spectra
    tiny = np.finfo(np.float64).tiny
    last = np.maximum(spectra[:, D - 1], tiny)
    following = spectra[:, D] if spectra.shape[1] > D else np.zeros(len(spectra))
    with np.errstate(divide="ignore"):
        # √(2/n) for each of the two variances
        gaps = (np.log(last) - np.log(following)) / np.sqrt(4 / counts)
    sines = _squared_sines(spaces)
    kinds = {FEW: counts < 2 * D + 1, NO_GAP: gaps < CERTAIN, UNCERTAIN: sines >= TURNED}
    needed = np.exp(-CERTAIN * np.sqrt(4 / counts))
    words = {
        FEW: [f"{k} neighbours are too few for D = {D}" for k in counts.tolist()],
        NO_GAP: [
            f"no gap: variance {D + 1} is {share:.0%} of variance {D}; {k} neighbours tell them apart below {most:.0%}"
            for share, k, most in zip((following / last).tolist(), counts.tolist(), needed.tolist(), strict=True)
        ],
        UNCERTAIN: [
            f"{k} neighbours leave a direction uncertain by {np.degrees(np.arcsin(np.sqrt(s))):.0f}°"
            for k, s in zip(counts.tolist(), sines.tolist(), strict=True)
        ],
    }
    return gaps, sines, kinds, words


def _squared_sines(spaces: TangentSpaces) -> Array:
    """The mean squared sine Σ_{j > D} λ_i λ_j / (n (λ_i − λ_j)²) of the worst direction i ≤ D, at most 1.

    The unknown variances sum to the rest of the total, and each is at most the last known one.
    """
    D, spectra = spaces.dimension, spaces.spectra
    inside, outside = spectra[:, :D, None], spectra[:, None, D:]
    if outside.shape[2] == 0:
        return np.zeros(len(spectra))
    rest = np.maximum(spaces.totals - spectra.sum(axis=1), 0.0)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        known = (inside * outside / (inside - outside) ** 2).sum(axis=2)
        unknown = spectra[:, :D] * rest / (spectra[:, :D] - spectra[:, -1:]) ** 2
        sines = (known + unknown).max(axis=1) / spaces.counts
    return np.clip(np.nan_to_num(sines, nan=1.0, posinf=1.0), 0.0, 1.0)


def _of_functions(matrices: Array, own: Array, c: float, kinds: dict[str, Mask], words: dict[str, list[str]]) -> None:
    """Add checks of the functions: directions along which none changes, and best subsets with a large loss."""
    D = matrices.shape[1]
    limit = _far(D, c)
    weakest, strongest = _along(matrices, -1), _along(matrices, 0)
    # if all functions change too slowly, the reason is the unit and not the direction
    relative = weakest / np.clip(strongest, np.finfo(np.float64).tiny, 1.0)
    # D columns have a singular value of at most `weakest`, so their loss is at least that of it and D − 1 ideal ones
    least = np.logaddexp(_log_ideal(D - 1), log_penalty(np.minimum(relative, 1.0), c))
    kinds[FLAT] = (least > limit) | ~(weakest > 0)
    kinds[STRETCHED] = (own > limit) & ~kinds[FLAT]
    words[FLAT] = [f"no function changes along one direction: {one:.2g} at most" for one in weakest.tolist()]
    losses = [loss_text(to_loss(one), 4) for one in own.tolist()]
    words[STRETCHED] = [f"its own best subset has loss {loss} (ideal {D})" for loss in losses]


def _along(matrices: Array, direction: int) -> Array:
    """The largest change of D functions together along a left singular vector of each point, (n,).

    For the last singular vector it bounds the least singular value of any D columns.
    """
    U = np.linalg.svd(matrices, full_matrices=False)[0]
    changes = np.abs(np.einsum("nd,ndp->np", U[:, :, direction], matrices))
    D = matrices.shape[1]
    return np.sqrt((np.sort(changes, axis=1)[:, -D:] ** 2).sum(axis=1))


def _far(D: int, c: float) -> float:
    """The logarithm of the loss of D directions if one is stretched by `FAR` and the others are ideal."""
    return float(np.logaddexp(_log_ideal(D - 1), log_penalty(np.array([FAR]), c))[0])


def _log_ideal(D: int) -> float:
    """The logarithm of the loss of D ideal directions."""
    return float(np.log(D)) if D else -np.inf


def _own_log_loss(X: Array, c: float, limit: float) -> float:
    """The logarithm of the loss of the best subset at one point. If there are many functions and a greedy subset is
    not far from isometric, the greedy subset is used.
    """
    try:
        if not SMALLEST_EXPONENT <= c <= LARGEST_EXPONENT:  # the range of the exact search
            return exchange_search(X, c, time_limit=SECONDS).log_loss
        if X.shape[1] > FEW_COLUMNS:
            greedy = greedy_search(X, c).log_loss
            if greedy <= limit:
                return greedy
        return exact_search(X, c, time_limit=SECONDS, workers=1).log_loss
    except InputError:  # the functions do not span the tangent space, or are too short for float64
        return float("inf")
