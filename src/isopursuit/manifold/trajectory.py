"""Molecules that move: positions frame by frame, read from files, and who is bonded to whom.

NumPy archives in the layouts of MD17, rMD17 and sGDML are read as they are; .xyz, .extxyz, .traj and whatever else
ASE knows is read by ASE (extra `chem`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isopursuit._types import Array, Indices
from isopursuit.errors import FileError, NonFiniteError, ParameterError, ShapeError, optional
from isopursuit.files.paths import one_line

LAYOUTS = (("R", "z"), ("coords", "nuclear_charges"))  # MD17 and sGDML; rMD17
CLOSEST = 0.4  # Å: no two nuclei come closer, so positions that do are in another unit
ELEMENTS = (
    "X H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr Rb Sr Y Zr "
    "Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb Lu Hf Ta W Re Os Ir Pt "
    "Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md No Lr Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv "
    "Ts Og"
)
SYMBOLS = ELEMENTS.split()


@dataclass(frozen=True)
class Trajectory:
    """One molecule in many frames: `positions` (n, atoms, 3) in Å, the atoms' `numbers`, and where it comes from."""

    positions: Array
    numbers: Indices
    source: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "positions", np.asarray(self.positions, dtype=np.float64))
        object.__setattr__(self, "numbers", np.asarray(self.numbers, dtype=np.intp))
        shape = self.positions.shape
        if len(shape) != 3 or shape[2] != 3 or 0 in shape:
            raise ShapeError(f"{self._name}positions must be (frames, atoms, 3); they are {shape}.")
        if self.numbers.shape != shape[1:2]:
            raise ShapeError(f"{self._name}{shape[1]} atoms have atomic numbers of shape {self.numbers.shape}.")
        if not ((self.numbers >= 0) & (self.numbers < len(SYMBOLS))).all():
            raise ParameterError(
                f"{self._name}atomic numbers must be 0 to {len(SYMBOLS) - 1}: {self.numbers.tolist()}."
            )
        broken = ~np.isfinite(self.positions).all(axis=(1, 2))
        if broken.any():
            raise NonFiniteError(f"{self._name}frame {int(broken.argmax())} has positions that are not finite.")

    @property
    def _name(self) -> str:
        return f"{self.source}: " if self.source else ""

    @property
    def symbols(self) -> tuple[str, ...]:
        """The atoms' chemical symbols."""
        return tuple(SYMBOLS[int(z)] for z in self.numbers)

    def __repr__(self) -> str:
        n, atoms, _ = self.positions.shape
        return f"Trajectory({n} frames of {atoms} atoms {''.join(self.symbols)}, {self.source or 'source unknown'})"


def load_trajectory(path: str | Path) -> Trajectory:
    """Read a trajectory of one molecule: .npz (MD17, rMD17, sGDML), .xyz, .extxyz, .traj and other formats of ASE.

    Raises
    ------
    FileError
        Where the file is not there, is no trajectory, or its frames are not of one molecule.
    """
    path = Path(path)
    if not path.is_file():
        raise FileError(f"There is no file {path}.")
    positions, numbers = _from_archive(path) if path.suffix.lower() == ".npz" else _from_ase(path)
    trajectory = Trajectory(positions, numbers, path.name)
    closest = _nearest(positions[:1])
    if closest < CLOSEST:
        raise FileError(
            f"{path.name}: two atoms of the first frame are {closest:.3g} apart. Positions must be in Å; convert them."
        )
    return trajectory


def find_bonds(trajectory: Trajectory, *, stretch: float = 1.2) -> tuple[tuple[int, int], ...]:
    """The pairs of atoms whose median distance is at most `stretch` times the sum of their covalent radii (ASE's)."""
    data = optional("ase.data", "chem", "Finding bonds", otherwise="give the bonds")
    radii: Array = np.asarray(data.covalent_radii, dtype=np.float64)[trajectory.numbers]
    i, j = np.triu_indices(len(radii), 1)
    distances = np.linalg.norm(trajectory.positions[:, i] - trajectory.positions[:, j], axis=2)
    bonded = np.median(distances, axis=0) <= stretch * (radii[i] + radii[j])
    pairs: list[list[int]] = np.column_stack([i, j])[bonded].tolist()
    return tuple((a, b) for a, b in pairs)


def _from_archive(path: Path) -> tuple[Array, Indices]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            found = list(archive.files)
            for layout in LAYOUTS:
                if set(layout) <= set(found):
                    positions, numbers = (np.asarray(archive[key]) for key in layout)
                    return positions.astype(np.float64), numbers.astype(np.intp)
    except Exception as error:  # noqa: BLE001 - whatever NumPy says of a broken file becomes one line
        raise FileError(f"{path.name} is not a readable .npz file: {one_line(error)}.") from None
    known = " or ".join(", ".join(layout) for layout in LAYOUTS)
    raise FileError(f"{path.name} holds {', '.join(found) or 'nothing'}. A trajectory has the arrays {known}.")


def _from_ase(path: Path) -> tuple[Array, Indices]:
    io = optional("ase.io", "chem", f"Reading {path.suffix or 'such'} files")
    try:
        frames: list[Any] = list(io.read(path, index=":"))
    except Exception as error:  # noqa: BLE001 - whatever ASE says of a broken file becomes one line
        raise FileError(f"{path.name} is no trajectory that ASE can read: {one_line(error)}.") from None
    if not frames:
        raise FileError(f"{path.name} holds no frames.")
    numbers = np.asarray(frames[0].numbers, dtype=np.intp)
    for i, frame in enumerate(frames):
        if not np.array_equal(frame.numbers, numbers):
            raise FileError(
                f"{path.name}: frame {i} is {frame.symbols}, frame 0 is {frames[0].symbols}. All frames must be the "
                "same molecule, its atoms in the same order."
            )
    return np.array([frame.positions for frame in frames], dtype=np.float64), numbers


def _nearest(positions: Array) -> float:
    i, j = np.triu_indices(positions.shape[1], 1)
    return float(np.linalg.norm(positions[:, i] - positions[:, j], axis=2).min(initial=np.inf))
