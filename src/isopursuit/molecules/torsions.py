"""Torsions of a molecule, and labels with the names that chemists use.

In a peptide φ is C–N–CA–C with the first C in the residue before, ψ is N–CA–C–N with the last N in the residue after,
and ω is CA–C–N–CA across two residues (IUPAC-IUB, Biochemistry 1970). The methyl groups of the caps ACE and NME stand
for CA. χ1, χ2, … follow the side chain: N–CA–CB–CG, CA–CB–CG–CD, and so on, along the branch with the number 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, get_args

import numpy as np

from isopursuit._core.types import Indices
from isopursuit.errors import ParameterError, unknown_option
from isopursuit.molecules.geometry import sines
from isopursuit.molecules.trajectory import Trajectory, find_bonds

PEPTIDE_BOND = 2.0  # Å: C and N of two residues that are nearer in the first frame are bonded (bonds are 1.33 Å long)
MIN_SINE = 0.1  # torsions are left out if bonds are within 6° of a line, as at a triple bond (chosen; sp² bonds: 60°)
SAMPLES = 100  # most frames at which this is checked: enough for a median
CAPS = {("ACE", "CH3"): "CA", ("NME", "CH3"): "CA", ("NME", "C"): "CA", ("NMA", "CH3"): "CA", ("NMA", "C"): "CA"}
CHARMM_CAPS = {"CAY": "CA", "CY": "C", "NT": "N", "CAT": "CA"}  # caps that are patches of the end residues
SIDE = "ABGDEZH"  # letters in names of side-chain atoms: alpha, beta, gamma, …
RINGS = ("PHE", "TYR", "TRP", "HIS", "HID", "HIE", "HIP", "HSD", "HSE", "HSP", "PRO")  # χ3 would be inside a ring

TorsionKind = Literal["rotatable", "bonds"]
Path = tuple[int, ...]
KINDS = {2: "distance", 3: "angle", 4: "torsion"}  # of a function of so many atoms


def torsion_rows(trajectory: Trajectory, kind: TorsionKind = "bonds") -> Indices:
    """Torsions of a molecule, (P, 4), as positions of atoms in this trajectory.

    Parameters
    ----------
    trajectory : Trajectory
        The molecule; `find_bonds` gives its bonds.
    kind : {"bonds", "rotatable"}
        "bonds": every torsion along three bonds. "rotatable": one for each bond about which one part of the molecule
        turns against the other, the amide bonds of peptides included.

    Examples
    --------
    >>> from isopursuit.molecules import load_ethanol
    >>> ethanol = load_ethanol()
    >>> [len(torsion_rows(ethanol, kind)) for kind in ("bonds", "rotatable")]
    [12, 2]
    >>> internal_labels(ethanol, torsion_rows(ethanol, "rotatable"))
    ('O2–C0–C1–H5 torsion', 'C1–C0–O2–H8 torsion')
    """
    if kind not in get_args(TorsionKind):
        raise unknown_option("torsions", kind, get_args(TorsionKind))
    bonds = find_bonds(trajectory)
    rows = bond_torsions(bonds)
    if rows.size:
        step = -(-len(trajectory.positions) // SAMPLES)
        rows = rows[np.median(sines(trajectory.positions[::step], rows), axis=0) >= MIN_SINE]
    chemist = _Chemist(trajectory)
    paths = [(a, b, c, d) for a, b, c, d in rows.tolist()]
    if kind == "rotatable":
        paths = _one_for_each(rotatable_bonds(bonds), paths, chemist)
    if not paths:
        where = "along three of them" if kind == "bonds" else "about a rotatable one"
        raise ParameterError(
            f"{trajectory!r} has {len(bonds)} bonds and no torsion {where}. Select more atoms, for example "
            "atoms='all', or give a topology with bonds."
        )
    return np.array([chemist.oriented(path) for path in paths], dtype=np.intp)


def internal_labels(trajectory: Trajectory, functions: Iterable[Sequence[int]]) -> tuple[str, ...]:
    """The labels of distances, angles and torsions, such as "φ (ACE:C–ALA:N–ALA:CA–ALA:C)" if names of atoms are known.

    Functions without a common name are labelled by their atoms: "ACE:O–ACE:C–ALA:N–ALA:CA torsion". If the atoms have
    no unique names, labels consist of symbols and numbers in the file, from 0: "C0–C1 distance".
    """
    chemist = _Chemist(trajectory)
    return tuple(chemist.label(tuple(int(atom) for atom in atoms)) for atoms in functions)


def bond_torsions(bonds: Iterable[tuple[int, int]]) -> Indices:
    """The torsions along three bonds in a row, each once, with the lower axis atom first.

    Examples
    --------
    >>> bond_torsions([(0, 1), (1, 2), (2, 3), (2, 4)]).tolist()
    [[0, 1, 2, 3], [0, 1, 2, 4]]
    """
    near = _adjacency(bonds)
    axes = ((j, k) for j in near for k in near[j] if j < k)
    rows = [(i, j, k, m) for j, k in axes for i in near[j] for m in near[k] if len({i, j, k, m}) == 4]
    return np.array(rows, dtype=np.intp).reshape(-1, 4)


def rotatable_bonds(bonds: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The bonds about which one part of the molecule can turn: not in a ring, and not to a terminal atom.

    Examples
    --------
    >>> rotatable_bonds([(0, 1), (0, 2), (0, 3), (0, 4), (1, 5), (1, 6), (1, 7), (2, 8)])
    ((0, 1), (0, 2))
    """
    near = _adjacency(bonds)
    pairs = ((i, j) for i in near for j in near[i] if i < j)
    return tuple((i, j) for i, j in pairs if min(len(_beyond(near, i, j)), len(_beyond(near, j, i))) > 1)


def _adjacency(bonds: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    """The sorted neighbours of each atom."""
    near: dict[int, set[int]] = {}
    for i, j in bonds:
        near.setdefault(i, set()).add(j)
        near.setdefault(j, set()).add(i)
    return {i: sorted(near[i]) for i in sorted(near)}


def _beyond(near: dict[int, list[int]], i: int, j: int) -> set[int]:
    """The atoms on j's side of the bond i–j, including j; none if a ring leads back to i."""
    found, last = {j}, [j]
    while last:
        last = [b for a in last for b in near[a] if b not in found and (a, b) != (j, i)]
        found.update(last)
    return set() if i in found else found


class _Chemist:
    """Names the torsions of a molecule."""

    def __init__(self, trajectory: Trajectory) -> None:
        count = len(trajectory.numbers)
        self.trajectory = trajectory
        self.names = trajectory.names or ("",) * count
        self.residues = trajectory.residues or ("",) * count
        self.kinds = tuple(re.sub(r"^.*/|-?\d+$", "", residue) for residue in self.residues)
        pairs = zip(self.kinds, self.names, strict=True)
        self.roles = tuple(CAPS.get((kind, name), CHARMM_CAPS.get(name, name)) for kind, name in pairs)
        # the residue, or the cap of one
        self.owners = tuple((r, n in CHARMM_CAPS) for r, n in zip(self.residues, self.names, strict=True))
        different = len(set(zip(self.residues, self.names, strict=True)))
        self.knows = trajectory.names is not None and different == count  # else two atoms would look the same

    def oriented(self, path: Path) -> Path:
        """The path in the direction of its definition; the torsion is the same in both directions."""
        back = path[::-1]
        return back if not self._name(path) and self._name(back) else path

    def label(self, path: Path) -> str:
        kind = KINDS[len(path)]
        if not self.knows:
            symbols, serials = self.trajectory.symbols, self.trajectory.serials
            return "–".join(f"{symbols[a]}{serials[a]}" for a in path) + f" {kind}"
        atoms = self.oriented(path)
        text = "–".join(f"{self.residues[a]}:{self.names[a]}" if self.residues[a] else self.names[a] for a in atoms)
        name = self._name(atoms)
        return f"{name} ({text})" if name else f"{text} {kind}"

    def rank(self, path: Path) -> tuple[bool, int, int, int]:
        """Torsions with a name come first, then those with the heaviest ends, then those with the lowest numbers."""
        ends = int(self.trajectory.numbers[path[0]] + self.trajectory.numbers[path[3]])
        return not self._name(self.oriented(path)), -ends, path[0], path[3]

    def _name(self, path: Path) -> str:
        """φ, ψ, ω, χ1, … or an empty string."""
        if not self.knows or len(path) != 4:
            return ""
        residue = [self.owners[a] for a in path]
        match [self.roles[a] for a in path]:
            case ["C", "N", "CA", "C"] if residue[1] == residue[2] == residue[3]:
                return "φ" if self._linked(path[0], path[1]) else ""
            case ["N", "CA", "C", "N"] if residue[0] == residue[1] == residue[2]:
                return "ψ" if self._linked(path[2], path[3]) else ""
            case ["CA", "C", "N", "CA"] if residue[0] == residue[1] and residue[2] == residue[3]:
                return "ω" if self._linked(path[1], path[2]) else ""
            case _:
                return self._side_chain(path) if len(set(residue)) == 1 and residue[0][0] else ""

    def _linked(self, carbon: int, nitrogen: int) -> bool:
        first = self.trajectory.positions[0]
        apart = self.owners[carbon] != self.owners[nitrogen]
        return apart and float(np.linalg.norm(first[carbon] - first[nitrogen])) < PEPTIDE_BOND

    def _side_chain(self, path: Path) -> str:
        if any(self.trajectory.numbers[a] == 1 for a in path):
            return ""
        letters = [self._letter(self.names[a]) for a in path]
        start = SIDE.find(letters[1])
        if not letters[1] or letters[1:] != list(SIDE[start : start + 3]) or start > 4:
            return ""
        before = self.names[path[0]] == "N" if start == 0 else letters[0] == SIDE[start - 1]
        limited = self.kinds[path[0]] in RINGS and start > 1
        return f"χ{start + 1}" if before and not limited else ""

    def _letter(self, name: str) -> str:
        """The place in the side chain given by a name such as CB, OG1 or SD, on the first branch."""
        found = re.fullmatch(rf"(?:C|N|O|S|SE)([{SIDE}])1?", name)
        return found[1] if found else ""


def _one_for_each(axes: Iterable[tuple[int, int]], paths: list[Path], chemist: _Chemist) -> list[Path]:
    """The first torsion about each axis, by `_Chemist.rank`."""
    about: dict[tuple[int, int], list[Path]] = {}
    for path in paths:
        about.setdefault((path[1], path[2]), []).append(path)
    return [min(about[axis], key=chemist.rank) for axis in axes if axis in about]
