"""The command line (extra `cli`): `isopursuit select FILE` and its neighbours.

What a command needs of the library and of other packages it imports itself, so that `--help` is quick.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from isopursuit.errors import IsoPursuitError, optional, printable

try:
    optional("typer", "cli", "The command line")
except IsoPursuitError as error:
    sys.exit(f"error: {error}")

import typer

from isopursuit.outputs import check_writable, write_whole
from isopursuit.terminal import (
    Countdown,
    Draft,
    PursuitWatch,
    Watch,
    as_labels,
    candidates,
    check_outputs,
    command_line,
    is_streamed,
    one_line_errors,
    refuse_for_streams,
    row_numbers,
    save_all,
    save_json,
    save_picture,
    say,
    show_notes,
    show_pursuit,
    show_selection,
    show_table,
    streamed,
    told,
    transposed,
)
from isopursuit_command import interrupts

if TYPE_CHECKING:
    from isopursuit.selection import Selection

app = typer.Typer(
    name="isopursuit",
    help="Pick a few rows or columns of a table that are as orthonormal as possible, with a proof.",
    invoke_without_command=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


Method = Literal["two-stage", "exact", "exchange", "greedy", "brute"]
File = Annotated[
    Path,
    typer.Argument(
        help="A table: .csv, .tsv, .parquet, .arrow, .npy or .npz. A pattern such as 'folder/*.parquet' is streamed.",
        show_default=False,
    ),
]
Samples = Annotated[bool, typer.Option("--samples/--features", help="Pick rows, or columns.")]
Size = Annotated[int | None, typer.Option("-k", "--size", help="How many to pick; if not given, one a dimension.")]
Exponent = Annotated[float, typer.Option("-c", "--exponent", help="The loss's exponent c; larger is stricter.")]
Columns = Annotated[str | None, typer.Option("--columns", help="Columns to use, separated by commas.")]
LabelColumn = Annotated[str | None, typer.Option("--label", help="The column that names the rows.")]
Standardize = Annotated[bool, typer.Option("--standardize", help="Mean 0 and variance 1 for every column.")]
DropMissing = Annotated[bool, typer.Option("--drop-missing", help="Leave out rows with missing cells.")]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether a text file's first line has names; if not given, found out."),
]
TimeLimit = Annotated[float, typer.Option("--time-limit", help="Seconds the search may take.")]
Scheduler = Annotated[str | None, typer.Option("--scheduler", help="A Dask scheduler; its workers read the files.")]
State = Annotated[Path | None, typer.Option("--state", help="Keep the weights of a streamed run here, to continue.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Output = Annotated[Path | None, typer.Option("-o", "--output", help="Write the answer to this .json file.")]


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    """Pick a few rows or columns of a table that are as orthonormal as possible, with a proof."""
    if version:
        import isopursuit

        typer.echo(isopursuit.__version__)
        raise typer.Exit


@app.command()
def select(
    file: File,
    samples: Samples = True,
    k: Size = None,
    c: Exponent = 1.0,
    method: Annotated[Method, typer.Option(help="How to search; 'two-stage' is the paper's.")] = "two-stage",
    columns: Columns = None,
    label: LabelColumn = None,
    standardize: Standardize = False,
    drop_missing: DropMissing = False,
    header: Header = None,
    must_include: Annotated[
        list[str] | None,
        typer.Option(help="A label, or the number of a row without one, that must be picked (repeatable)."),
    ] = None,
    must_exclude: Annotated[list[str] | None, typer.Option(help="The same, that must not be picked.")] = None,
    time_limit: TimeLimit = 60.0,
    gap: Annotated[float, typer.Option(help="Stop within this relative distance of the best.")] = 0.0,
    as_json: AsJson = False,
    output: Output = None,
    report: Annotated[Path | None, typer.Option(help="Write a self-contained HTML report.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Save a picture (.png, .svg, .pdf).")] = None,
    scheduler: Scheduler = None,
) -> None:
    """Pick rows (or columns) and say how good they are, how sure that is, and why."""
    with one_line_errors():
        import isopursuit as ip
        from isopursuit.matrix import as_time_limit

        as_time_limit(time_limit)  # refused before any file is read

        check_outputs(file, output=output, report=report, plot=plot)
        if is_streamed(file, scheduler):
            refuse_for_streams(
                {
                    "--features": not samples,
                    "--columns": columns,
                    "--label": label,
                    "--drop-missing": drop_missing,
                    "--header": header is not None,
                    "--report": report,
                }
            )
            with streamed(file, standardize, k, scheduler) as source, Watch(time_limit, None) as watch:
                picked = ip.select(
                    source,
                    c=c,
                    method=method,
                    include=row_numbers(must_include, "--must-include"),
                    exclude=row_numbers(must_exclude, "--must-exclude"),
                    time_limit=time_limit,
                    gap=gap,
                    callback=watch,
                )
            answer: dict[str, Any] = {"file": str(file), "picks": "samples", **picked.as_dict()}
            _give(picked, answer, as_json, output, plot)
            return
        matrix, origin = candidates(file, samples, standardize, columns, label, drop_missing, k, header)
        must, never = as_labels(must_include, must_exclude, matrix, k, samples)
        draft = None if output is None else Draft(output, matrix, origin, file)
        with transposed(samples), Watch(time_limit, matrix.labels, draft) as watch:
            picked = ip.select(
                replace(matrix, notes=()),
                k,
                c,
                method=method,
                include=must,
                exclude=never,
                time_limit=time_limit,
                gap=gap,
                callback=watch,
            )
        answer = told(file, samples, matrix, origin, picked.as_dict())
        if not standardize and picked.loss > 100 * picked.k:
            answer["notes"].append("the loss is far from ideal because lengths are far from 1; try --standardize.")

        def save_report(path: Path) -> None:
            from isopursuit.report import write_report

            asked = {
                "time limit": f"{time_limit:g} s",
                "gap": gap,
                "must include": ", ".join(must_include or ["nothing"]),
                "must exclude": ", ".join(must_exclude or ["nothing"]),
            }
            write_report(
                picked,
                matrix.values,
                path,
                title=f"{picked.k} of {matrix.values.shape[1]} {'samples' if samples else 'features'} of {file.name}",
                source=str(file),
                command=command_line(),
                history=watch.history,
                options=asked,
            )

        _give(picked, answer, as_json, output, plot, draft, {} if report is None else {report: save_report})


def _give(
    picked: Selection,
    answer: dict[str, Any],
    as_json: bool,
    output: Path | None,
    plot: Path | None,
    draft: Draft | None = None,
    reports: Mapping[Path, Callable[[Path], None]] | None = None,
) -> None:
    """Print the answer, then write the files: what cannot be written at the end does not take the answer along."""
    with interrupts.polled():
        if as_json:
            typer.echo(json.dumps(answer, indent=2))
        else:
            show_selection(picked, answer["notes"])
    files: dict[Path, Callable[[Path], None]] = {}
    if output is not None:
        files[output] = lambda path: save_json(path, answer) if draft is None else draft.finish(answer)
    if plot is not None:
        files[plot] = lambda path: save_picture(path, picked)
    save_all(files | dict(reports or {}), quiet=as_json)


@app.command()
def pursue(
    file: File,
    samples: Samples = True,
    k: Size = None,
    c: Exponent = 1.0,
    columns: Columns = None,
    label: LabelColumn = None,
    standardize: Standardize = False,
    drop_missing: DropMissing = False,
    header: Header = None,
    as_json: AsJson = False,
    output: Output = None,
    scheduler: Scheduler = None,
    state: State = None,
) -> None:
    """Solve the convex program alone: what it keeps, with the certificate."""
    with one_line_errors():
        import isopursuit as ip
        from isopursuit.matrix import in_row_space

        check_outputs(file, output=output, state=state)
        if is_streamed(file, scheduler) or state is not None:
            refuse_for_streams(
                {
                    "--features": not samples,
                    "--columns": columns,
                    "--label": label,
                    "--drop-missing": drop_missing,
                    "--header": header is not None,
                }
            )
            with streamed(file, standardize, k, scheduler) as source, interrupts.polled():
                found = ip.isometry_pursuit(source, c, state=state, callback=PursuitWatch())
            show_pursuit(found, {"file": str(file), "picks": "samples", "c": c, **found.as_dict()}, as_json, output)
            return
        matrix, origin = candidates(file, samples, standardize, columns, label, drop_missing, k, header)
        with transposed(samples), interrupts.polled():
            reduced = matrix if k is None or k >= len(matrix.values) else in_row_space(matrix, k)
            new = reduced.notes[len(matrix.notes) :]
            found = ip.isometry_pursuit(replace(reduced, notes=new), c, callback=PursuitWatch())
        answer = told(file, samples, matrix, origin, {"c": c, **found.as_dict()})
        show_pursuit(found, answer, as_json, output)


@app.command()
def compare(
    file: File,
    samples: Samples = True,
    k: Size = None,
    c: Exponent = 1.0,
    columns: Columns = None,
    label: LabelColumn = None,
    standardize: Standardize = False,
    drop_missing: DropMissing = False,
    header: Header = None,
    time_limit: TimeLimit = 60.0,
    as_json: AsJson = False,
) -> None:
    """All methods side by side: loss, time, proof."""
    with one_line_errors():
        import isopursuit as ip
        from isopursuit.matrix import as_time_limit

        as_time_limit(time_limit)  # refused before any file is read

        matrix, origin = candidates(file, samples, standardize, columns, label, drop_missing, k, header)
        rows: list[dict[str, Any]] = []
        methods: tuple[Method, ...] = ("greedy", "two-stage", "exchange", "exact")
        for method in methods:
            began = time.perf_counter()
            with transposed(samples), Watch(time_limit, matrix.labels) as watch:
                interrupts.known = partial(_compared, rows, method, watch)
                given = replace(matrix, notes=())
                picked = ip.select(given, k, c, method=method, time_limit=time_limit, callback=watch)
            rows.append(told(file, samples, matrix, origin, picked.as_dict()))
            rows[-1]["seconds"] = time.perf_counter() - began
            if interrupts.status:
                break
        with interrupts.polled():
            _show_comparison(rows, list(matrix.notes), as_json)
        interrupts.known = lambda: "the answer is printed"


def _show_comparison(rows: list[dict[str, Any]], notes: list[str], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
    else:
        cells = [
            [
                row["method"],
                _loss_of(row),
                f"{row['seconds']:.2f}",
                row["verdict"],
                ", ".join(map(str, row["labels"])),
            ]
            for row in rows
        ]
        show_table(["method", "loss", "seconds", "proof", "picked"], cells, f"the ideal loss is {rows[0]['k']}")
        show_notes(notes)


def _compared(rows: list[dict[str, Any]], method: Method, watch: Watch) -> str:
    """What an interrupted comparison knows."""
    done = [
        f"{row['method']}: loss {_loss_of(row)}, {row['verdict']}: {', '.join(map(str, row['labels']))}" for row in rows
    ]
    return printable("; ".join([*done, f"{method}: {watch.known()}"]))


def _loss_of(row: dict[str, Any]) -> str:
    return f"{row['loss']:.6g}" if row["loss"] else f"e^{row['log_loss']:.6g}"


@app.command()
def datasets(
    name: Annotated[str | None, typer.Argument(help="The data set to write.", show_default=False)] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The .csv file to write it to.")] = None,
) -> None:
    """List the data sets that travel with the package, or write one as a CSV file."""
    with one_line_errors():
        from isopursuit.datasets import load_iris, load_wine, load_words
        from isopursuit.errors import ParameterError

        known = {"iris": load_iris, "wine": load_wine, "words": load_words}
        if name is None:
            for load in known.values():
                data = load()
                typer.echo(f"{data.name}: {len(data.values)} samples, {len(data.features)} features")
            typer.echo("Write one with: isopursuit datasets wine --output wine.csv")
            return
        if name not in known:
            raise ParameterError(f"There is no data set {name!r}. Use one of {', '.join(known)}.")
        data = known[name]()
        target = output or Path(f"{name}.csv")
        check_writable(target, "--output")
        write_whole(target, data.as_csv())
        say(f"wrote {target}")


@app.command()
def reproduce(
    name: Annotated[Literal["iris", "wine", "ethanol", "words", "all"], typer.Argument(help="Which data.")] = "all",
    replicates: Annotated[int | None, typer.Option(help="How many; the paper's number if not given.", min=1)] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes; one a processor if not given.", min=1)] = None,
    out: Annotated[Path, typer.Option(help="The folder for the store, the account and its figures.")] = Path(),
    data: Annotated[Path | None, typer.Option(help="Ethanol's trajectory: MD17's or rMD17's .npz, or .xyz.")] = None,
    report: Annotated[bool, typer.Option("--report", help="Run nothing: write the account of what is stored.")] = False,
) -> None:
    """Rerun the paper's experiments beside the proved optimum.

    Each result is saved in OUT/reproduction.sqlite as it comes: a run that was stopped goes on where it was. The
    account is OUT/reproduction.md.
    """
    with one_line_errors():
        from isopursuit.experiments.account import account
        from isopursuit.experiments.plan import ethanol_of, missing_packages, tasks
        from isopursuit.experiments.run import run_missing
        from isopursuit.experiments.store import Store, StoreError
        from isopursuit.experiments.tables import all_tables

        file, written = out / "reproduction.sqlite", out / "reproduction.md"
        if report and not file.exists():
            raise StoreError(f"There is no store {file}. Run without --report first, or pass its folder with --out.")
        if out.exists() and not out.is_dir():
            raise StoreError(f"{out} is a file; --out names the folder for all that is written.")
        out.mkdir(parents=True, exist_ok=True)
        check_writable(written, "--out: the account")
        if data is not None and name not in ("ethanol", "all"):
            raise StoreError(f"--data is ethanol's trajectory; 'reproduce {name}' has no use for it.")
        ethanol = "ethanol" if data is None else ethanol_of(data)
        processes = jobs or os.cpu_count() or 1
        with Store(file, processes, create=not report) as store:
            if not report:
                show_notes([f"{without} is not installed: {what}." for without, what in missing_packages()])
                with Countdown(tasks(name, replicates, ethanol), store) as countdown:
                    files = {} if data is None else {ethanol: data.resolve()}
                    run_missing(countdown.tasks, store, jobs=processes, report=countdown, files=files)
            show_notes(store.warnings())
            for table in all_tables(store.records()):
                show_table(list(table.heads), [list(row) for row in table.cells], table.title)
                typer.echo()
            interrupts.known = lambda: f"the tables are printed; {printable(written)} is not written"
            write_whole(written, account(store, out))
        say(f"wrote {written}; its results are in {file}")


def main() -> None:
    """Run a command. What a redirected output's encoding lacks (≤ on Windows) is replaced, not fatal."""
    interrupts.start()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app()
    finally:
        if interrupts.status:  # a KeyboardInterrupt may have come where no command could see it
            interrupts.say()


if __name__ == "__main__":
    main()
