"""One molecule in many frames, and its bonds."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree

from isopursuit._core.atomic import write_whole
from isopursuit._core.options import as_count, as_numbers
from isopursuit._core.types import Array, Indices
from isopursuit.data._files import check_file
from isopursuit.errors import FileError, GeometryError, NonFiniteError, ParameterError, ShapeError
from isopursuit.molecules._elements import RADII, SYMBOLS
from isopursuit.molecules._reading import (
    LONGEST_BOND,
    as_atoms,
    as_group,
    group_of,
    open_file,
    read_archive,
    read_group,
    selected,
)

CLOSEST = 0.4  # Å: no two nuclei are closer, so closer positions are in another unit (H–H is 0.74 Å)
STRETCH = 1.2  # longest bond, relative to the sum of the covalent radii (as in many programs)
LISTED = 30  # most atoms that are listed one by one; larger molecules are shown as a formula

Bonds = tuple[tuple[int, int], ...]


@dataclass(frozen=True, repr=False)
class Trajectory:
    """One molecule in many frames.

    Any other format becomes a trajectory by its arrays, for instance ``Trajectory(positions, numbers, bonds=bonds)``.

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
        if not ((self.numbers >= 0) & (self.numbers < len(SYMBOLS))).all():
            raise ParameterError(
                f"{self._name}atomic numbers must be 0 to {len(SYMBOLS) - 1}: {self.numbers.tolist()}."
            )
        broken = ~np.isfinite(self.positions).all(axis=(1, 2))
        if broken.any():
            raise NonFiniteError(f"{self._name}frame {int(broken.argmax())} has positions that are not finite.")
        for what in ("names", "residues"):
            texts = getattr(self, what)
            self._set(what, None if texts is None else tuple(str(text).strip() for text in texts))
        self._set("serials", np.asarray(self.serials if len(self.serials) else np.arange(shape[1]), dtype=np.intp))
        for what in ("numbers", "names", "residues", "serials"):
            values = getattr(self, what)
            if values is not None and len(values) != shape[1]:
                raise ShapeError(f"{self._name}{shape[1]} atoms have {len(values)} {what}. Give one for each atom.")
        if self.bonds is not None:
            pairs = sorted({(min(int(i), int(j)), max(int(i), int(j))) for i, j in self.bonds})
            for i, j in pairs:
                if i == j or i < 0 or j >= shape[1]:
                    raise ParameterError(
                        f"{self._name}the bond {i}–{j} is not between two of the atoms 0 to {shape[1] - 1}."
                    )
            self._set("bonds", tuple(pairs))

    def select(self, atoms: str | ArrayLike) -> Trajectory:
        """The trajectory of some atoms: "heavy" (all except hydrogen), "all", a selection in the words of MDAnalysis,
        or their positions in this trajectory.

        Examples
        --------
        >>> from isopursuit.molecules import load_ethanol
        >>> load_ethanol().select([0, 1, 2, 8])
        Trajectory(16000 frames of 4 atoms CCOH, ethanol.npz)
        """
        if isinstance(atoms, str) and atoms in ("heavy", "all"):
            chosen = np.flatnonzero((self.numbers != 1) | (atoms == "all"))
        elif isinstance(atoms, str):
            chosen = selected(self.group(), atoms).indices
        else:
            chosen = as_atoms(atoms, len(self.numbers))
        if not len(chosen):
            raise ParameterError(f"{self._name}the selection {str(atoms)[:60]} has no atoms. Select some.")
        place = {int(atom): i for i, atom in enumerate(chosen)}
        kept = tuple((place[i], place[j]) for i, j in self.bonds or () if i in place and j in place)
        return Trajectory(
            self.positions[:, chosen],
            self.numbers[chosen],
            self.source,
            names=None if self.names is None else tuple(self.names[i] for i in chosen),
            residues=None if self.residues is None else tuple(self.residues[i] for i in chosen),
            bonds=None if self.bonds is None else kept,
            serials=self.serials[chosen],
        )

    def group(self) -> Any:
        """The atoms as an AtomGroup of MDAnalysis at the first frame."""
        blank = ("",) * len(self.numbers)
        return group_of(self.positions[0], self.numbers, self.names or blank, self.residues or blank)

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
        """Write a NumPy archive (.npz) that `as_trajectory` and the command `isopursuit coordinates` read."""
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


def open_atoms(data: Any, topology: str | Path | None = None) -> Any:
    """The data as a `Trajectory` if they are one or an archive, otherwise as an AtomGroup, not yet read."""
    file = Path(data) if isinstance(data, str | Path) else None
    archive = file is not None and file.suffix.lower() == ".npz"
    if topology is not None:
        if file is None or archive:
            what = type(data).__name__ if file is None else file.name
            raise ParameterError(f"topology= is for files without atoms; {what} already has them. Leave it out.")
        check_file(Path(topology))
    if file is None:
        return data if isinstance(data, Trajectory) else as_group(data)
    check_file(file)
    if archive:
        return _in_angstrom(Trajectory(**read_archive(file), source=file.name))
    return open_file(file, None if topology is None else Path(topology))


def as_trajectory(
    data: Any, topology: str | Path | None = None, *, atoms: str | ArrayLike | None = None, stride: int = 1
) -> Trajectory:
    """Read a trajectory of one molecule from a file, or from an object of MDAnalysis.

    Molecules that are cut by a periodic box are made whole by their bonds.

    Parameters
    ----------
    data : str, Path, Trajectory, Universe or AtomGroup
        A NumPy archive (.npz) in the layout of MD17, rMD17 or sGDML, optionally with arrays `names`, `residues` and
        `bonds`; another file that MDAnalysis reads (extra `chem`), such as .pdb, .xyz, .gro, .dcd, .xtc, .trr or .nc,
        where MDAnalysis writes an index next to .xtc and .trr files; or an object of MDAnalysis.
    topology : str or Path, optional
        The file with the atoms (.pdb, .gro, .psf, .prmtop), for files such as .dcd and .xtc that have only positions.
    atoms : "heavy", "all", str or sequence of int, optional
        The atoms to read: all except hydrogen, all, a selection in the words of MDAnalysis such as
        "protein and heavy", or numbers. Default: all. A system with water needs a selection in words, numbers, or
        "all".
    stride : int
        Read only every stride-th frame.

    Raises
    ------
    FileError
        A file does not exist, or is not a trajectory.
    DataTypeError
        `data` is none of these.
    GeometryError
        A bond is far too long: topology and positions do not belong together, or a molecule cannot be made whole.
    """
    as_count(stride, 1, "stride")
    opened = open_atoms(data, topology)
    if isinstance(opened, Trajectory):
        found = opened if atoms is None else opened.select(atoms)
        return found if stride == 1 else found.take(slice(None, None, stride))
    found = Trajectory(**read_group(opened, atoms, stride))
    _refuse_long_bonds(found)
    return _in_angstrom(found)


def _in_angstrom(found: Trajectory) -> Trajectory:
    """The trajectory, unless its atoms are so close that the unit must be another."""
    if len(found.numbers) > 1:
        closest = float(np.min(cKDTree(found.positions[0]).query(found.positions[0], k=[2])[0]))
        if closest < CLOSEST:
            raise FileError(
                f"{found.source}: two atoms of the first frame are {closest:.3g} apart. Positions must be in Å; "
                "convert them."
            )
    return found


def find_bonds(trajectory: Trajectory) -> Bonds:
    """The pairs of atoms that are bonded: those of the topology, if it has any.

    Otherwise these are the pairs whose median distance is at most 1.2 times the sum of their covalent radii.
    """
    if trajectory.bonds:
        return trajectory.bonds
    positions, radii = trajectory.positions, RADII[np.minimum(trajectory.numbers, len(RADII) - 1)]
    samples = positions[:: max(1, len(positions) // 2)]
    # a bond is at most twice as long as its limit in at least one of these frames
    near = {pair for one in samples for pair in cKDTree(one).query_pairs(4 * STRETCH * float(radii.max()))}
    pairs = np.array(sorted(near), dtype=np.intp).reshape(-1, 2)
    limits = STRETCH * radii[pairs].sum(axis=1)
    lengths = np.linalg.norm(samples[:, pairs[:, 0]] - samples[:, pairs[:, 1]], axis=2).min(axis=0)
    return tuple(
        (i, j)
        for (i, j), limit, length in zip(pairs.tolist(), limits.tolist(), lengths.tolist(), strict=True)
        if length <= 2 * limit and np.median(np.linalg.norm(positions[:, i] - positions[:, j], axis=1)) <= limit
    )


def _refuse_long_bonds(trajectory: Trajectory) -> None:
    for i, j in trajectory.bonds or ():
        lengths = np.linalg.norm(trajectory.positions[:, i] - trajectory.positions[:, j], axis=1)
        if lengths.max() > LONGEST_BOND:
            raise GeometryError(
                f"{trajectory.source}: the bond between atoms {trajectory.serials[i]} and {trajectory.serials[j]} is "
                f"{lengths.max():.1f} Å long in frame {lengths.argmax()}. Either topology and positions do not belong "
                "together, or a periodic box cuts the molecule and the file does not contain the size of the box, or "
                "bonds lead through the box, as in a crystal."
            )
