"""Relevance against diversity: the sample selector's trade-off, maximal marginal relevance (MMR) and greedy DPP.

    python -m benchmarks.relevance            # write the table of docs/howto/diversify.md and its picture
    python -m benchmarks.relevance --check    # compare MMR and DPP as written here with those of pyversity 0.2

Every query of two data sets has known subtopics, as many as are to be picked. Each method picks from the same list, the
POOL most relevant candidates, with the same scores. Writing takes about three minutes on one idle core.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize

from benchmarks.pages import save_table
from isopursuit.estimators import IsometrySampleSelector

DOCS = Path(__file__).parents[1] / "docs"
SETTINGS = (0.0, 0.2, 0.4, 0.6, 0.8)  # of each method's trade-off; 0 is diversity alone
SHOWN = (0.0, 0.4, 0.6, 1.0)  # in the table; 1 is the row of the most relevant candidates
POOL = 100  # candidates of a query
TIME_LIMIT = 120.0  # seconds for one selection; none takes so long

WORDS, BACKGROUND, LENGTH = 3000, 1000, 25  # vocabulary, documents about nothing in particular, words of a document
TOPICS, SUBTOPICS, DOCUMENTS = 8, 10, 240  # ambiguous queries of a corpus, their meanings, documents for each query
CORPORA, ASKED = 5, 2  # corpora, and how many of the queries of each are asked
DIGIT_QUERIES, CLASSES = 10, 5  # queries, and how many classes each mixes


@dataclass(frozen=True)
class Query:
    """Candidates of unit length, most relevant first, their cosines to the query and their subtopics, −1 for none."""

    vectors: np.ndarray
    cosines: np.ndarray
    subtopics: np.ndarray
    k: int

    @property
    def scores(self) -> np.ndarray:
        """Cosines from 0 for the last candidate to 1 for the first."""
        return (self.cosines - self.cosines[-1]) / (self.cosines[0] - self.cosines[-1])


def as_query(vectors: np.ndarray, query: np.ndarray, subtopics: np.ndarray, k: int) -> Query:
    cosines = vectors @ query
    first = np.argsort(-cosines, kind="stable")[:POOL]
    return Query(vectors[first], cosines[first], subtopics[first], k)


def corpus_queries() -> Iterator[Query]:
    """Documents that are drawn from word distributions: one for all of them, one for each topic, one for each of its
    subtopics. The first subtopic of a topic has 40 % of its documents, each further one 60 % of the one before.
    A query is the three most frequent words of a topic. Vectors are TF-IDF, reduced to 100 dimensions.
    """

    def distribution(words: int) -> np.ndarray:
        chosen = np.zeros(WORDS)
        chosen[rng.choice(WORDS, words, replace=False)] = 1 / np.arange(1, words + 1)  # Zipf's law
        return chosen / chosen.sum()

    sizes = 0.6 ** np.arange(SUBTOPICS)
    sizes = np.maximum(2, np.round(DOCUMENTS * sizes / sizes.sum())).astype(int)
    for seed in range(CORPORA):
        rng = np.random.default_rng(seed)
        common, topics = distribution(WORDS), [distribution(20) for _ in range(TOPICS)]
        documents = [rng.multinomial(LENGTH, common) for _ in range(BACKGROUND)]
        labels = [(-1, -1)] * BACKGROUND
        for topic, words in enumerate(topics):
            for subtopic, size in enumerate(sizes):
                own = distribution(60)
                for _ in range(size):
                    a, b = rng.uniform(0.05, 0.25), rng.uniform(0.2, 0.5)
                    documents.append(rng.multinomial(LENGTH, a * words + b * own + (1 - a - b) * common))
                    labels.append((topic, subtopic))
        counts, (about, subtopics) = np.array(documents), np.array(labels).T
        asked = np.array([words >= np.sort(words)[-3] for words in topics[:ASKED]], dtype=float)
        weigh = TfidfTransformer(sublinear_tf=True).fit(counts)
        reduce = TruncatedSVD(100, random_state=0).fit(weigh.transform(counts))
        vectors, queries = (normalize(reduce.transform(weigh.transform(rows))) for rows in (counts, asked))
        for topic, query in enumerate(queries):
            yield as_query(vectors, query, np.where(about == topic, subtopics, -1), SUBTOPICS)


def digit_queries() -> Iterator[Query]:
    """A query is the sum of images of five digits, which are held out; the subtopics are these five digits."""
    images, digits = load_digits(return_X_y=True)
    images, rng = normalize(images), np.random.default_rng(0)
    for _ in range(DIGIT_QUERIES):
        classes = rng.choice(10, CLASSES, replace=False)
        mixed = [int(rng.choice(np.flatnonzero(digits == one))) for one in classes]
        query = images[mixed].sum(axis=0)
        vectors, found = np.delete(images, mixed, axis=0), np.delete(digits, mixed)
        yield as_query(vectors, query / np.linalg.norm(query), np.where(np.isin(found, classes), found, -1), CLASSES)


def isometry(query: Query, setting: float) -> list[int]:
    """`IsometrySampleSelector(relevance=θ)`."""
    selector = IsometrySampleSelector(query.k, method="exchange", relevance=setting, time_limit=TIME_LIMIT)
    return selector.fit(query.vectors, scores=query.scores).sample_indices_.tolist()


def marginal_relevance(query: Query, setting: float) -> list[int]:
    """MMR (Carbonell and Goldstein, 1998): λ · score − (1 − λ) · the largest cosine to the picked, greedily."""
    V, picked = query.vectors, [int(query.scores.argmax())]
    while len(picked) < query.k:
        value = setting * query.scores - (1 - setting) * (V @ V[picked].T).max(axis=1)
        value[picked] = -np.inf
        picked.append(int(value.argmax()))
    return picked


def greedy_dpp(query: Query, setting: float) -> list[int]:
    """Greedy maximum a posteriori of a DPP with kernel q_i (v_i·v_j) q_j (Chen, Zhang and Zhou, 2018), where
    log q = θ / (2 (1 − θ)) · score, so that the objective is (1 − θ) log det + θ Σ score.
    """
    quality = np.exp(setting / (2 * (1 - setting)) * query.scores)
    scaled = query.vectors * quality[:, None]
    variances = quality**2  # exact for unit vectors, so that equal ones tie and the most relevant is first
    factors = np.zeros((0, len(scaled)))
    picked: list[int] = []
    for _ in range(query.k):
        variances[picked] = -np.inf
        i = int(variances.argmax())
        row = (scaled @ scaled[i] - factors[:, i] @ factors) / np.sqrt(variances[i])
        factors, variances = np.vstack([factors, row]), variances - row**2
        picked.append(i)
    return picked


Pick = Callable[[Query, float], list[int]]
METHODS: dict[str, Pick] = {"isopursuit": isometry, "MMR": marginal_relevance, "greedy DPP": greedy_dpp}
DATA = {"corpus": corpus_queries, "digits": digit_queries}


@dataclass(frozen=True)
class Measured:
    """What a list is worth; or, over several queries, the mean or the standard deviation."""

    relevance: float
    recall: float
    mean_cosine: float
    largest_cosine: float


def measure(query: Query, picked: list[int]) -> Measured:
    V = query.vectors[picked]
    between = (V @ V.T)[~np.eye(query.k, dtype=bool)]
    covered = set(query.subtopics[picked].tolist()) - {-1}
    relevance = float(query.cosines[picked].mean())
    return Measured(relevance, len(covered) / query.k, float(between.mean()), float(between.max()))


Summary = tuple[Measured, Measured]  # mean and standard deviation over the queries


def summary(found: list[Measured]) -> Summary:
    values = np.array([astuple(one) for one in found])
    return Measured(*values.mean(axis=0).tolist()), Measured(*values.std(axis=0).tolist())


def measure_all(queries: list[Query]) -> dict[tuple[str, float], Summary]:
    """By method and trade-off; the most relevant candidates are the last entry."""
    found = {
        (name, setting): summary([measure(query, pick(query, setting)) for query in queries])
        for name, pick in METHODS.items()
        for setting in SETTINGS
    }
    found["most relevant", 1.0] = summary([measure(query, list(range(query.k))) for query in queries])
    return found


def write(found: dict[str, dict[tuple[str, float], Summary]]) -> None:
    """The table: a row for each method and shown trade-off, with the columns of every data set beside each other."""
    columns = [f"{data}: {name}" for data in found for name in ("relevance", "S-recall", "mean, largest cosine")]
    lines = []
    for name, setting in (key for key in found["corpus"] if key[1] in SHOWN):
        cells = [name, f"{setting:g}"]
        for rows in found.values():
            mean, deviation = rows[name, setting]
            cells += [f"{mean.relevance:.2f}", f"{mean.recall:.2f} ± {deviation.recall:.2f}"]
            cells += [f"{mean.mean_cosine:.2f}, {mean.largest_cosine:.2f}"]
        lines.append(cells)
    save_table("diversity", ["method", "trade-off", *columns], lines)


def draw(found: dict[str, dict[tuple[str, float], Summary]]) -> None:
    """S-recall and mean cosine against relevance, one line for each method."""
    sys.path.insert(0, str(DOCS / "pictures"))
    from style import BLUE, FOLDER, GREEN, GREY, ORANGE, picture

    styles = {"isopursuit": (BLUE, "o-"), "MMR": (ORANGE, "s--"), "greedy DPP": (GREEN, "^:")}
    with picture(FOLDER / "relevance.svg", 7, 5.2, rows=2, columns=2, sharex="col") as axes:
        for column, (data, rows) in enumerate(found.items()):
            for row, value in enumerate(("recall", "mean_cosine")):
                ax = axes[row][column]
                for method, (colour, style) in styles.items():
                    means = [mean for (name, _), (mean, _) in rows.items() if name == method]
                    heights = [getattr(mean, value) for mean in means]
                    ax.plot([mean.relevance for mean in means], heights, style, color=colour, label=method)
                best = rows["most relevant", 1.0][0]
                ax.plot(best.relevance, getattr(best, value), "*", color=GREY, markersize=9, label="most relevant")
            axes[0][column].set(title=data)
            axes[1][column].set(xlabel="relevance (mean cosine to the query)")
        axes[0][0].set(ylabel="S-recall (higher is better)")
        axes[1][0].set(ylabel="mean cosine (lower is better)")
        axes[1][0].legend()


def check() -> None:
    """Print how many lists of MMR and DPP are those of pyversity."""
    from pyversity import diversify

    queries = [query for make in DATA.values() for query in make()]
    for name, strategy in (("MMR", "mmr"), ("greedy DPP", "dpp")):
        same = 0
        for query in queries:
            for setting in SETTINGS:
                # pyversity's DPP has log q = (1 − diversity) · scale · score / standard deviation
                options = {"diversity": 1 - setting}
                if strategy == "dpp":
                    options = {"diversity": 0.5, "scale": setting / (1 - setting) * float(query.scores.std())}
                theirs = diversify(query.vectors, query.scores, query.k, strategy=strategy, **options).indices
                same += set(theirs.tolist()) == set(METHODS[name](query, setting))
        print(f"{name}: {same} of {len(queries) * len(SETTINGS)} lists have the items of pyversity's")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare MMR and DPP with pyversity's, and stop")
    if parser.parse_args().check:
        return check()
    found = {name: measure_all(list(make())) for name, make in DATA.items()}
    write(found)
    return draw(found)


if __name__ == "__main__":
    main()
