"""Progress lines: `progress=True` in Python, and the live line of the commands.

`SearchProgress.line` and `PursuitProgress.line` make the text; this module decides where and when it appears.

In a terminal and in a notebook one line is updated in place (in a notebook by carriage returns, without widgets).
Otherwise a new line appears every few seconds. Short calls show nothing.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import ParamSpec, TextIO

QUIET_SECONDS = 0.5  # before the first line appears (chosen: shorter calls need no progress)
LIVE_SECONDS = 0.1  # between two updates in place (chosen: fast enough for the eye)
PLAIN_SECONDS = 5.0  # between two lines that cannot be updated, as in a log file (guess)
SEARCHING = "searching"  # first word of a stage whose progress is counted in seconds of the time limit

Report = ParamSpec("Report")  # arguments of a callback


def stage_line(stage: str, done: int, total: int) -> str:
    """One line about a stage, with the share done unless the stage is counted in seconds."""
    return stage if total <= 1 or stage.startswith(SEARCHING) else f"{stage}: {done / total:.0%}"


# ------------------------------------------------------------------------------------------------- where it appears


class LiveLine:
    """A line on the error stream that is updated in place; it first appears after `QUIET_SECONDS`.

    `keep` says whether the last version remains visible. With `terminal_only` nothing is written outside a terminal.
    """

    def __init__(self, *, keep: bool = True, terminal_only: bool = False) -> None:
        stream: TextIO | None = sys.stderr  # pyright: ignore[reportAssignmentType]: None in a program without a console
        self.terminal = stream is not None and stream.isatty()
        self.notebook = type(stream).__module__.startswith("ipykernel")
        self.stream = stream if self.terminal or not terminal_only else None
        self.keep = keep
        self.began, self.written = time.perf_counter(), -PLAIN_SECONDS
        self.line = self.on_screen = ""

    def show(self, line: str) -> None:
        """Replace the last line by this one, unless the last update was very recent."""
        self.line = line
        seconds = time.perf_counter() - self.began
        pause = LIVE_SECONDS if self.terminal or self.notebook else PLAIN_SECONDS
        if seconds > QUIET_SECONDS and seconds >= self.written + pause:
            self.written = seconds
            self._write(line)

    def end(self) -> None:
        """Keep or erase the last line after the work."""
        if not self.on_screen:
            return
        rewritten = self.terminal or self.notebook
        if not self.keep:
            self._write("")
        elif rewritten or self.line != self.on_screen:
            self._write(self.line)
        if self.keep and rewritten:
            self._send("\n")

    def _write(self, line: str) -> None:
        if self.terminal:
            line = line[: shutil.get_terminal_size().columns - 1]  # a line that wraps cannot be replaced
            self._send(f"\r\x1b[K{line}")  # back to the beginning of the line, and clear it
        elif self.notebook:
            self._send("\r" + line.ljust(len(self.on_screen)))
        else:
            self._send(f"{line}\n")
        self.on_screen = line

    def _send(self, text: str) -> None:
        if self.stream is None:
            return
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):  # the stream was closed; the work continues
            self.stream = None


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
