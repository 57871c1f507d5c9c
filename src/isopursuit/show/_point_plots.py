"""Pictures of the loss at each of many points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from isopursuit._core.text import LARGE
from isopursuit._core.types import Array, Indices
from isopursuit.errors import ShapeError, unknown_option
from isopursuit.show._style import BLUE, GREY, ORANGE, maybe_log, new_axes, refuse_empty, whole_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EQUAL = 0.01  # relative differences of losses below this are not drawn (guess: they mean nothing to a reader)


def plot_point_losses(
    losses: ArrayLike,
    ax: Axes | None = None,
    *,
    points: ArrayLike | None = None,
    ideal: float | None = None,
    undetermined: ArrayLike | None = None,
    worst: int = 3,
    order: Literal["points", "losses"] = "points",
    noun: str = "point",
) -> Axes:
    """The loss of the picked functions at each point; the points with the highest losses are numbered.

    Losses above 10⁶ are drawn at the upper edge.

    Parameters
    ----------
    losses : array_like (n,)
        The loss at each point, for example of a selection.
    ax : Axes, optional
        The Axes to draw on. Default: a new figure.
    points : array_like of int (n,), optional
        The numbers of the points, such as frames of a trajectory. Default: 0 to n − 1.
    ideal : float, optional
        The loss of orthonormal columns, which is the number of picked functions.
    undetermined : array_like of bool (n,), optional
        The points whose tangent space is not determined; they have a different marker.
    worst : int
        How many of the highest losses to number.
    order : {"points", "losses"}
        Whether the points are in the order of their numbers, as along a trajectory, or by loss.
    noun : str
        The word for a point, such as "frame".
    """
    values = np.asarray(losses, dtype=np.float64)
    if values.ndim != 1:
        raise ShapeError(f"losses must be one number for each point; they have shape {values.shape}.")
    if order not in ("points", "losses"):
        raise unknown_option("order", order, ("points", "losses"))
    refuse_empty(values, "losses")
    numbers = np.arange(len(values)) if points is None else np.asarray(points, dtype=np.intp)
    unsure = np.zeros(len(values), dtype=bool) if undetermined is None else np.asarray(undetermined, dtype=bool)
    if not numbers.shape == unsure.shape == values.shape:
        raise ShapeError(
            f"There are {len(values)} losses, but points of shape {numbers.shape} and undetermined of shape "
            f"{unsure.shape}; expected one for each."
        )
    ax = new_axes(ax)
    x = numbers if order == "points" else _ranks(values)
    beyond = ~(values <= LARGE)
    y = np.where(beyond, 2 * LARGE, values)
    for some, marker, colour, label in (
        (~unsure & ~beyond, "o", BLUE, "determined" if unsure.any() else ""),
        (unsure & ~beyond, "s", ORANGE, "tangent space not determined"),
        (~unsure & beyond, "^", BLUE, "above 10⁶" if not unsure.any() else "determined, above 10⁶"),
        (unsure & beyond, "^", ORANGE, "not determined, above 10⁶"),
    ):
        if some.any():
            name = f"{label} ({int(some.sum())})" if label else "_points"
            ax.plot(x[some], y[some], marker, color=colour, markersize=4, markerfacecolor="none", label=name)
    if ideal is not None:
        ax.axhline(ideal, color=GREY, linestyle="--", label=f"ideal: {ideal:g}")
    maybe_log(ax, y)
    least = float(y.min()) if ideal is None else min(float(y.min()), ideal)
    if y.max() > (1 + EQUAL) * least:
        _name_worst(ax, x, y, numbers, worst)
    else:  # all losses are nearly equal, so no point is numbered
        ax.set_ylim((1 - 5 * EQUAL) * least, (1 + 5 * EQUAL) * least)
    whole_ticks(ax.xaxis)
    ax.set_xlabel(f"number of the {noun}" if order == "points" else "rank, lowest loss first")
    ax.set_ylabel("loss" + (" (log scale)" if ax.get_yscale() == "log" else ""))
    ax.set_title(f"Loss at each {noun}")
    if ax.get_legend_handles_labels()[0]:
        ax.legend()
    return ax


def _ranks(values: Array) -> Indices:
    """The rank of each value in ascending order, from 1."""
    ranks = np.empty(len(values), dtype=np.intp)
    ranks[np.argsort(values, kind="stable")] = np.arange(1, len(values) + 1)
    return ranks


def _name_worst(ax: Axes, x: Indices, y: Array, numbers: Indices, worst: int) -> None:
    """Write the numbers of the points with the highest losses next to them."""
    middle = (float(x.min()) + float(x.max())) / 2
    for i in np.argsort(-y, kind="stable")[:worst].tolist():
        left = float(x[i]) > middle  # towards the middle, so that all numbers are inside the picture
        place: dict[str, Any] = {"xytext": (-5 if left else 5, 0), "ha": "right" if left else "left", "va": "center"}
        at = (float(x[i]), float(y[i]))
        ax.annotate(str(numbers[i]), at, textcoords="offset points", fontsize=8, **place)
