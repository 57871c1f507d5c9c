"""Do time limits hold? Every public function that takes one, on matrices that it cannot finish.

    python -m benchmarks.limits [--limits 1 5] [--repeats 1] [--only select] [--sizes 61x1797 64x20000 ...]

Each call runs in its own process, which makes the matrix and calls the function once with a time limit. The table shows
how long the call took, how long one pass over the data takes (a pursuit may need one more pass than its limit allows),
and what is proved. The exit status is 1 if a call takes more than its limit plus 10 % and 0.5 s (for a pursuit plus one
pass), or if a certificate or a bound is not finite. Other load makes a call late too: with --repeats N a call counts as
late only if it is late N times.
"""

import argparse
import json
import os
import subprocess
import sys
import time

SIZES = ("61x1797", "64x20000", "20x100000", "128x300000")

SETUP = """
import json, math, time
import numpy as np
import isopursuit as ip

def matrix(D, P):
    if (D, P) == (61, 1797):
        from sklearn.datasets import load_digits
        values = load_digits().data
        values = values[:, values.std(axis=0) > 0]
        X = ((values - values.mean(axis=0)) / values.std(axis=0)).T
        return X / np.median(np.linalg.norm(X, axis=0))
    return np.random.default_rng(0).normal(size=(D, P)) / np.sqrt(D)

def proved(found):
    # what is proved, and whether that is finite
    if isinstance(found, tuple):
        gaps = [one.certificate.gap for one in found]
        return f"{len(gaps)} λ, gap {gaps[-1]:.1e}", all(map(math.isfinite, gaps))
    if isinstance(found, ip.Pursuit):
        return f"{found.status}, gap {found.certificate.gap:.1e}", math.isfinite(found.certificate.gap)
    if hasattr(found, "search"):
        text, good = proved(found.search)
        if found.pursuit is not None:
            text, good = f"{text}; pursuit {proved(found.pursuit)[0]}", good and proved(found.pursuit)[1]
        return text + f", {sum(not math.isnan(one.price) for one in found.choices)} prices", good
    if hasattr(found, "refused"):
        return f"gap {found.gap.max():.1e}", bool(np.isfinite(found.gap).all())
    return f"{found.status}, {found.lower_bound:.6g} ≤ {found.loss:.6g}", math.isfinite(found.lower_bound)
"""
TIMED = """
began, cpu = time.perf_counter(), time.process_time()
found = job()
seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
K, data = np.eye(D), X if isinstance(X, np.ndarray) else X.source.values
began = time.perf_counter()
for first in range(0, P, 8192):
    block = data[:, first : first + 8192]
    ((K @ block) * block).sum(axis=0)
text, good = proved(found)
print(json.dumps([seconds, cpu, time.perf_counter() - began, text, good]))
"""
METHODS = ("two-stage", "exact", "exchange", "greedy")
PURSUITS = {
    "isometry_pursuit": "ip.isometry_pursuit(X, time_limit=limit)",
    "basis_pursuit": "ip.basis_pursuit(X, time_limit=limit)",
    "lasso_path": "ip.lasso_path(X, time_limit=limit)",
    "isometry_pursuit, source": "ip.isometry_pursuit(ip.as_source(X), time_limit=limit)",
    "basis_pursuit, source": "ip.basis_pursuit(ip.as_source(X), time_limit=limit)",
}
CALLS = (
    PURSUITS
    | {f"{method}_search": f"ip.{method}_search(X, time_limit=limit)" for method in METHODS[1:]}
    | {f"{method}_search, source": f"ip.{method}_search(ip.as_source(X), time_limit=limit)" for method in METHODS[1:]}
    | {f"select {method}": f"ip.select(X, method={method!r}, time_limit=limit)" for method in METHODS}
    | {f"select {m}, source": f"ip.select(ip.as_source(X), method={m!r}, time_limit=limit)" for m in METHODS}
    | {"select k=10": "ip.select(X, 10, time_limit=limit)"}
)


def measured(call, size, limit):
    """Seconds, CPU seconds, seconds of a pass, what is proved, whether that is finite."""
    D, P = map(int, size.split("x"))
    code = f"{SETUP}\nD, P, limit = {D}, {P}, {limit}\nX = matrix(D, P)\ndef job(): return {call}\n{TIMED}"
    try:
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120 + 10 * limit)
    except subprocess.TimeoutExpired:
        return 120 + 10 * limit, 0.0, 0.0, "did not return", False
    if run.returncode:
        return 0.0, 0.0, 0.0, run.stderr.strip().splitlines()[-1][:100], False
    return json.loads(run.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limits", type=float, nargs="+", default=[1.0, 5.0])
    parser.add_argument("--sizes", nargs="+", default=SIZES)
    parser.add_argument("--only", nargs="+", default=[""], help="calls whose name contains this")
    parser.add_argument("--repeats", type=int, default=1, help="how many times a late call is tried")
    asked = parser.parse_args()
    print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}, {time.strftime('%Y-%m-%d')}\n")
    print("| size | call | limit, s | took, s (CPU) | allowed, s | |")
    print("|---|---|---|---|---|---|")
    bad = count = 0
    for size in asked.sizes:
        for name, call in CALLS.items():
            if not any(part in name for part in asked.only):
                continue
            for limit in asked.limits:
                for _ in range(asked.repeats):
                    seconds, cpu, once, text, good = measured(call, size, limit)
                    allowed = 1.1 * limit + 0.5 + (once if name in PURSUITS or "two-stage" in name else 0.0)
                    fine = good and seconds <= allowed
                    if fine:
                        break
                count, bad = count + 1, bad + (not fine)
                mark = "" if fine else "**" + ("late" if good else "not finite") + "** "
                took = f"{seconds:.2f} ({cpu:.2f})"
                print(f"| {size} | {name} | {limit:g} | {took} | {allowed:.2f} | {mark}{text} |", flush=True)
    print(f"\n{count - bad} of {count} calls kept their limit with something proved.")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
