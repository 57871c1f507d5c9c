"""Evidence for an answer: undetermined tangent spaces, redraws of the points, and random functions for comparison.

A tangent space is estimated from the covariance of n neighbours, with eigenvalues λ₁ ≥ λ₂ ≥ …. For a sample of a normal
distribution (T. W. Anderson, 1963) the mean squared sine by which direction i turns towards direction j is

    λ_i λ_j / (n (λ_i − λ_j)²)

to first order. A neighbourhood on a manifold is closer to uniform than to normal, so this estimate is conservative. It
is not conservative for neighbours that follow each other in time, which are not independent.

Two comparisons show whether picked functions say something about the data:

- *Redraws*: the points are drawn again from the points themselves, with replacement (the bootstrap), and functions are
  picked anew. What changes from redraw to redraw is an accident of the points. Frames of a trajectory, which depend on
  those before, are drawn in blocks of consecutive ones.
- *Random functions*: as many functions as the dictionary has, but without any relation to the data. If only values are
  known, these are random values at the points, whose slopes are estimated in the same way; else random gradients. A
  loss that they reach as well is no evidence of coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from isopursuit._core.clock import Clock
from isopursuit._core.text import LogLoss, loss_text
from isopursuit._core.types import AggregateOption, Array, Indices, Labels, Mask
from isopursuit.data._matrix import in_unit_stack
from isopursuit.manifold.differentials import Differentials
from isopursuit.manifold.tangent import TangentSpaces

# default aggregate (measured by benchmarks/aggregates.py: it finds the known coordinates of four manifolds at least as
# often as "sum")
AGGREGATE: AggregateOption = "trimmed"
# mean squared sine of the worst direction from which on a tangent space is not determined: off by 14.5° (derived: the
# logarithms of the variances D and D + 1 have standard errors √(2/n); if they are two standard errors of their
# difference apart, the sine is 1 / (4 n sinh²(2/√n)), which is 1/16 up to O(1/n))
TURNED = 1 / 16
DIGITS = 4  # of a loss, for reading
LISTED = 8  # most points in the text (chosen: they fit on a line)
REDRAWS = 10  # and as many sets of random functions (chosen: a share in tenths)
BLOCKS = 10  # of consecutive frames in a redraw (chosen: each is a tenth of the trajectory, which must be uncorrelated)
# of the search in each of them (measured: the same subsets as 6 and 1000 on the tests' manifolds)
STARTS, KICKS = 3, 10
# how far below that of random functions a loss must be: let x be the logarithm of the loss per direction, which random
# functions exceed by orders of magnitude for D ≥ 2. log x must be below its least value for random functions by twice
# the distance from that to their median. For ten normal numbers that is 4.6 standard deviations below the mean
# (`python -m benchmarks.coordinates noise`: 0 of 200 pass)
MARGIN = 2.0
LEAST = 1e-9  # smaller logarithms of a loss are rounding


@dataclass(frozen=True)
class PointChecks:
    """Which tangent spaces are not determined.

    Attributes
    ----------
    angles : ndarray (n,)
        The expected error of the least certain direction of each tangent space, in degrees, at most 90.
    undetermined : ndarray of bool (n,)
        Where it is 14.5° or more, or the neighbours are fewer than 2 D + 1; ``found.take(~checks.undetermined)`` leaves
        these points out.
    neighbours : int
        The number of neighbours.
    at : ndarray of int (n,)
        The numbers of the points in the data.
    """

    angles: Array
    undetermined: Mask
    neighbours: int
    at: Indices

    def reason(self, i: int) -> str:
        """Why a point is undetermined, in words."""
        return f"{self.neighbours} neighbours leave a direction uncertain by {self.angles[i]:.0f}°"

    def __str__(self) -> str:
        n, bad = len(self.at), int(self.undetermined.sum())
        if bad == 0:
            return f"all {n} tangent spaces are determined"
        some = ", ".join(map(str, self.at[self.undetermined][:LISTED].tolist()))
        return (
            f"{bad} of {n} tangent spaces are not determined, at {some}{', …' if bad > LISTED else ''}: "
            f"{self.neighbours} neighbours leave a direction uncertain by 15° to {self.angles.max():.0f}°"
        )


def check_points(found: TangentSpaces | Differentials) -> PointChecks:
    """Find the points whose tangent space is not determined by the data; the functions are not looked at.

    A point is reported if sampling turns a direction of its tangent space by 14.5° or more, as it does if the variances
    D and D + 1 of its neighbourhood are less than two standard errors apart.

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
    sines = _squared_sines(spaces)
    few = spaces.neighbours < 2 * spaces.dimension + 1
    return PointChecks(np.degrees(np.arcsin(np.sqrt(sines))), (sines >= TURNED) | few, spaces.neighbours, spaces.at)


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
class Evidence:
    """What is picked in redraws of the points, and what random functions reach.

    Attributes
    ----------
    subsets : tuple of tuples of labels
        What is picked in each redraw.
    same : int
        The number of redraws that pick the same functions; torsions about the same bond count as the same.
    log_losses : ndarray (redraws,)
        The logarithm of the loss per direction of each redraw.
    random : ndarray (draws,)
        The same for the best of random functions.
    """

    subsets: tuple[Labels, ...]
    same: int
    log_losses: Array
    random: Array

    def is_noise(self, log_loss: float) -> bool:
        """Whether random functions reach such a loss per direction, given by its logarithm, or nearly."""
        if not self.random.size:
            return False
        random = np.log(np.maximum(self.random, LEAST))
        least, middle = float(random.min()), float(np.median(random))
        return float(np.log(max(log_loss, LEAST))) >= least - MARGIN * (middle - least)

    @property
    def line(self) -> str:
        """Both comparisons in words."""
        if not self.subsets:
            return "redraws: none in the time limit"
        low, high = (loss_text(LogLoss(float(end(self.log_losses))), DIGITS) for end in (np.min, np.max))
        words = f"redraws: the same choice in {self.same} of {len(self.subsets)}, loss per direction {low} to {high}"
        if not self.random.size:
            return words
        low = loss_text(LogLoss(float(self.random.min())), DIGITS)
        return f"{words}; random functions reach {low}"


def gather_evidence(
    found: Differentials,
    picked: Indices,
    search: Callable[[Array], tuple[Indices, float]],
    random: Iterable[Array],
    names: Sequence[object],
    clock: Clock,
    callback: Callable[[int, int], bool],
    *,
    blocks: bool,
) -> Evidence:
    """Compare the picked columns with those of redraws and with random functions, as far as the time suffices.

    `search` picks columns of matrices (n, D, P) and returns them with the logarithm of their loss per point, NaN if it
    had too little time. `random` are slopes of random functions (n, D, P), a set for each redraw, in any unit.
    Functions with one name are the same choice. The callback returns True to stop. `blocks`: redraw consecutive points
    together.
    """
    D = found.tangents.dimension
    chosen = {names[i] for i in picked.tolist()}
    rng = np.random.default_rng(0)
    subsets: list[Labels] = []
    same = 0
    losses: list[float] = []
    reached: list[float] = []
    lengths = np.sqrt((found.matrices**2).sum(axis=1).mean(axis=0))
    for draw, slopes in enumerate(random):
        if callback(draw, REDRAWS) or clock.expired:
            break
        again, log_loss = search(found.take(_redrawn(found.tangents.at, rng, blocks)).matrices)
        size = np.sqrt((slopes**2).sum(axis=1).mean(axis=0))
        slopes = slopes * (lengths / np.where(size > 0, size, 1.0))
        if found.unit_length.how == "each":
            slopes, _ = in_unit_stack(slopes, "each")
        random_loss = search(slopes)[1]
        if np.isnan([log_loss, random_loss]).any():
            break
        subsets.append(tuple(found.labels[i] for i in again.tolist()))
        same += {names[i] for i in again.tolist()} == chosen
        losses.append(log_loss)
        reached.append(random_loss)
    return Evidence(tuple(subsets), same, np.array(losses) - np.log(D), np.array(reached) - np.log(D))


def _redrawn(at: Indices, rng: np.random.Generator, blocks: bool) -> Indices:
    """As many of the points as there are, with replacement: one by one, or in blocks, circular, by their numbers."""
    n = len(at)
    size = -(-n // BLOCKS) if blocks else 1
    starts = rng.integers(n, size=-(-n // size))
    places = (starts[:, None] + np.arange(size)).ravel()[:n] % n
    return np.argsort(at, kind="stable")[places]


def spreads(values: Array, periods: Array | None) -> Array:
    """The standard deviation of functions (…, k, P) over k points; of circular ones about their circular mean.

    Examples
    --------
    >>> import numpy as np
    >>> spreads(np.array([[3.1, 1.0], [-3.1, 3.0]]), np.array([2 * np.pi, np.inf])).round(3).tolist()
    [0.042, 1.0]
    """
    centred = values - values.mean(axis=-2, keepdims=True)
    if periods is not None and np.isfinite(periods).any():
        some = np.isfinite(periods)
        rate = 2 * np.pi / periods[some]
        turned = np.exp(1j * rate * values[..., some])
        mean = turned.mean(axis=-2, keepdims=True)
        centred[..., some] = np.angle(turned * np.conj(np.where(np.abs(mean) > 0, mean, 1.0))) / rate
    return np.sqrt((centred**2).mean(axis=-2))
