"""The commands: each reads the file, calls the library, and prints and saves the answer.

What takes long to import is imported when a command runs, to keep `--help` and `--version` fast.
"""

from __future__ import annotations

import csv
import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import isopursuit as ip
from isopursuit._core.atomic import check_writable
from isopursuit._core.clock import as_time_limit
from isopursuit._core.text import loss_text
from isopursuit._core.threads import on_one_blas_thread
from isopursuit.cli import coordinates as trajectories
from isopursuit.cli.arguments import (
    Exponent,
    JudgedTable,
    Limits,
    Outputs,
    ReportFile,
    Rules,
    Samples,
    Search,
    Size,
    Table,
    app,
    command,
)
from isopursuit.cli.output import check_outputs, give, json_text, save, say, show_notes, show_table
from isopursuit.cli.watch import PursuitWatch, SearchWatch, StageWatch
from isopursuit.cli.words import on_command_line
from isopursuit.errors import IsoPursuitError, ParameterError, did_you_mean

if TYPE_CHECKING:
    from isopursuit.cli.candidates import Candidates

DEFAULT: Any = None  # `command` makes these arguments from the options


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    """Pick a few rows or columns of a table that are as orthonormal as possible, with a proof."""
    if version:
        say(ip.__version__)
        raise typer.Exit


@command
def select(
    samples: Samples = True,
    k: Size = None,
    options: Table = DEFAULT,
    search: Search = DEFAULT,
    rules: Rules = DEFAULT,
    outputs: Outputs = DEFAULT,
    report: ReportFile = None,
) -> None:
    """Pick rows (or columns) that are as orthonormal as possible, and report their loss and what is proved about it."""
    from isopursuit.cli.candidates import Input
    from isopursuit.loss.notes import table_notes
    from isopursuit.search.incumbent import ProofFile

    as_time_limit(search.time_limit)  # check it before any file is read
    check_outputs(options.file, output=outputs.output, report=report, proof=search.proof)
    table = Input(options, samples and not options.correlation, k, bool(rules.given), rotated=search.proof is None)
    if options.correlation and search.proof is not None:
        raise ParameterError("--proof is not available with --correlation: a proof is about columns, not products.")
    target = None if search.proof is None else ProofFile(search.proof, table.reading)
    other = options.spearman or options.correlation or table.unit != "each" or rules.given
    if search.stability and (table.samples or other):
        raise ParameterError(
            "--stability resamples the rows of a table whose columns are compared by correlation. Pass --features, "
            "without --unit, --spearman, --correlation and rules for columns that are picked together."
        )
    candidates = table.read()
    include, exclude = candidates.chosen(search)
    together = candidates.rules(rules)
    with candidates.rows_in_errors(), SearchWatch(search.time_limit, candidates, outputs.output) as watch:
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
    stable = _stability(candidates, picked, search, include, exclude) if search.stability else None
    answer = candidates.answer(picked.as_dict())
    if stable is not None:
        answer["stability"] = stable.as_dict()
    if table.samples and not options.standardize:
        answer["notes"] += table_notes(picked.log_loss, picked.ideal, "--standardize")

    def final() -> str:
        watch.draft = None
        return json_text(answer)

    files: dict[Path, Callable[[], str | bytes]] = {} if outputs.output is None else {outputs.output: final}
    if report is not None:
        noted = replace(picked, notes=tuple(answer["notes"]))
        files[report] = partial(_report, noted, candidates, search, watch, stability=stable)
    give(answer, partial(_show_selection, picked, answer, stable), files, as_json=outputs.as_json)


def _stability(
    candidates: Candidates, picked: ip.Selection, search: Search, include: list[Any], exclude: list[Any]
) -> ip.Stability:
    """The same selection from resampled rows of the file."""
    with StageWatch() as watch:
        found = ip.stability(
            candidates.table.values, candidates.input.k, search.c, method=search.method, unit="each", center=True,
            include=include, exclude=exclude, labels=candidates.table.columns,
            time_limit=search.time_limit, gap=search.gap, resamples=search.resamples,
            callback=partial(watch, "resamples"),
        )  # fmt: skip
        return replace(found, search=picked.search)  # not another of several good answers


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


def _files(outputs: Outputs, answer: dict[str, Any]) -> dict[Path, Callable[[], str | bytes]]:
    """A function for the content of each file."""
    return {} if outputs.output is None else {outputs.output: partial(json_text, answer)}


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


@command
def pursue(
    samples: Samples = True, k: Size = None, c: Exponent = 1.0, options: Table = DEFAULT, outputs: Outputs = DEFAULT
) -> None:
    """Solve the convex program only: list the rows (or columns) it keeps, with a certificate."""
    from isopursuit.cli.candidates import Input
    from isopursuit.data._matrix import in_unit

    check_outputs(options.file, output=outputs.output)
    table = Input(options, samples and not options.correlation, k)
    candidates = table.read()
    with candidates.rows_in_errors(), PursuitWatch() as watch:
        found = ip.isometry_pursuit(in_unit([candidates.X], table.unit)[0], c, k=table.k, callback=watch)
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


@command
def audit(
    columns: Annotated[
        str, typer.Option("--columns", help="Candidates to judge, separated by commas: labels, or numbers from 0.")
    ],
    samples: Annotated[bool, typer.Option("--samples/--features", help="Judge rows, or columns.")] = True,
    options: JudgedTable = DEFAULT,
    limits: Limits = DEFAULT,
    outputs: Outputs = DEFAULT,
    report: ReportFile = None,
) -> None:
    """Judge rows (or columns) that you name: their loss, a proved bound, the best swap and the best subset found."""
    from isopursuit.cli.candidates import Input

    as_time_limit(limits.time_limit)  # check it before any file is read
    check_outputs(options.file, output=outputs.output, report=report)
    names = [name for line in csv.reader([columns], skipinitialspace=True) for name in line if name]
    if not names:
        raise ParameterError("--columns is empty. Name the candidates to judge, separated by commas.")
    table = Input(options, samples and not options.correlation, k=1)
    candidates = table.read()
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


def _show_audit(found: ip.Audit, answer: dict[str, Any]) -> None:
    """Print the given columns, the verdict, the best swap and the best subset found."""
    _show_choices("given", found, f"loss {loss_text(found)} (ideal {found.k}), {found.verdict}")
    say(f"unit: {answer['unit']}")
    say(f"no subset has a loss below {loss_text(found.lower_bound)}")
    say(f"best single swap: {'none' if found.swap is None else found.swap}")
    best = ", ".join(map(str, found.best_labels))
    say(f"best found: loss {loss_text(found.best)}, {found.best.verdict}: {best}")
    show_notes(answer["notes"])


@command
def check(
    proof: Annotated[Path, typer.Argument(help="The proof file.", show_default=False)],
    data: Annotated[
        Path,
        typer.Argument(
            help="The table, which is read as it was for the proof, or the matrix (.npy).", show_default=False
        ),
    ],
) -> None:
    """Check a proof that `select --proof` wrote. Exit status 0 means that its claim holds for these data."""
    import numpy as np

    from isopursuit.check import RefusedError, check_proof
    from isopursuit.cli.candidates import Input

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


@command
def coordinates(options: trajectories.Options, files: trajectories.Files = DEFAULT, outputs: Outputs = DEFAULT) -> None:
    """Pick torsions that are coordinates of a molecule's motion, from a trajectory."""
    trajectories.coordinates(options, files, outputs)


@command
def datasets(
    name: Annotated[str | None, typer.Argument(help="The data set to write.", show_default=False)] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The .csv file to write it to.")] = None,
) -> None:
    """List the data sets that come with the package, or write one as a CSV file."""
    from isopursuit.data import DATASETS

    if name is None:
        for load in DATASETS.values():
            data = load()
            say(f"{data.name}: {len(data.values)} samples, {len(data.features)} features")
        say("Write one with: isopursuit datasets wine --output wine.csv")
        return
    if name not in DATASETS:
        hint = did_you_mean(name, DATASETS) or f"Use {' or '.join(map(repr, DATASETS))}."
        raise ParameterError(f"There is no data set {name!r}. {hint}")
    target = output or Path(f"{name}.csv")
    check_writable(target, "--output")
    save({target: DATASETS[name]().as_csv})
