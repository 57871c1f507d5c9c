"""Does the number of BLAS threads that the environment allows matter?

    python -m benchmarks.environment [--repeats 5] [pursuit exact ...]

Every job runs in processes of its own with the thread variables unset, as users have them, and set to 1, each alone
and beside one process that keeps a processor busy. The repeats alternate between the two, so that other load on the
machine falls on both alike. Prints a table of seconds a call (the median over repeats; in brackets the CPU time) and of
ratios, and exits with 1 where unset takes more than 1.3 times as long as set to 1 in the same company.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
WORST = 1.3

# each makes `job`, which is called as often as fits into SECONDS, and at least once
SETUP = """
import json, resource, time
import numpy as np
import isopursuit as ip
from isopursuit.data import load_iris, load_wine
rng = np.random.default_rng(0)
"""
JOBS = {
    "pursuit 4 × 75": "X = load_iris().replicate(0)\ndef job(): ip.isometry_pursuit(X)",
    "pursuit 16 × 1000": "X = rng.normal(size=(16, 1000)) / 4\ndef job(): ip.isometry_pursuit(X)",
    "pursuit 128 × 3000": "X = rng.normal(size=(128, 3000)) / 11\ndef job(): ip.isometry_pursuit(X, tol=1e-6)",
    "exact 10 × 178": "X = load_wine().matrix()[:10]\ndef job(): ip.exact_search(X)",
    "exchange 30 × 500": "X = rng.normal(size=(30, 500)) / 5.5\ndef job(): ip.exchange_search(X, kicks=20)",
    "streamed 64 × 200,000": (
        "X = ip.as_source(rng.standard_normal((64, 200_000), dtype=np.float32) / 8)\n"
        "def job(): ip.isometry_pursuit(X, tol=1e-4)"
    ),
}
TIMED = """
SECONDS = 0.5
job()  # imports, and the search for the BLAS libraries
calls, began, cpu = 0, time.perf_counter(), time.process_time()
while calls == 0 or time.perf_counter() - began < SECONDS:
    job()
    calls += 1
print(json.dumps([(time.perf_counter() - began) / calls, (time.process_time() - cpu) / calls]))
"""


def measured(code, one):
    """Wall and CPU seconds a call, in a fresh process."""
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    environment |= dict.fromkeys(VARIABLES, "1") if one else {}
    run = [sys.executable, "-c", SETUP + code + TIMED]
    return json.loads(subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout)


def compared(code, repeats):
    """The medians of wall and CPU seconds, unset and set to 1."""
    pairs = []
    for turn in range(repeats):
        order = (False, True) if turn % 2 == 0 else (True, False)
        found = {one: measured(code, one) for one in order}
        pairs.append((found[False], found[True]))
    return [[statistics.median(pair[i][kind] for pair in pairs) for kind in (0, 1)] for i in (0, 1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", help="only jobs whose name begins like this")
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}, {time.strftime('%Y-%m-%d')}\n")
    print("| job | company | unset, s (CPU) | set to 1, s (CPU) | ratio | ratio of CPU |")
    print("|---|---|---|---|---|---|")
    worst = 0.0
    for name, code in JOBS.items():
        if asked.jobs and not any(name.startswith(start) for start in asked.jobs):
            continue
        for company in ("alone", "beside a busy process"):
            busy = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if company != "alone" else None
            try:
                unset, one = compared(code, asked.repeats)
            finally:
                if busy is not None:
                    busy.kill()
                    busy.wait()
            ratio = unset[0] / one[0]
            worst = max(worst, ratio)
            times = f"{unset[0]:.4g} ({unset[1]:.4g}) | {one[0]:.4g} ({one[1]:.4g})"
            print(f"| {name} | {company} | {times} | {ratio:.2f} | {unset[1] / one[1]:.2f} |", flush=True)
    print(f"\nThe largest ratio is {worst:.2f}; at most {WORST} is expected.")
    sys.exit(worst > WORST)


if __name__ == "__main__":
    main()
