"""The options of the commands, each declared once, and `command`, which makes a command of a function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

from isopursuit._core.types import Method
from isopursuit.cli.output import exit_status
from isopursuit.errors import unknown_option

if TYPE_CHECKING:
    from isopursuit._core.types import Unit

app = typer.Typer(
    name="isopursuit",
    help="Pick a few rows or columns of a table that are as orthonormal as possible, with a proof.",
    invoke_without_command=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def command(function: Callable[..., None]) -> None:
    """Register a command. A parameter whose type is a dataclass stands for the options that are its fields."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    found: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        group = groups.get(name)
        if group is None:
            found.append(_parameter(name, parameter.default, hints[name]))
        else:
            types = get_type_hints(group, include_extras=True)
            found += [_parameter(one.name, one.default, types[one.name]) for one in fields(group)]

    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{one.name: given.pop(one.name) for one in fields(group)})
        with exit_status():
            function(**given)

    run.__signature__ = inspect.Signature(found)  # pyright: ignore[reportFunctionMemberAccess]: typer reads it
    run.__annotations__ = {one.name: one.annotation for one in found}
    app.command(function.__name__, help=function.__doc__)(run)


def _parameter(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    default = inspect.Parameter.empty if default is MISSING else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def one_of(kinds: Any) -> dict[str, Any]:
    """Settings of an option (or argument) that takes one word of a `Literal` and suggests the nearest to any other."""
    known = get_args(kinds)

    def check(word: str) -> str:
        if word not in known:
            raise typer.BadParameter(str(unknown_option("", word, known)))
        return word

    return {"parser": check, "autocompletion": lambda: list(known)}


def as_unit_option(text: str) -> Unit:
    """The unit that --unit describes."""
    from isopursuit.data._units import as_unit

    if text in ("median", "each"):
        return text
    if text == "none":
        return None
    try:
        return as_unit(float(text))
    except ValueError:
        raise unknown_option("--unit", text, ("median", "each", "none"), "a positive length") from None


Size = Annotated[
    int | None, typer.Option("-k", "--size", help="How many to pick. Default for rows: as many as there are columns.")
]
Samples = Annotated[bool, typer.Option("--samples/--features", help="Pick rows, or columns.")]
Exponent = Annotated[float, typer.Option("-c", "--exponent", help="Exponent c of the loss; a larger one is stricter.")]
Labels = list[str] | None
MethodName = Annotated[
    Method,
    typer.Option(
        metavar="NAME",
        help="auto, two-stage, exact, exchange, greedy or brute. auto looks for a proof where that is quick, and "
        "otherwise returns the best subset of an exchange search with a bound.",
        **one_of(Method),
    ),
]
ReportFile = Annotated[Path | None, typer.Option(help="Write a self-contained HTML report.")]


@dataclass(frozen=True)
class Table:
    """The file and how to read it."""

    file: Annotated[
        Path,
        typer.Argument(
            help="A table: .csv, .tsv, .csv.gz, .xlsx, .parquet, .arrow, .npy or .npz.",
            show_default=False,
        ),
    ]
    use: Annotated[str | None, typer.Option("--columns", help="Columns to use, separated by commas.")] = None
    drop_columns: Annotated[str, typer.Option("--drop-columns", help="Columns to ignore, separated by commas.")] = ""
    label: Annotated[str | None, typer.Option("--label", help="The column that names the rows.")] = None
    standardize: Annotated[bool, typer.Option("--standardize", help="Scale every column to mean 0 and variance 1.")] = (
        False
    )
    spearman: Annotated[bool, typer.Option("--spearman", help="Compare columns by the correlation of ranks.")] = False
    correlation: Annotated[
        bool, typer.Option("--correlation", help="The file holds the correlations (or inner products) of its columns.")
    ] = False
    unit: Annotated[
        str | None,
        typer.Option(
            "--unit",
            metavar="LENGTH",
            help="The length that counts as 1: a number, median, each (scale every candidate to length 1) or none "
            "(keep the lengths of the file). Default: median for rows; for columns each, which also centres them.",
            show_default=False,
        ),
    ] = None
    drop_missing: Annotated[bool, typer.Option("--drop-missing", help="Ignore rows with missing cells.")] = False
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header", help="Whether the first line of a text file has names. Default: detect it."
        ),
    ] = None
    decimal: Annotated[
        str | None, typer.Option("--decimal", help="The decimal mark of a text file. Default: detect it.")
    ] = None
    thousands: Annotated[
        str | None, typer.Option("--thousands", help="What separates thousands in a text file, such as ','.")
    ] = None
    missing: Annotated[
        str, typer.Option("--missing", help="More words for missing cells besides NA, - and the like, by commas.")
    ] = ""


@dataclass(frozen=True)
class JudgedTable(Table):
    """The table of `audit`, whose option --columns names what to judge."""

    use: Annotated[str | None, typer.Option("--use", help="Columns of the table to use, separated by commas.")] = None


@dataclass(frozen=True)
class Limits:
    """What a search may pick, and how long it may take."""

    c: Exponent = 1.0
    must_include: Annotated[
        Labels,
        typer.Option(help="Label of a candidate that must be picked, or the number of an unnamed row (repeatable)."),
    ] = None
    must_exclude: Annotated[
        Labels, typer.Option(help="Label or number of a candidate that must not be picked (repeatable).")
    ] = None
    time_limit: Annotated[
        float, typer.Option("--time-limit", help="Seconds for the search; then the best subset so far is the answer.")
    ] = 10.0


@dataclass(frozen=True)
class Rules:
    """Which candidates may be picked together."""

    max_correlation: Annotated[
        float | None,
        typer.Option(
            "--max-correlation", help="No two picked candidates have a larger |correlation| (|cosine| of rows)."
        ),
    ] = None
    apart: Annotated[
        Labels, typer.Option(help="Two candidates that must not be picked together: a,b (repeatable).")
    ] = None
    groups: Annotated[
        Path | None, typer.Option(help="A .csv file with two columns: the name of a candidate, and its group.")
    ] = None
    group_by: Annotated[
        str | None,
        typer.Option("--group-by", metavar="TEXT", help="Group candidates by what stands before TEXT in their names."),
    ] = None
    per_group: Annotated[
        Labels,
        typer.Option(
            "--per-group",
            metavar="LIMIT",
            help="How many of each group may be picked, at most (2) or as least:most (1:2); group=1:2 limits one group "
            "(repeatable). Default: 1.",
            show_default=False,
        ),
    ] = None

    @property
    def given(self) -> dict[str, object]:
        """The options that were given."""
        return {name: value for name, value in vars(self).items() if value}


@dataclass(frozen=True)
class Search(Limits):
    """How to search."""

    method: MethodName = "auto"
    gap: Annotated[
        float | None,
        typer.Option(
            help="Stop once the relative gap between the loss and its lower bound is at most this. Default: 0, or 0.01 "
            "if a short search gives no proof.",
            show_default=False,
        ),
    ] = None
    proof: Annotated[
        Path | None,
        typer.Option(help="Write what is proved to this file, for `isopursuit check`. The method is then exact."),
    ] = None
    stability: Annotated[
        bool, typer.Option("--stability", help="With --features: how often each column is picked from resampled rows.")
    ] = False
    resamples: Annotated[int, typer.Option("--resamples", help="How many resamples --stability draws.")] = 50


@dataclass(frozen=True)
class Outputs:
    """Where the answer goes: to the terminal (as a table or as JSON) and to a file."""

    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the answer to this .json file.")] = None
