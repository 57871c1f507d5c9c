"""Simulate ethanol at 500 K and write src/isopursuit/data/ethanol.npz.

    pip install ase tblite
    OMP_NUM_THREADS=1 python tools/make_ethanol.py

Sixteen independent Langevin trajectories of one molecule in the gas phase, forces from GFN2-xTB. They start from the
three wells of the hydroxyl torsion in turn, methyl groups turned evenly, so that no well depends on one rare crossing.
With ten trajectories the smallest of the nine wells held 460 frames, and neighbourhoods of 1,000 gave wrong tangent
spaces at 4 of 100 frames: hence sixteen. The same seed gives the same file on the same machine and versions; elsewhere
rounding makes another sample of the same distribution.
"""

from __future__ import annotations

import argparse
import multiprocessing
from importlib.metadata import version
from pathlib import Path

import numpy as np
from ase import Atoms, units
from ase.build import molecule
from ase.md.langevin import Langevin
from ase.md.velocitydistribution import MaxwellBoltzmannDistribution
from tblite.ase import TBLite

KELVIN, FEMTOSECONDS, FRICTION = 500.0, 0.5, 0.01  # friction per femtosecond
EQUILIBRATION = 4_000  # steps thrown away
STRIDE = 80  # steps between frames: 40 fs
FRAMES, TRAJECTORIES, SEED = 1_000, 16, 20_241_107
RESOLUTION = 2.0**-13  # Å: positions are rounded to it, so that the file is smaller
MD17_ORDER = [1, 0, 2, 4, 5, 6, 7, 8, 3]  # CH2, CH3, O, H of CH2, H of CH3, H of OH
HYDROXYL, METHYL = (1, 0, 2, 8), (2, 0, 1, 5)


def start(number: int) -> Atoms:
    """Ethanol in MD17's order of atoms, its two torsions turned to the number-th starting point."""
    atoms = molecule("CH3CH2OH")[MD17_ORDER]
    atoms.set_dihedral(*HYDROXYL, (180, 60, 300)[number % 3], indices=[8])
    atoms.set_dihedral(*METHYL, 60 + 12 * number, indices=[5, 6, 7])
    return atoms


def simulate(number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions about the centre of mass (Å), potential and kinetic energies (eV) of one trajectory."""
    rng = np.random.default_rng([SEED, number])
    atoms = start(number)
    atoms.calc = TBLite(method="GFN2-xTB", verbosity=0)
    MaxwellBoltzmannDistribution(atoms, temperature_K=KELVIN, rng=rng)
    # all 27 degrees of freedom are in the bath; the molecule drifts, which its shape does not see
    dynamics = Langevin(
        atoms,
        FEMTOSECONDS * units.fs,
        temperature_K=KELVIN,
        friction=FRICTION / units.fs,
        fixcm=False,
        rng=rng,
    )
    dynamics.run(EQUILIBRATION)
    positions, potential, kinetic = [], [], []
    for _ in range(FRAMES):
        dynamics.run(STRIDE)
        positions.append(atoms.positions - atoms.get_center_of_mass())
        potential.append(atoms.get_potential_energy())
        kinetic.append(atoms.get_kinetic_energy())
    return np.array(positions), np.array(potential), np.array(kinetic)


def provenance() -> str:
    """What made the file, for whoever opens it."""
    return (
        "Ethanol, one molecule in the gas phase, simulated by the isopursuit project (tools/make_ethanol.py). "
        f"GFN2-xTB (tblite {version('tblite')}), Langevin dynamics (ASE {version('ase')}), {KELVIN:g} K, time step "
        f"{FEMTOSECONDS} fs, friction {FRICTION} per fs on all 27 degrees of freedom, seed {SEED}. {TRAJECTORIES} "
        f"independent trajectories from different torsions; of each, {EQUILIBRATION * FEMTOSECONDS / 1000:g} ps thrown "
        f"away, then {FRAMES} frames {STRIDE * FEMTOSECONDS:g} fs apart. R: positions about the centre of mass, Å, "
        f"rounded to {RESOLUTION:.1e}, in MD17's order of atoms; z: atomic numbers; trajectory: which of the "
        f"{TRAJECTORIES}; potential, kinetic: energies, eV. NumPy {version('numpy')}. Licence: BSD-3-Clause, as the "
        "package."
    )


def main() -> None:
    """Simulate, and write the file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("src/isopursuit/data/ethanol.npz"))
    parser.add_argument("--workers", type=int, default=1, help="processes (the trajectories are independent)")
    options = parser.parse_args()
    with multiprocessing.Pool(options.workers) as pool:
        positions, potential, kinetic = map(np.concatenate, zip(*pool.map(simulate, range(TRAJECTORIES)), strict=True))
    np.savez_compressed(
        options.output,
        R=np.round(positions.astype(np.float32) / np.float32(RESOLUTION)) * np.float32(RESOLUTION),
        z=start(0).numbers.astype(np.uint8),
        trajectory=np.repeat(np.arange(TRAJECTORIES, dtype=np.uint8), FRAMES),
        potential=potential.astype(np.float32),
        kinetic=kinetic.astype(np.float32),
        provenance=provenance(),
    )
    print(f"{len(positions)} frames in {options.output}, mean {kinetic.mean() * 2 / 27 / units.kB:.1f} K")


if __name__ == "__main__":
    main()
