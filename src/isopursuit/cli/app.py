"""The commands. Each imports its modules when it runs, to keep `--help` and `--version` fast."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

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
from isopursuit.cli.output import say

DEFAULT: Any = None  # `command` makes these arguments from the options


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    """Pick a few rows or columns of a table that are as orthonormal as possible, with a proof."""
    if version:
        import isopursuit

        say(isopursuit.__version__)
        raise typer.Exit


@command
def select(
    samples: Samples = True,
    k: Size = None,
    table: Table = DEFAULT,
    search: Search = DEFAULT,
    rules: Rules = DEFAULT,
    outputs: Outputs = DEFAULT,
    report: ReportFile = None,
) -> None:
    """Pick rows (or columns) that are as orthonormal as possible, and report their loss and what is proved about it."""
    from isopursuit.cli import candidates, commands

    samples = samples and not table.correlation
    commands.select(candidates.Input(table, samples, k, bool(rules.given)), search, rules, outputs, report)


@command
def pursue(
    samples: Samples = True, k: Size = None, c: Exponent = 1.0, table: Table = DEFAULT, outputs: Outputs = DEFAULT
) -> None:
    """Solve the convex program only: list the rows (or columns) it keeps, with a certificate."""
    from isopursuit.cli import candidates, commands

    commands.pursue(candidates.Input(table, samples and not table.correlation, k), c, outputs)


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
    from isopursuit.cli import commands

    commands.check(proof, data)


@command
def audit(
    columns: Annotated[
        str, typer.Option("--columns", help="Candidates to judge, separated by commas: labels, or numbers from 0.")
    ],
    samples: Annotated[
        bool | None,
        typer.Option("--samples/--features", help="Judge rows, or columns. Default: whichever the names match."),
    ] = None,
    table: JudgedTable = DEFAULT,
    limits: Limits = DEFAULT,
    outputs: Outputs = DEFAULT,
    report: ReportFile = None,
) -> None:
    """Judge rows (or columns) that you name: their loss, a proved bound, the best swap and the best subset found."""
    from isopursuit.cli import commands

    commands.audit(table, False if table.correlation else samples, columns, limits, outputs, report)


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
    from isopursuit.cli import commands

    if name is None:
        commands.list_datasets()
    else:
        commands.write_dataset(name, output or Path(f"{name}.csv"))
