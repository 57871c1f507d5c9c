"""The swiss roll in three dimensions and in the two coordinates that are found, coloured by the first."""

import numpy as np
from style import FOLDER, picture

import isopursuit as ip
from isopursuit.show import plot_coordinates, plot_manifold


def draw():
    """Write roll.png: as SVG, 3,000 points in three dimensions take half a megabyte."""
    rng = np.random.default_rng(0)
    t, height = 1.5 * np.pi * np.sqrt(rng.uniform(1, 9, 3000)), rng.uniform(0, 21, 3000)
    points = np.column_stack([t * np.cos(t), height, t * np.sin(t)]) + 0.3 * rng.normal(size=(3000, 3))
    values = {"arc length": t**2 / 2, "height": height, "x": points[:, 0], "radius": t}
    found = ip.find_coordinates(points, 2, dictionary=values)
    labels = sorted(found.labels)
    first, second = (values[label] for label in labels)
    with picture(FOLDER / "roll.png", 5.5, 5, rows=2, height_ratios=(2.2, 1)) as (place, unrolled):
        rolled = place.figure.add_subplot(place.get_subplotspec(), projection="3d", elev=60, azim=-70)
        place.remove()
        plot_manifold(points, first, rolled, label=labels[0])
        rolled.set_axis_off()
        rolled.set_box_aspect((1, 1, 0.8), zoom=1.5)
        rolled.set_title("3,000 points, coloured by the first coordinate found")
        plot_coordinates(first, second, unrolled, labels=tuple(labels), colours=first)
        unrolled.collections[0].colorbar.remove()
        unrolled.set_aspect("equal", adjustable="box")
        unrolled.set_title("the same points in the plane of both coordinates")
