"""The console script and the first module of a worker process. It is outside the package, which takes half a second to
import, so that signals are handled from the start.

Ctrl-C and termination end the process within a second, with exit status 130 or 143. A running command receives a
`KeyboardInterrupt` and has `GRACE_SECONDS` to finish. If it does not finish, because it runs a kernel or reads a file,
or if a second signal comes, a thread prints what is known so far and ends the process.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import NoReturn

GRACE_SECONDS = 0.5  # for a command to finish; together with PRINT_SECONDS less than one second
PRINT_SECONDS = 0.3  # for printing what is known, for example into a pipe that nobody reads


class Interrupts:
    """Handles Ctrl-C and termination.

    Attributes
    ----------
    status : int
        The exit status after a signal; 0 before.
    known : callable
        Returns what was found so far, as text that is safe to print.
    last : list of callables
        Called after what is known is printed, if the process must end at once.
    """

    def __init__(self) -> None:
        self.status = 0
        self.known: Callable[[], str] = _nothing
        self.last: list[Callable[[], object]] = []
        self._started = self._running = self._polled = self._raised = self._said = False

    def start(self) -> None:
        """Start handling the signals; a signal that is ignored, as under nohup, remains ignored."""
        if self._started:
            return
        self._started = True
        reader, writer = socket.socketpair()
        writer.setblocking(False)
        # the C handler writes the signal's number here even while the main thread is inside a kernel
        signal.set_wakeup_fd(writer.detach(), warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._handle)
        threading.Thread(target=self._watch, args=(reader,), daemon=True).start()

    @contextmanager
    def running(self) -> Generator[None]:
        """The context of a command that can end on `KeyboardInterrupt`."""
        self._running = True
        try:
            yield
        finally:
            self._running = False

    @contextmanager
    def polled(self) -> Generator[None]:
        """The context of a command that checks `status` or prints its answer: no `KeyboardInterrupt` is raised."""
        self._polled = True
        try:
            yield
        finally:
            self._polled = False

    def say(self) -> None:
        """Print what is known, once."""
        said, self._said = self._said, True
        if not said:
            sys.stderr.write(f"interrupted: {self.known()}\n")
            sys.stderr.flush()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.status = self.status or 128 + number
        if not self._running:
            self._end()
        if not self._raised and not self._polled:
            self._raised = True
            raise KeyboardInterrupt

    def _watch(self, reader: socket.socket) -> None:
        for wait in (None, GRACE_SECONDS):  # for the first signal, then for the second one
            reader.settimeout(wait)
            try:
                number = 0
                while number not in (signal.SIGINT, signal.SIGTERM):
                    number = reader.recv(1)[0]
            except TimeoutError:
                break
            self.status = self.status or 128 + number
        self._end()

    def _end(self) -> NoReturn:
        last = threading.Thread(target=self._say_and_clean_up, daemon=True)
        last.start()
        last.join(PRINT_SECONDS)
        os._exit(self.status)

    def _say_and_clean_up(self) -> None:
        try:
            self.say()
            sys.stdout.flush()
        finally:
            for act in self.last:
                act()


def _nothing() -> str:
    return "nothing has been found yet"


interrupts = Interrupts()


def main() -> None:
    """The console script."""
    interrupts.start()
    from isopursuit.cli import main as run

    try:
        run()
    finally:
        # the command has finished; a signal while the interpreter exits would kill the process
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)


def begin_worker(prepare: str, *arguments: object) -> None:
    """Start a worker process: leave Ctrl-C to the parent, end when the parent ends, and call module:function."""
    from multiprocessing import parent_process

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent.join,), daemon=True).start()
    module, _, function = prepare.partition(":")
    getattr(import_module(module), function)(*arguments)


def _follow(wait: Callable[[], object]) -> None:
    wait()
    os._exit(1)
