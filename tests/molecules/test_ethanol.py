import hashlib
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files

import numpy as np
import pytest

from isopursuit.errors import FileError, ParameterError
from isopursuit.manifold.ethanol import ETHANOL_BONDS, fetch_ethanol, load_ethanol
from isopursuit.manifold.internal import torsion_values

BOLTZMANN = 8.617333262e-5  # eV / K
METHYL, HYDROXYL = (2, 0, 1, 5), (1, 0, 2, 8)


@pytest.fixture(scope="module")
def archive():
    with np.load(files("isopursuit") / "data" / "ethanol.npz") as found:
        return {key: found[key] for key in found.files}


@pytest.fixture
def server(tmp_path):
    """A web server of the folder `served`, on this machine."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    folder = tmp_path / "served"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as one:
        thread = threading.Thread(target=one.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{one.server_port}"
        one.shutdown()
        thread.join()


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


def test_a_download_is_kept_only_if_its_checksum_is_right(server, tmp_path):
    folder, address = server
    ethanol = load_ethanol()
    np.savez(folder / "ethanol.npz", R=ethanol.positions[:7], z=ethanol.numbers)
    right = hashlib.sha256((folder / "ethanol.npz").read_bytes()).hexdigest()
    kept = tmp_path / "kept.npz"
    with pytest.raises(FileError, match=f"has SHA-256 {right}, expected 00"):
        fetch_ethanol(kept, "00", url=f"{address}/ethanol.npz")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["served"]
    fetched = fetch_ethanol(kept, right.upper(), url=f"{address}/ethanol.npz")
    np.testing.assert_array_equal(fetched.positions, ethanol.positions[:7])
    (folder / "ethanol.npz").unlink()
    assert len(fetch_ethanol(kept, right, url=f"{address}/ethanol.npz").positions) == 7  # no second download
    kept.write_bytes(b"damaged")
    with pytest.raises(FileError, match="expected"):
        fetch_ethanol(kept, right, url=f"{address}/ethanol.npz")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept.npz", "served"]


def test_addresses_that_lead_nowhere_are_told(server, tmp_path):
    _, address = server
    with pytest.raises(FileError, match="404"):
        fetch_ethanol(tmp_path / "x.npz", "00", url=f"{address}/absent.npz")
    with pytest.raises(ParameterError, match="not an http"):
        fetch_ethanol(tmp_path / "x.npz", "00", url="file:///etc/hosts")
    assert not (tmp_path / "x.npz").exists()
