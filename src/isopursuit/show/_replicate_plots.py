"""Pictures of many replicates: paired losses, their distributions, support cardinalities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from isopursuit._core.types import Array, Mask
from isopursuit.errors import ShapeError
from isopursuit.results import Pursuit
from isopursuit.show._style import (
    BLUE,
    COLOURS,
    GREY,
    LINES,
    ORANGE,
    SKY,
    maybe_log,
    new_axes,
    plain_legend,
    refuse_empty,
    short_names,
    whole_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


EQUAL = 1e-9  # losses with a smaller relative difference are equal


def plot_paired_losses(
    first: ArrayLike, second: ArrayLike, ax: Axes | None = None, *, names: tuple[str, str] = ("first", "second")
) -> Axes:
    """Losses of two methods on the same replicates, with a line for each replicate (the paper's figure).

    Blue and solid where the first is lower, orange and dashed where the second is, black and dotted where they are
    equal to 1e-9. Pairs with an infinite loss are counted, but have no line.
    """
    losses = _pairs(first, second)
    ax = new_axes(ax)
    one, two = short_names(names)
    drawable = np.isfinite(losses.sum(axis=1))
    for group, label, colour, line, marker in zip(
        _winners(losses),
        (f"{one} lower", f"{two} lower", "equal"),
        (BLUE, ORANGE, "black"),
        ("-", "--", ":"),
        ("o", "s", "x"),
        strict=True,
    ):
        some = losses[group & drawable]
        lines = ax.plot([0, 1], some.T, color=colour, linestyle=line, marker=marker, linewidth=1, markersize=4)
        for drawn in lines:
            drawn.set_alpha(1.0 if len(some) < 20 else 0.6)
        ax.plot([], [], color=colour, linestyle=line, marker=marker, label=f"{label} ({int(group.sum())})")
    maybe_log(ax, losses[drawable])
    ax.set_xticks([0, 1], [one, two], parse_math=False)
    ax.set_xlim(-0.25, 1.25)
    ax.set_ylabel("loss")
    ax.set_title(_count_title("Loss on each replicate", drawable))
    plain_legend(ax)
    return ax


def plot_loss_ecdf(
    first: ArrayLike,
    second: ArrayLike,
    ax: Axes | None = None,
    *,
    names: tuple[str, str] = ("first", "second"),
    kind: Literal["losses", "ratio"] = "losses",
) -> Axes:
    """The share of replicates whose loss is at most x, for two methods; or at most x times the other method's loss.

    Parameters
    ----------
    first, second : array_like (R,)
        Losses of two methods on the same R replicates.
    ax : Axes, optional
        The Axes to draw on. Default: a new figure.
    names : pair of str
        The names of the methods.
    kind : {"losses", "ratio"}
        The two distributions, or that of the paired ratios second / first; left of 1 the second loss is lower.
    """
    losses = _pairs(first, second)
    ax = new_axes(ax)
    one, two = short_names(names)
    drawable = np.isfinite(losses.sum(axis=1))
    if kind == "losses":
        for i, name in enumerate((one, two)):
            _steps(ax, losses[:, i], COLOURS[i], LINES[i], name)
        ax.set_xlabel("loss")
        maybe_log(ax, losses[drawable], axis="x")
        ax.set_title("Distribution of the losses")
        plain_legend(ax)
    else:
        ratio = losses[drawable, 1] / losses[drawable, 0]
        _steps(ax, ratio, BLUE, "-", "ratio")
        ax.axvline(1.0, color=GREY, linestyle="--")
        ax.set_xlabel(f"loss of {two} / loss of {one}", parse_math=False)
        ax.set_title(_count_title("Ratio of the paired losses", drawable))
    ax.set_ylim(0.0, 1.03)
    ax.set_ylabel("share of replicates")
    return ax


def plot_support_cardinalities(supports: Sequence[Pursuit | int], ax: Axes | None = None, *, D: int = 0) -> Axes:
    """The distribution of the number of columns in the support of isometry pursuit, over many replicates.

    Parameters
    ----------
    supports : sequence of Pursuit or int
        The pursuits, or the sizes of their supports.
    ax : Axes, optional
        The Axes to draw on. Default: a new figure.
    D : int, optional
        The number of rows: the fewest columns that a support can have, shown as a line.
    """
    refuse_empty(supports, "supports")
    ax = new_axes(ax)
    sizes = np.array([len(one.support) if isinstance(one, Pursuit) else int(one) for one in supports])
    width = max(1, int(np.ceil((np.ptp(sizes) + 1) / 40)))  # at most 40 bars, each of whole numbers
    bins = [edge - 0.5 for edge in range(int(sizes.min()), int(sizes.max()) + width + 1, width)]
    ax.hist(sizes, bins=bins, color=SKY, edgecolor="white", linewidth=0.5)
    ax.axvline(float(sizes.mean()), color=ORANGE, label=f"mean {sizes.mean():.1f}")
    if D:
        ax.axvline(D, color=GREY, linestyle="--", label=f"fewest possible, D = {D}")
    whole_ticks(ax.xaxis)
    whole_ticks(ax.yaxis)
    ax.set_xlabel("columns in the support")
    ax.set_ylabel("number of replicates")
    ax.set_title(f"Support cardinalities of {len(sizes)} pursuits")
    ax.legend()
    return ax


def _pairs(first: ArrayLike, second: ArrayLike) -> Array:
    """The losses of two methods as the columns of an array (R, 2)."""
    one, two = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.shape != two.shape or one.ndim != 1:
        raise ShapeError(f"Paired losses must be two lists of one length; got shapes {one.shape} and {two.shape}.")
    return np.column_stack([one, two])


def _winners(losses: Array) -> tuple[Mask, Mask, Mask]:
    """Masks: the first is lower, the second is lower, both are equal."""
    one, two = losses.T
    with np.errstate(invalid="ignore"):
        equal = (one == two) | (np.abs(one - two) <= EQUAL * np.minimum(np.abs(one), np.abs(two)))
    return ~equal & (one < two), ~equal & (two < one), equal


def _count_title(title: str, drawable: Mask) -> str:
    missing = int((~drawable).sum())
    return f"{title} ({len(drawable)})" + (f"\n{missing} with an infinite loss not shown" if missing else "")


def _steps(ax: Axes, values: Array, colour: str, line: Any, label: str) -> None:
    """The empirical distribution function; infinite values count but are never reached."""
    finite = np.sort(values[np.isfinite(values)])
    share = np.arange(1, len(finite) + 1) / len(values)
    if len(finite):
        finite, share = np.append(finite[0], finite), np.append(0.0, share)
    ax.step(finite, share, where="post", color=colour, linestyle=line, label=label)
