"""Make the paper's tables, and some new ones, from the store's rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from isopursuit.experiments import paper
from isopursuit.experiments.plan import COMPARED, WHOLE, kind
from isopursuit.experiments.rows import (
    REACHED,
    TIE,
    Rows,
    Table,
    factor,
    losses,
    of_replicates,
    paired,
    percent,
    printed_rows,
    series,
    spread,
)

FRAMES = paper.TABLE_1["ethanol"].R
_TIMED = ("greedy", "exchange", "exact")
_SWEPT = ("greedy", "two-stage", "exchange", "exact")


def all_tables(rows: Rows) -> list[Table]:
    """Return every table that has rows."""
    made = [make(rows) for make in TABLES]
    return [table for table in made if table.cells]


def table_1(rows: Rows) -> Table:
    """The paper's table 1 and ours, with the paper's number of digits, and the proved optimum."""
    cells: list[tuple[str, ...]] = []
    for name, printed in printed_rows(rows):
        ours = table_1_row(rows, name)
        if ours is not None:
            size = f"{printed.D} × {printed.P}"
            theirs = (printed.greedy, printed.support, printed.two_stage, printed.p_value)
            cells += [(name, size, str(printed.R), "paper", *theirs, ""), (name, size, *ours)]
    heads = ("data", "D × P", "R", "", "greedy", "|S|", "two-stage", "p-value", "proved optimum")
    return Table("Table 1: l_1 of the selected columns, mean ± sd over replicates", heads, tuple(cells))


def table_1_row(rows: Rows, name: str) -> tuple[str, ...] | None:
    """Return R, "ours", greedy, |S|, two-stage, the p-value and the optimum in the paper's formats."""
    from scipy.stats import ttest_rel

    greedy, two_stage = paired(*(losses(rows, study="table 1", data=name, method=m) for m in ("greedy", "two-stage")))
    if len(greedy) == 0:
        return None
    of_losses, of_sizes, of_p = paper.TABLE_1[kind(name)].digits
    sizes = series(rows, lambda record: record.support, study="table 1", data=name, method="pursuit")
    best = losses(rows, study="table 1", data=name, method="exact")
    differ = len(greedy) > 1 and bool((greedy != two_stage).any())
    p_value = f"{ttest_rel(greedy, two_stage).pvalue:{of_p}}" if differ else "none"
    return (
        str(len(greedy)),
        "ours",
        spread(greedy, of_losses),
        spread(np.array(list(sizes.values())), of_sizes),
        spread(two_stage, of_losses),
        p_value,
        spread(np.array(list(best.values())), of_losses),
    )


def ties(rows: Rows) -> Table:
    """How often greedy is worse than two-stage, and how often they are equal: as floats, as floats with greedy's loss
    computed from its columns in reverse order, and within a tolerance.
    """
    cells: list[tuple[str, ...]] = []
    for name, printed in printed_rows(rows):
        key = {"study": "table 1", "data": name}
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
            cells.append((name, f"{printed.worse} / {printed.equal}", *shown))
    heads = ("data", "paper (floats)", "ours, floats", "floats, columns reversed", f"ties within {TIE:g}")
    return Table("P(greedy worse than two-stage) / P(equal)", heads, tuple(cells))


def timing(rows: Rows) -> Table:
    """Time per replicate: the paper's, ours, and that of CVXPY with SCS in the same run."""
    cells: list[tuple[str, ...]] = []
    for name, _ in printed_rows(rows):
        times = {
            method: series(rows, lambda record: record.seconds, study="table 1", data=name, method=method)
            for method in (*COMPARED, "SCS")
        }
        second = series(rows, lambda record: record.second_stage, study="table 1", data=name, method="two-stage")
        if not times["pursuit"]:
            continue
        ours, scs = (np.array(list(times[method].values())) for method in ("pursuit", "SCS"))
        ratio = f"{np.median(scs) / np.median(ours):.0f}" if len(scs) else ""
        printed = paper.TIMING.get(kind(name), ("", "", ""))
        shown = [spread(1e3 * np.array(list(one.values())), 2) for one in (second, *(times[m] for m in _TIMED))]
        cells.append((name, "paper (s)", printed[0], "", "", printed[1], printed[2], "", ""))
        cells.append((name, "ours (ms)", spread(1e3 * scs, 1), spread(1e3 * ours, 2), ratio, *shown))
    heads = ("data", "", "CVXPY + SCS", "isometry pursuit", "ratio of medians", "second stage", *_TIMED)
    return Table("Time per replicate, mean ± sd", heads, tuple(cells))


def distance(rows: Rows) -> Table:
    """The distance of each method from the proved optimum, and how often it reaches it."""
    cells: list[tuple[str, ...]] = []
    for name, _ in printed_rows(rows):
        key = {"study": "table 1", "data": name}
        proved = series(rows, lambda record: record.loss if record.status == "optimal" else None, **key, method="exact")
        for method in ("greedy", "two-stage", "exchange", "random"):
            found, best = paired(losses(rows, **key, method=method), proved)
            if len(best):
                over = found / best - 1
                share = (over <= REACHED).mean()
                shown = (percent(value) for value in (over.mean(), np.median(over), over.max()))
                cells.append((name, method, *shown, f"{share:.2f}"))
    heads = ("data", "method", "mean above the optimum", "median", "worst", "share that reaches it")
    return Table("Distance from the proved optimum", heads, tuple(cells))


def random_stage(rows: Rows) -> Table:
    """Random columns in stage one, as many as the pursuit keeps, and their best subset in stage two."""
    cells: list[tuple[str, ...]] = []
    for name, _ in printed_rows(rows):
        key = {"study": "table 1", "data": name}
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


def ladder(rows: Rows) -> Table:
    """Whole data sets by increasing D: the proved optimum, or the gap at the node limit."""
    cells: list[tuple[str, ...]] = []
    order = ("iris", "wine", "breast cancer", "digits")
    found = [task for task in rows if task.study == "ladder" and task.method == "exact" and task.replicate == WHOLE]
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


def coordinates(rows: Rows) -> Table:
    """The selected torsions: for each frame alone, and one pair for all frames."""
    cells: list[tuple[str, ...]] = []
    for name, _ in printed_rows(rows):
        for method in ("greedy", "two-stage", "exchange", "exact"):
            turns = series(rows, lambda record: record.turns or None, study="table 1", data=name, method=method)
            joint = series(rows, lambda record: record, study="manifold", data=name, method=method).get(WHOLE)
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


def checks(rows: Rows) -> Iterator[Check]:
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


def deep_dive(rows: Rows) -> Table:
    """Brute force against two-stage, by the multitask norm and by l_1."""
    cells: list[tuple[str, ...]] = []
    found = list(checks(rows))
    for data, D, P in sorted({(check.data, check.D, check.P) for check in found}):
        some = [check for check in found if (check.data, check.D, check.P) == (data, D, P)]
        excess = [check.excess for check in some if check.excess is not None]
        brute, two = paired(
            *(losses(rows, study="deep dive", data=data, D=D, P=P, method=m) for m in ("brute", "two-stage"))
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


def sweep(rows: Rows) -> Table:
    """Wine for several c: each method's log-loss above the best, and the number of columns that the pursuit keeps."""
    cells: list[tuple[str, ...]] = []
    keys = sorted({(task.D, task.c) for task in rows if task.study == "exponents"})
    for D, c in keys:
        key = {"study": "exponents", "data": "wine", "D": D, "c": c}
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
