"""Answers in a second: a table of features, a short list of results, and 50 of 200,000 vectors.

    python -m benchmarks.quick [--columns 200000]

Prints the loss, its distance to the lower bound and the seconds of isopursuit with its defaults, beside greedy DPP and
pivoted QR in NumPy and SciPy in the same run (the least of three runs, except of the 200,000 vectors). The last table
has peak memory relative to the data, for an array, a file and a tensor, each in a process of its own.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import isopursuit as ip
from benchmarks.pivots import greedy_dpp, pivoted_qr
from isopursuit.estimators import IsometryFeatureSelector, IsometrySampleSelector

ROWS, PICKED = 384, 50


def timed(work, runs=3):
    """The result and the least seconds of some runs."""
    least = np.inf
    for _ in range(runs):
        began = time.perf_counter()
        found = work()
        least = min(least, time.perf_counter() - began)
    return found, least


def show(name, loss, ideal, seconds, words=""):
    print(f"| {name} | {loss / ideal:.4f} | {seconds:.3g} | {words} |", flush=True)


def beside(X, k, runs=3):
    """The other methods on unit-length columns."""
    for name, pick in (("greedy DPP", greedy_dpp), ("pivoted QR", pivoted_qr)):
        chosen, seconds = timed(lambda pick=pick: pick(X, k), runs)
        show(name, ip.isometry_loss(X[:, chosen]), k, seconds)


def features():
    rng = np.random.default_rng(0)
    for hidden, noise in ((60, 3.0), (30, 2.0)):
        table = rng.normal(size=(3000, hidden)) @ rng.normal(size=(hidden, 120)) + noise * rng.normal(size=(3000, 120))
        print(
            f"\n15 features of a 3,000 × 120 table with {hidden} factors\n\n| method | loss / 15 | seconds | verdict |"
        )
        print("|---|---|---|---|")
        found, seconds = timed(lambda table=table: IsometryFeatureSelector(15).fit(table))
        show("isopursuit", found.loss_, 15, seconds, found.selection_.verdict)
        centred = table - table.mean(axis=0)
        beside(centred / np.linalg.norm(centred, axis=0), 15)
        target = table[:, 0] + table[:, 1] > 0
        validate = partial(cross_val_score, make_pipeline(IsometryFeatureSelector(15), LogisticRegression()))
        print(f"\nfive-fold cross-validation: {timed(partial(validate, table, target))[1]:.2g} s")


def results():
    rng = np.random.default_rng(0)
    vectors, scores = rng.normal(size=(100, ROWS)) + rng.normal(size=ROWS), rng.random(100)
    print("\n10 of 100 results by vectors and scores\n\n| method | loss / 10 | seconds | verdict |\n|---|---|---|---|")
    selector = IsometrySampleSelector(k=10, relevance=0.5)
    found, seconds = timed(lambda: selector.fit(vectors, scores=scores))
    unit = (vectors / np.linalg.norm(vectors, axis=1)[:, None]).T
    # its own loss includes the scores, which the others do not use
    show("isopursuit", ip.isometry_loss(unit[:, found.sample_indices_]), 10, seconds, found.selection_.verdict)
    beside(unit, 10)


def many(P):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.npy"
        rng = np.random.default_rng(0)
        X = rng.standard_normal((P, 40), dtype=np.float32) @ rng.standard_normal((40, ROWS), dtype=np.float32)
        X += 2 * rng.standard_normal((P, ROWS), dtype=np.float32)
        np.save(path, X / np.linalg.norm(X, axis=1)[:, None])
        print(f"\n{PICKED} of {P:,} vectors of {ROWS} numbers\n")
        print(f"| data | loss / {PICKED} | seconds | verdict, peak memory / data |\n|---|---|---|---|", flush=True)
        for kind in ("array", "file", "tensor", "array, 60 s"):
            subprocess.run([sys.executable, "-m", "benchmarks.quick", "--one", kind, str(path)], check=True)
        beside(np.ascontiguousarray(np.load(path).T).astype(float), PICKED, runs=1)


def memory(name):
    """The resident memory of this process, or its peak, in bytes (Linux)."""
    return 1024 * int(re.search(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text())[1])


def one(kind, path):
    """A selection in this process, with its peak memory above the start."""
    if kind == "tensor":
        import torch

        X = torch.from_numpy(np.load(path)).T
    else:
        X = ip.as_source(path, vectors="rows") if kind == "file" else np.load(path).T
    size = Path(path).stat().st_size
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    limit = {"time_limit": 60} if kind.endswith("60 s") else {}
    found, seconds = timed(lambda: ip.select(X, PICKED, **limit), runs=1)
    held = (0 if kind == "file" else 1) + (memory("VmHWM") - before) / size
    show(kind, found.loss, PICKED, seconds, f"{found.verdict}, {held:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, default=200_000)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        one(*asked.one)
        return
    features()
    results()
    many(asked.columns)


if __name__ == "__main__":
    main()
