"""Ctrl-C and termination: a flag that the work polls, and an end within a second if it does not.

A signal sets `interrupts.status`, the exit status 130 or 143. Callbacks return it to the library, whose searches and
pursuits stop with the best answer so far, which the command prints. If the command has not ended after `GRACE_SECONDS`,
because it reads a file or draws, or if a second signal comes, a thread prints what is known and ends the process.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from typing import NoReturn

# seconds; both end within one second: a callback is called every 0.1 s, and prices after an interrupt take up to 0.2 s
GRACE_SECONDS = 0.6  # for the command to end by itself
PRINT_SECONDS = 0.3  # for printing what is known, for example into a pipe that nobody reads
NOTHING = "nothing has been found yet"


class Interrupts:
    """The signals of this process.

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
        self.known: Callable[[], str] = lambda: NOTHING
        self.last: list[Callable[[], object]] = []
        self._said = False

    def start(self) -> None:
        """Start handling the signals; a signal that is ignored, as under nohup, remains ignored."""
        reader, writer = socket.socketpair()
        writer.setblocking(False)
        # the C handler writes the signal's number here even while the main thread is inside a kernel
        signal.set_wakeup_fd(writer.detach(), warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, lambda number, frame: None)
        threading.Thread(target=self._watch, args=(reader,), daemon=True).start()

    def stop(self) -> None:
        """Ignore further signals while the interpreter exits."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)

    def say(self) -> None:
        """Print what is known, once."""
        said, self._said = self._said, True
        if not said:
            sys.stderr.write(f"interrupted: {self.known()}\n")
            sys.stderr.flush()

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


interrupts = Interrupts()
