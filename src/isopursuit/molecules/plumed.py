"""Picked torsions as collective variables of PLUMED: an input file with TORSION lines and a PRINT line."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from isopursuit._core.options import as_count
from isopursuit._core.outputs import write_whole
from isopursuit._core.types import Indices
from isopursuit.errors import LabelError, ParameterError, ShapeError, printable

SPELLED = {"φ": "phi", "ψ": "psi", "ω": "omega", "χ": "chi", "–": "-"}  # the file is plain ASCII
STRIDE = 100  # MD steps between two lines of COLVAR, a common choice


def plumed_text(torsions: ArrayLike, labels: Sequence[object], *, file: str = "COLVAR", stride: int = STRIDE) -> str:
    """A PLUMED input file that computes torsions in radians.

    Parameters
    ----------
    torsions : array_like (D, 4)
        The atoms of each torsion, by their numbers in the simulation file, from 0 (`Trajectory.serials`). PLUMED counts
        from 1.
    labels : sequence of str
        The names of the torsions, as made by `torsion_labels`; φ becomes `phi`.
    file : str
        The file to which PLUMED prints the values.
    stride : int
        The number of simulation steps between two lines of that file.

    Examples
    --------
    >>> print(plumed_text([[4, 6, 8, 14]], ["φ (ACE:C–ALA:N–ALA:CA–ALA:C)"]))  # doctest: +ELLIPSIS
    # Torsions picked by isopursuit ...
    # phi: phi (ACE:C-ALA:N-ALA:CA-ALA:C)
    phi: TORSION ATOMS=5,7,9,15
    PRINT ARG=phi FILE=COLVAR STRIDE=100
    <BLANKLINE>
    """
    rows = _as_torsions(torsions, len(labels))
    if not re.fullmatch(r"[^\s#{}=,@]+", file):
        raise ParameterError(f"file={file!r} must be a name without spaces and without # {{ }} = , @.")
    steps = as_count(stride, 1, "stride")
    texts = [str(label) for label in labels]
    names = plumed_labels(texts)
    lines = [f"# Torsions picked by isopursuit {version('isopursuit')}, in radians; atoms are numbered from 1."]
    lines += [f"# {name}: {_ascii(printable(text))}" for name, text in zip(names, texts, strict=True)]
    lines += [
        f"{name}: TORSION ATOMS={','.join(str(atom + 1) for atom in row)}"
        for name, row in zip(names, rows.tolist(), strict=True)
    ]
    lines.append(f"PRINT ARG={','.join(names)} FILE={file} STRIDE={steps}")
    return "\n".join(lines) + "\n"


def write_plumed(
    path: str | Path, torsions: ArrayLike, labels: Sequence[object], *, file: str = "COLVAR", stride: int = STRIDE
) -> None:
    """Write `plumed_text` to a file, completely or not at all."""
    write_whole(Path(path), plumed_text(torsions, labels, file=file, stride=stride))


def plumed_labels(labels: Sequence[str]) -> tuple[str, ...]:
    """Unique labels that PLUMED accepts: letters, digits and underscores, starting with a letter.

    Examples
    --------
    >>> plumed_labels(["ψ (ALA:N–ALA:CA–ALA:C–NME:N)", "O2–C0–C1–H5 torsion"])
    ('psi', 'O2_C0_C1_H5')
    >>> plumed_labels(["ω (ACE:CH3–ACE:C–ALA:N–ALA:CA)", "ω (ALA:CA–ALA:C–NME:N–NME:C)"])
    ('omega_ACE', 'omega_ALA')
    """
    short = [_plain(_head(label)) for label in labels]
    often = Counter(short)
    names = [
        _plain(f"{name}_{_residue(label)}") if often[name] > 1 else name
        for name, label in zip(short, labels, strict=True)
    ]
    made: list[str] = []
    for name in names:
        number, unique = 2, name
        while unique in made or (unique != name and unique in names):
            unique, number = f"{name}_{number}", number + 1
        made.append(unique)
    return tuple(made)


def _head(label: str) -> str:
    """φ of "φ (ACE:C–ALA:N–ALA:CA–ALA:C)"; the atoms of "C0–C1–O2–H3 torsion"."""
    return label.split(" (")[0].removesuffix(" torsion")


def _residue(label: str) -> str:
    """The residue of a named torsion, which is that of its second atom."""
    atoms = label.partition(" (")[2].rstrip(")").split("–")
    return atoms[1].rpartition(":")[0] if len(atoms) == 4 else ""


def _ascii(text: str) -> str:
    spelled = "".join(SPELLED.get(character, character) for character in text)
    return unicodedata.normalize("NFKD", spelled).encode("ascii", "ignore").decode()


def _plain(text: str) -> str:
    name = re.sub(r"[^A-Za-z0-9]+", "_", _ascii(text)).strip("_")
    return name if name[:1].isalpha() else f"torsion_{name}".rstrip("_")


def _as_torsions(torsions: ArrayLike, count: int) -> Indices:
    rows = np.asarray(torsions)
    if rows.ndim != 2 or rows.shape[1] != 4 or not len(rows) or rows.dtype.kind not in "iu":
        raise ShapeError(f"torsions must be whole numbers (D, 4); they are {rows.dtype} {rows.shape}.")
    if rows.min() < 0:
        raise ParameterError(f"torsions names the atom {rows.min()}. Atoms are numbered from 0 here.")
    if len(rows) != count:
        raise LabelError(f"{len(rows)} torsions have {count} labels. Pass one for each.")
    if any(len(set(row)) < 4 for row in rows.tolist()):
        raise ParameterError("A torsion names an atom twice. It needs four different atoms.")
    return rows.astype(np.intp)
