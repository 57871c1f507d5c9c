"""Columns in a Dask array (extra `dask`): each block is screened where it is stored, by any scheduler."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.threads import on_one_blas_thread
from isopursuit._core.types import Array, Indices
from isopursuit.errors import ShapeError
from isopursuit.sources.arrays import precision
from isopursuit.sources.screening import Screen
from isopursuit.sources.tasks import Task

QUOTA = 4  # a block of a cluster may send this many times its share of the columns to load (chosen: blocks may differ)


@dataclass(frozen=True)
class DaskSource:
    """A Dask array (D₀, P) whose blocks contain whole columns.

    Every pass reads every block; `x.persist()` keeps the blocks in the cluster's memory between passes. If a worker is
    lost, Dask computes its blocks again, and the answer is the same.
    """

    array: Any
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, x: Any, rows: bool) -> DaskSource:
        """A source for an array; blocks are merged if they contain parts of columns."""
        if not hasattr(x, "chunks") or x.ndim != 2:
            kind = f"{x.ndim} dimensions" if hasattr(x, "ndim") else f"a {type(x).__name__}"
            raise ShapeError(
                f"Expected a Dask array of 2 dimensions; got {kind}. For a frame, use .to_dask_array(lengths=True)."
            )
        if any(np.isnan(size) for sizes in x.chunks for size in sizes):
            raise ShapeError("The chunk sizes of the Dask array are unknown. Call x.compute_chunk_sizes() first.")
        x = x.T if rows else x
        if len(x.chunks[0]) > 1:
            x = x.rechunk({0: -1, 1: "auto"})
        return cls(x, precision(x.dtype, "The Dask array"))

    @property
    def shape(self) -> tuple[int, int]:
        """(D₀, P)."""
        return self.array.shape

    def fold(self, task: Task) -> Any:
        """One pass: the workers compute the answers of their blocks, which are merged pairwise."""
        delayed = _delayed()
        if isinstance(task, Screen):
            task = replace(task, quota=QUOTA * task.room / self.shape[1])
        ask = delayed(_answer, pure=False)
        merge = delayed(_merged, pure=False)
        shared = delayed(task, traverse=False)
        firsts = np.cumsum([0, *self.array.chunks[1][:-1]]).tolist()
        blocks = self.array.to_delayed(optimize_graph=True).ravel()
        answers: list[Any] = [
            ask(shared, block, first, self.dtype) for block, first in zip(blocks, firsts, strict=True)
        ]
        while len(answers) > 1:
            paired: list[Any] = [merge(shared, *answers[i : i + 2]) for i in range(0, len(answers) - 1, 2)]
            answers = paired + answers[2 * len(paired) :]
        return answers[0].compute()

    def take(self, indices: Indices) -> Array:
        """These columns, float64, from the blocks that contain them."""
        order = np.argsort(indices, kind="stable")
        values = np.empty((self.shape[0], len(indices)))
        values[:, order] = self.array[:, indices[order]].compute()
        return values


def _delayed() -> Any:
    from dask import delayed  # pyright: ignore

    return delayed  # pyright: ignore


@on_one_blas_thread
def _answer(task: Task, block: NDArray[Any], first: int, dtype: np.dtype[Any]) -> Any:
    return task(np.asarray(block, dtype=dtype), first)


def _merged(task: Task, one: Any, other: Any) -> Any:
    return task.merge(one, other)
