"""The three pictures of the verdict."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from .methods import METHODS, OURS
from .record import Record, Row

SHOWN = ("exact", "exchange", "two-stage", "greedy (the paper's)", "pivoted QR", "maxvol", "CUR", "FPS",
         "DPP, greedy", "MMR", "k-DPP", "facility location", "MultiTaskLasso", "SCS")  # fmt: skip
HIGHEST = 1e4  # times the best; beyond that only a mark at the edge is drawn


def draw(record: Record, folder: Path) -> None:
    """Save time.svg, k.svg and columns.svg; the same record gives the same bytes."""
    from matplotlib import pyplot, rc_context

    folder.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.hashsalt": "isopursuit", "svg.fonttype": "none", "font.size": 9}):
        for kind, make in (("time", quality_against_time), ("k", quality_against_k), ("columns", time_against_columns)):
            figure = make(record, pyplot)
            figure.savefig(folder / f"{kind}.svg", metadata={"Date": None}, bbox_inches="tight")
            pyplot.close(figure)


def quality_against_time(record: Record, pyplot):
    figure, panels = pyplot.subplots(1, 2, figsize=(10, 4.2), sharey=True)
    for axes, scaling in zip(panels, ("raw", "unit"), strict=True):
        for method in METHODS:
            rows = [row for row in _answered(record, method) if row.scaling == scaling]
            if rows:
                x = float(np.median([row.seconds for row in rows]))
                y = min(float(np.median(_ratios(record, rows))), HIGHEST)
                axes.plot(x, y, "s" if method in OURS else "o", color=_color(method))
                axes.annotate(method, (x, y), (3, 3), textcoords="offset points", fontsize=7)
        axes.set(xscale="log", yscale="log", xlabel="seconds, median", title=f"{scaling} columns")
    panels[0].set_ylabel(f"l_1, times the best known (at most {HIGHEST:g} is drawn)")
    return figure


def quality_against_k(record: Record, pyplot):
    figure, panels = pyplot.subplots(1, 3, figsize=(12, 4), sharey=True)
    for axes, data in zip(panels, ("breast cancer", "digits", "tokens"), strict=True):
        whole = max((row.P for row in record.rows if row.data == data), default=0)
        for method in SHOWN:
            rows = [r for r in _answered(record, method) if r.data == data and whole == r.P and r.scaling == "unit"]
            if rows:
                rows.sort(key=lambda row: row.k)
                y = np.minimum(_ratios(record, rows), HIGHEST)
                axes.plot([row.k for row in rows], y, _style(method), color=_color(method), label=method, markersize=4)
        axes.set(xscale="log", yscale="log", xlabel="k", title=f"{data}, unit columns")
    panels[0].set_ylabel("l_1, times the best known")
    _legend(figure, panels)
    return figure


def time_against_columns(record: Record, pyplot):
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for method in SHOWN:
        rows = [row for row in _answered(record, method) if (row.data, row.k, row.scaling) == ("tokens", 16, "unit")]
        if rows:
            rows.sort(key=lambda row: row.P)
            axes.plot(
                [r.P for r in rows], [r.seconds for r in rows], _style(method), color=_color(method), label=method
            )
    axes.set(xscale="log", yscale="log", xlabel="P, columns (tokens, k = 16, unit)", ylabel="seconds")
    _legend(figure, [axes])
    return figure


def _answered(record: Record, method: str) -> list[Row]:
    return [row for row in record.rows if row.method == method and not row.error]


def _ratios(record: Record, rows: Iterable[Row]) -> list[float]:
    from .page import best_loss

    return [float(np.exp(min(row.log_loss - best_loss(record, row.problem), 50))) for row in rows]


def _style(method: str) -> str:
    return "s-" if method in OURS else "o:"


def _color(method: str) -> str:
    return f"C{OURS.index(method)}" if method in OURS else f"C{4 + list(METHODS).index(method) % 6}"


def _legend(figure, panels) -> None:
    known = {}
    for axes in panels:
        known.update(dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True)))
    figure.legend(known.values(), known.keys(), loc="center left", bbox_to_anchor=(0.92, 0.5), fontsize=7)
