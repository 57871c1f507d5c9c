"""Run what a store lacks, in processes, and save each row as it comes."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from pathlib import Path

from isopursuit.errors import ParameterError
from isopursuit.experiments.methods import run
from isopursuit.experiments.plan import FILES, Task, installed
from isopursuit.experiments.store import Record, Store, StoreError
from isopursuit_command import begin_worker

ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def cost(task: Task) -> float:
    """About how many seconds a task takes, for the estimate of the time left and for long ones to start first."""
    if task.study == "ladder" and task.method == "exact":
        return 30.0 if task.D >= 12 else 3.0
    if task.method == "brute multitask" and task.P > 20:
        return 6.0
    if task.study == "exponents" and task.D > 6 and task.method in ("two-stage", "exact"):
        return 1.5
    return 0.2


def run_missing(
    tasks: Sequence[Task],
    store: Store,
    *,
    workers: int = 1,
    report: Callable[[Task, Record], None] | None = None,
    files: Mapping[str, Path] | None = None,
) -> int:
    """Run the tasks that the store has no row for; returns how many there were.

    Parameters
    ----------
    tasks : sequence of Task
        All that should be in the store in the end.
    store : Store
        Written by this process alone, a row as soon as it is known.
    workers : int
        Processes. Each computes on one thread; they end with this process, however it ends.
    report : callable, optional
        Called after each row is saved.
    files : mapping, optional
        Trajectories of ethanol by the name of their rows, other than the package's own.
    """
    if workers < 1:
        raise ParameterError(f"workers={workers} must be at least 1, the number of processes.")
    done = store.done()
    todo = sorted((task for task in tasks if task not in done), key=cost, reverse=True)
    if not todo:
        return 0
    others = set(active_children())
    pool = ProcessPoolExecutor(
        min(workers, len(todo)),
        mp_context=get_context("spawn"),
        initializer=begin_worker,
        initargs=(f"{__name__}:{_prepare.__name__}", dict(files or {})),
    )
    with _inherited_by_workers():  # which start with the first task
        running: dict[Future[Record], Task] = {pool.submit(run, task): task for task in todo}
    try:
        for future in as_completed(running):
            task, record = running[future], future.result()
            store.add(task, record)
            if report is not None:
                report(task, record)
    except BrokenProcessPool:
        raise StoreError(
            "A worker process died (out of memory?). The rows so far are safe in the store: run the same command "
            "again, with fewer --workers."
        ) from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in set(active_children()) - others:  # a row that is being computed is not waited for
            worker.kill()
    return len(todo)


@contextmanager
def _inherited_by_workers() -> Generator[None]:
    """Workers started here compute on one BLAS thread each, and Ctrl-C in the terminal is left to this process."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if hasattr(signal, "pthread_sigmask") else None
    try:
        yield
    finally:
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _prepare(files: dict[str, Path]) -> None:
    """Load in a worker what would be timed with the first rows."""
    FILES.update(files)
    for method in ("greedy", "two-stage", *(["SCS"] if installed("cvxpy", "scs") else [])):
        run(Task("table 1", "iris", 4, 15, 1.0, 0, method))
