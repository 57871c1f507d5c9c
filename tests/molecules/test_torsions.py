import numpy as np
import pytest

from isopursuit.errors import ParameterError
from isopursuit.manifold import internal_coordinates
from isopursuit.molecules import (
    Trajectory,
    internal_labels,
    internal_values,
    load_ethanol,
    torsion_rows,
    torsion_values,
)
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
    assert set(internal_labels(heavy, rows)) == set(BACKBONE)
    assert set(BACKBONE) <= set(internal_labels(heavy, torsion_rows(heavy)))
    # with hydrogens the three methyl groups turn, too
    everything = shuffled(molecule, seed)
    labels = internal_labels(everything, torsion_rows(everything, "rotatable"))
    assert set(BACKBONE) <= set(labels)
    assert len(labels) == 7


@pytest.mark.parametrize("seed", range(3))
def test_the_torsions_called_phi_and_psi_are_those_that_were_turned(molecule, peptide, seed):
    heavy = shuffled(molecule, seed).select("heavy")
    rows = torsion_rows(heavy, "bonds")
    values = dict(zip(internal_labels(heavy, rows), torsion_values(heavy.positions, rows).T, strict=True))
    for label, turn in ((BACKBONE[1], peptide.phi), (BACKBONE[2], peptide.psi)):
        np.testing.assert_allclose(np.exp(1j * (values[label] - values[label][0])), np.exp(1j * turn), atol=1e-9)
    for label in (BACKBONE[0], BACKBONE[3]):
        assert np.ptp(np.cos(values[label])) < 1e-9  # amide bonds did not turn


def test_caps_that_charmm_puts_into_the_end_residues_count_as_residues(molecule):
    caps = {("ACE", "CH3"): "CAY", ("ACE", "C"): "CY", ("ACE", "O"): "OY", ("NME", "N"): "NT", ("NME", "C"): "CAT"}
    heavy = molecule.select("heavy")
    names = [caps.get(pair, pair[1]) for pair in zip(heavy.residues, heavy.names, strict=True)]
    patched = Trajectory(heavy.positions, heavy.numbers, "", names, ["ALA"] * 10)
    assert internal_labels(patched, torsion_rows(patched, "rotatable")) == (
        "ω (ALA:CAY–ALA:CY–ALA:N–ALA:CA)",
        "φ (ALA:CY–ALA:N–ALA:CA–ALA:C)",
        "ψ (ALA:N–ALA:CA–ALA:C–ALA:NT)",
        "ω (ALA:CA–ALA:C–ALA:NT–ALA:CAT)",
    )


def test_a_torsion_has_one_name_in_both_directions_and_among_all_torsions(molecule):
    heavy = molecule.select("heavy")
    rows = torsion_rows(heavy, "rotatable")
    assert internal_labels(heavy, rows[:, ::-1]) == internal_labels(heavy, rows)
    some = [[0, 1, 2, 3], [0, 1], [1, 2, 3]]
    assert internal_labels(heavy, some) == (
        "ACE:CH3–ACE:C–ACE:O–ALA:N torsion",
        "ACE:CH3–ACE:C distance",
        "ACE:C–ACE:O–ALA:N angle",
    )


def test_without_names_torsions_are_called_by_symbols_and_numbers_of_the_file(molecule):
    plain = Trajectory(molecule.positions, molecule.numbers).select("heavy")
    assert internal_labels(plain, [[0, 1, 3, 4]]) == ("C1–C4–N6–C8 torsion",)
    same = Trajectory(molecule.positions, molecule.numbers, names=molecule.symbols).select("heavy")
    assert internal_labels(same, [[0, 1, 3, 4]]) == ("C1–C4–N6–C8 torsion",)  # names that do not tell atoms apart
    ends = torsion_rows(plain, "rotatable")
    assert internal_labels(plain, ends)[0] == "O5–C4–N6–C8 torsion"  # the heaviest neighbours


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
        labels = internal_labels(chain, torsion_rows(chain, "bonds"))
        found = [label.split(" (")[0] if not label.endswith("torsion") else None for label in labels]
        assert found == expected, residue


def test_two_ends_that_are_not_bonded_make_no_phi(molecule):
    """C of one residue and N–CA–C of another that is far away."""
    positions = molecule.positions.copy()
    positions[:, 6:] += 5.0  # the amide bond between ACE and ALA is cut
    cut = Trajectory(positions, molecule.numbers, "", molecule.names, molecule.residues)
    assert internal_labels(cut, [[4, 6, 8, 14]]) == ("ACE:C–ALA:N–ALA:CA–ALA:C torsion",)


def test_torsions_along_a_triple_bond_are_left_out():
    """Butyronitrile's heavy atoms, C–C–C–C≡N: the nitrogen is in line with the bond to it."""
    positions = np.array([[[0.0, 1.0, 0.9], [1.4, 1.5, 0.0], [2.3, 0.4, 0.0], [3.5, 0.9, 0.0], [4.57, 1.346, 0.0]]])
    chain = Trajectory(positions, [6, 6, 6, 6, 7], bonds=[(0, 1), (1, 2), (2, 3), (3, 4)])
    assert torsion_rows(chain, "bonds").tolist() == [[0, 1, 2, 3]]
    assert torsion_rows(chain, "rotatable").tolist() == [[0, 1, 2, 3]]


def test_what_is_no_dictionary_is_refused():
    ethanol = load_ethanol()
    with pytest.raises(ParameterError, match=r"torsions='bond' is not recognized\. Did you mean 'bonds'\?"):
        torsion_rows(ethanol, "bond")
    far = Trajectory(10 * ethanol.positions[:1], ethanol.numbers)
    with pytest.raises(ParameterError, match="has 0 bonds and no torsion along three of them"):
        torsion_rows(far)
    ring = Trajectory(ethanol.positions[:1, :6], ethanol.numbers[:6], bonds=[(i, (i + 1) % 6) for i in range(6)])
    with pytest.raises(ParameterError, match="no torsion about a rotatable one"):
        torsion_rows(ring, "rotatable")


@pytest.mark.needs("MDAnalysis")
@pytest.mark.filterwarnings("ignore")
def test_functions_are_named_by_selections_in_words_of_arrays_and_of_files(molecule, peptide):
    """The same atoms by words and by numbers, of the whole molecule and of a part that keeps its numbers."""
    mda = pytest.importorskip("MDAnalysis")
    universe = mda.Universe(str(peptide.pdb))
    universe.load_new(peptide.positions.astype(np.float32), order="fac")
    words = {
        "ends": ("resname ACE and name CH3", "resname NME and name N"),
        "bend": ("name CA", 14, "resname NME and name N"),
    }
    for data in (molecule, universe, molecule.select("heavy")):
        found = internal_coordinates(data, words)
        assert found.atoms == ((1, 16), (8, 14, 16))
        assert found.labels == ("ends", "bend")
        np.testing.assert_allclose(found.values, internal_values(peptide.positions, found.atoms), atol=1e-5)
        assert found.periods.tolist() == [np.inf, np.inf]
        pairs = internal_coordinates(data, "distances of name CA or name C and heavy")
        assert len(pairs.labels) == 6
        assert pairs.labels[0] == "ACE:C–ALA:CA distance"
    with pytest.raises(ParameterError, match=r"'name C' has \d atoms. Each must name one atom"):
        internal_coordinates(molecule, {"d": ("name C", 1)})
    with pytest.raises(ParameterError, match="There is no atom 99"):
        internal_coordinates(molecule, [(1, 99)])
    with pytest.raises(ParameterError, match="needs two, three or four atoms"):
        internal_coordinates(molecule, "distances of name CA")
    with pytest.raises(ParameterError, match="Did you mean 'bonds'"):
        internal_coordinates(molecule, "bond")
