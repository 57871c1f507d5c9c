"""Printing, saving and exit status, for all commands."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer

from isopursuit._core.atomic import check_writable, discard_drafts, write_whole
from isopursuit.cli.interrupts import interrupts
from isopursuit.cli.words import on_command_line
from isopursuit.errors import IsoPursuitError, ParameterError, RangeError, optional, printable

SLOW_FILES = (".html", ".htm")  # an interrupted command has no time to write these

Contents = Mapping[Path, Callable[[], str | bytes]]  # a function for the content of each file


@contextmanager
def exit_status() -> Generator[None]:
    """Report an error in one line on stderr with exit status 1. An interrupted command prints what is known and exits
    with the signal's status.
    """
    interrupts.last = [discard_drafts]
    try:
        yield
    except (IsoPursuitError, OSError) as error:
        if not interrupts.status:
            say(f"error: {_message(error)}", err=True)
            raise typer.Exit(1) from None
    except MemoryError:
        say("error: there is not enough memory. In Python as_source reads files in blocks.", err=True)
        raise typer.Exit(1) from None
    if interrupts.status:
        interrupts.say()
        raise typer.Exit(interrupts.status)


def _message(error: IsoPursuitError | OSError) -> str:
    if isinstance(error, RangeError):
        return f"{on_command_line(str(error))} On the command line, --standardize may also help."
    if isinstance(error, IsoPursuitError):
        return str(error)
    where = "" if error.filename is None else f"{error.filename}: "
    return f"{where}{error.strerror or error}"


# ------------------------------------------------------------------------------------------------- on screen


def say(text: str, *, err: bool = False) -> None:
    """Print one line; control characters, as names in a file can contain, are escaped."""
    typer.echo(printable(text), err=err)


def show_notes(notes: Sequence[str]) -> None:
    """Print notes on stderr, so that stdout can be piped."""
    for note in notes:
        say(f"note: {note}", err=True)


def show_table(heads: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> None:
    """Print a table at once, so that an interrupt leaves no part of it; labels are never interpreted as markup."""
    from rich.console import Console, Group
    from rich.table import Table
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else 200)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in heads:
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console.print(Group(Text(printable(title)), table))


def json_text(answer: object) -> str:
    """The answer as the text of a JSON file."""
    return json.dumps(answer, indent=2) + "\n"


def give(answer: object, show: Callable[[], None], files: Contents, *, as_json: bool) -> None:
    """Print the answer before writing files, so that it is not lost if a file cannot be written."""
    if as_json:
        typer.echo(json_text(answer), nl=False)
    else:
        show()
    save(files, "the answer is printed", quiet=as_json)


# ------------------------------------------------------------------------------------------------- into files


def check_outputs(source: Path | None, **outputs: Path | None) -> None:
    """Raise an error, before any work, if a file cannot be written; `outputs` maps options to files."""
    seen = [] if source is None else [source]
    for name, path in outputs.items():
        if path is None:
            continue
        if name == "output" and path.suffix.lower() != ".json":
            raise ParameterError(f"--output writes JSON. Name the file {path.with_suffix('.json')}.")
        if name == "report":
            optional("jinja2", "report", "--report")
        check_writable(path, f"--{name}")
        if any(path.resolve() == other.resolve() for other in seen):
            raise ParameterError(f"--{name} {path} is the file of another option or of the input. Name another file.")
        seen.append(path)


def save(files: Contents, done: str = "", *, quiet: bool = False) -> None:
    """Write the requested files; `done` says what is finished. An interrupted command writes no reports."""
    left = list(files)

    def known() -> str:
        return "; ".join([*([done] if done else []), *(f"{printable(path)} is not written" for path in left)])

    interrupts.known = known
    for path, content in files.items():
        if interrupts.status and path.suffix.lower() in SLOW_FILES:
            continue
        write_whole(path, content())
        left.remove(path)
        if not quiet:
            say(f"wrote {path}")
