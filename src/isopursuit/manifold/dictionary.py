"""Dictionaries of functions on a manifold: their values, gradients, and differentials on tangent spaces.

A function f on the manifold has the differential Tᵀ ∇f, with T (B × D) a basis of the tangent space. Functions are
isometric coordinates if their differentials are orthonormal at every point; `select` looks for such functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from isopursuit._core.options import as_numbers
from isopursuit._core.text import name_columns
from isopursuit._core.types import Array, Indices, Label, Labels, Unit
from isopursuit.data._matrix import as_matrix, in_unit_stack
from isopursuit.data._units import AS_GIVEN, DEFAULT_UNITS, UnitLength
from isopursuit.errors import LabelError, NonFiniteError, ParameterError, ShapeError, optional, unknown_option
from isopursuit.manifold.tangent import TangentSpaces
from isopursuit.molecules.shapes import shape_gradients
from isopursuit.molecules.torsions import TorsionKind, torsion_labels, torsion_rows
from isopursuit.molecules.trajectory import Trajectory

Function = Callable[[Any], Any]
Functions = Function | Sequence[Function] | Mapping[Label, Function]
Framework = Literal["torch", "jax"]
GradientUnit = Unit | Literal["overall"]


@dataclass(frozen=True)
class Dictionary:
    """P functions at n points: `gradients` (n, B, P), a label for each function, and `values` (n, P) if known."""

    gradients: Array
    labels: Labels
    values: Array | None = None

    def value(self, label: Label) -> Array:
        """One function's values at the points, (n,)."""
        if self.values is None:
            raise ParameterError("This dictionary has only gradients. Build it with the values of the functions too.")
        if label not in self.labels:
            raise LabelError(f"{label!r} is not a function of this dictionary. The first labels are {self.labels[:5]}.")
        return self.values[:, self.labels.index(label)]

    def take(self, points: ArrayLike) -> Dictionary:
        """The same functions at some of the points, given by their numbers."""
        some = as_numbers(points, len(self.gradients), "points")
        return Dictionary(self.gradients[some], self.labels, None if self.values is None else self.values[some])


@dataclass(frozen=True)
class Differentials:
    """Input for `select`, `isometry_pursuit` and `select_pointwise`: `matrices` (n, D, P) and the functions' labels.

    `tangents` are the tangent spaces that the gradients were projected onto. `unit_length` is the divisor of the
    lengths; `overall` says that instead the differentials of each function have mean square length 1. `torsions` (P, 4)
    are the atoms, if the functions are torsions.
    """

    matrices: Array
    labels: Labels
    tangents: TangentSpaces
    unit_length: UnitLength = AS_GIVEN
    overall: bool = False
    torsions: Indices | None = None

    def take(self, points: ArrayLike) -> Differentials:
        """The same functions at some of the points, given by their numbers or a mask.

        If each function has mean square length 1, it is rescaled to mean square length 1 at these points.
        """
        some = as_numbers(points, len(self.matrices), "points")
        matrices = _of_unit_size(self.matrices[some]) if self.overall else self.matrices[some]
        return replace(self, matrices=matrices, tangents=self.tangents.take(some))

    def of_dimension(self, D: int) -> Differentials:
        """The same functions in the leading D directions of the tangent spaces, with the same kind of unit."""
        matrices, unit = np.ascontiguousarray(self.matrices[:, :D]), self.unit_length
        if self.overall:
            matrices = _of_unit_size(matrices)
        elif unit.how in ("median", "each"):
            matrices, again = in_unit_stack(matrices, unit.how)
            unit = replace(again, length=unit.length * again.length)
        return replace(self, matrices=matrices, unit_length=unit, tangents=self.tangents.of_dimension(D))

    @property
    def unit(self) -> str:
        """The length that counts as 1, in words."""
        return "each function has mean square length 1" if self.overall else str(self.unit_length)


def evaluate_dictionary(
    functions: Functions,
    points: ArrayLike,
    *,
    gradients: Functions | None = None,
    framework: Framework | None = None,
    labels: Sequence[Label] | None = None,
) -> Dictionary:
    """Values and gradients of functions at points.

    Parameters
    ----------
    functions : callable, sequence of callables, or mapping from labels to callables
        With `gradients`, each function takes all points (n, B) and returns n values; a single callable returns (n, P).
        With a framework, each function takes one point, a tensor or array (B,), and returns one number; a single
        callable returns P numbers. The functions are differentiated automatically in float64.
    points : array_like (n, B)
        The points.
    gradients : as `functions`, optional
        Each takes all points (n, B) and returns n gradients (n, B); a single callable returns (n, B, P).
    framework : {"torch", "jax"}, optional
        The framework of the functions, if there are no gradients.
    labels : sequence, optional
        One for each function. Default: the keys of the mapping, or the names of the callables if they are distinct.

    Returns
    -------
    Dictionary

    Examples
    --------
    >>> import numpy as np
    >>> points = np.array([[1.0, 0.0], [0.0, 2.0]])
    >>> found = evaluate_dictionary(
    ...     {"radius": lambda x: np.hypot(*x.T)},
    ...     points,
    ...     gradients={"radius": lambda x: x / np.hypot(*x.T)[:, None]},
    ... )
    >>> found.values.ravel().tolist(), found.gradients[:, :, 0].tolist()
    ([1.0, 2.0], [[1.0, 0.0], [0.0, 1.0]])
    """
    places = as_matrix(points, wide=False).values
    if (gradients is None) == (framework is None):
        raise ParameterError(
            "Pass either gradients= of the functions, or framework='torch' or 'jax' to differentiate them."
        )
    if framework not in (None, "torch", "jax"):
        raise unknown_option("framework", framework, ("torch", "jax"), "pass gradients=")
    named, alone = _as_functions(functions)
    if gradients is not None:
        slopes, slope_alone = _as_functions(gradients)
        if alone != slope_alone or list(slopes) != list(named):
            raise LabelError(
                f"There are functions {name_columns(range(len(named)), tuple(named))} and gradients of "
                f"{name_columns(range(len(slopes)), tuple(slopes))}. Pass one gradient for each function, in order."
            )
        values = _stacked([function(places) for function in named.values()], alone)
        found = _stacked([slope(places) for slope in slopes.values()], alone)
    else:
        differentiate = _by_torch if framework == "torch" else _by_jax
        parts = [differentiate(function, places) for function in named.values()]
        values, found = (_stacked(list(part), alone) for part in zip(*parts, strict=True))
    names = tuple(labels) if labels is not None else tuple(range(found.shape[-1])) if alone else tuple(named)
    return _checked(found, values, names, places.shape)


def as_dictionary(
    gradients: Dictionary | ArrayLike, labels: Sequence[Label] | None = None, values: ArrayLike | None = None
) -> Dictionary:
    """A dictionary from known gradients, for example from finite differences.

    Parameters
    ----------
    gradients : array_like (n, B, P)
        The gradients of P functions at n points in B dimensions: ``gradients[i, :, p]`` is the gradient of function p
        at point i.
    labels : sequence, optional
        The names of the functions. Default: numbers.
    values : array_like (n, P), optional
        The values of the functions at the points, for tables and pictures.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.random.default_rng(0).normal(size=(50, 3))
    >>> radius = lambda x: np.linalg.norm(x, axis=1)
    >>> step = 1e-6 * np.eye(3)
    >>> slopes = np.stack([(radius(points + one) - radius(points - one)) / 2e-6 for one in step], axis=1)
    >>> as_dictionary(slopes[:, :, None], ["radius"], radius(points)[:, None]).gradients.shape
    (50, 3, 1)
    """
    if isinstance(gradients, Dictionary):
        return gradients
    array = np.asarray(gradients, dtype=np.float64)
    if array.ndim != 3:
        raise ShapeError(f"gradients has shape {array.shape}; expected (n, B, P): points, coordinates, functions.")
    names = tuple(range(array.shape[2])) if labels is None else tuple(labels)
    known = None if values is None else np.asarray(values, dtype=np.float64)
    return _checked(array, known, names, array.shape[:2])


def differentials(
    gradients: Dictionary | ArrayLike,
    tangents: TangentSpaces,
    *,
    unit: GradientUnit = DEFAULT_UNITS["gradients"],
    labels: Sequence[Label] | None = None,
) -> Differentials:
    """Project the gradients of functions onto tangent spaces.

    Parameters
    ----------
    gradients : Dictionary or array_like (n, B, P)
        Gradients at the points of the tangent spaces, in the same order.
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
    if dictionary.gradients.shape[:2] != (n, B):
        raise ShapeError(
            f"There are gradients at {dictionary.gradients.shape[0]} points in {dictionary.gradients.shape[1]} "
            f"dimensions, but {n} tangent spaces in {B}. Take the gradients at the points of the tangent spaces."
        )
    return _in_unit(Differentials(tangents.project(dictionary.gradients), dictionary.labels, tangents), unit)


def torsion_differentials(
    trajectory: Trajectory,
    tangents: TangentSpaces,
    torsions: TorsionKind | ArrayLike = "bonds",
    *,
    unit: GradientUnit = DEFAULT_UNITS["gradients"],
    callback: Callable[[int, int], object] | None = None,
) -> Differentials:
    """Gradients of a molecule's torsions along the tangent spaces of the manifold of its shapes.

    Parameters
    ----------
    trajectory : Trajectory
        The molecule.
    tangents : TangentSpaces
        Tangent spaces at some frames, among the `isopursuit.molecules.shape_values` of all frames.
    torsions : {"bonds", "rotatable", "all"} or array_like (P, 4)
        The dictionary; see `isopursuit.molecules.torsion_rows`.
    unit : "overall", number, "median", "each" or None
        As for `differentials`. Gradients that are not rescaled compare a radian of the torsion with a radian of
        distance in the space of all planar angles, which grows with the number of atoms.
    callback : callable, optional
        Called with the number of finished frames and the number of all frames.

    Examples
    --------
    >>> from isopursuit.manifold import tangent_spaces
    >>> from isopursuit.molecules import load_ethanol, shape_values
    >>> ethanol = load_ethanol()
    >>> spaces = tangent_spaces(shape_values(ethanol.positions), [0, 5000], D=2, neighbours=1000)
    >>> found = torsion_differentials(ethanol, spaces)
    >>> found.matrices.shape, found.labels[0]
    ((2, 2, 12), 'O2–C0–C1–H5 torsion')
    """
    rows = torsion_rows(trajectory, torsions)
    positions = trajectory.positions[tangents.at]
    projected, _ = shape_gradients(positions, tangents.bases, rows, frames=tangents.at, callback=callback)
    return _in_unit(Differentials(projected, torsion_labels(trajectory, rows), tangents, torsions=rows), unit)


def _in_unit(found: Differentials, unit: GradientUnit) -> Differentials:
    if isinstance(unit, str) and unit == "overall":
        return replace(found, matrices=_of_unit_size(found.matrices), overall=True)
    if isinstance(unit, str) and unit not in ("median", "each"):
        raise unknown_option("unit", unit, ("overall", "median", "each"), "a positive length, or None")
    matrices, length = in_unit_stack(found.matrices, unit)
    return replace(found, matrices=matrices, unit_length=length)


def _of_unit_size(matrices: Array) -> Array:
    """Matrices (n, D, P) whose columns are divided by one number for each function, to mean square length 1."""
    sizes = np.sqrt(np.einsum("idp,idp->p", matrices, matrices) / max(len(matrices), 1))
    return matrices / np.where(sizes > 0, sizes, 1.0)


def _as_functions(functions: Functions) -> tuple[dict[Label, Function], bool]:
    """The functions by label, and whether a single callable computes all of them."""
    if callable(functions):
        return {0: functions}, True
    if isinstance(functions, Mapping):
        return dict(functions), False
    names = [getattr(function, "__name__", "") for function in functions]
    numbered = len(set(names)) < len(names) or not all(names)
    return dict(zip(range(len(names)) if numbered else names, functions, strict=True)), False


def _stacked(parts: list[Any], alone: bool) -> Array:
    arrays = [np.asarray(part, dtype=np.float64) for part in parts]
    if alone:
        return arrays[0]
    if len({array.shape for array in arrays}) > 1:
        raise ShapeError(f"The functions return different shapes, {sorted({array.shape for array in arrays})}.")
    return np.stack(arrays, axis=-1)


def _checked(gradients: Array, values: Array | None, labels: Labels, where: tuple[int, ...]) -> Dictionary:
    """Check the shape of gradients, and that they are finite."""
    P = gradients.shape[-1] if gradients.ndim else 0
    if gradients.shape != (*where, P) or (values is not None and values.shape != (where[0], P)):
        came = f"gradients {gradients.shape}" + ("" if values is None else f" and values {values.shape}")
        raise ShapeError(f"For points {where} the functions returned {came}; expected (n, B, P) and (n, P).")
    if len(labels) != P or len(set(labels)) != P:
        raise LabelError(f"There are {len(labels)} labels, {len(set(labels))} different ones, for {P} functions.")
    wrong = np.argwhere(~np.isfinite(gradients).all(axis=1))
    if len(wrong):
        functions = sorted(set(wrong[:, 1].tolist()))
        raise NonFiniteError(
            f"Gradients are NaN or infinite for {name_columns(functions, labels)}, first at point {wrong[0, 0]}. Drop "
            "those functions or points, or pass finite gradients."
        )
    return Dictionary(gradients, labels, values)


def _by_torch(function: Function, points: Array) -> tuple[Array, Array]:
    torch = optional("torch", "torch", "framework='torch'")
    places = torch.tensor(points, dtype=torch.float64)
    jacobian, values = torch.func.vmap(torch.func.jacrev(_twice(function), has_aux=True))(places)
    return values.detach().numpy(), _gradient_last(jacobian.detach().numpy())


def _by_jax(function: Function, points: Array) -> tuple[Array, Array]:
    jax = optional("jax", "jax", "framework='jax'")
    with jax.enable_x64(True):
        jacobian, values = jax.vmap(jax.jacrev(_twice(function), has_aux=True))(jax.numpy.asarray(points))
        return np.asarray(values), _gradient_last(np.asarray(jacobian))


def _twice(function: Function) -> Function:
    """A function that returns its value twice: to differentiate, and to return."""

    def both(x: Any) -> Any:
        y = function(x)
        return y, y

    return both


def _gradient_last(jacobian: Array) -> Array:
    """(n, B) unchanged; (n, P, B) as (n, B, P)."""
    return jacobian if jacobian.ndim == 2 else np.swapaxes(jacobian, 1, 2)
