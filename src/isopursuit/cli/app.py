"""The commands. Each imports its modules when it runs, to keep `--help` and `--version` fast."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from isopursuit.cli.arguments import (
    Exponent,
    JudgedTable,
    Limits,
    MethodName,
    Outputs,
    ReportFile,
    Samples,
    Search,
    Size,
    Table,
    app,
    command,
    one_of,
)
from isopursuit.cli.output import say

Dictionary = Literal["bonds", "rotatable", "all"]
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
    table: Table,
    samples: Samples = True,
    k: Size = None,
    search: Search = DEFAULT,
    outputs: Outputs = DEFAULT,
    report: ReportFile = None,
) -> None:
    """Pick rows (or columns) that are as orthonormal as possible, and report their loss and what is proved about it."""
    from isopursuit.cli import candidates, commands

    commands.select(candidates.Input(table, samples, k), search, outputs, report)


@command
def pursue(
    table: Table, samples: Samples = True, k: Size = None, c: Exponent = 1.0, outputs: Outputs = DEFAULT
) -> None:
    """Solve the convex program only: list the rows (or columns) it keeps, with a certificate."""
    from isopursuit.cli import candidates, commands

    commands.pursue(candidates.Input(table, samples, k), c, outputs)


@command
def audit(
    table: JudgedTable,
    columns: Annotated[
        str, typer.Option("--columns", help="Candidates to judge, separated by commas: labels, or numbers from 0.")
    ],
    samples: Annotated[
        bool | None,
        typer.Option("--samples/--features", help="Judge rows, or columns. Default: whichever the names match."),
    ] = None,
    limits: Limits = DEFAULT,
    outputs: Outputs = DEFAULT,
    report: ReportFile = None,
) -> None:
    """Judge rows (or columns) that you name: their loss, a proved bound, the best swap and the best subset found."""
    from isopursuit.cli import commands

    commands.audit(table, samples, columns, limits, outputs, report)


@command
def coordinates(
    file: Annotated[
        Path,
        typer.Argument(help="A trajectory: .xyz, .extxyz, .npz, .pdb, .dcd, .xtc.", show_default=False),
    ],
    dimension: Annotated[
        int | None, typer.Option("-D", "--dimension", help="How many torsions to pick. Default: estimate it.")
    ] = None,
    topology: Annotated[
        Path | None, typer.Option(help="File that lists the atoms, if the trajectory has positions only.")
    ] = None,
    atoms: Annotated[
        str,
        typer.Option(
            "--select",
            metavar="ATOMS",
            help="heavy, all, numbers from 0 such as 0,4:9, or an MDAnalysis selection such as 'protein'.",
        ),
    ] = "heavy",
    dictionary: Annotated[
        Dictionary,
        typer.Option(
            metavar="NAME",
            help="Candidate torsions: bonds (along three bonds), rotatable (one for each rotatable bond) or all (of "
            "every four atoms).",
            **one_of(Dictionary),
        ),
    ] = "bonds",
    frames: Annotated[
        str, typer.Option(metavar="FRAMES", help="How many frames to draw, or which ones, such as 0:5000:50.")
    ] = "100",
    neighbours: Annotated[
        int | None, typer.Option(help="How many frames make a tangent space. Default: depends on their number.")
    ] = None,
    aggregate: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="How losses at many frames become one number: sum, trimmed (the default), or the share of "
            "the frames that a trimmed mean keeps.",
            show_default=False,
        ),
    ] = None,
    leave_out: Annotated[
        bool, typer.Option("--leave-out", help="Ignore frames whose tangent space is not determined.")
    ] = False,
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="LENGTH",
            help="The length of a gradient that counts as 1: a number, median, each or none. Default: a separate unit "
            "for each torsion.",
            show_default=False,
        ),
    ] = None,
    c: Exponent = 1.0,
    method: MethodName = "auto",
    time_limit: Annotated[float, typer.Option("--time-limit", help="Seconds for the whole command.")] = 60.0,
    seed: Annotated[int, typer.Option(help="Seed of the random draw of frames.", min=0)] = 0,
    plumed: Annotated[Path | None, typer.Option(help="Write a PLUMED input file with the torsions.")] = None,
    table: Annotated[
        Path | None, typer.Option(help="Write the torsions at all frames (.csv, .parquet), in radians.")
    ] = None,
    report: ReportFile = None,
    outputs: Outputs = DEFAULT,
) -> None:
    """Pick torsions that are coordinates of a molecule's motion, from a trajectory."""
    from isopursuit.cli import coordinates as work

    wanted = work.Wanted(file, topology, dimension, atoms, dictionary, frames, neighbours, aggregate, leave_out, unit)
    search = work.SearchOptions(c, method, time_limit, seed)
    work.coordinates(wanted, search, work.Outputs(outputs.as_json, outputs.output, report, plumed, table))


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
