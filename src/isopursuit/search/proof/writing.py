"""Write a proof file after a search: a second tree, whose nodes `isopursuit.check` can bound from a few weights.

The search's own tree closes nodes by enumerations and pair bounds that would be long to log. This one has only what the
checker knows: the cut of the relaxation (its weights are rounded before the checker's code bounds the node),
interlacing, and an enumeration where few columns are missing. The bound that the search has proved is the
cutoff from the beginning. A node's bound must exceed the claimed one by MARGIN, so that another machine, which rounds
in another way, agrees. The file grows as nodes are bounded and ends with a mark, without which it is refused as
incomplete.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import Any, BinaryIO

import numpy as np

from isopursuit import check
from isopursuit._core.threads import on_one_blas_thread
from isopursuit._core.types import Array
from isopursuit.loss.envelope import relax
from isopursuit.loss.penalty import LARGEST_LOG, PROVED, STATED
from isopursuit.results import Search
from isopursuit.search.incumbent import ProofFile
from isopursuit.search.proof._tree import OpenNode, TreeKernel
from isopursuit.search.proof.tree import tree_kernel

MARGIN = STATED / 10  # relative (derived: far above rounding, and with PROVED below STATED)
# a of the inequality is that of the search, and this share more if the loss is far above k (measured: 0 takes twice as
# long for 13 wines; with 1.6 times a, 8 of 120 unit vectors, whose loss is near k, take seven times as long)
MORE_LOG = 0.8
# the kernel's cutoff, as its cut is tighter than the checker's (10 wines: 1 takes 12 times as long, 1.02 five)
FARTHER = 1.1


def write_proof(
    target: ProofFile, X: Array, problem: dict[str, Any], search: Search, workers: int, watch: Callable[[int], bool]
) -> str:
    """Write the proof of what `search` has found in X; a note says how to check it, or why there is none.

    `problem` has k, c, unit, include and exclude. `watch` gets the number of nodes, and ends the work by True.
    """
    bound = search.loss * (1 - PROVED) if search.optimal else search.lower_bound * (1 - 2 * MARGIN)
    k, c = problem["k"], problem["c"]
    if not search.log_loss < LARGEST_LOG:
        return "no proof file was written: losses this large are outside the range in which bounds can be computed."
    kappas = relax(c, k, search.loss, np.inf).rows[0, 1:, 0]
    header = {
        "format": check.FORMAT, "version": check.VERSION, "sha256": check.digest(X), "shape": list(X.shape), **problem,
        "subset": search.indices.tolist(), "loss": search.loss, "bound": bound,
        "a": float(kappas[len(kappas) // 2]) * (1 + MORE_LOG * (1 - k / max(bound, k))),
        "reading": target.reading,
    }  # fmt: skip
    try:
        with target.path.open("wb") as file:
            file.write(json.dumps(header).encode() + b"\n")
            with np.errstate(all="ignore"):
                done = _Writer(file, X, header, workers).run(watch)
    except (check.RefusedError, np.linalg.LinAlgError) as error:
        target.path.unlink()
        return f"no proof file was written: {error}"
    if not done:
        return f"the proof file {target.path} is incomplete, because the search was stopped while it was written."
    data = "isopursuit check {} FILE" if target.reading else "isopursuit.check_proof({!r}, X)"
    return f"the proof is in {target.path}; check it with {data.format(str(target.path))}."


class _Writer:
    """The tree of a proof, and the kernel that solves its relaxations."""

    def __init__(self, file: BinaryIO, X: Array, header: dict[str, Any], workers: int) -> None:
        self.file, self.start, self.workers = file, header["subset"], workers
        self.tree = check.Tree(X, header)
        self.tree.cutoff *= 1 + MARGIN
        self.kernel: TreeKernel = tree_kernel(self.tree.columns, header["k"], header["c"], FARTHER * self.tree.cutoff)

    def run(self, watch: Callable[[int], bool]) -> bool:
        """Write all nodes; False if `watch` ends the work."""
        tree = self.tree
        with ThreadPoolExecutor(self.workers) as threads:
            while any(tree.open):
                if watch(tree.nodes):
                    return False
                self._settle(tree.take(), threads)
        self.file.write(check.END)
        return True

    def _settle(self, nodes: Any, threads: ThreadPoolExecutor) -> None:
        """Bound nodes, write them, and hand them to the tree."""
        tree, (B, j) = self.tree, nodes.chosen.shape
        m, weights = tree.k - j, np.zeros(nodes.candidates.shape)
        parts: list[Any] = np.array_split(np.arange(B), min(self.workers, B))
        list(threads.map(on_one_blas_thread(self._solve), repeat(nodes), parts, repeat(weights)))
        hints = np.rint(np.minimum(weights, 1.0) * check.WEIGHT).astype(np.int64)
        heavy = hints > 0
        columns, _ = check.padded([row[some] for row, some in zip(nodes.candidates, heavy, strict=True)])
        rounded, _ = check.padded([row[some] for row, some in zip(hints, heavy, strict=True)])
        cuts = tree.cut(nodes, columns, rounded / check.WEIGHT)
        few = [m > 0 and math.comb(n, m) <= check.MOST_SUBSETS for n in cuts.keep.sum(axis=1).tolist()]
        kinds = np.where(cuts.bound >= tree.cutoff, check.CLOSED, np.where(few, check.ENUMERATED, check.BRANCHED))
        if m == 0 and (kinds != check.CLOSED).any():
            raise check.RefusedError("rounding does not allow to compare the losses of such subsets.")
        # the largest weight times effect on the loss, as in _tree.pyx
        gains = np.where(cuts.keep, (weights + 1e-12) * cuts.effects, -1.0)
        rows = np.flatnonzero(kinds == check.BRANCHED)
        branches = nodes.candidates[rows, gains[rows].argmax(axis=1)]
        number = tree.number
        for values, kind in ((kinds, "u1"), (heavy.sum(axis=1), "<u2"), (branches, number)):
            self.file.write(values.astype(kind).tobytes())
        self.file.write(nodes.candidates[heavy].astype(number).tobytes() + hints[heavy].astype("<u2").tobytes())
        kept = (cuts.keep[i] & (nodes.candidates[i] != b) for i, b in zip(rows, branches, strict=True))
        notes = [weights[i, some].astype(np.float32) for i, some in zip(rows, kept, strict=True)]
        tree.settle(nodes, cuts, kinds, branches, notes)

    def _solve(self, nodes: Any, rows: Any, weights: Array) -> None:
        """Set the weights of the candidates of some nodes, near the minimum of the relaxation."""
        for i in rows.tolist():
            chosen, candidates, start = nodes.chosen[i], nodes.candidates[i, nodes.real[i]], nodes.notes[i]
            if not len(chosen) < self.tree.k <= len(chosen) + len(candidates):
                continue
            if start is None:
                start = np.isin(candidates, self.start).astype(np.float32)
            node = OpenNode(float(self.tree.k), chosen.astype(np.int32), candidates.astype(np.int32), start)
            found = self.kernel.relax(node)
            if found is not None:
                weights[i, np.searchsorted(candidates, found[1])] = found[2]
