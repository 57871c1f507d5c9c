"""From the record alone: the tables peers*.csv in docs/tables, the pictures, figures in sentences, README's table."""

import csv
import math
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import numpy as np

from benchmarks import pages

from .figures import draw
from .methods import LIBRARIES, METHODS, OURS
from .problems import Problem
from .record import Record, Row

EQUAL = 1e-6  # losses this close, relatively, count as equal
SMALL = 10  # proofs are counted separately for at most so many columns picked
MARKS = "<!-- peers: written by `make peers` -->", "<!-- /peers -->"
PEERS = tuple(name for name in METHODS if name not in OURS)
# the methods of README's table, and how they are called there
IN_README = {
    "exact": "isopursuit, exact",
    "exchange": "isopursuit, exchange",
    "two-stage": "isopursuit, two-stage (the paper's)",
    "DPP, greedy": "greedy DPP (pyversity)",
    "pivoted QR": "pivoted QR (SciPy)",
}


def write_page(record: Record, root: Path) -> None:
    """Everything that `make peers` leaves behind."""
    draw(record, root / "docs" / "pictures" / "peers")
    for name, text in tables(record).items():
        (root / "docs" / "tables" / f"{name}.csv").write_text(text, encoding="utf-8")
    readme = root / "README.md"
    block = re.compile(re.escape(MARKS[0]) + ".*?" + re.escape(MARKS[1]), re.DOTALL)
    text = readme.read_text(encoding="utf-8")
    readme.write_text(block.sub(lambda _: short_table(record), text), encoding="utf-8")
    pages.record("peers", "make peers", figures(record))


def tables(record: Record) -> dict[str, str]:
    """The files of docs/tables, by their names."""
    return {
        "peers": complete_table(record),
        "peers_methods": summary(record),
        "peers_better": better(record),
        "peers_problems": by_problem(record),
        "peers_libraries": libraries(record),
    }


# --------------------------------------------------------------------------------------------------- what is compared


def best_loss(record: Record, problem: Problem) -> float:
    return min(row.log_loss for row in record.at(problem).values())


def fewer_than_rows(problem: Problem) -> bool:
    return problem.k < problem.rows


def losses_to_peers(record: Record, ours: str) -> Iterator[tuple[Row, Row]]:
    """Rows where a peer's l_1 is lower than that of one of our methods: (ours, the best peer's)."""
    for problem in record.problems():
        rows = record.at(problem)
        peers = [rows[name] for name in PEERS if name in rows and not rows[name].error]
        if peers and ours in rows:
            best = min(peers, key=lambda row: row.log_loss)
            if best.log_loss < rows[ours].log_loss - EQUAL:
                yield rows[ours], best


def faster_equals(record: Record) -> Iterator[tuple[Row, Row]]:
    """Rows where a peer is as good as our exchange and more than twice as fast: (ours, the fastest such peer's)."""
    for problem in record.problems():
        rows = record.at(problem)
        ours = rows.get("exchange")
        if ours is None or ours.error:
            continue
        equals = [
            rows[name]
            for name in PEERS
            if name in rows and not rows[name].error and rows[name].log_loss <= ours.log_loss + EQUAL
        ]
        if equals:
            fastest = min(equals, key=lambda row: row.seconds)
            if 2 * fastest.seconds < ours.seconds:
                yield ours, fastest


def excess(record: Record, method: str, scaling: str) -> list[float]:
    """How many times the best l_1 known a method's is, problem by problem, where it gave an answer."""
    found = []
    for problem in record.problems():
        row = record.at(problem).get(method)
        if problem.scaling == scaling and row is not None and not row.error:
            found.append(math.exp(min(row.log_loss - best_loss(record, problem), 700)))
    return found


# ------------------------------------------------------------------------------------------------------------ the page


def figures(record: Record) -> dict[str, str]:
    """What sentences say about the record."""
    machine, problems = record.environment, record.problems()
    exact = [row for row in record.rows if row.method == "exact"]
    small = [row for row in exact if row.k <= SMALL]
    return {
        "problems": f"{len(problems)}",
        "fewer": f"{sum(map(fewer_than_rows, problems))}",
        "rows": f"{max(problem.rows for problem in problems):,}",
        "columns": f"{max(problem.P for problem in problems):,}",
        "proved": f"{sum(row.proof == 'optimal' for row in exact)}",
        "proved_small": f"{sum(row.proof == 'optimal' for row in small)}",
        "small": f"{len(small)}",
        "machine": f"{machine['cpu']}, {machine['cores']} cores, {machine['jobs']} libraries at a time with one core "
        f"each; Python {machine['python']}, {machine['date']}, load at the start {machine['load']:.1f}",
    }


def summary(record: Record) -> str:
    """A row for each method."""
    cells = []
    for method in METHODS:
        rows = [row for row in record.rows if row.method == method]
        answered = [row for row in rows if not row.error]
        if not rows:
            continue
        line = [f"**{method}**" if method in OURS else method, METHODS[method].library]
        for scaling in ("raw", "unit"):
            ratios = excess(record, method, scaling)
            line += [ratio(float(np.median(ratios))), ratio(max(ratios))] if ratios else ["", ""]
        line.append(f"{best_on(record, method)} of {len(rows)}")
        if answered:
            line += [number(float(np.median([row.seconds for row in answered])))]
            line += [f"{np.median([row.peak_mb for row in answered]):.0f}"]
        else:
            line += ["", ""]
        line.append(
            {"exact": "yes", "exchange": "where easy", "two-stage": "among what the pursuit left"}.get(method, "none")
        )
        failed = len(rows) - len(answered)
        line.append(f"{failed}" if failed else "")
        cells.append(line)
    heads = ("method", "library", "raw", "worst", "unit", "worst", "best on", "seconds", "MB", "proof", "no answer")
    return as_csv(heads, cells)


def best_on(record: Record, method: str) -> int:
    """On how many problems no other method has a lower loss."""
    rows = [row for row in record.rows if row.method == method and not row.error]
    return sum(row.log_loss <= best_loss(record, row.problem) + EQUAL for row in rows)


def better(record: Record) -> str:
    """Where a peer's loss is lower than that of one of our searches, or as low as our exchange's and faster."""
    cells = []
    for ours in ("exchange", "exact", "two-stage"):
        for one, other in losses_to_peers(record, ours):
            cells.append((name(one.problem), ours, one, other))
    worse = {problem for problem, ours, *_ in cells if ours == "exchange"}
    faster = ((name(one.problem), "exchange", one, other) for one, other in faster_equals(record))
    cells += [row for row in faster if row[0] not in worse]

    def of(row: Row) -> tuple[str, str]:
        return number(row.loss, 7), number(row.seconds, 2)

    rows = ((problem, ours, *of(one), other.method, *of(other)) for problem, ours, one, other in cells)
    return as_csv(("problem", "ours", "l_1", "s", "peer", "its l_1", "its s"), rows)


def by_problem(record: Record) -> str:
    """The best peer beside our searches, as CSV."""
    cells = []
    for problem in record.problems():
        rows = record.at(problem)
        peers = [rows[one] for one in PEERS if one in rows and not rows[one].error]
        ours, exact = rows.get("exchange"), rows.get("exact")
        if not peers or ours is None or exact is None:
            continue
        best = min(peers, key=lambda row: row.log_loss)
        least = min(best.log_loss, ours.log_loss, exact.log_loss)
        shown = [
            f"**{number(row.loss, 7)}**" if row.log_loss <= least + EQUAL else number(row.loss, 7)
            for row in (best, ours, exact)
        ]
        proof = "proved" if exact.proof == "optimal" else exact.proof
        times = [number(row.seconds) for row in (best, ours, exact)]
        cells.append((name(problem), best.method, shown[0], times[0], shown[1], times[1], shown[2], times[2], proof))
    heads = ("problem", "best peer", "l_1", "s", "exchange", "s", "exact", "s", "proof")
    return as_csv(heads, cells)


def complete_table(record: Record) -> str:
    """Every row with every column, as CSV."""
    text = StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["problem", "method", "l_1", "log-volume", "σ_min", "σ_max", "coherence", "seconds", "MB", "proof"])
    for problem in record.problems():
        found = record.at(problem)
        for method in (one for one in METHODS if one in found):
            row = found[method]
            values = (row.loss, row.log_volume, row.smallest, row.largest, row.coherence, row.seconds)
            cells = [row.error] if row.error else [*map(number, values), f"{row.peak_mb:.0f}", row.proof]
            rows.writerow([name(problem), method, *cells])
    return text.getvalue()


def libraries(record: Record) -> str:
    """Versions, import times and sizes; the installed size counts everything that pip installs, NumPy included."""
    cells = []
    for library, about in LIBRARIES.items():
        known = record.libraries.get(library, {})
        if not known:
            continue
        if "error" in known:
            cells.append((library, f"not installed: {known['error']}", about.what, "", "", "", ""))
            continue
        first = record.first_calls.get(library, {})
        cells.append(
            (
                library,
                known["version"],
                about.what,
                f"{known['import_seconds']:.2f}",
                f"{max(first.values(), default=0):.2g}",
                f"{known['own_mb']:.1f}",
                f"{known['installed_mb']:.0f}",
            )
        )
    heads = ("library", "version", "for", "import, s", "slowest first call, s", "own MB", "installed MB")
    return as_csv(heads, cells)


def short_table(record: Record) -> str:
    """README's table, between its marks."""
    cells = []
    for method, called in IN_README.items():
        answered = [row for row in record.rows if row.method == method and not row.error]
        if not answered:
            continue
        ratios = [excess(record, method, scaling) for scaling in ("raw", "unit")]
        losses = [f"{short_ratio(float(np.median(some)))} ({short_ratio(max(some))})" for some in ratios]
        seconds = number(float(np.median([row.seconds for row in answered])), 2)
        cells.append((called, *losses, f"{best_on(record, method)} of {len(record.problems())}", seconds))
    heads = ("method", "raw (worst)", "unit length (worst)", "best on", "seconds")
    return "\n".join([MARKS[0], pages.table(heads, cells), MARKS[1]])


def as_csv(heads, cells) -> str:
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows([heads, *cells])
    return text.getvalue()


def name(problem: Problem) -> str:
    return f"{problem.data} ({problem.rows} rows), {problem.k} of {problem.P:,}, {problem.scaling}"


def number(value: float, digits: int = 4) -> str:
    return "∞" if value == math.inf else f"{value:.{digits}g}"


def ratio(value: float) -> str:
    """Large ratios as a power of ten; `excess` ends at e^700."""
    if value >= 1e300:
        return "> 10^300"
    return number(value) if value < 1e6 else f"10^{math.log10(value):.0f}"


def short_ratio(value: float) -> str:
    """Three digits at most near 1, two elsewhere."""
    return ratio(float(f"{value:.{4 if value < 1.1 else 2}g}"))
