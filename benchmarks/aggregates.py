"""How often the known coordinates are found, by how the losses at many points become one number.

    python -m benchmarks.aggregates

Writes the tables and the picture of docs/explanation/aggregates.md: swiss roll and torus by noise, and molecules; with
tangent spaces as estimated, and with 5 % of them replaced by random ones. The script evaluates every subset at every
point, so the results depend on no search. It needs matplotlib and about four minutes of processor time.
"""

import dataclasses
from itertools import combinations

import numpy as np

from benchmarks.pages import save_table
from docs.pictures.style import BLUE, FOLDER, GREY, ORANGE, picture
from isopursuit.loss.aggregate import as_aggregate
from isopursuit.loss.penalty import log_spectral_loss
from isopursuit.manifold import differentials, tangent_spaces
from isopursuit.molecules import (
    ETHANOL_BONDS,
    bond_torsions,
    load_alanine_dipeptide,
    load_ethanol,
    rotatable_bonds,
)
from paper.shapes import shape_values, torsion_differentials
from tests.manifolds import clifford_torus, swiss_roll

AGGREGATES = {"sum": "sum", "trimmed": "trimmed", "0.8": 0.8}
POINTS = 100  # at which the loss is evaluated
SPOILED = 0.05  # share of the tangent spaces that are replaced by random ones
SYNTHETIC = {
    "swiss roll": (swiss_roll, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2)),
    "flat torus": (clifford_torus, (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)),
}
TABLE_STEP = 3  # the table has every third noise; the picture has all
SYNTHETIC_DRAWS, MOLECULE_DRAWS = 20, 10
SYNTHETIC_SIZE, SYNTHETIC_NEIGHBOURS = 2000, 60
NEIGHBOURS = (100, 300, 1000)  # of the molecules' frames
KINDS = {False: "estimated", True: f"{100 * SPOILED:g} % random"}


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


def found_counts(make, noises):
    """In how many draws the coordinates of a manifold are found, by noise, for each kind and aggregate."""
    hits = {(kind, name): np.zeros(len(noises), dtype=int) for kind in KINDS for name in AGGREGATES}
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
    return hits


def synthetic_table(counts):
    """Heads and rows: swiss roll and torus beside each other."""
    heads = ["tangent spaces", "aggregate"]
    rows = {(kind, name): [KINDS[kind], f"`{name}`"] for kind in KINDS for name in AGGREGATES}
    for manifold, (_, noises) in SYNTHETIC.items():
        heads += [f"{manifold.split()[-1]}, {noise:g}" for noise in noises[::TABLE_STEP]]
        for key, row in rows.items():
            row += [str(count) for count in counts[manifold][key][::TABLE_STEP]]
    return heads, list(rows.values())


def draw(counts):
    """Write docs/pictures/aggregates.svg: how often the coordinates are found, by noise."""
    colours = dict(zip(AGGREGATES, (ORANGE, BLUE, GREY), strict=True))
    with picture(FOLDER / "aggregates.svg", 7, 4.6, rows=2, columns=2, sharey=True) as axes:
        for column, (manifold, (_, noises)) in zip(axes.T, SYNTHETIC.items(), strict=True):
            for ax, kind in zip(column, KINDS, strict=True):
                for name, colour in colours.items():
                    style = "--" if name == "0.8" else "-"
                    ax.plot(noises, counts[manifold][kind, name], style, color=colour, marker=".", label=name)
                ax.set(title=f"{manifold}, {KINDS[kind]}", ylim=(-1, SYNTHETIC_DRAWS + 1))
            column[-1].set_xlabel("noise")
        for ax in axes[:, 0]:
            ax.set(ylabel="found", yticks=range(0, SYNTHETIC_DRAWS + 1, 5))
        axes[0, 0].figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)


def draw_matrices(trajectory, rows, D, neighbours):
    """For each kind and draw the matrices that `find_coordinates` makes, of dimension D."""
    values = shape_values(trajectory.positions)
    rng = np.random.default_rng(0)
    draws = [rng.choice(len(values), POINTS, replace=False) for _ in range(MOLECULE_DRAWS)]
    spaces = tangent_spaces(values, np.concatenate(draws), D=D, neighbours=neighbours)
    for at in np.split(np.arange(len(spaces.bases)), MOLECULE_DRAWS):
        for kind in KINDS:
            here = spaces.take(at)
            used = dataclasses.replace(here, bases=spoil(here.bases, rng)) if kind else here
            yield kind, torsion_differentials(trajectory, used, rows).matrices


def molecule_rows(name, trajectory, bonds, axes):
    """Rows of the table of one molecule: in how many draws one torsion about each of the axes is picked."""
    D = len(axes)
    rows = bond_torsions(bonds)
    abouts = [tuple(sorted(row[1:3])) for row in rows.tolist()]
    hits, losses = ({(kind, aggregate): [] for kind in KINDS for aggregate in AGGREGATES} for _ in range(2))
    for neighbours in NEIGHBOURS:
        for kind, matrices in draw_matrices(trajectory, rows, D, neighbours):
            for aggregate, (best, log_loss) in best_subsets(matrices).items():
                hits[kind, aggregate].append({abouts[i] for i in best} == axes)
                losses[kind, aggregate].append(log_loss)
    for kind in KINDS:
        found = [f"{sum(hits[kind, a])} ({loss_text(np.median(losses[kind, a]))})" for a in AGGREGATES]
        yield [f"{name}, D = {D}", KINDS[kind], *found]


def loss_text(log_loss):
    """A loss that may be too large to print in full."""
    return f"{np.exp(log_loss):.2f}" if log_loss < np.log(1e4) else f"10^{log_loss / np.log(10):.0f}"


def molecule_tables():
    """Ethanol and the peptide; at D = 2 the peptide's axes are those of φ and ψ, at D = 4 those of ω too."""
    ethanol = load_ethanol()
    rows = list(molecule_rows("ethanol", ethanol, ETHANOL_BONDS, set(rotatable_bonds(ETHANOL_BONDS))))
    peptide = load_alanine_dipeptide().select("heavy")
    backbone = {tuple(sorted(bond)) for bond in rotatable_bonds(peptide.bonds)}
    alpha = peptide.names.index("CA")
    for axes in ({bond for bond in backbone if alpha in bond}, backbone):
        rows += molecule_rows("alanine dipeptide", peptide, peptide.bonds, axes)
    return rows


def main():
    counts = {manifold: found_counts(*options) for manifold, options in SYNTHETIC.items()}
    draw(counts)
    heads = ["molecule", "tangent spaces", *(f"`{name}`" for name in AGGREGATES)]
    save_table("aggregates", *synthetic_table(counts))
    save_table("aggregates_molecules", heads, molecule_tables())


if __name__ == "__main__":
    main()
