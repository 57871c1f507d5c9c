"""What every search starts from: the columns it may pick, those it must, and how its answer is told."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeGuard

import numpy as np
from numpy.typing import NDArray

from isopursuit.errors import ParameterError, RangeError, RankError, ShapeError
from isopursuit.loss import Objective
from isopursuit.matrix import (
    Label,
    Matrix,
    as_indices,
    as_points,
    column_rank,
    name_columns,
    side_by_side,
    unit_columns,
)
from isopursuit.results import Search

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
LARGE = 2**22  # entries from which a copy takes long
COPYING = 4e8  # bytes a second, by which it is judged whether there is time for one

Status = Literal["optimal", "gap", "time", "nodes", "memory", "interrupted", "heuristic"]


@dataclass(frozen=True)
class Candidates:
    """The columns a search may pick, X (n, D, P) at n points, their numbers in the caller's matrix, and which must be
    picked.

    `include` holds positions in X. One matrix is one point; at several, losses are summed.
    """

    matrix: Matrix
    X: Array
    columns: Indices
    include: tuple[int, ...]
    began: float = field(default_factory=time.perf_counter)

    @property
    def k(self) -> int:
        """How many columns are picked: as many as there are rows."""
        return self.X.shape[1]

    @property
    def free(self) -> Indices:
        """Positions that may be picked or not."""
        return np.setdiff1d(np.arange(self.X.shape[2]), self.include)

    @property
    def median_length(self) -> float:
        """Over all columns and points, for advice on scale."""
        return float(np.median(np.linalg.norm(self.X, axis=1)))

    def ordered(self, deadline: float = np.inf) -> Candidates:
        """The same candidates in an order that depends on their entries alone, so that a search that draws random
        numbers answers alike whatever order the caller's columns have; as they are where copies would take the time.
        """
        if 3 * self.X.nbytes / COPYING > deadline - time.perf_counter():
            return self
        order = _lexicographic(self.X.reshape(-1, self.X.shape[2]))
        place = np.empty(len(order), dtype=np.intp)
        place[order] = np.arange(len(order))
        include = tuple(sorted(int(place[i]) for i in self.include))
        if self.X.size < LARGE:
            X = np.take(self.X, order, axis=2)
        else:
            # each column's entries side by side, as the kernels want them: one copy less where copies take long
            rows = [side_by_side(one)[order] for one in self.X]
            X = np.swapaxes(rows[0][None] if len(rows) == 1 else np.stack(rows), 1, 2)
        return Candidates(self.matrix, X, self.columns[order], include, self.began)

    def answer(
        self,
        picked: Iterable[int],
        objective: Objective,
        method: str,
        status: Status,
        evaluations: int,
        *,
        lower_bound: float | None = None,
        nodes: int = 0,
        notes: tuple[str, ...] = (),
    ) -> Search:
        """The result for positions in X; the loss is computed anew from the singular values."""
        positions = np.array(sorted(picked, key=lambda p: self.columns[p]), dtype=np.intp)
        score = float(objective.total(self.X[None, :, :, positions])[0])
        if score == np.inf and objective.name == "isometry":
            raise RangeError(
                "Every subset tried has a loss beyond even its logarithm in float64. Use a smaller c, or rescale X, "
                f"whose median length is {self.median_length:.4g}."
            )
        loss = objective.loss(score)
        bound = len(self.X) * objective.bound(self.k) if lower_bound is None else lower_bound
        log_loss = score if objective.name == "isometry" else float(np.log(loss)) if loss > 0 else float("nan")
        return Search(
            indices=np.sort(self.columns[positions]),
            loss=loss,
            log_loss=log_loss,
            lower_bound=loss if status == "optimal" else min(bound, loss),
            evaluations=evaluations,
            status=status,
            method=method,
            objective=objective.name,
            nodes=nodes,
            seconds=time.perf_counter() - self.began,
            labels=self.matrix.labels,
            notes=self.matrix.notes + notes,
        )


def as_candidates(
    X: Any,
    include: Iterable[Any] | None = None,
    exclude: Iterable[Any] | None = None,
    labels: Sequence[Label] | None = None,
) -> Candidates:
    """Validate a search's input: enough columns, of full rank, with independent ones among those that must be in.

    X is one matrix or many points, raw or as the door has already let in.
    """
    matrices = [X] if isinstance(X, Matrix) else X if is_validated(X) else as_points(X, labels)[0]
    matrix = matrices[0]
    must = as_indices(include, matrix, "include")
    barred = as_indices(exclude, matrix, "exclude")
    D, P = matrix.values.shape
    both = sorted(set(must) & set(barred))
    if both:
        raise ParameterError(f"Columns both included and excluded: {name_columns(both, matrix.labels)}.")
    if len(must) > D:
        raise ParameterError(f"include names {len(must)} columns, but only {D} are picked (one for each row of X).")
    allowed = np.all([one.nonzero for one in matrices], axis=0)
    vanishing = int((np.any([one.nonzero for one in matrices], axis=0) & ~allowed).sum())
    if vanishing:
        note = f"columns that are zero at some of the {len(matrices)} points cannot be picked: {vanishing} of them."
        matrix = replace(matrix, notes=(*matrix.notes, note))
    allowed[barred] = False
    unusable = [i for i in must if not allowed[i]]
    if unusable:
        raise ParameterError(f"include names zero columns: {name_columns(unusable, matrix.labels)}.")
    columns = np.flatnonzero(allowed)
    if len(columns) < D:
        raise ShapeError(
            f"Only {len(columns)} of {P} columns can be picked (the others are zero or excluded), but {D} are needed. "
            "Exclude fewer columns, or pass a smaller k to `select`."
        )
    values = matrix.values[None] if len(matrices) == 1 else np.stack([one.values for one in matrices])
    values = values if len(columns) == P else np.ascontiguousarray(values[:, :, columns])
    place = tuple(int(i) for i in np.searchsorted(columns, must))
    for i, point in enumerate(values):
        _check_rank(point, place, must, matrix.labels, f" at point {i}" if len(values) > 1 else "")
    return Candidates(matrix, values, columns, place)


def _lexicographic(keys: Array) -> Indices:
    """The order of the columns by their first entry, of equal ones by the second, and so on: few need the second."""
    order = np.argsort(keys[0], kind="stable")
    equal = np.diff(keys[0, order]) == 0
    tied = np.flatnonzero(np.append(equal, False) | np.append(False, equal))
    some = order[tied]
    order[tied] = some[np.lexsort(keys[:, some][::-1])]
    return order


def is_validated(X: Any) -> TypeGuard[list[Matrix]]:
    """Whether these are points that the door has let in."""
    return isinstance(X, list) and len(X) > 0 and isinstance(X[0], Matrix)  # pyright: ignore[reportUnknownArgumentType]


def _check_rank(
    values: Array, place: tuple[int, ...], must: list[int], labels: tuple[Label, ...] | None, where: str
) -> None:
    D = len(values)
    rank = column_rank(values)
    if rank < D:
        raise RankError(
            f"X has {D} rows but the columns that can be picked have rank {rank}{where}, so every subset has infinite "
            f"loss. Pass k={rank} to `select` for its {rank}-dimensional row space, or drop dependent rows."
        )
    if place and np.linalg.matrix_rank(unit_columns(values[:, place])) < len(place):
        raise RankError(f"The included columns are linearly dependent{where}: {name_columns(must, labels)}.")
