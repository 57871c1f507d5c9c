"""Data manifolds: tangent spaces, dictionaries of functions, evidence. `isopursuit.find_coordinates` uses them."""

from isopursuit.manifold._synthetic import Synthetic, clifford_torus, swiss_roll
from isopursuit.manifold.dictionary import (
    Dictionary,
    Differentials,
    as_dictionary,
    differentials,
    evaluate_dictionary,
    read_colvar,
    torsion_differentials,
)
from isopursuit.manifold.dimension import DimensionRow, DimensionScan
from isopursuit.manifold.evidence import Evidence, PointChecks, check_points
from isopursuit.manifold.tangent import TangentSpaces, default_neighbours, tangent_spaces

__all__ = [
    "Dictionary",
    "Differentials",
    "DimensionRow",
    "DimensionScan",
    "Evidence",
    "PointChecks",
    "Synthetic",
    "TangentSpaces",
    "as_dictionary",
    "check_points",
    "clifford_torus",
    "default_neighbours",
    "differentials",
    "evaluate_dictionary",
    "read_colvar",
    "swiss_roll",
    "tangent_spaces",
    "torsion_differentials",
]
