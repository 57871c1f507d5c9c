"""Two pictures of the comparison."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from matplotlib.transforms import Bbox

from .methods import METHODS, OURS
from .record import Record, Row

SHOWN = ("exact", "exchange", "two-stage", "greedy (the paper's)", "pivoted QR", "maxvol", "CUR", "FPS",
         "DPP, greedy", "MMR", "k-DPP", "facility location", "MultiTaskLasso", "SCS")  # fmt: skip
LOWEST, HIGHEST = 1e-4, 1e4  # above the best, relatively; what is beyond is drawn at the edge
MARKERS = "o^vDPX*<>"
# where a label may be, in points from its own: beside it, above or below, then further away
PLACES = [(dx, dy) for dy in (0, 9, -9, 18, -18, 27, -27, 36) for dx in ((0, 7, -7) if dy else (7, -7))]


def draw(record: Record, folder: Path) -> None:
    """Save time.svg and k.svg; the same record gives the same bytes."""
    from docs.pictures.style import picture

    folder.mkdir(parents=True, exist_ok=True)
    with picture(folder / "time.svg", 5.5, 8.5, rows=2) as panels:
        quality_against_time(record, panels)
    with picture(folder / "k.svg", 5.5, 9.5, rows=3, sharey=True) as panels:
        quality_against_k(record, panels)


def quality_against_time(record: Record, panels) -> None:
    from docs.pictures.style import GREY

    for axes, scaling in zip(panels, ("raw", "unit"), strict=True):
        names: dict[str, tuple[float, float]] = {}
        points: list[tuple[float, float]] = []
        for method in sorted(METHODS, key=lambda method: method in SHOWN):
            rows = [row for row in _answered(record, method) if row.scaling == scaling]
            if rows:
                x, y = (float(np.median(some)) for some in ([row.seconds for row in rows], _percents(record, rows)))
                named = method in SHOWN
                axes.plot(x, y, "s" if method in OURS else "o", color=_color(method) if named else GREY)
                points.append((x, y))
                names |= {method: (x, y)} if named else {}
        axes.set(xscale="log", yscale="log", title=f"{scaling} columns", ylabel="l_1, % above the best known")
        _label(axes, names, points)
    panels[-1].set_xlabel("seconds, median")


def _label(axes, names: dict[str, tuple[float, float]], points: list[tuple[float, float]]) -> None:
    """Write each name at the first place where it covers no point and no other name."""
    axes.figure.draw_without_rendering()  # transforms are final
    size = 4 * axes.figure.dpi / 72  # of a marker, in pixels
    taken = [Bbox([at - size, at + size]) for at in axes.transData.transform(points)]
    inside = axes.get_window_extent()
    for name, at in names.items():
        for offset in PLACES:
            side = "left" if offset[0] > 0 else "right" if offset[0] < 0 else "center"
            label = axes.annotate(name, at, offset, textcoords="offset points", fontsize=8, ha=side, va="center")
            box = label.get_window_extent()
            if box.x0 > inside.x0 and box.x1 < inside.x1 and box.count_overlaps(taken) == 0:
                taken.append(box)
                break
            label.remove()


def quality_against_k(record: Record, panels) -> None:
    for axes, data in zip(panels, ("breast cancer", "digits", "tokens"), strict=True):
        whole = max((row.P for row in record.rows if row.data == data), default=0)
        sizes: list[int] = []
        for method in SHOWN:
            rows = [r for r in _answered(record, method) if r.data == data and whole == r.P and r.scaling == "unit"]
            if rows:
                rows.sort(key=lambda row: row.k)
                sizes = max(sizes, [row.k for row in rows], key=len)
                y = _percents(record, rows)
                axes.plot([row.k for row in rows], y, _style(method), color=_color(method), label=method, markersize=4)
        axes.set(xscale="log", yscale="log", title=f"{data}, unit columns", ylabel="l_1, % above the best known")
        axes.set_xticks([], minor=True)
        axes.set_xticks(sizes, [str(k) for k in sizes])
    panels[-1].set_xlabel("k")
    _legend(panels)


def _answered(record: Record, method: str) -> list[Row]:
    return [row for row in record.rows if row.method == method and not row.error]


def _percents(record: Record, rows: Iterable[Row]) -> list[float]:
    """By how many percent each loss is above the best known, between LOWEST and HIGHEST."""
    from .page import best_loss

    excess = (np.expm1(min(row.log_loss - best_loss(record, row.problem), 50)) for row in rows)
    return [100 * float(np.clip(some, LOWEST, HIGHEST)) for some in excess]


def _style(method: str) -> str:
    return "s-" if method in OURS else f"{MARKERS[list(METHODS).index(method) % len(MARKERS)]}:"


def _color(method: str) -> str:
    return f"C{OURS.index(method)}" if method in OURS else f"C{4 + list(METHODS).index(method) % 6}"


def _legend(panels) -> None:
    known = {}
    for axes in panels:
        known.update(dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True)))
    panels[0].figure.legend(known.values(), known.keys(), loc="outside lower center", ncols=2, fontsize=9)
