"""The MiniLM token dictionary, 384 × 30,522, scaled to median length 1: time to gap 1e-8 in products X Xᵀ; its words.

    python -m benchmarks.tokens [--write]

Needs the model that `make model` installs. Prints the tokens of largest weight. With --write it records the time and
writes the table of the kinds of tokens that get weight.
"""

import argparse
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "2")

import numpy as np

import isopursuit as ip
from benchmarks import pages
from tools.make_words import token_matrix

HEADS = ["kind of token", "in the dictionary", "with weight", "share of all weight"]
KINDS = {
    "special, [CLS] or [unused…]": lambda word: word.startswith("[") and word.endswith("]"),
    "pieces, ##…": lambda word: word.startswith("##"),
    "numbers": str.isdigit,
    "one character": lambda word: len(word) == 1,
    "words": lambda word: True,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="into docs/tables and the pages")
    options = parser.parse_args()
    X, words = token_matrix()
    X = np.ascontiguousarray(X / np.median(np.linalg.norm(X, axis=0)))
    X @ X.T
    product = min(timed(lambda: X @ X.T)[0] for _ in range(5))
    runs = [timed(lambda: ip.isometry_pursuit(X, tol=1e-8)) for _ in range(3)]
    seconds, found = min(runs, key=lambda run: run[0])
    told = (
        f"{X.shape[0]} × {X.shape[1]:,}: one product X Xᵀ takes {product:.3f} s, the pursuit {seconds:.2f} s, which is "
        f"{seconds / product:.0f} products; gap {found.certificate.gap:.1e} ({found.status}). Best of three runs, "
        f"{os.environ['OPENBLAS_NUM_THREADS']} threads, load {os.getloadavg()[0]:.1f}."
    )
    print(told)
    heaviest = found.support[np.argsort(-found.weights[found.support])][:100]
    print(" ".join(words[i] for i in heaviest))
    random = np.random.default_rng(0).choice(len(words), 1000, replace=False)
    print(f"median of the largest |cosine|: {nearest(X, heaviest):.2f}; of random tokens {nearest(X, random):.2f}")
    rows = list(kinds(found, words))
    print(pages.table(HEADS, rows))
    if options.write:
        pages.save_table("tokens", HEADS, rows)
        figures = {"seconds": f"{seconds:.2g} s", "products": f"{seconds / product:.0f}"}
        support = {"tokens": f"{len(words):,}", "support": f"{len(found.support):,}"}
        pages.record("tokens", "python -m benchmarks.tokens --write", figures | support)


def kinds(found, words):
    """A row for each kind of token: how many there are, how many have weight, and their share of it."""
    left = set(range(len(words)))
    for kind, belongs in KINDS.items():
        members = {i for i in left if belongs(words[i])}
        left -= members
        held = members.intersection(found.support.tolist())
        weight = found.weights[sorted(held)].sum() / found.weights.sum()
        yield [kind, f"{len(members):,}", f"{len(held):,}", f"{weight:.1%}"]


def nearest(X, columns):
    """The median over these columns of the largest |cosine| with another column."""
    unit = X / np.linalg.norm(X, axis=0)
    cosines = np.abs(unit[:, columns].T @ unit)
    cosines[np.arange(len(columns)), columns] = 0.0
    return np.median(cosines.max(axis=1))


def timed(function):
    began = time.perf_counter()
    found = function()
    return time.perf_counter() - began, found


if __name__ == "__main__":
    main()
