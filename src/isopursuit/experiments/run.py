"""Run the tasks that a store lacks in worker processes, and save each row when it is computed."""

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
    """Estimate a task's seconds. The longest tasks start first, and the estimate of the remaining time uses them."""
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
    """Run the tasks that the store has no row for, and return their number.

    Parameters
    ----------
    tasks : sequence of Task
        The tasks that the store should have rows for.
    store : Store
        Only this process writes to it, one row at a time.
    workers : int
        Number of processes, with one thread each. They end when this process ends.
    report : callable, optional
        Called with the task and its record after each row is saved.
    files : mapping, optional
        Trajectories of ethanol from files, by the name of their rows.
    """
    if workers < 1:
        raise ParameterError(f"workers={workers} is not a number of processes. Pass at least 1.")
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
    with _inherited_by_workers():  # workers start with the first task
        running: dict[Future[Record], Task] = {pool.submit(run, task): task for task in todo}
    try:
        for future in as_completed(running):
            task, record = running[future], future.result()
            store.add(task, record)
            if report is not None:
                report(task, record)
    except BrokenProcessPool:
        raise StoreError(
            "A worker process died, perhaps for lack of memory. The store has all rows computed so far. Run the same "
            "command again with fewer --workers."
        ) from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in set(active_children()) - others:  # do not wait for unfinished rows
            worker.kill()
    return len(todo)


@contextmanager
def _inherited_by_workers() -> Generator[None]:
    """Workers that start inside use one BLAS thread each and ignore Ctrl-C, which this process handles."""
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
    """Import in a worker what the first rows would otherwise count in their time."""
    FILES.update(files)
    for method in ("greedy", "two-stage", *(["SCS"] if installed("cvxpy", "scs") else [])):
        run(Task("table 1", "iris", 4, 15, 1.0, 0, method))
