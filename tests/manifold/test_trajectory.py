import sys

import numpy as np
import pytest

from isopursuit.errors import NonFiniteError, PackageError, ParameterError, ShapeError
from isopursuit.files import FileError
from isopursuit.manifold.ethanol import ETHANOL_BONDS, load_ethanol
from isopursuit.manifold.trajectory import SYMBOLS, Trajectory, find_bonds, load_trajectory

WATER = np.array([[[0.0, 0.0, 0.0], [0.96, 0.0, 0.0], [-0.24, 0.93, 0.0]]])


@pytest.mark.parametrize(("R", "z"), [("R", "z"), ("coords", "nuclear_charges")])
def test_archives_of_md17_and_rmd17_are_read(tmp_path, R, z):
    np.savez(tmp_path / "w.npz", **{R: np.repeat(WATER, 3, axis=0), z: np.array([8, 1, 1], dtype=np.uint8)})
    read = load_trajectory(tmp_path / "w.npz")
    np.testing.assert_array_equal(read.positions, np.repeat(WATER, 3, axis=0))
    assert read.symbols == ("O", "H", "H")
    assert read.source == "w.npz"
    assert "3 frames of 3 atoms OHH" in repr(read)


@pytest.mark.needs("ase")
@pytest.mark.parametrize("name", ["w.xyz", "w.extxyz", "w.traj"])
def test_what_ase_writes_is_read(tmp_path, name):
    ase, io = pytest.importorskip("ase"), pytest.importorskip("ase.io")
    rng = np.random.default_rng(0)
    frames = [ase.Atoms("OHH", WATER[0] + rng.normal(scale=0.01, size=(3, 3))) for _ in range(4)]
    io.write(tmp_path / name, frames)
    read = load_trajectory(tmp_path / name)
    np.testing.assert_allclose(read.positions, [frame.positions for frame in frames], atol=1e-7)
    assert read.numbers.tolist() == [8, 1, 1]


@pytest.mark.needs("ase")
def test_symbols_are_ases():
    assert pytest.importorskip("ase.data").chemical_symbols == SYMBOLS


@pytest.mark.needs("ase")
def test_wrong_files_are_refused_in_plain_words(tmp_path):
    with pytest.raises(FileError, match="There is no file"):
        load_trajectory(tmp_path / "absent.xyz")
    np.savez(tmp_path / "other.npz", X=WATER, y=[1])
    with pytest.raises(FileError, match=r"holds X, y. A trajectory has the arrays R, z or coords"):
        load_trajectory(tmp_path / "other.npz")
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(FileError, match="not a readable"):
        load_trajectory(tmp_path / "text.npz")
    (tmp_path / "text.xyz").write_text("hello\nworld\n")
    with pytest.raises(FileError, match="no trajectory that ASE can read"):
        load_trajectory(tmp_path / "text.xyz")
    (tmp_path / "empty.xyz").write_text("")
    with pytest.raises(FileError, match=r"empty\.xyz"):
        load_trajectory(tmp_path / "empty.xyz")
    (tmp_path / "two.xyz").write_text("1\n\nH 0 0 0\n1\n\nHe 0 0 0\n")
    with pytest.raises(FileError, match="frame 1 is He, frame 0 is H"):
        load_trajectory(tmp_path / "two.xyz")
    np.savez(tmp_path / "nm.npz", R=WATER / 10, z=[8, 1, 1])
    with pytest.raises(FileError, match="must be in Å"):
        load_trajectory(tmp_path / "nm.npz")
    np.savez(tmp_path / "object.npz", R=np.array([None]), z=[8, 1, 1])
    with pytest.raises(FileError, match="not a readable"):
        load_trajectory(tmp_path / "object.npz")


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


@pytest.mark.needs("ase")
def test_bonds_are_found_in_moving_molecules():
    assert find_bonds(load_ethanol()) == ETHANOL_BONDS
    assert find_bonds(Trajectory(WATER, np.array([8, 1, 1]))) == ((0, 1), (0, 2))


def test_without_ase_archives_are_read_and_the_rest_says_what_to_install(tmp_path, monkeypatch):
    for name in ("ase", "ase.io", "ase.data"):
        monkeypatch.setitem(sys.modules, name, None)
    np.savez(tmp_path / "w.npz", R=WATER, z=[8, 1, 1])
    water = load_trajectory(tmp_path / "w.npz")
    (tmp_path / "w.xyz").write_text("1\n\nH 0 0 0\n")
    with pytest.raises(PackageError, match=r"Install isopursuit\[chem\]"):
        load_trajectory(tmp_path / "w.xyz")
    assert find_bonds(water) == ((0, 1), (0, 2))
