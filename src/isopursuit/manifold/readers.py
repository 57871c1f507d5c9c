"""Files and objects of other packages as `Frames`: MDAnalysis, mdtraj, ASE and NumPy archives.

Objects are recognized by their attributes, so none of these packages is imported unless a file needs it. Positions are
read in blocks of frames, for the selected atoms.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from isopursuit._core.types import Array, Indices
from isopursuit.data._files import one_line
from isopursuit.errors import DataTypeError, FileError, ParameterError, optional
from isopursuit.manifold.frames import Block, Frames, boxes, elements_of, residue_texts

LAYOUTS = (("R", "z"), ("coords", "nuclear_charges"))  # MD17 and sGDML; rMD17
NANOMETRE = 10.0  # Å
BLOCK = 64  # frames read at once (guess)
COORDINATES = (".dcd", ".xtc", ".trr", ".nc", ".ncdf", ".mdcrd", ".inpcrd", ".lammpsdump")  # positions without atoms
ATOMS = ".pdb .ent .pdbqt .pqr .gro .psf .prmtop .parm7 .top .tpr .itp .crd .mol2"  # atoms, and positions in some
BY_MDANALYSIS = frozenset((*COORDINATES, *ATOMS.split()))


def open_file(path: Path, topology: Path | None) -> Frames:
    """The frames of a file; `read_archive` reads .npz files."""
    kind = path.suffix.lower()
    if topology is None and kind in COORDINATES:
        raise FileError(
            f"{path.name} contains positions but no atoms. Pass the file with the atoms (.pdb, .gro, .psf, .prmtop or "
            "another) as topology=."
        )
    if topology is None and kind not in BY_MDANALYSIS:
        return from_atoms(_read_ase(path), path.name)
    files = [path] if topology is None else [topology, path]
    with _quiet():
        mdanalysis = optional("MDAnalysis", "chem", f"Reading {kind or 'such'} files")
        try:
            universe = mdanalysis.Universe(*map(str, files))
        except Exception as error:  # noqa: BLE001 - any MDAnalysis error about a broken file becomes one line
            names = " with ".join(file.name for file in reversed(files))
            raise FileError(f"{names} cannot be read by MDAnalysis: {one_line(error)}.") from None
    return from_mdanalysis(universe.atoms, path.name)


def open_object(data: Any) -> Frames:
    """The frames of an object of MDAnalysis, mdtraj or ASE."""
    group = getattr(data, "atoms", None)
    if hasattr(group, "universe") and hasattr(group, "indices"):
        return from_mdanalysis(group)
    if hasattr(data, "xyz") and hasattr(getattr(data, "topology", None), "atoms"):
        return from_mdtraj(data)
    frames: list[Any] = list(data) if isinstance(data, list | tuple) else [data]
    if frames and all(hasattr(frame, "numbers") and hasattr(frame, "positions") for frame in frames):
        return from_atoms(frames, "the list of Atoms")
    raise DataTypeError(
        f"A trajectory cannot be made from {type(data).__name__}. Pass a Trajectory, the path of a file, a Universe or "
        "an AtomGroup of MDAnalysis, a Trajectory of mdtraj, or a list of ASE Atoms."
    )


def from_mdanalysis(group: Any, source: str = "") -> Frames:
    """The frames of an AtomGroup; reading does not change the current frame of the universe."""
    universe = group.universe
    everything, each = universe.atoms, universe.residues
    source = source or Path(str(getattr(universe, "filename", None) or "the Universe")).name
    if not hasattr(universe, "trajectory"):
        raise FileError(f'{source} contains atoms but no positions. Pass the trajectory, with topology="{source}".')
    places = np.asarray(everything.resindices, dtype=np.intp)
    names, kinds = (_texts(getattr(everything, name, None)) for name in ("names", "resnames"))
    residues = None
    if kinds is not None:
        texts = residue_texts(each.resnames, each.resids, getattr(each, "segids", [""] * len(each)))
        residues = tuple(texts[int(i)] for i in places)
    bonds = getattr(universe, "bonds", None)
    masses = np.nan_to_num(np.asarray(getattr(everything, "masses", np.zeros(len(places))), dtype=np.float64))
    numbers = elements_of(_texts(getattr(everything, "elements", None)), names, masses, places)

    def choose(words: str) -> Indices:
        with _quiet():
            try:
                known = re.sub(r"\bheavy\b", "group heavy", words)
                return np.asarray(group.select_atoms(known, heavy=everything[numbers != 1]).indices, dtype=np.intp)
            except Exception as error:  # noqa: BLE001 - any MDAnalysis error about the words becomes one line
                raise _bad_words(words, "MDAnalysis", error) from None

    return Frames(
        source=source,
        count=len(universe.trajectory),
        numbers=numbers,
        own=np.asarray(group.indices, dtype=np.intp),
        read=lambda atoms, stride: _mdanalysis_blocks(universe, atoms, stride),
        places=places,
        names=names,
        residues=residues,
        kinds=kinds,
        bonds=None if bonds is None else np.asarray(bonds.indices, dtype=np.intp).reshape(-1, 2),
        choose=choose,
    )


def from_mdtraj(data: Any) -> Frames:
    """The frames of a Trajectory of mdtraj, whose positions are in nm."""
    atoms, each = list(data.topology.atoms), list(data.topology.residues)
    places = np.array([atom.residue.index for atom in atoms], dtype=np.intp)
    chains = [str(getattr(residue.chain, "chain_id", None) or residue.chain.index) for residue in each]
    texts = residue_texts([residue.name for residue in each], [residue.resSeq for residue in each], chains)
    names = tuple(str(atom.name) for atom in atoms)
    symbols = [atom.element.symbol if atom.element is not None else "" for atom in atoms]

    def read(chosen: Indices, stride: int) -> Generator[Block]:
        for first in range(0, data.n_frames, BLOCK * stride):
            some = slice(first, first + BLOCK * stride, stride)
            cells = None if data.unitcell_vectors is None else np.asarray(data.unitcell_vectors[some], dtype=np.float64)
            positions = np.asarray(data.xyz[some][:, chosen], dtype=np.float64)
            yield NANOMETRE * positions, boxes(None if cells is None else NANOMETRE * cells)

    def choose(words: str) -> Indices:
        try:
            return np.asarray(data.topology.select(re.sub(r"\bheavy\b", "(mass > 2)", words)), dtype=np.intp)
        except Exception as error:  # noqa: BLE001 - any mdtraj error about the words becomes one line
            raise _bad_words(words, "mdtraj", error) from None

    return Frames(
        source="the Trajectory of mdtraj",
        count=int(data.n_frames),
        numbers=elements_of(symbols, names, np.zeros(len(atoms)), places),
        own=np.arange(len(atoms), dtype=np.intp),
        read=read,
        places=places,
        names=names,
        residues=tuple(texts[i] for i in places.tolist()),
        kinds=tuple(str(each[i].name) for i in places.tolist()),
        bonds=np.array([(a.index, b.index) for a, b in data.topology.bonds], dtype=np.intp).reshape(-1, 2),
        choose=choose,
    )


def from_atoms(frames: Sequence[Any], source: str) -> Frames:
    """The frames of a list of ASE's Atoms."""
    numbers = np.asarray(frames[0].numbers, dtype=np.intp)
    for i, frame in enumerate(frames):
        if not np.array_equal(frame.numbers, numbers):
            raise FileError(
                f"{source}: frame {i} is {frame.symbols}, frame 0 is {frames[0].symbols}. All frames must be the "
                "same molecule, with atoms in the same order."
            )

    def read(chosen: Indices, stride: int) -> Generator[Block]:
        every = frames[::stride]
        for first in range(0, len(every), BLOCK):
            some = every[first : first + BLOCK]
            periodic = all(np.all(frame.pbc) for frame in some)
            cells = np.array([np.asarray(frame.cell[:], dtype=np.float64) for frame in some]) if periodic else None
            yield np.array([frame.positions[chosen] for frame in some], dtype=np.float64), boxes(cells)

    return Frames(source, len(frames), numbers, np.arange(len(numbers), dtype=np.intp), read)


def read_archive(path: Path) -> dict[str, Any]:
    """The fields of a trajectory in a NumPy archive; `names`, `residues` and `bonds` are optional."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            found = list(archive.files)
            for layout in LAYOUTS:
                if set(layout) <= set(found):
                    positions, numbers = (np.asarray(archive[key]) for key in layout)
                    more = {key: archive[key].tolist() for key in ("names", "residues", "bonds") if key in found}
                    return {"positions": positions.astype(np.float64), "numbers": numbers.astype(np.intp), **more}
    except Exception as error:  # noqa: BLE001 - any NumPy error about a broken file becomes one line
        # for files that are not archives, NumPy advises to load them unsafely
        why = "it is no NumPy archive" if "pickle" in str(error) else one_line(error)
        raise FileError(f"{path.name} is not a readable .npz file: {why}.") from None
    known = " or ".join(", ".join(layout) for layout in LAYOUTS)
    raise FileError(f"{path.name} contains {', '.join(found) or 'nothing'}. A trajectory has the arrays {known}.")


def _read_ase(path: Path) -> list[Any]:
    io = optional("ase.io", "chem", f"Reading {path.suffix or 'such'} files")
    try:
        frames: list[Any] = list(io.read(path, index=":"))
    except Exception as error:  # noqa: BLE001 - any ASE error about a broken file becomes one line
        raise FileError(f"{path.name} is not a trajectory that ASE can read: {one_line(error)}.") from None
    if not frames:
        raise FileError(f"{path.name} contains no frames.")
    return frames


def _mdanalysis_blocks(universe: Any, atoms: Indices, stride: int) -> Generator[Block]:
    trajectory, group = universe.trajectory, universe.atoms[atoms]
    before = trajectory.frame
    try:
        for first in range(0, len(trajectory), BLOCK * stride):
            with _quiet():
                steps = trajectory[first : first + BLOCK * stride : stride]
            yield _mdanalysis_block(steps, group)
    finally:
        with _quiet():
            trajectory[before]


def _mdanalysis_block(steps: Any, group: Any) -> Block:
    positions: list[Array] = []
    cells: list[Array] = []
    with _quiet():
        try:
            for step in steps:
                positions.append(np.asarray(group.positions, dtype=np.float64))
                if step.dimensions is not None:
                    cells.append(np.asarray(step.triclinic_dimensions, dtype=np.float64))
        except Exception as error:  # noqa: BLE001 - any MDAnalysis error about a broken file becomes one line
            raise FileError(f"MDAnalysis cannot read the frames: {one_line(error)}.") from None
    return np.array(positions), boxes(np.array(cells)) if len(cells) == len(positions) else None


def _texts(values: Any) -> tuple[str, ...] | None:
    return None if values is None else tuple(str(value) for value in values)


def _bad_words(words: str, package: str, error: Exception) -> ParameterError:
    return ParameterError(
        f'atoms={words!r} is not understood by {package}: {one_line(error)}. Use "heavy", "all", a list of numbers, or '
        f"a selection in the words of {package}."
    )


@contextmanager
def _quiet() -> Generator[None]:
    """Ignore warnings of MDAnalysis about missing masses, time steps and boxes, which are not used here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
