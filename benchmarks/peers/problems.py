"""The matrices that everybody gets: at least k rows, P columns, of which k are to be picked."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from isopursuit._core.linalg import unit_columns
from isopursuit.data import load_iris, load_wine, load_words
from isopursuit.molecules import load_ethanol
from paper.ethanol import torsion_matrices

SCALINGS = ("raw", "unit")
SIZES = {  # data: k, the last of them (but for tokens, 384) the number of rows
    "ethanol": (2,),
    "iris": (4,),
    "words": (4, 7),
    "wine, 6 features": (4, 6),
    "wine": (4, 8, 13),
    "breast cancer, 10 features": (10,),
    "breast cancer": (4, 8, 16, 30),
    "digits": (4, 8, 16, 32, 61),
    "tokens": (4, 8, 16, 32, 64),
}
SERIES = (500, 1000, 2000, 4000, 8000, 16000)  # tokens drawn at random, at k = 16: time against P
SERIES_K = 16


class Problem(NamedTuple):
    """`k` of `P` columns of a data set with `rows` rows, at their own lengths ("raw") or at length 1 ("unit")."""

    data: str
    rows: int
    k: int
    P: int
    scaling: str

    @property
    def file(self) -> str:
        return f"{self.data.replace(', ', '-').replace(' ', '-')}-{self.rows}x{self.P}-{self.scaling}.npy"


def write_problems(folder: Path, only: set[str] | None = None) -> list[Problem]:
    """Save all of them, the small before the large; `only` names data sets."""
    folder.mkdir(parents=True, exist_ok=True)
    problems: list[Problem] = []
    for data, sizes in SIZES.items():
        if only and data not in only:
            continue
        X = _scaled(data, load(data))
        problems += [problem for scaling in SCALINGS for problem in _save(folder, data, X, scaling, sizes)]
        if data == "tokens":
            order = np.random.default_rng(0).permutation(X.shape[1])
            for P in SERIES:
                problems += _save(folder, data, X[:, np.sort(order[:P])], "unit", (SERIES_K,))
    return sorted(problems, key=lambda one: (list(SIZES).index(one.data), one.k, one.P))


def load(data: str) -> np.ndarray:
    """X (D, P): standardized features of samples, a frame's torsions, or a dictionary of tokens."""
    if data == "ethanol":
        return torsion_matrices(load_ethanol(), np.array([0]))[1][0]
    if data == "tokens":
        from tools.make_words import token_matrix

        return token_matrix()[0]
    name, _, features = data.partition(", ")
    own = {"iris": load_iris, "words": load_words, "wine": load_wine}
    if name in own:
        return own[name]().matrix(int(features.split()[0]) if features else None)
    from sklearn import datasets

    values = getattr(datasets, f"load_{name.replace(' ', '_')}")().data
    values = values[:, values.std(axis=0) > 0][:, : int(features.split()[0]) if features else None]
    return ((values - values.mean(axis=0)) / values.std(axis=0)).T


def _scaled(data: str, X: np.ndarray) -> np.ndarray:
    """The paper's own matrices as they are; the others divided by one number, so that their median length is 1."""
    if data in ("breast cancer", "digits", "tokens"):
        return X / np.median(np.linalg.norm(X, axis=0))
    return X


def _save(folder: Path, data: str, X: np.ndarray, scaling: str, sizes: Sequence[int]) -> list[Problem]:
    X = np.ascontiguousarray(unit_columns(X) if scaling == "unit" else X)
    problems = [Problem(data, len(X), k, X.shape[1], scaling) for k in sizes]
    np.save(folder / problems[0].file, X)
    return problems
