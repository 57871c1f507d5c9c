"""Simulate other small peptides for `python -m benchmarks.coordinates`, as alanine dipeptide was simulated.

    pip install openmm
    python tools/simulate_peptides.py

Writes output/valine.npz (ACE-VAL-NME) and output/dialanine.npz (ACE-ALA-ALA-NME), 6,000 frames each; git ignores
that folder. Force field, temperature and time step are those of simulate_alanine_dipeptide.py. It takes half an hour.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import openmm
import simulate_alanine_dipeptide as alanine
from openmm import app, unit

FRAMES = 6_000  # 1 ps apart
SEQUENCES = {"valine": ("VAL",), "dialanine": ("ALA", "ALA")}
# atom, the three atoms that place it ("-" is in the residue before), distance (Å), angle (°), torsion (°)
BACKBONE = (
    ("N", "-C", "-CA", "-O", 1.34, 116.0, 180.0),
    ("CA", "N", "-C", "-CA", 1.46, 122.0, 180.0),
    ("C", "CA", "N", "-C", 1.53, 111.0, -80.0),
    ("CB", "CA", "N", "C", 1.53, 110.0, -122.0),
    ("O", "C", "CA", "N", 1.23, 120.0, -100.0),
)
BRANCHES = (("CG1", "CB", "CA", "N", 1.53, 110.0, 180.0), ("CG2", "CB", "CA", "CG1", 1.53, 110.0, 122.0))
NME = (("N", "-C", "-CA", "-N", 1.34, 116.0, 80.0), ("C", "N", "-C", "-CA", 1.45, 122.0, 180.0))


def placed(sequence: tuple[str, ...]) -> tuple[list[tuple[str, list[str]]], list[np.ndarray], list[tuple[int, int]]]:
    """Residues with the names of their heavy atoms, all positions in Å, and bonds by numbers of atoms."""
    ace = {"CA": np.zeros(3), "C": np.array([1.52, 0.0, 0.0]), "O": np.array([2.135, 1.065, 0.0])}
    places, residues, bonds = list(ace.values()), [("ACE", ["CH3", "C", "O"])], [(0, 1), (1, 2)]
    before, numbers_before = ace, {"CA": 0, "C": 1, "O": 2}
    for kind in (*sequence, "NME"):
        rows = NME if kind == "NME" else BACKBONE + (BRANCHES if kind == "VAL" else ())
        here: dict[str, np.ndarray] = {}
        numbers: dict[str, int] = {}
        for atom, near, middle, last, *internal in rows:
            a, b, c = (before[name[1:]] if name[0] == "-" else here[name] for name in (last, middle, near))
            here[atom] = beyond(a, b, c, *internal)
            numbers[atom] = len(places)
            bonds.append((numbers_before[near[1:]] if near[0] == "-" else numbers[near], numbers[atom]))
            places.append(here[atom])
        residues.append((kind, list(here)))
        before, numbers_before = here, numbers
    return residues, places, bonds


def beyond(a: np.ndarray, b: np.ndarray, c: np.ndarray, distance: float, angle: float, torsion: float) -> np.ndarray:
    """The place of the atom after a, b and c, from its distance to c, its angle b–c–atom and its torsion."""
    axis = (c - b) / np.linalg.norm(c - b)
    normal = np.cross(b - a, axis)
    normal /= np.linalg.norm(normal)
    theta, tau = np.radians([angle, torsion])
    turned = np.cos(tau) * np.cross(normal, axis) + np.sin(tau) * normal
    return c + distance * (-np.cos(theta) * axis + np.sin(theta) * turned)


def build(sequence: tuple[str, ...]) -> app.Modeller:
    """Topology and start with hydrogens."""
    residues, places, bonds = placed(sequence)
    topology = app.Topology()
    chain = topology.addChain()
    atoms = []
    for kind, names in residues:
        residue = topology.addResidue(kind, chain)
        atoms += [topology.addAtom(name, app.Element.getBySymbol(name[0]), residue) for name in names]
    for i, j in bonds:
        topology.addBond(atoms[i], atoms[j])
    modeller = app.Modeller(topology, [openmm.Vec3(*place) for place in places] * unit.angstrom)
    modeller.addHydrogens(alanine.force_field())
    return modeller


def main() -> None:
    """Simulate, and write the heavy atoms of each peptide."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", default=list(SEQUENCES), help="valine, dialanine")
    parser.add_argument("--frames", type=int, default=FRAMES, help="fewer for a trial")
    options = parser.parse_args()
    Path("output").mkdir(exist_ok=True)
    for name in options.names:
        modeller = build(SEQUENCES[name])
        positions, temperatures = alanine.simulate(modeller, options.frames)
        heavy = [atom for atom in modeller.topology.atoms() if atom.element.symbol != "H"]
        place = {atom.index: i for i, atom in enumerate(heavy)}
        pairs = [(one.index, other.index) for one, other in modeller.topology.bonds()]
        np.savez_compressed(
            Path("output", f"{name}.npz"),
            R=alanine.aligned(positions[:, list(place)]).astype(np.float32),
            z=np.array([atom.element.atomic_number for atom in heavy]),
            names=np.array([atom.name for atom in heavy]),
            residues=np.array([f"{atom.residue.name}{atom.residue.index + 1}" for atom in heavy]),
            bonds=np.array([(place[i], place[j]) for i, j in pairs if i in place and j in place]),
        )
        print(f"output/{name}.npz: {len(positions)} frames, mean {temperatures.mean():.1f} K")


if __name__ == "__main__":
    main()
