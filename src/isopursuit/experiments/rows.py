"""Numbers from the store's rows, and how the tables write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from isopursuit._types import Array
from isopursuit.experiments import paper
from isopursuit.experiments.plan import Task, kind
from isopursuit.experiments.store import Record

Rows = Mapping[Task, Record]
T = TypeVar("T")

TIE = 1e-9  # losses closer than this are equal
REACHED = 1e-9  # a loss within this relative distance of the proved optimum has reached it


@dataclass(frozen=True)
class Table:
    """A table for the terminal or a page."""

    title: str
    heads: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        """The table in Markdown, without its title."""
        lines = ["| " + " | ".join(row) + " |" for row in (self.heads, *self.cells)]
        return "\n".join([lines[0].replace("|S|", "\\|S\\|"), "|---" * len(self.heads) + "|", *lines[1:]])


def printed_rows(rows: Rows) -> list[tuple[str, paper.Row]]:
    """The data of table 1 that are in the store, in the paper's order, each with the row that the paper prints."""
    names = sorted({task.data for task in rows if task.study == "table 1"})
    return [(name, printed) for row, printed in paper.TABLE_1.items() for name in names if kind(name) == row]


def series(rows: Rows, value: Callable[[Record], T | None], **key: object) -> dict[int, T]:
    """One value per replicate, of the rows whose task has this key; rows without a value are left out."""
    found: dict[int, T] = {}
    for task, record in rows.items():
        if all(getattr(task, name) == given for name, given in key.items()) and (one := value(record)) is not None:
            found[task.replicate] = one
    return found


def losses(rows: Rows, **key: object) -> dict[int, float]:
    """The losses by replicate."""
    return series(rows, lambda record: record.loss, **key)


def paired(*several: dict[int, float]) -> list[Array]:
    """The replicates that all of them have, in order."""
    common = sorted(set(several[0]).intersection(*several[1:]))
    return [np.array([one[i] for i in common]) for one in several]


def spread(values: Array, digits: int = 1) -> str:
    """Mean ± standard deviation (n − 1)."""
    if len(values) < 2:
        return "".join(f"{value:.{digits}f}" for value in values)
    return f"{values.mean():.{digits}f} ± {values.std(ddof=1):.{digits}f}"


def of_replicates(n: int, R: int) -> str:
    """How many replicates a number is taken over, where a method refused the others."""
    return "" if n == R else "refused" if n == 0 else f" ({n} of {R})"


def factor(logarithm: float) -> str:
    """E to this power, written so that it always fits."""
    return f"{np.exp(logarithm):.3g}" if logarithm < 700 else f"10^{logarithm / np.log(10):.0f}"


def percent(share: float) -> str:
    """A relative difference; as a factor where it is above 100."""
    if abs(share) <= REACHED:
        return "0 %"
    return f"{100 * share:.3g} %" if share < 100 else f"{1 + share:.1g} times"
