"""The digits that the paper prints, for comparison with the tables.

Iris, Wine and Ethanol come from the paper's tables 1 and 2, Words and the sweep over c from its later version.
"""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One row of table 1 as printed. `digits`: decimals of the losses and of |S|, and the format of the p-value."""

    D: int
    P: int
    R: int
    greedy: str
    support: str
    two_stage: str
    worse: str
    equal: str
    p_value: str
    digits: tuple[int, int, str]


TABLE_1 = {
    "iris": Row(4, 75, 25, "13.8 ± 7.3", "7 ± 1", "6.9 ± 1.4", "0.96", "0.00", "2.4e-05", (1, 0, ".1e")),
    "wine": Row(6, 89, 25, "7.7 ± 0.3", "13 ± 2", "7.6 ± 0.3", "0.64", "0.16", "6.3e-04", (1, 0, ".1e")),
    "ethanol": Row(2, 756, 100, "2.6 ± 0.3", "90 ± 165", "2.5 ± 0.2", "0.66", "0.17", "2.1e-05", (1, 0, ".1e")),
    "words": Row(7, 30, 25, "13.68 ± 1.27", "11.2 ± 1.3", "13.56 ± 1.21", "0.52", "0.12", "0.021", (2, 1, ".3f")),
}

# seconds on a 2021 Macbook Pro: isometry pursuit (CVXPY and SCS), brute second stage, greedy
TIMING = {
    "iris": ("1.24 ± 0.02", "0.00 ± 0.00", "0.02 ± 0.00"),
    "wine": ("2.32 ± 0.17", "0.13 ± 0.12", "0.03 ± 0.00"),
    "ethanol": ("8.38 ± 0.57", "0.55 ± 1.08", "0.07 ± 0.01"),
}

EXPONENTS = (0.1, 0.316, 1.0, 3.16, 10.0)
SWEPT = (4, 5, 6)  # the D of its sweep over c
DEEP_DIVE = {"iris": (4, 15), "wine": (13, 18)}  # D, P of the supplement's comparison with brute force
