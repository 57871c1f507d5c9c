"""The work of the commands: read the file, call the library, print and save the answer."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import isopursuit as ip
from isopursuit._core.clock import as_time_limit
from isopursuit._core.outputs import check_writable
from isopursuit._core.text import loss_text
from isopursuit._core.types import Method
from isopursuit.cli.inputs import Candidates, Input, row_numbers
from isopursuit.cli.output import check_outputs, give, json_text, save, say, show_notes, show_table
from isopursuit.cli.progress import Draft, PursuitWatch, SearchWatch
from isopursuit.cli.words import of_rows, on_command_line
from isopursuit.data import DATASETS
from isopursuit.data._matrix import in_unit
from isopursuit.errors import ParameterError, did_you_mean
from isopursuit.loss.lengths import table_notes
from isopursuit_command import interrupts


@dataclass(frozen=True)
class SearchOptions:
    """How to search; the fields are the options of the same names."""

    c: float
    method: Method
    include: list[str]
    exclude: list[str]
    time_limit: float
    gap: float


@dataclass(frozen=True)
class Outputs:
    """Where the answer goes: to the terminal (as a table or as JSON) and to files."""

    as_json: bool = False
    output: Path | None = None
    report: Path | None = None
    plot: Path | None = None


# ---------------------------------------------------------------------------------------------------- select


def select(table: Input, search: SearchOptions, outputs: Outputs) -> None:
    """Pick rows or columns of a table in memory, or rows of streamed files."""
    as_time_limit(search.time_limit)  # check it before any file is read
    check_outputs(table.file, output=outputs.output, report=outputs.report, plot=outputs.plot)
    streamed = table.is_streamed() or (table.is_large() and outputs.report is None)
    (_select_streamed if streamed else _select_in_memory)(table, search, outputs)


def _select_streamed(table: Input, search: SearchOptions, outputs: Outputs) -> None:
    with table.stream(report=outputs.report) as source, SearchWatch(search.time_limit, None) as watch:
        picked = ip.select(
            source,
            table.k,
            search.c,
            method=search.method,
            unit=table.unit,
            include=row_numbers(search.include, "--must-include"),
            exclude=row_numbers(search.exclude, "--must-exclude"),
            time_limit=search.time_limit,
            gap=search.gap,
            callback=watch,
        )
    _give_selection(picked, _about_rows(table, picked.as_dict()), outputs)


def _about_rows(table: Input, result: dict[str, Any]) -> dict[str, Any]:
    """A result on streamed files, in the words of the command line."""
    notes = [of_rows(on_command_line(note)) for note in result["notes"]]
    return {**table.origin, **result, "notes": notes, "unit": of_rows(result["unit"])}


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
            unit=table.unit,
            include=include,
            exclude=exclude,
            time_limit=search.time_limit,
            gap=search.gap,
            callback=watch,
        )
    answer = candidates.answer(picked.as_dict())
    if table.samples and not table.standardize:
        answer["notes"] += table_notes(picked.log_loss, picked.ideal, "--standardize")
    report = partial(_report, replace(picked, notes=tuple(answer["notes"])), candidates, search, watch)
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
    give(answer, partial(_show_selection, picked, answer), files, as_json=outputs.as_json)


def _show_selection(picked: ip.Selection, answer: dict[str, Any]) -> None:
    """Print the picked columns, the verdict, improving swaps and close losers."""
    rows = [[str(one.label), f"{one.length:.4g}", one.price_text(4), one.replacement_text] for one in picked.choices]
    title = f"loss {loss_text(picked)} (ideal {picked.k}), {picked.verdict}"
    show_table(["picked", "length", "price", "best replacement"], rows, title)
    say(f"unit: {answer['unit']}")
    if picked.pursuit is not None:
        say(f"objective of the convex stage: {picked.pursuit.certificate}")
    for line in picked.swap_lines:
        say(line)
    show_notes(answer["notes"])


def _picture(picked: ip.Selection, kind: str) -> bytes:
    """Inner products and singular values of the picked columns."""
    from matplotlib.figure import Figure

    from isopursuit.show import plot_gram, plot_singular_values
    from isopursuit.show._style import rendered

    figure = Figure(figsize=(13, 5.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_gram(picked, ax=left)
    plot_singular_values(picked, ax=right)
    return rendered(figure, kind, dpi=120)


def _report(
    answer: ip.Selection | ip.Audit,
    candidates: Candidates,
    search: SearchOptions,
    watch: SearchWatch,
) -> str:
    import shlex
    import sys

    from isopursuit.show._report import selection_page

    file, values = candidates.input.file, candidates.matrix.values
    given = "given " if isinstance(answer, ip.Audit) else ""
    options = {
        "time limit": f"{search.time_limit:g} s",
        "gap": search.gap,
        "must include": ", ".join(search.include or ["nothing"]),
        "must exclude": ", ".join(search.exclude or ["nothing"]),
    }
    return selection_page(
        answer,
        values,
        title=f"{answer.k} {given}of {values.shape[1]} {candidates.kind}s of {file.name}",
        source=file,
        command=shlex.join(["isopursuit", *sys.argv[1:]]),
        history=watch.history,
        options=options,
        rows=candidates.input.samples,
        table=candidates.table,
    )


# ---------------------------------------------------------------------------------------------------- pursue


def pursue(table: Input, c: float, outputs: Outputs) -> None:
    """Solve only the convex program, for a table in memory or for streamed files."""
    check_outputs(table.file, output=outputs.output)
    if table.is_streamed():
        with replace(table, k=None).stream() as source, interrupts.polled(), PursuitWatch() as watch:
            columns = ip.as_source(source, unit=table.unit)
            found = ip.isometry_pursuit(columns, c, k=table.k, callback=watch)
        answer = {**table.origin, "c": c, **found.as_dict(), "unit": of_rows(str(columns.unit_length))}
    else:
        candidates = table.read()
        given = replace(candidates.matrix, notes=())
        with candidates.rows_in_errors(), interrupts.polled(), PursuitWatch() as watch:
            given = in_unit([given], table.unit)[0]
            found = ip.isometry_pursuit(given, c, k=table.k, callback=watch)
        answer = candidates.answer({"c": c, **found.as_dict(), "unit": str(given.unit_length)})
    files = {} if outputs.output is None else {outputs.output: partial(json_text, answer)}
    give(answer, partial(_show_pursuit, found, answer), files, as_json=outputs.as_json)


def _show_pursuit(found: ip.Pursuit, answer: dict[str, Any]) -> None:
    """Print the columns with positive weight, and the certificate."""
    kind = "row" if answer["picks"] == "samples" else "column"
    rows = [[str(row["label"]), f"{row['weight']:.4f}"] for row in answer["columns"]]
    show_table([kind, "weight"], rows, f"{len(rows)} of {len(found.weights)} {kind}s; {found.certificate}")
    say(f"unit: {answer['unit']}")
    if found.effort is not None:
        say(str(found.effort))
    show_notes(answer["notes"])


# ----------------------------------------------------------------------------------------------------- audit


def audit(table: Input, columns: str, search: SearchOptions, outputs: Outputs, *, guess: bool = False) -> None:
    """Judge rows or columns of a table in memory, or rows of streamed files; `guess`: infer from the names which."""
    as_time_limit(search.time_limit)  # check it before any file is read
    check_outputs(table.file, output=outputs.output, report=outputs.report)
    names = [name for line in csv.reader([columns], skipinitialspace=True) for name in line if name]
    if not names:
        raise ParameterError("--columns is empty. Name the candidates to judge, separated by commas.")
    (_audit_streamed if table.is_streamed() else partial(_audit_in_memory, guess=guess))(table, names, search, outputs)


def _audit_streamed(table: Input, names: list[str], search: SearchOptions, outputs: Outputs) -> None:
    with table.stream(report=outputs.report) as source, SearchWatch(search.time_limit, None) as watch:
        found = ip.audit(
            source,
            row_numbers(names, "--columns"),
            search.c,
            unit=table.unit,
            include=row_numbers(search.include, "--must-include"),
            exclude=row_numbers(search.exclude, "--must-exclude"),
            time_limit=search.time_limit,
            callback=watch,
        )
    _give_audit(found, _about_rows(table, found.as_dict()), outputs)


def _audit_in_memory(
    table: Input, names: list[str], search: SearchOptions, outputs: Outputs, *, guess: bool = False
) -> None:
    candidates = _named_candidates(table, names, guess)
    judged = candidates.judged(names)
    include, exclude = candidates.labels(search.include, search.exclude)
    with candidates.rows_in_errors(), SearchWatch(search.time_limit, candidates.matrix.labels) as watch:
        found = ip.audit(
            in_unit([replace(candidates.matrix, notes=())], candidates.input.unit)[0],
            judged,
            search.c,
            include=include,
            exclude=exclude,
            time_limit=search.time_limit,
            callback=watch,
        )
    report = partial(_report, found, candidates, search, watch)
    _give_audit(found, candidates.answer(found.as_dict()), outputs, report)


def _named_candidates(table: Input, names: list[str], guess: bool) -> Candidates:
    """The table's columns, if the caller asks for them or names one; else its rows.

    A misspelled column counts as a column, unless another name is that of a row.
    """
    if table.samples and (not guess or all(name.isdecimal() for name in names)):
        found = table.read()
    else:
        found = replace(table, samples=False, k=1).read()
        if table.samples and not found.names.intersection(names):
            rows, misspelled = table.read(), any(did_you_mean(name, found.names) for name in names)
            found = found if misspelled and not rows.names.intersection(names) else rows
    return replace(found, input=replace(found.input, k=len(names)))


def _give_audit(
    found: ip.Audit, answer: dict[str, Any], outputs: Outputs, report: Callable[[], str] | None = None
) -> None:
    files: dict[Path, Callable[[], str | bytes]] = {}
    if outputs.output is not None:
        files[outputs.output] = partial(json_text, answer)
    if outputs.report is not None and report is not None:
        files[outputs.report] = report
    give(answer, partial(_show_audit, found, answer["unit"], answer["notes"]), files, as_json=outputs.as_json)


def _show_audit(found: ip.Audit, unit: str, notes: list[str]) -> None:
    """Print the given columns, the verdict, the best swap and the best subset found."""
    given = found.given.choices
    rows = [[str(one.label), f"{one.length:.4g}", one.price_text(4), one.replacement_text] for one in given]
    title = f"loss {loss_text(found)} (ideal {found.k}), {found.verdict}"
    show_table(["given", "length", "price", "best replacement"], rows, title)
    say(f"unit: {unit}")
    say(f"no subset has a loss below {loss_text(found.lower_bound)}")
    say(f"best single swap: {'none' if found.swap is None else found.swap}")
    best = ", ".join(map(str, found.best_labels))
    say(f"best found: loss {loss_text(found.best)}, {found.best.verdict}: {best}")
    show_notes(notes)


# -------------------------------------------------------------------------------------------------- datasets


def list_datasets() -> None:
    """List the data sets that come with the package."""
    for load in DATASETS.values():
        data = load()
        say(f"{data.name}: {len(data.values)} samples, {len(data.features)} features")
    say("Write one with: isopursuit datasets wine --output wine.csv")


def write_dataset(name: str, target: Path) -> None:
    """Write a data set as a CSV file."""
    if name not in DATASETS:
        hint = did_you_mean(name, DATASETS) or f"Use {' or '.join(map(repr, DATASETS))}."
        raise ParameterError(f"There is no data set {name!r}. {hint}")
    check_writable(target, "--output")
    save({target: DATASETS[name]().as_csv})
