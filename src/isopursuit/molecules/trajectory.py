"""Trajectories of molecules, from files and from objects of other packages, and their bonds.

NumPy archives in the layouts of MD17, rMD17 and sGDML need no other package. ASE reads .xyz, .extxyz, .traj and other
formats; MDAnalysis reads .pdb, .gro and, with a topology, .dcd, .xtc, .trr and .nc (both in the extra `chem`).
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from isopursuit._core.options import as_count, as_numbers
from isopursuit._core.outputs import write_whole
from isopursuit._core.types import Array, Indices
from isopursuit.data._files import check_file
from isopursuit.errors import FileError, GeometryError, NonFiniteError, ParameterError, ShapeError, unknown_option
from isopursuit.manifold.bonds import LONGEST_BOND, STRETCH, bonds_by_distance, bonds_by_rdkit, closest_pair
from isopursuit.manifold.elements import SYMBOLS
from isopursuit.manifold.frames import Frames, as_atoms, chosen_atoms, read_atoms
from isopursuit.manifold.readers import open_file, open_object, read_archive

CLOSEST = 0.4  # Å; no two nuclei are closer, so closer positions are in another unit
TORSION = 4  # atoms of a torsion
LISTED = 30  # most atoms listed one by one; larger molecules are shown as a formula

Bonds = tuple[tuple[int, int], ...]
BondRule = Literal["auto", "topology", "distances", "rdkit"]


@dataclass(frozen=True, repr=False)
class Trajectory:
    """One molecule in many frames.

    Parameters
    ----------
    positions : array_like (n, atoms, 3)
        Positions in Å.
    numbers : array_like (atoms,)
        Atomic numbers.
    source : str
        The origin of the data, for messages.
    names : sequence of str, optional
        The names of the atoms in the topology, such as "CA".
    residues : sequence of str, optional
        The residue of each atom, such as "ALA", or "ALA2" if there are several of that name.
    bonds : sequence of pairs, optional
        The bonds of the topology, as positions of atoms in this trajectory; None if unknown.
    serials : array_like (atoms,), optional
        The number of each atom in the file, from 0. A selection of atoms keeps these numbers.
    """

    positions: Array
    numbers: Indices
    source: str = ""
    names: tuple[str, ...] | None = None
    residues: tuple[str, ...] | None = None
    bonds: Bonds | None = None
    serials: Indices = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    def __post_init__(self) -> None:
        self._set("positions", np.asarray(self.positions, dtype=np.float64))
        self._set("numbers", np.asarray(self.numbers, dtype=np.intp))
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
        for what in ("names", "residues"):
            texts = getattr(self, what)
            if texts is not None:
                self._set(what, tuple(str(text).strip() for text in texts))
                self._check_length(what, len(texts))
        serials = np.asarray(self.serials, dtype=np.intp) if len(self.serials) else np.arange(shape[1], dtype=np.intp)
        self._check_length("serials", len(serials))
        self._set("serials", serials)
        if self.bonds is not None:
            self._set("bonds", self._as_bonds(self.bonds))

    def select(self, atoms: str | ArrayLike) -> Trajectory:
        """The trajectory of some atoms: "heavy" (all except hydrogen), "all", or their positions in this trajectory.

        Examples
        --------
        >>> from isopursuit.manifold.ethanol import load_ethanol
        >>> load_ethanol().select([0, 1, 2, 8])
        Trajectory(16000 frames of 4 atoms CCOH, ethanol.npz)
        """
        chosen = self._chosen(atoms)
        _refuse_few(len(chosen), atoms, self._name)
        place = {int(atom): i for i, atom in enumerate(chosen)}
        kept = [(place[i], place[j]) for i, j in self.bonds or () if i in place and j in place]
        return Trajectory(
            self.positions[:, chosen],
            self.numbers[chosen],
            self.source,
            names=None if self.names is None else tuple(self.names[i] for i in chosen),
            residues=None if self.residues is None else tuple(self.residues[i] for i in chosen),
            bonds=None if self.bonds is None else tuple(kept),
            serials=self.serials[chosen],
        )

    def take(self, frames: slice | ArrayLike) -> Trajectory:
        """The trajectory at some frames: a slice such as `slice(None, None, 10)`, numbers, or a mask."""
        given = np.arange(len(self.positions))[frames] if isinstance(frames, slice) else frames
        at = as_numbers(given, len(self.positions), "frames")
        if not at.size:
            raise ParameterError(f"{self._name}no frame is selected. Take at least one of the {len(self.positions)}.")
        return Trajectory(
            self.positions[at], self.numbers, self.source, self.names, self.residues, self.bonds, self.serials
        )

    def save(self, path: str | Path) -> None:
        """Write a NumPy archive (.npz) that `load_trajectory` and the command `isopursuit coordinates` read."""
        path = Path(path)
        if path.suffix.lower() != ".npz":
            raise FileError(f"{path.name} must end in .npz: trajectories are saved as NumPy archives.")
        known = {what: getattr(self, what) for what in ("names", "residues", "bonds")}
        content = io.BytesIO()
        np.savez_compressed(
            content,
            allow_pickle=False,
            R=self.positions.astype(np.float32),
            z=self.numbers,
            **{what: np.array(value) for what, value in known.items() if value},
        )
        write_whole(path, content.getvalue())

    @property
    def symbols(self) -> tuple[str, ...]:
        """The chemical symbols of the atoms."""
        return tuple(SYMBOLS[int(z)] for z in self.numbers)

    def __repr__(self) -> str:
        n, atoms, _ = self.positions.shape
        often = Counter(self.symbols)
        text = "".join(self.symbols if atoms <= LISTED else (f"{symbol}{often[symbol]}" for symbol in sorted(often)))
        return f"Trajectory({n} frames of {atoms} atoms {text}, {self.source or 'source unknown'})"

    @property
    def _name(self) -> str:
        return f"{self.source}: " if self.source else ""

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _check_length(self, what: str, length: int) -> None:
        if length != len(self.numbers):
            raise ShapeError(f"{self._name}{len(self.numbers)} atoms have {length} {what}. Give one for each atom.")

    def _as_bonds(self, bonds: Iterable[Sequence[int]]) -> Bonds:
        pairs = sorted({(min(int(i), int(j)), max(int(i), int(j))) for i, j in bonds})
        for i, j in pairs:
            if i == j or i < 0 or j >= len(self.numbers):
                raise ParameterError(
                    f"{self._name}the bond {i}–{j} is not between two of the atoms 0 to {len(self.numbers) - 1}."
                )
        return tuple(pairs)

    def _chosen(self, atoms: str | ArrayLike) -> Indices:
        if isinstance(atoms, str):
            if atoms not in ("heavy", "all"):
                raise ParameterError(
                    f'{self._name}atoms={atoms!r} is not recognized. Use "heavy", "all" or a list of numbers. '
                    "Only objects of MDAnalysis and mdtraj, and files that MDAnalysis reads, take selections in words."
                )
            return np.flatnonzero((self.numbers != 1) | (atoms == "all"))
        return as_atoms(atoms, len(self.numbers))


def load_trajectory(
    path: str | Path,
    topology: str | Path | None = None,
    *,
    atoms: str | ArrayLike | None = None,
    stride: int = 1,
) -> Trajectory:
    """Read a trajectory of one molecule from a file.

    Parameters
    ----------
    path : str or Path
        .npz (MD17, rMD17, sGDML, optionally with arrays `names`, `residues` and `bonds`), .xyz, .extxyz, .traj and
        other formats of ASE, or .pdb, .gro, .dcd, .xtc, .trr, .nc and other formats of MDAnalysis, which writes an
        index next to .xtc and .trr files.
    topology : str or Path, optional
        The file with the atoms: .pdb, .gro, .psf, .prmtop. Files such as .dcd and .xtc contain only positions.
    atoms : "heavy", "all", str or sequence of int, optional
        Which atoms to read, as for `as_trajectory`.
    stride : int
        Read only every stride-th frame.

    Raises
    ------
    FileError
        The file does not exist, is not a trajectory, or its frames are of different molecules.
    """
    path, topology = Path(path), None if topology is None else Path(topology)
    check_file(path)
    if path.suffix.lower() == ".npz":
        if topology is not None:
            raise FileError(f"{path.name} contains the atoms already. Leave out the topology {topology.name}.")
        trajectory = _thinned(Trajectory(**read_archive(path), source=path.name), atoms, stride)
    else:
        if topology is not None:
            check_file(topology)
        trajectory = _assemble(open_file(path, topology), atoms, stride)
    closest = closest_pair(trajectory.positions[0])
    if closest < CLOSEST:
        raise FileError(
            f"{path.name}: two atoms of the first frame are {closest:.3g} apart. Positions must be in Å; convert them."
        )
    return trajectory


def as_trajectory(
    data: Any,
    topology: str | Path | None = None,
    *,
    atoms: str | ArrayLike | None = None,
    stride: int = 1,
) -> Trajectory:
    """Convert a file or an object of another package to a trajectory.

    Molecules that are cut by a periodic box are made whole by their bonds.

    Parameters
    ----------
    data : Trajectory, str, Path, or object of another package
        The path of a file, an MDAnalysis Universe or AtomGroup, an mdtraj Trajectory, or a list of ASE Atoms.
    topology : str or Path, optional
        The file with the atoms, if `data` is the path of a file without them.
    atoms : "heavy", "all", str or sequence of int, optional
        The atoms to read: all except hydrogen, all, a selection in the language of MDAnalysis (for its objects and for
        files) or of mdtraj, such as "protein and heavy", or numbers. Default: all. A system with water or ions needs a
        selection in words, numbers, or "all".
    stride : int
        Read only every stride-th frame.

    Raises
    ------
    DataTypeError
        `data` is none of these.
    """
    if isinstance(data, str | Path):
        return load_trajectory(data, topology, atoms=atoms, stride=stride)
    if topology is not None:
        raise ParameterError(f"topology= is for files; {type(data).__name__} already has atoms. Leave out topology=.")
    if isinstance(data, Trajectory):
        return _thinned(data, atoms, stride)
    return _assemble(open_object(data), atoms, stride)


def find_bonds(trajectory: Trajectory, *, how: BondRule = "auto", stretch: float = STRETCH) -> Bonds:
    """The pairs of atoms that are bonded.

    Parameters
    ----------
    trajectory : Trajectory
        The molecule.
    how : {"auto", "topology", "distances", "rdkit"}
        "topology": the bonds of the trajectory's topology. "distances": pairs whose median distance is at most
        `stretch` times the sum of their covalent radii. "rdkit": RDKit's rule for the first frame (extra `chem`).
        "auto": the topology if it has bonds, otherwise distances.
    stretch : float
        The factor for "distances".
    """
    if how not in get_args(BondRule):
        raise unknown_option("how", how, get_args(BondRule))
    if how == "topology" and not trajectory.bonds:
        raise ParameterError('The trajectory has no bonds. Use how="distances", or pass a topology that has them.')
    if how == "topology" or (how == "auto" and trajectory.bonds):
        return trajectory.bonds or ()
    if how == "rdkit":
        found = bonds_by_rdkit(trajectory.positions[0], trajectory.symbols)
    else:
        found = bonds_by_distance(trajectory.positions, trajectory.numbers, None, stretch)
    return tuple((int(i), int(j)) for i, j in found)


def _assemble(frames: Frames, atoms: object, stride: int) -> Trajectory:
    chosen = chosen_atoms(frames, atoms)
    if atoms is not None or len(frames.own) < len(frames.numbers):
        _refuse_few(len(chosen), "of atoms" if atoms is None else atoms, f"{frames.source}: ")
    positions, bonds = read_atoms(frames, chosen, _stride(stride))
    trajectory = Trajectory(
        positions,
        frames.numbers[chosen],
        frames.source,
        names=None if frames.names is None else tuple(frames.names[i] for i in chosen),
        residues=None if frames.residues is None else tuple(frames.residues[i] for i in chosen),
        bonds=None if bonds is None else tuple((int(i), int(j)) for i, j in bonds),
        serials=chosen,
    )
    _refuse_long_bonds(trajectory)
    return trajectory


def _thinned(trajectory: Trajectory, atoms: str | ArrayLike | None, stride: int) -> Trajectory:
    chosen = trajectory if atoms is None else trajectory.select(atoms)
    return chosen if _stride(stride) == 1 else chosen.take(slice(None, None, stride))


def _refuse_few(count: int, atoms: object, name: str) -> None:
    if count < TORSION:
        raise ParameterError(
            f"{name}the selection {str(atoms)[:60]} leaves {count} atoms; a torsion needs {TORSION}. Select more, for "
            "example atoms='all'."
        )


def _refuse_long_bonds(trajectory: Trajectory) -> None:
    for i, j in trajectory.bonds or ():
        lengths = np.linalg.norm(trajectory.positions[:, i] - trajectory.positions[:, j], axis=1)
        if lengths.max() > LONGEST_BOND:
            raise GeometryError(
                f"{trajectory.source}: the bond between atoms {trajectory.serials[i]} and {trajectory.serials[j]} is "
                f"{lengths.max():.1f} Å long in frame {lengths.argmax()}. Either topology and positions do not belong "
                "together, or a periodic box cuts the molecule and the file does not contain the size of the box. Make "
                "the molecule whole first."
            )


def _stride(stride: int) -> int:
    return as_count(stride, 1, "stride")
