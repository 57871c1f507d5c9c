"""A pursuit over a tensor that stays on a CUDA device: passes, and where the time goes.

python -m benchmarks.device [--rows 256] [--columns 10000000] [--spread 0.0] [--write]
"""

import argparse
import time

import numpy as np
import torch

import isopursuit as ip
from benchmarks.pages import BIG_DATA, command_text, save_row
from isopursuit.sources import screening
from isopursuit.sources.screening import Screen
from isopursuit.sources.tasks import Transform
from isopursuit.sources.tensors import DeviceProducts


def timed(owner, name, clock):
    """Let the clock count what a method takes, the device's work included."""
    plain = getattr(owner, name)

    def measured(*arguments, **options):
        began = now()
        found = plain(*arguments, **options)
        clock[name] = clock.get(name, 0.0) + now() - began
        return found

    setattr(owner, name, measured)


def now():
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--columns", type=int, default=10_000_000)
    parser.add_argument("--spread", type=float, default=0.0, help="of the logarithm of the columns' lengths")
    parser.add_argument("--write", action="store_true", help="the problem's row of docs/tables/big_data.csv")
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    D, P = options.rows, options.columns
    dice = torch.Generator(device).manual_seed(0)
    x = torch.randn(D, P, device=device, generator=dice) / D**0.5
    if options.spread:
        x *= torch.exp(options.spread * torch.randn(P, device=device, generator=dice))
    source = ip.as_source(x)
    screen = Screen(np.eye(D), None, Transform(c=1.0), room=4096)
    source.screen(screen)
    began = now()
    source.screen(screen)
    print(f"{name}: {D} × {P:,} float32, log-lengths spread by {options.spread:g}")
    print(f"one pass {now() - began:.3f} s")
    ip.isometry_pursuit(ip.as_source(x[:, : 20 * D].contiguous()), tol=1e-2)  # the first call loads libraries
    clock = {}
    timed(screening, "measure", clock)
    timed(DeviceProducts, "moments", clock)
    timed(DeviceProducts, "forms", clock)

    def tell(progress):
        if progress.columns == P:
            print(f"    pass {progress.passes}: {progress.seconds:.2f} s, gap {progress.gap:.2e}", flush=True)

    began = now()
    found = ip.isometry_pursuit(source, tol=1e-6, callback=tell)
    seconds = now() - began
    print(f"pursuit {seconds:.2f} s, gap {found.certificate.gap:.1e} ({found.status}), {found.effort}")
    print(f"seconds a pass: {', '.join(f'{s:.2f}' for s in found.effort.seconds)}")
    share = sum(clock.values()) / seconds
    print(f"matrix products {share:.0%} of the time: " + ", ".join(f"{k} {v:.2f} s" for k, v in clock.items()))
    print(f"{len(found.support)} columns with weight, {len(found.tied)} not excluded")
    if options.write:
        title = f"{D} × {P:,} on {name}" + (f", log-lengths spread by {options.spread:g}" if options.spread else "")
        result = f"gap {found.certificate.gap:.1e} after {seconds:.2g} s and {found.effort.passes} passes"
        save_row("big_data", BIG_DATA, [title, result, command_text()])


if __name__ == "__main__":
    main()
