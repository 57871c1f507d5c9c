"""The terminal's side of the command line: reading candidates, one-line errors, drafts, the live line, tables."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from isopursuit.experiments.plan import Task
    from isopursuit.experiments.store import Record, Store
    from isopursuit.files import Table
    from isopursuit.matrix import Matrix
    from isopursuit.results import Pursuit
    from isopursuit.search.tree import SearchProgress
    from isopursuit.selection import Selection
    from isopursuit.sources.columns import Columns

QUIET_SECONDS = 2.0  # before a progress line appears
SAVE_SECONDS = 1.0  # between two saves of an unfinished search
INTERRUPTED, TERMINATED = 130, 143  # the exit statuses scripts expect after Ctrl-C and after `kill`
stopped_by = [INTERRUPTED]  # the last is the exit status of an interrupted command


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

    table: Table = read_table(file, columns=columns, label=label, drop_missing=drop_missing)
    if standardize:
        table = table.standardized()
    matrix = table.samples() if samples else table.features()
    if not samples and k is None:
        raise ParameterError(f"Say with -k how many of the {len(table.columns)} columns to pick.")
    most = min(matrix.values.shape)
    if k is not None and not 1 <= k <= most:
        n, P = f"{len(table.rows)} rows", f"{len(table.columns)} numeric columns"
        shape = f"{n} of {P}" if samples else f"{P} of {n}"
        raise ParameterError(f"-k {k} is out of range: from {shape} pick 1 to {most}.")
    if samples:
        return matrix, list(table.numbers) or list(range(len(table.rows)))
    return matrix, list(range(len(table.columns)))


def is_streamed(file: Path, scheduler: str | None) -> bool:
    """Whether files are streamed over: a pattern, or files for a cluster."""
    return scheduler is not None or any(sign in str(file) for sign in "*?[")


def refuse_for_streams(given: dict[str, Any]) -> None:
    """What needs the whole table in memory."""
    from isopursuit.errors import ParameterError

    for option, value in given.items():
        if value:
            raise ParameterError(
                f"{option} is not there for files that are streamed. Name one file without --scheduler."
            )


def row_numbers(given: list[str] | None, option: str) -> list[int] | None:
    """Rows of streamed files have numbers, from 0, and no labels."""
    from isopursuit.errors import ParameterError

    wrong = [one for one in given or () if not one.isdecimal()]
    if wrong:
        raise ParameterError(
            f"{option} {wrong[0]}: rows of files that are streamed are named by their numbers, from 0."
        )
    return None if given is None else [int(one) for one in given]


@contextmanager
def streamed(file: Path, standardize: bool, k: int | None, scheduler: str | None) -> Generator[Columns]:
    """The files' rows as a source of columns, read here or by the workers of a Dask cluster."""
    from isopursuit.errors import ParameterError, optional
    from isopursuit.sources.columns import as_source

    columns = as_source(file, vectors="rows")
    if scheduler is None:
        yield as_source(columns, standardize=standardize, k=k)
        return
    distributed = optional("distributed", "dask", "--scheduler")
    from isopursuit.sources.cluster import on_cluster

    try:
        client = distributed.Client(scheduler, timeout=10)
    except (OSError, ValueError) as error:
        raise ParameterError(f"No Dask scheduler answers at {scheduler}: {str(error).splitlines()[0]}.") from None
    with client:
        yield as_source(on_cluster(columns), standardize=standardize, k=k)


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
        typer.echo("interrupted", err=True)
        raise typer.Exit(stopped_by[-1]) from None
    except OSError as error:
        where = "" if error.filename is None else f"{error.filename}: "
        typer.echo(f"error: {where}{error.strerror}", err=True)
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
        draft.write_text(text, encoding="utf-8", newline="\n")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def save_json(path: Path, answer: dict[str, Any]) -> None:
    """The answer as JSON."""
    write_whole(path, json.dumps(answer, indent=2) + "\n")


def save_picture(path: Path, picked: Selection) -> None:
    """Inner products and singular values of the picked columns."""
    from isopursuit.errors import ParameterError, optional

    plt = optional("matplotlib.pyplot", "plot", "--plot")
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


class Countdown:
    """Progress of many tasks: how many rows are stored, and the time left by what the finished ones cost."""

    def __init__(self, tasks: Sequence[Task], store: Store) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        from isopursuit.experiments.run import cost

        self.tasks, self.store, self.cost = tasks, store, cost
        done = store.done()
        self.saved = sum(task in done for task in tasks)
        self.bar = Progress(
            TextColumn("{task.fields[saved]} of {task.fields[all]} rows"),
            BarColumn(),
            TextColumn("{task.fields[now]}"),
            TimeElapsedColumn(),
            TextColumn("left:"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            speed_estimate_period=120,
        )
        work = sum(cost(task) for task in tasks if task not in done)
        self.line = self.bar.add_task("", total=work, saved=self.saved, all=len(tasks), now="")

    def __enter__(self) -> Countdown:
        if self.saved:
            typer.echo(f"{self.saved} of {len(self.tasks)} rows are stored already", err=True)
        self.bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.bar.stop()
        if kind is not None:
            typer.echo(f"{self.saved} of {len(self.tasks)} rows are saved", err=True)

    def __call__(self, task: Task, record: Record) -> None:
        """After each saved row."""
        self.saved += 1
        now = f"{task.study}, {task.data} {task.D} × {task.P}, {task.method}"
        self.bar.update(self.line, advance=self.cost(task), saved=self.saved, now=now)


# --------------------------------------------------------------------------------------------------- on screen


def show_selection(picked: Selection, notes: list[str]) -> None:
    """The table of picked columns, the verdict, the narrow losers."""
    rows = [[str(one.label), f"{one.length:.4g}", one.price_text, one.replacement_text] for one in picked.choices]
    loss = f"{picked.loss:.6g}" if picked.loss < float("inf") else f"e^{picked.log_loss:.6g}"
    title = f"loss {loss} (ideal {picked.k}), {picked.verdict}"
    show_table(["picked", "length", "price", "best replacement"], rows, title)
    if picked.pursuit is not None:
        typer.echo(f"the convex stage's own objective: {picked.pursuit.certificate}")
    if picked.alternatives:
        typer.echo("close losers: " + ", ".join(f"{one.label} ({one.loss:.6g})" for one in picked.alternatives[:3]))
    show_notes(notes)


def show_pursuit(found: Pursuit, answer: dict[str, Any], as_json: bool, output: Path | None) -> None:
    """The columns with weight and the certificate, or JSON."""
    if output is not None:
        save_json(output, answer)
    if as_json:
        typer.echo(json.dumps(answer, indent=2))
        return
    rows = [[str(row["label"]), f"{row['weight']:.4f}"] for row in answer["columns"]]
    show_table(["column", "weight"], rows, f"{len(rows)} of {len(found.weights)} columns; {found.certificate}")
    if found.effort is not None:
        typer.echo(str(found.effort))
    show_notes(answer["notes"])


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
