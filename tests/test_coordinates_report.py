"""The report of coordinates: ethanol's torsions, and functions of points that are no molecule."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import numpy as np

import isopursuit as ip
from isopursuit.errors import ParameterError
from isopursuit.loss.penalty import log_spectral_loss
from isopursuit.manifold.internal import torsion_values

HOSTILE = "</script><script>alert(1)</script>\" ' --> </title> $\\frac{ &amp;"


@dataclass(frozen=True)
class Checks:
    undetermined: Any
    reasons: Any


@dataclass(frozen=True)
class Found:
    """Coordinates as `find_coordinates` answers them."""

    selection: Any
    points: Any
    matrices: Any
    tangents: Any
    checks: Any
    dimension: Any = None
    trajectory: Any = None
    torsions: Any = None
    data: Any = None
    dictionary: Any = None
    notes: tuple = ()

    @property
    def labels(self):
        return self.selection.labels

    @cached_property
    def point_log_losses(self):
        picked = self.matrices.matrices[:, :, self.selection.indices]
        return log_spectral_loss(np.linalg.svd(picked, compute_uv=False), self.selection.c)

    @property
    def point_losses(self):
        return np.exp(self.point_log_losses)

    @cached_property
    def pointwise(self):
        return ip.select_pointwise(self.matrices, method="exact")

    def values(self):
        if self.trajectory is not None:
            return torsion_values(self.trajectory.positions, self.torsions)
        if self.dictionary.values is None or len(self.dictionary.values) != len(self.data):
            raise ParameterError("The dictionary has no values at all points.")
        return self.dictionary.values[:, self.selection.indices]
