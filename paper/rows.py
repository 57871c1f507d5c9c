"""The rows: one CSV file for each part of the experiments, written completely or not at all after each row.

A run that is killed loses no finished row, and the next run continues where it ended.
"""

from __future__ import annotations

import csv
import io
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from isopursuit._core.atomic import write_whole
from isopursuit.errors import InputError
from paper.plan import PARTS, Task

KEY = Task._fields[1:]  # the part is the file's name
PACKAGES = ("isopursuit", "numpy", "scipy", "cvxpy", "scs", "scikit-learn")


class RowsError(InputError):
    """A file of rows cannot be used."""


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
    lower_bound, status, nodes
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
    seconds: float = 0.0
    second_stage: float | None = None
    draws: tuple[float, ...] | None = None
    turns: tuple[str, ...] | None = None
    note: str = ""


VALUES = tuple(field.name for field in fields(Record))
HEADER = [*KEY, *VALUES, "environment"]


class Rows:
    """The rows in the files FOLDER/PART.csv, and the environments that computed them in FOLDER/environments.txt.

    Only one process writes to a folder. `add` returns when the row is on disk.
    """

    def __init__(self, folder: Path, workers: int = 1) -> None:
        self.folder = folder
        self.records: dict[Task, Record] = {}
        self._lines: dict[str, dict[Task, list[str]]] = {part: {} for part in PARTS}
        self._seen: dict[str, tuple[int, int] | None] = {}
        listed = folder / "environments.txt"
        self.environments = listed.read_text(encoding="utf-8").splitlines() if listed.exists() else []
        self._made_with = environment(workers)
        for part in PARTS:
            self._read(part)

    def add(self, task: Task, record: Record) -> None:
        """Write one row. An existing row does not change."""
        if task in self.records:
            return
        path = self._path(task.part)
        if _state(path) != self._seen[task.part]:
            raise RowsError(f"{path} was changed by another run. Its rows are safe. Pass another --out, or run again.")
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._made_with not in self.environments:
            self.environments.append(self._made_with)
            write_whole(self.folder / "environments.txt", "\n".join(self.environments) + "\n")
        number = self.environments.index(self._made_with) + 1
        lines = self._lines[task.part]
        lines[task] = [_text(value) for value in (*task[1:], *(getattr(record, name) for name in VALUES), number)]
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([HEADER, *(lines[one] for one in sorted(lines))])
        write_whole(path, text.getvalue())
        self._seen[task.part] = _state(path)
        self.records[task] = record

    def _path(self, part: str) -> Path:
        return self.folder / f"{part}.csv"

    def _read(self, part: str) -> None:
        path = self._path(part)
        self._seen[part] = _state(path)
        if self._seen[part] is None:
            return
        line = 1
        try:
            with path.open(encoding="utf-8", newline="") as file:
                reader = csv.reader(file, strict=True)
                if next(reader, None) != HEADER:
                    raise ValueError("its first line is not that of a file of rows")
                for cells in reader:
                    line = reader.line_num
                    task, record = _parsed(part, cells)
                    if not 1 <= int(cells[-1]) <= len(self.environments):
                        raise ValueError("environments.txt lacks its environment")
                    self.records[task], self._lines[part][task] = record, cells
        except (OSError, ValueError, csv.Error) as error:
            raise RowsError(
                f"{path}, line {line}: {error}. Restore the file, or delete damaged lines: they are computed again."
            ) from None


def _state(path: Path) -> tuple[int, int] | None:
    """What tells whether another process wrote the file."""
    return (path.stat().st_mtime_ns, path.stat().st_size) if path.exists() else None


def _text(value: object) -> str:
    """The text of a cell; Python's repr of a float can be read back without loss."""
    if isinstance(value, tuple):
        return " ".join(map(_text, value))
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


def _many(kind: Callable[[str], object]) -> Callable[[str], object]:
    return lambda text: tuple(map(kind, text.split(" ")))


KINDS = {"indices": _many(int), "tied": _many(int), "draws": _many(float), "turns": _many(str)}
KINDS |= dict.fromkeys(("support", "nodes"), int) | dict.fromkeys(("status", "note"), str)


def _parsed(part: str, cells: list[str]) -> tuple[Task, Record]:
    if len(cells) != len(HEADER):
        raise ValueError(f"it has {len(cells)} cells instead of {len(HEADER)}")
    data, D, P, c, replicate, method = cells[: len(KEY)]
    values = {name: KINDS.get(name, float)(cell) for name, cell in zip(VALUES, cells[len(KEY) :], strict=False) if cell}
    return Task(part, data, int(D), int(P), float(c), int(replicate), method), Record(**values)


def environment(workers: int) -> str:
    """Return the versions and the machine that compute a row, in one line."""
    found = {"cores": str(os.cpu_count()), "machine": platform.machine(), "python": platform.python_version()}
    found["system"] = platform.system()
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    versions = ", ".join(f"{name} {found[name]}" for name in sorted(found))
    return f"{versions}; {workers} at a time"
