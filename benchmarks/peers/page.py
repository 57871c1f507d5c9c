"""The verdict, from the record alone: docs/peers.md, its complete table, the pictures, and the README's table."""

import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from .figures import draw
from .methods import ANYTIME, LIBRARIES, METHODS, OURS, PATIENT
from .problems import Problem
from .record import Record, Row

EQUAL = 1e-6  # losses this close, relatively, count as equal
MARKS = "<!-- peers: written by `make peers` -->", "<!-- /peers -->"
PEERS = tuple(name for name in METHODS if name not in OURS)


def write_page(record: Record, root: Path) -> None:
    """Everything that `make peers` leaves behind."""
    draw(record, root / "docs" / "peers")
    (root / "docs" / "peers.md").write_text(page(record), encoding="utf-8")
    (root / "docs" / "peers" / "table.md").write_text(complete_table(record), encoding="utf-8")
    readme = root / "README.md"
    text = readme.read_text(encoding="utf-8")
    block = re.compile(re.escape(MARKS[0]) + ".*?" + re.escape(MARKS[1]), re.DOTALL)
    readme.write_text(block.sub(lambda _: readme_table(record), text), encoding="utf-8")


# --------------------------------------------------------------------------------------------------- what is compared


def best_loss(record: Record, problem: Problem) -> float:
    return min(row.log_loss for row in record.at(problem).values())


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
    """The verdict in Markdown."""
    machine = record.environment
    problems = record.problems()
    proved = [row for row in record.rows if row.method == "exact" and row.proof == "optimal"]
    small = [row for row in record.rows if row.method == "exact" and row.k <= 10]
    parts = [
        "# Beside the peers",
        f"Written by `make peers` from benchmarks/recorded/peers.jsonl, {len(record.rows):,} rows. "
        f"{machine['cpu']}, {machine['cores']} cores, {machine['jobs']} libraries at a time with one core each; Python "
        f"{machine['python']}, {machine['date']}; load at the start {machine['load']:.1f}"
        + (f"; {record.minutes:.0f} minutes." if record.minutes else "."),
        "## What is compared",
        f"A problem is a matrix of k rows and P columns, of which everybody picks k: {len(problems)} problems from Iris, "
        "Wine, breast cancer, digits, one frame of ethanol's torsions, 61 words on seven axes, and the 30,522 token "
        "vectors of all-MiniLM-L6-v2. Where a data set has more than k rows its columns are given to everybody by their "
        "coordinates in the leading k-dimensional row space, as `select(X, k)` does by itself. *Raw* columns have the "
        "data's own lengths (standardized features; breast cancer, digits and tokens divided by their median length), "
        "*unit* columns have length 1, so that nobody is handicapped by lengths it ignores.",
        "One judge for all: l_1 of the k × k matrix of the picked columns, with its log-volume, extreme singular values "
        "and worst coherence (largest |cosine| of a pair). l_1 = k is an orthonormal set; it is isopursuit's objective "
        "and nobody else's, so the other columns are there for those who want something else: by volume maxvol wins, "
        "where it does, in the same table.",
        "Each peer is called as its documentation says, for diversity alone (no relevance), on one core, warm; random "
        "ones five times, the median counts. The convex solvers (lasso at small λ, CVXPY) solve the paper's program and get "
        f"*our* second stage on the columns they leave, so their rows compare solvers. A peer may take {10:g} s, then "
        f"it is stopped and not asked for larger problems of that data; our own searches are told to stop after {ANYTIME:g} "
        f"s, the exact one after {PATIENT:g} s where k ≤ 10.",
        "## Verdict",
        *verdict(record, len(proved), small),
        "## By method",
        "How many times the best l_1 known, median over the problems and worst; on how many of them the best; seconds and "
        "peak memory of the process, medians.",
        summary(record),
        "![quality against time](peers/time.svg)",
        "*Median over all problems that a method answered.*",
        "![quality against k](peers/k.svg)",
        "![time against the number of columns](peers/columns.svg)",
        "## By problem",
        "The best peer, beside our exchange and exact search; bold where one is better than the other by more than a "
        "relative 1e-6.",
        by_problem(record),
        "All rows with all columns are in [peers/table.md](peers/table.md).",
        "## By library",
        libraries(record),
        "Installed size counts what pip brings along, NumPy included. A first call compiles where there is a just-in-time "
        "compiler (skglm once, apricot at every call).",
        *missing(record),
    ]
    return "\n\n".join(parts) + "\n"


def verdict(record: Record, proved: int, small: list[Row]) -> list[str]:
    parts = []
    for ours in ("exchange", "exact"):
        lost = list(losses_to_peers(record, ours))
        total = sum(row.method == ours for row in record.rows)
        if lost:
            parts.append(f"On {len(lost)} of {total} problems a peer's l_1 is lower than that of our {ours} search:")
            parts.append(
                table(
                    ("problem", f"{ours}", "peer", "its l_1"),
                    ((name(a.problem), number(a.loss), b.method, number(b.loss)) for a, b in lost),
                )
            )
        else:
            parts.append(f"On none of {total} problems is a peer's l_1 lower than that of our {ours} search.")
    unproved = [row for row in small if row.proof != "optimal"]
    told = ", ".join(f"{name(row.problem)} ({row.proof})" for row in unproved)
    parts.append(
        f"The exact search proved {proved} of its answers optimal. Where k ≤ 10 it proved {len(small) - len(unproved)} of "
        f"{len(small)}" + (f"; not {told}." if unproved else ".") + " No peer proves anything about l_1."
    )
    fast = list(faster_equals(record))
    if fast:
        parts.append(f"On {len(fast)} problems a peer gave as low an l_1 as our exchange and was more than twice as fast:")
        parts.append(
            table(
                ("problem", "l_1", "exchange, s", "peer", "its time, s"),
                ((name(a.problem), number(a.loss), number(a.seconds), b.method, number(b.seconds)) for a, b in fast),
            )
        )
        parts.append(
            "The exchange search does not stop at a good answer, because nothing tells it that an answer is good: it kicks "
            "150 times, tries pairs and recombines before it gives up. `exchange_search(X, starts=2, kicks=0)` descends "
            "from the greedy and the pivoted-QR answers alone. A convex solver with our second stage is as good where its "
            "support happens to hold the best subset; our own two-stage is the one to compare it with."
        )
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
            line += [number(float(np.median(ratios))), number(max(ratios))] if ratios else ["", ""]
        best = sum(row.log_loss <= best_loss(record, row.problem) + EQUAL for row in answered)
        line.append(f"{best} of {len(rows)}")
        if answered:
            line += [number(float(np.median([row.seconds for row in answered])))]
            line += [f"{np.median([row.peak_mb for row in answered]):.0f}"]
        else:
            line += ["", ""]
        line.append({"exact": "yes", "two-stage": "among what the pursuit left"}.get(method, "none"))
        failed = len(rows) - len(answered)
        line.append(f"{failed}" if failed else "")
        cells.append(line)
    heads = ("method", "library", "raw", "worst", "unit", "worst", "best on", "seconds", "MB", "proof", "no answer")
    return table(heads, cells)


def by_problem(record: Record) -> str:
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
    return table(heads, cells)


def complete_table(record: Record) -> str:
    """Every row with every column."""
    heads = ("method", "l_1", "log-volume", "σ min", "σ max", "coherence", "seconds", "MB", "proof")
    parts = ["# Beside the peers: every row", "Written by `make peers`; see [the page](../peers.md)."]
    for problem in record.problems():
        rows = record.at(problem)
        cells = []
        for method in (one for one in METHODS if one in rows):
            row = rows[method]
            if row.error:
                cells.append((method, row.error, *[""] * 7))
                continue
            values = (row.loss, row.log_volume, row.smallest, row.largest, row.coherence, row.seconds)
            cells.append((method, *map(number, values), f"{row.peak_mb:.0f}", row.proof))
        parts += [f"## {name(problem)}", table(heads, cells)]
    return "\n\n".join(parts) + "\n"


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


def missing(record: Record) -> list[str]:
    broken = {library: known["error"] for library, known in record.libraries.items() if "error" in known}
    if not broken:
        return ["Every peer installed on this Python."]
    lines = [f"- {library}: {reason}" for library, reason in broken.items()]
    return ["Not installed, with pip's reason:", "\n".join(lines)]


def readme_table(record: Record) -> str:
    """The README's short table, between its marks."""
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
                number(float(np.median([row.seconds for row in answered]))),
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
    return f"{problem.data}, {problem.k} × {problem.P:,}, {problem.scaling}"


def number(value: float, digits: int = 4) -> str:
    return "∞" if value == math.inf else f"{value:.{digits}g}"
