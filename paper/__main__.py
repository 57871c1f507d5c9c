"""Run the paper's experiments, or the same experiment on your own table: `python -m paper --help`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from isopursuit._core.atomic import check_writable, write_whole
from isopursuit.errors import IsoPursuitError
from paper import page, tables
from paper.plan import DATA, PARTS, from_file, installed, tasks
from paper.rows import Record, Rows, RowsError
from paper.run import cost, run_missing

PAGE = "reproduction"  # the page OUT/reproduction.md; its rows and figures are in OUT/reproduction/
NEEDED = {
    "matplotlib": "there are no figures",
    "cvxpy": "the tables omit SCS",
    "scs": "the tables omit SCS",
    "sklearn": "the tables omit breast cancer and digits",
}


def arguments() -> argparse.Namespace:
    """Return the command's arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m paper",
        description="Run the experiments of the paper, print their tables beside the paper's, and write a page with "
        "figures. A run that was stopped resumes where it ended.",
    )
    parser.add_argument(
        "data",
        nargs="*",
        help=f"{', '.join(DATA)}; a table of your own (.csv, .tsv, .parquet), whose rows are the candidates; or a "
        "trajectory of ethanol (.npz, .xyz). Default: all six.",
    )
    parser.add_argument(
        "--only", action="append", choices=[*PARTS, "figures"], help="run this part only (repeatable; default: all)"
    )
    parser.add_argument("-k", type=int, help="of your own table use the first k columns (default: all)")
    parser.add_argument("--replicates", type=int, help="how many random halves of the data (default: as in the paper)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="how many processes")
    parser.add_argument("--out", type=Path, default=Path("output/paper"), help="a folder (default: %(default)s)")
    parser.add_argument("--report", action="store_true", help="compute nothing; write the tables and the page again")
    return parser.parse_args()


def main() -> None:
    """Run what is missing, print the tables and write the page."""
    given = arguments()
    written, folder = given.out / f"{PAGE}.md", given.out / PAGE
    if given.replicates is not None and given.replicates < 1:
        raise RowsError(f"--replicates {given.replicates} is not a number of replicates. Pass at least 1.")
    if given.out.exists() and not given.out.is_dir():
        raise RowsError(f"{given.out} is a file. --out must be a folder.")
    names = [name if name in DATA else known_file(name) for name in given.data or DATA]
    if given.report and not folder.is_dir():
        raise RowsError(f"There are no rows in {folder}. Run without --report first, or pass their folder with --out.")
    given.out.mkdir(parents=True, exist_ok=True)
    check_writable(written, "--out: the page")
    rows = Rows(folder, given.workers)
    if not given.report:
        for package, what in NEEDED.items():
            if not installed(package):
                print(f"{package} is not installed: {what}.", file=sys.stderr)
        wanted = [
            task
            for name in names
            for task in tasks(name, given.replicates, given.k)
            if given.only is None or task.part in given.only
        ]
        compute(wanted, rows, given.workers)
    if len(rows.environments) > 1:
        print(f"The rows come from {len(rows.environments)} environments.", file=sys.stderr)
    for table in tables.all_tables(rows.records):
        shown = Table(*table.heads, title=table.title)
        for cells in table.cells:
            shown.add_row(*cells)
        Console().print(shown)
    write_whole(written, page.page(rows, folder))
    print(f"wrote {written}; its rows are in {folder}")


def compute(wanted: list, rows: Rows, workers: int) -> None:
    """Run the missing tasks, with a bar on a terminal."""
    missing = [task for task in wanted if task not in rows.records]
    if len(missing) < len(wanted):
        print(f"{len(wanted) - len(missing)} of {len(wanted)} rows are stored already", file=sys.stderr)
    with Progress(console=Console(stderr=True), transient=True) as bar:
        line = bar.add_task("", total=sum(map(cost, missing)))

        def show(task: tuple, record: Record) -> None:
            bar.update(line, advance=cost(task), description=f"{task.data} {task.D} × {task.P}, {task.method}")

        run_missing(missing, rows, workers, show)


def known_file(name: str) -> str:
    """Return the name of the rows of a file."""
    if not Path(name).is_file():
        raise RowsError(f"{name!r} is not one of {', '.join(DATA)}, and there is no file of this name.")
    return from_file(Path(name))


def terminated(number: int, frame: object) -> None:
    """End as on Ctrl-C: unfinished rows are dropped."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, terminated)
    try:
        main()
    except IsoPursuitError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        print("interrupted; all finished rows are saved", file=sys.stderr)
        sys.exit(130)
