"""Data manifolds: tangent spaces, dictionaries of functions, evidence. `isopursuit.find_coordinates` uses them."""

from isopursuit.manifold.dictionary import Dictionary, as_dictionary, read_colvar
from isopursuit.manifold.differentials import Differentials, differentials
from isopursuit.manifold.dimension import DimensionRow, DimensionScan
from isopursuit.manifold.evidence import Evidence, PointChecks, check_points
from isopursuit.manifold.internal import internal_coordinates
from isopursuit.manifold.tangent import TangentSpaces, default_neighbours, tangent_spaces

__all__ = [
    "Dictionary",
    "Differentials",
    "DimensionRow",
    "DimensionScan",
    "Evidence",
    "PointChecks",
    "TangentSpaces",
    "as_dictionary",
    "check_points",
    "default_neighbours",
    "differentials",
    "internal_coordinates",
    "read_colvar",
    "tangent_spaces",
]
