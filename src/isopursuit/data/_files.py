"""Check files, and read arrays from .npy and .npz files, which are never unpickled."""

from __future__ import annotations

import math
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from isopursuit.errors import FileError, IsoPursuitError, did_you_mean


def check_file(path: Path) -> None:
    """Raise an error if the path is not a file."""
    try:
        if path.is_dir():
            raise FileError(f"{path} is a folder. Name a file in it.")
        if path.is_file():
            return
        if path.exists():
            raise FileError(f"{path} is neither a file nor a folder. Save the data to a file first.")
    except IsoPursuitError:
        raise
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}.") from None
    raise FileError(f"There is no file {path}.{_neighbours(path)}")


def is_there(path: Path) -> bool:
    """Whether a file or folder of this name exists and is accessible."""
    try:
        return path.exists()
    except OSError:
        return False


def _neighbours(path: Path) -> str:
    try:
        hint = did_you_mean(path.name, [other.name for other in islice(path.parent.iterdir(), 1000)])
    except OSError:
        hint = "Its folder does not exist either."
    return f" {hint}" if hint else ""


def one_line(error: BaseException) -> str:
    """The first line of another library's message, without its full stop."""
    return str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__


def npy_header(path: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Shape, Fortran order, type and data offset of a .npy file, after a check of the file's size."""
    check_file(path)
    try:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            if version not in ((1, 0), (2, 0), (3, 0)):
                raise FileError(
                    f"its format version is {version[0]}.{version[1]}, but only 1.0, 2.0 and 3.0 are supported"
                )
            # version 3 differs from 2 only in the names of fields
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, stored = read(file)
            offset, size = file.tell(), path.stat().st_size
    except Exception as error:  # noqa: BLE001 - any error about the header becomes one line
        raise FileError(f"{path.name} is not a readable .npy file: {one_line(error)}. Save it again.") from None
    if stored.hasobject:
        raise FileError(f"{path.name} contains Python objects, which are never unpickled. Save plain numbers.")
    if any(isinstance(length, bool) or length < 0 for length in shape):
        raise FileError(f"{path.name} is damaged: its header says shape {shape}. Save it again.")
    expected = offset + math.prod(shape) * stored.itemsize
    if size < expected:
        raise FileError(
            f"{path.name} is truncated: it has {size} bytes, but its header says {expected}. Save it again."
        )
    return shape, fortran, stored, offset


def load_array(path: Path) -> NDArray[Any]:
    """The array of a .npy file, or the only matrix of a .npz file."""
    if path.suffix.lower() == ".npy":
        npy_header(path)
    try:
        with path.open("rb") as file:
            loaded: Any = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return cast("NDArray[Any]", loaded)
            matrices = [name for name in loaded.files if loaded[name].ndim == 2]
            if len(matrices) != 1:
                found = ", ".join(loaded.files) or "none"
                raise FileError(f"{path.name} must contain exactly one matrix; it contains the arrays {found}.")
            return loaded[matrices[0]]
    except IsoPursuitError:
        raise
    except Exception as error:  # noqa: BLE001 - any NumPy error about a broken file becomes one line
        pickled = "pickle" in str(error)
        hint = " It contains Python objects, which are never unpickled; save plain numbers." if pickled else ""
        raise FileError(f"{path.name} is not a readable {path.suffix} file: {one_line(error)}.{hint}") from None
