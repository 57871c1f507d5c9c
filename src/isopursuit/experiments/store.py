"""The store: one SQLite file with one row per task. Each row is committed at once, so a killed run loses none."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from isopursuit.errors import InputError
from isopursuit.experiments.plan import PARAMETERS, Task

LAYOUT = 2  # of the tables below; a store of another layout is refused
KEY = Task._fields
SAFE = "The rows that were saved are safe."
DAMAGED = (
    "It is damaged or is not a store, and saved rows may be lost. Move it away, or pass another --out, and "
    "run again. `sqlite3 FILE .recover` may recover some rows."
)
ADVICE = {  # by SQLite's primary result code; any other code means damage
    sqlite3.SQLITE_BUSY: f"{SAFE} Wait for the other run, or pass another --out.",
    sqlite3.SQLITE_LOCKED: f"{SAFE} Wait for the other run, or pass another --out.",
    sqlite3.SQLITE_FULL: f"{SAFE} Make room on the disk, or pass another --out.",
    sqlite3.SQLITE_READONLY: f"{SAFE} Make it writable, or pass another --out.",
    sqlite3.SQLITE_CANTOPEN: "Check the folder and its permissions, or pass another --out.",
    sqlite3.SQLITE_PERM: "Check the folder and its permissions, or pass another --out.",
    sqlite3.SQLITE_IOERR: "The disk cannot be read or written. Check it, or pass another --out.",
}
PACKAGES = ("isopursuit", "numpy", "scipy", "cvxpy", "scs", "scikit-learn")


class StoreError(InputError):
    """The store cannot be used."""


@dataclass(frozen=True)
class Record:
    """The result of one task. Values that a method does not return are None. A `refused` row gives the reason.

    Attributes
    ----------
    loss, log_loss : float
        Of the selected columns, by the method's objective.
    reversed_loss : float
        l_c of the same columns in reverse order, which shows the effect of rounding.
    indices : tuple of int
        The selected columns of the task's matrix.
    support, tied : int, tuple of int
        The number of columns in the pursuit's solution, and the columns that an optimal solution may use.
    primal, dual, gap : float
        The pursuit's certificate.
    lower_bound, status, nodes, evaluations
        The search's proof.
    seconds, second_stage : float
        Wall-clock time of the task and of its second stage.
    draws : tuple of float
        The log-losses of all random draws; infinite for draws that do not span.
    turns : tuple of str
        The bond of each selected torsion.
    """

    loss: float | None = None
    log_loss: float | None = None
    reversed_loss: float | None = None
    indices: tuple[int, ...] | None = None
    support: int | None = None
    tied: tuple[int, ...] | None = None
    primal: float | None = None
    dual: float | None = None
    gap: float | None = None
    lower_bound: float | None = None
    status: str = ""
    nodes: int | None = None
    evaluations: int | None = None
    seconds: float = 0.0
    second_stage: float | None = None
    draws: tuple[float, ...] | None = None
    turns: tuple[str, ...] | None = None
    note: str = ""


VALUES = tuple(field.name for field in fields(Record))
LISTS = ("indices", "tied", "draws", "turns")  # kept as JSON
NUMBERS = tuple(name for name in VALUES if name not in (*LISTS, "status", "note"))


class Store:
    """Rows by task. The constructor creates the file unless `create` is False. `add` returns when the row is on disk.

    Examples
    --------
    >>> store = Store(":memory:")
    >>> store.add(Task("table 1", "iris", 4, 75, 1.0, 0, "greedy"), Record(loss=9.58, indices=(1, 2, 3, 4)))
    >>> len(store.records())
    1
    """

    def __init__(self, path: str | Path, workers: int = 1, *, create: bool = True) -> None:
        self.path = path
        self.made_with = json.dumps(environment() | {"workers": str(workers), "parameters": PARAMETERS}, sort_keys=True)
        with self._plainly():
            self.database = _connect(path, create)
            layout = self.database.execute("PRAGMA user_version").fetchone()[0]
            tables = self.database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if tables and layout == LAYOUT:
                self._check()
            elif create and not tables:
                self._create()
            if create:  # refuse a read-only file before any row is computed
                self.database.execute("BEGIN IMMEDIATE")
                self.database.rollback()
        if not tables and not create:
            raise StoreError(f"{path} has no rows. Run without --report first.")
        if tables and layout != LAYOUT:
            raise StoreError(
                f"{path} has layout {layout}, but this version needs {LAYOUT}. Move it away, or pass another --out."
            )

    @contextmanager
    def _plainly(self) -> Generator[None]:
        """Turn errors of SQLite and of JSON (damaged, locked, read-only or full file) into a one-line message."""
        try:
            yield
        except (sqlite3.Error, TypeError, ValueError) as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF  # without its extension
            raise StoreError(f"{self.path} cannot be used as a store: {error}. {ADVICE.get(code, DAMAGED)}") from None

    def _check(self) -> None:
        """Refuse a file with damaged pages or with unexpected tables."""
        found = self.database.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise sqlite3.DatabaseError(found)
        self.database.execute(f"SELECT {', '.join((*KEY, *VALUES))}, environment FROM results LIMIT 0")
        self.database.execute("SELECT id, versions FROM environments LIMIT 0")

    def _create(self) -> None:
        with self.database:
            self.database.execute("CREATE TABLE IF NOT EXISTS environments (id INTEGER PRIMARY KEY, versions UNIQUE)")
            self.database.execute(
                f"CREATE TABLE IF NOT EXISTS results ({', '.join((*KEY, *VALUES))}, "
                f"environment REFERENCES environments, PRIMARY KEY ({', '.join(KEY)})) WITHOUT ROWID"
            )
            self.database.execute(f"PRAGMA user_version = {LAYOUT}")

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.database.close()

    def add(self, task: Task, record: Record) -> None:
        """Write one row. An existing row does not change."""
        values = asdict(record)
        values |= {name: None if values[name] is None else json.dumps(values[name]) for name in LISTS}
        marks = ", ".join("?" * (len(KEY) + len(VALUES) + 1))
        with self._plainly(), self.database:
            row = (*task, *(values[name] for name in VALUES), self._environment())
            self.database.execute(f"INSERT OR IGNORE INTO results VALUES ({marks})", row)

    def _environment(self) -> int:
        self.database.execute("INSERT OR IGNORE INTO environments (versions) VALUES (?)", (self.made_with,))
        return self.database.execute("SELECT id FROM environments WHERE versions = ?", (self.made_with,)).fetchone()[0]

    def done(self) -> set[Task]:
        """Return the tasks that have a row."""
        with self._plainly():
            return {Task(*row) for row in self.database.execute(f"SELECT {', '.join(KEY)} FROM results")}

    def records(self) -> dict[Task, Record]:
        """Return all rows by task, in the order of their keys."""
        found: dict[Task, Record] = {}
        names = (*KEY, *VALUES)
        with self._plainly():
            for row in self.database.execute(f"SELECT {', '.join(names)} FROM results ORDER BY {', '.join(KEY)}"):
                values: dict[str, Any] = dict(zip(VALUES, row[len(KEY) :], strict=True))
                for name in LISTS:
                    values[name] = None if values[name] is None else tuple(json.loads(values[name]))
                task = Task(*row[: len(KEY)])
                wrong = [name for name in NUMBERS if not isinstance(values[name], int | float | None)]
                if wrong:
                    raise ValueError(f"{wrong[0]} of the row {task} is not a number")
                found[task] = Record(**values)
        return found

    def environments(self) -> list[dict[str, Any]]:
        """Return the versions and machines that computed the rows."""
        used = "SELECT versions FROM environments WHERE id IN (SELECT environment FROM results) ORDER BY id"
        with self._plainly():
            found: list[dict[str, Any]] = [json.loads(row[0]) for row in self.database.execute(used)]
        # before version 0.2 the workers were called jobs
        return [{"workers" if name == "jobs" else name: value for name, value in one.items()} for one in found]

    def warnings(self) -> list[str]:
        """Return a warning if the rows come from several environments."""
        several = len(self.environments())
        if several < 2:
            return []
        return [f"the rows come from {several} different environments. Pass a new --out for the rows of one run."]


def _connect(path: str | Path, create: bool) -> sqlite3.Connection:
    if create:
        return sqlite3.connect(path, timeout=60)
    return sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=rw", timeout=60, uri=True)


def environment() -> dict[str, str]:
    """Return the versions and the machine that compute a row."""
    found = {"python": platform.python_version(), "system": platform.system(), "machine": platform.machine()}
    found["cores"] = str(os.cpu_count())
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
