"""Greedy, exchange and exact search over a million columns: passes, seconds, what was left, proof or gap.

    python -m benchmarks.search_scale [--columns 1000000] [--dimensions 8 12 16] [--limit 60] [--only NAME] [--write]

Columns are Gaussian of mean square length 1, in float32, streamed from memory; then times e^(spread · Gaussian); with
rows of different scale; and with an orthonormal basis hidden among them, up to noise. Prints Markdown. One BLAS thread;
passes and the tree bring their own.
"""

import argparse
import time

import numpy as np

import isopursuit as ip
from benchmarks.pages import save_row

KINDS = {
    "Gaussian": {},
    "lengths × e^(0.5 N)": {"spread": 0.5},
    "rows scaled 0.2 to 1": {"rows": 0.2},
    "basis hidden, noise 1e-4": {"noise": 1e-4},
    "basis hidden, noise 1e-3": {"noise": 1e-3},
    "basis hidden, noise 3e-3": {"noise": 3e-3},
    "basis hidden, noise 1e-2": {"noise": 1e-2},
}


def problem(D, P, spread=0.0, rows=1.0, noise=None):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((D, P), dtype=np.float32) / np.float32(np.sqrt(D))
    X *= np.exp(spread * rng.standard_normal(P, dtype=np.float32))
    X *= np.geomspace(rows, 1, D, dtype=np.float32)[:, None]
    hidden = np.sort(rng.choice(P, D, replace=False))
    if noise is not None:
        Q, _ = np.linalg.qr(rng.normal(size=(D, D)))
        X[:, hidden] = Q + noise * rng.normal(size=(D, D))
    return X, hidden if noise is not None else None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=1_000_000)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[8, 12, 16])
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for exchange, and for exact")
    parser.add_argument("--only", help="part of a kind's name")
    parser.add_argument("--write", action="store_true", help="the rows of docs/tables/searches.csv")
    asked = parser.parse_args()
    print("| columns | D | search | passes | seconds | loss − D | bound − D | hidden basis | told |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, options in KINDS.items():
        if asked.only and asked.only not in name:
            continue
        for D in asked.dimensions:
            X, hidden = problem(D, asked.columns, **options)
            source = ip.as_source(X)
            searches = {
                "greedy": lambda source=source: ip.greedy_search(source),
                "exchange": lambda source=source: ip.exchange_search(source, time_limit=asked.limit),
                "exact": lambda source=source: ip.exact_search(source, time_limit=asked.limit),
            }
            row = [f"{D} × {asked.columns:,}, {name}"]
            for method, search in searches.items():
                began = time.perf_counter()
                found = search()
                seconds = time.perf_counter() - began
                passes = found.notes[-1].partition(" ")[0]
                picked = "" if hidden is None else "found" if found.indices.tolist() == hidden.tolist() else "not found"
                told = "; ".join([found.verdict, *found.notes[:-1]])
                basis = f"; hidden basis {picked}" if picked else ""
                row.append(f"{found.loss:.6g} in {seconds:.2g} s, {found.verdict}{basis}")
                losses = f"{found.loss - D:.4g} | {found.lower_bound - D:.4g}"
                print(
                    f"| {name} | {D} | {method} | {passes} | {seconds:.1f} | {losses} | {picked} | {told} |", flush=True
                )
            if asked.write:
                save_row("searches", ["columns", *searches], row)


if __name__ == "__main__":
    main()
