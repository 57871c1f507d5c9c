"""Draw the paper's figures and some new ones from the store's rows (extra `plot`).

The docstring of each function in FIGURES is the figure's alternative text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isopursuit import show as plots
from isopursuit._core.outputs import write_whole
from isopursuit._core.types import Array
from isopursuit.errors import optional
from isopursuit.experiments import paper
from isopursuit.experiments.plan import dataset, kind
from isopursuit.experiments.rows import Rows, losses, paired, printed_rows, series
from isopursuit.show._style import BLUE, COLOURS, LINES, MARKERS, ORANGE, rendered

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE: dict[Any, Any] = {"svg.hashsalt": "isopursuit", "font.size": 9, "axes.titlesize": 9, "legend.fontsize": 7}


def draw_all(rows: Rows, folder: Path) -> dict[str, Path]:
    """Draw every figure that has rows as an SVG file, and return the paths by name. Equal rows give equal bytes."""
    mpl = optional("matplotlib", "plot", "Drawing figures")
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    made: dict[str, Path] = {}
    for name, draw in FIGURES.items():
        with mpl.rc_context(STYLE):
            figure = Figure(layout="constrained")
            if draw(rows, figure):
                made[name] = folder / f"{name}.svg"
                write_whole(made[name], rendered(figure, "svg", metadata={"Date": None}))
    return made


def _curves(rows: Rows, figure: Figure) -> bool:
    """Three curves by length t for several c: the loss of one column, least at 1; its normalized length, largest at 1;
    its cost in basis pursuit, equal to the loss.
    """
    figure.set_size_inches(5.5, 9)
    for ax, curve in zip(_panels(figure, 3), ("loss", "length", "pursuit"), strict=True):
        plots.plot_length_curves(curve, ax=ax)
    return True


def _paired_losses(rows: Rows, figure: Figure) -> bool:
    """Losses of greedy and two-stage for each replicate and as distributions, and two-stage against the optimum: lines
    from greedy to two-stage fall for most replicates.
    """
    names = [name for name, _ in printed_rows(rows) if losses(rows, study="table 1", data=name, method="two-stage")]
    if not names:
        return False
    figure.set_size_inches(8, 2.8 * len(names))
    for axes, name in zip(figure.subplots(len(names), 3, squeeze=False), names, strict=True):
        by = {m: losses(rows, study="table 1", data=name, method=m) for m in ("greedy", "two-stage", "exact")}
        greedy, two_stage = paired(by["greedy"], by["two-stage"])
        plots.plot_paired_losses(greedy, two_stage, ax=axes[0], names=("greedy", "two-stage"))
        plots.plot_loss_ecdf(greedy, two_stage, ax=axes[1], names=("greedy", "two-stage"))
        two_stage, best = paired(by["two-stage"], by["exact"])
        plots.plot_paired_losses(two_stage, best, ax=axes[2], names=("two-stage", "proved optimum"))
        axes[0].set_ylabel(f"{name}: loss")
    return True


def _supports(rows: Rows, figure: Figure) -> bool:
    """Histograms of how many columns isometry pursuit keeps, for each data set."""
    found = {
        name: series(rows, lambda record: record.support, study="table 1", data=name, method="pursuit")
        for name, _ in printed_rows(rows)
    }
    found = {name: sizes for name, sizes in found.items() if sizes}
    if not found:
        return False
    figure.set_size_inches(7, 2.7 * ((len(found) + 1) // 2))
    for ax, (name, sizes) in zip(_panels(figure, len(found), 2), found.items(), strict=True):
        plots.plot_support_cardinalities([int(size) for size in sizes.values()], ax=ax, D=paper.TABLE_1[kind(name)].D)
        ax.set_title(name)
    return True


def _deep_dive(rows: Rows, figure: Figure) -> bool:
    """Brute force against two-stage for each replicate: two-stage is often higher by l_1, and equal by the multitask
    norm.
    """
    names = [name for name in paper.DEEP_DIVE if losses(rows, study="deep dive", data=name, method="brute")]
    if not names:
        return False
    figure.set_size_inches(7, 3 * len(names))
    for axes, name in zip(figure.subplots(len(names), 2, squeeze=False), names, strict=True):
        D, P = paper.DEEP_DIVE[name]
        for ax, norm, label in zip(axes, ("", " multitask"), ("l_1", "multitask norm"), strict=True):
            brute, two_stage = paired(
                *(
                    losses(rows, study="deep dive", data=name, D=D, P=P, method=method + norm)
                    for method in ("brute", "two-stage")
                )
            )
            plots.plot_paired_losses(brute, two_stage, ax=ax, names=("brute", "two-stage"))
            ax.set_title(f"{name}, {D} × {P}: {label}")
    return True


def _exponents(rows: Rows, figure: Figure) -> bool:
    """Log-loss above the ideal by c for several D on Wine: it rises with c for every method."""
    sizes = sorted({task.D for task in rows if task.study == "exponents"})
    if not sizes:
        return False
    figure.set_size_inches(7, 3 * ((len(sizes) + 1) // 2))
    for ax, D in zip(_panels(figure, len(sizes), 2), sizes, strict=True):
        for i, method in enumerate(("greedy", "two-stage", "exchange", "exact")):
            middle: dict[float, Array] = {}
            for c in paper.EXPONENTS:
                key: dict[str, Any] = {"study": "exponents", "D": D, "c": c, "method": method}
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
        ax.set_xticks(paper.EXPONENTS, [f"{c:g}" for c in paper.EXPONENTS])
        ax.set_xticks([], minor=True)
        if ax.get_legend_handles_labels()[0]:
            ax.legend()
    return True


def _words(rows: Rows, figure: Figure) -> bool:
    """A circle of selected words for each method, with a line for each pair that is selected together."""
    data = dataset("words", 7)
    pairs: dict[str, Counter[tuple[str, str]]] = {}
    for method in ("two-stage", "greedy", "exact"):
        pairs[method] = Counter()
        for task, record in rows.items():
            if (task.study, task.data, task.method) == ("table 1", "words", method) and record.indices:
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


def _ladder(rows: Rows, figure: Figure) -> bool:
    """Seconds to proof by D on whole data sets: they rise with D; hollow marks stopped with a gap."""
    found = sorted((task, record) for task, record in rows.items() if task.study == "ladder" and task.method == "exact")
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


def _panels(figure: Figure, n: int, columns: int = 1) -> list[Axes]:
    """Axes for n panels, in few columns, so that a telephone shows them large enough."""
    axes = list(figure.subplots(-(-n // columns), columns, squeeze=False).ravel())
    for ax in axes[n:]:
        ax.remove()
    return axes[:n]


FIGURES: dict[str, Callable[[Rows, Figure], bool]] = {
    "curves": _curves,
    "losses": _paired_losses,
    "supports": _supports,
    "deep_dive_figure": _deep_dive,
    "exponents": _exponents,
    "words": _words,
    "ladder_figure": _ladder,
}
