"""The largest set of features with |correlation| at most 0.7, beside two filters, on tables of scikit-learn.

    pip install --no-deps feature-engine
    python -m benchmarks.correlation

isopursuit proves its number. The filters depend on the order of the columns, so each table is given in 20 random
orders, and the fewest and the most features they keep are shown. *First come* keeps a feature unless it is too similar
to one that was kept before. *SmartCorrelatedSelection* (feature_engine, method "variance") keeps the feature of largest
variance of each group of features that are too similar to its first one. The last column is the largest |correlation|
of two features that it keeps. Writes the table of docs/howto/features.md, in about three minutes on one core.
"""

import time
import warnings

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from benchmarks.pages import save_table
from isopursuit.errors import IsoPursuitWarning, optional
from isopursuit.estimators import IsometryFeatureSelector

THRESHOLD = 0.7
ORDERS = 20


def with_squares(table):
    """The features, their squares and their products of two."""
    return PolynomialFeatures(2, include_bias=False).fit_transform(StandardScaler().fit_transform(table))


TABLES = {
    "wine": lambda: load_wine().data,
    "breast cancer": lambda: load_breast_cancer().data,
    "digits": lambda: load_digits().data,
    "diabetes, with products": lambda: with_squares(load_diabetes().data),
    "wine, with products": lambda: with_squares(load_wine().data),
    "breast cancer, with products": lambda: with_squares(load_breast_cancer().data),
}


def first_come(similar, order):
    kept = []
    for p in order:
        if not similar[p, kept].any():
            kept.append(p)
    return kept


def smart_filter(frame, order):
    selection = optional("feature_engine.selection", "", "this benchmark")
    given = frame.iloc[:, order]
    kept = selection.SmartCorrelatedSelection(threshold=THRESHOLD, selection_method="variance").fit_transform(given)
    return [int(name) for name in kept.columns]


def between(numbers):
    """The least and the largest number."""
    return str(min(numbers)) if min(numbers) == max(numbers) else f"{min(numbers)} to {max(numbers)}"


def main():
    rng = np.random.default_rng(0)
    warnings.simplefilter("ignore", IsoPursuitWarning)  # so many features are not nearly orthonormal
    heads = ("table", "features", "isopursuit", "first come", "SmartCorrelatedSelection", "its largest |correlation|")
    rows = []
    for name, load in TABLES.items():
        table = load()
        table = table[:, table.std(axis=0) > 1e-9]
        p = table.shape[1]
        began = time.process_time()
        found = IsometryFeatureSelector(max_correlation=THRESHOLD).fit(table).selection_
        seconds = time.process_time() - began
        similar = np.abs(np.corrcoef(table.T)) - np.eye(p)
        assert similar[np.ix_(found.indices, found.indices)].max() <= THRESHOLD + 1e-9
        frame = pd.DataFrame(table, columns=[str(j) for j in range(p)])
        orders = [rng.permutation(p) for _ in range(ORDERS)]
        first = [len(first_come(similar > THRESHOLD, order)) for order in orders]
        smart = [smart_filter(frame, order) for order in orders]
        kept, largest = [len(some) for some in smart], max(similar[np.ix_(some, some)].max() for some in smart)
        verdict = f"{found.k} ({'proved' if found.k == found.search.most else f'at most {found.search.most}'})"
        row = name, str(p), verdict, between(first), between(kept), f"{largest:.2f}"
        print(*row, f"{seconds:.2f} s", sep="  ", flush=True)
        rows.append(row)
    save_table("correlation", heads, rows)


if __name__ == "__main__":
    main()
