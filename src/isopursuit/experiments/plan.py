"""What is to be run: one task is one method on one matrix, and becomes one row of the store."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from isopursuit._types import Array, Indices
from isopursuit.datasets import DATASETS, Dataset
from isopursuit.errors import ParameterError
from isopursuit.experiments import paper
from isopursuit.manifold.ethanol import ETHANOL_BONDS, load_ethanol
from isopursuit.manifold.molecules import rotatable_bonds, torsion_matrices, turning_rates

Name = Literal["iris", "wine", "ethanol", "words", "all"]

FILES: dict[str, Path] = {}  # the trajectory of each ethanol that is not the package's own
WHOLE = -1  # in place of a replicate's number where there are no replicates: the first P samples, or all frames at once
COMPARED = ("greedy", "pursuit", "two-stage", "exchange", "exact")
SWEPT_FURTHER = (8, 10, 13)  # beyond the paper's D, on the first few replicates
FEW = 3  # replicates of those sizes
# nodes after which an exact search ends with a gap: unlike seconds, they end it at the same place on every machine
SWEEP_NODES, LADDER_NODES = 4_000, 10_000
DRAWS = 20  # random first stages a replicate
SCS_EPS = 1e-12  # the paper's
NEIGHBOURS = 1_000  # frames that make a tangent space of ethanol
PARAMETERS = {"sweep": SWEEP_NODES, "ladder": LADDER_NODES, "draws": DRAWS, "eps": SCS_EPS, "neighbours": NEIGHBOURS}
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


def tasks(name: Name = "all", replicates: int | None = None, ethanol: str = "ethanol") -> list[Task]:
    """Everything that belongs to one data set's reproduction, or to all of them.

    Without a number of replicates there are as many as in the paper. `ethanol` is what its rows are called, for
    another trajectory than the one that comes with the package.

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
    if is_ethanol(data):
        for method in COMPARED:
            yield Task("manifold", data, 2, 756, 1.0, WHOLE, method)
    if data in ("iris", "wine") or installed("sklearn"):
        for D, P in LADDERS.get(data, []):
            for method in ("exchange", "exact"):
                yield Task("ladder", data, D, P, 1.0, WHOLE, method)


def ethanol_of(path: Path) -> str:
    """What the rows of another trajectory are called: by its file's name and contents."""
    if len(load_ethanol(path).positions) < NEIGHBOURS:
        raise ParameterError(f"{path.name} has fewer than the {NEIGHBOURS} frames that make one tangent space.")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
    return f"ethanol of {path.name} ({digest})"


def kind(data: str) -> str:
    """The data set in the paper that these data stand for: "ethanol" for "ethanol of FILE"."""
    return data.split()[0] if is_ethanol(data) else data


def is_ethanol(data: str) -> bool:
    """Whether these are frames of ethanol, whoever simulated them."""
    return data.split()[0] == "ethanol"


def installed(*packages: str) -> bool:
    """Whether all of these can be imported."""
    return all(find_spec(package) for package in packages)


def missing_packages() -> list[tuple[str, str]]:
    """What is left out because a package is not installed: (package, what)."""
    uses = {
        "matplotlib": "there are no figures",
        "cvxpy": "SCS is not timed",
        "scs": "SCS is not timed",
        "sklearn": "breast cancer and digits are left out",
    }
    return [(package, what) for package, what in uses.items() if not installed(package)]


def node_limit(task: Task) -> int | None:
    """How far the exact search may go: no limit, except in the sweep and at the largest sizes of the ladders."""
    if task.study == "exponents":
        return SWEEP_NODES
    return LADDER_NODES if task.study == "ladder" and task.D >= 16 else None


def matrix(task: Task) -> Array:
    """The task's X, (D, P), or (frames, D, P) for the manifold as a whole.

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
    """Ethanol at its frames: `matrices` (frames, 2, 756), the torsions' labels, the bond that turns each fastest."""

    matrices: Array
    labels: tuple[str, ...]
    turned_by: Indices
    bonds: tuple[str, ...]

    def turns(self, task: Task, indices: tuple[int, ...]) -> tuple[str, ...]:
        """The bonds about which the picked torsions turn: at the task's frame, or at most frames."""
        which = self.turned_by[:, indices] if task.replicate == WHOLE else self.turned_by[[task.replicate]][:, indices]
        return tuple(self.bonds[int(np.bincount(column).argmax())] for column in which.T)


@cache
def molecule(data: str) -> Molecule:
    """The paper's matrices at its number of frames, drawn at random from the trajectory."""
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
    """Iris, Wine and Words as they come; of breast cancer the first D features, of digits the D pixels of largest
    variance (scikit-learn's copies, in the order of the file).
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
