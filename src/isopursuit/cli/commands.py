"""The work of the commands: read the file, call the library, print and save the answer."""

from __future__ import annotations

import csv
import json
import shlex
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import isopursuit as ip
from isopursuit._core.clock import as_time_limit
from isopursuit._core.outputs import check_writable
from isopursuit._core.text import loss_text
from isopursuit._core.threads import on_one_blas_thread
from isopursuit.cli.arguments import Limits, Outputs, Rules, Search, Table
from isopursuit.cli.candidates import Candidates, Input
from isopursuit.cli.output import check_outputs, give, json_text, save, say, show_notes, show_table
from isopursuit.cli.watch import PursuitWatch, SearchWatch, StageWatch
from isopursuit.cli.words import on_command_line
from isopursuit.data import DATASETS
from isopursuit.errors import IsoPursuitError, ParameterError, did_you_mean
from isopursuit.loss.notes import table_notes
from isopursuit.search.incumbent import ProofFile


def select(table: Input, search: Search, rules: Rules, outputs: Outputs, report: Path | None) -> None:
    """Pick rows or columns of a table in memory, or rows of streamed files."""
    as_time_limit(search.time_limit)  # check it before any file is read
    check_outputs(table.file, output=outputs.output, report=report, proof=search.proof)
    kept = report is not None or search.proof is not None or rules.given
    streamed = table.is_streamed() or (table.is_large() and not kept)
    table = replace(table, rotated=search.proof is None)
    if table.options.correlation and search.proof is not None:
        raise ParameterError("--proof is not available with --correlation: a proof is about columns, not products.")
    target = None if search.proof is None else ProofFile(search.proof, table.reading)
    other = table.options.spearman or table.options.correlation or table.unit != "each" or rules.given
    if search.stability and (table.samples or other):
        raise ParameterError(
            "--stability resamples the rows of a table whose columns are compared by correlation. Pass --features, "
            "without --unit, --spearman, --correlation and rules for columns that are picked together."
        )
    with table.candidates(streamed=streamed, report=report, **rules.given) as candidates:
        include, exclude = candidates.chosen(search)
        together = candidates.rules(rules)
        draft = None if streamed else outputs.output
        with candidates.rows_in_errors(), SearchWatch(search.time_limit, candidates, draft) as watch:
            picked = ip.select(
                candidates.X,
                table.k,
                search.c,
                method=search.method,
                unit=table.unit,
                time_limit=search.time_limit,
                gap=search.gap,
                callback=watch,
                include=include,
                exclude=exclude,
                proof=target,
                **together,
            )
        stable = _stability(candidates, search, include, exclude) if search.stability else None
    answer = candidates.answer(picked.as_dict())
    if stable is not None:
        answer["stability"] = stable.as_dict()
    if table.samples and not streamed and not table.options.standardize:
        answer["notes"] += table_notes(picked.log_loss, picked.ideal, "--standardize")

    def final() -> str:
        watch.draft = None
        return json_text(answer)

    files: dict[Path, Callable[[], str | bytes]] = {} if outputs.output is None else {outputs.output: final}
    if report is not None:
        noted = replace(picked, notes=tuple(answer["notes"]))
        files[report] = partial(_report, noted, candidates, search, watch, stability=stable)
    give(answer, partial(_show_selection, picked, answer, stable), files, as_json=outputs.as_json)


def _stability(candidates: Candidates, search: Search, include: list[Any], exclude: list[Any]) -> ip.Stability:
    """The same selection from resampled rows of the file."""
    assert candidates.table is not None
    with StageWatch() as watch:
        return ip.stability(
            candidates.table.values, candidates.input.k, search.c, method=search.method, unit="each", center=True,
            include=include, exclude=exclude, labels=candidates.table.columns,
            time_limit=search.time_limit, gap=search.gap, resamples=search.resamples,
            callback=partial(watch, "resamples"),
        )  # fmt: skip


def check(proof: Path, data: Path) -> None:
    """Check a proof for a table, which is read as it was for the proof, or for a matrix."""
    from isopursuit.check import RefusedError, check_proof

    try:
        with proof.open("rb") as file:
            reading = json.loads(file.readline(2**26)).get("reading")
        X = np.load(data, allow_pickle=False) if reading is None else Input.of(data, reading).read().X.values
        found = on_one_blas_thread(check_proof)(proof, X)
    except IsoPursuitError:  # the table cannot be read
        raise
    except (RefusedError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ParameterError(f"The proof is refused. {error}") from None
    *claim, effort = str(found).splitlines()
    for line in claim:
        say(line)
    show_notes([effort])


def _files(outputs: Outputs, answer: dict[str, Any]) -> dict[Path, Callable[[], str | bytes]]:
    """A function for the content of each file."""
    return {} if outputs.output is None else {outputs.output: partial(json_text, answer)}


def _show_selection(picked: ip.Selection, answer: dict[str, Any], stable: ip.Stability | None) -> None:
    """Print the picked columns, the verdict, improving swaps and close losers, and how stable they are."""
    _show_choices("picked", picked, f"loss {loss_text(picked)} (ideal {picked.k}), {picked.verdict}")
    for line in (f"unit: {answer['unit']}", *map(on_command_line, picked.search.rule_lines)):
        say(line)
    if picked.pursuit is not None:
        say(f"objective of the convex stage: {picked.pursuit.certificate}")
    for line in picked.swap_lines:
        say(line)
    if stable is not None:
        for line in f"stability of {stable}".splitlines():
            say(line)
    show_notes(answer["notes"])


def _show_choices(word: str, picked: ip.Selection, title: str) -> None:
    rows = [[str(one.label), f"{one.length:.4g}", one.price_text(4), one.replacement_text] for one in picked.choices]
    show_table([word, "length", "price", "best replacement"], rows, title)


def _report(
    answer: ip.Selection | ip.Audit,
    candidates: Candidates,
    limits: Limits,
    watch: SearchWatch,
    stability: ip.Stability | None = None,
) -> str:
    from isopursuit.show._report import selection_page

    file, values = candidates.input.file, candidates.X.values
    given = "given " if isinstance(answer, ip.Audit) else ""
    options = {
        "time limit": f"{limits.time_limit:g} s",
        "gap": limits.gap if isinstance(limits, Search) else 0.0,
        "must include": ", ".join(limits.must_include or ["nothing"]),
        "must exclude": ", ".join(limits.must_exclude or ["nothing"]),
    }
    return selection_page(
        answer,
        values,
        title=f"{answer.k} {given}of {values.shape[1]} {candidates.input.kind}s of {file.name}",
        source=file,
        command=shlex.join(["isopursuit", *sys.argv[1:]]),
        history=watch.history,
        options=options,
        rows=candidates.input.samples,
        table=candidates.table,
        stability=stability,
    )


def pursue(table: Input, c: float, outputs: Outputs) -> None:
    """Solve only the convex program, for a table in memory or for streamed files."""
    check_outputs(table.file, output=outputs.output)
    streamed = table.is_streamed()
    with table.candidates(streamed=streamed) as candidates, candidates.rows_in_errors(), PursuitWatch() as watch:
        found = ip.isometry_pursuit(candidates.in_unit(), c, k=table.k, callback=watch)
    answer = candidates.answer({"c": c, **found.as_dict()})
    give(answer, partial(_show_pursuit, found, answer, table.kind), _files(outputs, answer), as_json=outputs.as_json)


def _show_pursuit(found: ip.Pursuit, answer: dict[str, Any], kind: str) -> None:
    """Print the columns with positive weight, and the certificate."""
    rows = [[str(row["label"]), f"{row['weight']:.4f}"] for row in answer["columns"]]
    show_table([kind, "weight"], rows, f"{len(rows)} of {len(found.weights)} {kind}s; {found.certificate}")
    say(f"unit: {answer['unit']}")
    if found.effort is not None:
        say(str(found.effort))
    show_notes(answer["notes"])


def audit(
    table: Table, samples: bool | None, columns: str, limits: Limits, outputs: Outputs, report: Path | None
) -> None:
    """Judge rows or columns of a table in memory, or rows of streamed files; None for `samples`: whichever match."""
    as_time_limit(limits.time_limit)  # check it before any file is read
    check_outputs(table.file, output=outputs.output, report=report)
    names = [name for line in csv.reader([columns], skipinitialspace=True) for name in line if name]
    if not names:
        raise ParameterError("--columns is empty. Name the candidates to judge, separated by commas.")
    with _candidates_to_judge(table, samples, names, report) as candidates:
        judged, (include, exclude) = candidates.judged(names), candidates.chosen(limits)
        with candidates.rows_in_errors(), SearchWatch(limits.time_limit, candidates) as watch:
            found = ip.audit(
                candidates.X,
                judged,
                limits.c,
                unit=candidates.input.unit,
                time_limit=limits.time_limit,
                callback=watch,
                include=include,
                exclude=exclude,
            )
    answer = candidates.answer(found.as_dict())
    files = _files(outputs, answer)
    if report is not None:
        files[report] = partial(_report, found, candidates, limits, watch)
    give(answer, partial(_show_audit, found, answer), files, as_json=outputs.as_json)


@contextmanager
def _candidates_to_judge(
    table: Table, samples: bool | None, names: list[str], report: Path | None
) -> Generator[Candidates]:
    """The table's columns, if the caller asks for them or names one; else its rows.

    A misspelled column counts as a column, unless another name is that of a row.
    """
    rows, columns = Input(table, True, 1), Input(table, False, 1)
    if samples is not False and rows.is_streamed():
        with rows.candidates(streamed=True, report=report) as found:
            yield found
        return
    if samples or (samples is None and all(name.isdecimal() for name in names)):
        found = rows.read()
    else:
        found = columns.read()
        if samples is None and not found.names.keys() & set(names):
            others, misspelled = rows.read(), any(did_you_mean(name, found.names) for name in names)
            found = found if misspelled and not others.names.keys() & set(names) else others
    yield replace(found, input=replace(found.input, k=len(names)))


def _show_audit(found: ip.Audit, answer: dict[str, Any]) -> None:
    """Print the given columns, the verdict, the best swap and the best subset found."""
    _show_choices("given", found, f"loss {loss_text(found)} (ideal {found.k}), {found.verdict}")
    say(f"unit: {answer['unit']}")
    say(f"no subset has a loss below {loss_text(found.lower_bound)}")
    say(f"best single swap: {'none' if found.swap is None else found.swap}")
    best = ", ".join(map(str, found.best_labels))
    say(f"best found: loss {loss_text(found.best)}, {found.best.verdict}: {best}")
    show_notes(answer["notes"])


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
