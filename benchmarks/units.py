"""How the unit of length and the sign change what is picked.

    python -m benchmarks.units

Writes the tables of docs/explanation/scale.md and geometry.md. It needs scikit-learn for the data. Every answer is
that of `method="exchange"`, which is deterministic if it ends before its time limit.
"""

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits

import isopursuit as ip
from benchmarks.pages import save_table
from isopursuit.data import load_iris, load_wine, load_words

TIME_LIMIT = 60.0  # seconds for each answer; none of them takes so long on two idle cores
DRAWS = 300  # random subsets that the cover of picked rows is compared with


def standardized(table):
    """Features of mean 0 and variance 1, without constant ones."""
    table = table[:, np.ptp(table, axis=0) > 0]
    return (table - table.mean(axis=0)) / table.std(axis=0)


def problems():
    """Name, columns to pick from, how many, and the default unit of the doors that are made for it."""
    cancer = load_breast_cancer().data
    yield "breast-cancer patients, standardized", standardized(cancer).T, 10, "median"
    yield "breast-cancer features, as measured", cancer / np.sqrt(len(cancer)), 5, "each"
    yield "digits, standardized pixels", standardized(load_digits().data).T, 10, "median"


def unit_rows():
    """One line for each data set and unit."""
    for name, X, k, default in problems():
        for unit in (None, "median", "each"):
            # features of length 1 are centred, as the estimator and the command do
            compared = X - X.mean(axis=0) if unit == default == "each" else X
            picked = ip.select(compared, k, unit=unit, method="exchange", time_limit=TIME_LIMIT)
            lengths = np.linalg.norm(X, axis=0)
            places = [100 * float((lengths < lengths[i]).mean()) for i in picked.indices]
            unit_columns = picked.matrix / np.linalg.norm(picked.matrix, axis=0)
            cosines = np.abs(unit_columns.T @ unit_columns - np.eye(k))
            mark = " (default)" if unit == default else ""
            ends = f"{min(places):.0f} to {max(places):.0f}"
            loss = f"{picked.loss:.4g}" if picked.loss < 1e6 else f"e^{picked.log_loss:.4g}"
            yield [f"{name}, k = {k}", f"`{unit}`{mark}", ends, f"{cosines.max():.2f}", loss]


def uncovered(table, rows):
    """The mean squared distance to the nearest of these rows, as a share of that to the mean row."""
    nearest = cdist(table, table[rows]).min(axis=1)
    return float((nearest**2).mean() / table.var(axis=0).sum())


def cover_rows():
    """One line for each table of rows: how far the rows are from those that each way picks."""
    rng = np.random.default_rng(0)
    iris, wine, words = load_iris().standardized(), load_wine().standardized(), load_words().values
    tables = [("Iris, standardized", iris, 3), ("Wine, standardized", wine, 3), ("Wine, standardized", wine, 6)]
    for name, rows, k in [*tables, ("words", words, 7)]:
        draws = [uncovered(rows, rng.choice(len(rows), k, replace=False)) for _ in range(DRAWS)]
        centres = KMeans(k, n_init=10, random_state=0).fit(rows).cluster_centers_
        answers = [uncovered(rows, cdist(rows, centres).argmin(axis=0))]
        for X in (rows.T, np.vstack([np.maximum(rows.T, 0), np.maximum(-rows.T, 0)])):
            picked = ip.select(X, k, unit="median", method="exchange", time_limit=TIME_LIMIT)
            answers.append(uncovered(rows, picked.indices))
        yield [f"{name}, k = {k}", *(f"{share:.2f}" for share in (np.mean(draws), *answers))]


def main():
    save_table("units", ["picked from", "unit", "percentiles of length", "largest cosine", "loss"], unit_rows())
    save_table("cover", ["picked from", "random rows", "k-means", "`median`", "`median`, signs apart"], cover_rows())


if __name__ == "__main__":
    main()
