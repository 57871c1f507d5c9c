"""Evidence for tangent spaces and their dimension: undetermined points, spectra by neighbourhood size, and losses.

A tangent space is estimated from the covariance of n neighbours, with eigenvalues λ₁ ≥ λ₂ ≥ …. For a sample of a normal
distribution (T. W. Anderson, 1963) the standard error of log λ is √(2/n), and the mean squared sine by which direction
i turns towards direction j is

    λ_i λ_j / (n (λ_i − λ_j)²)

to first order. A neighbourhood on a manifold is closer to uniform than to normal, so both estimates are conservative.
They are not conservative for neighbours that follow each other in time, which are not independent.

No number here is the dimension. Noise fills all directions of small neighbourhoods, and curvature adds directions to
large ones; in between the variances of the manifold's own directions keep their shares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isopursuit._core.text import loss_text
from isopursuit._core.types import AggregateOption, Array, Indices, Labels, Mask
from isopursuit.data._matrix import as_matrix
from isopursuit.errors import ParameterError, printable
from isopursuit.manifold.dictionary import Differentials
from isopursuit.manifold.tangent import TangentSpaces, tangent_spaces
from isopursuit.selection.select import select

# default aggregate (measured by benchmarks/aggregates.py: it finds the known coordinates of four manifolds at least as
# often as "sum")
AGGREGATE: AggregateOption = "trimmed"
CERTAIN = 2.0  # standard errors by which log λ_D must exceed log λ_{D+1} (the usual 95 %)
TURNED = 0.5  # mean squared sine of the worst direction: expected to be off by 45° (chosen)
LISTED = 8  # most points in the text for each reason (chosen: they fit on a line)
SIZES = 6  # default number of neighbourhood sizes (chosen: a table that fits on a screen)
SMALLEST, LARGEST = 20, 1000  # smallest and largest default size; at most a quarter of the points
PLACES = 100  # default number of points, whose votes have a standard error of at most 5 %
SHOWN = 6  # most shares in the text (chosen: they fit on a line)
# the kinds of defects, in the order of the text
FEW, NO_GAP, UNCERTAIN = "too few neighbours", "no gap in the spectrum", "direction uncertain"


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
    at : ndarray of int (n,)
        The numbers of the points in the data.
    """

    kinds: Mapping[str, Mask]
    reasons: tuple[str, ...]
    gaps: Array
    angles: Array
    at: Indices

    @property
    def undetermined(self) -> Mask:
        """The points that have any defect, as a mask; ``found.take(~checks.undetermined)`` leaves them out."""
        return np.array([bool(reason) for reason in self.reasons], dtype=np.bool_)

    @property
    def summary(self) -> str:
        """How many points have each defect, in one line."""
        return "; ".join(f"{int(some.sum())} {kind}" for kind, some in self.kinds.items() if some.any())

    def __str__(self) -> str:
        n, bad = len(self.reasons), int(self.undetermined.sum())
        if bad == 0:
            return f"all {n} tangent spaces are determined"
        lines = [f"{bad} of {n} tangent spaces are not determined"]
        for kind, mask in self.kinds.items():
            if mask.any():
                some = ", ".join(map(str, self.at[mask][:LISTED].tolist()))
                lines.append(f"  {int(mask.sum()):>5}  {kind} (at {some}{', …' if mask.sum() > LISTED else ''})")
        if bad > n / 2:
            lines.append("  That is most of them: take larger neighbourhoods, or another D.")
        return "\n".join(lines)


def check_points(found: TangentSpaces | Differentials) -> PointChecks:
    """Find the points whose tangent space is not determined by the data; the functions are not looked at.

    A point is reported if it has fewer than 2 D + 1 neighbours; if the variances D and D + 1 of its neighbourhood are
    less than two standard errors apart; or if sampling turns a direction of its tangent space by 45° or more.

    Examples
    --------
    >>> import numpy as np
    >>> from isopursuit.manifold import tangent_spaces
    >>> ball = np.random.default_rng(0).normal(size=(500, 3))  # of three dimensions, not two
    >>> checks = check_points(tangent_spaces(ball, range(4), D=2, neighbours=30))
    >>> bool(checks.undetermined.any())
    True
    """
    spaces = found if isinstance(found, TangentSpaces) else found.tangents
    D, k, spectra = spaces.dimension, spaces.neighbours, spaces.spectra
    last = np.maximum(spectra[:, D - 1], np.finfo(np.float64).tiny)
    following = spectra[:, D] if spectra.shape[1] > D else np.zeros(len(spectra))
    with np.errstate(divide="ignore"):
        gaps = (np.log(last) - np.log(following)) / np.sqrt(4 / k)  # √(2/n) for each of the two variances
    sines = _squared_sines(spaces)
    angles = np.degrees(np.arcsin(np.sqrt(sines)))
    kinds = {FEW: np.full(len(spectra), k < 2 * D + 1), NO_GAP: gaps < CERTAIN, UNCERTAIN: sines >= TURNED}
    most = np.exp(-CERTAIN * np.sqrt(4 / k))
    reasons = [
        "; ".join(
            words
            for kind, words in {
                FEW: f"{k} neighbours are too few for D = {D}",
                NO_GAP: f"no gap: variance {D + 1} is {share:.0%} of variance {D}; {k} neighbours tell them apart "
                f"below {most:.0%}",
                UNCERTAIN: f"{k} neighbours leave a direction uncertain by {angle:.0f}°",
            }.items()
            if kinds[kind][i]
        )
        for i, (share, angle) in enumerate(zip((following / last).tolist(), angles.tolist(), strict=True))
    ]
    return PointChecks(kinds, tuple(reasons), gaps, angles, spaces.at)


def _squared_sines(spaces: TangentSpaces) -> Array:
    """The mean squared sine Σ_{j > D} λ_i λ_j / (n (λ_i − λ_j)²) of the worst direction i ≤ D, at most 1.

    The unknown variances sum to the rest of the total, and each is at most the last known one.
    """
    D, spectra = spaces.dimension, spaces.spectra
    inside, outside = spectra[:, :D, None], spectra[:, None, D:]
    if not outside.size:
        return np.zeros(len(spectra))
    with np.errstate(divide="ignore", invalid="ignore"):
        turns = (inside * outside / (inside - outside) ** 2).sum(axis=2)
        rest = np.maximum(spaces.totals - spectra.sum(axis=1), 0.0)[:, None]
        turns += spectra[:, :D] * rest / (spectra[:, :D] - spectra[:, -1:]) ** 2
    return np.clip(np.nan_to_num(turns.max(axis=1) / spaces.neighbours, nan=1.0, posinf=1.0), 0.0, 1.0)


@dataclass(frozen=True)
class DimensionEvidence:
    """The spectra of neighbourhoods of several sizes, and the dimension that each suggests.

    Attributes
    ----------
    neighbours : ndarray of int (s,)
        The sizes, ascending.
    shares : ndarray (s, n, m)
        The leading variances of each neighbourhood, as shares of its total variance, descending.
    dimensions : ndarray of int (s, n)
        The dimension that the spectrum of each neighbourhood suggests; see `estimate_dimension`.
    at : ndarray of int (n,)
        The points.
    """

    neighbours: Indices
    shares: Array
    dimensions: Indices
    at: Indices

    @property
    def votes(self) -> Array:
        """The share of the neighbourhoods of each size that suggest D = 0, 1, 2, …, (s, m + 1)."""
        count = self.shares.shape[2] + 1
        return np.stack([np.bincount(row, minlength=count)[:count] / len(row) for row in self.dimensions])

    @property
    def suggested(self) -> int:
        """The dimension that most neighbourhoods of all sizes suggest."""
        return int(self.votes.mean(axis=0).argmax())

    @property
    def by_size(self) -> Indices:
        """The dimension that most neighbourhoods of each size suggest, (s,)."""
        return self.votes.argmax(axis=1)

    def __str__(self) -> str:
        D, votes = self.suggested, self.votes
        lines = [
            f"spectra of {self.shares.shape[1]} neighbourhoods of each size",
            f"{'neighbours':>12}  {'suggest':>8}  {'agree':>6}  shares of the variance",
        ]
        for size, one, vote, share in zip(self.neighbours, self.by_size, votes, self.shares.mean(axis=1), strict=True):
            listed = "  ".join(f"{x:.3f}" for x in share[:SHOWN])
            lines.append(f"{size:>12}  {f'D = {one}':>8}  {vote[one]:>6.0%}  {listed}")
        mean = votes.mean(axis=0)
        order = np.argsort(-mean, kind="stable")
        others = ", ".join(f"{mean[i]:.0%} D = {i}" for i in order[1:3] if mean[i] > 0)
        lines.append(
            f"{mean[D]:.0%} of all neighbourhoods suggest D = {D}{f' ({others})' if others else ''}. This is guidance: "
            "look for shares that stay level over the sizes, and compare losses for D − 1, D and D + 1."
        )
        return "\n".join(lines)


def dimension_evidence(
    points: ArrayLike,
    at: ArrayLike | None = None,
    *,
    neighbours: Iterable[int] | None = None,
    callback: Callable[[int, int], object] | None = None,
) -> DimensionEvidence:
    """Spectra of neighbourhoods of several sizes: the evidence for the dimension of a manifold.

    Parameters
    ----------
    points : array_like (N, B)
        The data. For a molecule, these are its `isopursuit.molecules.shape_values`.
    at : array_like of int, optional
        Numbers of points. Default: 100 points at equal steps.
    neighbours : iterable of int, optional
        The sizes. Default: six sizes from 20 to 1,000, at equal ratios, at most a quarter of the points.
    callback : callable, optional
        Called with the number of finished points of all sizes, and their total number.

    Returns
    -------
    DimensionEvidence

    Examples
    --------
    >>> from isopursuit.manifold import swiss_roll
    >>> evidence = dimension_evidence(swiss_roll(2000, noise=0.1).points, neighbours=[20, 60, 180])
    >>> evidence.suggested, evidence.by_size.tolist()
    (2, [2, 2, 3])
    """
    values = as_matrix(points, wide=False).values
    N = len(values)
    sizes = _sizes(N, neighbours)
    places = np.unique(np.linspace(0, N - 1, min(N, PLACES)).astype(np.intp)) if at is None else at
    found: list[TangentSpaces] = []
    for i, k in enumerate(sizes):

        def report(done: int, total: int, i: int = i) -> None:
            if callback is not None:
                callback(i * total + done, len(sizes) * total)

        found.append(tangent_spaces(values, places, D=1, neighbours=k, callback=report))
    return DimensionEvidence(
        np.array(sizes, dtype=np.intp),
        np.stack([spaces.shares for spaces in found]),
        np.stack([spaces.dimensions for spaces in found]),
        found[0].at,
    )


def _sizes(N: int, neighbours: Iterable[int] | None) -> list[int]:
    if neighbours is None:
        if N < 2 * SMALLEST:
            raise ParameterError(
                f"{N} points are too few to estimate the dimension: at least {2 * SMALLEST} are needed, for "
                f"neighbourhoods of {SMALLEST} points. Pass more points, or the dimension as D=."
            )
        last = max(min(LARGEST, N // 4), SMALLEST)
        return np.unique(np.geomspace(SMALLEST, last, SIZES).round().astype(int)).tolist()
    sizes = sorted(set(neighbours))
    if not sizes or not 2 <= sizes[0] <= sizes[-1] <= N // 2:
        raise ParameterError(f"neighbours={sizes} must be some sizes from 2 to {N // 2}, half of the {N} points.")
    return sizes


@dataclass(frozen=True)
class DimensionLoss:
    """The joint selection for one dimension.

    `loss` is that of a typical point by the aggregate, whose ideal is D; `explained` is the mean share of the variance
    in the tangent spaces, and `undetermined` counts the points that `check_points` reports.
    """

    D: int
    labels: Labels
    verdict: str
    loss: float
    explained: float
    undetermined: int


@dataclass(frozen=True)
class DimensionLosses:
    """The joint selection for several dimensions, one row each."""

    rows: tuple[DimensionLoss, ...]
    points: int

    def __str__(self) -> str:
        lines = [f"  D  {'loss':>9}  {'per direction':>13}  {'variance':>8}  {'undetermined':>12}  picked"]
        for row in self.rows:
            loss, each = loss_text(row.loss, 4), loss_text(row.loss / row.D, 4)
            bad, names = f"{row.undetermined} of {self.points}", ", ".join(map(printable, row.labels))
            lines.append(
                f"{row.D:>3}  {loss:>9}  {each:>13}  {row.explained:>8.0%}  {bad:>12}  {names} ({row.verdict})"
            )
        lines.append(
            "The ideal loss is D, 1 per direction. A dimension is supported where the loss per direction is near 1 and "
            "most points are determined, and where one more dimension makes these clearly worse or adds little "
            "variance. This is guidance: a dictionary that lacks a coordinate raises the loss at the right D as well."
        )
        return "\n".join(lines)


def losses_by_dimension(
    found: Differentials,
    dimensions: Sequence[int] | None = None,
    *,
    aggregate: AggregateOption = AGGREGATE,
    **options: Any,
) -> DimensionLosses:
    """The joint selection in the leading 1, 2, …, D directions of the same tangent spaces.

    Parameters
    ----------
    found : Differentials
        Differentials of the largest dimension: to compare D − 1, D and D + 1, make them with D + 1. Units that depend
        on the lengths are taken anew for each dimension.
    dimensions : sequence of int, optional
        Which dimensions. Default: the last three of `found`.
    aggregate : {"sum", "trimmed"} or float
        As in `find_coordinates`, so that the losses are the same.
    **options
        Other options for `select`, such as c, method and time_limit.

    Returns
    -------
    DimensionLosses

    Examples
    --------
    >>> from isopursuit.manifold import differentials, swiss_roll, tangent_spaces
    >>> roll = swiss_roll(2000)
    >>> spaces = tangent_spaces(roll.points, range(30), D=3, neighbours=40)
    >>> table = losses_by_dimension(differentials(roll.dictionary.take(range(30)), spaces), [1, 2])
    >>> [row.D for row in table.rows], sorted(table.rows[1].labels)
    ([1, 2], ['arc length', 'height'])
    """
    largest = found.tangents.dimension
    wanted = list(dimensions) if dimensions is not None else list(range(max(1, largest - 2), largest + 1))
    if not wanted or not 1 <= min(wanted) <= max(wanted) <= largest:
        raise ParameterError(f"dimensions={wanted} must be from 1 to {largest}, the dimension of the tangent spaces.")
    rows: list[DimensionLoss] = []
    for D in wanted:
        here = found.of_dimension(D)
        picked = select(here, aggregate=aggregate, **options)
        bad = int(check_points(here).undetermined.sum())
        share = float(here.tangents.explained.mean())
        rows.append(DimensionLoss(D, picked.labels, picked.verdict, picked.loss_per_point, share, bad))
    return DimensionLosses(tuple(rows), len(found.matrices))
