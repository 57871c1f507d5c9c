"""The paper's table 1 on Iris and Wine, by the authors' own recipe for replicates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isopursuit.datasets import load_iris, load_wine
from isopursuit.search.exact import exact_search
from isopursuit.search.greedy import greedy_search
from isopursuit.select import select

Array = NDArray[np.float64]

TIE = 1e-9  # losses closer than this are equal
# what the paper prints: data, greedy, |S|, two-stage, P(greedy worse), P(equal), p-value; it has no proved optimum
PAPER = {
    "iris": ["iris 4x75", "13.8 ± 7.3", "7 ± 1", "6.9 ± 1.4", "0.96", "0.", "2.4e-05", ""],
    "wine": ["wine 6x89", "7.7 ± 0.3", "13 ± 2", "7.6 ± 0.3", "0.64", "0.16", "6.3e-04", ""],
}


def table_row(name: str, replicates: int = 25) -> list[str]:
    """One row of table 1, as the paper prints it, and the proved optimum.

    Examples
    --------
    >>> table_row("wine", replicates=3)[0]
    'wine 6x89'
    """
    from scipy.stats import ttest_rel

    data, D = (load_iris(), 4) if name == "iris" else (load_wine(), 6)
    P = len(data.values) // 2
    losses = np.empty((replicates, 3))
    sizes = np.empty(replicates)
    for i in range(replicates):
        X = data.replicate(i, D)
        picked = select(X)
        sizes[i] = 0 if picked.pursuit is None else len(picked.pursuit.support)
        losses[i] = greedy_search(X).loss, picked.loss, exact_search(X).loss
    greedy, two_stage, best = losses.T
    p_value = float(ttest_rel(greedy, two_stage).pvalue) if replicates > 1 else float("nan")
    return [
        f"{name} {D}x{P}",
        _spread(greedy),
        _spread(sizes, 0),
        _spread(two_stage),
        f"{(greedy > two_stage + TIE).mean():.2f}",
        f"{(np.abs(greedy - two_stage) <= TIE).mean():.2f}",
        f"{p_value:.1e}",
        _spread(best),
    ]


def _spread(values: Array, digits: int = 1) -> str:
    deviation = values.std(ddof=1) if len(values) > 1 else 0.0
    return f"{values.mean():.{digits}f} ± {deviation:.{digits}f}"
