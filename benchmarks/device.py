"""One pass over a tensor on a CUDA device, and a pursuit over it: only the working set comes home.

python benchmarks/device.py [--rows 256] [--columns 10000000] [--pursue 32]
"""

import argparse
import time

import torch

import isopursuit as ip
from isopursuit.sources.tasks import Screen, Transform


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--columns", type=int, default=10_000_000)
    parser.add_argument("--pursue", type=int, default=32, help="rows of the problem that is pursued")
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    for D in (options.rows, options.pursue):
        x = torch.randn(D, options.columns, device=device, generator=torch.Generator(device).manual_seed(0)) / D**0.5
        source = ip.as_source(x)
        K = torch.eye(D, dtype=torch.float64).numpy()
        screen = Screen(K, None, Transform(c=1.0), room=4096, reach=0.1)
        source.screen(screen)
        began = time.perf_counter()
        source.screen(screen)
        print(f"{name}: {D} × {options.columns:,} float32, one pass {time.perf_counter() - began:.3f} s", flush=True)
    began = time.perf_counter()
    found = ip.isometry_pursuit(source, tol=1e-6)
    seconds = time.perf_counter() - began
    print(f"pursuit of {D} × {options.columns:,}: {seconds:.1f} s, {found.certificate}, {found.effort}")


if __name__ == "__main__":
    main()
