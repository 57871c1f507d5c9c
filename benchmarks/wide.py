"""Few of many long vectors, 50 of 200,000 × 384, by their loss: beside greedy DPP, pivoted QR and random draws.

    python -m benchmarks.wide [--limit 10] [--columns 200000] [--rows 384] [-k 50] [--data embeddings isotropic]

Three kinds of data, each scaled to a median length of 1: means of 3 to 30 tokens drawn by Zipf's law from 30,000
vectors with a power-law spectrum and a common mean; isotropic vectors; 200 clusters. Every method prints its loss (the
ideal is k), wall time and processor time; the searches are given the array, and its .npy file as a source.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import isopursuit as ip


def embeddings(rng: np.random.Generator, count: int, rows: int) -> np.ndarray:
    """Means of tokens."""
    tokens = rng.normal(size=(30_000, rows)) * np.arange(1, rows + 1) ** -0.5
    tokens /= np.median(np.linalg.norm(tokens, axis=1))
    tokens = (tokens + 0.2 * rng.normal(size=rows) / np.sqrt(rows)).astype(np.float32)
    share = np.cumsum(1 / np.arange(1, len(tokens) + 1))
    X = np.empty((count, rows), np.float32)
    for first in range(0, count, 5000):
        sizes = rng.integers(3, 31, len(X[first : first + 5000]))
        drawn = np.searchsorted(share / share[-1], rng.random(sizes.sum())).clip(max=len(tokens) - 1)
        sums = np.add.reduceat(tokens[drawn], np.append(0, np.cumsum(sizes)[:-1]), axis=0)
        X[first : first + 5000] = sums / sizes[:, None]
    return X


def isotropic(rng: np.random.Generator, count: int, rows: int) -> np.ndarray:
    """Nothing special."""
    return rng.normal(size=(count, rows)).astype(np.float32)


def clusters(rng: np.random.Generator, count: int, rows: int) -> np.ndarray:
    """Around 200 centres."""
    centres = rng.normal(size=(200, rows))
    return (centres[rng.integers(0, 200, count)] + 0.5 * rng.normal(size=(count, rows))).astype(np.float32)


def random_draw(X: np.ndarray, k: int) -> list[int]:
    """The best of 100 draws."""
    rng = np.random.default_rng(0)
    draws = [rng.choice(len(X), k, replace=False) for _ in range(100)]
    return min(draws, key=lambda draw: ip.isometry_loss(X[draw].T)).tolist()


def largest_residuals(X: np.ndarray, k: int) -> list[int]:
    """Pivoted QR; on a kernel X Xᵀ the same is greedy DPP by volume."""
    squares, basis, picked = np.einsum("pd,pd->p", X, X), np.zeros((0, X.shape[1]), X.dtype), []
    for _ in range(k):
        picked.append(int(squares.argmax()))
        x = X[picked[-1]] - basis.T @ (basis @ X[picked[-1]])
        basis = np.vstack([basis, x / np.linalg.norm(x)])
        squares = squares - (X @ basis[-1]) ** 2
        squares[picked] = -np.inf
    return picked


def greedy_dpp(X: np.ndarray, k: int) -> list[int]:
    """Greedy DPP on vectors of unit length, as it is used for diversity: the first is the one nearest to length 1."""
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    unit = X / np.maximum(lengths, 1e-12)
    unit[np.abs(lengths[:, 0] - 1).argmin()] *= 1.001
    return largest_residuals(unit, k)


def greedy_pairs(X: np.ndarray, k: int) -> list[int]:
    """Greedy by Σ (|x_i|² − 1)² + 2 Σ_(i<j) (x_iᵀx_j)²."""
    costs, picked = (np.einsum("pd,pd->p", X, X) - 1) ** 2, []
    for _ in range(k):
        picked.append(int(costs.argmin()))
        costs = costs + 2 * (X @ X[picked[-1]]) ** 2
        costs[picked] = np.inf
    return picked


def main() -> None:
    """Print one line for each kind of data and method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=10.0)
    parser.add_argument("--columns", type=int, default=200_000)
    parser.add_argument("--rows", type=int, default=384)
    parser.add_argument("-k", type=int, default=50)
    parser.add_argument("--data", nargs="+", default=["embeddings", "isotropic", "clusters"])
    options = parser.parse_args()
    k = options.k
    kinds = {one.__name__: one for one in (embeddings, isotropic, clusters)}
    for name in options.data:
        X = kinds[name](np.random.default_rng(0), options.columns, options.rows)
        X /= np.median(np.linalg.norm(X, axis=1))
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "vectors.npy"
            np.save(file, X)
            source = ip.as_source(file, vectors="rows")
            methods: dict[str, Callable[[], Any]] = {
                "random": partial(random_draw, X, k),
                "pivoted QR": partial(largest_residuals, X, k),
                "greedy DPP": partial(greedy_dpp, X, k),
                "greedy pairs": partial(greedy_pairs, X, k),
                "exchange, array": partial(ip.exchange_search, X.T, k=k, time_limit=options.limit),
                "exchange, file": partial(ip.exchange_search, source, k=k, time_limit=options.limit),
                "select, file": partial(ip.select, source, k, time_limit=options.limit),
            }
            for method, run in methods.items():
                wall, processor = time.perf_counter(), time.process_time()
                found = run()
                wall, processor = time.perf_counter() - wall, time.process_time() - processor
                loss = ip.isometry_loss(X[getattr(found, "indices", found)].T)
                print(f"{name:12s} {method:16s} loss {loss:9.3f}  {wall:6.1f} s wall {processor:6.1f} s cpu")


if __name__ == "__main__":
    main()
