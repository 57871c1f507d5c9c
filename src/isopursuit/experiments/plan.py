"""The plan of the experiments: a task is one method on one matrix, and its result is one row of the store."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from isopursuit._core.types import Array, Indices
from isopursuit.data import DATASETS, Dataset
from isopursuit.errors import ParameterError
from isopursuit.experiments import paper
from isopursuit.manifold.ethanol import ETHANOL_BONDS, load_ethanol
from isopursuit.manifold.molecules import rotatable_bonds, torsion_matrices, turning_rates

Name = Literal["iris", "wine", "ethanol", "words", "all"]

FILES: dict[str, Path] = {}  # trajectories of ethanol from files, by the name of their rows
WHOLE = -1  # the replicate's number of a task without replicates: the first P samples, or all frames together
COMPARED = ("greedy", "pursuit", "two-stage", "exchange", "exact")
SWEPT_FURTHER = (8, 10, 13)  # D that the paper does not have, for the first FEW replicates
FEW = 3
# nodes after which an exact search stops: unlike a time limit, the same result on every machine
SWEEP_NODES, LADDER_NODES = 4_000, 10_000
DRAWS = 20  # random first stages per replicate
SCS_EPS = 1e-12  # the tolerance in the authors' scripts
NEIGHBOURS = 1_000  # frames per tangent space of ethanol
PARAMETERS = {"sweep": SWEEP_NODES, "ladder": LADDER_NODES, "draws": DRAWS, "eps": SCS_EPS, "neighbours": NEIGHBOURS}
LADDERS = {  # (D, P): all samples of the data, or the first P
    "iris": [(4, 150)],
    "wine": [(6, 178), (8, 178), (10, 178), (13, 178)],
    "breast cancer": [(4, 569), (8, 569), (10, 569), (12, 569), (14, 569), (16, 569)],
    "digits": [(4, 300), (6, 300), (8, 300), (10, 300), (12, 300), (16, 200), (6, 1797)],
}


class Task(NamedTuple):
    """The key of a row: the study, the data as a D × P matrix, c, the replicate and the method."""

    study: str
    data: str
    D: int
    P: int
    c: float
    replicate: int
    method: str


def tasks(name: Name = "all", replicates: int | None = None, ethanol: str = "ethanol") -> list[Task]:
    """Return all tasks of one data set, or of all of them.

    The default number of replicates is the paper's. `ethanol` is the name of the rows of ethanol; pass another name
    for a trajectory from a file.

    Examples
    --------
    >>> len([task for task in tasks("iris", replicates=2) if task.study == "table 1"])
    14
    """
    names = ("iris", "wine", "ethanol", "words", "breast cancer", "digits") if name == "all" else (name,)
    renamed = (ethanol if data == "ethanol" else data for data in names)
    return [task for data in renamed for task in _tasks(data, replicates)]


def _tasks(data: str, given: int | None) -> Iterator[Task]:
    row = paper.TABLE_1.get(kind(data))
    replicates = given or (row.R if row is not None else 0)
    if is_ethanol(data):
        replicates = min(replicates, paper.TABLE_1["ethanol"].R)
    if row is not None:
        baseline = ("SCS",) if installed("cvxpy", "scs") else ()
        for i in range(replicates):
            for method in (*COMPARED, "random", *baseline):
                yield Task("table 1", data, row.D, row.P, 1.0, i, method)
    if data in paper.DEEP_DIVE:
        D, P = paper.DEEP_DIVE[data]
        for i in range(replicates):
            for method in ("pursuit", "brute", "two-stage", "brute multitask", "two-stage multitask"):
                yield Task("deep dive", data, D, P, 1.0, i, method)
    if data == "iris":  # the deep dive at full size, the largest that brute force can handle
        for i in range(replicates):
            for method in ("pursuit", "brute multitask", "two-stage multitask"):
                yield Task("deep dive", data, 4, 75, 1.0, i, method)
    if data == "wine":
        for D in (*paper.SWEPT, *SWEPT_FURTHER):
            for c in paper.EXPONENTS:
                for i in range(replicates if D in paper.SWEPT else min(FEW, replicates)):
                    for method in COMPARED:
                        yield Task("exponents", data, D, 89, c, i, method)
    if is_ethanol(data):
        for method in COMPARED:
            yield Task("manifold", data, 2, 756, 1.0, WHOLE, method)
    if data in ("iris", "wine") or installed("sklearn"):
        for D, P in LADDERS.get(data, []):
            for method in ("exchange", "exact"):
                yield Task("ladder", data, D, P, 1.0, WHOLE, method)


def ethanol_of(path: Path) -> str:
    """Return the name of the rows of a trajectory from a file: the file's name and a digest of its contents."""
    if len(load_ethanol(path).positions) < NEIGHBOURS:
        raise ParameterError(f"{path.name} is too short: a tangent space needs {NEIGHBOURS} frames. Pass a longer one.")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
    return f"ethanol of {path.name} ({digest})"


def kind(data: str) -> str:
    """Return the paper's name of a data set: "ethanol" for "ethanol of FILE"."""
    return data.split()[0] if is_ethanol(data) else data


def is_ethanol(data: str) -> bool:
    """Whether the data are frames of ethanol, from the package or from a file."""
    return data.split()[0] == "ethanol"


def installed(*packages: str) -> bool:
    """Whether all of these packages can be imported."""
    return all(find_spec(package) for package in packages)


def missing_packages() -> list[tuple[str, str]]:
    """Return (package, consequence) for each optional package that is not installed."""
    uses = {
        "matplotlib": "the account has no figures",
        "cvxpy": "the tables omit SCS",
        "scs": "the tables omit SCS",
        "sklearn": "the tables omit breast cancer and digits",
    }
    return [(package, what) for package, what in uses.items() if not installed(package)]


def node_limit(task: Task) -> int | None:
    """Return the node limit of the exact search: none, except in the sweep and at the largest D of the ladders."""
    if task.study == "exponents":
        return SWEEP_NODES
    return LADDER_NODES if task.study == "ladder" and task.D >= 16 else None


def matrix(task: Task) -> Array:
    """Return the task's X: (D, P), or (frames, D, P) for all frames together.

    Examples
    --------
    >>> matrix(Task("table 1", "iris", 4, 75, 1.0, 0, "greedy")).shape
    (4, 75)
    """
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

    matrices: Array
    labels: tuple[str, ...]
    turned_by: Indices
    bonds: tuple[str, ...]

    def turns(self, task: Task, indices: tuple[int, ...]) -> tuple[str, ...]:
        """Return the bond of each selected torsion, at the task's frame or at the majority of frames."""
        which = self.turned_by[:, indices] if task.replicate == WHOLE else self.turned_by[[task.replicate]][:, indices]
        return tuple(self.bonds[int(np.bincount(column).argmax())] for column in which.T)


@cache
def molecule(data: str) -> Molecule:
    """Return the paper's matrices for as many frames as it has, drawn at random from the trajectory."""
    ethanol = load_ethanol(FILES.get(data))
    frames = np.random.default_rng(0).choice(len(ethanol.positions), paper.TABLE_1["ethanol"].R, replace=False)
    found = torsion_matrices(
        ethanol, frames, neighbours=NEIGHBOURS, torsions="all", normalization="symmetric", unit=None
    )
    rates = turning_rates(ethanol.positions[frames], found.torsions, ETHANOL_BONDS)
    bonds = tuple("–".join(f"{ethanol.symbols[a]}{a}" for a in bond) for bond in rotatable_bonds(ETHANOL_BONDS))
    return Molecule(found.matrices, found.labels, np.abs(rates).argmax(axis=1), bonds)


@cache
def dataset(name: str, D: int) -> Dataset:
    """Return a data set: Iris, Wine or Words as packaged, the first D features of breast cancer, or the D pixels of
    largest variance of digits (both from scikit-learn, in the order of its files).
    """
    if name in DATASETS:
        return DATASETS[name]()
    from sklearn import datasets

    load: Any = datasets.load_digits if name == "digits" else datasets.load_breast_cancer
    bunch = load()
    values = np.asarray(bunch.data, dtype=np.float64)
    kept = np.arange(D) if name != "digits" else np.sort(np.argsort(-values.var(axis=0), kind="stable")[:D])
    features = tuple(str(bunch.feature_names[i]) for i in kept)
    return Dataset(name, values[:, kept], features, tuple(str(kind) for kind in bunch.target))
