"""The proved lower bound rises to the incumbent: an exact search of 13 of 178 wines."""

from style import FOLDER, picture

import isopursuit as ip
from isopursuit.data import load_wine
from isopursuit.show import plot_progress


def draw():
    """Write meeting.svg."""
    history = []
    ip.exact_search(load_wine().matrix(), callback=history.append)
    with picture(FOLDER / "meeting.svg", 5.5, 3.6) as ax:
        plot_progress(history, ax).set(yscale="linear", ylim=(10, 60))  # the first incumbent, 2,361, is above
