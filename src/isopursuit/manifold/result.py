"""The answer of `find_coordinates`: the picked functions, the loss at each point, and files for further work."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isopursuit._core import html
from isopursuit._core.linalg import spectrum
from isopursuit._core.outputs import check_writable, write_whole
from isopursuit._core.text import LogLoss, loss_text, plain
from isopursuit._core.types import Array, Indices, Labels, Mask
from isopursuit.errors import ParameterError, printable
from isopursuit.loss.penalty import log_spectral_loss, to_loss
from isopursuit.manifold.internal import torsion_values
from isopursuit.manifold.shapes import shapes
from isopursuit.manifold.tables import as_table_path, table_content
from isopursuit.selection.pointwise import PointwiseSelection, select_pointwise
from isopursuit.selection.result import Selection

if TYPE_CHECKING:
    from isopursuit.manifold.checks import PointChecks
    from isopursuit.manifold.dictionary import Dictionary, Differentials
    from isopursuit.manifold.dimension import DimensionEvidence
    from isopursuit.manifold.molecules import TorsionMatrices
    from isopursuit.manifold.tangent import TangentSpaces
    from isopursuit.manifold.trajectory import Trajectory

POINTWISE_SECONDS = 60.0  # that the selection at each point by itself may take (guess: 100 points take a few)
REPORT_SECONDS = 60.0  # default time limit of a report (guess: pictures take a few)
WORST = 3  # points of the largest loss that the text names
DIGITS = 4  # of a loss per point, for reading


@dataclass(frozen=True)
class PointLoss:
    """The loss of the picked functions at one point: its `number` among the data, the loss, and its logarithm."""

    number: int
    loss: float
    log_loss: float

    def __str__(self) -> str:
        return f"{self.number} ({loss_text(self, DIGITS)})"


@dataclass(frozen=True)
class Coordinates:
    """The answer of `find_coordinates`: a few functions as coordinates of a manifold.

    Arrays with n rows are about the chosen points, in the order of `points`.

    Attributes
    ----------
    selection : Selection
        The picked functions, their loss and proof over the `used` points, and replacements.
    points : ndarray of int, shape (n,)
        The numbers of the chosen frames, or points.
    used : ndarray of bool, shape (n,)
        Which of them the selection uses: all, or with leave_out=True only determined ones.
    matrices : TorsionMatrices or Differentials
        The differentials of all functions at the chosen points.
    tangents : TangentSpaces
        The tangent spaces there.
    checks : PointChecks
        Which of these points are undetermined, and why.
    dimension : DimensionEvidence or None
        The evidence for the estimate of D; None if D was given.
    trajectory : Trajectory or None
        All frames, with the chosen atoms; None if points were given.
    torsions : ndarray of int, shape (D, 4), or None
        The atoms of the picked torsions by their numbers in the file, from 0.
    data : ndarray, shape (N, B), or None
        All points; None for a trajectory, see `manifold_points`.
    dictionary : Dictionary or None
        The functions, if points were given.
    seconds : float
        Wall-clock time.
    call : str
        The call that gave this answer, as Python code. `data` and `dictionary` stand for your objects.
    """

    selection: Selection
    points: Indices
    used: Mask
    matrices: TorsionMatrices | Differentials
    tangents: TangentSpaces
    checks: PointChecks
    dimension: DimensionEvidence | None = None
    trajectory: Trajectory | None = None
    torsions: Indices | None = None
    data: Array | None = None
    dictionary: Dictionary | None = None
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    call: str = ""

    @property
    def labels(self) -> Labels:
        """The picked functions."""
        return self.selection.labels

    @property
    def D(self) -> int:
        """The dimension of the manifold, which is the number of picked functions."""
        return self.tangents.dimension

    @cached_property
    def point_log_losses(self) -> Array:
        """The logarithm of the loss of the picked functions at each chosen point, (n,), including those left out."""
        picked = self.matrices.matrices[:, :, self.selection.indices]
        return np.asarray(log_spectral_loss(spectrum(picked), self.selection.c))

    @property
    def point_losses(self) -> Array:
        """The loss of the picked functions at each chosen point, (n,). The ideal is D; infinite on overflow."""
        return np.array([to_loss(one) for one in self.point_log_losses.tolist()])

    @property
    def loss_per_point(self) -> float:
        """The loss of a typical point, by the aggregate that the selection minimized. The ideal is D."""
        return self.selection.loss_per_point

    def _per_point(self, log_loss: float) -> str:
        """The loss of a typical point as text, from the logarithm of the aggregated loss."""
        return loss_text(LogLoss(self.selection.aggregate.per_point(log_loss, self.selection.points)), DIGITS)

    @property
    def unit(self) -> str:
        """The length that counts as 1, in words."""
        if getattr(self.matrices, "overall", False):
            return f"each torsion has mean square length 1 over the {self._noun}s"
        return self.selection.unit

    @property
    def verdict(self) -> str:
        """What is proved, in words."""
        return self.selection.verdict

    def worst(self, count: int = WORST) -> tuple[PointLoss, ...]:
        """The used points with the largest losses, largest first."""
        order = np.argsort(-np.where(self.used, self.point_log_losses, -np.inf), kind="stable")
        order = order[: min(count, self.selection.points)].tolist()
        logs = self.point_log_losses.tolist()
        return tuple(PointLoss(int(self.points[i]), to_loss(logs[i]), logs[i]) for i in order)

    @cached_property
    def pointwise(self) -> PointwiseSelection:
        """The best functions at each chosen point separately; computed on first use."""
        return self.pointwise_within(POINTWISE_SECONDS)

    def pointwise_within(self, time_limit: float | None) -> PointwiseSelection:
        """`pointwise` if it is known, otherwise the same for the points that are reached in this time."""
        known: PointwiseSelection | None = vars(self).get("pointwise")
        if known is not None:
            return known
        return select_pointwise(self.matrices, self.selection.c, method="exact", time_limit=time_limit, unit=None)

    def manifold_points(self) -> Array:
        """All points of the manifold, (N, B): as given, or the shapes of a trajectory, given by all planar angles."""
        if self.data is not None:
            return self.data
        return shapes(self._frames.positions)[0]

    def values(self) -> Array:
        """The values of the picked functions at all frames or points, (N, D); torsions in radians, from −π to π."""
        if self.dictionary is None:
            rows = self.matrices.torsions[self.selection.indices]  # type: ignore[union-attr]
            return torsion_values(self._frames.positions, rows)
        known = self.dictionary.values
        if known is None or self.data is None or len(known) != len(self.data):
            raise ParameterError(
                "The dictionary has no values at all points. Build it with values, for example with "
                "`evaluate_dictionary` at all points."
            )
        return known[:, self.selection.indices]

    # ------------------------------------------------------------------------------------------- into files

    def to_table(self, path: str | Path) -> None:
        """Write `values` as a table, .csv or .parquet (extra `files`): the number of the frame or point, then one
        column for each picked function, headed by its label.
        """
        path = as_table_path(path)
        write_whole(path, self.table_content(path.suffix.lower()))

    def table_content(self, kind: str) -> str | bytes:
        """The content of a table file of this kind, ".csv" or ".parquet"."""
        return table_content(kind, [self._noun, *(str(label) for label in self.labels)], self.values())

    def to_plumed(self, path: str | Path) -> None:
        """Write a PLUMED input file with one TORSION line for each picked torsion.

        Atoms have their numbers in the file, counted from 1 as in PLUMED.
        """
        path = Path(path)
        check_writable(path, "to_plumed")
        write_whole(path, self.plumed_content())

    def plumed_content(self) -> str:
        """The text of a PLUMED input file."""
        from isopursuit.manifold.plumed import plumed_text

        if self.torsions is None:
            raise ParameterError(
                "Only torsions of a trajectory can be written for PLUMED, and these functions are not torsions."
            )
        return plumed_text(self.torsions, tuple(map(str, self.labels)))

    def to_report(self, path: str | Path, *, title: str | None = None, command: str | None = None) -> None:
        """Write one self-contained HTML page with pictures (extra `report`); see `coordinates_report_html`."""
        path = Path(path)
        check_writable(path, "to_report")
        write_whole(path, self.report_content(title=title, command=command))

    def report_content(
        self, *, title: str | None = None, command: str | None = None, time_limit: float | None = REPORT_SECONDS
    ) -> str:
        """The text of the report; see `coordinates_report_html`."""
        # imported here, because the report is a later layer
        report: Any = import_module("isopursuit.show._coordinates_report")
        return str(report.coordinates_report_html(self, title=title, command=command, time_limit=time_limit))

    def as_dict(self) -> dict[str, Any]:
        """For JSON; values that are not finite become None."""
        undetermined = np.flatnonzero(self.checks.undetermined).tolist()
        return {
            "source": None if self.trajectory is None else self.trajectory.source,
            "labels": [plain(label) for label in self.labels],
            "torsions": None if self.torsions is None else self.torsions.tolist(),
            "D": self.D,
            "D_is": "given" if self.dimension is None else "estimated",
            "D_suggested": self._suggested,
            "loss_per_point": plain(self.loss_per_point),
            "aggregate": str(self.selection.aggregate),
            "points": self.points.tolist(),
            "used": self.used.tolist(),
            "neighbours": int(np.median(self.tangents.counts)),
            "point_log_losses": [plain(value) for value in self.point_log_losses.tolist()],
            "worst": [{name: plain(value) for name, value in vars(one).items()} for one in self.worst()],
            "undetermined": [{"point": int(self.points[i]), "reason": self.checks.reasons[i]} for i in undetermined],
            "selection": self.selection.as_dict(),
            "unit": self.unit,
            "seconds": self.seconds,
            "notes": list(self.notes),
        }

    # ------------------------------------------------------------------------------------------- for reading

    @property
    def _noun(self) -> str:
        return "point" if self.trajectory is None else "frame"

    @property
    def _frames(self) -> Trajectory:
        assert self.trajectory is not None  # there is either a trajectory or data
        return self.trajectory

    @property
    def _suggested(self) -> int:
        """The dimension that most spectra suggest, or that of the evidence if D was estimated."""
        if self.dimension is not None:
            return int(self.dimension.suggested)
        return int(np.bincount(self.tangents.dimensions).argmax())

    @property
    def title(self) -> str:
        """One line: how many functions were picked, and from what."""
        of = f"points in {self.tangents.bases.shape[1]} dimensions"
        if self.trajectory is not None:
            of = f"frames of {len(self.trajectory.numbers)} atoms"
            of += f" of {self.trajectory.source}" if self.trajectory.source else ""
        N = len(self.data) if self.data is not None else len(self._frames.positions)
        kind = "functions" if self.trajectory is None else "torsions"
        return f"{self.D} of {len(self.matrices.labels)} {kind}, at {len(self.points)} of {N:,} {of}"

    @property
    def summary(self) -> list[str]:
        """A line each about the loss, the worst points, undetermined points, the dimension and the unit."""
        loss = self._per_point(self.selection.log_loss)
        over = self.selection.aggregate.words(self.selection.points).replace("point", self._noun)
        lines = [
            f"loss per {self._noun} {loss} (ideal {self.D}), {over}; {self.verdict}",
            f"worst {self._noun}s, with their losses: {', '.join(map(str, self.worst()))}",
            self._undetermined_line,
            self._dimension_line,
            f"neighbours of each {self._noun}: {int(np.median(self.tangents.counts))}; unit: {self.unit}",
        ]
        return [line for line in lines if line]

    @property
    def _undetermined_line(self) -> str:
        mask = self.checks.undetermined
        if not mask.any():
            return f"undetermined {self._noun}s: none"
        why = "; ".join(f"{int(some.sum())} {kind}" for kind, some in self.checks.kinds.items() if some.any())
        how = "left out" if not self.used[mask].any() else "counted all the same, leave_out=True leaves them out"
        return f"undetermined {self._noun}s: {int(mask.sum())} of {len(mask)}, {how} ({why})"

    @property
    def _dimension_line(self) -> str:
        shares = np.bincount(self.tangents.dimensions, minlength=self.D + 1) / len(self.tangents.dimensions)
        most = int(shares.argmax())
        if self.dimension is None:
            other = "" if most == self.D else f", {shares[most]:.0%} suggest D = {most}"
            return (
                f"dimension: D = {self.D} was given; {shares[self.D]:.0%} of the neighbourhoods suggest D = {self.D}"
                f"{other}"
            )
        sizes, used = self.dimension.neighbours, int(np.median(self.tangents.counts))
        words = (
            f"dimension: D = {self.D} was estimated: {self.dimension.votes.mean(axis=0)[self.D]:.0%} of the "
            f"neighbourhoods of {sizes[0]} to {sizes[-1]} {self._noun}s suggest it, more than any other dimension"
        )
        if most == self.D:
            return words
        return f"{words}; of those of {used} {self._noun}s, used here, {shares[most]:.0%} suggest D = {most}"

    def _replacement(self, i: int) -> str:
        """The best replacement of the i-th picked function, with the loss per point after the swap."""
        choice = self.selection.choices[i]
        if choice.replacement is None or np.isnan(choice.price):
            return choice.replacement_text
        return f"{choice.replacement_text} ({self._per_point(choice.log_loss)})"

    @property
    def rows(self) -> list[tuple[str, str]]:
        """The label of each picked function, and its best replacement with the loss per point after the swap."""
        return [(str(label), self._replacement(i)) for i, label in enumerate(self.labels)]

    def __str__(self) -> str:
        width = max(8, *(len(printable(name)) for name, _ in self.rows))
        lines = [self.title, f"  {'function':<{width}}  best replacement (loss with it)"]
        lines += [f"  {printable(name):<{width}}  {printable(other)}" for name, other in self.rows]
        lines += [f"  {printable(line)}" for line in self.summary]
        return "\n".join(lines + [f"  note: {printable(note)}" for note in self.notes])

    def _repr_html_(self) -> str:
        return html.result(
            self.title,
            self.verdict,
            html.table(("function", "best replacement (loss with it)"), self.rows),
            *(f"<p>{html.escape(line)}</p>" for line in self.summary),
            notes=self.notes,
        )
