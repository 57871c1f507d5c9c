"""When a search ends, how much it tries, and whom it tells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isopursuit._core.clock import Clock
from isopursuit._core.types import Indices
from isopursuit.pursuit.settings import MEMORY
from isopursuit.search.incumbent import Callback
from isopursuit.search.settings import KICKS

BUDGET = 2_000_000  # subsets that brute force tries at most (chosen: about a minute)


@dataclass(frozen=True)
class Limits:
    """The limits of one search.

    Attributes
    ----------
    clock : Clock
        The time limit.
    gap : float
        The search ends when its gap is at most this.
    nodes : int or None
        Most nodes of the tree.
    workers : int
        Number of threads.
    memory : int
        Most bytes of columns that a source may load.
    starts : int or None
        Starts of the local search, or greedy runs; None for the default of the method.
    kicks : int
        Kicks of the local search.
    budget : int
        Most subsets of a brute-force search.
    seed : numpy.random.Generator or int
        The source of randomness for starts and kicks.
    start : array or None
        A subset that is known, in the caller's numbers; the answer is at least as good.
    lower_bound : float
        A bound that is known.
    callback : callable or None
        Receives the progress, with the caller's numbers of the best columns so far.
    """

    clock: Clock
    gap: float = 0.0
    nodes: int | None = None
    workers: int = 1
    memory: int = MEMORY
    starts: int | None = None
    kicks: int = KICKS
    budget: int = BUDGET
    seed: np.random.Generator | int = 0
    start: Indices | None = None
    lower_bound: float = 0.0
    callback: Callback | None = None

    @property
    def generator(self) -> np.random.Generator:
        """The source of randomness."""
        return np.random.default_rng(self.seed)
