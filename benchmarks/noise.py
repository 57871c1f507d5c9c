"""How often the true coordinates of a manifold are found, by noise: one pair for all points, or a pair at each point.

    python -m benchmarks.noise

Writes the table of docs/howto/coordinates.md. Losses at the points are added up, as in the paper. It takes a minute.
"""

import numpy as np

import isopursuit as ip
from benchmarks.pages import save_table
from isopursuit.manifold import clifford_torus, differentials, swiss_roll, tangent_spaces

POINTS, PLACES, NEIGHBOURS, REPLICATES = 3000, 100, 60, 10
LEVELS = {
    "swiss roll": (swiss_roll, (0.0, 0.1, 0.3, 0.5, 0.7, 0.8, 1.0)),
    "Clifford torus": (clifford_torus, (0.0, 0.02, 0.05, 0.1, 0.2, 0.25, 0.3)),
}
METHODS = ("two-stage", "exact")


def replicate(manifold, seed):
    """Whether each method finds the true pair for all points, and the share of the points where it is picked alone."""
    places = np.random.default_rng(seed).choice(POINTS, PLACES, replace=False)
    spaces = tangent_spaces(manifold.points, places, D=2, neighbours=NEIGHBOURS)
    found = differentials(manifold.dictionary.take(places), spaces)
    truth = sorted(manifold.dictionary.labels.index(label) for label in manifold.truth)
    joint = [ip.select(found, method=method).indices.tolist() == truth for method in METHODS]
    return *joint, float((ip.select_pointwise(found).indices == truth).all(axis=1).mean())


def rows():
    for name, (make, levels) in LEVELS.items():
        for noise in levels:
            found = [replicate(make(POINTS, noise=noise, rng=seed), seed) for seed in range(REPLICATES)]
            row = [f"{name}, {noise:g}", *(f"{share:.0%}" for share in np.mean(found, axis=0))]
            print(" | ".join(row), flush=True)
            yield row


def main():
    heads = ["manifold, noise", *(f"one pair, {method}" for method in METHODS), "pointwise, share of the points"]
    save_table("noise", heads, rows())


if __name__ == "__main__":
    main()
