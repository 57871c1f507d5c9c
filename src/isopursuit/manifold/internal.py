"""Distances, angles and torsions of a molecule as a dictionary."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import chain, combinations
from typing import Any, get_args

import numpy as np

from isopursuit._core.types import Labels
from isopursuit.errors import ParameterError, unknown_option
from isopursuit.manifold.dictionary import TURN, Dictionary
from isopursuit.molecules import internal_labels, internal_values, torsion_rows
from isopursuit.molecules._reading import selected
from isopursuit.molecules.torsions import TorsionKind
from isopursuit.molecules.trajectory import Trajectory, as_trajectory, open_atoms

DISTANCES = "distances of "  # before a selection: the distances between any two of its atoms


def internal_coordinates(
    data: Any, functions: Any = "rotatable", *, topology: Any = None, atoms: Any = "heavy"
) -> Dictionary:
    """Distances (Å), angles and torsions (radians) of a molecule at all frames, as a dictionary of values.

    Parameters
    ----------
    data, topology, atoms
        The molecule, as for `isopursuit.molecules.as_trajectory`.
    functions : str, mapping, or sequence of atoms
        "rotatable": one torsion for each rotatable bond between `atoms`; "bonds": all torsions along three bonds. Any
        other functions can use all atoms: "distances of name CA" are the distances between any two atoms that the words
        of MDAnalysis after "of" select. A mapping has for each label two atoms (a distance), three (an angle, the
        vertex in the middle) or four (a torsion); an atom is its number in the file, from 0, or a selection of one
        atom. A sequence of such atoms is labelled by their names. Atoms should belong to one molecule.

    Examples
    --------
    >>> from isopursuit.molecules import load_alanine_dipeptide
    >>> ends = {"ends": (1, 18), "bend": (4, 8, 16)}
    >>> found = internal_coordinates(load_alanine_dipeptide(), ends)
    >>> found.labels, found.values.shape
    (('ends', 'bend'), (10000, 2))
    >>> both = internal_coordinates(load_alanine_dipeptide()) + found  # torsions, too
    >>> len(both.labels)
    6
    """
    opened = open_atoms(data, topology)
    if isinstance(functions, str) and functions in ("rotatable", "bonds"):
        return torsion_dictionary(as_trajectory(opened, atoms=atoms), functions)
    places = _Places(opened)
    labels: Labels | None = None
    if isinstance(functions, str):
        if not functions.startswith(DISTANCES):
            raise unknown_option("functions", functions, get_args(TorsionKind), f"'{DISTANCES}…' with a selection")
        rows = list(combinations(sorted(places.of_words(functions.removeprefix(DISTANCES))), 2))
    else:
        listed: Any = functions
        if isinstance(functions, Mapping):
            labels, listed = tuple(functions), functions.values()  # pyright: ignore[reportUnknownVariableType]
        rows = [tuple(places.of_atom(atom) for atom in some) for some in listed]
    if not rows or any(not 2 <= len(row) <= 4 for row in rows):
        raise ParameterError(f"A function needs two, three or four atoms; {[*map(len, rows)]} were given.")
    used = sorted(set(chain(*rows)))
    place = {atom: i for i, atom in enumerate(used)}
    return _dictionary(as_trajectory(opened, atoms=used), [[place[atom] for atom in row] for row in rows], labels)


def torsion_dictionary(trajectory: Trajectory, kind: TorsionKind) -> Dictionary:
    """The torsions of a molecule as a dictionary of values."""
    return _dictionary(trajectory, torsion_rows(trajectory, kind).tolist(), None)


def describes_atoms(functions: Any) -> bool:
    """Whether this describes functions by their atoms or by words, and not by values, a file or callables."""
    if isinstance(functions, str):
        return functions in get_args(TorsionKind) or functions.startswith(DISTANCES)
    if isinstance(functions, np.ndarray):
        return functions.dtype.kind in "iu"
    if not isinstance(functions, Mapping | list | tuple):
        return False
    some: list[Any] = list(functions.values() if isinstance(functions, Mapping) else functions)  # pyright: ignore
    return bool(some) and all(
        isinstance(one, list | tuple) and 0 < len(one) <= 4 and all(isinstance(atom, str | int) for atom in one)  # pyright: ignore[reportUnknownVariableType]
        for one in some
    )


def _dictionary(trajectory: Trajectory, rows: list[Any], labels: Labels | None) -> Dictionary:
    """Functions of atoms, given by their positions in the trajectory."""
    periods = np.array([TURN if len(row) == 4 else np.inf for row in rows])
    atoms = tuple(tuple(trajectory.serials[list(row)].tolist()) for row in rows)
    names = internal_labels(trajectory, rows) if labels is None else labels
    return Dictionary(None, names, internal_values(trajectory.positions, rows), periods, atoms)


class _Places:
    """Finds atoms by numbers of the file or by words: their positions among the atoms that were opened."""

    def __init__(self, opened: Any) -> None:
        self.opened, self.is_trajectory = opened, isinstance(opened, Trajectory)
        serials = opened.serials if self.is_trajectory else opened.indices
        self.where = {int(serial): i for i, serial in enumerate(serials)}

    @cached_property
    def group(self) -> Any:
        """The atoms as an AtomGroup."""
        return self.opened.group() if self.is_trajectory else self.opened

    def of_words(self, words: str) -> list[int]:
        """The atoms of a selection."""
        found: list[int] = selected(self.group, words).indices.tolist()
        return found if self.is_trajectory else [self.where[one] for one in found]

    def of_atom(self, atom: Any) -> int:
        """The atom with a number, or that of a selection."""
        if isinstance(atom, str):
            found = self.of_words(atom)
            if len(found) != 1:
                raise ParameterError(f"The selection {atom!r} has {len(found)} atoms. Each must name one atom.")
            return found[0]
        if int(atom) not in self.where:
            raise ParameterError(f"There is no atom {atom}: atoms have their numbers in the file, from 0.")
        return self.where[int(atom)]
