"""Words as probes of a language model's vectors: ours beside pivoted QR, the most frequent words, and random ones.

    python -m benchmarks.probes [--write]

Needs the model that `make model` installs. Candidates are the first 5,000 words of all-MiniLM-L6-v2's vocabulary, which
lists frequent words first, as token vectors of length 1. The table has, for sets of k words: the loss; the error of
inner products as coefficients of sums of five of the words; the variance of coefficients by least squares; the largest
cosine; and the error of the other words of the vocabulary, reconstructed from these. With --write the table and the
picture of docs/howto/dictionary.md are made again.
"""

import argparse

import numpy as np
from scipy.linalg import qr

import isopursuit as ip
from benchmarks import pages
from docs.pictures.style import BLUE, FOLDER, GREEN, GREY, ORANGE, picture
from tools.make_words import token_matrix

CANDIDATES, SIZES = 5000, (10, 30, 100)
SUMS, TERMS = 2000, 5  # sums of words, and words in each
DRAWS = 20  # random sets
SECONDS = 120.0  # for one of our selections
COLOURS = {"isopursuit": BLUE, "pivoted QR": ORANGE, "random": GREY, "most frequent": GREEN}


def vectors():
    """Candidates and other words, (384, n) of length 1, and the candidates' names."""
    X, tokens = token_matrix()
    words = [i for i in range(tokens.index("the"), len(tokens)) if tokens[i].isalpha() and len(tokens[i]) > 1]
    X = X[:, words] / np.linalg.norm(X[:, words], axis=0)
    return X[:, :CANDIDATES], X[:, CANDIDATES:], [tokens[i] for i in words[:CANDIDATES]]


def measured(A, others, rng):
    """For the picked words A: the loss, errors in percent, and the variance of least squares."""
    k = A.shape[1]
    codes = np.zeros((k, SUMS))
    for code in codes.T:
        code[rng.choice(k, TERMS, replace=False)] = rng.standard_normal(TERMS)
    read = np.linalg.norm(A.T @ A @ codes - codes) / np.linalg.norm(codes)
    missed = np.linalg.norm(others - A @ np.linalg.lstsq(A, others, rcond=None)[0]) / np.linalg.norm(others)
    variance = (np.linalg.svd(A, compute_uv=False) ** -2).mean()
    cosine = np.abs(A.T @ A - np.eye(k)).max()
    return np.array([float(ip.isometry_loss(A)), 100 * read, variance, cosine, 100 * missed])


def sets(V, k):
    rng = np.random.default_rng(0)
    return {
        "isopursuit": [ip.select(V, k, method="exchange", time_limit=SECONDS).indices],
        "pivoted QR": [qr(V, mode="r", pivoting=True)[1][:k]],
        "random": [rng.choice(CANDIDATES, k, replace=False) for _ in range(DRAWS)],
        "most frequent": [np.arange(k)],
    }


def draw(found, path):
    with picture(path, 7, 3, columns=2) as (reading, missing):
        for name, colour in COLOURS.items():
            reading.plot(SIZES, [found[k, name][1] for k in SIZES], "o-", color=colour, label=name)
            missing.plot(SIZES, [found[k, name][4] for k in SIZES], "o-", color=colour, label=name)
        missing.plot(
            SIZES, [found[k, "principal components"][4] for k in SIZES], ":", color=GREY, label="principal comp."
        )
        reading.set(ylabel="error of inner products, %", xscale="log", yscale="log", xticks=SIZES, xlabel="words")
        missing.set(ylabel="error of other words, %", xscale="log", xticks=SIZES, xlabel="words", ylim=(0, 105))
        for ax in (reading, missing):
            ax.set_xticks(SIZES, labels=map(str, SIZES))
            ax.minorticks_off()
        reading.set_yticks((3, 10, 30, 100), labels=("3", "10", "30", "100"))
        missing.legend(loc="lower left", fontsize=9)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="the table and the picture of docs/howto/dictionary.md")
    options = parser.parse_args()
    V, others, words = vectors()
    modes = np.linalg.svd(V, full_matrices=False)[0]
    rows, found = [], {}
    for k in SIZES:
        picked = sets(V, k)
        picked["principal components"] = []
        for name, subsets in picked.items():
            bases = [V[:, subset] for subset in subsets] or [modes[:, :k]]
            values = np.mean([measured(A, others, np.random.default_rng(1)) for A in bases], axis=0)
            found[k, name] = values
            loss, read, variance, cosine, missed = values
            rows.append(
                [str(k), name, f"{loss:.2f}", f"{read:.1f}", f"{variance:.3f}", f"{cosine:.2f}", f"{missed:.1f}"]
            )
        print(k, " ".join(words[i] for i in picked["isopursuit"][0]), flush=True)
    heads = ["k", "words", "loss", "inner products, %", "variance", "largest cosine", "other words, %"]
    print(pages.table(heads, rows))
    if options.write:
        pages.save_table("probes", heads, rows)
        draw(found, FOLDER / "probes.svg")


if __name__ == "__main__":
    main()
