"""Two Dask workers against one on a chunked 128 × 2,000,000, and the same answer.

    python -m benchmarks.cluster [--columns 2000000] [--passes 3] [--pursue]

Blocks are made on the workers and kept there. Times passes, the part that workers share. With --pursue it also compares
pursuits: in memory, by one worker, by two, and by two of which one is killed in the middle.
"""

import argparse
import os
import signal
import threading
import time

import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster, wait

import isopursuit as ip
from benchmarks.pages import BIG_DATA, command_text, save_row
from isopursuit.sources.screening import Screen
from isopursuit.sources.tasks import Transform

D = 128


def block(columns, block_info=None):
    first = block_info[None]["array-location"][1][0]
    rng = np.random.default_rng(first)
    return rng.standard_normal((columns, D), dtype=np.float32).T / np.float32(np.sqrt(D))


CHUNK = 50_000


def in_memory(columns):
    x = np.empty((columns, D), dtype=np.float32)
    for first in range(0, columns, CHUNK):
        x[first : first + CHUNK] = block(CHUNK, {None: {"array-location": [(0, D), (first, first + CHUNK)]}}).T
    return ip.as_source(x, vectors="rows")


def pursued(source):
    began = time.perf_counter()
    found = ip.isometry_pursuit(source, tol=1e-5)
    return found, time.perf_counter() - began


def measure(workers, columns, passes, pursue, kill=False):
    chunk = CHUNK
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        x = da.map_blocks(block, chunk, chunks=((D,), (chunk,) * (columns // chunk)), dtype=np.float32).persist()
        wait(x)
        source = ip.as_source(x)
        K = np.eye(D) + 0.01 * np.ones((D, D))
        screen = Screen(K, None, Transform(c=1.0), room=4096)
        source.screen(screen)
        began = time.perf_counter()
        for _ in range(passes):
            source.screen(screen)
        each = (time.perf_counter() - began) / passes
        if kill:
            victim = next(iter(client.run(os.getpid).values()))
            threading.Timer(1.0, os.kill, (victim, signal.SIGKILL)).start()
        found = pursued(source) if pursue else None
    return each, found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--columns", type=int, default=2_000_000)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--pursue", action="store_true")
    parser.add_argument("--write", action="store_true", help="its rows of docs/tables/big_data.csv")
    options = parser.parse_args()
    one, first = measure(1, options.columns, options.passes, options.pursue)
    two, second = measure(2, options.columns, options.passes, options.pursue)
    print(f"128 × {options.columns:,} float32, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    print(f"one worker {one:.2f} s a pass, two workers {two:.2f} s a pass: speed-up {one / two:.2f}")
    title = f"{D} × {options.columns:,} on Dask workers"
    if options.write:
        speed = f"two are {one / two:.2f} times as fast as one"
        save_row("big_data", BIG_DATA, [f"{title}, a pass", speed, command_text()])
    if options.pursue:
        told = []
        reference, alone = pursued(in_memory(options.columns))
        killed = measure(2, options.columns, 1, pursue=True, kill=True)[1]
        told.append(f"in memory {alone:.1f} s")
        print(
            f"in memory: {alone:.1f} s, gap {reference.certificate.gap:.1e}, "
            f"{len(reference.support)} columns with weight"
        )
        for who, (found, seconds) in {"one worker": first, "two": second, "two, one killed after 1 s": killed}.items():
            same = np.array_equal(found.support, reference.support)
            print(f"{who}: {seconds:.1f} s, gap {found.certificate.gap:.1e}, same support as in memory: {same}")
            told.append(f"{who} {seconds:.1f} s{'' if same else ' (another support)'}")
        if options.write:
            save_row("big_data", BIG_DATA, [f"{title}, to gap 1e-5", ", ".join(told), command_text()])


if __name__ == "__main__":
    main()
