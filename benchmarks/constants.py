"""Processor time of passes and pursuits over files for several values of a constant, relative to its own value.

    python -m benchmarks.constants [NAME ...] [--repeats 2]

A constant is named as in `CONSTANTS`; without names all are measured. A pass is over 64 × 400,000 float32 columns in a
file, plain and standardized. Pursuits are of files whose log-lengths are spread by 0.3, until every column that matters
is in memory. One thread. A value is replaced in every module that imports it.
"""

import argparse
import os
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import isopursuit as ip
from isopursuit.pursuit.inputs import Goal, as_options
from isopursuit.pursuit.streamed import load_columns
from isopursuit.sources.columns import Columns
from isopursuit.sources.screening import Screen
from isopursuit.sources.tasks import Transform

PASSES, PURSUITS = "passes", "pursuits"
CONSTANTS = {  # the factors that are tried, and on what
    "BLOCK_BYTES": (PASSES, (1 / 8, 1 / 2, 2, 8)),
    "PIECE": (PASSES, (1 / 16, 1 / 4, 4)),
    "MULTIPLIED_AT_ONCE": (PURSUITS, (1 / 8, 1 / 2, 4)),
    "SWEPT_AT_ONCE": (PURSUITS, (1 / 2, 2)),
    "NEAR_SHARE": (PURSUITS, (1 / 10, 10)),
    "NEAR_EXCESS": (PURSUITS, (1 / 3, 3)),
    "NEAR_COUNT": (PURSUITS, (2 / 3, 2)),
    "CONJUGATE_STEPS": (PURSUITS, (1 / 3, 3)),
    "NEARLY_DETERMINED": (PURSUITS, (0.7, 1.4)),
    "PATH_RESIDUAL": (PURSUITS, (1 / 3, 3)),
    "LEAST_CENTRING": (PURSUITS, (1 / 3, 3)),
    "FAR_SLACK": (PURSUITS, (1 / 3, 3)),
}


def files(folder: Path) -> dict[str, list[tuple[str, object]]]:
    """Named functions to time."""
    rng = np.random.default_rng(0)

    def source(D: int, P: int, standardize: bool = False) -> Columns:
        path = folder / f"{D}-{P}.npy"
        if not path.exists():
            x = rng.normal(size=(P, D)) / np.sqrt(D) * np.exp(0.3 * rng.normal(size=(P, 1)))
            np.save(path, x.astype(np.float32))
        return ip.as_source(path, vectors="rows", workers=1, standardize=standardize)

    def passed(columns: Columns) -> object:
        return columns.screen(Screen(np.eye(64), None, replace(columns.transform, c=1.0), room=4096))

    def pursued(columns: Columns) -> object:
        columns = replace(columns, transform=Transform(c=1.0))
        return load_columns(columns, Goal(), as_options(1e-6, None))

    shapes = ((64, 100_000), (64, 300_000), (128, 50_000))
    return {
        PASSES: [(f"standardized: {one}", partial(passed, source(64, 400_000, one))) for one in (False, True)],
        PURSUITS: [(f"{D} × {P:,}", partial(pursued, source(D, P))) for D, P in shapes],
    }


def modules() -> list[ModuleType]:
    """Those of the package that are loaded."""
    return [module for name, module in sys.modules.items() if name.startswith("isopursuit.")]


def set_constant(name: str, value: float) -> None:
    """Set the constant in every module of the package."""
    for module in modules():
        if name in vars(module):
            setattr(module, name, value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(CONSTANTS))
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = files(Path(folder))
        for name in options.names:
            kind, factors = CONSTANTS[name]
            for title, run in runs[kind]:
                own = next(vars(module)[name] for module in modules() if name in vars(module))
                seconds: dict[float, float] = {}
                for _ in range(options.repeats):
                    for factor in (1, *factors):
                        set_constant(name, type(own)(own * factor))
                        began = time.process_time()
                        run()
                        seconds[factor] = min(seconds.get(factor, np.inf), time.process_time() - began)
                set_constant(name, own)
                told = ", ".join(f"{own * factor:.3g}: {seconds[factor] / seconds[1]:.2f}" for factor in factors)
                print(f"{name} = {own:.3g} ({title}, {seconds[1]:.2f} s): {told}", flush=True)


if __name__ == "__main__":
    main()
