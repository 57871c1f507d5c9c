"""The best subset that a search knows, the bound that it has proved, and why it stopped. Every stage reports here.

`Incumbent.report` calls the caller's callback. If that returns True, the stage returns StopReason.INTERRUPTED, the
driver stores it in `stop`, and the status becomes "interrupted".
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from isopursuit._types import Array, Indices, Status
from isopursuit.clock import Clock
from isopursuit.loss.penalty import PROVED, STATED, to_loss
from isopursuit.progress import seconds_text
from isopursuit.results import NO_BOUND, USEFUL, loss_text
from isopursuit.search.settings import REPORT_SECONDS


@dataclass(frozen=True)
class SearchProgress:
    """The state of a running search, as a callback sees it: `incumbent` is the loss of the columns `indices`, which the
    stage `found_by` found. `method` is the method that runs, where `select` chose it.
    """

    seconds: float
    incumbent: float
    lower_bound: float
    gap: float
    nodes: int
    open_nodes: int
    indices: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    found_by: str = ""
    method: str = ""

    def line(self, time_limit: float | None = None, method: str = "") -> str:
        """One line for reading: the method, the time, the best loss and the bound where there is a useful one, then the
        speed of the tree once it has nodes, or else the stage that found the subset.
        """
        begin = [word for word in (self.method or method, seconds_text(self.seconds, time_limit)) if word]
        parts = [f"{', '.join(begin)}: loss {loss_text(self.incumbent)}"]
        if self.gap <= USEFUL:
            parts += [f"bound {loss_text(self.lower_bound)}", f"gap {100 * self.gap:.2f} %"]
        else:
            parts.append(NO_BOUND)
        speed = self.nodes / max(self.seconds, 1e-9)
        if self.nodes:
            parts.append(f"{speed:,.0f} nodes/s" if speed >= 1 else f"{self.nodes} nodes")
        elif self.found_by:
            parts.append(f"found by: {self.found_by}")
        return "  ".join(parts)


Callback = Callable[[SearchProgress], bool | None]


class StopReason(enum.Enum):
    """Why a search ended before its subset was proved; the value is the status that the caller sees."""

    TIME = "time"
    NODES = "nodes"
    MEMORY = "memory"
    PRECISION = "precision"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class SearchOutcome:
    """What a search answers: positions in its pool, and what is known about them."""

    subset: Indices
    status: Status
    evaluations: int
    lower_bound: float | None = None
    nodes: int = 0
    notes: tuple[str, ...] = ()


@dataclass
class Incumbent:
    """The best subset so far.

    Attributes
    ----------
    ideal : float
        What no subset's loss is below, before anything is proved: D for each point.
    gap : float
        The search ends when the loss is proved to be within this relative distance of the best.
    subset, log_loss
        Positions in the pool, sorted, and the logarithm of their loss; nothing and infinite at first.
    lower_bound : float
        No subset's loss is below this.
    least : float
        The least that the loss of an evaluated subset can be, given its rounding. Where it is below what would be
        proved, float64 does not decide.
    seen : tuple of int
        Positions of the columns of all subsets that descents ended in, those of the best subsets first.
    swap_optimal : bool
        Whether passes have shown that no single swap with any column of a source improves the subset.
    point_bounds : (n,) array or None
        At many points: a bound on the loss of any subset at each of them.
    """

    ideal: float
    gap: float = 0.0
    clock: Clock = field(default_factory=lambda: Clock.of(None))
    report_to: Callable[[SearchProgress], bool | None] | None = None
    subset: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    log_loss: float = np.inf
    lower_bound: float = field(default=-np.inf)
    least: float = np.inf
    evaluations: int = 0
    nodes: int = 0
    seen: tuple[int, ...] = ()
    found_by: str = ""
    swap_optimal: bool = False
    point_bounds: Array | None = None
    notes: tuple[str, ...] = ()
    stop: StopReason | None = None
    last_report: float = -np.inf
    reported_log_loss: float = np.inf

    def __post_init__(self) -> None:
        self.lower_bound = max(self.lower_bound, self.ideal)

    @property
    def loss(self) -> float:
        """The loss, infinite where it overflows float64."""
        return to_loss(self.log_loss)

    @property
    def limit(self) -> float:
        """What a better subset's loss is below."""
        return self.loss * (1 - PROVED)

    @property
    def proved(self) -> bool:
        """Whether no subset is better."""
        return len(self.subset) > 0 and self.lower_bound >= self.limit

    @property
    def closed(self) -> bool:
        """Whether the bound is as close to the loss as was asked for."""
        # an infinite loss is within no gap, though inf <= gap * inf
        return self.proved or self.loss - self.lower_bound <= self.gap * self.loss < np.inf

    @property
    def status(self) -> Status:
        """Proved, or why not."""
        if self.closed:
            status, claim = ("optimal", STATED) if self.proved else ("gap", max(self.gap, STATED))
            return status if self.decides(self.loss, claim) else "precision"
        if self.stop is not None:
            return self.stop.value
        return "heuristic" if self.decides(self.loss) else "precision"

    def offer(self, subset: NDArray[np.integer], log_loss: float, found_by: str) -> bool:
        """Take over a subset if it is better; whether it is."""
        if len(self.subset) and not log_loss < self.log_loss:
            return False
        subset = np.sort(subset).astype(np.intp)
        self.swap_optimal = self.swap_optimal and np.array_equal(subset, self.subset)
        self.subset, self.log_loss, self.found_by = subset, log_loss, found_by
        return True

    def raise_bound(self, bound: float) -> None:
        """Every subset's loss is at least this, or at least the loss that is known."""
        self.lower_bound = max(self.lower_bound, min(bound, self.loss))

    def decides(self, loss: float, claim: float = STATED) -> bool:
        """Whether float64 decides that no evaluated subset is below this loss, to a relative `claim`."""
        return not self.least < loss * (1 - claim)

    def report(self, nodes: int = 0, open_nodes: int = 0, *, at_once: bool = False) -> bool:
        """Call the callback about ten times a second, and where the loss has fallen; True if the search is to stop."""
        if self.report_to is None:
            return False
        seconds = self.clock.seconds
        improved = self.log_loss < self.reported_log_loss
        if not (at_once or improved or seconds >= self.last_report + REPORT_SECONDS):
            return False
        self.last_report, self.reported_log_loss = seconds, self.log_loss
        loss, bound = self.loss, min(self.lower_bound, self.loss)
        gap = (loss - bound) / loss if loss < np.inf else np.inf
        nodes += self.nodes
        progress = SearchProgress(seconds, loss, bound, gap, nodes, open_nodes, self.subset, self.found_by)
        return bool(self.report_to(progress))

    def inside(self, ideal: float, gap: float = 0.0) -> Incumbent:
        """An incumbent for a smaller search inside a stage, whose reports are calls of this one's."""
        return Incumbent(ideal, gap, self.clock, lambda _: self.report())

    def found(self) -> SearchOutcome:
        """The answer as it stands."""
        bound = min(self.lower_bound, self.least)
        return SearchOutcome(self.subset, self.status, self.evaluations, bound, self.nodes, self.notes)
