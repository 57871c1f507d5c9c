"""What is to be run: one task is one method on one matrix, and becomes one row of the store."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isopursuit.datasets import Dataset, load_iris, load_wine, load_words
from isopursuit.experiments import paper

Array = NDArray[np.float64]
Name = Literal["iris", "wine", "words", "all"]

WHOLE = -1  # the replicate number of a matrix that is no replicate: the first P samples
COMPARED = ("greedy", "pursuit", "two-stage", "exchange", "exact")
SWEPT_FURTHER = (8, 10, 13)  # beyond the paper's D, on the first few replicates
FEW = 3
# nodes after which an exact search ends with a gap: unlike seconds, they end it at the same place on every machine
SWEEP_NODES, LADDER_NODES = 4_000, 10_000
LADDERS = {  # D, P: all samples of the data, or the first P
    "iris": [(4, 150)],
    "wine": [(6, 178), (8, 178), (10, 178), (13, 178)],
    "breast cancer": [(4, 569), (8, 569), (10, 569), (12, 569), (14, 569), (16, 569)],
    "digits": [(4, 300), (6, 300), (8, 300), (10, 300), (12, 300), (16, 200), (6, 1797)],
}


class Task(NamedTuple):
    """The key of a row: which study, which data as a D × P matrix, at which c, which replicate, which method."""

    study: str
    data: str
    D: int
    P: int
    c: float
    replicate: int
    method: str


def tasks(name: Name = "all", replicates: int = paper.REPLICATES) -> list[Task]:
    """Everything that belongs to one data set's reproduction, or to all of them.

    Examples
    --------
    >>> len([task for task in tasks("iris", replicates=2) if task.study == "table 1"])
    14
    """
    names = ("iris", "wine", "words", "breast cancer", "digits") if name == "all" else (name,)
    return [task for data in names for task in _tasks(data, replicates)]


def _tasks(data: str, replicates: int) -> Iterator[Task]:
    if data in paper.TABLE_1:
        row = paper.TABLE_1[data]
        baseline = ("SCS",) if installed("cvxpy", "scs") else ()
        for i in range(replicates):
            for method in (*COMPARED, "random", *baseline):
                yield Task("table 1", data, row.D, row.P, 1.0, i, method)
    if data in paper.DEEP_DIVE:
        D, P = paper.DEEP_DIVE[data]
        for i in range(replicates):
            for method in ("pursuit", "brute", "two-stage", "brute multitask", "two-stage multitask"):
                yield Task("deep dive", data, D, P, 1.0, i, method)
    if data == "iris":  # the deep dive again at full size, which brute force can just do
        for i in range(replicates):
            for method in ("pursuit", "brute multitask", "two-stage multitask"):
                yield Task("deep dive", data, 4, 75, 1.0, i, method)
    if data == "wine":
        for D in (*paper.SWEPT, *SWEPT_FURTHER):
            for c in paper.EXPONENTS:
                for i in range(replicates if D in paper.SWEPT else min(FEW, replicates)):
                    for method in COMPARED:
                        yield Task("exponents", data, D, 89, c, i, method)
    if data in ("iris", "wine") or installed("sklearn"):
        for D, P in LADDERS.get(data, []):
            for method in ("exchange", "exact"):
                yield Task("ladder", data, D, P, 1.0, WHOLE, method)


def installed(*packages: str) -> bool:
    """Whether all of these can be imported."""
    return all(find_spec(package) for package in packages)


def missing_packages() -> list[tuple[str, str]]:
    """What is left out for want of a package: (package, what)."""
    wanted = {
        "cvxpy": "SCS is not timed",
        "scs": "SCS is not timed",
        "sklearn": "breast cancer and digits are left out",
    }
    return [(package, what) for package, what in wanted.items() if not installed(package)]


def node_limit(task: Task) -> int | None:
    """How far the exact search may go: to the end, but for the sweep and for the ladders' last rungs."""
    if task.study == "exponents":
        return SWEEP_NODES
    return LADDER_NODES if task.study == "ladder" and task.D >= 16 else None


def matrix(task: Task) -> Array:
    """The task's X, (D, P).

    Examples
    --------
    >>> matrix(Task("table 1", "iris", 4, 75, 1.0, 0, "greedy")).shape
    (4, 75)
    """
    data = dataset(task.data, task.D)
    if task.replicate == WHOLE:
        return np.ascontiguousarray(data.matrix(task.D)[:, : task.P])
    return data.replicate(task.replicate, task.D, task.P)


@cache
def dataset(name: str, D: int) -> Dataset:
    """Iris, Wine and Words as they come; of breast cancer the first D features, of digits the D pixels of largest
    variance (scikit-learn's copies, in the order of the file).
    """
    if name in ("iris", "wine", "words"):
        return {"iris": load_iris, "wine": load_wine, "words": load_words}[name]()
    from sklearn import datasets

    load: Any = datasets.load_digits if name == "digits" else datasets.load_breast_cancer
    bunch = load()
    values = np.asarray(bunch.data, dtype=np.float64)
    kept = np.arange(D) if name != "digits" else np.sort(np.argsort(-values.var(axis=0), kind="stable")[:D])
    features = tuple(str(bunch.feature_names[i]) for i in kept)
    return Dataset(name, values[:, kept], features, tuple(str(kind) for kind in bunch.target))
