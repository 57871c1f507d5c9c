"""Exact and exchange searches on a ladder of problems: loss, bound, nodes and processor seconds of each.

    python -m benchmarks.ladder [NAMES ...] [--limit 60] [--workers 1] [--repeat 1] [--against PYTHON] [--cores 16]

A name may be the beginning of several ("gauss" runs all that start with it). Names with x are exchange searches, the
others exact ones. `--against` runs each problem in turn with another interpreter too, one that has another version of
isopursuit, and prints the ratio of the times. `--cores` prints wall-clock times with one worker and with so many, and
where one worker reaches the limit, what both did per second. Constants of the search are measured by this command.
"""

import argparse
import json
import math
import subprocess
import sys
import time

import numpy as np
from scipy.linalg import hadamard
from sklearn import datasets

import isopursuit as ip


def data(name):
    values = getattr(datasets, f"load_{name}")().data
    return values[:, values.std(axis=0) > 0]


def unit_length(X):
    return X / np.linalg.norm(X, axis=0)


def rows(name, D=None):
    """Standardized features in the rows, samples in the columns."""
    values = data(name)
    return ((values - values.mean(axis=0)) / values.std(axis=0)).T[:D]


def median_rows(name):
    X = rows(name)
    return X / np.median(np.linalg.norm(X, axis=0))


def features(values):
    """Centred features of length 1 in the columns."""
    return unit_length(values - values.mean(axis=0))


def gauss(D, P, seed=0, spread=0.0):
    """Directions without structure; `spread` is that of the logarithms of the lengths."""
    rng = np.random.default_rng(seed)
    return unit_length(rng.normal(size=(D, P))) * np.exp(spread * rng.normal(size=P))


def chain(P, correlation):
    """Features of which neighbours are correlated."""
    noise = np.random.default_rng(0).normal(size=(500, P))
    values = noise.copy()
    for j in range(1, P):
        values[:, j] = correlation * values[:, j - 1] + math.sqrt(1 - correlation**2) * noise[:, j]
    return features(values)


def hidden(D, crowd, noise=0.0):
    """An orthonormal basis, with noise, behind a crowd of unit-length columns."""
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(D, D)))[0] + noise * rng.normal(size=(D, D))
    return np.hstack([unit_length(rng.normal(size=(D, crowd))), basis])


def hidden_in_source(D, P, noise):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(D, P)) / np.sqrt(D)
    basis = np.linalg.qr(rng.normal(size=(D, D)))[0]
    X[:, np.sort(rng.choice(P, D, replace=False))] = basis + noise * rng.normal(size=(D, D))
    return ip.as_source(X.astype(np.float32))


def source(D, P, seed=0):
    X = np.random.default_rng(seed).standard_normal((D, P), dtype=np.float32)
    return ip.as_source(X / np.float32(np.sqrt(D)))


def lattice(seed):
    """Vectors of length 1 on a lattice, a basis among them, and one that is orthonormal but for one length."""
    rng = np.random.default_rng(seed)
    points = rng.integers(-2, 3, (8, 20000))
    points = points[:, (points**2).sum(axis=0) == 16][:, :400] / 4
    basis = np.kron(np.eye(2), hadamard(4) / 2)[rng.permutation(8)]
    return np.hstack([np.diag([1.0] * 7 + [1.04]), points, basis])


def combinations(D, P):
    """Small integer combinations of an orthonormal basis, and the basis."""
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(D, D)))[0]
    integers = rng.integers(-1, 2, (D, 3 * P))
    X = np.hstack([basis @ integers[:, np.abs(integers).sum(axis=0) > 1][:, :P], basis])
    return X[:, rng.permutation(X.shape[1])]


def low_rank(D, P, seed=0):
    rng = np.random.default_rng(seed)
    return unit_length(
        rng.normal(size=(D, 40)) @ rng.normal(size=(40, P)) / np.sqrt(40) + 0.3 * rng.normal(size=(D, P))
    )


def groups_of_samples(count, groups):
    """At most one column of each group."""
    return {"groups": [str(i % groups) for i in range(count)], "per_group": 1}


def points(D, P=60, n=100, noise=0.3):
    """The columns at n points: a common part and noise."""
    rng = np.random.default_rng(0)
    return list((rng.normal(size=(D, P)) + noise * rng.normal(size=(n, D, P))) / np.sqrt(D))


PROBLEMS = {  # name: problem, options of the search
    "iris4": (lambda: rows("iris"), {}),
    "wine6 c=0.4": (lambda: rows("wine", 6), {"c": 0.4}),
    "wine8 c=0.4": (lambda: rows("wine", 8), {"c": 0.4}),
    "wine13": (lambda: rows("wine"), {}),
    "wine13 include": (lambda: rows("wine"), {"include": [3, 70]}),
    "cancer8 c=2": (lambda: rows("breast_cancer", 8), {"c": 2.0}),
    "cancer10": (lambda: rows("breast_cancer", 10), {}),
    "cancer11": (lambda: rows("breast_cancer", 11), {}),
    "cancer12": (lambda: rows("breast_cancer", 12), {}),
    "cancer15": (lambda: rows("breast_cancer", 15), {}),
    "gauss6": (lambda: gauss(6, 200), {}),
    "gauss7": (lambda: gauss(7, 150), {}),
    "gauss8": (lambda: gauss(8, 300), {}),
    "gauss9": (lambda: gauss(9, 120), {}),
    "gauss10": (lambda: gauss(10, 200), {}),
    "features5": (lambda: features(data("breast_cancer")), {"k": 5}),
    "features8": (lambda: features(data("breast_cancer")), {"k": 8}),
    "features12": (lambda: features(data("breast_cancer")), {"k": 12}),
    "features20": (lambda: features(data("breast_cancer")), {"k": 20}),
    "digits8": (lambda: unit_length(data("digits")), {"k": 8}),
    "winerows4": (lambda: median_rows("wine"), {"k": 4}),
    "winerows6": (lambda: median_rows("wine"), {"k": 6}),
    "cancerrows4": (lambda: median_rows("breast_cancer"), {"k": 4}),
    "chain5": (lambda: chain(60, 0.9), {"k": 5}),
    "chain10": (lambda: chain(60, 0.5), {"k": 10}),
    "noise5": (lambda: features(np.random.default_rng(0).normal(size=(200, 60))), {"k": 5}),
    "lattice4": (lambda: lattice(4), {}),
    "lattice17": (lambda: lattice(17), {}),
    "integers6": (lambda: combinations(6, 400), {}),
    "integers8": (lambda: combinations(8, 800), {}),
    "hidden8": (lambda: hidden(8, 3000), {}),
    "hidden16": (lambda: hidden(16, 400), {}),
    "hidden16 noise": (lambda: hidden(16, 400, 1e-3), {}),
    "source8": (lambda: source(8, 20_000), {}),
    "source24": (lambda: source(24, 50_000), {}),
    "hiddensource6": (lambda: hidden_in_source(6, 120_000, 3e-4), {}),
    "hiddensource8": (lambda: hidden_in_source(8, 200_000, 1e-3), {}),
    "gauss12": (lambda: gauss(12, 150), {}),
    "spread7 c=0.5": (lambda: gauss(7, 150, 0, 0.5), {"c": 0.5}),
    "cancer7 c=0.6": (lambda: rows("breast_cancer", 7), {"c": 0.6}),
    "cancer16": (lambda: rows("breast_cancer", 16), {}),
    "rules wine": (lambda: unit_length(rows("wine")), {"k": 8} | groups_of_samples(178, 8)),
    "rules samples": (lambda: rows("breast_cancer", 8), groups_of_samples(569, 20)),
    "points2": (lambda: points(2), {}),
    "points3": (lambda: points(3), {}),
    "points3 trimmed": (lambda: points(3), {"aggregate": "trimmed"}),
    "points3 wide": (lambda: points(3, 2500, 30), {}),
    "points4": (lambda: points(4), {}),
    "points4 noise": (lambda: points(4, noise=0.6), {}),
    "points4 wide": (lambda: points(4, 200, 60), {}),
    "points4 k=2": (lambda: points(4), {"k": 2}),
    "points4 k=3": (lambda: points(4), {"k": 3}),
    "points5": (lambda: points(5), {}),
    "x wine13": (lambda: rows("wine"), {}),
    "x cancer15": (lambda: rows("breast_cancer", 15), {}),
    "x gauss10": (lambda: gauss(10, 200), {}),
    "x digits8": (lambda: unit_length(data("digits")), {"k": 8}),
    "x features12": (lambda: features(data("breast_cancer")), {"k": 12}),
    "x lattice4": (lambda: lattice(4), {}),
    "x integers8": (lambda: combinations(8, 800), {}),
    "x points4": (lambda: points(4), {}),
    "x points6": (lambda: points(6, 100, 60), {}),
    "x source12of24": (lambda: source(24, 50_000), {"k": 12, "time_limit": 10}),
    "x source24": (lambda: source(24, 50_000), {"time_limit": 10}),
}
for seed in range(1, 6):
    rng = {"rng": seed}
    PROBLEMS |= {
        f"x gauss12 {seed}": (lambda seed=seed: gauss(12, 600, seed, 0.4), rng),
        f"x gauss16 {seed}": (lambda seed=seed: gauss(16, 400, seed), rng),
        f"x gauss20 {seed}": (lambda seed=seed: gauss(20, 5000, seed), rng | {"time_limit": 1}),
        f"x cancer20 {seed}": (lambda: rows("breast_cancer", 20), rng),
        f"x cancer30 {seed}": (lambda: rows("breast_cancer"), rng),
        f"x digits20 {seed}": (lambda: unit_length(data("digits")), rng | {"k": 20}),
        f"x lowrank50 {seed}": (lambda seed=seed: low_rank(384, 20_000, seed), rng | {"k": 50, "time_limit": 8}),
        f"x source20 {seed}": (lambda seed=seed: source(20, 40_000, seed), rng | {"time_limit": 8}),
    }


def run(name, limit, workers):
    build, options = PROBLEMS[name]
    X = build()
    if name.startswith("x "):
        search = ip.exchange_search
    else:
        search, options = ip.exact_search, {"time_limit": limit, "workers": workers} | options
    began, wall = time.process_time(), time.perf_counter()
    found = search(X, **options)
    seconds, wall = time.process_time() - began, time.perf_counter() - wall
    return {
        "loss": found.loss,
        "bound": found.lower_bound,
        "nodes": found.nodes,
        "status": found.status,
        "seconds": seconds,
        "wall": wall,
    }


def in_child(python, name, arguments, workers=None):
    """The problem in a process of its own."""
    command = [python, "-m", "benchmarks.ladder", name, "--one", "--limit", str(arguments.limit)]
    command += ["--workers", str(workers or arguments.workers)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def compare_cores(names, arguments):
    """Wall-clock times with one worker and with many."""
    print(f"{'problem':16} {'workers':>7} {'status':10} {'gap':>8} {'nodes':>9} {'wall':>8} {'nodes/s':>9} {'busy':>6}")
    for name in names:
        for workers in (1, arguments.cores):
            found = in_child(sys.executable, name, arguments, workers)
            gap, rate = 1 - found["bound"] / found["loss"], found["nodes"] / found["wall"]
            line = f"{name:16} {workers:7} {found['status']:10} {100 * gap:6.2f} % {found['nodes']:9}"
            print(f"{line} {found['wall']:8.2f} {rate:9.0f} {found['seconds'] / found['wall']:6.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--limit", type=float, default=60, help="seconds of an exact search")
    parser.add_argument("--workers", type=int, default=1, help="threads of an exact search")
    parser.add_argument("--repeat", type=int, default=1, help="the least time of this many runs counts")
    parser.add_argument("--against", metavar="PYTHON", help="an interpreter with another version")
    parser.add_argument("--cores", type=int, help="compare one worker with this many")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(run(arguments.names[0], arguments.limit, arguments.workers)))
        return
    names = [name for name in PROBLEMS if name.startswith(tuple(arguments.names) or "")]
    if arguments.cores:
        compare_cores(names, arguments)
        return
    pythons = [sys.executable, *([arguments.against] if arguments.against else [])]
    logs = []
    print(f"{'problem':16} {'status':10} {'loss':>14} {'bound':>12} {'nodes':>9} {'seconds':>8}")
    for name in names:
        runs = [[in_child(python, name, arguments) for python in pythons] for _ in range(arguments.repeat)]
        best = [min(column, key=lambda one: one["seconds"]) for column in zip(*runs, strict=True)]
        line = "{status:10} {loss:14.8g} {bound:12.7g} {nodes:9} {seconds:8.2f}"
        print(f"{name:16} " + "   | ".join(line.format(**one) for one in best), end="")
        if len(best) > 1:
            logs.append(math.log(best[0]["seconds"] / best[1]["seconds"]))
            print(f"   x {math.exp(logs[-1]):.2f}, loss {100 * (best[0]['loss'] / best[1]['loss'] - 1):+.2f} %", end="")
        print(flush=True)
    if logs:
        print(f"geometric mean of the ratios of times: {math.exp(sum(logs) / len(logs)):.3f}")


if __name__ == "__main__":
    main()
