"""What a command does while the library works: a live line, a draft of the answer, what is known at an interrupt."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from isopursuit._core.atomic import write_whole
from isopursuit._core.clock import Clock
from isopursuit._core.progress import SEARCHING, LiveLine, stage_line
from isopursuit._core.text import loss_text, seconds_text
from isopursuit.cli.interrupts import NOTHING, interrupts
from isopursuit.cli.output import json_text
from isopursuit.errors import printable

if TYPE_CHECKING:
    from isopursuit import PursuitProgress, SearchProgress
    from isopursuit.cli.candidates import Candidates

DRAFT_SECONDS = 1.0  # between two drafts: what a killed search can lose, while writing takes below 1 % of the time


class Watch:
    """A callback that shows a live line on a terminal, and stops the work on an interrupt."""

    def __init__(self) -> None:
        self.live = LiveLine(keep=False)

    def __enter__(self) -> Self:
        interrupts.known = self.known
        interrupts.last.insert(0, self.live.end)  # it shows the terminal's cursor again
        return self

    def __exit__(self, *_: object) -> None:
        self.live.end()

    def show(self, line: str) -> bool:
        """Show a line; True if the work must stop."""
        self.live.show(line)
        return interrupts.status != 0

    def known(self) -> str:
        """What an interrupted command prints."""
        return NOTHING


class SearchWatch(Watch):
    """The callback of a search. It records the history, and saves drafts of the answer of a search in memory, so that
    a killed search leaves its best subset in the output file.
    """

    def __init__(self, time_limit: float, candidates: Candidates, draft: Path | None = None) -> None:
        super().__init__()
        self.time_limit, self.candidates, self.draft = time_limit, candidates, draft
        self.history: list[SearchProgress] = []
        self.saved = 0.0

    def __enter__(self) -> Self:
        super().__enter__()
        interrupts.last.insert(0, partial(self.save, "interrupted"))  # before drafts are discarded
        return self

    def __call__(self, now: SearchProgress) -> bool:
        """Record and show the state of the search."""
        self.history.append(now)
        if now.seconds - self.saved >= DRAFT_SECONDS:
            self.saved = now.seconds
            self.save("running")
        return self.show(now.line(self.time_limit))

    def save(self, status: str) -> None:
        """Save the best subset so far, unless the answer is saved already (`draft` is None then)."""
        if self.draft is None or not self.history:
            return
        now = self.history[-1]
        state = {"indices": now.indices.tolist(), "labels": self._names(now), "loss": now.incumbent, "notes": []}
        state |= {name: getattr(now, name) for name in ("lower_bound", "gap", "nodes", "seconds")} | {"status": status}
        write_whole(self.draft, json_text(self.candidates.answer(state)))

    def known(self) -> str:
        """The best subset so far, its loss and the bound."""
        if not self.history:
            return NOTHING
        now = self.history[-1]
        loss = f"loss {loss_text(now.incumbent)}, lower bound {loss_text(now.lower_bound)}"
        return f"best subset so far, with {loss}: {', '.join(map(printable, self._names(now)))}"

    def _names(self, now: SearchProgress) -> list[str]:
        return [str(self.candidates.label(i)) for i in now.indices.tolist()]


class StageWatch(Watch):
    """The callback of work in stages."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock.of(None)
        self.line = ""
        self.best: list[str] = []

    def picked(self, labels: Sequence[object]) -> None:
        """Record the best functions so far."""
        self.best = [printable(label) for label in labels]

    def __call__(self, stage: str, done: int, total: int) -> bool:
        """Show the progress of the stage."""
        self.line = stage_line(stage, done, total)
        limit = total if stage.startswith(SEARCHING) and total else None
        return self.show(f"{self.line}  {seconds_text(self.clock.seconds, limit)}")

    def known(self) -> str:
        """The best functions so far, or the progress."""
        if self.best:
            return f"{self.line.removeprefix(SEARCHING).lstrip(', ')}; the best so far: {', '.join(self.best)}"
        return f"no coordinates yet ({self.line})" if self.line else NOTHING


class PursuitWatch(Watch):
    """The callback of a pursuit."""

    now: PursuitProgress | None = None

    def __call__(self, now: PursuitProgress) -> bool:
        """Show the state."""
        self.now = now
        return self.show(now.line())

    def known(self) -> str:
        """The gap of the pursuit so far."""
        if self.now is None:
            return NOTHING
        over = f"over {self.now.columns} columns, after {self.now.passes} passes over all"
        return f"the pursuit had a relative gap of {self.now.gap:.1e} {over}"
