"""Dictionaries of functions on a manifold: their values, gradients, and differentials on tangent spaces.

A function f on the manifold has the differential Tᵀ ∇f, with T (B × D) a basis of the tangent space. Functions are
isometric coordinates if their differentials are orthonormal at every point; `select` looks for such functions. If only
values are known, slopes.py estimates the differentials.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from isopursuit._core.options import as_numbers
from isopursuit._core.text import name_columns
from isopursuit._core.types import Array, Indices, Label, Labels, Unit
from isopursuit.data._files import check_file, one_line
from isopursuit.data._matrix import as_matrix, in_unit_stack
from isopursuit.data._units import AS_GIVEN, DEFAULT_UNITS, UnitLength
from isopursuit.errors import (
    FileError,
    LabelError,
    NonFiniteError,
    ParameterError,
    ShapeError,
    optional,
    unknown_option,
)
from isopursuit.manifold.slopes import local_slopes
from isopursuit.manifold.tangent import TangentSpaces
from isopursuit.molecules.shapes import shape_gradients
from isopursuit.molecules.torsions import TorsionKind, torsion_labels, torsion_rows
from isopursuit.molecules.trajectory import Trajectory

Function = Callable[[Any], Any]
Functions = Function | Sequence[Function] | Mapping[Label, Function]
Framework = Literal["torch", "jax"]
GradientUnit = Unit | Literal["overall"]
Periodic = bool | float | Iterable[Label] | Mapping[Label, float]
TURN = 2 * np.pi  # the period of an angle in radians


@dataclass(frozen=True)
class Dictionary:
    """P functions at n points: `gradients` (n, B, P) and `values` (n, P), or one of the two, and a label for each.

    `periods` (P,) are the periods of the values, such as 2π for an angle in radians; infinite if a function has none.
    None: no function has a period.
    """

    gradients: Array | None
    labels: Labels
    values: Array | None = None
    periods: Array | None = None

    @property
    def points(self) -> int:
        """n, the number of points."""
        known = self.values if self.gradients is None else self.gradients
        return 0 if known is None else len(known)

    def value(self, label: Label) -> Array:
        """One function's values at the points, (n,)."""
        if self.values is None:
            raise ParameterError("This dictionary has only gradients. Build it with the values of the functions too.")
        if label not in self.labels:
            raise LabelError(f"{label!r} is not a function of this dictionary. The first labels are {self.labels[:5]}.")
        return self.values[:, self.labels.index(label)]

    def take(self, points: ArrayLike) -> Dictionary:
        """The same functions at some of the points, given by their numbers."""
        some = as_numbers(points, self.points, "points")
        gradients, values = (None if one is None else one[some] for one in (self.gradients, self.values))
        return replace(self, gradients=gradients, values=values)


@dataclass(frozen=True)
class Differentials:
    """Input for `select`, `isometry_pursuit` and `select_pointwise`: `matrices` (n, D, P) and the functions' labels.

    `tangents` are the tangent spaces that the gradients were projected onto. `unit_length` is the divisor of the
    lengths; `overall` says that instead the differentials of each function have mean square length 1. `torsions` (P, 4)
    are the atoms, if the functions are torsions. `errors` (n, D, P) are standard errors of the entries, in the same
    unit, if the differentials were estimated from values.
    """

    matrices: Array
    labels: Labels
    tangents: TangentSpaces
    unit_length: UnitLength = AS_GIVEN
    overall: bool = False
    torsions: Indices | None = None
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


def evaluate_dictionary(
    functions: Functions,
    points: ArrayLike,
    *,
    gradients: Functions | None = None,
    framework: Framework | None = None,
    labels: Sequence[Label] | None = None,
    periodic: Periodic = False,
) -> Dictionary:
    """Values and gradients of functions at points, or their values only.

    Parameters
    ----------
    functions : callable, sequence of callables, or mapping from labels to callables
        Each function takes all points (n, B) and returns n values; a single callable returns (n, P). With a framework,
        each takes one point, a tensor or array (B,), and returns one number; a single callable returns P numbers. The
        functions are differentiated automatically in float64.
    points : array_like (n, B)
        The points.
    gradients : as `functions`, optional
        Each takes all points (n, B) and returns n gradients (n, B); a single callable returns (n, B, P).
    framework : {"torch", "jax"}, optional
        The framework of the functions, if there are no gradients. By default differentials are estimated from values.
    labels : sequence, optional
        One for each function. Default: the keys of the mapping, or the names of the callables if they are distinct.
    periodic : bool, number, labels, or mapping from labels to periods
        As in `as_dictionary`.

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
    # the positions of a molecule are (n, atoms, 3)
    places = as_matrix(points, wide=False).values if np.ndim(points) != 3 else np.asarray(points)
    if gradients is not None and framework is not None:
        raise ParameterError("Pass gradients= of the functions or framework= to differentiate them, not both.")
    if framework not in (None, "torch", "jax"):
        raise unknown_option("framework", framework, ("torch", "jax"), "pass gradients=")
    named, alone = _as_functions(functions)
    if gradients is None and framework is None:
        values = _stacked([function(places) for function in named.values()], alone)
        if values.ndim != 2 or len(values) != len(places):
            raise ShapeError(
                f"For {len(places)} points the functions returned {values.shape}; expected one value at each point."
            )
        names = labels if labels is not None else None if alone else tuple(named)
        return as_dictionary(values=values, labels=names, periodic=periodic)
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
    return replace(_checked(found, values, names, places.shape), periods=_periods(periodic, names))


def as_dictionary(
    gradients: Dictionary | ArrayLike | None = None,
    labels: Sequence[Label] | None = None,
    values: ArrayLike | Mapping[Label, ArrayLike] | None = None,
    *,
    periodic: Periodic = False,
) -> Dictionary:
    """A dictionary from arrays: gradients, values, or both. Values are enough.

    Parameters
    ----------
    gradients : array_like (n, B, P), optional
        The gradients of P functions at n points in B dimensions: ``gradients[i, :, p]`` is the gradient of function p
        at point i. By default differentials are estimated from the values.
    labels : sequence, optional
        The names of the functions. Default: the names of the columns of `values`, or numbers.
    values : array_like (n, P), data frame, or mapping from labels to arrays (n,)
        The values of the functions at the points.
    periodic : bool, number, labels, or mapping from labels to periods
        Which functions jump back after a period. True: all are angles in radians. A number: the period of all
        functions, such as 360 for angles in degrees. Labels: these are angles in radians.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.random.default_rng(0).normal(size=(50, 2))
    >>> angle = np.arctan2(points[:, 1], points[:, 0])
    >>> found = as_dictionary(values={"angle": angle, "x": points[:, 0]}, periodic=["angle"])
    >>> found.labels, found.periods.round(3).tolist()
    (('angle', 'x'), [6.283, inf])

    Gradients by finite differences:

    >>> radius = lambda x: np.linalg.norm(x, axis=1)
    >>> step = 1e-6 * np.eye(2)
    >>> slopes = np.stack([(radius(points + one) - radius(points - one)) / 2e-6 for one in step], axis=1)
    >>> as_dictionary(slopes[:, :, None], ["radius"], radius(points)[:, None]).gradients.shape
    (50, 2, 1)
    """
    if isinstance(gradients, Dictionary):
        return gradients
    if gradients is None and values is None:
        raise ParameterError("Pass the values of the functions, their gradients, or both.")
    known = None
    if values is not None:
        if isinstance(values, Mapping):
            labels = tuple(values) if labels is None else labels
            values = np.column_stack([np.asarray(one, dtype=np.float64) for one in values.values()])
        matrix = as_matrix(values, labels, wide=False)
        known, labels = np.asarray(matrix.values), matrix.labels if labels is None else labels
    array = None if gradients is None else np.asarray(gradients, dtype=np.float64)
    if array is not None and array.ndim != 3:
        raise ShapeError(f"gradients has shape {array.shape}; expected (n, B, P): points, coordinates, functions.")
    P = (known if array is None else array).shape[-1]  # pyright: ignore[reportOptionalMemberAccess]
    names = tuple(range(P)) if labels is None else tuple(labels)
    if array is not None:
        found = _checked(array, known, names, array.shape[:2])
    else:
        _check_labels(names, P)
        found = Dictionary(None, names, known)
    return replace(found, periods=_periods(periodic, names))


def _periods(periodic: Periodic, labels: Labels) -> Array | None:
    """The period of each function, infinite for none."""
    if isinstance(periodic, bool | float | int):
        if not periodic:
            return None
        known: dict[Label, float] = dict.fromkeys(labels, TURN if periodic is True else float(periodic))
    else:
        known = dict(periodic) if isinstance(periodic, Mapping) else dict.fromkeys(periodic, TURN)
    unknown = [label for label in known if label not in labels]
    if unknown:
        raise LabelError(f"periodic= names {unknown[0]!r}, which is no function. The first labels are {labels[:5]}.")
    periods = np.array([known.get(label, np.inf) for label in labels])
    if not (periods > 0).all():
        raise ParameterError(f"Periods must be positive; they are {sorted(known.values())}.")
    return periods


def known_functions(given: Any, points: Array, periodic: Periodic) -> Dictionary:
    """The dictionary that a caller describes: by itself, callables, a COLVAR file, or values at all points."""
    if isinstance(given, Dictionary):
        return given
    if isinstance(given, str | Path):
        return read_colvar(given)
    some: Any = list(given.values()) if isinstance(given, Mapping) else given  # pyright: ignore
    if callable(some) or (isinstance(some, list | tuple) and some and all(map(callable, some))):
        return evaluate_dictionary(given, points, periodic=periodic)
    return as_dictionary(values=given, periodic=periodic)


def unmarked_angles(dictionary: Dictionary) -> list[str]:
    """Functions without gradients and period whose values fill one turn, in radians or degrees, up to 1 %."""
    if dictionary.gradients is not None or dictionary.values is None:
        return []
    ranges = np.ptp(dictionary.values, axis=0)
    turn = ((ranges > 0.99 * TURN) & (ranges <= TURN)) | ((ranges > 356.4) & (ranges <= 360.0))
    if dictionary.periods is not None:
        turn &= ~np.isfinite(dictionary.periods)
    return [str(dictionary.labels[i]) for i in np.flatnonzero(turn).tolist()]


def read_colvar(path: str | Path) -> Dictionary:
    """The collective variables of a COLVAR file of PLUMED as a dictionary: all columns except the time.

    Periods are read from the lines "#! SET min_phi -pi" and "#! SET max_phi pi". Make the file from a trajectory by
    ``plumed driver --mf_xtc traj.xtc --plumed plumed.dat``, so that it has a line for each frame.
    """
    path = Path(path)
    check_file(path)
    names: list[str] = []
    ends: dict[str, float] = {}
    rows: list[list[float]] = []
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            words = line.split()
            if words[:2] == ["#!", "FIELDS"]:
                names = words[2:]
            elif words[:2] == ["#!", "SET"] and len(words) == 4 and words[2][:4] in ("min_", "max_"):
                ends[words[2]] = _as_end(words[3])
            elif words and not words[0].startswith("#"):
                rows.append([float(word) for word in words])
        table = np.array(rows, dtype=np.float64).reshape(len(rows), len(names))
    except (ValueError, UnicodeDecodeError) as error:
        raise FileError(f"{path.name} is no COLVAR file of PLUMED: {one_line(error)}.") from None
    kept = [i for i, name in enumerate(names) if name != "time"]
    if not kept or not rows:
        raise FileError(f"{path.name} is no COLVAR file of PLUMED: it has no line '#! FIELDS time …' or no values.")
    periods = {names[i]: ends[f"max_{names[i]}"] - ends[f"min_{names[i]}"] for i in kept if f"max_{names[i]}" in ends}
    return as_dictionary(values=table[:, kept], labels=[names[i] for i in kept], periodic=periods)


def _as_end(word: str) -> float:
    """The end of a period as PLUMED writes it: a number, or a multiple of pi."""
    sign, size = (-1.0, word[1:]) if word.startswith("-") else (1.0, word)
    return sign * (
        np.pi * float(size.removesuffix("pi").removesuffix("*") or 1) if size.endswith("pi") else float(size)
    )


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


def torsion_differentials(
    trajectory: Trajectory,
    tangents: TangentSpaces,
    torsions: TorsionKind | ArrayLike = "bonds",
    *,
    unit: GradientUnit = DEFAULT_UNITS["gradients"],
    callback: Callable[[int, int], object] | None = None,
) -> Differentials:
    """Gradients of a molecule's torsions along the tangent spaces of the manifold of its shapes by angles.

    For shapes by torsions pass values: ``differentials(as_dictionary(values=torsion_values(positions, rows),
    periodic=True), tangents, points=torsion_shapes(trajectory))``.

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
    return in_gradient_unit(Differentials(projected, torsion_labels(trajectory, rows), tangents, torsions=rows), unit)


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
    _check_labels(labels, P)
    wrong = np.argwhere(~np.isfinite(gradients).all(axis=1))
    if len(wrong):
        functions = sorted(set(wrong[:, 1].tolist()))
        raise NonFiniteError(
            f"Gradients are NaN or infinite for {name_columns(functions, labels)}, first at point {wrong[0, 0]}. Drop "
            "those functions or points, or pass finite gradients."
        )
    return Dictionary(gradients, labels, values)


def _check_labels(labels: Labels, P: int) -> None:
    if len(labels) != P or len(set(labels)) != P:
        raise LabelError(f"There are {len(labels)} labels, {len(set(labels))} different ones, for {P} functions.")


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
