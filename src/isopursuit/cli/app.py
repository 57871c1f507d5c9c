"""The commands and their options. Each command imports its modules when it runs, to keep `--help` fast."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

from isopursuit._core.types import Method
from isopursuit.cli.output import exit_status, say
from isopursuit.errors import unknown_option
from isopursuit_command import interrupts

app = typer.Typer(
    name="isopursuit",
    help="Pick a few rows or columns of a table that are as orthonormal as possible, with a proof.",
    invoke_without_command=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def one_of(kinds: Any) -> dict[str, Any]:
    """Settings of an option (or argument) that takes one word of a `Literal` and suggests the nearest to any other."""
    known = get_args(kinds)

    def check(word: str) -> str:
        if word not in known:
            raise typer.BadParameter(str(unknown_option("", word, known)))
        return word

    return {"parser": check, "autocompletion": lambda: list(known)}


Dictionary = Literal["bonds", "rotatable", "all"]

File = Annotated[
    Path,
    typer.Argument(
        help="A table: .csv, .tsv, .parquet, .arrow, .npy or .npz. A pattern such as 'folder/*.parquet' is streamed.",
        show_default=False,
    ),
]
Samples = Annotated[bool, typer.Option("--samples/--features", help="Pick rows, or columns.")]
Size = Annotated[
    int | None, typer.Option("-k", "--size", help="How many to pick. Default for rows: as many as there are columns.")
]
Exponent = Annotated[float, typer.Option("-c", "--exponent", help="Exponent c of the loss; a larger one is stricter.")]
Columns = Annotated[str | None, typer.Option("--columns", help="Columns to use, separated by commas.")]
DropColumns = Annotated[str, typer.Option("--drop-columns", help="Columns to ignore, separated by commas.")]
LabelColumn = Annotated[str | None, typer.Option("--label", help="The column that names the rows.")]
Standardize = Annotated[bool, typer.Option("--standardize", help="Scale every column to mean 0 and variance 1.")]
UnitText = Annotated[
    str | None,
    typer.Option(
        "--unit",
        metavar="LENGTH",
        help="The length that counts as 1: a number, median, each (scale every candidate to length 1) or none (keep "
        "the lengths of the file). Default: median for rows; for columns each, which also centres them.",
        show_default=False,
    ),
]
DropMissing = Annotated[bool, typer.Option("--drop-missing", help="Ignore rows with missing cells.")]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether the first line of a text file has names. Default: detect it."),
]
Included = Annotated[
    list[str] | None,
    typer.Option(help="Label of a candidate that must be picked, or the number of an unnamed row (repeatable)."),
]
Excluded = Annotated[
    list[str] | None, typer.Option(help="Label or number of a candidate that must not be picked (repeatable).")
]
MethodName = Annotated[
    Method,
    typer.Option(
        metavar="NAME",
        help="auto, two-stage, exact, exchange, greedy or brute. auto looks for a proof over all columns for up to ten "
        "seconds, then among the columns that isometry pursuit keeps, and otherwise returns the best subset of an "
        "exchange search with a bound.",
        **one_of(Method),
    ),
]
TimeLimit = Annotated[
    float, typer.Option("--time-limit", help="Seconds for the search; then the best subset so far is the answer.")
]
Scheduler = Annotated[
    str | None, typer.Option("--scheduler", help="Address of a Dask scheduler; its workers read the files.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Output = Annotated[Path | None, typer.Option("-o", "--output", help="Write the answer to this .json file.")]


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    """Pick a few rows or columns of a table that are as orthonormal as possible, with a proof."""
    if version:
        import isopursuit

        say(isopursuit.__version__)
        raise typer.Exit


@app.command()
def select(
    file: File,
    samples: Samples = True,
    k: Size = None,
    c: Exponent = 1.0,
    method: MethodName = "auto",
    columns: Columns = None,
    drop_columns: DropColumns = "",
    label: LabelColumn = None,
    standardize: Standardize = False,
    unit: UnitText = None,
    drop_missing: DropMissing = False,
    header: Header = None,
    must_include: Included = None,
    must_exclude: Excluded = None,
    time_limit: TimeLimit = 60.0,
    gap: Annotated[
        float, typer.Option(help="Stop once the relative gap between the loss and its lower bound is at most this.")
    ] = 0.0,
    as_json: AsJson = False,
    output: Output = None,
    report: Annotated[Path | None, typer.Option(help="Write a self-contained HTML report.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Save a plot (.png, .svg, .pdf).")] = None,
    scheduler: Scheduler = None,
) -> None:
    """Pick rows (or columns) that are as orthonormal as possible, and report their loss and what is proved about it."""
    with exit_status():
        from isopursuit.cli import commands
        from isopursuit.cli.inputs import Input

        table = Input(
            file, samples, k, columns, label, standardize, unit, drop_missing, header, scheduler, drop_columns
        )
        search = commands.SearchOptions(c, method, must_include or [], must_exclude or [], time_limit, gap)
        commands.select(table, search, commands.Outputs(as_json, output, report, plot))


@app.command()
def pursue(
    file: File,
    samples: Samples = True,
    k: Size = None,
    c: Exponent = 1.0,
    columns: Columns = None,
    drop_columns: DropColumns = "",
    label: LabelColumn = None,
    standardize: Standardize = False,
    unit: UnitText = None,
    drop_missing: DropMissing = False,
    header: Header = None,
    as_json: AsJson = False,
    output: Output = None,
    scheduler: Scheduler = None,
) -> None:
    """Solve the convex program only: list the rows (or columns) it keeps, with a certificate."""
    with exit_status():
        from isopursuit.cli import commands
        from isopursuit.cli.inputs import Input

        table = Input(
            file, samples, k, columns, label, standardize, unit, drop_missing, header, scheduler, drop_columns
        )
        commands.pursue(table, c, commands.Outputs(as_json, output))


@app.command()
def audit(
    file: File,
    columns: Annotated[
        str, typer.Option("--columns", help="Candidates to judge, separated by commas: labels, or numbers from 0.")
    ],
    samples: Annotated[
        bool | None,
        typer.Option("--samples/--features", help="Judge rows, or columns. Default: whichever the names match."),
    ] = None,
    c: Exponent = 1.0,
    use: Annotated[str | None, typer.Option("--use", help="Columns of the table to use, separated by commas.")] = None,
    label: LabelColumn = None,
    standardize: Standardize = False,
    unit: UnitText = None,
    drop_missing: DropMissing = False,
    header: Header = None,
    must_include: Included = None,
    must_exclude: Excluded = None,
    time_limit: TimeLimit = 60.0,
    as_json: AsJson = False,
    output: Output = None,
    report: Annotated[Path | None, typer.Option(help="Write a self-contained HTML report.")] = None,
    scheduler: Scheduler = None,
    drop_columns: DropColumns = "",
) -> None:
    """Judge rows (or columns) that you name: their loss, a proved bound, the best swap and the best subset found."""
    with exit_status():
        from isopursuit.cli import commands
        from isopursuit.cli.inputs import Input

        table = Input(
            file,
            samples is not False,
            None,
            use,
            label,
            standardize,
            unit,
            drop_missing,
            header,
            scheduler,
            drop_columns,
        )
        search = commands.SearchOptions(c, "exact", must_include or [], must_exclude or [], time_limit, 0.0)
        commands.audit(table, columns, search, commands.Outputs(as_json, output, report), guess=samples is None)


@app.command()
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
    report: Annotated[Path | None, typer.Option(help="Write a self-contained HTML report.")] = None,
    as_json: AsJson = False,
    output: Output = None,
) -> None:
    """Pick torsions that are coordinates of a molecule's motion, from a trajectory."""
    with exit_status():
        from isopursuit.cli import coordinates as command

        wanted = command.Wanted(
            file, topology, dimension, atoms, dictionary, frames, neighbours, aggregate, leave_out, unit
        )
        search = command.SearchOptions(c, method, time_limit, seed)
        command.coordinates(wanted, search, command.Outputs(as_json, output, report, plumed, table))


@app.command()
def datasets(
    name: Annotated[str | None, typer.Argument(help="The data set to write.", show_default=False)] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The .csv file to write it to.")] = None,
) -> None:
    """List the data sets that come with the package, or write one as a CSV file."""
    with exit_status():
        from isopursuit.cli import commands

        if name is None:
            commands.list_datasets()
        else:
            commands.write_dataset(name, output or Path(f"{name}.csv"))


def main() -> None:
    """Run a command. Characters that the output's encoding lacks (≤ on Windows) are replaced."""
    interrupts.start()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app()
    finally:
        if interrupts.status:  # a KeyboardInterrupt may have come where no command could see it
            interrupts.say()
