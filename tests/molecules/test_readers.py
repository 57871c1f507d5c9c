"""Trajectories from MDAnalysis, and from the files that it reads."""

import tracemalloc
import warnings
from contextlib import contextmanager

import numpy as np
import pytest

from isopursuit.errors import DataTypeError, FileError, GeometryError, ParameterError
from isopursuit.molecules import Trajectory, as_trajectory, find_bonds, torsion_values
from isopursuit.molecules._elements import SYMBOLS
from isopursuit.molecules._reading import MAX_BYTES

HEAVY = [1, 4, 5, 6, 8, 10, 14, 15, 16, 18]
HEAVY_BONDS = ((0, 1), (1, 2), (1, 3), (3, 4), (4, 5), (4, 6), (6, 7), (6, 8), (8, 9))
ORTHORHOMBIC = [14.0, 15.0, 16.0, 90.0, 90.0, 90.0]
TRICLINIC = [18.0, 18.0, 18.0, 70.5, 109.5, 70.5]  # a truncated octahedron
PHI, PSI = [4, 6, 8, 14], [6, 8, 14, 16]


@contextmanager
def quiet():
    """Without the warnings of MDAnalysis about what these tests do not use."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="module")
def mda():
    with quiet():
        return pytest.importorskip("MDAnalysis")


def universe(mda, peptide, positions=None, box=None):
    positions = peptide.positions if positions is None else positions
    with quiet():
        made = mda.Universe(str(peptide.pdb))
        boxes = None if box is None else np.tile(np.array(box, dtype=np.float32), (len(positions), 1))
        return made.load_new(positions.astype(np.float32), order="fac", dimensions=boxes)


def vectors(box):
    """The box vectors of lengths and angles: the first along x, the second in the plane of x and y."""
    a, b, c = box[:3]
    alpha, beta, gamma = np.radians(box[3:])
    x, y = c * np.cos(beta), c * (np.cos(alpha) - np.cos(beta) * np.cos(gamma)) / np.sin(gamma)
    return np.array([[a, 0, 0], [b * np.cos(gamma), b * np.sin(gamma), 0], [x, y, np.sqrt(c * c - x * x - y * y)]])


def wrapped(positions, box, shift):
    """Each atom by itself moved into the box: molecules are cut."""
    cell = vectors(box)
    fractions = (positions + shift) @ np.linalg.inv(cell)
    return (fractions - np.floor(fractions)) @ cell


def same_angles(found, expected, atol=1e-4):
    np.testing.assert_allclose(np.exp(1j * np.asarray(found)), np.exp(1j * np.asarray(expected)), atol=atol)


# Objects


@pytest.mark.needs("MDAnalysis")
def test_a_universe_and_its_groups_are_read_and_left_at_their_frame(mda, peptide):
    made = universe(mda, peptide)
    made.trajectory[7]
    read = as_trajectory(made)
    assert made.trajectory.frame == 7
    np.testing.assert_allclose(read.positions, peptide.positions, atol=1e-5)
    assert read.positions.dtype == np.float64
    assert list(read.symbols) == peptide.symbols
    assert list(read.names) == peptide.names
    assert list(read.residues) == peptide.residues
    assert read.serials.tolist() == list(range(22))
    assert read.bonds is None  # a PDB file without CONECT
    for group, atoms in (
        (made.select_atoms("not element H"), None),
        (made.atoms, "heavy"),
        (made.atoms, HEAVY),
        (made, "not name H* and not type H"),
        (made.residues, "protein and heavy or resname ACE NME and heavy"),
        (made, "heavy and resname ACE ALA NME"),
    ):
        heavy = as_trajectory(group, atoms=atoms)
        assert heavy.serials.tolist() == HEAVY
        np.testing.assert_array_equal(heavy.positions, read.positions[:, HEAVY])
        assert find_bonds(heavy) == HEAVY_BONDS
    np.testing.assert_array_equal(as_trajectory(made, stride=7).positions, read.positions[::7])
    with pytest.raises(ParameterError, match="contains an atom twice"):
        as_trajectory(made.atoms[[0, 1, 2, 3, 3]])
    # numbers are those of the atoms that were given, serials those of the file
    assert as_trajectory(made.select_atoms("resname ALA"), atoms=[0, 2, 4, 8]).serials.tolist() == [6, 8, 10, 14]


@pytest.mark.needs("MDAnalysis")
def test_bonds_of_a_topology_are_used_where_they_are_complete(mda, peptide):
    made = universe(mda, peptide)
    bonds = find_bonds(as_trajectory(made))
    made.add_TopologyAttr("bonds", bonds)
    assert as_trajectory(made).bonds == bonds
    assert as_trajectory(made, atoms="heavy").bonds == HEAVY_BONDS
    partly = universe(mda, peptide)
    partly.add_TopologyAttr("bonds", bonds[:10])  # as CONECT records of a ligand in a protein's file
    read = as_trajectory(partly)
    assert read.bonds is None
    assert find_bonds(read) == bonds


def test_what_is_no_trajectory_is_refused(peptide):
    for data in (3, None, [], [1, 2], np.zeros((5, 4, 3))):
        with pytest.raises(DataTypeError, match="A trajectory cannot be made from"):
            as_trajectory(data)
    molecule = Trajectory(peptide.positions, [SYMBOLS.index(s) for s in peptide.symbols])
    assert as_trajectory(molecule) is molecule
    assert as_trajectory(molecule, atoms="heavy", stride=10).positions.shape == (6, 10, 3)
    with pytest.raises(ParameterError, match="topology= is for files without atoms"):
        as_trajectory(molecule, "top.pdb")
    with pytest.raises(ParameterError, match="stride=0"):
        as_trajectory(molecule, stride=0)


# Files


@pytest.mark.needs("MDAnalysis")
@pytest.mark.parametrize("kind", ["dcd", "xtc", "trr", "nc", "pdb"])
def test_files_of_simulations_are_read_with_their_topology(mda, peptide, tmp_path, kind):
    path = tmp_path / f"peptide.{kind}"
    made = universe(mda, peptide, box=[50, 50, 50, 90, 90, 90])
    with quiet(), mda.Writer(str(path), 22, multiframe=True) as writer:
        for _ in made.trajectory:
            writer.write(made.atoms)
    read = as_trajectory(path, peptide.pdb)
    assert read.source == path.name
    np.testing.assert_allclose(read.positions, peptide.positions, atol=0.0051)  # xtc has two decimals
    assert list(read.names) == peptide.names
    heavy = as_trajectory(str(path), str(peptide.pdb), atoms="heavy", stride=4)
    np.testing.assert_array_equal(heavy.positions, read.positions[::4, HEAVY])
    if kind == "pdb":
        np.testing.assert_array_equal(as_trajectory(path).positions, read.positions)
    else:
        with pytest.raises(FileError, match=r"contains positions but no atoms.*topology="):
            as_trajectory(path)


@pytest.mark.needs("MDAnalysis")
def test_an_xyz_file_gets_names_from_a_topology(mda, peptide, tmp_path):
    lines = [f"{s} {x:.6f} {y:.6f} {z:.6f}" for s, (x, y, z) in zip(peptide.symbols, peptide.positions[0], strict=True)]
    (tmp_path / "peptide.xyz").write_text("\n".join(["22", "", *lines, ""]))
    read = as_trajectory(tmp_path / "peptide.xyz", peptide.pdb)
    assert list(read.names) == peptide.names


@pytest.mark.needs("MDAnalysis")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # MDAnalysis closes what it did not open
def test_files_that_do_not_fit_are_refused_in_plain_words(mda, peptide, tmp_path):
    (tmp_path / "broken.dcd").write_bytes(b"no trajectory")
    with pytest.raises(FileError, match=r"broken\.dcd with alanine_dipeptide\.pdb cannot be read by MDAnalysis"):
        as_trajectory(tmp_path / "broken.dcd", peptide.pdb)
    with pytest.raises(FileError, match="There is no file"):
        as_trajectory(tmp_path / "absent.dcd", peptide.pdb)
    with pytest.raises(FileError, match="There is no file"):
        as_trajectory(tmp_path / "broken.dcd", tmp_path / "absent.pdb")
    np.savez(tmp_path / "p.npz", R=peptide.positions, z=[SYMBOLS.index(s) for s in peptide.symbols])
    with pytest.raises(ParameterError, match="Leave it out"):
        as_trajectory(tmp_path / "p.npz", peptide.pdb)
    (tmp_path / "few.pdb").write_text("".join(peptide.pdb.read_text().splitlines(keepends=True)[:10]))
    path = tmp_path / "p.dcd"
    with quiet(), mda.Writer(str(path), 22) as writer:
        writer.write(universe(mda, peptide).atoms)
    with pytest.raises(FileError, match=r"p\.dcd with few\.pdb cannot be read"):
        as_trajectory(path, tmp_path / "few.pdb")
    with pytest.raises(ParameterError, match="'hevy' is not understood by MDAnalysis"):
        as_trajectory(path, peptide.pdb, atoms="hevy")
    with pytest.raises(ParameterError, match=r"p\.dcd: the selection name CZ has no atoms"):
        as_trajectory(path, peptide.pdb, atoms="name CZ")


def test_archives_may_name_atoms_and_bonds(peptide, tmp_path):
    numbers = [SYMBOLS.index(s) for s in peptide.symbols]
    more = {"names": peptide.names, "residues": peptide.residues, "bonds": [(0, 1), (1, 4)]}
    np.savez(tmp_path / "p.npz", R=peptide.positions, z=numbers, **more)
    read = as_trajectory(tmp_path / "p.npz", atoms=[1, 4, 6, 8])
    assert read.names == ("CH3", "C", "N", "CA")
    assert read.residues == ("ACE", "ACE", "ALA", "ALA")
    assert read.bonds == ((0, 1),)


# Systems with solvent


@pytest.fixture
def solvated(peptide, tmp_path):
    """The peptide in front of two waters and an ion."""
    lines = [line for line in peptide.pdb.read_text().splitlines() if line.startswith("ATOM")]
    names = [("O", "HOH", 4, "O"), ("H1", "HOH", 4, "H"), ("H2", "HOH", 4, "H")]
    names += [("O", "HOH", 5, "O"), ("H1", "HOH", 5, "H"), ("H2", "HOH", 5, "H"), ("NA", "NA+", 6, "Na")]
    for i, (name, residue, number, symbol) in enumerate(names):
        x, y, z = 9.0 + 0.9 * (i % 3), 4.0 * (i // 3), 0.8 * (i % 2)
        place = f"{x:8.3f}{y:8.3f}{z:8.3f}"
        lines.append(f"HETATM{23 + i:5d}  {name:<3} {residue} A{number:4d}    {place}  1.00  0.00          {symbol:>2}")
    path = tmp_path / "solvated.pdb"
    path.write_text("\n".join([*lines, "END", ""]))
    return path


@pytest.mark.needs("MDAnalysis")
def test_a_solvated_system_needs_a_selection(solvated):
    for atoms in (None, "heavy"):
        with pytest.raises(
            ParameterError,
            match=r"has 29 atoms, 6 of them in water\. Select the molecule: atoms=",
        ):
            as_trajectory(solvated, atoms=atoms)
    assert as_trajectory(solvated, atoms="all").positions.shape == (1, 29, 3)
    assert as_trajectory(solvated, atoms=range(22)).positions.shape == (1, 22, 3)
    read = as_trajectory(solvated, atoms="not resname HOH NA+ and heavy")
    assert read.serials.tolist() == HEAVY


@pytest.mark.needs("MDAnalysis")
def test_a_trajectory_larger_than_memory_is_refused_before_it_is_read(mda, peptide):
    made = universe(mda, peptide)

    class Long(type(made.trajectory)):
        def __len__(self):
            return 1 + int(MAX_BYTES // (22 * 24))

    made.trajectory.__class__ = Long
    with pytest.raises(ParameterError, match=r"frames of 22 atoms take 8 GB. Select fewer atoms by atoms= or fewer"):
        as_trajectory(made)


@pytest.mark.needs("MDAnalysis")
def test_only_the_selected_atoms_are_kept_in_memory(mda, peptide):
    made = universe(mda, peptide, np.tile(peptide.positions, (100, 1, 1)))
    as_trajectory(made, atoms=PHI, stride=100)
    tracemalloc.start()
    try:
        read = as_trajectory(made, atoms=PHI)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    everything = 6000 * 22 * 3 * 8
    assert read.positions.nbytes < everything / 5
    assert peak < everything / 2


# Periodic boxes


@pytest.mark.needs("MDAnalysis")
@pytest.mark.parametrize("box", [ORTHORHOMBIC, TRICLINIC], ids=["orthorhombic", "triclinic"])
@pytest.mark.parametrize("atoms", [None, "heavy", "name CH3 C CA N"])
@pytest.mark.parametrize("bonded", [False, True])
def test_molecules_cut_by_the_box_are_made_whole(mda, peptide, box, atoms, bonded):
    shifts = np.random.default_rng(1).uniform(0, 20, size=(60, 1, 3))
    cut = wrapped(peptide.positions, box, shifts)
    bonds = find_bonds(Trajectory(peptide.positions, [SYMBOLS.index(s) for s in peptide.symbols]))
    i, j = np.array(bonds).T
    assert (np.linalg.norm(cut[:, i] - cut[:, j], axis=2).max(axis=1) > 5).mean() > 0.5
    made = universe(mda, peptide, cut, box)
    if bonded:
        made.add_TopologyAttr("bonds", bonds)
    for read in (as_trajectory(made, atoms=atoms),):
        whole = peptide.positions[:, read.serials]
        for frame in (0, 17, 59):
            ours, theirs = (np.linalg.norm(x[frame][:, None] - x[frame], axis=2) for x in (read.positions, whole))
            np.testing.assert_allclose(ours, theirs, atol=1e-4)
        place = {serial: k for k, serial in enumerate(read.serials.tolist())}
        rows = [[place[a] for a in row] for row in (PHI, PSI)]
        same_angles(torsion_values(read.positions, rows), torsion_values(peptide.positions, [PHI, PSI]))


@pytest.mark.needs("MDAnalysis")
def test_a_cut_molecule_without_a_box_is_refused(mda, peptide):
    made = universe(mda, peptide, wrapped(peptide.positions, ORTHORHOMBIC, 3.0))
    made.add_TopologyAttr("bonds", HEAVY_BONDS and find_bonds(as_trajectory(universe(mda, peptide))))
    with pytest.raises(GeometryError, match=r"the bond between atoms \d+ and \d+ is \d+\.\d Å long in frame \d+"):
        as_trajectory(made)


@pytest.mark.needs("MDAnalysis")
def test_a_crystal_is_no_molecule(mda):
    with quiet():
        chain = mda.Universe.empty(4, trajectory=True)
        chain.add_TopologyAttr("elements", ["C"] * 4)
        chain.add_TopologyAttr("bonds", [(0, 1), (1, 2), (2, 3), (3, 0)])
        chain.atoms.positions = [[x, 0.0, 0.0] for x in (0.0, 1.5, 3.0, 4.5)]
        chain.dimensions = [6.0, 20.0, 20.0, 90.0, 90.0, 90.0]
    with pytest.raises(GeometryError, match="bonds lead through the box"):
        as_trajectory(chain)


# Elements


@pytest.mark.needs("MDAnalysis")
def test_elements_that_a_topology_does_not_have_are_told_by_names(mda, peptide):
    with quiet():
        made = mda.Universe.empty(22, 3, atom_resindex=[0] * 6 + [1] * 10 + [2] * 6, trajectory=True)
        made.add_TopologyAttr("names", peptide.names)
        made.add_TopologyAttr("resnames", ["ACE", "ALA", "NME"])
        made.add_TopologyAttr("resids", [1, 2, 3])
        made.load_new(peptide.positions.astype(np.float32), order="fac")
    read = as_trajectory(made)
    assert list(read.symbols) == peptide.symbols
    assert list(read.residues) == peptide.residues
    with quiet():
        made.add_TopologyAttr("names", [*peptide.names[:21], "?"])
    with pytest.raises(FileError, match=r"the element of atom 21 \(\?\) is not known"):
        as_trajectory(made)
    assert as_trajectory(made, atoms=range(21)).positions.shape == (60, 21, 3)


# A real protein


@pytest.mark.long
@pytest.mark.needs("MDAnalysisTests")
def test_a_real_protein_is_read_with_the_names_of_its_torsions():
    from isopursuit.molecules import internal_labels, torsion_rows

    with quiet():
        files = pytest.importorskip("MDAnalysisTests.datafiles")
    backbone = as_trajectory(files.DCD, files.PSF, atoms="backbone")
    assert backbone.positions.shape == (98, 855, 3)
    labels = internal_labels(backbone, torsion_rows(backbone, "rotatable"))
    assert "φ (MET1:C–ARG2:N–ARG2:CA–ARG2:C)" in labels
    assert "ψ (LEU213:N–LEU213:CA–LEU213:C–GLY214:N)" in labels
    heavy = as_trajectory(files.DCD, files.PSF, atoms="heavy", stride=10)
    assert heavy.positions.shape == (10, 1656, 3)
    labels = internal_labels(heavy, torsion_rows(heavy, "rotatable"))
    prolines = sum(residue.startswith("PRO") for residue in set(heavy.residues))
    begins = [label.split(" (")[0] for label in labels]
    # 214 residues: φ turns but in the rings of prolines, of which none is the first
    assert [begins.count(name) for name in "φψω"] == [213 - prolines, 213, 213]
    assert begins.count("χ5") == sum(residue.startswith("ARG") for residue in set(heavy.residues))
    # the same protein in water, with three topologies of which one has bonds
    for topology in (files.GRO, files.PDB, files.TPR):
        with pytest.raises(ParameterError, match="47,681 atoms, 44,336 of them in water"):
            as_trajectory(files.XTC, topology)
        solute = as_trajectory(files.XTC, topology, atoms="protein and heavy")
        assert solute.positions.shape == (10, 1656, 3)
        assert len(find_bonds(solute)) == len(find_bonds(heavy)) == 1680
