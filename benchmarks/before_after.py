"""The pursuit of two builds in turn: CPU time with one thread, and the gap, on problems of every kind.

    python -m benchmarks.before_after FOLDER [--rounds 7]

FOLDER has the `isopursuit` package of the other build. Each build runs in a process of its own, and both solve the same
problem alternately; the table has the median of each, and their ratio.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from statistics import median

import isopursuit

ENOUGH = 0.02  # seconds of one timing; faster problems are solved several times in it


def problems():
    """A call for each name."""
    import numpy as np
    from problems import PROBLEMS, gaussian, table
    from sklearn.datasets import load_breast_cancer

    import isopursuit as ip

    def column(X):
        return ip.basis_pursuit(X, 2.5 * X[:, [0]])

    def scattered(D, P):
        rng = np.random.default_rng(4)
        return rng.normal(size=(D, P)) * np.exp(0.3 * rng.normal(size=P)) / np.sqrt(D)

    rng = np.random.default_rng(0)
    units = rng.normal(size=(8, 400))
    units /= np.linalg.norm(units, axis=0)
    X13, cancer = gaussian(13, 178), table(load_breast_cancer)
    mixed, any_target = X13[:, :3] @ rng.normal(size=(3, 5)), rng.normal(size=(13, 20))
    wide, tall, few, points = (
        scattered(64, 20_000), gaussian(24, 10_000), gaussian(8, 4000), [gaussian(6, 60, i) for i in range(10)]
    )  # fmt: skip
    square = {name: make() for name, make in PROBLEMS.items()}
    return {name: partial(ip.basis_pursuit, X) for name, X in square.items()} | {
        "gauss 64x20000": lambda: ip.isometry_pursuit(wide),
        "gauss 8x4000": lambda: ip.basis_pursuit(few),
        "gauss 24x10000": lambda: ip.basis_pursuit(tall),
        "unit columns 8x400": lambda: ip.basis_pursuit(units),
        "one column of 13x178": lambda: column(X13),
        "one column of 30x569": lambda: column(cancer),
        "rank 3 of 13x178": lambda: ip.basis_pursuit(X13, mixed),
        "any target 13x178": lambda: ip.basis_pursuit(X13, any_target),
        "penalty 0.05 13x178": lambda: ip.basis_pursuit(X13, penalty=0.05),
        "penalty 0.001 30x569": lambda: ip.basis_pursuit(cancer, penalty=1e-3),
        "path 13x178": lambda: ip.lasso_path(X13)[-1],
        "10 points 6x60": lambda: ip.basis_pursuit(points),
        "k=5 of 13x178": lambda: ip.isometry_pursuit(X13, k=5),
        "k=10 of 30x569": lambda: ip.isometry_pursuit(cancer, k=10),
    }


def work():
    """Answer each name on the standard input with the seconds of one solve and its gap."""
    calls = problems()
    for name in map(str.strip, sys.stdin):
        count, began = 0, time.process_time()
        while count == 0 or time.process_time() - began < ENOUGH:
            found = calls[name]()
            count += 1
        print(json.dumps([(time.process_time() - began) / count, found.certificate.gap]), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    if options.folder is None:
        work()
        return
    one = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    path = os.pathsep.join(["benchmarks", "."])
    own = str(Path(isopursuit.__file__).parents[1])  # the build that this process imports, installed or not
    builds = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.before_after"],
            env=os.environ | one | {"PYTHONPATH": folder + path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for folder in (options.folder + os.pathsep, own + os.pathsep)
    ]

    def ask(build, name):
        print(name, file=build.stdin, flush=True)
        return json.loads(build.stdout.readline())

    print(f"{'problem':<24}{'before':>12}{'after':>12}{'ratio':>8}{'gaps':>18}")
    for name in problems():
        rows = [[ask(build, name) for build in builds] for _ in range(options.rounds + 1)][1:]
        before, after = (median(row[i][0] for row in rows) for i in range(2))
        gaps = f"{rows[0][0][1]:.0e} {rows[0][1][1]:.0e}"
        print(f"{name:<24}{1e3 * before:>9.3f} ms{1e3 * after:>9.3f} ms{after / before:>8.2f}{gaps:>18}", flush=True)
    for build in builds:
        build.stdin.close()
        build.wait()


if __name__ == "__main__":
    main()
