"""Make the paper's tables, and some new ones, from the rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from isopursuit._core.atomic import write_whole
from paper import printed
from paper.plan import COMPARED, WHOLE, Task, kind
from paper.rows import Record

Records = Mapping[Task, Record]
T = TypeVar("T")

TIE = 1e-9  # losses closer than this are equal
REACHED = 1e-9  # a loss within this relative distance of the proved optimum has reached it
FRAMES = printed.TABLE_1["ethanol"].R
_TIMED = ("greedy", "exchange", "exact")
_SWEPT = ("greedy", "two-stage", "exchange", "exact")


@dataclass(frozen=True)
class Table:
    """A table for the terminal or for a page."""

    title: str
    heads: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        """Return the table in Markdown, without its title."""
        lines = ["| " + " | ".join(row) + " |" for row in (self.heads, *self.cells)]
        return "\n".join([lines[0].replace("|S|", "\\|S\\|"), "|---" * len(self.heads) + "|", *lines[1:]])

    def saved(self, path: Path) -> str:
        """Write the table to a CSV file, and return the lines that include it in a page in the folder above its own."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.heads, *self.cells])
        path.parent.mkdir(exist_ok=True)
        write_whole(path, text.getvalue())
        return (
            f"```{{csv-table}}\n:file: {path.parent.parent.name}/{path.parent.name}/{path.name}\n:header-rows: 1\n```"
        )


def printed_rows(rows: Records) -> list[tuple[str, printed.Row | None]]:
    """Return the data of table 1 that there are rows for, in the paper's order, then the user's own tables, each with
    the row that the paper prints.
    """
    names = sorted({task.data for task in rows if task.part == "table"})
    known = [(name, row) for data, row in printed.TABLE_1.items() for name in names if kind(name) == data]
    return [*known, *((name, None) for name in names if kind(name) not in printed.TABLE_1)]


def series(rows: Records, value: Callable[[Record], T | None], **key: object) -> dict[int, T]:
    """Return one value per replicate from the rows whose task has this key, without rows that have no value."""
    found: dict[int, T] = {}
    for task, record in rows.items():
        if all(getattr(task, name) == given for name, given in key.items()) and (one := value(record)) is not None:
            found[task.replicate] = one
    return found


def losses(rows: Records, **key: object) -> dict[int, float]:
    """Return the losses by replicate."""
    return series(rows, lambda record: record.loss, **key)


def paired(*several: dict[int, float]) -> list[np.ndarray]:
    """Return the values of each series at the replicates that all series have, in order."""
    common = sorted(set(several[0]).intersection(*several[1:]))
    return [np.array([one[i] for i in common]) for one in several]


def spread(values: np.ndarray, digits: int = 1) -> str:
    """Format the mean ± standard deviation (n − 1)."""
    if len(values) < 2:
        return "".join(f"{value:.{digits}f}" for value in values)
    return f"{values.mean():.{digits}f} ± {values.std(ddof=1):.{digits}f}"


def of_replicates(n: int, R: int) -> str:
    """Format the number of replicates that a method accepted, if it refused some."""
    return "" if n == R else "refused" if n == 0 else f" ({n} of {R})"


def factor(logarithm: float) -> str:
    """Format e to this power, as a power of 10 if it overflows float64."""
    return f"{np.exp(logarithm):.3g}" if logarithm < 700 else f"10^{logarithm / np.log(10):.0f}"


def percent(share: float) -> str:
    """Format a relative difference in percent, or as a factor if it is above 100."""
    if abs(share) <= REACHED:
        return "0 %"
    return f"{100 * share:.3g} %" if share < 100 else f"{1 + share:.1g} times"


def all_tables(rows: Records) -> list[Table]:
    """Return every table that has rows."""
    made = [make(rows) for make in TABLES]
    return [table for table in made if table.cells]


def table_1(rows: Records) -> Table:
    """The paper's table 1 and ours, with the paper's number of digits, and the proved optimum."""
    cells: list[tuple[str, ...]] = []
    for name, paper in printed_rows(rows):
        ours = table_1_row(rows, name)
        if ours is not None:
            size = next(f"{task.D} × {task.P}" for task in rows if (task.part, task.data) == ("table", name))
            if paper is not None:
                theirs = (paper.greedy, paper.support, paper.two_stage, paper.p_value)
                cells.append((name, size, str(paper.R), "paper", *theirs, ""))
            cells.append((name, size, *ours))
    heads = ("data", "D × P", "R", "", "greedy", "|S|", "two-stage", "p-value", "proved optimum")
    return Table("Table 1: l_1 of the selected columns, mean ± sd over replicates", heads, tuple(cells))


def table_1_row(rows: Records, name: str) -> tuple[str, ...] | None:
    """Return R, "ours", greedy, |S|, two-stage, the p-value and the optimum in the paper's formats."""
    from scipy.stats import ttest_rel

    greedy, two_stage = paired(*(losses(rows, part="table", data=name, method=m) for m in ("greedy", "two-stage")))
    if len(greedy) == 0:
        return None
    paper = printed.TABLE_1.get(kind(name))
    of_losses, of_sizes, of_p = (2, 1, ".2g") if paper is None else paper.digits
    sizes = series(rows, lambda record: record.support, part="table", data=name, method="pursuit")
    best = losses(rows, part="table", data=name, method="exact")
    proved = series(rows, _proved_loss, part="table", data=name, method="exact")
    differ = len(greedy) > 1 and bool((greedy != two_stage).any())
    p_value = f"{ttest_rel(greedy, two_stage).pvalue:{of_p}}" if differ else "none"
    return (
        str(len(greedy)),
        "ours",
        spread(greedy, of_losses),
        spread(np.array(list(sizes.values())), of_sizes),
        spread(two_stage, of_losses),
        p_value,
        spread(np.array(list(best.values())), of_losses)
        + ("" if len(proved) == len(best) else f" ({len(proved)} of {len(best)} proved)"),
    )


def _proved_loss(record: Record) -> float | None:
    return record.loss if record.status == "optimal" else None


def ties(rows: Records) -> Table:
    """How often greedy is worse than two-stage, and how often they are equal: as floats, as floats with greedy's loss
    computed from its columns in reverse order, and within a tolerance.
    """
    cells: list[tuple[str, ...]] = []
    for name, paper in printed_rows(rows):
        key = {"part": "table", "data": name}
        one, two = paired(*(losses(rows, **key, method=m) for m in ("greedy", "two-stage")))
        again, other = paired(
            series(rows, lambda record: record.reversed_loss, **key, method="greedy"),
            losses(rows, **key, method="two-stage"),
        )
        if len(one):
            shares = [
                (one > two, one == two),
                (again > other, again == other),
                (one > two + TIE, np.abs(one - two) <= TIE),
            ]
            shown = (f"{worse.mean():.2f} / {equal.mean():.2f}" for worse, equal in shares)
            cells.append((name, f"{paper.worse} / {paper.equal}" if paper else "", *shown))
    heads = ("data", "paper (floats)", "ours, floats", "floats, columns reversed", f"ties within {TIE:g}")
    return Table("P(greedy worse than two-stage) / P(equal)", heads, tuple(cells))


def timing(rows: Records) -> Table:
    """Time per replicate: the paper's, ours, and that of CVXPY with SCS in the same run."""
    cells: list[tuple[str, ...]] = []
    for name, paper in printed_rows(rows):
        times = {
            method: series(rows, lambda record: record.seconds, part="table", data=name, method=method)
            for method in (*COMPARED, "SCS")
        }
        second = series(rows, lambda record: record.second_stage, part="table", data=name, method="two-stage")
        if not times["pursuit"]:
            continue
        ours, scs = (np.array(list(times[method].values())) for method in ("pursuit", "SCS"))
        ratio = f"{np.median(scs) / np.median(ours):.0f}" if len(scs) else ""
        shown = [spread(1e3 * np.array(list(one.values())), 2) for one in (second, *(times[m] for m in _TIMED))]
        if paper is not None:
            solver, stage, greedy = printed.TIMING.get(kind(name), ("", "", ""))
            cells.append((name, "paper (s)", solver, "", "", stage, greedy, "", ""))
        cells.append((name, "ours (ms)", spread(1e3 * scs, 1), spread(1e3 * ours, 2), ratio, *shown))
    heads = ("data", "", "CVXPY + SCS", "isometry pursuit", "ratio of medians", "second stage", *_TIMED)
    return Table("Time per replicate, mean ± sd", heads, tuple(cells))


def distance(rows: Records) -> Table:
    """The distance of each method from the proved optimum, and how often it reaches it."""
    cells: list[tuple[str, ...]] = []
    for name, _ in printed_rows(rows):
        key = {"part": "table", "data": name}
        proved = series(rows, _proved_loss, **key, method="exact")
        for method in ("greedy", "two-stage", "exchange", "random"):
            found, best = paired(losses(rows, **key, method=method), proved)
            if len(best):
                over = found / best - 1
                share = (over <= REACHED).mean()
                shown = (percent(value) for value in (over.mean(), np.median(over), over.max()))
                cells.append((name, method, *shown, f"{share:.2f}"))
    heads = ("data", "method", "mean above the optimum", "median", "worst", "share that reaches it")
    return Table("Distance from the proved optimum", heads, tuple(cells))


def random_stage(rows: Records) -> Table:
    """Random columns in stage one, as many as the pursuit keeps, and their best subset in stage two."""
    cells: list[tuple[str, ...]] = []
    for name, _ in printed_rows(rows):
        key = {"part": "table", "data": name}
        two_stage = series(rows, lambda record: record.log_loss, **key, method="two-stage")
        drawn = series(rows, lambda record: np.array(record.draws) if record.draws else None, **key, method="random")
        common = sorted(set(drawn) & set(two_stage))
        if common:
            draws = np.concatenate([drawn[i] for i in common])
            ratio = np.concatenate([drawn[i] - two_stage[i] for i in common])
            cells.append(
                (
                    name,
                    str(len(draws)),
                    f"{np.isinf(draws).mean():.2f}",
                    *(factor(float(np.quantile(ratio, q, method="lower"))) for q in (0.1, 0.5, 0.9, 1.0)),
                    f"{(ratio < -TIE).mean():.2f}",
                )
            )
    shares = ("10 %", "median", "90 %", "worst")
    heads = ("data", "draws", "share that does not span", *shares, "share better than two-stage")
    return Table("Random selection in stage one: loss over that of two-stage", heads, tuple(cells))


def ladder(rows: Records) -> Table:
    """Whole data sets by increasing D: the proved optimum, or the gap at the node limit."""
    cells: list[tuple[str, ...]] = []
    order = ("iris", "wine", "breast cancer", "digits")
    found = [task for task in rows if task.part == "ladder" and task.method == "exact" and task.replicate == WHOLE]
    for task in sorted(found, key=lambda task: (order.index(task.data), task.P == 1797, task.D)):
        exact, swapped = rows[task], rows.get(task._replace(method="exchange"))
        if exact.loss is None or exact.lower_bound is None:
            continue
        proof = "proved" if exact.status == "optimal" else f"gap {percent(1 - exact.lower_bound / exact.loss)}"
        other = f"{swapped.loss:.8g}" if swapped and swapped.loss else ""
        effort = (f"{exact.nodes:,}" if exact.nodes else "", f"{exact.seconds:.2g}")
        cells.append((task.data, f"{task.D} × {task.P}", f"{exact.loss:.8g}", proof, *effort, other))
    heads = ("data", "D × P", "exact", "proof", "nodes", "seconds", "exchange")
    return Table("Whole data sets, one thread", heads, tuple(cells))


def coordinates(rows: Records) -> Table:
    """The selected torsions: for each frame alone, and one pair for all frames."""
    cells: list[tuple[str, ...]] = []
    for name, _ in printed_rows(rows):
        for method in ("greedy", "two-stage", "exchange", "exact"):
            turns = series(rows, lambda record: record.turns or None, part="table", data=name, method=method)
            joint = series(rows, lambda record: record, part="manifold", data=name, method=method).get(WHOLE)
            if not turns or joint is None or joint.loss is None or joint.turns is None:
                continue
            share = np.mean([len(set(bonds)) == 2 for bonds in turns.values()])
            together = f"{joint.note} (bonds {', '.join(joint.turns)})"
            among = " among the tied" if method == "two-stage" else ""
            proof = f"proved{among}" if joint.status == "optimal" else "no proof"
            cells.append((name, method, f"{share:.2f}", together, f"{joint.loss / FRAMES:.4f}", proof))
    heads = ("data", "method", "frames with one torsion per bond", "for all frames", "loss per frame", "proof")
    return Table("Coordinates for ethanol", heads, tuple(cells))


@dataclass(frozen=True)
class Check:
    """One replicate of the deep dive: the best subset by the multitask norm, and whether the tied set contains it."""

    data: str
    D: int
    P: int
    replicate: int
    best: tuple[int, ...]
    norm: float
    tied: tuple[int, ...]
    within: float | None

    @property
    def inside(self) -> bool:
        """Whether the tied set contains the subset."""
        return set(self.best) <= set(self.tied)

    @property
    def excess(self) -> float | None:
        """The relative excess of the least norm among tied columns."""
        return None if self.within is None else self.within / self.norm - 1


def checks(rows: Records) -> Iterator[Check]:
    """Check the supplement's conjecture on every replicate: the tied set contains the best subset by multitask norm."""
    for task, record in rows.items():
        pursuit = rows.get(task._replace(method="pursuit"))
        if task.method != "brute multitask" or pursuit is None or pursuit.tied is None:
            continue
        if record.indices is not None and record.loss is not None:
            two_stage = rows.get(task._replace(method="two-stage multitask"))
            within = None if two_stage is None else two_stage.loss
            shape = (task.data, task.D, task.P, task.replicate)
            yield Check(*shape, record.indices, record.loss, pursuit.tied, within)


def deep_dive(rows: Records) -> Table:
    """Brute force against two-stage, by the multitask norm and by l_1."""
    cells: list[tuple[str, ...]] = []
    found = list(checks(rows))
    for data, D, P in sorted({(check.data, check.D, check.P) for check in found}):
        some = [check for check in found if (check.data, check.D, check.P) == (data, D, P)]
        excess = [check.excess for check in some if check.excess is not None]
        brute, two = paired(
            *(losses(rows, part="deep-dive", data=data, D=D, P=P, method=m) for m in ("brute", "two-stage"))
        )
        cells.append(
            (
                data,
                f"{D} × {P}",
                f"{sum(check.inside for check in some)} of {len(some)}",
                f"{sum(one <= REACHED for one in excess)} of {len(excess)}" if excess else "",
                percent(max(excess)) if excess else "",
                f"{int((two <= brute * (1 + REACHED)).sum())} of {len(two)}" if len(two) else "",
            )
        )
    by_norm = ("best by norm inside the tied set", "two-stage reaches it", "worst")
    heads = ("data", "D × P", *by_norm, "two-stage best by l_1")
    return Table("The deep dive: brute force by the multitask norm, and by l_1", heads, tuple(cells))


def sweep(rows: Records) -> Table:
    """Wine for several c: each method's log-loss above the best, and the number of columns that the pursuit keeps."""
    cells: list[tuple[str, ...]] = []
    keys = sorted({(task.D, task.c) for task in rows if task.part == "sweep"})
    for D, c in keys:
        key = {"part": "sweep", "data": "wine", "D": D, "c": c}
        logs = {method: series(rows, lambda record: record.log_loss, **key, method=method) for method in _SWEPT}
        seen = {i for one in logs.values() for i in one}
        best = {i: min(one[i] for one in logs.values() if i in one) for i in seen}
        R = len(best)
        if not R:
            continue
        proved = series(rows, lambda record: float(record.status == "optimal"), **key, method="exact")
        sizes = series(rows, lambda record: record.support, **key, method="pursuit")
        over = [np.subtract(*paired(logs[method], best)) for method in _SWEPT[:3]]
        cells.append(
            (
                str(D),
                f"{c:g}",
                spread(np.array(list(sizes.values()))) + of_replicates(len(sizes), R),
                f"{np.median(list(best.values())):.5g}",
                f"{sum(proved.values()):.0f} of {R}",
                *((f"{np.median(some):.3g}" if len(some) else "") + of_replicates(len(some), R) for some in over),
            )
        )
    heads = ("D", "c", "|S|", "log l_c of the best, median", "proved", "greedy above it", "two-stage", "exchange")
    return Table("Wine, 89 columns, by exponent: median difference of log l_c from the best", heads, tuple(cells))


TABLES = (table_1, ties, timing, distance, coordinates, deep_dive, sweep, random_stage, ladder)
