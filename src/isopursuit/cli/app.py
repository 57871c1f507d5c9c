"""The commands and their options. A command imports what it needs when it runs, so that `--help` is quick."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Literal

import typer

from isopursuit._types import Method
from isopursuit.cli.output import exit_status, say
from isopursuit_command import interrupts

app = typer.Typer(
    name="isopursuit",
    help="Pick a few rows or columns of a table that are as orthonormal as possible, with a proof.",
    invoke_without_command=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

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
DropColumns = Annotated[str, typer.Option("--drop-columns", help="Columns to leave out, separated by commas.")]
LabelColumn = Annotated[str | None, typer.Option("--label", help="The column that names the rows.")]
Standardize = Annotated[bool, typer.Option("--standardize", help="Mean 0 and variance 1 for every column.")]
UnitText = Annotated[
    str | None,
    typer.Option(
        "--unit",
        metavar="[median|each|none|NUMBER]",
        help="The length that counts as 1; 'none': as in the file. If not given, 'median' for rows, and for columns "
        "'each', which also centres them.",
        show_default=False,
    ),
]
DropMissing = Annotated[bool, typer.Option("--drop-missing", help="Leave out rows with missing cells.")]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether a text file's first line has names; if not given, found out."),
]
Included = Annotated[
    list[str] | None,
    typer.Option(help="A label, or the number of a row without one, that must be picked (repeatable)."),
]
Excluded = Annotated[list[str] | None, typer.Option(help="The same, that must not be picked.")]
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

        say(isopursuit.__version__)
        raise typer.Exit


@app.command()
def select(
    file: File,
    samples: Samples = True,
    k: Size = None,
    c: Exponent = 1.0,
    method: Annotated[Method, typer.Option(help="How to search; 'auto' chooses by size.")] = "auto",
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
    gap: Annotated[float, typer.Option(help="Stop within this relative distance of the best.")] = 0.0,
    as_json: AsJson = False,
    output: Output = None,
    report: Annotated[Path | None, typer.Option(help="Write a self-contained HTML report.")] = None,
    noun: Annotated[str | None, typer.Option(help="What the report calls a candidate, such as 'patient'.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Save a picture (.png, .svg, .pdf).")] = None,
    scheduler: Scheduler = None,
) -> None:
    """Pick rows (or columns) and say how good they are, how sure that is, and why."""
    with exit_status():
        from isopursuit.cli import commands
        from isopursuit.cli.inputs import Input

        table = Input(
            file, samples, k, columns, label, standardize, unit, drop_missing, header, scheduler, drop_columns
        )
        search = commands.SearchOptions(c, method, must_include or [], must_exclude or [], time_limit, gap)
        commands.select(table, search, commands.Outputs(as_json, output, report, plot, noun))


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
    state: State = None,
) -> None:
    """Solve the convex program alone: what it keeps, with the certificate."""
    with exit_status():
        from isopursuit.cli import commands
        from isopursuit.cli.inputs import Input

        table = Input(
            file, samples, k, columns, label, standardize, unit, drop_missing, header, scheduler, drop_columns
        )
        commands.pursue(table, c, state, commands.Outputs(as_json, output))


@app.command()
def audit(
    file: File,
    columns: Annotated[
        str, typer.Option("--columns", help="What to judge, separated by commas: labels, or numbers from 0.")
    ],
    samples: Annotated[
        bool | None,
        typer.Option("--samples/--features", help="Judge rows, or columns; if not given, what the names are."),
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
    """Judge given rows (or columns): loss, a proved bound, the best swap, the best subset found."""
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
def compare(
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
    time_limit: TimeLimit = 60.0,
    as_json: AsJson = False,
) -> None:
    """Our methods beside others: loss, largest and mean |cosine|, time, proof."""
    with exit_status():
        from isopursuit.cli import commands
        from isopursuit.cli.inputs import Input

        table = Input(
            file, samples, k, columns, label, standardize, unit, drop_missing, header, drop_columns=drop_columns
        )
        commands.compare(table, c, time_limit, as_json)


@app.command()
def coordinates(
    file: Annotated[
        Path,
        typer.Argument(help="A trajectory: .xyz, .extxyz, .npz, .pdb, .dcd, .xtc.", show_default=False),
    ],
    dimension: Annotated[
        int | None, typer.Option("-D", "--dimension", help="How many torsions to pick; if not given, estimated.")
    ] = None,
    topology: Annotated[
        Path | None, typer.Option(help="The file with the atoms, where the trajectory has positions only.")
    ] = None,
    atoms: Annotated[
        str,
        typer.Option(
            "--select",
            metavar="[heavy|all|NUMBERS|WORDS]",
            help="Atoms: numbers from 0 such as 0,4:9, or words of MDAnalysis such as 'protein'.",
        ),
    ] = "heavy",
    dictionary: Annotated[
        Literal["bonds", "rotatable", "all"],
        typer.Option(help="Torsions along three bonds, one for each rotatable bond, or of every four atoms."),
    ] = "bonds",
    frames: Annotated[
        str, typer.Option(metavar="[COUNT|NUMBERS]", help="How many frames to draw, or which, such as 0:5000:50.")
    ] = "100",
    neighbours: Annotated[
        int | None, typer.Option(help="How many frames make a tangent space; if not given, by their number.")
    ] = None,
    aggregate: Annotated[
        str | None,
        typer.Option(
            metavar="[sum|geometric|trimmed|SHARE]",
            help="How losses at many frames become one number.",
            show_default=False,
        ),
    ] = None,
    leave_out: Annotated[
        bool, typer.Option("--leave-out", help="Leave out frames whose tangent space is not determined.")
    ] = False,
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="[median|each|none|NUMBER]",
            help="The length of a gradient that counts as 1; if not given, each torsion has a unit of its own.",
            show_default=False,
        ),
    ] = None,
    c: Exponent = 1.0,
    method: Annotated[Method, typer.Option(help="How to search; 'auto' chooses by size.")] = "auto",
    time_limit: Annotated[float, typer.Option("--time-limit", help="Seconds for everything.")] = 60.0,
    seed: Annotated[int, typer.Option(help="For the draw of frames.", min=0)] = 0,
    plumed: Annotated[Path | None, typer.Option(help="Write an input file of PLUMED with the torsions.")] = None,
    table: Annotated[
        Path | None, typer.Option(help="Write the torsions along all frames (.csv, .parquet), in radians.")
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
    """List the data sets that travel with the package, or write one as a CSV file."""
    with exit_status():
        from isopursuit.cli import commands

        if name is None:
            commands.list_datasets()
        else:
            commands.write_dataset(name, output or Path(f"{name}.csv"))


@app.command()
def reproduce(
    name: Annotated[Literal["iris", "wine", "ethanol", "words", "all"], typer.Argument(help="Which data.")] = "all",
    replicates: Annotated[int | None, typer.Option(help="How many; the paper's number if not given.", min=1)] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; one a processor if not given.", min=1)] = None,
    out: Annotated[Path, typer.Option(help="The folder for the store, the account and its figures.")] = Path(),
    data: Annotated[Path | None, typer.Option(help="Ethanol's trajectory: MD17's or rMD17's .npz, or .xyz.")] = None,
    report: Annotated[bool, typer.Option("--report", help="Run nothing: write the account of what is stored.")] = False,
    jobs: Annotated[int | None, typer.Option("--jobs", hidden=True, min=1)] = None,
) -> None:
    """Rerun the paper's experiments beside the proved optimum.

    Each result is saved in OUT/reproduction.sqlite as it comes: a run that was stopped goes on where it was. The
    account is OUT/reproduction.md.
    """
    with exit_status():
        from isopursuit.cli.reproduce import reproduce as run

        if jobs is not None:
            say("warning: --jobs is now called --workers; the old name will be removed.", err=True)
        run(name, replicates, out, data, workers or jobs, only_report=report)


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
