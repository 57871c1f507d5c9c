import sys

import numpy as np
import pytest

from isopursuit.errors import FileError, NonFiniteError, PackageError, ParameterError, ShapeError
from isopursuit.molecules import (
    ETHANOL_BONDS,
    Trajectory,
    as_trajectory,
    find_bonds,
    load_alanine_dipeptide,
    load_ethanol,
)
from isopursuit.molecules._elements import RADII, SYMBOLS

WATER = np.array([[[0.0, 0.0, 0.0], [0.96, 0.0, 0.0], [-0.24, 0.93, 0.0]]])


@pytest.mark.parametrize(("R", "z"), [("R", "z"), ("coords", "nuclear_charges")])
def test_archives_of_md17_and_rmd17_are_read(tmp_path, R, z):
    np.savez(tmp_path / "w.npz", **{R: np.repeat(WATER, 3, axis=0), z: np.array([8, 1, 1], dtype=np.uint8)})
    read = as_trajectory(tmp_path / "w.npz")
    np.testing.assert_array_equal(read.positions, np.repeat(WATER, 3, axis=0))
    assert read.symbols == ("O", "H", "H")
    assert read.source == "w.npz"
    assert "3 frames of 3 atoms OHH" in repr(read)


@pytest.mark.needs("MDAnalysis")
@pytest.mark.parametrize("name", ["w.xyz", "w.extxyz"])
def test_xyz_files_are_read(tmp_path, name):
    frames = WATER[0] + np.random.default_rng(0).normal(scale=0.01, size=(4, 3, 3))
    lines = [
        ["3", ""] + [f"{s} {x:.8f} {y:.8f} {z:.8f}" for s, (x, y, z) in zip("OHH", one, strict=True)] for one in frames
    ]
    (tmp_path / name).write_text("\n".join(line for one in lines for line in one) + "\n")
    read = as_trajectory(tmp_path / name)
    np.testing.assert_allclose(read.positions, frames, atol=1e-5)
    assert read.numbers.tolist() == [8, 1, 1]


@pytest.mark.needs("ase")
def test_symbols_and_radii_are_ases():
    data = pytest.importorskip("ase.data")
    assert data.chemical_symbols[: len(SYMBOLS)] == SYMBOLS
    np.testing.assert_array_equal(data.covalent_radii[: len(RADII)], RADII)


@pytest.mark.needs("MDAnalysis")
def test_wrong_files_are_refused_in_plain_words(tmp_path):
    with pytest.raises(FileError, match="There is no file"):
        as_trajectory(tmp_path / "absent.xyz")
    np.savez(tmp_path / "other.npz", X=WATER, y=[1])
    with pytest.raises(FileError, match=r"contains X, y. A trajectory has the arrays R, z or coords"):
        as_trajectory(tmp_path / "other.npz")
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(FileError, match="not a readable"):
        as_trajectory(tmp_path / "text.npz")
    (tmp_path / "text.xyz").write_text("hello\nworld\n")
    with pytest.raises(FileError, match="cannot be read by MDAnalysis"):
        as_trajectory(tmp_path / "text.xyz")
    (tmp_path / "empty.xyz").write_text("")
    with pytest.raises(FileError, match=r"empty\.xyz"):
        as_trajectory(tmp_path / "empty.xyz")
    np.savez(tmp_path / "nm.npz", R=WATER / 10, z=[8, 1, 1])
    with pytest.raises(FileError, match="must be in Å"):
        as_trajectory(tmp_path / "nm.npz")
    np.savez(tmp_path / "object.npz", R=np.array([None]), z=[8, 1, 1])
    with pytest.raises(FileError, match="not a readable"):
        as_trajectory(tmp_path / "object.npz")


@pytest.mark.parametrize(
    ("positions", "numbers", "error"),
    [
        (WATER[0], [8, 1, 1], ShapeError),
        (WATER[:0], [8, 1, 1], ShapeError),
        (WATER, [8, 1], ShapeError),
        (WATER, [8, 1, 200], ParameterError),
        (WATER * np.nan, [8, 1, 1], NonFiniteError),
    ],
)
def test_a_trajectory_that_is_none_is_refused(positions, numbers, error):
    with pytest.raises(error):
        Trajectory(positions, numbers)


def named(**fields):
    """Ethanol's first five frames, with names."""
    ethanol = load_ethanol()
    names = ["C1", "C2", "O", "H11", "H12", "H21", "H22", "H23", "HO"]
    given = {"names": names, "residues": ["EOH"] * 9, "bonds": ETHANOL_BONDS} | fields
    return Trajectory(ethanol.positions[:5], ethanol.numbers, "ethanol", **given)


def test_a_selection_keeps_names_bonds_and_the_numbers_in_the_file():
    some = named().select([8, 2, 0, 1])
    assert some.symbols == ("H", "O", "C", "C")
    assert some.names == ("HO", "O", "C1", "C2")
    assert some.residues == ("EOH",) * 4
    assert some.bonds == ((0, 1), (1, 2), (2, 3))
    assert some.serials.tolist() == [8, 2, 0, 1]
    np.testing.assert_array_equal(some.positions, named().positions[:, [8, 2, 0, 1]])
    again = some.select(np.array([True] * 4))
    assert again.serials.tolist() == [8, 2, 0, 1]
    assert some.select([3, 2, 1, 0]).serials.tolist() == [1, 0, 2, 8]
    assert named().select("all").names == named().names
    assert named().select("heavy").symbols == ("C", "C", "O")
    peroxide = Trajectory(np.zeros((1, 6, 3)), [6, 8, 1, 8, 6, 1]).select("heavy")
    assert peroxide.serials.tolist() == [0, 1, 3, 4]
    assert peroxide.names is peroxide.residues is peroxide.bonds is None


def test_frames_are_taken_by_numbers_masks_and_slices():
    positions = named().positions
    for frames, expected in (([4, 0], [4, 0]), (slice(1, None, 2), [1, 3]), (np.arange(5) > 3, [4])):
        taken = named().take(frames)
        np.testing.assert_array_equal(taken.positions, positions[expected])
        assert taken.names == named().names
        assert taken.bonds == named().bonds
        assert taken.serials.tolist() == list(range(9))
    with pytest.raises(ParameterError, match="no frame is selected"):
        named().take(slice(5, None))
    with pytest.raises(ParameterError, match="from 0 to 4"):
        named().take([5])


@pytest.mark.parametrize(
    ("fields", "error", "match"),
    [
        ({"names": ["C"]}, ShapeError, "9 atoms have 1 names"),
        ({"residues": ["A"] * 10}, ShapeError, "9 atoms have 10 residues"),
        ({"serials": [1, 2]}, ShapeError, "9 atoms have 2 serials"),
        ({"bonds": [(0, 9)]}, ParameterError, "the bond 0–9 is not between two of the atoms 0 to 8"),
        ({"bonds": [(3, 3)]}, ParameterError, "the bond 3–3"),
        ({"bonds": [(-1, 3)]}, ParameterError, "the bond -1–3"),
    ],
)
def test_names_and_bonds_that_do_not_fit_are_refused(fields, error, match):
    with pytest.raises(error, match=match):
        named(**fields)


@pytest.mark.parametrize(
    ("atoms", "match"),
    [
        ([], "must be"),
        ([0, 1, 2, 2], "names an atom twice"),
        ([0, 1, 2, 9], "from 0 to 8"),
        ([0.0, 1.0, 2.0, 3.0], "whole numbers"),
        pytest.param("hevy", "'hevy' is not understood", marks=pytest.mark.needs("MDAnalysis")),
    ],
)
def test_selections_that_make_no_molecule_are_refused(atoms, match):
    with pytest.raises(ParameterError, match=match):
        named().select(atoms)


def test_bonds_are_found_in_moving_molecules():
    assert find_bonds(load_ethanol()) == ETHANOL_BONDS
    assert find_bonds(Trajectory(WATER, np.array([8, 1, 1]))) == ((0, 1), (0, 2))
    assert find_bonds(named(bonds=[(1, 0)])) == ((0, 1),)  # the topology's
    assert find_bonds(named(bonds=[])) == ETHANOL_BONDS


def test_a_large_molecule_is_shown_by_its_formula():
    assert "40 atoms C30H10" in repr(Trajectory(np.zeros((1, 40, 3)), [6] * 30 + [1] * 10))


def test_without_mdanalysis_archives_are_read_and_the_rest_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "MDAnalysis", None)
    np.savez(tmp_path / "w.npz", R=WATER, z=[8, 1, 1])
    water = as_trajectory(tmp_path / "w.npz")
    (tmp_path / "w.xyz").write_text("1\n\nH 0 0 0\n")
    with pytest.raises(PackageError, match=r"Install isopursuit\[chem\]"):
        as_trajectory(tmp_path / "w.xyz")
    assert find_bonds(water) == ((0, 1), (0, 2))


def test_a_saved_trajectory_is_read_again(tmp_path):
    peptide = load_alanine_dipeptide().take(range(5))
    peptide.save(tmp_path / "peptide.npz")
    again = as_trajectory(tmp_path / "peptide.npz")
    np.testing.assert_allclose(again.positions, peptide.positions, atol=1e-5)
    for what in ("symbols", "names", "residues", "bonds"):
        assert getattr(again, what) == getattr(peptide, what)
    plain = Trajectory(peptide.positions, peptide.numbers)
    plain.save(tmp_path / "plain.npz")
    assert as_trajectory(tmp_path / "plain.npz").bonds is None
    with pytest.raises(FileError, match=r"must end in \.npz"):
        peptide.save(tmp_path / "peptide.xyz")
