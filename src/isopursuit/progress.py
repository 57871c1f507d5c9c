"""Lines that say how far a call is: `progress=True` in Python, and what the commands show on a terminal.

`SearchProgress.line` and `PursuitProgress.line` say what they contain; here is where and when they appear.

On a terminal one line is rewritten; in a notebook too, by carriage returns, without widgets. Elsewhere a line is
written every few seconds. Short calls show nothing.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import ParamSpec, TextIO

QUIET_SECONDS = 0.5  # before the first line appears (chosen: who waits for less asks for nothing)
LIVE_SECONDS = 0.1  # between two versions of a line that is rewritten (chosen: fast enough for the eye)
PLAIN_SECONDS = 5.0  # between two lines where none can be rewritten, as in a log file (guess)
SEARCHING = "searching"  # how the words for a stage begin that counts seconds of a time limit

Report = ParamSpec("Report")  # what a callback is given


def stage_line(stage: str, done: int, total: int) -> str:
    """One line about work in stages: how far the stage is, unless it is counted in seconds."""
    return stage if total <= 1 or stage.startswith(SEARCHING) else f"{stage}: {done / total:.0%}"


def seconds_text(seconds: float, time_limit: float | None = None) -> str:
    """How long it has taken, of how long it may take.

    Examples
    --------
    >>> seconds_text(3.21), seconds_text(47.8, 60)
    ('3.2 s', '48 of 60 s')
    """
    text = f"{seconds:.1f}" if seconds < 10 else f"{seconds:.0f}"
    return f"{text} s" if time_limit is None else f"{text} of {time_limit:g} s"


# ------------------------------------------------------------------------------------------------- where it appears


class LiveLine:
    """A line on the error stream that replaces itself, from `QUIET_SECONDS` after it was made.

    `keep` says whether its last version stays. With `terminal_only` nothing is written where it cannot be rewritten.
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
        """Show this line in place of the last one, if it is time to."""
        self.line = line
        seconds = time.perf_counter() - self.began
        pause = LIVE_SECONDS if self.terminal or self.notebook else PLAIN_SECONDS
        if seconds > QUIET_SECONDS and seconds >= self.written + pause:
            self.written = seconds
            self._write(line)

    def end(self) -> None:
        """The work is over: leave the last line, or erase it."""
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
        except (OSError, ValueError):  # nobody reads it any more: the work goes on
            self.stream = None


@contextmanager
def shown(
    progress: bool, callback: Callable[Report, bool | None] | None, line: Callable[Report, str]
) -> Generator[Callable[Report, bool | None] | None]:
    """The callback of a call; with `progress` one that also shows the line which `line` makes of each report."""
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
