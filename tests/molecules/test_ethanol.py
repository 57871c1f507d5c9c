from importlib.resources import files

import numpy as np
import pytest

from isopursuit.errors import FileError
from isopursuit.molecules import ETHANOL_BONDS, load_ethanol, torsion_values

BOLTZMANN = 8.617333262e-5  # eV / K
METHYL, HYDROXYL = (2, 0, 1, 5), (1, 0, 2, 8)


@pytest.fixture(scope="module")
def archive():
    with np.load(files("isopursuit") / "data" / "ethanol.npz") as found:
        return {key: found[key] for key in found.files}


def test_the_atoms_are_in_md17s_order_and_no_bond_is_broken():
    ethanol = load_ethanol()
    assert "".join(ethanol.symbols) == "CCOHHHHHH"
    for i, j in ETHANOL_BONDS:
        bond = np.linalg.norm(ethanol.positions[:, i] - ethanol.positions[:, j], axis=1)
        reach = 1.1 if "H" in (ethanol.symbols[i], ethanol.symbols[j]) else 1.45
        assert abs(bond.mean() - reach) < 0.15
        assert bond.max() < 1.3 * bond.mean()
        assert bond.min() > 0.7 * bond.mean()


def test_it_is_as_warm_as_it_says(archive):
    """Of n independent samples of the kinetic energy of f degrees of freedom, T has relative error √(2 / f n)."""
    temperature = archive["kinetic"] * 2 / (27 * BOLTZMANN)
    assert abs(temperature.mean() - 500) < 10
    assert abs(temperature.std() - 500 * np.sqrt(2 / 27)) < 10


def test_the_potential_energy_is_that_of_a_warm_molecule_in_every_trajectory(archive):
    """Equipartition: 21 vibrations hold about ½ kT each above the minimum (that of GFN2-xTB, by optimization)."""
    thermal = 21 * BOLTZMANN * 500 / 2
    potential, minimum = archive["potential"], -310.05577
    assert potential.min() > minimum
    assert 0.95 < (potential.mean() - minimum) / thermal < 1.15
    by_trajectory = [potential[archive["trajectory"] == i].mean() for i in range(16)]
    assert np.ptp(by_trajectory) < 0.1 * thermal


def test_both_torsions_visit_all_wells_as_often_as_symmetry_asks(archive):
    """Within three standard errors, which the spread over the independent trajectories tells."""
    turns = torsion_values(load_ethanol().positions, [METHYL, HYDROXYL]).reshape(16, 1000, 2)
    wells = np.floor(np.mod(turns, 2 * np.pi) / (2 * np.pi / 3)).astype(int)  # minima at 60°, 180°, 300°
    methyl, hydroxyl = ((wells[:, :, i, None] == np.arange(3)).mean(axis=1) for i in (0, 1))
    error = methyl.std(axis=0, ddof=1) / 4
    assert (error < 0.05).all()
    assert (np.abs(methyl.mean(axis=0) - 1 / 3) < 3 * error).all()  # three equal hydrogens
    lean = hydroxyl[:, 0] - hydroxyl[:, 2]
    assert abs(lean.mean()) < 3 * lean.std(ddof=1) / 4  # mirror images
    assert hydroxyl.mean(axis=0).min() > 0.1
    assert ((np.diff(wells, axis=1) != 0).sum(axis=1) >= 10).all()  # no trajectory sits in a well


def test_its_provenance_travels_with_it(archive):
    told = str(archive["provenance"])
    for fact in ("GFN2-xTB", "tblite", "ASE", "500 K", "0.5 fs", "friction", "seed", "BSD-3-Clause"):
        assert fact in told


def test_another_molecule_or_order_is_refused(tmp_path):
    ethanol = load_ethanol()
    order = [0, 1, 2, 8, 4, 5, 6, 7, 3]
    np.savez(tmp_path / "order.npz", R=ethanol.positions[:5, order], z=ethanol.numbers)
    with pytest.raises(FileError, match="must be ordered"):
        load_ethanol(tmp_path / "order.npz")
    np.savez(tmp_path / "methane.npz", R=ethanol.positions[:5, [0, 1, 3, 4, 5]], z=[6, 1, 1, 1, 1])
    with pytest.raises(FileError, match="contains CHHHH, not ethanol"):
        load_ethanol(tmp_path / "methane.npz")
