"""Which torsions are picked with shapes of torsions and of angles, and whether noise passes for coordinates.

    python -m benchmarks.coordinates          # writes docs/tables/shapes.csv
    python -m benchmarks.coordinates noise    # prints how many of 200 dictionaries of noise are called coordinates

Draws of 100 frames, 100 to 2,000 neighbours, one torsion for each rotatable bond. Pentane is sampled exactly
(tests/chains.py), ethanol and alanine dipeptide come with the package, valine and dialanine are left out unless
tools/simulate_peptides.py has made them. It takes about ten minutes of processor time.
"""

import sys
from collections import Counter
from pathlib import Path

import numpy as np

import isopursuit as ip
from benchmarks.pages import save_table
from isopursuit.manifold import as_dictionary, clifford_torus, swiss_roll
from isopursuit.molecules import as_trajectory, load_alanine_dipeptide, load_ethanol
from tests.chains import pentane

DRAWS = {"torsions": 10, "angles": 4}  # angles take up to a hundred times as long
NEIGHBOURS = {"torsions": (100, 300, 1000, 2000), "angles": (300,)}
# trajectory, atoms, and the known torsions for each D, by the names or middle atoms of their labels
SYSTEMS = {
    "pentane": (pentane, "heavy", {2: "C0–C1–C2–C3 C1–C2–C3–C4"}),
    "ethanol": (load_ethanol, "all", {2: "O2–C0–C1–H5 C1–C0–O2–H8"}),
    "alanine dipeptide": (load_alanine_dipeptide, "heavy", {2: "φ ψ", 4: "ω φ ψ ω"}),
    "valine dipeptide": ("output/valine.npz", "heavy", {2: "φ ψ", 3: "φ ψ χ1"}),
    "dialanine": ("output/dialanine.npz", "heavy", {2: "", 4: "φ ψ φ ψ"}),
}


def short(labels):
    """The names of torsions, or their atoms."""
    return " ".join(str(label).split(" ")[0] for label in labels)


def rows():
    """A row for each system, dimension and number of neighbours."""
    for name, (source, atoms, known) in SYSTEMS.items():
        if isinstance(source, str) and not Path(source).exists():
            continue
        trajectory = as_trajectory(source) if isinstance(source, str) else source()
        for D, truth in known.items():
            for neighbours in NEIGHBOURS["torsions"]:
                if 2 * neighbours > len(trajectory.positions):
                    continue
                row = [name, D, neighbours]
                for shapes, draws in DRAWS.items():
                    if neighbours not in NEIGHBOURS[shapes]:
                        row += ["", "", ""]
                        continue
                    options = {"atoms": atoms, "shapes": shapes, "neighbours": neighbours}
                    found = [ip.find_coordinates(trajectory, D, **options, seed=seed) for seed in range(draws)]
                    losses = np.quantile([one.log_loss_per_direction for one in found], (0, 0.5, 1))
                    most, count = Counter(short(one.labels) for one in found).most_common(1)[0]
                    same = np.mean([one.evidence.same for one in found])
                    texts = [f"{np.exp(x):.3g}" if x < np.log(1000) else f"e^{x:.1f}" for x in losses]
                    picked = most if not truth or most != truth else "known"
                    row += [f"{texts[1]} ({texts[0]} to {texts[2]})", f"{picked}, {count} of {draws}", f"{same:.0f}"]
                print(*row, sep="  ", flush=True)
                yield row


def noise():
    """Dictionaries of noise on a ring, a torus and a roll: values and gradients, D = 1 and 2."""
    called = {}
    for seed in range(25):
        for kind in ("values", "gradients"):
            rng = np.random.default_rng(seed)
            t = rng.uniform(0, 2 * np.pi, 500)
            ring = np.column_stack([np.cos(t), np.sin(t)])
            for name, points, D in (
                ("ring", ring, 1),
                ("torus", clifford_torus(500, rng=seed).points, 2),
                ("roll", swiss_roll(500, rng=seed).points, 2),
                ("roll", swiss_roll(500, rng=seed).points, 1),
            ):
                N, B = points.shape
                values = as_dictionary(values=rng.normal(size=(N, 20)))
                dictionary = values if kind == "values" else as_dictionary(rng.normal(size=(N, B, 20)))
                quality = ip.find_coordinates(points, D, dictionary=dictionary, seed=seed).quality
                key = f"{name}, {kind}, D = {D}"
                called.setdefault(key, []).append(quality != "not coordinates")
    for key, some in called.items():
        print(f"{key}: {sum(some)} of {len(some)} called coordinates")


if __name__ == "__main__":
    if "noise" in sys.argv:
        noise()
    else:
        heads = ["molecule", "D", "neighbours"]
        for kind in DRAWS:
            heads += [f"{kind}: loss per direction", "picked most", "same of 10 redraws"]
        save_table("shapes", heads, list(rows()))
