"""How many columns SCS keeps on ethanol, by its tolerance, its iteration limit and the threshold that calls a row zero.

    python -m benchmarks.support [--frames 20] [--write]

The paper reports |S| = 90 ± 165 at a tolerance of 1e-12 and a threshold of 1e-6, in November 2024, when
SCS 3.2.7 was the latest version. Run the same sweep with that version:

    pip install --target scs-3.2.7 --no-deps scs==3.2.7
    PYTHONPATH=scs-3.2.7 python -m benchmarks.support --write

Takes half a minute of processor time with SCS 3.3.1 and three and a half minutes with 3.2.7.
"""

import argparse

import cvxpy
import numpy as np
import scs

from benchmarks import pages
from isopursuit import isometry_pursuit, symmetric_normalize
from paper.methods import conic
from paper.plan import molecule
from paper.tables import spread

PAPER = 1e-6  # the authors set entries of B below this to zero
THRESHOLDS = (1e-4, PAPER, 1e-8)
SETTINGS = (  # tolerance, iteration limit
    (1e-12, 100_000),  # the authors' tolerance, and SCS's default limit
    (1e-12, 10_000),
    (1e-12, 2_500),
    (1e-12, 1_000),
    (1e-12, 250),
    (1e-9, 100_000),
    (1e-6, 100_000),
    (1e-5, 100_000),  # CVXPY's default tolerance
)


def supports(B):
    """How many rows of B have an entry above each threshold."""
    return [int((np.abs(B).max(axis=1) >= threshold).sum()) for threshold in THRESHOLDS]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=20)
    parser.add_argument("--write", action="store_true", help="write these rows into docs/tables/scs.csv")
    given = parser.parse_args()
    frames = molecule("ethanol").matrices[: given.frames]
    exact = [len(isometry_pursuit(X).support) for X in frames]
    print(f"CVXPY {cvxpy.__version__}, {len(frames)} frames; isopursuit: |S| = {min(exact)} to {max(exact)}\n")
    sizes = (f"|S|, threshold {threshold:g}" for threshold in THRESHOLDS)
    heads = ["SCS", "tolerance", "iteration limit", "converged", "iterations", *sizes, "range at 1e-06"]
    print(*heads, sep="; ")
    for eps, limit in SETTINGS:
        found = [conic(symmetric_normalize(X), solver="SCS", eps=eps, max_iters=limit) for X in frames]
        sizes = np.array([supports(one.B) for one in found])
        paper = sizes[:, THRESHOLDS.index(PAPER)]
        cells = [
            scs.__version__,
            f"{eps:g}",
            f"{limit:,}",
            f"{sum(one.converged for one in found)} of {len(found)}",
            f"{np.median([one.iterations for one in found]):,.0f}",
            *(spread(column, 0) for column in sizes.T.astype(float)),
            f"{paper.min()} to {paper.max()}",
        ]
        print(*cells, sep="; ", flush=True)
        if given.write:
            pages.save_row("scs", heads, cells, key=3)


if __name__ == "__main__":
    main()
