"""Alanine dipeptide, all steps: seconds, losses and the bonds that turn what is picked.

    python benchmarks/peptide.py

Writes a table of docs/explanation/aggregates.md: for the torsions along bonds, for all 1,260 torsions of the heavy
atoms, and for the torsions along bonds of all 22 atoms, what two-stage and exact pick for 100 frames together.
"""

import time

import numpy as np
from aggregates import POINTS, table, write

import isopursuit as ip
from isopursuit.manifold.alanine import load_alanine_dipeptide
from isopursuit.manifold.molecules import rotatable_bonds, torsion_matrices, turning_rates

AGGREGATE = "trimmed"
NEIGHBOURS = 300
TIME_LIMIT = 120.0  # seconds for each answer
CASES = (("heavy", "bonds", 2), ("heavy", "bonds", 3), ("heavy", "bonds", 4), ("heavy", "all", 2), ("all", "bonds", 2))


def turned_by(trajectory, found):
    """For each torsion the bond that turns it fastest at most of the frames, as text."""
    axes = rotatable_bonds(trajectory.bonds)
    rates = np.abs(turning_rates(trajectory.positions[found.frames], found.torsions, trajectory.bonds))
    most = [int(np.bincount(column, minlength=len(axes)).argmax()) for column in rates.argmax(axis=1).T]
    names = [f"{trajectory.names[i]}–{trajectory.names[j]}" for i, j in axes]
    return [names[i] for i in most]


def rows_of(atoms, dictionary, D):
    began = time.perf_counter(), time.process_time()
    trajectory = load_alanine_dipeptide().select(atoms)
    frames = np.random.default_rng(0).choice(len(trajectory.positions), POINTS, replace=False)
    found = torsion_matrices(trajectory, frames, D=D, neighbours=NEIGHBOURS, torsions=dictionary, unit="median")
    steps = np.subtract((time.perf_counter(), time.process_time()), began)
    bonds = turned_by(trajectory, found)
    for method in ("two-stage", "exact"):
        began = time.perf_counter(), time.process_time()
        picked = ip.select(found, method=method, aggregate=AGGREGATE, time_limit=TIME_LIMIT)
        search = np.subtract((time.perf_counter(), time.process_time()), began)
        yield [
            atoms,
            f"{dictionary} ({len(found.labels):,})",
            str(D),
            method,
            ", ".join(sorted(bonds[i] for i in picked.indices)),
            f"{picked.loss_per_point:.3f}",
            picked.verdict,
            f"{steps[1]:.1f} + {search[1]:.1f}",
        ]


def main():
    heads = ["atoms", "torsions", "D", "method", "turned by", "loss per frame", "verdict", "processor seconds"]
    rows = []
    for case in CASES:
        for row in rows_of(*case):
            print(" | ".join(row), flush=True)
            rows.append(row)
    write({"peptide": table(heads, rows)}, script="benchmarks/peptide.py")


if __name__ == "__main__":
    main()
