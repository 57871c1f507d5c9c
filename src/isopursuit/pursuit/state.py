"""A streamed pursuit on disk: its weights after every pass, for a run that was killed to go on from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isopursuit.errors import FileError, ParameterError
from isopursuit.normalize import log_lengths
from isopursuit.sources.columns import FINGERPRINT

if TYPE_CHECKING:
    from isopursuit.pursuit.streamed import Stream

CURVE = np.array([0.25, 0.5, 1.0, 2.0, 4.0])  # lengths at which a normalization is recognized
# what a saved state was for where it is not for this run
OTHER = {
    "shape": "other columns",
    "columns": "other columns",
    "standardization": "another standardization or projection",
    "normalization": "another normalization",
    "target": "another target",
}


def belongs(stream: Stream) -> dict[str, Any]:
    """By what a state is known to belong to a run: the columns, and what is asked of them."""
    columns, transform = stream.columns, stream.columns.transform
    few = columns.take(np.unique(np.linspace(0, columns.shape[1] - 1, FINGERPRINT).astype(np.intp)))
    # a normalization may be any function: it is known by its values
    curve = np.zeros(0) if transform.c is None else log_lengths(CURVE, transform.c, transform.normalization)
    return {
        "shape": np.array(columns.source.shape),
        "dtype": np.array(str(columns.source.dtype)),
        "columns": columns.fingerprint(),
        "standardization": np.linalg.norm(transform.apply(few), axis=0),  # and projection, but for rotations
        "c": np.array("none" if transform.c is None else repr(transform.c)),
        "normalization": curve,
        "target": np.eye(columns.shape[0]) if stream.target is None else stream.target,
        "ridge": np.array(stream.ridge),
    }


def save_state(path: Path, stream: Stream) -> None:
    """The weights so far, written whole or not at all."""
    held = np.asarray(stream.weights > 0)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with draft.open("wb") as file:
        np.savez(
            file,
            indices=stream.indices[held],
            weights=stream.weights[held],
            log_scale=stream.columns.transform.log_scale,
            passes=len(stream.seconds),
            **belongs(stream),
        )
    draft.replace(path)


def load_state(path: Path, stream: Stream) -> dict[str, NDArray[Any]] | None:
    """A saved state, None where there is none; refused where it belongs to other columns or to other settings."""
    if not path.exists():
        return None
    ours = belongs(stream)
    try:
        with np.load(path, allow_pickle=False) as stored:
            kept = {name: stored[name] for name in (*ours, "indices", "weights", "log_scale", "passes")}
    except Exception as error:  # noqa: BLE001 - whatever NumPy says of a broken file becomes one line
        raise FileError(
            f"{path} is not a saved state: {str(error).splitlines()[0]}. Remove it to begin anew."
        ) from None
    for name, value in ours.items():
        if not _same(kept[name], value):
            told = OTHER.get(name, f"{name}={kept[name]}, not for {name}={value}")
            raise ParameterError(f"{path} was saved for {told}. Name another file, or remove it.")
    return kept


def _same(kept: NDArray[Any], value: NDArray[Any]) -> bool:
    if kept.dtype.kind != "f":
        return np.array_equal(kept, value)
    return kept.shape == value.shape and np.allclose(kept, value, rtol=1e-9, atol=0)
