"""Sensor placement with PySensors: reconstruction error of our optimizer beside its QR and TPGR, and random places.

    python -m benchmarks.sensors [--picture docs/pictures/sensors.svg]

Three kinds of snapshots: plumes that a random wind carries from twelve sources, a plate that vibrates, and
scikit-learn's digits (pixels that vary). Modes are learned on one half; noise of 10 % of the root mean square is added
to what sensors read. Errors are ‖reconstruction − snapshot‖ / ‖snapshot‖ in percent, medians over seeds. Prints
Markdown tables.
"""

import argparse
import warnings
from functools import cache
from pathlib import Path

import numpy as np
from pysensors import SSPOR
from pysensors.basis import SVD
from pysensors.optimizers import QR, TPGR
from scipy.linalg import LinAlgWarning
from sklearn.datasets import load_digits

from benchmarks import pages
from docs.pictures.style import BLUE, GREEN, ORANGE, picture
from isopursuit.estimators import IsometrySensorSelector

SEEDS = 5
SIZES = 4, 8, 16  # sensors, and modes
MODES, MORE = 8, (12, 16, 24)  # fixed modes, and sensors
NOISE = 0.1  # of the root mean square of the training snapshots
SIDE, SNAPSHOTS = 20, 200


def plumes(rng):
    """What twelve sources of random strength emit, carried by a wind of random direction and spread by diffusion."""
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, SIDE)] * 2, indexing="ij"))
    sources = np.random.default_rng(0).uniform(0.1, 0.9, (12, 2))
    snapshots = np.zeros((2 * SNAPSHOTS, SIDE, SIDE))
    for snapshot in snapshots:
        angle, strengths = rng.uniform(0, 2 * np.pi), rng.exponential(size=len(sources))
        wind = rng.uniform(0.05, 0.3) * np.array([np.cos(angle), np.sin(angle)])
        for age in np.linspace(0.05, 1, 15):
            width = 0.003 + 0.015 * age
            centres = (sources + wind * age)[:, :, None, None]
            puffs = np.exp(-((grid - centres) ** 2).sum(axis=1) / (2 * width)) / width
            snapshot += np.tensordot(strengths, puffs, 1)
    return snapshots.reshape(len(snapshots), -1)


def plate(rng):
    """A plate held at its edges: 8 × 8 modes with amplitudes that fall as their frequencies rise."""
    number = np.arange(1, 9)
    shapes = np.sin(np.pi * np.outer(np.linspace(0, 1, SIDE), number))
    amplitudes = rng.standard_normal((2 * SNAPSHOTS, 8, 8)) / np.add.outer(number**2, number**2)
    return np.einsum("xm,kmn,yn->kxy", shapes, amplitudes, shapes).reshape(2 * SNAPSHOTS, -1)


def digits(rng):
    """The pixels that are not nearly always empty."""
    values = rng.permutation(load_digits().data)
    return values[:, values.std(axis=0) > 0.5]


DATA = {"plumes": plumes, "plate": plate, "digits": digits}


class Shuffled:
    """Random places where the modes are not all zero, as an optimizer."""

    def __init__(self, rng):
        self.rng = rng

    def fit(self, basis_matrix):
        lengths = np.linalg.norm(basis_matrix, axis=1)
        self.sensors = self.rng.permutation(np.flatnonzero(lengths > 1e-9 * lengths.max()))
        return self

    def get_sensors(self):
        return self.sensors


def optimizers(k, noise, rng):
    return {
        "isopursuit": IsometrySensorSelector(k, method="exchange"),
        "QR": QR(),
        "TPGR": TPGR(k, noise=noise),
        "random": Shuffled(rng),
    }


@cache
def halves(load, seed):
    """Training and held-out snapshots, centred, and the noise of a sensor."""
    snapshots = load(np.random.default_rng(seed))
    half = len(snapshots) // 2
    snapshots = snapshots - snapshots[:half].mean(axis=0)
    train = snapshots[:half]
    return train, snapshots[half:], NOISE * np.sqrt((train**2).mean())


def fitted(optimizer, train, modes, k, seed=0):
    model = SSPOR(basis=SVD(n_basis_modes=modes, random_state=0), optimizer=optimizer, n_sensors=k)
    model.fit(train, quiet=True, seed=seed)
    if isinstance(optimizer, IsometrySensorSelector):
        model.ranked_sensors_ = optimizer.get_sensors()  # of more sensors than modes, PySensors would shuffle the rest
    return model


def error(model, snapshots, spread, **options):
    """Relative, in percent; without options least squares, PySensors' "unregularized"."""
    sensors = model.selected_sensors
    read = snapshots[:, sensors] + spread * np.random.default_rng(0).standard_normal((len(snapshots), len(sensors)))
    found = model.predict(read, **(options or {"method": "unregularized"}))
    return 100 * np.linalg.norm(found - snapshots) / np.linalg.norm(snapshots)


def missed(modes, snapshots):
    """What the modes cannot show, in percent."""
    return 100 * np.linalg.norm(snapshots - snapshots @ modes @ modes.T) / np.linalg.norm(snapshots)


def measured(load, modes, k):
    """{method: (seeds, 3)}: held out, training, held out with a prior; and what the modes cannot show."""
    rows = {}
    for seed in range(SEEDS):
        train, test, noise = halves(load, seed)
        for name, optimizer in optimizers(k, noise, np.random.default_rng(seed)).items():
            model = fitted(optimizer, train, modes, k, seed)
            errors = error(model, test, noise), error(model, train, noise), error(model, test, noise, noise=noise)
            rows.setdefault(name, []).append(errors)
        test_least, train_least = (missed(model.basis_matrix_, half) for half in (test, train))
        rows.setdefault("all places", []).append((test_least, train_least, test_least))
    return {name: np.array(errors) for name, errors in rows.items()}


def table(found, names, *kinds):
    """One row for each problem; two kinds of errors are written as "first / second"."""
    lines = []
    for (data, k), rows in found.items():
        cells = [" / ".join(shown(rows[name][:, kind]) for kind in kinds) for name in names]
        wins = [(rows["isopursuit"][:, kind] < rows["QR"][:, kind]).sum() for kind in kinds]
        lines.append([data, str(k), *cells, " / ".join(map(str, wins))])
    return pages.table(["data", "sensors", *names, f"beats QR, of {SEEDS}"], lines)


def shown(errors):
    return f"{np.median(errors):.1f}" if np.median(errors) < 1000 else "> 1000"


def draw(found, path):
    train, test, noise = halves(plumes, 0)
    with picture(path, 7, 3.2, columns=2) as (field, errors):
        field.imshow(test[1].reshape(SIDE, SIDE).T, cmap="Greys", alpha=0.6, origin="lower")
        for name, marker, colour in (("isopursuit", "o", BLUE), ("QR", "x", ORANGE)):
            sensors = fitted(optimizers(16, noise, None)[name], train, 16, 16).selected_sensors
            x, y = np.divmod(sensors, SIDE)
            filled = {} if marker == "x" else {"facecolors": "none"}
            field.scatter(x, y, s=55, marker=marker, color=colour, linewidths=2, label=name, **filled)
        field.set(xticks=[], yticks=[], title="16 sensors, and one snapshot")
        for name, colour in (("QR", ORANGE), ("isopursuit", BLUE), ("all places", GREEN)):
            values = np.array([found["plumes", k][name][:, 0] for k in SIZES])
            errors.plot(SIZES, np.median(values, axis=1), "o-", color=colour, label=name)
            errors.fill_between(SIZES, values.min(axis=1), values.max(axis=1), color=colour, alpha=0.2, linewidth=0)
        errors.set(xlabel="sensors = modes", ylabel="held-out error, %", xticks=SIZES, ylim=(0, 100))
        errors.legend(loc="upper right", fontsize=9)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--picture", type=Path, help="where to draw positions and errors")
    options = parser.parse_args()
    warnings.simplefilter("ignore", LinAlgWarning)  # random and TPGR's sensors can be nearly dependent
    equal = {(name, k): measured(load, k, k) for name, load in DATA.items() for k in SIZES}
    more = {(name, k): measured(load, MODES, k) for name, load in DATA.items() for k in MORE}
    texts = [
        'As many modes as sensors, least squares (`method="unregularized"`), held-out / training snapshots:',
        table(equal, ("isopursuit", "QR", "random", "all places"), 0, 1),
        "The same with PySensors' default prior and the noise known, held-out snapshots:",
        table(equal, ("isopursuit", "QR", "TPGR"), 2),
        f"{MODES} modes and more sensors, least squares, held-out snapshots:",
        table(more, ("isopursuit", "QR", "TPGR", "all places"), 0),
    ]
    text = "\n\n".join(texts)
    print(text)
    if options.picture:
        draw(equal, options.picture)


if __name__ == "__main__":
    main()
