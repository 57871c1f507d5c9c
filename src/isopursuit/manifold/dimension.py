"""Compare dimensions: the joint selection for each D, what speaks for and against it, and a recommendation."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from isopursuit._core.text import LogLoss, loss_text
from isopursuit._core.types import Array, Labels
from isopursuit.errors import printable
from isopursuit.manifold.evidence import DIGITS, Evidence

HEADS = ("D", "loss per direction", "random", "same in redraws", "variance", "undetermined", "picked", "against")
MOST = 7  # largest D that is compared by default (chosen: a table that fits on a screen)
# least share of redraws with the same choice for a stable one (derived: if a redraw makes it half of the time, at least
# 8 of 10 do so with probability 5.5 %)
STABLE = 0.8
# least standard deviation of a coordinate, relative to that in a neighbourhood. A function that moves no farther than
# that describes the thickness of the manifold (measured by `python -m benchmarks.coordinates null`: 0.92 to 1.16 for
# noise, 1.30 to 1.34 for the vibrating ω, above 3.7 for the known coordinates of eight systems)
EXTENT = 1.5
# least variance of a direction of the tangent space, relative to the first (measured by the same command: the last of
# the known directions has above 0.35; one direction too many mostly has 0.02 to 0.04, of curvature and noise, but up to
# 0.46 in molecules, whose vibrations only the other rules recognize)
SHARE = 0.15


@dataclass(frozen=True)
class DimensionRow:
    """The joint selection for one dimension, and its evidence.

    `labels` are the picked functions, `log_loss` is the logarithm of the loss per direction, whose ideal is 0, `shares`
    are the mean variances of the neighbourhoods in each direction, as shares of the total. `check_points` reports
    `undetermined` of the `points`. `extents` (D,) are the standard deviations of the picked functions, relative to
    those in a neighbourhood; None if values are not known.
    """

    D: int
    labels: Labels
    quality: str
    log_loss: float
    evidence: Evidence
    shares: Array
    undetermined: int
    points: int
    extents: Array | None

    @property
    def explained(self) -> float:
        """The share of the variance in the D directions."""
        return float(self.shares[: self.D].sum())

    @property
    def is_thin(self) -> bool:
        """Whether the last direction has little variance, as curvature and noise have."""
        return bool(self.shares[self.D - 1] < SHARE * self.shares[0])

    @property
    def against(self) -> str:
        """What speaks against this dimension, in words; empty if nothing does."""
        redraws, said = len(self.evidence.subsets), []
        if self.quality != "good coordinates":
            said.append(self.quality)
        if not redraws:
            said.append("no redraws in the time limit")
        elif self.evidence.same < STABLE * redraws:
            said.append(f"another choice in {redraws - self.evidence.same} of {redraws} redraws")
        if self.is_thin:
            said.append(f"direction {self.D} has {self.shares[self.D - 1]:.1%} of the variance")
        if self.extents is not None and (self.extents < EXTENT).any():
            some = [_short(self.labels[i]) for i in np.flatnonzero(self.extents < EXTENT).tolist()]
            said.append(f"{', '.join(some)} {'varies' if len(some) == 1 else 'vary'} little beyond a neighbourhood")
        return "; ".join(said)


@dataclass(frozen=True)
class DimensionScan:
    """The joint selections for several dimensions, one row each, and which is recommended."""

    rows: tuple[DimensionRow, ...]

    @property
    def supported(self) -> bool:
        """Whether nothing speaks against the recommended dimension."""
        return any(not row.against for row in self.rows)

    @property
    def recommended(self) -> int:
        """The largest dimension that nothing speaks against.

        If there is none: that of the lowest loss per direction, among those whose directions have much variance.
        """
        good = [row.D for row in self.rows if not row.against]
        return max(good) if good else min(self.rows, key=lambda row: (row.is_thin, row.log_loss)).D

    @property
    def reason(self) -> str:
        """Why this dimension is recommended, in a sentence."""
        D = self.recommended
        if not self.supported:
            return f"no dimension is supported by its evidence; D = {D} has the lowest loss per direction"
        larger = next((row for row in self.rows if row.D > D), None)
        words = "the largest of these with good, stable coordinates in directions of much variance"
        return f"D = {D} is recommended: {words}" + ("" if larger is None else f" (D = {larger.D}: {larger.against})")

    @property
    def cells(self) -> list[tuple[str, ...]]:
        """The table as text: dimension, loss, redraws, random functions, variance, undetermined, picked, against."""
        made: list[tuple[str, ...]] = []
        for row in self.rows:
            some = row.evidence
            random = loss_text(LogLoss(float(some.random.min())), 3) if some.random.size else "–"
            made.append(
                (
                    str(row.D),
                    loss_text(LogLoss(row.log_loss), DIGITS),
                    random,
                    f"{some.same} of {len(some.subsets)}",
                    f"{row.explained:.0%}",
                    f"{row.undetermined} of {row.points}",
                    ", ".join(_short(label) for label in row.labels),
                    row.against,
                )
            )
        return made

    def __str__(self) -> str:
        rows = [HEADS, *self.cells]
        widths = [max(len(row[i]) for row in rows) for i in range(len(HEADS) - 2)]
        lines = ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=False)) for row in rows]
        ends = [
            "picked, and what speaks against",
            *(row[-2] + (f" ({row[-1]})" if row[-1] else "") for row in rows[1:]),
        ]
        return "\n".join([*(f"{line}  {end}" for line, end in zip(lines, ends, strict=True)), f"{self.reason}."])


def _short(label: object) -> str:
    """The name of a function without its atoms or its kind: φ of "φ (ACE:C–ALA:N–ALA:CA–ALA:C)"."""
    return printable(re.sub(r" (torsion|angle|distance)$", "", str(label).split(" (")[0]))
