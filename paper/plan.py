"""The plan: a task is one method on one matrix, and its result is one row."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

from isopursuit.data import DATASETS, Dataset, read_table
from isopursuit.errors import ParameterError
from isopursuit.molecules import ETHANOL_BONDS, internal_labels, rotatable_bonds
from paper import printed
from paper.ethanol import NEIGHBOURS, ethanol_of, torsion_matrices, turning_rates

DATA = ("iris", "wine", "ethanol", "words", "breast cancer", "digits")
PARTS = ("table", "deep-dive", "sweep", "manifold", "ladder")
WHOLE = -1  # the replicate of a task without replicates: the first P samples, or all frames together
COMPARED = ("greedy", "pursuit", "two-stage", "exchange", "exact")
REPLICATES = 25  # of a table that is not the paper's: as many as the paper has for Iris
SWEPT_FURTHER = (8, 10, 13)  # D that the paper's sweep does not have, for the first FEW replicates
FEW = 3
# nodes after which an exact search stops: unlike a time limit, this gives the same result on every machine
SWEEP_NODES, LADDER_NODES = 4_000, 10_000
DRAWS = 20  # random first stages per replicate
LADDERS = {  # (D, P): all samples of the data, or the first P
    "iris": [(4, 150)],
    "wine": [(6, 178), (8, 178), (10, 178), (13, 178)],
    "breast cancer": [(4, 569), (8, 569), (10, 569), (12, 569), (14, 569), (16, 569)],
    "digits": [(4, 300), (6, 300), (8, 300), (10, 300), (12, 300), (16, 200), (6, 1797)],
}
FILES: dict[str, Path] = {}  # the user's tables and trajectories, by the name of their rows


class Task(NamedTuple):
    """The key of a row: the part, the data as a D × P matrix, c, the replicate and the method."""

    part: str
    data: str
    D: int
    P: int
    c: float
    replicate: int
    method: str


def tasks(data: str, replicates: int | None = None, k: int | None = None) -> Iterator[Task]:
    """Yield all tasks of one data set; the default number of replicates is the paper's.

    `k` is the D of a table from a file: its first k columns are the rows of X, as the paper takes 6 of Wine's 13.
    """
    row = printed.TABLE_1.get(kind(data))
    D, P = (row.D, row.P) if row is not None else size_of(data, k) if data in FILES else (0, 0)
    count = replicates or (row.R if row is not None else REPLICATES)
    if is_ethanol(data):
        count = min(count, row.R)
    if D:
        for i in range(count):
            for method in (*COMPARED, "random", *(["SCS"] if installed("cvxpy", "scs") else [])):
                yield Task("table", data, D, P, 1.0, i, method)
    if data in printed.DEEP_DIVE:
        for i in range(count):
            for method in ("pursuit", "brute", "two-stage", "brute multitask", "two-stage multitask"):
                yield Task("deep-dive", data, *printed.DEEP_DIVE[data], 1.0, i, method)
    if data == "iris":  # the deep dive at full size, the largest that brute force can handle
        for i in range(count):
            for method in ("pursuit", "brute multitask", "two-stage multitask"):
                yield Task("deep-dive", data, 4, 75, 1.0, i, method)
    if data == "wine":
        for D in (*printed.SWEPT, *SWEPT_FURTHER):
            for c in printed.EXPONENTS:
                for i in range(count if D in printed.SWEPT else min(FEW, count)):
                    for method in COMPARED:
                        yield Task("sweep", data, D, 89, c, i, method)
    if is_ethanol(data):
        for method in COMPARED:
            yield Task("manifold", data, 2, 756, 1.0, WHOLE, method)
    if data in ("iris", "wine") or installed("sklearn"):
        for D, P in LADDERS.get(data, []):
            for method in ("exchange", "exact"):
                yield Task("ladder", data, D, P, 1.0, WHOLE, method)


def from_file(path: Path) -> str:
    """Return the name of the rows of the user's file: a trajectory of ethanol (.npz, .xyz) or a table."""
    molecular = path.suffix in (".npz", ".xyz", ".extxyz")
    if molecular and len(ethanol_of(path).positions) < NEIGHBOURS:
        raise ParameterError(f"{path.name} is too short: a tangent space needs {NEIGHBOURS} frames. Pass a longer one.")
    if not molecular:
        read_table(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
    name = f"{'ethanol of ' if molecular else ''}{path.name} ({digest})"
    FILES[name] = path.resolve()
    return name


def size_of(data: str, k: int | None) -> tuple[int, int]:
    """Return D = k and P, half of the samples, of a table from a file."""
    samples, features = dataset(data).values.shape
    k = features if k is None else k
    if not 0 < k <= min(features, samples // 2):
        raise ParameterError(
            f"-k {k}: {data} has {features} columns that vary, and a replicate is a half of its {samples} rows. "
            f"Pass a number from 1 to {min(features, samples // 2)}."
        )
    return k, samples // 2


def kind(data: str) -> str:
    """Return the paper's name of a data set: "ethanol" for "ethanol of FILE"."""
    return "ethanol" if is_ethanol(data) else data


def is_ethanol(data: str) -> bool:
    """Whether the data are frames of ethanol, from the package or from a file."""
    return data.split()[0] == "ethanol"


def installed(*packages: str) -> bool:
    """Whether all of these packages can be imported."""
    return all(find_spec(package) for package in packages)


def node_limit(task: Task) -> int | None:
    """Return the node limit of the exact search: none in the paper's own experiments, which all end with a proof."""
    if task.part == "sweep":
        return SWEEP_NODES
    return LADDER_NODES if (task.part == "ladder" and task.D >= 16) or task.data in FILES else None


def matrix(task: Task) -> np.ndarray:
    """Return the task's X: (D, P), or (frames, D, P) for all frames together."""
    if is_ethanol(task.data):
        stack = molecule(task.data).matrices
        return stack if task.replicate == WHOLE else stack[task.replicate]
    data = dataset(task.data, task.D)
    if task.replicate == WHOLE:
        return np.ascontiguousarray(data.matrix(task.D)[:, : task.P])
    return data.replicate(task.replicate, task.D, task.P)


@dataclass(frozen=True)
class Molecule:
    """Ethanol: `matrices` (frames, 2, 756), the torsions' labels, and the bond that changes each torsion most."""

    matrices: np.ndarray
    labels: tuple[str, ...]
    turned_by: np.ndarray
    bonds: tuple[str, ...]

    def turns(self, task: Task, indices: tuple[int, ...]) -> tuple[str, ...]:
        """Return the bond of each selected torsion, at the task's frame or at the majority of frames."""
        which = self.turned_by[:, indices] if task.replicate == WHOLE else self.turned_by[[task.replicate]][:, indices]
        return tuple(self.bonds[int(np.bincount(column).argmax())] for column in which.T)


@cache
def molecule(data: str) -> Molecule:
    """Return the paper's matrices for as many frames as it has, drawn at random from the trajectory."""
    ethanol = ethanol_of(FILES.get(data))
    frames = np.random.default_rng(0).choice(len(ethanol.positions), printed.TABLE_1["ethanol"].R, replace=False)
    rows, matrices = torsion_matrices(ethanol, frames)
    rates = turning_rates(ethanol.positions[frames], rows, ETHANOL_BONDS)
    bonds = tuple("–".join(f"{ethanol.symbols[a]}{a}" for a in bond) for bond in rotatable_bonds(ETHANOL_BONDS))
    return Molecule(matrices, internal_labels(ethanol, rows), np.abs(rates).argmax(axis=1), bonds)


@cache
def dataset(name: str, D: int | None = None) -> Dataset:
    """Return a data set: Iris, Wine or Words as packaged, a table from a file without its constant columns, the first
    D features of breast cancer, or the D pixels of largest variance of digits (both from scikit-learn).
    """
    if name in DATASETS:
        return DATASETS[name]()
    if name in FILES:
        table = read_table(FILES[name])
        varies = np.ptp(table.values, axis=0) > 0
        columns = tuple(column for column, kept in zip(table.columns, varies, strict=True) if kept)
        return Dataset(name, table.values[:, varies], columns, tuple(map(str, table.rows or range(len(table.values)))))
    from sklearn import datasets

    bunch = (datasets.load_digits if name == "digits" else datasets.load_breast_cancer)()
    values = np.asarray(bunch.data, dtype=np.float64)
    kept = np.arange(D) if name != "digits" else np.sort(np.argsort(-values.var(axis=0), kind="stable")[:D])
    return Dataset(name, values[:, kept], tuple(bunch.feature_names[i] for i in kept), tuple(map(str, bunch.target)))
