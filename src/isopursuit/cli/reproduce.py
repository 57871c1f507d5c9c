"""`isopursuit reproduce`: run the paper's experiments into a store, print the tables, write the account."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from isopursuit._core.outputs import check_writable
from isopursuit.cli.output import save, say, show_notes, show_table
from isopursuit.cli.progress import Countdown
from isopursuit.experiments.account import account
from isopursuit.experiments.plan import Name, ethanol_of, missing_packages, tasks
from isopursuit.experiments.run import run_missing
from isopursuit.experiments.store import Store, StoreError
from isopursuit.experiments.tables import all_tables


def reproduce(
    name: Name, replicates: int | None, out: Path, data: Path | None, workers: int | None, *, only_report: bool
) -> None:
    """Run the experiments that the store in the folder `out` lacks, unless `only_report`, and write the account."""
    file, written = out / "reproduction.sqlite", out / "reproduction.md"
    if only_report and not file.exists():
        raise StoreError(f"There is no store {file}. Run without --report first, or pass its folder with --out.")
    if out.exists() and not out.is_dir():
        raise StoreError(f"{out} is a file. --out must be a folder.")
    out.mkdir(parents=True, exist_ok=True)
    check_writable(written, "--out: the account")
    if data is not None and name not in ("ethanol", "all"):
        raise StoreError(f"--data is ethanol's trajectory; 'reproduce {name}' does not use it. Leave it out.")
    ethanol = "ethanol" if data is None else ethanol_of(data)
    processes = workers or os.cpu_count() or 1
    with Store(file, processes, create=not only_report) as store:
        if not only_report:
            show_notes([f"{without} is not installed: {what}." for without, what in missing_packages()])
            with Countdown(tasks(name, replicates, ethanol), store) as countdown:
                files = {} if data is None else {ethanol: data.resolve()}
                run_missing(countdown.tasks, store, workers=processes, report=countdown, files=files)
        show_notes(store.warnings())
        for table in all_tables(store.records()):
            show_table(table.heads, table.cells, table.title)
            say("")
        save({written: partial(account, store, out)}, "the tables are printed", quiet=True)
    say(f"wrote {written}; its results are in {file}")
