"""Feature selection, judged by cross-validated accuracy: ours beside pivoted QR, a correlation filter and mRMR.

    python -m benchmarks.features [--page docs/howto/features.md]

Features are chosen inside each fold, from its training part alone. All choose among centred features of unit length;
mRMR and ours with relevance look at the target, the others do not. Prints a Markdown table; `--page` writes it
between the page's marks.
"""

import argparse
import re
import warnings
from pathlib import Path

import numpy as np
from scipy.linalg import qr
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from isopursuit.estimators import IsometryFeatureSelector

LIMIT = 10.0  # seconds for one of our selections
FOLDS = 5
SIZES = (3, 5, 8, 10, 15)
DATA = {"breast cancer": load_breast_cancer, "wine": load_wine, "digits": load_digits}
MODELS = {"logistic": lambda: LogisticRegression(max_iter=2000), "k-NN": KNeighborsClassifier}
MARKS = "<!-- accuracy: written by `python -m benchmarks.features` -->", "<!-- /accuracy -->"


def isopursuit(relevance=None):
    def choose(X, y, k):
        selector = IsometryFeatureSelector(k=k, method="exact", relevance=relevance, time_limit=LIMIT)
        return selector.fit(X, y).get_support(indices=True)

    return choose


def pivoted_qr(X, y, k):
    return qr(X, mode="r", pivoting=True)[1][:k]


def correlation_filter(X, y, k):
    """Drop the later feature of the most correlated pair until k are left."""
    kept = list(range(X.shape[1]))
    correlations = np.triu(np.abs(X.T @ X), 1)
    while len(kept) > k:
        inside = correlations[np.ix_(kept, kept)]
        kept.pop(int(np.unravel_index(inside.argmax(), inside.shape)[1]))
    return np.array(kept)


def mrmr(X, y, k):
    """Most relevant, least redundant: each step takes the largest F statistic / mean |correlation| with those taken."""
    relevance, correlations = f_classif(X, y)[0], np.abs(X.T @ X)
    taken = [int(relevance.argmax())]
    while len(taken) < k:
        score = relevance / np.maximum(correlations[:, taken].mean(axis=1), 1e-3)
        score[taken] = -np.inf
        taken.append(int(score.argmax()))
    return np.array(taken)


METHODS = {
    "isopursuit": isopursuit(),
    "pivoted QR": pivoted_qr,
    "correlation filter": correlation_filter,
    "isopursuit, relevance": isopursuit(f_classif),
    "mRMR": mrmr,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", type=Path, help="the page whose table is replaced")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    text = table()
    print(text)
    if options.page:
        page = options.page.read_text(encoding="utf-8")
        block = re.compile(re.escape(MARKS[0]) + ".*?" + re.escape(MARKS[1]), re.DOTALL)
        options.page.write_text(block.sub(lambda _: f"{MARKS[0]}\n{text}\n{MARKS[1]}", page), encoding="utf-8")


def table():
    """Accuracy in percent, the mean over folds: logistic regression / k-nearest neighbours."""
    lines = [["data", "k", *METHODS, "all features"], ["---"] * (len(METHODS) + 3)]
    for name, load in DATA.items():
        values, y = load(return_X_y=True)
        values = values[:, values.std(axis=0) > 0]
        everything = scores(values, y, lambda X, y, k: np.arange(X.shape[1]), 0)
        for k in (k for k in SIZES if k < values.shape[1]):
            cells = [scores(values, y, choose, k) for choose in METHODS.values()]
            lines.append([name, str(k), *cells, everything])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def scores(values, y, choose, k):
    """ "logistic / k-NN" of one method, in percent."""
    found = {name: [] for name in MODELS}
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(values, y):
        deviations = values[train].std(axis=0)
        usable = np.flatnonzero(deviations > 0)  # a feature can be constant in a fold
        X = values[np.ix_(train, usable)] - values[np.ix_(train, usable)].mean(axis=0)
        picked = usable[choose(X / np.linalg.norm(X, axis=0), y[train], k)]
        for name, model in MODELS.items():
            fitted = make_pipeline(StandardScaler(), model()).fit(values[np.ix_(train, picked)], y[train])
            found[name].append(fitted.score(values[np.ix_(test, picked)], y[test]))
    return " / ".join(f"{100 * np.mean(accuracies):.1f}" for accuracies in found.values())


if __name__ == "__main__":
    main()
