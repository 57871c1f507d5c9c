"""One BLAS thread while this library computes: its matrices are small, and it runs threads of its own.

A BLAS that splits a product of a few thousand numbers over all processors makes them wait for each other. On an idle
machine that costs CPU time; beside a busy process, which holds a processor that the others wait for, it can cost a
thousand times the time of the product.

NumPy and SciPy may each have a BLAS of their own, and both are limited. OpenBLAS has one number of threads for the
process: while a function of this library runs, products that other threads of the process start take one thread too.
They give the same results. The number is restored when the last call that is under way returns or raises, unless
someone else has changed it in the meantime; then theirs stays. MKL, and OpenBLAS built on OpenMP, have a number for
each thread, and only threads that compute for this library are limited. Apple's Accelerate cannot be limited.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Any, ParamSpec, TypeVar

from isopursuit.errors import ParameterError

P = ParamSpec("P")
R = TypeVar("R")


class Library:
    """A BLAS that is loaded: its number of threads.

    For OpenBLAS these are its own functions. threadpoolctl's take ten times as long, and let one thread at a time set
    a number for the process, and ignore the others; calls here are counted, so that any thread may be the first or the
    last.
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
    """Limit these to one thread; returns which had more."""
    more = [(one, count) for one in libraries if (count := one.get()) is not None and count > 1]
    for one, _ in more:
        one.set(1)
    return more


def _restore(before: Numbers) -> None:
    for one, count in before:
        if one.get() == 1:
            one.set(count)


class _Limit:
    """How many calls are under way, and the numbers of threads to restore after the last."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.calls = 0
        self.shared: list[Library] | None = None
        self.by_thread: list[Library] = []
        self.before: Numbers = []

    def enter(self) -> Numbers:
        """Limit on the first call; returns what the calling thread alone has to restore."""
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
        """The libraries with a number for the whole process. It takes milliseconds, and is done once: NumPy and SciPy
        load theirs when they are imported, which they are by now.
        """
        from threadpoolctl import ThreadpoolController

        loaded: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
        found = [Library(one) for one in loaded]
        self.by_thread = [one for one in found if one.by_thread]
        return [one for one in found if not one.by_thread]


_limit = _Limit()


def _new_lock() -> None:
    """For a child process: the lock may have been taken by a thread that the child does not have.

    Where such a thread was in a call, that call never returns in the child, which keeps one BLAS thread.
    """
    _limit.lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_lock)


def on_one_blas_thread(function: Callable[P, R]) -> Callable[P, R]:
    """The function, with BLAS limited to one thread while it runs; from several threads at once too."""

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
    """How many threads work: what the caller asked for, or one for each processor."""
    if workers is None:
        return processors()
    if not isinstance(workers, int) or workers < 1:
        raise ParameterError(f"workers={workers!r} must be a whole number of threads, at least 1.")
    return workers
