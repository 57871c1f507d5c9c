"""Columns that are known by their inner products, such as a correlation matrix: a factor X with XᵀX = G.

The loss depends on inner products alone, so any such X gives the same answer. With s the lengths √G_jj, R = G / (s sᵀ)
has the cosines, R = V E Vᵀ, and X = √E Vᵀ s. Scaling first keeps short columns next to long ones. Eigenvalues of at
most P eps times the largest count as zero. Negative ones beyond that, as rounded or pairwise computed correlations
have, are set to zero, which gives the nearest positive semidefinite matrix; then columns are scaled to their lengths
again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from isopursuit._core.linalg import EPS
from isopursuit._core.text import Caution, name_of
from isopursuit._core.types import Array, Label, Labels
from isopursuit.data._matrix import Matrix, as_labels, as_numbers_of, frame_names, refuse_entries
from isopursuit.errors import LabelError, ParameterError, ShapeError

ASYMMETRIC = 1e-6  # largest difference of two cosines that must be equal (chosen: files have six digits or more)
# largest change of a cosine that makes the matrix positive semidefinite (chosen: correlations of the 30 breast-cancer
# features with a third of the cells missing, each pair computed from the rows that have both, change by 0.06)
INDEFINITE = 0.1


def from_gram(gram: Any, labels: Sequence[Label] | None = None) -> Matrix:
    """Columns with these inner products, for `select`, `audit`, the searches and pursuits.

    Parameters
    ----------
    gram : array_like or data frame (P, P)
        Inner products of P columns: a correlation, covariance or kernel matrix. It must be symmetric and positive
        semidefinite up to rounding. Otherwise a note says by how much the nearest such matrix, which is used, differs.
    labels : sequence, optional
        Names of the columns. Default: the column names of a frame; its index must have the same names.

    Examples
    --------
    >>> import isopursuit as ip
    >>> R = [[1.0, 0.9, 0.1], [0.9, 1.0, 0.0], [0.1, 0.0, 1.0]]
    >>> ip.select(from_gram(R, labels=["a", "b", "c"]), k=2).labels
    ('b', 'c')
    """
    names, G = as_numbers_of(_ordered(gram))
    if G.ndim != 2 or G.shape[0] != G.shape[1] or G.size == 0:
        raise ShapeError(f"gram has shape {G.shape}; expected (P, P): the inner products of P columns.")
    names = as_labels(names if labels is None else labels, len(G))
    refuse_entries(G, names)
    squares = np.diag(G)
    if (squares < 0).any():
        wrong = int(squares.argmin())
        raise ParameterError(
            f"gram has {squares[wrong]:.3g} on its diagonal for column {name_of(names, wrong)}, where squared lengths "
            "are, which are not negative. Pass inner products, correlations or a kernel, not distances."
        )
    lengths = np.sqrt(squares)
    scale = np.where(lengths > 0, lengths, 1.0)
    R = G / scale / scale[:, None]
    _refuse_asymmetric(R, names)
    X, notes = _factor((R + R.T) / 2, names)
    return Matrix(X * lengths, names, notes)


def _ordered(gram: Any) -> Any:
    """A pandas frame with its rows in the order of its columns."""
    index = getattr(gram, "index", None)
    if (
        frame_names(gram) is None
        or index is None
        or len(index) != len(gram.columns)
        or list(index) == list(range(len(index)))
    ):
        return gram
    if set(index) != set(gram.columns):
        raise LabelError("The rows and columns of gram have different names. Pass the same names for both.")
    return gram.loc[list(gram.columns)]


def _refuse_asymmetric(R: Array, names: Labels | None) -> None:
    i, j = np.unravel_index(int(np.abs(R - R.T).argmax()), R.shape)
    if abs(R[i, j] - R[j, i]) > ASYMMETRIC:
        one, other = name_of(names, int(i)), name_of(names, int(j))
        raise ParameterError(
            f"gram is not symmetric: divided by the lengths it has {R[i, j]:.6g} for ({one}, {other}) and "
            f"{R[j, i]:.6g} for ({other}, {one}). Pass both triangles of inner products or correlations."
        )


def _factor(R: Array, names: Labels | None) -> tuple[Array, tuple[str, ...]]:
    """Columns of length 1 with these cosines (or 0, for zero columns), and a note if R is not positive semidefinite."""
    e, V = np.linalg.eigh(R)
    rounding = len(R) * EPS * max(e[-1], 0.0)
    if e[-1] <= 0:
        return np.zeros((1, len(R))), ()
    kept = e > rounding
    X = np.sqrt(e[kept])[:, None] * V[:, kept].T
    sizes = np.linalg.norm(X, axis=0)
    X = X / np.where(np.diag(R) > 0, np.where(sizes > 0, sizes, 1.0), np.inf)  # the rows of zero columns are rounding
    if e[0] >= -rounding:
        return X, ()
    change = np.abs(X.T @ X - R)
    most = float(change.max())
    i, j = np.unravel_index(int(change.argmax()), R.shape)
    where = f"between {name_of(names, int(i))} and {name_of(names, int(j))}"
    if most > INDEFINITE:
        raise ParameterError(
            f"gram is not positive semidefinite: its least eigenvalue is {e[0]:.3g} (lengths 1), and the nearest such "
            f"matrix differs by {most:.2g} {where}, so these are no inner products. Compute all correlations from the "
            "same rows, and do not pass distances."
        )
    return X, (
        Caution(
            f"gram is not positive semidefinite (least eigenvalue {e[0]:.2g}). The nearest matrix that is was used, "
            f"and what is proved holds for it; its cosines differ by at most {most:.2g}, {where}."
        ),
    )
