"""Progress of a running command: a live line, a draft of the answer, and what is known if it is interrupted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isopursuit._core.clock import Clock
from isopursuit._core.outputs import write_whole
from isopursuit._core.progress import SEARCHING, LiveLine, stage_line
from isopursuit._core.text import loss_text, seconds_text
from isopursuit.cli.inputs import Candidates
from isopursuit.cli.output import json_text
from isopursuit.errors import printable
from isopursuit_command import interrupts

if TYPE_CHECKING:
    from isopursuit import PursuitProgress, SearchProgress
    from isopursuit._core.types import Label

SAVE_SECONDS = 1.0  # between two drafts of the answer of an unfinished search (guess)


class Draft:
    """Saves the best subset so far in the output file, so that a killed search leaves a valid answer."""

    def __init__(self, path: Path, candidates: Candidates) -> None:
        self.path, self.candidates = path, candidates
        self.saved = 0.0
        self.now: SearchProgress | None = None  # state that is not in the file yet
        interrupts.last.insert(0, self.leave)

    def __call__(self, now: SearchProgress) -> None:
        """Save if a second has passed."""
        self.now = now
        if now.seconds - self.saved >= SAVE_SECONDS:
            self.saved = now.seconds
            self._save(now, "running")

    def leave(self) -> None:
        """Save the last state of a search that is interrupted."""
        if self.now is not None:
            self._save(self.now, "interrupted")

    def end(self) -> None:
        """Write no more drafts, because the answer follows."""
        self.now = None

    def _save(self, now: SearchProgress, status: str) -> None:
        labels, indices = self.candidates.matrix.labels or (), now.indices.tolist()
        state: dict[str, Any] = {
            "file": str(self.candidates.input.file),
            "indices": [self.candidates.places[i] for i in indices],
            "labels": [str(labels[i]) for i in indices],
            "loss": now.incumbent,
            "lower_bound": now.lower_bound,
            "gap": now.gap,
            "status": status,
            "nodes": now.nodes,
            "seconds": now.seconds,
        }
        write_whole(self.path, json_text(state))


class SearchWatch:
    """The callback of a search. It shows a live line on a terminal, saves drafts, and records the history and what is
    known if the command is interrupted. It never stops the search.
    """

    def __init__(
        self, time_limit: float, labels: Sequence[Label] | None, save: Callable[[SearchProgress], None] | None = None
    ) -> None:
        self.time_limit, self.labels, self.save = time_limit, labels, save
        self.history: list[SearchProgress] = []
        self.live = LiveLine(keep=False, terminal_only=True)

    def __enter__(self) -> SearchWatch:
        interrupts.known = self.known
        return self

    def __exit__(self, *_: object) -> None:
        self.live.end()

    def __call__(self, now: SearchProgress) -> None:
        """Record and show the state of the search."""
        self.history.append(now)
        if self.save is not None:
            self.save(now)
        self.live.show(now.line(self.time_limit))

    def known(self) -> str:
        """The best subset so far, its loss and the bound."""
        if not self.history:
            return "nothing has been found yet"
        now = self.history[-1]
        names = [printable(i if self.labels is None else self.labels[i]) for i in now.indices.tolist()]
        loss = f"loss {loss_text(now.incumbent)}, lower bound {loss_text(now.lower_bound)}"
        return f"best subset so far, with {loss}: {', '.join(names)}"


class StageWatch:
    """The callback of work in stages. It shows a live line on a terminal, and records what is known if the command is
    interrupted. It never stops the work.
    """

    def __init__(self) -> None:
        self.clock = Clock.of(None)
        self.line = ""
        self.best: list[str] = []
        self.live = LiveLine(keep=False, terminal_only=True)

    def picked(self, labels: Sequence[object]) -> None:
        """Record the best functions so far."""
        self.best = [printable(label) for label in labels]

    def __enter__(self) -> StageWatch:
        interrupts.known = self.known
        return self

    def __exit__(self, *_: object) -> None:
        self.live.end()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show the progress of the stage."""
        self.line = stage_line(stage, done, total)
        limit = total if stage.startswith(SEARCHING) and total else None
        self.live.show(f"{self.line}  {seconds_text(self.clock.seconds, limit)}")

    def known(self) -> str:
        """The best functions so far, or the progress."""
        if self.best:
            return f"{self.line.removeprefix(SEARCHING).lstrip(', ')}; the best so far: {', '.join(self.best)}"
        return f"no coordinates yet ({self.line})" if self.line else "nothing has been found yet"


class PursuitWatch:
    """The callback of a pursuit. It shows a live line on a terminal, and stops the pursuit on an interrupt."""

    def __init__(self) -> None:
        self.now: PursuitProgress | None = None
        self.live = LiveLine(keep=False, terminal_only=True)

    def __enter__(self) -> PursuitWatch:
        interrupts.known = self.known
        return self

    def __exit__(self, *_: object) -> None:
        self.live.end()

    def __call__(self, now: PursuitProgress) -> bool:
        """Show the state; True to stop."""
        self.now = now
        self.live.show(now.line())
        return interrupts.status != 0

    def known(self) -> str:
        """The gap of the pursuit so far."""
        if self.now is None:
            return "nothing has been found yet"
        over = f"over {self.now.columns} columns, after {self.now.passes} passes over all"
        return f"the pursuit had a relative gap of {self.now.gap:.1e} {over}"
