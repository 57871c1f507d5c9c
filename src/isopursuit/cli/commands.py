"""What the commands do: read, compute with the library, give the answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import isopursuit as ip
from isopursuit._types import Method
from isopursuit.cli.inputs import Candidates, Input, row_numbers
from isopursuit.cli.output import check_outputs, give, json_text, save, say, show_notes, show_table
from isopursuit.cli.progress import Draft, PursuitWatch, SearchWatch
from isopursuit.clock import as_time_limit
from isopursuit.datasets import DATASETS
from isopursuit.errors import ParameterError, printable
from isopursuit.outputs import check_writable
from isopursuit.results import loss_text
from isopursuit_command import interrupts

COMPARED: tuple[Method, ...] = ("greedy", "two-stage", "exchange", "exact")
FAR_FROM_IDEAL = 100  # a loss above this multiple of the ideal one gets a note about the lengths (a guess)


@dataclass(frozen=True)
class SearchOptions:
    """How to search, as the options of the same names say."""

    c: float
    method: Method
    include: list[str]
    exclude: list[str]
    time_limit: float
    gap: float


@dataclass(frozen=True)
class Outputs:
    """Where the answer goes: to the terminal, as a table or as JSON, and to files."""

    as_json: bool = False
    output: Path | None = None
    report: Path | None = None
    plot: Path | None = None


# ---------------------------------------------------------------------------------------------------- select


def select(table: Input, search: SearchOptions, outputs: Outputs) -> None:
    """Pick rows or columns of a table in memory, or rows of files that are streamed."""
    as_time_limit(search.time_limit)  # refused before any file is read
    check_outputs(table.file, output=outputs.output, report=outputs.report, plot=outputs.plot)
    (_select_streamed if table.is_streamed() else _select_in_memory)(table, search, outputs)


def _select_streamed(table: Input, search: SearchOptions, outputs: Outputs) -> None:
    with table.stream(report=outputs.report) as source, SearchWatch(search.time_limit, None) as watch:
        picked = ip.select(
            source,
            c=search.c,
            method=search.method,
            include=row_numbers(search.include, "--must-include"),
            exclude=row_numbers(search.exclude, "--must-exclude"),
            time_limit=search.time_limit,
            gap=search.gap,
            callback=watch,
        )
    _give_selection(picked, {**table.origin, **picked.as_dict()}, outputs)


def _select_in_memory(table: Input, search: SearchOptions, outputs: Outputs) -> None:
    candidates = table.read()
    matrix = candidates.matrix
    include, exclude = candidates.labels(search.include, search.exclude)
    draft = None if outputs.output is None else Draft(outputs.output, candidates)
    with candidates.rows_in_errors(), SearchWatch(search.time_limit, matrix.labels, draft) as watch:
        picked = ip.select(
            replace(matrix, notes=()),
            table.k,
            search.c,
            method=search.method,
            include=include,
            exclude=exclude,
            time_limit=search.time_limit,
            gap=search.gap,
            callback=watch,
        )
    answer = candidates.answer(picked.as_dict())
    if not table.standardize and picked.loss > FAR_FROM_IDEAL * picked.k:
        answer["notes"].append("the loss is far from ideal because lengths are far from 1; try --standardize.")
    report = partial(_report, picked, candidates, search, watch)
    _give_selection(picked, answer, outputs, draft, report)


def _give_selection(
    picked: ip.Selection,
    answer: dict[str, Any],
    outputs: Outputs,
    draft: Draft | None = None,
    report: Callable[[], str] | None = None,
) -> None:
    def final() -> str:
        if draft is not None:
            draft.end()
        return json_text(answer)

    files: dict[Path, Callable[[], str | bytes]] = {}
    if outputs.output is not None:
        files[outputs.output] = final
    if outputs.plot is not None:
        files[outputs.plot] = partial(_picture, picked, outputs.plot.suffix.lower().removeprefix("."))
    if outputs.report is not None and report is not None:
        files[outputs.report] = report
    give(answer, partial(_show_selection, picked, answer["notes"]), files, as_json=outputs.as_json)


def _show_selection(picked: ip.Selection, notes: list[str]) -> None:
    """The table of picked columns, the verdict, the narrow losers."""
    rows = [[str(one.label), f"{one.length:.4g}", one.price_text(4), one.replacement_text] for one in picked.choices]
    title = f"loss {loss_text(picked)} (ideal {picked.k}), {picked.verdict}"
    show_table(["picked", "length", "price", "best replacement"], rows, title)
    if picked.pursuit is not None:
        say(f"the convex stage's own objective: {picked.pursuit.certificate}")
    if picked.alternatives:
        say("close losers: " + ", ".join(f"{one.label} ({loss_text(one)})" for one in picked.alternatives[:3]))
    show_notes(notes)


def _picture(picked: ip.Selection, kind: str) -> bytes:
    """Inner products and singular values of the picked columns."""
    from matplotlib.figure import Figure

    from isopursuit.plots import plot_gram, plot_singular_values
    from isopursuit.plots.axes import rendered

    figure = Figure(figsize=(13, 5.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_gram(picked, ax=left)
    plot_singular_values(picked, ax=right)
    return rendered(figure, kind, dpi=120)


def _report(picked: ip.Selection, candidates: Candidates, search: SearchOptions, watch: SearchWatch) -> str:
    import shlex
    import sys

    from isopursuit.report import report_html

    file, values = candidates.input.file, candidates.matrix.values
    return report_html(
        picked,
        values,
        title=f"{picked.k} of {values.shape[1]} {candidates.input.origin['picks']} of {file.name}",
        source=str(file),
        command=shlex.join(["isopursuit", *sys.argv[1:]]),
        history=watch.history,
        options={
            "time limit": f"{search.time_limit:g} s",
            "gap": search.gap,
            "must include": ", ".join(search.include or ["nothing"]),
            "must exclude": ", ".join(search.exclude or ["nothing"]),
        },
    )


# ---------------------------------------------------------------------------------------------------- pursue


def pursue(table: Input, c: float, state: Path | None, outputs: Outputs) -> None:
    """Solve the convex program alone, over a table in memory or over files that are streamed."""
    check_outputs(table.file, output=outputs.output, state=state)
    if table.is_streamed() or state is not None:
        with replace(table, k=None).stream() as source, interrupts.polled():
            found = ip.isometry_pursuit(source, c, k=table.k, state=state, callback=PursuitWatch())
        answer = {**table.origin, "c": c, **found.as_dict()}
    else:
        candidates = table.read()
        given = replace(candidates.matrix, notes=())
        with candidates.rows_in_errors(), interrupts.polled():
            found = ip.isometry_pursuit(given, c, k=table.k, callback=PursuitWatch())
        answer = candidates.answer({"c": c, **found.as_dict()})
    files = {} if outputs.output is None else {outputs.output: partial(json_text, answer)}
    give(answer, partial(_show_pursuit, found, answer), files, as_json=outputs.as_json)


def _show_pursuit(found: ip.Pursuit, answer: dict[str, Any]) -> None:
    """The columns with weight and the certificate."""
    kind = "row" if answer["picks"] == "samples" else "column"
    rows = [[str(row["label"]), f"{row['weight']:.4f}"] for row in answer["columns"]]
    show_table([kind, "weight"], rows, f"{len(rows)} of {len(found.weights)} {kind}s; {found.certificate}")
    if found.effort is not None:
        say(str(found.effort))
    show_notes(answer["notes"])


# --------------------------------------------------------------------------------------------------- compare


class _Compared(NamedTuple):
    picked: ip.Selection
    answer: dict[str, Any]

    @property
    def labels(self) -> str:
        return ", ".join(map(str, self.picked.labels))


def compare(table: Input, c: float, time_limit: float, as_json: bool) -> None:
    """Every method but brute force on the same table, one after the other."""
    as_time_limit(time_limit)  # refused before any file is read
    candidates = table.read()
    given = replace(candidates.matrix, notes=())
    rows: list[_Compared] = []
    for method in COMPARED:
        began = time.perf_counter()
        with candidates.rows_in_errors(), SearchWatch(time_limit, given.labels) as watch:
            interrupts.known = partial(_known, rows, method, watch)
            picked = ip.select(given, table.k, c, method=method, time_limit=time_limit, callback=watch)
        answer = candidates.answer(picked.as_dict())
        rows.append(_Compared(picked, {**answer, "seconds": time.perf_counter() - began}))
        if interrupts.status:
            break
    give([one.answer for one in rows], partial(_show_comparison, rows, candidates), {}, as_json=as_json)


def _show_comparison(rows: list[_Compared], candidates: Candidates) -> None:
    cells = [
        [one.picked.method, loss_text(one.picked), f"{one.answer['seconds']:.2f}", one.picked.verdict, one.labels]
        for one in rows
    ]
    title = f"the ideal loss is {rows[0].picked.k}"
    show_table(["method", "loss", "seconds", "proof", "picked"], cells, title)
    show_notes(candidates.matrix.notes)


def _known(rows: list[_Compared], method: Method, watch: SearchWatch) -> str:
    """What an interrupted comparison knows."""
    done = [f"{one.method}: loss {loss_text(one)}, {one.verdict}: {', '.join(map(str, one.labels))}" for one, _ in rows]
    return printable("; ".join([*done, f"{method}: {watch.known()}"]))


# -------------------------------------------------------------------------------------------------- datasets


def list_datasets() -> None:
    """Name the data sets that travel with the package."""
    for load in DATASETS.values():
        data = load()
        say(f"{data.name}: {len(data.values)} samples, {len(data.features)} features")
    say("Write one with: isopursuit datasets wine --output wine.csv")


def write_dataset(name: str, target: Path) -> None:
    """Write a data set as a CSV file."""
    if name not in DATASETS:
        raise ParameterError(f"There is no data set {name!r}. Use one of {', '.join(DATASETS)}.")
    check_writable(target, "--output")
    save({target: DATASETS[name]().as_csv})
