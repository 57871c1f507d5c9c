"""How the unit of length, the sign and the space change what is picked.

    python -m benchmarks.units

Writes two tables of docs/explanation/scale.md, one of geometry.md, and the picture spaces.svg beside them. It needs
scikit-learn for the data and matplotlib for the picture, and takes about two minutes. Every answer is that of
`method="exchange"`, which is deterministic if it ends before its time limit.
"""

from pathlib import Path

import numpy as np
from scipy.linalg import qr
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits

import isopursuit as ip
from benchmarks.pages import table, write
from isopursuit.datasets import load_iris, load_wine, load_words

PAGES = Path(__file__).parents[1] / "docs" / "explanation"
TIME_LIMIT = 60.0  # seconds for each answer; none of them takes so long on two idle cores
KS = range(2, 16)  # of the picture
SHOWN_KS = (5, 7, 11)  # of the table
DRAWS = 300  # random subsets that the cover of picked rows is compared with
GREY = "#7a7a7a"  # legible on white and on black
STYLES = {"vectors": ("#2f8fd0", "o-"), "leading": ("#d55e00", "s--"), "pivoted QR": ("#2a9d6f", "^:")}


def standardized(table):
    """Features of mean 0 and variance 1, without constant ones."""
    table = table[:, np.ptp(table, axis=0) > 0]
    return (table - table.mean(axis=0)) / table.std(axis=0)


def features():
    """Breast-cancer features, centred and of length 1: columns of a matrix 569 × 30."""
    X = standardized(load_breast_cancer().data)
    return X / np.sqrt(len(X))


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


def loss(X, columns):
    """The loss of the columns themselves."""
    return ip.isometry_loss(X[:, columns])


def answers(X, k):
    """The loss of the vectors for the answer of each of the three."""
    found = {
        space: ip.select(X, k, space=space, method="exchange", time_limit=TIME_LIMIT).indices
        for space in ("vectors", "leading")
    }
    found["pivoted QR"] = qr(X, mode="r", pivoting=True)[1][:k]
    return {name: loss(X, columns) for name, columns in found.items()}


def draw(results, path):
    """How far each answer's loss is above that of "vectors"; transparent, and in colours that both themes can show."""
    from matplotlib import pyplot, rc_context

    colours = {f"{part}.color": GREY for part in ("text", "xtick", "ytick")}
    settings = {"svg.hashsalt": "isopursuit", "svg.fonttype": "none", "font.size": 10, "legend.labelcolor": GREY}
    with rc_context({**settings, **colours, "axes.labelcolor": GREY, "axes.edgecolor": GREY}):
        figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
        for name, (colour, style) in STYLES.items():
            y = [100 * (losses[name] / losses["vectors"] - 1) for losses in results.values()]
            axes.plot(list(results), y, style, color=colour, label=name, markersize=5, linewidth=1.8)
        axes.set_xticks(list(results))
        axes.set(xlabel="k, features picked of 30", ylabel="loss of the picked vectors, % above “vectors”")
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(path, metadata={"Date": None}, transparent=True)
        pyplot.close(figure)


def main():
    X = features()
    results = {k: answers(X, k) for k in KS}
    draw(results, PAGES / "spaces.svg")
    spaces = [[str(k), *(f"{results[k][name]:.4g}" for name in STYLES)] for k in SHOWN_KS]
    made = {
        "units": table(["picked from", "unit", "percentiles of length", "largest cosine", "loss"], unit_rows()),
        "cover": table(["picked from", "random rows", "k-means", "`median`", "`median`, signs apart"], cover_rows()),
        "spaces": table(["k", *(f"{name}" for name in STYLES)], spaces),
    }
    for page in ("scale.md", "geometry.md"):
        write(made, PAGES / page, "python -m benchmarks.units")


if __name__ == "__main__":
    main()
