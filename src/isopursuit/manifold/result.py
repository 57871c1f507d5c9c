"""The answer of `find_coordinates`: the picked functions, the loss at each point, and files for further work."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from isopursuit._core.atomic import check_writable, write_whole
from isopursuit._core.linalg import spectrum
from isopursuit._core.summary import Shown, Summary
from isopursuit._core.text import LogLoss, loss_text, number, plain
from isopursuit._core.types import Array, Indices, Labels, Mask
from isopursuit.errors import ParameterError
from isopursuit.loss.penalty import log_penalty, log_spectral_loss, to_loss
from isopursuit.manifold.dictionary import TURN, Atoms, Dictionary
from isopursuit.manifold.differentials import Differentials
from isopursuit.manifold.dimension import DimensionRow, DimensionScan
from isopursuit.manifold.evidence import DIGITS, Evidence, PointChecks, spreads
from isopursuit.manifold.tangent import TangentSpaces
from isopursuit.molecules import Trajectory, plumed_text
from isopursuit.selection.result import Selection

WORST = 3  # points of the largest loss that the text names
# definitions of the words: the loss per direction is that of a direction in which the functions change too fast by such
# a factor. Up to the first they are good coordinates, up to the second poor ones, and none beyond. At c = 1 the losses
# are 1.66 and 3.95. The best of random functions reach 1.48 at D = 1 and 2.2 at D = 2, with medians 1.86 and 165
# (measured by `python -m benchmarks.coordinates null`), so `Evidence.is_noise` compares with those of the same data
GOOD, POOR = 2.0, 3.0


@dataclass(frozen=True)
class Coordinates(Shown):
    """The answer of `find_coordinates`: a few functions as coordinates of a manifold.

    Attributes
    ----------
    selection : Selection
        The picked functions, their loss and proof over the points, and replacements.
    matrices : Differentials
        The differentials of all functions at the points, and the tangent spaces there.
    checks : PointChecks
        Which of the points that were drawn are undetermined, and why.
    evidence : Evidence
        What is picked when the points are drawn again, and what random functions reach.
    scan : DimensionScan or None
        The comparison of dimensions; None if one D was given.
    trajectory : Trajectory or None
        All frames, with the chosen atoms; None if points were given.
    data : ndarray, shape (N, B)
        All points: those that were given, or the shapes of all frames.
    dictionary : Dictionary
        The functions.
    seconds : float
        Wall-clock time.
    call : str
        The call that gave this answer, as Python code. `data` and `dictionary` stand for your objects.
    """

    selection: Selection
    matrices: Differentials
    checks: PointChecks
    evidence: Evidence
    scan: DimensionScan | None
    trajectory: Trajectory | None
    data: Array
    dictionary: Dictionary
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    call: str = ""

    @property
    def labels(self) -> Labels:
        """The picked functions."""
        picked: list[int] = self.selection.indices.tolist()
        return tuple(self.matrices.labels[i] for i in picked)

    @property
    def D(self) -> int:
        """The dimension of the manifold, which is the number of picked functions."""
        return self.tangents.dimension

    @property
    def tangents(self) -> TangentSpaces:
        """The tangent spaces at the points."""
        return self.matrices.tangents

    @property
    def points(self) -> Indices:
        """The numbers of the frames or points at which the functions were compared, (n,)."""
        return self.tangents.at

    @property
    def undetermined(self) -> Mask:
        """Which of `points` have an undetermined tangent space, (n,)."""
        return np.isin(self.points, self.checks.at[self.checks.undetermined])

    @property
    def atoms(self) -> Atoms | None:
        """The atoms of the picked functions by their numbers in the file, from 0; None if they are not known."""
        known: Atoms | None = self.dictionary.atoms
        picked: list[int] = self.selection.indices.tolist()
        return None if known is None else tuple(known[i] for i in picked)

    @cached_property
    def point_log_losses(self) -> Array:
        """The logarithm of the loss of the picked functions at each point, (n,)."""
        picked = self.matrices.matrices[:, :, self.selection.indices]
        return np.asarray(log_spectral_loss(spectrum(picked), self.selection.c))

    @property
    def point_losses(self) -> Array:
        """The loss of the picked functions at each point, (n,). The ideal is D; infinite on overflow."""
        return np.array([to_loss(one) for one in self.point_log_losses.tolist()])

    @property
    def loss_per_point(self) -> float:
        """The loss of a typical point, by the aggregate that the selection minimized. The ideal is D."""
        return self.selection.loss_per_point

    @property
    def log_loss_per_direction(self) -> float:
        """The logarithm of the loss of a typical point, divided by D. The ideal is 0."""
        return self._per_point(self.selection.log_loss) - float(np.log(self.D))

    @property
    def quality(self) -> str:
        """Whether the functions are coordinates: "good coordinates", "poor coordinates" or "not coordinates".

        By the loss per direction, which is that of a stretch by some factor: good up to 2, poor up to 3. They are not
        coordinates if random functions reach nearly the same loss (`Evidence.is_noise`), and at most poor ones if there
        is a `doubt`.
        """
        good, poor = log_penalty(np.array([GOOD, POOR]), self.selection.c).tolist()
        found = self.log_loss_per_direction
        if self.evidence.is_noise(found) or found > poor:
            return "not coordinates"
        return "good coordinates" if found <= good and not self.doubt else "poor coordinates"

    @property
    def doubt(self) -> str:
        """Why the data do not determine the choice, in words: most redraws or tangent spaces differ. Mostly empty."""
        redraws, bad = len(self.evidence.subsets), int(self.undetermined.sum())
        if not redraws:
            return "no redraws in the time limit"
        if 2 * self.evidence.same < redraws:
            return f"another choice in {redraws - self.evidence.same} of {redraws} redraws"
        return f"{bad} of {len(self.points)} tangent spaces are undetermined" if 2 * bad > len(self.points) else ""

    @property
    def verdict(self) -> str:
        """Whether the functions are coordinates, and then what is proved, in words."""
        loss = loss_text(LogLoss(self.log_loss_per_direction), DIGITS)
        proof = self.selection.verdict
        proof = "this is proved to be the best subset" if proof == "proved optimal" else f"this subset is {proof}"
        but = (
            "not clearly below random functions" if self.evidence.is_noise(self.log_loss_per_direction) else self.doubt
        )
        return f"{self.quality}: loss per direction {loss} (ideal 1){f', {but}' if but else ''}; {proof}"

    @cached_property
    def spread(self) -> Array | None:
        """The standard deviation of each picked function over all points, of circular ones about their circular mean.

        In the unit of the values, (D,); None if the values are not known at all points.
        """
        return None if self._known is None else spreads(self._known, self._periods)

    @cached_property
    def extents(self) -> Array | None:
        """`spread` relative to the median of the same in the neighbourhoods, (D,)."""
        if self._known is None or self.spread is None or self.tangents.members is None:
            return None
        inside = np.array([spreads(self._known[near], self._periods) for near in self.tangents.members])
        middle = np.median(inside, axis=0)
        return self.spread / np.where(middle > 0, middle, np.inf)

    @property
    def circular(self) -> bool:
        """Whether all picked functions are angles in radians."""
        return self._periods is not None and bool(np.isclose(self._periods, TURN).all())

    @property
    def row(self) -> DimensionRow:
        """These coordinates as a row of a comparison of dimensions."""
        return DimensionRow(
            self.D, self.labels, self.quality, self.log_loss_per_direction, self.evidence,
            self.tangents.shares.mean(axis=0), int(self.checks.undetermined.sum()), len(self.checks.at), self.extents,
        )  # fmt: skip

    @property
    def unit(self) -> str:
        """The length that counts as 1, in words."""
        return self.matrices.unit

    def worst(self, count: int = WORST) -> Indices:
        """The positions in `points` of those with the largest losses, largest first."""
        return np.argsort(-self.point_log_losses, kind="stable")[:count]

    def values(self) -> Array:
        """The values of the picked functions at all frames or points, (N, D): Å, radians, or as they were given."""
        if self._known is None:
            raise ParameterError("The dictionary has no values at all points. Make it with values, too.")
        return self._known

    @cached_property
    def _known(self) -> Array | None:
        """`values`, or None if they are not known."""
        known = self.dictionary.values
        return None if known is None or len(known) != len(self.data) else known[:, self.selection.indices]

    @property
    def _periods(self) -> Array | None:
        """The periods of the picked functions."""
        periods = self.dictionary.periods
        return None if periods is None else periods[self.selection.indices]

    # ------------------------------------------------------------------------------------------- into files

    def to_table(self, path: str | Path) -> None:
        """Write `values` as a .csv table: the number of the frame or point, then one column for each picked function,
        headed by its label.
        """
        write_whole(as_table_path(path), self.table_content())

    def table_content(self) -> str:
        """The text of a .csv table."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([self._noun, *(str(label) for label in self.labels)])
        writer.writerows([number, *row] for number, row in enumerate(self.values().tolist()))
        return text.getvalue()

    def to_plumed(self, path: str | Path) -> None:
        """Write a PLUMED input file with one line for each picked distance, angle or torsion.

        Atoms have their numbers in the file, counted from 1 as in PLUMED.
        """
        path = Path(path)
        check_writable(path, "to_plumed")
        write_whole(path, self.plumed_content())

    def plumed_content(self) -> str:
        """The text of a PLUMED input file."""
        if self.atoms is None:
            raise ParameterError(
                "Only distances, angles and torsions of a molecule can be written for PLUMED, and the atoms of these "
                "functions are not known."
            )
        return f"# {self.verdict}\n{plumed_text(self.atoms, self.labels)}"

    def as_dict(self) -> dict[str, Any]:
        """For JSON; values that are not finite become None."""
        bad = np.flatnonzero(self.checks.undetermined).tolist()
        return {
            "source": None if self.trajectory is None else self.trajectory.source,
            "labels": [plain(label) for label in self.labels],
            "atoms": None if self.atoms is None else [list(row) for row in self.atoms],
            "D": self.D,
            "D_is": "given" if self.scan is None else "recommended" if self.scan.supported else "not supported",
            "dimensions": None if self.scan is None else [self._row_dict(row) for row in self.scan.rows],
            "quality": self.quality,
            "loss_per_direction": plain(to_loss(self.log_loss_per_direction)),
            "redraws": self._row_dict(self.row),
            "spread": None if self.spread is None else [plain(one) for one in self.spread.tolist()],
            "loss_per_point": plain(self.loss_per_point),
            "aggregate": str(self.selection.aggregate),
            "points": self.points.tolist(),
            "neighbours": self.tangents.neighbours,
            "point_log_losses": [plain(value) for value in self.point_log_losses.tolist()],
            "undetermined": [{"point": int(self.checks.at[i]), "reason": self.checks.reason(i)} for i in bad],
            "selection": self.selection.as_dict(),
            "unit": self.unit,
            "seconds": self.seconds,
            "notes": list(self.notes),
        }

    @staticmethod
    def _row_dict(row: DimensionRow) -> dict[str, Any]:
        """One dimension for JSON."""
        return {
            "D": row.D,
            "labels": [plain(label) for label in row.labels],
            "log_loss_per_direction": plain(row.log_loss),
            "same": row.evidence.same,
            "redraws": len(row.evidence.subsets),
            "redraw_log_losses": [plain(one) for one in row.evidence.log_losses.tolist()],
            "random_log_losses": [plain(one) for one in row.evidence.random.tolist()],
            "variance": row.explained,
            "undetermined": row.undetermined,
            "against": row.against,
        }

    # ------------------------------------------------------------------------------------------- for reading

    @property
    def _noun(self) -> str:
        return "point" if self.trajectory is None else "frame"

    def _per_point(self, log_loss: float) -> float:
        """The logarithm of the loss of a typical point, from that of the aggregated loss."""
        return self.selection.aggregate.per_point(log_loss, self.selection.points)

    @property
    def title(self) -> str:
        """One line: how many functions were picked, and from what."""
        if self.trajectory is None:
            of = f"points in {self.data.shape[1]} dimensions"
        else:
            of = f"frames of {len(self.trajectory.numbers)} atoms"
            of += f" of {self.trajectory.source}" if self.trajectory.source else ""
        return f"{self.D} of {len(self.matrices.labels)} functions, at {len(self.points)} of {len(self.data):,} {of}"

    @property
    def summary(self) -> list[str]:
        """A line each about quality and proof, loss, redraws, undetermined points, the dimension and the unit."""
        loss = loss_text(LogLoss(self._per_point(self.selection.log_loss)), DIGITS)
        over = self.selection.aggregate.words(self.selection.points).replace("point", self._noun)
        worst = ", ".join(
            f"{self.points[i]} ({loss_text(LogLoss(float(self.point_log_losses[i])), DIGITS)})" for i in self.worst()
        )
        return [
            self.verdict,
            f"loss per {self._noun} {loss} (ideal {self.D}), {over}; worst {self._noun}s: {worst}",
            self.evidence.line,
            self._undetermined_line,
            self._dimension_line,
            f"neighbours of each {self._noun}: {self.tangents.neighbours}; unit: {self.unit}",
        ]

    @property
    def _undetermined_line(self) -> str:
        mask = self.checks.undetermined
        if not mask.any():
            return f"undetermined {self._noun}s: none"
        angle = self.checks.angles.max()
        return (
            f"undetermined {self._noun}s: {int(mask.sum())} of {len(mask)}, counted all the same (their tangent spaces "
            f"are uncertain by 15° to {angle:.0f}°)"
        )

    @property
    def _dimension_line(self) -> str:
        share = f"{self.tangents.explained.mean():.0%} of the variance of a neighbourhood is in {self.D} direction"
        share += "s" if self.D > 1 else ""
        return f"dimension: {f'D = {self.D} was given' if self.scan is None else self.scan.reason}; {share}"

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """The label of each picked function, its spread, and its best replacement with the loss after the swap."""
        rows: list[tuple[str, str, str]] = []
        for i, choice in enumerate(self.selection.choices):
            text = choice.replacement_text
            if choice.replacement is not None and not np.isnan(choice.price):
                text += f" ({loss_text(LogLoss(self._per_point(choice.log_loss)), DIGITS)})"
            rows.append((str(choice.label), self._spread_text(i), text))
        return rows

    def _spread_text(self, i: int) -> str:
        """How far a picked function moves: ± a standard deviation, of angles in degrees."""
        if self.spread is None:
            return "–"
        angle = self._periods is not None and np.isclose(self._periods[i], TURN)
        return f"± {np.degrees(self.spread[i]):.0f}°" if angle else f"± {number(float(self.spread[i]), 3)}"

    def overview(self) -> Summary:
        """What is shown of the answer."""
        scan = [] if self.scan is None else str(self.scan).splitlines()[:-1]  # the reason is in the summary
        heads = ("picked", ">moves", "best replacement (loss with it)")
        return Summary(
            self.title, self.quality, [self.verdict], heads, self.rows, [*self.summary[1:], *scan], self.notes
        )


def as_table_path(path: str | Path, what: str = "to_table") -> Path:
    """The path of a table to write; raises an error, before any work, if it cannot be written."""
    path = Path(path)
    if path.suffix.lower() != ".csv":
        raise ParameterError(f"{what} writes .csv files. Name the file {path.with_suffix('.csv')}.")
    check_writable(path, what)
    return path
