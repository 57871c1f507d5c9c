"""Data manifolds: tangent spaces, dictionaries of functions, evidence. `isopursuit.find_coordinates` uses them."""

from isopursuit.manifold._synthetic import Synthetic, clifford_torus, swiss_roll
from isopursuit.manifold.dictionary import (
    Dictionary,
    Differentials,
    as_dictionary,
    differentials,
    evaluate_dictionary,
    torsion_differentials,
)
from isopursuit.manifold.evidence import (
    DimensionEvidence,
    DimensionLoss,
    DimensionLosses,
    PointChecks,
    check_points,
    dimension_evidence,
    losses_by_dimension,
)
from isopursuit.manifold.tangent import TangentSpaces, default_neighbours, estimate_dimension, tangent_spaces

__all__ = [
    "Dictionary",
    "Differentials",
    "DimensionEvidence",
    "DimensionLoss",
    "DimensionLosses",
    "PointChecks",
    "Synthetic",
    "TangentSpaces",
    "as_dictionary",
    "check_points",
    "clifford_torus",
    "default_neighbours",
    "differentials",
    "dimension_evidence",
    "estimate_dimension",
    "evaluate_dictionary",
    "losses_by_dimension",
    "swiss_roll",
    "tangent_spaces",
    "torsion_differentials",
]
