"""The picture of docs/howto/coordinates.md: the comparison of dimensions of alanine dipeptide.

    python -m benchmarks.dimension

Writes docs/pictures/dimension.svg. It needs matplotlib and takes a few seconds.
"""

import isopursuit as ip
from docs.pictures.style import FOLDER, picture
from isopursuit.molecules import load_alanine_dipeptide
from isopursuit.show import plot_dimension, plot_spectra


def main():
    found = ip.find_coordinates(load_alanine_dipeptide())
    with picture(FOLDER / "dimension.svg", 6, 6, rows=2) as (losses, spectra):
        plot_dimension(found.scan, losses)
        plot_spectra(found.tangents, spectra)


if __name__ == "__main__":
    main()
