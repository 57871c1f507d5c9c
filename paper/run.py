"""Run the tasks that have no row in worker processes, and save each row when it is computed."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path

from isopursuit.errors import ParameterError
from paper.methods import run
from paper.plan import FILES, Task, installed
from paper.rows import Record, Rows, RowsError

ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def cost(task: Task) -> float:
    """Estimate a task's seconds: the longest tasks start first."""
    if task.part == "ladder" and task.method == "exact":
        return 30.0 if task.D >= 12 else 3.0
    if task.method == "brute multitask" and task.P > 20:
        return 6.0
    if task.part == "sweep" and task.D > 6 and task.method in ("two-stage", "exact"):
        return 1.5
    return 0.2


def run_missing(
    tasks: Iterable[Task], rows: Rows, workers: int = 1, report: Callable[[Task, Record], object] | None = None
) -> None:
    """Run the tasks that have no row in processes with one thread each, which end when this process ends.

    `report` is called with the task and its record after each row is saved.
    """
    if workers < 1:
        raise ParameterError(f"workers={workers} is not a number of processes. Pass at least 1.")
    todo = sorted((task for task in tasks if task not in rows.records), key=cost, reverse=True)
    if not todo:
        return
    others = set(active_children())
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))  # workers inherit it
    pool = ProcessPoolExecutor(min(workers, len(todo)), get_context("spawn"), _prepare, (FILES,))
    # workers start with the first task and inherit the mask: a Ctrl-C is for this process only
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if hasattr(signal, "pthread_sigmask") else None
    running = {pool.submit(run, task): task for task in todo}
    if mask is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        for future in as_completed(running):
            task, record = running[future], future.result()
            rows.add(task, record)
            if report is not None:
                report(task, record)
    except BrokenProcessPool:
        raise RowsError(
            "A worker process died, perhaps for lack of memory. All rows computed so far are saved. Run the same "
            "command again with fewer --workers."
        ) from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in set(active_children()) - others:  # do not wait for unfinished rows
            worker.kill()


def _prepare(files: dict[str, Path]) -> None:
    """Begin a worker: end with the parent, and import what the first rows would otherwise count in their time."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    FILES.update(files)
    for method in ("greedy", "two-stage", *(["SCS"] if installed("cvxpy", "scs") else [])):
        run(Task("table", "iris", 4, 15, 1.0, 0, method))


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)
