from importlib.resources import files
from itertools import combinations

import numpy as np
import pytest
from oracles import losses

import isopursuit as ip
from isopursuit.molecules import load_alanine_dipeptide, torsion_values

PHI, PSI = ("ACE:C", "ALA:N", "ALA:CA", "ALA:C"), ("ALA:N", "ALA:CA", "ALA:C", "NME:N")
OMEGAS = ("ACE:CH3", "ACE:C", "ALA:N", "ALA:CA"), ("ALA:CA", "ALA:C", "NME:N", "NME:CH3")
BACKBONE = {("ACE:C", "ALA:N"), ("ALA:N", "ALA:CA"), ("ALA:CA", "ALA:C"), ("ALA:C", "NME:N")}


@pytest.fixture(scope="module")
def peptide():
    return load_alanine_dipeptide()


def keys(trajectory):
    return [f"{residue}:{name}" for residue, name in zip(trajectory.residues, trajectory.names, strict=True)]


def degrees(trajectory, *torsions):
    order = keys(trajectory)
    rows = [[order.index(atom) for atom in torsion] for torsion in torsions]
    return np.degrees(torsion_values(trajectory.positions, rows)).T


def test_it_is_ace_ala_nme_with_names_residues_and_bonds(peptide):
    assert peptide.positions.shape == (10_000, 22, 3)
    assert peptide.residues == ("ACE",) * 6 + ("ALA",) * 10 + ("NME",) * 6
    assert "".join(sorted(peptide.symbols)) == "C" * 6 + "H" * 12 + "N" * 2 + "O" * 2
    assert [name[0] for name in peptide.names] == list(peptide.symbols)
    assert len(set(keys(peptide))) == 22
    assert peptide.serials.tolist() == list(range(22))
    assert len(peptide.bonds) == 21  # a tree: no rings


def test_no_bond_is_broken_and_those_to_hydrogen_are_rigid(peptide):
    for i, j in peptide.bonds:
        bond = np.linalg.norm(peptide.positions[:, i] - peptide.positions[:, j], axis=1)
        if "H" in (peptide.symbols[i], peptide.symbols[j]):
            assert 0.98 < bond.mean() < 1.12
            assert bond.std() < 0.002  # the resolution of the file
        else:
            assert 1.2 < bond.mean() < 1.58
            assert 0.85 * bond.mean() < bond.min() <= bond.max() < 1.15 * bond.mean()


def test_the_peptide_bonds_are_trans_and_phi_and_psi_turn(peptide):
    phi, psi, *omegas = degrees(peptide, PHI, PSI, *OMEGAS)
    assert np.mean(np.abs(omegas) > 120) > 0.999
    assert 0.7 < np.mean(phi < 0) < 0.999  # L-amino acids prefer φ < 0, and visit φ > 0
    alpha = (phi < 0) & (psi > -100) & (psi < 50)
    beta = (phi < 0) & ~alpha
    assert alpha.mean() > 0.1
    assert beta.mean() > 0.1
    # wells are entered and left many times: the sample does not depend on one rare crossing
    assert np.count_nonzero(np.diff(alpha.astype(int))) > 200
    assert np.count_nonzero(np.diff((phi > 0).astype(int))) > 20


def test_the_file_says_where_it_comes_from_and_is_small():
    file = files("isopursuit") / "data" / "alanine_dipeptide.npz"
    assert len(file.read_bytes()) <= 1_500_000
    with np.load(file) as archive:
        text = str(archive["provenance"])
    for fact in (
        "ACE-ALA-NME",
        "simulated by the isopursuit project",
        "ff14SB",
        "GBn2",
        "500 K",
        "seed",
        "BSD-3-Clause",
    ):
        assert fact in text


@pytest.mark.parametrize(("D", "neighbours"), [(2, 300), (4, 100)])
def test_one_torsion_about_each_bond_of_the_backbone_is_picked(peptide, D, neighbours):
    """φ and ψ are about the bonds of the alpha carbon; the oracle evaluates every subset at every frame."""
    found = ip.find_coordinates(peptide, D, dictionary="bonds", groups=range(10), neighbours=neighbours)
    order = keys(peptide)
    axes = {tuple(order[i] for i in sorted(row[1:3])) for row in found.atoms}
    assert axes == {bond for bond in BACKBONE if D == 4 or "ALA:CA" in bond}
    X = found.matrices.matrices
    subsets = list(combinations(range(X.shape[2]), D))
    kept = np.sort(losses(X[:, :, subsets].transpose(2, 0, 1, 3)), axis=1)[:, :90].mean(axis=1)
    assert found.loss_per_point == pytest.approx(kept.min(), rel=1e-9)
    assert found.selection.verdict == "proved optimal"
