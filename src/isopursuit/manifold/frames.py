"""A common form for molecules in files and objects, and the reading of selected atoms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from isopursuit._core.types import Array, Indices
from isopursuit.errors import FileError, ParameterError
from isopursuit.manifold.bonds import bonds_by_distance, is_box, make_whole, molecules_of
from isopursuit.manifold.elements import ATOMIC_NUMBERS, guess_number

UNKNOWN = -1  # atomic number of an atom of unknown element
MAX_BYTES = 8e9  # larger positions raise an error before they are read (guess: half of a laptop's memory)
WATERS = "HOH WAT SOL H2O DOD TIP TIP2 TIP3 TIP3P TIP4 TIP4P TIP5 SPC SPCE T3P T4P OPC"  # names of residues
SALTS = "NA CL K LI RB CS BR I F CA MG ZN SOD CLA POT CAL CES LIT RUB CIO CIM"  # without charges
SOLVENT = frozenset(f"{WATERS} {SALTS}".split())

Block = tuple[Array, Array | None]  # positions (n, atoms, 3) and the cells (n, 3, 3), None without a box


@dataclass(frozen=True)
class Frames:
    """The atoms of a file or an object, and a way to read their positions.

    Lists have an entry for each atom of the file. `own` are the numbers of the atoms in the caller's object, which may
    be fewer. `read(atoms, stride)` yields blocks of frames. `choose(words)` returns the atoms of a selection in the
    language of the package; it also understands "heavy", because names such as 1HB2 make hydrogens hard to exclude.
    """

    source: str
    count: int  # number of frames
    numbers: Indices
    own: Indices
    read: Callable[[Indices, int], Generator[Block]]
    places: Indices | None = None  # the number of each atom's residue
    names: tuple[str, ...] | None = None
    residues: tuple[str, ...] | None = None
    kinds: tuple[str, ...] | None = None  # the residues' names without their numbers
    bonds: Indices | None = None
    choose: Callable[[str], Indices] | None = None


def residue_texts(names: Sequence[str], numbers: Sequence[int], chains: Sequence[str]) -> tuple[str, ...]:
    """A label for each residue: its name, with its number if the name is not unique, and its chain if still not.

    Examples
    --------
    >>> residue_texts(["ACE", "ALA", "ALA", "NME"], [1, 2, 3, 4], ["A"] * 4)
    ('ACE', 'ALA2', 'ALA3', 'NME')
    >>> residue_texts(["GLY", "GLY"], [7, 7], ["A", "B"])
    ('A/GLY7', 'B/GLY7')
    """
    plain = [str(name).strip() for name in names]
    often = Counter(plain)
    pairs = zip(plain, numbers, strict=True)
    texts = [f"{name}{number}" if often[name] > 1 and name else name for name, number in pairs]
    often = Counter(texts)
    pairs = zip(texts, chains, strict=True)
    return tuple(f"{chain}/{text}" if often[text] > 1 and text else text for text, chain in pairs)


def elements_of(symbols: Sequence[str] | None, names: Sequence[str] | None, masses: Array, places: Indices) -> Indices:
    """Atomic numbers from symbols, otherwise from names, otherwise `UNKNOWN`."""
    sizes = np.bincount(places)
    known: dict[tuple[str, str, float, bool], int] = {}
    found = np.empty(len(places), dtype=np.intp)
    for i, place in enumerate(places.tolist()):
        symbol = str(symbols[i]).strip().upper() if symbols is not None else ""
        key = symbol, str(names[i]) if names is not None else "", float(masses[i]), bool(sizes[place] == 1)
        if key not in known:
            z = ATOMIC_NUMBERS.get(symbol) or guess_number(key[1], key[2], alone=key[3])
            known[key] = UNKNOWN if z is None else z
        found[i] = known[key]
    return found


def boxes(cells: Array | None) -> Array | None:
    """The cells, unless one of them is a placeholder."""
    return cells if cells is not None and all(is_box(cell) for cell in cells) else None


def chosen_atoms(frames: Frames, atoms: object) -> Indices:
    """The numbers in the file of the selected atoms; None selects all, and raises an error if some are solvent."""
    if not isinstance(atoms, str) and atoms is not None:
        return frames.own[as_atoms(atoms, len(frames.own))]
    if atoms is None or atoms == "heavy":
        _refuse_solvent(frames)
    if atoms is None or atoms == "all":
        return frames.own
    if atoms == "heavy":
        return frames.own[frames.numbers[frames.own] != 1]
    if frames.choose is None:
        raise ParameterError(
            f'atoms={atoms!r} is not known for {frames.source}. Use "heavy", "all" or a list of numbers; a selection '
            "in words needs names of atoms, from topology= or an object of MDAnalysis or mdtraj."
        )
    return frames.choose(atoms)


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


def read_atoms(frames: Frames, chosen: Indices, stride: int) -> tuple[Array, Indices | None]:
    """Positions (n, chosen, 3) of whole molecules, and the bonds between the chosen atoms if the file has them."""
    n = -(-frames.count // stride)
    if len(np.unique(chosen)) < len(chosen):
        raise ParameterError(f"{frames.source}: the group of atoms contains an atom twice. Name each atom once.")
    _refuse_unknown(frames, chosen)
    _refuse_size(frames, n, len(chosen))
    bonds, around = _surroundings(frames, chosen)
    links = None if bonds is None else _within(bonds, around, len(frames.numbers))
    place = np.searchsorted(around, chosen)
    positions = np.empty((n, len(chosen), 3))
    done = 0
    with closing(frames.read(around, stride)) as blocks:
        for block, cells in blocks:
            whole = block
            if cells is not None:
                if links is None:
                    links = bonds_by_distance(block, np.maximum(frames.numbers[around], 0), cells)
                whole = make_whole(block, links, cells)
            positions[done : done + len(block)] = whole[:, place]
            done += len(block)
    return positions, None if bonds is None else _within(bonds, chosen, len(frames.numbers))


def _within(bonds: Indices, atoms: Indices, count: int) -> Indices:
    """The bonds between these atoms, as positions among them."""
    place = np.full(count, -1, dtype=np.intp)
    place[atoms] = np.arange(len(atoms))
    return place[bonds[(place[bonds] >= 0).all(axis=1)]]


def _surroundings(frames: Frames, chosen: Indices) -> tuple[Indices | None, Indices]:
    """The bonds of the file if they are complete, and the atoms that connect the chosen ones."""
    if frames.places is None:
        return frames.bonds, np.arange(len(frames.numbers), dtype=np.intp)
    same = np.flatnonzero(np.isin(frames.places, frames.places[chosen]))
    if frames.bonds is None:
        return None, same
    # some files, such as PDB files, list the bonds of some residues only; then there are atoms without a bond
    several = np.bincount(frames.places)[frames.places[same]] > 1
    bonded = np.bincount(frames.bonds.ravel(), minlength=len(frames.numbers)) > 0
    if not bonded[same[several]].all():
        return None, same
    molecules = molecules_of(frames.bonds, len(frames.numbers))
    return frames.bonds, np.flatnonzero(np.isin(molecules, molecules[chosen]))


def _refuse_unknown(frames: Frames, chosen: Indices) -> None:
    unknown = chosen[frames.numbers[chosen] == UNKNOWN]
    if unknown.size:
        name = "without a name" if frames.names is None else frames.names[int(unknown[0])]
        raise FileError(
            f"{frames.source}: the element of atom {unknown[0]} ({name}) is not known. Leave the atom out of the "
            "selection, or provide the elements: by a topology, or by the attribute `elements` of the Universe."
        )


def _refuse_size(frames: Frames, n: int, atoms: int) -> None:
    size = n * atoms * 3 * 8
    if size > MAX_BYTES:
        raise ParameterError(
            f"{frames.source}: {n:,} frames of {atoms:,} atoms take {size / 1e9:.0f} GB. Select fewer atoms by atoms= "
            "or fewer frames by stride=."
        )


def _refuse_solvent(frames: Frames) -> None:
    if frames.kinds is None:
        return
    every = frames.kinds
    kinds: list[str] = [every[int(i)] for i in frames.own]
    often = Counter(kind for kind in kinds if {kind.upper(), kind.upper().rstrip("+-0123456789")} & SOLVENT)
    if not often:
        return
    found = ", ".join(sorted(often))
    raise ParameterError(
        f"{frames.source} has {len(kinds):,} atoms, {sum(often.values()):,} of them in water and ions ({found}). "
        f'Select the molecule: atoms="protein and heavy" in Python, --select on the command line; "all" takes all.'
    )
