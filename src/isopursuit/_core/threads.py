"""Limit BLAS to one thread while this library computes: its matrices are small, and it starts its own threads.

If a BLAS splits a product of a few thousand numbers over all processors, the threads mostly wait for each other. On an
idle machine that wastes CPU time. If another process keeps a processor busy, the product can take a thousand times
longer.

NumPy and SciPy may each load a separate BLAS, and both are limited. OpenBLAS has one number of threads for the whole
process: while a function of this library runs, products in other threads of the process use one thread too, with the
same results. The number is restored when the last running call returns or raises, unless other code has changed it in
the meantime. MKL, and OpenBLAS built on OpenMP, have a number for each thread, so only threads that compute for this
library are limited. Apple's Accelerate cannot be limited.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Any, ParamSpec, TypeVar

from isopursuit._core.options import as_count

P = ParamSpec("P")
R = TypeVar("R")


class Library:
    """Gets and sets the number of threads of a loaded BLAS.

    For OpenBLAS this calls the functions of the library directly: those of threadpoolctl do nothing in all threads of a
    process but one.
    """

    def __init__(self, found: Any) -> None:
        self.by_thread = found.internal_api == "mkl" or getattr(found, "threading_layer", "") == "openmp"
        self.get: Callable[[], int | None] = found.get_num_threads
        self.set: Callable[[int], object] = found.set_num_threads
        names = [name for name in found.check_symbols if hasattr(found.dynlib, name)]
        if found.internal_api == "openblas" and not self.by_thread and names:
            self.get = getattr(found.dynlib, names[0])
            self.set = getattr(found.dynlib, names[0].replace("_get_", "_set_"))


Numbers = list[tuple[Library, int]]


def _limited(libraries: list[Library]) -> Numbers:
    """Limit these libraries to one thread; returns those that had more, with their numbers."""
    more = [(one, count) for one in libraries if (count := one.get()) is not None and count > 1]
    for one, _ in more:
        one.set(1)
    return more


def _restore(before: Numbers) -> None:
    for one, count in before:
        if one.get() == 1:
            one.set(count)


class _Limit:
    """Counts running calls, and restores the numbers of threads after the last."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.calls = 0
        self.shared: list[Library] | None = None
        self.by_thread: list[Library] = []
        self.before: Numbers = []

    def enter(self) -> Numbers:
        """Limit on the first call; returns the numbers that the calling thread has to restore."""
        with self.lock:
            if self.shared is None:
                self.shared = self._find()
            self.calls += 1
            if self.calls == 1:
                self.before = _limited(self.shared)
        return _limited(self.by_thread)

    def leave(self, own: Numbers) -> None:
        """Restore after the last call."""
        _restore(own)
        with self.lock:
            self.calls -= 1
            if self.calls == 0:
                _restore(self.before)

    def _find(self) -> list[Library]:
        """The libraries with one number for the whole process. This takes milliseconds and is done once, because NumPy
        and SciPy have loaded their libraries by now.
        """
        from threadpoolctl import ThreadpoolController

        loaded: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
        found = [Library(one) for one in loaded]
        self.by_thread = [one for one in found if one.by_thread]
        return [one for one in found if not one.by_thread]


_limit = _Limit()


def _new_lock() -> None:
    """Make a new lock in a child process, since a thread that the child does not have may hold the old one.

    If such a thread was in a call, that call never returns in the child, which keeps one BLAS thread.
    """
    _limit.lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_lock)


def on_one_blas_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function to limit BLAS to one thread while it runs; it may run in several threads at once."""

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        own = _limit.enter()
        try:
            return function(*args, **kwargs)
        finally:
            _limit.leave(own)

    return limited


def processors() -> int:
    """How many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def worker_count(workers: int | None) -> int:
    """The number of threads: the caller's, or one for each processor."""
    if workers is None:
        return processors()
    return as_count(workers, 1, "workers")
