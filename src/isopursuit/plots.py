"""Pictures (extra `plot`). Each takes `ax` and returns it; matplotlib is imported only here, when called.

Colours are Okabe and Ito's, distinct for colour-blind eyes; markers and line styles differ too, for print in grey.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isopursuit.errors import ParameterError, ShapeError
from isopursuit.matrix import as_matrix, row_space
from isopursuit.normalize import Normalization, log_lengths, log_penalty, symmetric_normalize
from isopursuit.results import Pursuit, Selection, loss_text
from isopursuit.search.tree import SearchProgress
from isopursuit.views import fixed, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

Array = NDArray[np.float64]

BLUE, ORANGE, GREEN, PURPLE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9"
GREY = "#999999"
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY)
MARKERS = ("o", "s", "^", "D", "v")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))

EQUAL = 1e-9  # losses closer than this, relatively, are equal
NUMBERED = 13  # a Gram matrix up to this size has its numbers written in
NAMED = 30  # an axis has room for this many names
IMAGE = 500  # columns that the picture of all inner products can show
LONGEST = 22  # characters of a name that are shown


def compared_columns(X: Any, selection: Selection) -> Array:
    """All columns of X as they were compared: in the leading k-dimensional row space where k < D.

    Refuses an X that the selection was not made from.
    """
    values = as_matrix(X).values
    if selection.k < len(values):
        values = row_space(values, selection.k)
    fits = len(values) == selection.k and selection.indices.max() < values.shape[1]
    if not fits or not np.allclose(values[:, selection.indices], selection.matrix, rtol=1e-6, atol=1e-9):
        raise ShapeError(
            f"X {np.shape(X)} is not the matrix that these {selection.k} columns were selected from. "
            "Pass the X that was given to select."
        )
    return values


def plot_gram(columns: Selection | ArrayLike, ax: Axes | None = None, *, picked: Selection | None = None) -> Axes:
    """The inner products of columns: the identity if they are orthonormal.

    Parameters
    ----------
    columns : Selection or array_like (D, P)
        The picked columns ("after"), or any columns, such as all candidates ("before"). Of more than 500 columns
        an even sample is shown.
    ax : Axes, optional
        Where to draw; a new figure if not given.
    picked : Selection, optional
        Whose columns to mark on the axes, and to keep in the sample, where all candidates are shown.
    """
    ax = _axes(ax)
    if isinstance(columns, Selection):
        gram, title = columns.matrix.T @ columns.matrix, "Inner products of the picked columns"
        names, places = _names(columns.labels), list(range(columns.k))
    else:
        values = as_matrix(columns, wide=False).values
        P = values.shape[1]
        marked = np.zeros(0, dtype=np.intp) if picked is None else picked.indices
        shown = np.union1d(np.linspace(0, P - 1, min(P, IMAGE)).round().astype(np.intp), marked)
        gram = values[:, shown].T @ values[:, shown]
        title = "Inner products of all columns" if len(shown) == P else f"Inner products of {len(shown)} of {P} columns"
        names = [str(i) for i in shown] if picked is None else _names(picked.labels)
        places = list(range(len(shown))) if picked is None else np.searchsorted(shown, marked).tolist()
        title += "" if picked is None else f"\nticks: the {picked.k} picked"
    extent = max(1.0, float(np.abs(gram).max()))
    image = ax.imshow(gram, cmap="RdBu_r", vmin=-extent, vmax=extent, interpolation="nearest")
    if len(gram) <= NUMBERED:
        for (i, j), value in np.ndenumerate(gram):
            ink = "white" if abs(value) > 0.6 * extent else "black"
            ax.text(j, i, fixed(float(value)), ha="center", va="center", color=ink, fontsize=7)
    if picked is None or isinstance(columns, Selection):
        upright = max(map(len, names), default=0) > 2
        _name_ticks(ax.xaxis, places, names, len(gram) // NAMED, turn=90 if upright else 0)
        _name_ticks(ax.yaxis, places, names, len(gram) // NAMED)
    else:  # a few names at one side leave the picture its room
        ax.set_xticks(places, [""] * len(places))
        _name_ticks(ax.yaxis, places, names, len(gram) // (NAMED // 2))
    ax.set_title(title)
    ax.figure.colorbar(image, ax=ax, shrink=0.8, label="inner product")
    return ax


def plot_singular_values(selection: Selection | Sequence[Selection], ax: Axes | None = None) -> Axes:
    """The singular values of the picked columns against the ideal, 1; of several selections side by side."""
    ax = _axes(ax)
    several = [selection] if isinstance(selection, Selection) else list(selection)
    ax.axhline(1.0, color=GREY, linestyle="--", label="orthonormal: all are 1")
    for i, one in enumerate(several):
        sigma = np.linalg.svd(one.matrix, compute_uv=False)
        place = np.arange(1, len(sigma) + 1) + 0.15 * (i - (len(several) - 1) / 2)
        colour, marker = COLOURS[i % 5], MARKERS[i % 5]
        ax.vlines(place, 1.0, sigma, color=colour, linewidth=1)
        label = f"{one.method}, loss {loss_text(one, 4)} (ideal {one.k})"
        ax.plot(place, sigma, marker, color=colour, label=label)
    ax.set_yscale("log")
    _plain_ticks(ax.yaxis)
    _whole_ticks(ax.xaxis)
    ax.set_xlabel("singular value, by rank")
    ax.set_ylabel("size (no unit, log scale)")
    ax.set_title("Singular values of the picked columns")
    ax.legend()
    return ax


def plot_lengths(
    X: Any,
    selection: Selection,
    ax: Axes | None = None,
    *,
    normalized: bool = False,
    normalization: Normalization = "symmetric",
) -> Axes:
    """How long all columns of X are, and how long the picked ones.

    Parameters
    ----------
    X : array_like (D, P) or data frame
        What the selection was made from.
    selection : Selection
        Its columns are marked below the histogram.
    ax : Axes, optional
        Where to draw; a new figure if not given.
    normalized : bool
        Show the normalized lengths, which the pursuit works with: 1 for a unit vector, less for any other.
    normalization : {"symmetric", "logarithmic"} or callable
        Which normalization.
    """
    ax = _axes(ax)
    lengths = np.linalg.norm(compared_columns(X, selection), axis=0)
    if normalized:
        lengths = np.exp(log_lengths(lengths, selection.c, normalization))
        bins = np.linspace(0.0, 1.0, 31)
        ax.set_xlabel(f"normalized length (c = {selection.c:g})")
        ax.set_title("Normalized lengths")
    else:
        positive = lengths[lengths > 0]
        ends = np.log([min(positive.min(), 1.0) / 1.05, max(positive.max(), 1.0) * 1.05])
        bins = np.exp(np.linspace(ends[0], ends[1], 31))
        ax.set_xscale("log")
        _plain_ticks(ax.xaxis)
        ax.set_xlabel("length (units of X, log scale)")
        ax.set_title("Lengths")
    zero = int((lengths == 0).sum())
    label = f"all {len(lengths)} columns" + (f" ({zero} of length 0 not shown)" if zero and not normalized else "")
    counts, _, _ = ax.hist(lengths, bins=bins.tolist(), color=SKY, edgecolor="white", linewidth=0.5, label=label)
    top = float(np.max(counts))
    mark = np.full(selection.k, -0.06 * top)
    ax.plot(lengths[selection.indices], mark, "|", color=ORANGE, markersize=11, mew=1.5, label=f"{selection.k} picked")
    ax.axvline(1.0, color=GREY, linestyle="--", label="ideal: 1")
    _whole_ticks(ax.yaxis)
    ax.set_ylim(0.0, 1.08 * top)
    ax.set_yticks(ax.get_yticks())
    ax.set_ylim(-0.12 * top, 1.08 * top)
    ax.set_ylabel("number of columns")
    ax.legend()
    return ax


def plot_paired_losses(
    first: ArrayLike, second: ArrayLike, ax: Axes | None = None, *, names: tuple[str, str] = ("first", "second")
) -> Axes:
    """Losses of two methods on the same replicates, a line for each (the paper's figure).

    Blue and solid where the first is lower, orange and dashed where the second is, black and dotted where they are
    equal to 1e-9. Pairs with an infinite loss are counted, but have no line.
    """
    ax = _axes(ax)
    one, two = _names(names)
    losses = _pairs(first, second)
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
    _maybe_log(ax, losses[drawable])
    ax.set_xticks([0, 1], [one, two], parse_math=False)
    ax.set_xlim(-0.25, 1.25)
    ax.set_ylabel("loss")
    ax.set_title(_count_title("Loss on each replicate", drawable))
    _plain_legend(ax)
    return ax


def plot_loss_ecdf(
    first: ArrayLike,
    second: ArrayLike,
    ax: Axes | None = None,
    *,
    names: tuple[str, str] = ("first", "second"),
    kind: Literal["losses", "ratio"] = "losses",
) -> Axes:
    """The share of replicates whose loss is at most x, for two methods; or at most x times the other's.

    Parameters
    ----------
    first, second : array_like (R,)
        Losses of two methods on the same R replicates.
    ax : Axes, optional
        Where to draw; a new figure if not given.
    names : pair of str
        What the methods are called.
    kind : {"losses", "ratio"}
        The two distributions, or that of the paired ratios second / first: left of 1 the second is lower.
    """
    ax = _axes(ax)
    one, two = _names(names)
    losses = _pairs(first, second)
    drawable = np.isfinite(losses.sum(axis=1))
    if kind == "losses":
        for i, name in enumerate((one, two)):
            _steps(ax, losses[:, i], COLOURS[i], LINES[i], name)
        ax.set_xlabel("loss")
        _maybe_log(ax, losses[drawable], axis="x")
        ax.set_title("Distribution of the losses")
        _plain_legend(ax)
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
    """How many columns isometry pursuit kept, over many replicates.

    Parameters
    ----------
    supports : sequence of Pursuit or int
        The pursuits, or the sizes of their supports.
    ax : Axes, optional
        Where to draw; a new figure if not given.
    D : int, optional
        The number of rows: the fewest columns that a support can have, shown as a line.
    """
    ax = _axes(ax)
    sizes = np.array([len(one.support) if isinstance(one, Pursuit) else int(one) for one in supports])
    width = max(1, int(np.ceil((np.ptp(sizes) + 1) / 40)))  # at most 40 bars, each of whole numbers
    bins = [edge - 0.5 for edge in range(int(sizes.min()), int(sizes.max()) + width + 1, width)]
    ax.hist(sizes, bins=bins, color=SKY, edgecolor="white", linewidth=0.5)
    ax.axvline(float(sizes.mean()), color=ORANGE, label=f"mean {sizes.mean():.1f}")
    if D:
        ax.axvline(D, color=GREY, linestyle="--", label=f"fewest possible, D = {D}")
    _whole_ticks(ax.xaxis)
    _whole_ticks(ax.yaxis)
    ax.set_xlabel("columns in the support")
    ax.set_ylabel("number of replicates")
    ax.set_title(f"Support cardinalities of {len(sizes)} pursuits")
    ax.legend()
    return ax


def plot_progress(history: Sequence[SearchProgress], ax: Axes | None = None) -> Axes:
    """The best loss found and the proved bound while a search ran.

    Examples
    --------
    >>> import isopursuit as ip
    >>> from isopursuit.datasets import load_iris
    >>> history = []
    >>> picked = ip.select(load_iris().matrix(), method="exact", callback=history.append)
    >>> plot_progress(history).get_xlabel()
    'time (s)'
    """
    ax = _axes(ax)
    seconds = np.array([state.seconds for state in history])
    incumbent = np.array([state.incumbent for state in history])
    bound = np.array([state.lower_bound for state in history])
    incumbent, bound = (np.where(np.isfinite(a), a, np.nan) for a in (incumbent, bound))
    # a search that ended before its second report is one point: draw it from the start
    if len(seconds) == 1:
        seconds, incumbent, bound = np.array([0.0, seconds[0]]), incumbent.repeat(2), bound.repeat(2)
    ax.fill_between(seconds, bound, incumbent, step="post", color=SKY, alpha=0.3, linewidth=0)
    sparse = max(1, len(seconds) // 15)  # markers that do not hide the line
    for y, colour, style, label in (
        (incumbent, BLUE, "o-", "best loss found"),
        (bound, ORANGE, "s--", "no subset is below this"),
    ):
        ax.step(seconds, y, style, where="post", color=colour, markersize=4, markevery=sparse, label=label)
    _maybe_log(ax, np.concatenate([incumbent, bound]))
    ax.set_xlabel("time (s)")
    ax.set_ylabel("loss")
    title = "The search"
    if history:
        last = history[-1]
        gap = f"gap {percent(last.gap)}" if np.isfinite(last.gap) else "no bound"
        title += f": {gap} after {last.seconds:.2g} s and {last.nodes:,} nodes"
    ax.set_title(title)
    ax.legend()
    return ax


def plot_length_curves(
    kind: Literal["loss", "length", "pursuit"] = "loss",
    exponents: Sequence[float] = (0.1, 0.5, 1.0, 2.0, 5.0),
    ax: Axes | None = None,
) -> Axes:
    """What one column of length t costs, for several c (the paper's figure 1, D = 1).

    Parameters
    ----------
    kind : {"loss", "length", "pursuit"}
        The loss g(t); the normalized length 1/g(t); or the basis-pursuit loss of the normalized column, which for
        D = 1 is the same as the loss.
    exponents : sequence of float
        The values of c.
    ax : Axes, optional
        Where to draw; a new figure if not given.
    """
    titles = {"loss": "Isometry loss", "length": "Normalized length", "pursuit": "Basis-pursuit loss"}
    if kind not in titles:
        raise ParameterError(f"kind={kind!r} is not known. Use 'loss', 'length' or 'pursuit'.")
    ax = _axes(ax)
    t = np.exp(np.linspace(-np.log(5.0), np.log(5.0), 401))
    for i, c in enumerate(exponents):
        if kind == "loss":
            y = np.exp(np.minimum(log_penalty(t, c), 700.0))
        else:
            lengths = np.abs(symmetric_normalize(t[None, :], c)[0])
            # X B = 1 has |B| = 1 / |x|
            y = lengths if kind == "length" else 1 / np.maximum(lengths, 1e-300)
        style: dict[str, Any] = {"color": COLOURS[i % 5], "linestyle": LINES[i % 5], "marker": MARKERS[i % 5]}
        ax.plot(t, y, markersize=4, markevery=(5 * i, 40), label=f"c = {c:g}", **style)
    ax.axvline(1.0, color=GREY, linewidth=0.8)
    ax.set_xscale("log")
    ax.set_xticks([0.2, 0.5, 1, 2, 5], ["0.2", "0.5", "1", "2", "5"])
    ax.set_xticks([], minor=True)
    # the legend stands where no curve goes
    ax.set_ylim(*((-0.15, 1.05) if kind == "length" else (0.4, 5.0)))
    ax.legend(loc="lower center", ncols=len(exponents), fontsize="small", columnspacing=1.0, handlelength=1.5)
    ax.set_xlabel("length t (log scale)")
    ax.set_ylabel(titles[kind].lower())
    ax.set_title(titles[kind])
    return ax


def plot_vectors(X: Any, selection: Selection, ax: Axes | None = None) -> Axes:
    """For k = 2: all columns as points of the plane, the picked ones as arrows, and the unit circle."""
    if selection.k != 2:
        raise ParameterError(f"Vectors can be drawn for k = 2; {selection.k} columns were picked.")
    ax = _axes(ax)
    values = compared_columns(X, selection)
    angle = np.linspace(0.0, 2 * np.pi, 200)
    ax.plot(np.cos(angle), np.sin(angle), "--", color=GREY, linewidth=1, label="length 1")
    ax.plot(values[0], values[1], ".", color=SKY, markersize=4, label=f"all {values.shape[1]} columns")
    for name, (x, y), colour, line in zip(
        _names(selection.labels), selection.matrix.T, (BLUE, ORANGE), ("-", "--"), strict=True
    ):
        ax.plot([0, x], [0, y], line, color=colour, linewidth=2)
        ax.plot(x, y, "o", color=colour, label=name)
    ax.axhline(0.0, color=GREY, linewidth=0.5)
    ax.axvline(0.0, color=GREY, linewidth=0.5)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xlabel("first coordinate")
    ax.set_ylabel("second coordinate")
    ax.set_title(f"The two picked columns, loss {loss_text(selection, 4)} (ideal 2)")
    _plain_legend(ax)
    return ax


def molecule_svg(
    symbols: Sequence[str],
    bonds: Sequence[tuple[int, int]],
    shares: Mapping[tuple[int, int], float],
    *,
    size: tuple[int, int] = (480, 360),
    least: float = 0.05,
) -> str:
    """A molecule as SVG text, pairs of atoms marked by their shares (extra `chem`).

    For picked torsions the pairs are their axes, or the bonds that turn them.

    Parameters
    ----------
    symbols : sequence of str
        The atoms' chemical symbols; they are drawn with their numbers, hydrogens too.
    bonds : sequence of pairs of int
        Who is bonded to whom.
    shares : mapping of pairs of int to float
        From 0 to 1. A bond becomes a band, the wider the larger its share, and a pair without a bond a line; both
        carry their percentage.
    size : pair of int
        Width and height in pixels.
    least : float
        Pairs with smaller shares are not marked.

    Examples
    --------
    >>> molecule_svg("OHH", [(0, 1), (0, 2)], {(0, 1): 0.75}).startswith("<?xml")
    True
    """
    return str(_draw_molecule("MolDraw2DSVG", size, symbols, bonds, shares, least))


def plot_molecule(
    symbols: Sequence[str],
    bonds: Sequence[tuple[int, int]],
    shares: Mapping[tuple[int, int], float],
    ax: Axes | None = None,
    *,
    least: float = 0.05,
) -> Axes:
    """A molecule with pairs of atoms marked by their shares, as `molecule_svg` draws it (extras `plot` and `chem`)."""
    ax = _axes(ax)
    from matplotlib.image import imread

    ax.imshow(imread(BytesIO(_draw_molecule("MolDraw2DCairo", (960, 720), symbols, bonds, shares, least))))
    ax.set_axis_off()
    return ax


def _draw_molecule(
    canvas: Literal["MolDraw2DSVG", "MolDraw2DCairo"],
    size: tuple[int, int],
    symbols: Sequence[str],
    bonds: Sequence[tuple[int, int]],
    shares: Mapping[tuple[int, int], float],
    least: float,
) -> Any:
    try:
        from rdkit import Chem, Geometry
        from rdkit.Chem import rdDepictor
        from rdkit.Chem.Draw import rdMolDraw2D
    except ImportError:
        raise ParameterError("Drawing molecules needs RDKit. Install isopursuit[chem].") from None
    atoms = {a for pair in (*bonds, *shares) for a in pair}
    if not atoms <= set(range(len(symbols))):
        raise ParameterError(f"bonds and shares name atoms {sorted(atoms)}; the molecule has {len(symbols)}.")
    marked = {frozenset(pair): float(share) for pair, share in shares.items() if share >= least}
    molecule: Any = Chem.RWMol()
    for symbol in symbols:
        atom = Chem.Atom(symbol)
        atom.SetNoImplicit(True)
        molecule.AddAtom(atom)
    bands: dict[int, float] = {}
    for i, j in bonds:
        number = molecule.AddBond(i, j, Chem.BondType.SINGLE) - 1
        if frozenset((i, j)) in marked:
            bands[number] = marked.pop(frozenset((i, j)))
            molecule.GetBondWithIdx(number).SetProp("bondNote", f"{bands[number]:.0%}")
    molecule.UpdatePropertyCache(strict=False)
    Chem.FastFindRings(molecule)
    rdDepictor.Compute2DCoords(molecule)
    drawing: Any = getattr(rdMolDraw2D, canvas)(*size)
    options = drawing.drawOptions()
    options.prepareMolsBeforeDrawing = False
    options.padding = 0.02
    options.annotationFontScale = 0.7
    options.setBondNoteColour(_rgb(BLUE))
    for i, symbol in enumerate(symbols):
        options.atomLabels[i] = f"{symbol}{i}"
    colours = {number: [(*_rgb(SKY), 0.8)] for number in bands}
    widths = {number: 1 + round(6 * share) for number, share in bands.items()}
    drawing.DrawMoleculeWithHighlights(molecule, "", {}, colours, {}, widths)
    drawing.SetFontSize(0.7 * drawing.FontSize())
    drawing.SetColour(_rgb(ORANGE))
    for pair, share in marked.items():
        start, end = (drawing.GetDrawCoords(a) for a in sorted(pair))
        drawing.SetLineWidth(1 + round(24 * share))
        drawing.DrawLine(start, end, rawCoords=True)
        # a third of the way, where lines that cross in the middle leave room
        third = Geometry.Point2D((2 * start.x + end.x) / 3, (2 * start.y + end.y) / 3)
        drawing.DrawString(f"{share:.0%}", third, rawCoords=True)
    drawing.FinishDrawing()
    return drawing.GetDrawingText()


def _rgb(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]


def _names(labels: Sequence[object]) -> list[str]:
    """Labels short enough for an axis and without what cannot be drawn; matplotlib hides those that begin with _."""
    clean = ("".join(ch if ch.isprintable() else " " for ch in str(label)) for label in labels)
    clean = (f" {name}" if name.startswith("_") else name for name in clean)
    half = LONGEST // 2  # both ends stay: numbered names differ at the end
    return [name if len(name) <= LONGEST else f"{name[:half]}…{name[1 - half :]}" for name in clean]


def _name_ticks(axis: Axis, places: list[int], names: list[str], near: int, turn: int = 0) -> None:
    """Name the ticks that are not too near to the last one with a name; a name is never mathematics."""
    kept: list[int] = []
    for i, place in enumerate(places):
        if not kept or place - places[kept[-1]] >= near:
            kept.append(i)
    axis.set_ticks(places, minor=True)
    text = [names[i] for i in kept]
    axis.set_ticks([places[i] for i in kept], text, rotation=turn, parse_math=False, fontsize=7 if len(kept) > 6 else 9)


def _plain_ticks(axis: Axis) -> None:
    """0.5, 1, 2 on a logarithmic axis, not powers of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def _whole_ticks(axis: Axis) -> None:
    """Ticks at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))


def _plain_legend(ax: Axes) -> None:
    """A legend whose names are never mathematics."""
    for text in ax.legend().get_texts():
        text.set_parse_math(False)


def _maybe_log(ax: Axes, values: Array, axis: Literal["x", "y"] = "y") -> None:
    """A logarithmic axis where the values span more than one order of magnitude."""
    values = values[np.isfinite(values)]
    if values.size and values.min() > 0 and values.max() > 10 * values.min():
        (ax.set_xscale if axis == "x" else ax.set_yscale)("log")
        _plain_ticks(ax.xaxis if axis == "x" else ax.yaxis)


def _pairs(first: ArrayLike, second: ArrayLike) -> Array:
    """Two methods' losses as the columns of one (R, 2) array."""
    one, two = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.shape != two.shape or one.ndim != 1:
        raise ShapeError(f"Paired losses must be two lists of one length; got shapes {one.shape} and {two.shape}.")
    return np.column_stack([one, two])


def _winners(losses: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Where the first is lower, where the second is, and where they are equal."""
    one, two = losses.T
    with np.errstate(invalid="ignore"):
        equal = (one == two) | (np.abs(one - two) <= EQUAL * np.minimum(np.abs(one), np.abs(two)))
    return ~equal & (one < two), ~equal & (two < one), equal


def _count_title(title: str, drawable: NDArray[np.bool_]) -> str:
    missing = int((~drawable).sum())
    return f"{title} ({len(drawable)})" + (f"\n{missing} with an infinite loss not shown" if missing else "")


def _steps(ax: Axes, values: Array, colour: str, line: Any, label: str) -> None:
    """The empirical distribution function; infinite values count, and are never reached."""
    finite = np.sort(values[np.isfinite(values)])
    share = np.arange(1, len(finite) + 1) / len(values)
    if len(finite):
        finite, share = np.append(finite[0], finite), np.append(0.0, share)
    ax.step(finite, share, where="post", color=colour, linestyle=line, label=label)
