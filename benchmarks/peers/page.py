"""From the record alone: docs/peers.md, its complete table, the pictures, and the short table of docs/benchmarks.md."""

import csv
import math
import re
from collections.abc import Iterable, Iterator
from io import StringIO
from pathlib import Path
from string import Template

import numpy as np

from .figures import draw
from .methods import LIBRARIES, LIMIT, METHODS, OURS, SECOND_STAGE
from .problems import Problem
from .record import Record, Row

EQUAL = 1e-6  # losses this close, relatively, count as equal
MARKS = "<!-- peers: written by `make peers` -->", "<!-- /peers -->"
PEERS = tuple(name for name in METHODS if name not in OURS)


def write_page(record: Record, root: Path) -> None:
    """Everything that `make peers` leaves behind."""
    draw(record, root / "docs" / "peers")
    (root / "docs" / "peers.md").write_text(page(record), encoding="utf-8")
    (root / "docs" / "peers" / "table.csv").write_text(complete_table(record), encoding="utf-8")
    (root / "docs" / "peers" / "problems.csv").write_text(by_problem(record), encoding="utf-8")
    benchmarks = root / "docs" / "benchmarks.md"
    text = benchmarks.read_text(encoding="utf-8")
    block = re.compile(re.escape(MARKS[0]) + ".*?" + re.escape(MARKS[1]), re.DOTALL)
    benchmarks.write_text(block.sub(lambda _: short_table(record), text), encoding="utf-8")


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


def page(record: Record) -> str:
    """The verdict in Markdown: page.md, filled."""
    machine = record.environment
    took = f"; {record.minutes:.0f} minutes in all" if record.minutes else "; not finished"
    return Template(Path(__file__).with_name("page.md").read_text(encoding="utf-8")).substitute(
        rows=f"{len(record.rows):,}",
        cpu=machine["cpu"],
        cores=machine["cores"],
        jobs=machine["jobs"],
        python=machine["python"],
        date=machine["date"],
        load=f"{machine['load']:.1f}{took}",
        count=len(record.problems()),
        fewer=sum(map(fewer_than_rows, record.problems())),
        data="; ".join(dict.fromkeys(problem.data for problem in record.problems())),
        limit=f"{LIMIT:g}",
        second=f"{SECOND_STAGE:g}",
        verdict="\n\n".join(verdict(record)),
        summary=summary(record),
        libraries=libraries(record),
        missing=missing(record),
    )


def verdict(record: Record) -> list[str]:
    """Where we lose, where we prove, and who is as good and faster."""
    parts = []
    for ours in ("exchange", "exact", "two-stage"):
        lost = list(losses_to_peers(record, ours))
        asked = [row.problem for row in record.rows if row.method == ours]
        fewer, total = sum(map(fewer_than_rows, asked)), len(asked)
        if lost:
            lost_fewer = sum(fewer_than_rows(row.problem) for row, _ in lost)
            parts.append(
                f"On {len(lost)} of {total} problems, {lost_fewer} of {fewer} with k below the number of rows, a "
                f"peer's l_1 is lower than that of our {ours} search:"
            )
            cells = ((name(a.problem), number(a.loss, 7), b.method, number(b.loss, 7)) for a, b in lost)
            parts.append(table(("problem", ours, "peer", "its l_1"), cells))
        else:
            parts.append(
                f"On none of {total} problems, {fewer} of them with k below the number of rows, is a peer's l_1 lower "
                f"than that of our {ours} search."
            )
    exact = [row for row in record.rows if row.method == "exact"]
    passing = sum(row.proof == "optimal" for row in record.rows if row.method == "exchange")
    small = [row for row in exact if row.k <= 10]
    unproved = [f"{name(row.problem)} ({row.error or row.proof})" for row in small if row.proof != "optimal"]
    parts.append(
        f"The exact search proved {sum(row.proof == 'optimal' for row in exact)} of its {len(exact)} answers optimal, "
        f"and {len(small) - len(unproved)} of the {len(small)} with k ≤ 10"
        + (f"; not proved are {'; '.join(unproved)}." if unproved else ".")
        + f" The exchange search proved {passing} of its answers. No peer proves anything about l_1."
    )
    fast = list(faster_equals(record))
    if fast:
        many = "1 problem" if len(fast) == 1 else f"{len(fast)} problems"
        parts.append(f"On {many} a peer's l_1 is as low as our exchange's, in less than half the time:")
        cells = ((name(a.problem), number(a.loss, 7), number(a.seconds), b.method, number(b.seconds)) for a, b in fast)
        parts.append(table(("problem", "l_1", "exchange, s", "peer", "its time, s"), cells))
        parts.append(Path(__file__).with_name("faster.md").read_text(encoding="utf-8").strip())
    return parts


def summary(record: Record) -> str:
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
        best = sum(row.log_loss <= best_loss(record, row.problem) + EQUAL for row in answered)
        line.append(f"{best} of {len(rows)}")
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
    return table(heads, cells)


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
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows([heads, *cells])
    return text.getvalue()


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
    cells = []
    for library, about in LIBRARIES.items():
        known = record.libraries.get(library, {})
        if "error" in known or not known:
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
    return table(heads, cells)


def missing(record: Record) -> str:
    broken = {library: known["error"] for library, known in record.libraries.items() if "error" in known}
    if not broken:
        return "Every peer installed on this Python."
    lines = [f"- {library}: {reason}" for library, reason in broken.items()]
    return "\n".join(["Not installed, with pip's reason:", "", *lines])


def short_table(record: Record) -> str:
    """The short table of docs/benchmarks.md, between its marks."""
    chosen = ("exact", "exchange", "two-stage", "maxvol", "pivoted QR", "k-DPP", "DPP, greedy", "CUR", "MMR", "SCS")
    cells = []
    for method in chosen:
        answered = [row for row in record.rows if row.method == method and not row.error]
        if not answered:
            continue
        ratios = {scaling: excess(record, method, scaling) for scaling in ("raw", "unit")}
        best = sum(row.log_loss <= best_loss(record, row.problem) + EQUAL for row in answered)
        cells.append(
            (
                f"**{method}**" if method in OURS else f"{method} ({METHODS[method].library})",
                *(number(float(np.median(some))) if some else "" for some in ratios.values()),
                f"{best} of {len(record.problems())}",
                number(float(np.median([row.seconds for row in answered])), 2),
            )
        )
    heads = ("median over the problems answered", "l_1 / best, raw", "l_1 / best, unit", "best on", "seconds")
    return "\n".join([MARKS[0], table(heads, cells), MARKS[1]])


def table(heads: Iterable[str], cells: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    heads = tuple(heads)
    lines = [heads, ["---"] * len(heads), *cells]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def name(problem: Problem) -> str:
    return f"{problem.data} ({problem.rows} rows), {problem.k} of {problem.P:,}, {problem.scaling}"


def number(value: float, digits: int = 4) -> str:
    return "∞" if value == math.inf else f"{value:.{digits}g}"


def ratio(value: float) -> str:
    """Large ratios as a power of ten; `excess` ends at e^700."""
    if value >= 1e300:
        return "> 10^300"
    return number(value) if value < 1e6 else f"10^{math.log10(value):.0f}"
