"""A balanced set of wines: one for each measurement, as different from each other as possible.

Run by `make demo`. Six of the 178 wines are picked by every method the package has, then thirteen with proof.
"""

import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import isopursuit as ip
from isopursuit.datasets import load_wine
from isopursuit.plots import plot_gram, plot_singular_values
from isopursuit.report import write_report

wine = load_wine()


def compare(D: int) -> ip.Selection:
    """All methods on the first D measurements; the table, and the proved best."""
    X = wine.matrix(D)
    names = [f"wine {i} ({kind})" for i, kind in enumerate(wine.classes)]
    print(f"\n{D} of {X.shape[1]} wines, by {D} measurements. A perfectly balanced set has loss {D}.")
    began = time.perf_counter()
    pursuit = ip.isometry_pursuit(X)
    seconds = time.perf_counter() - began
    print(f"isometry pursuit keeps {len(pursuit.support)} wines in {1e3 * seconds:.1f} ms: {pursuit.certificate}")
    print(f"{'method':<12}{'loss':>12}{'seconds':>10}  proof")
    best = None
    for method in ("greedy", "two-stage", "exchange", "exact"):
        began = time.perf_counter()
        best = ip.select(X, method=method, labels=names)
        print(f"{method:<12}{best.loss:>12.6f}{time.perf_counter() - began:>10.2f}  {best.verdict}")
    assert best is not None
    return best


def main() -> None:
    """Compare, explain, and save a picture."""
    compare(6)
    picked = compare(13)
    print(f"\n{picked}\n")
    output = Path("output")
    output.mkdir(exist_ok=True)
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 5.5), layout="constrained")
    plot_gram(picked, ax=left)
    plot_singular_values(picked, ax=right)
    figure.savefig(output / "wine.png", dpi=120)
    write_report(picked, wine.matrix(), output / "wine.html", title="Thirteen wines", command="make demo")
    print(f"The proved best thirteen: a picture in {output / 'wine.png'}, a report in {output / 'wine.html'}.")


if __name__ == "__main__":
    main()
