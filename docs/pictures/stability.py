"""How often each measurement of wine is picked from resampled wines."""

from style import FOLDER, picture

import isopursuit as ip
from isopursuit.data import load_wine
from isopursuit.show import plot_stability


def draw():
    """Write stability.svg."""
    wine = load_wine()
    found = ip.stability(wine.values, 5, unit="each", center=True, labels=wine.features)
    with picture(FOLDER / "stability.svg", 6, 3.6) as ax:
        plot_stability(found, ax)
