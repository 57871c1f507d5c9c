"""Evidence for the dimension of a manifold: spectra of neighbourhoods of several sizes, and losses.

No number here is the dimension. Noise fills all directions of small neighbourhoods, and curvature adds directions to
large ones; in between the variances of the manifold's own directions keep their shares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isopursuit._core.text import loss_text
from isopursuit._core.types import Array, Indices, Labels
from isopursuit.data._matrix import as_matrix, in_unit_stack
from isopursuit.errors import ParameterError, printable
from isopursuit.loss.penalty import log_spectral_loss, to_loss
from isopursuit.manifold.checks import check_points
from isopursuit.manifold.dictionary import Differentials, of_unit_size
from isopursuit.manifold.molecules import TorsionMatrices
from isopursuit.manifold.shapes import Progress, refuse_large, shapes
from isopursuit.manifold.tangent import tangent_spaces
from isopursuit.manifold.trajectory import Trajectory
from isopursuit.selection.select import select

SIZES = 6  # default number of neighbourhood sizes (guess: enough for a curve)
SMALLEST, LARGEST = 20, 1000  # smallest and largest default size; at most a quarter of the points (guess)
PLACES = 100  # default number of points (guess)
SHOWN = 6  # most shares in the text (guess)


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
    at : ndarray of int (n,) or None
        The points.
    """

    neighbours: Indices
    shares: Array
    dimensions: Indices
    at: Indices | None

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
        ranks = min(SHOWN, self.shares.shape[2])
        lines = [
            f"spectra of {self.shares.shape[1]} neighbourhoods of each size",
            f"{'neighbours':>12}  {'suggest':>8}  {'agree':>6}  shares of the variance",
        ]
        for size, one, vote, share in zip(self.neighbours, self.by_size, votes, self.shares.mean(axis=1), strict=True):
            listed = "  ".join(f"{x:.3f}" for x in share[:ranks])
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
    points: ArrayLike | Trajectory,
    at: ArrayLike | None = None,
    *,
    neighbours: Iterable[int] | None = None,
    leading: int = 10,
    workers: int = 1,
    callback: Callable[[int, int], object] | None = None,
) -> DimensionEvidence:
    """Spectra of neighbourhoods of several sizes: the evidence for the dimension of a manifold.

    Parameters
    ----------
    points : array_like (N, B) or Trajectory
        The data. For a molecule, these are all planar angles of its frames.
    at : array_like, optional
        Numbers or coordinates of points, as in `tangent_spaces`. Default: 100 points at equal steps.
    neighbours : iterable of int, optional
        The sizes. Default: six sizes from 20 to 1,000, at equal ratios, at most a quarter of the points.
    leading : int
        The number of variances to keep; the dimension is estimated from them.
    workers : int
        Number of threads.
    callback : callable, optional
        Called with the progress in thousandths, and with 1000.

    Returns
    -------
    DimensionEvidence

    Examples
    --------
    >>> from isopursuit.manifold.synthetic import swiss_roll
    >>> evidence = dimension_evidence(swiss_roll(2000, noise=0.1).points, neighbours=[20, 60, 180])
    >>> evidence.suggested, evidence.by_size.tolist()
    (2, [2, 2, 3])
    """
    N, B = _shape(points)
    sizes = _sizes(N, neighbours)
    places = np.unique(np.linspace(0, N - 1, min(N, PLACES)).astype(np.intp)) if at is None else at
    # operations at each of about 100 places; an angle counts as 200 operations
    works = [2.0 * N * B + 2.0 * min(k, B) * k * B + 10.0 * min(k, B) ** 3 for k in sizes]
    steps = Progress(callback, [200.0 / PLACES * N * B, *works])
    if isinstance(points, Trajectory):
        refuse_large(N, points.positions.shape[1], 0, 0, 0)
        points = shapes(points.positions, steps.step(0))[0]
    values = as_matrix(points, wide=False).values
    found = [
        tangent_spaces(values, places, D=1, neighbours=k, leading=leading, workers=workers, callback=steps.step(i))
        for i, k in enumerate(sizes, start=1)
    ]
    return DimensionEvidence(
        np.array(sizes, dtype=np.intp),
        np.stack([spaces.spectra / spaces.totals[:, None] for spaces in found]),
        np.stack([spaces.dimensions for spaces in found]),
        found[0].at,
    )


def _shape(points: ArrayLike | Trajectory) -> tuple[int, int]:
    if isinstance(points, Trajectory):
        frames, atoms, _ = points.positions.shape
        return frames, max(atoms * (atoms - 1) * (atoms - 2) // 2, 1)
    N, B = as_matrix(points, wide=False).values.shape
    return N, B


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

    `log_losses` (n,) are the logarithms of the points' losses, `explained` is the mean share of the variance in the
    tangent spaces, and `undetermined` counts the points that `check_points` reports.
    """

    D: int
    labels: Labels
    verdict: str
    log_losses: Array
    explained: float
    undetermined: int

    @property
    def median(self) -> float:
        """The median of the points' losses; the ideal is D."""
        return to_loss(float(np.median(self.log_losses)))


@dataclass(frozen=True)
class DimensionLosses:
    """The joint selection for several dimensions, one row each."""

    rows: tuple[DimensionLoss, ...]

    def __str__(self) -> str:
        heads = ("median loss", "per direction", "worst", "variance", "undetermined", "picked")
        lines = ["  D  {:>11}  {:>13}  {:>9}  {:>8}  {:>12}  {}".format(*heads)]
        for row in self.rows:
            losses = (row.median, row.median / row.D, to_loss(float(row.log_losses.max())))
            median, each, worst = (loss_text(loss, 4) for loss in losses)
            bad = f"{row.undetermined} of {len(row.log_losses)}"
            names = ", ".join(printable(label) for label in row.labels)
            lines.append(
                f"{row.D:>3}  {median:>11}  {each:>13}  {worst:>9}  {row.explained:>8.0%}  {bad:>12}  {names} "
                f"({row.verdict})"
            )
        lines.append(
            "The ideal loss is D, 1 per direction. A dimension is supported where the loss per direction is near 1 and "
            "most points are determined, and where one more dimension makes these clearly worse or adds little "
            "variance. This is guidance: a dictionary that lacks a coordinate raises the loss at the right D as well."
        )
        return "\n".join(lines)


def losses_by_dimension(
    found: Differentials | TorsionMatrices, dimensions: Sequence[int] | None = None, **options: Any
) -> DimensionLosses:
    """The joint selection in the leading 1, 2, …, D directions of the same tangent spaces.

    Parameters
    ----------
    found : Differentials or TorsionMatrices
        Matrices of the largest dimension: to compare D − 1, D and D + 1, make them with D + 1. Median units and units
        of single functions ("overall") are taken anew for each dimension.
    dimensions : sequence of int, optional
        Which dimensions. Default: the last three of `found`.
    **options
        Options for `select`, such as c, method and time_limit.

    Returns
    -------
    DimensionLosses

    Examples
    --------
    >>> from isopursuit.manifold.dictionary import differentials
    >>> from isopursuit.manifold.synthetic import swiss_roll
    >>> roll = swiss_roll(2000)
    >>> spaces = tangent_spaces(roll.points, range(30), D=3, neighbours=40)
    >>> table = losses_by_dimension(differentials(roll.dictionary.take(range(30)), spaces), [1, 2])
    >>> [(row.D, round(row.median, 2)) for row in table.rows], sorted(table.rows[1].labels)
    ([(1, 1.05), (2, 2.0)], ['arc length', 'height'])
    """
    if found.tangents is None:
        raise ParameterError("The matrices have no tangent spaces. Make them by differentials or torsion_matrices.")
    largest = found.tangents.dimension
    wanted = list(dimensions) if dimensions is not None else list(range(max(1, largest - 2), largest + 1))
    if not wanted or not 1 <= min(wanted) <= max(wanted) <= largest:
        raise ParameterError(f"dimensions={wanted} must be from 1 to {largest}, the dimension of the tangent spaces.")
    return DimensionLosses(tuple(_row(_leading_rows(found, D), options) for D in wanted))


def _leading_rows(found: Differentials | TorsionMatrices, D: int) -> Differentials:
    """The matrices in the first D directions of the tangent spaces, with the same kind of unit."""
    assert found.tangents is not None
    matrices, unit = np.ascontiguousarray(found.matrices[:, :D]), found.unit_length
    if found.overall:
        matrices = of_unit_size(matrices)
    if unit.how in ("median", "each"):
        matrices, again = in_unit_stack(matrices, unit.how)
        unit = replace(again, length=unit.length * again.length)
    return Differentials(matrices, found.labels, unit, found.tangents.of_dimension(D), found.overall)


def _row(found: Differentials, options: dict[str, Any]) -> DimensionLoss:
    assert found.tangents is not None
    c = float(options.get("c", 1.0))
    picked = select(found, **options)
    sigma: Array = np.linalg.svd(found.matrices[:, :, picked.indices], compute_uv=False).astype(np.float64)
    checks = check_points(found, c=c)
    return DimensionLoss(
        found.tangents.dimension,
        picked.labels,
        picked.verdict,
        log_spectral_loss(sigma, c),
        float(found.tangents.explained.mean()),
        int(checks.undetermined.sum()),
    )
