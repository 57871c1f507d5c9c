import re

import numpy as np
import pytest

import isopursuit as ip
from isopursuit.errors import LabelError, ParameterError
from isopursuit.molecules import Trajectory, internal_labels, plumed_labels, plumed_text, torsion_rows, torsion_values
from isopursuit.molecules._elements import SYMBOLS

PHI, PSI = "φ (ACE:C–ALA:N–ALA:CA–ALA:C)", "ψ (ALA:N–ALA:CA–ALA:C–NME:N)"


def parse(text):
    """PLUMED's grammar as far as it is used here: comments, `label: ACTION KEY=value ...`; labels once, used later."""
    actions = {}
    for line in text.splitlines():
        assert line.isascii()
        words = line.partition("#")[0].split()
        if not words:
            continue
        label = None
        if words[0].endswith(":"):
            label = words.pop(0)[:-1]
            assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", label), label
            assert label not in actions, "PLUMED refuses a label that it knows"
        action, options = words[0], dict(word.split("=") for word in words[1:])
        if action == "TORSION":
            assert label is not None
            assert set(options) == {"ATOMS"}
            atoms = [int(atom) for atom in options["ATOMS"].split(",")]
            assert len(set(atoms)) == 4
            assert min(atoms) >= 1
            actions[label] = atoms
        else:
            assert action == "PRINT"
            assert set(options) == {"ARG", "FILE", "STRIDE"}
            assert int(options["STRIDE"]) > 0
            assert options["ARG"].split(",") == list(actions), "every torsion is printed, and nothing else"
            actions["PRINT"] = options["FILE"]
    return actions


def dihedral(p, q, r, s):
    """The angle between the planes p–q–r and q–r–s, by their normals and the triple product."""
    first, second = np.cross(q - p, r - q), np.cross(r - q, s - r)
    sign = np.sign(np.dot(q - p, second)) or 1.0
    return sign * np.arccos(np.clip(first @ second / np.linalg.norm(first) / np.linalg.norm(second), -1, 1))


def test_the_atoms_of_the_file_give_the_torsions_of_the_library(peptide):
    numbers = [SYMBOLS.index(symbol) for symbol in peptide.symbols]
    everything = Trajectory(peptide.positions, numbers, "peptide", peptide.names, peptide.residues)
    heavy = everything.select("heavy")
    rows = torsion_rows(heavy, "rotatable")
    found = parse(plumed_text(heavy.serials[rows], internal_labels(heavy, rows)))
    assert found.pop("PRINT") == "COLVAR"
    assert found["phi"] == [5, 7, 9, 15]
    assert list(found) == ["omega_ACE", "phi", "psi", "omega_ALA"]
    values = torsion_values(heavy.positions, rows)
    for i, atoms in enumerate(found.values()):
        ours = [dihedral(*frame[np.array(atoms) - 1]) for frame in peptide.positions]
        np.testing.assert_allclose(np.exp(1j * np.array(ours)), np.exp(1j * values[:, i]), atol=1e-6)


def test_the_header_says_what_was_picked_and_by_which_version():
    text = plumed_text([[4, 6, 8, 14], [6, 8, 14, 16]], [PHI, PSI])
    assert text.splitlines() == [
        f"# Picked by isopursuit {ip.__version__}; atoms are numbered from 1.",
        "# phi: phi (ACE:C-ALA:N-ALA:CA-ALA:C)",
        "# psi: psi (ALA:N-ALA:CA-ALA:C-NME:N)",
        "phi: TORSION ATOMS=5,7,9,15",
        "psi: TORSION ATOMS=7,9,15,17",
        "PRINT ARG=phi,psi FILE=COLVAR STRIDE=100",
    ]


@pytest.mark.parametrize(
    "labels",
    [
        ["φ (A:C–B2:N–B2:CA–B2:C)", "φ (B2:C–B3:N–B3:CA–B3:C)", "ψ (B2:N–B2:CA–B2:C–B3:N)"],
        ["C0–C1–O2–H3 torsion", "C0–C1–O2–H3 torsion", "C0_C1_O2_H3_2"],
        ["1", "2", "", "  ", "torsion", "torsion_1", "phi phi", "phi\nphi: DISTANCE ATOMS=1,2"],
        ["χ1 (A/GLU2:N–A/GLU2:CA–A/GLU2:CB–A/GLU2:CG)", "χ1 (B/GLU2:N–B/GLU2:CA–B/GLU2:CB–B/GLU2:CG)"],
        ["角度", "naïve–angle", "C1'–C2'–O3*–P torsion", "#", "a" * 200],
        ["phi", "phi", "phi_2", "phi"],
    ],
)
def test_any_labels_become_labels_that_plumed_accepts_each_once(labels):
    atoms = np.arange(4 * len(labels)).reshape(-1, 4)
    found = parse(plumed_text(atoms, labels))
    assert len(found) == len(labels) + 1
    assert list(found)[:-1] == list(plumed_labels(labels))
    np.testing.assert_array_equal(list(found.values())[:-1], atoms + 1)


def test_distances_and_angles_have_lines_too():
    text = plumed_text([(4, 6), (4, 6, 8)], ["ACE:C–ALA:N distance", "bend"])
    assert "ACE_C_ALA_N: DISTANCE ATOMS=5,7\nbend: ANGLE ATOMS=5,7,9\n" in text


def test_residues_distinguish_torsions_of_the_same_name():
    labels = ["φ (GLY1:C–ALA2:N–ALA2:CA–ALA2:C)", "φ (ALA2:C–VAL3:N–VAL3:CA–VAL3:C)", PSI]
    assert plumed_labels(labels) == ("phi_ALA2", "phi_VAL3", "psi")


def test_what_is_no_torsion_is_refused():
    cases = [
        ([[1]], [PHI], ParameterError, "2, 3 or 4 different atoms"),
        ([], [], ParameterError, "2, 3 or 4 different atoms"),
        ([[-1, 2, 3, 4]], [PHI], ParameterError, "numbered from 0"),
        ([[1, 2, 2, 4]], [PHI], ParameterError, "different atoms"),
        ([[1, 2, 3, 4]], [PHI, PSI], LabelError, "1 functions have 2 labels"),
    ]
    for torsions, labels, error, match in cases:
        with pytest.raises(error, match=match):
            plumed_text(torsions, labels)
