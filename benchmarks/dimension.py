"""The picture of docs/howto/coordinates.md: evidence for the dimension of ethanol's manifold of shapes.

    python -m benchmarks.dimension

Writes docs/pictures/dimension.svg. It needs matplotlib and takes about ten seconds.
"""

import numpy as np

from docs.pictures.style import FOLDER, picture
from isopursuit.manifold import dimension_evidence, tangent_spaces
from isopursuit.molecules import load_ethanol, shape_values
from isopursuit.show import plot_dimension, plot_spectra


def main():
    positions = load_ethanol().positions
    points = shape_values(positions)
    frames = np.random.default_rng(0).choice(len(positions), 100, replace=False)
    with picture(FOLDER / "dimension.svg", 6, 6, rows=2) as (shares, spectra):
        plot_dimension(dimension_evidence(points, frames), shares)
        plot_spectra(tangent_spaces(points, frames, D=2, neighbours=1000), spectra)


if __name__ == "__main__":
    main()
