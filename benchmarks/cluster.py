"""Two Dask workers against one on a chunked 128 × 2,000,000, and the same answer.

    python benchmarks/cluster.py [--columns 2000000] [--passes 3]

Blocks are made on the workers and kept there. Times passes (the part that workers share), then a pursuit.
"""

import argparse
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster, wait

import isopursuit as ip
from isopursuit.sources.tasks import Screen, Transform

D = 128


def block(columns, block_info=None):
    first = block_info[None]["array-location"][1][0]
    rng = np.random.default_rng(first)
    return rng.standard_normal((columns, D), dtype=np.float32).T / np.float32(np.sqrt(D))


def measure(workers, columns, passes, pursue):
    chunk = 50_000
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        x = da.map_blocks(block, chunk, chunks=((D,), (chunk,) * (columns // chunk)), dtype=np.float32).persist()
        wait(x)
        source = ip.as_source(x)
        K = np.eye(D) + 0.01 * np.ones((D, D))
        screen = Screen(K, None, Transform(c=1.0), room=4096, reach=0.1)
        source.screen(screen)
        began = time.perf_counter()
        for _ in range(passes):
            source.screen(screen)
        each = (time.perf_counter() - began) / passes
        found = ip.isometry_pursuit(source, tol=1e-3) if pursue else None
    return each, found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--columns", type=int, default=2_000_000)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--pursue", action="store_true")
    options = parser.parse_args()
    one, first = measure(1, options.columns, options.passes, options.pursue)
    two, second = measure(2, options.columns, options.passes, options.pursue)
    print(f"128 × {options.columns:,} float32, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    print(f"one worker {one:.2f} s a pass, two workers {two:.2f} s a pass: speed-up {one / two:.2f}")
    if options.pursue:
        print(f"same support: {np.array_equal(first.support, second.support)}; gap {second.certificate.gap:.1e}")


if __name__ == "__main__":
    main()
