"""Many small problems at once: problems per second on CPU threads, in PyTorch on the CPU, and on a GPU if there is one.

    python -m benchmarks.batched OUTPUT.json [--share 0.1] [--repeat 3] [--threads-only]

CPU threads are 1, 2, 4, 8 and 16 workers, as far as there are processors.

A time is that of `batched_pursuit` as a user calls it, from raw columns where they are to certified answers in the same
place; the best of `repeat` after one to warm up. The CPU takes `share` of the problems, for its rate needs no more.
Processor seconds, over all threads, tell what a machine that is busy with other work would hide.
"""

import argparse
import json
import platform
import time
from pathlib import Path

import numpy as np

from isopursuit.batched import batched_pursuit
from isopursuit._core.threads import processors

SIZES = [(100_000, 4, 75), (10_000, 2, 756), (10_000, 8, 200)]
TOL = 1e-8
TITLES = ("n", "D", "P", "device", "problems/s", "seconds", "cpu seconds", "worst gap", "converged")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path, help="where to write the table as JSON")
    parser.add_argument("--share", type=float, default=0.1, help="share of the problems that the CPU solves")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads-only", action="store_true", help="leave out PyTorch")
    arguments = parser.parse_args()
    rows = []
    print("".join(f"{title:>13}" for title in TITLES))
    for n, D, P in SIZES:
        X = np.random.default_rng(0).normal(size=(n, D, P)) / np.sqrt(D)
        for device, given, workers in placed(X, arguments.share, arguments.threads_only):
            found = measured(given, arguments.repeat, workers)
            rows.append({"n": len(given), "D": D, "P": P, "device": device, **found})
            print("".join(f"{shown(rows[-1][title]):>13}" for title in TITLES), flush=True)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps({"machine": machine(), "tol": TOL, "rows": rows}, indent=1) + "\n")


def placed(X, share, threads_only):
    """What solves the problems, which of them, where they are, and on how many threads."""
    few = X[: max(1, round(share * len(X)))]
    for workers in (1, 2, 4, 8, 16):
        if workers <= processors():
            yield f"{workers} worker{'s' if workers > 1 else ''}", few, workers
    try:
        import torch
    except ImportError:
        return
    if threads_only:
        return
    yield "torch cpu", torch.from_numpy(few), None
    if torch.cuda.is_available():
        yield "torch cuda", torch.from_numpy(X).cuda(), None


def measured(X, repeat, workers):
    batched_pursuit(X, tol=TOL, workers=workers)
    times = []
    for _ in range(repeat):
        began, busy = time.perf_counter(), time.process_time()
        found = batched_pursuit(X, tol=TOL, workers=workers)
        worst = float(found.gap.max())  # waits for the device
        times.append((time.perf_counter() - began, time.process_time() - busy))
    seconds, processor = min(times)
    return {
        "problems/s": len(X) / seconds,
        "seconds": seconds,
        "cpu seconds": processor,
        "worst gap": worst,
        "converged": float((found.status == "optimal").mean()),
    }


def shown(value):
    if isinstance(value, float):
        return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
    return str(value)


def machine():
    about = {"processor": platform.processor() or platform.machine(), "python": platform.python_version()}
    try:
        import torch
    except ImportError:
        return about
    about |= {"torch": torch.__version__, "torch threads": torch.get_num_threads()}
    if torch.cuda.is_available():
        about["gpu"] = torch.cuda.get_device_name()
    return about


if __name__ == "__main__":
    main()
