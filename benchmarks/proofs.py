"""Proof files: what they cost, how large they are, and how long a check takes, in processor seconds.

    python -m benchmarks.proofs

Writes the table of docs/howto/check.md. It takes about a minute on one core.
"""

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.datasets import load_breast_cancer
from threadpoolctl import threadpool_limits

import isopursuit as ip
from benchmarks.pages import save_table
from isopursuit.data import load_wine


def problems():
    """Name, matrix, k and unit."""
    cells = load_breast_cancer().data
    cells = (cells - cells.mean(axis=0)) / cells.std(axis=0)
    yield "12 of 30 features of breast cancer", cells, 12, "each"
    yield "10 of 569 rows of breast cancer", np.ascontiguousarray(cells.T[:10]), 10, None
    yield "12 of 569 rows of breast cancer", np.ascontiguousarray(cells.T[:12]), 12, None
    for k in (8, 10, 13):
        yield f"{k} of 178 wines", load_wine().matrix(k), k, None


def timed(work):
    """The result, and processor seconds."""
    began = time.process_time()
    return work(), time.process_time() - began


def main():
    rows = []
    with TemporaryDirectory() as folder, threadpool_limits(1):
        path = Path(folder) / "a.proof"
        for name, X, k, unit in problems():
            found, alone = timed(lambda: ip.exact_search(X, k=k, unit=unit))  # noqa: B023
            _, together = timed(lambda: ip.exact_search(X, k=k, unit=unit, proof=path))  # noqa: B023
            checked, seconds = timed(lambda: ip.check_proof(path, X))  # noqa: B023
            assert found.optimal
            assert checked.bound >= checked.loss * (1 - 1e-9)
            size = path.stat().st_size
            shown = f"{size / 1e3:.0f} kB" if size < 1e6 else f"{size / 1e6:.1f} MB"
            alone, together, seconds = (f"{float(f'{one:.2g}'):g} s" for one in (alone, together, seconds))
            rows.append([name, alone, together, f"{checked.nodes:,}", shown, seconds])
            print(*rows[-1], sep="; ", flush=True)
    save_table("proofs", ["problem", "search", "search and proof", "nodes of the proof", "file", "check"], rows)


if __name__ == "__main__":
    main()
