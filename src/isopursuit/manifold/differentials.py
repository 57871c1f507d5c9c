"""Differentials of functions on the tangent spaces of a manifold, in a unit.

A function f on the manifold has the differential Tᵀ ∇f, with T (B × D) a basis of the tangent space. Functions are
isometric coordinates if their differentials are orthonormal at every point; `select` looks for such functions. If only
values are known, _slopes.py estimates the differentials.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from isopursuit._core.options import as_numbers
from isopursuit._core.types import Array, Label, Labels, Unit
from isopursuit.data._matrix import in_unit_stack
from isopursuit.data._units import AS_GIVEN, DEFAULT_UNITS, UnitLength
from isopursuit.errors import ParameterError, ShapeError, unknown_option
from isopursuit.manifold._slopes import local_slopes
from isopursuit.manifold.dictionary import Dictionary, as_dictionary
from isopursuit.manifold.tangent import TangentSpaces

GradientUnit = Unit | Literal["overall"]


@dataclass(frozen=True)
class Differentials:
    """Input for `select`, `isometry_pursuit` and `select_pointwise`: `matrices` (n, D, P) and the functions' labels.

    `tangents` are the tangent spaces that the gradients were projected onto. `unit_length` is the divisor of the
    lengths; `overall` says that instead the differentials of each function have mean square length 1. `errors`
    (n, D, P) are standard errors of the entries, in the same unit, if the differentials were estimated from values.
    """

    matrices: Array
    labels: Labels
    tangents: TangentSpaces
    unit_length: UnitLength = AS_GIVEN
    overall: bool = False
    errors: Array | None = None

    def take(self, points: ArrayLike) -> Differentials:
        """The same functions at some of the points, given by their numbers or a mask.

        If each function has mean square length 1, it is rescaled to mean square length 1 at these points.
        """
        some = as_numbers(points, len(self.matrices), "points")
        errors = None if self.errors is None else self.errors[some]
        found = replace(self, matrices=self.matrices[some], errors=errors, tangents=self.tangents.take(some))
        return in_gradient_unit(found, "overall") if self.overall else found

    def of_dimension(self, D: int) -> Differentials:
        """The same functions in the leading D directions of the tangent spaces, with the same kind of unit."""
        if self.tangents.dimension == D:
            return self
        errors = None if self.errors is None else self.errors[:, :D]
        matrices, tangents = np.ascontiguousarray(self.matrices[:, :D]), self.tangents.of_dimension(D)
        found = replace(self, matrices=matrices, errors=errors, tangents=tangents)
        if self.overall:
            return in_gradient_unit(found, "overall")
        if self.unit_length.how not in ("median", "each"):
            return found
        again = in_gradient_unit(found, self.unit_length.how)
        length = self.unit_length.length * again.unit_length.length
        return replace(again, unit_length=replace(again.unit_length, length=length))

    @property
    def unit(self) -> str:
        """The length that counts as 1, in words."""
        return "each function has mean square length 1" if self.overall else str(self.unit_length)


def differentials(
    gradients: Dictionary | ArrayLike,
    tangents: TangentSpaces,
    *,
    unit: GradientUnit = DEFAULT_UNITS["gradients"],
    labels: Sequence[Label] | None = None,
    points: ArrayLike | None = None,
) -> Differentials:
    """Project the gradients of functions onto tangent spaces, or estimate them there from values.

    Parameters
    ----------
    gradients : Dictionary or array_like (n, B, P)
        Gradients at the points of the tangent spaces, in the same order; or a `Dictionary` of values at all `points`.
    tangents : TangentSpaces
        The n tangent spaces.
    unit : "overall", number, "median", "each" or None
        The length after projection that counts as 1. "overall" (the default) multiplies each function by one factor, so
        that its projected gradients have mean square length 1. This changes the unit of a function, not its shape, so
        the answer does not depend on the units in which functions are given. A number, "median" (of all points and
        functions) and "each" are as in `select`, and None keeps gradients as they are: then a good coordinate changes
        by one unit per unit of distance, and an angle in degrees is a different function from the same angle in
        radians.
    labels : sequence, optional
        The names of the functions, if `gradients` is an array.
    points : array_like (N, B), optional
        All points, for a dictionary that has only values. A linear regression on the neighbours of each tangent space
        estimates the differentials and their standard errors.

    Returns
    -------
    Differentials
        Pass them to `select`, which picks one set of functions for all points, or to `select_pointwise`.

    Examples
    --------
    >>> import numpy as np
    >>> from isopursuit import select
    >>> from isopursuit.manifold import tangent_spaces
    >>> plane = np.random.default_rng(0).uniform(size=(200, 2)) @ [[1.0, 0.0, 0.0], [0.0, 0.6, 0.8]]
    >>> spaces = tangent_spaces(plane, range(10), D=2, neighbours=20)
    >>> gradients = np.tile(np.eye(3), (10, 1, 1))  # of the functions x, y and z
    >>> found = differentials(gradients, spaces, unit=None, labels=["x", "y", "z"])
    >>> select(found).labels
    ('x', 'z')
    """
    dictionary = as_dictionary(gradients, labels)
    n, B, _ = tangents.bases.shape
    if dictionary.gradients is None:
        if points is None or dictionary.values is None:
            raise ParameterError("The dictionary has only values. Pass points=, all points (N, B), to estimate slopes.")
        matrices, errors = local_slopes(points, dictionary.values, tangents, dictionary.periods)
        return in_gradient_unit(Differentials(matrices, dictionary.labels, tangents, errors=errors), unit)
    if dictionary.gradients.shape[:2] != (n, B):
        raise ShapeError(
            f"There are gradients at {dictionary.gradients.shape[0]} points in {dictionary.gradients.shape[1]} "
            f"dimensions, but {n} tangent spaces in {B}. Take the gradients at the points of the tangent spaces."
        )
    return in_gradient_unit(Differentials(tangents.project(dictionary.gradients), dictionary.labels, tangents), unit)


def in_gradient_unit(found: Differentials, unit: GradientUnit) -> Differentials:
    """Differentials and their errors, divided by the length that counts as 1."""
    if isinstance(unit, str) and unit not in ("overall", "median", "each"):
        raise unknown_option("unit", unit, ("overall", "median", "each"), "a positive length, or None")
    if isinstance(unit, str) and unit == "overall":
        n = max(len(found.matrices), 1)
        sizes = np.sqrt(np.einsum("idp,idp->p", found.matrices, found.matrices) / n)
        scales = np.where(sizes > 0, sizes, 1.0)
        made = replace(found, matrices=found.matrices / scales, overall=True)
    else:
        matrices, length = in_unit_stack(found.matrices, unit)
        made = replace(found, matrices=matrices, unit_length=length)
        lengths = np.linalg.norm(found.matrices, axis=1, keepdims=True)
        scales = np.where(lengths > 0, lengths, 1.0) if unit == "each" else length.length
    return made if found.errors is None else replace(made, errors=found.errors / scales)
