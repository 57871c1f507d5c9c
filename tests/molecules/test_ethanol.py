from importlib.resources import files

import numpy as np

from isopursuit.molecules import ETHANOL_BONDS, load_ethanol, torsion_values

METHYL, HYDROXYL = (2, 0, 1, 5), (1, 0, 2, 8)


def test_the_atoms_are_in_md17s_order_and_no_bond_is_broken():
    ethanol = load_ethanol()
    assert "".join(ethanol.symbols) == "CCOHHHHHH"
    for i, j in ETHANOL_BONDS:
        bond = np.linalg.norm(ethanol.positions[:, i] - ethanol.positions[:, j], axis=1)
        reach = 1.1 if "H" in (ethanol.symbols[i], ethanol.symbols[j]) else 1.45
        assert abs(bond.mean() - reach) < 0.15
        assert 0.7 * bond.mean() < bond.min() <= bond.max() < 1.3 * bond.mean()


def test_both_torsions_visit_all_wells_as_often_as_symmetry_asks():
    """Within three standard errors, which the spread over the sixteen independent trajectories tells."""
    turns = torsion_values(load_ethanol().positions, [METHYL, HYDROXYL]).reshape(16, 1000, 2)
    wells = np.floor(np.mod(turns, 2 * np.pi) / (2 * np.pi / 3)).astype(int)  # minima at 60°, 180°, 300°
    methyl, hydroxyl = ((wells[:, :, i, None] == np.arange(3)).mean(axis=1) for i in (0, 1))
    error = methyl.std(axis=0, ddof=1) / 4
    assert (np.abs(methyl.mean(axis=0) - 1 / 3) < 3 * error).all()  # three equal hydrogens
    lean = hydroxyl[:, 0] - hydroxyl[:, 2]
    assert abs(lean.mean()) < 3 * lean.std(ddof=1) / 4  # mirror images


def test_its_provenance_travels_with_it():
    with np.load(files("isopursuit") / "data" / "ethanol.npz") as found:
        told = str(found["provenance"])
    for fact in ("GFN2-xTB", "tblite", "ASE", "500 K", "0.5 fs", "friction", "seed", "BSD-3-Clause"):
        assert fact in told
