"""Feature selection, judged by the cross-validated accuracy of logistic regression on what it keeps.

    python -m benchmarks.features

Every selector is a step of a pipeline, so it sees the training part of a fold only. The first four do not look at the
target, the others do. Writes the table of docs/howto/features.md. It takes about a minute on one core.
"""

import warnings

import numpy as np
from scipy.linalg import qr
from sklearn.base import BaseEstimator
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin, VarianceThreshold, f_classif
from sklearn.linear_model import LogisticRegression, MultiTaskLasso
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelBinarizer, StandardScaler

from benchmarks.pages import save_table
from isopursuit.estimators import IsometryFeatureSelector

FOLDS = RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=0)
SIZES = (3, 5, 10)
DATA = {"breast cancer": load_breast_cancer, "wine": load_wine, "digits": load_digits}


class Chosen(SelectorMixin, BaseEstimator):
    """A selector made of a function of (table, target, k) that returns the numbers of k features."""

    def __init__(self, choose, k):
        self.choose, self.k = choose, k

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        self.picked_ = self.choose(X, y, self.k)
        return self

    def _get_support_mask(self):
        return np.isin(np.arange(self.n_features_in_), self.picked_)


def unit_length(X):
    """Centred features of length 1: the inner product of two is their correlation."""
    X = X - X.mean(axis=0)
    return X / np.linalg.norm(X, axis=0)


def largest_variance(X, y, k):
    """A variance threshold that k features pass."""
    return X.var(axis=0).argsort()[::-1][:k]


def correlation_filter(X, y, k):
    """Drop the later feature of the most correlated pair until k remain."""
    kept = list(range(X.shape[1]))
    correlations = np.triu(np.abs(np.corrcoef(X.T)), 1)
    while len(kept) > k:
        inside = correlations[np.ix_(kept, kept)]
        kept.pop(int(np.unravel_index(inside.argmax(), inside.shape)[1]))
    return kept


def pivoted_qr(X, y, k):
    return qr(unit_length(X), mode="r", pivoting=True)[1][:k]


def mrmr(X, y, k):
    """Each step takes the largest F statistic divided by the mean |correlation| with the features taken."""
    relevance, correlations = f_classif(X, y)[0], np.abs(np.corrcoef(X.T))
    taken = [int(relevance.argmax())]
    while len(taken) < k:
        score = relevance / np.maximum(correlations[:, taken].mean(axis=1), 1e-3)
        score[taken] = -np.inf
        taken.append(int(score.argmax()))
    return taken


def lasso(X, y, k):
    """The first k features on the path of a lasso that predicts the class indicators together."""
    classes = LabelBinarizer().fit_transform(y).astype(float)
    classes -= classes.mean(axis=0)
    _, weights, _ = MultiTaskLasso.path(unit_length(X), classes, l1_ratio=1.0, eps=1e-2, alphas=50)
    sizes = np.linalg.norm(weights, axis=0)  # features by penalties, the largest penalty first
    enough = np.flatnonzero((sizes > 0).sum(axis=0) >= k)[0]
    return sizes[:, enough].argsort()[::-1][:k]


METHODS = {
    "isopursuit": lambda k: IsometryFeatureSelector(k, method="exchange"),
    "pivoted QR": lambda k: Chosen(pivoted_qr, k),
    "correlation filter": lambda k: Chosen(correlation_filter, k),
    "largest variance": lambda k: Chosen(largest_variance, k),
    "isopursuit, relevance": lambda k: IsometryFeatureSelector(k, method="exchange", relevance=f_classif),
    "mRMR": lambda k: Chosen(mrmr, k),
    "lasso": lambda k: Chosen(lasso, k),
}


def accuracy(X, y, *selector):
    """Mean and standard deviation over the folds, in percent."""
    model = make_pipeline(VarianceThreshold(), *selector, StandardScaler(), LogisticRegression(max_iter=2000))
    found = 100 * cross_val_score(model, X, y, cv=FOLDS, error_score="raise")
    return f"{found.mean():.1f} ± {found.std():.1f}"


def rows():
    for name, load in DATA.items():
        X, y = load(return_X_y=True)
        everything = accuracy(X, y)
        for k in SIZES:
            row = [name, str(k), *(accuracy(X, y, selector(k)) for selector in METHODS.values()), everything]
            print(" | ".join(row), flush=True)
            yield row


def main():
    warnings.simplefilter("ignore", ConvergenceWarning)
    save_table("accuracy", ["data", "k", *METHODS, "all features"], rows())


if __name__ == "__main__":
    main()
