"""Relevance against diversity: the sample selector's trade-off beside maximal marginal relevance and greedy DPP.

    python benchmarks/relevance.py

Picks K of scikit-learn's digits for each of several queries, which are digits themselves, and prints a Markdown table:
the mean cosine of the picked to the query (relevance: higher is better), the mean and the largest |cosine| between two
of the picked (diversity: lower is better), each a mean over the queries, and which settings no other one beats on both
means. All vectors have length 1. MMR and DPP are written out below as their papers have them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_digits

from isopursuit.estimators import IsometrySampleSelector

K = 10  # samples to pick
QUERIES = (7, 100, 333, 512, 900, 1500)  # rows of the table that serve as queries (any)
SETTINGS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)  # of each method's trade-off; 0 is diversity alone
SECONDS = 5.0  # that the sample selector may take for one query

Pick = Callable[[np.ndarray, np.ndarray, float], list[int]]


@dataclass(frozen=True)
class Row:
    """What one method does at one setting, on average over the queries."""

    method: str
    setting: float
    relevance: float
    cosine: float
    largest: float


def marginal_relevance(V: np.ndarray, scores: np.ndarray, setting: float) -> list[int]:
    """MMR (Carbonell and Goldstein, 1998): λ · score − (1 − λ) · the largest cosine to what is picked, greedily."""
    picked = [int(scores.argmax())]
    while len(picked) < K:
        value = setting * scores - (1 - setting) * (V @ V[picked].T).max(axis=1)
        value[picked] = -np.inf
        picked.append(int(value.argmax()))
    return picked


def greedy_dpp(V: np.ndarray, scores: np.ndarray, setting: float) -> list[int]:
    """Greedy maximum a posteriori of a DPP with kernel q_i (v_i·v_j) q_j (Chen, Zhang and Zhou, 2018), where
    log q = θ / (2 (1 − θ)) · score, so that the objective is (1 − θ) log det + θ Σ score.
    """
    quality = np.exp(setting / (2 * (1 - setting)) * scores)
    scaled = V * quality[:, None]
    left = (scaled**2).sum(axis=1)
    factors = np.zeros((0, len(V)))
    picked: list[int] = []
    for _ in range(K):
        open_to = left.copy()
        open_to[picked] = -np.inf
        i = int(open_to.argmax())
        row = (scaled @ scaled[i] - factors[:, i] @ factors) / np.sqrt(left[i])
        factors, left = np.vstack([factors, row]), left - row**2
        picked.append(i)
    return picked


def isometry(V: np.ndarray, scores: np.ndarray, setting: float) -> list[int]:
    """`IsometrySampleSelector(relevance=θ)`."""
    selector = IsometrySampleSelector(K, method="exchange", relevance=setting, time_limit=SECONDS)
    return selector.fit(V, scores=scores).sample_indices_.tolist()


METHODS: dict[str, Pick] = {"isopursuit": isometry, "MMR": marginal_relevance, "greedy DPP": greedy_dpp}


def measured(method: str, setting: float, vectors: np.ndarray) -> Row:
    """One method at one setting."""
    found: list[tuple[float, float, float]] = []
    for query in QUERIES:
        V = np.delete(vectors, query, axis=0)
        scores = V @ vectors[query]
        picked = METHODS[method](V, scores, setting)
        between = np.abs(V[picked] @ V[picked].T)[~np.eye(K, dtype=bool)]
        found.append((float(scores[picked].mean()), float(between.mean()), float(between.max())))
    relevance, cosine, largest = np.mean(found, axis=0).tolist()
    return Row(method, setting, relevance, cosine, largest)


def main() -> None:
    """Print the table."""
    data = load_digits().data
    vectors = data / np.linalg.norm(data, axis=1, keepdims=True)
    rows = [measured(method, setting, vectors) for method in METHODS for setting in SETTINGS]
    print("| method | trade-off | relevance | mean cosine | largest cosine | beaten on both by |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        better = [
            f"{one.method} {one.setting:g}"
            for one in rows
            if one.relevance > row.relevance and one.cosine < row.cosine and one.method != row.method
        ]
        by = ", ".join(better) or "none"
        print(f"| {row.method} | {row.setting:g} | {row.relevance:.3f} | {row.cosine:.3f} | {row.largest:.3f} | {by} |")


if __name__ == "__main__":
    main()
