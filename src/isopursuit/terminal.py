"""The terminal's side of the command line: reading candidates, one-line errors, drafts, the live line, tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from isopursuit.errors import printable
from isopursuit.outputs import check_writable, discard_drafts, write_whole
from isopursuit_command import interrupts

if TYPE_CHECKING:
    from isopursuit.experiments.plan import Task
    from isopursuit.experiments.store import Record, Store
    from isopursuit.files import Table
    from isopursuit.matrix import Label, Matrix
    from isopursuit.pursuit.working_set import PursuitProgress
    from isopursuit.results import Pursuit
    from isopursuit.search.incumbent import SearchProgress
    from isopursuit.selection import Selection
    from isopursuit.sources.columns import Columns

QUIET_SECONDS = 2.0  # before a progress line appears
SAVE_SECONDS = 1.0  # between two saves of an unfinished search


# ----------------------------------------------------------------------------------------------- in and out


def candidates(
    file: Path,
    samples: bool,
    standardize: bool,
    columns: str | None,
    label: str | None,
    drop_missing: bool,
    k: int | None,
    header: bool | None = None,
) -> tuple[Matrix, list[int]]:
    """The file's rows or columns as candidates, and where each stands in the file (from 0)."""
    from isopursuit.errors import ParameterError
    from isopursuit.files import read_table

    table: Table = read_table(file, columns=columns, label=label, drop_missing=drop_missing, header=header)
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
    """Whether files are streamed over: a pattern that is not the name of a file, or files for a cluster."""
    from isopursuit.files import is_there

    return scheduler is not None or (any(sign in str(file) for sign in "*?[") and not is_there(file))


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


def as_labels(
    include: list[str] | None, exclude: list[str] | None, matrix: Matrix, k: int | None, samples: bool
) -> tuple[list[Label], list[Label]]:
    """The labels of what must and must not be picked; a row (or column) without a name is named by its number."""
    from isopursuit.errors import ParameterError

    kind, labels = "row" if samples else "column", matrix.labels or ()
    place = {str(label): i for i, label in enumerate(labels)}
    found: list[list[Label]] = []
    for option, given in (("--must-include", include), ("--must-exclude", exclude)):
        names = [f"{kind} {int(one)}" if one not in place and one.isdecimal() else one for one in given or ()]
        for name, one in zip(names, given or (), strict=True):
            if name not in place:
                raise _no_such(one, option, kind, list(place))
        found.append([labels[i] for i in sorted({place[name] for name in names})])
    must, never = found
    k = len(matrix.values) if k is None else k
    both = [str(label) for label in must if label in never]
    if both:
        raise ParameterError(
            f"--must-include and --must-exclude both name {', '.join(both)}. Leave out one of the two."
        )
    if len(must) > k:
        raise ParameterError(f"--must-include names {len(must)} {kind}s, but only {k} are picked.")
    if len(labels) - len(never) < k:
        left = f"{len(labels) - len(never)} of {len(labels)} {kind}s"
        raise ParameterError(f"--must-exclude leaves {left}, but {k} are to be picked. Pass a smaller -k.")
    zero = [str(label) for label in must if not matrix.nonzero[place[str(label)]]]
    if zero:
        raise ParameterError(f"--must-include names a {kind} that is zero and cannot be picked: {zero[0]}.")
    return must, never


def _no_such(name: str, option: str, kind: str, labels: list[str]) -> Exception:
    import difflib

    from isopursuit.errors import LabelError

    close = difflib.get_close_matches(name, labels, n=3)
    hint = f"Did you mean {' or '.join(map(repr, close))}?" if close else f"The first is {labels[0]!r}."
    return LabelError(f"{option} {name!r}: there is no such {kind} to pick from. {hint}")


@contextmanager
def transposed(samples: bool) -> Generator[None]:
    """Where candidates are rows, say so in the library's refusals, which speak of the columns of X."""
    from isopursuit.errors import ParameterError, RangeError, RankError, ShapeError

    try:
        yield
    except (ParameterError, RangeError, RankError, ShapeError) as error:
        if not samples:
            raise
        raise type(error)(f"{error} (Here the columns of X are the table's rows.)") from None


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


def check_outputs(file: Path | None, **outputs: Path | None) -> None:
    """Refuse before any work what could not be written at the end."""
    from isopursuit.errors import ParameterError

    seen = [] if file is None else [file]
    for name, path in outputs.items():
        if path is None:
            continue
        option = f"--{name}"
        if name == "output" and path.suffix.lower() != ".json":
            raise ParameterError(f"--output writes JSON; name the file {path.with_suffix('.json')}.")
        if name == "plot":
            _check_picture(path)
        check_writable(path, option)
        if any(path.resolve() == other.resolve() for other in seen):
            raise ParameterError(f"{option} {path} is named for something else already. Name another file.")
        seen.append(path)


def _check_picture(path: Path) -> None:
    from isopursuit.errors import ParameterError, optional

    kinds = optional("matplotlib.backend_bases", "plot", "--plot").FigureCanvasBase.get_supported_filetypes()
    if path.suffix.lower().removeprefix(".") not in kinds:
        raise ParameterError(f"--plot cannot draw {path}. Use a name that ends in .png, .svg or .pdf.")


@contextmanager
def one_line_errors() -> Generator[None]:
    """What is wrong with an input ends in one line on stderr and exit status 1; an interrupted command says what is
    known and ends with the signal's status.
    """
    from isopursuit.errors import IsoPursuitError, RangeError

    interrupts.last = [discard_drafts]
    try:
        with interrupts.running():
            yield
    except IsoPursuitError as error:
        hint = " On the command line: --standardize." if isinstance(error, RangeError) else ""
        say(f"error: {error}{hint}", err=True)
        raise typer.Exit(interrupts.status or 1) from None
    except KeyboardInterrupt:
        interrupts.status = interrupts.status or 130
    except OSError as error:
        where = "" if error.filename is None else f"{error.filename}: "
        say(f"error: {where}{error.strerror or error}", err=True)
        raise typer.Exit(interrupts.status or 1) from None
    if interrupts.status:  # also where the library returned the best so far
        interrupts.say()
        raise typer.Exit(interrupts.status)


def told(file: Path, samples: bool, matrix: Matrix, origin: list[int], result: dict[str, Any]) -> dict[str, Any]:
    """A result with where it comes from, the file's notes before its own, and numbers as they stand in the file."""
    head = {"file": str(file), "picks": "samples" if samples else "features"}
    notes = [in_rows(note) for note in result["notes"]] if samples else result["notes"]
    return {**head, **in_file(result, origin), "notes": [*matrix.notes, *notes]}


def in_rows(note: str) -> str:
    """A note of the library, which speaks of columns, where those are the table's rows; labels follow a colon."""
    words, colon, labels = note.partition(":")
    return words.replace("column", "row") + colon + labels


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


def save_json(path: Path, answer: dict[str, Any]) -> None:
    """The answer as JSON."""
    write_whole(path, json.dumps(answer, indent=2) + "\n")


def save_picture(path: Path, picked: Selection) -> None:
    """Inner products and singular values of the picked columns."""
    from matplotlib.figure import Figure

    from isopursuit.plots import plot_gram, plot_singular_values

    figure = Figure(figsize=(13, 5.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_gram(picked, ax=left)
    plot_singular_values(picked, ax=right)
    drawn = BytesIO()
    figure.savefig(drawn, format=path.suffix.lower().removeprefix("."), dpi=120)
    write_whole(path, drawn.getvalue())


def save_all(files: Mapping[Path, Callable[[Path], object]], *, quiet: bool) -> None:
    """Write the files that were asked for, now that the answer is printed; only JSON if the command was interrupted."""
    left = list(files)

    def known() -> str:
        return "the answer is printed" + "".join(f"; {printable(path)} is not written" for path in left)

    interrupts.known = known
    for path, save in files.items():
        if interrupts.status and path.suffix.lower() != ".json":
            continue
        save(path)
        left.remove(path)
        if not quiet:
            say(f"wrote {path}")


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
        self.now: SearchProgress | None = None  # what is not in the file yet
        interrupts.last.insert(0, self.leave)

    def __call__(self, now: SearchProgress) -> None:
        """Save if a second has passed."""
        self.now = now
        if now.seconds - self.saved >= SAVE_SECONDS:
            self.saved = now.seconds
            self._save(now, "running")

    def leave(self) -> None:
        """Save the last state of a search that ends at once."""
        if self.now is not None:
            self._save(self.now, "interrupted")

    def finish(self, answer: dict[str, Any]) -> None:
        """The answer takes the place of the drafts."""
        self.now = None
        save_json(self.path, answer)

    def _save(self, now: SearchProgress, status: str) -> None:
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
                "status": status,
                "nodes": now.nodes,
                "seconds": now.seconds,
            },
        )


class Watch:
    """The callback of a search: a live line on a terminal after two seconds, drafts of the answer, the history, and
    what is known if the command is interrupted.
    """

    def __init__(
        self, time_limit: float, labels: Sequence[Label] | None, save: Callable[[SearchProgress], None] | None = None
    ) -> None:
        self.time_limit, self.labels, self.save = time_limit, labels, save
        self.history: list[SearchProgress] = []
        self.live = sys.stderr.isatty()
        self.shown = False

    def __enter__(self) -> Watch:
        interrupts.known = self.known
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

    def known(self) -> str:
        """The best subset so far, its loss and the bound."""
        if not self.history:
            return "nothing was found yet"
        now = self.history[-1]
        names = [printable(i if self.labels is None else self.labels[i]) for i in now.indices.tolist()]
        loss = f"loss {now.incumbent:.6g}, the lower bound of the search {now.lower_bound:.6g}"
        return f"the best so far has {loss}: {', '.join(names)}"


class PursuitWatch:
    """The callback of a pursuit, which stops it when the command is interrupted."""

    def __init__(self) -> None:
        self.now: PursuitProgress | None = None
        interrupts.known = self.known

    def __call__(self, now: PursuitProgress) -> bool:
        """Whether to stop."""
        self.now = now
        return interrupts.status != 0

    def known(self) -> str:
        """Where the pursuit stands."""
        if self.now is None:
            return "nothing was found yet"
        over = f"over {self.now.columns} columns, after {self.now.passes} passes over all"
        return f"the pursuit had a relative gap of {self.now.gap:.1e} {over}"


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
        interrupts.known = self.known
        if self.saved:
            say(f"{self.saved} of {len(self.tasks)} rows are stored already", err=True)
        self.bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.bar.stop()

    def known(self) -> str:
        """How far the run has come."""
        return f"{self.saved} of {len(self.tasks)} rows are saved"

    def __call__(self, task: Task, record: Record) -> None:
        """After each saved row."""
        self.saved += 1
        now = f"{task.study}, {task.data} {task.D} × {task.P}, {task.method}"
        self.bar.update(self.line, advance=self.cost(task), saved=self.saved, now=now)


# --------------------------------------------------------------------------------------------------- on screen


def say(text: str, *, err: bool = False) -> None:
    """One line on the terminal; control characters, as names in a file may hold, are shown and not sent."""
    typer.echo(printable(text), err=err)


def show_selection(picked: Selection, notes: list[str]) -> None:
    """The table of picked columns, the verdict, the narrow losers."""
    rows = [[str(one.label), f"{one.length:.4g}", one.price_text(4), one.replacement_text] for one in picked.choices]
    loss = f"{picked.loss:.6g}" if picked.loss < float("inf") else f"e^{picked.log_loss:.6g}"
    title = f"loss {loss} (ideal {picked.k}), {picked.verdict}"
    show_table(["picked", "length", "price", "best replacement"], rows, title)
    if picked.pursuit is not None:
        say(f"the convex stage's own objective: {picked.pursuit.certificate}")
    if picked.alternatives:
        say("close losers: " + ", ".join(f"{one.label} ({one.loss:.6g})" for one in picked.alternatives[:3]))
    show_notes(notes)


def show_pursuit(found: Pursuit, answer: dict[str, Any], as_json: bool, output: Path | None) -> None:
    """The columns with weight and the certificate, or JSON; then the file."""
    with interrupts.polled():
        _print_pursuit(found, answer, as_json)
    save_all({} if output is None else {output: lambda path: save_json(path, answer)}, quiet=as_json)


def _print_pursuit(found: Pursuit, answer: dict[str, Any], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(answer, indent=2))
    else:
        kind = "row" if answer["picks"] == "samples" else "column"
        rows = [[str(row["label"]), f"{row['weight']:.4f}"] for row in answer["columns"]]
        show_table([kind, "weight"], rows, f"{len(rows)} of {len(found.weights)} {kind}s; {found.certificate}")
        if found.effort is not None:
            say(str(found.effort))
        show_notes(answer["notes"])


def show_notes(notes: list[str]) -> None:
    """Remarks go to stderr, out of the way of pipes."""
    for note in notes:
        say(f"note: {note}", err=True)


def show_table(heads: list[str], rows: list[list[str]], title: str) -> None:
    """A rich table; labels are shown as they are, never as markup or as commands to the terminal."""
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else 200)
    table = RichTable(box=None, pad_edge=False, header_style="bold")
    for head in heads:
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console.print(Text(printable(title)))
    console.print(table)
