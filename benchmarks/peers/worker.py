"""One library in one process: imported and warmed up once, then a forked child for every row.

Started by the command with the library's name; requests are lines of JSON on standard input, answers on
standard output. A child has its own time limit, memory limit and peak.
"""

import json
import os
import resource
import sys
import time
from contextlib import redirect_stdout
from multiprocessing import Pipe, get_context
from pathlib import Path

import numpy as np

from .methods import METHODS

MEMORY = 6 * 2**30  # bytes a child may take
ENOUGH = 0.3  # seconds after which a call is not repeated
REPEATS = 5


def main(library: str, core: int) -> None:
    """Serve until standard input ends."""
    os.sched_setaffinity(0, {core})
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints goes to standard error
    print(json.dumps(warm_up(library)), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(in_child(request)), file=answers, flush=True)


def warm_up(library: str) -> dict[str, float | str]:
    """The first call of each of the library's methods, just-in-time compilation included."""
    X = np.random.default_rng(0).normal(size=(3, 12))
    firsts = {}
    for name, method in METHODS.items():
        if method.library == library:
            began = time.perf_counter()
            try:
                method.pick(X, 3, 0)
            except Exception as error:  # noqa: BLE001 - the row itself will tell
                print(f"{name}: {error!r}", file=sys.stderr)
            firsts[name] = time.perf_counter() - began
    return firsts


def in_child(request: dict) -> dict:
    """Run one row; what went wrong is a result too."""
    receiver, sender = Pipe(duplex=False)
    process = get_context("fork").Process(target=_work, args=(request, sender))
    process.start()
    sender.close()
    answer = {"error": f"stopped at {request['limit']:g} s"}
    try:
        if receiver.poll(request["limit"]):
            answer = receiver.recv()
    except EOFError:
        answer = {"error": "died"}
    process.kill()
    process.join()
    return answer


def _work(request: dict, sender) -> None:
    try:
        X = np.load(request["file"])
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        sender.send(_measure(X, request))
    except MemoryError:
        sender.send({"error": f"needs over {MEMORY / 2**30:g} GiB"})
    except Exception as error:  # noqa: BLE001
        sender.send({"error": f"{type(error).__name__}: {error}"[:200]})


def peak_mb() -> float:
    """Of this process alone: getrusage would count what its parent held when it forked."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def _measure(X: np.ndarray, request: dict) -> dict:
    method, limit = METHODS[request["method"]], request["limit"]
    runs, seconds, spent = [], [], 0.0
    wanted = method.seeds if method.seeds > 1 else REPEATS
    while len(runs) < wanted and (spent < ENOUGH or (method.seeds > 1 and spent * (1 + 1 / len(runs)) < limit / 2)):
        began = time.perf_counter()
        with redirect_stdout(sys.stderr):
            found = method.pick(X, request["k"], len(runs))
        seconds.append(time.perf_counter() - began)
        spent += seconds[-1]
        runs.append([[int(i) for i in found.indices], found.proof])
    kept = runs if method.seeds > 1 else runs[:1]
    return {"runs": kept, "seconds": float(np.median(seconds)), "calls": len(seconds), "peak_mb": peak_mb()}


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
