"""How often the known coordinates are found, by how the losses at many points become one number.

    python benchmarks/aggregates.py

Writes the tables of docs/explanation/aggregates.md: swiss roll and torus by noise, ethanol and alanine dipeptide by the
size of the neighbourhoods; with tangent spaces as estimated, and with 5 % of them replaced by random ones. Every subset
is evaluated at every point, so that the tables depend on no search. It takes about four minutes of processor time.
"""

import dataclasses
import re
from itertools import combinations
from pathlib import Path

import numpy as np

from isopursuit.aggregate import as_aggregate
from isopursuit.loss.penalty import log_spectral_loss
from isopursuit.manifold.alanine import load_alanine_dipeptide
from isopursuit.manifold.dictionary import differentials, of_unit_size
from isopursuit.manifold.ethanol import ETHANOL_BONDS, load_ethanol
from isopursuit.manifold.internal import all_angles, angle_values, bond_torsions, rotatable_bonds
from isopursuit.manifold.shapes import shape_gradients
from isopursuit.manifold.synthetic import clifford_torus, swiss_roll
from isopursuit.manifold.tangent import tangent_spaces

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "aggregates.md"
AGGREGATES = {"sum": "sum", "geometric": "geometric", "trimmed": "trimmed", "0.8": 0.8}
POINTS = 100  # at which the loss is evaluated
SPOILED = 0.05  # share of the tangent spaces that are replaced by random ones
SYNTHETIC = {
    "roll": (swiss_roll, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2)),
    "torus": (clifford_torus, (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)),
}
SYNTHETIC_DRAWS, MOLECULE_DRAWS = 20, 10
SYNTHETIC_SIZE, SYNTHETIC_NEIGHBOURS = 2000, 60
NEIGHBOURS = (100, 300, 1000)  # of the molecules' frames
KINDS = {False: "as estimated", True: f"{100 * SPOILED:g} % random"}


def log_losses(matrices, subsets):
    """The log-loss of each subset at each point, (subsets, points)."""
    chosen = matrices[:, :, subsets].transpose(2, 0, 1, 3)
    return log_spectral_loss(np.linalg.svd(chosen, compute_uv=False), 1.0)


def best_subsets(matrices):
    """For each aggregate the subset of the lowest loss, and that loss per point."""
    subsets = np.array(list(combinations(range(matrices.shape[2]), matrices.shape[1])))
    losses = log_losses(matrices, subsets)
    found = {}
    for name, option in AGGREGATES.items():
        aggregate = as_aggregate(option)
        totals = aggregate.log_total(losses)
        best = int(totals.argmin())
        found[name] = subsets[best], aggregate.per_point(totals[best], matrices.shape[0])
    return found


def spoil(bases, rng):
    """The bases with a share of them replaced by random orthonormal ones."""
    n, B, D = bases.shape
    some = rng.choice(n, round(SPOILED * n), replace=False)
    spoiled = bases.copy()
    spoiled[some] = np.linalg.qr(rng.normal(size=(len(some), B, D)))[0]
    return spoiled


def synthetic_rows(make, noises):
    """Rows of the table of one manifold: in how many percent of the draws its coordinates are found."""
    hits = {(kind, name): np.zeros(len(noises)) for kind in KINDS for name in AGGREGATES}
    for column, noise in enumerate(noises):
        for seed in range(SYNTHETIC_DRAWS):
            rng = np.random.default_rng([seed, 1])
            made = make(SYNTHETIC_SIZE, noise=noise, rng=seed)
            at = rng.choice(SYNTHETIC_SIZE, POINTS, replace=False)
            spaces = tangent_spaces(made.points, at, D=2, neighbours=SYNTHETIC_NEIGHBOURS)
            for kind in KINDS:
                bases = spoil(spaces.bases, rng) if kind else spaces.bases
                found = differentials(made.dictionary.take(at), dataclasses.replace(spaces, bases=bases), unit=None)
                for name, (best, _) in best_subsets(found.matrices).items():
                    hits[kind, name][column] += {found.labels[i] for i in best} == set(made.truth)
    return [
        [KINDS[kind], name, *(f"{100 * count / SYNTHETIC_DRAWS:.0f} %" for count in counts)]
        for (kind, name), counts in hits.items()
    ]


def draw_matrices(trajectory, rows, D, neighbours):
    """For each kind and draw the matrices that `torsion_matrices` makes by default, of dimension D."""
    positions = trajectory.positions
    rng = np.random.default_rng(0)
    draws = [rng.choice(len(positions), POINTS, replace=False) for _ in range(MOLECULE_DRAWS)]
    shapes = angle_values(positions, all_angles(positions.shape[1]))
    spaces = tangent_spaces(shapes, np.concatenate(draws), D=D, neighbours=neighbours)
    estimated = np.split(spaces.bases, MOLECULE_DRAWS)
    for at, bases in zip(draws, estimated, strict=True):
        for kind in KINDS:
            used = spoil(bases, rng) if kind else bases
            yield kind, of_unit_size(shape_gradients(positions[at], used, rows, frames=at).projected)


def molecule_rows(name, trajectory, bonds, axes):
    """Rows of the table of one molecule: in how many draws one torsion about each of the axes is picked."""
    D = len(axes)
    rows = bond_torsions(bonds)
    abouts = [tuple(sorted(row[1:3])) for row in rows.tolist()]
    cells = {(kind, aggregate): [] for kind in KINDS for aggregate in AGGREGATES}
    for neighbours in NEIGHBOURS:
        hits, losses = ({key: [] for key in cells} for _ in range(2))
        for kind, matrices in draw_matrices(trajectory, rows, D, neighbours):
            for aggregate, (best, log_loss) in best_subsets(matrices).items():
                hits[kind, aggregate].append({abouts[i] for i in best} == axes)
                losses[kind, aggregate].append(log_loss)
        for key, some in cells.items():
            some.append(f"{sum(hits[key])} of {MOLECULE_DRAWS} (loss {loss_text(np.median(losses[key]))})")
    return [[name, str(D), KINDS[kind], aggregate, *some] for (kind, aggregate), some in cells.items()]


def loss_text(log_loss):
    """A loss that may be too large to print in full."""
    return f"{np.exp(log_loss):.2f}" if log_loss < np.log(1e4) else f"10^{log_loss / np.log(10):.0f}"


def molecule_tables():
    """Ethanol and the peptide; at D = 2 the peptide's axes are those of φ and ψ, at D = 4 those of ω too."""
    ethanol = load_ethanol()
    rows = molecule_rows("ethanol", ethanol, ETHANOL_BONDS, set(rotatable_bonds(ETHANOL_BONDS)))
    peptide = load_alanine_dipeptide().select("heavy")
    backbone = {tuple(sorted(bond)) for bond in rotatable_bonds(peptide.bonds)}
    alpha = peptide.names.index("CA")
    for axes in ({bond for bond in backbone if alpha in bond}, backbone):
        rows += molecule_rows("alanine dipeptide", peptide, peptide.bonds, axes)
    return rows


def table(heads, rows):
    """A Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write(tables, page=PAGE, script="benchmarks/aggregates.py"):
    """Write each table between its marks on the page."""
    text = page.read_text(encoding="utf-8")
    for name, block in tables.items():
        marks = f"<!-- {name}: written by `python {script}` -->", f"<!-- /{name} -->"
        pattern = re.escape(marks[0]) + ".*?" + re.escape(marks[1])
        text = re.sub(pattern, lambda _, b=block, m=marks: f"{m[0]}\n{b}\n{m[1]}", text, flags=re.DOTALL)
    page.write_text(text, encoding="utf-8")


def main():
    made = {}
    for name, (make, noises) in SYNTHETIC.items():
        made[name] = table(
            ["tangent spaces", "aggregate", *(f"noise {x:g}" for x in noises)], synthetic_rows(make, noises)
        )
        print(made[name], flush=True)
    heads = ["molecule", "D", "tangent spaces", "aggregate", *(f"{n:,} neighbours" for n in NEIGHBOURS)]
    made["molecules"] = table(heads, molecule_tables())
    print(made["molecules"])
    write(made)


if __name__ == "__main__":
    main()
