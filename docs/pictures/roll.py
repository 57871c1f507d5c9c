"""The swiss roll in three dimensions and in the two coordinates that are found, coloured by the first."""

from style import FOLDER, picture

import isopursuit as ip
from isopursuit.manifold import swiss_roll
from isopursuit.show import plot_coordinates, plot_manifold


def draw():
    """Write roll.png: as SVG, 3,000 points in three dimensions take half a megabyte."""
    roll = swiss_roll(3000, noise=0.3)
    labels = sorted(ip.find_coordinates(roll.points, 2, dictionary=roll.dictionary).labels)
    first, second = (roll.dictionary.value(label) for label in labels)
    with picture(FOLDER / "roll.png", 5.5, 5, rows=2, height_ratios=(2.2, 1)) as (place, unrolled):
        rolled = place.figure.add_subplot(place.get_subplotspec(), projection="3d", elev=60, azim=-70)
        place.remove()
        plot_manifold(roll.points, first, rolled, label=labels[0])
        rolled.set_axis_off()
        rolled.set_box_aspect((1, 1, 0.8), zoom=1.5)
        rolled.set_title("3,000 points, coloured by the first coordinate found")
        plot_coordinates(first, second, unrolled, labels=tuple(labels), colours=first)
        unrolled.collections[0].colorbar.remove()
        unrolled.set_aspect("equal", adjustable="box")
        unrolled.set_title("the same points in the plane of both coordinates")
