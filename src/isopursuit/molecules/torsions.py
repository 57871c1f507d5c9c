"""Dictionaries of torsions, with the names that chemists use.

In a peptide φ is C–N–CA–C with the first C in the residue before, ψ is N–CA–C–N with the last N in the residue after,
and ω is CA–C–N–CA across two residues (IUPAC-IUB, Biochemistry 1970). The methyl groups of the caps ACE and NME stand
for CA. χ1, χ2, … follow the side chain: N–CA–CB–CG, CA–CB–CG–CD, and so on, along the branch with the number 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from isopursuit._core.types import Indices
from isopursuit.errors import ParameterError, ShapeError, unknown_option
from isopursuit.manifold.internal import all_torsions, bond_torsions, labels, rotatable_bonds, sines
from isopursuit.manifold.trajectory import Trajectory, find_bonds

PEPTIDE_BOND = 2.0  # Å: C and N of two residues that are nearer in the first frame are bonded (bonds are 1.33 Å long)
MIN_SINE = 0.1  # torsions are left out if bonds are within 6° of a line, as at a triple bond (guess)
SAMPLES = 100  # frames at which this is checked
CAPS = {("ACE", "CH3"): "CA", ("NME", "CH3"): "CA", ("NME", "C"): "CA", ("NMA", "CH3"): "CA", ("NMA", "C"): "CA"}
CHARMM_CAPS = {"CAY": "CA", "CY": "C", "NT": "N", "CAT": "CA"}  # caps that are patches of the end residues
SIDE = "ABGDEZH"  # letters in names of side-chain atoms: alpha, beta, gamma, …
RINGS = ("PHE", "TYR", "TRP", "HIS", "HID", "HIE", "HIP", "HSD", "HSE", "HSP", "PRO")  # χ3 would be inside a ring

TorsionKind = Literal["bonds", "rotatable", "all"]
Path = tuple[int, int, int, int]


def torsion_rows(trajectory: Trajectory, kind: TorsionKind | ArrayLike = "bonds") -> Indices:
    """A dictionary of torsions of a molecule, (P, 4), as positions of atoms in this trajectory.

    Parameters
    ----------
    trajectory : Trajectory
        The molecule; `find_bonds` gives its bonds.
    kind : {"bonds", "rotatable", "all"} or array_like (P, 4)
        "bonds": every torsion along three bonds. "rotatable": one for each bond about which one part of the molecule
        turns against the other, the amide bonds of peptides included. "all": any four atoms in six orders,
        `all_torsions`. Rows of your own are returned as an array.

    Examples
    --------
    >>> from isopursuit.manifold.ethanol import load_ethanol
    >>> ethanol = load_ethanol()
    >>> [len(torsion_rows(ethanol, kind)) for kind in ("bonds", "rotatable", "all")]
    [12, 2, 756]
    >>> torsion_labels(ethanol, torsion_rows(ethanol, "rotatable"))
    ('O2–C0–C1–H5 torsion', 'C1–C0–O2–H8 torsion')
    """
    atoms = trajectory.positions.shape[1]
    if not isinstance(kind, str):
        rows = np.asarray(kind)
        if rows.ndim != 2 or rows.shape[1] != 4 or not rows.size or rows.dtype.kind not in "iu":
            raise ShapeError(f"torsions must be whole numbers (P, 4); they are {rows.dtype} {rows.shape}.")
        return rows.astype(np.intp)
    if kind not in get_args(TorsionKind):
        raise unknown_option("torsions", kind, get_args(TorsionKind))
    if kind == "all":
        return all_torsions(atoms)
    bonds = find_bonds(trajectory)
    rows = _bent(trajectory, bond_torsions(bonds))
    chemist = _Chemist(trajectory)
    paths = [(a, b, c, d) for a, b, c, d in rows.tolist()]
    if kind == "rotatable":
        paths = _one_for_each(rotatable_bonds(bonds), paths, chemist)
    if not paths:
        raise ParameterError(
            f"{trajectory!r} has {len(bonds)} bonds and no torsion of the kind {kind!r}. Select more atoms, "
            'give a topology with bonds, or use "all".'
        )
    return np.array([chemist.oriented(path) for path in paths], dtype=np.intp)


def torsion_labels(trajectory: Trajectory, rows: ArrayLike) -> tuple[str, ...]:
    """The label of each torsion: "φ (ACE:C–ALA:N–ALA:CA–ALA:C)" if names of atoms are known.

    Torsions without a common name are labelled by their atoms: "ACE:O–ACE:C–ALA:N–ALA:CA torsion". If the atoms have no
    unique names, labels consist of symbols and numbers in the file, from 0: "C0–C1–O2–H3 torsion".
    """
    chemist = _Chemist(trajectory)
    if not chemist.knows:
        return labels(trajectory.symbols, np.asarray(rows), trajectory.serials)
    paths: list[Path] = [(a, b, c, d) for a, b, c, d in np.asarray(rows).tolist()]
    return tuple(chemist.label(path) for path in paths)


class _Chemist:
    """Names the torsions of a molecule."""

    def __init__(self, trajectory: Trajectory) -> None:
        count = len(trajectory.numbers)
        self.numbers = trajectory.numbers.tolist()
        self.names = trajectory.names or ("",) * count
        self.residues = trajectory.residues or ("",) * count
        self.kinds = tuple(re.sub(r"^.*/|-?\d+$", "", residue) for residue in self.residues)
        pairs = zip(self.kinds, self.names, strict=True)
        self.roles = tuple(CAPS.get((kind, name), CHARMM_CAPS.get(name, name)) for kind, name in pairs)
        # the residue, or the cap of one
        self.owners = tuple((r, n in CHARMM_CAPS) for r, n in zip(self.residues, self.names, strict=True))
        different = len(set(zip(self.residues, self.names, strict=True)))
        self.knows = trajectory.names is not None and different == count  # else two atoms would look the same
        self.first = trajectory.positions[0]

    def oriented(self, path: Path) -> Path:
        """The path in the direction of its definition; the torsion is the same in both directions."""
        back = _reversed(path)
        return back if not self._name(path) and self._name(back) else path

    def name(self, path: Path) -> str:
        """φ, ψ, ω, χ1, … or an empty string."""
        return self._name(path) or self._name(_reversed(path))

    def label(self, path: Path) -> str:
        atoms = (
            f"{self.residues[a]}:{self.names[a]}" if self.residues[a] else self.names[a] for a in self.oriented(path)
        )
        text, name = "–".join(atoms), self.name(path)
        return f"{name} ({text})" if name else f"{text} torsion"

    def _name(self, path: Path) -> str:
        if not self.knows:
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
        apart = self.owners[carbon] != self.owners[nitrogen]
        return apart and float(np.linalg.norm(self.first[carbon] - self.first[nitrogen])) < PEPTIDE_BOND

    def _side_chain(self, path: Path) -> str:
        if any(self.numbers[a] == 1 for a in path):
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


def _reversed(path: Path) -> Path:
    a, b, c, d = path
    return d, c, b, a


def _bent(trajectory: Trajectory, rows: Indices) -> Indices:
    """The torsions whose atoms are not collinear."""
    if not rows.size:
        return rows
    step = -(-len(trajectory.positions) // SAMPLES)
    return rows[np.median(sines(trajectory.positions[::step], rows), axis=0) >= MIN_SINE]


def _one_for_each(axes: Iterable[tuple[int, int]], paths: list[Path], chemist: _Chemist) -> list[Path]:
    """One torsion for each axis: preferably named, then with the heaviest ends, then with the lowest numbers."""
    about: dict[tuple[int, int], list[Path]] = {}
    for path in paths:
        about.setdefault((path[1], path[2]), []).append(path)

    def rank(path: Path) -> tuple[bool, int, int, int]:
        ends = chemist.numbers[path[0]] + chemist.numbers[path[3]]
        return not chemist.name(path), -ends, path[0], path[3]

    return [min(about[axis], key=rank) for axis in axes if axis in about]
