"""Simulate alanine dipeptide at 500 K and write src/isopursuit/data/alanine_dipeptide.npz.

    pip install openmm
    python tools/simulate_alanine_dipeptide.py

One Langevin trajectory of ACE-ALA-NME (L-alanine) with Amber's ff14SB and the implicit solvent GBn2. The start is built
from bond lengths, angles and torsions. The same seed gives another sample of the same distribution on another machine
or with another version of OpenMM, because rounding differs.
"""

from __future__ import annotations

import argparse
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import openmm
from openmm import app, unit

KELVIN, FEMTOSECONDS, FRICTION = 500.0, 2.0, 1.0  # friction per picosecond
EQUILIBRATION = 50_000  # steps before the first frame: 100 ps
STRIDE = 500  # steps between frames: 1 ps
FRAMES, SEED = 10_000, 20_261_116
RESOLUTION = 0.001  # Å: positions are stored as integers of this unit
RESIDUES = (("ACE", ("CH3", "C", "O")), ("ALA", ("N", "CA", "CB", "C", "O")), ("NME", ("N", "C")))
# atom, the three atoms that place it, distance (Å), angle (°), torsion (°): a β conformation, φ = -80°, ψ = 80°
START = (
    ("ACE:O", "ACE:C", "ACE:CH3", "", 1.23, 120.0, 0.0),
    ("ALA:N", "ACE:C", "ACE:CH3", "ACE:O", 1.34, 116.0, 180.0),
    ("ALA:CA", "ALA:N", "ACE:C", "ACE:CH3", 1.46, 122.0, 180.0),
    ("ALA:C", "ALA:CA", "ALA:N", "ACE:C", 1.53, 111.0, -80.0),
    ("ALA:CB", "ALA:CA", "ALA:N", "ALA:C", 1.53, 110.0, -122.0),
    ("ALA:O", "ALA:C", "ALA:CA", "ALA:N", 1.23, 120.0, -100.0),
    ("NME:N", "ALA:C", "ALA:CA", "ALA:N", 1.34, 116.0, 80.0),
    ("NME:C", "NME:N", "ALA:C", "ALA:CA", 1.45, 122.0, 180.0),
)
HEAVY_BONDS = (("ACE:CH3", "ACE:C"), *((row[0], row[1]) for row in START))
AMBER_NAMES = {"H1": "HH31", "H2": "HH32", "H3": "HH33"}  # OpenMM's names of the caps' hydrogens -> Amber's


def heavy_positions() -> dict[str, np.ndarray]:
    """The start of the heavy atoms, in Å, one after another from distances, angles and torsions."""
    places = {"ACE:CH3": np.zeros(3), "ACE:C": np.array([1.52, 0.0, 0.0]), "": np.array([0.0, 1.0, 0.0])}
    for atom, near, next_one, last, distance, angle, torsion in START:
        a, b, c = (places[name] for name in (last, next_one, near))
        axis = (c - b) / np.linalg.norm(c - b)
        normal = np.cross(b - a, axis)
        normal /= np.linalg.norm(normal)
        theta, tau = np.radians([angle, torsion])
        turned = np.cos(tau) * np.cross(normal, axis) + np.sin(tau) * normal
        places[atom] = c + distance * (-np.cos(theta) * axis + np.sin(theta) * turned)
    return places


def build() -> app.Modeller:
    """Topology and start with all 22 atoms."""
    places = heavy_positions()
    topology = app.Topology()
    chain = topology.addChain()
    atoms = {}
    for residue_name, names in RESIDUES:
        residue = topology.addResidue(residue_name, chain)
        for name in names:
            element = app.Element.getBySymbol(name[0])
            atoms[f"{residue_name}:{name}"] = topology.addAtom(name, element, residue)
    for one, other in HEAVY_BONDS:
        topology.addBond(atoms[one], atoms[other])
    positions = [openmm.Vec3(*places[name]) for name in atoms] * unit.angstrom
    modeller = app.Modeller(topology, positions)
    modeller.addHydrogens(force_field())
    return modeller


def force_field() -> app.ForceField:
    """Amber's ff14SB with the implicit solvent GBn2."""
    return app.ForceField("amber14-all.xml", "implicit/gbn2.xml")


def simulate(modeller: app.Modeller, frames: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the frames, in Å, and their temperatures, in K."""
    system = force_field().createSystem(
        modeller.topology, nonbondedMethod=app.NoCutoff, constraints=app.HBonds, removeCMMotion=False
    )
    integrator = openmm.LangevinMiddleIntegrator(
        KELVIN * unit.kelvin, FRICTION / unit.picosecond, FEMTOSECONDS * unit.femtosecond
    )
    integrator.setRandomNumberSeed(SEED)
    platform = openmm.Platform.getPlatformByName("CPU")  # one thread: eight times as fast as "Reference"
    simulation = app.Simulation(modeller.topology, system, integrator, platform, {"Threads": "1"})
    simulation.context.setPositions(modeller.positions)
    simulation.minimizeEnergy()
    simulation.context.setVelocitiesToTemperature(KELVIN * unit.kelvin, SEED)
    simulation.step(EQUILIBRATION)
    freedom = 3 * system.getNumParticles() - system.getNumConstraints()
    positions, temperatures = [], []
    for _ in range(frames):
        simulation.step(STRIDE)
        state = simulation.context.getState(getPositions=True, getEnergy=True)
        positions.append(state.getPositions(asNumpy=True).value_in_unit(unit.angstrom))
        temperatures.append((2 * state.getKineticEnergy() / (freedom * unit.MOLAR_GAS_CONSTANT_R)) / unit.kelvin)
    return np.array(positions), np.array(temperatures)


def aligned(positions: np.ndarray) -> np.ndarray:
    """Each frame about its centroid, rotated to fit the first one best (Kabsch)."""
    centred = positions - positions.mean(axis=1, keepdims=True)
    U, _, Vt = np.linalg.svd(centred.transpose(0, 2, 1) @ centred[0])
    U[:, :, -1] *= np.sign(np.linalg.det(U @ Vt))[:, None]
    return centred @ (U @ Vt)


def is_left_handed(positions: np.ndarray, heavy: dict[str, int]) -> bool:
    """Whether every frame is L-alanine: seen from the hydrogen of CA, the order is C, CB, N ("CORN" clockwise)."""
    ca, c, cb, n = (positions[:, heavy[name]] for name in ("ALA:CA", "ALA:C", "ALA:CB", "ALA:N"))
    return bool((np.einsum("ni,ni->n", np.cross(n - ca, c - ca), cb - ca) > 0).all())


def provenance(temperature: float) -> str:
    """What made the file, for whoever opens it."""
    return (
        "Alanine dipeptide (ACE-ALA-NME, L-alanine), one molecule in implicit solvent, simulated by the isopursuit "
        "project (tools/simulate_alanine_dipeptide.py). Force field Amber ff14SB (amber14-all.xml), solvent GBn2 "
        f"(implicit/gbn2.xml), no cutoff, bonds to hydrogen constrained; Langevin dynamics (middle scheme), {KELVIN:g} "
        f"K, time step {FEMTOSECONDS:g} fs, friction {FRICTION:g} per ps, seed {SEED}; OpenMM "
        f"{version('openmm')}, platform CPU. {EQUILIBRATION * FEMTOSECONDS / 1000:g} ps thrown away, then "
        f"{FRAMES} frames {STRIDE * FEMTOSECONDS / 1000:g} ps apart, mean temperature {temperature:.1f} K. positions: "
        f"integers, in {RESOLUTION} Å, each frame about its centroid and rotated to fit the first; numbers: atomic "
        "numbers; names, residues: Amber's names; bonds: pairs of atoms. Licence: BSD-3-Clause, as the package."
    )


def main() -> None:
    """Simulate, and write the file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("src/isopursuit/data/alanine_dipeptide.npz"))
    parser.add_argument("--frames", type=int, default=FRAMES, help="fewer for a trial")
    options = parser.parse_args()
    modeller = build()
    atoms = list(modeller.topology.atoms())
    began = time.process_time()
    positions, temperatures = simulate(modeller, options.frames)
    keys = {f"{atom.residue.name}:{atom.name}": atom.index for atom in atoms}
    if not is_left_handed(positions, keys):
        raise SystemExit("A frame is not L-alanine: nothing was written.")
    caps = [atom.residue.name != "ALA" for atom in atoms]
    names = [AMBER_NAMES.get(atom.name, atom.name) if cap else atom.name for atom, cap in zip(atoms, caps, strict=True)]
    names[keys["NME:C"]] = "CH3"
    np.savez_compressed(
        options.output,
        positions=np.round(aligned(positions) / RESOLUTION).astype(np.int16),
        numbers=np.array([atom.element.atomic_number for atom in atoms], dtype=np.uint8),
        names=np.array(names),
        residues=np.array([atom.residue.name for atom in atoms]),
        bonds=np.array(sorted(sorted(a.index for a in bond) for bond in modeller.topology.bonds()), dtype=np.uint8),
        provenance=provenance(float(temperatures.mean())),
    )
    print(
        f"{len(positions)} frames in {options.output}, mean {temperatures.mean():.1f} K, "
        f"{time.process_time() - began:.0f} s of processor time"
    )


if __name__ == "__main__":
    main()
