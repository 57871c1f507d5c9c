"""Extract numbers from the store's rows, and format them for tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from isopursuit._core.types import Array
from isopursuit.experiments import paper
from isopursuit.experiments.plan import Task, kind
from isopursuit.experiments.store import Record

Rows = Mapping[Task, Record]
T = TypeVar("T")

TIE = 1e-9  # losses closer than this are equal
REACHED = 1e-9  # a loss within this relative distance of the proved optimum has reached it


@dataclass(frozen=True)
class Table:
    """A table for the terminal or for a page."""

    title: str
    heads: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        """Return the table in Markdown, without its title."""
        lines = ["| " + " | ".join(row) + " |" for row in (self.heads, *self.cells)]
        return "\n".join([lines[0].replace("|S|", "\\|S\\|"), "|---" * len(self.heads) + "|", *lines[1:]])


def printed_rows(rows: Rows) -> list[tuple[str, paper.Row]]:
    """Return the data of table 1 that the store has, in the paper's order, each with the row that the paper prints."""
    names = sorted({task.data for task in rows if task.study == "table 1"})
    return [(name, printed) for row, printed in paper.TABLE_1.items() for name in names if kind(name) == row]


def series(rows: Rows, value: Callable[[Record], T | None], **key: object) -> dict[int, T]:
    """Return one value per replicate from the rows whose task has this key, without rows that have no value."""
    found: dict[int, T] = {}
    for task, record in rows.items():
        if all(getattr(task, name) == given for name, given in key.items()) and (one := value(record)) is not None:
            found[task.replicate] = one
    return found


def losses(rows: Rows, **key: object) -> dict[int, float]:
    """Return the losses by replicate."""
    return series(rows, lambda record: record.loss, **key)


def paired(*several: dict[int, float]) -> list[Array]:
    """Return the values of each series at the replicates that all series have, in order."""
    common = sorted(set(several[0]).intersection(*several[1:]))
    return [np.array([one[i] for i in common]) for one in several]


def spread(values: Array, digits: int = 1) -> str:
    """Format the mean ± standard deviation (n − 1)."""
    if len(values) < 2:
        return "".join(f"{value:.{digits}f}" for value in values)
    return f"{values.mean():.{digits}f} ± {values.std(ddof=1):.{digits}f}"


def of_replicates(n: int, R: int) -> str:
    """Format the number of replicates that a method accepted, if it refused some."""
    return "" if n == R else "refused" if n == 0 else f" ({n} of {R})"


def factor(logarithm: float) -> str:
    """Format e to this power, as a power of 10 if it overflows float64."""
    return f"{np.exp(logarithm):.3g}" if logarithm < 700 else f"10^{logarithm / np.log(10):.0f}"


def percent(share: float) -> str:
    """Format a relative difference in percent, or as a factor if it is above 100."""
    if abs(share) <= REACHED:
        return "0 %"
    return f"{100 * share:.3g} %" if share < 100 else f"{1 + share:.1g} times"
