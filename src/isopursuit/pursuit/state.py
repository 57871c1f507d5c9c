"""The state of a streamed pursuit on disk: its weights after every pass, so that a killed run can continue."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isopursuit._core.outputs import write_whole
from isopursuit.errors import FileError, ParameterError
from isopursuit.files.paths import one_line
from isopursuit.pursuit.normalize import log_lengths
from isopursuit.sources.settings import FINGERPRINT

if TYPE_CHECKING:
    from isopursuit.pursuit.inputs import Goal
    from isopursuit.pursuit.streamed import StreamedColumns

VERSION = 1  # version of the format of the state file
FORMER = {"penalty": "ridge"}  # names in state files of earlier versions
CURVE = np.array([0.25, 0.5, 1.0, 2.0, 4.0])  # lengths at which a normalization is recognized
# for messages: what a saved state was for, if it does not belong to this run
OTHER = {
    "shape": "other columns",
    "columns": "other columns",
    "standardization": "another standardization or projection",
    "normalization": "another normalization",
    "target": "another target",
}


def belongs(stream: StreamedColumns) -> dict[str, Any]:
    """The entries that identify the run of a state: the columns, the target and the options."""
    columns, transform = stream.columns, stream.columns.transform
    few = columns.take(np.unique(np.linspace(0, columns.shape[1] - 1, FINGERPRINT).astype(np.intp)))
    # a normalization may be any function, so it is identified by its values
    curve = np.zeros(0) if transform.c is None else log_lengths(CURVE, transform.c, transform.normalization)
    return {
        "shape": np.array(columns.source.shape),
        "dtype": np.array(str(columns.source.dtype)),
        "columns": few.sum(axis=0),
        "standardization": np.linalg.norm(transform.apply(few), axis=0),  # and projection, up to rotations
        "c": np.array("none" if transform.c is None else repr(transform.c)),
        "normalization": curve,
        "target": _aim(stream.goal, columns.shape[0]),
        "penalty": np.array(stream.goal.penalty),
    }


def _aim(goal: Goal, D: int) -> NDArray[Any]:
    """The target; for a projection of rank k, the average of all such projections."""
    return np.eye(D) * (1.0 if goal.k is None else goal.k / D) if goal.target is None else goal.target


def save_state(path: Path, stream: StreamedColumns) -> str:
    """Save the weights so far, completely or not at all; returns the reason if that failed, else an empty string."""
    held = np.asarray(stream.weights > 0)
    content = io.BytesIO()
    np.savez(
        content,
        version=VERSION,
        indices=stream.indices[held],
        weights=stream.weights[held],
        log_scale=stream.columns.transform.log_scale,
        passes=len(stream.seconds),
        **belongs(stream),
    )
    try:
        write_whole(path, content.getvalue())
    except FileError as error:
        return str(error)
    return ""


def load_state(path: Path, stream: StreamedColumns) -> dict[str, NDArray[Any]] | None:
    """A saved state, or None if there is none. Raises an error if it belongs to other columns or other options."""
    if not path.exists():
        return None
    ours = belongs(stream)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            if "version" not in stored or stored["version"] != VERSION:
                raise ValueError(f"it is not of version {VERSION}, the one that this isopursuit reads")
            former = {name: FORMER.get(name, name) if name not in stored else name for name in ours}
            names = former | {name: name for name in ("indices", "weights", "log_scale", "passes")}
            kept = {name: stored[there] for name, there in names.items()}
    except Exception as error:  # noqa: BLE001 - any error of NumPy for a broken file becomes one line
        raise _not_a_state(path, one_line(error)) from None
    for name, value in ours.items():
        if not _same(kept[name], value):
            other = OTHER.get(name, f"{name}={kept[name]}, not for {name}={value}")
            raise ParameterError(f"{path} was saved for {other}. Name another file, or remove it.")
    indices, weights = kept["indices"], kept["weights"]
    whole = indices.ndim == 1 and indices.dtype.kind in "iu" and weights.shape == indices.shape
    if not whole or len(indices) == 0 or len(np.unique(indices)) < len(indices):
        raise _not_a_state(path, "its columns and weights do not match")
    if not 0 <= indices.min() <= indices.max() < stream.columns.shape[1]:
        raise _not_a_state(path, "it names columns that do not exist")
    numbers = [weights, kept["log_scale"], kept["passes"]]
    if any(one.dtype.kind not in "iuf" or not np.isfinite(one).all() for one in numbers) or (weights <= 0).any():
        raise _not_a_state(path, "its weights are not numbers above 0")
    if kept["log_scale"].shape or kept["passes"].shape:
        raise _not_a_state(path, "its scale and number of passes are not single numbers")
    return kept


def _not_a_state(path: Path, why: str) -> FileError:
    return FileError(f"{path} is not a saved state: {why}. Name another file, or remove it to begin anew.")


def _same(kept: NDArray[Any], value: NDArray[Any]) -> bool:
    if kept.shape != value.shape or kept.dtype.kind != value.dtype.kind:
        return False
    return bool(np.allclose(kept, value, rtol=1e-9, atol=0)) if kept.dtype.kind == "f" else np.array_equal(kept, value)
