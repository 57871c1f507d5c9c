"""The command line (extra `cli`): `isopursuit select FILE` and its neighbours.

Only typer is imported at the top, so that `--help` is quick; the library is imported by the command that needs it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from isopursuit.files import Table
    from isopursuit.matrix import Matrix
    from isopursuit.results import Selection
    from isopursuit.search.tree import SearchProgress

app = typer.Typer(
    name="isopursuit",
    help="Pick a few rows or columns of a table that are as orthonormal as possible, with a proof.",
    invoke_without_command=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

QUIET_SECONDS = 2.0  # before a progress line appears
SAVE_SECONDS = 1.0  # between two saves of an unfinished search
INTERRUPTED, TERMINATED = 130, 143  # the exit statuses scripts expect after Ctrl-C and after `kill`
stopped_by = [INTERRUPTED]  # the last is the exit status of an interrupted command

Method = Literal["two-stage", "exact", "exchange", "greedy", "brute"]
File = Annotated[Path, typer.Argument(help="A table: .csv, .tsv, .parquet, .arrow, .npy or .npz.", show_default=False)]
Samples = Annotated[bool, typer.Option("--samples/--features", help="Pick rows, or columns.")]
Size = Annotated[int | None, typer.Option("-k", "--size", help="How many to pick; if not given, one a dimension.")]
Exponent = Annotated[float, typer.Option("-c", "--exponent", help="The loss's exponent c; larger is stricter.")]
Columns = Annotated[str | None, typer.Option("--columns", help="Columns to use, separated by commas.")]
LabelColumn = Annotated[str | None, typer.Option("--label", help="The column that names the rows.")]
Standardize = Annotated[bool, typer.Option("--standardize", help="Mean 0 and variance 1 for every column.")]
DropMissing = Annotated[bool, typer.Option("--drop-missing", help="Leave out rows with missing cells.")]
TimeLimit = Annotated[float, typer.Option("--time-limit", help="Seconds the search may take.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Output = Annotated[Path | None, typer.Option("-o", "--output", help="Write the answer to this .json file.")]


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    """Pick a few rows or columns of a table that are as orthonormal as possible, with a proof."""
    if version:
        from importlib.metadata import version as installed

        typer.echo(installed("isopursuit"))
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
    must_include: Annotated[list[str] | None, typer.Option(help="A label that must be picked (repeatable).")] = None,
    must_exclude: Annotated[list[str] | None, typer.Option(help="A label that must not (repeatable).")] = None,
    time_limit: TimeLimit = 60.0,
    gap: Annotated[float, typer.Option(help="Stop within this relative distance of the best.")] = 0.0,
    as_json: AsJson = False,
    output: Output = None,
    report: Annotated[Path | None, typer.Option(help="Write a self-contained HTML report.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Save a picture (.png, .svg, .pdf).")] = None,
) -> None:
    """Pick rows (or columns) and say how good they are, how sure that is, and why."""
    with one_line_errors():
        import isopursuit as ip

        check_output(output)
        matrix, origin = candidates(file, samples, standardize, columns, label, drop_missing, k)
        watch = Watch(time_limit, save=None if output is None else Draft(output, matrix, origin, file))
        with watch:
            picked = ip.select(
                matrix.values,
                k,
                c,
                method=method,
                include=must_include,
                exclude=must_exclude,
                labels=matrix.labels,
                time_limit=time_limit,
                gap=gap,
                callback=watch,
            )
        answer = told(file, samples, matrix, origin, picked.as_dict())
        if not standardize and picked.loss > 100 * picked.k:
            answer["notes"].append("the loss is far from ideal because lengths are far from 1; try --standardize.")
        if output is not None:
            save_json(output, answer)
        if plot is not None:
            save_picture(plot, picked)
        if report is not None:
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
                report,
                title=f"{picked.k} of {matrix.values.shape[1]} {'samples' if samples else 'features'} of {file.name}",
                source=str(file),
                command=command_line(),
                history=watch.history,
                options=asked,
            )
        if as_json:
            typer.echo(json.dumps(answer, indent=2))
        else:
            show_selection(picked, answer["notes"])
            for written in (output, plot, report):
                if written is not None:
                    typer.echo(f"wrote {written}")
    if picked.search.status == "interrupted":
        raise typer.Exit(stopped_by[-1])


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
    as_json: AsJson = False,
    output: Output = None,
) -> None:
    """Solve the convex program alone: what it keeps, with the certificate."""
    with one_line_errors():
        import isopursuit as ip
        from isopursuit.matrix import row_space

        check_output(output)
        matrix, origin = candidates(file, samples, standardize, columns, label, drop_missing, k)
        values = matrix.values if k is None or k >= len(matrix.values) else row_space(matrix.values, k)
        found = ip.isometry_pursuit(values, c, labels=matrix.labels)
        answer = told(file, samples, matrix, origin, {"c": c, **found.as_dict()})
        if output is not None:
            save_json(output, answer)
        if as_json:
            typer.echo(json.dumps(answer, indent=2))
            return
        rows = [[str(row["label"]), f"{row['weight']:.4f}"] for row in answer["columns"]]
        show_table(["column", "weight"], rows, f"{len(rows)} of {len(found.weights)} columns; {found.certificate}")
        show_notes(answer["notes"])


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
    time_limit: TimeLimit = 60.0,
    as_json: AsJson = False,
) -> None:
    """All methods side by side: loss, time, proof."""
    with one_line_errors():
        import isopursuit as ip

        matrix, origin = candidates(file, samples, standardize, columns, label, drop_missing, k)
        rows: list[dict[str, Any]] = []
        methods: tuple[Method, ...] = ("greedy", "two-stage", "exchange", "exact")
        for method in methods:
            began = time.perf_counter()
            watch = Watch(time_limit)
            with watch:
                picked = ip.select(
                    matrix.values, k, c, method=method, labels=matrix.labels, time_limit=time_limit, callback=watch
                )
            rows.append(told(file, samples, matrix, origin, picked.as_dict()))
            rows[-1]["seconds"] = time.perf_counter() - began
        if as_json:
            typer.echo(json.dumps(rows, indent=2))
            return
        cells = [
            [
                row["method"],
                f"{row['loss']:.6g}" if row["loss"] else f"e^{row['log_loss']:.6g}",
                f"{row['seconds']:.2f}",
                row["verdict"],
                ", ".join(map(str, row["labels"])),
            ]
            for row in rows
        ]
        show_table(["method", "loss", "seconds", "proof", "picked"], cells, f"the ideal loss is {rows[0]['k']}")
        show_notes(list(matrix.notes))


@app.command()
def datasets(
    name: Annotated[str | None, typer.Argument(help="The data set to write.", show_default=False)] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The .csv file to write it to.")] = None,
) -> None:
    """List the data sets that travel with the package, or write one as a CSV file."""
    with one_line_errors():
        from isopursuit.datasets import load_iris, load_wine
        from isopursuit.errors import ParameterError

        known = {"iris": load_iris, "wine": load_wine}
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
        lines = [",".join([*data.features, "class"])]
        lines += [
            ",".join([*map(repr, row.tolist()), kind]) for row, kind in zip(data.values, data.classes, strict=True)
        ]
        write_whole(target, "\n".join(lines) + "\n")
        typer.echo(f"wrote {target}")


@app.command()
def reproduce(
    name: Annotated[Literal["iris", "wine", "all"], typer.Argument(help="Which row of the paper's table 1.")] = "all",
    replicates: Annotated[int, typer.Option(help="How many replicates; the paper has 25.")] = 25,
) -> None:
    """Rerun the paper's table 1 on Iris and Wine, beside its printed numbers and the proved optimum."""
    with one_line_errors():
        from isopursuit.experiments import PAPER, table_row

        cells: list[list[str]] = []
        for data in ("iris", "wine") if name == "all" else (name,):
            cells += [["paper", *PAPER[data]], ["ours", *table_row(data, replicates)]]
        heads = ["", "data", "greedy", "|S|", "two-stage", "P(worse)", "P(equal)", "p-value", "proved optimum"]
        show_table(heads, cells, f"l_1 of the picked columns, mean ± sd of {replicates} replicates")


# ----------------------------------------------------------------------------------------------- in and out


def candidates(
    file: Path,
    samples: bool,
    standardize: bool,
    columns: str | None,
    label: str | None,
    drop_missing: bool,
    k: int | None,
) -> tuple[Matrix, list[int]]:
    """The file's rows or columns as candidates, and where each stands in the file (from 0)."""
    from isopursuit.errors import ParameterError
    from isopursuit.files import read_table

    chosen = None if columns is None else [name.strip() for name in columns.split(",")]
    table: Table = read_table(file, columns=chosen, label=label, drop_missing=drop_missing)
    if standardize:
        table = table.standardized()
    matrix = table.samples() if samples else table.features()
    if not samples and k is None:
        raise ParameterError(f"Say with -k how many of the {len(table.columns)} columns to pick.")
    most = min(matrix.values.shape)
    if k is not None and not 1 <= k <= most:
        shape = f"{len(table.rows)} rows of {len(table.columns)} numeric columns"
        raise ParameterError(f"-k {k} is out of range: from {shape} pick 1 to {most}.")
    if samples:
        return matrix, list(table.numbers) or list(range(len(table.rows)))
    return matrix, list(range(len(table.columns)))


def check_output(output: Path | None) -> None:
    """Refuse early what could not be written at the end."""
    from isopursuit.errors import ParameterError

    if output is not None and output.suffix.lower() != ".json":
        raise ParameterError(f"--output writes JSON; name the file {output.with_suffix('.json')}.")


@contextmanager
def one_line_errors() -> Generator[None]:
    """What is wrong with an input ends in one line on stderr and exit status 1; termination counts as Ctrl-C."""
    from isopursuit.errors import IsoPursuitError, RangeError

    def interrupt(signum: int, frame: FrameType | None) -> None:
        stopped_by.append(TERMINATED)
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except IsoPursuitError as error:
        hint = " On the command line: --standardize." if isinstance(error, RangeError) else ""
        typer.echo(f"error: {error}{hint}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo("interrupted before there was an answer", err=True)
        raise typer.Exit(stopped_by[-1]) from None
    except OSError as error:
        typer.echo(f"error: {error.filename}: {error.strerror}", err=True)
        raise typer.Exit(1) from None
    finally:
        signal.signal(signal.SIGTERM, previous)


def told(file: Path, samples: bool, matrix: Matrix, origin: list[int], result: dict[str, Any]) -> dict[str, Any]:
    """A result with where it comes from, the file's notes before its own, and numbers as they stand in the file."""
    head = {"file": str(file), "picks": "samples" if samples else "features"}
    return {**head, **in_file(result, origin), "notes": [*matrix.notes, *result["notes"]]}


def in_file(result: dict[str, Any], origin: list[int]) -> dict[str, Any]:
    """The same result with every candidate's number replaced by its number in the file."""
    moved = dict(result)
    for key in ("indices", "tied"):
        if key in moved:
            moved[key] = [origin[i] for i in moved[key]]
    for key in ("choices", "alternatives", "columns"):
        if key in moved:
            moved[key] = [{**one, "index": origin[one["index"]]} for one in moved[key]]
    if moved.get("pursuit"):
        moved["pursuit"] = in_file(moved["pursuit"], origin)
    return moved


def write_whole(path: Path, text: str) -> None:
    """Write all of a file or nothing: a reader never sees half of it."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def save_json(path: Path, answer: dict[str, Any]) -> None:
    """The answer as JSON."""
    write_whole(path, json.dumps(answer, indent=2) + "\n")


def save_picture(path: Path, picked: Selection) -> None:
    """Inner products and singular values of the picked columns."""
    from isopursuit.errors import ParameterError

    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ParameterError("--plot needs matplotlib. Install isopursuit[plot].") from None
    from isopursuit.plots import plot_gram, plot_singular_values

    plt.switch_backend("Agg")
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 5.5), layout="constrained")
    plot_gram(picked, ax=left)
    plot_singular_values(picked, ax=right)
    try:
        figure.savefig(path, dpi=120)
    except ValueError as error:
        raise ParameterError(f"Cannot save {path}: {str(error).splitlines()[0]}.") from None


def command_line() -> str:
    """The command to repeat this run."""
    import shlex

    return shlex.join(["isopursuit", *sys.argv[1:]])


# ---------------------------------------------------------------------------------------- while a search runs


class Draft:
    """Keeps the best subset so far in the output file, so that a killed search leaves a valid answer behind."""

    def __init__(self, path: Path, matrix: Matrix, origin: list[int], file: Path) -> None:
        self.path, self.matrix, self.origin, self.file = path, matrix, origin, file
        self.saved = 0.0

    def __call__(self, now: SearchProgress) -> None:
        """Save if a second has passed."""
        if now.seconds - self.saved < SAVE_SECONDS:
            return
        self.saved = now.seconds
        labels = self.matrix.labels or ()
        save_json(
            self.path,
            {
                "file": str(self.file),
                "indices": [self.origin[i] for i in now.indices.tolist()],
                "labels": [str(labels[i]) for i in now.indices.tolist()],
                "loss": now.incumbent,
                "lower_bound": now.lower_bound,
                "gap": now.gap,
                "status": "running",
                "nodes": now.nodes,
                "seconds": now.seconds,
            },
        )


class Watch:
    """The callback of a search: a live line on a terminal after two seconds, drafts of the answer, the history."""

    def __init__(self, time_limit: float, save: Callable[[SearchProgress], None] | None = None) -> None:
        self.time_limit, self.save = time_limit, save
        self.history: list[SearchProgress] = []
        self.live = sys.stderr.isatty()
        self.shown = False

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def __call__(self, now: SearchProgress) -> None:
        """Never stops the search."""
        self.history.append(now)
        if self.save is not None:
            self.save(now)
        if self.live and now.seconds > QUIET_SECONDS:
            self.shown = True
            left = max(self.time_limit - now.seconds, 0.0)
            sys.stderr.write(
                f"\r\x1b[Kbest {now.incumbent:.6g}  bound {now.lower_bound:.6g}  gap {100 * now.gap:.2f} %  "
                f"{now.nodes / now.seconds:.0f} nodes/s  {left:.0f} s left"
            )
            sys.stderr.flush()


# --------------------------------------------------------------------------------------------------- on screen


def show_selection(picked: Selection, notes: list[str]) -> None:
    """The table of picked columns, the verdict, the narrow losers."""
    rows = [
        [str(one.label), f"{one.length:.4g}", f"{one.price:.4g}", str(one.replacement or "none")]
        for one in picked.choices
    ]
    loss = f"{picked.loss:.6g}" if picked.loss < float("inf") else f"e^{picked.log_loss:.6g}"
    title = f"loss {loss} (ideal {picked.k}), {picked.verdict}"
    show_table(["picked", "length", "price", "best replacement"], rows, title)
    if picked.pursuit is not None:
        typer.echo(f"the convex stage's own objective: {picked.pursuit.certificate}")
    if picked.alternatives:
        typer.echo("close losers: " + ", ".join(f"{one.label} ({one.loss:.6g})" for one in picked.alternatives[:3]))
    show_notes(notes)


def show_notes(notes: list[str]) -> None:
    """Remarks go to stderr, out of the way of pipes."""
    for note in notes:
        typer.echo(f"note: {note}", err=True)


def show_table(heads: list[str], rows: list[list[str]], title: str) -> None:
    """A rich table; labels are shown as they are, never as markup."""
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else 200)
    table = RichTable(box=None, pad_edge=False, header_style="bold")
    for head in heads:
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(Text(title))
    console.print(table)


def main() -> None:
    """The console script."""
    app()


if __name__ == "__main__":
    main()
