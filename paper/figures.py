"""Draw the paper's figures and some new ones from the rows.

The docstring of each function in FIGURES is the figure's alternative text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from io import BytesIO
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from isopursuit._core.atomic import write_whole
from isopursuit.loss.normalize import symmetric_normalize
from isopursuit.loss.penalty import log_penalty
from isopursuit.show._style import COLOURS as PICTURE_COLOURS
from isopursuit.show._style import LINES as PICTURE_LINES
from isopursuit.show._style import MARKERS as PICTURE_MARKERS
from paper import printed
from paper.plan import dataset
from paper.tables import Records, losses, paired, printed_rows, series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# colours for colour-blind readers (by Okabe and Ito); markers and lines differ too, for print in greyscale
BLUE, ORANGE, SKY, GREY = "#0072B2", "#D55E00", "#56B4E9", "#999999"
COLOURS = (BLUE, ORANGE, "#009E73", "#CC79A7")
MARKERS = ("o", "s", "^", "D")
LINES = ("-", "--", "-.", ":")
STYLE: dict[Any, Any] = {"svg.hashsalt": "isopursuit", "font.size": 9, "axes.titlesize": 9, "legend.fontsize": 7}
EXPONENTS = (0.1, 0.5, 1.0, 2.0, 5.0)  # of the paper's figure 1
EQUAL = 1e-9  # losses with a smaller relative difference are equal


def draw_all(rows: Records, folder: Path) -> dict[str, Path]:
    """Draw every figure that has rows as an SVG file, and return the paths by name. Equal rows give equal bytes."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    made: dict[str, Path] = {}
    for name, draw in FIGURES.items():
        with rc_context(STYLE):
            figure = Figure(layout="constrained")
            if draw(rows, figure):
                made[name] = folder / f"{name}.svg"
                stream = BytesIO()
                figure.savefig(stream, format="svg", metadata={"Date": None})
                write_whole(made[name], stream.getvalue())
    return made


def _curves(rows: Records, figure: Figure) -> bool:
    """Three curves by length t for several c: the loss of one column, least at 1; its normalized length, largest at 1;
    its cost in basis pursuit, equal to the loss.
    """
    figure.set_size_inches(5.5, 9)
    for ax, curve in zip(_panels(figure, 3), ("loss", "length", "pursuit"), strict=True):
        _draw_curves(curve, ax)
    return True


def _draw_curves(kind: Literal["loss", "length", "pursuit"], ax: Axes) -> None:
    """The loss g(t) of one column of length t, its normalized length 1/g(t), or its cost in basis pursuit (D = 1)."""
    titles = {"loss": "Isometry loss", "length": "Normalized length", "pursuit": "Basis-pursuit loss"}
    t = np.exp(np.linspace(-np.log(5.0), np.log(5.0), 401))
    for i, c in enumerate(EXPONENTS):
        if kind == "loss":
            y = np.exp(np.minimum(log_penalty(t, c), 700.0))
        else:
            lengths = np.abs(symmetric_normalize(t[None, :], c)[0])
            # X B = 1 has |B| = 1 / |x|
            y = lengths if kind == "length" else 1 / np.maximum(lengths, 1e-300)
        style: dict[str, Any] = {
            "color": PICTURE_COLOURS[i],
            "linestyle": PICTURE_LINES[i],
            "marker": PICTURE_MARKERS[i],
        }
        ax.plot(t, y, markersize=4, markevery=(5 * i, 40), label=f"c = {c:g}", **style)
    ax.axvline(1.0, color=GREY, linewidth=0.8)
    ax.set_xscale("log")
    ax.set_xticks([0.2, 0.5, 1, 2, 5], ["0.2", "0.5", "1", "2", "5"])
    ax.set_xticks([], minor=True)
    # place the legend away from the curves
    ax.set_ylim(*((-0.15, 1.05) if kind == "length" else (0.4, 5.0)))
    ax.legend(loc="lower center", ncols=len(EXPONENTS), fontsize="small", columnspacing=1.0, handlelength=1.5)
    ax.set_xlabel("length t (log scale)")
    ax.set_ylabel(titles[kind].lower())
    ax.set_title(titles[kind])


def _paired_losses(rows: Records, figure: Figure) -> bool:
    """Losses of greedy and two-stage for each replicate and as distributions, and two-stage against the optimum: lines
    from greedy to two-stage fall for most replicates.
    """
    names = [name for name, _ in printed_rows(rows) if losses(rows, part="table", data=name, method="two-stage")]
    if not names:
        return False
    figure.set_size_inches(8, 2.8 * len(names))
    for axes, name in zip(figure.subplots(len(names), 3, squeeze=False), names, strict=True):
        by = {m: losses(rows, part="table", data=name, method=m) for m in ("greedy", "two-stage", "exact")}
        greedy, two_stage = paired(by["greedy"], by["two-stage"])
        _draw_pairs(axes[0], greedy, two_stage, ("greedy", "two-stage"))
        _draw_distributions(axes[1], greedy, two_stage, ("greedy", "two-stage"))
        two_stage, best = paired(by["two-stage"], by["exact"])
        _draw_pairs(axes[2], two_stage, best, ("two-stage", "proved optimum"))
        axes[0].set_ylabel(f"{name}: loss")
    return True


def _supports(rows: Records, figure: Figure) -> bool:
    """Histograms of how many columns isometry pursuit keeps, for each data set."""
    found = {
        name: series(rows, lambda record: record.support, part="table", data=name, method="pursuit")
        for name, _ in printed_rows(rows)
    }
    found = {name: sizes for name, sizes in found.items() if sizes}
    if not found:
        return False
    figure.set_size_inches(7, 2.7 * ((len(found) + 1) // 2))
    for ax, (name, sizes) in zip(_panels(figure, len(found), 2), found.items(), strict=True):
        rows_of_X = next(task.D for task in rows if (task.part, task.data) == ("table", name))
        _draw_sizes(ax, list(sizes.values()), rows_of_X)
        ax.set_title(name)
    return True


def _deep_dive(rows: Records, figure: Figure) -> bool:
    """Brute force against two-stage for each replicate: two-stage is often higher by l_1, and equal by the multitask
    norm.
    """
    names = [name for name in printed.DEEP_DIVE if losses(rows, part="deep-dive", data=name, method="brute")]
    if not names:
        return False
    figure.set_size_inches(7, 3 * len(names))
    for axes, name in zip(figure.subplots(len(names), 2, squeeze=False), names, strict=True):
        D, P = printed.DEEP_DIVE[name]
        for ax, norm, label in zip(axes, ("", " multitask"), ("l_1", "multitask norm"), strict=True):
            brute, two_stage = paired(
                *(
                    losses(rows, part="deep-dive", data=name, D=D, P=P, method=method + norm)
                    for method in ("brute", "two-stage")
                )
            )
            _draw_pairs(ax, brute, two_stage, ("brute", "two-stage"))
            ax.set_title(f"{name}, {D} × {P}: {label}")
    return True


def _exponents(rows: Records, figure: Figure) -> bool:
    """Log-loss above the ideal by c for several D on Wine: it rises with c for every method."""
    sizes = sorted({task.D for task in rows if task.part == "sweep"})
    if not sizes:
        return False
    figure.set_size_inches(7, 3 * ((len(sizes) + 1) // 2))
    for ax, D in zip(_panels(figure, len(sizes), 2), sizes, strict=True):
        for i, method in enumerate(("greedy", "two-stage", "exchange", "exact")):
            middle: dict[float, np.ndarray] = {}
            for c in printed.EXPONENTS:
                key: dict[str, Any] = {"part": "sweep", "D": D, "c": c, "method": method}
                logs = np.array(list(series(rows, lambda record: record.log_loss, **key).values()))
                if len(logs):
                    middle[c] = np.quantile(np.maximum(logs - np.log(D), 1e-6), [0.0, 0.5, 1.0])
            if not middle:
                continue
            low, median, high = np.array(list(middle.values())).T
            at = np.array(list(middle)) * 1.06 ** (i - 1.5)  # side by side
            style: dict[str, Any] = {"color": COLOURS[i], "linestyle": LINES[i], "marker": MARKERS[i]}
            ax.errorbar(at, median, [median - low, high - median], **style, markersize=4, linewidth=1, label=method)
        ax.set(xscale="log", yscale="log", xlabel="c", ylabel="log l_c − log D", title=f"Wine, D = {D}")
        ax.set_xticks(printed.EXPONENTS, [f"{c:g}" for c in printed.EXPONENTS])
        ax.set_xticks([], minor=True)
        if ax.get_legend_handles_labels()[0]:
            ax.legend()
    return True


def _words(rows: Records, figure: Figure) -> bool:
    """A circle of selected words for each method, with a line for each pair that is selected together."""
    data = dataset("words", 7)
    pairs: dict[str, Counter[tuple[str, str]]] = {}
    for method in ("two-stage", "greedy", "exact"):
        pairs[method] = Counter()
        for task, record in rows.items():
            if (task.part, task.data, task.method) == ("table", "words", method) and record.indices:
                drawn = data.draw(task.replicate, task.P)
                words = sorted(data.classes[int(drawn[i])] for i in record.indices)
                pairs[method].update(combinations(words, 2))
    pairs = {method: counted for method, counted in pairs.items() if counted}
    if not pairs:
        return False
    figure.set_size_inches(5.5, 5.2 * len(pairs))
    for ax, (method, counted) in zip(_panels(figure, len(pairs)), pairs.items(), strict=True):
        _graph(ax, counted)
        ax.set_title(f"{method}: words picked together")
    return True


def _graph(ax: Axes, pairs: Counter[tuple[str, str]]) -> None:
    """Draw words around a circle, each near the words that are selected with it."""
    words = sorted({word for pair in pairs for word in pair})
    place = {word: i for i, word in enumerate(words)}
    weights = np.zeros((len(words), len(words)))
    for (one, two), count in pairs.items():
        weights[place[one], place[two]] = weights[place[two], place[one]] = count
    # the second and third eigenvector of the graph's Laplacian place neighbours near each other
    _, vectors = np.linalg.eigh(np.diag(weights.sum(axis=1)) - weights)
    order = np.argsort(np.arctan2(vectors[:, 2], vectors[:, 1]) if len(words) > 2 else np.arange(len(words)))
    angle = np.empty(len(words))
    angle[order] = 2 * np.pi * np.arange(len(words)) / len(words)
    x, y = np.cos(angle), np.sin(angle)
    most = max(pairs.values())
    for (one, two), count in sorted(pairs.items(), key=lambda item: item[1]):
        ends = [place[one], place[two]]
        ax.plot(x[ends], y[ends], color=BLUE, linewidth=2.5 * count / most, alpha=0.15 + 0.6 * count / most)
    size = weights.sum(axis=1)
    ax.scatter(x, y, s=4 + 60 * size / size.max(), color=ORANGE, zorder=3)
    for word, turn, at, up in zip(words, np.degrees(angle), x, y, strict=True):
        left = at < 0
        ax.text(
            1.08 * at,
            1.08 * up,
            word,
            rotation=turn + 180 if left else turn,
            ha="right" if left else "left",
            va="center",
            rotation_mode="anchor",
            fontsize=6.5,
        )
    ax.set(xlim=(-1.6, 1.6), ylim=(-1.6, 1.6), aspect="equal")
    ax.axis("off")


def _ladder(rows: Records, figure: Figure) -> bool:
    """Seconds to proof by D on whole data sets: they rise with D; hollow marks stopped with a gap."""
    found = sorted((task, record) for task, record in rows.items() if task.part == "ladder" and task.method == "exact")
    if not found:
        return False
    figure.set_size_inches(6, 3.6)
    (ax,) = _panels(figure, 1)
    for i, name in enumerate(dict.fromkeys(task.data for task, _ in found)):
        some = sorted((task.D, record.seconds, record.status) for task, record in found if task.data == name)
        style: dict[str, Any] = {"color": COLOURS[i], "marker": MARKERS[i], "linestyle": "none"}
        for proved in (True, False):
            at = [(D, seconds) for D, seconds, status in some if (status == "optimal") == proved]
            if at:
                label = name if proved else f"{name}, stopped with a gap"
                ax.plot(*zip(*at, strict=True), **style, fillstyle="full" if proved else "none", label=label)
    ax.set(yscale="log", xlabel="columns picked, D", ylabel="seconds, one thread", title="Time to proof")
    ax.legend()
    return True


def _draw_pairs(ax: Axes, first: np.ndarray, second: np.ndarray, names: tuple[str, str]) -> None:
    """Draw the losses of two methods on the same replicates, with a line for each replicate. An infinite loss is
    counted, but has no line.
    """
    pairs = np.column_stack([first, second])
    with np.errstate(invalid="ignore"):
        equal = (first == second) | (np.abs(first - second) <= EQUAL * np.minimum(np.abs(first), np.abs(second)))
    drawable = np.isfinite(pairs.sum(axis=1))
    for group, label, colour, line, marker in (
        (~equal & (first < second), f"{names[0]} lower", BLUE, "-", "o"),
        (~equal & (second < first), f"{names[1]} lower", ORANGE, "--", "s"),
        (equal, "equal", "black", ":", "x"),
    ):
        some = pairs[group & drawable]
        style: dict[str, Any] = {"color": colour, "linestyle": line, "marker": marker}
        ax.plot([0, 1], some.T, **style, linewidth=1, markersize=4, alpha=1.0 if len(some) < 20 else 0.6)
        ax.plot([], [], **style, label=f"{label} ({int(group.sum())})")
    _log_if_wide(ax, pairs[drawable], "y")
    missing = int((~drawable).sum())
    title = f"Loss on each replicate ({len(drawable)})"
    ax.set(xlim=(-0.25, 1.25), ylabel="loss", title=title + (f"\n{missing} infinite, not shown" if missing else ""))
    ax.set_xticks([0, 1], names)
    ax.legend()


def _draw_distributions(ax: Axes, first: np.ndarray, second: np.ndarray, names: tuple[str, str]) -> None:
    """Draw the share of replicates whose loss is at most x; infinite losses count but are never reached."""
    for i, values in enumerate((first, second)):
        finite = np.sort(values[np.isfinite(values)])
        share = np.arange(1, len(finite) + 1) / len(values)
        if len(finite):
            finite, share = np.append(finite[0], finite), np.append(0.0, share)
        ax.step(finite, share, where="post", color=COLOURS[i], linestyle=LINES[i], label=names[i])
    _log_if_wide(ax, np.concatenate([first, second]), "x")
    ax.set(xlabel="loss", ylabel="share of replicates", ylim=(0.0, 1.03), title="Distribution of the losses")
    ax.legend()


def _draw_sizes(ax: Axes, sizes: Sequence[int], D: int) -> None:
    """Draw the distribution of the number of columns that the pursuit keeps, which is at least D."""
    from matplotlib.ticker import MaxNLocator

    width = max(1, int(np.ceil((np.ptp(sizes) + 1) / 40)))  # at most 40 bars, each of whole numbers
    bins = [edge - 0.5 for edge in range(min(sizes), max(sizes) + width + 1, width)]
    ax.hist(sizes, bins=bins, color=SKY, edgecolor="white", linewidth=0.5)
    ax.axvline(float(np.mean(sizes)), color=ORANGE, label=f"mean {np.mean(sizes):.1f}")
    ax.axvline(D, color=GREY, linestyle="--", label=f"fewest possible, D = {D}")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator("auto", integer=True))
    ax.set(xlabel="columns in the support", ylabel="number of replicates")
    ax.legend()


def _log_if_wide(ax: Axes, values: np.ndarray, axis: Literal["x", "y"]) -> None:
    """Make an axis logarithmic, with plain numbers, if the values span more than one order of magnitude."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    values = values[np.isfinite(values)]
    if values.size and 0 < 10 * values.min() < values.max():
        (ax.set_xscale if axis == "x" else ax.set_yscale)("log")
        scale = ax.xaxis if axis == "x" else ax.yaxis
        scale.set_major_locator(LogLocator(subs=(1.0,) if values.max() > 1000 * values.min() else (1.0, 2.0, 5.0)))
        scale.set_major_formatter(StrMethodFormatter("{x:g}"))
        scale.set_minor_formatter(NullFormatter())


def _panels(figure: Figure, n: int, columns: int = 1) -> list[Axes]:
    """Axes for n panels, in few columns, so that a telephone shows them large enough."""
    axes = list(figure.subplots(-(-n // columns), columns, squeeze=False).ravel())
    for ax in axes[n:]:
        ax.remove()
    return axes[:n]


FIGURES: dict[str, Callable[[Records, Figure], bool]] = {
    "curves": _curves,
    "losses": _paired_losses,
    "supports": _supports,
    "deep_dive_figure": _deep_dive,
    "exponents": _exponents,
    "words": _words,
    "ladder_figure": _ladder,
}
