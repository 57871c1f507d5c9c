"""What every search starts from: the columns it may pick, those it must, and how its answer is told."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeGuard

import numpy as np
from numpy.typing import NDArray

from isopursuit.errors import ParameterError, RangeError, RankError, ShapeError
from isopursuit.loss import STATED, Objective
from isopursuit.matrix import (
    Label,
    Matrix,
    as_indices,
    as_points,
    direction_rank,
    name_columns,
    side_by_side,
    spectrum,
)
from isopursuit.results import Search

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
LARGE = 2**22  # entries from which a copy takes long
COPYING = 4e8  # bytes a second, by which it is judged whether there is time for one

Status = Literal["optimal", "gap", "time", "nodes", "memory", "precision", "interrupted", "heuristic"]


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

    def distinct(self, deadline: float = np.inf) -> Candidates:
        """The candidates that differ by more than sign, in an order that depends on their entries alone; all of them as
        they are where copies would take the time.

        A search that draws random numbers then answers alike whatever order and signs the caller's columns have. Two
        equal columns are dependent, so no subset of finite loss has both: of equal ones the first stays, or the one
        that must be picked.
        """
        if 3 * self.X.nbytes / COPYING > deadline - time.perf_counter():
            return self
        n, D, P = self.X.shape
        signs = _signs(self.X)

        def entries(some: Indices) -> Array:
            return (self.X[:, :, some] * signs[:, None, some]).reshape(n * D, len(some))

        first = self.X[0, 0] * signs[0]
        order = np.argsort(first, kind="stable")
        alike = np.append(first[order[1:]] == first[order[:-1]], False)
        tied = np.flatnonzero(alike | np.append(False, alike[:-1]))
        order[tied] = order[tied][np.lexsort(entries(order[tied])[::-1])]
        # equal columns stand side by side now
        same = np.zeros(P, dtype=bool)
        pairs = np.flatnonzero(alike)
        same[pairs + 1] = (entries(order[pairs]) == entries(order[pairs + 1])).all(axis=0)
        optional = np.ones(P, dtype=bool)
        optional[list(self.include)] = False
        order = order[np.lexsort((order, optional[order], np.cumsum(~same)))][~same]
        place = np.full(P, -1, dtype=np.intp)
        place[order] = np.arange(len(order))
        include = tuple(sorted(int(place[i]) for i in self.include))
        if self.X.size < LARGE:
            X = np.take(self.X, order, axis=2)
        else:
            # each column's entries side by side, as the kernels read them: one copy less where copies take long
            rows = [side_by_side(one)[order] for one in self.X]
            X = np.swapaxes(rows[0][None] if len(rows) == 1 else np.stack(rows), 1, 2)
        X *= signs[:, None, order]
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
        """The result for positions in X; the loss is computed anew from the singular values.

        What float64 cannot tell is not called proved: "precision" takes the place of a status that claims more.
        """
        positions = np.array(sorted(picked, key=lambda p: self.columns[p]), dtype=np.intp)
        subset = self.X[:, :, positions]
        score = float(objective.total(subset[None])[0])
        if score == np.inf and objective.name == "isometry":
            self._refuse_dependent(positions)
            raise RangeError(
                "Every subset tried has a loss beyond even its logarithm in float64. Use a smaller c, or rescale X, "
                f"whose median length is {self.median_length:.4g}."
            )
        loss = objective.loss(score)
        bound = len(self.X) * objective.bound(self.k) if lower_bound is None else lower_bound
        if objective.least is not None and status in ("optimal", "gap", "precision"):
            least = float(objective.add(objective.least(subset)))
            # the loss must be known far better than what is claimed about it
            known = STATED if status == "optimal" else max(STATED, 1e-3 * (1 - bound / loss))
            if status == "precision" or not score - least <= known:
                status, bound = "precision", min(bound, objective.loss(least))
                notes += (_precision_note(subset),)
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

    def _refuse_dependent(self, positions: Indices) -> None:
        """Say so where the subset is dependent at some point: then no subset that was tried is any better."""
        for i, point in enumerate(self.X[:, :, positions]):
            if direction_rank(point) < self.k:
                where = f" at some of the {len(self.X)} points (one of them at point {i})" if len(self.X) > 1 else ""
                raise RankError(
                    f"Every subset of {self.k} columns that was tried is linearly dependent{where}, so its loss is "
                    "infinite. Give the search more time, include or exclude fewer columns, pass a smaller k to "
                    "`select`, or leave out points."
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
        rounding = matrices[i].rounding
        rounding = None if rounding is None else rounding[columns]
        _check_rank(point, rounding, place, must, matrix.labels, f" at point {i}" if len(values) > 1 else "")
    return Candidates(matrix, values, columns, place)


def _precision_note(subset: Array) -> str:
    s = spectrum(subset)
    with np.errstate(divide="ignore"):
        condition = float((s[:, 0] / s[:, -1]).max())
    return (
        f"not proved: the picked columns have condition number {condition:.2g}, and float64 cannot tell the losses of "
        "such subsets apart. Drop columns that nearly repeat others, or dimensions in which all columns nearly vanish."
    )


def _signs(X: Array) -> Array:
    """Of each column at each point, (n, P): that of its first entry that is not zero."""
    signs = np.sign(X[:, 0])
    point, column = np.nonzero(signs == 0)
    rest = X[point, :, column]
    signs[point, column] = np.sign(np.take_along_axis(rest, (rest != 0).argmax(axis=1)[:, None], axis=1)[:, 0])
    return signs


def is_validated(X: Any) -> TypeGuard[list[Matrix]]:
    """Whether these are points that the door has let in."""
    return isinstance(X, list) and len(X) > 0 and isinstance(X[0], Matrix)  # pyright: ignore[reportUnknownArgumentType]


def _check_rank(
    values: Array,
    rounding: Array | None,
    place: tuple[int, ...],
    must: list[int],
    labels: tuple[Label, ...] | None,
    where: str,
) -> None:
    D = len(values)
    rank = direction_rank(values, rounding)
    if rank < D:
        raise RankError(
            f"X has {D} rows but the columns that can be picked have rank {rank}{where}, so every subset has infinite "
            f"loss. Pass k={rank} to `select` for its {rank}-dimensional row space, or drop dependent rows."
        )
    included = list(place)
    if included and direction_rank(values[:, included], None if rounding is None else rounding[included]) < len(place):
        raise RankError(f"The included columns are linearly dependent{where}: {name_columns(must, labels)}.")
