"""Write files completely or not at all: a reader never sees half a file, and no draft is left behind."""

from __future__ import annotations

import os
import shutil
import threading
from contextlib import suppress
from itertools import count
from pathlib import Path

from isopursuit.errors import FileError

_drafts: set[Path] = set()  # drafts that exist now
_creating = threading.Lock()
_numbers = count()


def check_writable(path: Path, what: str) -> None:
    """Raise an error, before any work, if a file cannot be written.

    Parameters
    ----------
    path : Path
        The file.
    what : str
        The option that names the file, for the message.
    """
    try:
        folder = _target(path).parent
        if path.is_dir():
            raise FileError(f"{what} {path} is a folder. Name a file in it.")
        if not folder.is_dir():
            fault = "is not a folder" if folder.exists() else "does not exist"
            raise FileError(f"{what} {path} cannot be written: {folder} {fault}. Name a file in a folder that exists.")
        if path.exists() and not os.access(path, os.W_OK):
            raise FileError(f"{what} {path} is write-protected. Name another file.")
        if not _is_special(path):
            draft = _draft(folder)
            draft.touch(exist_ok=False)
            draft.unlink()
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"{what} {path} cannot be written: {error.strerror}. Name another file.") from None


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a draft in the same folder, and rename it when it is complete.

    A link remains a link, and the permissions of an existing file are kept. Devices and pipes are written directly.
    """
    content = content.encode("utf-8", "replace") if isinstance(content, str) else content
    try:
        if _is_special(path):
            path.write_bytes(content)
            return
        target = _target(path)
        draft = _draft(target.parent)
        with _creating:
            file = draft.open("xb")
            _drafts.add(draft)
        try:
            with file:
                file.write(content)
            if target.exists():
                shutil.copymode(target, draft)
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
            _drafts.discard(draft)
    except OSError as error:
        raise FileError(
            f"{path} could not be written: {error.strerror}. An existing file of this name is unchanged."
        ) from None


def discard_drafts() -> None:
    """Remove unfinished drafts before the process ends; no draft can be started after this."""
    _creating.acquire()
    for draft in tuple(_drafts):
        with suppress(OSError):
            draft.unlink()


def _target(path: Path) -> Path:
    return path.resolve() if path.is_symlink() else path.absolute()


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()


def _draft(folder: Path) -> Path:
    return folder / f".isopursuit-{os.getpid()}-{next(_numbers)}"
