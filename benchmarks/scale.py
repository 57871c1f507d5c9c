"""A pursuit over a file larger than it needs to hold: passes, time per pass, memory.

    python -m benchmarks.scale FOLDER [--rows 64] [--columns 20000000] [--spread 0.0] [--kind gauss]

makes a file in FOLDER (5 GB of float32, vectors in rows), times one pass against reading and multiplying once, for
growing numbers of columns, and then pursues all of them. Prints Markdown: the gap after every pass, and the seconds to
1e-4, 1e-5 and 1e-6. One BLAS thread unless OPENBLAS_NUM_THREADS says otherwise; the pass brings its own. Shapes that
are hard at the end: --rows 64 --columns 1000000 --spread 0.3 and --rows 128 --columns 300000 --spread 0.3.
"""

import argparse
import os
import resource
import time
from dataclasses import dataclass, replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import isopursuit as ip
from benchmarks.pages import BIG_DATA, command_text, save_row
from isopursuit.sources.screening import Screen
from isopursuit.sources.tasks import Transform

BLOCK = 2**18
KINDS = ("gauss", "unit", "heavy", "clusters")


def draw(rng, kind, count, D, centres):
    """Columns of median length about 1: Gaussian, of length 1, of Student's t with 3 degrees, around 200 centres."""
    if kind == "heavy":
        return (rng.standard_t(3, size=(count, D)) / np.sqrt(D)).astype(np.float32)
    block = rng.standard_normal((count, D), dtype=np.float32) / np.float32(np.sqrt(D))
    if kind == "clusters":
        block = (centres[rng.integers(0, len(centres), count)] + 0.5 * block) / np.float32(np.sqrt(1.25))
    return block / np.linalg.norm(block, axis=1, keepdims=True) if kind == "unit" else block


def make(path, D, columns, spread, kind):
    """Columns of one kind times e^(spread·Gaussian); a block at a time."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((200, D), dtype=np.float32) / np.float32(np.sqrt(D)) if kind == "clusters" else None
    with path.with_suffix(".part").open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (columns, D)}
        np.lib.format.write_array_header_1_0(file, header)
        for first in range(0, columns, BLOCK):
            block = draw(rng, kind, min(BLOCK, columns - first), D, centres)
            if spread:
                block *= np.exp(spread * rng.standard_normal((len(block), 1), dtype=np.float32))
            block.tofile(file)
    path.with_suffix(".part").rename(path)


@dataclass(frozen=True)
class Multiply:
    """Read and multiply once: what no pass can do without."""

    K: np.ndarray

    def __call__(self, block, first):
        # as the pass does, a few hundred columns at a time, so that the product stays in cache
        return sum(float((self.K @ block[:, i : i + 256])[0, 0]) for i in range(0, block.shape[1], 256))

    def merge(self, one, other):
        return one + other

    def after(self, answer):
        return self


def best_of(times, function):
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def pass_table(columns):
    rng, D = np.random.default_rng(1), columns.shape[0]
    K = np.eye(D) + 0.01 * rng.normal(size=(D, D))
    K = (K + K.T) / 2
    screen = Screen(K, None, Transform(c=1.0), room=4160)
    multiply = Multiply(K.astype(np.float32))
    print("| columns | GB | one pass (s) | read and multiply (s) | ratio | ns a column |")
    print("|---|---|---|---|---|---|")
    sizes = [n for n in (10**5, 3 * 10**5, 10**6, 3 * 10**6, 10**7, 2 * 10**7) if n <= columns.shape[1]]
    for n in sizes:
        some = replace(columns.source, size=(D, n))
        repeats = 5 if n <= 10**6 else 2
        plain = best_of(repeats, lambda some=some: some.fold(multiply))
        ours = best_of(repeats, lambda some=some: some.fold(screen))
        again = best_of(1, lambda some=some: some.fold(multiply))
        plain = min(plain, again)
        print(
            f"| {n:,} | {4e-9 * D * n:.3g} | {ours:.3f} | {plain:.3f} | {ours / plain:.2f} | {1e9 * ours / n:.0f} |",
            flush=True,
        )


def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--kind", choices=KINDS, default="gauss")
    parser.add_argument("--columns", type=int, default=20_000_000)
    parser.add_argument("--spread", type=float, default=0.0, help="of the logarithm of the columns' lengths")
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--no-table", action="store_true")
    parser.add_argument("--no-pursuit", action="store_true")
    parser.add_argument("--write", action="store_true", help="the problem's row of docs/tables/big_data.csv")
    options = parser.parse_args()
    path = options.folder / f"{options.kind}{options.rows}-{options.columns}-{options.spread:g}.npy"
    if not path.exists():
        make(path, options.rows, options.columns, options.spread, options.kind)
    columns = ip.as_source(path, vectors="rows")
    if not options.no_table:
        pass_table(columns)
    if options.no_pursuit:
        return
    began = time.perf_counter()

    reached = {}

    def tell(now):
        if now.columns == options.columns:
            for gap in (1e-4, 1e-5, 1e-6):
                if now.gap <= gap:
                    reached.setdefault(gap, now.seconds)
            print(f"    pass {now.passes}: {now.seconds:.1f} s, gap {now.gap:.2e}", flush=True)

    found = ip.isometry_pursuit(columns, tol=options.tol, callback=tell)
    seconds = time.perf_counter() - began
    print(
        f"\n{options.rows} × {options.columns:,} float32, {options.kind}, log-lengths spread by {options.spread:g}, "
        f"load {os.getloadavg()[0]:.1f}:"
    )
    print(f"gap {found.certificate.gap:.1e} ({found.status}), {found.effort}, {seconds:.1f} s in all,")
    print(f"seconds a pass: {', '.join(f'{s:.1f}' for s in found.effort.seconds)}; peak memory {peak() / 1e9:.2f} GB")
    print("gap reached: " + ", ".join(f"{gap:.0e} after {at:.1f} s" for gap, at in reached.items()))
    print(f"{len(found.support)} columns with weight, {len(found.tied)} not excluded")
    if options.write:
        title = f"{options.rows} × {options.columns:,} in a file of {path.stat().st_size / 1e9:.2g} GB"
        title += f", log-lengths spread by {options.spread:g}" if options.spread else ""
        early = [f"gap {gap:.0e} after {at:.2g} s" for gap, at in reached.items() if at < seconds]
        last = f"gap {found.certificate.gap:.1e} after {seconds:.2g} s and {found.effort.passes} passes"
        result = ", ".join([*early[:1], last, f"{peak() / 1e9:.2f} GB of memory"])
        save_row("big_data", BIG_DATA, [title, result, command_text()])


if __name__ == "__main__":
    main()
