"""What the loss of two vectors sees: their lengths, the angle between them, and no sign."""

import numpy as np
from style import BLUE, FOLDER, GREY, ORANGE, picture

import isopursuit as ip

MARKED_LENGTHS = (0.5, 2)  # of one of two vectors at right angles
MARKED_ANGLES = (60, 120)  # degrees, between two vectors of length 1


def loss_of_length(t):
    return ip.isometry_loss([[t, 0.0], [0.0, 1.0]])


def loss_of_angle(degrees):
    turn = np.deg2rad(degrees)
    return ip.isometry_loss([[1.0, np.cos(turn)], [0.0, np.sin(turn)]])


def draw_curve(ax, loss, x, marked, title, label):
    ax.plot(x, [loss(t) for t in x], color=GREY, linewidth=1.6)
    ax.plot(marked, [loss(t) for t in marked], "o", color=BLUE, markersize=7)
    ax.set(ylim=(1.9, 3.6), title=title, xlabel=label)


def draw_sign(ax):
    """A vector x at 60° to the first one, and −x at 120°."""
    ends = {"": (1, 0, GREY), "x": (0.5, np.sqrt(0.75), BLUE), "−x": (-0.5, -np.sqrt(0.75), ORANGE)}
    for name, (x, y, colour) in ends.items():
        arrow = {"arrowstyle": "-|>", "color": colour, "linewidth": 2, "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", (x, y), (0, 0), arrowprops=arrow)
        ax.text(1.15 * x, 1.15 * y, name, color=colour, ha="center", va="center")
    turn = np.linspace(0, 2 * np.pi, 200)
    ax.plot(np.cos(turn), np.sin(turn), ":", color=GREY, linewidth=1)
    ax.set(xlim=(-1.25, 1.25), ylim=(-1.25, 1.25), aspect="equal", xticks=[], yticks=[])
    ax.set_title("with the grey vector,\nx and −x: same loss")
    ax.spines[:].set_visible(False)


def draw():
    """Write geometry.svg."""
    with picture(FOLDER / "geometry.svg", 7, 2.8, columns=3) as (left, middle, right):
        draw_curve(left, loss_of_length, np.geomspace(0.36, 2.8, 200), MARKED_LENGTHS, "loss by length", "length")
        draw_curve(middle, loss_of_angle, np.linspace(15, 165, 200), MARKED_ANGLES, "loss by angle", "degrees")
        left.set(xscale="log")
        left.set_xticks([0.5, 1, 2], ["1/2", "1", "2"])
        left.minorticks_off()
        middle.set_xticks([30, 60, 90, 120, 150])
        draw_sign(right)
