"""Alanine dipeptide: losses, and the bonds whose turning changes what is picked.

    python -m benchmarks.peptide

Prints two tables: what two-stage and exact pick for 100 frames together, from the torsions along bonds and from all
torsions; and how often both pick the same bonds among the 1,260 torsions of the heavy atoms. It takes about three
minutes of processor time.
"""

import time

import numpy as np

import isopursuit as ip
from benchmarks.aggregates import MOLECULE_DRAWS, NEIGHBOURS, POINTS, loss_text
from benchmarks.pages import table
from isopursuit.manifold import torsion_matrices
from isopursuit.molecules import bond_torsions, load_alanine_dipeptide, rotatable_bonds, torsion_values, turning_rates

AGGREGATE = "trimmed"
METHODS = ("two-stage", "exact")
TIME_LIMIT = 120.0  # seconds for each answer; none takes so long
USUAL_NEIGHBOURS = 300  # of the first table
CASES = (
    ("heavy", "bonds", 2),
    ("heavy", "bonds", 3),
    ("heavy", "bonds", 4),
    ("heavy", "all", 2),
    ("all", "bonds", 2),
    ("all", "bonds", 5),
)


def spreads(trajectory, axes):
    """How far the molecule turns about each bond over the trajectory: the circular standard deviation, in radians."""
    torsions = bond_torsions(trajectory.bonds)
    rows = [next(row for row in torsions.tolist() if sorted(row[1:3]) == sorted(axis)) for axis in axes]
    return np.sqrt(-2 * np.log(np.abs(np.exp(1j * torsion_values(trajectory.positions, rows)).mean(axis=0))))


def moved_by(trajectory, found, *, weighted=True):
    """For each torsion the bond that changes it most at most of the frames, as text.

    By how fast the torsion changes as the molecule turns about the bond, times how far it turns if `weighted`.
    """
    axes = rotatable_bonds(trajectory.bonds)
    rates = np.abs(turning_rates(trajectory.positions[found.frames], found.torsions, trajectory.bonds))
    largest = (rates * (spreads(trajectory, axes)[:, None] if weighted else 1.0)).argmax(axis=1)
    most = [int(np.bincount(column).argmax()) for column in largest.T]
    names = [f"{trajectory.residues[i]}:{trajectory.names[i]}–{trajectory.names[j]}" for i, j in axes]
    return [names[i] for i in most]


def matrices_of(trajectory, dictionary, D, neighbours, seed):
    """The matrices of one draw, and the seconds of processor time that they take."""
    began = time.process_time()
    frames = np.random.default_rng(seed).choice(len(trajectory.positions), POINTS, replace=False)
    found = torsion_matrices(trajectory, frames, D=D, neighbours=neighbours, torsions=dictionary)
    return found, time.process_time() - began


def answers(trajectory, found):
    """For each method the answer, the bonds that move what it picks, and the seconds of processor time."""
    bonds = moved_by(trajectory, found)
    for method in METHODS:
        began = time.process_time()
        picked = ip.select(found, method=method, aggregate=AGGREGATE, time_limit=TIME_LIMIT)
        yield method, picked, sorted(bonds[i] for i in picked.indices), time.process_time() - began


def case_rows():
    """Rows of the first table: one draw of frames."""
    for atoms, dictionary, D in CASES:
        trajectory = load_alanine_dipeptide().select(atoms)
        found, _ = matrices_of(trajectory, dictionary, D, USUAL_NEIGHBOURS, 0)
        _, picked, bonds, _ = zip(*answers(trajectory, found), strict=True)
        assert all(one.verdict.startswith("proved optimal") for one in picked)
        losses = [loss_text(np.log(one.loss_per_point)) for one in picked]
        changed = ", ".join(bonds[1]) + ("" if bonds[0] == bonds[1] else " (two-stage: other bonds)")
        yield [
            f"{atoms} ({trajectory.positions.shape[1]})",
            f"{dictionary} ({len(found.labels):,})",
            str(D),
            changed,
            *losses,
        ]


def agreement_rows():
    """Rows of the second table: all torsions of the heavy atoms at D = 2."""
    trajectory = load_alanine_dipeptide().select("heavy")
    textbook = ["ALA:CA–C", "ALA:N–CA"]
    for neighbours in NEIGHBOURS:
        hits, times, same, by_rate = dict.fromkeys(METHODS, 0), dict.fromkeys(METHODS, 0.0), 0, 0
        for seed in range(MOLECULE_DRAWS):
            found, _ = matrices_of(trajectory, "all", 2, neighbours, seed)
            fastest = moved_by(trajectory, found, weighted=False)
            bonds, rates = {}, []
            for method, picked, bonds[method], seconds in answers(trajectory, found):
                hits[method] += bonds[method] == textbook
                times[method] = max(times[method], seconds)
                rates.append(sorted(fastest[i] for i in picked.indices))
                assert picked.verdict.startswith("proved optimal")
            same += bonds["two-stage"] == bonds["exact"]
            by_rate += rates[0] == rates[1]
        counts = [f"{count} of {MOLECULE_DRAWS}" for count in (*hits.values(), same, by_rate)]
        yield [f"{neighbours:,}", *counts, *(f"{seconds:.1f}" for seconds in times.values())]


def main():
    heads = ["atoms", "torsions", "D", "changed by", *(f"loss, {method}" for method in METHODS)]
    print(table(heads, list(case_rows())), end="\n\n", flush=True)
    agreed = ["neighbours", "φ and ψ by two-stage", "φ and ψ by exact", "both agree", "both agree by rate alone"]
    longest = [f"{method}, longest (s)" for method in METHODS]
    print(table([*agreed, *longest], list(agreement_rows())))


if __name__ == "__main__":
    main()
