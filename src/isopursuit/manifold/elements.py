"""The elements: symbols, covalent radii, and the element of an atom from its name."""

from __future__ import annotations

import re

import numpy as np

from isopursuit._core.types import Array

ELEMENTS = (
    "X H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr Rb Sr Y Zr "
    "Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb Lu Hf Ta W Re Os Ir Pt "
    "Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md No Lr Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv "
    "Ts Og"
)
SYMBOLS = ELEMENTS.split()
ATOMIC_NUMBERS = {symbol.upper(): z for z, symbol in enumerate(SYMBOLS)}

# Å, by atomic number: B. Cordero and others, Dalton Transactions 2008, as ASE has them; 2.0 where there is no value
KNOWN_RADII = (
    "0.20 0.31 0.28 1.28 0.96 0.84 0.76 0.71 0.66 0.57 0.58 1.66 1.41 1.21 1.11 1.07 1.05 1.02 1.06 2.03 1.76 1.70 "
    "1.60 1.53 1.39 1.39 1.32 1.26 1.24 1.32 1.22 1.22 1.20 1.19 1.20 1.20 1.16 2.20 1.95 1.90 1.75 1.64 1.54 1.47 "
    "1.46 1.42 1.39 1.45 1.44 1.42 1.39 1.39 1.38 1.39 1.40 2.44 2.15 2.07 2.04 2.03 2.01 1.99 1.98 1.98 1.96 1.94 "
    "1.92 1.92 1.89 1.90 1.87 1.87 1.75 1.70 1.62 1.51 1.44 1.41 1.36 1.36 1.32 1.45 1.46 1.48 1.40 1.50 1.50 2.60 "
    "2.21 2.15 2.06 2.00 1.96 1.90 1.87 1.80 1.69"
)
COVALENT_RADII: Array = np.full(len(SYMBOLS), 2.0)
COVALENT_RADII[: len(KNOWN_RADII.split())] = [float(radius) for radius in KNOWN_RADII.split()]

# CHARMM's names of ions; other force fields use the symbol, with or without a charge
IONS = {"SOD": "NA", "CLA": "CL", "POT": "K", "CAL": "CA", "CES": "CS", "LIT": "LI", "RUB": "RB", "BAR": "BA"}
# in a molecule these are elements of two letters; "CA", "CD", "HG" and "NE" are carbon, hydrogen and nitrogen there
PAIRS = ("CL", "BR", "FE", "SE", "SI")


def guess_number(name: str, mass: float = 0.0, *, alone: bool = False) -> int | None:
    """The atomic number of an atom from its name in a topology; None if the name does not begin with an element.

    "CA" is carbon in an amino acid and calcium as an ion. The mass decides if it is known. Otherwise an atom that is
    `alone` in its residue is an ion.

    Examples
    --------
    >>> [SYMBOLS[guess_number(name)] for name in ("CA", "1HB2", "OXT", "CL1")]
    ['C', 'H', 'O', 'Cl']
    >>> SYMBOLS[guess_number("CA", mass=40.08)], SYMBOLS[guess_number("CA", alone=True)], guess_number("?")
    ('Ca', 'Ca', None)
    """
    letters = re.sub(r"[^A-Z].*", "", name.strip().lstrip("0123456789'\"*").upper())
    letters = IONS.get(letters, letters) if alone else letters
    found = [ATOMIC_NUMBERS[text] for text in (letters[:1], letters[:2]) if text != "X" and text in ATOMIC_NUMBERS]
    if len(found) == 2 and len(letters) > 1:
        if mass > 0:
            return min(found, key=lambda z: abs(mass - _mass(z)))
        return found[1] if alone or letters[:2] in PAIRS else found[0]
    return found[0] if found else None


def _mass(z: int) -> float:
    """An element's mass to a few per cent, enough to distinguish C from Ca: stable nuclei have A ≈ 2 Z + 0.006 Z²."""
    return 1.0 if z == 1 else 2 * z + 0.006 * z * z
