"""Run the comparison and write its page: `python -m benchmarks.peers`, or `make peers`.

First the record, benchmarks/recorded/peers.jsonl, row by row; then, from that file alone, docs/tables/peers*.csv,
the pictures, the figures of docs/speed.md and the table of README.md.
"""

import argparse
import json
import os
import platform
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock, Thread

import numpy as np

from . import environment, record
from .methods import LIBRARIES, LIMIT, METHODS, OURS
from .page import write_page
from .problems import Problem, write_problems

ROOT = Path(__file__).parents[2]
WORK = ROOT / "output" / "peers"
GRACE = 20.0  # seconds more for our searches, which stop by themselves, before they are killed (guess)
SLOWEST_FIRST = ("CVXPY", "scikit-learn", "skglm", "apricot")
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", help="these data sets only")
    parser.add_argument("--record", type=Path, default=record.RECORD)
    parser.add_argument("--resume", action="store_true", help="keep the rows that are in the record")
    parser.add_argument("--again", nargs="*", default=[], help="with --resume: these methods' rows are made again")
    parser.add_argument("--page", action="store_true", help="write the page from the record as it is")
    parser.add_argument(
        "--jobs", type=int, default=min(2, len(os.sched_getaffinity(0))), help="one library each, of ours one method"
    )
    options = parser.parse_args()
    if not options.page:
        run(options)
    write_page(record.read(options.record), ROOT)
    print("wrote docs/tables/peers*.csv, docs/pictures/peers, and the figures of docs/speed.md and README.md")


def run(options: argparse.Namespace) -> None:
    """Fill the record."""
    began = time.monotonic()
    python, failures = environment.install(WORK / "venv")
    print(f"environment ready after {time.monotonic() - began:.0f} s")
    problems = write_problems(WORK / "problems", set(options.data or ()))
    if not options.resume or not options.record.exists():
        options.record.unlink(missing_ok=True)
        record.write(options.record, "environment", machine(options.jobs))
    if options.again:
        record.drop(options.record, options.again, options.data or ())
    done = record.read(options.record)
    for name in LIBRARIES:
        if name not in done.libraries:
            record.write(options.record, "library", environment.describe(python, name, failures))
    broken = {name for name, one in record.read(options.record).libraries.items() if "error" in one}
    order = [*SLOWEST_FIRST, *(name for name in LIBRARIES if name not in (*SLOWEST_FIRST, "isopursuit"))]
    waiting: list[tuple[str, ...]] = [(method,) for method in OURS]  # they end by the clock, so each has a process
    waiting += [of_library(name) for name in order if name not in broken]
    lock = Lock()
    known = {(one.problem, one.method): one for one in done.rows}
    cores = sorted(os.sched_getaffinity(0))

    def serve(core: int) -> None:
        while True:
            with lock:
                if not waiting:
                    return
                methods = waiting.pop(0)
            for kind, content in rows_of(python, methods, core, problems, known):
                with lock:
                    record.write(options.record, kind, content)
                    if kind == "row":
                        print(f"{time.monotonic() - began:5.0f} s  {told(content)}", flush=True)

    threads = [Thread(target=serve, args=(cores[i % len(cores)],)) for i in range(options.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    record.write(options.record, "finished", {"seconds": time.monotonic() - began, "load": os.getloadavg()[0]})


def of_library(name: str) -> tuple[str, ...]:
    return tuple(method for method in METHODS if METHODS[method].library == name)


def rows_of(python: Path, methods: tuple[str, ...], core: int, problems: list[Problem], known: dict):
    """Ask a library's worker for the rows that are missing; a method that was stopped is not asked for larger ones."""
    name = METHODS[methods[0]].library
    command = [str(python), "-m", "benchmarks.peers.worker", name, str(core)]
    limit = LIMIT + GRACE if name == "isopursuit" else LIMIT
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **ONE_THREAD}, text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as worker:  # fmt: skip
        yield "first calls", {"name": name, "seconds": json.loads(worker.stdout.readline())}
        for method in methods:
            stopped: list[Problem] = []
            for problem in (one for one in problems if (one, method) not in known):
                smaller = next((one for one in stopped if _harder(problem, one)), None)
                file = WORK / "problems" / problem.file
                if smaller is not None:
                    answer = {"error": f"not tried: stopped at {smaller.k} of {smaller.P}"}
                else:
                    request = {"method": method, "file": str(file), "k": problem.k, "limit": limit}
                    print(json.dumps(request), file=worker.stdin, flush=True)
                    answer = json.loads(worker.stdout.readline())
                    if "error" in answer:
                        stopped.append(problem)
                yield "row", record.row(problem, method, answer, np.load(file, mmap_mode="r"))


def _harder(problem: Problem, stopped: Problem) -> bool:
    same = problem.data == stopped.data and problem.scaling == stopped.scaling
    return same and problem.k >= stopped.k and problem.P >= stopped.P


def machine(jobs: int) -> dict:
    cpu = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.machine(),
    )
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)),
        "jobs": jobs,
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "system": platform.system(),
    }


def told(one: record.Row) -> str:
    what = one.error or f"l_1 {one.loss:.6g}, {one.seconds:.3g} s, {one.proof}"
    return f"{one.data} {one.k} of {one.P} {one.scaling}, {one.method}: {what}"


if __name__ == "__main__":
    main()
