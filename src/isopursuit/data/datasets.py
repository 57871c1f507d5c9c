"""Small data sets that come with the package, with their sources.

Iris and Wine are from the UCI Machine Learning Repository (CC BY 4.0): R. A. Fisher, Iris (1936, doi 10.24432/C56C76)
and S. Aeberhard, M. Forina, Wine (1991, doi 10.24432/C5PC7J), as distributed by scikit-learn. Words has the cosines
between the embeddings of 61 words (all-MiniLM-L6-v2, Apache-2.0) and seven axes of meaning. tools/make_words.py makes
it.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from isopursuit._core.types import Array, Indices
from isopursuit.data._units import Standard
from isopursuit.errors import ParameterError


@dataclass(frozen=True)
class Dataset:
    """A table: `values` (samples, features), the names of the features, and the class of each sample."""

    name: str
    values: Array
    features: tuple[str, ...]
    classes: tuple[str, ...]

    def as_csv(self) -> str:
        """The table as CSV text; the class is the last column."""
        rows = (",".join([*map(repr, row.tolist()), kind]) for row, kind in zip(self.values, self.classes, strict=True))
        return "\n".join([",".join([*self.features, "class"]), *rows]) + "\n"

    def standardized(self) -> Array:
        """Features with mean 0 and population variance 1, as in the paper's experiments."""
        return Standard.of(self.values).apply(self.values)

    def matrix(self, D: int | None = None) -> Array:
        """The paper's X for diversification: standardized samples as columns, the first D features as rows."""
        return np.ascontiguousarray(self.standardized().T[:D])

    def replicate(self, i: int, D: int | None = None, P: int | None = None) -> Array:
        """The paper's i-th replicate: a random half (or P) of the samples, in the authors' random order."""
        return np.ascontiguousarray(self.standardized()[self.draw(i, P)].T[:D])

    def draw(self, i: int, P: int | None = None) -> Indices:
        """The samples that are the columns of the i-th replicate."""
        n = len(self.values)
        return np.random.RandomState(i).choice(range(n), n // 2 if P is None else P, replace=False)


def load_iris() -> Dataset:
    """150 iris flowers, 4 measurements.

    Examples
    --------
    >>> load_iris().matrix().shape
    (4, 150)
    """
    return _load("iris")


def load_wine() -> Dataset:
    """178 wines, 13 chemical measurements.

    Examples
    --------
    >>> load_wine().matrix(D=6).shape
    (6, 178)
    """
    return _load("wine")


def load_words() -> Dataset:
    """61 English words on seven axes of meaning, such as rich–poor, as in the paper's later version. A class is a word.

    Examples
    --------
    >>> load_words().classes[:3]
    ('man', 'male', 'guy')
    """
    return _load("words")


DATASETS = {"iris": load_iris, "wine": load_wine, "words": load_words}


def _load(name: str) -> Dataset:
    source = files("isopursuit") / "data" / f"{name}.csv"
    header, *rows = source.read_text(encoding="utf-8").splitlines()
    names = header.split(",")
    if names[-1] != "class":
        raise ParameterError(f"{name}.csv has no class column.")
    cells = [row.split(",") for row in rows]
    values = np.array([[float(cell) for cell in row[:-1]] for row in cells])
    return Dataset(name, values, tuple(names[:-1]), tuple(row[-1] for row in cells))
