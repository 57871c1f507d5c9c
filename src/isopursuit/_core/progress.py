"""Progress lines: `progress=True` in Python, and the live line of the commands. rich draws them (extra `cli`).

Reports make their own text (`SearchProgress.line` and others); this module decides where and when it appears. In a
terminal and in a notebook one line is updated in place. Elsewhere, as in a log file, only the last one is written.
Short calls show nothing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any, ParamSpec

from isopursuit.errors import optional

QUIET_SECONDS = 0.5  # before the first line appears (chosen: shorter calls need no progress)
LIVE_SECONDS = 0.1  # between two updates in place (chosen: fast enough for the eye)
SEARCHING = "searching"  # first word of a stage whose progress is counted in seconds of the time limit

Report = ParamSpec("Report")  # arguments of a callback


def stage_line(stage: str, done: int, total: int) -> str:
    """One line about a stage, with the share done unless the stage is counted in seconds."""
    return stage if total <= 1 or stage.startswith(SEARCHING) else f"{stage}: {done / total:.0%}"


class LiveLine:
    """A line on the error stream that is updated in place; `keep`: the last version remains visible.

    What is written must not stop the work, so errors of a closed stream are ignored.
    """

    def __init__(self, *, keep: bool = True) -> None:
        self.live: Any = optional("rich.live", "cli", "progress=True").Live
        self.keep, self.line = keep, ""
        self.running: Any = None
        self.next = time.perf_counter() + QUIET_SECONDS

    def show(self, line: str) -> None:
        """Replace the last line by this one, unless the last update was very recent."""
        self.line, now = line, time.perf_counter()
        if now < self.next:
            return
        self.next = now + LIVE_SECONDS
        with suppress(OSError, ValueError):
            if self.running is None:
                from rich.console import Console

                notebook = True if type(sys.stderr).__module__.startswith("ipykernel") else None
                console = Console(stderr=True, force_terminal=notebook, force_jupyter=False)
                self.running = self.live(
                    console=console,
                    auto_refresh=False,
                    transient=not self.keep,
                    redirect_stdout=False,
                    redirect_stderr=False,
                )
                self.running.start()
            self._draw()

    def end(self) -> None:
        """Keep or erase the last line after the work."""
        with suppress(OSError, ValueError):
            if self.running is not None:
                self._draw()
                self.running.stop()
                if self.keep and not self.running.console.is_terminal:
                    self.running.console.line()

    def _draw(self) -> None:
        from rich.text import Text

        self.running.update(Text(self.line, no_wrap=True, overflow="ellipsis"), refresh=True)


@contextmanager
def shown(
    progress: bool, callback: Callable[Report, bool | None] | None, line: Callable[Report, str]
) -> Generator[Callable[Report, bool | None] | None]:
    """The callback of a call; with `progress`, one that also shows the text that `line` makes of each report."""
    if not progress:
        yield callback
        return
    live = LiveLine()

    def report(*now: Report.args, **named: Report.kwargs) -> bool | None:
        live.show(line(*now, **named))
        return None if callback is None else callback(*now, **named)

    try:
        yield report
    finally:
        live.end()
