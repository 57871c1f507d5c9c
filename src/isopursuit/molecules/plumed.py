"""Distances, angles and torsions as collective variables of PLUMED: an input file with a PRINT line."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version

from isopursuit.errors import LabelError, ParameterError, printable

SPELLED = {"φ": "phi", "ψ": "psi", "ω": "omega", "χ": "chi", "–": "-"}  # the file is plain ASCII
ACTIONS = {2: "DISTANCE", 3: "ANGLE", 4: "TORSION"}  # of PLUMED, for so many atoms
STRIDE = 100  # simulation steps between two lines of COLVAR, as in PLUMED's tutorials


def plumed_text(functions: Sequence[Sequence[int]], labels: Sequence[object]) -> str:
    """A PLUMED input file that computes distances, angles and torsions, in PLUMED's units: nm and radians.

    Parameters
    ----------
    functions : sequence of 2, 3 or 4 atoms each
        Atoms by their numbers in the simulation file, from 0 (`Trajectory.serials`). PLUMED counts from 1.
    labels : sequence of str
        The names of the functions, as made by `internal_labels`; φ becomes `phi`.

    Examples
    --------
    >>> print(plumed_text([[4, 6, 8, 14]], ["φ (ACE:C–ALA:N–ALA:CA–ALA:C)"]))  # doctest: +ELLIPSIS
    # Picked by isopursuit ...
    # phi: phi (ACE:C-ALA:N-ALA:CA-ALA:C)
    phi: TORSION ATOMS=5,7,9,15
    PRINT ARG=phi FILE=COLVAR STRIDE=100
    <BLANKLINE>
    """
    rows = [tuple(int(atom) for atom in row) for row in functions]
    if not rows or any(len(row) not in ACTIONS or len(set(row)) < len(row) or min(row) < 0 for row in rows):
        raise ParameterError(f"Functions need 2, 3 or 4 different atoms each, numbered from 0; they are {rows}.")
    if len(rows) != len(labels):
        raise LabelError(f"{len(rows)} functions have {len(labels)} labels. Pass one for each.")
    texts = [str(label) for label in labels]
    names = plumed_labels(texts)
    lines = [f"# Picked by isopursuit {version('isopursuit')}; atoms are numbered from 1."]
    lines += [f"# {name}: {_ascii(printable(text))}" for name, text in zip(names, texts, strict=True)]
    lines += [
        f"{name}: {ACTIONS[len(row)]} ATOMS={','.join(str(atom + 1) for atom in row)}"
        for name, row in zip(names, rows, strict=True)
    ]
    lines.append(f"PRINT ARG={','.join(names)} FILE=COLVAR STRIDE={STRIDE}")
    return "\n".join(lines) + "\n"


def plumed_labels(labels: Sequence[str]) -> tuple[str, ...]:
    """Unique labels that PLUMED accepts: letters, digits and underscores, starting with a letter.

    Examples
    --------
    >>> plumed_labels(["ψ (ALA:N–ALA:CA–ALA:C–NME:N)", "O2–C0–C1–H5 torsion"])
    ('psi', 'O2_C0_C1_H5')
    >>> plumed_labels(["ω (ACE:CH3–ACE:C–ALA:N–ALA:CA)", "ω (ALA:CA–ALA:C–NME:N–NME:C)"])
    ('omega_ACE', 'omega_ALA')
    """
    # φ of "φ (ACE:C–ALA:N–ALA:CA–ALA:C)"; the atoms of "C0–C1–O2–H3 torsion"
    short = [_plain(re.sub(r" (torsion|angle|distance)$", "", label.split(" (")[0])) for label in labels]
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
