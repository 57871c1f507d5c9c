"""The picture of docs/howto/dimension.md: evidence for the dimension of ethanol's manifold of shapes.

    python benchmarks/dimension.py

Writes docs/howto/dimension.svg. It needs matplotlib and takes about ten seconds.
"""

from pathlib import Path

import numpy as np
from matplotlib import pyplot, rc_context

from isopursuit.manifold.dimension import dimension_evidence
from isopursuit.manifold.ethanol import load_ethanol
from isopursuit.manifold.shapes import shapes
from isopursuit.manifold.tangent import tangent_spaces
from isopursuit.plots import plot_dimension, plot_spectra

PICTURE = Path(__file__).parents[1] / "docs" / "howto" / "dimension.svg"


def main():
    positions = load_ethanol().positions
    points, _ = shapes(positions)
    frames = np.random.default_rng(0).choice(len(positions), 100, replace=False)
    with rc_context({"svg.hashsalt": "isopursuit", "svg.fonttype": "none", "font.size": 9}):
        figure, axes = pyplot.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
        plot_dimension(dimension_evidence(points, frames), axes[0])
        plot_spectra(tangent_spaces(points, frames, D=2, neighbours=1000), axes[1])
        figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
