"""Dictionaries: functions on a manifold by their values, their gradients, or both."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isopursuit._core.options import as_numbers
from isopursuit._core.text import name_columns
from isopursuit._core.types import Array, Label, Labels
from isopursuit.data._files import check_file, one_line
from isopursuit.data._matrix import as_matrix
from isopursuit.errors import FileError, LabelError, NonFiniteError, ParameterError, ShapeError

Periodic = bool | float | Iterable[Label] | Mapping[Label, float]
Atoms = tuple[tuple[int, ...], ...]
TURN = 2 * np.pi  # the period of an angle in radians


@dataclass(frozen=True)
class Dictionary:
    """P functions at n points: `gradients` (n, B, P) and `values` (n, P), or one of the two, and a label for each.

    `periods` (P,) are the periods of the values, such as 2π for an angle in radians; infinite if a function has none.
    None: no function has a period. `atoms` are those of distances, angles and torsions, by their numbers in the file,
    from 0.
    """

    gradients: Array | None
    labels: Labels
    values: Array | None = None
    periods: Array | None = None
    atoms: Atoms | None = None

    @property
    def points(self) -> int:
        """n, the number of points."""
        known = self.values if self.gradients is None else self.gradients
        return 0 if known is None else len(known)

    def value(self, label: Label) -> Array:
        """One function's values at the points, (n,)."""
        if self.values is None:
            raise ParameterError("This dictionary has only gradients. Make it with the values of the functions too.")
        if label not in self.labels:
            raise LabelError(f"{label!r} is not a function of this dictionary. The first labels are {self.labels[:5]}.")
        return self.values[:, self.labels.index(label)]

    def take(self, points: ArrayLike) -> Dictionary:
        """The same functions at some of the points, given by their numbers."""
        some = as_numbers(points, self.points, "points")
        gradients, values = (None if one is None else one[some] for one in (self.gradients, self.values))
        return replace(self, gradients=gradients, values=values)

    def __add__(self, other: Dictionary) -> Dictionary:
        """The functions of two dictionaries that are given by their values at the same points."""
        if self.values is None or other.values is None or len(self.values) != len(other.values):
            raise ShapeError("Only dictionaries with values at the same points can be added.")
        both = (self, other)
        periods = [np.full(len(one.labels), np.inf) if one.periods is None else one.periods for one in both]
        atoms = None if self.atoms is None or other.atoms is None else self.atoms + other.atoms
        labels, values = self.labels + other.labels, np.hstack([self.values, other.values])
        return replace(as_dictionary(None, labels, values), periods=np.concatenate(periods), atoms=atoms)


def as_dictionary(
    gradients: Dictionary | ArrayLike | None = None,
    labels: Sequence[Label] | None = None,
    values: Any = None,
    *,
    periodic: Periodic = False,
) -> Dictionary:
    """Make a dictionary of values, of gradients, or of both.

    Parameters
    ----------
    gradients : Dictionary or array_like (n, B, P), optional
        The gradients of P functions at n points.
    labels : sequence, optional
        One for each function. Default: the column names of a data frame, otherwise 0 to P − 1.
    values : array_like (n, P), data frame or mapping, optional
        The values of the functions, to draw and save them, and to estimate their gradients if there are none.
    periodic : bool, number, labels, or mapping from labels to periods
        Which functions jump back after a period: all of them with period 2π (True) or this number, those with these
        labels with period 2π, or each by its own period.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.random.default_rng(0).normal(size=(50, 2))
    >>> as_dictionary(values={"x": points[:, 0], "angle": np.arctan2(*points.T)}, periodic=["angle"]).labels
    ('x', 'angle')

    Gradients of the radius by automatic differentiation, as in ``torch.func.vmap(torch.func.grad(f))(points)``, or by
    differences:

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
            columns: dict[Label, Any] = dict(values)  # pyright: ignore[reportUnknownArgumentType]
            labels = tuple(columns) if labels is None else labels
            values = np.column_stack([np.asarray(one, dtype=np.float64) for one in columns.values()])
        matrix = as_matrix(values, labels, wide=False)
        known, labels = np.asarray(matrix.values), matrix.labels if labels is None else labels
    array = None if gradients is None else np.asarray(gradients, dtype=np.float64)
    if array is not None and array.ndim != 3:
        raise ShapeError(f"gradients has shape {array.shape}; expected (n, B, P): points, coordinates, functions.")
    if array is not None and known is not None and known.shape != array.shape[::2]:
        raise ShapeError(f"There are gradients {array.shape} and values {known.shape}; expected (n, B, P) and (n, P).")
    P = (known if array is None else array).shape[-1]  # pyright: ignore[reportOptionalMemberAccess]
    names = tuple(range(P)) if labels is None else tuple(labels)
    if len(names) != P or len(set(names)) != P:
        raise LabelError(f"There are {len(names)} labels, {len(set(names))} different ones, for {P} functions.")
    wrong = np.empty((0, 2)) if array is None else np.argwhere(~np.isfinite(array).all(axis=1))
    if len(wrong):
        functions = sorted(set(wrong[:, 1].tolist()))
        raise NonFiniteError(
            f"Gradients are NaN or infinite for {name_columns(functions, names)}, first at point {wrong[0, 0]}. Drop "
            "those functions or points, or pass finite gradients."
        )
    return Dictionary(array, names, known, _periods(periodic, names))


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
    """The dictionary that a caller describes: by itself, callables by label, a COLVAR file, or values at all points."""
    if isinstance(given, Dictionary):
        return given
    if isinstance(given, str | Path):
        return read_colvar(given)
    if isinstance(given, Mapping):
        given = {label: one(points) if callable(one) else one for label, one in given.items()}  # pyright: ignore
    return as_dictionary(values=given, periodic=periodic)


def unmarked_angles(dictionary: Dictionary) -> list[str]:
    """Functions without gradients, atoms and period whose values fill one turn, in radians or degrees, up to 1 %."""
    if dictionary.gradients is not None or dictionary.atoms is not None or dictionary.values is None:
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
    try:
        lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
        names = next((words[2:] for words in lines if words[:2] == ["#!", "FIELDS"]), [])
        ends = {words[2]: _as_end(words[3]) for words in lines if words[:2] == ["#!", "SET"] and len(words) == 4}
        rows = [[float(word) for word in words] for words in lines if words and not words[0].startswith("#")]
        table = np.array(rows, dtype=np.float64).reshape(len(rows), len(names))
    except (ValueError, UnicodeDecodeError) as error:
        raise FileError(f"{path.name} is no COLVAR file of PLUMED: {one_line(error)}.") from None
    kept = [i for i, name in enumerate(names) if name != "time"]
    if not kept or not rows:
        raise FileError(f"{path.name} is no COLVAR file of PLUMED: it has no line '#! FIELDS time …' or no values.")
    periods = {names[i]: ends[f"max_{names[i]}"] - ends[f"min_{names[i]}"] for i in kept if f"max_{names[i]}" in ends}
    return as_dictionary(values=table[:, kept], labels=[names[i] for i in kept], periodic=periods)


def _as_end(word: str) -> float:
    """The end of a period as PLUMED writes it, a number or a multiple of pi; NaN for another setting."""
    found = re.fullmatch(r"(-?)([\d.]*)\*?pi|(-?[\d.eE+-]+)", word)
    if not found:
        return np.nan
    return float(found[3]) if found[3] else float(f"{found[1]}{found[2] or 1}") * np.pi
