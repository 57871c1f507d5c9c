"""Pictures of a manifold: points coloured by a function, coordinates, and spectra of tangent spaces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from isopursuit._core.linalg import row_space
from isopursuit._core.text import name_of
from isopursuit._core.threads import on_one_blas_thread
from isopursuit._core.types import Array
from isopursuit.data._matrix import as_matrix
from isopursuit.errors import ParameterError, ShapeError, unknown_option
from isopursuit.manifold.dimension import DimensionEvidence
from isopursuit.manifold.tangent import TangentSpaces
from isopursuit.selection.pointwise import PointwiseSelection
from isopursuit.show._style import (
    BLUE,
    ORANGE,
    SKY,
    colour_map,
    new_axes,
    refuse_empty,
    short_heads,
    short_names,
    whole_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


DRAWN = 500  # most tangent spaces whose spectra are drawn (guess: more lines hide each other)


@dataclass(frozen=True)
class PrincipalComponents:
    """The leading principal components of points, and the share of the variance of each component.

    Attributes
    ----------
    coordinates : ndarray, shape (m, n)
        The components of the n points, in order of decreasing variance.
    shares : ndarray, shape (m,)
        The share of each component in the variance of the points.
    """

    coordinates: Array
    shares: Array


@on_one_blas_thread
def principal_components(points: ArrayLike, count: int = 3) -> PrincipalComponents:
    """The leading principal components of points (n, B), for several pictures of the same points.

    Examples
    --------
    >>> import numpy as np
    >>> line = np.column_stack([np.arange(5.0), 2 * np.arange(5.0)])
    >>> principal_components(line).shares.round(12).tolist()
    [1.0, 0.0]
    """
    data = as_matrix(points, wide=False).values
    centred = data - data.mean(axis=0)
    if not centred.any():
        raise ParameterError(f"All {len(data)} points are equal. Pass at least two different points.")
    shown = row_space(np.ascontiguousarray(centred.T), min(count, data.shape[1]))
    return PrincipalComponents(shown, (shown**2).sum(axis=1) / (centred**2).sum())


def plot_manifold(
    points: ArrayLike | PrincipalComponents,
    values: ArrayLike,
    ax: Axes | None = None,
    *,
    label: object = "",
    cyclic: bool = False,
) -> Axes:
    """Points in their first two principal components, coloured by a function.

    Parameters
    ----------
    points : array_like (n, B) or PrincipalComponents
        The data; where several functions are drawn on the same points, `principal_components` of them is computed
        once.
    values : array_like (n,)
        The values of the function at the points.
    ax : Axes, optional
        The Axes to draw on. Default: a new figure. An Axes with a third dimension (projection="3d") shows three
        components.
    label : str
        The name of the function.
    cyclic : bool
        Whether the values are angles in radians: they are mapped to −π … π, and both ends have the same colour.
    """
    found = points if isinstance(points, PrincipalComponents) else principal_components(points)
    n, colours = found.coordinates.shape[1], np.asarray(values, dtype=np.float64)
    if colours.shape != (n,):
        raise ShapeError(f"There are {n} points, but values of shape {colours.shape}; expected one for each.")
    ax = new_axes(ax)
    deep = hasattr(ax, "get_zlim")
    shown = found.coordinates[: 3 if deep else 2]
    count, share = len(shown), float(found.shares[: len(shown)].sum())
    style: dict[str, Any] = {"vmin": -np.pi, "vmax": np.pi} if cyclic else {}
    style["cmap"] = colour_map(cyclic=cyclic)
    image = ax.scatter(*shown, c=_wrapped(colours) if cyclic else colours, s=6, linewidths=0, **style)
    ordinals = ("first", "second", "third")[:count]
    for name, axis in zip(ordinals, "xyz", strict=False):
        # numbers on three axes would overlap, and the unit of a component means little
        flat = {f"{axis}label": f"{name} principal component"}
        ax.set(**{f"{axis}label": name, f"{axis}ticklabels": []} if deep else flat)
    name = short_names([label])[0]
    ax.set_title(f"{name}\n{count} components, {share:.0%} of the variance", parse_math=False)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.8, pad=0.1 if deep else 0.05)
    if cyclic:
        bar.set_ticks([-np.pi, -np.pi / 2, 0.0, np.pi / 2, np.pi], labels=["−180°", "−90°", "0°", "90°", "180°"])
    bar.set_label("" if cyclic else name, parse_math=False)
    return ax


def plot_coordinates(
    first: ArrayLike,
    second: ArrayLike,
    ax: Axes | None = None,
    *,
    labels: tuple[object, object] = ("first", "second"),
    cyclic: bool = False,
    colours: ArrayLike | None = None,
) -> Axes:
    """All points in the plane of two picked functions: the manifold in its new coordinates.

    Parameters
    ----------
    first, second : array_like (n,)
        The values of the functions at the points.
    ax : Axes, optional
        The Axes to draw on. Default: a new figure.
    labels : pair of str
        The names of the functions.
    cyclic : bool
        Whether they are angles in radians, which are mapped to −π … π.
    colours : array_like (n,), optional
        A third quantity to colour the points by, such as an energy.
    """
    x, y = (np.asarray(values, dtype=np.float64) for values in (first, second))
    if x.ndim != 1 or x.shape != y.shape:
        raise ShapeError(f"Coordinates must be two lists of one length; got shapes {x.shape} and {y.shape}.")
    refuse_empty(x, "points")
    ax = new_axes(ax)
    x, y = (_wrapped(x), _wrapped(y)) if cyclic else (x, y)
    if colours is None:
        ax.scatter(x, y, s=5, color=BLUE, alpha=0.5, linewidths=0)
    else:
        image = ax.scatter(x, y, s=5, c=np.asarray(colours, dtype=np.float64), cmap=colour_map(), linewidths=0)
        ax.figure.colorbar(image, ax=ax, shrink=0.8)
    if cyclic:
        ticks, text = [-np.pi, 0.0, np.pi], ["−π", "0", "π"]
        ax.set_xticks(ticks, text)
        ax.set_yticks(ticks, text)
    ax.set_aspect("equal", adjustable="box" if cyclic else "datalim")
    one, two = short_names(labels)
    ax.set_xlabel(one + (" (rad)" if cyclic else ""), parse_math=False)
    ax.set_ylabel(two + (" (rad)" if cyclic else ""), parse_math=False)
    ax.set_title("The picked coordinates")
    return ax


def plot_spectra(tangents: TangentSpaces, ax: Axes | None = None) -> Axes:
    """The variances of the neighbourhoods from which tangent spaces were estimated, and the dimension.

    Each neighbourhood is a thin line, and their mean is a thick one. At a good dimension they drop steeply.
    """
    ax = new_axes(ax)
    shares = tangents.spectra / tangents.totals[:, None]
    rank = list(range(1, shares.shape[1] + 1))
    lines = shares[np.linspace(0, len(shares) - 1, min(len(shares), DRAWN)).astype(np.intp)]
    floor = 1e-6  # far below any relevant direction
    ax.plot(rank, np.maximum(lines, floor).T, color=SKY, linewidth=0.5, alpha=0.5)
    ax.plot([], [], color=SKY, linewidth=1, label=f"{len(shares)} neighbourhoods")
    ax.plot(rank, np.maximum(shares.mean(axis=0), floor), "o-", color=BLUE, markersize=4, label="mean")
    dimension = tangents.dimension
    ax.axvline(dimension + 0.5, color=ORANGE, linestyle="--", label=f"D = {dimension} ({tangents.how})")
    ax.set_yscale("log")
    whole_ticks(ax.xaxis)
    ax.set_xlabel("direction, by rank")
    ax.set_ylabel("share of the variance (log scale)")
    ax.set_title("Spectra of the neighbourhoods")
    ax.legend()
    return ax


def plot_dimension(evidence: DimensionEvidence, ax: Axes | None = None, *, shown: int = 6) -> Axes:
    """The share of the variance of each direction against the size of the neighbourhoods.

    Shares of directions along the manifold stay level. Those of noise fall as neighbourhoods grow, and those of
    curvature rise. The bands hold the middle half of the neighbourhoods; the directions of the suggested dimension are
    blue.

    Parameters
    ----------
    evidence : DimensionEvidence
        From `dimension_evidence`.
    ax : Axes, optional
        The Axes to draw on. Default: a new figure.
    shown : int
        How many directions to draw.
    """
    if shown < 1:
        raise ParameterError(f"shown={shown} must be at least 1.")
    ax = new_axes(ax)
    sizes, D = evidence.neighbours, evidence.suggested
    shares = np.maximum(evidence.shares, 1e-6)  # far below any relevant direction
    for rank in range(min(shown, shares.shape[2])):
        low, middle, high = np.quantile(shares[:, :, rank], (0.25, 0.5, 0.75), axis=1)
        colour = BLUE if rank < D else ORANGE
        ax.fill_between(sizes, low, high, color=colour, alpha=0.2, linewidth=0)
        ax.plot(sizes, middle, "o-", color=colour, markersize=3, linewidth=1)
        ax.annotate(
            f"{rank + 1}", (float(sizes[-1]), float(middle[-1])), (5, 0), textcoords="offset points", va="center"
        )
    votes = evidence.votes.mean(axis=0)
    ax.plot([], [], color=BLUE, label=f"the first {D}: suggested by {votes[D]:.0%}")
    ax.plot([], [], color=ORANGE, label="beyond")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("neighbours (log scale)")
    ax.set_ylabel("share of the variance (log scale)")
    ax.set_title(f"Spectra by size of neighbourhood: D = {D}?")
    ax.legend()
    return ax


def plot_frequencies(
    picked: PointwiseSelection,
    ax: Axes | None = None,
    *,
    kind: Literal["functions", "subsets"] = "functions",
    shown: int = 12,
) -> Axes:
    """The share of points at which each function, or each set of functions, is picked.

    Parameters
    ----------
    picked : PointwiseSelection
        From `select_pointwise`.
    ax : Axes, optional
        The Axes to draw on. Default: a new figure.
    kind : {"functions", "subsets"}
        What to count.
    shown : int
        How many of the most frequent to show.
    """
    if kind not in ("functions", "subsets"):
        raise unknown_option("kind", kind, ("functions", "subsets"))
    if shown < 1:
        raise ParameterError(f"shown={shown} must be at least 1.")
    ax = new_axes(ax)
    n = len(picked.searches)
    if kind == "functions":
        order = np.argsort(-picked.counts, kind="stable")[: min(shown, int((picked.counts > 0).sum()))]
        bars = [(str(name_of(picked.labels, int(i))), int(picked.counts[i])) for i in order]
        different = int((picked.counts > 0).sum())
    else:
        most = picked.subsets[:shown]
        every = short_heads([label for one in most for label in one.labels])
        size = len(most[0].labels)
        names = [_in_lines(every[i : i + size]) for i in range(0, len(every), size)]
        bars = [(name, one.count) for name, one in zip(names, most, strict=True)]
        different = len(picked.subsets)
    places = np.arange(len(bars))
    drawn = ax.barh(places, [count / n for _, count in bars], color=SKY)
    ax.bar_label(drawn, [str(count) for _, count in bars], padding=3, fontsize=8)
    names = [name for name, _ in bars] if kind == "subsets" else short_heads([name for name, _ in bars])
    ax.set_yticks(places, names, parse_math=False)
    ax.invert_yaxis()
    ax.set_xlim(0, 1.1)
    ax.set_xlabel(f"share of {n} points")
    ax.set_title(f"The {len(bars)} most frequent of {different} {kind} picked")
    return ax


def _in_lines(names: list[str]) -> str:
    """A set of functions, two on a line."""
    return " +\n".join(" + ".join(names[i : i + 2]) for i in range(0, len(names), 2))


def _wrapped(angles: Array) -> Array:
    """Angles between −π and π."""
    return (angles + np.pi) % (2 * np.pi) - np.pi
