"""The console script and the first module of a worker process. It is outside the package, which takes half a second to
import, so that signals are handled from the first moment.

Ctrl-C and termination end the process within a second, with exit status 130 or 143. A command that is running is sent a
`KeyboardInterrupt` and has `GRACE_SECONDS` to end by itself. If it does not (because a kernel runs, or a file is being
read), or if a second signal comes, a thread prints what is known so far and ends the process.
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

GRACE_SECONDS = 0.5  # that a command has to end by itself; with PRINT_SECONDS it ends within one second
PRINT_SECONDS = 0.3  # that printing what is known may take, for example into a pipe that nobody reads


class Interrupts:
    """What happens on Ctrl-C and on termination.

    Attributes
    ----------
    status : int
        The exit status once a signal came, 0 before.
    known : callable
        What was found so far, in words that are safe to print.
    last : list of callables
        Called before the process ends at once, after what is known is printed.
    """

    def __init__(self) -> None:
        self.status = 0
        self.known: Callable[[], str] = _nothing
        self.last: list[Callable[[], object]] = []
        self._started = self._running = self._polled = self._raised = self._said = False

    def start(self) -> None:
        """Handle the signals from now on; one that is ignored, as under nohup, stays ignored."""
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
        """While a command runs that can end itself on `KeyboardInterrupt`."""
        self._running = True
        try:
            yield
        finally:
            self._running = False

    @contextmanager
    def polled(self) -> Generator[None]:
        """While the command asks for `status` itself, or prints what it has: no `KeyboardInterrupt` is raised."""
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
    return "nothing was found yet"


interrupts = Interrupts()


def main() -> None:
    """The console script."""
    interrupts.start()
    from isopursuit.cli import main as run

    try:
        run()
    finally:
        # the command is over; while the interpreter ends, Python would let a late signal kill the process
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)


def begin_worker(prepare: str, *arguments: object) -> None:
    """A worker process's first act: leave Ctrl-C to the parent, and end as soon as that does, however it ends. Then
    call module:function.
    """
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
