"""What a page about coordinates needs to know of them."""

from __future__ import annotations

from typing import Any, Protocol

from isopursuit._types import Array, Indices, Labels
from isopursuit.manifold.tangent import TangentSpaces
from isopursuit.manifold.trajectory import Trajectory
from isopursuit.pointwise import PointwiseSelection
from isopursuit.selection import Selection


class FoundCoordinates(Protocol):
    """What the page shows: the answer of `find_coordinates` has it."""

    @property
    def selection(self) -> Selection:
        """The picked functions with their proof."""
        ...

    @property
    def labels(self) -> Labels:
        """What they are called."""
        ...

    @property
    def torsions(self) -> Indices | None:
        """The atoms of picked torsions by their numbers in the file, (D, 4)."""
        ...

    @property
    def trajectory(self) -> Trajectory | None:
        """All frames of the molecule."""
        ...

    @property
    def data(self) -> Array | None:
        """All points, (N, B), where there is no trajectory."""
        ...

    @property
    def points(self) -> Indices:
        """The numbers of the n chosen points or frames."""
        ...

    @property
    def dictionary(self) -> Any:
        """The functions where points were given, or None."""
        ...

    @property
    def matrices(self) -> Any:
        """The differentials there, with labels."""
        ...

    @property
    def tangents(self) -> TangentSpaces:
        """The tangent spaces there."""
        ...

    @property
    def checks(self) -> Any:
        """Which of them are undetermined, and the reasons."""
        ...

    @property
    def dimension(self) -> Any:
        """The evidence for D, or None."""
        ...

    @property
    def point_losses(self) -> Array:
        """The loss at each chosen point, (n,)."""
        ...

    @property
    def pointwise(self) -> PointwiseSelection:
        """The best functions at each point by itself."""
        ...

    def values(self) -> Array:
        """The picked functions at all points, (N, D)."""
        ...
