"""Molecules from files and objects of MDAnalysis (extra `chem`), and from NumPy archives, which need no other package.

MDAnalysis guesses elements, selects atoms in words, finds missing bonds and makes molecules whole.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from isopursuit._core.types import Array, Indices
from isopursuit.data._files import one_line
from isopursuit.errors import DataTypeError, FileError, ParameterError, optional
from isopursuit.molecules._elements import SYMBOLS

LAYOUTS = (("R", "z"), ("coords", "nuclear_charges"))  # arrays of MD17 and sGDML; of rMD17
# Å: longer than any bond, shorter than what a molecule that a periodic box cuts shows. A box narrower than this is a
# placeholder, such as the 1 × 1 × 1 of many PDB files (chosen)
LONGEST_BOND = 4.0
MAX_BYTES = 8e9  # larger positions are refused before they are read: half of a laptop's memory (chosen)
UNKNOWN = -1  # atomic number of an atom of unknown element


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


def open_file(path: Path, topology: Path | None) -> Any:
    """All atoms of a file, as an AtomGroup."""
    files = [path] if topology is None else [topology, path]
    kinds: dict[str, Any] = {} if path.suffix.lower() != ".extxyz" else {"format": "XYZ"}
    if kinds and topology is None:
        kinds["topology_format"] = "XYZ"
    with _quiet():  # importing MDAnalysis shows its warnings again
        mdanalysis = optional("MDAnalysis", "chem", f"Reading {path.suffix.lower() or 'such'} files")
    with _quiet():
        try:
            universe = mdanalysis.Universe(*map(str, files), **kinds)
        except Exception as error:  # noqa: BLE001 - any MDAnalysis error about a broken file becomes one line
            names = " with ".join(file.name for file in reversed(files))
            raise FileError(f"{names} cannot be read by MDAnalysis: {one_line(error)}.") from None
    if topology is None and not (hasattr(universe.atoms, "names") or hasattr(universe.atoms, "elements")):
        raise FileError(
            f"{path.name} contains positions but no atoms. Pass the file with the atoms (.pdb, .gro, .psf, .prmtop or "
            "another) as topology=."
        )
    if not hasattr(universe, "trajectory"):
        raise FileError(f'{path.name} contains atoms but no positions. Pass the trajectory, with topology="{path}".')
    return universe.atoms


def as_group(data: Any) -> Any:
    """The atoms of an object of MDAnalysis, as an AtomGroup."""
    group = getattr(data, "atoms", None)
    if hasattr(group, "universe") and hasattr(group, "indices"):
        return group
    raise DataTypeError(
        f"A trajectory cannot be made from {type(data).__name__}. Pass the path of a file, a Universe or an AtomGroup "
        "of MDAnalysis, or a Trajectory of arrays."
    )


def group_of(positions: Array, numbers: Indices, names: Sequence[str], residues: Sequence[str]) -> Any:
    """The atoms of arrays as an AtomGroup at the given positions (atoms, 3), for selections in words."""
    mdanalysis = optional("MDAnalysis", "chem", "Selecting atoms in words")
    owners = list(dict.fromkeys(residues))
    found = [re.fullmatch(r"(?:.*/)?(.*?)(-?\d+)?", owner) for owner in owners]
    places = [owners.index(residue) for residue in residues]
    with _quiet():
        made = mdanalysis.Universe.empty(len(numbers), len(owners), atom_resindex=places, trajectory=True)
        made.add_TopologyAttr("names", list(names))
        made.add_TopologyAttr("elements", [SYMBOLS[z] for z in numbers.tolist()])
        made.add_TopologyAttr("resnames", [one[1] if one else "" for one in found])
        made.add_TopologyAttr("resids", [int((one and one[2]) or i) for i, one in enumerate(found, start=1)])
        made.atoms.positions = positions
    return made.atoms


def selected(group: Any, words: str) -> Any:
    """The atoms of a group that a selection in the words of MDAnalysis names; "heavy" are all except hydrogen."""
    known = {"heavy": group[_numbers(group) != 1]} if re.search(r"\bheavy\b", words) else {}
    with _quiet():
        try:
            return group.select_atoms(re.sub(r"\bheavy\b", "group heavy", words), **known)
        except Exception as error:  # noqa: BLE001 - any MDAnalysis error about the words becomes one line
            raise ParameterError(
                f"The selection {words!r} is not understood by MDAnalysis: {one_line(error)}. Use 'heavy', 'all', a "
                "list of numbers, or a selection in the words of MDAnalysis."
            ) from None


def read_group(group: Any, atoms: object, stride: int) -> dict[str, Any]:
    """The fields of a trajectory of some atoms; reading does not change the current frame of their Universe."""
    universe = group.universe
    file = getattr(universe.trajectory, "filename", None) or getattr(universe, "filename", None)
    source = Path(str(file or "the trajectory")).name
    numbers = _numbers(universe.atoms)
    chosen = _chosen(group, atoms, numbers, source)
    if not len(chosen):
        raise ParameterError(f"{source}: the selection {str(atoms)[:60]} has no atoms. Select some.")
    count = -(-len(universe.trajectory) // stride)
    size = count * len(chosen) * 3 * 8
    if size > MAX_BYTES:
        raise ParameterError(
            f"{source}: {count:,} frames of {len(chosen):,} atoms take {size / 1e9:.0f} GB. Select fewer atoms by "
            "atoms= or fewer frames by stride=."
        )
    kinds = _texts(getattr(chosen, "resnames", None))
    bonds = _complete_bonds(chosen)
    if bonds is not None:
        place = np.full(len(universe.atoms), -1, dtype=np.intp)
        place[chosen.indices] = np.arange(len(chosen))
        bonds = place[bonds[(place[bonds] >= 0).all(axis=1)]].tolist()
    with _quiet():
        return {
            "positions": _positions(chosen, numbers, stride, source),
            "numbers": numbers[chosen.indices],
            "source": source,
            "names": _texts(getattr(chosen, "names", None)),
            "residues": None if kinds is None else _residue_texts(chosen),
            "bonds": bonds,
            "serials": chosen.indices,
        }


def _numbers(atoms: Any) -> Indices:
    """Atomic numbers by the elements of the topology, otherwise by the names of the atoms, otherwise `UNKNOWN`."""
    from MDAnalysis.guesser.default_guesser import DefaultGuesser

    guesser, places = DefaultGuesser(None), {symbol.upper(): z for z, symbol in enumerate(SYMBOLS)}
    names = _texts(getattr(atoms, "names", None)) or ("",) * len(atoms)
    elements = _texts(getattr(atoms, "elements", None)) or ("",) * len(atoms)
    known: dict[tuple[str, str], int] = {}
    for element, name in set(zip(elements, names, strict=True)):
        # files such as .xyz have symbols as names: "Ca" is calcium, "CA" a carbon
        symbol = element or (name if name in SYMBOLS or not name else str(guesser.guess_atom_element(name)))
        known[element, name] = places.get(symbol.upper(), UNKNOWN)
    return np.array([known[pair] for pair in zip(elements, names, strict=True)], dtype=np.intp)


def _chosen(group: Any, atoms: object, numbers: Indices, source: str) -> Any:
    """The selected atoms, as an AtomGroup; None selects all, and raises an error if some are water."""
    if atoms is None or (isinstance(atoms, str) and atoms == "heavy"):
        _refuse_water(group, source)
    if isinstance(atoms, str) and atoms not in ("all", "heavy"):
        chosen = selected(group, atoms)
    elif isinstance(atoms, str) or atoms is None:
        chosen = group[numbers[group.indices] != 1] if atoms == "heavy" else group
    else:
        chosen = group[as_atoms(atoms, len(group))]
    if len(np.unique(chosen.indices)) < len(chosen):
        raise ParameterError(f"{source}: the group of atoms contains an atom twice. Name each atom once.")
    unknown = chosen[numbers[chosen.indices] == UNKNOWN]
    if len(unknown):
        name = getattr(unknown, "names", ["without a name"])[0]
        raise FileError(
            f"{source}: the element of atom {unknown.indices[0]} ({name}) is not known. Leave the atom out of the "
            "selection, or provide the elements: by a topology, or by the attribute `elements` of the Universe."
        )
    return chosen


def as_atoms(atoms: object, count: int) -> Indices:
    """Distinct numbers of atoms, given as numbers or as a mask."""
    given = np.asarray(atoms)
    if given.dtype == bool and given.shape == (count,):
        given = np.flatnonzero(given)
    if given.ndim != 1 or given.dtype.kind not in "iu" or (given.size and not 0 <= given.min() <= given.max() < count):
        raise ParameterError(
            f'The atoms {str(atoms)[:60]} must be "heavy", "all", or a list of whole numbers from 0 to {count - 1}.'
        )
    if len(np.unique(given)) < len(given):
        raise ParameterError("atoms names an atom twice. Name each atom once.")
    return given.astype(np.intp)


def _refuse_water(group: Any, source: str) -> None:
    if not hasattr(group, "resnames"):
        return
    water = len(group.select_atoms("water"))
    if water:
        raise ParameterError(
            f"{source} has {len(group):,} atoms, {water:,} of them in water. Select the molecule: "
            'atoms="protein and heavy" in Python, --select on the command line; "all" takes all.'
        )


def _complete_bonds(chosen: Any) -> Indices | None:
    """The bonds of the topology; None if it has none, or those of some residues only, as many PDB files."""
    found = getattr(chosen.universe, "bonds", None)
    if found is None or not len(found):
        return None
    bonds = np.asarray(found.indices, dtype=np.intp).reshape(-1, 2)
    several = [one.atoms.indices for one in chosen.residues if len(one.atoms) > 1]
    return bonds if not several or np.isin(np.concatenate(several), bonds).all() else None


def _positions(chosen: Any, numbers: Indices, stride: int, source: str) -> Array:
    """Positions (n, atoms, 3) of whole molecules: those that a periodic box cuts are put together by their bonds."""
    universe = chosen.universe
    trajectory = universe.trajectory
    before, steps = trajectory.frame, range(0, len(trajectory), stride)
    positions = np.empty((len(steps), len(chosen), 3))
    molecules = None
    try:
        for i, number in enumerate(steps):
            box = trajectory[number].dimensions
            positions[i] = chosen.positions
            if box is not None and (box[:3] >= LONGEST_BOND).all():
                molecules = molecules or _Molecules(chosen, numbers)
                positions[i] = molecules.whole(positions[i], box)
    except (ParameterError, FileError):
        raise
    except Exception as error:  # noqa: BLE001 - any MDAnalysis error about a broken file becomes one line
        raise FileError(f"{source}: MDAnalysis cannot read the frames: {one_line(error)}.") from None
    finally:
        trajectory[before]
    return positions


class _Molecules:
    """The molecules that contain the chosen atoms, as a Universe of their own with all bonds."""

    def __init__(self, chosen: Any, numbers: Indices) -> None:
        complete = _complete_bonds(chosen) is not None
        # without bonds: the residues from the first of these atoms to the last
        residues = chosen.universe.residues[chosen.resindices.min() : chosen.resindices.max() + 1]
        parts = chosen.fragments if complete else [residues.atoms.select_atoms("not water"), chosen]
        self.around = chosen.universe.atoms[np.unique(np.concatenate([part.indices for part in parts]))]
        self.own = np.searchsorted(self.around.indices, chosen.indices)
        copy = optional("MDAnalysis", "chem", "Periodic boxes").Merge(self.around)
        self.atoms = copy.atoms
        if not complete:
            copy.dimensions = self.around.dimensions
            copy.add_TopologyAttr("types", [SYMBOLS[z].upper() for z in numbers[self.around.indices].tolist()])
            self.atoms.guess_bonds()
        self.bonds = np.asarray(self.atoms.bonds.indices, dtype=np.intp).reshape(-1, 2)

    def whole(self, positions: Array, box: Array) -> Array:
        """The chosen positions at the current frame, without cuts; those of whole molecules are not changed."""
        around = self.around.positions
        i, j = self.bonds.T
        if not len(i) or np.linalg.norm(around[i] - around[j], axis=1).max() <= LONGEST_BOND:
            return positions
        self.atoms.positions, self.atoms.universe.dimensions = around, box
        return np.asarray(self.atoms.unwrap(compound="fragments", reference=None)[self.own], dtype=np.float64)


def _residue_texts(chosen: Any) -> tuple[str, ...]:
    """A label for the residue of each atom: its name, with number and then chain if it is not unique."""
    each = chosen.universe.residues
    kinds = [str(kind).strip() for kind in each.resnames]
    often = Counter(kinds)
    texts = [f"{kind}{n}" if often[kind] > 1 and kind else kind for kind, n in zip(kinds, each.resids, strict=True)]
    often, chains = Counter(texts), getattr(each, "segids", [""] * len(each))
    texts = [f"{chain}/{text}" if often[text] > 1 and text else text for text, chain in zip(texts, chains, strict=True)]
    return tuple(texts[int(i)] for i in chosen.resindices)


def _texts(values: Any) -> tuple[str, ...] | None:
    return None if values is None else tuple(str(value).strip() for value in values)


@contextmanager
def _quiet() -> Generator[None]:
    """Ignore warnings of MDAnalysis about missing masses, time steps and boxes, which are not used here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
