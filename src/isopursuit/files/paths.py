"""Checks that a file can be read."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

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
