"""Which functions are picked, over draws of points and numbers of neighbours, and what random functions reach.

    python -m benchmarks.coordinates [SYSTEM ...]   # writes docs/tables/shapes.csv, or prints the rows of some systems
    python -m benchmarks.coordinates null           # prints what the thresholds of the words lie between
    python -m benchmarks.coordinates noise          # prints how many of 200 dictionaries of noise pass for coordinates

Ten draws of 100 points. Pentane is sampled exactly (tests/chains.py), ethanol and alanine dipeptide come with the
package, adenylate kinase with MDAnalysisTests; valine and dialanine are left out unless tools/simulate_peptides.py has
made them. The other manifolds are made here. It takes about ten minutes of processor time.
"""

import sys
from collections import Counter
from pathlib import Path

import numpy as np

import isopursuit as ip
from benchmarks.pages import save_table
from isopursuit.manifold import as_dictionary
from isopursuit.molecules import load_alanine_dipeptide, load_ethanol
from tests.chains import pentane
from tests.manifolds import clifford_torus, swiss_roll

DRAWS, POINTS = 10, 3000
TURN = 2 * np.pi
HEADS = ["system", "D", "neighbours", "loss per direction", "picked most", "same of 10 redraws"]


def adenylate_kinase():
    """The 98 frames of MDAnalysisTests: the backbone of the lid, which closes."""
    from MDAnalysis import Universe
    from MDAnalysisTests.datafiles import DCD, PSF

    return Universe(PSF, DCD), {"atoms": "backbone and resid 118:160"}


def torus(unit):
    """A torus in three dimensions, with both angles in some unit (periods 1, 2π or 360), and their combinations."""
    u, v = np.random.default_rng(0).uniform(-np.pi, np.pi, (2, POINTS))
    points = np.column_stack([(2 + np.cos(v)) * np.cos(u), (2 + np.cos(v)) * np.sin(u), np.sin(v)])
    periods = {"u": unit, "v": unit, "u+v": TURN, "u-v": TURN, "2u": 2 * unit}
    values = {"u": unit / TURN * u, "v": unit / TURN * v, "u+v": (u + v) % TURN, "u-v": (u - v) % TURN}
    values |= {"2u": unit / np.pi * u, "x": points[:, 0], "z": points[:, 2], "uv": u * v}
    return points, {"dictionary": as_dictionary(values=values, periodic=periods)}


def roll_with_holes():
    """A swiss roll of which five discs are missing."""
    made = swiss_roll(2 * POINTS, noise=0.2)
    sheet = np.column_stack([made.dictionary.value(label) for label in made.truth])
    centres = np.random.default_rng(1).uniform(sheet.min(axis=0), sheet.max(axis=0), (5, 2))
    kept = (np.linalg.norm(sheet[:, None] - centres, axis=2) > 4).all(axis=1)
    values = {label: value[kept] for label, value in made.values().items()}
    return made.points[kept][:POINTS], {"dictionary": {label: value[:POINTS] for label, value in values.items()}}


def robot_arm():
    """Three joints of an arm in a plane: the places of elbow, wrist and hand, and angles between and across joints."""
    a, b, c = np.random.default_rng(0).uniform(-1.2, 1.2, (3, POINTS))
    places = np.cumsum([np.exp(1j * angle) for angle in (a, a + b, a + b + c)], axis=0)
    points = np.column_stack([places.real.T, places.imag.T])
    values = {"a": a, "b": b, "c": c, "hand x": points[:, 2], "hand y": points[:, 5], "reach": np.abs(places[2])}
    return points, {"dictionary": values | {"a+b": a + b, "a+b+c": a + b + c, "b-c": b - c}}


def head_direction():
    """The rates of 40 neurons with tuning curves around the circle, and noise."""
    rng = np.random.default_rng(0)
    t = rng.uniform(-np.pi, np.pi, POINTS)
    rates = np.exp(2 * np.cos(t[:, None] - rng.uniform(-np.pi, np.pi, 40)) - 2)
    values = {"direction": t, "speed": rng.normal(size=POINTS), "north": np.cos(t), "thrice": 3 * t + np.sin(3 * t)}
    values["mean rate"] = rates.mean(axis=1)
    periodic = {"direction": TURN, "thrice": 3 * TURN}
    return rates + 0.05 * rng.normal(size=rates.shape), {"dictionary": as_dictionary(values=values, periodic=periodic)}


# data and options, the known functions for each D by the names or middle atoms of their labels, numbers of neighbours
MANY = (100, 300, 1000, 2000)
SYSTEMS = {
    "pentane": (lambda: (pentane(), {}), {2: "C0–C1–C2–C3 C1–C2–C3–C4"}, MANY),
    "ethanol": (lambda: (load_ethanol(), {"atoms": "all"}), {2: "O2–C0–C1–H5 C1–C0–O2–H8"}, MANY),
    "alanine dipeptide": (lambda: (load_alanine_dipeptide(), {}), {2: "φ ψ", 4: "ω φ ψ ω"}, MANY),
    "valine dipeptide": ("output/valine.npz", {2: "φ ψ", 3: "φ ψ χ1"}, MANY),
    "dialanine": ("output/dialanine.npz", {4: "φ ψ φ ψ"}, MANY),
    "lid of adenylate kinase": (adenylate_kinase, {1: "", 2: ""}, (30,)),
    "torus, angles in turns": (lambda: torus(1.0), {2: "u v"}, (60, 300)),
    "torus, angles in degrees": (lambda: torus(360.0), {2: "u v"}, (60, 300)),
    "swiss roll with holes": (roll_with_holes, {2: "arc height"}, (60, 300)),
    "robot arm": (robot_arm, {3: "a a+b a+b+c"}, (60, 300)),  # the direction of each link
    "head direction": (head_direction, {1: "direction"}, (60, 300)),
}


def opened(name):
    """The data of a system and options for them, or None."""
    source = SYSTEMS[name][0]
    if not isinstance(source, str):
        return source()
    return (source, {}) if Path(source).exists() else None


def short(labels):
    """The names of functions, or their atoms."""
    return " ".join(str(label).split(" ")[0] for label in labels)


def rows(names):
    """A row for each system, dimension and number of neighbours."""
    for name in names:
        given, (_, known, sizes) = opened(name), SYSTEMS[name]
        if given is None:
            continue
        for D, truth in known.items():
            for neighbours in sizes:
                options = given[1] | {"neighbours": neighbours}
                try:
                    found = [ip.find_coordinates(given[0], D, **options, seed=seed) for seed in range(DRAWS)]
                except ip.errors.ParameterError as error:
                    print(f"{name}, {neighbours} neighbours: {error}", file=sys.stderr)
                    continue
                losses = np.quantile([one.log_loss_per_direction for one in found], (0, 0.5, 1))
                picked = Counter(" ".join(sorted(short(one.labels).split())) for one in found)
                most, count = picked.most_common(1)[0]
                same = np.mean([one.evidence.same for one in found])
                low, middle, high = (f"{np.exp(x):.3g}" if x < np.log(1000) else f"e^{x:.1f}" for x in losses)
                most = "known" if truth and most == " ".join(sorted(truth.split())) else most
                row = [name, D, neighbours, f"{middle} ({low} to {high})", f"{most}, {count} of {DRAWS}", f"{same:.0f}"]
                print(*row, sep="  ", flush=True)
                yield row


def null():
    """What the thresholds of the words lie between, over all systems: lines of least, median and largest."""
    seen = {}
    for name, (_, known, _) in SYSTEMS.items():
        given = opened(name)
        if given is None:
            continue
        for D, truth in known.items():
            for seed in range(3):
                found = ip.find_coordinates(given[0], [D, D + 1], **given[1], seed=seed)
                for row in found.scan.rows:
                    seen.setdefault(f"random functions, loss per direction, D = {row.D}", []).extend(
                        np.exp(np.minimum(row.evidence.random, 700.0))
                    )
                    if not truth:
                        continue
                    ratio = row.shares[row.D - 1] / row.shares[0]
                    here = "known D" if row.D == D else "a direction too many"
                    seen.setdefault(f"variance of the last direction, relative to the first, {here}", []).append(ratio)
                    if row.extents is not None and row.D == D:
                        moves = dict(zip(short(row.labels).split(), row.extents, strict=False))
                        seen.setdefault("spread, relative to a neighbourhood, known coordinates", []).extend(
                            value for label, value in moves.items() if label != "ω"
                        )
                        seen.setdefault("spread, relative to a neighbourhood, vibrating ω", []).extend(
                            value for label, value in moves.items() if label == "ω"
                        )
                # values without any relation to the data: the spread is that of a neighbourhood
                noise = np.random.default_rng(seed).normal(size=(len(found.data), 20))
                inside = np.median([noise[near].std(axis=0) for near in found.tangents.members], axis=0)
                seen.setdefault("spread, relative to a neighbourhood, noise", []).extend(noise.std(axis=0) / inside)
    for key in sorted(seen):
        if seen[key]:
            print(key, *(f"{x:.4g}" for x in np.quantile(seen[key], (0, 0.5, 1))), sep="  ")


def noise():
    """Dictionaries of noise on a ring, a torus and a roll: values and gradients, D = 1 and 2."""
    called = {}
    for seed in range(25):
        for kind in ("values", "gradients"):
            rng = np.random.default_rng(seed)
            t = rng.uniform(0, TURN, 500)
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
    asked = sys.argv[1:]
    if asked == ["noise"]:
        noise()
    elif asked == ["null"]:
        null()
    elif asked:
        list(rows(asked))
    else:
        save_table("shapes", HEADS, list(rows(SYSTEMS)))
