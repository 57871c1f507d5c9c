"""Designs of experiments: weights of runs and the function that proves them, on an interval and on a plane."""

import numpy as np
from style import BLUE, FOLDER, GREY, ORANGE, picture

import isopursuit as ip


def designed(F):
    """The weights of an A-optimal design, and ‖M⁻¹f‖² of every run divided by its bound tr M⁻¹."""
    weights = ip.basis_pursuit(F).weights
    weights = weights / weights.sum()
    inverse = np.linalg.inv((F * weights) @ F.T)
    return weights, ((inverse @ F) ** 2).sum(axis=0) / np.trace(inverse)


def draw_interval(ax):
    """Quadratic regression on [-1, 1]."""
    x = np.linspace(-1, 1, 201)
    weights, ratio = designed(np.vander(x, 3, increasing=True).T)
    picked = np.flatnonzero(weights)
    ax.plot(x, ratio, color=ORANGE, label="sensitivity / bound")
    ax.axhline(1, color=GREY, linestyle=":", linewidth=1)
    ax.vlines(x[picked], 0, weights[picked], color=BLUE, linewidth=4, label="share of the runs")
    for i in picked:
        ax.annotate(f"{weights[i]:.2f}", (x[i], weights[i]), (6 if x[i] < 1 else -28, 2), textcoords="offset points")
    ax.set(xlabel="x", xticks=(-1, 0, 1), ylim=(0, 1.45), yticks=(0, 0.5, 1), title="1, x, x² on an interval")
    ax.legend(loc="upper center", fontsize=9)


def draw_region(ax):
    """A quadratic in two factors, where the upper right corner is not allowed."""
    a, b = (values.ravel() for values in np.meshgrid(*[np.linspace(-1, 1, 21)] * 2))
    allowed = a + b <= 0.5 + 1e-9
    a, b = a[allowed], b[allowed]
    weights, _ = designed(np.stack([np.ones_like(a), a, b, a * b, a**2, b**2]))
    picked = np.flatnonzero(weights)
    ax.scatter(a, b, s=3, color=GREY, label="allowed")
    ax.scatter(a[picked], b[picked], s=1200 * weights[picked], color=BLUE, alpha=0.8, label="share of the runs")
    ax.set(xlabel="a", ylabel="b", xticks=(-1, 0, 1), yticks=(-1, 0, 1), aspect="equal")
    ax.set_title("all terms up to degree 2,\na + b ≤ 0.5")


def draw():
    """Write experiment.svg."""
    with picture(FOLDER / "experiment.svg", 7, 3.4, columns=2) as (interval, region):
        draw_interval(interval)
        draw_region(region)
