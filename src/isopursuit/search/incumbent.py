"""The limits of a search, and its incumbent: the best subset known, the proved lower bound, and why the search stopped.

Every search reports to the incumbent. `Incumbent.report` calls the caller's callback. If that returns True, the search
returns StopReason.INTERRUPTED, which is stored in `stop`, and the status becomes "interrupted".
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.atomic import check_writable
from isopursuit._core.clock import REPORT_SECONDS, Clock
from isopursuit._core.text import NO_BOUND, USEFUL, loss_text, seconds_text
from isopursuit._core.types import Indices, Status
from isopursuit.loss.penalty import PROVED, STATED, to_loss
from isopursuit.search.settings import BUDGET, KICKS
from isopursuit.sources.columns import MEMORY


@dataclass(frozen=True)
class SearchProgress:
    """The state of a running search, for callbacks. `incumbent` is the loss of the best columns so far, `indices`, and
    `found_by` is the stage that found them. `method` is the running method if `select` chose it. Before a first subset
    is known, the loss is infinite and there are no indices.
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
        """One line of text: the method, the time, the best loss and a useful bound, then the speed of the tree or, if
        it has no nodes yet, the stage that found the subset.
        """
        begin = [word for word in (self.method or method, seconds_text(self.seconds, time_limit)) if word]
        if self.method == "greedy":
            picked = len(self.indices)
            return f"{', '.join(begin)}: {picked} of {picked + self.open_nodes} columns"
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
T = TypeVar("T")


@dataclass(frozen=True)
class Limits:
    """When a search ends, how much it tries, and whom it tells."""

    clock: Clock
    gap: float | None = 0.0  # the search ends when its gap is at most this; None: "auto" chooses
    nodes: int | None = None  # most nodes of the tree
    workers: int = 1
    memory: int = MEMORY  # most bytes of columns that a source may load
    starts: int | None = None  # starts of the local search, or greedy runs; None for the default of the method
    kicks: int = KICKS  # of the local search
    budget: int = BUDGET  # most subsets of a brute-force search
    seed: np.random.Generator | int = 0  # for starts and kicks
    start: Indices | None = None  # a subset that is known, in the caller's numbers; the answer is at least as good
    lower_bound: float = 0.0  # a bound that is known
    trial: int | None = None  # a proof ends after so many nodes if its tree only grows, or if its gap is `enough`
    enough: float = 0.0
    brief: bool = False  # whether a local search ends where more kicks hardly help
    callback: Callback | None = None  # receives the progress, in the caller's numbers
    proof: ProofFile | None = None  # where to write a proof that can be checked

    @property
    def generator(self) -> np.random.Generator:
        """The source of randomness."""
        return np.random.default_rng(self.seed)


@dataclass(frozen=True)
class ProofFile:
    """Where to write a proof; `reading` says how a command read the table."""

    path: Path
    reading: dict[str, Any] | None = None

    @classmethod
    def of(cls, proof: Any) -> ProofFile | None:
        """The file that the caller names, if any; raises an error if it cannot be written."""
        if proof is None or isinstance(proof, ProofFile):
            return proof
        check_writable(Path(proof), "proof")
        return cls(Path(proof))


class StopReason(enum.Enum):
    """Why a search ended without a proof; the value is the status in the answer."""

    TIME = "time"
    NODES = "nodes"
    MEMORY = "memory"
    PRECISION = "precision"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class SearchOutcome:
    """The answer of a search: positions in its pool, with loss and bound."""

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
        The trivial lower bound: k for each point.
    gap : float
        The search ends when the loss is proved to be within this relative distance of the best.
    subset, log_loss
        Sorted positions in the pool, and the logarithm of their loss; empty and infinite at first.
    lower_bound : float
        No subset's loss is below this.
    least : float
        The least possible loss of an evaluated subset, given rounding. If it is below the loss to prove, float64 cannot
        decide.
    swap_optimal : bool
        Whether passes have shown that no single swap with any column of a source improves the subset.
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
    found_by: str = ""
    swap_optimal: bool = False
    notes: tuple[str, ...] = ()
    stop: StopReason | None = None
    asked: bool = False  # whether the callback has asked to stop
    last_report: float = 0.0
    reported_log_loss: float = np.inf

    def __post_init__(self) -> None:
        self.lower_bound = max(self.lower_bound, self.ideal)

    @property
    def loss(self) -> float:
        """The loss; infinite if it overflows float64."""
        return to_loss(self.log_loss)

    @property
    def limit(self) -> float:
        """The cutoff: a better subset has a lower loss than this."""
        return self.loss * (1 - PROVED)

    @property
    def proved(self) -> bool:
        """Whether no subset is better."""
        return len(self.subset) > 0 and self.lower_bound >= self.limit

    @property
    def closed(self) -> bool:
        """Whether the requested gap is reached."""
        # an infinite loss never reaches a gap, although inf <= gap * inf
        return self.proved or self.loss - self.lower_bound <= self.gap * self.loss < np.inf

    @property
    def status(self) -> Status:
        """The status of the answer: proved, or why not."""
        if self.closed:
            status, claim = ("optimal", STATED) if self.proved else ("gap", max(self.gap, STATED))
            return status if self.decides(self.loss, claim) else "precision"
        if self.stop is not None:
            return self.stop.value
        return "heuristic" if self.decides(self.loss) else "precision"

    @contextmanager
    def ended_by_caller(self) -> Generator[None]:
        """The callback or Ctrl-C ends the search inside and keeps the best subset so far, if there is one."""
        try:
            yield
        except KeyboardInterrupt:
            if len(self.subset) == 0:
                raise
            self.clock.pressed()
            self.stop = StopReason.INTERRUPTED
            return
        if self.asked:
            self.stop = StopReason.INTERRUPTED

    def offer(self, subset: NDArray[np.integer], log_loss: float, found_by: str) -> bool:
        """Replace the subset if this one is better; returns whether it is."""
        if len(self.subset) and not log_loss < self.log_loss:
            return False
        subset = np.sort(subset).astype(np.intp)
        self.swap_optimal = self.swap_optimal and np.array_equal(subset, self.subset)
        self.subset, self.log_loss, self.found_by = subset, log_loss, found_by
        return True

    def raise_bound(self, bound: float) -> None:
        """Raise the lower bound to this, but not above the best loss known."""
        self.lower_bound = max(self.lower_bound, min(bound, self.loss))

    def decides(self, loss: float, claim: float = STATED) -> bool:
        """Whether float64 can decide that no evaluated subset is below this loss, up to a relative `claim`."""
        return not self.least < loss * (1 - claim)

    def report(self, nodes: int = 0, open_nodes: int = 0, *, at_once: bool = False) -> bool:
        """Call the callback about ten times a second and whenever the loss falls; True if the search must stop."""
        nodes += self.nodes
        if self.report_to is None or self.asked:
            return self.asked
        seconds = self.clock.seconds
        improved = self.log_loss < self.reported_log_loss
        if not (at_once or improved or seconds >= self.last_report + REPORT_SECONDS):
            return False
        self.last_report, self.reported_log_loss = seconds, self.log_loss
        loss, bound = self.loss, min(self.lower_bound, self.loss)
        gap = (loss - bound) / loss if loss < np.inf else np.inf
        progress = SearchProgress(seconds, loss, bound, gap, nodes, open_nodes, self.subset, self.found_by)
        self.asked = bool(self.report_to(progress))
        return self.asked

    def reporting(self, clock: Clock, nodes: Callable[[], int] = int) -> Clock:
        """The clock for stages: loops that look at it call the callback, if there is one, with so many more nodes."""
        return clock if self.report_to is None else clock.reporting(lambda: self.report(nodes()))

    def answered(self, answer: Callable[[], T]) -> T:
        """The answer of the search. The first Ctrl-C of the call does not lose it: it is computed again."""
        try:
            return answer()
        except KeyboardInterrupt:
            self.clock.pressed()
            self.stop = StopReason.INTERRUPTED
            return answer()

    def found(self) -> SearchOutcome:
        """The answer so far."""
        bound = min(self.lower_bound, self.least)
        return SearchOutcome(self.subset, self.status, self.evaluations, bound, self.nodes, self.notes)
