"""The MiniLM token dictionary, 384 × 30,522, scaled to median length 1: time to gap 1e-8 in products X Xᵀ; its words.

    python -m benchmarks.tokens [--page docs/tokens.md]

Needs the model that `make model` installs. Between the marks of the page it lists the tokens that get weight.
"""

import argparse
import os
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "2")

import numpy as np

import isopursuit as ip
from benchmarks import pages
from tools.make_words import token_matrix

KINDS = {
    "special, [CLS] or [unused…]": lambda word: word.startswith("[") and word.endswith("]"),
    "pieces, ##…": lambda word: word.startswith("##"),
    "numbers": str.isdigit,
    "one character": lambda word: len(word) == 1,
    "words": lambda word: True,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--page", type=Path, help="the page whose lists are replaced")
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
    if options.page:
        pages.write({"tokens": block(X, found, words, told)}, options.page, "python -m benchmarks.tokens")


def block(X, found, words, told):
    heaviest = found.support[np.argsort(-found.weights[found.support])]
    random = np.random.default_rng(0).choice(len(words), 1000, replace=False)
    left = set(range(len(words)))
    rows = []
    for kind, belongs in KINDS.items():
        members = {i for i in left if belongs(words[i])}
        left -= members
        held = members.intersection(found.support.tolist())
        weight = found.weights[sorted(held)].sum() / found.weights.sum()
        rows.append([kind, f"{len(members):,}", f"{len(held):,}", f"{weight:.1%}"])
    return "\n".join(
        [
            f"Of {len(words):,} tokens {len(found.support):,} have weight at the optimum.",
            "",
            told,
            "",
            pages.table(["kind of token", "in the dictionary", "with weight", "share of all weight"], rows),
            "",
            "The 100 heaviest tokens, heaviest first:",
            "",
            *wrapped([f"`{words[i]}`" for i in heaviest[:100]]),
            "",
            f"The largest |cosine| of a token with another one has median {nearest(X, heaviest[:100]):.2f} for these "
            f"100, and {nearest(X, random):.2f} for 1,000 random tokens.",
        ]
    )


def nearest(X, columns):
    """The median over these columns of the largest |cosine| with another column."""
    unit = X / np.linalg.norm(X, axis=0)
    cosines = np.abs(unit[:, columns].T @ unit)
    cosines[np.arange(len(columns)), columns] = 0.0
    return np.median(cosines.max(axis=1))


def wrapped(words, width=120):
    lines = [""]
    for word in words:
        if len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] += word + " "
    return [line.rstrip() for line in lines]


def timed(function):
    began = time.perf_counter()
    found = function()
    return time.perf_counter() - began, found


if __name__ == "__main__":
    main()
