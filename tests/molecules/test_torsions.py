import numpy as np
import pytest

from isopursuit.errors import ParameterError, ShapeError
from isopursuit.molecules import Trajectory, load_ethanol, torsion_labels, torsion_rows, torsion_values
from isopursuit.molecules._elements import SYMBOLS

BACKBONE = (
    "ω (ACE:CH3–ACE:C–ALA:N–ALA:CA)",
    "φ (ACE:C–ALA:N–ALA:CA–ALA:C)",
    "ψ (ALA:N–ALA:CA–ALA:C–NME:N)",
    "ω (ALA:CA–ALA:C–NME:N–NME:C)",
)


@pytest.fixture(scope="module")
def molecule(peptide):
    numbers = [SYMBOLS.index(symbol) for symbol in peptide.symbols]
    return Trajectory(peptide.positions, numbers, "peptide", peptide.names, peptide.residues)


def shuffled(trajectory, seed):
    """The same molecule with its atoms in another order."""
    return trajectory.select(np.random.default_rng(seed).permutation(len(trajectory.numbers)))


@pytest.mark.parametrize("seed", range(4))
def test_one_torsion_turns_each_rotatable_bond_of_the_peptide_and_has_its_name(molecule, seed):
    heavy = shuffled(molecule, seed).select("heavy")
    rows = torsion_rows(heavy, "rotatable")
    assert set(torsion_labels(heavy, rows)) == set(BACKBONE)
    assert set(BACKBONE) <= set(torsion_labels(heavy, torsion_rows(heavy)))
    # with hydrogens the three methyl groups turn, too
    everything = shuffled(molecule, seed)
    labels = torsion_labels(everything, torsion_rows(everything, "rotatable"))
    assert set(BACKBONE) <= set(labels)
    assert len(labels) == 7


@pytest.mark.parametrize("seed", range(3))
def test_the_torsions_called_phi_and_psi_are_those_that_were_turned(molecule, peptide, seed):
    heavy = shuffled(molecule, seed).select("heavy")
    rows = torsion_rows(heavy, "bonds")
    values = dict(zip(torsion_labels(heavy, rows), torsion_values(heavy.positions, rows).T, strict=True))
    for label, turn in ((BACKBONE[1], peptide.phi), (BACKBONE[2], peptide.psi)):
        np.testing.assert_allclose(np.exp(1j * (values[label] - values[label][0])), np.exp(1j * turn), atol=1e-9)
    for label in (BACKBONE[0], BACKBONE[3]):
        assert np.ptp(np.cos(values[label])) < 1e-9  # amide bonds did not turn


def test_caps_that_charmm_puts_into_the_end_residues_count_as_residues(molecule):
    caps = {("ACE", "CH3"): "CAY", ("ACE", "C"): "CY", ("ACE", "O"): "OY", ("NME", "N"): "NT", ("NME", "C"): "CAT"}
    heavy = molecule.select("heavy")
    names = [caps.get(pair, pair[1]) for pair in zip(heavy.residues, heavy.names, strict=True)]
    patched = Trajectory(heavy.positions, heavy.numbers, "", names, ["ALA"] * 10)
    assert torsion_labels(patched, torsion_rows(patched, "rotatable")) == (
        "ω (ALA:CAY–ALA:CY–ALA:N–ALA:CA)",
        "φ (ALA:CY–ALA:N–ALA:CA–ALA:C)",
        "ψ (ALA:N–ALA:CA–ALA:C–ALA:NT)",
        "ω (ALA:CA–ALA:C–ALA:NT–ALA:CAT)",
    )


def test_a_torsion_has_one_name_in_both_directions_and_among_all_torsions(molecule):
    heavy = molecule.select("heavy")
    rows = torsion_rows(heavy, "rotatable")
    assert torsion_labels(heavy, rows[:, ::-1]) == torsion_labels(heavy, rows)
    labels = torsion_labels(heavy, torsion_rows(heavy, "all"))
    named = [label for label in labels if not label.endswith("torsion")]
    assert sorted(named) == sorted(BACKBONE)
    assert len(labels) == 6 * 210
    assert "ACE:CH3–ACE:C–ACE:O–ALA:N torsion" in labels


def test_without_names_torsions_are_called_by_symbols_and_numbers_of_the_file(molecule):
    plain = Trajectory(molecule.positions, molecule.numbers).select("heavy")
    assert torsion_labels(plain, [[0, 1, 3, 4]]) == ("C1–C4–N6–C8 torsion",)
    same = Trajectory(molecule.positions, molecule.numbers, names=molecule.symbols).select("heavy")
    assert torsion_labels(same, [[0, 1, 3, 4]]) == ("C1–C4–N6–C8 torsion",)  # names that do not tell atoms apart
    ends = torsion_rows(plain, "rotatable")
    assert torsion_labels(plain, ends)[0] == "O5–C4–N6–C8 torsion"  # the heaviest neighbours


def test_side_chains_are_numbered_along_their_first_branch():
    """A chain in the shape of a helix, with the names of one residue after the other."""
    chains = {
        "LYS": ("N CA CB CG CD CE NZ", ["χ1", "χ2", "χ3", "χ4"]),
        "ARG": ("N CA CB CG CD NE CZ NH1", ["χ1", "χ2", "χ3", "χ4", "χ5"]),
        "MET": ("N CA CB CG SD CE", ["χ1", "χ2", "χ3"]),
        "ILE": ("N CA CB CG1 CD1", ["χ1", "χ2"]),
        "THR": ("N CA CB OG1", ["χ1"]),
        "VAL": ("N CA CB CG2", [None]),
        "TRP": ("N CA CB CG CD1 NE1", ["χ1", "χ2", None]),
    }
    for residue, (names, expected) in chains.items():
        atoms = names.split()
        turn = 1.7 * np.arange(len(atoms))
        positions = np.column_stack([np.cos(turn), np.sin(turn), 0.7 * np.arange(len(atoms))])[None]
        bonds = [(i, i + 1) for i in range(len(atoms) - 1)]
        numbers = [SYMBOLS.index(name[0]) for name in atoms]
        chain = Trajectory(positions, numbers, names=atoms, residues=[f"{residue}12"] * len(atoms), bonds=bonds)
        labels = torsion_labels(chain, torsion_rows(chain, "bonds"))
        found = [label.split(" (")[0] if not label.endswith("torsion") else None for label in labels]
        assert found == expected, residue


def test_two_ends_that_are_not_bonded_make_no_phi(molecule):
    """C of one residue and N–CA–C of another that is far away."""
    positions = molecule.positions.copy()
    positions[:, 6:] += 5.0  # the amide bond between ACE and ALA is cut
    cut = Trajectory(positions, molecule.numbers, "", molecule.names, molecule.residues)
    assert torsion_labels(cut, [[4, 6, 8, 14]]) == ("ACE:C–ALA:N–ALA:CA–ALA:C torsion",)


def test_torsions_along_a_triple_bond_are_left_out():
    """Butyronitrile's heavy atoms, C–C–C–C≡N: the nitrogen is in line with the bond to it."""
    positions = np.array([[[0.0, 1.0, 0.9], [1.4, 1.5, 0.0], [2.3, 0.4, 0.0], [3.5, 0.9, 0.0], [4.57, 1.346, 0.0]]])
    chain = Trajectory(positions, [6, 6, 6, 6, 7], bonds=[(0, 1), (1, 2), (2, 3), (3, 4)])
    assert torsion_rows(chain, "bonds").tolist() == [[0, 1, 2, 3]]
    assert torsion_rows(chain, "rotatable").tolist() == [[0, 1, 2, 3]]


def test_what_is_no_dictionary_is_refused():
    ethanol = load_ethanol()
    with pytest.raises(
        ParameterError,
        match=r"torsions='bond' is not recognized\. Did you mean 'bonds'\? Use 'bonds', 'rotatable' or 'all'",
    ):
        torsion_rows(ethanol, "bond")
    for rows in ([[0, 1, 2]], [0, 1, 2, 3], [[0.0, 1.0, 2.0, 3.0]], np.empty((0, 4), dtype=int)):
        with pytest.raises(ShapeError, match="torsions must be whole numbers"):
            torsion_rows(ethanol, rows)
    assert torsion_rows(ethanol, [[0, 1, 2, 3]]).tolist() == [[0, 1, 2, 3]]
    far = Trajectory(10 * ethanol.positions[:1], ethanol.numbers)
    with pytest.raises(ParameterError, match="has 0 bonds and no torsion of the kind 'bonds'"):
        torsion_rows(far)
    ring = Trajectory(ethanol.positions[:1, :6], ethanol.numbers[:6], bonds=[(i, (i + 1) % 6) for i in range(6)])
    with pytest.raises(ParameterError, match="'rotatable'"):
        torsion_rows(ring, "rotatable")
